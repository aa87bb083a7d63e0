"""Make the home page of the README when the site is built."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

README = Path(__file__).parents[2] / "README.md"
_LINK = re.compile(r"\[(?P<text>[^\]]+)\]\((?P<target>[^)]+)\)")


def on_page_markdown(markdown: str, page: Any, **_rest: Any) -> str:
    """Return the README for the home page; mkdocs calls this for every page."""
    return as_page(README.read_text(encoding="utf-8")) if page.file.src_uri == "index.md" else markdown


def as_page(readme: str) -> str:
    """Make links to docs/ relative to it, and drop links to files that are not part of the site."""

    def link(found: re.Match[str]) -> str:
        text, target = found["text"], found["target"]
        if target.startswith("docs/"):
            return f"[{text}]({target.removeprefix('docs/')})"
        return found[0] if target.startswith("http") else text

    return _LINK.sub(link, readme)
