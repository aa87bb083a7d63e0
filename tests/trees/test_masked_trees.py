"""Results from leaves against those from all coalitions, on random ensembles."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import absentia as ab
from absentia.coalitions import enumerate_coalitions
from absentia.indices import INDICES
from absentia.trees.affordable_terms import TermBudget, expand_affordable, order_by_time
from absentia.trees.ensemble import TreeEnsemble
from absentia.trees.masked_trees import LeafWeights, MaskedTrees
from absentia.trees.paths import PRESENT
from random_trees import random_ensemble, random_rows

EXACT = 1e-11

seeds = st.integers(0, 2**32 - 1)


class Case:
    """A random ensemble on a sample with some stand-ins, and players that may hold several columns, or none."""

    def __init__(self, seed: int, outputs: int = 1, draws: int = 3) -> None:
        random = np.random.default_rng(seed)
        columns = int(random.integers(1, 9))
        self.ensemble = random_ensemble(
            random, columns, int(random.integers(1, 6)), int(random.integers(1, 6)), outputs
        )
        self.sample = random_rows(random, 1, columns)
        self.stand_ins = random_rows(random, draws, columns)
        self.player = np.sort(random.integers(-1, columns, size=columns))
        self.player = np.unique(self.player, return_inverse=True)[1] - int(random.integers(2))
        self.player_count = max(1, int(self.player.max()) + 1)
        self.trees = MaskedTrees(
            self.ensemble,
            self.ensemble.codes(self.sample),
            self.ensemble.codes(self.stand_ins)[None],
            self.player,
            self.player_count,
        )

    def masked_outputs(self, coalitions: np.ndarray) -> np.ndarray:
        """Predict the masked rows themselves: draws × coalitions × outputs."""
        present = np.where(self.player < 0, True, coalitions[:, self.player])
        rows = np.where(present[None], self.sample[0], self.stand_ins[:, None])
        flat = self.ensemble.predict(rows.reshape(-1, rows.shape[-1]))
        return flat.reshape(*rows.shape[:2], -1)

    def table(self) -> ab.ValueTable:
        """Return all values of the first output, averaged over the stand-ins."""
        outputs = self.masked_outputs(enumerate_coalitions(self.player_count).numpy())
        return ab.ValueTable(outputs[..., 0].mean(0))

    def weights(self) -> LeafWeights:
        """Return the weights of the first output."""
        first = np.eye(self.ensemble.outputs)[0]
        return LeafWeights(self.ensemble.leaf_weights(first)[None], self.ensemble.base[:1], np.zeros(1, int))


@given(seeds)
def test_shapley_values_are_those_of_all_coalitions(seed: int) -> None:
    case = Case(seed)
    expected = ab.shapley(case.table()).values.numpy()
    np.testing.assert_allclose(case.trees.shapley(case.weights()), expected, atol=EXACT)


@given(seeds)
def test_banzhaf_values_are_those_of_all_coalitions(seed: int) -> None:
    case = Case(seed)
    expected = ab.banzhaf(case.table()).values.numpy()
    np.testing.assert_allclose(case.trees.banzhaf(case.weights()), expected, atol=EXACT)


@given(seeds)
def test_order_wise_values_are_those_of_all_coalitions(seed: int) -> None:
    case = Case(seed)
    expected = ab.order_shapley(case.table()).values.numpy()
    np.testing.assert_allclose(case.trees.order_shapley(case.weights()), expected, atol=EXACT)


@given(seeds)
def test_terms_are_the_effects_of_all_coalitions(seed: int) -> None:
    case = Case(seed)
    terms = case.trees.terms(case.weights(), 0)
    effects = np.zeros(2**case.player_count)
    numbers = (terms.members * 2 ** np.arange(case.player_count)).sum(1)
    assert len(np.unique(numbers)) == len(numbers)
    effects[numbers] = terms.effects
    np.testing.assert_allclose(effects, ab.harsanyi(case.table()).effects[0].numpy(), atol=EXACT)


@given(seeds, st.sampled_from([TermBudget(terms=8, bytes=1e9), TermBudget(terms=1e9, bytes=500)]))
def test_low_orders_stay_exact_beyond_the_budget(seed: int, budget: TermBudget) -> None:
    case = Case(seed)
    every = case.trees.terms(case.weights(), 0)
    counts = case.trees.count_terms(0)[None]
    order = order_by_time(case.trees, budget)
    assert order <= 2 or counts[0, : order + 1].sum() <= budget.terms
    some = expand_affordable(case.trees, case.weights(), budget, order)
    terms = some.by_sample[0]
    by_set = {tuple(row): effect for row, effect in zip(every.members, every.effects, strict=True)}
    highest_order = case.player_count if some.highest_order is None else some.highest_order
    low = {members for members in by_set if sum(members) <= highest_order}
    assert {tuple(row) for row in terms.members} == low
    for members, effect in zip(terms.members, terms.effects, strict=True):
        assert effect == pytest.approx(by_set[tuple(members)], abs=EXACT)
    has_higher = any(sum(members) > highest_order for members in by_set)
    assert some.left_out > 0 or not has_higher
    assert some.left_out == counts[0, highest_order + 1 :].sum()


@pytest.mark.slow
@given(seeds)
def test_terms_are_counted_before_equal_sets_are_joined(seed: int) -> None:
    case = Case(seed)
    counts = np.zeros(case.trees.most_on_a_path + 1)
    for paths in case.trees.paths(0):
        start = 0
        for end in paths.ends:
            present = int((paths.states[start:end] == PRESENT).sum())
            absent = end - start - present
            for added in range(absent + 1):
                counts[present + added] += math.comb(absent, added)
            start = end
    np.testing.assert_array_equal(case.trees.count_terms(0), counts)


@given(seeds, st.sampled_from(["SII", "k-SII", "STII", "FSII", "BII", "FBII"]), st.integers(1, 3))
def test_indices_are_those_of_all_coalitions(seed: int, name: str, order: int) -> None:
    case = Case(seed)
    order = min(order, case.player_count)
    expected = ab.index(case.table(), name, order=order)
    weight = INDICES[name].weight
    terms = case.trees.indices(case.weights(), 0, weight, order)
    numbers = {tuple(row): effect for row, effect in zip(terms.members, terms.effects, strict=True)}
    assert len(numbers) == len(terms.effects)
    for row, effect in zip(expected.members.numpy(), expected.effects.numpy(), strict=True):
        assert numbers.pop(tuple(row), 0.0) == pytest.approx(effect, abs=EXACT)
    assert not numbers


@given(seeds, st.integers(1, 3))
def test_outputs_of_coalitions_are_those_of_masked_rows(seed: int, outputs: int) -> None:
    case = Case(seed, outputs)
    coalitions = enumerate_coalitions(case.player_count).numpy()
    np.testing.assert_allclose(case.trees.outputs(0, coalitions), case.masked_outputs(coalitions), atol=EXACT)


@given(seeds)
def test_ends_are_the_values_with_all_players_absent_and_present(seed: int) -> None:
    case = Case(seed)
    values = case.table().values[0]
    empty, full = case.trees.ends(case.weights())
    np.testing.assert_allclose([empty[0], full[0]], [values[0], values[-1]], atol=EXACT)


def deep_case(columns: int) -> tuple[MaskedTrees, LeafWeights, TreeEnsemble]:
    """Return 40 trees of depth 6 on many columns, with one sample and one stand-in."""
    random = np.random.default_rng(columns)
    ensemble = random_ensemble(random, columns, trees=40, depth=6, outputs=1)
    codes = ensemble.codes(random_rows(random, 2, columns))
    trees = MaskedTrees(ensemble, codes[:1], codes[None, 1:], np.arange(columns), columns)
    return trees, LeafWeights(ensemble.leaf_weights(np.ones(1))[None], ensemble.base, np.zeros(1, int)), ensemble


@pytest.mark.parametrize("columns", [63, 500])
def test_many_columns_add_up_and_share_their_effects(columns: int) -> None:
    trees, weights, _ = deep_case(columns)
    terms = trees.terms(weights, 0)
    empty, full = trees.ends(weights)
    assert terms.effects.sum() == pytest.approx(full[0])
    assert terms.effects[~terms.members.any(1)].sum() == pytest.approx(empty[0])
    listed = ab.Terms.listed(torch.from_numpy(terms.members), torch.from_numpy(terms.effects))
    np.testing.assert_allclose(listed.shapley().values.numpy(), trees.shapley(weights), atol=EXACT)
    by_order = trees.order_shapley(weights)
    np.testing.assert_allclose(by_order.mean(1), trees.shapley(weights), atol=EXACT)


def test_plain_python_gives_the_same_as_compiled_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    numba = pytest.importorskip("numba")
    trees, weights, _ = deep_case(70)
    compiled = trees.terms(weights, 0)
    shapley = trees.shapley(weights)
    monkeypatch.setattr(numba.config, "DISABLE_JIT", True)
    from absentia.trees import ensemble, joined_terms, masked_trees, packed_walk, paths

    for module in (ensemble, joined_terms, masked_trees, packed_walk, paths):
        for name, value in list(vars(module).items()):
            if hasattr(value, "py_func"):
                monkeypatch.setattr(module, name, value.py_func)
    plain = trees.terms(weights, 0)
    np.testing.assert_array_equal(plain.members, compiled.members)
    np.testing.assert_allclose(plain.effects, compiled.effects, atol=EXACT)
    np.testing.assert_allclose(trees.shapley(weights), shapley, atol=EXACT)


@settings(max_examples=20)
@given(seeds)
def test_a_column_that_equals_its_stand_in_gets_nothing(seed: int) -> None:
    case = Case(seed, draws=1)
    same = MaskedTrees(case.ensemble, case.trees.samples, case.trees.samples[None], case.player, case.player_count)
    assert not same.shapley(case.weights()).any()
    assert len(same.terms(case.weights(), 0).effects) == 1
