"""The layers of a module, watched while they run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from absentia.errors import AbsentiaError, wrong
from absentia.models.adapters import module_of
from absentia.models.model import Model


def layers_of(model: Model) -> list[nn.Module]:
    """Return the modules of a model that can be watched: none for functions, TorchScript and torch.compile."""
    module = module_of(model)
    if module is None or type(module).__name__ == "OptimizedModule":
        return []
    return [part for part in module.modules() if not isinstance(part, torch.jit.ScriptModule)]


def layer_output(model: Model, layer: str) -> Model:
    """Return a model that returns the output of a named layer."""
    module = module_of(model)
    watchable = set(layers_of(model))
    if module is None or not watchable:
        raise wrong("model", "be an nn.Module for the features of a layer", type(model).__name__)
    layers = {name: part for name, part in module.named_modules() if name and part in watchable}
    if layer not in layers:
        raise wrong("layer", f"be one of {', '.join(layers)}", repr(layer))

    def run(rows: Tensor) -> Tensor:
        outputs: list[Tensor] = []
        run_watched(model, rows, [layers[layer]], lambda _part, _inputs, output: outputs.append(output.clone()))
        if not outputs:
            raise AbsentiaError(f"The model's forward pass does not use the layer {layer!r}. Choose another layer.")
        return outputs[-1]

    return run


def see(thread: int, watch: Callable[..., None], *call: Any) -> None:
    """Pass on a layer, its inputs and its output if the layer runs on the thread that set the hook."""
    if threading.get_ident() == thread:
        watch(*call)


def run_watched(model: Model, rows: Tensor, parts: Iterable[nn.Module], watch: Callable[..., None]) -> Any:
    """Run a model while ``watch`` is called with each of the named modules, its inputs and its output."""
    with ExitStack() as hooks:
        for part in parts:
            hooks.enter_context(part.register_forward_hook(partial(see, threading.get_ident(), watch)))
        return model(rows)
