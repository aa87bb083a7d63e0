import numpy as np
import pytest
import torch

import absentia as ab
from absentia import AbsentiaError, Game, ValueTable, shapley, value_table
from absentia.coalitions import enumerate_coalitions
from typechecker import unchecked


class Counting:
    """A game of the user's own: the number of players present, squared, times the sample's number."""

    samples = 2
    names = ("a", "b", "c")

    def __call__(self, coalitions):
        return coalitions.sum(1).double() ** 2 * torch.tensor([[1.0], [2.0]])


class Many:
    samples = 1

    def __init__(self, players):
        self.names = tuple(str(player) for player in range(players))

    def __call__(self, coalitions):
        return coalitions.double().sum(1)[None]


def test_a_game_of_the_users_own_is_tabulated():
    table = value_table(Counting())
    assert isinstance(table, Game)
    assert table.names == ("a", "b", "c")
    assert table.values.tolist()[1] == [0, 2, 2, 8, 2, 8, 8, 18]
    assert table.evaluations == 16


def test_what_a_game_of_the_users_own_holds_is_its_own_business():
    game = Counting()
    game.table = [1, 2, 3]  # no way to tabulate
    assert torch.equal(value_table(game).values, value_table(Counting()).values)


def test_many_coalitions_are_asked_for_in_parts():
    table = value_table(Many(16))
    assert torch.equal(table.values[0], enumerate_coalitions(16).sum(1).double())


def test_a_table_is_its_own_table():
    table = ValueTable([0.0, 1.0])
    assert value_table(table) is table


@pytest.mark.parametrize("values", [[1.0, 2.0], [[1.0, 2.0]], torch.tensor([1.0, 2.0]), np.array([[1.0, 2.0]])])
def test_values_may_be_given_as_list_tensor_or_array(values):
    table = ValueTable(values)
    assert table.values.tolist() == [[1.0, 2.0]]
    assert table.values.dtype == torch.float64


def test_values_are_looked_up():
    values = torch.randn(3, 16, dtype=torch.float64)
    table = ValueTable(values)
    rows = enumerate_coalitions(4)[[5, 0, 15]]
    assert torch.equal(table(rows), values[:, [5, 0, 15]])


def test_rounding_noise_follows_the_type_of_the_values():
    single = ValueTable(torch.tensor([1.0, -8.0], dtype=torch.float32))
    double = ValueTable(torch.tensor([1.0, -8.0], dtype=torch.float64))
    assert single.noise.item() == pytest.approx(4 * 8 * 2**-23)
    assert double.noise.item() == pytest.approx(4 * 8 * 2**-52)


def test_more_players_than_the_bound_are_refused_with_what_to_do_instead():
    with pytest.raises(AbsentiaError) as caught:
        ab.order_marginals(Many(25))
    sentence = str(caught.value)
    assert "players must be at most 24" in sentence
    assert "Got 25 instead, which would take 1 × 2^25 = 3.4e+07 values, 0.25 GiB" in sentence
    assert "by shapley, index or order_marginals(game, evaluations=…)" in sentence
    assert "value_table(game, max_players=25)" in sentence
    # The ways out that it names.
    shapley(Many(25), evaluations=500)
    ab.order_marginals(Many(25), orders=[0], evaluations=200)


def test_the_bound_can_be_moved():
    with pytest.raises(AbsentiaError, match="at most 3"):
        value_table(Many(4), max_players=3)
    assert value_table(Many(4), max_players=4).samples == 1


def test_too_many_samples_are_refused_before_memory_runs_out():
    class Wide(Many):
        samples = 2**17

    with pytest.raises(AbsentiaError, match=r"x must hold fewer samples .* Explain 32768 at a time"):
        value_table(Wide(14))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: ValueTable([1.0, 2.0, 3.0]), "values must have 2ⁿ entries"),
        (lambda: ValueTable(torch.zeros(0, 4)), r"values must have shape \(2ⁿ,\) or \(samples, 2ⁿ\)"),
        (lambda: ValueTable(torch.zeros(2, 2, 2)), "values must have shape"),
        (lambda: ValueTable([0.0, float("nan")]), r"values must be finite. Got nan for sample 0 with players \[0\]"),
        (lambda: ValueTable([0.0, 1.0], names=["a", "b"]), "names must name each of the 1 players. Got 2"),
        (lambda: ValueTable([0.0, 1.0])(torch.zeros(1, 2, dtype=torch.bool)), "coalitions must be boolean"),
        (
            lambda: unchecked(ValueTable.__call__)(ValueTable([0.0, 1.0]), torch.zeros(1, 1)),
            r"coalitions must be boolean .* Got torch.float32",
        ),
    ],
)
def test_bad_input_gets_a_sentence(make, sentence):
    with pytest.raises(AbsentiaError, match=sentence):
        make()


@pytest.mark.parametrize("values", [[1e308, -1e308, 1e308, -1e308], [0.0, 8e307, -8e307, 1e308]])
def test_values_whose_sums_would_be_infinite_are_refused(values):
    with pytest.raises(AbsentiaError, match=r"values must be small enough for sums over all coalitions. Got 1e\+308"):
        ab.ValueTable(values)


WRONG_VALUES = {
    "one axis": lambda coalitions: coalitions.sum(1).double(),
    "a list": lambda coalitions: coalitions.sum(1).tolist(),
    "too many": lambda coalitions: coalitions.double()[None],
}
USES = {
    "exact": ab.shapley,
    "sampled": lambda game: ab.shapley(game, evaluations=26),
    "contexts": lambda game: ab.context_map(game, 0),
}


@pytest.mark.parametrize("values", WRONG_VALUES.values(), ids=WRONG_VALUES)
@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_game_returns_a_number_for_each_coalition(values, use):
    class Mine:
        samples = 1
        names = tuple("abcdef")

        def __call__(self, coalitions):
            return values(coalitions)

    with pytest.raises(ab.AbsentiaError, match=r"game must return a tensor of shape"):
        use(Mine())
