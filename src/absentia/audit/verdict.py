"""The verdict of an audit in sentences: what each method removes and adds, who is best, and what to beware of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from absentia.audit.companions import Companions
from absentia.audit.estimates import SURE, Estimate, estimate
from absentia.audit.plausibility import FAR, Plausibility
from absentia.audit.removal import Removal
from absentia.audit.text import with_error

# Rounding that may make up so much of a strength is worth a word.
_MUCH_ROUNDING = 0.05


def judge(names: Sequence[str], removal: Removal) -> list[str]:
    """Say of each method what it removes and adds, the best one first, and then who is told apart from whom."""
    ranked = ranking(removal)
    sentences = [_judge_one(names[number], number, removal) for number in ranked]
    unmeasured = [name for number, name in enumerate(names) if number not in ranked]
    sentences += [f"{name} has no R: it brings a model of its own and masks no input." for name in unmeasured]
    if len(ranked) > 1:
        sentences.append(f"From the best to the worst (≈ not told apart): {_chain(names, ranked, removal)}.")
    return sentences


def ranking(removal: Removal) -> list[int]:
    """Order the methods that have an R from the least to the largest."""
    values = removal.R.value.tolist()
    return sorted((number for number in range(len(values)) if not math.isnan(values[number])), key=values.__getitem__)


def _judge_one(name: str, number: int, removal: Removal) -> str:
    value, error = removal.R.at(number)
    above, above_error = removal.beyond_unmasked.at(number)
    left = _percent(*removal.left.at(number))
    if above > SURE * _known(above_error):
        return f"{name} adds more than it removes: effects come to {left} of the unmasked samples' own."
    if abs(above) <= SURE * _known(above_error):
        return f"{name} removes nothing measurable: effects come to {left} of the unmasked samples' own."
    if not removal.noise_is_weaker:
        return f"{name} leaves effects of {left} of the unmasked samples' own."
    share = _percent(*removal.removed.at(number))
    if value < -SURE * _known(error):
        return f"{name} removes the signal ({share}) and leaves less than white noise does."
    if value <= SURE * _known(error):
        return f"{name} removes {share} of the signal and adds nothing measurable."
    return f"{name} removes {share} of the signal; the rest (R = {with_error(value, error)}) is left over or added."


def _known(error: float) -> float:
    """Take an error that can't be known, for want of samples, as 0: the verdict then is on these samples alone."""
    return 0.0 if math.isnan(error) else error


def _percent(value: float, error: float) -> str:
    return f"{with_error(100 * value, 100 * error)} %"


def _chain(names: Sequence[str], ranked: Sequence[int], removal: Removal) -> str:
    text = names[ranked[0]]
    for better, worse in pairwise(ranked):
        text += (" < " if is_sure(removal.difference(worse, better)) else " ≈ ") + names[worse]
    return text


def is_sure(difference: Estimate) -> bool:
    """Tell whether a difference is larger than two of its standard errors; never for a single sample."""
    return bool(difference.value.abs() > SURE * difference.error)


def compare_own_games(names: Sequence[str], removal: Removal, companions: Companions) -> list[str]:
    """Say so where the method that is best by R does not have the simplest game of its own."""
    ranked = ranking(removal)
    if not ranked:
        return []
    strength = companions.by_order[..., 1:].sum(-1)
    best, least = ranked[0], int(companions.strength.value.argmin())
    difference = estimate(strength[best] - strength[least])
    if not is_sure(difference):
        return []
    most, fewest = (with_error(*companions.strength.at(number)) for number in (best, least))
    return [
        f"By the games of their own, {names[least]} is the simplest: its Σ|U| is {fewest}; that of {names[best]}, "
        f"the best by R, is {most}."
    ]


def warn(names: Sequence[str], region: Sequence[str], removal: Removal, plausibility: Plausibility) -> list[str]:
    """List what to beware of."""
    found = _warn_of_the_measurement(removal)
    ranked = ranking(removal)
    if len(ranked) > 1 and removal.ratios.shape[1] > 1:
        difference = removal.difference(ranked[1], ranked[0])
        if not is_sure(difference):
            best, second = names[ranked[0]], names[ranked[1]]
            found.append(f"Too few samples to tell {best} from {second}: {_samples_needed(difference, removal)}.")
    for number, name in enumerate(names):
        ratio = float(plausibility.distance[number])
        if ratio > FAR:
            found.append(f"{name} makes samples that lie {ratio:.2g} times as far from the data as its own rows do.")
        outside = [player for player, out in zip(region, plausibility.outside[number].tolist(), strict=True) if out]
        if outside:
            shown = ", ".join(outside[:4]) + (f" and {len(outside) - 4} more" if len(outside) > 4 else "")
            found.append(f"{name} puts values outside the data's range in {shown}.")
    return found


def _warn_of_the_measurement(removal: Removal) -> list[str]:
    found = []
    samples, draws = removal.original.shape
    dropped = samples - int(removal.kept.sum())
    if dropped:
        found.append(f"{dropped} of {samples} samples are left out: the model does not respond to their region.")
    if samples - dropped == 1:
        found.append("One sample has no standard error: pass more to learn how far to trust the figures.")
    elif draws == 1:
        found.append("One draw shows no spread over references: errors are those over samples alone.")
    if not removal.noise_is_weaker:
        value = 1 - float(removal.unmasked.value)
        found.append(
            f"White noise has {100 * value:.0f} % of the effects of the samples themselves: R ranks the methods, but "
            "no share removed can be told."
        )
    share = float((removal.rounding / removal.original.mean(1))[removal.kept].median())
    if share > _MUCH_ROUNDING:
        found.append(f"Rounding errors can make up {share:.0%} of the effects: run the model in double precision.")
    return found


def _samples_needed(difference: Estimate, removal: Removal) -> str:
    samples = removal.ratios.shape[1]
    gap = abs(float(difference.value))
    needed = math.inf if gap == 0 else samples * (SURE * float(difference.error) / gap) ** 2
    if needed > 10_000:
        return f"their R differ by {with_error(gap, float(difference.error))}"
    digits = 1 - len(str(math.ceil(needed)))
    return f"some {max(samples + 1, int(-(-needed // 10**-digits) * 10**-digits)):,} would do"
