"""Absences that networks are trained for, on masked inputs in which absent entries are NaN.

An imputer draws from a masked variational autoencoder. A latent z holds what the present entries x_P leave open. The
masked encoder p(z | x_P) guesses it from them, the full encoder q(z | x) knows it from the whole row, and the decoder
p(x_A | z, x_P) returns the absent entries. Training maximises the evidence bound E_q log p(x_A | z, x_P) −
KL(q(z | x) ‖ p(z | x_P)) [ivanov2019conditioning, frye2021manifold].

A surrogate is a network that returns what the model would on average, given the present entries alone: the model's
average over all samples with the same present entries, which takes one forward pass instead of many draws
[frye2021manifold, covert2021removing].
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any, NamedTuple, TypeAlias

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.distributions import Normal, kl_divergence

from absentia.absences.protocol import ConditionalFill, Fill, Samples, StandIns, check_floating, check_shape
from absentia.data import Table, check_number, check_rows, least_and_most, mean_and_deviation, seeded
from absentia.errors import AbsentiaError, wrong
from absentia.models.adapters import as_model, placement
from absentia.models.model import Model
from absentia.models.outputs import are_probabilities
from absentia.players import Players
from absentia.runtime.batches import run_rows
from absentia.runtime.modes import evaluation_mode
from absentia.runtime.progress import progress
from absentia.runtime.readings import confirm_margins
from absentia.storage import Saved
from absentia.version import __version__

Rows: TypeAlias = Float[Tensor, "rows *entries"]
# Numbers of rows and their presence → a loss for each row. The generator is for whatever else is random.
Loss: TypeAlias = Callable[[Int[Tensor, " batch"], Bool[Tensor, "batch *entries"], torch.Generator], Tensor]

# Held-out rows choose the weights: a tenth of the rows, but no more than needed to compare epochs. Few rows are
# masked several times, always in the same way.
_HELD_OUT_SHARE, _MOST_HELD_OUT, _HELD_OUT_MASKED, _MOST_REPEATS = 0.1, 2000, 1024, 16
# A minibatch is a sixteenth of the rows, within these numbers, so that few rows still make several steps.
_LEAST_BATCH, _BATCH = 32, 256
# The held-out loss is checked after every epoch, or after this many steps where epochs are shorter.
_STEPS_PER_CHECK = 32
# The loss has stopped falling when this many checks bring less than this share of all that it has fallen. Training
# then goes on with the next lower rate, and ends after the last.
_PATIENCE, _LEAST_GAIN = 5, 5e-4
_RATES = (3e-3, 6e-4, 1e-4)


class Standardise(nn.Module):
    """Read masked inputs: standardised values, 0 where absent, and presence beside them (of images, as a plane)."""

    mean: Tensor
    scale: Tensor

    def __init__(self, shape: tuple[int, ...], mean: Tensor, deviation: Tensor) -> None:
        super().__init__()
        self.shape = shape
        self.register_buffer("mean", mean.float())
        self.register_buffer("scale", torch.where(deviation > 0, deviation, 1.0).float())

    def standardised(self, rows: Rows) -> Rows:
        """Return the values in units of the data's deviations from its mean."""
        return (rows - self.mean) / self.scale

    def code(self, values: Tensor, present: Tensor) -> Tensor:
        """Put presence beside standardised values."""
        if len(self.shape) == 3:
            return torch.cat([values, present.to(values).mean(1, keepdim=True)], dim=1)
        return torch.cat([values.flatten(1), present.flatten(1).to(values)], dim=1)

    def forward(self, rows: Rows) -> Tensor:
        """Read rows whose absent entries are NaN."""
        present = ~rows.isnan()
        return self.code(torch.where(present, self.standardised(rows), 0.0), present)


def mlp(widths: Sequence[int]) -> nn.Sequential:
    """Build linear layers of these widths with a smooth rectifier between them."""
    layers = chain.from_iterable((nn.Linear(*pair), nn.SiLU()) for pair in pairwise(widths))
    return nn.Sequential(*list(layers)[:-1])


@dataclass(frozen=True)
class TrainingRecord:
    """How a network was trained, and how far to trust it."""

    rows: int  # that it learned from
    held_out: int  # rows that it never learned from: the losses are theirs
    players: int
    epochs: int
    first_loss: float
    loss: float
    stopped: str  # why it stopped, in words
    seconds: float
    seed: int
    version: str = __version__

    def __str__(self) -> str:
        trained = f"trained on {self.rows:,} rows, {self.players} players, {self.epochs} epochs, {self.seconds:.1f} s"
        return f"{trained}: {self.stopped}"


class MaskedRows(NamedTuple):
    """Rows to learn from, and held-out rows with the presence that they keep."""

    players: Players
    kept: Int[Tensor, " kept"]
    held_out: Int[Tensor, " held_out"]
    repeated: Int[Tensor, " masked"]  # held-out rows, as often as each is masked
    presence: Bool[Tensor, "masked *entries"]  # theirs
    seed: int

    @classmethod
    def draw(cls, x: Tensor, players: Players | None, seed: int, method: str) -> MaskedRows:
        """Split the rows; without players each entry is one."""
        if players is None:
            players = Players.segments(torch.arange(x[0].numel()).view(x.shape[1:]))
        if players.integer:
            check_floating(method, x)
        if players.shape != tuple(x.shape[1:]):
            raise wrong("players", f"have the rows' shape {tuple(x.shape[1:])}", f"{players.shape}")
        generator = seeded(seed)
        order = torch.randperm(len(x), generator=generator)
        count = min(_MOST_HELD_OUT, max(1, round(_HELD_OUT_SHARE * len(x))))
        repeated = order[:count].repeat(min(_MOST_REPEATS, max(1, _HELD_OUT_MASKED // count)))
        presence = random_presence(players, len(repeated), generator)
        return cls(players, order[count:], order[:count], repeated, presence, seed)


def random_presence(players: Players, rows: int, generator: torch.Generator) -> Bool[Tensor, "rows *entries"]:
    """Draw a coalition for each row, of a size that is uniform on 0 … n, and spread it over the entries."""
    # A uniform chance of presence makes the size uniform, and all coalitions of a size equally likely.
    chance = torch.rand(rows, 1, generator=generator)
    return players.presence(torch.rand(rows, len(players), generator=generator) < chance)


@torch.enable_grad()
def fit(network: nn.Module, loss: Loss, rows: MaskedRows, *, epochs: int, title: str, show: bool) -> TrainingRecord:
    """Train until the held-out loss stops falling, and leave the network with the weights of the lowest."""
    check_number("epochs", epochs, 1)
    begun, generator = time.perf_counter(), seeded(rows.seed)
    adam = torch.optim.Adam(network.parameters(), lr=_RATES[0], fused=True)
    batch = min(_BATCH, max(_LEAST_BATCH, len(rows.kept) // 16))
    epochs_per_check = -(-_STEPS_PER_CHECK // -(-len(rows.kept) // batch))
    first = lowest = reached = _held_out_loss(network, loss, rows)  # reached: when the loss last fell by much
    best = copy.deepcopy(network.state_dict())
    epoch = stage = checks = 0
    with progress(epochs, title, "epoch", show) as bar:
        while epoch < epochs and stage < len(_RATES):
            network.train()
            for some in rows.kept[torch.randperm(len(rows.kept), generator=generator)].split(batch):
                adam.zero_grad()
                loss(some, random_presence(rows.players, len(some), generator), generator).mean().backward()
                adam.step()
            epoch += 1
            bar.update()
            if epoch % epochs_per_check != 0 and epoch < epochs:
                continue
            held_out = _held_out_loss(network, loss, rows)
            if held_out < lowest:
                lowest, best = held_out, copy.deepcopy(network.state_dict())
            bar.set_postfix(held_out=f"{lowest:.4g}")
            checks += 1
            if reached - lowest > _LEAST_GAIN * (first - lowest):
                reached, checks = lowest, 0
            if checks == _PATIENCE:
                stage, checks = stage + 1, 0
                adam.param_groups[0]["lr"] = _RATES[min(stage, len(_RATES) - 1)]
                network.load_state_dict(best)
    network.load_state_dict(best)
    network.eval().requires_grad_(False)
    stopped = "the held-out loss no longer fell" if stage == len(_RATES) else "the last epoch was reached"
    sizes = (len(rows.kept), len(rows.held_out), len(rows.players), epoch)
    return TrainingRecord(*sizes, first, lowest, stopped, time.perf_counter() - begun, rows.seed)


def _held_out_loss(network: nn.Module, loss: Loss, rows: MaskedRows) -> float:
    """Return the mean loss of the held-out rows, always with the same presence and the same random numbers."""
    network.eval()
    generator = seeded(rows.seed)
    parts = zip(rows.repeated.split(_BATCH), rows.presence.split(_BATCH), strict=True)
    with torch.no_grad():
        mean = float(torch.cat([loss(some, presence, generator) for some, presence in parts]).double().mean())
    if not math.isfinite(mean):
        raise AbsentiaError(f"The loss of held-out rows is {mean}. Look for outliers in the data.")
    return mean


# Draws are made for as many rows at once as take 16 MiB in a layer.
_NUMBERS_AT_A_TIME = 2**22
_FEW_ENTRIES = 32
# Images of more pixels are cut into patches for convolutions; smaller ones are flat rows.
_MOST_FLAT_PIXELS, _PATCHES_PER_SIDE = 256, 8
# Deviations of the decoder, in units of the data's. Below the least, a perfectly predictable entry would outweigh all
# others; above the most, an entry would not be learned at all.
_LEAST_DEVIATION, _MOST_DEVIATION = 0.05, 2.0
_LEAST_LOG, _MOST_LOG = -5.0, 3.0  # of the latent's deviations
# Keeps the masked encoder's guesses from growing where nothing else bounds them [ivanov2019conditioning].
_RESTRAINT = 1e-4


def _encoder(shape: tuple[int, ...], features: tuple[int, ...], patch: int) -> nn.Sequential:
    """Build layers from what `Standardise` reads to features."""
    hidden, *sides = features
    if patch:
        beyond = (0, sides[1] * patch - shape[2], 0, sides[0] * patch - shape[1])
        first = nn.Conv2d(shape[0] + 1, hidden, patch, stride=patch)
        return nn.Sequential(nn.ZeroPad2d(beyond), first, _Residual(hidden), _Residual(hidden))
    inputs = (shape[0] + 1) * shape[1] * shape[2] if len(shape) == 3 else 2 * math.prod(shape)
    return nn.Sequential(nn.Flatten(), mlp((inputs, hidden, hidden)), nn.SiLU())


class _Residual(nn.Module):
    """A convolution whose output is added to its input."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        first, last = nn.Conv2d(channels, channels, 3, padding=1), nn.Conv2d(channels, channels, 1)
        self.change = nn.Sequential(first, nn.GroupNorm(1, channels), nn.SiLU(), last)

    def forward(self, features: Float[Tensor, "rows channels height width"]) -> Tensor:
        return features + self.change(features)


class ImputerNetwork(nn.Module):
    """Two encoders and a decoder, on rows whose absent entries are NaN; they work with standardised values."""

    def __init__(self, read: Standardise, latent: int, hidden: int, patch: int) -> None:
        super().__init__()
        self.read, self.latent, self.hidden, self.patch = read, latent, hidden, patch
        features = (hidden, *(-(-side // patch) for side in read.shape[1:] if patch))  # the shape of one row's
        self.features = math.prod(features)
        self.context = _encoder(read.shape, features, patch)  # features of the present entries
        self.guess = nn.Sequential(nn.Flatten(), nn.Linear(self.features, 2 * latent))  # the masked encoder's end
        know = _encoder(read.shape, features, patch)
        self.know = nn.Sequential(know, nn.Flatten(), nn.Linear(self.features, 2 * latent))
        self.decode = nn.ModuleDict()  # from a latent and features to two numbers for each entry of a row
        if patch:  # every one has weights of its own for the latent
            self.decode["spread"] = nn.Sequential(nn.Linear(latent, self.features), nn.Unflatten(1, features))
            last = nn.Conv2d(hidden, 2 * read.shape[0] * patch**2, 1)
            layers = nn.Sequential(_Residual(hidden), _Residual(hidden), last, nn.PixelShuffle(patch))
        else:
            layers = mlp((latent + hidden, hidden, hidden, 2 * math.prod(read.shape)))
        self.decode["layers"] = layers
        self.float()  # whatever torch's default

    def packed(self) -> dict[str, Any]:
        """Return what `unpacked` needs."""
        sizes = {"shape": self.read.shape, "latent": self.latent, "hidden": self.hidden, "patch": self.patch}
        return sizes | {"weights": self.state_dict()}

    @classmethod
    def unpacked(cls, fields: Mapping[str, Any]) -> ImputerNetwork:
        """Build the network that was packed."""
        weights = fields["weights"]
        read = Standardise(tuple(fields["shape"]), weights["read.mean"], weights["read.scale"])
        with torch.device("meta"):  # sizes that a file claims take no memory
            network = cls(read, fields["latent"], fields["hidden"], fields["patch"])
        network.load_state_dict(weights, assign=True)
        return network.eval().requires_grad_(False)

    def draw(
        self, rows: Rows, latent_noise: Float[Tensor, "draws latent"], noise: Float[Tensor, "draws *entries"]
    ) -> Float[Tensor, "rows draws *entries"]:
        """Draw whole rows given the present entries, in the data's units, from given random numbers."""
        context = self.context(self.read(rows))
        guessed = _latent(self.guess(context))
        latent = guessed.mean[:, None] + guessed.stddev[:, None] * latent_noise
        decoded = self._decoded(latent.flatten(0, 1), context.repeat_interleave(len(noise), 0))
        centre, spread = (part.unflatten(0, latent.shape[:2]) for part in decoded)
        return (centre + spread * noise) * self.read.scale + self.read.mean

    def loss(
        self, rows: Rows, presence: Bool[Tensor, "rows *entries"], latent_noise: Float[Tensor, "rows latent"]
    ) -> Float[Tensor, " rows"]:
        """Return minus the evidence bound of the absent entries, for each entry of a row."""
        wanted = self.read.standardised(rows)
        context = self.context(self.read.code(torch.where(presence, wanted, 0.0), presence))
        guessed, known = _latent(self.guess(context)), _latent(self.know(self.read.code(wanted, presence)))
        centre, spread = self._decoded(known.mean + known.stddev * latent_noise, context)
        likelihood = Normal(centre, spread, validate_args=False).log_prob(wanted)
        if self.training:  # it is flat for uncertain entries, hardly learned otherwise [seitzer2022pitfalls]
            likelihood = likelihood * spread.detach()
        absent = torch.where(presence, 0.0, likelihood).flatten(1).sum(1)
        restraint = _RESTRAINT * (guessed.mean.square() / 2 + guessed.stddev - guessed.stddev.log()).sum(1)
        return (kl_divergence(known, guessed).sum(1) - absent + restraint) / math.prod(self.read.shape)

    def _decoded(self, latent: Tensor, features: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and standard deviation of each entry, standardised."""
        shape, layers = self.read.shape, self.decode["layers"]
        if self.patch:
            numbers = layers(features + self.decode["spread"](latent))[..., : shape[1], : shape[2]]
            centre, spread = numbers.unflatten(1, (2, shape[0])).unbind(1)
        else:
            centre, spread = layers(torch.cat([latent, features], dim=1)).view(-1, 2, *shape).unbind(1)
        return centre, _LEAST_DEVIATION + (_MOST_DEVIATION - _LEAST_DEVIATION) * spread.sigmoid()


def _latent(output: Tensor) -> Normal:
    mean, log_deviation = output.chunk(2, dim=-1)
    return Normal(mean, log_deviation.clamp(_LEAST_LOG, _MOST_LOG).exp(), validate_args=False)


@dataclass(frozen=True, eq=False)
class Imputer(Saved, kind="imputer", format=3):
    """A trained network that draws absent entries given the present ones; `train_imputer` makes it.

    The same random numbers serve every sample and every coalition. Draws stay within the range of the data.
    ``dataclasses.replace(imputer, draws=50)`` changes the number of draws.

    Examples
    --------
    >>> imputer = train_imputer(torch.rand(100, 3, generator=torch.Generator().manual_seed(0)), epochs=2, draws=4)
    >>> imputer.bind(torch.rand(5, 3))(slice(0, 2), torch.tensor([[[True, False, True]]])).shape
    torch.Size([2, 1, 4, 3])
    """

    network: ImputerNetwork
    least: Float[Tensor, " *scales"]
    most: Float[Tensor, " *scales"]
    draws: int
    seed: int
    record: TrainingRecord

    def __post_init__(self) -> None:
        check_number("draws", self.draws, 1)

    def __repr__(self) -> str:
        record, shape = self.record, self.network.read.shape
        return (
            f"Imputer of entries of shape {shape}, {self.draws} draws, seed {self.seed}\n  {record}\n"
            f"  held-out  {record.held_out:,} rows: evidence bound {-record.loss:.4g} nats per entry "
            f"(at the start {-record.first_loss:.4g})"
        )

    def bind(self, x: Samples) -> Fill:
        """Draw the random numbers."""
        check_shape("imputer", self.network.read.shape, x, "Imputer")
        generator = seeded(self.seed)
        latent_noise = torch.randn(self.draws, self.network.latent, generator=generator, dtype=torch.float32)
        noise = torch.randn(self.draws, *x.shape[1:], generator=generator, dtype=torch.float32)
        here = self.network.read.mean.device == x.device
        network = self.network if here else copy.deepcopy(self.network).to(x.device)
        tensors = (latent_noise, noise, self.least, self.most)
        latent_noise, noise, least, most = (tensor.to(x.device, torch.float32) for tensor in tensors)

        def stand_ins(x: Tensor, presence: Tensor, draws: list[int]) -> Tensor:
            rows = torch.where(presence, x[:, None].float(), torch.nan).flatten(0, 1)
            parts = rows.split(max(1, _NUMBERS_AT_A_TIME // (len(draws) * (6 * network.features + 4 * x[0].numel()))))
            with torch.no_grad():
                drawn = (network.draw(some, latent_noise[draws], noise[draws]) for some in parts)
                found = torch.cat([each.clamp_(least, most).to(x.dtype) for each in drawn])
            return found.unflatten(0, (len(x), presence.shape[1]))

        return ConditionalFill(x, tuple(range(self.draws)), stand_ins)

    @staticmethod
    def from_old(tensors: dict[str, Tensor], header: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of a file of format 1 or 2."""
        weights = {name.removeprefix("network."): value for name, value in tensors.items() if "network." in name}
        return header | {"network": header | {"weights": weights}}


def train_imputer(
    data: Table,
    *,
    players: Players | None = None,
    draws: int = 10,
    epochs: int = 500,
    seed: int = 0,
    progress: bool = True,
) -> Imputer:
    """Train a masked variational autoencoder to draw absent entries of the data's rows given the present ones.

    Parameters
    ----------
    data : array of shape (rows, …)
        The rows to learn from. A tenth of them is held out, to end the training.
    players : Players, optional
        The players of the games to come; each entry is one by default. Coalitions have sizes uniform on 0 … n.
    draws : int, default 10
        The number of stand-ins for each coalition; a game averages over them.
    epochs : int, default 500
        The most passes over the rows. Training ends earlier if the loss of held-out rows stops falling.
    seed : int, default 0
        The seed of the training and of the draws.
    progress : bool, default True
        Whether to show a bar on a terminal.

    Examples
    --------
    >>> same = torch.rand(2000, 1, generator=torch.Generator().manual_seed(0)).expand(-1, 2)
    >>> fill = train_imputer(same, epochs=20).bind(torch.tensor([[0.8, 0.8]]))
    >>> given, alone = fill(slice(None), torch.tensor([[[True, False], [False, False]]]))[0, :, :, 1]
    >>> bool(given.std() < alone.std()), bool((given.mean() - 0.8).abs() < 0.1)
    (True, True)
    """
    with torch.inference_mode(False):
        x = check_rows(data, least=2)
        check_number("draws", draws, 1)
        rows, x = MaskedRows.draw(x, players, seed, "an imputer"), x.float()
        shape = tuple(x.shape[1:])
        large_image = len(shape) == 3 and shape[1] * shape[2] > _MOST_FLAT_PIXELS
        patch = -(-max(shape[1:]) // _PATCHES_PER_SIDE) if large_image else 0
        hidden = 48 if patch else 128 if x[0].numel() <= _FEW_ENTRIES else 256
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            read = Standardise(shape, *mean_and_deviation(x))
            network = ImputerNetwork(read, 32 if patch else 16, hidden, patch).to(x.device)

        def loss(some: Tensor, presence: Tensor, generator: torch.Generator) -> Tensor:
            latent_noise = torch.randn(len(some), network.latent, generator=generator, dtype=torch.float32)
            return network.loss(x[some], presence.to(x.device), latent_noise.to(x.device))

        record = fit(network, loss, rows, epochs=epochs, title="training an imputer", show=progress)
        return Imputer(network, *least_and_most(x), draws, seed, record)


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
        return {"shape": self.read.shape, "outputs": self.outputs, "own": self.own, "weights": self.state_dict()}

    @classmethod
    def unpacked(cls, fields: Mapping[str, Any], network: nn.Module | None = None) -> SurrogateNetwork:
        """Build the network that was packed; ``network`` has the layers of a body of the user's."""
        if fields["own"] and network is None:
            raise wrong("network", "be given, as it was to train_surrogate", "none", "Its weights are in the file.")
        shape, outputs, weights = tuple(fields["shape"]), tuple(fields["outputs"]), fields["weights"]
        with torch.device("meta"):  # sizes that a file claims take no memory
            body = _default_body(shape, math.prod(outputs), seed=0) if network is None else copy.deepcopy(network)
            whole = cls(Standardise(shape, weights["read.mean"], weights["read.scale"]), body, outputs, fields["own"])
        try:
            whole.load_state_dict(weights, assign=True)
        except RuntimeError as error:
            raise wrong("network", "have the layers of the saved one", "others") from error
        return whole.eval().requires_grad_(False)


@dataclass(frozen=True, eq=False)
class Surrogate(Saved, kind="surrogate", format=3):
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

    network: SurrogateNetwork
    classes: bool  # outputs are log-probabilities of the average probabilities; otherwise average outputs
    fidelity: float  # on held-out samples with nothing absent: the share with the same predicted class, or R²
    masked_fidelity: float  # the same with random players absent, which leave the model's output open
    record: TrainingRecord

    def __repr__(self) -> str:
        record, shape, outputs = self.record, self.network.read.shape, self.network.outputs
        loss = "KL divergence" if self.classes else "squared error, by the output's variance,"
        shown = "{:.1%}" if self.classes else "R² {:.3f}"
        return (
            f"Surrogate of a model from inputs of shape {shape} to outputs of shape {outputs}\n  {record}\n"
            f"  held-out  {record.held_out:,} rows: {loss} {record.loss:.4g} (at the start {record.first_loss:.4g})\n"
            f"  fidelity  {shown.format(self.fidelity)} with nothing absent, {shown.format(self.masked_fidelity)} "
            "with random players absent"
        )

    def bind(self, x: Samples) -> Fill:
        """Mark absent entries by NaN, which only the surrogate understands."""
        check_shape("surrogate", self.network.read.shape, x, "Surrogate")
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
        by the squared error. By default, outputs of more than one number are logits, unless they are the scores of
        an estimator, such as an SVM.
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
    with torch.inference_mode(False):
        x, model = check_rows(x, least=2), as_model(model)
        rows = MaskedRows.draw(x, players, seed, "a surrogate")
        device, dtype = placement(model, x)
        model = confirm_margins(model, x.to(device, dtype))
        outputs = run_rows(model, x.to(device, dtype))
        if classes is None:
            several = outputs.ndim == 2 and outputs.shape[1] > 1
            classes = several and not getattr(model, "scores", False)
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
        few = torch.where(rows.presence.to(device), x[rows.repeated], torch.nan)
        return Surrogate(surrogate, classes, whole, surrogate.fidelity(few, outputs[rows.repeated], classes), record)


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
        sizes = ((shape[0] + 1, 32, 1), (32, 48, 2), (48, 64, 2))  # channels and strides of the convolutions
        layers = [(nn.Conv2d(a, b, 3, padding=1, stride=stride), nn.SiLU()) for a, b, stride in sizes]
        pixels = -(-shape[1] // 4) * -(-shape[2] // 4)
        return nn.Sequential(*chain.from_iterable(layers), nn.Flatten(), *mlp((64 * pixels, 128, outputs)))
