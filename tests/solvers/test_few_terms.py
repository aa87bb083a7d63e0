"""Few interactions from drawn coalitions: planted games, networks, honest fidelity and errors, bad input."""

import pytest
import torch

import absentia as ab
from absentia import AbsentiaError, Baseline, MaskedModel, ValueTable, interactions
from absentia.coalitions import draw_coalitions
from absentia.data import seeded
from absentia.solvers import few_terms as few_terms_module
from absentia.solvers.evaluated_pairs import evaluate_pairs
from absentia.solvers.few_terms import Split, few_terms
from absentia.term_search.features import Basis
from known_games import mlp


class Planted:
    """v(S) = Σ effects of the sets within S, for two samples that differ by a sign, with noise that S determines."""

    samples = 2

    def __init__(self, players, noise=0.0):
        generator = torch.Generator().manual_seed(players)
        self.names = tuple(f"x{player}" for player in range(players))
        self.sets = torch.zeros(8, players, dtype=torch.bool)
        for number in range(8):
            self.sets[number, torch.randperm(players, generator=generator)[: 1 + number % 4]] = True
        self.effects = torch.tensor([2.0, -1.5, 1.0, 3.0, -2.0, 1.0, -1.0, 2.5]).double()
        self.noise = noise
        self.hash = torch.randn(players, generator=generator).double()

    def __call__(self, coalitions):
        missing = (~coalitions).double() @ self.sets.double().T
        clean = (missing == 0).double() @ self.effects
        noise = self.noise * torch.sin(1e4 * (coalitions.double() @ self.hash))
        return torch.stack([clean + noise, noise - clean])


def as_sets(rows):
    return {tuple(row.nonzero().flatten().tolist()) for row in rows if row.any()}


def fresh_coalitions(players, count=3000):
    generator = torch.Generator().manual_seed(99)
    return draw_coalitions(players, torch.randint(0, players + 1, (count,), generator=generator), generator)


def r_squared(terms, game):
    coalitions = fresh_coalitions(len(game.names))
    values = game(coalitions).double()
    left = (terms.predict(coalitions) - values).square().mean(1)
    return 1 - left / values.var(1, correction=0)


@pytest.mark.parametrize("players", [26, pytest.param(64, marks=pytest.mark.slow)])
def test_planted_sets_are_found_exactly(players):
    game = Planted(players)
    terms = interactions(game, evaluations=20 * players)
    assert terms.basis == "Harsanyi"
    for sample, sign in ((0, 1.0), (1, -1.0)):
        own = terms.only(sample)
        assert as_sets(own.sets) == as_sets(game.sets)
        for row, effect in zip(game.sets, game.effects, strict=True):
            found = own.effects[(own.sets == row).all(1)]
            assert float(found) == pytest.approx(sign * float(effect), abs=1e-4)
    torch.testing.assert_close(terms.fidelity, torch.ones(2).double(), atol=1e-6, rtol=0)
    assert terms.evaluations <= 2 * 20 * players


@pytest.mark.slow
def test_noise_is_not_taken_for_interactions():
    game = Planted(30, noise=0.7)
    terms = interactions(game, evaluations=900)
    strongest = {interaction.players for interaction in terms.top(6)}
    assert strongest <= {tuple(game.names[player] for player in members) for members in as_sets(game.sets)}
    assert len(terms.only(0).effects) < 20
    errors = terms.errors[terms.owners == 0]
    assert (errors > 0).all()


@pytest.mark.slow
def test_fidelity_is_what_fresh_coalitions_show():
    within = []
    for seed in range(5):
        network = mlp(30, hidden=24)
        samples = 2 * torch.randn(2, 30, generator=torch.Generator().manual_seed(seed)).double()
        game = MaskedModel(network, samples, absence=Baseline(0.1))
        terms = interactions(game, evaluations=1000, seed=seed)
        apart = (terms.fidelity - r_squared(terms, game)).abs()
        within += (apart <= (2 * terms.fidelity_error).clamp_min(0.02)).tolist()
    assert sum(within) >= 9


@pytest.mark.slow
def test_terms_predict_a_network_better_than_single_players_do():
    game = MaskedModel(mlp(26, hidden=24), 3 * torch.ones(1, 26).double(), absence=Baseline(0.1))
    terms = interactions(game, evaluations=600)
    alone = interactions(game, evaluations=600, max_order=1)
    assert int(alone.orders.max()) == 1
    assert float(r_squared(terms, game)) > float(r_squared(alone, game))
    assert float(terms.fidelity) > 0.85


@pytest.mark.slow
def test_walsh_terms_are_kept_where_fewer_of_them_predict_as_well():
    class Agreements:  # between the players of ten pairs
        samples = 1
        names = tuple(f"x{player}" for player in range(30))

        def __call__(self, coalitions):
            signs = coalitions.double() * 2 - 1
            return (signs[:, :10] * signs[:, 10:20]).sum(1)[None]

    terms = interactions(Agreements(), evaluations=1200)
    assert terms.basis == "Walsh"
    assert as_sets(terms.sets[terms.effects.abs() > 1e-6]) == {(player, player + 10) for player in range(10)}
    torch.testing.assert_close(r_squared(terms, Agreements()), torch.ones(1).double(), atol=1e-6, rtol=0)


def test_walsh_terms_are_converted_where_that_gives_few_effects():
    class Pair:
        samples = 1
        names = tuple(f"x{player}" for player in range(30))

        def __call__(self, coalitions):
            signs = coalitions.double() * 2 - 1
            return (2 * signs[:, 0] * signs[:, 1] + signs[:, 0] + signs[:, 1])[None]

    terms = interactions(Pair(), evaluations=600)
    assert terms.basis == "Harsanyi"
    assert as_sets(terms.sets) == {(0,), (1,), (0, 1)}


def exact_walsh_terms(game):
    """The mean of the value times the product of the signs of each set, over all coalitions."""
    players = len(game.names)
    coalitions = torch.cartesian_prod(*[torch.tensor([False, True])] * players)
    values = game(coalitions)[0].double()
    odd = (coalitions.double() @ (~coalitions).double().T) % 2  # rows: sets; columns: absent players
    return dict(zip(map(tuple, coalitions.tolist()), ((1 - 2 * odd) @ values / len(values)).tolist(), strict=True))


def exact_effects(game):
    """The Harsanyi effect of each set, from the table of all values."""
    effects = ab.harsanyi(game)
    return dict(zip(map(tuple, effects.sets.tolist()), effects.effects[0].tolist(), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("players", [11, 12])
def test_errors_cover_the_effects_of_a_network_by_enumeration(players):
    network = mlp(players, hidden=24)
    game = MaskedModel(network, 3 * torch.ones(1, players).double(), absence=Baseline(0.1))
    truths = {"Walsh": exact_walsh_terms(game), "Harsanyi": exact_effects(game)}
    covered = []
    for seed in range(4):
        terms = interactions(game, evaluations=40 * players, seed=seed, solver="few")
        truth = truths[terms.basis]
        found = zip(terms.sets, terms.effects.tolist(), terms.errors.tolist(), strict=True)
        covered += [abs(effect - truth[tuple(row.tolist())]) <= 1.96 * error for row, effect, error in found]
    assert len(covered) > 100
    assert sum(covered) / len(covered) > 0.9


def test_held_out_coalitions_are_seen_by_no_fit():
    values = evaluate_pairs(Planted(30), 200, torch.Generator().manual_seed(0))
    split = Split.of(values, 0)
    assert sorted([*split.fitted.tolist(), *split.held_out.tolist()]) == list(range(200))
    sample = split.of_sample(1)
    fitted = {tuple(row.tolist()) for row in sample.coalitions}
    assert not fitted & {tuple(row.tolist()) for row in sample.held_out}
    assert float(sample.held_out_weights.sum()) == pytest.approx(1.0)


def test_exact_results_stay_exact_and_can_be_cut_at_an_order():
    table = ValueTable(torch.randn(3, 16, generator=torch.Generator().manual_seed(0)).double())
    assert interactions(table).is_exact
    pairs = interactions(table, max_order=2)
    assert pairs.highest_order == 2
    assert pairs.only(1).effects.tolist() == [
        float(effect) for effect, size in zip(ab.harsanyi(table).effects[1], pairs_of(16), strict=True) if size <= 2
    ]
    assert interactions(table, evaluations=16).is_exact


def pairs_of(count):
    return [number.bit_count() for number in range(count)]


def test_a_constant_game_has_one_term():
    terms = interactions(
        MaskedModel(lambda rows: 0 * rows.sum(1) + 3, torch.ones(1, 30), absence=0.0), evaluations=300
    )
    assert as_sets(terms.sets[terms.effects.abs() > 1e-6]) == set()
    assert float(terms.predict(torch.ones(1, 30).bool())) == pytest.approx(3.0)
    assert float(terms.fidelity) == 1.0


def test_wrong_budgets_and_values_are_refused():
    game = Planted(30)
    with pytest.raises(AbsentiaError, match="evaluations must be at least 122 for interactions of 30 players"):
        interactions(game, evaluations=100)
    with pytest.raises(AbsentiaError, match="max_order must"):
        interactions(game, max_order=0)

    class Broken(Planted):
        def __call__(self, coalitions):
            return super().__call__(coalitions) / (coalitions.sum(1) != 7)

    with pytest.raises(AbsentiaError, match="values of the game must be finite"):
        interactions(Broken(30), evaluations=400)


def test_the_default_budget_grows_with_the_players(monkeypatch):
    class AskedEnoughError(Exception):
        pass

    def refuse(game, pairs, generator, least):
        raise AskedEnoughError(pairs)

    monkeypatch.setattr(few_terms_module, "evaluate_pairs_or_keep", refuse)
    with pytest.raises(AskedEnoughError, match="2047"):
        few_terms(Planted(30))
    with pytest.raises(AskedEnoughError, match="2399"):
        few_terms(Planted(300))


@pytest.mark.slow
def test_the_same_seed_gives_the_same_terms():
    first, again, other = (interactions(Planted(30, noise=0.5), evaluations=200, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(first.effects, again.effects)
    assert not (len(first.effects) == len(other.effects) and torch.equal(first.effects, other.effects))
    assert {Basis.HARSANYI.value, Basis.WALSH.value} >= {first.basis}


class Formula:
    """One sample, whose value is a function of 0 and 1 for absent and present players."""

    samples = 1

    def __init__(self, players, formula):
        self.names = tuple(f"x{player}" for player in range(players))
        self.formula = formula

    def __call__(self, coalitions):
        return self.formula(coalitions.double())[None]


@pytest.mark.parametrize("players", [1, 2, 6])
def test_a_budget_for_all_coalitions_gives_the_exact_terms(players):
    game = Formula(players, lambda rows: rows[:, 0] * rows[:, -1])
    terms = interactions(game, evaluations=64, solver="few")
    assert terms.is_exact
    assert as_sets(terms.sets[terms.effects.flatten().abs() > 1e-9]) == {tuple(sorted({0, players - 1}))}
    alone = interactions(game, evaluations=64, solver="few", max_order=1, max_terms=1)
    assert len(alone.effects) == 2  # that of ∅ comes with it


def test_players_without_effect_and_duplicates_get_their_true_terms():
    game = Formula(30, lambda rows: torch.maximum(rows[:, 0], rows[:, 1]) + rows[:, 2])
    terms = interactions(game, evaluations=300)
    found = {term.players: term.effect for term in terms.top(10)}
    assert found == pytest.approx({("x0",): 1.0, ("x1",): 1.0, ("x0", "x1"): -1.0, ("x2",): 1.0}, abs=1e-6)
    everything = interactions(game, evaluations=300, max_order=30)
    assert as_sets(everything.sets) == {(0,), (1,), (0, 1), (2,)}


def test_a_share_of_no_variation_is_unknown():
    game = Formula(30, lambda rows: (rows.sum(1) == 30).double())  # no coalition but the whole has a value
    terms = interactions(game, evaluations=300)
    assert bool(terms.fidelity.isnan().all())
    assert "%" not in str(terms)


def test_a_refused_budget_counts_the_draws_of_the_absence():
    rows = torch.randn(50, 30, generator=torch.Generator().manual_seed(0))
    game = MaskedModel(lambda rows: rows.sum(1), torch.ones(1, 30), absence="marginal", data=rows)
    with pytest.raises(
        AbsentiaError, match="at least 6100 for interactions of 30 players and 50 draws of the absence"
    ):
        interactions(game, evaluations=300)


def test_at_most_so_many_terms_are_returned_as_are_asked_for():
    game = Planted(30, noise=0.3)
    with pytest.raises(AbsentiaError, match="max_terms must be at least 1"):
        interactions(game, max_terms=0)
    for count in (1, 4):
        terms = interactions(game, evaluations=400, max_terms=count)
        for sample in range(2):
            assert int(terms.only(sample).sets.any(1).sum()) <= count
        assert bool(terms.fidelity.isfinite().all())
    exact = interactions(ValueTable([2.0, -2.0, -1.0, 1.0]), max_terms=1)
    assert exact.effects.tolist() == [2.0, 6.0]


@pytest.mark.slow
def test_terms_asked_for_predict_better_than_the_strongest_of_more():
    game = MaskedModel(mlp(30, hidden=24), 2 * torch.ones(1, 30).double(), absence=Baseline(0.1))
    strongest = interactions(game, evaluations=900).keep(8)
    asked_for = interactions(game, evaluations=900, max_terms=8)
    assert float(r_squared(asked_for, game)) > float(r_squared(strongest, game))


@pytest.mark.slow
def test_terms_leave_little_of_what_the_process_explains():
    network = mlp(30, hidden=24)
    game = MaskedModel(network, 2 * torch.ones(1, 30).double(), absence=Baseline(0.1))
    terms = interactions(game, evaluations=1200)
    values = evaluate_pairs(game, 599, seeded(0))
    process = Split.of(values, 0).process_of(0, 0)
    coalitions = fresh_coalitions(30)
    truth = game(coalitions)[0].double()
    left = float((process.predict(coalitions) - truth).square().mean() / truth.var(correction=0))
    assert 1 - float(r_squared(terms, game)) < max(0.003, 2 * left)
