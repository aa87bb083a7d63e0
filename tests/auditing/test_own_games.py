"""The companions of each absence's own game, and rank correlations."""

import math
import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

import absentia as ab
from absentia.auditing.estimates import estimate
from absentia.auditing.own_games import spearman
from audited_cases import METHODS, OwnModel, samples
from known_games import mlp, product
from seeded_draws import randn


def test_companions_are_those_of_each_absences_own_game():
    model = mlp(5)
    x = samples(4, 5)
    companions = ab.audit(model, x, None, METHODS, region=[0, 1]).companions
    strengths = estimate(companions.strengths)
    for number, absence in enumerate(METHODS.values()):
        game = ab.MaskedModel(model, x, absence=absence)
        effects = ab.harsanyi(game)
        table = ab.value_table(game)
        strength = effects.effects[:, 1:].abs().sum(1)
        assert float(strengths.value[number]) == pytest.approx(float(strength.mean()))
        assert float(strengths.error[number]) == pytest.approx(float(strength.std() / 2))
        assert torch.equal(companions.salient[number, :, 0], effects.salient()[:, 1:].sum(1).double())
        assert torch.equal(companions.terms[number, :, 0], effects.sparsity().double())
        assert torch.allclose(companions.shapley[number, :, 0], ab.shapley(table).values)
        assert torch.equal(companions.empty[number, :, 0], table.values[:, 0])
        by_order = effects.by_order().strength
        low = by_order[:, 1:3].sum() / by_order[:, 1:].sum()
        assert float(companions.low_orders.value[number]) == pytest.approx(float(low))
        profile = companions.order_profile().value[number]
        assert profile.tolist() == pytest.approx(profile_by_definition(by_order, table))


def profile_by_definition(by_order, table):
    """Return the mean strength of a set of each order, as a share of the gap between all players and none."""
    gap = (table.values[:, -1] - table.values[:, 0]).abs().mean()
    players = by_order.shape[1] - 1
    return [float(by_order[:, m].mean() / math.comb(players, m) / gap) for m in range(1, players + 1)]


def test_companions_of_a_random_absence_are_those_of_its_mean_game():
    model = mlp(4)
    x = samples(5, 4)
    rows = ab.Marginal(samples(12, 4, seed=1))
    companions = ab.audit(model, x, None, {"rows": rows}, draws=1).companions
    game = ab.MaskedModel(model, x, absence=rows)
    table = ab.value_table(game)
    by_order = ab.harsanyi(game).by_order().strength
    torch.testing.assert_close(companions.shapley[0].mean(1), ab.shapley(table).values)
    torch.testing.assert_close(companions.full[0].mean(1), table.values[:, -1])
    profile = companions.order_profile().value[0]
    assert profile.tolist() == pytest.approx(profile_by_definition(by_order, table), rel=1e-6)


def test_a_threshold_of_ones_own_counts_salient_effects():
    found = ab.audit(product(1.0, [0.0, 0.0]), samples(3, 2) + 1, None, {"zero": ab.Baseline(0.0)}, tau=0.5)
    assert found.companions.salient.flatten().tolist() == [1.0, 1.0, 1.0]
    assert found.record.threshold == "above 0.5"


def test_an_absence_that_brings_its_model_has_companions_but_no_r():
    methods = {"own model": OwnModel(), "half": ab.Baseline(0.5)}
    found = ab.audit(mlp(4), samples(5, 4), None, methods)
    assert torch.isnan(found.R.value).tolist() == [True, False]
    assert found.recommended == "half"
    assert re.fullmatch(
        r"own model explains another model: its score, [\d.]+, is a floor for the others\.", found.verdict[-1]
    )
    assert torch.allclose(found.curve.scores[0], found.curve.scores[1])
    assert torch.allclose(found.companions.shapley[0], found.companions.shapley[1])
    assert float(found.companions.agreement()[0, 1]) == pytest.approx(1)
    assert "own model" in repr(found)
    assert len(found.plot().axes) == 3


@given(st.lists(st.integers(-3, 3), min_size=3, max_size=9), st.data())
def test_rank_correlations_are_scipys_with_ties(first, data):
    second = data.draw(st.lists(st.integers(-3, 3), min_size=len(first), max_size=len(first)))
    correlation = float(spearman(torch.tensor([first, second]).double())[0, 1])
    is_constant = len(set(first)) == 1 or len(set(second)) == 1
    if is_constant:
        assert math.isnan(correlation)
    else:
        assert correlation == pytest.approx(spearmanr(first, second).statistic)


def test_rank_correlations_do_not_depend_on_the_players_order():
    values = randn(2, 7)
    order = torch.randperm(7)
    torch.testing.assert_close(spearman(values[:, order]), spearman(values))
