"""The page: sections in templates; styles, scripts and data inside; and a policy that lets nothing else in."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from absentia.report.section import Section
from absentia.version import __version__

_LIBRARIES = ("vendor/d3.min.js", "vendor/plot.umd.min.js")
_SCRIPTS = (*_LIBRARIES, "charts.js", "explanation.js", "audit.js", "baseline.js", "report.js")
_STYLE = "report.css"
# What the charting library puts into each of its pictures: it must be allowed, and is by its hash.
_DRAWN_STYLE = "vendor/plot.inline.css"


@dataclass(frozen=True)
class Asset:
    """A style or script inside the page, and the hash that the policy knows it by."""

    text: str

    @property
    def hash(self) -> str:
        """The SHA-256 as a content-security-policy writes it."""
        return f"'sha256-{base64.b64encode(hashlib.sha256(self.text.encode()).digest()).decode()}'"

    def __html__(self) -> str:
        # Ours and the charting library's own: nothing here comes from data.
        return self.text


def render_page(title: str, sections: Sequence[Section]) -> str:
    """Make the whole page."""
    scripts, style, drawn = [_asset(name) for name in _SCRIPTS], _asset(_STYLE), _asset(_DRAWN_STYLE)
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src {' '.join(script.hash for script in scripts)}",
            f"style-src {style.hash} {drawn.hash}",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",  # no text ever becomes markup
        )
    )
    return (
        _templates()
        .get_template("report.html.jinja")
        .render(
            title=title,
            sections=sections,
            policy=Markup(policy),
            style=style,
            scripts=scripts,
            data=json_block([{"kind": section.kind, **section.data} for section in sections]),
            version=__version__,
        )
    )


def json_block(data: Any) -> Markup:
    r"""Write JSON that can stand inside a script element: no text in it can end that element.

    >>> json_block({"name": "</script>"})
    Markup('{"name":"\\u003c/script\\u003e"}')
    """
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


@lru_cache(maxsize=1)
def _templates() -> Environment:
    return Environment(
        loader=PackageLoader("absentia.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@lru_cache(maxsize=16)
def _asset(name: str) -> Asset:
    return Asset(resources.files("absentia.report").joinpath(name).read_text(encoding="utf-8"))
