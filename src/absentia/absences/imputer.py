"""A learned conditional distribution as an absence: draws from a masked variational autoencoder.

A latent z holds what the present entries x_P leave open. The masked encoder p(z | x_P) guesses it from them, the full
encoder q(z | x) knows it from the whole row, and the decoder p(x_A | z, x_P) returns the absent entries. Training
maximises the evidence bound E_q log p(x_A | z, x_P) − KL(q(z | x) ‖ p(z | x_P)) [ivanov2019conditioning,
frye2021manifold].
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.distributions import Normal, kl_divergence

from absentia.absences.fitting import MaskedRows, Rows, Standardise, TrainingRecord, fit, mlp
from absentia.absences.protocol import ConditionalFill, Fill, Samples, check_shape
from absentia.data import Table, check_number, check_rows, least_and_most, mean_and_deviation, seeded
from absentia.players import Players
from absentia.results import Saved

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
    hidden = features[0]
    if patch:
        _, rows, columns = features
        beyond = (0, columns * patch - shape[2], 0, rows * patch - shape[1])
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
        return sizes | {"weights": dict(self.state_dict())}

    @classmethod
    def unpacked(cls, fields: Mapping[str, Any]) -> ImputerNetwork:
        """Build the network that was packed."""
        weights = fields["weights"]
        read = Standardise(tuple(fields["shape"]), weights["read.mean"], weights["read.scale"])
        network = cls(read, fields["latent"], fields["hidden"], fields["patch"])
        network.load_state_dict(weights)
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
class Imputer(Saved):
    """A trained network that draws absent entries given the present ones; `train_imputer` makes it.

    The same random numbers serve every sample and every coalition. Draws stay within the range of the data.
    ``dataclasses.replace(imputer, draws=50)`` changes the number of draws.

    Examples
    --------
    >>> imputer = train_imputer(torch.rand(100, 3, generator=torch.Generator().manual_seed(0)), epochs=2, draws=4)
    >>> imputer.bind(torch.rand(5, 3))(slice(0, 2), torch.tensor([[[True, False, True]]])).shape
    torch.Size([2, 1, 4, 3])
    """

    KIND: ClassVar[str] = "imputer"
    FORMAT: ClassVar[int] = 3

    network: ImputerNetwork
    least: Float[Tensor, " *scales"]
    most: Float[Tensor, " *scales"]
    draws: int
    seed: int
    record: TrainingRecord

    def __post_init__(self) -> None:
        check_number("draws", self.draws, 1)

    def __repr__(self) -> str:
        record = self.record
        return (
            f"Imputer of entries of shape {self.shape}, {self.draws} draws, seed {self.seed}\n  {record}\n"
            f"  held-out  {record.held_out:,} rows: evidence bound {-record.loss:.4g} nats per entry "
            f"(at the start {-record.first_loss:.4g})"
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one sample."""
        return self.network.read.shape

    def bind(self, x: Samples) -> Fill:
        """Draw the random numbers."""
        check_shape("imputer", self.shape, x, "Imputer")
        generator = seeded(self.seed)
        latent_noise = torch.randn(self.draws, self.network.latent, generator=generator, dtype=torch.float32)
        noise = torch.randn(self.draws, *self.shape, generator=generator, dtype=torch.float32)
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
    x = check_rows(data, least=2)
    check_number("draws", draws, 1)
    rows, x = MaskedRows.draw(x, players, seed, "an imputer"), x.float()
    shape = tuple(x.shape[1:])
    large_image = len(shape) == 3 and shape[1] * shape[2] > _MOST_FLAT_PIXELS
    patch = -(-max(shape[1:]) // _PATCHES_PER_SIDE) if large_image else 0
    hidden = 48 if patch else 128 if x[0].numel() <= _FEW_ENTRIES else 256
    read = Standardise(shape, *mean_and_deviation(x))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = ImputerNetwork(read, 32 if patch else 16, hidden, patch).to(x.device)

    def loss(some: Tensor, presence: Tensor, generator: torch.Generator) -> Tensor:
        latent_noise = torch.randn(len(some), network.latent, generator=generator, dtype=torch.float32)
        return network.loss(x[some], presence.to(x.device), latent_noise.to(x.device))

    record = fit(network, loss, rows, epochs=epochs, title="training an imputer", show=progress)
    least, most = (end.float() for end in least_and_most(x))
    return Imputer(network, least, most, draws, seed, record)
