import math

import pytest
import torch

from absentia import AbsentiaError, Baseline, MaskedModel, shapley
from absentia.attributions import draw_strata, sample_shapley
from absentia.coalitions import coalition_numbers
from known_games import mlp


class Quadratic:
    """v(S) = Σ a_i + Σ c_ij over pairs, for any number of players: φ_i = a_i + Σ_j c_ij / 2."""

    samples = 2

    def __init__(self, players):
        generator = torch.Generator().manual_seed(0)
        self.names = tuple(str(i) for i in range(players))
        self.alone = torch.randn(2, players, generator=generator).double()
        pairs = torch.randn(2, players, players, generator=generator).double()
        self.pairs = (pairs + pairs.transpose(1, 2)).tril(-1) / 5
        self.pairs = self.pairs + self.pairs.transpose(1, 2)

    def __call__(self, coalitions):
        rows = coalitions.double()
        return self.alone @ rows.T + torch.einsum("sij,ci,cj->sc", self.pairs, rows, rows) / 2

    def shapley(self):
        return self.alone + self.pairs.sum(2) / 2


def game_of(players, samples=2):
    return MaskedModel(mlp(players, hidden=24), torch.randn(samples, players).double(), absence=Baseline(0.1))


def test_the_estimate_converges_to_the_exact_values():
    game = game_of(12)
    exact = shapley(game).values
    mean_errors = []
    for evaluations in (60, 240, 960, 3000):
        runs = [shapley(game, evaluations=evaluations, seed=seed).values - exact for seed in range(5)]
        mean_errors.append(torch.stack(runs).square().mean().sqrt().item())
    assert mean_errors[0] > mean_errors[1] > mean_errors[2] > mean_errors[3]
    assert mean_errors[3] < 0.12 * mean_errors[0]


def test_a_game_of_pairs_is_found_at_any_size():
    game = Quadratic(40)
    found = shapley(game, evaluations=400)
    # The odd part of such a game is linear, so that the regression has no error at all.
    assert torch.allclose(found.values, game.shapley(), atol=1e-9)


def test_efficiency_holds_exactly():
    game = game_of(15)
    found = shapley(game, evaluations=200).values.sum(1)
    ends = game(torch.stack([torch.zeros(15), torch.ones(15)]).bool())
    assert torch.allclose(found, ends[:, 1] - ends[:, 0])


def test_the_budget_of_all_coalitions_gives_the_exact_result():
    game = game_of(6)
    found = shapley(game, evaluations=64)
    assert (found.errors == 0).all()
    assert torch.allclose(found.values, shapley(game).values)


def test_all_pairs_together_give_the_exact_values():
    game = game_of(12)
    found = sample_shapley(game, evaluations=2**12, seed=0)[0]
    values, errors, spent = found.values, found.errors, found.evaluations
    assert torch.allclose(values, shapley(game).values, atol=1e-12)
    assert errors.max() < 1e-12
    assert spent == 2 * 2**12


def test_errors_are_about_as_large_as_they_say():
    game = game_of(14, samples=1)
    exact = shapley(game).values
    runs = [shapley(game, evaluations=300, seed=seed) for seed in range(40)]
    actual = torch.stack([run.values - exact for run in runs]).square().mean().sqrt()
    stated = torch.stack([run.errors for run in runs]).square().mean().sqrt()
    assert 0.7 < (stated / actual).item() < 1.6


def test_no_more_evaluations_are_spent_than_allowed_and_they_are_counted():
    game = game_of(13)
    calls = 0

    class Counted:
        samples, names = game.samples, game.names

        def __call__(self, coalitions):
            nonlocal calls
            calls += len(coalitions)
            return game(coalitions)

    found = shapley(Counted(), evaluations=501)
    assert calls <= 501
    assert found.evaluations == calls * 2


def test_the_same_seed_gives_the_same_and_another_another():
    game = game_of(12)
    first, again, other = (shapley(game, evaluations=300, seed=seed).values for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_more_players_than_numbers_of_coalitions_fit_into_a_float_are_sampled():
    x = torch.rand(1, 1100, generator=torch.Generator().manual_seed(0)).double()
    game = MaskedModel(lambda rows: rows.sum(1), x, absence=0.0)
    assert shapley(game, evaluations=4 * 1100 + 2).values[0].tolist() == pytest.approx(x[0].tolist())


@pytest.mark.parametrize("players", [7, 8, 20, 70])
@pytest.mark.parametrize("pairs", [40, 63, 200])
def test_strata_hold_distinct_pairs_of_every_size(players, pairs):
    strata = draw_strata(players, pairs, torch.Generator().manual_seed(0))
    possible = 2 ** (players - 1) - 1
    assert sum(len(drawn) for drawn, _ in strata) == min(pairs, possible)
    for drawn, total in strata:
        size = int(drawn[0].sum())
        assert (drawn.sum(1) == size).all()
        assert len(torch.unique(drawn, dim=0)) == len(drawn)
        assert total == math.comb(players, size) // (2 if 2 * size == players else 1)
        if 2 * size == players:
            both = torch.cat([drawn, ~drawn])
            assert len(torch.unique(both, dim=0)) == len(both)
    if players < 60 and pairs >= possible:
        assert len(torch.unique(coalition_numbers(torch.cat([drawn for drawn, _ in strata])))) == possible


def test_too_few_evaluations_are_refused():
    with pytest.raises(AbsentiaError, match=r"evaluations must be at least 50 for 12 players\. Got 20"):
        shapley(game_of(12), evaluations=20)


def test_the_printed_form_shows_errors():
    assert "±" in repr(shapley(game_of(9, samples=1), evaluations=100))


def test_values_of_a_game_that_are_not_finite_are_refused():
    class Broken:
        samples, names = 1, tuple("abcdefgh")

        def __call__(self, coalitions):
            return torch.where(coalitions.sum(1) == 3, torch.nan, 1.0)[None].double()

    with pytest.raises(AbsentiaError, match=r"values of the game must be finite. Got nan for sample 0 with players"):
        shapley(Broken(), evaluations=60)
