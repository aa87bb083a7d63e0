"""The record of an explanation: results, settings, seed, versions and cost; shown, drawn, saved and loaded."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from absentia.attributions import Attribution
from absentia.explanation.show import explanation_columns, explanation_html, explanation_text
from absentia.interactions import Interactions
from absentia.interop import to_shap, to_shapiq
from absentia.optional import require
from absentia.players import Players
from absentia.plots import overview
from absentia.saving import check_folder, check_kind, read_tensors, write_tensors
from absentia.version import __version__

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

KIND, FORMAT = "explanation", 1


@dataclass(frozen=True)
class ExplanationRecord:
    """How an explanation was made, and what it took."""

    readout: str
    absence: str
    exact: bool  # whether all coalitions were evaluated
    evaluations: int
    seconds: float
    seed: int
    notes: tuple[str, ...] = ()
    torch_version: str = str(torch.__version__)
    version: str = __version__


@dataclass(frozen=True, eq=False)
class Explanation:
    """Samples taken apart by `explain`: attributions, interactions, and all that it takes to read them.

    ``outputs`` are the values v(N) with all players present, ``base_values`` v(∅) with all absent, and ``shapley``
    shares the difference out. ``stand_ins`` is what the absence puts in when all players are absent, averaged over
    its draws (None for an absence that brings its own model). ``order_shapley`` and ``interactions`` are None where
    Shapley values were sampled.

    >>> import absentia as ab
    >>> x = torch.tensor([[2.0, 3.0], [1.0, 5.0]])
    >>> explanation = ab.explain(lambda rows: rows.prod(1), x, absence=ab.Baseline(1.0))
    >>> explanation.base_values, explanation.outputs
    (tensor([1., 1.], dtype=torch.float64), tensor([6., 5.], dtype=torch.float64))
    >>> explanation.shapley.values
    tensor([[2., 3.],
            [0., 4.]], dtype=torch.float64)
    """

    x: Shaped[Tensor, "samples *entries"]
    y: Int[Tensor, " samples"] | None
    players: Players
    outputs: Float[Tensor, " samples"]
    base_values: Float[Tensor, " samples"]
    shapley: Attribution
    order_shapley: Float[Tensor, "samples orders players"] | None
    interactions: Interactions | None
    stand_ins: Shaped[Tensor, "samples *entries"] | None
    record: ExplanationRecord

    @property
    def samples(self) -> int:
        """How many samples."""
        return len(self.x)

    @property
    def names(self) -> tuple[str, ...]:
        """The players' names."""
        return self.players.names

    def __repr__(self) -> str:
        return explanation_text(self)

    def _repr_html_(self) -> str:
        return explanation_html(self)

    def to_frame(self) -> DataFrame:
        """Make a pandas DataFrame: a row for each sample and player, with its value, error, rank and input.

        Ranks count from 1, the largest |value| of the sample. ``input`` and ``stand_in`` are NaN for players of
        several entries.
        """
        return require("pandas", "tables").DataFrame(explanation_columns(self))

    def to_shap(self) -> Any:
        """Make shap's Explanation, which every plot of shap draws; see `interop.to_shap`."""
        return to_shap(self.shapley, self.x, base_values=self.base_values, players=self.players)

    def to_shapiq(self, sample: int = 0) -> Any:
        """Make shapiq's InteractionValues of one sample: all interactions, or sampled Shapley values."""
        if self.interactions is not None:
            return to_shapiq(self.interactions, sample)
        return to_shapiq(self.shapley, sample, base_values=self.base_values)

    def plot(self, path: str | Path | None = None, sample: int = 0) -> Figure:
        """Draw the most useful picture of one sample, a heat map where it is an image; write it to a path."""
        if path is not None:
            check_folder("path", Path(path))
        figure = overview(self, sample)
        if path is not None:
            figure.savefig(path, dpi=150)
        return figure

    def save(self, path: str | Path) -> None:
        """Write everything to one file: safetensors with a JSON header, no pickle; all of it or nothing."""
        header = {
            "kind": KIND,
            "format": FORMAT,
            "names": list(self.names),
            "integer": self.players.integer,
            "shapley": {"kind": self.shapley.kind, "evaluations": self.shapley.evaluations},
            "record": asdict(self.record),
        }
        tensors = {
            "x": self.x,
            "y": self.y,
            "labels": self.players.labels,
            "outputs": self.outputs,
            "base_values": self.base_values,
            "shapley.values": self.shapley.values,
            "shapley.errors": self.shapley.errors,
            "order_shapley": self.order_shapley,
            "stand_ins": self.stand_ins,
        }
        if self.interactions is not None:
            tensors |= {"effects": self.interactions.effects, "noise": self.interactions.noise}
        # Clones: a safe file holds no two tensors that share memory, and the user's may.
        kept = {name: tensor.detach().clone().contiguous() for name, tensor in tensors.items() if tensor is not None}
        write_tensors(Path(path), kept, header)

    @classmethod
    def load(cls, path: str | Path) -> Explanation:
        """Read what `save` wrote."""
        tensors, header = read_tensors(Path(path))
        check_kind(Path(path), header, KIND, FORMAT)
        settings: dict[str, Any] = header["record"]
        record = ExplanationRecord(**(settings | {"notes": tuple(settings["notes"])}))
        names, made = tuple(header["names"]), header["shapley"]
        values, errors = tensors["shapley.values"], tensors["shapley.errors"]
        shapley = Attribution(values, errors, made["evaluations"], names, made["kind"], record.readout)
        interactions = None
        if "effects" in tensors:
            effects, noise = tensors["effects"], tensors["noise"]
            interactions = Interactions(effects, names, record.readout, noise, made["evaluations"])
        return cls(
            x=tensors["x"],
            y=tensors.get("y"),
            players=Players(tensors["labels"], names, header["integer"]),
            outputs=tensors["outputs"],
            base_values=tensors["base_values"],
            shapley=shapley,
            order_shapley=tensors.get("order_shapley"),
            interactions=interactions,
            stand_ins=tensors.get("stand_ins"),
            record=record,
        )
