"""captum, shap and shapiq compute the same values of the same game, to the precision of each.

The peers mask with their own code, or with a line here that uses nothing of absentia but the players' labels.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pytest
import shapiq
import torch
from captum.attr import ShapleyValues
from sklearn.datasets import make_classification
from sklearn.ensemble import GradientBoostingClassifier
from torch import Tensor, nn

import absentia as ab
from absentia.coalitions import coalition_numbers
from peer_cases import CAPTUM_PRECISION, as_numpy, assert_same, normal

with warnings.catch_warnings():
    warnings.simplefilter("ignore", PendingDeprecationWarning)  # matplotlib's, for the colour maps that shap makes
    import shap
FEATURES = 6
CLASSES = 3
GROUPS = [0, 1, 0, 2, 3, 1]  # the player of each feature, where players are groups
IMAGE = (1, 8, 8)
NumpyFunction = Callable[[np.ndarray], np.ndarray]


def seeded(model: nn.Module, seed: int = 0) -> nn.Module:
    """Draw large weights, so that interactions of every order are far above rounding errors."""
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.double().parameters():
        nn.init.normal_(parameter, std=0.7, generator=generator)
    return model.eval()


def mlp(features: int = FEATURES) -> nn.Module:
    return seeded(nn.Sequential(nn.Linear(features, 16), nn.Tanh(), nn.Linear(16, 16), nn.GELU(), nn.Linear(16, 3)))


def cnn() -> nn.Module:
    convolutions = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 4, 2), nn.Tanh())
    return seeded(nn.Sequential(convolutions, nn.Flatten(), nn.Linear(16, CLASSES)))


def log_odds(logits: Tensor, y: int) -> Tensor:
    """Compute the log-odds from the probability."""
    return torch.logit(logits.softmax(1)[:, y])


def captum_values(
    forward: Callable[[Tensor], Tensor], x: Tensor, baseline: Tensor | float, labels: Tensor, players: int
) -> Tensor:
    """Return captum's value of each player; always-present entries are a group whose baseline is the input itself."""
    always = labels < 0
    mask = labels.masked_fill(always, players)
    baselines = torch.where(always, x, baseline)
    spread = ShapleyValues(forward).attribute(x, baselines, feature_mask=mask[None], perturbations_per_eval=8)
    first_entries = [int((labels.flatten() == player).nonzero()[0]) for player in range(players)]
    return spread.flatten(1)[:, first_entries]


def test_captum_on_features() -> None:
    model = mlp()
    x = normal(3, FEATURES, seed=1)
    baseline = normal(FEATURES, seed=2)
    game = ab.MaskedModel(model, x, absence=ab.Baseline(baseline), readout=ab.Logit([0, 2, 1]))
    theirs = ShapleyValues(model).attribute(x, baseline[None], target=torch.tensor([0, 2, 1]))
    assert_same(ab.shapley(game).values, theirs, CAPTUM_PRECISION)


@pytest.mark.parametrize("baseline", [0.5, normal(FEATURES, seed=2)])
def test_captum_on_groups(baseline: Tensor | float) -> None:
    model = mlp()
    x = normal(2, FEATURES, seed=1)
    groups = {str(player): [i for i, label in enumerate(GROUPS) if label == player] for player in range(4)}
    players = ab.Players.groups(groups, FEATURES)
    game = ab.MaskedModel(model, x, 1, players=players, absence=ab.Baseline(baseline))
    theirs = captum_values(lambda rows: log_odds(model(rows), 1), x, baseline, torch.tensor(GROUPS), players=4)
    assert_same(ab.shapley(game).values, theirs, CAPTUM_PRECISION)


@pytest.mark.parametrize(
    "players",
    [
        ab.Players.grid(IMAGE, cells=(2, 3)),
        ab.Players.grid(IMAGE, cells=(3, 3), only=[(1, 1), (0, 2), (2, 0), (1, 0), (2, 2)]),
    ],
    ids=["all cells", "some cells"],
)
def test_captum_on_cells_of_an_image(players: ab.Players) -> None:
    model = cnn()
    x = normal(2, *IMAGE, seed=3)
    baseline = normal(*IMAGE, seed=4)
    game = ab.MaskedModel(model, x, 2, players=players, absence=ab.Baseline(baseline))
    theirs = captum_values(lambda rows: log_odds(model(rows), 2), x, baseline, players.labels, len(players))
    assert_same(ab.shapley(game).values, theirs, CAPTUM_PRECISION)


def shap_values(forward: NumpyFunction, masker: object, x: np.ndarray) -> np.ndarray:
    values: np.ndarray = shap.ExactExplainer(forward, masker)(x, silent=True).values
    return values


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1, 7])
def test_shap_with_a_background(rows: int) -> None:
    model = mlp()
    x = normal(3, FEATURES, seed=1)
    background = normal(rows, FEATURES, seed=5)
    forward = as_numpy(lambda inputs: log_odds(model(inputs), 0))
    theirs = shap_values(forward, shap.maskers.Independent(background.numpy()), x.numpy())
    assert_same(ab.shapley(ab.MaskedModel(model, x, 0, absence=ab.Marginal(background))).values, theirs)
    if rows == 1:
        assert_same(ab.shapley(ab.MaskedModel(model, x, 0, absence=ab.Baseline(background[0]))).values, theirs)


@pytest.mark.slow
def test_shap_with_a_masker_of_our_own() -> None:
    model = mlp()
    x = normal(3, FEATURES, seed=1)
    baseline = normal(FEATURES, seed=2)
    game = ab.MaskedModel(model, x, absence=ab.Baseline(baseline), readout=ab.Output(1))
    forward = as_numpy(lambda inputs: model(inputs)[:, 1])
    theirs = shap_values(forward, lambda mask, row: np.where(mask, row, baseline.numpy())[None], x.numpy())
    assert_same(ab.shapley(game).values, theirs)


@pytest.mark.slow
def test_shap_on_the_log_odds_of_a_scikit_learn_classifier() -> None:
    data, y = make_classification(200, FEATURES, n_informative=5, n_redundant=0, n_classes=3, random_state=0)
    estimator = GradientBoostingClassifier(n_estimators=5, max_depth=5, random_state=0).fit(data, y)
    x = torch.from_numpy(data[:2])
    background = torch.from_numpy(data[100:105])

    def forward(rows: np.ndarray) -> np.ndarray:
        probability = estimator.predict_proba(rows)[:, 2]
        return np.log(probability / (1 - probability))

    model = ab.from_numpy(estimator.predict_proba, probabilities=True)
    theirs = shap_values(forward, shap.maskers.Independent(background.numpy()), x.numpy())
    assert_same(ab.shapley(ab.MaskedModel(model, x, 2, absence=ab.Marginal(background))).values, theirs)


class PeersGame(shapiq.Game):
    """One sample of a model as shapiq's Game."""

    def __init__(self, forward: Callable[[Tensor], Tensor], x: Tensor, baseline: Tensor, labels: Tensor) -> None:
        self.forward = forward
        self.x = x
        self.baseline = baseline
        self.labels = labels
        super().__init__(n_players=int(labels.max()) + 1, normalize=False)

    def value_function(self, coalitions: np.ndarray) -> np.ndarray:
        presence = torch.from_numpy(coalitions)[:, self.labels]
        values: np.ndarray = self.forward(torch.where(presence, self.x, self.baseline)).detach().numpy()
        return values


def in_counting_order(values: shapiq.InteractionValues) -> Tensor:
    """Sort shapiq's dictionary of sets into the order of our tables."""
    table = torch.full((2**values.n_players,), torch.nan, dtype=torch.float64)
    for members, value in values.dict_values.items():
        coalition = torch.zeros(values.n_players, dtype=torch.bool)
        coalition[list(members)] = True
        table[coalition_numbers(coalition)] = value
    return table


def shapiq_case(kind: str) -> tuple[nn.Module, Tensor, Tensor, ab.Players]:
    if kind == "mlp":
        return mlp(8), normal(2, 8, seed=1), normal(8, seed=2), ab.Players.features(8)
    return cnn(), normal(2, *IMAGE, seed=3), normal(*IMAGE, seed=4), ab.Players.grid(IMAGE, cells=(2, 4))


@pytest.mark.parametrize("batch_size", [None, 16])  # small batches are evaluated block by block, as large games are
@pytest.mark.parametrize("kind", ["mlp", "cnn"])
def test_shapiq(kind: str, batch_size: int | None) -> None:
    model, x, baseline, players = shapiq_case(kind)
    game = ab.MaskedModel(model, x, 0, players=players, absence=ab.Baseline(baseline), batch_size=batch_size)
    peers = [PeersGame(lambda rows: log_odds(model(rows), 0), row, baseline, players.labels) for row in x]
    exact = [shapiq.ExactComputer(peer) for peer in peers]
    effects = torch.stack([in_counting_order(computer("Moebius")) for computer in exact])
    torch.testing.assert_close(ab.harsanyi(game).effects, effects, rtol=1e-9, atol=1e-11)
    for index, ours in (("SV", ab.shapley), ("BV", ab.banzhaf)):
        theirs = np.stack([computer(index, order=1).get_n_order_values(1) for computer in exact])
        assert_same(ours(game).values, theirs)
