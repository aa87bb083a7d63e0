"""The interactions that a page shows."""

from dataclasses import replace

import pytest
import torch

import absentia as ab
import small_results as results
from absentia.coalitions import coalition_sizes
from absentia.report import rendering
from absentia.report.shown_interactions import (
    KEPT_UP_TO_EACH_ORDER,
    curve_counts,
    interactions_by_sample,
    shown_effects,
    sparsity_curve,
    strongest,
)


def test_the_strongest_effects_up_to_each_order_are_kept():
    players = 8
    effects = results.draw(2, 2**players)
    for row in effects.tolist():
        kept = strongest(torch.tensor(row), coalition_sizes(players))
        sets = sorted(range(1, 2**players), key=lambda number: -abs(row[number]))
        wanted = set()
        for order in range(1, players + 1):
            wanted |= set([number for number in sets if number.bit_count() <= order][:KEPT_UP_TO_EACH_ORDER])
        assert kept.tolist() == [number for number in sets if number in wanted]


def test_a_sparsity_curve_is_the_error_of_values_rebuilt_by_hand():
    table = ab.ValueTable(results.draw(2, 16))
    interactions = ab.harsanyi(table)
    curve = sparsity_curve(interactions)
    for sample in range(2):
        effects = interactions.effects[sample].tolist()
        values = table.values[sample]
        ranked = sorted(range(1, 16), key=lambda number: -abs(effects[number]))
        for place, count in enumerate(curve_counts(4)):
            kept = {0, *ranked[:count]}
            rebuilt = [sum(effects[part] for part in kept if part & number == part) for number in range(16)]
            error = (torch.tensor(rebuilt, dtype=torch.float64) - values).square().mean().sqrt() / values.std(
                correction=0
            )
            assert float(curve[sample, place]) == pytest.approx(float(error), abs=1e-9)


def test_effects_that_rounding_could_have_made_are_marked():
    interactions = ab.harsanyi(ab.ValueTable([0.0, 1.0, 1.0, 2.0 + 1e-14]))
    (found,) = interactions_by_sample(replace(interactions, noise=torch.tensor([1e-10], dtype=torch.float64)), 1)
    assert [found["effects"]["sets"][place] for place in found["effects"]["hollow"]] == [(0, 1)]


def test_sets_of_any_number_of_players_are_lists_of_their_numbers():
    effects = torch.tensor([9.0, 1.0, -3.0, 2e-7], dtype=torch.float64)
    terms = results.listed_terms([(), (0, 999), (53, 54, 55), (7,)], effects, players=1000, noise=1e-6)
    assert shown_effects(terms, 0) == {
        "sets": [(53, 54, 55), (0, 999), (7,)],
        "values": [-3, 1, 2e-7],
        "texts": ["−3", "+1", "+2e−07"],
        "hollow": [2],
    }


def test_the_strongest_sets_are_kept_if_there_is_no_room_for_all():
    sets = [(number, *range(20, 1019)) for number in range(15)]
    shown = shown_effects(results.listed_terms(sets, torch.linspace(1, 2, 15), players=1019), 0)
    assert shown["sets"] == sets[:6:-1]  # the page holds up to 8,640 players of all sets
    assert len(shown["values"]) == len(shown["texts"]) == 8


def test_what_is_kept_of_a_small_game():
    assert strongest(torch.tensor([9.0, 1.0, -2.0, 0.5]), coalition_sizes(2)).tolist() == [2, 1, 3]
    assert curve_counts(3) == [1, 2, 4, 7]
    assert sparsity_curve(ab.harsanyi(ab.ValueTable([0.0, 0.0, 0.0, 1.0]))).tolist() == [[0, 0, 0]]
    assert rendering.json_block({"name": "</script>"}) == r'{"name":"\u003c/script\u003e"}'
