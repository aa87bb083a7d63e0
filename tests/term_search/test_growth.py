"""The growth of sets on games whose sets are known."""

import pytest
import torch

from absentia.term_search.features import Basis, features_of
from absentia.term_search.forward_selection import Path
from absentia.term_search.growth import Growth, grow_terms, stop_at_share, stop_by_information


def planted(players, basis, seed=0):
    """Some sets of players with effects, and coalitions of all sizes.

    In the Walsh basis they are single players and pairs, because larger sets show in none of their subsets.
    """
    largest = 4 if basis is Basis.HARSANYI else 2
    generator = torch.Generator().manual_seed(seed)
    sets = torch.zeros(9, players, dtype=torch.bool)
    for number in range(1, 9):
        sets[number, torch.randperm(players, generator=generator)[: 1 + number % largest]] = True
    effects = torch.tensor([0.5, 2.0, -1.5, 1.0, 3.0, -2.0, 1.0, -1.25, 2.5]).double()
    sizes = torch.randint(0, players + 1, (900, 1), generator=generator)
    coalitions = torch.rand(900, players, generator=generator).argsort(1).argsort(1) < sizes
    return sets, effects, coalitions, features_of(sets, coalitions, basis).double() @ effects


def as_sets(rows):
    return {tuple(row.nonzero().flatten().tolist()) for row in rows}


@pytest.mark.parametrize("basis", Basis)
def test_planted_sets_are_found_with_their_effects(basis):
    sets, effects, coalitions, values = planted(20, basis)
    found = grow_terms(coalitions, values, basis, Growth(), stop_by_information, prune=True)
    assert as_sets(found.sets) == as_sets(sets)
    for row in sets:
        effect = effects[(sets == row).all(1)].sum()  # a set may have been drawn twice
        place = (found.sets == row).all(1).nonzero()[0, 0]
        assert float(found.effects[place]) == pytest.approx(float(effect), abs=1e-5)
    torch.testing.assert_close(found.predict(coalitions), values, atol=1e-5, rtol=1e-5)


def test_noise_adds_no_sets():
    _, _, coalitions, values = planted(12, Basis.HARSANYI)
    noise = torch.randn(len(values), generator=torch.Generator().manual_seed(1)).double()
    found = grow_terms(coalitions, noise, Basis.HARSANYI, Growth(), stop_by_information, prune=True)
    assert len(found.sets) <= 3


def test_sets_are_no_larger_than_the_largest_order():
    _, _, coalitions, values = planted(20, Basis.HARSANYI)
    for order in (1, 2):
        growth = Growth(max_order=order)
        found = grow_terms(coalitions, values, Basis.HARSANYI, growth, stop_by_information, prune=False)
        assert int(found.sets.sum(1).max()) == order


def test_a_constant_is_a_single_term():
    _, _, coalitions, values = planted(8, Basis.HARSANYI)
    found = grow_terms(
        coalitions, torch.full_like(values, 2.0), Basis.HARSANYI, Growth(), stop_at_share(0.1), prune=False
    )
    assert as_sets(found.sets) == {()}
    assert float(found.effects[0]) == pytest.approx(2.0)


def test_a_share_stops_at_the_first_step_that_leaves_no_more():
    path = Path(torch.arange(4), torch.tensor([10.0, 4.0, 1.0, 0.5]).double())
    assert stop_at_share(0.4)(path, 100, 10) == 2
    assert stop_at_share(0.1)(path, 100, 10) == 3
    assert stop_at_share(0.001)(path, 100, 10) == 4
