"""Targets as class numbers: in the order of the model's outputs, never in one that happens to be the file's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from absentia.errors import wrong


def class_numbers(target: np.ndarray, classes: Sequence[Any] | None) -> tuple[Int[Tensor, " samples"] | None, str]:
    """Turn targets into numbers by ``classes``, in the order of the model's outputs; numbers stay without them.

    Targets that are no whole numbers are those of a regression: there are no classes then, and a note says so.

    >>> class_numbers(np.array(["no", "yes", "no"]), ["yes", "no"])[0]
    tensor([1, 0, 1])
    >>> class_numbers(np.array([0.5, 1.5]), None)
    (None, "The target is no class: the model's output is explained as it is.")
    """
    values = target.tolist()
    if classes is not None:
        return torch.tensor([_place(value, list(classes)) for value in values]), ""
    if target.dtype.kind in "biu" or (target.dtype.kind == "f" and np.array_equal(target, np.round(target))):
        return torch.tensor([int(value) for value in values]), ""
    if target.dtype.kind == "f":
        return None, "The target is no class: the model's output is explained as it is."
    names = sorted({str(value) for value in values})
    shown = ", ".join(names[:6]) + (", …" if len(names) > 6 else "")
    then = f"Say --classes {','.join(names[:6])}, in the order of the model's outputs."
    raise wrong("target", "hold class numbers, or names that --classes puts in order", shown, then)


def find_class(word: str, classes: Sequence[Any] | None) -> int:
    """Take one class by its name or its number.

    >>> find_class("yes", ["no", "yes"]), find_class("2", None)
    (1, 2)
    """
    if classes is not None and word in [str(one) for one in classes]:
        return [str(one) for one in classes].index(word)
    if word.isdecimal():
        return int(word)
    named = f" or one of {', '.join(str(one) for one in classes)}" if classes is not None else ""
    raise wrong("class", f"be a class number{named}", repr(word))


def _place(value: Any, classes: list[Any]) -> int:
    if value in classes:
        return classes.index(value)
    names = [str(one) for one in classes]  # of words, such as those of --classes
    if str(value) not in names:
        raise wrong("target", f"hold the model's classes, {', '.join(names[:8])}", repr(value))
    return names.index(str(value))
