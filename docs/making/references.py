"""Write the entries of references.bib into the page of references when the site is built."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

BIBLIOGRAPHY = Path(__file__).parents[1] / "references.bib"
_ENTRY = re.compile(r"@\w+\{(?P<key>\w+),\n(?P<fields>.*?)\n\}", re.DOTALL)
_FIELD = re.compile(r"^\s*(?P<name>\w+)\s*=\s*\{(?P<value>.*)\},?$", re.MULTILINE)
_PLACE = "<!-- references -->"


def read_references() -> dict[str, dict[str, str]]:
    """Return the fields of every entry by key, without LaTeX's braces and dashes."""
    return {
        entry["key"]: {field["name"]: _plain(field["value"]) for field in _FIELD.finditer(entry["fields"])}
        for entry in _ENTRY.finditer(BIBLIOGRAPHY.read_text(encoding="utf-8"))
    }


def _plain(value: str) -> str:
    return value.replace("$", "").replace("{", "").replace("}", "").replace("--", "–")


def cite(key: str, fields: dict[str, str]) -> str:
    """Return one entry in Markdown, under a heading with its key as the anchor."""
    names = [" ".join(reversed(name.split(", "))) for name in fields["author"].split(" and ")]
    families = [name.split(", ")[0] for name in fields["author"].split(" and ")]
    short = " and ".join(families) if len(families) <= 2 else f"{families[0]} and others"
    where = fields.get("journal") or fields.get("booktitle", "")
    volume = f" {fields['volume']}" if "volume" in fields else ""
    number = f" ({fields['number']})" if "number" in fields else ""
    pages = f", {fields['pages']}" if "pages" in fields else ""
    heading = f"## {short}, {fields['year']} {{#{key}}}"
    return f"{heading}\n\n{', '.join(names)}: *{fields['title']}*. {where}{volume}{number}{pages}.\n\n`{key}`\n"


def on_page_markdown(markdown: str, page: Any, **_rest: Any) -> str:
    """Insert the references; mkdocs calls this for every page."""
    if page.file.src_uri != "references.md":
        return markdown
    entries = sorted(read_references().items(), key=lambda entry: entry[1]["author"])
    return markdown.replace(_PLACE, "\n".join(cite(key, fields) for key, fields in entries))
