"""Sets that were chosen in place of others are exchanged for these, and sets that explain only noise are dropped."""

import pytest
import torch

from absentia.term_search.exchange import SetExchange
from absentia.term_search.features import Basis, features_of
from absentia.term_search.growth import ChosenTerms

PLAYERS = 12


def rows_of(*sets):
    rows = torch.zeros(len(sets), PLAYERS, dtype=torch.bool)
    for row, members in zip(rows, sets, strict=True):
        row[list(members)] = True
    return rows


def values_of(sets, effects, noise=0.0, rows=600):
    generator = torch.Generator().manual_seed(0)
    sizes = torch.randint(0, PLAYERS + 1, (rows, 1), generator=generator)
    coalitions = torch.rand(rows, PLAYERS, generator=generator).argsort(1).argsort(1) < sizes
    values = features_of(sets, coalitions, Basis.HARSANYI).double() @ torch.tensor(effects).double()
    return coalitions, values + noise * torch.randn(rows, generator=generator).double()


def improved(coalitions, values, start, **options):
    chosen = ChosenTerms(Basis.HARSANYI, start, torch.zeros(len(start)).double())
    exchange = SetExchange(coalitions, values, chosen, **options)
    exchange.improve(most_terms=20)
    return exchange


def as_sets(rows):
    return {tuple(row.nonzero().flatten().tolist()) for row in rows}


@pytest.mark.parametrize("substitutes", [[(1, 2)], [(1, 2, 3, 4)], [(1, 2, 5)], [(1,), (2,), (3,), (7,)]])
def test_substitutes_are_exchanged_for_the_set_itself(substitutes):
    sets = rows_of((), (0,), (1, 2, 3))
    coalitions, values = values_of(sets, [0.5, 1.0, 2.0], noise=0.3)
    exchange = improved(coalitions, values, rows_of((), (0,), *substitutes))
    assert as_sets(exchange.terms.sets) == as_sets(sets)
    torch.testing.assert_close(
        exchange.terms.effects.sort().values, torch.tensor([0.5, 1, 2]).double(), atol=0.2, rtol=0
    )


def test_noise_keeps_only_the_empty_set():
    coalitions, values = values_of(rows_of(()), [0.0], noise=1.0)
    exchange = improved(coalitions, values, rows_of((), (0,), (1, 2), (3, 4, 5), (2, 6)))
    assert as_sets(exchange.terms.sets) == {()}


def test_sets_are_no_larger_than_the_largest_order():
    coalitions, values = values_of(rows_of((), (1, 2, 3)), [0.0, 2.0], noise=0.1)
    exchange = improved(coalitions, values, rows_of((), (1,)), max_order=2)
    assert int(exchange.terms.sets.sum(1).max()) == 2


def test_errors_cover_effects_over_draws_of_the_noise():
    sets = rows_of((), (0,), (1, 2, 3), (4, 5))
    effects = torch.tensor([0.5, 1.0, 2.0, -1.0]).double()
    coalitions, values = values_of(sets, effects.tolist())
    scores = []
    for seed in range(60):
        noise = 0.5 * torch.randn(len(values), generator=torch.Generator().manual_seed(seed)).double()
        exchange = SetExchange(coalitions, values + noise, ChosenTerms(Basis.HARSANYI, sets, effects))
        scores.append((exchange.terms.effects - effects) / exchange.covariance().diagonal().sqrt())
    covered = (torch.stack(scores).abs() <= 1.96).double().mean()
    assert 0.9 <= float(covered) <= 0.99


def test_errors_are_large_where_another_set_explains_the_values_as_well():
    sets = rows_of((), (1, 2))
    coalitions, values = values_of(sets, [0.0, 1.0], noise=1.0)
    never_apart = coalitions.clone()
    never_apart[:, 3] = never_apart[:, 2]  # so (1, 3) is the same feature
    terms = ChosenTerms(Basis.HARSANYI, sets, torch.zeros(2).double())
    known = SetExchange(coalitions, values, terms).covariance()[1, 1].sqrt()
    in_doubt = SetExchange(never_apart, values, terms)
    assert float(in_doubt.covariance()[1, 1].sqrt()) > 2 * float(known)
    assert float(in_doubt.covariance()[1, 1].sqrt()) > 0.6 * float(in_doubt.terms.effects[1])
