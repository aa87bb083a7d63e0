"""The progress bar."""

from __future__ import annotations

import shutil
import sys
import threading
from functools import cache
from typing import Any

# Its attribute ``is_worker`` tells whether this thread is a worker's, which shows no bar of its own.
THIS_THREAD = threading.local()


def progress(total: int, title: str, unit: str = "it", show: bool = True) -> Any:
    """Return a progress bar for work that takes longer than two seconds, shown on a terminal or in a notebook."""
    from tqdm import tqdm  # imported here, because most work ends before a bar would be shown

    has_outer_bar = bool(getattr(tqdm, "_instances", ()))
    is_worker = getattr(THIS_THREAD, "is_worker", False)
    is_watched = sys.stderr.isatty() or "ipykernel" in sys.modules
    if not show or has_outer_bar or is_worker or not is_watched:
        return _hidden_bar(tqdm)
    # Terminals that report no size would hide the bar.
    width, height = shutil.get_terminal_size((100, 24))
    return tqdm(total=total, desc=title, unit=unit, delay=2, miniters=1, leave=False, ncols=width, nrows=height)


@cache
def _hidden_bar(tqdm: Any) -> Any:
    """Return a bar that is never shown; it is made once, because making it is slow."""
    return tqdm(disable=True)
