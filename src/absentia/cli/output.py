"""What users read: results on stdout, notes on stderr, and errors in one sentence."""

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

from absentia.errors import AbsentiaError, wrong
from absentia.storage import check_folder

PATIENCE = 1.0  # seconds of work after which a command says what it is doing


def _check_output(path: Path | None) -> Path | None:
    """Refuse a file that can't be written, before any computation."""
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
    """Print notes, and the start and the end of long work if stderr shows no progress bar. Adapt hints to options."""
    for sentence in notes:
        note(sentence)
    began = time.perf_counter()
    timer = threading.Timer(PATIENCE, note, [f"{work} …"])
    if not sys.stderr.isatty():
        timer.start()
    try:
        yield
    except AbsentiaError as error:
        sentence = str(error).replace("readout=Probability(y)", "--readout probability")
        raise AbsentiaError(sentence.replace("readout=Margin(y)", "--readout score")) from error
    finally:
        timer.cancel()
    seconds = time.perf_counter() - began
    if not sys.stderr.isatty() and seconds > PATIENCE:
        note(f"{work}: done in {seconds:.1f} s.")


def finish(result: Any, payload: dict[str, Any], as_json: bool, path: Path | None, **extra: Any) -> None:
    """Save a result if a path is given, and print it as text or as one JSON object; neither is lost by the other."""
    try:
        if path is not None:
            result.save(path, **extra)
    finally:
        show(payload | {"file": path}, repr(result), as_json)
    if not as_json:
        written = f"Written to {path}" if path is not None else "Not saved. Use --output FILE to save the result."
        typer.echo(written, err=path is None)


def show(payload: dict[str, Any], text: str, as_json: bool) -> None:
    """Print a text, or one JSON object with lists for tensors, objects for records, null for non-finite numbers."""
    if as_json:
        plain = json.loads(json.dumps(payload, default=_plain), parse_constant=lambda _: None)
        text = json.dumps(plain, ensure_ascii=False)
    typer.echo(text)


def _plain(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.tolist()
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else str(value)


def check_file(argument: str, path: Path) -> Path:
    """Refuse a path that is not a file."""
    if not path.is_file():
        raise wrong(argument, "name a file that exists", f"the folder {path}" if path.is_dir() else path)
    return path


def check_trust(trust: bool, path: Path, what: str, better: str) -> None:
    """Refuse a file that can run code, unless the user trusts it."""
    if not trust:
        raise AbsentiaError(f"{path.name} {what}. Use --trust if you know where the file comes from. {better}")


@contextmanager
def reading(argument: str, must: str, source: object = "", then: str = "") -> Iterator[None]:
    """Turn any exception of other code into one sentence that names the source."""
    try:
        yield
    except AbsentiaError:
        raise
    except (Exception, SystemExit) as error:
        got = describe(error)
        raise wrong(argument, must, f"{source} ({got})" if source else got, then) from error


def describe(error: BaseException) -> str:
    """Describe an exception in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}".removesuffix(": ")
