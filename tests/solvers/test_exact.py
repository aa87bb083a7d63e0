"""Harsanyi interactions against their definition and the theorems of the paper."""

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from absentia import Baseline, MaskedModel, Players, ValueTable, harsanyi, shapley, value_table
from absentia.coalitions import coalition_sizes, enumerate_coalitions
from known_games import cnn, harsanyi_by_definition, mlp, product, subsets


def random_table(players, samples=1, seed=0):
    return ValueTable(torch.randn(samples, 2**players, generator=torch.Generator().manual_seed(seed)).double())


@given(st.integers(1, 6), st.integers(0, 2**31))
def test_effects_are_the_definition(players, seed):
    table = random_table(players, samples=2, seed=seed)
    expected = torch.tensor([harsanyi_by_definition(row) for row in table.values.tolist()]).double()
    assert torch.allclose(harsanyi(table).effects, expected)


@given(st.integers(1, 7), st.integers(0, 2**31))
def test_theorem_1_effects_add_up_to_every_value(players, seed):
    table = random_table(players, seed=seed)
    effects = harsanyi(table).effects[0]
    rows = enumerate_coalitions(players)
    for value, row in zip(table.values[0], rows, strict=True):
        inside = ~(rows & ~row).any(1)
        assert effects[inside].sum().item() == pytest.approx(value.item(), abs=1e-9)


@pytest.mark.parametrize("model", [mlp(6), cnn()], ids=["mlp", "cnn"])
def test_theorems_1_and_2_on_networks(model):
    if isinstance(model[0], torch.nn.Conv2d):
        x = torch.rand(2, 1, 8, 8).double()
        players = Players.grid((1, 8, 8), cells=(2, 3))
    else:
        x = torch.randn(2, 6).double()
        players = None
    game = MaskedModel(model, x, players=players, absence=Baseline(0.2))
    effects = harsanyi(game)
    table = value_table(game)
    assert torch.allclose(effects.reconstruct(), table.values)
    assert torch.allclose(effects.shapley().values, shapley(table).values)


def test_the_worked_example_of_section_3_1():
    w = 0.7
    for baseline, expected_effects, expected_shapley in [
        ([2.0, 3.0], [0, 0, 0, w], [w / 2, w / 2]),
        ([1.0, 1.0], [2 * w, -4 * w, -3 * w, 6 * w], [-w, 0]),
    ]:
        game = MaskedModel(product(w, [2.0, 3.0]), torch.tensor([[3.0, 4.0]]).double(), absence=Baseline(baseline))
        effects = harsanyi(game)
        assert effects.effects[0].tolist() == pytest.approx(expected_effects)
        assert effects.shapley().values[0].tolist() == pytest.approx(expected_shapley, abs=1e-12)


@given(st.integers(1, 6), st.integers(0, 2), st.data())
def test_remark_2_and_theorems_3_and_4_on_products(size, idle, data):
    """w Π(x − δ) has one interaction under true baselines; m' wrong ones make C(m', k − |S| + m') of each order k."""
    wrong = data.draw(st.integers(0, size))
    generator = torch.Generator().manual_seed(data.draw(st.integers(0, 2**31)))
    players = size + idle
    deltas = torch.rand(players, generator=generator).double()
    x = deltas + 1 + torch.rand(players, generator=generator).double()
    baseline = deltas.clone()
    baseline[:wrong] -= 0.5 + torch.rand(wrong, generator=generator).double()

    def model(rows):
        return 1.5 * (rows - deltas)[:, :size].prod(1)

    effects = harsanyi(MaskedModel(model, x[None], absence=Baseline(baseline)))
    found = effects.salient(tau=1e-9)[0]
    sizes = coalition_sizes(players)
    for order in range(players + 1):
        expected = math.comb(wrong, order - size + wrong) if order >= size - wrong and order <= size else 0
        assert int(found[sizes == order].sum()) == expected
    assert int(found.sum()) == 2**wrong
    if wrong == 0:
        assert effects.effects[0, 2**size - 1].item() == pytest.approx(model(x[None]).item())


SIGMOID = (lambda x: torch.sigmoid(5 * x[:, 0] * x[:, 1] * x[:, 2] + 5 * x[:, 3] - 7.5), [1.0, 1, 1, 1])
FIFTH = (lambda x: x.prod(1), [1.0, 1, 1, 1, 1])
CUBE = (lambda x: x[:, 0] * (x[:, 1] + x[:, 2] - x[:, 3]) ** 3, [1.0, 1, 1, 0])


def order_ratios(function, baseline):
    """The r_m of the paper's table of incorrect baseline values, by the definition."""
    model, x = function
    n = len(x)
    values = {}
    for coalition in subsets(range(n)):
        row = [x[i] if i in coalition else baseline[i] for i in range(n)]
        values[coalition] = model(torch.tensor([row], dtype=torch.float64)).item()
    strength = [0.0] * (n + 1)
    for outer in subsets(range(n)):
        effect = sum((-1) ** (len(outer) - len(inner)) * values[inner] for inner in subsets(outer))
        strength[len(outer)] += abs(effect)
    return [0.0] + [part / sum(strength[1:]) for part in strength[1:]]


@pytest.mark.parametrize(
    ("function", "truth", "incorrect"),
    [
        (FIFTH, [0, 0, 0, 0, 0], [[0.5] * 5, [0.1, 0.2, 0.6, 0.0, 0.1], [0.7, 0.1, 0.3, 0.5, 0.1]]),
        (SIGMOID, [0, 0, 0, 0], [[0.5] * 4, [0.6, 0.4, 0.7, 0.3], [0.3, 0.6, 0.5, 0.8]]),
        (CUBE, [0, 0, 0, 1], [[0.5] * 4, [0.2, 0.3, 0.6, 0.1], [1.0, 0.3, 1.0, 0.1]]),
    ],
    ids=["product", "sigmoid", "cube"],
)
def test_incorrect_baselines_turn_high_orders_into_low_ones(function, truth, incorrect):
    def profile(baseline):
        game = MaskedModel(function[0], torch.tensor([function[1]]).double(), absence=Baseline(baseline))
        return harsanyi(game).by_order().ratios[0].tolist()

    for baseline in (truth, *incorrect):
        assert profile(baseline) == pytest.approx(order_ratios(function, baseline), abs=1e-12)
    half = len(truth) // 2
    assert all(sum(profile(baseline)[: half + 1]) > sum(profile(truth)[: half + 1]) for baseline in incorrect)
    assert all(profile(baseline)[-1] < profile(truth)[-1] for baseline in incorrect)


def test_shapley_from_effects_equals_shapley_from_values():
    table = random_table(7, samples=3)
    assert torch.allclose(harsanyi(table).shapley().values, shapley(table).values)


def test_all_pairs_of_sets_agree_on_a_game_of_two():
    for values in itertools.product([0.0, 1.0, -2.0], repeat=4):
        effects = harsanyi(ValueTable(list(values))).effects[0].tolist()
        a, b, c, d = values
        assert effects == [a, b - a, c - a, d - b - c + a]


def test_what_is_known_of_the_values_is_handed_on():
    noise = torch.tensor([0.5]).double()
    table = ValueTable([0.0, 1.0, 2.0, 5.0], names=["a", "b"], readout="a score", noise=noise, evaluations=40)
    effects = harsanyi(table)
    assert (effects.names, effects.readout, effects.evaluations) == (("a", "b"), "a score", 40)
    assert torch.equal(effects.noise, noise)
    values = effects.shapley()
    assert (values.names, values.readout, values.evaluations) == (("a", "b"), "a score", 40)
    assert values.kind == "Shapley values"
    assert values.errors.tolist() == [[0.0, 0.0]]
