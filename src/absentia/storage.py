"""One safe file format for all results.

A saved result is one safetensors file with a JSON header, without pickle. The header holds the kind, the format and
the plain fields; the tensors are stored beside it under the path of their field, such as ``shapley.values``. A
checksum of all of it tells damaged files.
"""

from __future__ import annotations

import dataclasses
import glob
import hashlib
import json
import os
import tempfile
import time
import types
import typing
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from safetensors import SafetensorError
from safetensors.torch import load as read_safetensors
from safetensors.torch import save_file
from torch import Tensor, uint8

from absentia.arguments import checked
from absentia.errors import AbsentiaError, Figure, wrong
from absentia.version import __version__

if TYPE_CHECKING:
    from typing_extensions import Self


# Files of older formats keep each class's own layout; `from_old` of the class returns its fields.
_FIRST_COMMON_FORMAT = 3
# The most bytes of a name, so that there is room for what is added while a file is written; and those of a header.
_LONGEST_NAME, _MOST_HEADER = 220, 10**8


def check_folder(name: str, path: str | Path) -> None:
    """Raise an error if no file can be written to the folder of a path, before anything is computed for it."""
    parent = Path(path).parent
    if not os.path.isdir(parent):  # unlike methods of Path, these functions also take names that no file can have
        raise wrong(name, "lie in a folder that exists", path, f"Make {parent} first.")
    if os.path.exists(path) and not os.path.isfile(path):
        raise wrong(name, "name a file", f"{path}, which is a folder or a device")
    if len(os.fsencode(Path(path).name)) > _LONGEST_NAME:
        raise wrong(name, f"have a name of at most {_LONGEST_NAME} bytes", f"{len(os.fsencode(Path(path).name))}")
    if not os.access(parent, os.W_OK):
        raise wrong(name, "lie in a folder that can be written to", path)


def keep_figure(draw: Callable[[], Figure], path: str | Path | None) -> Figure:
    """Draw a figure and, if a path is given, write it there."""
    if path is not None:
        check_folder("path", path)
    figure = draw()
    if path is not None:
        path = Path(path) if Path(path).suffix else Path(f"{path}.png")
        write_whole(path, lambda there: figure.savefig(there, dpi=150, format=path.suffix[1:]), keep=False)
    return figure


def write_whole(path: str | Path, write: Callable[[Path], object], keep: bool = True) -> None:
    """Let ``write`` write a file, which is complete whenever it exists; ``keep`` elsewhere what can't be written."""
    path = Path(path)
    check_folder("path", path)
    try:
        _write_and_rename(path, write)
    except (OSError, ValueError, SafetensorError) as error:
        kept = ""
        with suppress(OSError, ValueError, SafetensorError):
            if keep:
                spare = Path(tempfile.gettempdir()) / f"{uuid.uuid4().hex[:12]}-{path.name}"
                _write_and_rename(spare, write)
                kept = f" The result is in {spare} instead."
        raise AbsentiaError(f"{path} can't be written: {error}.{kept}") from error


def _write_and_rename(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file of a name that no other writer uses, sync it and rename it; remove those of killed runs."""
    for left in path.parent.glob(f"{glob.escape(path.name)}.{'[0-9a-f]' * 12}.part"):
        with suppress(OSError):  # another writer may just have renamed it, or it is a folder
            if time.time() - left.lstat().st_mtime > 86_400:  # a day
                left.unlink()
    temporary = path.with_name(f"{path.name}.{uuid.uuid4().hex[:12]}.part")
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


def write_tensors(path: str | Path, tensors: Mapping[str, Tensor], header: dict[str, Any], keep: bool = True) -> None:
    """Write tensors and a JSON header to one file; see `write_whole`."""
    # Copies, because a file holds no two tensors that share memory.
    kept = {name: tensor.detach().cpu().clone().contiguous() for name, tensor in tensors.items()}
    text = json.dumps(header)
    metadata = {"absentia": text, "checksum": _checksum(text, kept)}
    write_whole(path, lambda there: save_file(kept, there, metadata=metadata), keep)


def _checksum(text: str, tensors: Mapping[str, Tensor]) -> str:
    """Return a digest of a header and of tensors with their names, types and shapes."""
    digest = hashlib.blake2b(text.encode(), digest_size=16)
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.as_strided((tensor.numel(),), (1,)).view(uint8).numpy().data)
    return digest.hexdigest()


def read_tensors(path: str | Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read a file of `write_tensors`; files of earlier versions have no checksum."""
    if not os.path.isfile(Path(path)):
        raise wrong("path", "name a file that exists", path)
    try:
        with Path(path).open("rb") as file:  # once: another file may take this one's place between two reads
            size = file.read(8)
            first = file.read(min(int.from_bytes(size, "little"), _MOST_HEADER))
            metadata = json.loads(first).get("__metadata__") or {}
            header = json.loads(metadata.get("absentia", "null"))
            tensors = dict(sorted(read_safetensors(size + first + file.read()).items()))
    except (SafetensorError, ValueError, AttributeError, TypeError, RecursionError, MemoryError, OSError) as error:
        raise wrong("path", "be a file that absentia saved", f"{path}, which can't be read") from error
    if not isinstance(header, dict):
        raise wrong("path", "be a file that absentia saved", f"{path}, which has no header of absentia's")
    whole = {"absentia": metadata["absentia"], "checksum": _checksum(metadata["absentia"], tensors)}
    if len(metadata) > 1 and metadata != whole:
        raise wrong("path", "be as it was saved", f"{path}, which has been damaged since", "Make it anew.")
    return tensors, header


def read_header(path: str | Path) -> dict[str, Any]:
    """Read the header of a saved result; its ``kind`` is always set."""
    header = read_tensors(path)[1]
    # The first learned baselines did not name their kind.
    return {"kind": "baseline" if "share" in header else "file of another kind"} | header


@checked
class Saved:
    """What is saved to one file, as a dataclass."""

    KIND: ClassVar[str]
    FORMAT: ClassVar[int]
    from_old: ClassVar[Any]  # tensors, header of a file of an older format → its fields in the present one

    def __init_subclass__(cls, kind: str, format: int) -> None:
        cls.KIND, cls.FORMAT = kind, format

    def save(self, path: str | Path, **extra: Any) -> None:
        """Write everything to one file: safetensors with a JSON header, and ``extra`` in it, without pickle."""
        tensors: dict[str, Tensor] = {}
        fields = _pack(self, (), tensors)
        header = {"kind": self.KIND, "format": self.FORMAT, "version": __version__, "fields": fields}
        write_tensors(path, tensors, header | extra)

    @staticmethod
    def upgraded(_tensors: dict[str, Tensor], fields: dict[str, Any]) -> dict[str, Any]:
        """Return fields of an older common format as the present one has them; most are the same."""
        return fields

    @classmethod
    def load(cls, path: str | Path, **more: Any) -> Self:
        """Read a file of `save`; a surrogate with a network of the user's needs one like it, ``network=…``."""
        tensors, header = read_tensors(path)
        kind, number = header.get("kind", "baseline"), header.get("format", 0)
        if kind != cls.KIND:
            raise wrong("path", f"hold a saved {cls.KIND}", f"{path}, a saved {kind}")
        try:
            if number > cls.FORMAT:
                made = header.get("version", header.get("record", {}).get("version", "unknown"))
                got, then = f"format {number} by absentia {made}", "Install a newer absentia."
                raise wrong("path", f"hold a saved {kind} of format {cls.FORMAT} or older", got, then)
            fields = cls.from_old(tensors, header) if number < _FIRST_COMMON_FORMAT else header["fields"]
            fields = cls.upgraded(tensors, fields)
            return _unpack(cls, fields, (), tensors, more)
        except AbsentiaError:
            raise
        except (LookupError, TypeError, ValueError, AttributeError, RuntimeError) as error:
            got = f"{path}, in which something is missing or damaged"
            raise wrong("path", f"hold a whole {kind}", got) from error


@checked
def load(path: str | Path) -> Any:
    """Read a saved result, whichever kind the file holds: an explanation, an audit, learned values, a network.

    Parameters
    ----------
    path : str or Path
        A file written by the ``save`` method of a result.

    Examples
    --------
    >>> import tempfile
    >>> explanation = ab.explain(lambda rows: rows.prod(1), [[2.0, 3.0]], absence=1.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     explanation.save(f"{folder}/two.safetensors")
    ...     ab.load(f"{folder}/two.safetensors").shapley.values
    tensor([[2., 3.]], dtype=torch.float64)
    """
    kind, known = str(read_header(path)["kind"]), {one.KIND: one for one in Saved.__subclasses__()}
    if kind not in known:
        raise wrong("path", f"hold a saved {', '.join(known)}", f"{path}, a saved {kind}")
    return known[kind].load(path)


def _pack(value: Any, path: tuple[str, ...], tensors: dict[str, Tensor]) -> Any:
    """Return a value as JSON, with tensors set aside under the path of their field."""
    if isinstance(value, Tensor):
        tensors[".".join(path)] = value
        return {"tensor": ".".join(path)}
    if hasattr(value, "packed"):
        value = value.packed()
    if dataclasses.is_dataclass(value):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {key: _pack(item, (*path, key), tensors) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_pack(item, (*path, str(number)), tensors) for number, item in enumerate(value)]
    return value


def _unpack(hint: Any, value: Any, path: tuple[str, ...], tensors: dict[str, Tensor], more: Mapping[str, Any]) -> Any:
    """Return a value of `_pack` as the type that the hint names."""
    if ".".join(path) in tensors:
        return tensors[".".join(path)]
    if value == {"tensor": ".".join(path)}:
        raise KeyError(".".join(path))
    if value is None:
        return None
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return _unpack(next(part for part in parts if part is not types.NoneType), value, path, tensors, more)
    if hasattr(hint, "unpacked"):
        return hint.unpacked(_unpack(dict, value, path, tensors, more), **more)
    if dataclasses.is_dataclass(hint):
        hints, fields = typing.get_type_hints(hint), {}
        for name in (field.name for field in dataclasses.fields(hint)):
            where, optional = (*path, name), types.NoneType in typing.get_args(hints[name])
            if name in value or ".".join(where) in tensors or optional:
                fields[name] = _unpack(hints[name], value.get(name), where, tensors, more)
        return hint(**fields)  # type: ignore[operator]
    if isinstance(value, dict):
        inner = parts[1] if origin is dict else Any
        return {key: _unpack(inner, item, (*path, key), tensors, more) for key, item in value.items()}
    if isinstance(value, list):
        inner = parts[0] if parts else Any
        items = [_unpack(inner, item, (*path, str(number)), tensors, more) for number, item in enumerate(value)]
        return items if origin is list else tuple(items)
    return value
