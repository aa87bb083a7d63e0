"""What commands print and write: results in words or as JSON on stdout, what else is to be said on stderr."""

from __future__ import annotations

import json
import math
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

import typer
from torch import Tensor

from absentia.errors import AbsentiaError, wrong
from absentia.saving import check_folder

# Seconds that work may take without a word.
PATIENCE = 1.0


def tell(sentence: str) -> None:
    """Say something beside the result, on stderr."""
    typer.echo(f"absentia: {sentence}", err=True)


@contextmanager
def announced(work: str) -> Iterator[None]:
    """Say that work is under way, and when it is done, where it takes long and no progress bar can be seen."""
    began = time.perf_counter()
    timer = threading.Timer(PATIENCE, tell, [f"{work} …"])
    if not sys.stderr.isatty():
        timer.start()
    try:
        yield
    finally:
        timer.cancel()
    seconds = time.perf_counter() - began
    if not sys.stderr.isatty() and seconds > PATIENCE:
        tell(f"{work}: done in {seconds:.1f} s.")


@contextmanager
def hinting() -> Iterator[None]:
    """Say what to do about values that are not finite, which probabilities of 0 have as their log-odds."""
    try:
        yield
    except AbsentiaError as error:
        if "finite values" not in str(error):
            raise
        hint = "Say --readout probability if it gives a class the probability 0, which has no log-odds."
        raise AbsentiaError(f"{error} {hint}") from error


def check_output(path: Path | None) -> None:
    """Refuse a file that can't be written, before anything is computed for it."""
    if path is None:
        return
    if path.is_dir():
        raise wrong("output", "name a file", f"the folder {path}")
    check_folder("output", path)


def show(result: object, payload: dict[str, Any], as_json: bool, path: Path | None) -> None:
    """Print a result as it describes itself, or as one JSON object; and where it was written to."""
    if as_json:
        print_json(payload | {"file": None if path is None else str(path)})
        return
    typer.echo(repr(result))
    typer.echo(
        f"Written to {path}" if path is not None else "Not kept: say --output FILE to write it.", err=path is None
    )


def print_json(payload: dict[str, Any]) -> None:
    """Print one JSON object."""
    typer.echo(json.dumps(plain(payload), ensure_ascii=False, allow_nan=False))


def plain(value: Any) -> Any:
    """Make JSON's types of a result's: lists of tensors, objects of records, null of what is not a number.

    >>> import torch
    >>> plain({"R": torch.tensor([0.5, float("nan")]), "file": Path("a.b")})
    {'R': [0.5, None], 'file': 'a.b'}
    """
    if isinstance(value, Tensor):
        return plain(value.tolist())
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)
