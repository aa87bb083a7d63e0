"""A section of the page: what its template says, and what its pictures are drawn from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Kind: TypeAlias = Literal["explanation", "audit", "cross", "baseline"]


@dataclass(frozen=True)
class Section:
    """One result, made ready for the page.

    >>> Section("audit", "Audit of 2 absences", ("zero is best.",), facts={}, data={}).heading
    'Audit of 2 absences'
    """

    kind: Kind  # which template shows it, and which pictures it has
    heading: str
    lead: tuple[str, ...]  # the sentences that come first
    facts: Mapping[str, Any]  # text and numbers for the template, which escapes them
    data: Mapping[str, Any]  # what the browser draws; nothing but what JSON knows
