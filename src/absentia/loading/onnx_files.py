"""ONNX files: run as a black box by onnxruntime, or as a torch network where onnx2torch is installed."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from absentia.errors import wrong
from absentia.loading.python_objects import describe
from absentia.optional import require

_TYPES: dict[str, Any] = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16,
          "tensor(int64)": np.int64, "tensor(int32)": np.int32}  # fmt: skip


@dataclass(frozen=True, eq=False)
class OnnxModel:
    """An ONNX graph with one input, as a numpy callable: rows in, the rows of its first floating-point output out."""

    session: Any
    input: str
    dtype: Any
    batch: int | None  # how many rows the graph takes at a time, where that is fixed
    output: str

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Run the graph, in batches where it takes a fixed number of rows."""
        rows = rows.astype(self.dtype)
        if self.batch is None:
            return self._run(rows)
        short = -len(rows) % self.batch
        padded = np.concatenate([rows, np.repeat(rows[-1:], short, axis=0)]) if short else rows
        parts = [self._run(padded[first : first + self.batch]) for first in range(0, len(padded), self.batch)]
        return np.concatenate(parts)[: len(rows)]

    def _run(self, rows: np.ndarray) -> np.ndarray:
        return np.asarray(self.session.run([self.output], {self.input: rows})[0])


def read_onnx(path: Path) -> tuple[Any, str]:
    """Read an ONNX file, and say in a line what became of it."""
    if importlib.util.find_spec("onnx2torch") is not None:
        try:
            return require("onnx2torch").convert(str(path)).eval(), "The ONNX file runs as a torch network."
        except Exception as error:
            why = f"onnx2torch can't convert the file ({describe(error)})"
    else:
        why = "onnx2torch is not installed"
    model = open_session(path)
    return model, f"The ONNX file runs as a black box, without gradients, for {why}; its output is {model.output!r}."


def open_session(path: Path) -> OnnxModel:
    """Open a graph by onnxruntime, and choose its input and its output."""
    runtime = require("onnxruntime", "onnx")
    try:
        session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    except Exception as error:
        raise wrong("model", "be an ONNX file that onnxruntime can read", f"{path}: {describe(error)}") from error
    inputs = session.get_inputs()
    if len(inputs) != 1:
        raise wrong("model", "take one input", f"{', '.join(one.name for one in inputs) or 'none'}")
    if inputs[0].type not in _TYPES:
        raise wrong("model", f"take one of {', '.join(_TYPES)}", inputs[0].type)
    outputs = [one for one in session.get_outputs() if one.type in ("tensor(float)", "tensor(double)")]
    if not outputs:
        got = ", ".join(f"{one.name} of {one.type}" for one in session.get_outputs())
        then = "Convert scikit-learn's classifiers with zipmap=False, so that probabilities are a tensor."
        raise wrong("model", "have an output of floating-point numbers", got, then)
    shape = inputs[0].shape
    batch = shape[0] if shape and isinstance(shape[0], int) and shape[0] > 0 else None
    return OnnxModel(session, inputs[0].name, _TYPES[inputs[0].type], batch, outputs[0].name)
