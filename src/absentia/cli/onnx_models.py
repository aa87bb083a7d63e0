"""ONNX files as models: converted to a network where possible, otherwise run as a black box."""

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np

from absentia.cli.file_checks import describe, reading
from absentia.errors import require, wrong

_FLOATING_TYPES = ("tensor(float)", "tensor(double)")
# The dtypes that numpy names differently.
_DTYPES = {"float": "float32", "double": "float64"}


def read_onnx(path: Path) -> Any:
    """Read an ONNX file as a network if onnx2torch can convert it, or else as an `OnnxModel`."""
    if importlib.util.find_spec("onnx2torch") is None:
        return OnnxModel(path, "onnx2torch is not installed")
    try:
        return require("onnx2torch").convert(str(path)).eval()
    except Exception as error:  # the converter fails in many ways; the graph still runs as a black box, with a note
        return OnnxModel(path, f"onnx2torch can't convert the file ({describe(error)})")


class OnnxModel:
    """An ONNX graph with one input as a numpy callable that returns its first floating-point output."""

    def __init__(self, path: Path, why_black_box: str) -> None:
        runtime = require("onnxruntime", "onnx")
        with reading("model", "be an ONNX file with one input of numbers", path):
            self.session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
            (graph_input,) = self.session.get_inputs()
            self.input = graph_input.name
            self.dtype = _dtype(graph_input.type)
        self.output = _first_floating_output(self.session.get_outputs())
        self.batch_size = _fixed_batch_size(graph_input.shape)
        slow = f"The ONNX file runs as a black box, without gradients, because {why_black_box}."
        self.notes_on_file = [f"{slow} Its output is {self.output!r}."]

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Run the graph, in padded batches if its number of rows is fixed."""
        size = self.batch_size or len(rows)
        padding = np.repeat(rows[-1:], -len(rows) % size, axis=0)
        padded = np.concatenate([rows, padding]).astype(self.dtype)
        batches = np.split(padded, len(padded) // size)
        outputs = [np.asarray(self.session.run([self.output], {self.input: batch})[0]) for batch in batches]
        return np.concatenate(outputs)[: len(rows)]


def _dtype(tensor_type: str) -> np.dtype[Any]:
    """Return numpy's dtype of an ONNX type such as tensor(float)."""
    name = tensor_type.removeprefix("tensor(").removesuffix(")")
    return np.dtype(_DTYPES.get(name, name))


def _first_floating_output(outputs: list[Any]) -> str:
    """Return the name of the first output that holds floating-point numbers."""
    for output in outputs:
        if output.type in _FLOATING_TYPES:
            return str(output.name)
    got = ", ".join(f"{output.name} of {output.type}" for output in outputs)
    then = "Convert scikit-learn's classifiers with zipmap=False, so that probabilities are a tensor."
    raise wrong("model", "have an output of floating-point numbers", got, then)


def _fixed_batch_size(shape: list[Any]) -> int | None:
    """Return the number of rows that a graph takes at a time, or None if it takes any number."""
    if shape and isinstance(shape[0], int) and shape[0] > 0:
        return shape[0]
    return None
