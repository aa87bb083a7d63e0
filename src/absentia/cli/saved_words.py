"""Words that name absences, and the coding of tables in the saved ones among them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from absentia.absences.words import split_word
from absentia.errors import wrong
from absentia.storage import read_header

SAVED = (".absentia", ".safetensors")


def split_name(word: str) -> tuple[str, str]:
    """Split ``name=word``. The default name is the word without its number, or the stem of a saved file."""
    name, equals, spec = word.partition("=")
    if equals and name and spec and not Path(word).exists():
        return name, spec
    path = Path(word)
    if path.suffix in SAVED:
        return path.stem, word
    method, _detail = split_word(word)
    return method, word


def is_saved_file(path: Path) -> bool:
    """Return whether a word is meant as a saved file, which may be missing."""
    return path.suffix in SAVED or path.is_file()


def saved_coding(words: Sequence[str]) -> dict[str, Any] | None:
    """Return the coding of the tables that saved absences were made for, if any."""
    paths = [Path(split_name(word)[1]) for word in words]
    headers = [read_header(path) for path in paths if path.suffix in SAVED and path.is_file()]
    codings: list[dict[str, Any]] = [header["coding"] for header in headers if isinstance(header.get("coding"), dict)]
    if any(coding != codings[0] for coding in codings):
        raise wrong("absences", "be saved for the same columns and categories", "files for different ones")
    return codings[0] if codings else None
