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
from absentia.learning.show import baseline_columns, baseline_html, baseline_text
from absentia.optional import require
from absentia.plots import baselines, learning_history
from absentia.saving import check_folder, check_kind, read_tensors, write_tensors
from absentia.version import __version__

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

Share: TypeAlias = Literal["all", "class", "sample"]
KIND, FORMAT = "baseline", 2  # 2: the data's quantiles and the players' labels


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
    torch_version: str = str(torch.__version__)

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
    ``quantiles`` are those of the data at 0, 5, 25, 50, 75, 95 and 100 %, entry by entry (None for token numbers);
    ``labels``, the players of the entries. Files of format 1 have neither.

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
    quantiles: Float[Tensor, "quantiles *entries"] | None = None
    labels: Int[Tensor, " *entries"] | None = None

    def __repr__(self) -> str:
        return baseline_text(self)

    def _repr_html_(self) -> str:
        return baseline_html(self)

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
            "kind": KIND,
            "format": FORMAT,
            "share": self.share,
            "names": list(self.names),
            "loss": self.loss,
            "record": asdict(self.record),
        }
        tensors = {"values": self.values, "history": self.history}
        optional = {"classes": self.classes, "quantiles": self.quantiles, "labels": self.labels}
        tensors |= {name: tensor for name, tensor in optional.items() if tensor is not None}
        write_tensors(Path(path), {name: tensor.contiguous() for name, tensor in tensors.items()}, header)

    @classmethod
    def load(cls, path: str | Path) -> LearnedBaseline:
        """Read what `save` wrote."""
        tensors, header = read_tensors(Path(path))
        check_kind(Path(path), header, KIND, FORMAT)
        settings = {"torch_version": "unknown"} | header["record"]  # which format 1 did not record
        fields: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in settings.items()}
        return cls(
            tensors["values"],
            header["share"],
            tensors.get("classes"),
            tuple(header["names"]),
            header["loss"],
            tensors["history"],
            LearningRecord(**fields),
            tensors.get("quantiles"),
            tensors.get("labels"),
        )

    def to_frame(self) -> DataFrame:
        """Make a pandas DataFrame: a row for each entry (of each class or sample), beside the data's quantiles."""
        return require("pandas", "tables").DataFrame(baseline_columns(self))

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw the values beside the data's distribution; write it to a path."""
        if path is not None:
            check_folder("path", Path(path))
        figure = baselines(self)
        if path is not None:
            figure.savefig(path, dpi=150)
        return figure

    def plot_history(self) -> Figure:
        """Draw the course of the loss over the evaluations spent."""
        return learning_history(self)
