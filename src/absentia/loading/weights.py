"""Weights of a network from a file: safetensors, or a state_dict that torch saved."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from absentia.errors import wrong
from absentia.loading.python_objects import describe
from absentia.loading.trust import check_file, untrusted

# What training scripts call the weights where they save more than them, and what wrappers put before their names.
_ENTRIES = ("state_dict", "model_state_dict", "model")
_PREFIXES = ("module.", "_orig_mod.")


def load_weights(network: nn.Module, path: Path, trust: bool = False) -> nn.Module:
    """Put the weights of a file into a network.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "weights.pt"
    >>> torch.save({"state_dict": {"weight": torch.tensor([[5.0]])}}, path)
    >>> load_weights(nn.Linear(1, 1, bias=False), path).weight.item()
    5.0
    """
    check_file("weights", path)
    weights = _strip(_state(path, _read(path, trust)))
    own = network.state_dict()
    missing = [name for name in own if name not in weights]
    extra = [name for name in weights if name not in own]
    if missing or extra:
        got = f"none named {missing[0]!r}" if missing else f"{extra[0]!r}, which it does not have"
        raise wrong("weights", f"hold the {len(own)} tensors of the model", got)
    for name, tensor in own.items():
        if weights[name].shape != tensor.shape:
            expected = f"have the shapes of the model's, {tuple(tensor.shape)} for {name!r}"
            raise wrong("weights", expected, tuple(weights[name].shape))
    network.load_state_dict(dict(weights))
    return network


def _read(path: Path, trust: bool) -> Any:
    if path.suffix == ".safetensors":
        try:
            return load_file(path)
        except SafetensorError as error:
            raise wrong("weights", "be a safetensors file", f"{path}, which can't be read") from error
    return read_torch(path, "weights", trust)


def read_torch(path: Path, argument: str, trust: bool) -> Any:
    """Read what torch saved: tensors and containers of them only, or anything where the file is trusted."""
    try:
        return torch.load(path, map_location="cpu", weights_only=not trust)
    except pickle.UnpicklingError as error:
        # What torch calls an operand is a byte that no pickle has: the file is none at all.
        if not trust and "Weights only load failed" in str(error) and "Unsupported operand" not in str(error):
            why = "it holds Python objects, and can run any code when it is read"
            instead = "Better, save model.state_dict(), or its tensors by safetensors."
            raise untrusted(path, "a pickle of torch's", why, instead) from error
        raise wrong(argument, "be a file that torch saved", f"{path}, which can't be read") from error
    except Exception as error:
        raise wrong(argument, "be a file that torch can read", f"{path}: {describe(error)}") from error


def _state(path: Path, found: Any) -> Mapping[str, Tensor]:
    """Find the weights in what was read."""
    if isinstance(found, nn.Module):
        found = found.state_dict()
    for entry in _ENTRIES:
        if isinstance(found, Mapping) and isinstance(found.get(entry), Mapping):
            found = found[entry]
    if not isinstance(found, Mapping) or not found or not all(isinstance(one, Tensor) for one in found.values()):
        raise wrong("weights", "hold tensors by name", f"{path}, which holds none")
    return found


def _strip(weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    for prefix in _PREFIXES:
        if all(name.startswith(prefix) for name in weights):
            weights = {name.removeprefix(prefix): tensor for name, tensor in weights.items()}
    return weights
