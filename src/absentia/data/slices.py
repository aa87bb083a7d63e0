"""A range split into slices, and how many of them there are."""

from __future__ import annotations

from collections.abc import Iterator


def count_blocks(total: int, size: int) -> int:
    """Return how many blocks of at most ``size`` make up ``total``: the quotient, rounded up."""
    return (total + size - 1) // size


def blocks(total: int, size: int) -> Iterator[slice]:
    """Split a range into slices of at most ``size``."""
    for start in range(0, total, size):
        yield slice(start, min(start + size, total))
