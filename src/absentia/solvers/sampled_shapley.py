"""Sampled Shapley values: the choice of a method, and when to stop drawing."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from absentia.attributions import Attribution
from absentia.cube.kernels import CubeKernel
from absentia.cube.likelihood import MOST_PLAYERS_OF_SHORT_STAGES, SHORT_STAGES, STAGES, Stage
from absentia.data import check_number
from absentia.errors import wrong
from absentia.games import Game, RowMeter, draws_of, readout_of
from absentia.runtime.progress import moves_on, progress
from absentia.solvers.cost_of_fits import seconds_of_process
from absentia.solvers.evaluated_pairs import InterruptedDraws, note_on_interruption
from absentia.solvers.grouped_draws import error_of_draws, games_asked
from absentia.solvers.paired_draws import PairedValues
from absentia.solvers.process import ShapleyEstimate
from absentia.solvers.process_residuals import FITTED_PAIRS, MOST_PAIRS_OF_PROCESS, process_shapley_of_any
from absentia.solvers.shapley_methods import METHODS, DrawnValues, ShapleyMethod
from absentia.text import count_of, written

# With this name, the cost of a row and of a fit decide which method is used.
AUTO = "auto"
# A process halves the error of a regression, which would need this many times as many evaluations more for that.
_EVALUATIONS_SAVED = 3.0
# Seconds of a fit that nobody notices, so that "auto" accepts them even if evaluations take no time.
_UNNOTICED_SECONDS = 0.3
# A tolerance is tried with this many coalitions for each player first, and then with more each time.
_FIRST_COALITIONS_PER_PLAYER = 8
_GROWTH = 2
# Without a budget, drawing ends at this many coalitions of a sample.
_MOST_COALITIONS = 2**17
# Errors are mostly those of an absence's draws if these make at least this share of them.
_SHARE_OF_DRAWS = 0.9
# How to get smaller errors.
_GO_ON = "Go on with shapley(…, more=result)."


# From drawn values to the kernels of the odd part of each sample, or None.
Fit = Callable[[PairedValues], Sequence[CubeKernel] | None]


class SampledShapley(NamedTuple):
    """Sampled Shapley values, and the values of the samples with all players absent and with all present."""

    attribution: Attribution
    empty: Float[Tensor, " samples"]
    full: Float[Tensor, " samples"]
    is_interrupted: bool = False  # by Ctrl-C, so that fewer coalitions were evaluated
    errors_of_draws: Float[Tensor, "samples players"] | None = None  # the part that the draws of an absence make


def sample_shapley(
    game: Game,
    evaluations: int | None,
    seed: int,
    *,
    method: str = AUTO,
    tolerance: float | None = None,
    more: Attribution | None = None,
    fit: Fit | None = None,
) -> SampledShapley:
    """Estimate Shapley values from drawn coalitions, up to a budget or until a tolerance is reached.

    ``fit`` returns the kernels of a process that is fitted anyway, or None if it is not: "auto" uses them.
    """
    if method not in (AUTO, *METHODS):
        raise wrong("method", f"be one of {AUTO}, {', '.join(METHODS)}", repr(method))
    check_number("tolerance", tolerance, 0, 1)
    run = _Run(game, seed, method, fit)
    if more is not None:
        run.take_up(more)
    budget = _budget(game, evaluations, run.least)
    if tolerance is None:
        run.draw(budget)
        return run.noted(run.result())
    return run.noted(run.draw_until(tolerance, budget))


def _budget(game: Game, evaluations: int | None, least: int) -> int:
    """Return how many coalitions of a sample may be evaluated."""
    draws = draws_of(game)
    if evaluations is None:
        return min(_MOST_COALITIONS, 2 ** len(game.names))
    if evaluations < least * draws:
        raise wrong("evaluations", f"be at least {least * draws} for {len(game.names)} players", evaluations)
    return evaluations // draws


class _Choice(NamedTuple):
    """A method, its estimate, and why it was chosen."""

    method: str
    estimate: ShapleyEstimate
    notes: tuple[str, ...] = ()


class _Run:
    """The state of one run: what was drawn so far, and what follows from it."""

    def __init__(self, game: Game, seed: int, method: str, fit: Fit | None) -> None:
        self.fit = fit
        self.game = game
        self.seed = seed
        self.method = method
        self.meter = RowMeter.start(game)
        self.drawn: Any = None
        self.seconds = 0.0  # of evaluating coalitions
        self.evaluated = 0  # coalitions of each sample in this time
        self.is_interrupted = False

    @property
    def chosen(self) -> ShapleyMethod:
        """The method that draws; that of "auto" draws pairs either way."""
        return METHODS["process" if self.method == AUTO else self.method]

    @property
    def least(self) -> int:
        """The fewest coalitions of a sample."""
        return self.chosen.least(len(self.game.names))

    def take_up(self, more: Attribution) -> None:
        """Go on from the coalitions of an earlier result of the same game."""
        if more.drawn is None:
            then = "Saved results do not hold their coalitions."
            raise wrong("more", "be a sampled result of shapley", more.kind, then)
        if more.names != self.game.names or len(more.values) != self.game.samples:
            got = f"one of {count_of(len(more.values), 'sample')} and {count_of(len(more.names), 'player')}"
            raise wrong("more", "be a result of the same game", got)
        self.drawn = more.drawn

    def draw(self, coalitions: int) -> None:
        """Evaluate coalitions until there are this many of each sample."""
        if self.drawn is not None and coalitions <= self.drawn.coalitions_per_sample:
            return
        earlier = self.drawn
        began = time.perf_counter()
        drawn = self._draw_or_keep(coalitions)
        self.seconds += time.perf_counter() - began
        self.evaluated += drawn.coalitions_per_sample - (0 if earlier is None else earlier.coalitions_per_sample)
        if earlier is not None:
            _check_same_game(earlier, drawn)
        self.drawn = drawn

    def _draw_or_keep(self, coalitions: int) -> Any:
        """Draw coalitions; after an interruption, return those that are known if they are enough."""
        try:
            return self.chosen.draw(self.game, coalitions, self.seed, self.drawn)
        except KeyboardInterrupt as interruption:
            known = interruption.values if isinstance(interruption, InterruptedDraws) else self.drawn
            if known is None or known.coalitions_per_sample < self.least:
                raise
            self.is_interrupted = True
            return known

    def draw_within(self, bar: Any, coalitions: int) -> None:
        """Evaluate coalitions until there are this many; a bar of coalitions moves on with each batch."""
        known = 0 if self.drawn is None else self.drawn.coalitions_per_sample
        bar.update(known - bar.n)
        with moves_on(bar, (coalitions - known) / games_asked(self.game)):
            self.draw(coalitions)
        bar.update(self.drawn.coalitions_per_sample - bar.n)

    def result(self) -> SampledShapley:
        """Estimate the values from what was drawn."""
        choice = self._estimate()
        errors = choice.estimate.errors
        notes = choice.notes
        of_draws = None
        if choice.estimate.by_group is not None:
            of_draws = error_of_draws(choice.estimate.by_group, self.drawn.shares)
            errors = (errors.square() + of_draws.square()).sqrt()
            notes = (*notes, "Standard errors include the variance of the draws of the absence.")
        attribution = Attribution(
            choice.estimate.values,
            errors,
            self.game.samples * self.drawn.coalitions_per_sample * draws_of(self.game),
            self.game.names,
            "sampled Shapley values",
            readout_of(self.game),
            rows_seen=self.meter.rows_seen,
            method=choice.method,
            notes=notes,
            drawn=self.drawn,
        )
        return SampledShapley(attribution, self.drawn.empty, self.drawn.full, errors_of_draws=of_draws)

    def _result_or_keep(self, earlier: SampledShapley | None) -> SampledShapley:
        """Estimate the values from what was drawn; after an interruption, return the earlier result."""
        try:
            return self.result()
        except KeyboardInterrupt:
            if earlier is None:
                raise
            self.is_interrupted = True
            return earlier

    def noted(self, result: SampledShapley) -> SampledShapley:
        """Return a result that says so if the run was interrupted."""
        if not self.is_interrupted:
            return result
        attribution = result.attribution
        known = attribution.evaluations // (self.game.samples * draws_of(self.game))
        note = f"{note_on_interruption(known)} {_GO_ON}"
        attribution = replace(attribution, notes=(note, *attribution.notes))
        return result._replace(attribution=attribution, is_interrupted=True)

    def _estimate(self) -> _Choice:
        """Estimate the values by the method, or by that which "auto" chooses."""
        if self.method != AUTO:
            return _Choice(self.method, METHODS[self.method].estimate(self.drawn, self.seed))
        by_regression = METHODS["leverage"].estimate(self.drawn, self.seed)
        kernels = None if self.fit is None else self.fit(self.drawn)
        if self.drawn.is_complete:
            return _Choice("leverage", by_regression, ("All coalitions were drawn, so the values are exact.",))
        stages = STAGES if kernels is not None else self._stages_in_time(self.drawn)
        if stages is None:
            return _Choice("leverage", by_regression, (self._note_on_time(self.drawn),))
        by_process = process_shapley_of_any(self.drawn, self.seed, kernels, stages)
        errors = (float(by_process.errors.square().mean()), float(by_regression.errors.square().mean()))
        if errors[0] >= errors[1]:
            note = "Regression was used: its errors are no larger than those of a Gaussian process."
            return _Choice("leverage", by_regression, (note,))
        how = " by a short search" if stages is SHORT_STAGES else ""
        note = f"A Gaussian process was fitted to the values{how}: its errors are smaller than those of a regression."
        if stages is SHORT_STAGES:
            note += " method='process' searches longer, for smaller errors."
        return _Choice("process", by_process, (note,))

    def _stages_in_time(self, drawn: PairedValues) -> tuple[Stage, ...] | None:
        """Return the stages of a fit that takes no longer than the evaluations that it saves; None if none does."""
        allowed = max(_UNNOTICED_SECONDS, self._seconds_saved(drawn))
        if _seconds_of_fit(drawn, STAGES) <= allowed:
            return STAGES
        has_few_players = drawn.coalitions.shape[1] <= MOST_PLAYERS_OF_SHORT_STAGES
        if has_few_players and _seconds_of_fit(drawn, SHORT_STAGES) <= allowed:
            return SHORT_STAGES
        return None

    def _note_on_time(self, drawn: PairedValues) -> str:
        """Say why "auto" fits no process."""
        fit = _seconds_of_fit(drawn, STAGES)
        saved = self._seconds_saved(drawn)
        what_else = "Add some" if self.fit is not None else "Add some, or pass method='process'"
        return (
            f"Regression was used: fitting a Gaussian process would take about {written(fit, 2)} s, and evaluations "
            f"that halve the error of a regression take about {written(saved, 2)} s. {what_else}."
        )

    def _seconds_saved(self, drawn: PairedValues) -> float:
        """Estimate how long the evaluations take that a regression would need beyond those of a process."""
        seconds_of_one = self.seconds / max(1, self.evaluated)
        return _EVALUATIONS_SAVED * seconds_of_one * drawn.coalitions_per_sample

    def draw_until(self, tolerance: float, budget: int) -> SampledShapley:
        """Draw more and more coalitions, until the largest error is within the tolerance or the budget is spent."""
        coalitions = max(self.least, _FIRST_COALITIONS_PER_PLAYER * len(self.game.names))
        if self.drawn is not None:
            coalitions = max(coalitions, self.drawn.coalitions_per_sample)
        result = None
        with progress(budget, "Shapley values", "coalition") as bar:
            while True:
                self.draw_within(bar, min(coalitions, budget))
                result = self._result_or_keep(result)
                error = relative_error(result)
                bar.set_postfix(error=written(error, 2), tolerance=written(tolerance, 2))
                is_done = error <= tolerance or coalitions >= budget or self.is_interrupted
                if is_done or is_kept_by_draws(result, tolerance):
                    break
                coalitions *= _GROWTH
        notes = (*result.attribution.notes, self._note_on_tolerance(tolerance, result))
        return result._replace(attribution=replace(result.attribution, notes=notes))

    def _note_on_tolerance(self, tolerance: float, result: SampledShapley) -> str:
        """Say whether a tolerance was reached, and if not, what would help."""
        error = relative_error(result)
        reached = f"the largest standard error is {written(error, 2)} of the values' size"
        if error <= tolerance:
            return f"The tolerance of {written(tolerance, 2)} is reached: {reached}."
        missed = f"The tolerance of {written(tolerance, 2)} is not reached"
        if self.is_interrupted:
            return f"{missed}: {reached}."
        if is_kept_by_draws(result, tolerance):
            return (
                f"{missed}: {reached}, mostly because the absence has {draws_of(self.game)} draws. Use more of them."
            )
        return f"{missed} within the evaluations: {reached}. {_GO_ON}"


def _seconds_of_fit(drawn: PairedValues, stages: tuple[Stage, ...]) -> float:
    """Estimate how long a process of drawn pairs takes."""
    fitted = FITTED_PAIRS if drawn.pairs > MOST_PAIRS_OF_PROCESS else drawn.pairs
    return seconds_of_process(fitted, drawn.coalitions.shape[1], drawn.samples, stages)


def is_kept_by_draws(sampled: SampledShapley, tolerance: float) -> bool:
    """Return whether the draws of an absence keep errors above a tolerance, so that more coalitions hardly help."""
    if sampled.errors_of_draws is None:
        return False
    of_draws = relative_error(sampled, sampled.errors_of_draws)
    return of_draws > tolerance and of_draws >= _SHARE_OF_DRAWS * relative_error(sampled)


def relative_error(sampled: SampledShapley, errors: Float[Tensor, "samples players"] | None = None) -> float:
    """Return the largest standard error as a share of the size of the values, the largest over the samples.

    ``errors`` are a part of the standard errors; the default is all of them.

    The size is the range of a sample's Shapley values, or the mean of their sum over the players if that is larger.
    """
    values = sampled.attribution.values
    spread = values.amax(1) - values.amin(1)
    mean = (sampled.full - sampled.empty).abs() / values.shape[1]
    size = spread.maximum(mean)
    errors = sampled.attribution.errors if errors is None else errors
    largest = errors.amax(1)
    shares = torch.where(largest > 0, largest / size.clamp_min(torch.finfo(size.dtype).tiny), largest)
    return float(shares.max())


def _check_same_game(earlier: DrawnValues, drawn: DrawnValues) -> None:
    """Raise an error if values of ∅ or of all players together are no longer what they were."""
    for first, again in ((earlier.empty, drawn.empty), (earlier.full, drawn.full)):
        if not torch.allclose(first, again, rtol=1e-5, atol=1e-8):
            raise wrong("more", "be a result of the same game", "one with other values of the same samples")
