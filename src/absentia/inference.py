"""Running any model on many rows: numpy models, evaluation mode, device and dtype, batches, progress."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn
from tqdm.auto import tqdm

from absentia.errors import AbsentiaError, wrong

Model: TypeAlias = Callable[[Tensor], Tensor]

# On a CPU the fastest batch is one whose activations stay in cache, far below what memory would hold.
CPU_MEMORY = 4 * 2**20
# A call of a numpy model has a fixed cost that only larger batches make up for.
NUMPY_MEMORY = 64 * 2**20
# Where the layers of a model cannot be seen: activations this many times as large as its input are assumed.
_ASSUMED_EXPANSION = 16


@dataclass(frozen=True)
class NumpyModel:
    """A numpy callable as a torch one; made by `from_numpy`."""

    predict: Callable[[np.ndarray], np.ndarray]
    probabilities: bool | None = None

    def __call__(self, rows: Shaped[Tensor, "rows *entries"]) -> Float[Tensor, "rows *output"]:
        """Predict, and turn probabilities into log-probabilities, which are logits."""
        answer = np.asarray(self.predict(rows.detach().cpu().numpy()))
        if answer.ndim == 0 or len(answer) != len(rows):
            raise wrong("model", f"return one row for each of the {len(rows)} input rows", f"shape {answer.shape}")
        output = torch.from_numpy(np.ascontiguousarray(answer, dtype=np.float64)).to(rows.device)
        if not self.probabilities:
            return output
        if output.ndim == 1 or output.shape[1] == 1:
            return torch.logit(output)
        return output.log()


def from_numpy(predict: Callable[[np.ndarray], np.ndarray], *, probabilities: bool | None = None) -> NumpyModel:
    """Let any numpy callable be the model: ``predict_proba`` of scikit-learn, XGBoost, a service.

    Say ``probabilities=True`` when it returns probabilities (of shape (rows, classes), or (rows,) for class 1):
    their logarithms are then the logits that the readouts expect. A probability of exactly 0 has no logarithm;
    read `Output` with ``probabilities=False`` to explain such a model's probabilities themselves.

    >>> model = from_numpy(lambda rows: rows.sum(1))
    >>> model(torch.ones(2, 3))
    tensor([3., 3.], dtype=torch.float64)
    """
    if not callable(predict):
        raise wrong("predict", "be a callable such as estimator.predict_proba", type(predict).__name__)
    return NumpyModel(predict, probabilities)


def module_of(model: Model) -> nn.Module | None:
    """Find the module behind a model: itself, or the owner of a bound method."""
    owner = getattr(model, "__self__", model)
    return owner if isinstance(owner, nn.Module) else None


def placement(model: Model, x: Tensor) -> tuple[torch.device, torch.dtype]:
    """Tell the device and the floating dtype that the model works in."""
    module = module_of(model)
    if module is not None:
        for tensor in chain(module.parameters(), module.buffers()):
            if tensor.is_floating_point():
                return tensor.device, tensor.dtype
    return x.device, x.dtype if x.is_floating_point() else torch.get_default_dtype()


@contextmanager
def evaluation_mode(model: Model, gradient: bool = False) -> Iterator[None]:
    """Run in evaluation mode, and put everything back: each module's mode, each parameter's gradient flag.

    With ``gradient`` the graph is kept, for the gradient of the stand-ins; the parameters are left out of it.
    """
    module = module_of(model)
    training = [part for part in module.modules() if part.training] if module is not None else []
    flags = [(p, p.requires_grad) for p in module.parameters()] if module is not None and gradient else []
    try:
        for part in training:
            part.training = False
        for parameter, _ in flags:
            parameter.requires_grad_(False)
        with nullcontext() if gradient else torch.no_grad():
            yield
    finally:
        for part in training:
            part.training = True
        for parameter, flag in flags:
            parameter.requires_grad_(flag)


def layer_output(model: Model, layer: str) -> Model:
    """Make a model that returns what leaves a named layer."""
    module = module_of(model)
    if module is None:
        raise wrong("model", "be an nn.Module for the features of a layer", type(model).__name__)
    layers = dict(module.named_modules())
    if layer not in layers or not layer:
        raise wrong("layer", f"be one of {', '.join(name for name in layers if name)}", repr(layer))

    def run(rows: Tensor) -> Tensor:
        caught: list[Tensor] = []
        hook = layers[layer].register_forward_hook(lambda _module, _inputs, output: caught.append(output))
        try:
            model(rows)
        finally:
            hook.remove()
        if not caught:
            raise AbsentiaError(f"layer must take part in the model's forward pass. Got {layer!r} instead.")
        return caught[-1]

    return run


def try_rows(model: Model, rows: Shaped[Tensor, "rows *entries"]) -> tuple[Float[Tensor, "rows *output"], int]:
    """Run a few rows, and watch: also tell the most bytes that a single layer takes in and gives out for a row."""
    module = module_of(model)
    largest = rows.nbytes * (_ASSUMED_EXPANSION if module is None else 1)

    def watch(_module: nn.Module, inputs: tuple[object, ...], output: object) -> None:
        nonlocal largest
        tensors = [t for t in (*inputs, output) if isinstance(t, Tensor)]
        largest = max(largest, sum(t.nbytes for t in tensors))

    parts = [] if module is None else [part for part in module.modules() if not list(part.children())]
    hooks = [part.register_forward_hook(watch) for part in parts]
    try:
        output = model(rows)
    finally:
        for hook in hooks:
            hook.remove()
    check_output(output, len(rows))
    return output, -(-largest // len(rows))


def rows_per_batch(model: Model, bytes_per_row: int, device: torch.device, memory: int | None) -> int:
    """Choose a batch size: a power of two that keeps the largest layer's input and output within ``memory`` bytes."""
    fitting = max(1, (_default_memory(model, device) if memory is None else memory) // bytes_per_row)
    return int(1 << fitting.bit_length() - 1)


def _default_memory(model: Model, device: torch.device) -> int:
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0]) // 8
    return NUMPY_MEMORY if isinstance(model, NumpyModel) else CPU_MEMORY


@dataclass
class BatchRunner:
    """Runs a model on rows in batches; halves the batch for good whenever memory runs out."""

    model: Model
    batch: int

    def __call__(self, rows: Shaped[Tensor, "rows *entries"]) -> Float[Tensor, "rows *output"]:
        """Run the model on all rows."""
        outputs: list[Tensor] = []
        done = 0
        while done < len(rows):
            try:
                outputs.append(self.model(rows[done : done + self.batch]))
            except (MemoryError, RuntimeError) as error:
                if not _is_out_of_memory(error):
                    raise
                if self.batch == 1:
                    raise AbsentiaError(
                        "model must fit into memory with one row. Got out of memory instead."
                    ) from error
                self.batch //= 2
                continue
            check_output(outputs[-1], len(rows[done : done + self.batch]))
            done += self.batch
        return outputs[0] if len(outputs) == 1 else torch.cat(outputs)


def check_output(output: object, rows: int) -> None:
    """Refuse what a model must not return: no tensor, no row for each input row, no floating-point numbers."""
    if not isinstance(output, Tensor):
        then = "Wrap a numpy model with from_numpy(…), and pick one tensor of a tuple."
        raise wrong("model", "return a tensor", type(output).__name__, then)
    if output.ndim == 0 or len(output) != rows:
        raise wrong("model", f"return one row for each of the {rows} input rows", f"shape {tuple(output.shape)}")
    if not output.is_floating_point():
        then = "Return scores or logits rather than the predicted class."
        raise wrong("model", "return floating-point numbers", f"{output.dtype}", then)


def _is_out_of_memory(error: BaseException) -> bool:
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    # The CPU allocator has no exception type of its own.
    return "DefaultCPUAllocator" in str(error) or "can't allocate memory" in str(error)


def blocks(total: int, size: int) -> Iterator[slice]:
    """Cut a range into slices of at most ``size``."""
    return (slice(start, min(start + size, total)) for start in range(0, total, size))


def progress(steps: int) -> Any:
    """Show a progress bar for work that takes longer than a moment, on a terminal."""
    if not sys.stderr.isatty():  # as disable=None would find out, at more cost
        return tqdm(disable=True)
    return tqdm(total=steps, desc="evaluating coalitions", unit="batch", delay=2, leave=False)
