"""The record of an audit: figures, verdict, settings and cost; shown, drawn, saved and loaded without the model."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Shaped
from torch import Tensor

from absentia.arrays import Array, as_tensor
from absentia.audit.companions import Companions
from absentia.audit.estimates import Estimate, estimate
from absentia.audit.plausibility import Plausibility
from absentia.audit.removal import Removal
from absentia.audit.strengths import Cost
from absentia.audit.text import fold, table_cells, text_table
from absentia.audit.verdict import compare_own_games, judge, ranking, warn
from absentia.errors import wrong
from absentia.notebook import html_result, html_table
from absentia.optional import require
from absentia.plots import draw_agreement, draw_order_profiles, draw_removal, new_figure
from absentia.saving import check_folder, check_kind, read_tensors, write_tensors
from absentia.version import __version__
from absentia.wording import count_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

KIND, FORMAT = "audit", 1


@dataclass(frozen=True)
class AuditRecord:
    """How an audit was made, and what it took."""

    readout: str
    reference: str
    samples: int
    draws: int
    exact: bool  # whether all of the region's coalitions were evaluated, or those of drawn games
    game_players: int  # how many players each game had that R was measured in
    companion_players: tuple[str, ...]  # the players of the companions' game; () where games were drawn
    threshold: str  # from where on an effect is salient, in words
    seed: int
    costs: dict[str, Cost]  # of each method
    shared_cost: Cost  # of the samples themselves and of noise, which serve all methods
    notes: tuple[str, ...]
    absences: dict[str, str] = field(default_factory=dict)  # what each method is, in a line
    torch_version: str = str(torch.__version__)
    version: str = __version__


@dataclass(frozen=True, eq=False)
class Audit:
    """Whether absences remove the signal and add none: the R metric, its companions, and a verdict in sentences.

    ``removal`` holds the strengths that R is made of, ``companions`` the figures of each absence's own game,
    ``plausibility`` how masked samples lie to the data.

    >>> import absentia as ab
    >>> x = torch.rand(20, 3, generator=torch.Generator().manual_seed(0)).double()
    >>> methods = {"zero": ab.Baseline(0.0), "half": ab.Baseline(0.5)}
    >>> audit = ab.audit(lambda rows: (rows - 0.5).prod(1), x, None, methods)
    >>> audit.R.value[1] < audit.R.value[0]
    tensor(True)
    """

    methods: tuple[str, ...]
    players: tuple[str, ...]
    region: tuple[str, ...]
    removal: Removal
    companions: Companions
    plausibility: Plausibility
    record: AuditRecord

    @property
    def R(self) -> Estimate:  # noqa: N802 - the metric's name
        """R of each method, and its standard error: 0 at the level of white noise; the less, the better."""
        return self.removal.R

    @property
    def verdict(self) -> tuple[str, ...]:
        """What each method removes and adds, the best first."""
        own_games = compare_own_games(self.methods, self.removal, self.companions)
        return tuple(judge(self.methods, self.removal) + own_games)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to beware of."""
        return tuple(warn(self.methods, self.region, self.removal, self.plausibility))

    def columns(self) -> dict[str, Shaped[Tensor, " methods"]]:
        """List the figures of each method by name; those with an error have it beside them."""
        removal, companions, record = self.removal, self.companions, self.record
        others = self.companions.agreement().clone().fill_diagonal_(torch.nan)
        estimates = {
            "R": removal.R,
            "removed": removal.removed,
            "strength": companions.strength,
            "salient": companions.salient_count,
            "terms": companions.term_count,
            "low_orders": companions.low_orders,
            "empty_value": companions.empty_value,
        }
        columns: dict[str, Tensor] = {}
        for name, found in estimates.items():
            columns |= {name: found.value, f"{name}_error": found.error}
        return columns | {
            "agreement": others.nanmean(1),
            "distance": self.plausibility.distance,
            "players_outside": self.plausibility.outside.sum(1),
            "evaluations": torch.tensor([record.costs[name].evaluations for name in self.methods]),
            "seconds": torch.tensor([record.costs[name].seconds for name in self.methods]),
        }

    def agreement_with(self, attributions: Array) -> Estimate:
        """Correlate attributions from elsewhere, (samples, players), with every method's Shapley values by rank.

        Such as captum's by `interop.from_captum`, for the audited samples: the absence that they agree with is the
        one that they imply.
        """
        values = as_tensor("attributions", attributions).detach().cpu()
        if not self.record.exact:
            raise wrong("attributions", "be compared in an audit of all coalitions", "one of drawn games")
        wanted = (self.record.samples, len(self.record.companion_players))
        if tuple(values.shape) != wanted:
            must = f"have a row for each of the {wanted[0]} samples and a column for each of {wanted[1]} players"
            raise wrong("attributions", must, f"shape {tuple(values.shape)}")
        return estimate(self.companions.agreement_with(values.double())[..., None])

    def to_frame(self) -> DataFrame:
        """Make a pandas DataFrame: a row for each method, a column for each figure and its error."""
        pandas = require("pandas", "tables")
        columns = {name: values.numpy() for name, values in self.columns().items()}
        return pandas.DataFrame(columns, index=pandas.Index(self.methods, name="method"))

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw R with its errors, the strength by order, and the agreement of attributions; write it to a path."""
        if path is not None:
            check_folder("path", Path(path))
        figure = new_figure(columns=3)
        left, middle, right = figure.axes
        # The same order in all three, so that a method has the same look: those without an R come last.
        measured, order = ranking(self.removal), self._order()
        names, found = [self.methods[number] for number in order], self.removal.R
        unmasked = float(self.removal.unmasked.value)
        draw_removal(left, names[: len(measured)], found.value[measured], found.error[measured], unmasked)
        draw_order_profiles(middle, names, self.companions.order_profile().value[order])
        draw_agreement(right, names, self.companions.agreement()[order][:, order])
        figure.suptitle(
            f"{len(order)} absences on {self.record.samples} samples; value: {self.record.readout}", fontsize=11
        )
        if path is not None:
            figure.savefig(path, dpi=150)
        return figure

    def save(self, path: str | Path) -> None:
        """Write everything to one file: safetensors with a JSON header, no pickle; all of it or nothing."""
        header = {
            "kind": KIND,
            "format": FORMAT,
            "methods": list(self.methods),
            "players": list(self.players),
            "region": list(self.region),
            "record": asdict(self.record),
        }
        tensors = {
            f"{part}.{name}": tensor.contiguous()
            for part in _PARTS
            for name, tensor in _tensors(getattr(self, part)).items()
        }
        write_tensors(Path(path), tensors, header)

    @classmethod
    def load(cls, path: str | Path) -> Audit:
        """Read what `save` wrote."""
        tensors, header = read_tensors(Path(path))
        check_kind(Path(path), header, KIND, FORMAT)
        parts: dict[str, Any] = {
            part: kind(**{name: tensors[f"{part}.{name}"] for name in kind.__dataclass_fields__})
            for part, kind in _PARTS.items()
        }
        settings: dict[str, Any] = header["record"]
        settings |= {key: tuple(settings[key]) for key in ("companion_players", "notes")}
        settings["costs"] = {name: Cost(**cost) for name, cost in settings["costs"].items()}
        settings["shared_cost"] = Cost(**settings["shared_cost"])
        names: dict[str, Any] = {key: tuple(header[key]) for key in ("methods", "players", "region")}
        return cls(**names, **parts, record=AuditRecord(**settings))

    def __repr__(self) -> str:
        lines = [self._title()]
        lines += [f"  {sentence}" for sentence in self.verdict]
        lines += [f"  Beware: {sentence}" for sentence in self.warnings]
        lines += [f"  Note: {note}" for note in self.record.notes]
        lines += ["", *text_table(self.methods, self.columns(), self._order()), "", self._legend()]
        return "\n".join(fold(line) for line in lines)

    def _repr_html_(self) -> str:
        heads, *rows = table_cells(self.methods, self.columns(), self._order())
        said = [*self.verdict, *(f"Beware: {sentence}" for sentence in self.warnings)]
        notes = [*said, *(f"Note: {note}" for note in self.record.notes), self._legend()]
        return html_result(self._title(), {}, html_table(heads, rows), notes=notes)

    def _title(self) -> str:
        record, region = self.record, len(self.region)
        whose = f"{region} players" if region == len(self.players) else f"{region} of {len(self.players)} players"
        count = count_of(record.samples, "sample")
        played = "" if record.exact else f", in {record.draws} drawn games of {record.game_players}"
        return (
            f"Audit of {len(self.methods)} absences on {count}: {whose} masked{played}; value: {record.readout}; "
            f"reference: {record.reference}, {count_of(record.draws, 'draw')}"
        )

    def _order(self) -> list[int]:
        """Rank the methods, the best first; those without an R come last."""
        ranked = ranking(self.removal)
        return ranked + [number for number in range(len(self.methods)) if number not in ranked]

    def _legend(self) -> str:
        unmasked, record = float(self.removal.unmasked.value), self.record
        total = sum(record.costs.values(), record.shared_cost)
        return (
            f"R: 0 at the level of white noise, {unmasked:.3g} for unmasked samples. Σ|U| to v(∅): of each absence's "
            f"own game. Salient: {record.threshold}. Terms: effects that rebuild all values to 5 %. Low orders: up "
            f"to half the players. Agreement: mean rank correlation with the others' Shapley values. "
            f"Cost: {total.evaluations:,} evaluations, {total.seconds:.1f} s; "
            f"{record.shared_cost.evaluations:,} evaluations serve all methods."
        )


_PARTS: dict[str, Any] = {"removal": Removal, "companions": Companions, "plausibility": Plausibility}


def _tensors(part: Any) -> dict[str, Tensor]:
    return {name: getattr(part, name) for name in part.__dataclass_fields__}
