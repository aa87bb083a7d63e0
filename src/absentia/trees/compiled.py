"""Loops compiled by numba if it is installed, and run as plain Python otherwise."""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Callable
from typing import TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., object])


def is_compiled() -> bool:
    """Return whether loops are compiled, because numba is installed."""
    return importlib.util.find_spec("numba") is not None


def compiled(function: Function) -> Function:
    """Compile a function of numbers and arrays if numba is installed; otherwise return it unchanged.

    The results are the same, but plain Python takes some hundred times as long.
    """
    try:
        import numba
    except ImportError:
        return function
    # A runtime type checker may have wrapped the function, and numba cannot compile the wrapper.
    plain = inspect.unwrap(function)
    try:
        return cast(Function, numba.njit(cache=True, nogil=True)(plain))
    except RuntimeError:  # no folder to keep compiled code in: it is compiled anew in each process
        return cast(Function, numba.njit(nogil=True)(plain))
