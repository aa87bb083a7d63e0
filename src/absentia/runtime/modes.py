"""Evaluation mode for the modules behind a model."""

from __future__ import annotations

import dis
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import lru_cache, partial
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from absentia.errors import wrong
from absentia.models.model import Model

# The search for the modules of a function or an object visits this many objects, nearest first (decision 0007).
_MOST_SEARCHED = 256
# Instructions that load a global variable.
_LOADS_OF_GLOBALS = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"})
# Objects of these types hold no module that a model runs.
_HOLD_NO_MODULE = (type(None), str, int, float, Tensor, np.ndarray, torch.dtype, torch.device, ModuleType, type)
# Modules and parameters whose flag is off during evaluation, with the number of calls that need it off.
_OFF: dict[nn.Module | Tensor, int] = {}
_LOCK = threading.Lock()


def modules_behind(model: Any) -> list[nn.Module]:
    """Return the model itself, if it is a module, and the modules that it holds directly.

    These are attributes of objects, arguments of partials, and variables that functions use, from enclosing
    functions or from their file. Modules hidden elsewhere are not found. The check for varying outputs is meant to
    catch those.
    """
    modules: dict[nn.Module, None] = {}  # a set that keeps the order
    queue = [model]
    known = {id(model)}
    for item in queue:  # which grows
        if isinstance(item, nn.Module):
            modules.update(dict.fromkeys(item.modules()))
        if type(item).__module__.startswith("torch."):  # torch's own modules hold nothing but modules
            continue
        for held in _held_by(item):
            if not isinstance(held, _HOLD_NO_MODULE) and id(held) not in known and len(queue) < _MOST_SEARCHED:
                known.add(id(held))
                queue.append(held)
    return list(modules)


def _held_by(item: Any) -> Iterable[Any]:
    """Return what an object holds: items, attributes, arguments of a partial, and variables that a function uses."""
    if isinstance(item, partial):
        return [item.func, *item.args, *item.keywords.values()]
    if isinstance(item, MethodType):
        return [item.__self__, item.__func__]
    if isinstance(item, FunctionType):
        return _used_by(item)
    if isinstance(item, dict):
        return list(item.values())
    if isinstance(item, list | tuple | set | frozenset):
        return list(item)
    slots = [getattr(item, name, None) for name in getattr(type(item), "__slots__", ())]
    return [*slots, *getattr(item, "__dict__", {}).values(), *_methods_that_run(item)]


def _methods_that_run(item: Any) -> list[FunctionType]:
    """Return the function that a call of an object runs, unless it is torch's own."""
    name = "forward" if isinstance(item, nn.Module) else "__call__"
    method = getattr(type(item), name, None)
    if not isinstance(method, FunctionType) or str(method.__module__).startswith("torch."):
        return []
    return [method]


def _used_by(function: FunctionType) -> list[Any]:
    """Return the variables that a function uses from outside, and its default arguments."""
    defaults = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    variables = [function.__globals__.get(name) for name in _globals_of(function.__code__)]
    return [*defaults, *variables, *_closure_of(function)]


@lru_cache(maxsize=1024)
def _globals_of(code: CodeType) -> tuple[str, ...]:
    """Return the names of the global variables that code loads, also in nested functions and comprehensions."""
    names = {step.argval: None for step in dis.get_instructions(code) if step.opname in _LOADS_OF_GLOBALS}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= dict.fromkeys(_globals_of(constant))
    return tuple(names)


def _closure_of(function: FunctionType) -> list[Any]:
    """Return the variables of enclosing functions that a function uses, if they have a value."""
    values = []
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # a variable without a value yet
            values.append(cell.cell_contents)
    return values


@contextmanager
def evaluation_mode(model: Model, gradient: bool = False, parts: Sequence[nn.Module] | None = None) -> Iterator[None]:
    """Run in evaluation mode, with a graph of the inputs only if ``gradient``; the last thread restores flags.

    ``parts`` are the modules behind the model, if they are known already.
    """
    if parts is None:
        parts = modules_behind(model)
    weights: list[Tensor] = []
    if gradient:
        weights = [weight for part in parts for weight in part.parameters(recurse=False)]
    if any(weight.is_inference() for weight in weights):
        raise wrong("model", "be made outside of torch.inference_mode to learn by its gradient", "its parameters")
    switched = _switch_off(parts, weights)
    try:
        with nullcontext() if gradient else torch.no_grad():
            yield
    finally:
        _restore(switched)


def _flag_of(item: nn.Module | Tensor) -> str:
    """Return the name of the flag that is off in evaluation."""
    return "training" if isinstance(item, nn.Module) else "requires_grad"


def _switch_off(parts: Sequence[nn.Module], weights: list[Tensor]) -> list[nn.Module | Tensor]:
    """Switch off flags that are on or that another call switched off; return their modules and parameters."""
    switched: list[nn.Module | Tensor] = []
    items: list[nn.Module | Tensor] = [*parts, *weights]
    with _LOCK:
        for item in items:
            if item in _OFF or getattr(item, _flag_of(item), False):  # frozen TorchScript has no mode
                _OFF[item] = _OFF.get(item, 0) + 1
                switched.append(item)
                setattr(item, _flag_of(item), False)
    return switched


def _restore(switched: list[nn.Module | Tensor]) -> None:
    """Switch flags back on if no other call needs them off."""
    with _LOCK:
        for item in switched:
            _OFF[item] -= 1
            if not _OFF[item]:
                del _OFF[item]
                setattr(item, _flag_of(item), True)


def is_compiled(item: Any) -> bool:
    """Return whether torch.compile made a function or a module."""
    return (
        getattr(item, "_torchdynamo_orig_callable", None) is not None
        or getattr(item, "_compiled_call_impl", None) is not None
    )
