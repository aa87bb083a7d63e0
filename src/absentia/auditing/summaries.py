"""The figures of an audit, computed from the steps that finished, which may be only some of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import torch
from jaxtyping import Float
from torch import Tensor

from absentia.auditing.audit_setup import Setup
from absentia.auditing.jackknife import Drawn, join_methods, pseudo_values
from absentia.auditing.masked_scores import FullyMasked, MaskingCurve
from absentia.auditing.measuring import (
    RULED_OUT,
    CurveValues,
    EmptyValues,
    GameFigures,
    MethodCurve,
    Outcome,
    SharedValues,
    Strengths,
)
from absentia.auditing.own_games import Companions, join_games
from absentia.auditing.removal import Removal
from absentia.auditing.split import ByClass, ByValue, Split, predict, without_rounding
from absentia.auditing.subject import Method
from absentia.errors import AbsentiaError

_Kind = TypeVar("_Kind")

# Values of samples that differ by at most this many units of their type's precision are equal.
_UNITS_APART = 1000


@dataclass(frozen=True, eq=False)
class Summary:
    """The results of the finished steps of an audit, and the figures computed from them."""

    setup: Setup
    outcomes: Sequence[Outcome]

    def _of(self, kind: type[_Kind]) -> list[_Kind]:
        """Return the outcomes of one kind of step."""
        return [outcome for outcome in self.outcomes if isinstance(outcome, kind)]

    @cached_property
    def whole(self) -> Float[Tensor, "samples numbers"]:
        """The values of the whole samples that were measured."""
        return torch.cat([outcome.whole for outcome in self._of(EmptyValues)])

    @cached_property
    def split(self) -> Split:
        """The score of the samples that were measured, based on their classes or on their values."""
        subject = self.setup.subject
        if subject.in_nats:
            classes = subject.classes[self.setup.numbers[: len(self.whole)]]
            return ByClass.of_whole_samples(classes, self.whole, subject.seed)
        rounding = _rounding_of(self.whole, subject.evaluator.task.probe.dtype)
        return ByValue.of_whole_samples(without_rounding(self.whole, rounding), subject.seed)

    def fully_masked(self) -> FullyMasked:
        """Split the scores of fully masked samples into leak and invention."""
        split = self.split
        prior = split.prior()
        parts = [
            self._split_drawn(method, self._empty_values(name), prior) for name, method in self.setup.methods.items()
        ]
        left_out = int((~split.estimable).sum())
        if left_out == len(self.whole):
            left_out = 0  # the reason says why nothing is measured
        return FullyMasked(
            leaks=join_methods([part.leak for part in parts]),
            inventions=join_methods([part.invention for part in parts]),
            averaging=join_methods([part.averaging for part in parts]),
            prior=prior,
            whole=split.estimable_scores(self.whole[None])[0],
            left_out=left_out,
            reason=split.why_not_estimable(),
        )

    def _empty_values(self, name: str) -> Drawn:
        """Return the values of ∅ of a method for all measured samples, by groups of draws."""
        shared = self._of(SharedValues)[0].by_method
        if name in shared:
            by_group = shared[name].by_group.expand(-1, len(self.whole), -1, -1)
            return Drawn(by_group, shared[name].sizes)
        parts = [outcome.by_method[name] for outcome in self._of(EmptyValues)]
        return Drawn(torch.cat([part.by_group for part in parts], dim=1), parts[0].sizes)

    def _split_drawn(self, method: Method, drawn: Drawn, prior: Float[Tensor, " samples"]) -> _SplitOfMethod:
        """Return leak, invention and the effect of averaging, as pseudo-values over the draws of ∅."""
        split = self.split
        mean = drawn.mean[:, 0]
        without = [values[:, 0] for values in drawn.without]
        rounding = _rounding_of(mean, method.evaluator.task.probe.dtype)
        whole = predict(split, mean, prior, rounding)
        parts = [predict(split, values, prior, rounding) for values in without]
        averaging = torch.zeros(len(mean)).double()
        if method.fill.draws > 1:
            averaging = split.averaging(mean)
        shared = method.shares_stand_ins
        return _SplitOfMethod(
            leak=pseudo_values(whole.leak, [part.leak for part in parts], shared),
            invention=pseudo_values(whole.invention, [part.invention for part in parts], shared),
            averaging=pseudo_values(averaging, [split.averaging(values) for values in without], shared),
        )

    def curve(self, prior: Float[Tensor, " samples"]) -> MaskingCurve:
        """Return the masking curve of the samples that were measured, which may be none."""
        setup = self.setup
        split = self.split
        parts = self._of(CurveValues)
        scores = torch.zeros(len(setup.methods), 0, len(setup.sizes)).double()
        by_draws = None
        inventions = None
        if parts:
            curves = [
                self._curve_of(method, [part.methods[number] for part in parts])
                for number, method in enumerate(setup.methods.values())
            ]
            scores = torch.stack([curve.scores for curve in curves])
            by_draws = join_methods([curve.by_draws for curve in curves])
            inventions = torch.stack([curve.inventions for curve in curves])
        return MaskingCurve(
            scores=scores,
            prior=prior[: scores.shape[1]],
            sizes=setup.sizes,
            unit=split.unit,
            limit=split.everything,
            all_absent=setup.subject.all_absent,
            by_draws=by_draws,
            inventions=inventions,
        )

    def _curve_of(self, method: Method, parts: Sequence[MethodCurve]) -> _CurveOfMethod:
        """Join the parts of one method's masking curve."""
        variance = self.split.variance if isinstance(self.split, ByValue) else 1.0
        values = torch.cat([part.values for part in parts])
        scores = torch.cat([part.scores for part in parts]) / variance
        without = torch.cat([part.without for part in parts]) / variance
        split = self.split.of(len(values))
        by_size = values.transpose(0, 1)
        inventions = split.estimable_scores(by_size) - split.recalibrated(by_size)
        return _CurveOfMethod(
            scores=scores,
            by_draws=pseudo_values(scores.mean(1), without.unbind(1), method.shares_stand_ins),
            inventions=inventions.nanmean(1),
        )

    def games(self) -> Companions:
        """Join the figures of the methods' own games."""
        parts = [outcome.figures for outcome in self._of(GameFigures)]
        return join_games(parts, len(self.setup.methods), self.setup.plan.own.players)

    def removal(self) -> Removal:
        """Return the strengths of the finished draws, or of the finished samples of the first draw.

        A state is what a game begins with: a sample as it is, white noise, or a sample masked by one of the methods.
        """
        plan = self.setup.plan
        games = plan.removal
        strengths = torch.full((plan.states, games.samples, games.draws), math.nan).double()
        rounding = torch.zeros(games.samples).double()
        for outcome in self._of(Strengths):
            strengths[:, outcome.samples, outcome.draw] = outcome.by_state
            rounding[outcome.samples] += outcome.rounding
        finished = ~strengths.isnan().any(0)  # (samples, draws)
        # An audit that was interrupted has whole draws, or a part of the first one.
        finished_samples = int(finished[:, 0].sum())
        finished_draws = max(1, int(finished.all(0).sum()))
        original, noise, *masked = strengths[:, :finished_samples, :finished_draws]  # (samples, draws) each
        by_method = dict(zip(self.setup.masked, masked, strict=True))
        unknown = torch.full_like(original, math.nan)  # for methods that do not mask the input
        all_masked = torch.stack([by_method.get(name, unknown) for name in self.setup.methods])
        removal = Removal(all_masked, original, noise, rounding[:finished_samples])
        if finished_samples and not bool(removal.kept.any()):
            raise AbsentiaError(
                "The model does not respond to the region's players: effects are no larger than rounding errors in "
                "all samples. Audit other players, or run the model in double precision."
            )
        return removal


@dataclass(frozen=True, eq=False)
class _SplitOfMethod:
    """Leak and invention of one method's fully masked samples, as pseudo-values."""

    leak: Float[Tensor, "samples groups"]
    invention: Float[Tensor, "samples groups"]
    averaging: Float[Tensor, "samples groups"]


@dataclass(frozen=True, eq=False)
class _CurveOfMethod:
    """The masking curve of one method."""

    scores: Float[Tensor, "samples sizes"]
    by_draws: Float[Tensor, "samples groups"]
    inventions: Float[Tensor, " sizes"]


def _rounding_of(values: Float[Tensor, "samples numbers"], dtype: torch.dtype) -> float:
    """Return the largest difference between the samples' values that rounding can cause."""
    sizes = values.abs()
    sizes = sizes[sizes < -RULED_OUT]
    largest = 1.0
    if sizes.numel():
        largest = float(sizes.max().clamp_min(1))
    return _UNITS_APART * torch.finfo(dtype).eps * largest
