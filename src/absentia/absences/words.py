"""Absences named by a word or a number, as in ``absence="mean"``, ``"blur:2"`` or ``0.0``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from absentia.absences.fixed import Baseline, Blur, Marginal, Noise
from absentia.absences.gaussian import GaussianConditional
from absentia.absences.neighbours import NearestNeighbours
from absentia.absences.protocol import Absence, check_absence
from absentia.data import Rows, Table, check_rows
from absentia.errors import AbsentiaError, wrong
from absentia.players import Players

WORDS = ("zero", "mean", "median", "mode", "blur", "noise", "marginal", "gaussian", "neighbours")
# These compute values between the codes of categories, which stand for no category.
_NO_CATEGORIES = ("mean", "blur", "noise", "gaussian")
_WITHOUT_NUMBER = ("zero", "mean", "median", "mode")

# The number of draws or neighbours, for a word without a number.
_DRAWS = 10
# The most rows of the background, for a word without a number.
_MARGINAL_DRAWS = 100
# A blur that removes detail but keeps shapes is by default as wide as the image's shorter side divided by this, ...
_BLURS_PER_SIDE = 20
# ... but at least this many pixels.
_LEAST_BLUR = 1.0
# The covariance of more entries takes long to invert, so it is not one of the usual absences.
_MOST_GAUSSIAN_ENTRIES = 1024


def named_absence(word: Any, data: Table = None, *, players: Players | None = None, seed: int = 0) -> Absence:
    """Return the absence that a number or a word such as "blur:2" names; an absence is returned as it is.

    The players know which entries hold categories.
    """
    if isinstance(word, str):
        return _absence_of_word(word, data, players, seed)
    is_number = isinstance(word, int | float) and not isinstance(word, bool)
    is_scalar_array = getattr(word, "shape", None) == ()
    if is_number or is_scalar_array:
        return Baseline(word)
    return check_absence(word)


def usual_words(data: Table, players: Players) -> list[str]:
    """Return the words of the usual absences for a kind of data."""
    if players.integer:
        return ["mode", "marginal"]
    if players.is_image:
        return ["zero", "mean", "blur", "noise", "marginal"]
    if players.masks_categories:
        return ["median", "mode", "marginal", "neighbours"]
    rows = check_rows(data)
    words = ["zero", "mean", "median", "marginal"]
    if len(rows) >= 2 and rows[0].numel() <= _MOST_GAUSSIAN_ENTRIES:
        words.append("gaussian")
    return words


def _absence_of_word(word: str, data: Table, players: Players | None, seed: int) -> Absence:
    """Return the absence that a word names, which may have a number after a colon, or be a number itself."""
    name, colon, detail = word.partition(":")
    if name == "learned":
        then = "Call learn_baseline(model, x, y), and pass its result as the absence."
        raise AbsentiaError(f"A learned absence has to be learned first. {then}")
    if name not in WORDS or (colon and not detail):
        must = f"be an absence, a number, or one of {', '.join(WORDS)}, learned"
        refused = wrong("absence", must, repr(word), "Some take a number, as in blur:2 or marginal:50.")
        return Baseline(_number(word, refused))
    if name in _NO_CATEGORIES and players is not None and players.masks_categories:
        then = "Use median (which takes the most frequent category), mode, marginal or neighbours."
        raise wrong("absence", "keep to the categories of the table's categorical columns", name, then)
    if name in _WITHOUT_NUMBER and detail:
        raise wrong("absence", f"be {name} without a number", word)
    if name == "zero":
        return Baseline(0.0)
    if name == "blur":
        return _blur(word, detail, data, players)
    if data is None:
        raise _lacks_data(word)
    if detail and not detail.isdecimal():
        raise wrong("absence", f"give {name} a whole number, as in {name}:10", word)
    number = int(detail) if detail else None
    return _absence_of_rows(name, number, check_rows(data), players, seed)


def _blur(word: str, pixels: str, data: Table, players: Players | None) -> Blur:
    """Return the blur by a number of pixels, or one that suits the size of the images."""
    if pixels:
        return Blur(_number(pixels, wrong("absence", "give the blur a number of pixels, as in blur:2", word)))
    if players is not None:
        shape = players.shape
    elif data is not None:
        shape = check_rows(data).shape
    else:
        raise _lacks_data(word)
    return Blur(max(_LEAST_BLUR, min(shape[-2:]) / _BLURS_PER_SIDE))


def _absence_of_rows(name: str, number: int | None, rows: Rows, players: Players | None, seed: int) -> Absence:
    """Return the absence that is computed from rows, with a number of draws or neighbours where it takes one."""
    categorical = () if players is None else players.categorical
    draws = _DRAWS if number is None else number
    neighbours = min(_DRAWS, len(rows)) if number is None else number
    background_rows = number
    if number is None and len(rows) > _MARGINAL_DRAWS:
        background_rows = _MARGINAL_DRAWS
    makers: dict[str, Callable[[], Absence]] = {
        "mean": lambda: Baseline.mean(rows),
        "median": lambda: Baseline.median(rows, categorical=categorical),
        "mode": lambda: Baseline.mode(rows, categorical=categorical),
        "noise": lambda: Noise(rows, draws=draws, seed=seed),
        "marginal": lambda: Marginal(rows, draws=background_rows, seed=seed),
        "gaussian": lambda: GaussianConditional(rows, draws=draws, seed=seed),
        "neighbours": lambda: NearestNeighbours(rows, neighbours=neighbours, seed=seed),
    }
    return makers[name]()


def _lacks_data(word: str) -> AbsentiaError:
    """Return the error for a word that needs data if there is none."""
    then = "Pass data=…, rows such as those that the model was trained on."
    return AbsentiaError(f"The absence {word!r} is computed from data. {then}")


def _number(text: str, refused: AbsentiaError) -> float:
    """Read a number; raise the error for text that is none."""
    try:
        return float(text)
    except ValueError as error:
        raise refused from error
