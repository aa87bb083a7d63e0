"""Explanations: Shapley values and interactions of samples, in a record that is shown, drawn and saved."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from absentia.absences import Absence
from absentia.absences.protocol import BringsModel, describe_absence, empty_inputs
from absentia.arguments import checked
from absentia.attributions import Attribution, OrderAttribution
from absentia.data import Categorical, Classes, Table, as_tensor, check_number, each_class
from absentia.errors import DataFrame, Figure, require, wrong
from absentia.games import MAX_PLAYERS, MaskedModel, model_for, value_table
from absentia.indices import order_shapley, shapley
from absentia.interop import to_shap, to_shapiq
from absentia.learning import LearnedBaseline, absence_for
from absentia.players import Players
from absentia.plots import KINDS, OF_ALL_SAMPLES
from absentia.plots.interaction_plots import names_of_sets
from absentia.readouts import Features, Readout
from absentia.solvers.exact import harsanyi
from absentia.solvers.regression import sample_shapley
from absentia.storage import Saved, keep_figure
from absentia.task import Task
from absentia.terms import Terms
from absentia.text import align, count_of, fold, html_result, written
from absentia.version import __version__

_LARGEST_GAP = 1e-6  # between Shapley values and what they add up to, beyond rounding errors
# If players are too many for all coalitions, this many are drawn for each sample, or this many for each player.
_COALITIONS = 2**12
_COALITIONS_PER_PLAYER = 16


@dataclass(frozen=True)
class ExplanationRecord:
    """How an explanation was made, and what it cost."""

    readout: str
    absence: str
    exact: bool  # whether all coalitions were evaluated
    evaluations: int
    seconds: float
    seed: int
    notes: tuple[str, ...] = ()
    class_names: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()  # the labels of the samples in the index of a DataFrame
    values: tuple[str, ...] = ()  # what is explained of each sample, if it is that of a class
    torch_version: str = str(torch.__version__)
    version: str = __version__


@checked
@dataclass(frozen=True, eq=False)
class Explanation(Saved, kind="explanation", format=4):
    """Shapley values and interactions of samples, and what it takes to read them; made by `explain`.

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
    order_shapley: OrderAttribution | None  # None if Shapley values were sampled
    interactions: Terms | None  # None if Shapley values were sampled
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
        """What Shapley values lack of outputs − base_values: rounding errors, also of sampled values."""
        return self.outputs - self.base_values - self.shapley.values.sum(1)

    def sample_name(self, sample: int) -> str:
        """Return the name of a sample: its row in a DataFrame, or its number; and its class if it is known.

        >>> ab.explain(lambda rows: 2 * rows, [[2.0, 3.0]], 1, absence=0.0).sample_name(0)
        'sample 0, class 1'
        """
        check_number("sample", sample, -self.samples, self.samples - 1)
        name = f"row {self.record.rows[sample]}" if self.record.rows else f"sample {sample}"
        if self.y is None:
            return name
        return f"{name}, {_class_name(int(self.y[sample]), self.record.class_names)}"

    def __repr__(self) -> str:
        players, more, interactions = self._tables(8, 5)
        lines = [self._title, *align(list(self._facts().items()), 2), f"  {self.shapley.kind}:"]
        lines += [*align(players, 4), *(f"    {line}" for line in more)]
        if interactions:
            lines += ["  strongest interactions:", *align(interactions, 4)]
        return "\n".join([*lines, *(fold(f"  Note: {note}") for note in self.record.notes)])

    def _repr_html_(self) -> str:
        players, more, interactions = self._tables(20, 10)
        tables = [[("player", self.shapley.kind), *players]]
        if interactions:
            tables.append([("strongest interactions", "effect"), *interactions])
        return html_result(self._title, self._facts(), *tables, notes=[*more, *self.record.notes])

    @property
    def _title(self) -> str:
        count = count_of(self.samples, "sample")
        return f"Explanation of {count}, {len(self.names)} players; value: {self.record.readout}"

    def _facts(self) -> dict[str, str]:
        record = self.record
        how = "exact" if record.exact else f"sampled, seed {record.seed}"
        base, output = (written(float(values[0]), 4) for values in (self.base_values, self.outputs))
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

    def _tables(self, players: int, sets: int) -> tuple[list[tuple[str, str]], list[str], list[tuple[str, str]]]:
        """Return the first players with their values, the number of others in words, and the strongest sets."""
        shown = [(self.names[i], text) for i, text in self.shapley.ranked()[:players]]
        more = [f"… and {count_of(len(self.names) - players, 'more player')}"] if len(self.names) > players else []
        top = [] if self.interactions is None else [one for one in self.interactions.top(sets) if one.measurable]
        effects = [written(one.effect, 4, plus=True) for one in top]
        return shown, more, list(zip(names_of_sets([one.players for one in top]), effects, strict=True))

    def to_frame(self) -> DataFrame:
        """Return a pandas DataFrame: a row for each sample and player, with its value, error, rank and input.

        Rank 1 is the sample's largest |value|. ``input`` and ``stand_in`` are NaN for players of several entries, and
        categories by name. Labels of a DataFrame's rows and names of classes have their own columns.
        """
        values = self.shapley.values
        samples, players = values.shape
        order = values.abs().argsort(dim=1, descending=True, stable=True)
        absent = torch.full(self.x.shape, torch.nan) if self.stand_ins is None else self.stand_ins
        columns: dict[str, list[Any]] = {
            "sample": torch.arange(samples).repeat_interleave(players).tolist(),
            "player": list(self.names) * samples,
            "value": values.flatten().tolist(),
            "error": self.shapley.errors.flatten().tolist(),
            "rank": (order.argsort(dim=1) + 1).flatten().tolist(),
            "input": [value for row in self.players.named_values(self.x) for value in row],
            "stand_in": [value for row in self.players.named_values(absent) for value in row],
        }
        if self.record.rows:
            columns["row"] = [row for row in self.record.rows for _ in range(players)]
        if self.y is not None and self.record.class_names:
            columns["class"] = [self.record.class_names[one] for one in self.y.tolist() for _ in range(players)]
        return require("pandas", "tables").DataFrame(columns)

    def to_shap(self) -> Any:
        """Return shap's Explanation, which every plot of shap draws; see `interop.to_shap`."""
        return to_shap(self.shapley, self.x, base_values=self.base_values, players=self.players)

    def to_shapiq(self, sample: int = 0) -> Any:
        """Return shapiq's InteractionValues of one sample: all interactions, or sampled Shapley values."""
        if self.interactions is not None:
            return to_shapiq(self.interactions, sample)
        return to_shapiq(self.shapley, sample, base_values=self.base_values)

    def plot(
        self, path: str | Path | None = None, sample: int | None = 0, *, kind: str = "overview", **options: Any
    ) -> Figure:
        """Draw the overview of one sample, or another kind of picture; write it to a path if one is given.

        ``kind`` is the name of a function of `absentia.plots` that draws an explanation, and takes the options:
        overview, waterfall, bars, image_heat_map, text_line, interaction_list, upset, network, and_or_graph and
        order_profile of one sample; beeswarm, scatter and sparsity of all samples.
        """
        if kind not in KINDS:
            raise wrong("kind", f"be one of {', '.join(KINDS)}", repr(kind))
        chosen = {} if kind in OF_ALL_SAMPLES else {"sample": sample}
        return keep_figure(lambda: KINDS[kind](self, **chosen, **options), path)

    @staticmethod
    def upgraded(tensors: dict[str, Tensor], fields: dict[str, Any]) -> dict[str, Any]:
        """Return fields with order-wise values as a result of their own; format 3 had the values alone."""
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
        """Return the fields of a file of a format before 3."""
        places = {"labels": "players.labels", "effects": "interactions.effects", "noise": "interactions.noise"}
        tensors |= {place: tensors[name] for name, place in places.items() if name in tensors}
        shared = {"names": header["names"], "readout": header["record"]["readout"]} | header["shapley"]
        interactions = shared if "effects" in tensors else None
        return header | {"players": header, "shapley": shared, "interactions": interactions}


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
    max_players: int = MAX_PLAYERS,
    seed: int = 0,
    batch_size: int | None = None,
    memory: int | None = None,
) -> Explanation:
    """Explain the model's output on samples: Shapley values, order-wise Shapley values and all interactions.

    Up to ``max_players`` players, everything is exact and comes from one table of 2ⁿ values for each sample. With
    more players, or with ``evaluations``, Shapley values are sampled with standard errors, without interactions.

    Parameters
    ----------
    model : nn.Module, estimator or callable
        Estimators and boosters are wrapped; a numpy callable needs `from_numpy`.
    x : Tensor, array or DataFrame
        One sample or a batch of samples. Columns of a DataFrame name the players.
    y : int, str, sequence or array, optional
        The classes of the samples. Their log-odds are explained unless there is a ``readout``.
    absence : Absence, str or float
        What stands in for absent players: an absence, a number, or one of the words zero, mean, median, mode, blur,
        noise, marginal, gaussian, neighbours, learned.
    data : Tensor, array or DataFrame, optional
        Rows that an absence named by a word is made from, such as the training data. The same word, data and seed
        are the same absence in an `audit`.
    players : Players, optional
        The default is one player for each column of a table.
    evaluations : int, optional
        The rows that the model may evaluate for each sample.
    max_players : int, default 24
        The most players for exact results.
    seed : int, default 0
        Fixes the coalitions that are drawn, and what an absence named by a word draws.
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
        raise wrong("absence", "be passed by name", "it in the place of y", "Write explain(model, x, absence=…).")
    check_number("max_players", max_players, 1, MAX_PLAYERS)
    task = Task(
        model_for(absence, model),
        _as_batch(x, players),
        y,
        players=players,
        readout=readout,
        class_names=class_names,
        categorical=categorical,
        batch_size=batch_size,
        memory=memory,
    )
    if isinstance(task.readout, Features):
        raise wrong("readout", "give one number for an explanation", str(task.readout))
    game = MaskedModel.of_task(task, absence_for(task, absence, data, seed))
    budget = _rows_to_evaluate(game, evaluations, max_players)
    results = _sampled_results(game, budget, seed) if budget is not None else _exact_results(game)
    notes = [*_notes_on_sampling(game, budget, evaluations is None), *_notes_on_absence(game), *results.notes]
    record = ExplanationRecord(
        readout=task.readout_note,
        absence=describe_absence(game.absence),
        exact=budget is None,
        seed=seed,
        evaluations=results.shapley.evaluations,
        seconds=time.perf_counter() - began,
        class_names=task.class_names,
        notes=tuple(notes),
        rows=tuple(str(label) for label in x.index) if hasattr(x, "columns") else (),
        values=_what_is_explained(task),
    )
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
    """What is computed of a game."""

    outputs: Float[Tensor, " samples"]
    base_values: Float[Tensor, " samples"]
    shapley: Attribution
    order_shapley: OrderAttribution | None = None
    interactions: Terms | None = None
    notes: tuple[str, ...] = ()


def _as_batch(x: Table, players: Players | None) -> Table:
    """Return a batch of samples; a single one, such as a row of a DataFrame, becomes a batch of one."""
    if hasattr(x, "columns"):
        return x
    if hasattr(x, "to_frame") and hasattr(x, "index"):  # a Series, whose index names the columns
        return x.to_frame().T
    batch = as_tensor("x", x)
    if batch.ndim == 0:
        raise wrong("x", "be a sample or a batch of samples", "a single number")
    axes_of_a_sample = 1 if players is None else len(players.shape)
    if batch.ndim == axes_of_a_sample:
        return batch[None]
    return batch


def _rows_to_evaluate(game: MaskedModel, evaluations: int | None, max_players: int) -> int | None:
    """Return how many rows to evaluate for each sample; None for all coalitions."""
    budget = evaluations
    if budget is None and len(game.players) > max_players:
        budget = max(_COALITIONS, _COALITIONS_PER_PLAYER * len(game.players)) * game.draws
    if budget is not None and budget < 2 ** len(game.players) * game.draws:
        return budget
    return None


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
    """Estimate Shapley values from drawn coalitions."""
    sampled = sample_shapley(game, budget, seed)
    return _Results(outputs=sampled.full, base_values=sampled.empty, shapley=sampled.attribution)


def _what_is_explained(task: Task) -> tuple[str, ...]:
    """Say for each sample which number of which class is explained, if it is that of a class."""
    target = getattr(task.readout, "y", None)
    if target is None:
        return ()
    what = getattr(task.readout, "what", "value")
    classes = each_class(target, task.samples).tolist()
    return tuple(f"{what} of {_class_name(number, task.class_names)}" for number in classes)


def _class_name(number: int, names: Sequence[str]) -> str:
    """Return the name of a class, or its number if it has none."""
    return names[number] if names else f"class {number}"


def _stand_ins(game: MaskedModel) -> Shaped[Tensor, "samples *entries"] | None:
    """Return the samples with all players absent; None if only the absence's own model understands them."""
    if isinstance(game.absence, BringsModel):
        return None
    return empty_inputs(game.fill, game.samples, game.players, game.x.device)


def _notes_on_sampling(game: MaskedModel, budget: int | None, chosen_here: bool) -> list[str]:
    """Say how values are sampled, if they are."""
    if budget is None:
        return []
    players = len(game.players)
    why = f"{players} players are too many for all 2^{players} coalitions" if chosen_here else "As requested"
    return [
        f"{why}: Shapley values are sampled from {budget // game.draws:,} coalitions of each sample, with "
        "standard errors. There are no interactions and no order-wise values. Group players for exact results."
    ]


def _notes_on_absence(game: MaskedModel) -> list[str]:
    """Say what is averaged over, what brings its own model, and what was learned for another value."""
    notes = []
    if game.draws > 1:
        notes.append(f"Values are means over {game.draws} stand-ins; errors exclude the variance of the draw.")
    if isinstance(game.absence, BringsModel):
        notes.append("The absence brings its own model: its outputs are explained, not those of the given model.")
    if isinstance(game.absence, LearnedBaseline):
        notes += game.absence.notes_on(game.readout_note)
    return notes
