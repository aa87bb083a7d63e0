"""The rule by which an audit recommends an absence, and how sure the recommendation is.

The rule is *honest first, then short*. It first rules out

1. surrogates, which explain another model;
2. leaks that exceed both their error and 5 % of the prior's score;
3. inventions that exceed both their error and all there is to know, which is log(classes) or the variance.

Of the other methods, those whose score is close enough to the best are kept: within 10 % of the prior's score, but at
most a third of the advantage of whole samples over the prior. Of these, the method with the shortest explanations
wins. Lengths within a factor of 1.25 are considered equal, and the method closest to the data then wins. Distances up
to that of the data's own rows are considered equal, and the best score then wins.

The rule is applied to resamples, which draw half as many samples and draws as were measured, with replacement. The
method that wins most often is recommended, and its share of the resamples is the confidence. Resamples of half the
size differ from the audit as much as an audit of other samples would, so the confidence estimates how often such an
audit would agree.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from absentia.auditing.estimates import Mean
from absentia.data import seeded

# The stages at which a method is dropped, from first to last. "best" marks the one to use, and "" marks methods that
# could not be judged.
STAGES = ("surrogate", "leaks", "invents", "", "score", "length", "distance", "best")
# A leak beyond this share of the prior's score matters in practice.
PRACTICAL_LEAK = 0.05
# Scores are level only if they differ by at most this share of the prior's score.
PRACTICAL_SCORE = 0.1
# Scores are level only if they differ by at most this share of the advantage of whole samples over the prior.
PRACTICAL_SHARE_OF_WHOLE = 1 / 3
# Lengths are level within this factor.
PRACTICAL_LENGTH = 1.25
# A method that wins in a smaller share of the resamples is level with others.
CLEAR = 2 / 3
# Methods that win in at least this share of the resamples are named as level.
NAMED = 0.1
_RESAMPLES = 400
# These multiples of the number of samples are tried to see whether they would tell level methods apart.
_MORE_SAMPLES = (2, 4, 10)


@dataclass(frozen=True, eq=False)
class Figures:
    """The figures that decide, one of each for every method."""

    leak: Float[Tensor, " methods"]
    invention: Float[Tensor, " methods"]
    score: Float[Tensor, " methods"]
    length: Float[Tensor, " methods"]  # the logarithm of the number of interactions needed
    leak_margin: Float[Tensor, " methods"]  # how far above a number a figure must be to be significantly above it
    invention_margin: Float[Tensor, " methods"]
    distance: Float[Tensor, " methods"]  # to the data; at least 1, the distance of its own rows
    surrogate: tuple[bool, ...]
    prior: float  # the score of what can be said without a sample
    whole: float  # the score of predictions on whole samples
    everything: float  # all that there is to know
    leaks_count: bool = True  # whether everything that ∅ reveals is a leak

    @property
    def level_score(self) -> float:
        """The largest difference between scores that does not matter in practice."""
        advantage_of_whole = max(0.0, self.prior - self.whole)
        return min(PRACTICAL_SCORE * self.prior, PRACTICAL_SHARE_OF_WHOLE * advantage_of_whole)


def decide(figures: Figures) -> tuple[str, ...]:
    """Return the stage at which each method is dropped."""
    methods = range(len(figures.leak))
    stages = {number: _ruled_out(figures, number) for number in methods}
    candidates = [number for number in methods if stages[number] is None]
    if not candidates:
        return tuple(stages[number] or "" for number in methods)
    candidates = _drop(stages, "score", candidates, figures.score, figures.level_score)
    candidates = _drop(stages, "length", candidates, figures.length, math.log(PRACTICAL_LENGTH))
    distances = figures.distance.nan_to_num(math.inf).tolist()
    closest = min(candidates, key=lambda number: (distances[number], float(figures.score[number])))
    for number in candidates:
        stages[number] = "distance"
    stages[closest] = "best"
    return tuple(stages[number] or "" for number in methods)


def _ruled_out(figures: Figures, number: int) -> str | None:
    """Return the stage that rules a method out before methods are compared, or None if none does."""
    if figures.surrogate[number]:
        return "surrogate"
    leak = float(figures.leak[number])
    invention = float(figures.invention[number])
    score = float(figures.score[number])
    if math.isnan(leak) or math.isnan(invention) or math.isnan(score):
        return ""
    least_leak = max(float(figures.leak_margin[number]), PRACTICAL_LEAK * figures.prior)
    if figures.leaks_count and leak > least_leak:
        return "leaks"
    if invention > max(float(figures.invention_margin[number]), figures.everything):
        return "invents"
    return None


def _drop(
    stages: dict[int, str | None], stage: str, candidates: list[int], figure: Float[Tensor, " methods"], level: float
) -> list[int]:
    """Drop the methods whose figure exceeds the lowest by more than ``level``, and return the others."""
    lowest = _lowest(figure, candidates)
    remaining = []
    for number in candidates:
        if float(figure[number] - figure[lowest]) > level:
            stages[number] = stage
        else:
            remaining.append(number)
    return remaining


def _lowest(values: Float[Tensor, " methods"], among: list[int]) -> int:
    """Return the method with the lowest figure; figures that were not measured are never the lowest."""
    known = values.nan_to_num(math.inf).tolist()
    return min(among, key=lambda number: known[number])


@dataclass(frozen=True, eq=False)
class Measured:
    """The pseudo-values of each sample and group of draws whose means are the deciding figures (see `jackknife`)."""

    leaks: Float[Tensor, "methods masked groups"]
    inventions: Float[Tensor, "methods masked groups"]
    scores: Float[Tensor, "methods scored score_groups"]
    lengths: Float[Tensor, "methods played length_groups"]
    distance: Float[Tensor, " methods"]
    surrogate: tuple[bool, ...]
    prior: float
    whole: float
    everything: float
    leaks_count: bool

    def figures(self) -> Figures:
        """Return the deciding figures with their margins."""
        leaks = [Mean.of(values) for values in self.leaks]
        inventions = [Mean.of(values) for values in self.inventions]
        return Figures(
            leak=_tensor(mean.value for mean in leaks),
            invention=_tensor(mean.value for mean in inventions),
            score=_tensor(Mean.of(values).value for values in self.scores),
            length=_tensor(Mean.of(values).value for values in self.lengths),
            leak_margin=_tensor(mean.margin for mean in leaks),
            invention_margin=_tensor(mean.margin for mean in inventions),
            distance=self.distance,
            surrogate=self.surrogate,
            prior=self.prior,
            whole=self.whole,
            everything=self.everything,
            leaks_count=self.leaks_count,
        )

    def resamples(self, seed: int) -> Iterator[_ResampledFigures]:
        """Yield the figures of resamples of half of the samples and draws, drawn with replacement."""
        generator = seeded(seed, "resamples")
        for _ in range(_RESAMPLES):
            # Leak and invention are measured on the same samples and draws, so they are resampled together.
            masked = _Resample.draw(self.leaks, generator)
            scored = _Resample.draw(self.scores, generator)
            played = _Resample.draw(self.lengths, generator)
            yield _ResampledFigures(
                leak=masked.means(self.leaks),
                invention=masked.means(self.inventions),
                score=scored.means(self.scores),
                length=played.means(self.lengths),
            )


class _ResampledFigures(NamedTuple):
    """The figures of a resample, one of each for every method."""

    leak: Float[Tensor, " methods"]
    invention: Float[Tensor, " methods"]
    score: Float[Tensor, " methods"]
    length: Float[Tensor, " methods"]


def _tensor(numbers: Iterator[float]) -> Float[Tensor, " methods"]:
    return torch.tensor(list(numbers), dtype=torch.float64)


@dataclass(frozen=True, eq=False)
class _Resample:
    """How often each sample, and each group of draws of each method, is drawn."""

    samples: Float[Tensor, " samples"]
    groups: Float[Tensor, "methods groups"]

    @classmethod
    def draw(cls, values: Float[Tensor, "methods samples groups"], generator: torch.Generator) -> _Resample:
        """Draw half as many samples and groups as there are, with replacement."""
        exists = (~values.isnan()).any(1)
        groups = torch.zeros(exists.shape, dtype=torch.float64)
        for of_method, existing in zip(groups, exists, strict=True):
            of_method[existing] = _times_drawn(int(existing.sum()), generator)
        return cls(_times_drawn(values.shape[1], generator), groups)

    def means(self, values: Float[Tensor, "methods samples groups"]) -> Float[Tensor, " methods"]:
        """Return the mean of each method over the drawn samples and groups, leaving out samples of NaN."""
        weights = (~values.isnan()).any(2) * self.samples
        by_sample = (values.nan_to_num() * self.groups[:, None]).sum(2) / self.groups.sum(1, keepdim=True)
        return (by_sample * weights).sum(1) / weights.sum(1)


def _times_drawn(count: int, generator: torch.Generator) -> Float[Tensor, " count"]:
    """Draw half as many items as there are, with replacement, and return how often each one was drawn."""
    if count == 0:
        return torch.zeros(0, dtype=torch.float64)
    half = (count + 1) // 2
    return torch.randint(count, (half,), generator=generator).bincount(minlength=count).double()


@dataclass(frozen=True)
class Verdict:
    """The stage of each method, the share of the resamples that it wins, and how many samples would decide.

    ``shares`` has one number for each method, followed by the share of resamples in which no method is left.
    """

    stages: tuple[str, ...]
    shares: tuple[float, ...]
    times_the_samples: int | None = 1  # this many times the samples would make the answer clear; None if none would

    @property
    def share_of_none(self) -> float:
        """The share of the resamples in which no method is left."""
        return self.shares[-1]

    @property
    def shares_of_methods(self) -> tuple[float, ...]:
        """The share of the resamples that each method wins."""
        return self.shares[:-1]

    @property
    def winner(self) -> int | None:
        """The number of the method to use, if there is one."""
        if "best" not in self.stages:
            return None
        return self.stages.index("best")

    @property
    def judged(self) -> bool:
        """Whether enough was measured to judge any method."""
        return any(stage not in ("", "surrogate") for stage in self.stages)

    @property
    def confidence(self) -> float:
        """The share of the resamples that give the same answer; NaN if no method could be judged."""
        if not self.judged:
            return math.nan
        if self.winner is None:
            return self.share_of_none
        return self.shares[self.winner]

    @property
    def clear(self) -> bool:
        """Whether most of the resamples give the same answer."""
        return self.confidence >= CLEAR

    @property
    def level(self) -> tuple[int, ...]:
        """The level methods, most frequent winner first, or only the winner if the answer is clear."""
        if self.clear:
            return () if self.winner is None else (self.winner,)
        named = [number for number, share in enumerate(self.shares_of_methods) if share >= NAMED]
        if self.winner is not None and self.winner not in named:
            named.append(self.winner)
        return tuple(sorted(named, key=lambda number: -self.shares[number]))


def judge(measured: Measured, seed: int) -> Verdict:
    """Apply the rule to resamples of what was measured."""
    figures = measured.figures()
    resamples = list(measured.resamples(seed))
    outcomes = _outcomes(figures, resamples)
    shares = _shares(outcomes)
    verdict = Verdict(_usual_stages(outcomes, shares), shares)
    if verdict.clear or not verdict.judged:
        return verdict
    for multiple in _MORE_SAMPLES:
        if max(_shares(_outcomes(figures, resamples, multiple))) >= CLEAR:
            return replace(verdict, times_the_samples=multiple)
    return replace(verdict, times_the_samples=None)


def _outcomes(figures: Figures, resamples: list[_ResampledFigures], multiple: int = 1) -> list[tuple[str, ...]]:
    """Return the stages of the methods in each resample, as if there were ``multiple`` times as many samples."""
    shrink = 1 / math.sqrt(multiple)  # of errors, and of the differences between resamples

    def towards_mean(mean: Tensor, drawn: Tensor) -> Tensor:
        return mean * (1 - shrink) + drawn * shrink

    outcomes = []
    for resample in resamples:
        resampled = replace(
            figures,
            leak=towards_mean(figures.leak, resample.leak),
            invention=towards_mean(figures.invention, resample.invention),
            score=towards_mean(figures.score, resample.score),
            length=towards_mean(figures.length, resample.length),
            leak_margin=figures.leak_margin * shrink,
            invention_margin=figures.invention_margin * shrink,
        )
        outcomes.append(decide(resampled))
    return outcomes


def _shares(outcomes: list[tuple[str, ...]]) -> tuple[float, ...]:
    """Return the share of the resamples that each method wins, followed by the share that no method wins."""
    methods = len(outcomes[0])
    wins = [0] * (methods + 1)
    for stages in outcomes:
        winner = stages.index("best") if "best" in stages else methods
        wins[winner] += 1
    return tuple(count / len(outcomes) for count in wins)


def _usual_stages(outcomes: list[tuple[str, ...]], shares: tuple[float, ...]) -> tuple[str, ...]:
    """Return "best" for the most frequent winner, and for each other method the stage that usually drops it."""
    winner = shares.index(max(shares))
    usual = []
    for number, stages in enumerate(zip(*outcomes, strict=True)):
        if number == winner:
            usual.append("best")
        else:
            losses = Counter(stage for stage in stages if stage != "best")
            most_frequent, _ = losses.most_common(1)[0]
            usual.append(most_frequent)
    return tuple(usual)
