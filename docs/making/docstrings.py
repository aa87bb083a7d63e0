"""Prepare docstrings for the API reference: fence examples, and link the keys of references."""

from __future__ import annotations

import re
from typing import Any

import griffe

_KEY = re.compile(r"(?<![\w\])])\[(?P<key>[a-z]+\d{4}[a-z]+)\](?![\[(])")
# Consecutive paragraphs that start with ">>>", which Markdown would show as quotations.
_EXAMPLES = re.compile(r"(?:^>>>.*\n(?:.+\n)*\n?)+", re.MULTILINE)


class DocstringMarkdown(griffe.Extension):
    """Rewrite every docstring before it is rendered."""

    def on_instance(self, *, obj: griffe.Object, **_rest: Any) -> None:
        """Rewrite the docstring of a module, class, function or attribute."""
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)


def as_markdown(docstring: str) -> str:
    """Link references, and fence examples outside of an Examples section, which griffe renders itself."""
    linked = _KEY.sub(r"[\g<key>][]", docstring)
    if "Examples\n---" in linked:
        return linked
    fenced = _EXAMPLES.sub(lambda found: f"```pycon\n{found[0].rstrip()}\n```\n\n", f"{linked}\n")
    return fenced.rstrip()
