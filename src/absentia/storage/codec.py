"""Dataclasses as JSON with tensors set aside, and back.

A class may have methods of its own for this: ``packed`` returns its fields, and ``unpacked`` makes it from them.
"""

from __future__ import annotations

import dataclasses
import enum
import types
import typing
from collections.abc import Mapping
from typing import Any

from torch import Tensor

# Where a value stands: the names of the fields that lead to it.
Path = tuple[str, ...]


def pack(value: Any, tensors: dict[str, Tensor], path: Path = ()) -> Any:
    """Return a value as JSON, and add its tensors to ``tensors`` under the path of their field."""
    if isinstance(value, Tensor):
        key = ".".join(path)
        tensors[key] = value
        return {"tensor": key}
    if isinstance(value, enum.Enum):
        return value.value
    if hasattr(value, "packed"):
        value = value.packed()
    if dataclasses.is_dataclass(value):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {key: pack(item, tensors, (*path, key)) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [pack(item, tensors, (*path, str(number))) for number, item in enumerate(value)]
    return value


@dataclasses.dataclass(frozen=True)
class Unpacker:
    """Converts the values that `pack` returned to the types of their hints."""

    tensors: Mapping[str, Tensor]
    extra: Mapping[str, Any]  # arguments for classes with a method ``unpacked``, such as a network

    def unpack(self, hint: Any, value: Any, path: Path = ()) -> Any:
        """Convert a value that `pack` returned to the type of its hint."""
        key = ".".join(path)
        if key in self.tensors:
            return self.tensors[key]
        if value == {"tensor": key}:
            raise KeyError(key)
        if value is None:
            return None
        hint = _without_none(hint)
        if hasattr(hint, "unpacked"):
            fields = self.unpack(dict, value, path)
            return hint.unpacked(fields, **self.extra)
        if dataclasses.is_dataclass(hint):
            return self._unpack_dataclass(hint, value, path)
        if isinstance(hint, type) and issubclass(hint, enum.Enum):
            return hint(value)
        if isinstance(value, dict):
            return self._unpack_dict(hint, value, path)
        if isinstance(value, list):
            return self._unpack_sequence(hint, value, path)
        return value

    def _unpack_dataclass(self, hint: Any, value: Mapping[str, Any], path: Path) -> Any:
        """Make a dataclass from its fields; fields missing in the file get their defaults, or None."""
        hints = typing.get_type_hints(hint)
        fields = {}
        for field in dataclasses.fields(hint):
            field_path = (*path, field.name)
            is_saved = field.name in value or ".".join(field_path) in self.tensors
            is_optional = types.NoneType in typing.get_args(hints[field.name])
            if is_saved or is_optional:
                fields[field.name] = self.unpack(hints[field.name], value.get(field.name), field_path)
        return hint(**fields)

    def _unpack_dict(self, hint: Any, value: dict[str, Any], path: Path) -> dict[str, Any]:
        """Return a dict of values of the type that the hint names."""
        item_hint = typing.get_args(hint)[1] if typing.get_origin(hint) is dict else Any
        return {key: self.unpack(item_hint, item, (*path, key)) for key, item in value.items()}

    def _unpack_sequence(self, hint: Any, value: list[Any], path: Path) -> list[Any] | tuple[Any, ...]:
        """Return a list if the hint names one, otherwise a tuple, because JSON does not distinguish them."""
        parts = typing.get_args(hint)
        item_hint = parts[0] if parts else Any
        items = [self.unpack(item_hint, item, (*path, str(number))) for number, item in enumerate(value)]
        if typing.get_origin(hint) is list:
            return items
        return tuple(items)


def _without_none(hint: Any) -> Any:
    """Return the type in a hint for a type or None; other hints as they are."""
    if typing.get_origin(hint) not in (types.UnionType, typing.Union):
        return hint
    return next(part for part in typing.get_args(hint) if part is not types.NoneType)
