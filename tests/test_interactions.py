import itertools
import math
import sys
from copy import deepcopy
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from absentia import (
    AbsentiaError,
    Baseline,
    LogOdds,
    MaskedModel,
    Output,
    Players,
    Probability,
    ValueTable,
    audit,
    from_numpy,
    harsanyi,
    shapley,
    value_table,
)  # fmt: skip
from absentia.coalitions import coalition_sizes, enumerate_coalitions
from absentia.terms import Interactions
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


@pytest.mark.parametrize("offset", [0.0, 100.0])
@pytest.mark.parametrize("players", [5, 10])
@pytest.mark.parametrize("readout", [LogOdds(0), Output(0), Probability(0)], ids=str)
def test_errors_of_single_precision_lie_below_the_floor(readout, players, offset):
    """At all orders, against double precision; logits with an offset have larger errors than their differences."""
    for seed in range(4):
        torch.manual_seed(seed)
        layers = [torch.nn.Linear(players, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64), torch.nn.ReLU()]
        model = torch.nn.Sequential(*layers, torch.nn.Linear(64, 3))
        with torch.no_grad():
            model[-1].bias += offset
        x = torch.randn(2, players)
        single = harsanyi(MaskedModel(model, x, absence=0.0, readout=readout))
        exact = harsanyi(MaskedModel(model.double(), x.double(), absence=0.0, readout=readout))
        errors = (single.effects - exact.effects).abs() / single.floor[:, coalition_sizes(players)]
        assert 0.01 < float(errors.max()) <= 1


class Offset(torch.nn.Module):
    """A network whose hidden numbers are far larger than its outputs."""

    def __init__(self, players, offset, hidden=64):
        super().__init__()
        self.first, self.last, self.offset = torch.nn.Linear(players, hidden), torch.nn.Linear(hidden, 3), offset
        self.first.bias.data += offset

    def forward(self, rows):
        return self.last(self.first(rows) - self.offset)


class Hidden(torch.nn.Module):
    """A network with a layer that takes and returns numbers of size 1, and computes with larger ones."""

    def __init__(self, players, middle):
        super().__init__()
        self.first, self.last, self.middle = torch.nn.Linear(players, 32), torch.nn.Linear(32, 3), middle

    def forward(self, rows):
        return self.last(self.middle(self.first(rows)))


def shares_of_floor(model, x, run=None, **options):
    """Return the errors of all effects against double precision, as shares of the floor."""
    single = harsanyi(MaskedModel(run or model, x, **options))
    exact = harsanyi(MaskedModel(deepcopy(model).double(), x.double(), **options))
    return (single.effects - exact.effects).abs() / single.floor[:, coalition_sizes(len(single.names))]


@pytest.mark.parametrize("offset", [30.0, 300.0, 1e5])
@pytest.mark.parametrize("players", [5, 10, 13])
@pytest.mark.parametrize("readout", [LogOdds(0), Output(0), Probability(0)], ids=str)
def test_the_floor_is_measured_where_hidden_numbers_are_large(readout, players, offset):
    for seed in range(4):
        torch.manual_seed(seed)
        model, x = Offset(players, offset), torch.randn(2, players)
        for run in (model, lambda rows, model=model: model(rows)):  # a function has no weights of its own
            assert 0.02 < float(shares_of_floor(model, x, run, absence=0.0, readout=readout).max()) <= 1


def test_the_floor_of_each_of_many_samples_is_measured_on_few_values():
    for seed, offset in itertools.product(range(4), (0.0, 300.0)):
        torch.manual_seed(seed)
        shares = shares_of_floor(Offset(6, offset), torch.randn(60, 6), absence=0.0, readout=Output(0)).amax(1)
        assert 0.02 < float(shares.min()) < float(shares.max()) <= 1


@pytest.mark.parametrize(
    "middle",
    [
        lambda rows: ((rows.exp() + 50).log() - 3.9) * 50,
        lambda rows: torch.nn.functional.layer_norm(rows + 1000, (32,)),
        lambda rows: torch.sin(1000 * rows),
    ],
    ids=["logarithm", "norm", "sine"],
)
def test_the_floor_knows_what_a_layer_loses(middle):
    for seed in range(4):
        torch.manual_seed(seed)
        shares = shares_of_floor(Hidden(9, middle), torch.randn(2, 9), absence=0.0, readout=Output(0))
        assert 0.02 < float(shares.max()) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("norm", [False, True])
def test_the_floor_of_a_network_on_pixels_is_not_too_large_for_an_audit(norm):
    """Hidden numbers of an untrained network may be far larger than effects, and their errors are not."""
    torch.manual_seed(0)
    layers = [torch.nn.Conv2d(1, 8, 3, padding=1), *[torch.nn.BatchNorm2d(8)] * norm, torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers, torch.nn.MaxPool2d(4), torch.nn.Flatten(), torch.nn.Linear(392, 10))
    x, players = torch.rand(6, 1, 28, 28), Players.grid((1, 28, 28), cells=(2, 4))
    shares = shares_of_floor(model.eval(), x[:2], absence=0.0, players=players)
    assert 0.02 < float(shares.max()) <= 1
    found = audit(model, x * 255, range(6), players=players, absences={"zero": Baseline(0.0)}, seed=0)
    assert bool(found.removal.kept.all())


def test_measuring_the_floor_leaves_the_model_as_it_was():
    layers = torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Dropout(), torch.nn.Linear(8, 2)
    model, x = torch.nn.Sequential(*layers), torch.randn(3, 4)
    before, random = deepcopy(model.state_dict()), torch.get_rng_state()
    harsanyi(MaskedModel(model, x, absence=0.0))
    after = model.state_dict()
    assert all(torch.equal(one, after[name]) and one.dtype == after[name].dtype for name, one in before.items())
    assert torch.equal(torch.get_rng_state(), random)
    assert all(part.training for part in model.modules())
    assert all(one.requires_grad and one.grad is None for one in model.parameters())


class Buffered(torch.nn.Module):
    """A model that computes in its own memory, in its own type."""

    def __init__(self):
        super().__init__()
        self.register_buffer("kept", torch.zeros(4096))

    def forward(self, rows):
        self.kept[: len(rows)] = rows.sum(1)
        return self.kept[: len(rows)].clone()


def test_what_cannot_be_run_in_double_precision_has_the_floor_of_its_type():
    x = torch.tensor([[1.0, 2.0, 3.0, 4.0]])
    table = value_table(MaskedModel(Buffered(), x, absence=0.0))
    assert table.noise.item() == pytest.approx(4 * 2**-23 * float(table.values.abs().max()))


def test_a_threshold_at_a_value_of_the_sample_is_no_rounding_error():
    x = torch.tensor([[0.1, 0.3, 0.7]])
    table = value_table(MaskedModel(lambda rows: (rows > 0.1).float().sum(1), x, absence=0.7))
    assert table.noise.item() < 1e-5


@pytest.mark.parametrize("model", [mlp(6), cnn()], ids=["mlp", "cnn"])
def test_theorems_1_and_2_on_networks(model):
    if isinstance(model[0], torch.nn.Conv2d):
        x, players = torch.rand(2, 1, 8, 8).double(), Players.grid((1, 8, 8), cells=(2, 3))
    else:
        x, players = torch.randn(2, 6).double(), None
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
    assert list(frame.columns) == ["sample", "players", "order", "effect", "salient"]
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


def test_the_floor_bounds_what_rounding_does_to_a_float32_network():
    single = mlp(10, hidden=32, dtype=torch.float32)
    x = torch.randn(1, 10)
    rounded = harsanyi(MaskedModel(single, x, absence=Baseline(0.0)))
    exact = harsanyi(MaskedModel(single.double(), x.double(), absence=Baseline(0.0)))
    errors = (rounded.effects - exact.effects)[0].abs()
    floor = rounded.floor[0, coalition_sizes(10)]
    assert (errors <= floor).double().mean() > 0.9
    assert errors.max() < 10 * floor.max()


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


def test_shapley_from_effects_equals_shapley_from_values():
    table = random_table(7, samples=3)
    assert torch.allclose(harsanyi(table).shapley().values, shapley(table).values)


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


def test_all_pairs_of_sets_agree_on_a_game_of_two():
    for values in itertools.product([0.0, 1.0, -2.0], repeat=4):
        effects = harsanyi(ValueTable(list(values))).effects[0].tolist()
        a, b, c, d = values
        assert effects == [a, b - a, c - a, d - b - c + a]


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
    assert found.top(2, sample=-1) == found.top(2, sample=1) == [(("x0",), 4.0, True), (("x0", "x1"), 1.0, True)]
    assert found.top(1, sample=-2) == [(("x1",), -3.0, True)]
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


def test_the_printed_form_of_several_samples_is_that_of_the_first():
    found = interactions([[9.0, 1.0, -31234.0, 2.0], [9.0, 4.0, 0.0, 1.0]], noise=[0.0, 0.0], names=("p", "q"))
    assert repr(found).splitlines() == [
        "Interactions of 2 samples, 2 players; value: given; strongest of sample 0:",
        "  q      −31234",
        "  p & q  +2",
        "  p      +1",
    ]


@pytest.mark.parametrize("scale", [1.0, 3.0])
def test_the_floor_knows_probabilities_of_single_precision(scale):
    rng = np.random.default_rng(0)
    first, last = scale * rng.normal(size=(8, 32)), rng.normal(size=32) / 2
    x = rng.normal(size=(6, 8))

    def effects(dtype):
        model = from_numpy(
            lambda rows: (1 / (1 + np.exp(-np.maximum(rows @ first, 0) @ last))).astype(dtype), probabilities=True
        )
        return harsanyi(MaskedModel(model, x, 1, absence=Baseline(x.mean(0))))

    exact, rounded = effects(np.float64), effects(np.float32)
    errors = (exact.effects - rounded.effects).abs()
    assert (errors <= rounded.floor[:, coalition_sizes(8)]).all()
    assert (errors.amax(1) > exact.noise).all()  # double precision would not have told
