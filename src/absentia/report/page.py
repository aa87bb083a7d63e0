"""The report: turn results into the sections of a page, and write it to a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from absentia.arguments import checked
from absentia.auditing import Audit, CrossAudit
from absentia.errors import wrong
from absentia.explanation import Explanation
from absentia.learning import LearnedBaseline
from absentia.report.audit_section import audit_section, cross_section
from absentia.report.baseline_section import baseline_section
from absentia.report.explanation_section import explanation_section
from absentia.report.rendering import render_page
from absentia.report.section import Section
from absentia.report.terms_section import terms_section
from absentia.storage import check_folder, write_whole
from absentia.terms import Terms

# The function that makes the section of each kind of result, in the order of the page.
_SECTIONS: dict[type, Callable[[Any], Section]] = {
    Explanation: explanation_section,
    Terms: terms_section,
    Audit: audit_section,
    CrossAudit: cross_section,
    LearnedBaseline: baseline_section,
}


@checked
def write_report(results: Any, path: str | Path, *, title: str | None = None) -> Path:
    """Write explanations, terms, audits and learned baselines to one self-contained HTML file.

    The file opens in any browser without network access. Explanations come first, each with its answer in one
    sentence and a picture, followed by terms, audits and baselines. Large results are trimmed, and the page says
    which part it shows. An interrupted write never leaves an incomplete file.

    Parameters
    ----------
    results : Explanation, Terms, Audit, CrossAudit, LearnedBaseline, sequence or mapping
        One result, several results, or a mapping from names to results. Names are shown in the headings.
    path : str or Path
        The file to write.
    title : str, optional
        The title of the page.

    Examples
    --------
    >>> import tempfile
    >>> explanation = ab.explain(lambda rows: rows.prod(1), [[2.0, 3.0]], absence=1.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = ab.write_report(explanation, f"{folder}/report.html", title="A product")
    ...     "<title>A product</title>" in page.read_text(encoding="utf-8")
    True
    """
    named_results = _by_name(results)
    target = Path(path)
    if target.is_dir():
        raise wrong("path", "name a file", f"the folder {target}", f"Write to {target / 'report.html'}, for example.")
    check_folder("path", target)
    kinds = list(_SECTIONS)
    named_results.sort(key=lambda named: kinds.index(type(named[1])))
    sections = [_named_section(name, result) for name, result in named_results]
    text = render_page(title or "What absence means to the model", sections)
    write_whole(target, lambda file: file.write_text(text, encoding="utf-8"))
    return target


def _named_section(name: str, result: Any) -> Section:
    """Return the section of a result, with its name in the heading if it has one."""
    section = _SECTIONS[type(result)](result)
    if name:
        return replace(section, heading=f"{name}: {section.heading}")
    return section


def _by_name(results: Any) -> list[tuple[str, Any]]:
    """Return results with their names, which are empty unless a mapping is passed."""
    if isinstance(results, Mapping):
        named_results = [(str(name), result) for name, result in results.items()]
    elif isinstance(results, Sequence) and not isinstance(results, str | bytes):
        named_results = [("", result) for result in results]
    else:
        named_results = [("", results)]
    if not named_results:
        raise wrong("results", "hold at least one result", "none")
    for _, result in named_results:
        _check_result(result)
    return named_results


def _check_result(result: Any) -> None:
    """Raise an error unless the report has a section for this kind of result."""
    if type(result) in _SECTIONS:
        return
    then = ""
    if isinstance(result, str | Path):
        then = "Read a saved result with absentia.load(path) first."
    raise wrong("results", "hold explanations, terms, audits or learned baselines", type(result).__name__, then)
