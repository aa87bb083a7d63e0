"""Training: two recipes, and following them with a seed that decides all that is drawn."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import torch
from jaxtyping import Float, Int64, Num
from torch import Tensor, nn
from tqdm.auto import tqdm

from absentia.errors import wrong
from absentia.inference import blocks, evaluation_mode
from absentia.papers.datasets import AnyData, stratified_split
from absentia.papers.networks import drawn_by

_EVALUATION_BATCH = 1000
_WARM_UP = 0.25  # the share of the steps over which the rate rises


@dataclass(frozen=True)
class Recipe:
    """How a small model is trained: AdamW on minibatches, until the loss on held-out rows stops to improve."""

    widths: tuple[int, ...]
    learning_rate: float
    weight_decay: float
    batch: int
    epochs: int  # at most
    patience: int  # this many epochs without a better held-out loss end the training
    held_out: float  # the share of the training rows that choose the epoch


@dataclass(frozen=True)
class OneCycle:
    """How a larger network is trained: for a set number of epochs, at rates that rise once, then fall to nothing."""

    optimiser: Literal["sgd", "adamw"]  # sgd is with Nesterov's momentum
    learning_rate: float  # the highest
    weight_decay: float
    batch: int
    epochs: int
    shift: int = 0  # images are moved by up to so many pixels
    flip: bool = False  # about half of the images are mirrored
    bfloat16: bool = False  # compute in half the digits, on machines that are faster with them


AnyRecipe: TypeAlias = Recipe | OneCycle


def fit(network: nn.Module, data: AnyData, recipe: AnyRecipe, seed: int) -> nn.Module:
    """Train a network on the training samples as a recipe says; the test samples are never seen.

    The network comes back in evaluation mode, on the CPU. The seed decides all that is drawn; sums that several
    threads or a GPU split among themselves may still round differently.

    >>> from absentia.papers.datasets import ImageData
    >>> x, y = torch.rand(8, 1, 2, 2), torch.arange(8) % 2
    >>> data = ImageData("noise", x, y, x, y, ("even", "odd"))
    >>> recipe = OneCycle("sgd", 0.1, weight_decay=0.0, batch=4, epochs=1)
    >>> fit(nn.Sequential(nn.Flatten(), nn.Linear(4, 2)), data, recipe, seed=0).training
    False
    """
    if isinstance(recipe, Recipe):
        return _fit_until_no_better(network, data, recipe, seed)
    with drawn_by(seed):
        return _fit_one_cycle(network, data, recipe, seed)


def accuracy(model: nn.Module, x: Num[Tensor, "rows *entries"], y: Int64[Tensor, " rows"]) -> float:
    """Tell the share of rows whose most likely class is the true one.

    >>> accuracy(nn.Identity(), torch.tensor([[0.0, 1.0], [2.0, 1.0]]), torch.tensor([1, 1]))
    0.5
    """
    with evaluation_mode(model):
        right = sum(int((model(x[few]).argmax(1) == y[few]).sum()) for few in blocks(len(x), _EVALUATION_BATCH))
    return right / len(x)


def one_cycle_rate(step: int, steps: int) -> float:
    """Give the share of the highest rate for a step: the rate rises in a line for a quarter, then falls by cosine.

    >>> [round(one_cycle_rate(step, 8), 2) for step in range(8)]
    [0.5, 1.0, 0.95, 0.81, 0.61, 0.39, 0.19, 0.05]
    """
    rising = max(1, round(_WARM_UP * steps))
    if step < rising:
        return (step + 1) / rising
    return (1 + math.cos(math.pi * (step - rising + 1) / (steps - rising + 1))) / 2


def shift_and_flip(
    images: Float[Tensor, "images channels height width"], shift: int, flip: bool, generator: torch.Generator
) -> Float[Tensor, "images channels height width"]:
    """Move each image by up to ``shift`` pixels either way, black coming in at the border; mirror about half.

    >>> shift_and_flip(torch.ones(1, 1, 2, 2), shift=0, flip=True, generator=torch.Generator()).shape
    torch.Size([1, 1, 2, 2])
    """
    count, _, height, width = images.shape
    padded = nn.functional.pad(images, (shift, shift, shift, shift))
    top, left = torch.randint(2 * shift + 1, (2, count, 1), generator=generator).to(images.device)
    rows, columns = top + torch.arange(height).to(top), left + torch.arange(width).to(left)
    if flip:
        mirrored = torch.randint(2, (count, 1), generator=generator).bool().to(images.device)
        columns = torch.where(mirrored, columns.flip(1), columns)
    # One gather for all images: (images, height, width, channels), which is how convolutions are fastest.
    moved = padded[torch.arange(count, device=images.device)[:, None, None], :, rows[:, :, None], columns[:, None]]
    return moved.permute(0, 3, 1, 2)


def _fit_until_no_better(network: nn.Module, data: AnyData, recipe: Recipe, seed: int) -> nn.Module:
    """Keep the weights of the epoch with the lowest loss on the held-out training rows."""
    kept, held_out = stratified_split(data.y_train, recipe.held_out, seed)
    adam = torch.optim.AdamW(network.parameters(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay)
    generator = torch.Generator().manual_seed(seed)
    best, best_loss, best_epoch = copy.deepcopy(network.state_dict()), float("inf"), 0
    bar = _progress(range(recipe.epochs), data.name, unit="epoch")
    with _one_thread():
        for epoch in bar:
            for rows in kept[torch.randperm(len(kept), generator=generator)].split(recipe.batch):
                adam.zero_grad()
                nn.functional.cross_entropy(network(data.x_train[rows]), data.y_train[rows]).backward()
                adam.step()
            with torch.no_grad():
                logits = network(data.x_train[held_out])
                loss = nn.functional.cross_entropy(logits, data.y_train[held_out]).item()
            _show(bar, loss, float((logits.argmax(1) == data.y_train[held_out]).double().mean()))
            if loss < best_loss:
                best, best_loss, best_epoch = copy.deepcopy(network.state_dict()), loss, epoch
            elif epoch - best_epoch >= recipe.patience:
                break
    network.load_state_dict(best)
    return network.eval()


def _fit_one_cycle(network: nn.Module, data: AnyData, recipe: OneCycle, seed: int) -> nn.Module:
    """Take all steps of all epochs; the last weights are the ones."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    images = data.x_train.ndim == 4
    _arrange(network.to(device).train(), torch.channels_last if images else torch.preserve_format)
    optimiser = _optimiser(network, recipe)
    generator = torch.Generator().manual_seed(seed)
    batches = _batches(len(data.x_train), recipe, generator)
    half = torch.autocast(device.type, torch.bfloat16, enabled=recipe.bfloat16 and _is_fast_in_bfloat16(device))
    loss_so_far, right_so_far = 0.0, 0.0
    bar = _progress(batches, data.name, unit="batch")
    for step, rows in enumerate(bar):
        for group in optimiser.param_groups:
            group["lr"] = recipe.learning_rate * one_cycle_rate(step, len(batches))
        x, y = data.x_train[rows].to(device), data.y_train[rows].to(device)
        if images:
            x = shift_and_flip(x, recipe.shift, recipe.flip, generator)
        optimiser.zero_grad()
        with half:
            logits = network(x)
        loss = nn.functional.cross_entropy(logits.float(), y)
        loss.backward()
        optimiser.step()
        # Means over about the last hundred batches.
        share = max(0.01, 1 / (step + 1))
        loss_so_far += share * (loss.item() - loss_so_far)
        if not math.isfinite(loss_so_far):
            must = "be low enough for a finite loss"
            raise wrong("recipe.learning_rate", must, f"{recipe.learning_rate}, by which step {step} went wrong")
        right_so_far += share * ((logits.argmax(1) == y).double().mean().item() - right_so_far)
        _show(bar, loss_so_far, right_so_far)
    return _arrange(network.cpu().eval(), torch.contiguous_format if images else torch.preserve_format)


def _batches(samples: int, recipe: OneCycle, generator: torch.Generator) -> list[Int64[Tensor, " batch"]]:
    """Draw the rows of every step: each epoch takes all of them in a new order, but for a last small batch."""
    size = min(recipe.batch, samples)
    whole = samples - samples % size
    epochs = [torch.randperm(samples, generator=generator)[:whole].split(size) for _ in range(recipe.epochs)]
    return [rows for epoch in epochs for rows in epoch]


def _optimiser(network: nn.Module, recipe: OneCycle) -> torch.optim.Optimizer:
    if recipe.optimiser == "adamw":
        return torch.optim.AdamW(network.parameters(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay)
    return torch.optim.SGD(
        network.parameters(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay, momentum=0.9, nesterov=True
    )


def _arrange(network: nn.Module, layout: torch.memory_format) -> nn.Module:
    """Lay a network's weights out in memory; on a CPU, convolutions are a fifth faster with the channels last."""
    return network.to(memory_format=layout)  # type: ignore[call-overload]  # torch's own types don't know of it


def _is_fast_in_bfloat16(device: torch.device) -> bool:
    """Tell whether a machine has instructions for bfloat16: without them it is slower than float32, not faster."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported()
    can: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()  # of later versions of torch
    return bool(can.get("avx512_bf16") or can.get("amx_bf16"))


def _progress(steps: Any, name: str, unit: str) -> Any:
    return tqdm(steps, desc=f"training on {name}", unit=unit, delay=2, disable=None, leave=False)


def _show(bar: Any, loss: float, right: float) -> None:
    bar.set_postfix({"loss": f"{loss:.3f}", "accuracy": f"{right:.1%}"}, refresh=False)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Compute in one thread: sums split over several may round differently, and the seed alone is to decide."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
