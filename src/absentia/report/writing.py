"""Writing the report: results become sections, sections become one HTML page.

The page holds its styles, scripts and data, and its content security policy allows nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

from absentia.audit import Audit, CrossAudit
from absentia.errors import wrong
from absentia.explanation import Explanation
from absentia.learning import LearnedBaseline
from absentia.report.sections import Section, audit_section, baseline_section, cross_section, explanation_section
from absentia.results import check_folder, count_of, with_error, write_whole, written
from absentia.version import __version__

_SECTIONS: dict[type, Any] = {
    Explanation: explanation_section,
    Audit: audit_section,
    CrossAudit: cross_section,
    LearnedBaseline: baseline_section,
}
_LIBRARIES = ("vendor/d3.min.js", "vendor/plot.umd.min.js")
SCRIPTS = (*_LIBRARIES, "charts.js", "explanation.js", "audit.js", "baseline.js", "report.js")
# The charting library adds this style to each of its charts, so the policy must allow it.
_CHART_STYLE = "vendor/plot.inline.css"


def write_report(results: Any, path: str | Path, *, title: str | None = None) -> Path:
    """Write explanations, audits and learned baselines to one HTML file that any browser opens, without a network.

    Explanations come first, each with its answer in one sentence and its picture, then audits, then baselines. The
    file is complete whenever it exists. Large results are trimmed, and the page says to what.

    Parameters
    ----------
    results : Explanation, Audit, CrossAudit, LearnedBaseline, sequence or mapping
        One result, several, or several by name, which is shown in their headings.
    path : str or Path
        The file to write.
    title : str, optional
        Title of the page.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import tempfile
    >>> explanation = ab.explain(lambda rows: rows.prod(1), [[2.0, 3.0]], absence=1.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = ab.write_report(explanation, f"{folder}/report.html", title="A product")
    ...     "<title>A product</title>" in page.read_text(encoding="utf-8")
    True
    """
    named, target = _by_name(results), Path(path)
    if target.is_dir():
        raise wrong("path", "name a file", f"the folder {target}", f"Write to {target / 'report.html'}, for example.")
    check_folder("path", target)
    sections = []
    for name, result in sorted(named, key=lambda one: list(_SECTIONS).index(type(one[1]))):
        section = _SECTIONS[type(result)](result)
        sections.append(replace(section, heading=f"{name}: {section.heading}") if name else section)
    text = render_page(title or "What absence means to the model", sections)
    write_whole(target, lambda there: there.write_text(text, encoding="utf-8"))
    return target


def _by_name(results: Any) -> list[tuple[str, Any]]:
    """Return results with their names, which are empty where none are given."""
    if isinstance(results, Mapping):
        named = [(str(name), result) for name, result in results.items()]
    else:
        several = isinstance(results, Sequence) and not isinstance(results, str | bytes)
        named = [("", result) for result in (results if several else [results])]
    if not named:
        raise wrong("results", "hold at least one result", "none")
    for _, result in named:
        if type(result) not in _SECTIONS:
            then = "Read a saved result with absentia.load(path) first." if isinstance(result, str | Path) else ""
            raise wrong("results", "hold explanations, audits or learned baselines", type(result).__name__, then)
    return named


def render_page(title: str, sections: Sequence[Section]) -> str:
    """Return the HTML of the page."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    scripts, style = [_asset(name) for name in SCRIPTS], _asset("report.css")
    policy = (
        "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:",
        f"script-src {' '.join(map(_hash, scripts))}",
        f"style-src {_hash(style)} {_hash(_asset(_CHART_STYLE))}",
        "require-trusted-types-for 'script'",  # no text becomes markup
    )
    templates = Environment(
        loader=PackageLoader("absentia.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters["count_of"] = count_of
    templates.globals |= {"with_error": with_error, "written": written}
    return templates.get_template("report.html.jinja").render(
        title=title,
        sections=sections,
        policy="; ".join(policy),
        style=style,
        scripts=scripts,
        data=json_block([{"kind": section.kind, **section.data} for section in sections]),
        version=__version__,
    )


def json_block(data: Any) -> str:
    """Return JSON that can stand inside a script element: no text in it can end that element."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


@lru_cache(maxsize=16)
def _asset(name: str) -> str:
    return resources.files("absentia.report").joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """Return the hash by which the policy allows a script or style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
