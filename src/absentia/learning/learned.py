"""The result of learning: baseline values that are an absence, with the record of how they were found."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from absentia.absences.fixed import Baseline, OwnBaselines
from absentia.absences.protocol import Fill
from absentia.data import QUANTILES, Classes, class_numbers
from absentia.errors import DataFrame, Figure, require, wrong
from absentia.players import Players
from absentia.plots import baselines
from absentia.readouts import same_kind
from absentia.results import Saved, count_of, html_result, keep_figure
from absentia.version import __version__

Share: TypeAlias = Literal["all", "class", "sample"]
_MOST_ROWS_SHOWN = 20


@dataclass(frozen=True)
class LearningRecord:
    """How a baseline was learned: settings, cost, and how far to trust it."""

    loss: str
    exact: bool  # whether the penalty was computed from all coalitions up to order λ
    orders: int  # λ
    bounds: str
    starts: tuple[str, ...]
    final_losses: tuple[float, ...]  # where each start ended
    seed: int
    samples: int
    converged: bool
    stopped: str  # why it stopped
    evaluations: int
    seconds: float
    undetermined: tuple[str, ...]  # players that do not affect the loss: they keep the values of the first start
    readout: str = "not recorded"
    chosen: str = ""  # the best on the samples kept aside: "learned", or a usual baseline
    compared: dict[str, float] = field(default_factory=dict)  # the loss of each candidate on these samples
    kept_aside: int = 0  # the number of these samples
    weights: tuple[float, ...] = ()  # of evidence and noise in the default loss
    class_names: tuple[str, ...] = ()  # in the order of the model's outputs
    undetermined_numbers: tuple[int, ...] | None = None  # of these players; None in older files
    version: str = __version__
    torch_version: str = str(torch.__version__)

    @property
    def spread(self) -> float:
        """How far apart the starts ended, as a share of the best loss."""
        best, worst = min(self.final_losses, default=0.0), max(self.final_losses, default=0.0)
        return (worst - best) / best if best > 0 else 0.0


@dataclass(frozen=True, eq=False, repr=False)
class LearnedBaseline(Saved, kind="baseline", format=3):  # 2 had quantiles and labels, 1 had none
    """Learned baseline values: an absence for any sample, for samples of known classes, or for the learned samples.

    Examples
    --------
    >>> x = torch.rand(64, 3, generator=torch.Generator().manual_seed(0)).double()
    >>> learned = ab.learn_baseline(lambda rows: (rows - 0.25).prod(1), x)
    >>> learned.converged, learned.share, learned.values.shape
    (True, 'all', torch.Size([3]))
    """

    values: Shaped[Tensor, " *shape"]  # of the shape of one sample, after an axis of classes or samples by share
    share: Share  # which samples share a baseline
    classes: Int[Tensor, " owners"] | None  # the class number of each baseline, if each class has one
    players: Players | None  # None for files of format 1 whose players have several entries
    loss: float  # the mean penalty per sample at these values
    history: Float[Tensor, "checks 2"]  # evaluations, and the least loss so far (with the terms that decide ties)
    record: LearningRecord
    quantiles: Float[Tensor, "quantiles *entries"] | None = None  # of the data, at `QUANTILES`; none of tokens
    other_names: tuple[str, ...] = ()  # of players whose entries are unknown

    def __repr__(self) -> str:
        return "\n".join([self._title, *(f"  {name:<12}  {text}" for name, text in self._facts.items())])

    def _repr_html_(self) -> str:
        shown = {name: cells for name, cells in self._columns.items() if name not in ("5 %", "95 %")}
        rows = [[_cell(cell) for cell in row] for row in zip(*shown.values(), strict=True)]
        more = len(rows) - _MOST_ROWS_SHOWN
        notes = [f"… and {more:,} more values"] if more > 0 else []
        return html_result(self._title, self._facts, [list(shown), *rows[:_MOST_ROWS_SHOWN]], notes=notes)

    @property
    def names(self) -> tuple[str, ...]:
        """The players' names."""
        return self.other_names if self.players is None else self.players.names

    @property
    def undetermined(self) -> list[bool]:
        """Whether each player does not affect the loss: by number, because players may share a name."""
        known, numbers = self.record.undetermined, self.record.undetermined_numbers
        return [name in known if numbers is None else i in numbers for i, name in enumerate(self.names)]

    @property
    def class_labels(self) -> tuple[str | int, ...]:
        """The name, or else the number, of each class that has a baseline."""
        numbers, names = [] if self.classes is None else self.classes.tolist(), self.record.class_names
        return tuple(names[number] if names else number for number in numbers)

    @property
    def needs_classes(self) -> bool:
        """Whether each class has its own baseline, so that samples need their classes."""
        return self.share == "class"

    @property
    def converged(self) -> bool:
        """Whether the search ended because nothing lowered the loss any more."""
        return self.record.converged

    @property
    def evaluations(self) -> int:
        """The number of rows that the model evaluated."""
        return self.record.evaluations

    @property
    def seconds(self) -> float:
        """How long it took."""
        return self.record.seconds

    def bind(self, x: Shaped[Tensor, "samples *entries"]) -> Fill:
        """Stand in for absent entries of these samples."""
        if self.needs_classes:
            then = "Use learned.of(y), which picks each sample's baseline by its class."
            raise wrong("absence", "be one for these samples", "a baseline for each class", then)
        return (Baseline(self.values) if self.share == "all" else OwnBaselines(self.values)).bind(x)

    def of(self, y: Classes) -> Baseline | OwnBaselines:
        """Return the baseline of a class, or of each sample's class, by number or name; for ``share="class"``."""
        if self.classes is None:
            raise wrong("share", "be 'class' to pick by class", repr(self.share))
        numbers = class_numbers(y, self.record.class_names)
        found = (numbers.reshape(-1, 1) == self.classes).int()
        if not bool(found.any(1).all()):
            unknown = numbers.reshape(-1)[~found.any(1)][0].item()
            raise wrong("y", f"hold learned classes, {self.classes.tolist()}", unknown)
        values = self.values[found.argmax(1)]
        return OwnBaselines(values) if numbers.ndim else Baseline(values[0])

    def notes_on(self, readout: str) -> list[str]:
        """Return a note if the values were learned for another value than the one that is read out now."""
        if same_kind(self.record.readout, readout):
            return []
        return [f"The baseline was learned for another value: {self.record.readout}. Learn one for this value."]

    @staticmethod
    def from_old(tensors: dict[str, Tensor], header: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of a file of format 1, which knew neither entries nor the version of torch, or 2."""
        names, record = header["names"], {"torch_version": "unknown"} | header["record"]
        integer = "labels" in tensors and "quantiles" not in tensors
        if "labels" not in tensors and tensors["values"].shape[header["share"] != "all" :] != (len(names),):
            return header | {"record": record, "other_names": names}
        tensors["players.labels"] = tensors.get("labels", torch.arange(len(names)))
        return header | {"record": record, "players": {"names": names, "integer": integer}}

    def to_frame(self) -> DataFrame:
        """Return a pandas DataFrame with a row for each entry (of each class or sample) and the data's quantiles."""
        return require("pandas", "tables").DataFrame(self._columns)

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw the values beside the data's distribution; write the figure to a path if one is given."""
        return keep_figure(lambda: baselines(self), path)

    @property
    def _title(self) -> str:
        whose = "all samples" if self.share == "all" else f"each {self.share}"
        whose += f" ({', '.join(map(str, self.class_labels))})" if self.needs_classes else ""
        return f"LearnedBaseline of shape {tuple(self.values.shape)}, one for {whose}"

    @property
    def _facts(self) -> dict[str, str]:
        record, starts = self.record, ", ".join(self.record.starts) or "none"
        how = "exact" if record.exact else "sampled"
        apart = f": ended within {record.spread:.2%} of each other" if len(record.starts) > 1 else ""
        loss = f"{self.loss:.5g} ({record.loss}, {how}, orders up to {record.orders})"
        if record.compared:
            others = ", ".join(f"{name} {one:.3g}" for name, one in record.compared.items() if name != record.chosen)
            loss = f"{record.chosen} {self.loss:.3g} on {count_of(record.kept_aside, 'sample')} kept aside; {others}"
        facts = {
            "loss": loss,
            "value": record.readout,
            "converged": f"{'yes' if record.converged else 'no'}: {record.stopped}",
            "starts": starts + apart,
            "cost": f"{record.evaluations:,} evaluations, {record.seconds:.1f} s",
        }
        if record.undetermined:
            facts["undetermined"] = f"{', '.join(record.undetermined)}; the start's values were kept"
        return facts

    @property
    def _columns(self) -> dict[str, Sequence[Any]]:
        values = self.values.reshape(1, -1) if self.share == "all" else self.values.flatten(1)
        owners, entries = values.shape
        labels = torch.zeros(entries).long() if self.players is None else self.players.labels.flatten()
        known = ["?"] if self.players is None else [*self.names, "always present"]  # label −1 indexes the last
        names = [known[label] for label in labels.tolist()]
        columns: dict[str, Sequence[Any]] = {}
        if self.share != "all":
            columns[self.share] = [one for one in self.class_labels or range(owners) for _ in range(entries)]
        columns |= {"entry": [*range(entries)] * owners, "player": names * owners, "value": values.flatten().tolist()}
        quantiles = torch.full((len(QUANTILES), entries), math.nan) if self.quantiles is None else self.quantiles
        for level, row in zip(QUANTILES, quantiles.flatten(1).tolist(), strict=True):
            columns[f"{level:.0%}".replace("%", " %")] = row * owners
        marks = [False] if self.players is None else [*self.undetermined, False]
        columns["undetermined"] = [marks[label] for label in labels.tolist()] * owners
        return columns


def _cell(cell: Any) -> str:
    if isinstance(cell, bool):
        return "yes" if cell else ""
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)
