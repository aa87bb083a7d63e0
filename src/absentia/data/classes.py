"""Classes that users pass, as numbers or names."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from absentia.data.tensors import as_tensor
from absentia.errors import AbsentiaError, wrong

# Classes as users pass them: numbers or names, one for all samples or one for each.
Classes: TypeAlias = Any

# The maximum number of class names that an error lists.
_NAMES_SHOWN = 10


def class_numbers(y: Classes, labels: Sequence[Any] = (), name: str = "y") -> Int[Tensor, " *samples"]:
    """Convert classes to numbers: names, or an estimator's own labels, by their position in ``labels``."""
    labels = list(labels)
    texts = [str(label) for label in labels]
    if len(set(texts)) < len(texts):
        raise wrong("class_names", "name each class once", labels)
    classes = _as_objects(y, name)
    if classes.ndim > 1:
        raise wrong(name, "be one class number or one for each sample", f"shape {classes.shape}")
    values = classes.reshape(-1).tolist()
    has_names = holds_text(y)
    if has_names and not labels:
        raise order_unknown(y, name)
    if labels and all(isinstance(label, Hashable) and not isinstance(label, str) for label in labels):
        return _places(values, labels, name).reshape(classes.shape)
    if has_names:
        return _places([str(value) for value in values], texts, name).reshape(classes.shape)
    return _whole_numbers(y, name)


@dataclass(frozen=True, eq=False)
class CheckedClasses:
    """Class numbers that have been converted and checked. They take the place of classes that a user passes."""

    numbers: Int[Tensor, " *samples"]


def read_classes(y: Classes | CheckedClasses, labels: Sequence[Any] = ()) -> Int[Tensor, " *samples"]:
    """Return classes as numbers: checked ones as they are, and all others after a check."""
    if isinstance(y, CheckedClasses):
        return y.numbers
    return class_numbers(y, labels)


def _as_objects(y: Classes, name: str) -> np.ndarray:
    """Return classes as an array of objects, which also takes lists without a common shape."""
    if isinstance(y, Tensor):
        y = as_tensor(name, y).detach().cpu()
    elif hasattr(y, "to_numpy"):
        y = y.to_numpy()
    return np.asarray(y, dtype=object)


def _places(values: Sequence[Any], labels: Sequence[Any], name: str) -> Tensor:
    """Return the position of each value among the labels, or raise an error for an unknown value."""
    number_of = {label: number for number, label in enumerate(labels)}
    for value in values:
        if not isinstance(value, Hashable) or value not in number_of:
            raise wrong(name, f"hold classes of the model: {', '.join(map(str, labels))}", repr(value))
    return torch.tensor([number_of[value] for value in values])


def _whole_numbers(y: Classes, name: str) -> Tensor:
    """Convert class numbers to integers, or raise an error for numbers that are not whole."""
    numbers = y if isinstance(y, Tensor) else as_tensor(name, y)  # tensors were checked above
    if not bool(numbers.isfinite().all()) or not torch.equal(numbers.double(), numbers.double().round()):
        raise wrong(name, "hold class numbers", f"{numbers.dtype} values", "Leave y out for a regression.")
    return numbers.long()


def each_class(classes: Int[Tensor, " *samples"], samples: int) -> Int[Tensor, " samples"]:
    """Return one class number for each sample, given one for each or one for all."""
    if classes.ndim == 1 and len(classes) != samples:
        raise wrong("y", f"hold one class for each of the {samples} samples", f"{len(classes)}")
    return classes.cpu().expand(samples).clone()


def holds_text(y: Classes) -> bool:
    """Return whether classes are given by their names rather than by numbers."""
    if isinstance(y, Tensor | int | float):
        return False
    try:
        array = np.asarray(y.to_numpy() if hasattr(y, "to_numpy") else y)
    except ValueError:  # lists without a common shape
        return False
    return array.dtype.kind in "UOS" and any(isinstance(label, str) for label in array.reshape(-1).tolist())


def order_unknown(y: Classes, name: str = "y", option: str = "class_names") -> AbsentiaError:
    """Return the error for class names in an unknown order, which lists the names for the user to put in order."""
    values = y.to_numpy() if hasattr(y, "to_numpy") else y
    labels = np.asarray(values, dtype=object).reshape(-1).tolist()
    names = sorted({str(label) for label in labels})
    shown = ", ".join(repr(label) for label in names[:_NAMES_SHOWN])
    if len(names) > _NAMES_SHOWN:
        shown += ", …"
    then = f"Pass {option}=[{shown}] in the order of the model's outputs."
    return AbsentiaError(f"{name} holds names of classes, but the model does not know their order. {then}")
