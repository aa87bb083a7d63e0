"""Explanations: Shapley values and interactions of samples, in a record that is shown, drawn and saved."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from absentia.absences import Absence
from absentia.absences.protocol import BringsModel, describe_absence, empty_inputs
from absentia.arguments import checked
from absentia.attributions import Attribution, OrderAttribution
from absentia.budgets import Budget, BudgetReason, Work, choose_budget, smaller_budget
from absentia.data import Categorical, Classes, Table, check_number, each_class
from absentia.determined import WHY_NOT_DETERMINED, with_marks
from absentia.errors import DataFrame, Figure, require, wrong
from absentia.evaluation.leaf_values import LeafValues, NotFromLeaves
from absentia.evaluation.row_times import SHORT_WORK, time_values
from absentia.games import MAX_PLAYERS, MaskedModel, model_for, value_table
from absentia.indices import order_shapley, shapley
from absentia.interop import to_shap, to_shapiq
from absentia.learning import LearnedBaseline, absence_for
from absentia.models.encoded_inputs import encode_inputs
from absentia.players import Players
from absentia.plots import KINDS, OF_ALL_SAMPLES
from absentia.plots.interaction_plots import names_of_sets
from absentia.plots.strongest_sets import count_sets
from absentia.readout_notes import ReadoutNote
from absentia.readouts import Features, Readout
from absentia.runtime.limits import OutOfTime, TimeLimit
from absentia.runtime.progress import announce
from absentia.runtime.workers import worker_count
from absentia.sampled_explanation import sampled_parts
from absentia.solvers.cost_of_fits import seconds_of_fits
from absentia.solvers.exact import harsanyi
from absentia.solvers.leaves import LeafSums, sums_over_leaves
from absentia.storage import Saved, keep_figure
from absentia.storage.old_words import upgraded_record
from absentia.task import Task
from absentia.task_inputs import TaskInputs, TaskOptions
from absentia.terms import Interaction, Terms, upgraded_terms
from absentia.terms_in_words import name_with_basis
from absentia.text import align, count_of, fold, html_result, written
from absentia.version import __version__

# A larger gap between the sum of Shapley values and outputs − base_values is more than rounding, and is reported.
_LARGEST_GAP = 1e-6
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
_NO_TIME = "Or use fewer players, fewer samples, or a quicker model."
# An explanation prints at most this many players and interactions, and a notebook shows somewhat more.
_PRINTED_PLAYERS = 8
_PRINTED_INTERACTIONS = 5
_PLAYERS_IN_HTML = 20
_INTERACTIONS_IN_HTML = 10


@dataclass(frozen=True)
class ExplanationRecord:
    """How an explanation was made, and what it cost."""

    readout_note: ReadoutNote  # what was explained
    absence: str
    exact: bool  # whether values are exact rather than estimated
    evaluations: int  # rows that were evaluated for values: one for each coalition and draw of the absence
    seconds: float
    seed: int
    notes: tuple[str, ...] = ()
    class_names: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()  # the labels of the samples, from the index of a DataFrame
    values: tuple[str, ...] = ()  # what is explained for each sample, if it belongs to a class
    torch_version: str = str(torch.__version__)
    version: str = __version__
    rows_seen: int | None = None  # rows that the model evaluated in all, checks included; None in older files

    @property
    def readout(self) -> str:
        """What was explained, in words."""
        return str(self.readout_note)


@checked
@dataclass(frozen=True, eq=False)
class Explanation(Saved, kind="explanation", format=5):
    """Shapley values and interactions of samples, with a record of how they were computed. Returned by `explain`.

    Examples
    --------
    >>> x = torch.tensor([[2.0, 3.0], [1.0, 5.0]])
    >>> explanation = ab.explain(lambda rows: rows.prod(1), x, absence=1.0)
    >>> explanation.base_values, explanation.outputs
    (tensor([1., 1.], dtype=torch.float64), tensor([6., 5.], dtype=torch.float64))
    >>> explanation.shapley.values
    tensor([[2., 3.],
            [0., 4.]], dtype=torch.float64)
    """

    x: Shaped[Tensor, "samples *entries"]
    y: Int[Tensor, " samples"] | None  # classes, if they were given
    players: Players
    outputs: Float[Tensor, " samples"]  # v(N), with all players present
    base_values: Float[Tensor, " samples"]  # v(∅), with all players absent
    shapley: Attribution  # adds up to outputs − base_values
    order_shapley: OrderAttribution | None  # None if it would take long: for many players, or many drawn coalitions
    interactions: Terms | None  # all sets or listed ones; None if Shapley values were sampled
    stand_ins: Shaped[Tensor, "samples *entries"] | None  # samples with all players absent, averaged over the draws
    record: ExplanationRecord

    @property
    def samples(self) -> int:
        """The number of samples."""
        return len(self.x)

    @property
    def names(self) -> tuple[str, ...]:
        """The players' names."""
        return self.players.names

    @property
    def efficiency_gap(self) -> Float[Tensor, " samples"]:
        """What the Shapley values miss of outputs − base_values: a rounding error, for sampled values as well."""
        return self.outputs - self.base_values - self.shapley.values.sum(1)

    def sample_name(self, sample: int) -> str:
        """Return the name of a sample: its row label or its number, and its class if known.

        >>> ab.explain(lambda rows: 2 * rows, [[2.0, 3.0]], 1, absence=0.0).sample_name(0)
        'sample 0, class 1'
        """
        check_number("sample", sample, -self.samples, self.samples - 1)
        name = f"row {self.record.rows[sample]}" if self.record.rows else f"sample {sample}"
        if self.y is None:
            return name
        return f"{name}, {_class_name(int(self.y[sample]), self.record.class_names)}"

    def __repr__(self) -> str:
        lines = [self._title]
        lines += align(list(self._facts().items()), 2)
        lines.append(f"  {self.shapley.kind}:")
        lines += align(self._player_rows(_PRINTED_PLAYERS), 4)
        lines += [f"    {line}" for line in self._more_players(_PRINTED_PLAYERS)]
        interactions = self._strongest(_PRINTED_INTERACTIONS)
        if interactions:
            lines.append(f"  {self._interactions_heading(len(interactions))}:")
            lines += align(self._interaction_rows(interactions), 4)
            lines += [fold(f"    {remark}") for remark in self._remarks()]
        if self._shows_undetermined(_PRINTED_PLAYERS, interactions):
            lines.append(f"  {WHY_NOT_DETERMINED}")
        lines += [fold(f"  Note: {note}") for note in self.record.notes]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        players = self._player_rows(_PLAYERS_IN_HTML)
        tables = [[_heads("player", self.shapley.kind, players), *players]]
        interactions = self._strongest(_INTERACTIONS_IN_HTML)
        notes = self._more_players(_PLAYERS_IN_HTML)
        if interactions:
            rows = self._interaction_rows(interactions)
            tables.append([_heads(self._interactions_heading(len(interactions)), "effect", rows), *rows])
            notes += self._remarks()
        if self._shows_undetermined(_PLAYERS_IN_HTML, interactions):
            notes.append(WHY_NOT_DETERMINED)
        return html_result(self._title, self._facts(), *tables, notes=[*notes, *self.record.notes])

    @property
    def _title(self) -> str:
        count = count_of(self.samples, "sample")
        return f"Explanation of {count}, {len(self.names)} players; value: {self.record.readout}"

    def _facts(self) -> dict[str, str]:
        record = self.record
        how = "exact" if record.exact else f"sampled, seed {record.seed}"
        base = written(float(self.base_values[0]), 4)
        output = written(float(self.outputs[0]), 4)
        where = "" if self.samples == 1 and not self.record.rows else f"of {self.sample_name(0)}: "
        facts = {
            "absence": record.absence,
            "cost": f"{record.evaluations:,} evaluations, {record.seconds:.1f} s; {how}",
            "value": f"{where}{base} with all players absent, {output} with all present",
        }
        size = (self.outputs.abs() + self.base_values.abs()).clamp_min(1e-300)
        gap = float((self.efficiency_gap.abs() / size).max())
        if gap > _LARGEST_GAP:
            facts["gap"] = f"Shapley values miss the difference by {gap:.1g} of the values"
        return facts

    def _player_rows(self, most: int) -> list[tuple[str, ...]]:
        """Return the names and values of the largest players of the first sample, and mark undetermined values."""
        ranked = self.shapley.ranked()[:most]
        determined = self.shapley.determined[0]
        marks = [bool(determined[player]) for player, _ in ranked]
        return with_marks([(self.names[player], value) for player, value in ranked], marks)

    def _more_players(self, shown: int) -> list[str]:
        """Say how many players are not shown, if any."""
        hidden = len(self.names) - shown
        if hidden <= 0:
            return []
        return [f"… and {count_of(hidden, 'more player')}"]

    def _strongest(self, most: int) -> list[Interaction]:
        """Return the strongest interactions of the first sample: all of estimated ones, otherwise the measurable."""
        if self.interactions is None:
            return []
        is_estimated = self.interactions.errors is not None
        return [shown for shown in self.interactions.top(most) if shown.measurable or is_estimated]

    def _interaction_rows(self, strongest: Sequence[Interaction]) -> list[tuple[str, ...]]:
        """Return the names and effects of interactions, and mark undetermined effects."""
        names = names_of_sets([shown.players for shown in strongest])
        effects = [shown.text for shown in strongest]
        return with_marks(list(zip(names, effects, strict=True)), [shown.determined for shown in strongest])

    def _interactions_heading(self, shown: int) -> str:
        """Return the heading of the strongest interactions, with their basis and number if they are fitted."""
        terms = self.interactions
        if terms is None or terms.fidelity is None:
            basis = "Harsanyi" if terms is None else terms.basis
            return name_with_basis("strongest interactions", basis, is_fitted=False)
        heading = name_with_basis("strongest interactions", terms.basis, is_fitted=True)
        return f"{heading}, {shown} of {count_sets(terms):,}"

    def _remarks(self) -> list[str]:
        """Return what to know about the interactions of the first sample, if there are any."""
        return [] if self.interactions is None else self.interactions.remarks()

    def _shows_undetermined(self, players: int, interactions: Sequence[Interaction]) -> bool:
        """Return whether any of the players and interactions to show is not determined."""
        shown = [player for player, _ in self.shapley.ranked()[:players]]
        of_players = bool(self.shapley.determined[0, shown].all())
        return not (of_players and all(interaction.determined for interaction in interactions))

    def to_frame(self) -> DataFrame:
        """Return a pandas DataFrame: a row for each sample and player, with its value, error, rank and input.

        ``determined`` says whether the value is at least as large as its standard error. Rank 1 is the player with
        the sample's largest |value|. ``input`` and ``stand_in`` hold numbers, or the names of categories. They are
        NaN for players of several entries, and ``stand_in`` is NaN if the absence has none. There are extra columns
        for row labels and class names, if they are known.
        """
        values = self.shapley.values
        samples, players = values.shape
        inputs = self.players.named_values(self.x)
        stand_ins: list[list[float | str]] = [[math.nan] * players] * samples
        if self.stand_ins is not None:
            stand_ins = self.players.named_values(self.stand_ins)
        columns: dict[str, list[Any]] = {
            "sample": torch.arange(samples).repeat_interleave(players).tolist(),
            "player": list(self.names) * samples,
            "value": values.flatten().tolist(),
            "error": self.shapley.errors.flatten().tolist(),
            "determined": self.shapley.determined.flatten().tolist(),
            "rank": ranks_of(values.abs()).flatten().tolist(),
            "input": list(chain.from_iterable(inputs)),
            "stand_in": list(chain.from_iterable(stand_ins)),
        }
        if self.record.rows:
            columns["row"] = [row for row in self.record.rows for _ in range(players)]
        if self.y is not None and self.record.class_names:
            class_names = [self.record.class_names[class_number] for class_number in self.y.tolist()]
            columns["class"] = [name for name in class_names for _ in range(players)]
        return require("pandas", "tables").DataFrame(columns)

    def to_shap(self) -> Any:
        """Return shap's Explanation, which every plot of shap draws; see `interop.to_shap`."""
        return to_shap(self.shapley, self.x, base_values=self.base_values, players=self.players)

    def to_shapiq(self, sample: int = 0) -> Any:
        """Return shapiq's InteractionValues of one sample: its interactions, or Shapley values if there are none."""
        if self.interactions is not None:
            return to_shapiq(self.interactions, sample)
        return to_shapiq(self.shapley, sample, base_values=self.base_values)

    def plot(
        self, path: str | Path | None = None, sample: int | None = 0, *, kind: str = "overview", **options: Any
    ) -> Figure:
        """Draw the overview of one sample, or another kind of plot, and save it if ``path`` is passed.

        ``kind`` names a function of `absentia.plots` that draws an explanation. The options are passed on to it:
        overview, waterfall, bars, image_heat_map, text_line, interaction_list, upset, network, and_or_graph and
        order_profile of one sample; beeswarm, scatter and sparsity of all samples.
        """
        if kind not in KINDS:
            raise wrong("kind", f"be one of {', '.join(KINDS)}", repr(kind))
        chosen = {} if kind in OF_ALL_SAMPLES else {"sample": sample}
        return keep_figure(lambda: KINDS[kind](self, **chosen, **options), path)

    @staticmethod
    def upgraded(tensors: dict[str, Tensor], fields: dict[str, Any]) -> dict[str, Any]:
        """Bring the fields of an older format up to date.

        Format 3 stored bare order-wise values, and a record in words. Format 4 had one fidelity for all samples.
        """
        fields = fields | {"record": upgraded_record(fields["record"])}
        if fields["interactions"] is not None:
            terms = upgraded_terms(tensors, fields["interactions"], "interactions.")
            fields = fields | {"interactions": terms}
        if "order_shapley" not in tensors:
            return fields
        tensors["order_shapley.values"] = tensors.pop("order_shapley")
        shapley = fields["shapley"]
        by_order = {
            "evaluations": shapley["evaluations"],
            "names": shapley["names"],
            "kind": "order-wise Shapley values",
            "readout": shapley["readout"],
            "orders": list(range(len(shapley["names"]))),
        }
        return fields | {"order_shapley": by_order}

    @staticmethod
    def from_old(tensors: dict[str, Tensor], header: dict[str, Any]) -> dict[str, Any]:
        """Read the fields of a file in a format before 3."""
        places = {"labels": "players.labels", "effects": "interactions.effects", "noise": "interactions.noise"}
        tensors |= {place: tensors[name] for name, place in places.items() if name in tensors}
        shared = {"names": header["names"], "readout": header["record"]["readout"]} | header["shapley"]
        interactions = shared if "effects" in tensors else None
        return header | {"players": header, "shapley": shared, "interactions": interactions}


def _heads(name: str, value: str, rows: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return the heads of a table of names and values, with an empty one if its rows have marks."""
    has_marks = len(rows[0]) > 2
    if has_marks:
        return name, value, ""
    return name, value


def ranks_of(sizes: Float[Tensor, "samples players"]) -> Int[Tensor, "samples players"]:
    """Return the rank of each player in its sample: 1 for the largest |value|, with ties in player order."""
    players_by_size = sizes.argsort(dim=1, descending=True, stable=True)
    places = players_by_size.argsort(dim=1)  # sorting a permutation inverts it: the place of each player
    return places + 1


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
            *_notes_on_sampling(budget),
            *_notes_on_leaves(game, budget.evaluations),
            *_notes_on_absence(game, results.counts_draws),
            *results.notes,
        ),
        rows=tuple(str(label) for label in x.index) if hasattr(x, "columns") else (),
        values=_what_is_explained(task),
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
    return tuple(f"{quantity} of {_class_name(number, task.class_names)}" for number in classes)


def _class_name(number: int, names: Sequence[str]) -> str:
    """Return the name of a class, or its number if it has none."""
    return names[number] if names else f"class {number}"


def _stand_ins(game: MaskedModel) -> Shaped[Tensor, "samples *entries"] | None:
    """Return the samples with all players absent; None if only the absence's own model understands them."""
    if isinstance(game.absence, BringsModel):
        return None
    return empty_inputs(game.fill, game.samples, game.players, game.x.device)


def _notes_on_sampling(budget: Budget) -> list[str]:
    """Say how values were sampled, if they were, and how to repeat that."""
    if budget.evaluations is None:
        return []
    notes = [
        f"{budget.why}: values are estimated from {budget.coalitions:,} coalitions of each sample, with standard "
        "errors. Group players for exact results."
    ]
    if budget.how_to_repeat:
        notes.append(budget.how_to_repeat)
    return notes


def _notes_on_leaves(game: MaskedModel, budget: int | None) -> list[str]:
    """Say why a model of trees is not explained as a sum over its leaves."""
    values = game.leaf_values
    if isinstance(values, NotFromLeaves):
        return [values.note] if values.note else []
    if values.weights is not None or budget is None:
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
