"""Rows and targets as a file holds them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class RawData:
    """Rows as a file holds them, a DataFrame or an array, and their targets, if any."""

    inputs: Any
    target: np.ndarray | None
    folders: tuple[str, ...] = ()  # the names of subfolders, if they are the classes
    names: Sequence[str] = ()  # of the rows, if they have any
