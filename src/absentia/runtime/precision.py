"""Running models in double precision to measure rounding errors."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from absentia.data import Rows
from absentia.models.arrays import NumpyModel
from absentia.models.model import Model
from absentia.runtime.modes import is_compiled, modules_behind

# The types that are converted to double precision.
_LOW = (torch.float32, torch.float16, torch.bfloat16)

# The maximum size of a tensor that is converted: 512 MiB of doubles.
_MOST_DOUBLED = 2**26

# Methods of tensors that convert to a type of low precision.
_CONVERSIONS = ("float", "half", "bfloat16")


class _InDouble(TorchFunctionMode):
    """Let torch compute in double precision in this thread; weights are converted as they are used, one by one."""

    def __torch_function__(self, func: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call a function of torch on doubles; raise an error if it would change a copy instead of a buffer."""
        name = getattr(func, "__name__", "")
        kwargs = kwargs or {}
        in_place = name == "__setitem__" or (name.endswith("_") and not name.endswith("__"))
        changed = args[0] if in_place else kwargs.get("out")
        if getattr(changed, "dtype", None) in _LOW:
            raise TypeError(f"{name} would change a copy.")
        if name in _CONVERSIONS:
            func = Tensor.double
        doubled_args = [_doubled(value) for value in args]
        doubled_kwargs = {key: _doubled(value) for key, value in kwargs.items()}
        return _doubled(func(*doubled_args, **doubled_kwargs))


def in_double(model: Model, rows: Rows, parts: Sequence[nn.Module] | None = None) -> Any:
    """Run a model in double precision, or shift its outputs by a rounding error; compiled models run unchanged.

    ``parts`` are the modules behind the model, if they are known already.
    """
    if isinstance(model, NumpyModel):
        return model(rows, moved=True)
    if "torch._dynamo" in sys.modules:
        behind = modules_behind(model) if parts is None else parts
        if any(map(is_compiled, [model, *behind])):
            return model(rows)
    with _InDouble():
        return model(_doubled(rows))


def _doubled(value: Any) -> Any:
    """Convert tensors, lists of tensors and dtypes to double precision, and round numbers to single precision."""
    if isinstance(value, Tensor):
        is_converted = value.dtype in _LOW and value.numel() <= _MOST_DOUBLED
        return value.double() if is_converted else value
    if isinstance(value, float) and abs(value) < torch.finfo(torch.float32).max:
        return ctypes.c_float(value).value  # so that a threshold of 0.1 is the 0.1 of a sample
    if type(value) in (list, tuple):
        return type(value)(map(_doubled, value))
    if isinstance(value, torch.dtype) and value in _LOW:
        return torch.float64
    return value
