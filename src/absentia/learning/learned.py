"""The result of learning: baseline values that are an absence, with the record of how they were found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from absentia.absence import Baseline, Fill, OwnBaselines
from absentia.errors import wrong
from absentia.plots import LOWERS, new_figure
from absentia.saving import check_kind, read_tensors, write_tensors
from absentia.version import __version__

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Share: TypeAlias = Literal["all", "class", "sample"]
FORMAT = 1


@dataclass(frozen=True)
class LearningRecord:
    """How a baseline was learned: settings, cost, and what is known of how far to trust it."""

    loss: str
    exact: bool  # whether the penalty was computed from all coalitions up to order λ
    orders: int  # λ
    bounds: str
    starts: tuple[str, ...]
    final_losses: tuple[float, ...]  # where each start ended
    seed: int
    samples: int
    converged: bool
    stopped: str  # why it stopped, in words
    evaluations: int
    seconds: float
    undetermined: tuple[str, ...]  # players whose baseline makes no difference to the loss: theirs is the start's
    version: str = __version__

    @property
    def spread(self) -> float:
        """How far apart the starts ended, as a share of the best loss."""
        if not self.final_losses:  # interrupted before the first end
            return 0.0
        best, worst = min(self.final_losses), max(self.final_losses)
        return (worst - best) / best if best > 0 else 0.0


@dataclass(frozen=True, eq=False)
class LearnedBaseline:
    """Learned baseline values: an absence for any sample, for samples of known classes, or for the learned samples.

    ``values`` has the shape of one sample; with ``share="class"`` or ``"sample"`` a first axis of classes or samples.
    ``loss`` is the mean penalty per sample at these values. ``history`` is the course of the search: a row for every
    check, with the evaluations so far and the least loss so far, which includes 1 % of the term that settles ties.

    >>> import absentia as ab
    >>> x = torch.rand(64, 3, generator=torch.Generator().manual_seed(0)).double()
    >>> learned = ab.learn_baseline(lambda rows: (rows - 0.25).prod(1), x)
    >>> learned.converged, learned.share, learned.values.shape
    (True, 'all', torch.Size([3]))
    """

    values: Shaped[Tensor, " *shape"]
    share: Share
    classes: Int[Tensor, " owners"] | None
    names: tuple[str, ...]
    loss: float
    history: Float[Tensor, "checks 2"]
    record: LearningRecord

    def __repr__(self) -> str:
        record = self.record
        how = "exact" if record.exact else "sampled"
        lines = [
            f"LearnedBaseline of shape {tuple(self.values.shape)}, one for {_SHARED[self.share]}",
            f"  loss        {self.loss:.5g} ({record.loss}, {how}, orders up to {record.orders})",
            f"  converged   {'yes' if record.converged else 'no'}: {record.stopped}",
            f"  starts      {_describe_starts(record)}",
            f"  cost        {record.evaluations:,} evaluations, {record.seconds:.1f} s",
        ]
        if record.undetermined:
            lines.append(f"  undetermined: {', '.join(record.undetermined)}; the start's values were kept")
        return "\n".join(lines)

    @property
    def converged(self) -> bool:
        """Whether the search ended because nothing improved any more."""
        return self.record.converged

    @property
    def evaluations(self) -> int:
        """How many rows the model evaluated."""
        return self.record.evaluations

    @property
    def seconds(self) -> float:
        """How long it took."""
        return self.record.seconds

    def bind(self, x: Shaped[Tensor, "samples *entries"]) -> Fill:
        """Stand in for absent entries of these samples."""
        if self.share == "all":
            return Baseline(self.values).bind(x)
        if self.share == "class":
            then = "Use learned.of(y), which picks each sample's baseline by its class."
            raise wrong("absence", "be one for these samples", "a baseline for each class", then)
        return OwnBaselines(self.values).bind(x)

    def of(self, y: int | Sequence[int] | Tensor) -> OwnBaselines:
        """Pick the baseline of each sample's class, for ``share="class"``."""
        if self.classes is None:
            raise wrong("share", "be 'class' to pick by class", repr(self.share))
        target = torch.as_tensor(y).reshape(-1)
        rows = (target[:, None] == self.classes).int()
        if not bool(rows.any(1).all()):
            unknown = target[~rows.any(1)][0].item()
            raise wrong("y", f"hold learned classes, {self.classes.tolist()}", unknown)
        return OwnBaselines(self.values[rows.argmax(1)])

    def save(self, path: str | Path) -> None:
        """Write everything to one file: safetensors with a JSON header, no pickle; all of it or nothing."""
        header = {
            "format": FORMAT,
            "share": self.share,
            "names": list(self.names),
            "loss": self.loss,
            "record": asdict(self.record),
        }
        tensors = {"values": self.values.contiguous(), "history": self.history.contiguous()}
        if self.classes is not None:
            tensors["classes"] = self.classes
        write_tensors(Path(path), tensors, header)

    @classmethod
    def load(cls, path: str | Path) -> LearnedBaseline:
        """Read what `save` wrote."""
        tensors, header = read_tensors(Path(path))
        check_kind(Path(path), header, "baseline", FORMAT)
        fields: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in header["record"].items()}
        return cls(
            tensors["values"],
            header["share"],
            tensors.get("classes"),
            tuple(header["names"]),
            header["loss"],
            tensors["history"],
            LearningRecord(**fields),
        )

    def plot_history(self) -> Figure:
        """Draw the course of the loss over the evaluations spent."""
        figure = new_figure(columns=1)
        axes = figure.axes[0]
        axes.step(self.history[:, 0], self.history[:, 1], where="post", color=LOWERS)
        axes.set_xlabel("evaluations of the model")
        axes.set_ylabel(f"best loss so far ({self.record.loss})")
        axes.set_title("learning the baseline")
        return figure


_SHARED = {"all": "all samples", "class": "each class", "sample": "each sample"}


def _describe_starts(record: LearningRecord) -> str:
    named = ", ".join(record.starts) or "none"
    return named if len(record.starts) < 2 else f"{named}: ended within {record.spread:.2%} of each other"
