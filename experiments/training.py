"""Training: recipes, and one loop that follows them.

The seed decides everything that is drawn. Sums that several threads or a GPU split may still round differently.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Float, Int64, Num
from torch import Tensor, nn
from tqdm.auto import tqdm

from absentia import AbsentiaError
from experiments.datasets import AnyData, stratified_split
from experiments.networks import drawn_by

_EVALUATION_BATCH = 1000
_WARM_UP = 0.25  # the share of the steps during which the rate rises


@dataclass(frozen=True)
class Recipe:
    """How a network is trained.

    Without ``patience``, training takes all epochs in one cycle: the rate rises once, then falls to nearly 0. With
    ``patience``, the rate is constant, training stops after this many epochs without a lower loss on the held-out
    rows, and the weights of the best epoch are kept. This is for small networks: one CPU thread computes everything,
    so that the result depends on the seed only.
    """

    optimiser: Literal["sgd", "adamw"]  # sgd has Nesterov's momentum
    learning_rate: float  # the highest
    weight_decay: float
    batch: int
    epochs: int  # at most
    patience: int | None = None
    held_out: float = 0.0  # the share of the training rows that chooses the epoch
    hidden: tuple[int, ...] = ()  # widths of the hidden layers of an MLP
    shift: int = 0  # images are moved by up to this many pixels
    flip: bool = False  # about half of the images are mirrored
    bfloat16: bool = False  # compute in half precision on machines that are faster with it


@dataclass
class _Best:
    """The weights with the lowest held-out loss so far."""

    rows: Int64[Tensor, " held_out"]
    patience: int
    weights: dict[str, Any]
    loss: float = math.inf
    epochs_since: int = 0

    def is_final(self, network: nn.Module, data: AnyData) -> bool:
        """Compare the network after an epoch, and return whether the patience is used up."""
        network.eval()
        with torch.no_grad():
            loss = nn.functional.cross_entropy(network(data.x_train[self.rows]), data.y_train[self.rows]).item()
        network.train()
        self.epochs_since += 1
        if loss < self.loss:
            self.loss = loss
            self.weights = copy.deepcopy(network.state_dict())
            self.epochs_since = 0
        return self.epochs_since >= self.patience


def fit(network: nn.Module, data: AnyData, recipe: Recipe, seed: int) -> nn.Module:
    """Train a network on the training samples, and return it in evaluation mode on the CPU.

    >>> from experiments.datasets import ImageData
    >>> x, y = torch.rand(8, 1, 2, 2), torch.arange(8) % 2
    >>> data = ImageData("noise", x, y, x, y, ("even", "odd"))
    >>> recipe = Recipe("sgd", 0.1, weight_decay=0.0, batch=4, epochs=1)
    >>> fit(nn.Sequential(nn.Flatten(), nn.Linear(4, 2)), data, recipe, seed=0).training
    False
    """
    if recipe.patience is None:
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        with drawn_by(seed):
            return _follow(network, data, recipe, seed, torch.arange(len(data.x_train)), None, device)
    training_rows, held_out = stratified_split(data.y_train, recipe.held_out, seed)
    with drawn_by(seed), one_thread():
        best = _Best(held_out, recipe.patience, copy.deepcopy(network.state_dict()))
        return _follow(network, data, recipe, seed, training_rows, best, torch.device("cpu"))


def accuracy(model: nn.Module, x: Num[Tensor, "rows *entries"], y: Int64[Tensor, " rows"]) -> float:
    """Compute the share of rows whose most likely class is the true one.

    >>> accuracy(nn.Identity(), torch.tensor([[0.0, 1.0], [2.0, 1.0]]), torch.tensor([1, 1]))
    0.5
    """
    training = model.training
    model.eval()
    with torch.no_grad():
        parts = zip(x.split(_EVALUATION_BATCH), y.split(_EVALUATION_BATCH), strict=True)
        right = sum(int((model(rows).argmax(1) == classes).sum()) for rows, classes in parts)
    model.train(training)
    return right / len(x)


def one_cycle_rate(step: int, steps: int) -> float:
    """Return the rate of a step as a share of the highest: linear growth for a quarter of the steps, then a cosine.

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
    """Move each image by up to ``shift`` pixels in each direction, with a black border, and mirror about half.

    >>> shift_and_flip(torch.ones(1, 1, 2, 2), shift=0, flip=True, generator=torch.Generator()).shape
    torch.Size([1, 1, 2, 2])
    """
    count, _, height, width = images.shape
    padded = nn.functional.pad(images, (shift, shift, shift, shift))
    top, left = torch.randint(2 * shift + 1, (2, count, 1), generator=generator).to(images.device)
    rows = top + torch.arange(height).to(top)
    columns = left + torch.arange(width).to(left)
    if flip:
        mirrored = torch.randint(2, (count, 1), generator=generator).bool().to(images.device)
        columns = torch.where(mirrored, columns.flip(1), columns)
    # One gather for all images: (images, height, width, channels), the fastest layout for convolutions.
    moved = padded[torch.arange(count, device=images.device)[:, None, None], :, rows[:, :, None], columns[:, None]]
    return moved.permute(0, 3, 1, 2)


def _follow(
    network: nn.Module,
    data: AnyData,
    recipe: Recipe,
    seed: int,
    rows: Int64[Tensor, " rows"],
    best: _Best | None,
    device: torch.device,
) -> nn.Module:
    """Take the steps of all epochs, or stop earlier and restore the best weights."""
    images = data.x_train.ndim == 4
    _arrange(network.to(device).train(), torch.channels_last if images else torch.preserve_format)
    optimiser = _optimiser(network, recipe)
    generator = torch.Generator().manual_seed(seed)
    batches = _batches(rows, recipe, generator)
    half = torch.autocast(device.type, torch.bfloat16, enabled=recipe.bfloat16 and _is_fast_in_bfloat16(device))
    loss_so_far = 0.0
    right_so_far = 0.0
    bar = tqdm(batches, desc=f"training on {data.name}", unit="batch", delay=2, disable=None, leave=False)
    for step, batch in enumerate(bar):
        for group in optimiser.param_groups:
            group["lr"] = recipe.learning_rate * (one_cycle_rate(step, len(batches)) if best is None else 1)
        x = data.x_train[batch].to(device)
        y = data.y_train[batch].to(device)
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
        right_so_far += share * ((logits.argmax(1) == y).double().mean().item() - right_so_far)
        if not math.isfinite(loss_so_far):
            rate = f"{recipe.learning_rate}, for which the loss of step {step} is not finite"
            raise AbsentiaError(f"recipe.learning_rate must be low enough for a finite loss. Got {rate} instead.")
        bar.set_postfix({"loss": f"{loss_so_far:.3f}", "accuracy": f"{right_so_far:.1%}"}, refresh=False)
        epoch_ends = (step + 1) % (len(batches) // recipe.epochs) == 0
        if best is not None and epoch_ends and best.is_final(network, data):
            break
    if best is not None:
        network.load_state_dict(best.weights)
    return _arrange(network.cpu().eval(), torch.contiguous_format if images else torch.preserve_format)


def _batches(
    rows: Int64[Tensor, " rows"], recipe: Recipe, generator: torch.Generator
) -> list[Int64[Tensor, " batch"]]:
    """Draw the rows of every step: each epoch has a new order; one cycle leaves out a last, smaller batch."""
    size = min(recipe.batch, len(rows))
    used = len(rows) if recipe.patience is not None else len(rows) - len(rows) % size
    epochs = [torch.randperm(len(rows), generator=generator)[:used].split(size) for _ in range(recipe.epochs)]
    return [rows[numbers] for epoch in epochs for numbers in epoch]


def _optimiser(network: nn.Module, recipe: Recipe) -> torch.optim.Optimizer:
    if recipe.optimiser == "adamw":
        return torch.optim.AdamW(network.parameters(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay)
    return torch.optim.SGD(
        network.parameters(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay, momentum=0.9, nesterov=True
    )


def _arrange(network: nn.Module, layout: torch.memory_format) -> nn.Module:
    """Set the memory layout of the weights: on a CPU, convolutions are a fifth faster with the channels last."""
    return network.to(memory_format=layout)  # type: ignore[call-overload]  # missing in torch's own types


def _is_fast_in_bfloat16(device: torch.device) -> bool:
    """Return whether a machine has instructions for bfloat16; without them it is slower than float32."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported()
    can: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()  # of later versions of torch
    return bool(can.get("avx512_bf16") or can.get("amx_bf16"))


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute in one thread, because sums that several threads split may round differently."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
