"""What the page on extending adds: each thing holds to its definition, and a word can be registered."""

import re
from itertools import combinations
from pathlib import Path

import pytest
import torch

import absentia as ab
from absentia.absences import Absence, Fill
from absentia.absences.words import WORDS, Request, named_absence
from absentia.indices import INDICES, InteractionIndex
from known_games import harsanyi_by_definition, number, subsets

PAGE = Path(__file__).parents[1] / "docs" / "extending.md"
ROWS = torch.rand(40, 3, generator=torch.Generator().manual_seed(0))


def file_of_page(name):
    """Run a file that the page shows, and return its names."""
    code = re.search(rf'^```python title="{name}"\n(.*?)^```$', PAGE.read_text(), re.MULTILINE | re.DOTALL)
    # Dataclasses look their module up by its name.
    namespace = {"__name__": __name__}
    exec(compile(code[1], name, "exec"), namespace)
    return namespace


def test_the_index_is_what_each_player_adds_to_the_others():
    leave_one_out = file_of_page("leave_one_out.py")["leave_one_out"]
    table = ab.ValueTable(torch.randn(2, 8, generator=torch.Generator().manual_seed(0)))
    everyone = frozenset(range(3))
    for sample in range(2):
        values = table.values[sample].tolist()
        expected = [values[number(everyone)] - values[number(everyone - {player})] for player in range(3)]
        assert leave_one_out(table).values[sample].tolist() == pytest.approx(expected)


def test_the_interaction_index_is_what_a_set_adds_to_all_others(monkeypatch):
    monkeypatch.setitem(INDICES, "Co-Möbius", InteractionIndex(file_of_page("co_moebius.py")["co_moebius"]))
    table = ab.ValueTable(torch.randn(2, 8, generator=torch.Generator().manual_seed(0)))
    terms = ab.index(table, "Co-Möbius", order=3)
    everyone = frozenset(range(3))
    for sample in range(2):
        values = table.values[sample].tolist()
        own = terms.of_sample(sample)
        for members, effect in zip(own.sets, own.effects.tolist(), strict=True):
            players = members.nonzero().flatten().tolist()
            derivative = sum(
                (-1) ** len(absent) * values[number(everyone - set(absent))] for absent in subsets(players)
            )
            assert effect == pytest.approx(derivative)


def test_the_solver_finds_the_effects_of_games_without_higher_orders():
    pairs = file_of_page("pairs.py")["pairs"]
    effects = torch.zeros(2, 16, dtype=torch.float64)
    low_orders = [0, *(2**player for player in range(4)), *(2**i + 2**j for i, j in combinations(range(4), 2))]
    effects[:, low_orders] = torch.randn(2, len(low_orders), generator=torch.Generator().manual_seed(1)).double()
    game = ab.ValueTable(ab.zeta(effects))
    terms = pairs(game)
    assert terms.fidelity.tolist() == pytest.approx([1, 1])
    torch.testing.assert_close(terms.predict(ab.enumerate_coalitions(4)), game.values)
    for sample in range(2):
        by_definition = harsanyi_by_definition(game.values[sample].tolist())
        own = terms.of_sample(sample)
        places = [number(members.nonzero().flatten().tolist()) for members in own.sets]
        assert own.effects.tolist() == pytest.approx([by_definition[place] for place in places], abs=1e-9)


def test_the_absence_puts_quartiles_in():
    quartiles = file_of_page("quartiles.py")["Quartiles"].of(ROWS)
    fill = quartiles.bind(ROWS[:2])
    assert isinstance(quartiles, Absence)
    assert isinstance(fill, Fill)
    masked = fill(slice(None), torch.tensor([[[False, True, True]]]))
    assert torch.equal(masked[0, 0, :, 0], quartiles.values[:, 0])
    assert torch.equal(masked[1, 0, :, 1:], ROWS[1, 1:].expand(3, 2))
    with pytest.raises(ab.AbsentiaError, match="data must have rows of the shape of one sample"):
        quartiles.bind(ROWS[:, :2])


def test_the_readout_is_the_lead_over_the_other_classes():
    lead = file_of_page("lead.py")["Lead"](1)
    output = torch.tensor([[1.0, 4.0, 2.0], [5.0, 1.0, 0.0]])
    assert isinstance(lead, ab.Readout)
    assert lead(output, torch.tensor([0, 1])).tolist() == [2.0, -4.0]
    with pytest.raises(ab.AbsentiaError, match="a column for class 1"):
        lead.check(output[:, :1], 2)


def test_a_word_can_be_registered(monkeypatch):
    requests = []

    def largest(request: Request) -> Absence:
        requests.append(request)
        return ab.Baseline(request.rows.amax(0))

    monkeypatch.setitem(WORDS, "largest", largest)
    assert torch.equal(named_absence("largest", ROWS).values, ROWS.amax(0))
    named_absence("largest:3", ROWS, seed=4)
    assert [request.number for request in requests] == [None, 3]
    assert requests[1].seed == 4
    with pytest.raises(ab.AbsentiaError, match="The absence 'largest' is computed from data"):
        named_absence("largest")
    with pytest.raises(ab.AbsentiaError, match=r"one of zero, .*, largest, learned"):
        named_absence("smallest", ROWS)
