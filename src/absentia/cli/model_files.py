"""Models from files and Python objects, with weights, on a device."""

import pickle
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import nn

from absentia.cli.file_checks import check_file, check_trust, reading
from absentia.cli.onnx_models import read_onnx
from absentia.cli.python_objects import load_object
from absentia.errors import require, wrong
from absentia.models.adapters import as_model
from absentia.models.arrays import NumpyModel

TORCH_FILES = (".pt", ".pth", ".ts", ".jit", ".torchscript")
EXPORTED_PROGRAM = ".pt2"
PICKLES = (".pkl", ".pickle", ".joblib")
MODEL_FILES = (*TORCH_FILES, EXPORTED_PROGRAM, ".onnx", ".skops", *PICKLES)
NAME_IT = "Better, name the function that builds the network: --model package.module:build --weights FILE."
# Keys under which training scripts save weights.
_WEIGHT_KEYS = ("state_dict", "model_state_dict", "model")
# Prefixes that wrappers, such as DataParallel and torch.compile, add to the names of weights.
_WRAPPER_PREFIXES = ("module.", "_orig_mod.")


def is_estimator(model: Any) -> bool:
    """Return whether a loaded model is an estimator or a booster, which the library wraps."""
    return isinstance(as_model(model), NumpyModel)


def devices() -> dict[str, str]:
    """Return the devices that torch has here, with the names of GPUs."""
    available = {"cpu": ""}
    for number in range(torch.cuda.device_count()):
        available[f"cuda:{number}"] = torch.cuda.get_device_name(number)
    if torch.backends.mps.is_available():
        available["mps"] = ""
    return available


def load_model(
    word: str, weights: str | None = None, trust: bool = False, device: str | None = None, untrained: bool = False
) -> Any:
    """Load a file, which may need ``trust``, or ``package.module:object``; networks need weights or ``untrained``."""
    path = Path(word)
    if path.suffix.lower() in MODEL_FILES or path.exists():
        model = _read_file(check_file("model", path), trust)
    else:
        model = load_object(word, check_weights=weights is None and not untrained)
    as_model(model)  # raises an error for what is not a model
    for option, value in (("weights", weights), ("device", device)):
        if value is not None and not isinstance(model, nn.Module):
            raise wrong(option, "be left out for a model that is not a torch network", value)
    if weights is not None:
        _load_weights(model, check_file("weights", Path(weights)), trust)
    return model if device is None else _to_device(model, device)


def _to_device(network: nn.Module, device: str) -> nn.Module:
    """Move a network to a device that can compute."""
    try:
        torch.zeros(1, device=device).tolist()  # fails on the device "meta" too
    except Exception as error:
        raise wrong("device", f"be one that torch has here: {', '.join(devices())}", repr(device)) from error
    return network.to(device)


def _read_file(path: Path, trust: bool) -> Any:
    """Read a model file by its kind."""
    suffix = path.suffix.lower()
    if suffix == ".onnx":
        return read_onnx(path)
    if suffix == ".skops":
        return _read_skops(path, trust)
    if suffix in PICKLES:
        return _read_pickle(path, trust)
    if suffix == EXPORTED_PROGRAM:
        return _read_exported(path, trust)
    if suffix in TORCH_FILES and _is_script(path):
        return _read_script(path, trust)
    if suffix not in (".safetensors", *TORCH_FILES):
        raise wrong("model", f"be a file of one of these kinds: {', '.join(MODEL_FILES)}", path)
    network = _read_torch(path, "model", trust)
    if not isinstance(network, nn.Module):
        raise wrong("model", "be a whole network", f"{path}, which holds weights or other values", NAME_IT)
    return network


def _read_skops(path: Path, trust: bool) -> Any:
    """Read an estimator saved by skops; types that skops does not know require a trusted file."""
    skops = require("skops.io", "skops")
    with reading("model", "be a file that skops saved", path):
        unknown = sorted(skops.get_untrusted_types(file=path))
        danger = f"makes objects that skops does not know to be safe, {', '.join(unknown)}"
        check_trust(trust or not unknown, path, danger, "Look at these names first.")
        return skops.load(path, trusted=unknown)


def _read_pickle(path: Path, trust: bool) -> Any:
    """Read a pickle of joblib or of Python."""
    better = "Better, save the model with skops.io.dump(estimator, 'model.skops')."
    check_trust(trust, path, "is a pickle, which can run any code when it is read", better)
    with reading("model", "be a pickle that can be read", path):
        return require("joblib", "sklearn").load(path)  # reads plain pickles too


def _read_exported(path: Path, trust: bool) -> nn.Module:
    """Read a program of torch.export."""
    # torch.export.load may unpickle constants without limits, and evaluates shapes as expressions.
    danger = "is a file of torch.export, parts of which torch unpickles: it can run any code when it is read"
    check_trust(trust, path, danger, NAME_IT)
    with reading("model", "be a file that torch saved", path), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about deprecated parts of torch
        return torch.export.load(path).module()


def _read_script(path: Path, trust: bool) -> nn.Module:
    """Read a TorchScript program."""
    # Every such program may call torch.from_file, which maps any file for writing.
    danger = "is a TorchScript file, which is a program that can read and overwrite files when it runs"
    check_trust(trust, path, danger, NAME_IT)
    with reading("model", "be a file that torch saved", path), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TorchScript is deprecated
        program: Any = torch.jit.load(path, map_location="cpu")
        return nn.Sequential(program)  # a container, because TorchScript itself takes no hooks


def _is_script(path: Path) -> bool:
    """Return whether a file is TorchScript. Files of torch.save are archives too, but hold no code."""
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return any("/code/" in name or name.endswith("/constants.pkl") for name in archive.namelist())


def _read_torch(path: Path, argument: str, trust: bool) -> Any:
    """Read safetensors, or a file of torch.save: containers of tensors, or any objects if the file is trusted."""
    with reading(argument, "be a file that torch can read", path):
        if path.suffix == ".safetensors":
            return load_file(path)
        try:
            return torch.load(path, map_location="cpu", weights_only=not trust)
        except pickle.UnpicklingError as error:
            if _holds_objects(error):
                danger = "is a pickle that holds Python objects: it can run any code when it is read"
                check_trust(trust, path, danger, "Better, save model.state_dict(), or its tensors with safetensors.")
            raise wrong(argument, "be a file that torch can read", path) from error


def _holds_objects(error: pickle.UnpicklingError) -> bool:
    """Return whether torch rejected a pickle because of its objects, which only the text of its error shows."""
    message = str(error)
    # An unsupported operand is a byte that no pickle has: the file is something else.
    return "Weights only load failed" in message and "Unsupported operand" not in message


def _load_weights(network: nn.Module, path: Path, trust: bool) -> None:
    """Load weights from a safetensors file, or from a state_dict or network that torch saved."""
    weights = _read_torch(path, "weights", trust)
    with reading("weights", "hold the tensors of the model by name", path):
        if isinstance(weights, nn.Module):
            weights = weights.state_dict()
        for key in _WEIGHT_KEYS:
            if isinstance(weights.get(key), Mapping):
                weights = weights[key]
        for prefix in _WRAPPER_PREFIXES:
            if all(name.startswith(prefix) for name in weights):
                weights = {name.removeprefix(prefix): tensor for name, tensor in weights.items()}
        network.load_state_dict(weights)
