"""Indices against their definitions and axioms."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import absentia as ab
from absentia import AbsentiaError, ValueTable, banzhaf, marginal_benefits, order_marginals, order_shapley, shapley
from absentia.coalitions import enumerate_coalitions, sums_by_size_and_player
from absentia.indices import order_marginals_of, order_shapley_of
from known_games import marginal_benefits_by_order, shapley_by_permutations, shapley_by_subsets
from seeded_draws import randn

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
        order_shapley(table).values, as_tensor([marginal_benefits_by_order(row) for row in values.tolist()])
    )
    assert torch.allclose(
        order_marginals(table).values, as_tensor([marginal_benefits_by_order(row, abs) for row in values.tolist()])
    )


@given(games)
def test_shapley_is_the_mean_of_its_orders(values):
    table = ValueTable(values)
    assert torch.allclose(shapley(table).values, order_shapley(table).mean().values)


@given(games)
def test_banzhaf_is_the_mean_of_all_marginal_benefits(values):
    table = ValueTable(values)
    players = len(table.names)
    benefits = torch.stack([marginal_benefits(table, player).values for player in range(players)], dim=-1)
    assert benefits.shape == (2, 2 ** (players - 1), players)
    assert torch.allclose(banzhaf(table).values, benefits.mean(1))


def test_marginal_benefits_are_in_the_counting_order_of_the_other_players():
    values = torch.arange(8.0).double() ** 2
    assert marginal_benefits(ValueTable(values), 1).values[0].tolist() == [4.0 - 0, 9.0 - 1, 36.0 - 16, 49.0 - 25]


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
    assert torch.equal(order_shapley(table, orders=[3, 0]).values, order_shapley(table).values[:, [3, 0]])
    assert order_shapley(table, orders=range(2)).values.shape == (1, 2, 5)


def test_gradients_pass_through_every_attribution():
    values = torch.randn(1, 16, dtype=torch.float64, requires_grad=True)
    for compute in (lambda v: order_shapley(ValueTable(v)).values, lambda v: order_marginals(ValueTable(v)).values):
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


def test_orders_below_zero_or_above_the_highest_are_refused_among_others():
    table = ValueTable(torch.zeros(8))
    for orders in ([0, -1], [2, 3]):
        with pytest.raises(AbsentiaError, match=r"^orders must lie between 0 and 2\. Got "):
            order_marginals(table, orders=orders)
    assert order_shapley(table, orders=[0, 2]).values.shape == (1, 2, 3)


def test_a_players_benefits_are_those_of_a_number_from_zero():
    table = ValueTable([0.0, 1.0, 2.0, 5.0])
    assert marginal_benefits(table, 1).values[0].tolist() == [2.0, 4.0]
    with pytest.raises(AbsentiaError, match=r"^player must lie between 0 and 1\. Got -1 instead\.$"):
        marginal_benefits(table, -1)


@given(games)
def test_tables_of_any_batch_have_order_wise_values_with_or_without_their_sums(values):
    batch = torch.stack([values, -2 * values])
    by_order = order_shapley_of(batch)
    assert torch.allclose(by_order, order_shapley_of(batch, sums_by_size_and_player(batch)))
    assert torch.allclose(by_order[1], as_tensor([marginal_benefits_by_order((-2 * row).tolist()) for row in values]))
    strength = order_marginals_of(batch)
    assert torch.allclose(strength[1], 2 * strength[0])
    assert strength.shape == by_order.shape


def test_counts_of_contexts_that_are_kept_can_be_used_with_a_gradient_later():
    with torch.inference_mode():
        order_shapley_of(torch.rand(2**7, dtype=torch.float32))
    table = torch.rand(2**7, dtype=torch.float32, requires_grad=True)
    order_marginals_of(table).sum().backward()
    assert table.grad.isfinite().all()


def test_an_index_is_computed_by_its_name():
    table = ab.ValueTable(randn(1, 16))
    assert torch.equal(ab.index(table, "Shapley").values, ab.shapley(table).values)
    assert torch.equal(ab.index(table, "Banzhaf").values, ab.banzhaf(table).values)
    with pytest.raises(ab.AbsentiaError, match=r"name must be one of Shapley, Banzhaf, .*\. Got 'Owen' instead"):
        ab.index(table, "Owen")


def test_the_functions_of_indices_take_effects():
    table = ValueTable(torch.rand(2, 16, generator=torch.Generator().manual_seed(0)).double())
    effects = ab.harsanyi(table)
    for terms in (effects, effects.keep(16)):
        assert torch.allclose(shapley(terms).values, shapley(table).values)
        assert torch.allclose(ab.banzhaf(terms).values, ab.banzhaf(table).values)
        assert torch.allclose(order_shapley(terms).values, order_shapley(table).values)
        assert torch.allclose(order_shapley(terms, orders=[2]).values, order_shapley(table, orders=[2]).values)


def test_the_functions_of_indices_take_effects_of_many_players():
    sets = torch.zeros(2, 1000, dtype=torch.bool)
    sets[0, 3] = True
    sets[1, [3, 900]] = True
    terms = ab.Terms.listed(sets, torch.tensor([2.0, 4.0]))
    assert shapley(terms).values[0, [3, 900, 0]].tolist() == [4.0, 2.0, 0.0]
    assert ab.banzhaf(terms).values[0, [3, 900, 0]].tolist() == [4.0, 2.0, 0.0]
    assert order_shapley(terms, orders=[0, 999]).values[0, :, 3].tolist() == [2.0, 6.0]
    for compute in (shapley, order_shapley):
        with pytest.raises(AbsentiaError, match="Terms need no evaluations"):
            compute(terms, evaluations=10)
    index = ab.index(ab.harsanyi(ValueTable([0.0, 1.0, 2.0, 5.0])), "SII")
    for compute in (shapley, ab.banzhaf, order_shapley):
        with pytest.raises(AbsentiaError, match="terms must hold Harsanyi or Walsh effects"):
            compute(index)
