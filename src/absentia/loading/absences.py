"""Absences from words and files: zero, mean, blur:2, a saved baseline; each with a name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from jaxtyping import Int
from torch import Tensor

from absentia.absence import (
    Absence,
    Baseline,
    Blur,
    GaussianConditional,
    Imputer,
    Marginal,
    NearestNeighbours,
    Noise,
    Surrogate,
)
from absentia.errors import wrong
from absentia.learning import LearnedBaseline
from absentia.loading.coding import Coding
from absentia.loading.samples import Samples
from absentia.loading.trust import check_file
from absentia.players import Players
from absentia.saving import read_tensors

# Rows of the background that the marginal absence takes, where it has more and the user names no number.
MARGINAL_DRAWS = 100
WORDS = ("zero", "mean", "median", "blur", "marginal", "noise", "gaussian", "neighbours")
# What calculates with values, and so makes numbers that are the code of no category.
_NO_CATEGORIES = ("mean", "blur", "noise", "gaussian")
_SAVED = (".absentia", ".safetensors")


def load_absences(
    words: Sequence[str], samples: Samples, players: Players, chosen: Int[Tensor, " samples"], seed: int = 0
) -> dict[str, Absence]:
    """Make the absences that words name, for the ``chosen`` samples.

    A word is ``zero``, ``mean``, ``median``, a number, ``blur[:sigma]``, ``marginal[:rows]``, ``noise[:draws]``,
    ``gaussian[:draws]``, ``neighbours[:rows]`` or a saved file; ``name=word`` names it otherwise.

    >>> x = torch.rand(5, 2)
    >>> samples = Samples(x, None, x, True, None, None, None)
    >>> load_absences(["zero", "half=0.5", "marginal:3"], samples, Players.features(2), torch.arange(5))
    {'zero': Baseline(0), 'half': Baseline(0.5), 'marginal': Marginal(3 of 5 rows)}
    """
    found: dict[str, Absence] = {}
    for word in words:
        name, spec = _split_name(word)
        if name in found:
            then = f"Name it otherwise, as in other={spec}."
            raise wrong("absence", "have a name of its own", f"{name!r} twice", then)
        found[name] = _load(spec, samples, players, chosen, seed)
    return found


def saved_coding(words: Sequence[str]) -> Coding | None:
    """Find how the tables of saved absences were coded, for others to be coded alike."""
    found: Coding | None = None
    for word in words:
        path = Path(_split_name(word)[1])
        if path.suffix not in _SAVED or not path.is_file():
            continue
        header = read_tensors(path)[1]
        if "coding" not in header:
            continue
        coding = Coding.read(header["coding"])
        if found is not None and found != coding:
            raise wrong("absences", "be saved for the same columns and categories", f"others in {path}")
        found = coding
    return found


def for_classes(absence: Absence, y: Int[Tensor, " samples"] | None) -> Absence:
    """Pick the baselines of the samples' classes, where a learned absence has one for each.

    >>> for_classes(Baseline(0.0), None)
    Baseline(0)
    """
    if not isinstance(absence, LearnedBaseline) or absence.share != "class":
        return absence
    if y is None:
        raise wrong("target", "be given for a baseline of each class", "none")
    return absence.of(y)


def _split_name(word: str) -> tuple[str, str]:
    """Take ``name=word`` apart; without a name the word, or the file's name, is it."""
    name, equals, spec = word.partition("=")
    if equals and name and spec and not Path(word).exists():
        return name, spec
    path = Path(word)
    return (path.stem if path.suffix in _SAVED else word.partition(":")[0]), word


def _load(spec: str, samples: Samples, players: Players, chosen: Tensor, seed: int) -> Absence:
    name, colon, detail = spec.partition(":")
    if name in WORDS and not (colon and not detail):
        if name in _NO_CATEGORIES and samples.categorical:
            then = "Use median (which takes the most frequent category), marginal or neighbours."
            raise wrong("absence", "keep to the categories of a table that has some", name, then)
        return _MAKERS[name](detail, samples, chosen, seed)
    number = _number(spec)
    if number is not None:
        return Baseline(number)
    path = Path(spec)
    if path.suffix in _SAVED or path.exists():
        return _read(check_file("absence", path), players)
    must = f"be a number, a saved file, or one of {', '.join(WORDS)}"
    raise wrong("absence", must, repr(spec), "Some take a number, as in blur:2 or marginal:50.")


def _read(path: Path, players: Players) -> Absence:
    """Read a saved absence, whichever the file holds."""
    header = read_tensors(path)[1]
    kind = header.get("kind", "baseline")
    if kind == "imputer":
        return Imputer.load(path)
    if kind == "surrogate":
        return Surrogate.load(path)
    if kind != "baseline" or "share" not in header:
        raise wrong("absence", "be a saved baseline, imputer or surrogate", f"{path}, a saved {kind}")
    learned = LearnedBaseline.load(path)
    if learned.names != players.names and sorted(learned.names) == sorted(players.names):
        must = f"be learned for the players in their order, {', '.join(players.names[:6])}"
        raise wrong("absence", must, f"{', '.join(learned.names[:6])} in {path}")
    return learned


def _zero(detail: str, samples: Samples, chosen: Tensor, seed: int) -> Absence:
    _no_detail("zero", detail)
    return Baseline(0.0)


def _mean(detail: str, samples: Samples, chosen: Tensor, seed: int) -> Absence:
    _no_detail("mean", detail)
    return Baseline.mean(samples.background)


def _median(detail: str, samples: Samples, chosen: Tensor, seed: int) -> Absence:
    _no_detail("median", detail)
    return Baseline.median(samples.background, categorical=samples.categorical)


def _blur(detail: str, samples: Samples, chosen: Tensor, seed: int) -> Absence:
    if detail:
        sigma = _number(detail)
        if sigma is None:
            raise wrong("absence", "give the blur a number of pixels, as in blur:2", f"blur:{detail}")
        return Blur(sigma)
    # A twentieth of the image, so that detail goes and shape stays, whatever the size.
    return Blur(max(1.0, min(samples.x.shape[-2:]) / 20))


def _marginal(detail: str, samples: Samples, chosen: Tensor, seed: int) -> Absence:
    rows = len(samples.background)
    draws = _count("marginal", detail) if detail else MARGINAL_DRAWS
    return Marginal(samples.background, draws=draws if detail or draws < rows else None, seed=seed)


def _noise(detail: str, samples: Samples, chosen: Tensor, seed: int) -> Absence:
    if not detail:
        return Noise(samples.background, seed=seed)
    return Noise(samples.background, draws=_count("noise", detail), seed=seed)


def _gaussian(detail: str, samples: Samples, chosen: Tensor, seed: int) -> Absence:
    draws = _count("gaussian", detail) if detail else None
    return GaussianConditional(samples.background, draws=draws, seed=seed)


def _neighbours(detail: str, samples: Samples, chosen: Tensor, seed: int) -> Absence:
    rows = samples.background
    if samples.background_is_data:  # a sample would be its own nearest row, and nothing of it removed
        kept = torch.ones(len(rows), dtype=torch.bool)
        kept[chosen] = False
        rows = rows[kept]
    if len(rows) == 0:
        then = "Name a --background, or fewer samples."
        raise wrong("background", "hold rows beside the chosen samples for neighbours", "none", then)
    count = _count("neighbours", detail) if detail else min(10, len(rows))
    return NearestNeighbours(rows, neighbours=count, seed=seed)


_MAKERS: dict[str, Callable[[str, Samples, Tensor, int], Absence]] = {
    "zero": _zero,
    "mean": _mean,
    "median": _median,
    "blur": _blur,
    "marginal": _marginal,
    "noise": _noise,
    "gaussian": _gaussian,
    "neighbours": _neighbours,
}


def _no_detail(name: str, detail: str) -> None:
    if detail:
        raise wrong("absence", f"be {name} without a number", f"{name}:{detail}")


def _count(name: str, detail: str) -> int:
    if not detail.isdecimal():
        raise wrong("absence", f"give {name} a whole number, as in {name}:10", f"{name}:{detail}")
    return int(detail)


def _number(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None
