"""A section of the report: one result, prepared for its template and its script."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, eq=False)
class Section:
    """One result, prepared for the page. Python formats every number that is shown; scripts only place marks."""

    kind: Literal["explanation", "terms", "audit", "cross", "baseline"]  # selects the template and the script
    heading: str
    answer: str  # the first sentence
    result: Any  # what the template reads
    data: Mapping[str, Any]  # what else the template needs, and what the script draws; it becomes JSON
