"""A range split into slices."""

from __future__ import annotations

from collections.abc import Iterator


def blocks(total: int, size: int) -> Iterator[slice]:
    """Split a range into slices of at most ``size``."""
    for start in range(0, total, size):
        yield slice(start, min(start + size, total))
