"""A user's model from a word: a Python object, or a file of torch, ONNX or scikit-learn."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from absentia.errors import wrong
from absentia.loading.estimator_files import read_pickle, read_skops
from absentia.loading.onnx_files import OnnxModel, read_onnx
from absentia.loading.python_objects import load_object
from absentia.loading.torch_files import read_exported, read_network
from absentia.loading.trust import check_file
from absentia.loading.weights import load_weights

TORCH_FILES = (".pt", ".pth", ".ts", ".jit", ".torchscript")
PICKLES = (".pkl", ".pickle", ".joblib")
FILES = (*TORCH_FILES, ".pt2", ".onnx", ".skops", *PICKLES)


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """A model as it came: a module, an estimator, or a callable of torch or numpy rows; and what to know of it."""

    thing: Any
    note: str = ""

    @property
    def is_estimator(self) -> bool:
        """Whether it is one of scikit-learn's kind."""
        methods = ("predict_proba", "decision_function", "predict")
        return not isinstance(self.thing, nn.Module) and any(hasattr(self.thing, name) for name in methods)

    @property
    def classes(self) -> tuple[Any, ...] | None:
        """The classes that an estimator was fitted to, in the order of its outputs."""
        found = getattr(self.thing, "classes_", None)
        return None if found is None or not self.is_estimator else tuple(found.tolist())

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The columns that an estimator was fitted to, where it knows their names."""
        found = getattr(self.thing, "feature_names_in_", None)
        return None if found is None or not self.is_estimator else tuple(str(name) for name in found)


def load_model(
    word: str, weights: str | Path | None = None, *, trust: bool = False, device: str | None = None
) -> LoadedModel:
    """Load a model: ``package.module:object``, with weights for a network, or a file.

    Files are TorchScript, ``torch.export`` (.pt2), ONNX, skops, pickles and joblib's. Those that could run code need
    ``trust``: all but ONNX, and skops with known types.

    >>> model = load_model("torch.nn:Identity")
    >>> model.thing, model.is_estimator
    (Identity(), False)
    """
    path = Path(word)
    note = ""
    if path.suffix.lower() in FILES or path.exists():
        thing, note = _read(check_file("model", path), trust)
    elif path.suffix.lower() == ".safetensors":
        raise wrong("model", "name a file that exists, or an object as package.module:object", repr(word))
    else:
        thing = load_object(word)
    if not (callable(thing) or hasattr(thing, "predict")):
        raise wrong("model", "be a network, an estimator or a callable", f"{type(thing).__name__} for {word}")
    if weights is not None:
        if not isinstance(thing, nn.Module):
            raise wrong("weights", "be left out for a model that is no torch network", weights)
        load_weights(thing, Path(weights), trust)
    return LoadedModel(_move(thing, device), note)


def _read(path: Path, trust: bool) -> tuple[Any, str]:
    suffix = path.suffix.lower()
    if suffix == ".safetensors":
        then = f"Name what makes the network: --model package.module:build --weights {path}."
        raise wrong("model", "be more than weights", path, then)
    if suffix == ".onnx":
        return read_onnx(path)
    if suffix == ".skops":
        return read_skops(path, trust), ""
    if suffix == ".pt2":
        return read_exported(path, trust), ""
    if suffix in PICKLES:
        return read_pickle(path, trust), ""
    if suffix in TORCH_FILES:
        return read_network(path, trust), ""
    raise wrong("model", f"be a file of one of these kinds: {', '.join(FILES)}", path)


def _move(thing: Any, device: str | None) -> Any:
    """Put a network where it is to run."""
    if device is None:
        return thing
    if not isinstance(thing, nn.Module):
        kind = "an ONNX file" if isinstance(thing, OnnxModel) else type(thing).__name__
        raise wrong("device", "be left out for a model that is no torch network", f"{device} for {kind}")
    try:
        return thing.to(torch.device(device))
    except (RuntimeError, AssertionError) as error:  # torch asserts that it was built for the device
        raise wrong("device", "be one that torch has here, such as cpu or cuda", repr(device)) from error
