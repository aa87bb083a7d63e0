"""Training a surrogate: imitate the model's outputs on samples of which random players are absent."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from absentia.absence.checks import check_floating, check_rows
from absentia.absence.networks import Standardise, default_network
from absentia.absence.scales import mean_and_deviation
from absentia.absence.surrogate import Surrogate, SurrogateNetwork, count_outputs
from absentia.absence.training import MaskedRows, fit
from absentia.arrays import Table
from absentia.errors import wrong
from absentia.inference import BatchRunner, Model, evaluation_mode, placement, rows_per_batch, try_rows
from absentia.players import Players

_ROWS_AT_A_TIME = 1024


def train_surrogate(
    model: Model,
    x: Table,
    *,
    players: Players | None = None,
    classes: bool | None = None,
    network: nn.Module | None = None,
    epochs: int = 500,
    seed: int = 0,
    progress: bool = True,
) -> Surrogate:
    """Train a network to give the model's output on samples of which random players are absent.

    ``x`` holds samples, the more the better; their labels are not needed. Coalitions of ``players`` (entries by
    default) are drawn with sizes uniform on 0 … n. Outputs of more than one number are logits of ``classes`` unless
    said otherwise, and imitated by the Kullback–Leibler divergence; others by the squared error. ``network`` takes
    rows (rows, 2·entries), standardised values (0 where absent) and then presence, or for images (rows, channels + 1,
    height, width) with presence as the last plane, and gives (rows, outputs). Training ends after ``epochs``, or when
    the loss on held-out rows no longer falls. ``progress`` shows a bar on a terminal.

    >>> x = torch.rand(500, 3, generator=torch.Generator().manual_seed(0))
    >>> surrogate = train_surrogate(lambda rows: rows[:, 0] - rows[:, 1], x, epochs=20)
    >>> surrogate.fidelity > 0.9, surrogate.masked_fidelity < surrogate.fidelity
    (True, True)
    """
    x = check_rows(x, least=2)
    if players is not None and players.integer:
        check_floating("a surrogate", x, "Embed tokens first, or use Baseline or Marginal.")
    rows = MaskedRows.draw(x, players, seed)
    device, dtype = placement(model, x)
    outputs = _outputs(model, x.to(device, dtype))
    classes = outputs.ndim == 2 and outputs.shape[1] > 1 if classes is None else classes
    _check_outputs(outputs, classes)
    x, outputs = x.to(device, torch.float32), outputs.float()
    surrogate = _untrained(x, outputs, network, seed).to(device)
    if not classes:
        surrogate.set_scale(outputs[rows.kept])
    task = Imitation(surrogate, x, outputs, classes)
    record = fit(surrogate, task.loss, rows, epochs=epochs, title="training a surrogate", show=progress)
    fidelity = task.fidelity(rows.held_out, torch.ones(len(rows.held_out), *x.shape[1:], dtype=torch.bool))
    masked = task.fidelity(rows.repeated, rows.presence)
    return Surrogate(surrogate, classes, fidelity, masked, network is not None, record)


@dataclass(frozen=True, eq=False)
class Imitation:
    """What the surrogate learns: to give the model's outputs from masked rows."""

    surrogate: SurrogateNetwork
    x: Float[Tensor, "rows *entries"]
    outputs: Float[Tensor, "rows *outputs"]
    classes: bool

    def answer(self, rows: Int[Tensor, " batch"], presence: Bool[Tensor, "batch *entries"]) -> Tensor:
        """Give the surrogate's answers for masked rows."""
        return self.surrogate(torch.where(presence.to(self.x.device), self.x[rows], torch.nan))

    def loss(self, rows: Tensor, presence: Tensor, _generator: torch.Generator) -> Float[Tensor, " batch"]:
        """Measure how far its answers are from the model's: Kullback–Leibler divergence, or squared error."""
        answer, wanted = self.answer(rows, presence), self.outputs[rows]
        if self.classes:
            chances = wanted.softmax(1)
            # xlogy counts 0·log 0 as 0, for classes that the model rules out.
            return (torch.special.xlogy(chances, chances) - chances * answer.log_softmax(1)).sum(1)
        return ((answer - wanted) / self.surrogate.scale).square().reshape(len(rows), -1).mean(1)

    def fidelity(self, rows: Int[Tensor, " batch"], presence: Bool[Tensor, "batch *entries"]) -> float:
        """Tell the share of rows with the model's predicted class, or R² of its outputs."""
        parts = zip(rows.split(_ROWS_AT_A_TIME), presence.split(_ROWS_AT_A_TIME), strict=True)
        with torch.no_grad():
            answer, wanted = torch.cat([self.answer(*part) for part in parts]), self.outputs[rows]
        if self.classes:
            return float((answer.argmax(1) == wanted.argmax(1)).double().mean())
        left, total = ((answer - wanted) / self.surrogate.scale), (wanted - wanted.mean(0)) / self.surrogate.scale
        return 1 - float(left.square().sum() / total.square().sum().clamp_min(torch.finfo(total.dtype).tiny))


def _outputs(model: Model, x: Tensor) -> Float[Tensor, "rows *outputs"]:
    """Run the model on all rows; on copies, for it may work in place."""
    with evaluation_mode(model):
        _, size = try_rows(model, x[[0, -1]])
        batch = rows_per_batch(model, size, x.device, memory=None)
        return BatchRunner(lambda rows: model(rows.clone()), batch)(x)


def _check_outputs(outputs: Tensor, classes: bool) -> None:
    """Refuse outputs that can't be imitated as what they are said to be."""
    if not classes:
        if not bool(torch.isfinite(outputs).all()):
            raise wrong("model", "return finite outputs", f"{int((~outputs.isfinite()).sum())} that are not")
        return
    if outputs.ndim != 2 or outputs.shape[1] < 2:
        must = "return (rows, classes) for a surrogate of classes"
        raise wrong("model", must, f"shape {tuple(outputs.shape)}", "Say classes=False to imitate numbers.")
    if not bool(outputs.amax(1).isfinite().all()):  # −∞ is the logit of a class that is ruled out
        raise wrong("model", "return logits", "NaN or infinity")
    sums = outputs.sum(1)
    if bool((outputs >= 0).all()) and torch.allclose(sums, torch.ones_like(sums), atol=1e-4):
        then = "Return their logarithm, or say classes=False to imitate the probabilities as numbers."
        raise wrong("model", "return logits for a surrogate of classes", "probabilities that add up to 1", then)


def _untrained(x: Tensor, outputs: Tensor, network: nn.Module | None, seed: int) -> SurrogateNetwork:
    """Put a network between what reads masked inputs and what gives outputs; refuse one that does not fit."""
    shape, count = tuple(x.shape[1:]), count_outputs(tuple(outputs.shape[1:]))
    read = Standardise(shape, *mean_and_deviation(x))
    if network is None:
        return SurrogateNetwork(read, default_network(shape, count, seed), tuple(outputs.shape[1:]))
    coded = read.to(x.device)(x[:2])
    try:
        with evaluation_mode(network):
            answer = network.to(x.device)(coded)
    except RuntimeError as error:
        raise wrong("network", f"take rows of shape {tuple(coded.shape[1:])}", f"the error: {error}") from error
    if tuple(answer.shape) != (2, count):
        raise wrong("network", f"return (rows, {count})", f"shape {tuple(answer.shape)} for two rows")
    return SurrogateNetwork(read, copy.deepcopy(network), tuple(outputs.shape[1:]))
