"""The progress bar."""

from __future__ import annotations

import shutil
import sys
import threading
from functools import cache
from typing import Any

# Whether this thread is a worker's, whose work shows no bar of its own.
THIS_THREAD = threading.local()


def progress(total: int, title: str, unit: str = "it", show: bool = True) -> Any:
    """Return a progress bar for work that takes longer than two seconds, shown on a terminal or in a notebook."""
    from tqdm import tqdm  # imported here, because most work ends before a bar would be shown

    # Work within work that has a bar shows none.
    within = bool(getattr(tqdm, "_instances", ())) or getattr(THIS_THREAD, "is_worker", False)
    if not show or within or not (sys.stderr.isatty() or "ipykernel" in sys.modules):
        return _hidden_bar(tqdm)
    # Terminals without a size, such as those that some tools make, would hide the bar.
    width, height = shutil.get_terminal_size((100, 24))
    return tqdm(total=total, desc=title, unit=unit, delay=2, miniters=1, leave=False, ncols=width, nrows=height)


# The bar that is never shown, which is made once, because that takes longer than all else of it.
_hidden_bar = cache(lambda kind: kind(disable=True))
