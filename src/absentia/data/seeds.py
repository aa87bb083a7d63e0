"""Random generators made from a seed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import torch

# torch takes only seeds below this.
_SEED_LIMIT = 2**63

# The number of bytes of a digest that serve as a seed.
_SEED_BYTES = 6


def seeded(seed: int, *path: object) -> torch.Generator:
    """Return the generator for a seed, or for a stream named by a path below it, equal in all processes."""
    if not path and abs(seed) < _SEED_LIMIT:
        return torch.Generator().manual_seed(seed)
    text = " ".join(str(part) for part in (seed, *path))
    digest = hashlib.blake2b(text.encode(), digest_size=_SEED_BYTES).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest, "big"))


@contextmanager
def weights_drawn_from(seed: int) -> Iterator[None]:
    """Let new layers draw their weights from a seed; all random states of the user are as before.

    Layers draw from torch's global generator of the CPU, which is restored at the end. `torch.manual_seed` would
    reseed the generators of all GPUs, too, and these are not restored.
    """
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield
