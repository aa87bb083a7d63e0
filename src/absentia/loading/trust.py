"""Files that could run code when they are read: refused, unless the user trusts where they come from."""

from __future__ import annotations

from pathlib import Path

from absentia.errors import AbsentiaError, wrong


def untrusted(path: Path, what: str, why: str, instead: str) -> AbsentiaError:
    """Word the refusal of a file that could run code.

    >>> print(untrusted(Path("m.pkl"), "a pickle", "it can run any code when it is read", "Save it by skops."))
    trust must be given for m.pkl, a pickle: it can run any code when it is read. Got none instead. Say --trust if you
    know where the file comes from. Save it by skops.
    """
    then = f"Say --trust if you know where the file comes from. {instead}"
    return wrong("trust", f"be given for {path.name}, {what}: {why}", "none", then)


def check_file(argument: str, path: Path) -> Path:
    """Refuse a path that is no file."""
    if path.is_dir():
        raise wrong(argument, "name a file", f"the folder {path}")
    if not path.is_file():
        raise wrong(argument, "name a file that exists", path)
    return path
