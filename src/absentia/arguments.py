"""Types of arguments: read from the signatures of what is public, and checked once, where users call it.

A number of numpy is converted to Python's, and a whole number may be written as a float, such as 1e4. What can't be
told from a type, such as a range, is checked where it is used.
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from torch import Tensor, nn, strided

from absentia.errors import wrong

_NO = object()  # what does not fit
_SHOWN = 60  # letters of a wrong value
_TOO_LARGE = 2**63  # for whole numbers of torch


def check_types(module: types.ModuleType) -> None:
    """Let the functions of a module, and the methods of its classes, check the types of their arguments."""
    for name in module.__all__:
        thing = getattr(module, name)
        if isinstance(thing, types.FunctionType):
            # Where it is defined too, so that both are the same object.
            for place in (module, sys.modules[thing.__module__]):
                setattr(place, name, _checked(thing))
        elif inspect.isclass(thing) and not getattr(thing, "_is_protocol", False):
            for attribute, value in list(vars(thing).items()):
                method = getattr(value, "__func__", value)
                if isinstance(method, types.FunctionType) and attribute.strip("_") in (attribute, "init", "call"):
                    whole = _checked(method)
                    setattr(thing, attribute, whole if method is value else type(value)(whole))


@functools.cache
def _checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that checks the types of its arguments first."""

    @functools.wraps(function)
    def call(*given: Any, **named: Any) -> Any:
        if sys._getframe(1).f_globals.get("__name__", "").startswith("absentia."):
            return function(*given, **named)  # the library calls itself
        hints = _hints(function)
        kept = [_fit(name, hints[name], value) for name, value in zip(hints, given, strict=False)]
        named = {name: _fit(name, hints.get(name, Any), value) for name, value in named.items()}
        return function(*kept, *given[len(kept) :], **named)

    return call


@functools.cache
def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the types of arguments in their order; Any for those that only type checkers know."""
    plain, found = inspect.unwrap(function), {}
    for name, parameter in inspect.signature(plain).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            break
        try:
            found[name] = eval(str(plain.__annotations__.get(name, "Any")), plain.__globals__ | {"Any": Any})
        except (NameError, SyntaxError):
            found[name] = Any
    return found


def _fit(name: str, hint: Any, value: Any) -> Any:
    """Return a value in the type that its hint names, or raise an error."""
    fitting = value if hint is Any else _as(hint, value)
    if fitting is _NO:
        shown = repr(value)
        short = shown if len(shown) <= _SHOWN and "\n" not in shown else f"a value of type {type(value).__name__}"
        must = f"be of type {re.sub(r'([a-z_]+[.])+', '', inspect.formatannotation(hint))}"
        if typing.get_origin(hint) is typing.Literal:
            must = f"be {' or '.join(map(repr, typing.get_args(hint)))}"
        raise wrong(name, must, short)
    return fitting


def _as(hint: Any, value: Any) -> Any:
    """Return a value in the type that a hint names, or `_NO`."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return value
    if isinstance(value, Tensor) and (value.layout is not strided or value.is_meta):
        return _NO
    if origin in (types.UnionType, typing.Union):
        if isinstance(value, tuple(part for part in parts if part in (Tensor, np.ndarray))):
            return value  # not a copy as a list, which has no gradient
        return next((fitting for part in parts if (fitting := _as(part, value)) is not _NO), _NO)
    if origin is typing.Literal:
        return value if isinstance(value, str | int) and value in parts else _NO
    if hint in (int, float, bool):
        return _number(hint, value)
    if hint is np.ndarray:  # and what becomes an array
        return value if isinstance(value, list | tuple) or hasattr(value, "__array__") else _NO
    kind = origin or (types.NoneType if hint is None else hint)
    if kind in (Sequence, Iterable):
        return _items(parts[0] if parts else Any, value)
    if kind is Mapping and isinstance(value, Mapping) and any(_as(parts[1], one) is _NO for one in value.values()):
        return _NO
    if kind is Callable:
        return value if callable(value) else _NO
    try:
        return value if isinstance(value, kind) else _NO
    except TypeError:  # a type for type checkers only
        return value


def _number(kind: type, value: Any) -> Any:
    """Return a number as Python's; a truth value is no number."""
    if isinstance(value, bool | np.bool_) or kind is bool:
        return bool(value) if kind is bool and isinstance(value, bool | np.bool_) else _NO
    if not isinstance(value, Real):
        return _NO
    value = int(value) if isinstance(value, Integral) else float(value)
    if kind is int:
        return int(value) if abs(value) < _TOO_LARGE and value == value // 1 else _NO
    return value if abs(value) < _TOO_LARGE else float(value)


def _items(hint: Any, value: Any) -> Any:
    """Return a sequence, with items of the type that the hint names unless that is text; arrays become lists."""
    if (
        isinstance(value, str | bytes | Mapping | nn.Module)
        or not hasattr(value, "__iter__")
        or getattr(value, "ndim", 1) != 1
    ):
        return _NO
    value = value.tolist() if hasattr(value, "tolist") else list(value) if isinstance(value, range) else value
    if hint in (str, Any) or not isinstance(value, list | tuple):
        return value
    items = [_as(hint, item) for item in value]
    return _NO if any(item is _NO for item in items) else type(value)(items)
