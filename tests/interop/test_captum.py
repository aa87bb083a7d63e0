"""captum with our absences and players computes our values."""

from __future__ import annotations

import pytest
import torch
from captum.attr import FeatureAblation, IntegratedGradients, KernelShap, ShapleyValues
from torch import Tensor

import absentia as ab
from absentia import interop
from peer_cases import CAPTUM_PRECISION, CASES, BringsOwn, Dependent, absences, assert_same, network, normal


@pytest.mark.parametrize("kind", ["baseline", "own"])
def test_captum_explains_with_our_baselines(players: ab.Players, kind: str) -> None:
    model = network(players.shape)
    x = normal(2, *players.shape, seed=1)
    absence = absences(x)[kind]
    ours = ab.shapley(ab.MaskedModel(model, x, players=players, absence=absence)).values
    baselines = interop.captum_baselines(absence, x, players)
    mask = interop.captum_feature_mask(players)
    theirs = ShapleyValues(model).attribute(x, baselines=baselines, feature_mask=mask)
    assert_same(ours, interop.from_captum(theirs, players).double(), CAPTUM_PRECISION)


def test_captum_ablates_players_with_our_baselines(players: ab.Players) -> None:
    model = network(players.shape)
    x = normal(2, *players.shape, seed=1)
    absence = absences(x)["baseline"]
    game = ab.MaskedModel(model, x, players=players, absence=absence)
    everyone = torch.ones(1, len(players), dtype=torch.bool)
    ours = game(everyone) - game(~torch.eye(len(players), dtype=torch.bool))
    baselines = interop.captum_baselines(absence, x, players)
    mask = interop.captum_feature_mask(players)
    theirs = FeatureAblation(model).attribute(x, baselines=baselines, feature_mask=mask)
    assert_same(ours, interop.from_captum(theirs, players).double(), CAPTUM_PRECISION)


def test_captum_fits_kernel_values_and_integrates_gradients_with_our_baselines() -> None:
    players = CASES["groups and always present"]
    x = normal(1, 5, seed=1)
    weights = normal(5, seed=5)

    def linear(rows: Tensor) -> Tensor:
        return rows @ weights

    absence = ab.Baseline(normal(5, seed=2))
    ours = ab.shapley(ab.MaskedModel(linear, x, players=players, absence=absence)).values
    baselines = interop.captum_baselines(absence, x, players)
    mask = interop.captum_feature_mask(players)
    fitted = KernelShap(linear).attribute(x, baselines=baselines, feature_mask=mask, n_samples=60)
    assert_same(ours, interop.from_captum(fitted, players).double(), 1e-3)
    gradients = IntegratedGradients(linear).attribute(x, baselines=baselines)
    assert_same(ours, interop.from_captum(gradients, players, by_entry=True), 1e-9)


def test_captum_is_refused_what_it_cannot_do() -> None:
    x = normal(2, 3, seed=1)
    for absence in (ab.Marginal(normal(5, 3, seed=2)), Dependent(), BringsOwn()):
        name = type(absence).__name__
        with pytest.raises(ab.AbsentiaError, match=rf"one fixed stand-in .* Got {name}.* Use MaskedModel"):
            interop.captum_baselines(absence, x)
    with pytest.raises(ab.AbsentiaError, match="players' shape"):
        interop.captum_baselines(ab.Baseline(0.0), x, ab.Players.features(4))
    with pytest.raises(ab.AbsentiaError, match=r"inputs' shape, \(samples, 4\)"):
        interop.from_captum(x, ab.Players.features(4))


def test_captum_gets_values_of_its_own() -> None:
    absence = ab.Baseline(torch.zeros(3).double())
    interop.captum_baselines(absence, normal(2, 3, seed=1)).add_(1.0)
    assert not absence.values.any()


def test_captum_takes_a_number_as_an_absence() -> None:
    x = normal(2, 3, seed=1)
    assert torch.equal(interop.captum_baselines(0.5, x), interop.captum_baselines(ab.Baseline(0.5), x))
