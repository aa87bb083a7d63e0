"""A surrogate: a network that answers as the model would on average, given the present entries alone.

Trained on samples with random players absent to give the model's output on the whole sample, it learns what the model
says on average over all samples with those present entries: one forward pass in place of many draws
[frye2021manifold, covert2021removing]. Absent entries are NaN in its inputs, so that it never takes a stand-in for
a value.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from absentia.absence.checks import check_floating, check_shape
from absentia.absence.networks import Standardise, default_network
from absentia.absence.protocols import Fill
from absentia.absence.stand_ins import StandIns
from absentia.absence.training import TrainingRecord
from absentia.errors import wrong
from absentia.inference import Model
from absentia.saving import check_kind, read_tensors, write_tensors

FORMAT = 1


class SurrogateNetwork(nn.Module):
    """A network from masked inputs to outputs in the model's units and of the model's shape."""

    offset: Tensor
    scale: Tensor

    def __init__(self, read: Standardise, body: nn.Module, outputs: tuple[int, ...]) -> None:
        super().__init__()
        self.read = read
        self.body = body
        self.outputs = outputs
        self.register_buffer("offset", torch.zeros(outputs))
        self.register_buffer("scale", torch.ones(outputs))

    def set_scale(self, outputs: Float[Tensor, "rows *outputs"]) -> None:
        """Let the body give standardised outputs, which it learns more easily than those in the model's units."""
        deviation = outputs.std(0, correction=0)
        self.offset.copy_(outputs.mean(0))
        self.scale.copy_(torch.where(deviation > 0, deviation, 1.0))

    def forward(self, rows: Float[Tensor, "rows *entries"]) -> Float[Tensor, "rows *outputs"]:
        """Answer for masked inputs, absent entries of which are NaN."""
        answer: Tensor = self.body(self.read(rows))
        return answer.reshape(len(rows), *self.outputs) * self.scale + self.offset


@dataclass(frozen=True, eq=False)
class Surrogate:
    """A surrogate of a model, as an absence that brings its own model; `train_surrogate` makes it.

    It takes the model's place in the game, and the readout applies to its output: log-probabilities of the average
    probabilities where ``classes``, the average output otherwise. ``fidelity`` tells how well it stands for the model
    on held-out samples with nothing absent, ``masked_fidelity`` with random players absent, where the present entries
    leave open what the model says: the share of samples with the same predicted class, or R².

    >>> import absentia as ab
    >>> x = torch.rand(200, 2, generator=torch.Generator().manual_seed(0))
    >>> surrogate = ab.train_surrogate(lambda rows: rows.sum(1), x, epochs=3)
    >>> game = ab.MaskedModel(lambda rows: rows.sum(1), x[:4], absence=surrogate)
    >>> ab.value_table(game)
    ValueTable(4 samples, 2 players, 4 coalitions; value: the output as it is)
    """

    network: SurrogateNetwork
    classes: bool
    fidelity: float
    masked_fidelity: float
    own_network: bool  # whether the network was the user's, and not the default one
    record: TrainingRecord

    def __repr__(self) -> str:
        record, outputs = self.record, self.network.outputs
        whole, masked = self.fidelity, self.masked_fidelity
        loss = "KL divergence" if self.classes else "squared error, by the output's variance,"
        good = (f"{whole:.1%}", f"{masked:.1%}") if self.classes else (f"R² {whole:.3f}", f"R² {masked:.3f}")
        return "\n".join(
            [
                f"Surrogate of a model from inputs of shape {self.shape} to outputs of shape {outputs}",
                f"  {record}",
                f"  held-out  {record.held_out:,} rows: {loss} {record.loss:.4g} "
                f"(at the start {record.first_loss:.4g})",
                f"  fidelity  {good[0]} with nothing absent, {good[1]} with random players absent",
            ]
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one sample."""
        return self.network.read.shape

    def bind(self, x: Shaped[Tensor, "samples *entries"]) -> Fill:
        """Mark absent entries by NaN, which only the surrogate understands."""
        check_shape("surrogate", self.shape, x)
        check_floating("Surrogate", x, "Embed tokens first, or use Baseline or Marginal.")
        return StandIns(x, torch.full_like(x[:1], torch.nan)[None])

    def instead_of(self, model: Model) -> Model:
        """Take the place of the model that it was trained to imitate."""
        return self.network

    def save(self, path: str | Path) -> None:
        """Write everything to one file: safetensors with a JSON header, no pickle; all of it or nothing."""
        header = {
            "kind": "surrogate",
            "format": FORMAT,
            "shape": self.shape,
            "outputs": self.network.outputs,
            "classes": self.classes,
            "fidelity": self.fidelity,
            "masked_fidelity": self.masked_fidelity,
            "own_network": self.own_network,
            "record": asdict(self.record),
        }
        write_tensors(Path(path), {k: v.contiguous() for k, v in self.network.state_dict().items()}, header)

    @classmethod
    def load(cls, path: str | Path, network: nn.Module | None = None) -> Surrogate:
        """Read what `save` wrote; ``network`` is one of the same layers where training was given its own."""
        tensors, header = read_tensors(Path(path))
        check_kind(Path(path), header, "surrogate", FORMAT)
        if header["own_network"] and network is None:
            raise wrong("network", "be given, as it was to train_surrogate", "none", "Its weights are in the file.")
        shape, outputs = tuple(header["shape"]), tuple(header["outputs"])
        read = Standardise(shape, tensors["read.mean"], tensors["read.scale"])
        body = network if network is not None else default_network(shape, count_outputs(outputs), seed=0)
        whole = SurrogateNetwork(read, body, outputs)
        try:
            whole.load_state_dict(tensors)
        except RuntimeError as error:
            raise wrong("network", "have the layers of the saved one", "others") from error
        return cls(
            whole.eval(),
            header["classes"],
            header["fidelity"],
            header["masked_fidelity"],
            header["own_network"],
            TrainingRecord(**header["record"]),
        )


def count_outputs(outputs: tuple[int, ...]) -> int:
    """Count the numbers of one row's output."""
    return int(torch.Size(outputs).numel())
