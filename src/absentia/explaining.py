"""Explaining: from a model and samples to their Shapley values and interactions, within a budget and a time limit."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from absentia.absences import Absence
from absentia.absences.protocol import BringsModel, describe_absence, empty_inputs
from absentia.arguments import checked
from absentia.attributions import Attribution, OrderAttribution
from absentia.budgets import Budget, BudgetReason, Work, choose_budget, smaller_budget
from absentia.data import Categorical, Classes, Table, check_number, each_class
from absentia.errors import wrong
from absentia.evaluation.leaf_values import LeafValues, NotFromLeaves
from absentia.evaluation.row_times import SHORT_WORK, time_values
from absentia.explanation import Explanation, ExplanationRecord, class_name
from absentia.games import MAX_PLAYERS, MaskedModel, model_for, value_table
from absentia.indices import order_shapley, shapley
from absentia.learning import LearnedBaseline, absence_for
from absentia.models.encoded_inputs import encode_inputs
from absentia.players import Players
from absentia.readouts import Features, Readout
from absentia.runtime.limits import OutOfTime, TimeLimit
from absentia.runtime.progress import announce
from absentia.runtime.workers import worker_count
from absentia.sampled_explanation import sampled_parts
from absentia.solvers.cost_of_fits import seconds_of_fits
from absentia.solvers.exact import harsanyi
from absentia.solvers.leaves import LeafSums, sums_over_leaves
from absentia.task import Task
from absentia.task_inputs import TaskInputs, TaskOptions
from absentia.terms import Terms
from absentia.text import count_of

# Under a time limit, this share of the time is kept for fewer coalitions, if those that were chosen take too long.
_SHARE_KEPT = 0.15
# Batches take at most this long, in seconds, so that progress is shown now and then, ...
_SECONDS_OF_A_BATCH = 5.0
# ... and at most this share of a time limit, so that work ends soon after it.
_SHARE_OF_A_BATCH = 0.03
# Work is not timed if it takes at most this share of a time limit by the model's first run.
_SHARE_OF_SHORT_WORK = 0.1
# The rows that the model has to run at least before anything is explained.
_FEW_ROWS = 2
# What to do if a time limit is too short for any result.
_NO_TIME = "Or use fewer players, fewer samples, or a faster model."


@checked
def explain(
    model: Any,
    x: Table,
    y: Classes = None,
    *,
    absence: Absence | str | float,
    data: Table | None = None,
    players: Players | None = None,
    readout: Readout | None = None,
    class_names: Iterable[str] | None = None,
    categorical: Categorical = (),
    evaluations: int | None = None,
    seconds: float | None = None,
    max_players: int = MAX_PLAYERS,
    seed: int = 0,
    batch_size: int | None = None,
    memory: int | None = None,
) -> Explanation:
    """Explain the model's output on samples: Shapley values, order-wise Shapley values and all interactions.

    Up to ``max_players`` players, everything is exact and comes from one table of 2ⁿ values for each sample. With
    more players, or with ``evaluations``, Shapley values and few interactions are estimated from drawn coalitions,
    with standard errors. The `fidelity` of these interactions says how much of the variation they account for.
    If the model is so slow that this would take more than about a minute, as many coalitions are sampled as fit a
    minute, and a note in the record says which ``evaluations`` repeat the result.

    Parameters
    ----------
    model : nn.Module, estimator or callable
        Estimators and boosters are wrapped; a numpy callable needs `from_numpy`.
    x : Tensor, array or DataFrame
        One sample or a batch of samples. Columns of a DataFrame name the players. Text, booleans and categories are
        encoded for an estimator, and values may be missing if the model takes NaN.
    y : int, str, sequence or array, optional
        The classes of the samples. Their log-odds are explained unless ``readout`` is passed.
    absence : Absence, str or float
        What stands in for absent players: an absence, a number, or one of the words zero, mean, median, mode,
        missing, blur, noise, marginal, gaussian, neighbours, learned. "missing" is NaN, for models that take it.
    data : Tensor, array or DataFrame, optional
        Rows from which an absence named by a word is made, such as the training data. The same word, data and seed
        give the same absence in an `audit`.
    players : Players, optional
        The default is one player for each column of a table.
    evaluations : int, optional
        The number of rows that the model may evaluate for each sample.
    seconds : float, optional
        A time limit. As many coalitions are evaluated as fit it. If they take longer than estimated, fewer are used.
        The default is about a minute for the model's rows; ``math.inf`` is no limit.
    max_players : int, default 24
        The largest number of players for exact results.
    seed : int, default 0
        The seed for drawing coalitions, and for an absence named by a word that draws.
    readout, class_names, categorical, batch_size, memory
        See `Task`.

    Examples
    --------
    >>> ab.explain(lambda rows: rows.prod(1), torch.tensor([3.0, 4.0]), absence=1.0)
    Explanation of 1 sample, 2 players; value: the output as it is
      absence  Baseline(1)
      cost     4 evaluations, ... s; exact
      value    1 with all players absent, 12 with all present
      Shapley values:
        x1  +6
        x0  +5
      strongest interactions:
        x0 & x1  +6
        x1       +3
        x0       +2
    """
    began = time.perf_counter()
    if y is not None and isinstance(y, Absence):
        raise wrong("absence", "be passed by name", "it in place of y", "Write explain(model, x, absence=…).")
    check_number("max_players", max_players, 1, MAX_PLAYERS)
    limit = TimeLimit(seconds)
    try:
        options = TaskOptions(y, players, readout, class_names, categorical, batch_size, memory)
        encoded = model_for(absence, encode_inputs(model, _as_frame(x), data, [absence], players))
        axes_of_a_sample = 1 if players is None else len(players.shape)
        task = Task.of_inputs(TaskInputs.read(encoded, axes_of_a_sample), options, limit)
        if isinstance(task.readout, Features):
            raise wrong("readout", "give one number for an explanation", str(task.readout))
        game = MaskedModel.of_task(task, absence_for(task, absence, encoded.data, seed))
        budget = _choose_budget(game, evaluations, seconds, max_players)
        results, budget = _compute_in_time(game, budget, seed)
    except OutOfTime as error:
        raise limit.too_short(_FEW_ROWS, _NO_TIME) from error
    record = ExplanationRecord(
        readout_note=task.readout_note,
        absence=describe_absence(game.absence),
        exact=budget.evaluations is None,
        seed=seed,
        evaluations=results.shapley.evaluations,
        rows_seen=task.row_count.rows,
        seconds=time.perf_counter() - began,
        class_names=task.class_names,
        notes=(
            *_notes_on_sampling(budget, results.is_interrupted),
            *_notes_on_leaves(game),
            *_notes_on_absence(game, results.counts_draws),
            *results.notes,
        ),
        rows=tuple(str(label) for label in x.index) if hasattr(x, "columns") else (),
        values=_what_is_explained(task),
        is_interrupted=results.is_interrupted,
    )
    return _explanation(game, results, record)


def explanation_of_terms(
    game: MaskedModel, terms: Terms, *, seconds: float = 0.0, seed: int = 0, rows: tuple[str, ...] = ()
) -> Explanation:
    """Return the explanation of a game from a solver's terms, without a table of all values.

    Outputs, base values and Shapley values are sums of effects, as are order-wise values for up to 24 players.
    """
    task = game.evaluator.task
    results = _results_of_terms(terms)
    record = ExplanationRecord(
        readout_note=task.readout_note,
        absence=describe_absence(game.absence),
        exact=terms.is_exact,
        seed=seed,
        evaluations=terms.evaluations,
        rows_seen=terms.rows_seen,
        seconds=seconds,
        class_names=task.class_names,
        notes=(*_notes_on_absence(game), *results.notes),
        rows=rows,
        values=_what_is_explained(task),
    )
    return _explanation(game, results, record)


def _explanation(game: MaskedModel, results: _Results, record: ExplanationRecord) -> Explanation:
    """Combine the samples of a game, its results and the record."""
    task = game.evaluator.task
    return Explanation(
        x=task.rows.detach().cpu().clone(),
        y=task.classes,
        players=task.players,
        outputs=results.outputs,
        base_values=results.base_values,
        shapley=results.shapley,
        order_shapley=results.order_shapley,
        interactions=results.interactions,
        stand_ins=_stand_ins(game),
        record=record,
    )


class _Results(NamedTuple):
    """The results computed for a game."""

    outputs: Float[Tensor, " samples"]
    base_values: Float[Tensor, " samples"]
    shapley: Attribution
    order_shapley: OrderAttribution | None = None
    interactions: Terms | None = None
    notes: tuple[str, ...] = ()
    counts_draws: bool = False  # whether errors include the variance of the draws of a random absence
    is_interrupted: bool = False


def _as_frame(x: Table) -> Table:
    """Return a row of a DataFrame as a DataFrame of one row, and anything else as it is."""
    is_series = hasattr(x, "to_frame") and hasattr(x, "index")  # whose index names the columns
    if is_series and not hasattr(x, "columns"):
        return x.to_frame().T.infer_objects()
    return x


def _choose_budget(game: MaskedModel, evaluations: int | None, seconds: float | None, max_players: int) -> Budget:
    """Choose how many rows to evaluate for each sample, and say so if they take long."""
    fit = partial(seconds_of_fits, players=len(game.players), samples=game.samples)
    untimed = Work(len(game.players), game.draws, game.samples, seconds_per_row=0.0, fit=fit)
    if evaluations is None and sums_over_leaves(game) is not None:
        return Budget(untimed, BudgetReason.ALL)
    limit = game.task.limit
    choose = partial(choose_budget, evaluations=evaluations, seconds=seconds, max_players=max_players)
    wanted = choose(untimed)
    if isinstance(game.leaf_values, LeafValues):  # no row is run
        return wanted
    budget = choose(replace(untimed, seconds_per_row=_time_rows(game, wanted)), spent=limit.spent)
    if budget.reason is BudgetReason.LIMIT and budget.seconds > limit.left:
        raise limit.too_short(budget.work.rows(budget.coalitions), _NO_TIME)
    if budget.announcement:
        announce(budget.announcement)
    return budget


def _time_rows(game: MaskedModel, wanted: Budget) -> float:
    """Return about how many seconds each row of a budget takes with all workers; shorten batches that take long."""
    task = game.task
    short_work = min(SHORT_WORK, _SHARE_OF_SHORT_WORK * task.limit.left)
    seconds_of_a_batch = min(_SECONDS_OF_A_BATCH, _SHARE_OF_A_BATCH * task.limit.left)
    rows = wanted.work.rows(wanted.coalitions)
    rows_before = task.row_count.rows
    row_time = time_values(
        game.evaluator, game.fill, rows, as_table=wanted.evaluations is None, short_work=short_work
    )
    # They are run once, for all results of the game.
    game.rows_of_setup += task.row_count.rows - rows_before
    game.use_batches_of(row_time.rows_within(seconds_of_a_batch, task.batch_size))
    return row_time.seconds_per_row(min(task.batch_size, rows)) / min(worker_count(), game.samples)


def _compute_in_time(game: MaskedModel, budget: Budget, seed: int) -> tuple[_Results, Budget]:
    """Compute results within the time limit: from fewer coalitions, if the budget takes longer than estimated."""
    limit = game.task.limit
    if not limit.is_set:
        return _compute(game, budget.evaluations, seed), budget
    row_count = game.task.row_count
    rows_before = row_count.rows
    spent_before = limit.spent
    limit.reserve = _SHARE_KEPT * limit.left
    try:
        return _compute(game, budget.evaluations, seed), budget
    except OutOfTime:
        limit.reserve = 0.0
    rows = max(1, row_count.rows - rows_before)
    smaller = smaller_budget(budget, limit.left, (limit.spent - spent_before) / rows)
    if smaller.coalitions >= budget.coalitions or smaller.seconds > limit.left:
        raise limit.too_short(budget.work.rows(budget.coalitions), _NO_TIME)
    return _compute(game, smaller.evaluations, seed), smaller


def _compute(game: MaskedModel, budget: int | None, seed: int) -> _Results:
    """Compute results from a model's leaves, from drawn coalitions, or from all coalitions."""
    if budget is not None:
        return _sampled_results(game, budget, seed)
    leaves = sums_over_leaves(game)
    if leaves is not None:
        return _results_of_leaves(leaves)
    return _exact_results(game)


def _results_of_leaves(leaves: LeafSums) -> _Results:
    """Compute everything from the leaves of a model's trees."""
    terms = leaves.terms()
    empty, full = leaves.ends()
    few_players = len(terms.names) <= MAX_PLAYERS
    return _Results(
        outputs=full,
        base_values=empty,
        shapley=leaves.shapley(),
        order_shapley=leaves.order_shapley() if few_players else None,
        interactions=terms,
        notes=(leaves.note, *terms.notes),
    )


def _exact_results(game: MaskedModel) -> _Results:
    """Compute everything from one table of all values."""
    table = value_table(game).cpu()
    return _Results(
        outputs=table.values[:, -1].clone(),
        base_values=table.values[:, 0].clone(),
        shapley=shapley(table),
        order_shapley=order_shapley(table),
        interactions=harsanyi(table),
        notes=table.notes,
    )


def _sampled_results(game: MaskedModel, budget: int, seed: int) -> _Results:
    """Estimate everything from the same drawn coalitions."""
    parts = sampled_parts(game, budget, seed, game.task.limit.left)
    return _Results(
        outputs=parts.shapley.full,
        base_values=parts.shapley.empty,
        shapley=parts.shapley.attribution,
        order_shapley=parts.order_shapley,
        interactions=parts.interactions,
        notes=parts.notes,
        counts_draws=parts.counts_draws,
        is_interrupted=parts.shapley.is_interrupted,
    )


def _results_of_terms(terms: Terms) -> _Results:
    """Compute everything in an explanation from effects."""
    players = len(terms.names)
    ends = terms.predict(torch.tensor([[False] * players, [True] * players]))
    has_orders = terms.errors is None and players <= MAX_PLAYERS
    return _Results(
        outputs=ends[:, 1].clone(),
        base_values=ends[:, 0].clone(),
        shapley=terms.shapley(),
        order_shapley=terms.order_shapley() if has_orders else None,
        interactions=terms,
        notes=_notes_on_terms(terms),
    )


def _notes_on_terms(terms: Terms) -> tuple[str, ...]:
    """Say how well fitted terms fit, and how many sets are listed if not all are."""
    notes = []
    if not terms.is_full:
        notes.append(f"{count_of(len(terms.effects), 'set')} of players are listed. All other sets have no effect.")
    if terms.fidelity is not None:
        notes.append(
            "Effects are fitted. Their share of the variation is measured on coalitions that the fit did not see."
        )
    return tuple(notes)


def _what_is_explained(task: Task) -> tuple[str, ...]:
    """Say for each sample which number of which class is explained, if it belongs to a class."""
    target = getattr(task.readout, "y", None)
    if target is None:
        return ()
    quantity = getattr(task.readout, "quantity", "value")
    classes = each_class(target, task.samples).tolist()
    return tuple(f"{quantity} of {class_name(number, task.class_names)}" for number in classes)


def _stand_ins(game: MaskedModel) -> Shaped[Tensor, "samples *entries"] | None:
    """Return the samples with all players absent; None if only the absence's own model understands them."""
    if isinstance(game.absence, BringsModel):
        return None
    return empty_inputs(game.fill, game.samples, game.players, game.x.device)


def _notes_on_sampling(budget: Budget, is_interrupted: bool) -> list[str]:
    """Say how values were sampled, if they were, and how to repeat that."""
    if budget.evaluations is None:
        return []
    if is_interrupted:
        return [f"{budget.coalitions:,} coalitions of each sample were to be evaluated."]
    notes = [
        f"{budget.why}: values are estimated from {budget.coalitions:,} coalitions of each sample, with standard "
        "errors. Group players for exact results."
    ]
    if budget.how_to_repeat:
        notes.append(budget.how_to_repeat)
    return notes


def _notes_on_leaves(game: MaskedModel) -> list[str]:
    """Say why a model of trees is not explained as a sum over its leaves."""
    values = game.leaf_values
    if isinstance(values, NotFromLeaves):
        return [values.note] if values.note else []
    if values.weights is not None:
        return []
    subject = game.readout_note.with_verb()
    return [
        f"{subject[0].upper()}{subject[1:]} not a sum over leaves, so coalitions are valued from the leaves that "
        f"they reach. With readout={values.exact_readout}, all results are exact for any number of players."
    ]


def _notes_on_absence(game: MaskedModel, counts_draws: bool = False) -> list[str]:
    """Say what the absence averages over, whether it brings a model, and whether it was learned for another value."""
    notes = []
    if game.draws > 1:
        note = f"Values are means over {game.draws} stand-ins"
        notes.append(f"{note}." if counts_draws else f"{note}; errors exclude the variance of the draw.")
    if isinstance(game.absence, BringsModel):
        notes.append("The absence brings its own model: its outputs are explained, not those of the given model.")
    if isinstance(game.absence, LearnedBaseline):
        notes += game.absence.notes_on(game.readout_note)
    return notes
