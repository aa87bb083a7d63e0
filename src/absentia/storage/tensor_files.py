"""Tensors and a JSON header in one file, with a checksum."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load as read_safetensors
from safetensors.torch import save_file
from torch import Tensor, uint8

from absentia.errors import wrong
from absentia.storage.whole_files import write_whole

# The maximum number of bytes of a header. A damaged file may claim any number.
_LONGEST_HEADER = 10**8

# The bytes at the start of a safetensors file that hold the length of its header.
_LENGTH_BYTES = 8

# What reading a damaged file, or one of another format, may raise.
_READ_ERRORS = (SafetensorError, ValueError, AttributeError, TypeError, RecursionError, MemoryError, OSError)


def write_tensors(path: str | Path, tensors: Mapping[str, Tensor], header: dict[str, Any], keep: bool = True) -> None:
    """Write tensors and a JSON header to one file; see `write_whole`."""
    # Copies, because a file holds no two tensors that share memory.
    copies = {name: tensor.detach().cpu().clone().contiguous() for name, tensor in tensors.items()}
    text = json.dumps(header)
    metadata = {"absentia": text, "checksum": _checksum(text, copies)}
    write_whole(path, lambda own_path: save_file(copies, own_path, metadata=metadata), keep)


def read_tensors(path: str | Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read a file written by `write_tensors`; files of earlier versions have no checksum."""
    if not os.path.isfile(Path(path)):
        raise wrong("path", "name a file that exists", path)
    try:
        tensors, metadata = _read_safetensors(Path(path))
        header = json.loads(metadata.get("absentia", "null"))
    except _READ_ERRORS as error:
        raise wrong("path", "be a file that absentia saved", f"{path}, which can't be read") from error
    if not isinstance(header, dict):
        raise wrong("path", "be a file that absentia saved", f"{path}, which has no header of absentia's")
    text = metadata["absentia"]
    is_first_format = len(metadata) == 1
    if not is_first_format and metadata != {"absentia": text, "checksum": _checksum(text, tensors)}:
        raise wrong("path", "be as it was saved", f"{path}, which has been damaged since", "Re-create it.")
    return tensors, header


def _read_safetensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the tensors of a file by their names, and its metadata."""
    with path.open("rb") as file:  # once: another file may take this one's place between two reads
        length = file.read(_LENGTH_BYTES)
        first_bytes = file.read(min(int.from_bytes(length, "little"), _LONGEST_HEADER))
        metadata = json.loads(first_bytes).get("__metadata__") or {}
        tensors = read_safetensors(length + first_bytes + file.read())
    return dict(sorted(tensors.items())), metadata


def _checksum(text: str, tensors: Mapping[str, Tensor]) -> str:
    """Return a digest of a header and of tensors with their names, types and shapes."""
    digest = hashlib.blake2b(text.encode(), digest_size=16)
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.as_strided((tensor.numel(),), (1,)).view(uint8).numpy().data)
    return digest.hexdigest()
