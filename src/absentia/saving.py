"""One way to keep results: tensors and a JSON header in one safe file, complete whenever it exists; no pickle."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from absentia.errors import wrong


def write_tensors(path: Path, tensors: dict[str, Tensor], header: dict[str, Any]) -> None:
    """Write tensors and a JSON header to a file that is complete whenever it exists."""
    check_folder("path", path)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        # safetensors makes files that only their owner may read; these are to be as readable as any other.
        temporary.touch()
        mode = temporary.stat().st_mode
        save_file(tensors, temporary, metadata={"absentia": json.dumps(header)})
        temporary.chmod(mode)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def check_folder(name: str, path: Path) -> None:
    """Refuse a path in a folder that does not exist, before anything is computed for it."""
    if not path.parent.is_dir():
        raise wrong(name, "lie in a folder that exists", path, f"Make {path.parent} first.")


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read a file of `write_tensors`."""
    if not path.is_file():
        raise wrong("path", "name a file that exists", path)
    try:
        with safe_open(path, framework="pt") as file:
            header = (file.metadata() or {}).get("absentia")
            tensors = {key: file.get_tensor(key) for key in list(file.keys())}
    except SafetensorError as error:
        raise wrong("path", "be a file that absentia saved", f"{path}, which can't be read") from error
    if header is None:
        raise wrong("path", "be a file that absentia saved", f"{path}, which has no header of absentia's")
    return tensors, json.loads(header)


def check_kind(path: Path, header: dict[str, Any], kind: str, newest: int) -> None:
    """Refuse a file of another kind, or of a format that a later version brought.

    >>> check_kind(Path("a"), {"kind": "surrogate", "format": 1}, "imputer", newest=1)
    Traceback (most recent call last):
    ...
    absentia.errors.AbsentiaError: path must hold a saved imputer. Got a, a saved surrogate instead.
    """
    found = header.get("kind", "baseline")  # learned baselines came first, and do not say so
    if found != kind:
        raise wrong("path", f"hold a saved {kind}", f"{path}, a saved {found}")
    if header.get("format", 0) > newest:
        got = f"format {header['format']} by absentia {header.get('record', {}).get('version', 'unknown')}"
        raise wrong("path", f"hold a saved {kind} of format {newest} or older", got, "Install a newer absentia.")
