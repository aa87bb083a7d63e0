"""Render sections as one HTML file that contains its styles, scripts and data.

Its content security policy allows nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from absentia.report.section import Section
from absentia.text import count_of, with_error, written
from absentia.version import __version__

if TYPE_CHECKING:
    from jinja2 import Environment

# The scripts of the page, each after those that it uses.
SCRIPTS = (
    "vendor/d3.min.js",
    "vendor/plot.umd.min.js",
    "symbols.js",
    "axes.js",
    "charts.js",
    "set_matrix.js",
    "heat_map.js",
    "explanation.js",
    "audit.js",
    "baseline.js",
    "report.js",
)
_STYLE = "report.css"
# The charting library adds this style to each of its charts, so the policy must allow it.
_CHART_STYLE = "vendor/plot.inline.css"


def render_page(title: str, sections: Sequence[Section]) -> str:
    """Return the HTML of the page."""
    scripts = [_asset(name) for name in SCRIPTS]
    style = _asset(_STYLE)
    data = json_block([{"kind": section.kind, **section.data} for section in sections])
    return (
        _templates()
        .get_template("report.html.jinja")
        .render(
            title=title,
            sections=sections,
            policy=_policy(scripts, style),
            style=style,
            scripts=scripts,
            data=data,
            version=__version__,
        )
    )


def _policy(scripts: Sequence[str], style: str) -> str:
    """Return the content security policy: the page's own scripts and styles, images in data URLs, no network."""
    rules = (
        "default-src 'none'",
        "base-uri 'none'",
        "form-action 'none'",
        "img-src data:",
        f"script-src {' '.join(map(_hash, scripts))}",
        f"style-src {_hash(style)} {_hash(_asset(_CHART_STYLE))}",
        "require-trusted-types-for 'script'",  # text never becomes markup
    )
    return "; ".join(rules)


def _hash(text: str) -> str:
    """Return the hash by which the policy allows a script or style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _templates() -> Environment:
    """Return the template environment, which escapes all text and raises an error for an undefined name."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    templates = Environment(
        loader=PackageLoader("absentia.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters["count_of"] = count_of
    templates.globals["with_error"] = with_error
    templates.globals["written"] = written
    return templates


def json_block(data: Any) -> str:
    """Return JSON that is safe inside a script element: no text in it can close the element."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate({ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"})


@lru_cache(maxsize=16)
def _asset(name: str) -> str:
    """Return the text of a script or style sheet of the package."""
    return resources.files("absentia.report").joinpath(name).read_text(encoding="utf-8")
