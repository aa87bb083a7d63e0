"""Numbers of things, as sentences have them."""

from __future__ import annotations


def count_of(number: int, what: str) -> str:
    """Write how many of something there are.

    >>> count_of(1, "sample"), count_of(1200, "sample")
    ('1 sample', '1,200 samples')
    """
    return f"{number:,} {what}" + ("" if number == 1 else "s")
