"""The coverage of the errors of leak and invention, over many redraws of samples and of random stand-ins."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor

from absentia.auditing.estimates import SURE, Mean
from absentia.auditing.recalibration import Scale
from absentia.auditing.split import ByClass, Split
from made_up import GaussianClasses, leak_and_invention, log_odds, split_of

# Unmasked samples, random generator → the values of fully masked samples, (draws, samples, numbers).
StandIns: TypeAlias = Callable[[Tensor, torch.Generator], Tensor]
# Audits report a leak or an invention if it exceeds this by more than its error.
NEGLIGIBLE = 1e-3
# Figures that differ by less than this are equal.
ROUNDING = 1e-9
# The true figures are computed from this many times the samples.
TIMES = 10


@dataclass(frozen=True, eq=False)
class Kind:
    """Stand-ins, and whether by construction they do not leak or do not invent."""

    make: StandIns
    leaks: bool = True
    invents: bool = True
    shares_draws: bool = False  # whether all samples have the same random rows

    def is_zero(self, figure: str) -> bool:
        """Return whether the leak or the invention is 0."""
        if figure == "leak":
            return not self.leaks
        return not self.invents


@dataclass(frozen=True, eq=False)
class Setting:
    """An unlimited source of samples, a model, and stand-ins by name."""

    name: str
    samples: int
    redraws: int  # how often samples are redrawn
    truths: int  # how often many samples are drawn for the true figures
    draw: Callable[[int, torch.Generator], tuple[Tensor, Tensor | None]]  # samples, and classes if there are any
    values: Callable[[Tensor], Tensor]  # rows → the values that an audit takes
    stand_ins: dict[str, Kind]

    def measure(self, samples: int, seed: int) -> dict[str, tuple[Mean, Mean]]:
        """Draw samples, and measure the leak and invention of all stand-ins on them."""
        generator = torch.Generator().manual_seed(seed)
        x, y = self.draw(samples, generator)
        if y is not None and samples > self.samples:
            # The model is calibrated, as many samples would show.
            split: Split = ByClass(y, seed, Scale(1.0), y.unique())
        else:
            split = split_of(y, self.values(x), seed)
        found = {}
        for name, kind in self.stand_ins.items():
            masked = kind.make(x, generator)
            values = self.values(masked.flatten(0, 1)).unflatten(0, masked.shape[:2])
            found[name] = leak_and_invention(split, values, seed, kind.shares_draws)
        return found


@dataclass(frozen=True)
class Coverage:
    """How often intervals contain the truth, for one figure of one kind of stand-ins."""

    setting: str
    stand_ins: str
    figure: str  # "leak" or "invention"
    is_zero: bool  # whether the truth is 0
    truth: float
    mean: float
    spread: float  # the standard deviation over the redraws
    error: float  # the root mean square of the errors that the audits report
    covered: float
    accused: float
    runs: int

    @property
    def is_exact(self) -> bool:
        """Whether the figure is the same number in all runs, as the leak of a constant is."""
        return self.spread == 0

    @property
    def holds(self) -> bool:
        """Whether intervals contain the truth in 95 % of runs, within two binomial errors."""
        return self.covered >= 0.95 - 2 * math.sqrt(0.95 * 0.05 / self.runs)

    @property
    def accuses_rarely(self) -> bool:
        """Whether at most 5 % of runs report a figure that is 0, within two binomial errors."""
        return self.accused <= 0.05 + 2 * math.sqrt(0.95 * 0.05 / self.runs)


def settings() -> tuple[Setting, ...]:
    three = GaussianClasses.of([0.5, 0.3, 0.2], entries=8, apart=2.5)
    ten = GaussianClasses.of([0.1] * 10, entries=16, apart=4.0)
    return (
        of_classes("3 classes, 100 samples", three, 100, redraws=300, truths=100),
        of_classes("10 classes, 200 samples", ten, 200, redraws=100, truths=30),
        of_values("values, 100 samples", 100, redraws=400, truths=400),
    )


def of_classes(name: str, classes: GaussianClasses, samples: int, redraws: int, truths: int) -> Setting:
    def rows(count: int, generator: torch.Generator) -> Tensor:
        return classes.draw(count, generator)[0]

    stand_ins = kinds_of_stand_ins(rows, classes.neutral, classes.means[0])
    return Setting(name, samples, redraws, truths, classes.draw, lambda x: log_odds(classes(x)), stand_ins)


def of_values(name: str, samples: int, redraws: int, truths: int) -> Setting:
    """Return a model with an interaction, whose value at the neutral point is its mean: 0."""

    def rows(count: int, generator: torch.Generator) -> Tensor:
        return torch.randn(count, 4, generator=generator).double()

    def draw(count: int, generator: torch.Generator) -> tuple[Tensor, None]:
        return rows(count, generator), None

    def values(x: Tensor) -> Tensor:
        return (x[:, 0] + x[:, 1] + x[:, 2] * x[:, 3])[:, None]

    stand_ins = kinds_of_stand_ins(rows, torch.zeros(4).double(), torch.ones(4).double())
    return Setting(name, samples, redraws, truths, draw, values, stand_ins)


def kinds_of_stand_ins(
    rows: Callable[[int, torch.Generator], Tensor], neutral: Tensor, claim: Tensor
) -> dict[str, Kind]:
    """Return stand-ins, some of which leak or invent nothing."""

    def own_rows(draws: int) -> StandIns:
        return lambda x, generator: rows(draws * len(x), generator).unflatten(0, (draws, len(x)))

    def constant(value: Tensor) -> StandIns:
        return lambda x, _generator: value.expand(1, *x.shape)

    def shared_rows(draws: int, share: float) -> StandIns:
        return lambda x, generator: share * x + (1 - share) * rows(draws, generator)[:, None]

    def blend(share: float, background: Tensor) -> StandIns:
        return lambda x, _generator: (share * x + (1 - share) * background)[None]

    return {
        "neutral constant": Kind(constant(neutral), leaks=False, invents=False),
        "constant that claims": Kind(constant(claim), leaks=False),
        "a random row of its own": Kind(own_rows(1), leaks=False),
        "10 random rows of its own": Kind(own_rows(10), leaks=False),
        "10 random rows for all": Kind(shared_rows(10, 0.0), leaks=False, shares_draws=True),
        "blend of 30 % and neutral": Kind(blend(0.3, neutral)),
        "blend of 30 % and a claim": Kind(blend(0.3, claim)),
        "blend of 30 % and 10 random rows": Kind(shared_rows(10, 0.3), shares_draws=True),
    }


def measure_coverage(setting: Setting, most_redraws: int) -> list[Coverage]:
    """Repeat measurements of a setting, and compare their intervals with the truth."""
    redraws = min(setting.redraws, most_redraws)
    many = TIMES * setting.samples
    truths = [setting.measure(many, seed=10**6 + run) for run in range(min(setting.truths, most_redraws))]
    found = [setting.measure(setting.samples, seed=run) for run in range(redraws)]
    return [
        compare(
            setting,
            name,
            figure,
            truth=[run[name][number] for run in truths],
            found=[run[name][number] for run in found],
        )
        for name in setting.stand_ins
        for number, figure in enumerate(("leak", "invention"))
    ]


def compare(setting: Setting, name: str, figure: str, truth: Sequence[Mean], found: Sequence[Mean]) -> Coverage:
    true_values = torch.tensor([mean.value for mean in truth], dtype=torch.float64)
    true_value = float(true_values.mean())
    true_error = float(true_values.std()) / math.sqrt(len(truth))
    is_zero = setting.stand_ins[name].is_zero(figure)
    if is_zero:
        true_value = 0.0
        true_error = 0.0
    values = torch.tensor([mean.value for mean in found], dtype=torch.float64)
    errors = torch.tensor([mean.error for mean in found], dtype=torch.float64)
    margins = [math.hypot(mean.margin, SURE * true_error) + ROUNDING for mean in found]
    covered = [abs(mean.value - true_value) <= margin for mean, margin in zip(found, margins, strict=True)]
    accused = [mean.is_above(NEGLIGIBLE) for mean in found]
    return Coverage(
        setting=setting.name,
        stand_ins=name,
        figure=figure,
        is_zero=is_zero,
        truth=true_value,
        mean=float(values.mean()),
        spread=float(values.std()),
        error=float(errors.square().mean().sqrt()),
        covered=sum(covered) / len(found),
        accused=sum(accused) / len(found),
        runs=len(found),
    )
