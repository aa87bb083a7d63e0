"""Checks of files that users name, with every failure worded in one sentence."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from absentia.errors import AbsentiaError, wrong

# Messages of other packages are cut after this many characters.
_LONGEST_MESSAGE = 300


def check_file(argument: str, path: Path) -> Path:
    """Return the path of a file; raise an error for anything else."""
    if path.is_dir():
        raise wrong(argument, "name a file that exists", f"the folder {path}")
    if not path.is_file():
        raise wrong(argument, "name a file that exists", path)
    return path


def check_trust(trust: bool, path: Path, danger: str, better: str) -> None:
    """Raise an error for a file that can run code, unless the user trusts it."""
    if not trust:
        raise AbsentiaError(f"{path.name} {danger}. Use --trust if you know where the file comes from. {better}")


@contextmanager
def reading(argument: str, must: str, source: object = "", then: str = "") -> Iterator[None]:
    """Turn any exception of other code into one sentence that names the source."""
    try:
        yield
    except AbsentiaError:
        raise
    except (Exception, SystemExit) as error:
        got = f"{source} ({describe(error)})" if source else describe(error)
        raise wrong(argument, must, got, then) from error


def describe(error: BaseException) -> str:
    """Describe an exception in one line."""
    kind = type(error).__name__
    message = " ".join(str(error).split())[:_LONGEST_MESSAGE]
    return f"{kind}: {message}" if message else kind
