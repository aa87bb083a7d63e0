"""The samples to learn from: reading them from any source, drawing some, and holding some out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from operator import length_hint
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, IterableDataset, Subset

from absentia.data import Classes, as_tensor, seeded
from absentia.errors import wrong

# One in this many of each owner's samples is held out to choose between candidates.
_SAMPLES_PER_KEPT_ASIDE = 5

# The maximum number of samples that are read from a source without a length.
_MOST_STREAMED = 2**17

# Samples that are read from a Dataset at a time.
_READ_AT_ONCE = 256

# Samples of the default number may take this many bytes, but they are never fewer than this.
_MOST_BYTES = 2**27
_FEWEST_BY_BYTES = 64

# Bounds and starts are computed from at most this many numbers of the data.
_MOST_NUMBERS = 2**25


@dataclass(frozen=True, eq=False)
class Source:
    """All available rows, their classes, and the numbers of the rows to learn from."""

    data: Tensor
    classes: Classes
    chosen: Int[Tensor, " samples"]

    def limited_by_bytes(self) -> Source:
        """Return the source with as many chosen rows as fit into the memory that samples may take."""
        most = max(_FEWEST_BY_BYTES, _MOST_BYTES // self.data[0].nbytes)
        return Source(self.data, self.classes, self.chosen[:most])

    def thinned_data(self) -> Tensor:
        """Return evenly spaced rows, flattened, from which bounds and starts are computed."""
        stride = 1 + self.data.numel() // _MOST_NUMBERS
        rows = self.data[::stride].detach().cpu().flatten(1)
        if rows.is_floating_point() and rows.numel() * 2 > _MOST_NUMBERS:
            return rows  # too many to hold in double precision
        return rows.double()


def read_samples(x: Any, y: Classes, samples: int | None, seed: int, *, missing: bool = False) -> Source:
    """Read the samples; the chosen ones are drawn, or the first ones of a loader. None chooses all.

    With ``missing``, values of a DataFrame may be missing.
    """
    generator = seeded(seed)
    if hasattr(x, "shape"):
        return _read_array(x, y, samples, generator, missing)
    if y is not None:
        raise wrong("y", "be left out for a Dataset or DataLoader", "both", "Let its items be pairs (x, y).")
    if isinstance(x, Dataset):
        x = _loader_of(x, samples, generator)
    if not isinstance(x, Iterable):
        raise wrong("x", "be a tensor, an array, a Dataset or a DataLoader", type(x).__name__)
    return _read_batches(x, samples)


def _read_array(x: Any, y: Classes, samples: int | None, generator: torch.Generator, missing: bool) -> Source:
    """Read a tensor or an array, and draw the samples to learn from."""
    data = as_tensor("x", x, missing=missing)
    if data.ndim < 2 or len(data) == 0:
        raise wrong("x", "hold at least one sample, of shape (samples, …)", f"shape {tuple(data.shape)}")
    if y is not None and tuple(np.shape(y)) != (len(data),):
        raise wrong("y", f"hold one class for each of the {len(data)} samples", f"shape {tuple(np.shape(y))}")
    if samples is None or samples >= len(data):
        return Source(data, y, torch.arange(len(data)))
    return Source(data, y, torch.randperm(len(data), generator=generator)[:samples])


def _loader_of(dataset: Dataset[Any], samples: int | None, generator: torch.Generator) -> DataLoader[Any]:
    """Return a loader of samples drawn from a Dataset, or of all items of an iterable Dataset."""
    if not isinstance(dataset, IterableDataset):
        order = torch.randperm(len(dataset), generator=generator)  # type: ignore[arg-type]
        dataset = Subset(dataset, order[:samples].tolist())
    return DataLoader(dataset, batch_size=_READ_AT_ONCE, generator=generator)


def _read_batches(source: Iterable[Any], samples: int | None) -> Source:
    """Read batches of inputs, or of pairs of inputs and classes, until there are enough samples."""
    inputs: list[Tensor] = []
    classes: list[Any] = []
    read = 0
    for item in source:
        batch, targets = _split_item(item)
        if batch.ndim < 2:
            got = f"items of {type(source).__name__}"
            raise wrong("x", "be an array, or a source of batches of shape (rows, …)", got)
        inputs.append(batch)
        classes.extend(targets)
        read += len(batch)
        if samples is not None and read >= samples:
            break
        if samples is None and read > _MOST_STREAMED and not length_hint(source):
            raise wrong("samples", "be a number if x may be endless", f"'all' of more than {_MOST_STREAMED:,}")
    if not inputs:
        raise wrong("x", "hold at least one sample", "an empty source")
    data = torch.cat(inputs)[:samples]
    return Source(data, classes[:samples] or None, torch.arange(len(data)))


def _split_item(item: Any) -> tuple[Tensor, list[Any]]:
    """Return the inputs and the classes of a batch; it may have no classes."""
    if not isinstance(item, tuple | list):
        return as_tensor("x", item), []
    inputs = as_tensor("x", item[0])
    if len(item) == 1:
        return inputs, []
    return inputs, np.asarray(item[1]).tolist()


def keep_aside(owner: Int[Tensor, " samples"], seed: int) -> tuple[Tensor, Tensor]:
    """Return the samples to learn from and those to choose on: a fifth of each owner's, or all if they are few."""
    generator = seeded(seed, "aside")
    learned = []
    aside = []
    for number in range(int(owner.max()) + 1):
        owned = (owner == number).nonzero().flatten()
        owned = owned[torch.randperm(len(owned), generator=generator)]
        count = len(owned) // _SAMPLES_PER_KEPT_ASIDE
        learned.append(owned[count:])
        aside.append(owned[:count] if count else owned)
    return torch.cat(learned), torch.cat(aside)
