"""Models as users name them: a Python object, or a file of torch, ONNX or scikit-learn."""

import importlib.util
import inspect
import pickle
import pkgutil
import sys
import warnings
import zipfile
from collections.abc import Mapping
from contextlib import redirect_stdout
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from torch import nn

from absentia.cli.output import check_file, check_trust, describe, reading
from absentia.errors import AbsentiaError, require, wrong
from absentia.models import NumpyModel, as_model

TORCH_FILES = (".pt", ".pth", ".ts", ".jit", ".torchscript")
PICKLES = (".pkl", ".pickle", ".joblib")
FILES = (*TORCH_FILES, ".pt2", ".onnx", ".skops", *PICKLES)
NAME_IT = "Better, name the function that builds the network: --model package.module:build --weights FILE."
# Keys under which training scripts save weights, and prefixes that wrappers add to their names.
_ENTRIES = ("state_dict", "model_state_dict", "model")
_PREFIXES = ("module.", "_orig_mod.")


def is_estimator(model: Any) -> bool:
    """Return whether a loaded model is an estimator or a booster, which the library wraps."""
    return isinstance(as_model(model), NumpyModel)


def devices() -> dict[str, str]:
    """Return the devices that torch has here, and the names of GPUs."""
    found = {f"cuda:{number}": torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())}
    return {"cpu": ""} | found | ({"mps": ""} if torch.backends.mps.is_available() else {})


def load_model(
    word: str, weights: str | None = None, *, trust: bool = False, device: str | None = None, untrained: bool = False
) -> Any:
    """Load ``package.module:object``, with weights unless it may be ``untrained``, or a file. Most need ``trust``."""
    path = Path(word)
    suffix = path.suffix.lower()
    if suffix in FILES or path.exists():
        model = _read(check_file("model", path), suffix, trust)
    else:
        model = _load_object(word, check=weights is None and not untrained)
    as_model(model)  # refuses what is no model
    for option, given in (("weights", weights), ("device", device)):
        if given is not None and not isinstance(model, nn.Module):
            raise wrong(option, "be left out for a model that is not a torch network", given)
    if weights is not None:
        _load_weights(model, check_file("weights", Path(weights)), trust)
    if device is None:
        return model
    try:
        torch.zeros(1, device=device).tolist()  # which fails on the device "meta" too
    except Exception as error:
        raise wrong("device", f"be one that torch has here: {', '.join(devices())}", repr(device)) from error
    return model.to(device)


def _load_object(word: str, check: bool) -> Any:
    """Import ``package.module:object``. Call it if it is a class or needs no arguments; ``check`` its weights."""
    module, _, path = word.partition(":")
    then = f"The working directory is {Path.cwd()}."
    if module.endswith(".py"):
        then = f"Write {Path(module).stem}:{path}, in the folder of the file."
    if not all(part.isidentifier() for part in (*module.split("."), *path.split("."))):
        raise wrong("model", "name a file that exists, or an object as package.module:object", repr(word), then)
    if str(Path.cwd()) not in sys.path:
        # For good: a model may import more when it is called. Last: no file here stands in for an installed package.
        sys.path.append(str(Path.cwd()))
    local = Path.cwd() / f"{module.partition('.')[0]}.py"
    spec = PathFinder.find_spec(local.stem)
    if local.is_file() and spec is not None and spec.origin != str(local):
        then = f"The file {local.name} is not used, because {spec.origin} has the same name. Rename it."
    # What the module prints is not part of the command's output.
    with redirect_stdout(sys.stderr), reading("model", "name an object that can be imported or made", word, then):
        found = pkgutil.resolve_name(word)
        if not _makes_model(found):
            return found
        before = torch.get_rng_state()
        model = found()
        if check and not torch.equal(before, torch.get_rng_state()):
            made = [list(one.parameters()) if isinstance(one, nn.Module) else [] for one in (model, found())]
            if not all(map(torch.equal, *made)):  # equal weights are loaded, or drawn from a fixed seed
                then = "Pass --weights FILE, or --untrained to go on."
                raise AbsentiaError(f"The network that {word} makes has random weights. {then}")
        return model


def _makes_model(found: Any) -> bool:
    """Return whether an object makes a model: a class, or a function that needs no arguments."""
    if isinstance(found, type):
        return True
    if isinstance(found, nn.Module) or not callable(found) or hasattr(found, "predict"):
        return False
    try:
        inspect.signature(found).bind()
    except (TypeError, ValueError):  # it needs arguments, or is written in C and has no signature
        return False
    return True


def _read(path: Path, suffix: str, trust: bool) -> Any:
    if suffix == ".onnx":
        why = "onnx2torch is not installed"
        if importlib.util.find_spec("onnx2torch") is not None:
            try:
                return require("onnx2torch").convert(str(path)).eval()
            except Exception as error:  # the graph then runs as a black box
                why = f"onnx2torch can't convert the file ({describe(error)})"
        return OnnxModel(path, why)
    if suffix == ".skops":
        skops = require("skops.io", "skops")
        with reading("model", "be a file that skops saved", path):
            unknown = sorted(skops.get_untrusted_types(file=path))
            what = f"makes objects that skops does not know to be safe, {', '.join(unknown)}"
            check_trust(trust or not unknown, path, what, "Look at these names first.")
            return skops.load(path, trusted=unknown)
    if suffix in PICKLES:
        better = "Better, save the model with skops.io.dump(estimator, 'model.skops')."
        check_trust(trust, path, "is a pickle, which can run any code when it is read", better)
        with reading("model", "be a pickle that can be read", path):
            return require("joblib", "sklearn").load(path)  # which reads plain pickles too
    if suffix == ".pt2" or (suffix in TORCH_FILES and _is_script(path)):
        return _read_program(path, suffix == ".pt2", trust)
    if suffix not in (".safetensors", *TORCH_FILES):
        raise wrong("model", f"be a file of one of these kinds: {', '.join(FILES)}", path)
    found = _read_torch(path, "model", trust)
    if not isinstance(found, nn.Module):
        raise wrong("model", "be a whole network", f"{path}, which holds weights or other values", NAME_IT)
    return found


def _read_program(path: Path, exported: bool, trust: bool) -> nn.Module:
    """Read a program of torch.export or TorchScript."""
    # torch.export.load may unpickle constants without limits, and evaluates shapes as expressions.
    what = "is a file of torch.export, parts of which torch unpickles: it can run any code when it is read"
    if not exported:  # torch.from_file, which every such program may call, maps any file for writing.
        what = "is a TorchScript file, which is a program that can read and overwrite files when it runs"
    check_trust(trust, path, what, NAME_IT)
    with reading("model", "be a file that torch saved", path), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about deprecated parts of torch, TorchScript among them
        program: Any = torch.export.load(path) if exported else torch.jit.load(path, map_location="cpu")
        # In a container, because TorchScript takes no hooks itself.
        return program.module() if exported else nn.Sequential(program)


def _is_script(path: Path) -> bool:
    """Return whether a file is TorchScript. Files of torch.save are archives too, but hold no code."""
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return any("/code/" in name or name.endswith("/constants.pkl") for name in archive.namelist())


def _read_torch(path: Path, argument: str, trust: bool) -> Any:
    """Read safetensors, or a file of torch.save: tensors and containers of them, or anything if it is trusted."""
    with reading(argument, "be a file that torch can read", path):
        if path.suffix == ".safetensors":
            return load_file(path)
        try:
            return torch.load(path, map_location="cpu", weights_only=not trust)
        except pickle.UnpicklingError as error:
            # An unsupported operand is a byte that no pickle has: the file is something else.
            if "Weights only load failed" in str(error) and "Unsupported operand" not in str(error):
                what = "is a pickle that holds Python objects: it can run any code when it is read"
                check_trust(trust, path, what, "Better, save model.state_dict(), or its tensors with safetensors.")
            raise wrong(argument, "be a file that torch can read", path) from error


def _load_weights(network: nn.Module, path: Path, trust: bool) -> None:
    """Load weights from a safetensors file or a state_dict that torch saved."""
    found = _read_torch(path, "weights", trust)
    with reading("weights", "hold the tensors of the model by name", path):
        if isinstance(found, nn.Module):
            found = found.state_dict()
        for entry in _ENTRIES:
            found = found[entry] if isinstance(found.get(entry), Mapping) else found
        for prefix in _PREFIXES:
            if all(name.startswith(prefix) for name in found):
                found = {name.removeprefix(prefix): tensor for name, tensor in found.items()}
        network.load_state_dict(found)


class OnnxModel:
    """An ONNX graph with one input as a numpy callable that returns its first floating-point output."""

    def __init__(self, path: Path, why: str) -> None:
        runtime = require("onnxruntime", "onnx")
        with reading("model", "be an ONNX file with one input of numbers", path):
            self.session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
            (first,) = self.session.get_inputs()
            name = first.type.removeprefix("tensor(").removesuffix(")")
            self.input, self.dtype = first.name, np.dtype({"float": "float32", "double": "float64"}.get(name, name))
        found = self.session.get_outputs()
        self.output = next((one.name for one in found if one.type in ("tensor(float)", "tensor(double)")), None)
        if self.output is None:
            got = ", ".join(f"{one.name} of {one.type}" for one in found)
            then = "Convert scikit-learn's classifiers with zipmap=False, so that probabilities are a tensor."
            raise wrong("model", "have an output of floating-point numbers", got, then)
        fixed = first.shape and isinstance(first.shape[0], int) and first.shape[0] > 0
        self.batch = first.shape[0] if fixed else None  # the number of rows that the graph takes at a time
        slow = f"The ONNX file runs as a black box, without gradients, because {why}."
        self.note = f"{slow} Its output is {self.output!r}."

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Run the graph, in padded batches if its number of rows is fixed."""
        size = self.batch or len(rows)
        padding = np.repeat(rows[-1:], -len(rows) % size, axis=0)
        parts = np.split(np.concatenate([rows, padding]).astype(self.dtype), -(-len(rows) // size))
        found = [np.asarray(self.session.run([self.output], {self.input: part})[0]) for part in parts]
        return np.concatenate(found)[: len(rows)]
