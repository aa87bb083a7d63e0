"""Absences by word or number, as in ``absence="mean"``, ``"blur:2"`` or ``0.0``; and the usual ones for data."""

from collections.abc import Callable
from typing import Any

from absentia.absences.fixed import Baseline, Blur, Marginal, Noise
from absentia.absences.gaussian import GaussianConditional
from absentia.absences.neighbours import NearestNeighbours
from absentia.absences.protocol import Absence, check_absence
from absentia.data import Table, check_rows
from absentia.errors import AbsentiaError, wrong
from absentia.players import Players

WORDS = ("zero", "mean", "median", "mode", "blur", "noise", "marginal", "gaussian", "neighbours")
# These compute values between the codes of categories, which stand for no category.
_NO_CATEGORIES = ("mean", "blur", "noise", "gaussian")
_WITHOUT_NUMBER = ("zero", "mean", "median", "mode")
# The most rows of the background, for a word without a number.
_MARGINAL_DRAWS = 100
# A covariance of more entries takes long to invert.
_MOST_GAUSSIAN_ENTRIES = 1024


def named_absence(word: Any, data: Table = None, *, players: Players | None = None, seed: int = 0) -> Absence:
    """Return the absence that a number or a word such as "blur:2" names; an absence is returned as it is.

    The players know which entries hold categories.
    """
    if not isinstance(word, str):
        plain = isinstance(word, int | float) and not isinstance(word, bool)
        return Baseline(word) if plain or getattr(word, "shape", None) == () else check_absence(word)
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
        raise wrong("absence", "keep to the categories of a table that has some", name, then)
    if name in _WITHOUT_NUMBER and detail:
        raise wrong("absence", f"be {name} without a number", word)
    if name == "zero":
        return Baseline(0.0)
    if name == "blur" and detail:
        return Blur(_number(detail, wrong("absence", "give the blur a number of pixels, as in blur:2", word)))
    if data is None and (name != "blur" or players is None):
        then = "Pass data=…, rows such as those that the model was trained on."
        raise AbsentiaError(f"The absence {word!r} is computed from data. {then}")
    if name == "blur":  # by a twentieth of the image, which removes detail and keeps shapes
        shape = check_rows(data).shape if players is None else players.shape
        return Blur(max(1.0, min(shape[-2:]) / 20))
    if detail and not detail.isdecimal():
        raise wrong("absence", f"give {name} a whole number, as in {name}:10", word)
    rows, count = check_rows(data), int(detail or 10)
    most = _MARGINAL_DRAWS if len(rows) > _MARGINAL_DRAWS else None
    categorical = () if players is None else players.categorical
    makers: dict[str, Callable[[], Absence]] = {
        "mean": lambda: Baseline.mean(rows),
        "median": lambda: Baseline.median(rows, categorical=categorical),
        "mode": lambda: Baseline.mode(rows, categorical=categorical),
        "noise": lambda: Noise(rows, draws=count, seed=seed),
        "marginal": lambda: Marginal(rows, draws=count if detail else most, seed=seed),
        "gaussian": lambda: GaussianConditional(rows, draws=count, seed=seed),
        "neighbours": lambda: NearestNeighbours(rows, neighbours=count if detail else min(10, len(rows)), seed=seed),
    }
    return makers[name]()


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


def _number(word: str, refused: AbsentiaError) -> float:
    try:
        return float(word)
    except ValueError as error:
        raise refused from error
