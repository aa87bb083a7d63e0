"""Decoder for files before 0.2, whose records held readouts and stops in words.

This is the only place that reads words of the library again. It returns fields as newer files hold them.
"""

from __future__ import annotations

from typing import Any

_ONE_CLASS = " of class "
# The words for samples that have a class each, and the subject that they stand for.
_PER_SAMPLE = {
    " of each sample's class": "own classes",
    " of the class predicted on the full sample": "predicted classes",
}
_ONLY_OUTPUT = "the output as it is"
_OUTPUT = "output "
# The end of a list of classes that was cut off.
_MORE = "…"
# How the words of stops begin.
_INTERRUPTED = "interrupted"
_CALLBACK = "the callback returned True"
_LIMIT_OF_SEARCH = "the limit of "
_LIMIT_OF_AUDIT = "time limit of "


def note_from_words(text: str) -> dict[str, Any]:
    """Return the fields of a note on a readout: what is read, and what follows a semicolon as remarks."""
    description, *remarks = text.split("; ")
    return _what_is_read(description) | {"remarks": remarks}


def _what_is_read(text: str) -> dict[str, Any]:
    """Return the fields of a note without remarks."""
    for words, subject in _PER_SAMPLE.items():
        quantity, separator, rest = text.partition(words)
        if separator:
            classes = rest.removeprefix(" (").removesuffix(")").split(", ") if rest else []
            listed = [name for name in classes if name != _MORE]
            more = len(listed) < len(classes)
            return {"subject": subject, "quantity": quantity, "classes": listed, "more_classes": more}
    quantity, separator, name = text.partition(_ONE_CLASS)
    if separator:
        return {"subject": "one class", "quantity": quantity, "name": name}
    if text == _ONLY_OUTPUT:
        return {"subject": "output"}
    if text.startswith(_OUTPUT):
        return {"subject": "output", "name": text.removeprefix(_OUTPUT)}
    return {"subject": "other", "quantity": text}


def stop_from_words(text: str) -> dict[str, Any] | None:
    """Return the fields of an early stop of an audit or a search; None if the words do not mention one."""
    if text.startswith(_INTERRUPTED):
        return {"reason": "interrupted"}
    if text.startswith(_CALLBACK):
        return {"reason": "callback"}
    for words in (_LIMIT_OF_SEARCH, _LIMIT_OF_AUDIT):
        if text.startswith(words):
            return {"reason": "time limit", "seconds": float(text.removeprefix(words).split()[0])}
    return None


def search_end_from_words(text: str) -> dict[str, Any]:
    """Return the fields of the end of a search: the words themselves, and who or what cut it short."""
    return {"kind": "worded", "words": text, "stop": stop_from_words(text)}


def upgraded_record(record: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a record with a note on the readout in the place of words."""
    if "readout" not in record:
        return record
    others = {name: value for name, value in record.items() if name != "readout"}
    return others | {"readout_note": note_from_words(record["readout"])}


def upgraded_audit_record(record: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of an audit's record with values in the place of words."""
    others = {name: value for name, value in upgraded_record(record).items() if name != "stopped"}
    if "stopped" not in record:
        return others
    return others | {"stop": stop_from_words(record["stopped"])}


def upgraded_learning_record(record: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of the record of learning with values in the place of words."""
    others = {name: value for name, value in upgraded_record(record).items() if name != "stopped"}
    if "stopped" not in record:
        return others
    return others | {"end": search_end_from_words(record["stopped"])}
