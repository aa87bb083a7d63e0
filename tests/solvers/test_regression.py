"""Sampled Shapley values against exact ones."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import absentia as ab
from absentia import AbsentiaError, Baseline, MaskedModel, ValueTable, shapley
from absentia.coalitions import coalition_numbers
from absentia.solvers.paired_draws import PairedValues, Stratum, draw_strata, share_out
from absentia.solvers.regression import leverage_shapley, pair_weights
from absentia.solvers.sampled_shapley import sample_shapley
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
        runs = [
            shapley(game, evaluations=evaluations, method="leverage", seed=seed).values - exact for seed in range(5)
        ]
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
    values = found.values
    errors = found.errors
    spent = found.evaluations
    assert torch.allclose(values, shapley(game).values, atol=1e-12)
    assert errors.max() < 1e-12
    assert spent == 2 * 2**12


@pytest.mark.slow
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
        samples = game.samples
        names = game.names

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


@pytest.mark.slow
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
        samples = 1
        names = tuple("abcdefgh")

        def __call__(self, coalitions):
            return torch.where(coalitions.sum(1) == 3, torch.nan, 1.0)[None].double()

    with pytest.raises(AbsentiaError, match=r"values of the game must be finite. Got nan for sample 0 with players"):
        shapley(Broken(), evaluations=60)


class Drawing:
    """A game at random of which a value takes several rows, such as one with drawn stand-ins."""

    samples, draws = 2, 3

    def __init__(self, players, scale=1.0):
        self.names = tuple(str(i) for i in range(players))
        self.known = scale * torch.randn(2, 2**players, generator=torch.Generator().manual_seed(0)).double()
        self.asked = 0

    def __call__(self, coalitions):
        self.asked += len(coalitions)
        return self.known[:, coalition_numbers(coalitions)]


def test_draws_of_the_absence_count_as_evaluations():
    game = Drawing(8)
    least = 3 * (4 * 8 + 2)
    found = shapley(game, evaluations=least)
    assert game.asked == 4 * 8 + 2
    assert found.evaluations == 2 * 3 * game.asked
    assert (found.kind, found.readout, found.names) == ("sampled Shapley values", "given", game.names)
    for few in (least - 1, 1):
        message = rf"^evaluations must be at least {least} for 8 players\. Got {few} instead\.$"
        with pytest.raises(AbsentiaError, match=message):
            shapley(game, evaluations=few)


def test_values_are_exact_as_soon_as_the_evaluations_suffice_for_all_coalitions():
    game = Drawing(6)
    assert shapley(game, evaluations=3 * 2**6).kind == "Shapley values"
    assert shapley(game, evaluations=3 * 2**6 - 1).kind == "sampled Shapley values"
    assert shapley(game, evaluations=3 * 2**6 - 1).errors.max() > 0


def test_the_values_of_nobody_and_of_all_come_with_the_estimate():
    game = Drawing(7)
    found = sample_shapley(game, 3 * 60, 0)
    assert torch.equal(found.empty, game.known[:, 0])
    assert torch.equal(found.full, game.known[:, -1])
    assert torch.allclose(found.attribution.values.sum(1), found.full - found.empty)


def test_a_sampled_game_tells_what_its_value_is():
    game = game_of(9, samples=1)
    assert shapley(game, evaluations=60).readout == str(game.readout_note)


def test_values_too_large_to_be_squared_are_refused():
    with pytest.raises(
        AbsentiaError, match=r"^values of the game must be small enough for sums over coalitions\. Got "
    ):
        shapley(Drawing(8, scale=1e200), evaluations=3 * 40)
    largest = f"{1e200 * float(Drawing(8).known.abs().max()):.3g}"
    with pytest.raises(AbsentiaError) as caught:
        shapley(Drawing(8, scale=1e200), evaluations=3 * 200)
    assert largest[-5:] in str(caught.value)  # the exponent


@given(st.lists(st.tuples(st.floats(0.01, 10), st.integers(1, 50)), min_size=1, max_size=8), st.integers(0, 150))
def test_a_number_is_shared_out_by_weights_up_to_the_most_that_each_takes(parts, count):
    weights, most = (torch.tensor(part).double() for part in zip(*parts, strict=True))
    shares = share_out(count, weights, most)
    assert (shares <= most).all()
    assert (shares >= 0).all()
    assert float(shares.sum()) == pytest.approx(min(count, float(most.sum())), abs=1e-6)
    ratios = (shares / weights)[shares < most - 1e-9]
    assert torch.allclose(ratios, ratios[:1].expand_as(ratios), rtol=1e-6)  # those that are not full
    if len(ratios):
        assert ((shares / weights)[shares >= most - 1e-9] <= ratios[0] * (1 + 1e-6)).all()


@pytest.mark.parametrize(("players", "pairs"), [(8, 20), (8, 60), (9, 30), (11, 80)])
def test_sizes_are_drawn_equally_often_but_for_the_middle_one_of_an_even_number(players, pairs):
    sizes = torch.arange(1, players // 2 + 1)
    totals = torch.tensor([math.comb(players, int(s)) // (2 if 2 * s == players else 1) for s in sizes]).double()
    shares = share_out(pairs, torch.where(2 * sizes == players, 0.5, 1.0).double(), totals)
    counts = torch.zeros(100, len(sizes)).double()
    for seed in range(100):
        for drawn, _ in draw_strata(players, pairs, torch.Generator().manual_seed(seed)):
            counts[seed, int(drawn[0].sum()) - 1] = len(drawn)
    assert (counts.sum(1) == pairs).all()
    assert (counts - shares).abs().max() < 1
    assert torch.allclose(counts.mean(0), shares, atol=0.2)  # 0.05 is the standard error of a fair coin


@pytest.mark.parametrize("pairs", [12, 40])
def test_pairs_of_a_size_are_drawn_equally_often(pairs):
    """Of 8 players there are 28 pairs of size 2, and 35 of size 4: drawn one by one, or from a list of all."""
    counts = torch.zeros(5, 2**8)
    for seed in range(250):
        for drawn, _ in draw_strata(8, pairs, torch.Generator().manual_seed(seed)):
            counts[int(drawn[0].sum())].index_add_(0, coalition_numbers(drawn), torch.ones(len(drawn)))
    for size, total, quantile in ((2, 28, 55.5), (3, 56, 93.2), (4, 35, 65.3)):  # the 0.999 quantiles
        found = counts[size] + (
            counts[size].flip(0) if size == 4 else 0
        )  # a set of half the players, or its complement
        found = found[: 2**7][found[: 2**7] > 0] if size == 4 else found[found > 0]
        assert len(found) == total
        expected = found.sum() / total
        assert float(((found - expected) ** 2 / expected).sum()) < quantile


def test_no_set_of_half_the_players_is_drawn_with_its_complement():
    for seed in range(60):
        drawn, _ = draw_strata(8, 25, torch.Generator().manual_seed(seed))[-1]
        assert (drawn.sum(1) == 4).all()
        assert len(torch.unique(torch.cat([drawn, ~drawn]), dim=0)) == 2 * len(drawn)


def solve_regression(rows, values, weights):
    """Solve the regression with the efficiency as a constraint, by its normal equations."""
    players = rows.shape[1]
    design = rows.double()
    target = values - values[rows.sum(1) == 0]
    system = torch.zeros(players + 1, players + 1).double()
    system[:players, :players] = design.T @ (weights[:, None] * design)
    system[players, :players] = system[:players, players] = 1
    right = torch.cat([design.T @ (weights * target), target[rows.all(1)]])
    return torch.linalg.solve(system, right)[:players]


def rows_and_values(found):
    """Return ∅, all players, the drawn coalitions and their complements, with their values."""
    drawn = found.drawn
    players = drawn.coalitions.shape[1]
    ends = torch.stack([torch.zeros(players), torch.ones(players)]).bool()
    rows = torch.cat([ends, drawn.coalitions, ~drawn.coalitions])
    end_values = torch.stack([drawn.empty[0], drawn.full[0]])
    return rows, torch.cat([end_values, drawn.drawn[0], drawn.complements[0]])


def test_the_estimate_is_the_weighted_regression_over_the_drawn_pairs():
    players, pairs = 7, 30
    found = shapley(game_of(players, samples=1), evaluations=2 * pairs + 2, method="leverage")
    rows, values = rows_and_values(found)
    assert len(rows) == 2 + 2 * pairs
    sizes = rows.sum(1)
    # The kernel of a size times the number of its coalitions is 1 / s(n − s), which those that were drawn share.
    weights = torch.zeros(len(rows)).double()
    for size in range(1, players):
        weights[sizes == size] = 1 / (size * (players - size)) / max(1, int((sizes == size).sum()))
    assert torch.allclose(found.values[0], solve_regression(rows, values, weights), atol=1e-9)


def test_an_error_is_that_of_a_jackknife_over_the_pairs():
    """With θ₁ … θₘ estimated without one pair each, the squared error is Σ (1 − drawn share) (θᵢ − θ)²."""
    found = shapley(game_of(9, samples=1), evaluations=122, method="leverage", seed=4)
    rows, values = rows_and_values(found)
    weights, undrawn = pair_weights(found.drawn.strata)

    def estimate(weights):
        return solve_regression(rows, values, torch.cat([torch.zeros(2).double(), weights, weights]))

    whole = estimate(weights)
    squares = torch.zeros(9).double()
    for pair in range(60):
        others = weights.clone()
        others[pair] = 0
        squares += undrawn[pair] * (estimate(others) - whole).square()
    torch.testing.assert_close(found.values[0], whole)
    torch.testing.assert_close(found.errors[0], squares.sqrt())


def test_pairs_of_a_size_share_its_weight():
    strata = draw_strata(9, 60, torch.Generator().manual_seed(0))
    weights, undrawn = pair_weights(strata)
    sizes = torch.cat([drawn for drawn, _ in strata]).sum(1)
    for drawn, total in strata:
        size = int(drawn[0].sum())
        of_size = weights[sizes == size]
        torch.testing.assert_close(float(of_size.sum()), total / math.comb(9, size) / (size * (9 - size)))
        torch.testing.assert_close(of_size, of_size[:1].expand(len(drawn)))
        assert (undrawn[sizes == size] == 1 - len(drawn) / total).all()


def test_values_that_one_pair_alone_determines_have_large_errors():
    strata = (Stratum(torch.eye(6)[:1].bool(), 6),)
    ends = torch.tensor([[[0.0, 6.0]]]).double()
    values = torch.tensor([[[2.0]]]).double()
    found = leverage_shapley(PairedValues(strata, torch.ones(1).double(), ends, values, -values))
    assert found.values.isfinite().all()
    torch.testing.assert_close(found.values.sum(), torch.tensor(6.0).double())
    assert found.errors.isfinite().all()
    assert float(found.errors.max()) > 1.0


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.25, 0.5, 1.0])
def test_errors_are_right_where_most_coalitions_are_drawn(share):
    evaluations = int(share * 2**9) - 2
    actual = []
    stated = []
    for number in range(8):
        game = ValueTable(torch.randn(2**9, generator=torch.Generator().manual_seed(number)))
        right = shapley(game).values
        for seed in range(10):
            found = shapley(game, evaluations=evaluations, seed=seed)
            actual.append((found.values - right).square())
            stated.append(found.errors.square())
    ratio = (torch.stack(stated).mean() / torch.stack(actual).mean()).sqrt()
    assert 0.8 < ratio < 1.25


@pytest.mark.parametrize("value", [1.5e307, float("nan")])
def test_sampled_values_that_are_not_finite_are_refused(value):
    class Large:
        samples = 1
        names = tuple("abcdefghijkl")

        def __call__(self, coalitions):
            return value * (coalitions.double() - 0.5).sum(1)[None]

    with pytest.raises(
        AbsentiaError, match=r"values of the game must be (small enough for sums over coalitions|finite)"
    ):
        ab.shapley(Large(), evaluations=100)
    if value != value:
        with pytest.raises(AbsentiaError, match="values of the game must be finite"):
            ab.context_map(Large())
