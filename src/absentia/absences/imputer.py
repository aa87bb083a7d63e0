"""An imputer: a network, trained on the data, that draws absent entries given the present ones.

The network is a masked variational autoencoder. A latent z describes what the present entries x_P do not determine.
The masked encoder p(z | x_P) predicts it from the present entries, the full encoder q(z | x) computes it from the
whole row, and the decoder p(x_A | z, x_P) returns the absent entries. Training maximises the evidence lower bound
E_q log p(x_A | z, x_P) − KL(q(z | x) ‖ p(z | x_P)) [ivanov2019conditioning, frye2021manifold].
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.distributions import Normal, kl_divergence

from absentia.absences.protocol import ConditionalFill, Fill, Samples, check_shape
from absentia.absences.training import MaskedRows, Rows, Standardise, TrainingRecord, fit, mlp
from absentia.arguments import checked
from absentia.data import (
    Table,
    check_number,
    check_rows,
    least_and_most,
    mean_and_deviation,
    seeded,
    weights_drawn_from,
)
from absentia.players import Players
from absentia.storage import Saved

# Draws are made for as many rows at a time as take 16 MiB in a layer.
_NUMBERS_AT_A_TIME = 2**22

# Images of more pixels are cut into patches for convolutions. Smaller ones are treated as flat rows.
_MOST_FLAT_PIXELS = 256
# The longer side of a large image is cut into this many patches.
_PATCHES_PER_SIDE = 8
# Flat rows of up to this many entries get narrower layers.
_FEW_ENTRIES = 32


@dataclass(frozen=True)
class _Widths:
    """The sizes of a network: the width of the latent, and of the features of a row or a patch."""

    latent: int
    hidden: int


_WIDTHS_OF_PATCHES = _Widths(latent=32, hidden=48)
_WIDTHS_OF_FEW_ENTRIES = _Widths(latent=16, hidden=128)
_WIDTHS_OF_MANY_ENTRIES = _Widths(latent=16, hidden=256)

# Bounds on the decoder's standard deviations, relative to those of the data. Below the lower bound, a perfectly
# predictable entry would outweigh all others. Above the upper bound, an entry would not be learned at all.
_LEAST_DEVIATION = 0.05
_MOST_DEVIATION = 2.0
# Bounds on the logarithm of the latent's standard deviations.
_LEAST_LOG_DEVIATION = -5.0
_MOST_LOG_DEVIATION = 3.0
# Keeps the masked encoder's guesses from growing where nothing else bounds them [ivanov2019conditioning].
_RESTRAINT = 1e-4


class _Residual(nn.Module):
    """A convolution whose output is added to its input."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.change = nn.Sequential(
            nn.Conv2d(channels, channels, 3, padding=1),
            nn.GroupNorm(1, channels),
            nn.SiLU(),
            nn.Conv2d(channels, channels, 1),
        )

    def forward(self, features: Float[Tensor, "rows channels height width"]) -> Tensor:
        return features + self.change(features)


def _patch_encoder(shape: tuple[int, ...], hidden: int, patch: int) -> nn.Sequential:
    """Build convolutions from the code of an image to features of its patches."""
    channels, height, width = shape
    missing_rows = math.ceil(height / patch) * patch - height
    missing_columns = math.ceil(width / patch) * patch - width
    return nn.Sequential(
        nn.ZeroPad2d((0, missing_columns, 0, missing_rows)),
        nn.Conv2d(channels + 1, hidden, patch, stride=patch),
        _Residual(hidden),
        _Residual(hidden),
    )


def _flat_encoder(shape: tuple[int, ...], hidden: int) -> nn.Sequential:
    """Build linear layers from the code of a row to features."""
    if len(shape) == 3:
        channels, height, width = shape
        inputs = (channels + 1) * height * width
    else:
        inputs = 2 * math.prod(shape)
    return nn.Sequential(nn.Flatten(), mlp((inputs, hidden, hidden)), nn.SiLU())


class ImputerNetwork(nn.Module):
    """Two encoders and a decoder that work with standardised values. Absent entries of rows are NaN.

    Large images are cut into square patches with sides of ``patch`` pixels. ``patch`` is 0 for flat rows.
    """

    def __init__(self, read: Standardise, latent: int, hidden: int, patch: int) -> None:
        super().__init__()
        self.read = read
        self.latent = latent
        self.hidden = hidden
        self.patch = patch
        features_shape = self._features_shape()
        self.features = math.prod(features_shape)
        self.context = self._encoder()  # features of the present entries
        self.guess = nn.Sequential(nn.Flatten(), nn.Linear(self.features, 2 * latent))  # the masked encoder's end
        self.know = nn.Sequential(self._encoder(), nn.Flatten(), nn.Linear(self.features, 2 * latent))
        self.decode = nn.ModuleDict()  # from a latent and features to two numbers for each entry of a row
        if patch:
            # Every feature has its own weights for the latent.
            self.decode["spread"] = nn.Sequential(nn.Linear(latent, self.features), nn.Unflatten(1, features_shape))
            last = nn.Conv2d(hidden, 2 * read.shape[0] * patch**2, 1)
            layers = nn.Sequential(_Residual(hidden), _Residual(hidden), last, nn.PixelShuffle(patch))
        else:
            layers = mlp((latent + hidden, hidden, hidden, 2 * math.prod(read.shape)))
        self.decode["layers"] = layers
        self.float()  # whatever torch's default

    def _features_shape(self) -> tuple[int, ...]:
        """Return the shape of the features of one row: (hidden,), or (hidden, patches, patches)."""
        if not self.patch:
            return (self.hidden,)
        _, height, width = self.read.shape
        return (self.hidden, math.ceil(height / self.patch), math.ceil(width / self.patch))

    def _encoder(self) -> nn.Sequential:
        """Build the layers of an encoder, from the output of `Standardise` to features."""
        if self.patch:
            return _patch_encoder(self.read.shape, self.hidden, self.patch)
        return _flat_encoder(self.read.shape, self.hidden)

    def packed(self) -> dict[str, Any]:
        """Return the arguments of `unpacked`."""
        return {
            "shape": self.read.shape,
            "latent": self.latent,
            "hidden": self.hidden,
            "patch": self.patch,
            "weights": self.state_dict(),
        }

    @classmethod
    def unpacked(cls, fields: Mapping[str, Any]) -> ImputerNetwork:
        """Build the network that was packed."""
        weights = fields["weights"]
        read = Standardise(tuple(fields["shape"]), weights["read.mean"], weights["read.scale"])
        with torch.device("meta"):  # so that sizes claimed by a damaged file take no memory
            network = cls(read, fields["latent"], fields["hidden"], fields["patch"])
        network.load_state_dict(weights, assign=True)
        return network.eval().requires_grad_(False)

    def draw(
        self, rows: Rows, latent_noise: Float[Tensor, "draws latent"], noise: Float[Tensor, "draws *entries"]
    ) -> Float[Tensor, "rows draws *entries"]:
        """Draw whole rows given the present entries, in the data's units, from these random numbers."""
        context = self.context(self.read(rows))
        guessed = _latent(self.guess(context))
        latent = guessed.mean[:, None] + guessed.stddev[:, None] * latent_noise
        centre, spread = self._decoded(latent.flatten(0, 1), context.repeat_interleave(len(noise), 0))
        rows_and_draws = latent.shape[:2]
        drawn = centre.unflatten(0, rows_and_draws) + spread.unflatten(0, rows_and_draws) * noise
        return drawn * self.read.scale + self.read.mean

    def loss(
        self, rows: Rows, presence: Bool[Tensor, "rows *entries"], latent_noise: Float[Tensor, "rows latent"]
    ) -> Float[Tensor, " rows"]:
        """Return the negative evidence bound of the absent entries, divided by the number of entries in a row."""
        target = self.read.standardised(rows)
        context = self.context(self.read.code(torch.where(presence, target, 0.0), presence))
        guessed = _latent(self.guess(context))
        known = _latent(self.know(self.read.code(target, presence)))
        centre, spread = self._decoded(known.mean + known.stddev * latent_noise, context)
        likelihood = Normal(centre, spread, validate_args=False).log_prob(target)
        if self.training:
            # The likelihood of uncertain entries is flat: without a larger weight they would hardly be learned
            # [seitzer2022pitfalls].
            likelihood = likelihood * spread.detach()
        absent = torch.where(presence, 0.0, likelihood).flatten(1).sum(1)
        restraint = _RESTRAINT * (guessed.mean.square() / 2 + guessed.stddev - guessed.stddev.log()).sum(1)
        return (kl_divergence(known, guessed).sum(1) - absent + restraint) / math.prod(self.read.shape)

    def _decoded(self, latent: Tensor, features: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and standard deviation of each entry, standardised."""
        layers = self.decode["layers"]
        if self.patch:
            channels, height, width = self.read.shape
            padded = layers(features + self.decode["spread"](latent))
            numbers = padded[..., :height, :width].unflatten(1, (2, channels))
        else:
            numbers = layers(torch.cat([latent, features], dim=1)).view(-1, 2, *self.read.shape)
        centre, raw_spread = numbers.unbind(1)
        spread = _LEAST_DEVIATION + (_MOST_DEVIATION - _LEAST_DEVIATION) * raw_spread.sigmoid()
        return centre, spread


def _latent(output: Tensor) -> Normal:
    """Read an encoder's output as the distribution of the latent."""
    mean, log_deviation = output.chunk(2, dim=-1)
    deviation = log_deviation.clamp(_LEAST_LOG_DEVIATION, _MOST_LOG_DEVIATION).exp()
    return Normal(mean, deviation, validate_args=False)


@dataclass(frozen=True, eq=False)
class _Drawing:
    """A network with the random numbers that every sample and every coalition share."""

    network: ImputerNetwork
    latent_noise: Float[Tensor, "draws latent"]
    noise: Float[Tensor, "draws *entries"]
    least: Float[Tensor, " *scales"]
    most: Float[Tensor, " *scales"]

    def stand_ins(self, x: Tensor, presence: Tensor, draws: list[int]) -> Tensor:
        """Draw rows for each coalition of each sample, within the range of the data."""
        rows = torch.where(presence, x[:, None].float(), torch.nan).flatten(0, 1)
        numbers_per_row = len(draws) * (6 * self.network.features + 4 * x[0].numel())
        parts = []
        with torch.no_grad():
            for some_rows in rows.split(max(1, _NUMBERS_AT_A_TIME // numbers_per_row)):
                drawn = self.network.draw(some_rows, self.latent_noise[draws], self.noise[draws])
                parts.append(drawn.clamp_(self.least, self.most).to(x.dtype))
        return torch.cat(parts).unflatten(0, (len(x), presence.shape[1]))


@checked
@dataclass(frozen=True, eq=False)
class Imputer(Saved, kind="imputer", format=3):
    """A trained network that draws absent entries given the present ones, as returned by `train_imputer`.

    Every sample and every coalition uses the same random numbers. Draws stay within the range of the data.
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
        record = self.record
        return (
            f"Imputer of entries of shape {self.network.read.shape}, {self.draws} draws, seed {self.seed}\n"
            f"  {record}\n"
            f"  held-out  {record.held_out:,} rows: evidence bound {-record.loss:.4g} nats per entry "
            f"(at the start {-record.first_loss:.4g})"
        )

    def bind(self, x: Samples) -> Fill:
        """Draw the random numbers."""
        check_shape("imputer", self.network.read.shape, x, "Imputer")
        generator = seeded(self.seed)
        latent_noise = torch.randn(self.draws, self.network.latent, generator=generator, dtype=torch.float32)
        noise = torch.randn(self.draws, *x.shape[1:], generator=generator, dtype=torch.float32)
        network = self.network
        if network.read.mean.device != x.device:
            network = copy.deepcopy(network).to(x.device)
        drawing = _Drawing(
            network,
            latent_noise.to(x.device),
            noise.to(x.device),
            self.least.to(x.device, torch.float32),
            self.most.to(x.device, torch.float32),
        )
        return ConditionalFill(x, tuple(range(self.draws)), drawing.stand_ins)

    @staticmethod
    def from_old(tensors: dict[str, Tensor], header: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of a file in format 1 or 2."""
        weights = {name.removeprefix("network."): value for name, value in tensors.items() if "network." in name}
        return header | {"network": header | {"weights": weights}}


@checked
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
        The rows to learn from. A tenth of them is held out to decide when training stops.
    players : Players, optional
        The players of the games that will use the imputer. By default each entry is a player. Training masks
        coalitions whose sizes are uniform on 0 … n.
    draws : int, default 10
        The number of stand-ins for each coalition, over which a game averages.
    epochs : int, default 500
        The maximum number of passes over the rows. Training stops earlier if the held-out loss stops falling.
    seed : int, default 0
        The seed of the training and of the draws.
    progress : bool, default True
        Whether to show a progress bar on a terminal.

    Examples
    --------
    >>> same = torch.rand(2000, 1, generator=torch.Generator().manual_seed(0)).expand(-1, 2)
    >>> fill = train_imputer(same, epochs=20).bind(torch.tensor([[0.8, 0.8]]))
    >>> given, alone = fill(slice(None), torch.tensor([[[True, False], [False, False]]]))[0, :, :, 1]
    >>> bool(given.std() < alone.std()), bool((given.mean() - 0.8).abs() < 0.1)
    (True, True)
    """
    with torch.inference_mode(False):  # a caller may be in inference mode, in which nothing can be trained
        x = check_rows(data, least=2)
        check_number("draws", draws, 1)
        masked_rows = MaskedRows.draw(x, players, seed, "an imputer")
        x = x.float()
        network = _untrained(x, seed).to(x.device)

        def loss(batch: Tensor, presence: Tensor, generator: torch.Generator) -> Tensor:
            # Drawn on the CPU, so that a seed gives the same network on every device.
            latent_noise = torch.randn(len(batch), network.latent, generator=generator, dtype=torch.float32)
            return network.loss(x[batch], presence.to(x.device), latent_noise.to(x.device))

        # This also leaves the network with its best weights, in evaluation mode and without gradients.
        record = fit(network, loss, masked_rows, epochs=epochs, title="training an imputer", show=progress)
        least, most = least_and_most(x)
        return Imputer(network, least, most, draws, seed, record)


def _untrained(x: Rows, seed: int) -> ImputerNetwork:
    """Build a network of a size that suits the rows."""
    shape = tuple(x.shape[1:])
    mean, deviation = mean_and_deviation(x)
    read = Standardise(shape, mean, deviation)
    patch = 0
    if len(shape) == 3 and shape[1] * shape[2] > _MOST_FLAT_PIXELS:
        widths = _WIDTHS_OF_PATCHES
        patch = math.ceil(max(shape[1:]) / _PATCHES_PER_SIDE)
    elif math.prod(shape) <= _FEW_ENTRIES:
        widths = _WIDTHS_OF_FEW_ENTRIES
    else:
        widths = _WIDTHS_OF_MANY_ENTRIES
    with weights_drawn_from(seed):
        return ImputerNetwork(read, widths.latent, widths.hidden, patch)
