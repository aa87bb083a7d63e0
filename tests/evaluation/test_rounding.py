"""The floor below which effects are rounding errors."""

import itertools
from copy import deepcopy

import numpy as np
import pytest
import torch
from torch import nn

import absentia as ab
from absentia import (
    AbsentiaError,
    Baseline,
    LogOdds,
    MaskedModel,
    Output,
    Players,
    Probability,
    audit,
    from_numpy,
    harsanyi,
    value_table,
)
from absentia.coalitions import coalition_sizes
from known_games import mlp


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
        self.first = torch.nn.Linear(players, hidden)
        self.last = torch.nn.Linear(hidden, 3)
        self.offset = offset
        self.first.bias.data += offset

    def forward(self, rows):
        return self.last(self.first(rows) - self.offset)


class Hidden(torch.nn.Module):
    """A network with a layer that takes and returns numbers of size 1, and computes with larger ones."""

    def __init__(self, players, middle):
        super().__init__()
        self.first = torch.nn.Linear(players, 32)
        self.last = torch.nn.Linear(32, 3)
        self.middle = middle

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
        model = Offset(players, offset)
        x = torch.randn(2, players)
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
    x = torch.rand(6, 1, 28, 28)
    players = Players.grid((1, 28, 28), cells=(2, 4))
    shares = shares_of_floor(model.eval(), x[:2], absence=0.0, players=players)
    assert 0.02 < float(shares.max()) <= 1
    found = audit(model, x * 255, range(6), players=players, absences={"zero": Baseline(0.0)}, seed=0)
    assert bool(found.removal.kept.all())


def test_measuring_the_floor_leaves_the_model_as_it_was():
    layers = torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Dropout(), torch.nn.Linear(8, 2)
    model = torch.nn.Sequential(*layers)
    x = torch.randn(3, 4)
    before = deepcopy(model.state_dict())
    random = torch.get_rng_state()
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


def test_the_floor_bounds_what_rounding_does_to_a_float32_network():
    single = mlp(10, hidden=32, dtype=torch.float32)
    x = torch.randn(1, 10)
    rounded = harsanyi(MaskedModel(single, x, absence=Baseline(0.0)))
    exact = harsanyi(MaskedModel(single.double(), x.double(), absence=Baseline(0.0)))
    errors = (rounded.effects - exact.effects)[0].abs()
    floor = rounded.floor[0, coalition_sizes(10)]
    assert (errors <= floor).double().mean() > 0.9
    assert errors.max() < 10 * floor.max()


@pytest.mark.parametrize("scale", [1.0, 3.0])
def test_the_floor_knows_probabilities_of_single_precision(scale):
    rng = np.random.default_rng(0)
    first = scale * rng.normal(size=(8, 32))
    last = rng.normal(size=32) / 2
    x = rng.normal(size=(6, 8))

    def effects(dtype):
        model = from_numpy(
            lambda rows: (1 / (1 + np.exp(-np.maximum(rows @ first, 0) @ last))).astype(dtype), probabilities=True
        )
        return harsanyi(MaskedModel(model, x, 1, absence=Baseline(x.mean(0))))

    exact = effects(np.float64)
    rounded = effects(np.float32)
    errors = (exact.effects - rounded.effects).abs()
    assert (errors <= rounded.floor[:, coalition_sizes(8)]).all()
    assert (errors.amax(1) > exact.noise).all()  # double precision would not have told


FOUR_ROWS = torch.rand(4, 3, generator=torch.Generator().manual_seed(1))


def test_an_audit_of_values_whose_sums_would_be_infinite_is_refused():
    with pytest.raises(AbsentiaError, match="model must return values small enough for sums over all coalitions"):
        ab.audit(lambda rows: 1e307 * (rows - 0.4).prod(1), 2 * FOUR_ROWS.double(), absences=["zero", "mean"])


NORMAL_ROWS = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))


def test_the_floor_knows_single_precision_that_is_stored_in_double():
    layers = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))

    def predict(rows):
        return layers(torch.from_numpy(rows).float()).detach().double().numpy()[:, 0]

    noise = ab.value_table(ab.MaskedModel(ab.from_numpy(predict), NORMAL_ROWS.double(), absence=0.0)).noise
    assert (noise > 1e-8).all()
    exact = ab.value_table(
        ab.MaskedModel(ab.from_numpy(lambda rows: rows.sum(1) / 3), NORMAL_ROWS.double(), absence=0.0)
    ).noise
    assert (exact < 1e-13).all()
