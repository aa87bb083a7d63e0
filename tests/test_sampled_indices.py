"""Sampled interaction indices: convergence, honest errors, sums, the strongest of many sets, and their record."""

import pytest
import torch

import absentia as ab
from absentia import AbsentiaError, Baseline, Marginal, MaskedModel, sampled_indices
from absentia.indices import INDICES, PlayerIndex
from absentia.interaction_indices import InteractionIndex
from absentia.sampled_indices import with_sum
from known_games import mlp

PLAYERS = 9
SAMPLES = 3 * torch.randn(2, PLAYERS, generator=torch.Generator().manual_seed(0)).double()
TABLE = ab.value_table(MaskedModel(mlp(PLAYERS, hidden=24), SAMPLES, absence=Baseline(0.1)))
NAMES = ["SII", "k-SII", "STII", "FSII", "BII", "FBII"]


def by_set(terms, numbers):
    """Numbers of terms by sample and set."""
    members = [tuple(row.nonzero().flatten().tolist()) for row in terms.sets]
    keys = list(zip(terms.owners.tolist(), members, strict=True))
    return dict(zip(keys, numbers.tolist(), strict=True))


def deviations(found, exact):
    """What sampled numbers miss, in the order of their sets."""
    expected = by_set(exact, exact.effects)
    return torch.tensor([value - expected[key] for key, value in by_set(found, found.effects).items()])


@pytest.mark.parametrize("name", NAMES)
def test_sampled_indices_come_near_the_exact_ones_with_honest_errors(name):
    exact = ab.index(TABLE, name)
    few = ab.index(TABLE, name, evaluations=80)
    many = ab.index(TABLE, name, evaluations=300)
    missed = deviations(many, exact)
    assert len(missed) == len(exact.effects)
    assert (many.basis, many.order, many.evaluations) == (name, 2, 600)
    assert missed.square().mean() < 0.6 * deviations(few, exact).square().mean()
    assert missed.square().mean() < 0.05 * exact.effects.var()
    assert (missed.abs() <= 2 * many.errors + 1e-9).double().mean() > 0.88
    assert many.errors.square().mean() < 9 * missed.square().mean()
    torch.testing.assert_close(many.base_values, exact.base_values)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_intervals_of_95_percent_contain_the_numbers_about_that_often(name):
    exact = ab.index(TABLE, name)
    covered = []
    for seed in range(25):
        found = ab.index(TABLE, name, evaluations=150, seed=seed)
        covered.append((deviations(found, exact).abs() <= 1.96 * found.errors + 1e-9).double().mean())
    assert 0.9 < float(torch.stack(covered).mean()) < 0.998


@pytest.mark.parametrize("name", ["k-SII", "STII", "FSII"])
@pytest.mark.parametrize("order", [1, 2, 3])
def test_efficient_indices_add_up(name, order):
    found = ab.index(TABLE, name, order=order, evaluations=100)
    for sample in range(2):
        own = found.only(sample)
        total = own.effects[own.orders > 0].sum()
        torch.testing.assert_close(total, TABLE.values[sample, -1] - TABLE.values[sample, 0])
        torch.testing.assert_close(own.effects[own.orders == 0], TABLE.values[sample, :1])
        assert (own.errors[own.orders == 0] == 0).all()


def test_order_1_of_the_sii_is_the_shapley_value():
    found = ab.index(TABLE, "SII", order=1, evaluations=100)
    shapley = ab.shapley(TABLE, evaluations=100, method="process")
    values = torch.stack([found.only(sample).effects[1:] for sample in range(2)])
    assert ((values - shapley.values).abs() <= 0.5 * shapley.errors + 1e-9).all()


def test_players_have_sampled_indices_too():
    banzhaf = ab.index(TABLE, "Banzhaf", evaluations=300)
    exact = ab.banzhaf(TABLE)
    assert (banzhaf.index, banzhaf.method, banzhaf.evaluations) == ("Banzhaf", "process", 600)
    assert ((banzhaf.values - exact.values).abs() <= 4 * banzhaf.errors).all()
    assert (banzhaf.values - exact.values).std() < 0.2 * exact.values.std()
    shapley = ab.index(TABLE, "Shapley", evaluations=300, seed=2)
    assert torch.equal(shapley.values, ab.shapley(TABLE, evaluations=300, seed=2).values)


def test_enough_evaluations_give_exact_indices():
    assert ab.index(TABLE, "FSII", evaluations=2**PLAYERS).errors is None
    assert (ab.index(TABLE, "Banzhaf", evaluations=2**PLAYERS).errors == 0).all()


def test_an_index_of_your_own_is_sampled_too(monkeypatch):
    monkeypatch.setitem(INDICES, "Co-Moebius", InteractionIndex(lambda subset_size, size, order: 1))
    found = ab.index(TABLE, "Co-Moebius", evaluations=300)
    missed = deviations(found, ab.index(TABLE, "Co-Moebius"))
    assert (missed.abs() <= 3 * found.errors + 1e-9).double().mean() > 0.9


def test_the_strongest_of_many_sets_are_listed(monkeypatch):
    every = ab.index(TABLE, "FSII", evaluations=100)
    monkeypatch.setattr(sampled_indices, "_MOST_LISTED", 16)
    few = ab.index(TABLE, "FSII", evaluations=100)
    assert "The strongest 16 sets of 46 are listed." in few.notes
    for sample in range(2):
        own = few.only(sample)
        assert (own.orders == 0).sum() == 1
        assert (own.orders == 1).sum() == PLAYERS
        pairs = every.only(sample)
        largest = pairs.effects[pairs.orders == 2].abs().sort(descending=True).values[:6]
        listed = own.effects[own.orders == 2].abs().sort(descending=True).values
        torch.testing.assert_close(listed, largest, atol=1e-5, rtol=1e-5)


def test_no_set_of_the_largest_size_may_be_among_the_strongest(monkeypatch):
    effects = torch.zeros(1, 2**PLAYERS, dtype=torch.float64)
    effects[0, [0b11, 0b1100]] = torch.tensor([5.0, -3.0]).double()
    pairs_only = ab.ValueTable(ab.zeta(effects))
    monkeypatch.setattr(sampled_indices, "_MOST_LISTED", 1 + PLAYERS + 2)
    few = ab.index(pairs_only, "BII", order=3, evaluations=64)
    assert few.orders.max() == 2
    assert len(few.effects) == 1 + PLAYERS + 2


def test_a_planted_pair_of_40_players_is_found():
    def model(rows):
        return 3 * rows[:, 0] * rows[:, 1] + rows[:, 2:].sum(1)

    game = MaskedModel(model, torch.ones(1, 40).double(), absence=0.0)
    found = ab.index(game, "k-SII", evaluations=400)
    pair = found.top(1)[0]
    assert pair.players == ("x0", "x1")
    assert abs(pair.effect - 3) <= max(3 * pair.error, 1e-3)


@pytest.mark.parametrize("seed", range(3))
def test_a_pair_beside_a_linear_part_is_found(seed):
    """In single precision the odd part is linear up to rounding, which gives its process no weights to start from."""
    game = MaskedModel(lambda rows: 5 * rows[:, 0] * rows[:, 1] + rows.mean(1), torch.ones(1, 30), absence=0.0)
    strongest = ab.index(game, "BII", evaluations=300, seed=seed).top(1)[0]
    assert strongest.players == ("x0", "x1")
    assert strongest.effect == pytest.approx(5, abs=0.05)


def test_errors_count_the_draws_of_a_random_absence():
    rows = torch.randn(40, PLAYERS, generator=torch.Generator().manual_seed(1)).double()
    game = MaskedModel(mlp(PLAYERS, hidden=24), SAMPLES[:1], absence=Marginal(rows, draws=20))
    found = ab.index(game, "FSII", evaluations=20 * 200)
    assert any("draws of the absence" in note for note in found.notes)
    nobody = found.orders == 0
    assert (found.errors[nobody] > 0).all()  # v(∅) is known up to the draws


def test_a_constant_game_has_no_interactions():
    game = MaskedModel(lambda rows: 0 * rows.sum(1) + 3, torch.ones(1, 30), absence=0.0)
    found = ab.index(game, "FSII", evaluations=150)
    torch.testing.assert_close(found.effects[found.orders == 0], torch.tensor([3.0]).double())
    assert (found.effects[found.orders > 0].abs() < 1e-6).all()


def test_what_is_known_of_a_sum_is_spread_by_variance():
    values = with_sum(torch.tensor([1.0, 1.0, 1.0]), 6.0, torch.tensor([0.0, 1.0, 2.0**0.5]))
    torch.testing.assert_close(values, torch.tensor([1.0, 2.0, 3.0]))
    torch.testing.assert_close(with_sum(torch.zeros(2), 1.0, torch.zeros(2)), torch.tensor([0.5, 0.5]))


def test_bad_budgets_orders_and_names_are_refused(monkeypatch):
    with pytest.raises(AbsentiaError, match="evaluations must be at least 64 for 9 players"):
        ab.index(TABLE, "SII", evaluations=20)
    with pytest.raises(AbsentiaError, match="game must be a game if evaluations are given"):
        ab.index(ab.harsanyi(TABLE), "SII", evaluations=100)
    monkeypatch.setattr(sampled_indices, "_MOST_COMPARED", 40)
    with pytest.raises(AbsentiaError, match="order must be so small that there are at most 40 sets"):
        ab.index(TABLE, "SII", evaluations=100)
    monkeypatch.setitem(INDICES, "own", PlayerIndex(INDICES["Banzhaf"].of_table))
    with pytest.raises(AbsentiaError, match="name must be that of an index that can be estimated"):
        ab.index(TABLE, "own", evaluations=100)


def test_memory_bounds_the_coalitions(monkeypatch):
    monkeypatch.setattr(sampled_indices, "_MOST_PAIRS", 50)
    found = ab.index(TABLE, "BII", order=1, evaluations=200)
    assert found.evaluations == 2 * 102
    assert any("too much memory" in note for note in found.notes)


def test_a_constant_game_has_no_interactions_but_its_value():
    game = ab.MaskedModel(lambda rows: 0 * rows.sum(1) + 3, torch.ones(1, 30), absence=0.0)
    index = ab.index(game, "SII", evaluations=150)
    assert (index.effects[index.sets.any(1)] == 0).all()
    torch.testing.assert_close(index.effects[~index.sets.any(1)], torch.tensor([3.0]).double())
