"""Twelve trained models of different kinds, with held-out samples, for testing audits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from lightgbm import LGBMClassifier
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine, make_classification
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from xgboost import XGBClassifier

import absentia as ab

# The share of the rows used for training; the others are held out.
TRAINING_SHARE = 0.5
# Forests are small, because each audit evaluates many rows.
TREES = 30


@dataclass(frozen=True, eq=False)
class Rows:
    """Samples with their classes or values, split into training and held-out samples."""

    x: Tensor
    y: Tensor
    training: int

    @property
    def train(self) -> tuple[Tensor, Tensor]:
        """The samples that train."""
        return self.x[: self.training], self.y[: self.training]

    @property
    def held_out(self) -> tuple[Tensor, Tensor]:
        """The others."""
        return self.x[self.training :], self.y[self.training :]


@dataclass(frozen=True, eq=False)
class Audited:
    """A trained model, and what is needed to audit it."""

    name: str
    model: Any
    rows: Rows
    players: ab.Players | None = None
    is_classifier: bool = True

    def audit(self, chosen: Tensor, seed: int, evaluations: int | None) -> ab.Audit:
        """Audit the usual absences on some of the held-out samples."""
        x, y = self.rows.held_out
        classes = y[chosen] if self.is_classifier else None
        return ab.audit(
            self.model,
            x[chosen],
            classes,
            players=self.players,
            data=self.rows.train[0],
            evaluations=evaluations,
            seed=seed,
        )


def shuffled(x: Tensor, y: Tensor, share: float = TRAINING_SHARE) -> Rows:
    """Shuffle samples with a fixed seed, and split them."""
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))
    return Rows(x[order], y[order], int(share * len(x)))


def standardised(x: Tensor) -> Tensor:
    return (x - x.mean(0)) / x.std(0)


def wine() -> Rows:
    data = load_wine()
    return shuffled(standardised(torch.tensor(data.data).float()), torch.tensor(data.target))


def breast_cancer() -> Rows:
    """Return the breast cancer data with the ten mean measurements only, without errors and extremes."""
    data = load_breast_cancer()
    return shuffled(standardised(torch.tensor(data.data[:, :10]).float()), torch.tensor(data.target))


def made_up_table() -> Rows:
    x, y = make_classification(
        1200, n_features=8, n_informative=5, n_redundant=2, n_classes=3, class_sep=1.2, random_state=0
    )
    return shuffled(torch.tensor(x).float(), torch.tensor(y))


def digits() -> Rows:
    data = load_digits()
    images = torch.tensor(data.images).float()[:, None] / 16
    return shuffled(images, torch.tensor(data.target))


def diabetes() -> Rows:
    data = load_diabetes()
    return shuffled(standardised(torch.tensor(data.data).float()), torch.tensor(data.target).float())


def made_up_tokens() -> Rows:
    """Return sentences of eight tokens; the class is the most frequent of three words."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randint(6, (2400, 8), generator=generator)
    counts = torch.stack([(x == word).sum(1) for word in range(3)], dim=1)
    undecided = torch.rand(counts.shape, generator=generator)
    return shuffled(x, (counts + undecided).argmax(1))


def train(model: nn.Module, rows: Rows, rate: float, epochs: int, batch: int = 64) -> nn.Module:
    """Train a network with Adam and a little weight decay."""
    x, y = rows.train
    optimiser = torch.optim.AdamW(model.parameters(), rate, weight_decay=1e-2)
    for _ in range(epochs):
        for some in torch.randperm(len(x)).split(batch):
            optimiser.zero_grad()
            cross_entropy(model(x[some]), y[some]).backward()
            optimiser.step()
    return model.eval()


def mlp(rows: Rows) -> nn.Module:
    """Train a network with two hidden layers."""
    torch.manual_seed(0)
    classes = int(rows.y.max()) + 1
    layers = nn.Sequential(
        nn.Linear(rows.x.shape[1], 32),
        nn.ReLU(),
        nn.Linear(32, 32),
        nn.ReLU(),
        nn.Linear(32, classes),
    )
    return train(layers, rows, 5e-3, 40)


def digit_cnn(rows: Rows) -> nn.Module:
    """Train a small convolutional network on images of 8 × 8 pixels."""
    torch.manual_seed(0)
    layers = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(256, 10),
    )
    return train(layers, rows, 3e-3, 12)


class Transformer(nn.Module):
    """One layer of attention over embedded tokens."""

    def __init__(self, words: int, tokens: int, classes: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, 16)
        self.places = nn.Parameter(torch.zeros(tokens, 16))
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        self.head = nn.Linear(16, classes)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the logits of the classes."""
        hidden = self.layer(self.embedding(tokens) + self.places)
        logits: Tensor = self.head(hidden.mean(1))
        return logits


def token_transformer(rows: Rows) -> nn.Module:
    torch.manual_seed(0)
    return train(Transformer(6, 8, 3), rows, 5e-3, 15)


def fitted(estimator: Any, rows: Rows) -> Any:
    x, y = rows.train
    return estimator.fit(x.numpy(), y.numpy())


def lightgbm_on_cancer() -> Audited:
    rows = breast_cancer()
    booster = LGBMClassifier(n_estimators=40, verbose=-1, num_threads=1, random_state=0)
    return Audited("LightGBM, breast cancer", fitted(booster, rows), rows)


def xgboost_on_wine() -> Audited:
    rows = wine()
    booster = XGBClassifier(n_estimators=30, max_depth=3, n_jobs=1, random_state=0)
    return Audited("XGBoost, wine", fitted(booster, rows), rows)


def forest_on_cancer() -> Audited:
    rows = breast_cancer()
    forest = RandomForestClassifier(TREES, min_samples_leaf=3, random_state=0)
    return Audited("random forest, breast cancer", fitted(forest, rows), rows)


def extra_trees_on_wine() -> Audited:
    rows = wine()
    forest = ExtraTreesClassifier(TREES, min_samples_leaf=2, random_state=0)
    return Audited("extra trees, wine", fitted(forest, rows), rows)


def histogram_boosting_on_made_up() -> Audited:
    rows = made_up_table()
    booster = HistGradientBoostingClassifier(max_iter=30, random_state=0)
    return Audited("histogram boosting, made-up table", fitted(booster, rows), rows)


def logistic_on_cancer() -> Audited:
    rows = breast_cancer()
    return Audited("logistic regression, breast cancer", fitted(LogisticRegression(), rows), rows)


def mlp_on_wine() -> Audited:
    rows = wine()
    return Audited("MLP, wine", mlp(rows), rows)


def mlp_on_cancer() -> Audited:
    rows = breast_cancer()
    return Audited("MLP, breast cancer", mlp(rows), rows)


def mlp_on_made_up() -> Audited:
    rows = made_up_table()
    return Audited("MLP, made-up table", mlp(rows), rows)


def cnn_on_digits() -> Audited:
    rows = digits()
    return Audited("CNN, digits", digit_cnn(rows), rows, ab.Players.grid((1, 8, 8), (4, 4)))


def transformer_on_tokens() -> Audited:
    rows = made_up_tokens()
    return Audited("transformer, made-up tokens", token_transformer(rows), rows, ab.Players.tokens(8))


def forest_on_diabetes() -> Audited:
    rows = diabetes()
    forest = RandomForestRegressor(TREES, min_samples_leaf=3, random_state=0)
    return Audited("random forest, diabetes (regression)", fitted(forest, rows), rows, is_classifier=False)


MODELS: tuple[Callable[[], Audited], ...] = (
    lightgbm_on_cancer,
    xgboost_on_wine,
    forest_on_cancer,
    extra_trees_on_wine,
    histogram_boosting_on_made_up,
    logistic_on_cancer,
    mlp_on_wine,
    mlp_on_cancer,
    mlp_on_made_up,
    cnn_on_digits,
    transformer_on_tokens,
    forest_on_diabetes,
)
