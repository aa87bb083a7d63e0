"""Terms in both forms: listed sets give what the full table gives, and work at a thousand players."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import absentia as ab
from absentia.terms import mean_square


def randn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


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
    assert math.isclose(mean_square(full.sets, full.effects[0]), full.reconstruct().square().mean(), rel_tol=1e-9)


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
    terms = ab.Terms(torch.ones(1, 4), ("a", "b"), "given", torch.zeros(1), basis="Walsh")
    with pytest.raises(ab.AbsentiaError, match=r"basis must be Harsanyi for predict\. Got Walsh instead"):
        terms.predict(torch.ones(1, 2, dtype=torch.bool))


def test_the_old_name_is_the_same_class():
    assert ab.Interactions is ab.Terms


def test_interactions_come_from_a_named_solver():
    table = ab.ValueTable([2.0, -2.0, -1.0, 1.0])
    assert torch.equal(ab.interactions(table).effects, ab.harsanyi(table).effects)
    with pytest.raises(ab.AbsentiaError, match=r"solver must be one of exact\. Got 'magic' instead"):
        ab.interactions(table, solver="magic")


def test_an_index_is_computed_by_its_name():
    table = ab.ValueTable(randn(1, 16))
    assert torch.equal(ab.index(table, "Shapley").values, ab.shapley(table).values)
    assert torch.equal(ab.index(table, "Banzhaf").values, ab.banzhaf(table).values)
    with pytest.raises(ab.AbsentiaError, match=r"name must be one of Shapley, Banzhaf\. Got 'Owen' instead"):
        ab.index(table, "Owen")
