"""A learned conditional distribution as an absence: draws from a masked variational autoencoder."""

from __future__ import annotations

import copy
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor

from absentia.absence.checks import check_draws, check_floating, check_rows, check_shape
from absentia.absence.imputer_network import ImputerNetwork
from absentia.absence.networks import Standardise
from absentia.absence.protocols import Fill
from absentia.absence.scales import least_and_most, mean_and_deviation
from absentia.absence.towers import choose_patch
from absentia.absence.training import MaskedRows, TrainingRecord, fit
from absentia.arrays import Table
from absentia.errors import wrong
from absentia.inference import blocks
from absentia.players import Players
from absentia.saving import check_kind, read_tensors, write_tensors

FORMAT = 1
# Masked inputs are drawn for so many rows at once that the numbers of a layer take 16 MiB.
_NUMBERS_AT_A_TIME = 2**22
_FEW_ENTRIES = 32


@dataclass(frozen=True, eq=False)
class Imputer:
    """What a trained network draws for absent entries, given the present ones; `train_imputer` makes it.

    The same random numbers, by ``seed``, serve every sample and every coalition; draws stay within the data's range.
    ``dataclasses.replace(imputer, draws=50)`` draws more.

    >>> import absentia as ab
    >>> imputer = ab.train_imputer(torch.rand(100, 3, generator=torch.Generator().manual_seed(0)), epochs=2, draws=4)
    >>> imputer.bind(torch.rand(5, 3))(slice(0, 2), torch.tensor([[[True, False, True]]])).shape
    torch.Size([2, 1, 4, 3])
    """

    network: ImputerNetwork
    least: Float[Tensor, " *scales"]  # the data's range
    most: Float[Tensor, " *scales"]
    draws: int
    seed: int
    record: TrainingRecord

    def __post_init__(self) -> None:
        check_draws(self.draws)

    def __repr__(self) -> str:
        record = self.record
        return "\n".join(
            [
                f"Imputer of entries of shape {self.shape}, {self.draws} draws, seed {self.seed}",
                f"  {record}",
                f"  held-out  {record.held_out:,} rows: evidence bound {-record.loss:.4g} nats per entry "
                f"(at the start {-record.first_loss:.4g})",
            ]
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one sample."""
        return self.network.read.shape

    def bind(self, x: Shaped[Tensor, "samples *entries"]) -> Fill:
        """Draw the random numbers."""
        check_shape("imputer", self.shape, x)
        check_floating("Imputer", x, "Embed tokens first, or use NearestNeighbours or Marginal.")
        generator = torch.Generator().manual_seed(self.seed)
        latent_noise = torch.randn(self.draws, self.network.latent, generator=generator)
        noise = torch.randn(self.draws, *self.shape, generator=generator)
        network = self.network
        if network.read.mean.device != x.device:
            network = copy.deepcopy(network).to(x.device)
        tensors = (latent_noise, noise, self.least, self.most)
        return ImputerFill(x, network, *(tensor.to(x.device, torch.float32) for tensor in tensors))

    def save(self, path: str | Path) -> None:
        """Write everything to one file: safetensors with a JSON header, no pickle; all of it or nothing."""
        network = self.network
        header = {
            "kind": "imputer",
            "format": FORMAT,
            "shape": self.shape,
            "latent": network.latent,
            "hidden": network.hidden,
            "patch": network.patch,
            "draws": self.draws,
            "seed": self.seed,
            "record": asdict(self.record),
        }
        tensors = {f"network.{name}": value for name, value in network.state_dict().items()}
        tensors |= {"least": self.least, "most": self.most}
        write_tensors(Path(path), {name: value.contiguous() for name, value in tensors.items()}, header)

    @classmethod
    def load(cls, path: str | Path) -> Imputer:
        """Read what `save` wrote."""
        tensors, header = read_tensors(Path(path))
        check_kind(Path(path), header, "imputer", FORMAT)
        weights = {
            name.removeprefix("network."): tensor for name, tensor in tensors.items() if name.startswith("network.")
        }
        read = Standardise(tuple(header["shape"]), weights["read.mean"], weights["read.scale"])
        network = ImputerNetwork(read, header["latent"], header["hidden"], header["patch"])
        network.load_state_dict(weights)
        network.eval().requires_grad_(False)
        record = TrainingRecord(**header["record"])
        return cls(network, tensors["least"], tensors["most"], header["draws"], header["seed"], record)


@dataclass(frozen=True, eq=False)
class ImputerFill:
    """Samples whose absent entries a network draws, given the present ones."""

    x: Float[Tensor, "samples *entries"]
    network: ImputerNetwork
    latent_noise: Float[Tensor, "draws latent"]
    noise: Float[Tensor, "draws *entries"]
    least: Float[Tensor, " *scales"]
    most: Float[Tensor, " *scales"]

    @property
    def draws(self) -> int:
        """How many draws."""
        return len(self.noise)

    def __call__(
        self, samples: slice, presence: Bool[Tensor, "#samples coalitions *entries"]
    ) -> Shaped[Tensor, "samples coalitions draws *entries"]:
        """Draw for each coalition of each sample."""
        x = self.x[samples]
        rows = torch.where(presence, x[:, None].float(), torch.nan).flatten(0, 1)
        numbers_each = self.draws * (6 * self.network.features + 4 * x[0].numel())
        parts = []
        with torch.no_grad():
            for some in blocks(len(rows), max(1, _NUMBERS_AT_A_TIME // numbers_each)):
                drawn = self.network.draw(rows[some], self.latent_noise, self.noise)
                parts.append(drawn.clamp_(self.least, self.most).to(x.dtype))
        stand_ins = torch.cat(parts).unflatten(0, (len(x), presence.shape[1]))
        return torch.where(presence.unsqueeze(2), x[:, None, None], stand_ins)


def train_imputer(
    data: Table,
    *,
    players: Players | None = None,
    draws: int = 10,
    latent: int | None = None,
    epochs: int = 500,
    seed: int = 0,
    progress: bool = True,
) -> Imputer:
    """Train a masked variational autoencoder to draw absent entries of the data's rows from present ones.

    Coalitions of ``players`` (entries by default) are drawn with sizes uniform on 0 … n: name the players of the
    games to come, such as an image's cells. ``latent`` numbers (16, or 32 for images of more than 256 pixels, which
    are seen by convolutions) tell apart what may stand in. Training ends after ``epochs``, or when the evidence bound
    of held-out rows no longer rises. ``progress`` shows a bar on a terminal.

    >>> same = torch.rand(2000, 1, generator=torch.Generator().manual_seed(0)).expand(-1, 2)
    >>> fill = train_imputer(same, epochs=20).bind(torch.tensor([[0.8, 0.8]]))
    >>> given, alone = fill(slice(None), torch.tensor([[[True, False], [False, False]]]))[0, :, :, 1]
    >>> bool(given.std() < alone.std()), bool((given.mean() - 0.8).abs() < 0.1)
    (True, True)
    """
    x = check_rows(data, least=2)
    check_draws(draws)
    if players is not None and players.integer:
        check_floating("an imputer", x, "Embed tokens first, or use NearestNeighbours or Marginal.")
    if latent is not None and latent < 1:
        raise wrong("latent", "be at least 1", latent)
    rows, x = MaskedRows.draw(x, players, seed), x.float()
    network = _untrained(x, latent, seed).to(x.device)

    def loss(some: Tensor, presence: Tensor, generator: torch.Generator) -> Tensor:
        latent_noise = torch.randn(len(some), network.latent, generator=generator)
        return network.loss(x[some], presence.to(x.device), latent_noise.to(x.device))

    record = fit(network, loss, rows, epochs=epochs, title="training an imputer", show=progress)
    least, most = (end.float() for end in least_and_most(x))
    return Imputer(network, least, most, draws, seed, record)


def _untrained(x: Tensor, latent: int | None, seed: int) -> ImputerNetwork:
    """Choose the sizes of the layers by the shape of the rows, and draw their weights by the seed."""
    shape = tuple(x.shape[1:])
    patch = choose_patch(shape)
    hidden = 48 if patch else 128 if x[0].numel() <= _FEW_ENTRIES else 256
    read = Standardise(shape, *mean_and_deviation(x))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return ImputerNetwork(read, latent or (32 if patch else 16), hidden, patch)
