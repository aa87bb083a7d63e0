"""Games of many players with their true Shapley values, which benchmarks of sampling and of interactions share.

Models are real: the networks of the experiments, and others that are trained within a minute or two and kept in the
cache folder of the experiments. Data sets that are not part of scikit-learn come from the experiments too; where one
cannot be had, its games are left out.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import lightgbm
import numpy as np
import torch
from sklearn.datasets import load_breast_cancer
from torch import Tensor, nn

import absentia as ab
from audited_models import digit_cnn, digits, mlp, shuffled, standardised

sys.path.insert(0, str(Path(__file__).parents[1]))  # experiments stand beside benchmarks

from experiments.datasets import LOADERS
from experiments.downloads import cache_folder, written_whole
from experiments.networks import drawn_by
from experiments.trained_models import trained
from experiments.training import Recipe, fit

PROBES = 32  # coalitions whose values tell whether kept values are those of the same game
BLOCKS = 16  # parts of the drawn pairs, from which the error of a truth is estimated
ROWS_AT_ONCE = 2**14
TREE_COLUMNS = 60
SENTENCE = 40  # tokens


@dataclass(frozen=True)
class Truth:
    """Shapley values of each sample, and the size of their errors as a share of the values."""

    values: np.ndarray
    relative_error: float


@dataclass(frozen=True, eq=False)
class ManyPlayers:
    """A model on samples with some players absent, and how its true Shapley values are found.

    By "all coalitions", by the "leaves" of trees, or by a regression on as many "drawn pairs" as ``pairs`` says.
    """

    name: str
    description: str
    model: Any
    x: Tensor
    absence: ab.Baseline
    players: ab.Players
    y: Tensor | None = None
    truth_by: Literal["all coalitions", "leaves", "drawn pairs"] = "drawn pairs"
    pairs: int = 2**17
    trees: Any = None  # the ensemble itself, where the model hides it
    seeds: int = 3
    slow: bool = False  # whether its model takes most of the time

    @property
    def count(self) -> int:
        """The number of players."""
        return len(self.players)

    @property
    def samples(self) -> int:
        """The number of samples."""
        return len(self.x)

    def game(self, sample: int | None = None) -> ab.MaskedModel:
        """Return the game of one sample, or of all of them."""
        chosen = slice(None) if sample is None else slice(sample, sample + 1)
        classes = None if self.y is None else self.y[chosen]
        return ab.MaskedModel(self.model, self.x[chosen], classes, absence=self.absence, players=self.players)

    def truth(self) -> Truth:
        """Return the true Shapley values; those of drawn pairs are kept in the cache folder."""
        if self.truth_by == "all coalitions":
            return Truth(ab.shapley(self.game()).values.numpy(), 0.0)
        if self.truth_by == "leaves":
            game = ab.MaskedModel(self.trees, self.x, absence=self.absence)
            return Truth(ab.shapley(game).values.numpy(), 0.0)
        return self._kept_truth()

    def _kept_truth(self) -> Truth:
        """Return the values from the cache if they are those of this game, and compute them otherwise."""
        game = self.game()
        probes = torch.rand(PROBES, self.count, generator=torch.Generator().manual_seed(0)) < 0.5
        probed = game(probes).double()
        place = cache_folder() / "benchmarks" / f"truth-{self.name}-{self.pairs}.pt"
        if place.is_file():
            kept = torch.load(place, weights_only=True)
            if kept["probed"].shape == probed.shape and torch.allclose(kept["probed"], probed, rtol=1e-4, atol=1e-5):
                return Truth(kept["values"].numpy(), kept["relative_error"])
        print(f"{self.name}: computing the truth from {2 * self.pairs:,} coalitions", flush=True)
        values, errors = regression_on_pairs(game, self.pairs)
        relative_error = float((errors.norm(dim=1) / values.norm(dim=1)).mean())
        with written_whole(place) as unfinished:
            torch.save({"probed": probed, "values": values, "relative_error": relative_error}, unfinished)
        return Truth(values.numpy(), relative_error)


def regression_on_pairs(game: ab.Game, pairs: int) -> tuple[Tensor, Tensor]:
    """Return Shapley values and standard errors by least squares on coalitions drawn with their complements.

    A size k is drawn with a probability in proportion to 1 / (k (n − k)), and a coalition of that size uniformly.
    Then the Shapley values φ minimise the mean of (o(S) − Σᵢ (sᵢ − ½) φᵢ)² among those that add up to v(N) − v(∅),
    where o(S) is half the difference of the values of S and of its complement.
    """
    players = len(game.names)
    generator = torch.Generator().manual_seed(1)
    sizes = torch.arange(1, players)
    size_weights = 1 / (sizes * (players - sizes)).double()
    ends = game(torch.stack([torch.zeros(players), torch.ones(players)]).bool()).double()
    total = ends[:, 1:] - ends[:, :1]
    per_block = -(-pairs // BLOCKS)
    gram = torch.zeros(BLOCKS, players, players, dtype=torch.float64)
    products = torch.zeros(BLOCKS, players, game.samples, dtype=torch.float64)
    for block in range(BLOCKS):
        for start in range(0, per_block, ROWS_AT_ONCE):
            count = min(ROWS_AT_ONCE, per_block - start)
            drawn_sizes = sizes[torch.multinomial(size_weights, count, replacement=True, generator=generator)]
            places = torch.rand(count, players, generator=generator)
            last_present = places.sort(1).values.gather(1, drawn_sizes[:, None] - 1)
            coalitions = places <= last_present
            odd = (game(coalitions).double() - game(~coalitions).double()) / 2
            # Of the coalition itself: where two players draw the same number, it is larger than was asked for.
            shares = coalitions.double().mean(1)
            # An equal share for every player fulfils the constraint; what is left adds up to 0 over the players.
            left = odd - total * (shares - 0.5)
            rows = coalitions.double() - shares[:, None]
            gram[block] += rows.T @ rows
            products[block] += rows.T @ left.T
    # Rows add up to 0. Adding 1 in the direction that they leave out makes the sum invertible, and changes nothing.
    inverse = torch.linalg.inv(gram.sum(0) + torch.ones(players, players, dtype=torch.float64))
    deviations = inverse @ products.sum(0)
    influences = inverse @ (products - gram @ deviations)
    errors = (influences.square().sum(0) * BLOCKS / (BLOCKS - 1)).sqrt()
    return deviations.T + total / players, errors.T


def classified(name: str, samples: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return test samples of a data set with their classes, and the mean of the training samples."""
    data = LOADERS[name]()
    return data.x_test[:samples], data.y_test[:samples], data.x_train.mean(0)


def census(samples: int) -> ManyPlayers:
    x, y, mean = classified("census", samples)
    model = trained("census")
    players = ab.Players.features(LOADERS["census"]().feature_names)
    described = "census, MLP"
    return ManyPlayers("census", described, model, x, ab.Baseline(mean), players, y, truth_by="all coalitions")


def credit(samples: int) -> ManyPlayers:
    x, y, mean = classified("credit", samples)
    model = trained("credit")
    players = ab.Players.features(LOADERS["credit"]().feature_names)
    described = "credit, MLP"
    return ManyPlayers("credit", described, model, x, ab.Baseline(mean), players, y, truth_by="all coalitions")


def tumours(samples: int) -> ManyPlayers:
    data = load_breast_cancer()
    rows = shuffled(standardised(torch.tensor(data.data).float()), torch.tensor(data.target))
    model = mlp(rows)
    x, y = rows.held_out
    absence = ab.Baseline(rows.train[0].mean(0))
    players = ab.Players.features([str(name) for name in data.feature_names])
    return ManyPlayers(
        "tumours", "breast cancer, MLP", model, x[:samples], absence, players, y[:samples], pairs=2**19
    )


def trees(samples: int) -> ManyPlayers:
    """Fit a booster to columns that interact in pairs and triples, and hide its trees from the solvers."""
    random = np.random.default_rng(0)
    data = random.normal(size=(5000, TREE_COLUMNS))
    target = data[:, 0] * data[:, 1] + np.maximum(data[:, 2], data[:, 3]) + data[:, :30].sum(1) / 5
    target += data[:, 4] * data[:, 5] * data[:, 6]
    booster = lightgbm.LGBMRegressor(n_estimators=300, max_depth=6, n_jobs=1, verbose=-1, random_state=0)
    booster.fit(data, target)

    def predict(rows: np.ndarray) -> np.ndarray:
        return np.asarray(booster.booster_.predict(rows, num_threads=1))

    return ManyPlayers(
        "trees",
        "60 columns, LightGBM",
        ab.from_numpy(predict),
        torch.from_numpy(data[:samples]),
        ab.Baseline(torch.from_numpy(data.mean(0))),
        ab.Players.features([f"column {number}" for number in range(TREE_COLUMNS)]),
        truth_by="leaves",
        trees=booster,
    )


def lenet(samples: int) -> ManyPlayers:
    x, y, mean = classified("mnist", samples)
    players = ab.Players.grid((1, 28, 28), cells=(7, 7))
    return ManyPlayers("lenet", "MNIST, LeNet, cells", trained("mnist"), x, ab.Baseline(mean), players, y)


def digit_pixels(samples: int) -> ManyPlayers:
    rows = digits()
    model = digit_cnn(rows)
    x, y = rows.held_out
    absence = ab.Baseline(rows.train[0].mean(0))
    players = ab.Players.grid((1, 8, 8), cells=(8, 8))
    return ManyPlayers(
        "digits", "digits, CNN, pixels", model, x[:samples], absence, players, y[:samples], pairs=2**18
    )


def cifar10(samples: int) -> ManyPlayers:
    x, y, mean = classified("cifar10", min(samples, 1))
    players = ab.Players.grid((3, 32, 32), cells=(8, 8))
    absence = ab.Baseline(mean)
    model = trained("cifar10", network="resnet20")
    return ManyPlayers(
        "cifar10", "CIFAR-10, ResNet-20, cells", model, x, absence, players, y, pairs=2**16, seeds=2, slow=True
    )


def mnist_pixels(samples: int) -> ManyPlayers:
    x, y, mean = classified("mnist", min(samples, 1))
    players = ab.Players.grid((1, 28, 28), cells=(28, 28))
    absence = ab.Baseline(mean)
    return ManyPlayers(
        "pixels", "MNIST, LeNet, pixels", trained("mnist"), x, absence, players, y, pairs=2**19, seeds=2, slow=True
    )


class SmallTransformer(nn.Module):
    """Two layers of attention over words, some of which a mask replaces while it is trained."""

    def __init__(self, words: int, width: int = 32) -> None:
        super().__init__()
        self.mask = words  # the number of the token that stands for an absent word
        self.embedding = nn.Embedding(words + 1, width, padding_idx=0)
        self.places = nn.Parameter(torch.zeros(SENTENCE, width))
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.1, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, 2)

    def forward(self, tokens: Tensor) -> Tensor:
        """Classify sentences."""
        is_word = tokens != 0
        longest = max(1, int(is_word.sum(1).max()))
        tokens = tokens[:, :longest]
        is_word = is_word[:, :longest]
        if self.training:
            share = torch.rand(len(tokens), 1).square()  # most sentences lose few words
            tokens = torch.where(is_word & (torch.rand(tokens.shape) < share), self.mask, tokens)
        hidden = self.layers(self.embedding(tokens) + self.places[:longest], src_key_padding_mask=~is_word)
        mean = (hidden * is_word[..., None]).sum(1) / is_word.sum(1, keepdim=True)
        logits: Tensor = self.head(mean)
        return logits


def transformer(samples: int) -> ManyPlayers:
    """Train a transformer on film reviews, or load it from the cache."""
    data = LOADERS["sst2"]()
    with drawn_by(0):
        model = SmallTransformer(len(data.vocabulary))
    place = cache_folder() / "benchmarks" / f"transformer-{len(data.vocabulary)}.pt"
    if place.is_file():
        model.load_state_dict(torch.load(place, weights_only=True))
    else:
        print("transformer: training, about a minute", flush=True)
        recipe = Recipe("adamw", 1e-3, weight_decay=0.05, batch=128, epochs=2)
        fit(model, replace(data, x_train=data.x_train[:, :SENTENCE]), recipe, seed=0)
        with written_whole(place) as unfinished:
            torch.save(model.state_dict(), unfinished)
    full = (data.lengths_test >= SENTENCE).nonzero().flatten()[:samples]
    x = data.x_test[full, :SENTENCE]
    players = ab.Players.tokens(SENTENCE)
    return ManyPlayers(
        "transformer",
        "film reviews, transformer, words",
        model.eval(),
        x,
        ab.Baseline(model.mask),
        players,
        data.y_test[full],
        pairs=2**16,
    )


MAKERS: dict[str, Callable[[int], ManyPlayers]] = {
    "census": census,
    "credit": credit,
    "tumours": tumours,
    "trees": trees,
    "lenet": lenet,
    "digits": digit_pixels,
    "cifar10": cifar10,
    "transformer": transformer,
    "pixels": mnist_pixels,
}


def make(name: str, samples: int) -> ManyPlayers | None:
    """Return a game, or None after saying why it cannot be had."""
    try:
        return MAKERS[name](samples)
    except ab.AbsentiaError as error:
        print(f"{name}: left out, because {error}", flush=True)
        return None


class ValuesOfRows:
    """The values of one sample as a function of rows of 0 and 1, as peers want it; it counts what it is asked.

    The values of ∅ and N, which every method needs, count once each, however often they are asked for.
    """

    def __init__(self, game: ab.Game) -> None:
        self.game = game
        self.others = 0  # coalitions asked for other than ∅ and N

    @property
    def evaluations(self) -> int:
        """The coalitions that were evaluated."""
        return self.others + 2

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Return the value of each row."""
        present = np.atleast_2d(rows) > 0.5
        sizes = present.sum(1)
        self.others += int(((sizes > 0) & (sizes < present.shape[1])).sum())
        return self.game(torch.from_numpy(present))[0].double().numpy()
