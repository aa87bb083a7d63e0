"""Docstrings as Markdown for the reference: examples become blocks of code, keys of references become links."""

from __future__ import annotations

import re
from typing import Any

import griffe

_KEY = re.compile(r"(?<![\w\])])\[(?P<key>[a-z]+\d{4}[a-z]+)\](?![\[(])")


class DocstringMarkdown(griffe.Extension):
    """Rewrites every docstring before it is rendered: ``>>>`` at the start of a line would be a quotation."""

    def on_instance(self, *, obj: griffe.Object, **_rest: Any) -> None:
        """Rewrite the docstring of a module, class, function or attribute."""
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)


def as_markdown(docstring: str) -> str:
    """Fence the paragraphs that are examples, and link references in the others."""
    return "\n\n".join(_paragraph(one) for one in _paragraphs(docstring))


def _paragraphs(docstring: str) -> list[str]:
    """Split at empty lines; an example goes on over them while its next paragraph is one too."""
    found: list[str] = []
    for paragraph in docstring.split("\n\n"):
        if found and paragraph.startswith(">>>") and found[-1].startswith(">>>"):
            found[-1] += f"\n\n{paragraph}"
        else:
            found.append(paragraph)
    return found


def _paragraph(text: str) -> str:
    if text.lstrip().startswith(">>>"):
        return f"```pycon\n{text}\n```"
    return _KEY.sub(r"[\g<key>][]", text)
