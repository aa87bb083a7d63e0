import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from absentia import (
    AbsentiaError,
    ValueTable,
    banzhaf,
    context_map,
    marginal_benefits,
    order_marginals,
    order_shapley,
    shapley,
)
from absentia.coalitions import enumerate_coalitions
from known_games import marginal_benefits_by_order, shapley_by_permutations, shapley_by_subsets

games = st.builds(
    lambda players, seed: torch.randn(2, 2**players, generator=torch.Generator().manual_seed(seed)).double(),
    st.integers(1, 6),
    st.integers(0, 2**31),
)


def as_tensor(rows):
    return torch.tensor(rows, dtype=torch.float64)


@given(games)
def test_shapley_is_equation_1(values):
    found = shapley(ValueTable(values))
    assert torch.allclose(found.values, as_tensor([shapley_by_subsets(row) for row in values.tolist()]))
    assert (found.errors == 0).all()


@given(games)
def test_shapley_is_the_mean_over_all_orders_of_arrival(values):
    expected = as_tensor([shapley_by_permutations(row) for row in values.tolist()])
    assert torch.allclose(shapley(ValueTable(values)).values, expected)


@given(games)
def test_order_wise_values_are_their_definition(values):
    table = ValueTable(values)
    assert torch.allclose(
        order_shapley(table), as_tensor([marginal_benefits_by_order(row) for row in values.tolist()])
    )
    assert torch.allclose(
        order_marginals(table), as_tensor([marginal_benefits_by_order(row, abs) for row in values.tolist()])
    )


@given(games)
def test_shapley_is_the_mean_of_its_orders(values):
    table = ValueTable(values)
    assert torch.allclose(shapley(table).values, order_shapley(table).mean(1))


@given(games)
def test_banzhaf_is_the_mean_of_all_marginal_benefits(values):
    table = ValueTable(values)
    players = len(table.names)
    benefits = torch.stack([marginal_benefits(table, player) for player in range(players)], dim=-1)
    assert benefits.shape == (2, 2 ** (players - 1), players)
    assert torch.allclose(banzhaf(table).values, benefits.mean(1))


def test_marginal_benefits_are_in_the_counting_order_of_the_other_players():
    values = torch.arange(8.0).double() ** 2
    assert marginal_benefits(ValueTable(values), 1)[0].tolist() == [4.0 - 0, 9.0 - 1, 36.0 - 16, 49.0 - 25]


@given(games, st.floats(-3, 3), st.floats(-3, 3))
def test_axiom_of_linearity(values, first, second):
    other = values.flip(0).roll(1, 1)
    mixed = shapley(ValueTable(first * values + second * other)).values
    parts = first * shapley(ValueTable(values)).values + second * shapley(ValueTable(other)).values
    assert torch.allclose(mixed, parts, atol=1e-9)


@given(games, st.floats(-3, 3))
def test_axioms_of_dummy_and_nullity(values, alone):
    # A last player that adds the same amount to every coalition (0 for a null player).
    extended = torch.cat([values, values + alone], dim=1)
    found = shapley(ValueTable(extended)).values
    assert torch.allclose(found[:, -1], torch.full((2,), alone, dtype=torch.float64))
    assert torch.allclose(found[:, :-1], shapley(ValueTable(values)).values)


@given(games)
def test_axiom_of_symmetry(values):
    players = len(ValueTable(values).names)
    # Values that depend on the coalition's size alone treat all players alike.
    by_size = values[:, : players + 1] if values.shape[1] > players else values
    symmetric = by_size[:, enumerate_coalitions(players).sum(1) % by_size.shape[1]]
    found = shapley(ValueTable(symmetric)).values
    assert torch.allclose(found, found[:, :1].expand_as(found))


@given(games)
def test_axiom_of_efficiency(values):
    assert torch.allclose(shapley(ValueTable(values)).values.sum(1), values[:, -1] - values[:, 0])


def test_orders_can_be_picked():
    table = ValueTable(torch.randn(1, 32).double())
    assert torch.equal(order_shapley(table, orders=[3, 0]), order_shapley(table)[:, [3, 0]])
    assert order_shapley(table, orders=range(2)).shape == (1, 2, 5)


def test_gradients_pass_through_every_attribution():
    values = torch.randn(1, 16, dtype=torch.float64, requires_grad=True)
    for compute in (lambda v: order_shapley(ValueTable(v)), lambda v: order_marginals(ValueTable(v))):
        assert torch.autograd.gradcheck(compute, values)


@pytest.mark.parametrize(
    ("use", "sentence"),
    [
        (lambda table: order_shapley(table, orders=[3]), "orders must lie between 0 and 2. Got 3"),
        (lambda table: marginal_benefits(table, 3), "player must lie between 0 and 2. Got 3"),
    ],
)
def test_bad_input_gets_a_sentence(use, sentence):
    with pytest.raises(AbsentiaError, match=sentence):
        use(ValueTable(torch.zeros(8)))


def test_the_printed_form_ranks_players():
    lines = repr(shapley(ValueTable([0.0, 1.0, -5.0, -4.0], names=["a", "bb"]))).splitlines()
    assert lines[1].split() == ["bb", "−5"]
    assert lines[2].split() == ["a", "+1"]
    assert "means of |value|" in repr(shapley(ValueTable(torch.randn(3, 4))))


def patterns_game(players, *patterns):
    """A sum of products over sets of players; a negative number stands for the absence of a player."""

    def value(coalitions):
        total = torch.zeros(len(coalitions), dtype=torch.float64)
        for weight, members in patterns:
            parts = [coalitions[:, m] if m >= 0 else ~coalitions[:, ~m] for m in members]
            total += weight * torch.stack(parts).all(0)
        return total[None]

    class Patterns:
        samples, names = 1, tuple(f"p{i}" for i in range(players))

        def __call__(self, coalitions):
            return value(coalitions)

    return Patterns()


def test_the_context_map_finds_the_players_of_a_pattern_and_leaves_out_those_that_break_it():
    # Player 0 acts with 2 and 3, and only without 4 (which is ~4 = -5); 1 and 5 form a pattern of their own.
    game = patterns_game(6, (2.0, (0, 2, 3, ~4)), (1.0, (1, 5)))
    shares = context_map(game, 0, seed=3).values[0]
    assert shares[[2, 3]].tolist() == [1.0, 1.0]
    assert shares[[0, 4]].tolist() == [0.0, 0.0]
    pair = context_map(game, 5, seed=3).values[0]
    assert pair[1] == 1.0


def test_the_context_map_grows_to_a_pattern_that_no_drawn_context_holds():
    """Twelve players add a little each, and a share of their benefit is seen by every smaller context."""
    weights = [(1.0, (0, member)) for member in range(1, 13)]
    game = patterns_game(14, *weights)
    shares = context_map(game, 0, drawn=2, grown=3).values[0]
    assert shares[1:13].tolist() == [1.0] * 12


def test_without_a_player_the_context_map_takes_the_one_with_the_largest_benefit():
    game = patterns_game(5, (1.0, (0, 1)), (-3.0, (2, 4)))
    found = context_map(game)
    assert found.kind in ("shares of the contexts of p2", "shares of the contexts of p4")
    assert found.evaluations >= 5 * 100 * 2
    torch.testing.assert_close(found.values, context_map(game).values)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"player": 7}, "player must lie between 0 and 4"),
        ({"drawn": 0}, "drawn and grown must be at least 1"),
        ({"game": ValueTable([[0.0, 1.0], [0.0, 1.0]])}, "game must have one sample and two players or more"),
    ],
)
def test_the_context_map_refuses_wrong_uses(arguments, message):
    with pytest.raises(AbsentiaError, match=message):
        context_map(**{"game": patterns_game(5, (1.0, (0, 1)))} | arguments)
