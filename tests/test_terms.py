"""Terms in both forms: listed sets give what the full table gives, and work at a thousand players."""

import json
import math
import sys
import time
from dataclasses import FrozenInstanceError

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import absentia as ab
from absentia import AbsentiaError, Baseline, MaskedModel, ValueTable, harsanyi
from absentia.coalitions import coalition_sizes, enumerate_coalitions
from absentia.explaining import explanation_of_terms
from absentia.listed_sets import mean_squares
from absentia.terms import Interactions
from seeded_draws import randn


def full_terms(samples=2, players=5, seed=0):
    return ab.harsanyi(ab.ValueTable(randn(samples, 2**players, seed=seed)))


def as_listed(terms):
    """The same terms, as sets with an owner each."""
    samples, count = terms.effects.shape
    return ab.Terms.listed(
        terms.sets.repeat(samples, 1),
        terms.effects.flatten(),
        terms.names,
        owners=torch.arange(samples).repeat_interleave(count),
        noise=terms.noise,
        readout=terms.readout,
    )


def wide_terms():
    """Three terms of one sample and one of another, of a thousand players."""
    sets = torch.zeros(4, 1000, dtype=torch.bool)
    sets[1, 7] = True
    sets[2, [7, 999]] = True
    sets[3, [1, 2, 3]] = True
    return ab.Terms.listed(
        sets, torch.tensor([0.5, 2.0, -3.0, 4.0]).double(), owners=torch.tensor([0, 0, 0, 1]), readout="score"
    )


@given(st.integers(0, 10_000), st.integers(1, 5), st.integers(1, 3))
def test_both_forms_give_the_same_results(seed, players, samples):
    full = full_terms(samples, players, seed)
    listed = as_listed(full)
    coalitions = ab.enumerate_coalitions(players)
    assert torch.allclose(listed.predict(coalitions), full.predict(coalitions))
    assert torch.allclose(listed.reconstruct(), full.reconstruct())
    assert torch.allclose(listed.shapley().values, full.shapley().values)
    assert torch.allclose(listed.by_order().strength, full.by_order().strength)
    assert torch.allclose(listed.by_order().ratios, full.by_order().ratios)
    assert torch.equal(listed.salient(), full.salient().flatten())
    assert torch.equal(listed.salient(0.3), full.salient(0.3).flatten())
    assert torch.equal(listed.measurable, full.measurable.flatten())
    assert torch.equal(listed.sparsity(), full.sparsity())
    for sample in range(samples):
        assert listed.top(6, sample) == full.top(6, sample)


def test_a_frame_is_the_same_in_both_forms():
    full = full_terms()
    assert as_listed(full).to_frame().equals(full.to_frame())


@given(st.integers(0, 1000), st.integers(0, 8))
def test_keep_lists_the_empty_set_and_the_strongest_of_each_sample(seed, k):
    full = full_terms(2, 3, seed)
    kept = full.keep(k)
    assert not kept.is_full
    again = as_listed(full).keep(k)
    assert torch.equal(kept.sets, again.sets)
    assert torch.equal(kept.effects, again.effects)
    for sample in range(2):
        assert kept.top(k, sample) == full.top(k, sample)
        assert kept.predict(torch.zeros(1, 3, dtype=torch.bool))[sample, 0] == full.effects[sample, 0]


def test_keeping_as_many_as_the_length_rebuilds_the_values_to_the_error():
    full = full_terms(1, 6, seed=3)
    values = full.reconstruct()
    length = int(full.sparsity(0.1))
    kept = full.keep(length).predict(ab.enumerate_coalitions(6))
    assert (kept - values).square().mean().sqrt() <= 0.1 * values.std(correction=0)


@given(st.integers(0, 1000))
def test_the_mean_square_over_all_coalitions_has_a_closed_form(seed):
    full = full_terms(1, 4, seed)
    assert math.isclose(mean_squares(full.sets, full.effects[0])[0], full.reconstruct().square().mean(), rel_tol=1e-9)


def test_a_thousand_players():
    terms = wide_terms()
    assert (terms.samples, len(terms.names)) == (2, 1000)
    present = torch.zeros(2, 1000, dtype=torch.bool)
    present[1, 7] = True
    assert terms.predict(present).tolist() == [[0.5, 2.5], [0.0, 0.0]]
    assert terms.predict(torch.ones(1, 1000, dtype=torch.bool)).tolist() == [[-0.5], [4.0]]
    shapley = terms.shapley()
    assert shapley.values[0, [7, 999]].tolist() == [0.5, -1.5]
    assert shapley.values[1, [1, 2, 3]].sum() == pytest.approx(4.0)
    assert terms.by_order().strength[:, :4].tolist() == [[0.5, 2.0, 3.0, 0.0], [0.0, 0.0, 0.0, 4.0]]
    assert [term.players for term in terms.top(5)] == [("x7", "x999"), ("x7",)]
    assert terms.sparsity().tolist() == [2, 1]
    assert terms.salient().tolist() == [True, True, True, True]
    assert len(terms.to_frame()) == 3
    assert "x7 & x999  −3" in repr(terms)


@pytest.mark.parametrize("make", [full_terms, wide_terms])
def test_terms_are_saved_and_loaded(make, tmp_path):
    terms = make()
    terms.save(tmp_path / "terms.absentia")
    loaded = ab.load(tmp_path / "terms.absentia")
    assert type(loaded) is ab.Terms
    assert loaded.is_full == terms.is_full
    assert torch.equal(loaded.effects, terms.effects)
    assert torch.equal(loaded.sets, terms.sets)
    assert repr(loaded) == repr(terms)


def test_estimated_effects_are_measurable_beyond_twice_their_errors():
    sets = torch.eye(3).bool()
    errors = torch.tensor([0.4, 0.6, 0.0])
    terms = ab.Terms.listed(sets, torch.ones(3), errors=errors)
    assert terms.measurable.tolist() == [True, False, True]
    assert terms.shapley().errors.isnan().all()
    assert terms.keep(2).errors.tolist() == pytest.approx([0.4, 0.6])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"effects": torch.ones(2)}, r"effects must hold one number for each of the 3 sets\. Got 2"),
        ({"names": ["a", "b"]}, r"names must name each of the 3 players\. Got 2 names"),
        ({"owners": torch.tensor([0, 1, 2]), "samples": 2}, r"owners must number a sample from 0 to 1 for each set"),
    ],
)
def test_listed_terms_that_do_not_fit_are_refused(arguments, message):
    with pytest.raises(ab.AbsentiaError, match=message):
        ab.Terms.listed(**{"sets": torch.eye(3).bool(), "effects": torch.ones(3)} | arguments)


def test_effects_of_another_basis_are_not_summed_over_subsets():
    terms = ab.Terms(torch.ones(1, 4), ("a", "b"), "given", torch.zeros(1), basis="BII")
    with pytest.raises(ab.AbsentiaError, match=r"basis must be Harsanyi or Walsh for predict\. Got BII instead"):
        terms.predict(torch.ones(1, 2, dtype=torch.bool))


def test_the_old_name_is_the_same_class():
    assert ab.Interactions is ab.Terms


def random_table(players, samples=1, seed=0):
    return ValueTable(torch.randn(samples, 2**players, generator=torch.Generator().manual_seed(seed)).double())


def test_order_profile_has_the_strength_of_each_order():
    effects = harsanyi(random_table(5, samples=3))
    profile = effects.by_order()
    for order in range(6):
        expected = effects.effects[:, coalition_sizes(5) == order].abs().sum(1)
        assert torch.allclose(profile.strength[:, order], expected)
    assert torch.allclose(profile.ratios.sum(1), torch.ones(3).double())
    assert (profile.ratios[:, 0] == 0).all()


def test_a_constant_game_has_no_shares():
    profile = harsanyi(ValueTable(torch.full((1, 8), 3.0))).by_order()
    assert profile.ratios.abs().max() == 0


def test_top_lists_the_strongest_by_name():
    table = ValueTable([[0.0, 1.0, -5.0, -4.0], [0.0, 0.0, 0.0, 9.0]], names=["a", "b"])
    assert [(found.players, found.effect) for found in harsanyi(table).top(2)] == [(("b",), -5.0), (("a",), 1.0)]
    assert harsanyi(table).top(1, sample=1)[0].players == ("a", "b")
    assert harsanyi(table).top(1, sample=1)[0].order == 2
    assert len(harsanyi(table).top(100)) == 3


def test_the_frame_has_a_row_for_each_sample_and_set_the_strongest_first():
    found = harsanyi(ValueTable([[0.0, 1.0, -2.0, 4.0], [0.0, 5.0, 0.1, 5.1]], names=["a", "b"]))
    frame = found.to_frame()
    assert list(frame.columns) == ["sample", "players", "order", "effect", "error", "salient", "determined"]
    assert frame["sample"].tolist() == [0, 0, 0, 1, 1, 1]
    assert frame["players"].tolist() == ["a & b", "b", "a", "a", "b", "a & b"]
    assert frame["order"].tolist() == [2, 1, 1, 1, 1, 2]
    assert frame["effect"].tolist() == pytest.approx([5, -2, 1, 5, 0.1, 0])
    assert frame["salient"].tolist() == [True, True, True, True, False, False]


def test_without_pandas_the_frame_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(AbsentiaError, match=r"pip install 'absentia\[tables\]'"):
        harsanyi(ValueTable([0.0, 1.0])).to_frame()


def test_salient_uses_the_threshold_given_or_a_twentieth_of_the_largest():
    effects = torch.tensor([[1000.0, 10.0, 0.4, 0.6]], dtype=torch.float64)
    table = ValueTable(torch.tensor([[1000.0, 1010.0, 1000.4, 1011.0]], dtype=torch.float64))
    found = harsanyi(table)
    assert torch.allclose(found.effects, effects)
    assert found.salient().tolist() == [[True, True, False, True]]
    assert found.salient(tau=5.0).tolist() == [[True, True, False, False]]


def test_effects_of_rounding_errors_are_marked_and_never_salient():
    # A sum of features has effects of order 1 only. In float32 the rest is rounding, larger at higher orders.
    weights = torch.linspace(0.1, 1.0, 12)
    x = torch.rand(1, 12, generator=torch.Generator().manual_seed(0)) * 100
    effects = harsanyi(MaskedModel(lambda rows: rows @ weights, x, absence=Baseline(0.0)))
    high = coalition_sizes(12) >= 2
    assert effects.effects[0, high].abs().max() > 1e-6
    assert effects.measurable[0, high].double().mean() < 0.02
    assert effects.measurable[0, ~high].sum() >= 12
    assert int(effects.salient(tau=0.0)[0, high].sum()) <= 0.02 * int(high.sum())
    assert torch.allclose(effects.floor[0, 4] / effects.floor[0, 0], torch.tensor(4.0).double())


def test_reconstruct_some_coalitions_from_some_effects():
    table = random_table(4, samples=2)
    effects = harsanyi(table)
    rows = enumerate_coalitions(4)[[3, 9, 15]]
    assert torch.allclose(effects.reconstruct(rows), table.values[:, [3, 9, 15]])
    keep = torch.zeros(2, 16, dtype=torch.bool)
    keep[:, 0] = keep[:, 3] = True
    kept = effects.reconstruct(rows, keep=keep)
    assert torch.allclose(kept[:, 0], effects.effects[:, 0] + effects.effects[:, 3])
    assert torch.allclose(kept[:, 1], effects.effects[:, 0])


def error_of_the_strongest(effects, k):
    """The relative error of rebuilding all values from v(∅) and the k strongest other effects."""
    order = effects.effects[0, 1:].abs().argsort(descending=True)[:k] + 1
    keep = torch.zeros_like(effects.effects, dtype=torch.bool)
    keep[0, 0] = True
    keep[0, order] = True
    values = effects.reconstruct()[0]
    return ((effects.reconstruct(keep=keep)[0] - values).square().mean().sqrt() / values.std(correction=0)).item()


@given(st.integers(2, 6), st.integers(0, 2**31), st.sampled_from([0.01, 0.05, 0.3]))
def test_sparsity_is_a_number_that_suffices_while_one_less_does_not(players, seed, error):
    effects = harsanyi(random_table(players, seed=seed))
    k = int(effects.sparsity(error))
    assert error_of_the_strongest(effects, k) <= error
    assert k == 0 or error_of_the_strongest(effects, k - 1) > error


def test_sparsity_counts_the_terms_of_a_sparse_game():
    rows = enumerate_coalitions(8)
    values = torch.stack([rows[:, [1, 4]].all(1) * 3.0 + rows[:, 6] * 2.0, rows[:, :8].all(1) * 1.0])
    assert harsanyi(ValueTable(values.double())).sparsity().tolist() == [2, 1]
    assert harsanyi(ValueTable(torch.full((1, 8), 2.0))).sparsity().tolist() == [0]


@pytest.mark.parametrize(
    ("use", "sentence"),
    [
        (lambda effects: effects.top(3, sample=1), "sample must lie between -1 and 0. Got 1"),
        (lambda effects: effects.top(-1), "k must be at least 0. Got -1"),
        (lambda effects: effects.salient(-0.1), "tau must be at least 0. Got -0.1"),
        (lambda effects: effects.sparsity(1.5), "error must be a share between 0 and 1. Got 1.5"),
        (lambda effects: effects.reconstruct(torch.zeros(2, 4, dtype=torch.bool)), "coalitions must be boolean"),
    ],
)
def test_bad_input_gets_a_sentence(use, sentence):
    with pytest.raises(AbsentiaError, match=sentence):
        use(harsanyi(random_table(3)))


def test_the_printed_form_is_short_and_tells_the_essentials():
    text = repr(harsanyi(random_table(10, samples=2)))
    assert "2 samples, 10 players" in text
    assert len(text.splitlines()) == 6


def interactions(effects, noise, names=None):
    """Make interactions of given effects and noise, without a game."""
    effects = torch.tensor(effects, dtype=torch.float64)
    names = names or tuple(f"x{i}" for i in range(effects.shape[1].bit_length() - 1))
    return Interactions(effects, names, "given", torch.tensor(noise, dtype=torch.float64), evaluations=7)


def test_the_floor_grows_by_the_square_root_of_two_at_each_order_and_is_each_samples_own():
    found = interactions([[0.0] * 8, [0.0] * 8], noise=[1.0, 10.0])
    assert found.floor.shape == (2, 4)
    assert found.floor[0].tolist() == pytest.approx([1, 2**0.5, 2, 2**1.5])
    assert torch.allclose(found.floor[1], 10 * found.floor[0])


def test_measurable_effects_exceed_the_floor_of_their_order():
    found = interactions([[1.0, -1.5, 1.4, -2.0], [1.1, 1.0, -1.5, 2.1]], noise=[1.0, 1.0])
    assert found.measurable.tolist() == [[False, True, False, False], [True, False, True, True]]
    assert found.salient(tau=0.0).tolist() == found.measurable.tolist()
    assert found.salient(tau=1.5).tolist() == [[False] * 4, [False, False, False, True]]
    assert [one.measurable for one in found.top(3)] == [False, True, False]
    assert [one.measurable for one in found.top(3, sample=1)] == [True, True, False]


def test_the_default_threshold_is_each_samples_own_and_leaves_out_the_empty_set():
    found = interactions([[900.0, 20.0, 1.0, -1.01], [0.0, 2.0, -0.11, 0.05]], noise=[0.0, 0.0])
    assert found.salient().tolist() == [[True, True, False, True], [False, True, True, False]]


def test_top_counts_samples_from_the_end_and_may_be_empty():
    found = interactions([[9.0, 1.0, -3.0, 2.0], [9.0, 4.0, 0.0, 1.0]], noise=[0.0, 0.0])
    assert found.top(0) == []
    last = [(("x0",), 4.0, True, 0.0), (("x0", "x1"), 1.0, True, 0.0)]
    assert found.top(2, sample=-1) == found.top(2, sample=1) == last
    assert found.top(1, sample=-2) == [(("x1",), -3.0, True, 0.0)]
    for sample in (-3, 2):
        with pytest.raises(AbsentiaError, match=rf"^sample must lie between -2 and 1\. Got {sample} instead\.$"):
            found.top(1, sample=sample)


def test_the_frame_ranks_equal_effects_in_counting_order():
    found = interactions([[9.0, -1.0, 1.0, 2.0, 1.0, -2.0, 1.0, -1.0]], noise=[0.0], names=("a", "b", "c"))
    frame = found.to_frame()
    assert frame["players"].tolist() == ["a & b", "a & c", "a", "b", "c", "b & c", "a & b & c"]
    assert frame["effect"].tolist() == [2.0, -2.0, -1.0, 1.0, 1.0, 1.0, -1.0]


def test_a_share_of_tiny_effects_is_still_a_share():
    ratios = interactions([[1.0, 3e-308, -1e-308, 0.0]], noise=[0.0]).by_order().ratios
    assert ratios[0].tolist() == pytest.approx([0.0, 1.0, 0.0])


def test_results_cannot_be_changed():
    found = harsanyi(random_table(2))
    for thing, field in ((found, "effects"), (found.by_order(), "ratios"), (found.shapley(), "values")):
        with pytest.raises(FrozenInstanceError):
            setattr(thing, field, torch.zeros(1))


def test_results_are_compared_by_identity():
    found, same = harsanyi(random_table(2)), harsanyi(random_table(2))
    for one, other in ((found, same), (found.by_order(), same.by_order()), (found.shapley(), same.shapley())):
        assert one == one
        assert one != other


def test_coalitions_are_those_of_the_effects():
    found = harsanyi(random_table(3))
    assert torch.equal(found.coalitions, enumerate_coalitions(3))


def test_reconstruction_neither_needs_nor_leaves_a_graph_and_keeps_the_effects():
    values = torch.randn(1, 8, dtype=torch.float64, requires_grad=True)
    effects = harsanyi(ValueTable(values))
    before = effects.effects.detach().clone()
    assert not effects.reconstruct().requires_grad
    assert int(effects.sparsity()) >= 0
    assert effects.to_frame()["effect"].abs().max() > 0
    assert torch.equal(effects.effects, before)
    assert torch.allclose(effects.reconstruct(), values)
    assert torch.autograd.grad(effects.effects.square().sum(), values)[0].isfinite().all()


@given(st.integers(1, 5), st.integers(0, 2**31), st.sampled_from([0.0, 0.1, 0.5]))
def test_each_sample_has_its_own_sparsity(players, seed, error):
    table = random_table(players, samples=4, seed=seed)
    table = ValueTable(table.values * torch.rand(4, 2**players, generator=torch.Generator().manual_seed(seed)) ** 9)
    alone = [int(harsanyi(ValueTable(row[None])).sparsity(error)) for row in table.values]
    assert harsanyi(table).sparsity(error).tolist() == alone


def test_without_an_allowed_error_all_terms_are_counted_but_not_what_is_noise():
    rows = enumerate_coalitions(6)
    terms = [(3.0, [0]), (0.5, [1, 2]), (0.01, [3]), (-2.0, [0, 5]), (0.002, [1, 2, 3, 4, 5])]
    values = sum(weight * rows[:, members].all(1).double() for weight, members in terms)[None]
    assert harsanyi(ValueTable(values)).sparsity(0.0).tolist() == [5]
    # The last term is seen by 2 of 64 coalitions, so that its root mean square is 0.002 · √(1/32) = 0.00035.
    for noise, expected in ((0.0003, 5), (0.0004, 4)):
        assert harsanyi(ValueTable(values, noise=torch.tensor([noise]).double())).sparsity(0.0).tolist() == [expected]


def test_the_allowed_error_is_a_share_of_the_standard_deviation():
    # Without the smaller term, half of the values are off by 0.1: the root mean square is 0.1 / √2.
    values = 1 + enumerate_coalitions(2).double() @ torch.tensor([0.5, 0.1]).double()
    left_out = 0.1 / 2**0.5 / values.std(correction=0).item()
    effects = harsanyi(ValueTable(values))
    assert effects.sparsity(left_out * 1.001).tolist() == [1]
    assert effects.sparsity(left_out * 0.999).tolist() == [2]


@pytest.mark.parametrize("error", [-0.01, 1.0])
def test_an_error_that_is_no_share_is_refused(error):
    with pytest.raises(AbsentiaError, match=rf"^error must be a share between 0 and 1\. Got {error} instead\.$"):
        harsanyi(random_table(2)).sparsity(error)


def test_the_printed_form_of_several_samples_is_that_of_the_first():
    found = interactions([[9.0, 1.0, -31234.0, 2.0], [9.0, 4.0, 0.0, 1.0]], noise=[0.0, 0.0], names=("p", "q"))
    assert repr(found).splitlines() == [
        "Interactions of 2 samples, 2 players; value: given; strongest of sample 0:",
        "  q      −31234",
        "  p & q  +2",
        "  p      +1",
    ]


def test_an_index_is_computed_by_its_name():
    table = ab.ValueTable(randn(1, 16))
    assert torch.equal(ab.index(table, "Shapley").values, ab.shapley(table).values)
    assert torch.equal(ab.index(table, "Banzhaf").values, ab.banzhaf(table).values)
    with pytest.raises(ab.AbsentiaError, match=r"name must be one of Shapley, Banzhaf, .*\. Got 'Owen' instead"):
        ab.index(table, "Owen")


# Terms in both forms: a full table and listed sets of 12 players, and listed sets of 1,000 players.
FORMS = ["full", "listed", "wide"]
INTERACTION_PLOTS = ["interaction_list", "upset", "network", "and_or_graph", "order_profile", "sparsity"]
EXPLANATION_PLOTS = [*INTERACTION_PLOTS, "overview", "waterfall", "bars"]


def many_terms(players=1000, terms=20_000, samples=1, seed=0):
    """Random sets of one to four players, each drawn for one of the samples, and v(∅) of each sample."""
    generator = torch.Generator().manual_seed(seed)
    sizes = torch.randint(1, 5, (terms, 1), generator=generator)
    drawn = torch.randint(players, (terms, 4), generator=generator)
    sets = torch.zeros(terms, players, dtype=torch.bool)
    for place in range(4):
        rows = (sizes[:, 0] > place).nonzero()[:, 0]
        sets[rows, drawn[rows, place]] = True
    sets[:samples] = False
    effects = torch.randn(terms, generator=generator, dtype=torch.float64) / sizes[:, 0] ** 2
    effects[samples:] *= torch.logspace(0, -3, terms - samples, dtype=torch.float64)
    names = [f"x{player}" for player in range(players)]
    owners = torch.arange(terms) % samples
    return ab.Terms.listed(sets, effects, names, owners=owners, readout="the output as it is", evaluations=5000)


def terms_of(form):
    if form == "full":
        return full_terms(2, 12)
    if form == "listed":
        return as_listed(full_terms(2, 12))
    return many_terms(terms=3000)


@pytest.fixture(scope="module", params=FORMS)
def terms(request):
    return terms_of(request.param)


def explanation_of(terms):
    """An explanation of a model that does not matter, which holds these terms."""
    players = len(terms.names)
    game = ab.MaskedModel(lambda rows: rows.sum(1), randn(terms.samples, players), absence=ab.Baseline(0.0))
    return explanation_of_terms(game, terms, seconds=1.0)


@pytest.fixture(scope="module")
def explanation(terms):
    return explanation_of(terms)


def test_order_wise_values_of_terms_are_those_of_their_table():
    full = full_terms(2, 6)
    expected = ab.order_shapley(ab.ValueTable(full.reconstruct()))
    for terms in (full, as_listed(full)):
        by_order = terms.order_shapley()
        assert torch.allclose(by_order.values, expected.values)
        assert by_order.orders == expected.orders
        assert torch.allclose(by_order.mean().values, terms.shapley().values)


def test_order_wise_values_of_a_thousand_players_average_to_shapley_values():
    wide = many_terms(samples=2)
    assert torch.allclose(wide.order_shapley().values.mean(1), wide.shapley().values)
    pair = ab.Terms.listed(torch.tensor([[True, True] + [False] * 998]), torch.tensor([999.0]).double())
    assert torch.allclose(pair.order_shapley().values[0, :, 0], torch.arange(1000).double())


def test_order_wise_values_of_estimates_are_refused():
    terms = ab.Terms.listed(torch.eye(3).bool(), torch.ones(3), errors=torch.ones(3))
    with pytest.raises(ab.AbsentiaError, match=r"effects must be exact for order_shapley\. Got estimates"):
        terms.order_shapley()


def test_errors_of_rebuilt_values_are_those_of_all_coalitions():
    full = full_terms(1, 6, seed=2)
    rebuilding = as_listed(full).rebuilding_errors()
    values = full.reconstruct()
    assert rebuilding.deviation == pytest.approx(float(values.std(correction=0)))
    for count in (0, 1, 5, 40, 63):
        rest = full.keep(count).predict(ab.enumerate_coalitions(6)) - values
        assert float(rebuilding.errors[count]) == pytest.approx(float(rest.square().mean().sqrt()), abs=1e-9)


def test_blocks_of_sets_give_the_same_mean_squares(monkeypatch):
    wide = many_terms(players=40, terms=300)
    expected = mean_squares(wide.sets, wide.effects)
    monkeypatch.setattr("absentia.listed_sets.PAIRS_AT_ONCE", 2_000)
    assert torch.allclose(mean_squares(wide.sets, wide.effects), expected)


def test_json_is_read_back_as_the_same_terms(terms):
    read = ab.Terms.from_json(terms.to_json())
    assert read.is_full == terms.is_full
    assert torch.equal(read.effects, terms.effects)
    assert torch.equal(read.sets, terms.sets)
    assert torch.equal(read.noise, terms.noise)
    assert read.owners is None or torch.equal(read.owners, terms.owners)
    assert (read.names, read.readout, read.evaluations) == (terms.names, terms.readout, terms.evaluations)
    assert repr(read) == repr(terms)


def test_json_keeps_errors_and_where_terms_come_from():
    errors = torch.tensor([0.5, math.nan])
    terms = ab.Terms.listed(
        torch.eye(2).bool(), torch.ones(2), ["a", "b"], errors=errors, absence="mean", fidelity=0.9, evaluations=7
    )
    fields = json.loads(terms.to_json())
    assert fields["sets"] == [[0], [1]]
    assert fields["errors"] == [0.5, None]
    read = ab.Terms.from_json(terms.to_json())
    assert read.effects.dtype == torch.float32
    assert torch.equal(read.errors, errors) or read.errors.isnan().tolist() == [False, True]
    assert (read.absence, read.fidelity.tolist(), read.basis) == ("mean", [0.9], "Harsanyi")


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"kind": "audit", "format": 3}', '{"kind": "terms", "format": 99}']
)
def test_json_of_something_else_is_refused(text):
    with pytest.raises(ab.AbsentiaError, match="text must be the JSON of terms"):
        ab.Terms.from_json(text)


def test_json_with_a_set_too_few_is_refused():
    fields = json.loads(as_listed(full_terms()).to_json())
    fields["sets"].pop()
    with pytest.raises(ab.AbsentiaError, match="missing or damaged"):
        ab.Terms.from_json(json.dumps(fields))


def test_infinite_effects_have_no_json():
    terms = ab.Terms.listed(torch.eye(2).bool(), torch.tensor([1.0, math.inf]))
    with pytest.raises(ab.AbsentiaError, match="effects must be finite for JSON"):
        terms.to_json()


@pytest.mark.parametrize("kind", INTERACTION_PLOTS)
def test_bare_terms_are_drawn(terms, kind, tmp_path):
    figure = ab.plots.KINDS[kind](terms)
    figure.savefig(tmp_path / "terms.png")
    assert figure.axes


@pytest.mark.parametrize("kind", EXPLANATION_PLOTS)
def test_explanations_of_terms_are_drawn(explanation, kind, tmp_path):
    explanation.plot(tmp_path / "explanation.png", kind=kind)


@pytest.mark.parametrize("kind", ["interaction_list", "upset", "network", "and_or_graph"])
def test_pictures_of_terms_are_those_of_their_explanation(terms, explanation, kind):
    bare, whole = (ab.plots.KINDS[kind](result).axes[-1] for result in (terms, explanation))
    assert len(bare.patches) == len(whole.patches)
    assert [line.get_linewidth() for line in bare.lines] == [line.get_linewidth() for line in whole.lines]
    assert bare.get_title().splitlines()[1:] == whole.get_title().splitlines()[1:]


def test_pictures_say_how_many_interactions_they_leave_out():
    wide = many_terms()
    assert ab.plots.interaction_list(wide).axes[0].get_title() == "strongest 16 of 19,999 interactions"
    assert "strongest of 19,999 interactions add" in ab.plots.network(wide).axes[0].get_title()
    assert ab.plots.upset(wide).axes[1].get_title() == "strongest 16 of 19,999 interactions"


@pytest.mark.parametrize("kind", ["upset", "network", "and_or_graph"])
def test_sets_of_too_many_players_are_left_out_of_graphs(kind):
    sets = torch.zeros(3, 1000, dtype=torch.bool)
    sets[0] = True
    sets[1, :2] = True
    sets[2, 5] = True
    axes = ab.plots.KINDS[kind](ab.Terms.listed(sets, torch.tensor([3.0, 2.0, -1.0]))).axes[-1]
    assert "(1 with more players than there is room for are left out)" in axes.get_title()


@pytest.mark.parametrize("kind", INTERACTION_PLOTS)
def test_terms_without_sets_are_drawn(kind):
    ab.plots.KINDS[kind](ab.Terms.listed(torch.zeros(1, 1000, dtype=torch.bool), torch.ones(1)))


def test_strength_is_drawn_up_to_the_largest_listed_order():
    assert len(ab.plots.order_profile(many_terms()).axes[0].patches) == 4


def test_estimated_effects_are_drawn_with_their_errors():
    terms = ab.Terms.listed(torch.eye(3).bool(), torch.ones(3), errors=torch.tensor([0.1, 0.9, 0.2]))
    assert "± 2 standard errors; hollow: within these errors" in ab.plots.interaction_list(terms).axes[0].get_xlabel()
    assert "are unknown" in ab.plots.order_profile(terms).axes[1].texts[0].get_text()


def test_a_plot_of_something_else_names_what_it_takes():
    with pytest.raises(ab.AbsentiaError, match="be an Explanation, which explain returns, or Terms"):
        ab.plots.network(3)


def test_an_explanation_of_terms_holds_what_they_add_up_to(terms, explanation):
    assert explanation.interactions is terms
    assert torch.allclose(explanation.efficiency_gap, torch.zeros(terms.samples).double(), atol=1e-9)
    assert torch.allclose(explanation.shapley.values, terms.shapley().values)
    assert (explanation.order_shapley is None) == (len(terms.names) > 24)
    assert explanation.record.exact
    notes = " ".join(explanation.record.notes)
    assert ("are listed" in notes) == (not terms.is_full)


def test_an_explanation_of_terms_is_saved_and_loaded(explanation, tmp_path):
    explanation.save(tmp_path / "explanation.absentia")
    loaded = ab.load(tmp_path / "explanation.absentia")
    assert repr(loaded) == repr(explanation)
    assert loaded.interactions.is_full == explanation.interactions.is_full
    assert torch.equal(loaded.interactions.sets, explanation.interactions.sets)


def test_sixty_players_with_the_terms_of_a_booster():
    terms = many_terms(players=60, terms=1107)
    explanation = explanation_of(terms)
    assert "1,107 sets of players are listed" in repr(explanation)
    assert len(explanation.to_frame()) == 60
    assert explanation._repr_html_()


def test_fitted_terms_say_how_good_the_fit_is():
    terms = ab.Terms.listed(torch.eye(3).bool(), torch.ones(3).double(), fidelity=0.876)
    explanation = explanation_of(terms)
    assert not explanation.record.exact
    assert "These 3 interactions account for 87.6 % of the variation" in repr(explanation)
    assert "measured on coalitions that the fit did not see" in repr(explanation)


def data_of(path):
    """The data of the only section of a page."""
    text = path.read_text(encoding="utf-8")
    block = text.partition('id="data">')[2].partition("</script>")[0]
    return json.loads(block)[0]


def test_bare_terms_have_a_small_report(terms, tmp_path):
    path = ab.write_report(terms, tmp_path / "report.html")
    empty_page = ab.write_report(ab.harsanyi(ab.ValueTable([0.0, 1.0])), tmp_path / "empty.html").stat().st_size
    assert path.stat().st_size - empty_page < 200_000
    text = path.read_text(encoding="utf-8")
    assert f"Interactions of {'1 sample' if terms.samples == 1 else '2 samples'}, {len(terms.names)} players" in text
    sample = data_of(path)["samples"][0]
    assert {"effects", "shares", "curve", "values", "ranked"} <= sample.keys()


def test_reports_of_both_forms_have_the_same_numbers(tmp_path):
    full = full_terms(2, 6)
    data = [data_of(ab.write_report(result, tmp_path / "page.html")) for result in (full, as_listed(full))]
    for first, second in zip(data[0]["samples"], data[1]["samples"], strict=True):
        assert first["effects"] == second["effects"]
        assert first["answer"] == second["answer"]
        assert first["ranked"] == second["ranked"]
        assert first["shares"] == second["shares"]
        assert first["orders"] == second["orders"]
        listed = dict(zip(second["curve"]["counts"], second["curve"]["texts"], strict=True))
        assert listed == dict(zip(data[0]["counts"], first["curve"]["texts"], strict=True))


def test_explanations_of_terms_have_a_report(explanation, tmp_path):
    path = ab.write_report(explanation, tmp_path / "report.html")
    sets = f"{len(explanation.interactions.effects):,} listed sets of players"
    source = "all coalitions" if explanation.interactions.is_full else sets
    assert f"exact, from {source}" in path.read_text(encoding="utf-8")


def test_effects_of_another_basis_are_reported_without_values(tmp_path):
    terms = ab.Terms(torch.tensor([[1.0, 2.0, 3.0, 4.0]]), ("a", "b"), "given", torch.zeros(1), basis="BII")
    path = ab.write_report(terms, tmp_path / "report.html")
    assert "values are not sums of BII effects" in path.read_text(encoding="utf-8")
    assert "values" not in data_of(path)["samples"][0]
    for kind in INTERACTION_PLOTS:
        ab.plots.KINDS[kind](terms)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_a_report_of_terms_opens_in_a_browser(form, browser, tmp_path):
    terms = terms_of(form)
    path = ab.write_report([terms, explanation_of(terms)], tmp_path / "report.html")
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    messages = []
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready=yes]")
    assert messages == []
    assert page.query_selector_all("[data-chart]:empty") == []
    for number in (0, 1):
        bars = page.query_selector_all(f"#result-{number} [data-chart=interactions] .bar rect")
        assert len(bars) == 15
    assert page.text_content("#result-1 .answer").startswith("Sample 0: the ")
    page.close()


def test_terms_of_both_forms_go_to_shapiq_and_back(terms):
    pytest.importorskip("shapiq")
    values = ab.interop.to_shapiq(terms)
    back = ab.interop.from_shapiq(values, terms.names, listed=True)
    assert torch.allclose(back.shapley().values[0], terms.shapley().values[0])
    strongest = back.top(3)
    assert [term.players for term in strongest] == [term.players for term in terms.top(3)]


def test_values_without_all_sets_come_from_shapiq_only_as_listed():
    pytest.importorskip("shapiq")
    values = ab.interop.to_shapiq(many_terms(terms=50))
    with pytest.raises(ab.AbsentiaError, match=r"hold all 2\^1000 sets of 1000 players.* pass listed=True"):
        ab.interop.from_shapiq(values)


def test_effects_of_another_basis_are_no_moebius_values():
    terms = ab.Terms(torch.ones(1, 4), ("a", "b"), "given", torch.zeros(1), basis="own")
    with pytest.raises(ab.AbsentiaError, match=r"result must hold Harsanyi or Walsh effects.*Got the basis own"):
        ab.interop.to_shapiq(terms)


@pytest.mark.slow
def test_twenty_thousand_sets_of_a_thousand_players_take_seconds(tmp_path):
    wide = many_terms(samples=100)
    began = time.perf_counter()
    wide.predict(torch.rand(200, 1000) > 0.5)
    wide.shapley()
    wide.keep(20)
    wide.by_order()
    wide.salient()
    wide.sparsity()
    assert len(wide.to_frame()) == 20_000 - 100
    ab.Terms.from_json(wide.to_json())
    path = ab.write_report(wide, tmp_path / "report.html")
    assert time.perf_counter() - began < 300  # a few seconds, unless the machine is busy
    assert path.stat().st_size < 10_000_000
