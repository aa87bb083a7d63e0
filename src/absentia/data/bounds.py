"""Bounds on numbers that users pass."""

from __future__ import annotations

import math

from absentia.errors import wrong


def check_number(name: str, number: float | None, least: float, most: float = math.inf) -> None:
    """Raise an error for a number outside a range, inclusive; None passes."""
    if number is None or least <= number <= most:
        return
    if most == math.inf:
        must = f"be at least {least}"
    else:
        must = f"lie between {least} and {most}"
    raise wrong(name, must, number)
