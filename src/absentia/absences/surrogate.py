"""A surrogate: a network that predicts the average output of the model, given only the present entries.

The average is over all samples with the same present entries. The network computes it in one forward pass instead of
many draws [frye2021manifold, covert2021removing].
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from absentia.absences.protocol import Fill, Samples, StandIns, check_shape
from absentia.absences.training import MaskedRows, Rows, Standardise, TrainingRecord, fit, mlp
from absentia.arguments import checked
from absentia.data import Table, check_rows, mean_and_deviation, weights_drawn_from
from absentia.errors import wrong
from absentia.models.adapters import as_model, placement
from absentia.models.model import Model
from absentia.models.outputs import are_probabilities
from absentia.players import Players
from absentia.runtime.batches import run_rows
from absentia.runtime.modes import evaluation_mode
from absentia.runtime.readings import confirm_margins
from absentia.runtime.row_count import RowCount
from absentia.storage import Saved

# The widths of the hidden layers for rows that are not images.
_HIDDEN_WIDTHS = (256, 256, 256)
# The channels of the convolutions for images.
_CONVOLUTION_WIDTHS = (32, 48, 64)
# The width of the linear layer that follows the convolutions.
_WIDTH_AFTER_CONVOLUTIONS = 128


class SurrogateNetwork(nn.Module):
    """A network from masked inputs to outputs with the units and the shape of the model's outputs."""

    offset: Tensor
    scale: Tensor

    def __init__(self, read: Standardise, body: nn.Module, outputs: tuple[int, ...], own: bool) -> None:
        super().__init__()
        self.read = read
        self.body = body
        self.outputs = outputs
        self.own = own  # whether the user provided the body
        self.register_buffer("offset", torch.zeros(outputs))
        self.register_buffer("scale", torch.ones(outputs))
        self.float()  # whatever torch's default

    def forward(self, rows: Rows) -> Float[Tensor, "rows *outputs"]:
        """Run on masked inputs, whose absent entries are NaN."""
        standardised = self.body(self.read(rows)).reshape(len(rows), *self.outputs)
        return standardised * self.scale + self.offset

    def loss(self, rows: Rows, target: Tensor, classes: bool) -> Float[Tensor, " rows"]:
        """Return the Kullback–Leibler divergence or the squared error of each row."""
        output = self(rows)
        if classes:
            return nn.functional.kl_div(output.log_softmax(1), target.softmax(1), reduction="none").sum(1)
        return ((output - target) / self.scale).square().reshape(len(rows), -1).mean(1)

    def fidelity(self, rows: Rows, target: Tensor, classes: bool) -> float:
        """Return the share of rows with the target's predicted class, or R²."""
        output = run_rows(self, rows, RowCount())  # not rows of the imitated model
        if classes:
            return float((output.argmax(1) == target.argmax(1)).double().mean())
        residual = ((output - target) / self.scale).square().sum()
        total = ((target - target.mean(0)) / self.scale).square().sum()
        return 1 - float(residual / total.clamp_min(torch.finfo(total.dtype).tiny))

    def packed(self) -> dict[str, Any]:
        """Return the arguments of `unpacked`, except the layers of a body that the user provided."""
        return {"shape": self.read.shape, "outputs": self.outputs, "own": self.own, "weights": self.state_dict()}

    @classmethod
    def unpacked(cls, fields: Mapping[str, Any], network: nn.Module | None = None) -> SurrogateNetwork:
        """Rebuild a packed network; ``network`` provides the layers if the body was the user's."""
        if fields["own"] and network is None:
            raise wrong("network", "be given, as it was to train_surrogate", "none", "Its weights are in the file.")
        shape = tuple(fields["shape"])
        outputs = tuple(fields["outputs"])
        weights = fields["weights"]
        with torch.device("meta"):  # so that sizes claimed by a damaged file take no memory
            if network is None:
                body: nn.Module = _default_body(shape, math.prod(outputs), seed=0)
            else:
                body = copy.deepcopy(network)
            read = Standardise(shape, weights["read.mean"], weights["read.scale"])
            surrogate = cls(read, body, outputs, fields["own"])
        try:
            surrogate.load_state_dict(weights, assign=True)
        except RuntimeError as error:
            raise wrong("network", "have the layers of the saved network", "other layers") from error
        return surrogate.eval().requires_grad_(False)


@checked
@dataclass(frozen=True, eq=False)
class Surrogate(Saved, kind="surrogate", format=3):
    """A surrogate of a model: an absence that brings its own model, as returned by `train_surrogate`.

    It replaces the model in the game, and the readout applies to its output.

    Examples
    --------
    >>> x = torch.rand(200, 2, generator=torch.Generator().manual_seed(0))
    >>> surrogate = ab.train_surrogate(lambda rows: rows.sum(1), x, epochs=3)
    >>> game = ab.MaskedModel(lambda rows: rows.sum(1), x[:4], absence=surrogate)
    >>> ab.value_table(game)
    ValueTable(4 samples, 2 players, 4 coalitions; value: the output as it is)
    """

    network: SurrogateNetwork
    classes: bool  # whether outputs are log-probabilities of the average probabilities, rather than average outputs
    fidelity: float  # on held-out samples with nothing absent: the share with the same predicted class, or R²
    masked_fidelity: float  # the same with random players absent, which leave the model's output open
    record: TrainingRecord

    def __repr__(self) -> str:
        record = self.record
        network = self.network
        if self.classes:
            loss = "KL divergence"
            fidelity = f"{self.fidelity:.1%}"
            masked_fidelity = f"{self.masked_fidelity:.1%}"
        else:
            loss = "squared error, by the output's variance,"
            fidelity = f"R² {self.fidelity:.3f}"
            masked_fidelity = f"R² {self.masked_fidelity:.3f}"
        return (
            f"Surrogate of a model from inputs of shape {network.read.shape} to outputs of shape {network.outputs}\n"
            f"  {record}\n"
            f"  held-out  {record.held_out:,} rows: {loss} {record.loss:.4g} (at the start {record.first_loss:.4g})\n"
            f"  fidelity  {fidelity} with nothing absent, {masked_fidelity} with random players absent"
        )

    def bind(self, x: Samples) -> Fill:
        """Mark absent entries with NaN, which only the surrogate understands."""
        check_shape("surrogate", self.network.read.shape, x, "Surrogate")
        return StandIns(x, torch.full_like(x[:1], torch.nan)[None])

    def instead_of(self, model: Model) -> Model:
        """Return the surrogate, whatever the model."""
        return self.network

    @staticmethod
    def from_old(tensors: dict[str, Tensor], header: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of a file in format 1 or 2."""
        return header | {"network": header | {"own": header["own_network"], "weights": tensors}}


@checked
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
    """Train a network to predict the model's output from samples with random players absent.

    Parameters
    ----------
    model : nn.Module, estimator or callable
        The model to imitate.
    x : array of shape (samples, …)
        Samples, the more the better. A tenth is held out to decide when training stops. Labels are not needed.
    classes : bool, optional
        Whether outputs are logits of classes. Logits are imitated with the Kullback–Leibler divergence, and other
        outputs with the squared error. By default, outputs of more than one number are treated as logits, unless they
        are the scores of an estimator such as an SVM.
    network : nn.Module, optional
        A custom network that returns outputs of shape (rows, outputs). Its inputs have shape (rows, 2·entries):
        standardised values (0 where absent) followed by presence. For images they have shape
        (rows, channels + 1, height, width), with presence as the last plane.
    players, epochs, seed, progress
        See `train_imputer`.

    Examples
    --------
    >>> x = torch.rand(500, 3, generator=torch.Generator().manual_seed(0))
    >>> surrogate = train_surrogate(lambda rows: rows[:, 0] - rows[:, 1], x, epochs=20)
    >>> surrogate.fidelity > 0.9, surrogate.masked_fidelity < surrogate.fidelity
    (True, True)
    """
    with torch.inference_mode(False):
        x = check_rows(x, least=2)
        model = as_model(model)
        rows = MaskedRows.draw(x, players, seed, "a surrogate")
        device, dtype = placement(model, x)
        inputs = x.to(device, dtype)
        row_count = RowCount()
        model = confirm_margins(model, inputs, row_count)
        outputs = run_rows(model, inputs, row_count)
        if classes is None:
            classes = _are_logits(model, outputs)
        _check_outputs(outputs, classes)
        inputs = x.to(device, torch.float32)
        outputs = outputs.float()
        surrogate = _untrained(inputs, outputs, network, seed).to(device)
        if not classes:
            _standardise_outputs(surrogate, outputs[rows.training])

        def loss(batch: Tensor, presence: Tensor, _generator: torch.Generator) -> Tensor:
            masked = torch.where(presence.to(device), inputs[batch], torch.nan)
            return surrogate.loss(masked, outputs[batch], classes)

        record = fit(surrogate, loss, rows, epochs=epochs, title="training a surrogate", show=progress)
        fidelity = surrogate.fidelity(inputs[rows.held_out], outputs[rows.held_out], classes)
        masked = torch.where(rows.presence.to(device), inputs[rows.repeated], torch.nan)
        masked_fidelity = surrogate.fidelity(masked, outputs[rows.repeated], classes)
        record = replace(record, rows_seen=row_count.rows)
        return Surrogate(surrogate, classes, fidelity, masked_fidelity, record)


def _are_logits(model: Model, outputs: Tensor) -> bool:
    """Return whether outputs look like logits: several numbers that are not the scores of an estimator."""
    several = outputs.ndim == 2 and outputs.shape[1] > 1
    return several and not getattr(model, "scores", False)


def _check_outputs(outputs: Tensor, classes: bool) -> None:
    """Raise an error for outputs that cannot be imitated, as logits of ``classes`` or as numbers."""
    if not classes:
        finite = outputs.isfinite()
        if not bool(finite.all()):
            raise wrong("model", "return finite outputs", f"{int((~finite).sum())} that are not")
        return
    if outputs.ndim != 2 or outputs.shape[1] < 2:
        must = "return (rows, classes) for a surrogate of classes"
        raise wrong("model", must, f"shape {tuple(outputs.shape)}", "Use classes=False to imitate numbers.")
    if not bool(outputs.amax(1).isfinite().all()):  # a logit of −∞ rules a class out, but not all of them
        raise wrong("model", "return logits", "NaN or infinity")
    if are_probabilities(outputs):
        then = "Return their logarithm, or use classes=False to imitate the probabilities as numbers."
        raise wrong("model", "return logits for a surrogate of classes", "probabilities that add up to 1", then)


def _untrained(x: Rows, outputs: Tensor, network: nn.Module | None, seed: int) -> SurrogateNetwork:
    """Build the network, or raise an error if the user's network does not fit."""
    mean, deviation = mean_and_deviation(x)
    read = Standardise(tuple(x.shape[1:]), mean, deviation)
    output_shape = tuple(outputs.shape[1:])
    if network is None:
        body: nn.Module = _default_body(read.shape, math.prod(output_shape), seed)
    else:
        body = copy.deepcopy(network).to(x.device, torch.float32)
        _check_body(body, read.to(x.device)(x[:2]), math.prod(output_shape))
    return SurrogateNetwork(read, body, output_shape, own=network is not None)


def _check_body(body: nn.Module, two_rows: Tensor, outputs: int) -> None:
    """Raise an error if the user's network does not accept the rows, or returns the wrong number of outputs."""
    try:
        with evaluation_mode(body):
            answer = body(two_rows)
    except RuntimeError as error:
        raise wrong("network", f"take rows of shape {tuple(two_rows.shape[1:])}", f"the error: {error}") from error
    if tuple(answer.shape) != (2, outputs):
        raise wrong("network", f"return (rows, {outputs})", f"shape {tuple(answer.shape)} for two rows")


def _standardise_outputs(surrogate: SurrogateNetwork, outputs: Tensor) -> None:
    """Let the body return standardised outputs, which are easier to learn than the model's own units."""
    deviation = outputs.std(0, correction=0)
    surrogate.offset.copy_(outputs.mean(0))
    surrogate.scale.copy_(torch.where(deviation > 0, deviation, 1.0))


def _default_body(shape: tuple[int, ...], outputs: int, seed: int) -> nn.Sequential:
    """Build convolutions for images, linear layers otherwise, that take what `Standardise` returns.

    Saved surrogates hold only the weights, and this function builds their network again: other layers or widths here
    would make all saved files unreadable.
    """
    with weights_drawn_from(seed):
        if len(shape) != 3:
            inputs = 2 * math.prod(shape)  # the values, and the presence of each
            return mlp((inputs, *_HIDDEN_WIDTHS, outputs))
        channels, height, width = shape
        first, second, third = _CONVOLUTION_WIDTHS
        places = math.ceil(height / 4) * math.ceil(width / 4)  # after two strides of 2
        return nn.Sequential(
            nn.Conv2d(channels + 1, first, 3, padding=1),  # the values, and a plane of presence
            nn.SiLU(),
            nn.Conv2d(first, second, 3, padding=1, stride=2),
            nn.SiLU(),
            nn.Conv2d(second, third, 3, padding=1, stride=2),
            nn.SiLU(),
            nn.Flatten(),
            *mlp((third * places, _WIDTH_AFTER_CONVOLUTIONS, outputs)),
        )
