"""Absences named by a word or a number, as in ``absence="mean"``, ``"blur:2"`` or ``0.0``.

`WORDS` maps each word to its maker, a function that returns the absence for a `Request`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from absentia.absences.fixed import Baseline, Blur, Marginal, Noise
from absentia.absences.gaussian import GaussianConditional
from absentia.absences.neighbours import NearestNeighbours
from absentia.absences.protocol import Absence, check_absence
from absentia.data import Categorical, CheckedRows, Rows, Table, column_groups, has_gaps, most_frequent, read_rows
from absentia.errors import AbsentiaError, wrong
from absentia.players import Players

# These words compute values between the codes of categories, which stand for no category.
_NO_CATEGORIES = ("blur", "noise")
_WITHOUT_NUMBER = ("zero", "mean", "median", "mode", "missing")

# The number of draws or neighbours, for a word without a number.
_DRAWS = 10
# The most rows of the background, for a word without a number.
_MARGINAL_DRAWS = 100
# A blur that removes detail but keeps shapes is by default as wide as the image's shorter side divided by this.
_BLURS_PER_SIDE = 20
# The least width of this blur, in pixels.
_LEAST_BLUR = 1.0
# The covariance of more entries takes long to invert, so it is not one of the usual absences.
_MOST_GAUSSIAN_ENTRIES = 1024


@dataclass(frozen=True, eq=False)
class Request:
    """An absence requested by a word, with the data it can be made from."""

    word: str  # as it was written, such as "noise:3"
    name: str  # the word before the colon
    detail: str  # what follows the colon, or nothing
    data: Table | CheckedRows
    players: Players | None
    seed: int

    @cached_property
    def rows(self) -> Rows:
        """The data as rows, or an error if there are none."""
        if self.data is None:
            then = "Pass data=…, rows such as those that the model was trained on."
            raise AbsentiaError(f"The absence {self.word!r} is computed from data. {then}")
        return read_rows(self.data)

    @property
    def checked_rows(self) -> CheckedRows:
        """The data in the form that an absence does not check again."""
        return CheckedRows(self.rows)

    @property
    def number(self) -> int | None:
        """The whole number after the colon; None if there is none."""
        if not self.detail:
            return None
        if not self.detail.isdecimal():
            raise wrong("absence", f"give {self.name} a whole number, as in {self.name}:10", self.word)
        return int(self.detail)

    @property
    def categorical(self) -> Categorical:
        """The categorical entries, according to the players."""
        if self.players is None:
            return ()
        return self.players.categorical


def named_absence(
    word: Any, data: Table | CheckedRows = None, *, players: Players | None = None, seed: int = 0
) -> Absence:
    """Return the absence for a number or a word such as "blur:2"; an absence is returned unchanged.

    The players know which entries are categorical.
    """
    if isinstance(word, str):
        return _absence_of_word(word, data, players, seed)
    is_number = isinstance(word, int | float) and not isinstance(word, bool)
    is_scalar_array = getattr(word, "shape", None) == ()
    if is_number or is_scalar_array:
        return Baseline(word)
    return check_absence(word)


def usual_words(data: Table | CheckedRows, players: Players, takes_missing: bool = False) -> list[str]:
    """Return the words of the usual absences for a kind of data; "missing" if the model ``takes_missing`` values."""
    words = _usual_words(data, players)
    if takes_missing and not players.is_image:
        words.append("missing")
    return words


def _usual_words(data: Table | CheckedRows, players: Players) -> list[str]:
    """Return the words of the usual absences that any model takes."""
    if players.integer:
        return ["mode", "marginal"]
    if players.is_image:
        return ["zero", "mean", "blur", "noise", "marginal"]
    if players.masks_categories:
        return ["median", "mode", "marginal", "neighbours"]
    rows = read_rows(data)
    words = ["zero", "mean", "median", "marginal"]
    if len(rows) >= 2 and rows[0].numel() <= _MOST_GAUSSIAN_ENTRIES and not has_gaps(rows):
        words.append("gaussian")
    return words


def split_word(word: str) -> tuple[str, str]:
    """Split what a user writes as ``name:detail``; the detail is "" without a colon."""
    name, _colon, detail = word.partition(":")
    return name, detail


def _absence_of_word(word: str, data: Table | CheckedRows, players: Players | None, seed: int) -> Absence:
    """Return the absence that a word names, which may have a number after a colon, or be a number itself."""
    name, detail = split_word(word)
    lacks_detail = word == f"{name}:"
    if name == "learned":
        then = "Call learn_baseline(model, x, y), and pass its result as the absence."
        raise AbsentiaError(f"A learned absence has to be learned first. {then}")
    if name not in WORDS or lacks_detail:
        must = f"be an absence, a number, or one of {', '.join(WORDS)}, learned"
        refused = wrong("absence", must, repr(word), "Some take a number, as in blur:2 or marginal:50.")
        return Baseline(_number(word, refused))
    if name in _NO_CATEGORIES and players is not None and players.masks_categories:
        then = "Use mean or median (which take the most frequent category), mode, marginal or neighbours."
        raise wrong("absence", "keep to the categories of the table's categorical columns", name, then)
    if name in _WITHOUT_NUMBER and detail:
        raise wrong("absence", f"be {name} without a number", word)
    return WORDS[name](Request(word, name, detail, data, players, seed))


def _zero(request: Request) -> Absence:
    """Return zero for every entry."""
    return Baseline(0.0)


def _mean(request: Request) -> Absence:
    """Return the mean of the rows, and the most frequent category of categorical entries."""
    return Baseline.mean(request.checked_rows, categorical=request.categorical)


def _median(request: Request) -> Absence:
    """Return the median of the rows, and the most frequent category of categorical entries."""
    return Baseline.median(request.checked_rows, categorical=request.categorical)


def _mode(request: Request) -> Absence:
    """Return the most frequent value of each entry."""
    return Baseline.mode(request.checked_rows, categorical=request.categorical)


def _missing(request: Request) -> Absence:
    """Return missing values, which some models take; the model decodes NaN as a missing category, too."""
    return Baseline(math.nan)


def _blur(request: Request) -> Absence:
    """Return a blur with the given number of pixels, or one that suits the size of the images."""
    if request.detail:
        refused = wrong("absence", "give the blur a number of pixels, as in blur:2", request.word)
        return Blur(_number(request.detail, refused))
    shape = request.rows.shape if request.players is None else request.players.shape
    return Blur(max(_LEAST_BLUR, min(shape[-2:]) / _BLURS_PER_SIDE))


def _noise(request: Request) -> Absence:
    """Return noise in the range of the rows."""
    draws = _DRAWS if request.number is None else request.number
    return Noise(request.checked_rows, draws=draws, seed=request.seed)


def _marginal(request: Request) -> Absence:
    """Return rows of the data; all of them if they are few."""
    draws = request.number
    if draws is None and len(request.rows) > _MARGINAL_DRAWS:
        draws = _MARGINAL_DRAWS
    return Marginal(request.checked_rows, draws=draws, seed=request.seed)


def _gaussian(request: Request) -> Absence:
    """Return draws from a Gaussian fitted to the rows, given the present entries."""
    rows = request.rows.clone()
    # A Gaussian knows no categories: an absent one is the most frequent, and a present one says nothing of others.
    flat = rows.flatten(1)
    for columns in column_groups(request.categorical, flat.shape[1]):
        flat[:, columns] = most_frequent(flat[:, columns])
    draws = _DRAWS if request.number is None else request.number
    return GaussianConditional(CheckedRows(rows), draws=draws, seed=request.seed)


def _neighbours(request: Request) -> Absence:
    """Return the rows that are nearest in the present entries."""
    neighbours = min(_DRAWS, len(request.rows)) if request.number is None else request.number
    return NearestNeighbours(request.checked_rows, neighbours=neighbours, seed=request.seed)


def _number(text: str, refused: AbsentiaError) -> float:
    """Read a number, or raise the given error for any other text."""
    try:
        return float(text)
    except ValueError as error:
        raise refused from error


Maker: TypeAlias = Callable[[Request], Absence]

# The words that name an absence, with their makers. Add one with `WORDS["word"] = maker`.
WORDS: dict[str, Maker] = {
    "zero": _zero,
    "mean": _mean,
    "median": _median,
    "mode": _mode,
    "missing": _missing,
    "blur": _blur,
    "noise": _noise,
    "marginal": _marginal,
    "gaussian": _gaussian,
    "neighbours": _neighbours,
}
