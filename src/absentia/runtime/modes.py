"""Evaluation mode for the modules behind a model."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_pre_hook

from absentia.errors import wrong
from absentia.models.adapters import module_of
from absentia.models.model import Model

# Modules that a function or an object runs are searched among this many things, the nearest ones first.
_MOST_SEARCHED = 256

_HOLD_NO_MODULE = (type(None), str, int, float, Tensor, np.ndarray, torch.dtype, torch.device, ModuleType, type)

# Modules and parameters whose flag is off while they are evaluated, and by how many threads.
_OFF: dict[Any, int] = {}

_LOCK = threading.Lock()


def modules_behind(model: Any) -> list[nn.Module]:
    """Return the modules at hand: a model itself, or what a function names, a method belongs to, an object holds."""
    found, things, known = dict[nn.Module, None](), [model], {id(model)}
    for thing in things:  # which grows
        held = [] if isinstance(thing, nn.Module) else gc.get_referents(thing)
        if isinstance(thing, nn.Module):
            found |= dict.fromkeys(thing.modules())
        elif isinstance(thing, FunctionType):  # rather than all variables of its file
            named = [thing.__globals__.get(name) for name in thing.__code__.co_names]
            held = [thing.__closure__, thing.__defaults__, thing.__kwdefaults__, *named]
        for one in held:
            if not isinstance(one, _HOLD_NO_MODULE) and id(one) not in known and len(things) < _MOST_SEARCHED:
                known.add(id(one))
                things.append(one)
    return list(found)


@contextmanager
def evaluation_mode(model: Model, gradient: bool = False) -> Iterator[None]:
    """Run in evaluation mode, with a graph of the inputs alone if ``gradient``; the last thread restores flags."""
    known, off, thread = set[nn.Module](), list[tuple[Any, str]](), threading.get_ident()

    def switch_off(called: nn.Module, _inputs: object = None) -> None:
        if torch.compiler.is_compiling() or called in known or threading.get_ident() != thread:
            return  # what is compiled does not run; the order is that of the time that a look takes
        parts = [part for part in called.modules() if part not in known]
        known.update(parts)
        if any(map(_is_compiled, parts)):
            hook.remove()
        weights = [one for part in parts for one in part.parameters(recurse=False)] if gradient else []
        if any(one.is_inference() for one in weights):
            raise wrong("model", "be made outside of torch.inference_mode to learn by its gradient", "its parameters")
        with _LOCK:
            for thing in (*parts, *weights):
                flag = "training" if isinstance(thing, nn.Module) else "requires_grad"
                if thing in _OFF or getattr(thing, flag, False):  # frozen TorchScript has no mode
                    _OFF[thing] = _OFF.get(thing, 0) + 1
                    off.append((thing, flag))
                    setattr(thing, flag, False)

    # Modules that are not found now are switched before they run. Two threads might get one number of a hook.
    with _LOCK:
        hook = register_module_forward_pre_hook(switch_off)
    try:
        for part in (found := modules_behind(model)):
            switch_off(part)
        own = module_of(model) is None or not all(type(part).__module__.startswith("torch.") for part in found)
        if _is_compiled(model) or not own:  # torch's own modules call none but those within
            hook.remove()
        with nullcontext() if gradient else torch.no_grad():
            yield
    finally:
        hook.remove()
        with _LOCK:
            for thing, flag in off:
                _OFF[thing] -= 1
                if not _OFF[thing]:
                    del _OFF[thing]
                    setattr(thing, flag, True)


def _is_compiled(thing: Any) -> bool:
    """Return whether torch.compile made a function or a module: it would compile it again for every hook."""
    made = getattr(thing, "_torchdynamo_orig_callable", None)
    return made is not None or getattr(thing, "_compiled_call_impl", None) is not None
