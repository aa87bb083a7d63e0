"""Explanations: Shapley values and interactions of samples, in a record that is shown, drawn and saved."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from absentia.arguments import checked
from absentia.attributions import Attribution, OrderAttribution
from absentia.data import check_number
from absentia.determined import WHY_NOT_DETERMINED, with_marks
from absentia.errors import DataFrame, Figure, require, wrong
from absentia.interop import to_shap, to_shapiq
from absentia.players import Players
from absentia.plots import KINDS, OF_ALL_SAMPLES
from absentia.plots.interaction_plots import names_of_sets
from absentia.plots.strongest_sets import count_sets
from absentia.readout_notes import ReadoutNote
from absentia.storage import Saved, keep_figure
from absentia.storage.old_words import upgraded_record
from absentia.terms import Interaction, Terms, upgraded_terms
from absentia.terms_in_words import name_with_basis
from absentia.text import align, count_of, fold, html_result, written
from absentia.version import __version__

# A larger gap between the sum of Shapley values and outputs − base_values is more than rounding, and is reported.
_LARGEST_GAP = 1e-6
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
    is_interrupted: bool = False  # whether Ctrl-C ended the evaluations early

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
        return f"{name}, {class_name(int(self.y[sample]), self.record.class_names)}"

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


def class_name(number: int, names: Sequence[str]) -> str:
    """Return the name of a class, or its number if it has none."""
    return names[number] if names else f"class {number}"
