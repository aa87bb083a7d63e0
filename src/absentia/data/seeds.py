"""Random generators made from a seed."""

from __future__ import annotations

import hashlib

import torch

# torch takes only seeds below this.
_SEED_LIMIT = 2**63

# The bytes of a digest that serve as a seed.
_SEED_BYTES = 6


def seeded(seed: int, *path: object) -> torch.Generator:
    """Return the generator of a seed, or of the stream that a path below it names: the same in every process."""
    if not path and abs(seed) < _SEED_LIMIT:
        return torch.Generator().manual_seed(seed)
    text = " ".join(str(part) for part in (seed, *path))
    digest = hashlib.blake2b(text.encode(), digest_size=_SEED_BYTES).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest, "big"))
