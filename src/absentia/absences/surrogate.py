"""A surrogate: a network that returns what the model would on average, given the present entries alone.

It learns the model's average over all samples with the same present entries, which takes one forward pass instead of
many draws [frye2021manifold, covert2021removing]. Absent entries are NaN in its inputs, never taken for values.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from absentia.absences.fitting import MaskedRows, Rows, Standardise, TrainingRecord, fit, mlp
from absentia.absences.protocol import Fill, Samples, StandIns, check_shape
from absentia.data import Table, check_rows, mean_and_deviation
from absentia.errors import wrong
from absentia.models import Model, are_probabilities, as_model, evaluation_mode, placement, run_rows
from absentia.players import Players
from absentia.results import Saved


class SurrogateNetwork(nn.Module):
    """A network from masked inputs to outputs in the units and the shape of the model's."""

    offset: Tensor
    scale: Tensor

    def __init__(self, read: Standardise, body: nn.Module, outputs: tuple[int, ...], own: bool) -> None:
        super().__init__()
        self.read, self.body, self.outputs, self.own = read, body, outputs, own  # own: the body is the user's
        self.register_buffer("offset", torch.zeros(outputs))
        self.register_buffer("scale", torch.ones(outputs))
        self.float()  # whatever torch's default

    def forward(self, rows: Rows) -> Float[Tensor, "rows *outputs"]:
        """Run on masked inputs, absent entries of which are NaN."""
        return self.body(self.read(rows)).reshape(len(rows), *self.outputs) * self.scale + self.offset

    def loss(self, rows: Rows, wanted: Tensor, classes: bool) -> Float[Tensor, " rows"]:
        """Return the Kullback–Leibler divergence or the squared error of each row."""
        answer = self(rows)
        if classes:
            return nn.functional.kl_div(answer.log_softmax(1), wanted.softmax(1), reduction="none").sum(1)
        return ((answer - wanted) / self.scale).square().reshape(len(rows), -1).mean(1)

    def fidelity(self, rows: Rows, wanted: Tensor, classes: bool) -> float:
        """Return the share of rows with the wanted class, or R²."""
        answer = run_rows(self, rows)
        if classes:
            return float((answer.argmax(1) == wanted.argmax(1)).double().mean())
        left, total = (answer - wanted) / self.scale, (wanted - wanted.mean(0)) / self.scale
        return 1 - float(left.square().sum() / total.square().sum().clamp_min(torch.finfo(total.dtype).tiny))

    def packed(self) -> dict[str, Any]:
        """Return what `unpacked` needs, apart from a body of the user's."""
        weights = dict(self.state_dict())
        return {"shape": self.read.shape, "outputs": self.outputs, "own": self.own, "weights": weights}

    @classmethod
    def unpacked(cls, fields: Mapping[str, Any], network: nn.Module | None = None) -> SurrogateNetwork:
        """Build the network that was packed; ``network`` has the layers of a body of the user's."""
        if fields["own"] and network is None:
            raise wrong("network", "be given, as it was to train_surrogate", "none", "Its weights are in the file.")
        shape, outputs, weights = tuple(fields["shape"]), tuple(fields["outputs"]), fields["weights"]
        body = _default_body(shape, math.prod(outputs), seed=0) if network is None else copy.deepcopy(network)
        whole = cls(Standardise(shape, weights["read.mean"], weights["read.scale"]), body, outputs, fields["own"])
        try:
            whole.load_state_dict(weights)
        except RuntimeError as error:
            raise wrong("network", "have the layers of the saved one", "others") from error
        return whole.eval().requires_grad_(False)


@dataclass(frozen=True, eq=False)
class Surrogate(Saved):
    """A surrogate of a model, as an absence that brings its own model; `train_surrogate` makes it.

    It takes the model's place in the game, and the readout applies to its output.

    Examples
    --------
    >>> x = torch.rand(200, 2, generator=torch.Generator().manual_seed(0))
    >>> surrogate = ab.train_surrogate(lambda rows: rows.sum(1), x, epochs=3)
    >>> game = ab.MaskedModel(lambda rows: rows.sum(1), x[:4], absence=surrogate)
    >>> ab.value_table(game)
    ValueTable(4 samples, 2 players, 4 coalitions; value: the output as it is)
    """

    KIND: ClassVar[str] = "surrogate"
    FORMAT: ClassVar[int] = 3

    network: SurrogateNetwork
    classes: bool  # outputs are log-probabilities of the average probabilities; otherwise average outputs
    fidelity: float  # on held-out samples with nothing absent: the share with the same predicted class, or R²
    masked_fidelity: float  # the same with random players absent, which leave the model's output open
    record: TrainingRecord

    def __repr__(self) -> str:
        record, outputs = self.record, self.network.outputs
        loss = "KL divergence" if self.classes else "squared error, by the output's variance,"
        shown = "{:.1%}" if self.classes else "R² {:.3f}"
        return (
            f"Surrogate of a model from inputs of shape {self.shape} to outputs of shape {outputs}\n  {record}\n"
            f"  held-out  {record.held_out:,} rows: {loss} {record.loss:.4g} (at the start {record.first_loss:.4g})\n"
            f"  fidelity  {shown.format(self.fidelity)} with nothing absent, {shown.format(self.masked_fidelity)} "
            "with random players absent"
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one sample."""
        return self.network.read.shape

    def bind(self, x: Samples) -> Fill:
        """Mark absent entries by NaN, which only the surrogate understands."""
        check_shape("surrogate", self.shape, x, "Surrogate")
        return StandIns(x, torch.full_like(x[:1], torch.nan)[None])

    def instead_of(self, model: Model) -> Model:
        """Return the surrogate, whatever the model."""
        return self.network

    @staticmethod
    def from_old(tensors: dict[str, Tensor], header: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of a file of format 1 or 2."""
        return header | {"network": header | {"own": header["own_network"], "weights": tensors}}


def train_surrogate(
    model: Any,
    x: Table,
    *,
    players: Players | None = None,
    classes: bool | None = None,
    network: nn.Module | None = None,
    epochs: int = 500,
    seed: int = 0,
    progress: bool = True,
) -> Surrogate:
    """Train a network to return the model's output on samples of which random players are absent.

    Parameters
    ----------
    model : nn.Module, estimator or callable
        The model to imitate.
    x : array of shape (samples, …)
        Samples, the more the better; a tenth is held out, to end the training. Their labels are not needed.
    classes : bool, optional
        Whether outputs are logits of classes, imitated by the Kullback–Leibler divergence; other outputs are imitated
        by the squared error. By default, outputs of more than one number are logits.
    network : nn.Module, optional
        From (rows, 2·entries), standardised values (0 where absent) and then presence, or for images from
        (rows, channels + 1, height, width) with presence as the last plane, to (rows, outputs).
    players, epochs, seed, progress
        See `train_imputer`.

    Examples
    --------
    >>> x = torch.rand(500, 3, generator=torch.Generator().manual_seed(0))
    >>> surrogate = train_surrogate(lambda rows: rows[:, 0] - rows[:, 1], x, epochs=20)
    >>> surrogate.fidelity > 0.9, surrogate.masked_fidelity < surrogate.fidelity
    (True, True)
    """
    x, model = check_rows(x, least=2), as_model(model)
    rows = MaskedRows.draw(x, players, seed, "a surrogate")
    device, dtype = placement(model, x)
    outputs = run_rows(model, x.to(device, dtype))
    classes = outputs.ndim == 2 and outputs.shape[1] > 1 if classes is None else classes
    _check_outputs(outputs, classes)
    x, outputs = x.to(device, torch.float32), outputs.float()
    surrogate = _untrained(x, outputs, network, seed).to(device)
    if not classes:  # the body learns standardised outputs more easily than those in the model's units
        mean, deviation = outputs[rows.kept].mean(0), outputs[rows.kept].std(0, correction=0)
        surrogate.offset.copy_(mean)
        surrogate.scale.copy_(torch.where(deviation > 0, deviation, 1.0))

    def loss(some: Tensor, presence: Tensor, _generator: torch.Generator) -> Tensor:
        return surrogate.loss(torch.where(presence.to(device), x[some], torch.nan), outputs[some], classes)

    record = fit(surrogate, loss, rows, epochs=epochs, title="training a surrogate", show=progress)
    whole = surrogate.fidelity(x[rows.held_out], outputs[rows.held_out], classes)
    masked = torch.where(rows.presence.to(device), x[rows.repeated], torch.nan)
    return Surrogate(surrogate, classes, whole, surrogate.fidelity(masked, outputs[rows.repeated], classes), record)


def _check_outputs(outputs: Tensor, classes: bool) -> None:
    """Raise an error for outputs that can't be imitated as classes, or as numbers."""
    if not classes and not bool(outputs.isfinite().all()):
        raise wrong("model", "return finite outputs", f"{int((~outputs.isfinite()).sum())} that are not")
    if classes and (outputs.ndim != 2 or outputs.shape[1] < 2):
        must = "return (rows, classes) for a surrogate of classes"
        raise wrong("model", must, f"shape {tuple(outputs.shape)}", "Use classes=False to imitate numbers.")
    if classes and not bool(outputs.amax(1).isfinite().all()):  # −∞ is the logit of a class that is ruled out
        raise wrong("model", "return logits", "NaN or infinity")
    if classes and are_probabilities(outputs):
        then = "Return their logarithm, or use classes=False to imitate the probabilities as numbers."
        raise wrong("model", "return logits for a surrogate of classes", "probabilities that add up to 1", then)


def _untrained(x: Tensor, outputs: Tensor, network: nn.Module | None, seed: int) -> SurrogateNetwork:
    """Build the network; raise an error for one of the user's that does not fit."""
    read, count = Standardise(tuple(x.shape[1:]), *mean_and_deviation(x)), outputs[0].numel()
    if network is None:
        return SurrogateNetwork(read, _default_body(read.shape, count, seed), tuple(outputs.shape[1:]), own=False)
    coded, body = read.to(x.device)(x[:2]), copy.deepcopy(network).to(x.device, torch.float32)
    try:
        with evaluation_mode(body):
            answer = body(coded)
    except RuntimeError as error:
        raise wrong("network", f"take rows of shape {tuple(coded.shape[1:])}", f"the error: {error}") from error
    if tuple(answer.shape) != (2, count):
        raise wrong("network", f"return (rows, {count})", f"shape {tuple(answer.shape)} for two rows")
    return SurrogateNetwork(read, body, tuple(outputs.shape[1:]), own=True)


def _default_body(shape: tuple[int, ...], outputs: int, seed: int) -> nn.Sequential:
    """Build convolutions for images, linear layers otherwise, on what `Standardise` reads."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if len(shape) != 3:
            return mlp((2 * math.prod(shape), 256, 256, 256, outputs))
        layers: list[nn.Module] = []
        for inputs, maps, stride in ((shape[0] + 1, 32, 1), (32, 48, 2), (48, 64, 2)):
            layers += [nn.Conv2d(inputs, maps, 3, padding=1, stride=stride), nn.SiLU()]
        pixels = -(-shape[1] // 4) * -(-shape[2] // 4)
        return nn.Sequential(*layers, nn.Flatten(), *mlp((64 * pixels, 128, outputs)))
