"""Writing the report: the public function, from results to one file."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from absentia.audit import Audit, CrossAudit
from absentia.errors import wrong
from absentia.explanation import Explanation
from absentia.learning import LearnedBaseline
from absentia.report.audit_section import audit_section, cross_section
from absentia.report.baseline_section import baseline_section
from absentia.report.explanation_section import explanation_section
from absentia.report.page import render_page
from absentia.report.section import Section
from absentia.saving import check_folder

Result: TypeAlias = Explanation | Audit | CrossAudit | LearnedBaseline
# One of them, several, or several by name. `write_report` says what is wrong with anything else.
Results: TypeAlias = Any
_SECTIONS: dict[type, Any] = {
    Explanation: explanation_section,
    Audit: audit_section,
    CrossAudit: cross_section,
    LearnedBaseline: baseline_section,
}


def write_report(results: Results, path: str | Path, *, title: str | None = None) -> Path:
    """Write explanations, audits and learned baselines to one HTML file that any browser opens, without a network.

    ``results`` is one of them, several in the order of the page, or several by name, for the headings. The file is
    complete whenever it exists. Large results are trimmed, and the page says to what.

    >>> import tempfile, torch
    >>> import absentia as ab
    >>> explanation = ab.explain(lambda rows: rows.prod(1), torch.tensor([[2.0, 3.0]]), absence=ab.Baseline(1.0))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = ab.write_report(explanation, f"{folder}/report.html", title="A product")
    ...     "<title>A product</title>" in page.read_text(encoding="utf-8")
    True
    """
    named = _name(results)
    target = Path(path)
    if target.is_dir():
        raise wrong("path", "name a file", f"the folder {target}", f"Write to {target / 'report.html'}, say.")
    check_folder("path", target)
    sections = [_section(name, result) for name, result in named]
    _write(target, render_page(title or "What absence means to the model", sections))
    return target


def _name(results: object) -> list[tuple[str, Any]]:
    """Take one result or several, with or without names."""
    if isinstance(results, Mapping):
        named = [(str(name), result) for name, result in results.items()]
    elif isinstance(results, Sequence) and not isinstance(results, str | bytes):
        named = [("", result) for result in results]
    else:
        named = [("", results)]
    if not named:
        raise wrong("results", "hold at least one result", "none")
    for _, result in named:
        if type(result) not in _SECTIONS:
            then = "Read a saved one by absentia.load(path) first." if isinstance(result, str | Path) else ""
            must = "hold explanations, audits or learned baselines"
            raise wrong("results", must, type(result).__name__, then)
    return named


def _section(name: str, result: Result) -> Section:
    """Make a result ready; a name given comes before what it is."""
    section: Section = _SECTIONS[type(result)](result)
    return replace(section, heading=f"{name}: {section.heading}") if name else section


def _write(path: Path, text: str) -> None:
    """Write a file that is complete whenever it exists."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
