"""Absences from words and saved files."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import absentia as ab
from absentia.absences.words import named_absence, split_word, usual_words
from absentia.cli.file_checks import check_file
from absentia.cli.problem import Problem
from absentia.cli.saved_words import is_saved_file, split_name
from absentia.errors import wrong
from absentia.runtime.gaps_in_rows import takes_missing
from absentia.runtime.row_count import RowCount
from absentia.task_inputs import model_rows


def load_absences(words: Sequence[str], problem: Problem) -> dict[str, ab.Absence]:
    """Make absences for the chosen samples from words or saved files, which may have a name, as in ``name=word``."""
    absences = dict[str, ab.Absence]()
    for word in words:
        name, spec = split_name(word)
        if name in absences:
            then = f"Give one of them another name, as in other={spec}."
            raise wrong("absence", "have a name of its own", f"{name!r} twice", then)
        path = Path(spec)
        absences[name] = _load_saved(path) if is_saved_file(path) else make_absence(spec, problem)
    return absences


def _load_saved(path: Path) -> Any:
    """Load a saved absence."""
    saved = ab.load(check_file("absence", path))
    if not isinstance(saved, ab.Absence):
        raise wrong("absence", "be a saved baseline, imputer or surrogate", f"{path}, a saved {saved.KIND}")
    return saved


def usual_absences(problem: Problem) -> dict[str, ab.Absence]:
    """Make the usual absences for the chosen samples."""
    samples = model_rows(problem.model, problem.samples.x, problem.players)
    may_be_missing = takes_missing(problem.model, samples, problem.players, RowCount())
    words = usual_words(problem.samples.background, problem.players, may_be_missing)
    if "neighbours" in words and len(_rows_for("neighbours", problem)) == 0:
        words.remove("neighbours")
    return {word: make_absence(word, problem) for word in words}


def make_absence(word: str, problem: Problem) -> ab.Absence:
    """Make the absence for a word from the background, in the dtype of the samples, as the library does."""
    rows = _rows_for(word, problem)
    if len(rows) == 0:
        then = "Name a --background, or choose fewer samples."
        raise wrong("background", "hold rows besides the chosen samples for neighbours", "none", then)
    samples = model_rows(problem.model, problem.samples.x[problem.chosen], problem.players)
    return named_absence(word, rows.to(samples), players=problem.players, seed=problem.inputs.seed)


def _rows_for(word: str, problem: Problem) -> Tensor:
    """Return the background, for neighbours without the chosen samples, which would be their own nearest rows."""
    rows = problem.samples.background
    method, _detail = split_word(word)
    if method != "neighbours" or not problem.samples.background_is_data:
        return rows
    is_chosen = torch.isin(torch.arange(len(rows)), problem.chosen)
    return rows[~is_chosen]
