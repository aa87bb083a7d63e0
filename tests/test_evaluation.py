from dataclasses import dataclass

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch import nn

import absentia.evaluation.lattice as lattice_module
from absentia import AbsentiaError, Baseline, Evaluator, LogOdds, Marginal, MaskedModel, Output, Players, value_table
from absentia.absences import StandIns
from absentia.coalitions import enumerate_coalitions
from absentia.evaluation.first_layer import first_layer_outputs, reuse_memory, split_first_layer
from absentia.evaluation.lattice import Layout, masked_inputs
from absentia.task import Task
from known_games import mlp

GRID = Players.grid((2, 4, 6), cells=(2, 3), only=[(0, 0), (1, 2), (0, 1), (1, 0)])
GROUPS = Players.groups({"a": [0, 4], "b": [2], "c": [5, 1]}, features=7)


def all_masked_inputs(players, x, stand_ins):
    """The same by the plain route: presence and a conditional, (samples, coalitions, draws, …)."""
    presence = players.presence(enumerate_coalitions(len(players)))[None]
    return StandIns(x, stand_ins)(slice(None), presence)


def gather(lattice, samples, draws, coalitions):
    """Put the blocks together: (samples, draws, coalitions, …)."""
    seen = {}
    for block in lattice:
        for pair, sample in enumerate(block.samples.tolist()):
            seen.setdefault((sample, block.first), []).append(block.inputs[pair].clone())
    firsts = sorted({first for _, first in seen})
    return torch.stack(
        [
            torch.stack([torch.cat([seen[sample, first][draw] for first in firsts]) for draw in range(draws)])
            for sample in range(samples)
        ]
    )


@pytest.mark.parametrize("players", [Players.features(5), GROUPS, GRID], ids=["features", "groups", "grid"])
@pytest.mark.parametrize("rows", [1, 2, 8, 20, 1000])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.int64])
def test_the_lattice_makes_the_masked_inputs_of_all_coalitions(players, rows, dtype):
    x = (torch.randn(3, *players.shape) * 9).to(dtype)
    stand_ins = (torch.randn(3, 2, *players.shape) * 9).to(dtype)
    layout = Layout.of(players, StandIns(x, stand_ins), rows)
    blocks = [block.inputs.shape[:2].numel() for block in masked_inputs(layout)]
    assert max(blocks) <= max(rows, 1)
    assert len(blocks) == layout.blocks
    made = gather(masked_inputs(layout), samples=3, draws=2, coalitions=2 ** len(players))
    assert made.dtype == dtype
    assert torch.equal(made.transpose(1, 2), all_masked_inputs(players, x, stand_ins))


@pytest.mark.parametrize("players", [Players.features(5), GROUPS], ids=["features", "groups"])
@pytest.mark.parametrize("rows", [1, 4, 20, 1000])
@pytest.mark.parametrize("rectified", [False, True])
def test_the_first_layer_shortcut_gives_the_layers_outputs(players, rows, rectified):
    layer = nn.Linear(players.shape[0], 6).double()
    x, stand_ins = torch.randn(3, *players.shape).double(), torch.randn(1, 2, *players.shape).double()
    layout = Layout.of(players, StandIns(x, stand_ins), rows)
    with torch.no_grad():
        assert len(list(first_layer_outputs(layout, layer, rectified))) == layout.blocks
        made = gather(first_layer_outputs(layout, layer, rectified), samples=3, draws=2, coalitions=2 ** len(players))
        expected = layer(all_masked_inputs(players, x, stand_ins.expand(3, -1, -1)))
    assert torch.allclose(made.transpose(1, 2), expected.relu() if rectified else expected)


def test_many_blocks_are_prepared_in_parts(monkeypatch):
    players, x = GROUPS, torch.randn(2, 7)
    layout = Layout.of(players, StandIns(x, torch.zeros(1, 1, 7)), rows=1)
    whole = [block.inputs.clone() for block in masked_inputs(layout)]
    monkeypatch.setattr(lattice_module, "_BLOCKS_AT_A_TIME", 3)
    parts = [block.inputs.clone() for block in masked_inputs(layout)]
    assert len(parts) == 16
    assert all(torch.equal(a, b) for a, b in zip(whole, parts, strict=True))


@pytest.mark.parametrize(("players", "pairs", "rows"), [(5, 3, 8), (3, 10, 100), (4, 7, 16), (6, 1, 1)])
def test_the_layout_covers_everything_within_its_rows(players, pairs, rows):
    layout = Layout.of(Players.features(players), StandIns(torch.zeros(pairs, 1), torch.zeros(1, 1, 1)), rows)
    assert layout.pairs_per_block * 2**layout.first_players <= rows
    blocks_of_pairs = -(-pairs // layout.pairs_per_block)
    assert layout.blocks == blocks_of_pairs * 2 ** (players - layout.first_players)


def test_the_shortcut_is_taken_only_where_it_is_certainly_the_same():
    players = Players.features(3)
    assert split_first_layer(mlp(3), players) is not None

    class Own(nn.Sequential):
        def forward(self, rows):
            return super().forward(rows) * 2

    hooked, hooked_inside, patched = mlp(3), mlp(3), mlp(3)
    patched[0].forward = lambda rows: rows[:, :1].expand(-1, 16)
    hooked.register_forward_hook(lambda module, inputs, output: output + 1)
    hooked_inside[0].register_forward_pre_hook(lambda module, inputs: (inputs[0] * 2,))
    for model in (
        Own(nn.Linear(3, 2), nn.ReLU()),
        hooked,
        hooked_inside,
        lambda rows: rows,
        nn.Sequential(nn.ReLU()),
    ):
        assert split_first_layer(model, players) is None
    assert split_first_layer(mlp(4), players) is None


@pytest.mark.parametrize("absence", [Baseline(0.3), Marginal(torch.randn(3, 6))])
@pytest.mark.parametrize("activation", [nn.Tanh, nn.ReLU])
def test_tables_by_every_route_agree(absence, activation):
    model = mlp(6, activation=activation)
    x = torch.randn(2, 6)
    slow = MaskedModel(lambda rows: model(rows), x.double(), absence=absence, batch_size=64)
    by_presence = slow(enumerate_coalitions(6)).double()
    by_lattice = slow.table().values
    by_first_layer = MaskedModel(model, x, absence=absence, batch_size=8).table().values
    assert torch.allclose(by_lattice, by_presence)
    assert torch.allclose(by_first_layer, by_presence)


def test_memory_is_reused_only_where_nobody_can_tell():
    rows = torch.randn(5, 3).double()
    model = nn.Sequential(nn.ReLU(), nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 4), nn.Tanh(), nn.ReLU()).double()
    kept = rows.clone()
    with torch.no_grad():
        assert torch.equal(reuse_memory(model)(rows), model(rows))
        assert torch.equal(rows, kept)  # the first ReLU has no layer before it whose memory it may take
        seen = []
        model[1].register_forward_hook(lambda module, inputs, output: seen.append(output))
        reuse_memory(model)(rows)
        assert torch.equal(seen[0], nn.functional.linear(rows.relu(), model[1].weight, model[1].bias))
        model[2].register_forward_hook(lambda module, inputs, output: output + 1)
        assert torch.equal(reuse_memory(model)(rows), model(rows))
    subclass = type("Own", (nn.Sequential,), {})(nn.Linear(3, 1), nn.ReLU())
    assert reuse_memory(subclass) is subclass


@pytest.mark.parametrize("place", [slice(0, 1), slice(None)], ids=["one large stand-in", "all large"])
def test_large_stand_ins_cost_no_precision(place):
    model, x = mlp(10, dtype=torch.float32), torch.randn(2, 10)
    values = torch.zeros(10)
    values[place] = 1e6
    game = MaskedModel(model, x, absence=Baseline(values), batch_size=16)
    assert torch.allclose(value_table(game).values[:, -1].float(), model(x)[:, 0], atol=1e-6)
    assert torch.equal(value_table(game).values.float(), game(enumerate_coalitions(10)))


@pytest.fixture
def network():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3)).double()


X, Y = torch.rand(5, 4, generator=torch.Generator().manual_seed(2)).double(), torch.tensor([0, 2, 1, 1, 0])


@dataclass
class ByPresence:
    """The same fill, without what tells the evaluator that stand-ins do not depend on the coalition."""

    inner: StandIns

    @property
    def draws(self):
        return self.inner.draws

    def __call__(self, samples, presence):
        return self.inner(samples, presence)

    def select(self, samples=None, draws=None):
        return ByPresence(self.inner.select(samples, draws))


def test_values_of_some_samples_are_read_with_their_own_classes(network):
    evaluator, some = Evaluator(Task(network, X, Y)), torch.tensor([2, 4])
    fill, coalitions = Baseline(0.5).bind(evaluator.x), enumerate_coalitions(4)
    every = evaluator.values(fill, coalitions)
    assert torch.equal(evaluator.values(fill.select(some), coalitions, samples=some), every[some])
    assert torch.allclose(evaluator.table(fill.select(some), samples=some).values, every[some], atol=1e-12)


def test_a_fill_may_bring_inputs_of_its_own_in_place_of_the_samples(network):
    evaluator, other = Evaluator(Task(network, X, Y)), X.flip(1)
    found = evaluator.values(StandIns(other, torch.zeros(1, 1, 4).double()), torch.ones(1, 4, dtype=torch.bool))
    assert torch.allclose(found[:, 0], LogOdds(Y)(network(other), torch.arange(5)).detach())


def test_other_players_over_the_same_entries_need_no_other_evaluator(network):
    few = Players.groups({"a": [0, 3], "b": [1]}, features=4)
    evaluator, fill = Evaluator(Task(network, X, Y)), Baseline(0.5).bind(X)
    own = Evaluator(Task(network, X, Y, players=few))
    assert torch.equal(evaluator.table(fill, players=few).values, own.table(fill).values)
    coalitions = enumerate_coalitions(2)
    assert torch.equal(evaluator.values(fill, coalitions, players=few), own.values(fill, coalitions))


def test_the_quick_way_and_the_way_by_presence_agree(network):
    evaluator = Evaluator(Task(network, X, Y))
    fill = Marginal(X[:3]).bind(X)
    quick, plain = evaluator.table(fill), evaluator.table(ByPresence(fill))
    assert torch.allclose(quick.values, plain.values, atol=1e-12)
    assert quick.evaluations == plain.evaluations == 5 * 16 * 3


def test_gradients_reach_the_fill_when_asked(network):
    values = torch.full((5, 1, 4), 0.5).double().requires_grad_()
    evaluator, coalitions = Evaluator(Task(network, X, Y)), torch.zeros(1, 4, dtype=torch.bool)
    evaluator.values(StandIns(X, values), coalitions, gradient=True).sum().backward()
    assert bool((values.grad != 0).any())
    assert not evaluator.values(StandIns(X, values), coalitions).requires_grad
    assert all(parameter.requires_grad and parameter.grad is None for parameter in network.parameters())


def test_a_network_that_ends_in_a_rectifier_right_after_its_first_layer():
    model = nn.Sequential(nn.Linear(12, 1), nn.ReLU()).double()
    x = torch.rand(2, 12).double() + 0.5
    evaluator = Evaluator(Task(model, x, batch_size=64))
    fill = Baseline(0.25).bind(x)
    assert split_first_layer(model, evaluator.players) is not None
    assert torch.allclose(evaluator.table(fill).values, evaluator.table(ByPresence(fill)).values, atol=1e-12)


def test_names_of_classes_are_kept_and_read_in_the_given_order(network):
    named = Evaluator(Task(network, X, ["no", "yes", "maybe", "maybe", "no"], class_names=["no", "maybe", "yes"]))
    assert torch.equal(named.readout.y, Y)
    assert named.class_names == ("no", "maybe", "yes")
    assert "no, yes, maybe" in named.readout_note
    sentence = (
        r"y holds names of classes, but .* Pass class_names=\['maybe', 'no', 'yes'\] in the order of the model's"
    )
    with pytest.raises(AbsentiaError, match=sentence):
        Evaluator(Task(network, X, ["no", "yes", "maybe", "maybe", "no"]))
    with pytest.raises(AbsentiaError, match=sentence):
        Evaluator(Task(network, X, ["no", "yes", "maybe", "maybe", "no"], readout=Output(0)))
    with pytest.raises(AbsentiaError, match=r"Pass class_names=\['yes'\] in the order of the model's outputs"):
        Evaluator(Task(network, X, "yes"))
    with pytest.raises(AbsentiaError, match=r"class_names must name each of the 3 classes\. Got 2 names"):
        Evaluator(Task(network, X, Y, class_names=["no", "yes"]))


def test_estimators_are_wrapped_and_know_their_classes():
    labels = np.array(["red", "green", "red", "green", "blue"])
    estimator = LogisticRegression().fit(X.numpy(), labels)
    evaluator = Evaluator(Task(estimator, X, labels))
    assert evaluator.class_names == ("blue", "green", "red")
    assert evaluator.readout.y.tolist() == [2, 1, 2, 1, 0]
    full = evaluator.values(Baseline(0.0).bind(X), torch.ones(1, 4, dtype=torch.bool))[:, 0]
    chance = torch.tensor(estimator.predict_proba(X.numpy()))[torch.arange(5), evaluator.readout.y]
    assert torch.allclose(full, torch.logit(chance))
    same = Evaluator(Task(estimator.predict_proba, X, labels)).values(
        Baseline(0.0).bind(X), torch.ones(1, 4, dtype=torch.bool)
    )
    assert torch.equal(same[:, 0], full)


def test_numbers_are_labels_of_an_estimator_that_was_fitted_with_numbers():
    estimator = LogisticRegression().fit(X.numpy(), [5, 7, 5, 7, 9])
    assert Evaluator(Task(estimator, X, [9, 7, 5, 5, 7])).readout.y.tolist() == [2, 1, 0, 0, 1]
    with pytest.raises(AbsentiaError, match=r"y must hold classes of the model: 5, 7, 9\. Got 2"):
        Evaluator(Task(estimator, X, 2))
