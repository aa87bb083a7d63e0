"""With our games and imputers, shapiq computes our values. Results are converted both ways."""

from __future__ import annotations

import numpy as np
import pytest
import shapiq
import torch
from torch import Tensor

import absentia as ab
from absentia import interop
from peer_cases import absences, assert_asks_for, assert_same, brute_force, network, normal


@pytest.mark.parametrize("kind", ["baseline", "own", "marginal", "dependent"])
def test_shapiq_computes_our_values(players: ab.Players, kind: str) -> None:
    model = network(players.shape)
    x = normal(3, *players.shape, seed=1)
    game = ab.MaskedModel(model, x, players=players, absence=absences(x)[kind])
    exact = shapiq.ExactComputer(interop.shapiq_game(game, 2))
    theirs = exact("SV")
    assert_same(ab.shapley(game).values[2], theirs.get_n_order_values(1))
    assert theirs.baseline_value == pytest.approx(ab.value_table(game).values[2, 0].item())
    effects = interop.from_shapiq(exact("Moebius"), players.names).effects
    torch.testing.assert_close(effects[0], ab.harsanyi(game).effects[2], rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("normalize", [False, True])
def test_shapiqs_approximators_take_our_games(normalize: bool) -> None:
    game = ab.MaskedModel(network((5,)), normal(2, 5, seed=1), absence=ab.Baseline(2.0))
    peer = interop.shapiq_game(game, 1, normalize=normalize)
    found = shapiq.KernelSHAP(5, random_state=0).approximate(2**5, peer)
    assert_same(ab.shapley(game).values[1], found.get_n_order_values(1), 1e-6)
    empty = ab.value_table(game).values[1, 0].item()
    assert found.baseline_value == pytest.approx(0.0 if normalize else empty)
    assert peer([("x0", "x3")])[0] == pytest.approx(
        game(torch.tensor([[True, False, False, True, False]]))[1].item() - normalize * empty
    )


def test_the_model_runs_for_the_one_sample_only() -> None:
    rows = 0

    def model(inputs: Tensor) -> Tensor:
        nonlocal rows
        rows += len(inputs)
        return inputs.sum(1)

    game = ab.MaskedModel(model, normal(50, 3, seed=1), absence=ab.Baseline(0.0))
    rows = 0
    shapiq.ExactComputer(interop.shapiq_game(game))("SV")
    assert rows == 1 + 2**3


@pytest.mark.parametrize("kind", ["baseline", "marginal", "dependent"])
def test_shapiqs_explainer_takes_our_imputer(kind: str) -> None:
    model = network((4,))
    x = normal(6, 4, seed=1)
    absence = absences(x)[kind]
    imputer = interop.shapiq_imputer(model, absence, x)
    explainer = shapiq.TabularExplainer(imputer.predict, x.numpy(), imputer=imputer, index="k-SII", max_order=2)
    for row in x[:2]:
        game = ab.MaskedModel(model, row[None], absence=absence)
        exact = shapiq.ExactComputer(interop.shapiq_game(game))(index="k-SII", order=2)
        found = explainer.explain(row.numpy(), budget=2**4)
        assert found.baseline_value == imputer.empty_prediction == pytest.approx(exact.baseline_value)
        assert found.baseline_value != 0.0
        for order in (1, 2):
            np.testing.assert_allclose(found.get_n_order_values(order), exact.get_n_order_values(order), atol=1e-8)
        assert imputer.predict(row.numpy()[None])[0] == pytest.approx(game(torch.ones(1, 4).bool()).item())


def test_our_imputer_holds_the_values_that_stand_in() -> None:
    x = normal(3, 4, seed=1)
    imputer = interop.shapiq_imputer(network((4,)), ab.Baseline(x[1]), x)
    np.testing.assert_array_equal(imputer.baseline_values[0], x[1].numpy())
    assert np.isnan(interop.shapiq_imputer(network((4,)), absences(x)["marginal"], x).baseline_values).all()
    with pytest.raises(
        ab.AbsentiaError, match=r"x must hold rows of features.*For images and groups, use shapiq_game"
    ):
        interop.shapiq_imputer(network((2, 2)), ab.Baseline(0.0), normal(3, 2, 2, seed=1))


def test_our_imputer_takes_a_word_as_an_absence_of_the_data() -> None:
    x = normal(3, 4, seed=1)
    imputer = interop.shapiq_imputer(network((4,)), "mean", x)
    np.testing.assert_allclose(imputer.baseline_values[0], x.mean(0))


def test_our_imputer_takes_rows_of_any_kind() -> None:
    whole = torch.tensor([[1, 2, 3, 4], [2, 0, 1, 5]])
    imputer = interop.shapiq_imputer(lambda rows: rows.double().sum(1), ab.Baseline(0.0), whole)
    row = np.array([0.5, 0.5, 0.25, 0.0])
    row.flags.writeable = False
    assert imputer.fit(row)(np.ones((1, 4), dtype=bool))[0] == pytest.approx(1.25)
    interop.shapiq_imputer(network((4,)), ab.Baseline(0.0), normal(3, 4, seed=1).requires_grad_())
    short = interop.shapiq_imputer(lambda rows: rows.sum(1), ab.Baseline(0.0), whole.bfloat16())
    assert short.fit(row)(np.ones((1, 4), dtype=bool))[0] == pytest.approx(1.25)
    with pytest.raises(ab.AbsentiaError, match=r"readout must be one number\. Got features of a layer"):
        interop.shapiq_imputer(network((4,)), ab.Baseline(0.0), normal(3, 4, seed=1), readout=ab.Features("0"))


def test_our_imputer_explains_one_of_several_outputs() -> None:
    x = normal(3, 4, seed=1)
    model = torch.nn.Linear(4, 3).double()
    imputer = interop.shapiq_imputer(model, ab.Baseline(0.5), x, readout=ab.LogOdds(2))
    found = shapiq.ExactComputer(imputer.fit(x[2].numpy()))("SV")
    ours = ab.shapley(ab.MaskedModel(model, x[2:], absence=ab.Baseline(0.5), readout=ab.LogOdds(2)))
    assert_same(ours.values[0], found.get_n_order_values(1))


def test_interactions_go_to_shapiq_and_back() -> None:
    values = normal(2, 16, seed=1)
    ours = ab.harsanyi(ab.ValueTable(values, names=["a", "b", "c", "d"]))
    there = interop.to_shapiq(ours, 1)
    assert there[(1, 3)] == ours.effects[1, 0b1010]
    back = interop.from_shapiq(there, ours.names)
    assert torch.equal(back.effects, ours.effects[1:])
    assert torch.equal(back.measurable, ours.measurable[1:])
    assert back.names == ours.names
    converter = shapiq.game_theory.moebius_converter.MoebiusConverter(there)
    assert_same(ab.shapley(ab.ValueTable(values)).values[1], converter("SV", order=1).get_n_order_values(1))


def test_attributions_go_to_shapiq() -> None:
    table = ab.ValueTable(normal(8, seed=1))
    peer = interop.shapiq_game(table)
    for index, ours in (("SV", ab.shapley(table)), ("BV", ab.banzhaf(table))):
        made = interop.to_shapiq(ours, base_values=table)
        theirs = shapiq.ExactComputer(peer)(index, 1)
        assert made.index == theirs.index
        assert made.baseline_value == pytest.approx(theirs.baseline_value)
        np.testing.assert_allclose(made.get_n_order_values(1), theirs.get_n_order_values(1))
        assert not made.estimated


def test_sampled_values_go_to_shapiq_as_estimates() -> None:
    game = ab.MaskedModel(network((9,)), normal(2, 9, seed=1), absence=ab.Baseline(0.0))
    sampled = ab.shapley(game, evaluations=64)
    values = interop.to_shapiq(sampled, 1, base_values=game)
    assert values.estimated
    assert values.estimation_budget == sampled.evaluations // 2
    np.testing.assert_array_equal(values.get_n_order_values(1), sampled.values[1])


def test_shapleys_of_a_table_are_those_over_all_orders() -> None:
    values = normal(8, seed=1)
    brute = brute_force(lambda members: values[sum(1 << i for i in members)].item(), 3)
    made = interop.to_shapiq(ab.shapley(ab.ValueTable(values)), base_values=values[0].item())
    np.testing.assert_allclose(made.get_n_order_values(1), brute)


def test_shapiq_is_refused_what_does_not_fit() -> None:
    table = ab.ValueTable(normal(8, seed=1))
    exact = shapiq.ExactComputer(interop.shapiq_game(table))
    with pytest.raises(ab.AbsentiaError, match=r"be Möbius values, or the index SII, .*FBII\. Got the index 'SV'"):
        interop.from_shapiq(exact("SV"))
    with pytest.raises(ab.AbsentiaError, match=r"hold all 8 sets of 3 players\. Got 7"):
        interop.from_shapiq(exact("Moebius").get_n_order(min_order=0, max_order=2))
    with pytest.raises(ab.AbsentiaError, match="name each of the 3"):
        interop.from_shapiq(exact("Moebius"), ["a"])
    with pytest.raises(ab.AbsentiaError, match=r"needs base_values\. Pass base_values=game"):
        interop.to_shapiq(ab.shapley(table))
    with pytest.raises(ab.AbsentiaError, match="sample must lie between 0 and 0"):
        interop.shapiq_game(table, 1)


def test_a_missing_shapiq_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    table = ab.ValueTable([0.0, 1.0])
    assert_asks_for("shapiq", "shapiq", monkeypatch, lambda: interop.to_shapiq(ab.harsanyi(table)))


def test_words_for_an_imputer_keep_to_categories() -> None:
    x = torch.tensor([[0.0, 1.0]] * 5 + [[1.0, 2.0]] * 4 + [[2.0, 3.0]] * 4)
    imputer = interop.shapiq_imputer(lambda rows: rows.sum(1), "median", x, categorical=[0])
    assert imputer.baseline_values.tolist() == [[0.0, 2.0]]
    with pytest.raises(ab.AbsentiaError, match="absence must keep to the categories"):
        interop.shapiq_imputer(lambda rows: rows.sum(1), "noise", x, categorical=[0])


def test_shares_of_contexts_are_refused() -> None:
    game = ab.MaskedModel(lambda rows: rows.prod(1), torch.ones(1, 3), absence=0.0)
    with pytest.raises(ab.AbsentiaError, match="result must hold interactions, Shapley values or Banzhaf values"):
        interop.to_shapiq(ab.context_map(game), base_values=0.0)


def test_listed_terms_are_handed_over_whole():
    sets = torch.zeros(3, 40, dtype=torch.bool)
    sets[1, 3] = True
    sets[2, [3, 39]] = True
    terms = ab.Terms.listed(sets, torch.tensor([0.5, 2.0, -1.0]))
    values = ab.interop.to_shapiq(terms)
    assert (values.baseline_value, values[(3,)], values[(3, 39)]) == (0.5, 2.0, -1.0)
    assert values.n_players == 40


@pytest.mark.parametrize("name", ["SII", "k-SII", "STII", "FSII", "BII", "FBII"])
@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_indices_are_handed_over_whole(name: str, order: int) -> None:
    table = ab.ValueTable(normal(2, 16, seed=1))
    theirs = shapiq.ExactComputer(interop.shapiq_game(table, 1))(name, order)
    for terms in (table, ab.harsanyi(table).keep(16)):
        made = interop.to_shapiq(ab.index(terms, name, order=order), 1)
        assert (made.index, made.min_order, made.max_order) == (theirs.index, theirs.min_order, theirs.max_order)
        assert made.baseline_value == pytest.approx(theirs.baseline_value)
        assert made.dict_values == pytest.approx(theirs.dict_values, abs=1e-7)
        assert not made.estimated


@pytest.mark.parametrize("name", ["SII", "k-SII", "FBII"])
def test_indices_come_from_shapiq(name: str) -> None:
    table = ab.ValueTable(normal(16, seed=1), names=["a", "b", "c", "d"])
    theirs = shapiq.ExactComputer(interop.shapiq_game(table))(name, 2)
    terms = interop.from_shapiq(theirs, table.names)
    assert (terms.basis, terms.order, terms.names) == (name, 2, table.names)
    ours = ab.index(table, name)
    assert {term.players: term.effect for term in terms.top(20)} == pytest.approx(
        {term.players: term.effect for term in ours.top(20)}
    )
    back = interop.to_shapiq(terms)
    assert back.dict_values == pytest.approx(theirs.dict_values)
    assert back.baseline_value == pytest.approx(theirs.baseline_value)


def test_what_shapiq_does_not_know_is_refused() -> None:
    terms = ab.Terms(torch.ones(1, 4), ("a", "b"), "given", torch.zeros(1), basis="Fourier")
    with pytest.raises(
        ab.AbsentiaError,
        match=r"result must hold Harsanyi or Walsh effects, or the index SII, .*Got the basis Fourier",
    ):
        interop.to_shapiq(terms)


def test_an_index_of_estimated_terms_is_an_estimate() -> None:
    sets = torch.tensor([[True, False], [True, True]])
    terms = ab.Terms.listed(sets, torch.tensor([1.0, 2.0]), errors=torch.tensor([0.1, 0.2]), evaluations=30)
    values = interop.to_shapiq(ab.index(terms, "SII"))
    assert values.estimated
    assert values.estimation_budget == 30
