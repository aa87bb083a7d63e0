"""Whole networks in files of torch's: TorchScript, exported programs, pickled modules."""

from __future__ import annotations

import warnings
import zipfile
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from absentia.errors import wrong
from absentia.loading.python_objects import describe
from absentia.loading.trust import untrusted
from absentia.loading.weights import read_torch

NAME_IT = "Better, name the network: --model package.module:build --weights weights.safetensors."


class Scripted(nn.Module):
    """A TorchScript program as an ordinary module, in evaluation mode, without a gradient to its weights.

    Its parts can't be watched or switched as those of other modules are, so they are kept out of sight; a buffer
    tells the device and the precision that it works in.
    """

    def __init__(self, program: Any) -> None:
        super().__init__()
        program.eval()
        for weight in program.parameters():
            weight.requires_grad_(False)
        self._program = (program,)  # in a tuple, where nn.Module does not look for parts
        floating = [one for one in (*program.parameters(), *program.buffers()) if one.is_floating_point()]
        self.register_buffer("like", torch.empty_like(floating[0]) if floating else torch.empty(0))

    def forward(self, rows: Tensor) -> Tensor:
        """Run the program."""
        return self._program[0](rows)

    def _apply(self, move: Any, recurse: bool = True) -> Any:
        self._program[0]._apply(move)
        return super()._apply(move, recurse)  # type: ignore[no-untyped-call]


def read_network(path: Path, trust: bool) -> nn.Module:
    """Read a file of torch's that holds a whole network: TorchScript, or a pickled module."""
    if _is_script(path):
        return _read_script(path, trust)
    found = read_torch(path, "model", trust)
    if isinstance(found, nn.Module):
        return found
    then = f"Name what makes the network: --model package.module:build --weights {path}."
    raise wrong("model", "be a whole network", f"{path}, which holds weights or other values", then)


def _read_script(path: Path, trust: bool) -> nn.Module:
    if not trust:
        # torch.from_file maps any file for writing, and is open to every such program.
        why = "it is a program, and can read and overwrite files when it runs"
        raise untrusted(path, "a TorchScript file", why, NAME_IT)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that TorchScript will go some day is no news to whoever has such a file
            return Scripted(torch.jit.load(path, map_location="cpu"))
    except Exception as error:
        raise wrong("model", "be a TorchScript file that can be read", f"{path}: {describe(error)}") from error


def read_exported(path: Path, trust: bool) -> nn.Module:
    """Read a program that torch.export saved."""
    if not trust:
        # torch.export.load falls back to a full unpickling of constants, and evaluates shapes as expressions.
        why = "torch unpickles parts of it, which can run any code when it is read"
        raise untrusted(path, "a file of torch.export", why, NAME_IT)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about torch's own use of its deprecated parts
            return torch.export.load(path).module()
    except Exception as error:
        raise wrong("model", "be a file of torch.export.save", f"{path}: {describe(error)}") from error


def _is_script(path: Path) -> bool:
    """Tell TorchScript from what torch.save wrote: both are archives, but only a program holds code."""
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return any("/code/" in name or name.endswith("/constants.pkl") for name in archive.namelist())
