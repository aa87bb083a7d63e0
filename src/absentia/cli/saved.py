"""Learned baselines written with the coding of the table that they were learned on."""

from __future__ import annotations

import tempfile
from pathlib import Path

from absentia.learning import LearnedBaseline
from absentia.loading import Coding
from absentia.saving import read_tensors, write_tensors


def save_learned(learned: LearnedBaseline, path: Path, coding: Coding | None) -> None:
    """Write a learned baseline, and the columns and categories that its values stand for; all of it or nothing."""
    if coding is None:
        learned.save(path)
        return
    with tempfile.TemporaryDirectory() as folder:
        learned.save(Path(folder) / "learned")
        tensors, header = read_tensors(Path(folder) / "learned")
    write_tensors(path, tensors, header | {"coding": coding.to_header()})
