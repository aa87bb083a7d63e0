"""Absences with known leaks and inventions, and pairs in which it is known which absence is better."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import torch
from torch import Tensor

import absentia as ab
from absentia.absences import Fill
from absentia.absences.protocol import ConditionalFill
from absentia.auditing.recalibration import Scale
from absentia.auditing.split import ByClass, predict
from absentia.auditing.verdict import PRACTICAL_LEAK, PRACTICAL_LENGTH
from made_up import Blend, Contrary, GaussianClasses, log_odds

# The classes used throughout.
THREE = GaussianClasses.of([0.5, 0.3, 0.2], entries=8, apart=2.5)
# Two classes that all entries separate equally well.
TWO = GaussianClasses(torch.tensor([[-0.45], [0.45]]).double().expand(2, 8), torch.tensor([0.5, 0.5]).double())
# True figures come from audits of the largest number of samples that an audit takes.
TRUE_SAMPLES = 500


@dataclass(frozen=True, eq=False)
class Couples:
    """Stand-ins that add a few weak interactions of two players, which make explanations longer."""

    classes: GaussianClasses
    strength: float  # the effect of each interaction, in log-odds
    count: int
    pairs: Tensor = field(init=False)

    def __post_init__(self) -> None:
        pairs = list(combinations(range(self.classes.means.shape[1]), 2))
        order = torch.randperm(len(pairs), generator=torch.Generator().manual_seed(0))
        object.__setattr__(self, "pairs", torch.tensor(pairs)[order[: self.count]])

    def bind(self, x: Tensor) -> Fill:
        """Let the absent entries carry the interactions of the present ones."""
        return ConditionalFill(x, (0,), self._stand_ins)

    def _stand_ins(self, _x: Tensor, presence: Tensor, _draws: list[int]) -> Tensor:
        direction = self.classes.means[1] - self.classes.means[0]
        both_present = presence[..., self.pairs].all(-1).double()
        signs = torch.ones(self.count).double()
        signs[::2] = -1
        claim = self.strength * (both_present * signs).sum(-1, keepdim=True)
        absent = (~presence).double() * direction
        carried = absent.square().sum(-1, keepdim=True).clamp_min(1e-12)
        return (self.classes.neutral + claim * absent / carried)[:, :, None]


@dataclass(frozen=True, eq=False)
class Contest:
    """Two absences, the first of which is better in one respect."""

    name: str
    classes: GaussianClasses
    worse: ab.Absence
    stage: str  # the stage at which the rule should rule out the worse one

    def audit(self, samples: int, seed: int) -> ab.Audit:
        """Audit both on samples drawn for this seed."""
        both: dict[str, ab.Absence] = {"better": ab.Baseline(self.classes.neutral), "worse": self.worse}
        return audit_made_up(self.classes, both, samples, seed)

    def true_gap(self, audits: int) -> float:
        """Return the difference between the absences on many samples, in units of the rule's threshold."""
        gaps = [self._gap(self.audit(TRUE_SAMPLES, seed=10**6 + run)) for run in range(audits)]
        return sum(gaps) / audits

    def _gap(self, found: ab.Audit) -> float:
        figures = found._measured().figures()
        if self.stage == "leaks":
            return float(figures.leak[1]) / (PRACTICAL_LEAK * figures.prior)
        if self.stage == "invents":
            return float(figures.invention[1]) / figures.everything
        if self.stage == "score":
            return float(figures.score[1] - figures.score[0]) / figures.level_score
        return float(figures.length[1] - figures.length[0]) / math.log(PRACTICAL_LENGTH)


def audit_made_up(
    classes: GaussianClasses, absences: dict[str, ab.Absence], samples: int, seed: int, evaluations: int | None = None
) -> ab.Audit:
    """Audit absences on samples drawn for this seed, with other rows as the data."""
    generator = torch.Generator().manual_seed(seed)
    x, y = classes.draw(samples, generator)
    data, _ = classes.draw(500, generator)
    return ab.audit(classes, x, y, absences, data=data, draws=1, seed=seed, evaluations=evaluations)


def towards(classes: GaussianClasses, share: float) -> Tensor:
    """Return a point on the line from the neutral point through the mean of the first class."""
    return classes.neutral + share * (classes.means[0] - classes.neutral)


def contests() -> Sequence[Contest]:
    """Return a contest for each deciding figure, with a gap of about twice the rule's threshold."""
    return (
        Contest("leak", THREE, Blend(0.065, THREE.neutral), "leaks"),
        Contest("invention", THREE, ab.Baseline(towards(THREE, 1.75)), "invents"),
        Contest("score", THREE, Contrary(0.76, THREE.neutral), "score"),
        Contest("length", TWO, Couples(TWO, 0.3, 4), "length"),
    )


def blends(background: Tensor, shares: Sequence[float]) -> dict[str, ab.Absence]:
    """Return absences that keep shares of the sample."""
    return {f"{share:.0%}": Blend(share, background) for share in shares}


def claims(neutral: Tensor, claim: Tensor, shares: Sequence[float]) -> dict[str, ab.Absence]:
    """Return constants on the way from one point to another."""
    return {f"{share:.0%}": ab.Baseline(neutral + share * (claim - neutral)) for share in shares}


def true_figures(
    model: Any, x: Tensor, y: Tensor, absences: dict[str, ab.Absence], most_scale: float | None = None
) -> tuple[dict[str, tuple[float, float]], float]:
    """Return the leak and invention of each absence on many samples, and the prior's score."""
    with torch.no_grad():
        if most_scale is None:
            split = ByClass.of_whole_samples(y, log_odds(model(x).double()), seed=0)
        else:
            split = ByClass(y, 0, Scale(most_scale), y.unique())
        prior = split.prior()
        figures = {}
        for name, absence in absences.items():
            nobody = torch.zeros(1, 1, *x.shape[1:], dtype=torch.bool)
            masked = absence.bind(x)(slice(0, len(x)), nobody)[:, 0, 0]
            prediction = predict(split, log_odds(model(masked).double()), prior)
            figures[name] = (float(prediction.leak.nanmean()), float(prediction.invention.nanmean()))
    return figures, float(prior.nanmean())
