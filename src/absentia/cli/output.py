"""The output of commands: results on stdout, notes and progress on stderr."""

import json
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer
from torch import Tensor

from absentia.storage import check_folder

# A command says what it is doing if the work takes longer than this, in seconds.
PATIENCE = 1.0


def _check_output(path: Path | None) -> Path | None:
    """Raise an error for a file that cannot be written, before any computation."""
    if path is not None:
        check_folder("output", path)
    return path


Output = partial(typer.Option, "--output", "-o", dir_okay=False, callback=_check_output)
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]


def note(sentence: str) -> None:
    """Print a note on stderr."""
    typer.echo(f"absentia: {sentence}", err=True)


@contextmanager
def working(work: str, notes: Iterable[str] = ()) -> Iterator[None]:
    """Print notes, and announce the start and the end of long work unless stderr shows a progress bar."""
    for sentence in notes:
        note(sentence)
    shows_progress_bar = sys.stderr.isatty()
    start = time.perf_counter()
    announcement = threading.Timer(PATIENCE, note, [f"{work} …"])
    if not shows_progress_bar:
        announcement.start()
    try:
        yield
    finally:
        announcement.cancel()
    seconds = time.perf_counter() - start
    if not shows_progress_bar and seconds > PATIENCE:
        note(f"{work}: done in {seconds:.1f} s.")


def finish(result: Any, payload: dict[str, Any], as_json: bool, path: Path | None, **extra: Any) -> None:
    """Save a result if a path is given, and print it as text or JSON even if saving fails."""
    try:
        if path is not None:
            result.save(path, **extra)
    finally:
        show(payload | {"file": path}, repr(result), as_json)
    if as_json:
        return
    if path is None:
        typer.echo("Not saved. Use --output FILE to save the result.", err=True)
    else:
        typer.echo(f"Written to {path}")


def show(payload: dict[str, Any], text: str, as_json: bool) -> None:
    """Print a text, or one JSON object with lists for tensors, objects for records, null for non-finite numbers."""
    if as_json:
        plain = json.loads(json.dumps(payload, default=_plain), parse_constant=lambda _: None)
        text = json.dumps(plain, ensure_ascii=False)
    typer.echo(text)


def _plain(value: Any) -> Any:
    """Convert a value to one that JSON can represent."""
    if isinstance(value, Tensor):
        return value.tolist()
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    return str(value)
