"""Numbers, starts and bounds from words."""

import math
from pathlib import Path
from typing import Any

import absentia as ab
from absentia.errors import wrong


def read_number(option: str, must: str, word: str) -> int | float:
    """Read a finite number."""
    try:
        number = int(word) if word.isdecimal() else float(word)
    except ValueError:
        raise wrong(option, must, repr(word)) from None
    if not math.isfinite(number):
        raise wrong(option, must, repr(word))
    return number


def read_start(word: str) -> Any:
    """Read a start of learning: the word of a usual baseline, a number, or the values of a saved baseline."""
    if Path(word).is_file():
        return ab.LearnedBaseline.load(word).values
    if word in ("zero", "mean", "median"):
        return word
    return read_number("start", "be zero, mean, median, a number or a saved baseline", word)


def read_bounds(word: str) -> Any:
    """Read the bounds of learned values: the word range, one number, or two."""
    must = "be range, a number of standard deviations, or two numbers LOW,HIGH"
    low, comma, high = word.partition(",")
    if comma:
        return read_number("bounds", must, low), read_number("bounds", must, high)
    return word if word == "range" else read_number("bounds", must, word)
