"""The verdict of an audit in sentences: what each method removes and adds, which is best, and warnings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from absentia.audit.estimates import SURE, Estimate, estimate
from absentia.audit.own_games import Companions
from absentia.audit.plausibility import FAR, Plausibility
from absentia.audit.removal import Removal
from absentia.results import with_error

# Rounding errors are reported beyond this share of a strength.
_MUCH_ROUNDING = 0.05


def judge(names: Sequence[str], removal: Removal) -> list[str]:
    """Describe what each method removes and adds, the best first, and then which methods differ significantly."""
    ranked = ranking(removal)
    sentences = [_judge_one(names[number], number, removal) for number in ranked]
    unmeasured = [name for number, name in enumerate(names) if number not in ranked]
    sentences += [f"{name} has no R: it brings its own model and masks no input." for name in unmeasured]
    if len(ranked) > 1:
        chain = _chain(names, ranked, removal)
        sentences.append(f"From best to worst (≈ where the difference is not significant): {chain}.")
    return sentences


def ranking(removal: Removal) -> list[int]:
    """Return the numbers of the methods that have an R, the lowest R first."""
    values = removal.R.value.tolist()
    return sorted((number for number in range(len(values)) if not math.isnan(values[number])), key=values.__getitem__)


def _judge_one(name: str, number: int, removal: Removal) -> str:
    value, error = removal.R.at(number)
    left, left_error = removal.left.at(number)
    shown = f"{_percent(left, left_error)} of those of unmasked samples"
    if left - 1 > SURE * _known(left_error):
        return f"{name} adds more than it removes: its effects are {shown}."
    if abs(left - 1) <= SURE * _known(left_error):
        return f"{name} removes nothing measurable: its effects are {shown}."
    if not removal.noise_is_weaker:
        return f"{name} leaves effects of {shown}."
    share = _percent(*removal.removed.at(number))
    if value < -SURE * _known(error):
        return f"{name} removes the signal ({share}) and leaves less than white noise does."
    if value <= SURE * _known(error):
        return f"{name} removes {share} of the signal and adds nothing measurable."
    return f"{name} removes {share} of the signal; the rest (R = {with_error(value, error)}) is left over or added."


def _known(error: float) -> float:
    """Replace an unknown error, that of a single sample, by 0: the verdict then holds for that sample alone."""
    return 0.0 if math.isnan(error) else error


def _percent(value: float, error: float) -> str:
    return f"{with_error(100 * value, 100 * error)} %"


def _chain(names: Sequence[str], ranked: Sequence[int], removal: Removal) -> str:
    text = names[ranked[0]]
    for better, worse in pairwise(ranked):
        text += (" < " if is_sure(removal.difference(worse, better)) else " ≈ ") + names[worse]
    return text


def is_sure(difference: Estimate) -> bool:
    """Return whether a difference exceeds two of its standard errors; never for a single sample."""
    return bool(difference.value.abs() > SURE * difference.error)


def compare_own_games(names: Sequence[str], removal: Removal, companions: Companions) -> list[str]:
    """Name the method with the simplest game of its own, if it is not the best by R."""
    ranked = ranking(removal)
    if not ranked:
        return []
    strength = estimate(companions.strengths)
    best, least = ranked[0], int(strength.value.argmin())
    if not is_sure(estimate(companions.strengths[best] - companions.strengths[least])):
        return []
    most, fewest = (with_error(*strength.at(number)) for number in (best, least))
    return [
        f"{names[least]} needs the fewest interactions: Σ|U| of its own game is {fewest}, and that of "
        f"{names[best]}, the best by R, is {most}."
    ]


def warn(names: Sequence[str], region: Sequence[str], removal: Removal, plausibility: Plausibility) -> list[str]:
    """List the warnings."""
    found = _warn_of_the_measurement(removal)
    ranked = ranking(removal)
    if len(ranked) > 1 and removal.ratios.shape[1] > 1:
        difference = removal.difference(ranked[1], ranked[0])
        if not is_sure(difference):
            best, second = names[ranked[0]], names[ranked[1]]
            found.append(f"Too few samples to distinguish {best} from {second}: {_needed(difference, removal)}.")
    for number, name in enumerate(names):
        ratio = float(plausibility.distance[number])
        if ratio > FAR:
            found.append(f"{name} makes samples that lie {ratio:.2g} times as far from the data as its own rows do.")
        outside = [player for player, out in zip(region, plausibility.outside[number].tolist(), strict=True) if out]
        if outside:
            shown = ", ".join(outside[:4]) + (f" and {len(outside) - 4} more" if len(outside) > 4 else "")
            found.append(f"{name} uses values outside the data's range for {shown}.")
    return found


def _warn_of_the_measurement(removal: Removal) -> list[str]:
    found = []
    samples, draws = removal.original.shape
    dropped = samples - int(removal.kept.sum())
    if dropped:
        found.append(f"{dropped} of {samples} samples are left out: the model does not respond to their region.")
    if samples - dropped == 1:
        found.append("One sample has no standard error: pass more samples to get errors.")
    elif draws == 1:
        found.append("One draw shows no spread over references: errors are those over samples alone.")
    if not removal.noise_is_weaker:
        share = 100 * (1 - float(removal.unmasked.value))
        found.append(
            f"White noise has {share:.0f} % of the effects of the samples themselves: R ranks the methods, but the "
            "share that they remove is unknown."
        )
    share = float((removal.rounding / removal.original.mean(1))[removal.kept].median())
    if share > _MUCH_ROUNDING:
        found.append(f"Rounding errors can make up {share:.0%} of the effects: run the model in double precision.")
    return found


def _needed(difference: Estimate, removal: Removal) -> str:
    """Estimate how many samples would show the difference."""
    samples = removal.ratios.shape[1]
    gap = abs(float(difference.value))
    needed = math.inf if gap == 0 else samples * (SURE * float(difference.error) / gap) ** 2
    if needed > 10_000:
        return f"R differs by {with_error(gap, float(difference.error))}"
    digits = 1 - len(str(math.ceil(needed)))
    return f"about {max(samples + 1, int(-(-needed // 10**-digits) * 10**-digits)):,} would suffice"
