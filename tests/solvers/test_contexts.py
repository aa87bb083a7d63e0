"""The context map against games with known patterns."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from absentia import AbsentiaError, ValueTable, context_map, explain
from absentia.coalitions import coalition_numbers


def patterns_game(players, *patterns):
    """A sum of products over sets of players; a negative number stands for the absence of a player."""

    def value(coalitions):
        total = torch.zeros(len(coalitions), dtype=torch.float64)
        for weight, members in patterns:
            parts = [coalitions[:, m] if m >= 0 else ~coalitions[:, ~m] for m in members]
            total += weight * torch.stack(parts).all(0)
        return total[None]

    class Patterns:
        samples = 1
        names = tuple(f"p{i}" for i in range(players))

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
    assert found.kind in [f"shares of the contexts of {name} (errors unknown)" for name in ("p2", "p4")]
    assert found.evaluations >= 5 * 100 * 2
    torch.testing.assert_close(found.values, context_map(game).values)


def test_the_context_map_states_that_its_errors_are_unknown():
    pytest.importorskip("matplotlib")
    found = context_map(patterns_game(5, (1.0, (0, 1)), (-3.0, (2, 4))), 2)
    assert found.errors.isnan().all()
    assert "(errors unknown)" in repr(found)
    assert "±" not in repr(found)
    explanation = replace(explain(lambda rows: rows.sum(1), torch.ones(1, 5), absence=0.0), shapley=found)
    assert explanation.to_frame()["error"].isna().all()
    assert explanation.to_shap().error_std is None
    for kind in ("bars", "waterfall", "beeswarm", "overview"):
        axes = explanation.plot(kind=kind).axes
        texts = [text for one in axes for text in (one.get_title(), one.get_xlabel())]
        assert not any("±" in text for text in texts)
        assert kind == "beeswarm" or any("(errors unknown)" in text for text in texts)


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


class Asked:
    """A game with values at random, or those of another game, that records the coalitions it is asked for."""

    samples = 1

    def __init__(self, players, seed=0, value=None, draws=1):
        self.names = tuple(f"p{i}" for i in range(players))
        self.draws = draws
        table = torch.randn(2**players if value is None else 1, generator=torch.Generator().manual_seed(seed))
        self.value = value or (lambda coalitions: table.double()[coalition_numbers(coalitions)])
        self.asked = []

    def __call__(self, coalitions):
        self.asked.append(coalitions)
        return self.value(coalitions)[None]

    def benefits(self, player, contexts):
        own = torch.arange(len(self.names)) == player
        return (self.value(contexts | own) - self.value(contexts & ~own)).abs()


@given(st.integers(2, 7), st.integers(0, 50), st.data())
def test_no_player_more_or_less_makes_a_context_better(players, seed, data):
    game = Asked(players, seed)
    player = data.draw(st.integers(0, players - 1))
    found = context_map(game, player, drawn=3, grown=1, seed=seed).values
    context = found == 1.0
    assert (context | (found == 0.0)).all()
    assert not context[0, player]
    best = game.benefits(player, context)
    others = context ^ torch.eye(players, dtype=torch.bool)[torch.arange(players) != player]
    assert (game.benefits(player, others) < best).all()
    tried = torch.cat(game.asked)
    grown = tried[6:8]  # after three drawn contexts, each with and without the player
    assert best >= game.benefits(player, grown).max()


@pytest.mark.parametrize(("players", "more"), [(5, 1), (19, 1), (20, 2), (39, 3)])
def test_a_tenth_of_all_players_is_added_to_the_best_drawn_context(players, more):
    weights = torch.rand(players, generator=torch.Generator().manual_seed(1)).double()
    game = Asked(players, value=lambda coalitions: coalitions[:, 2] * (1 + coalitions.double() @ weights))
    context_map(game, 2, drawn=40, grown=12, seed=5)
    drawn, grown = game.asked[:2]
    having, without = drawn.chunk(2)
    assert drawn.shape == (80, players)
    assert having[:, 2].all()
    assert torch.equal(without, having & (torch.arange(players) != 2))
    assert 0.4 < without.double().sum() / (40 * (players - 1)) < 0.6
    best = without[game.benefits(2, without).argmax()]
    contexts = grown.chunk(2)[1]
    assert len(contexts) == 12
    assert not (best & ~contexts).any()
    assert ((contexts & ~best).sum(1) == min(more, players - 1 - int(best.sum()))).all()
    assert players == 5 or (contexts & ~best).any(0).sum() > more  # not the same ones for all


def test_every_evaluation_of_a_context_counts_with_its_draws():
    for draws in (1, 3):
        game = Asked(6, draws=draws)
        found = context_map(game, drawn=7, grown=4)
        assert found.evaluations == draws * sum(len(asked) for asked in game.asked)
        assert [len(asked) for asked in game.asked[:7]] == [14] * 6 + [8]
        assert found.errors.isnan().all()
        assert (found.values * 4 % 1 == 0).all()
        assert found.readout == "given"


def test_the_player_of_the_context_map_has_the_largest_benefit_in_a_drawn_context():
    for seed in range(6):
        game = Asked(5, seed)
        found = context_map(game, drawn=6, grown=1, seed=seed)
        strengths = [game.benefits(i, game.asked[i]).max() for i in range(5)]
        assert found.kind == f"shares of the contexts of p{int(torch.stack(strengths).argmax())} (errors unknown)"


def test_another_seed_draws_other_contexts():
    first, again, other = Asked(8), Asked(8), Asked(8)
    for game, seed in ((first, 1), (again, 1), (other, 2)):
        context_map(game, 0, seed=seed)
    assert torch.equal(first.asked[0], again.asked[0])
    assert first.asked[0].shape == other.asked[0].shape == (200, 8)
    assert not torch.equal(first.asked[0], other.asked[0])
    assert first.asked[1].shape == (40, 8)


def test_a_game_of_two_players_has_a_context_map_and_one_of_one_has_none():
    game = ValueTable([0.0, 0.0, 0.0, 1.0])
    assert context_map(game, 1).values.tolist() == [[1.0, 0.0]]
    assert context_map(game, 0).values.tolist() == [[0.0, 1.0]]
    message = r"^game must have one sample and two players or more\. Got 1 and 1 instead\.$"
    with pytest.raises(AbsentiaError, match=message):
        context_map(ValueTable([0.0, 1.0]))
    with pytest.raises(AbsentiaError, match=r"Got 2 and 2 instead"):
        context_map(ValueTable(torch.zeros(2, 4)))


def test_least_contexts_of_the_context_map():
    game = Asked(4)
    assert context_map(game, 0, drawn=1, grown=1).values.shape == (1, 4)
    for arguments in ({"drawn": 0}, {"grown": 0}):
        with pytest.raises(AbsentiaError, match=r"^drawn and grown must be at least 1\. Got 0 instead\.$"):
            context_map(game, 0, **arguments)
    with pytest.raises(AbsentiaError, match=r"^player must lie between 0 and 3\. Got -1 instead\.$"):
        context_map(game, -1)


def test_the_context_map_refuses_values_that_are_not_finite():
    game = Asked(4, value=lambda coalitions: torch.where(coalitions.all(1), torch.inf, 1.0).double())
    with pytest.raises(AbsentiaError, match=r"values of the game must be finite\. Got inf"):
        context_map(game, 0)
