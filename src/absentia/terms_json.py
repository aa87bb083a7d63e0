"""Terms as JSON: the fields that are written, and those that are read to make terms again."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from absentia.errors import wrong
from absentia.listed_sets import rows_of_players

# The types of effects, by name.
_DTYPES = {"float16": torch.float16, "float32": torch.float32, "float64": torch.float64}


def json_of(fields: Mapping[str, Any]) -> str:
    """Return fields as JSON: tensors as lists of numbers, with null for NaN, and types by their names."""
    try:
        return json.dumps(
            {name: _for_json(value) for name, value in fields.items()}, ensure_ascii=False, allow_nan=False
        )
    except ValueError as error:
        raise wrong("effects", "be finite for JSON", "infinity") from error


def fields_of_json(text: str, kind: str, newest_format: int) -> dict[str, Any]:
    """Return the fields of terms from their JSON, in this format or an older one."""
    try:
        return _read_fields(json.loads(text), kind, newest_format)
    except (LookupError, TypeError, ValueError, RuntimeError) as error:
        raise wrong("text", "be the JSON of terms", "text in which something is missing or damaged") from error


def for_each_sample(
    name: str, numbers: Float[Tensor, " samples"] | float | None, samples: int
) -> Float[Tensor, " samples"] | None:
    """Return a number for each sample, from a number for each or for all of them."""
    if numbers is None:
        return None
    by_sample = torch.as_tensor(numbers, dtype=torch.float64)
    if by_sample.ndim == 0:
        return by_sample.repeat(samples)
    if by_sample.shape != (samples,):
        raise wrong(name, f"hold one number for each of the {samples} samples", tuple(by_sample.shape))
    return by_sample


def _read_fields(fields: dict[str, Any], kind: str, newest_format: int) -> dict[str, Any]:
    """Return the fields of terms, or raise an error for any that is missing or does not fit the others."""
    if fields["kind"] != kind or fields["format"] > newest_format:
        raise ValueError(fields["kind"])
    names = tuple(fields["names"])
    dtype = _DTYPES[fields["dtype"]]
    noise = _tensor(fields["noise"], dtype)
    effects = _tensor(fields["effects"], dtype)
    members = owners = None
    if fields["full"]:
        if effects.shape != (len(noise), 2 ** len(names)):
            raise ValueError(tuple(effects.shape))
    else:
        if not len(effects) == len(fields["sets"]) == len(fields["owners"]):
            raise ValueError(len(effects))
        members = rows_of_players(fields["sets"], len(names))
        owners = torch.tensor(fields["owners"], dtype=torch.long)
    return {
        "effects": effects,
        "names": names,
        "readout": fields["readout"],
        "noise": noise,
        "evaluations": fields["evaluations"],
        "members": members,
        "owners": owners,
        "errors": _tensor_or_none(fields["errors"], dtype),
        "basis": fields["basis"],
        "absence": fields["absence"],
        "fidelity": _fidelity(fields["fidelity"], len(noise)),
        "fidelity_error": _fidelity(fields.get("fidelity_error"), len(noise)),
        "highest_order": fields["highest_order"],
        "notes": tuple(fields["notes"]),
        "rows_seen": fields["rows_seen"],
        "order": fields["order"],
        "base_values": _tensor_or_none(fields["base_values"], dtype),
    }


def _for_json(value: Any) -> Any:
    """Return a value as JSON can hold it."""
    if isinstance(value, torch.dtype):
        return str(value).removeprefix("torch.")
    if isinstance(value, Tensor):
        return _numbers(value)
    return value


def _numbers(values: Tensor) -> list[Any]:
    """Return the numbers of a tensor, with None for NaN."""
    if values.ndim > 1:
        return [_numbers(row) for row in values]
    return [None if math.isnan(number) else number for number in values.tolist()]


def _tensor(numbers: list[Any], dtype: torch.dtype) -> Tensor:
    """Return the tensor that `_numbers` wrote."""
    if numbers and isinstance(numbers[0], list):
        return torch.stack([_tensor(row, dtype) for row in numbers])
    return torch.tensor([math.nan if number is None else number for number in numbers], dtype=dtype)


def _tensor_or_none(numbers: list[Any] | None, dtype: torch.dtype) -> Tensor | None:
    """Return the tensor that `_numbers` wrote, if there was one."""
    return None if numbers is None else _tensor(numbers, dtype)


def _fidelity(numbers: Any, samples: int) -> Float[Tensor, " samples"] | None:
    """Return fidelities, or their errors, of each sample; in format 3, one number stood for all samples."""
    if isinstance(numbers, list):
        numbers = _tensor(numbers, torch.float64)
    return for_each_sample("fidelity", numbers, samples)
