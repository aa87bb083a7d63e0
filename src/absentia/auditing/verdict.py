"""The rule by which an audit recommends an absence, and how sure it is.

*Honest first, then short.* Out are

1. surrogates, which explain another model;
2. leaks beyond their error and beyond 5 % of the prior's score;
3. inventions beyond their error and beyond all that there is to know: log(classes), or the variance.

Of the others, those are level whose score is within a practical difference of the best: 10 % of the prior's score,
but at most a third of what the predictions on whole samples are better than the prior. Of these the shortest account
decides. Lengths are level within a factor of 1.25; then the closest to the data is taken. Distances up to that of the
data's own rows are level; then the best score is taken.

The rule is applied to resamples: half as many samples and draws are drawn again from those that were measured, with
replacement. The method that wins most often is recommended, and its share of the resamples is the confidence.
Resamples of half the size differ as much from the audit as an audit of other samples would, so that the confidence is
about how often such an audit would agree.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from absentia.auditing.estimates import Mean
from absentia.data import seeded

# At which stage a method is dropped, from first to last; "best" is the one to use, "" one that could not be judged.
STAGES = ("surrogate", "leaks", "invents", "", "score", "length", "distance", "best")
# A leak beyond this share of the prior's score is one that matters.
PRACTICAL_LEAK = 0.05
# Scores within this share of the prior's are level, and within this share of what whole samples tell.
PRACTICAL_SCORE = 0.1
PRACTICAL_SHARE_OF_WHOLE = 1 / 3
# Lengths within this factor are level.
PRACTICAL_LENGTH = 1.25
# A method that wins in fewer of the resamples is level with others.
CLEAR = 2 / 3
# Methods that win in at least this share of the resamples are named as level.
NAMED = 0.1
_RESAMPLES = 400
# How many times as many samples are considered to tell level methods apart.
_MORE_SAMPLES = (2, 4, 10)


@dataclass(frozen=True, eq=False)
class Figures:
    """The figures that decide, one of each for every method."""

    leak: Float[Tensor, " methods"]
    invention: Float[Tensor, " methods"]
    score: Float[Tensor, " methods"]
    length: Float[Tensor, " methods"]  # the logarithm of the number of interactions needed
    leak_margin: Float[Tensor, " methods"]  # by how much a figure must exceed a number to be surely above it
    invention_margin: Float[Tensor, " methods"]
    distance: Float[Tensor, " methods"]  # to the data; at least 1, that of its own rows
    surrogate: tuple[bool, ...]
    prior: float  # the score of what can be said without a sample
    whole: float  # the score of predictions on whole samples
    everything: float  # what there is to know at most
    leaks_count: bool = True  # whether what ∅ tells can only be a leak

    @property
    def level_score(self) -> float:
        """The difference of scores that makes no difference in practice."""
        known = max(0.0, self.prior - self.whole)
        return min(PRACTICAL_SCORE * self.prior, PRACTICAL_SHARE_OF_WHOLE * known)


def decide(figures: Figures) -> tuple[str, ...]:
    """Return the stage at which each method is dropped."""
    stages = [_first_stage(figures, number) for number in range(len(figures.leak))]
    left = [number for number, stage in enumerate(stages) if stage == "left"]
    if not left:
        return tuple(stages)
    best = _lowest(figures.score, left)
    for number in left:
        if float(figures.score[number] - figures.score[best]) > figures.level_score:
            stages[number] = "score"
    left = [number for number in left if stages[number] == "left"]
    shortest = _lowest(figures.length, left)
    for number in left:
        if float(figures.length[number] - figures.length[shortest]) > math.log(PRACTICAL_LENGTH):
            stages[number] = "length"
    left = [number for number in left if stages[number] == "left"]
    distances = figures.distance.nan_to_num(math.inf).tolist()
    closest = min(left, key=lambda number: (distances[number], float(figures.score[number])))
    for number in left:
        stages[number] = "best" if number == closest else "distance"
    return tuple(stages)


def _first_stage(figures: Figures, number: int) -> str:
    """Return why a method is out, or "left" if it is not."""
    if figures.surrogate[number]:
        return "surrogate"
    leak, invention = float(figures.leak[number]), float(figures.invention[number])
    if math.isnan(leak) or math.isnan(invention) or math.isnan(float(figures.score[number])):
        return ""
    least_leak = max(float(figures.leak_margin[number]), PRACTICAL_LEAK * figures.prior)
    if figures.leaks_count and leak > least_leak:
        return "leaks"
    if invention > max(float(figures.invention_margin[number]), figures.everything):
        return "invents"
    return "left"


def _lowest(values: Float[Tensor, " methods"], among: list[int]) -> int:
    """Return the method with the lowest figure; one that was not measured is not the lowest."""
    known = values.nan_to_num(math.inf).tolist()
    return min(among, key=lambda number: known[number])


@dataclass(frozen=True, eq=False)
class Measured:
    """What the deciding figures are means of: pseudo-values of each sample and group of draws (`estimates`)."""

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

    def resamples(self, seed: int) -> Iterator[dict[str, Float[Tensor, " methods"]]]:
        """Yield the figures of samples and draws that are drawn again."""
        generator = seeded(seed, "resamples")
        for _ in range(_RESAMPLES):
            # Leak and invention are of the same samples and draws, so that these are drawn together.
            masked = _Resample.draw(self.leaks, generator)
            yield {
                "leak": masked.means(self.leaks),
                "invention": masked.means(self.inventions),
                "score": _Resample.draw(self.scores, generator).means(self.scores),
                "length": _Resample.draw(self.lengths, generator).means(self.lengths),
            }


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
        there = (~values.isnan()).any(1)
        groups = torch.zeros(there.shape, dtype=torch.float64)
        for row, known in zip(groups, there, strict=True):
            row[known] = _times_drawn(int(known.sum()), generator)
        return cls(_times_drawn(values.shape[1], generator), groups)

    def means(self, values: Float[Tensor, "methods samples groups"]) -> Float[Tensor, " methods"]:
        """Return the mean of each method over what was drawn; samples of NaN are left out."""
        known = (~values.isnan()).any(2) * self.samples
        by_sample = (values.nan_to_num() * self.groups[:, None]).sum(2) / self.groups.sum(1, keepdim=True)
        return (by_sample * known).sum(1) / known.sum(1)


def _times_drawn(count: int, generator: torch.Generator) -> Float[Tensor, " count"]:
    """Return how often each of some things is drawn, if half as many are drawn with replacement."""
    if count == 0:
        return torch.zeros(0, dtype=torch.float64)
    half = (count + 1) // 2
    return torch.randint(count, (half,), generator=generator).bincount(minlength=count).double()


@dataclass(frozen=True)
class Verdict:
    """The stage of each method, in which share of the resamples each wins, and what would make the answer clear.

    ``shares`` has one number for each method, and a last one for the resamples in which none is left.
    """

    stages: tuple[str, ...]
    shares: tuple[float, ...]
    samples_needed: int = 1  # how many times as many samples would make it clear; 0 if none of those considered

    @property
    def winner(self) -> int | None:
        """The number of the method to use, if there is one."""
        return self.stages.index("best") if "best" in self.stages else None

    @property
    def judged(self) -> bool:
        """Whether enough was measured to judge any method."""
        return any(stage not in ("", "surrogate") for stage in self.stages)

    @property
    def confidence(self) -> float:
        """In which share of the resamples the answer is the same: this method, or none; NaN if nothing was judged."""
        if not self.judged:
            return math.nan
        return self.shares[-1 if self.winner is None else self.winner]

    @property
    def clear(self) -> bool:
        """Whether most of the resamples have the same answer."""
        return self.confidence >= CLEAR

    @property
    def level(self) -> tuple[int, ...]:
        """The methods that are level, the one that wins most often first; one of them if the answer is clear."""
        if self.clear:
            return () if self.winner is None else (self.winner,)
        named = [number for number, share in enumerate(self.shares[:-1]) if share >= NAMED]
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
    for more in _MORE_SAMPLES:
        if max(_shares(_outcomes(figures, resamples, more))) >= CLEAR:
            return replace(verdict, samples_needed=more)
    return replace(verdict, samples_needed=0)


def _outcomes(
    figures: Figures, resamples: list[dict[str, Float[Tensor, " methods"]]], more: int = 1
) -> list[tuple[str, ...]]:
    """Return the stages of the methods in each resample, had there been ``more`` times the samples."""
    nearer = 1 / math.sqrt(more)
    surer = replace(
        figures,
        leak_margin=figures.leak_margin * nearer,
        invention_margin=figures.invention_margin * nearer,
    )
    outcomes = []
    for resample in resamples:
        moved = {name: getattr(figures, name) * (1 - nearer) + drawn * nearer for name, drawn in resample.items()}
        outcomes.append(decide(replace(surer, **moved)))
    return outcomes


def _shares(outcomes: list[tuple[str, ...]]) -> tuple[float, ...]:
    """Return in which share of the resamples each method wins, and none."""
    methods = len(outcomes[0])
    wins = Counter(stages.index("best") if "best" in stages else methods for stages in outcomes)
    return tuple(wins[number] / len(outcomes) for number in range(methods + 1))


def _usual_stages(outcomes: list[tuple[str, ...]], shares: tuple[float, ...]) -> tuple[str, ...]:
    """Return "best" for the method that wins most often, and for the others why they usually do not win."""
    winner = shares.index(max(shares))
    usual = []
    for number, stages in enumerate(zip(*outcomes, strict=True)):
        if number == winner:
            usual.append("best")
        else:
            ((stage, _),) = Counter(stage for stage in stages if stage != "best").most_common(1)
            usual.append(stage)
    return tuple(usual)
