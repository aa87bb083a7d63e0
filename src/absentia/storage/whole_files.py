"""Writing files so that they are never left incomplete."""

from __future__ import annotations

import glob
import os
import tempfile
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from safetensors import SafetensorError

from absentia.errors import AbsentiaError, Figure, wrong

# The maximum length of a file's name in bytes, which leaves room for the suffix of the temporary file.
_LONGEST_NAME = 220

# The length of the random part of a temporary name, in hexadecimal digits.
_RANDOM_DIGITS = 12

# Temporary files that are older than this, in seconds, were left by runs that were killed.
_ONE_DAY = 86_400

# The exceptions that writing a file may raise.
_WRITE_ERRORS = (OSError, ValueError, SafetensorError)


def check_folder(name: str, path: str | Path) -> None:
    """Raise an error, before anything is computed, if no file can be written to the folder of a path."""
    parent = Path(path).parent
    name_bytes = len(os.fsencode(Path(path).name))
    # Functions of os.path also take names that no file can have; methods of Path raise an error for them.
    if not os.path.isdir(parent):
        raise wrong(name, "lie in a folder that exists", path, f"Make {parent} first.")
    if os.path.exists(path) and not os.path.isfile(path):
        raise wrong(name, "name a file", f"{path}, which is a folder or a device")
    if name_bytes > _LONGEST_NAME:
        raise wrong(name, f"have a name of at most {_LONGEST_NAME} bytes", f"{name_bytes}")
    if not os.access(parent, os.W_OK):
        raise wrong(name, "lie in a folder that can be written to", path)


def keep_figure(draw: Callable[[], Figure], path: str | Path | None) -> Figure:
    """Draw a figure and, if a path is given, write it there."""
    if path is None:
        return draw()
    check_folder("path", path)
    figure = draw()
    file = Path(path) if Path(path).suffix else Path(f"{path}.png")
    write_whole(file, lambda own_path: figure.savefig(own_path, dpi=150, format=file.suffix[1:]), keep=False)
    return figure


def write_whole(path: str | Path, write: Callable[[Path], object], keep: bool = True) -> None:
    """Let ``write`` write a file, which is never left incomplete.

    If the file cannot be written, an error is raised. With ``keep``, the result is first saved to a temporary folder.
    """
    path = Path(path)
    check_folder("path", path)
    try:
        _write_and_rename(path, write)
    except _WRITE_ERRORS as error:
        message = f"{path} can't be written: {error}."
        spare = _write_spare(path.name, write) if keep else None
        if spare is not None:
            message += f" The result is in {spare} instead."
        raise AbsentiaError(message) from error


def _write_spare(name: str, write: Callable[[Path], object]) -> Path | None:
    """Write a file to the folder for temporary files, and return its path, or None if this fails, too."""
    spare = Path(tempfile.gettempdir()) / f"{_random_part()}-{name}"
    try:
        _write_and_rename(spare, write)
    except _WRITE_ERRORS:  # the caller raises the first error, which concerns the path that the user named
        return None
    return spare


def _write_and_rename(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file under a name that no other writer uses, sync it and rename it."""
    _remove_leftovers(path)
    temporary = path.with_name(f"{path.name}.{_random_part()}.part")
    try:
        temporary.touch(exist_ok=False)  # so that no link is followed
        mode = temporary.stat().st_mode
        write(temporary)
        temporary.chmod(mode)  # safetensors makes files that only their owner may read
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _remove_leftovers(path: Path) -> None:
    """Remove temporary files that killed runs left beside a path."""
    pattern = f"{glob.escape(path.name)}.{'[0-9a-f]' * _RANDOM_DIGITS}.part"
    for leftover in path.parent.glob(pattern):
        with suppress(OSError):  # another writer may just have renamed it, or it is a folder
            if time.time() - leftover.lstat().st_mtime > _ONE_DAY:
                leftover.unlink()


def _random_part() -> str:
    """Return a part of a file's name that no other writer uses."""
    return uuid.uuid4().hex[:_RANDOM_DIGITS]
