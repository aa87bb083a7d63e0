"""Models run in double precision, to measure rounding errors."""

from __future__ import annotations

import ctypes
import sys
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from absentia.data import Rows
from absentia.models.arrays import NumpyModel
from absentia.models.model import Model
from absentia.runtime.modes import is_compiled, modules_behind

# The types that are doubled to measure rounding errors, and the most numbers of a tensor that is: 512 MiB of doubles.
_LOW, _MOST_DOUBLED = (torch.float32, torch.float16, torch.bfloat16), 2**26


class _InDouble(TorchFunctionMode):
    """Let torch compute in double precision in this thread; weights are converted as they are used, one by one."""

    def __torch_function__(self, func: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call a function of torch on doubles, but none that would change a copy in the place of a buffer."""
        name, kwargs = getattr(func, "__name__", ""), kwargs or {}
        in_place = name == "__setitem__" or (name.endswith("_") and not name.endswith("__"))
        if getattr(args[0] if in_place else kwargs.get("out"), "dtype", None) in _LOW:
            raise TypeError(f"{name} would change a copy.")
        func = Tensor.double if name in ("float", "half", "bfloat16") else func
        return _doubled(func(*map(_doubled, args), **{key: _doubled(value) for key, value in kwargs.items()}))


def in_double(model: Model, rows: Rows) -> Any:
    """Run a model in double precision, or move its outputs by a rounding error; a compiled model runs as it is."""
    if isinstance(model, NumpyModel):
        return model(rows, moved=True)
    compiled = "torch._dynamo" in sys.modules and any(map(is_compiled, [model, *modules_behind(model)]))
    with nullcontext() if compiled else _InDouble():
        return model(rows if compiled else _doubled(rows))


def _doubled(thing: Any) -> Any:
    """Return tensors, also in a list, and types in double precision; numbers as single precision has them."""
    if isinstance(thing, Tensor):
        return thing.double() if thing.dtype in _LOW and thing.numel() <= _MOST_DOUBLED else thing
    if isinstance(thing, float) and abs(thing) < torch.finfo(torch.float32).max:
        return ctypes.c_float(thing).value  # so that a threshold of 0.1 is the 0.1 of a sample
    if type(thing) in (list, tuple):
        return type(thing)(map(_doubled, thing))
    return torch.float64 if isinstance(thing, torch.dtype) and thing in _LOW else thing
