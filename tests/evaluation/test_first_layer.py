"""The shortcut through a linear first layer gives what the model gives."""

import pytest
import torch
from torch import nn

import absentia as ab
from absentia import Baseline, Evaluator, Marginal, MaskedModel, Players, value_table
from absentia.absences import StandIns
from absentia.coalitions import enumerate_coalitions
from absentia.evaluation.first_layer import first_layer_outputs, reuse_memory, split_first_layer
from absentia.evaluation.lattice import Layout
from absentia.task import Task
from enumerated_inputs import GROUPS, ByPresence, all_masked_inputs, gather
from known_games import mlp


def test_networks_that_end_in_a_rectifier_are_explained():
    torch.manual_seed(0)
    for model in (nn.Sequential(nn.Linear(10, 2), nn.ReLU()), nn.Sequential(nn.Linear(10, 2))):
        x = torch.rand(2, 10)
        found = ab.explain(model, x, absence=0.25, readout=ab.Output(1), batch_size=64)
        slow = ab.explain(lambda rows, model=model: model(rows), x, absence=0.25, readout=ab.Output(1))
        assert torch.allclose(found.interactions.effects, slow.interactions.effects, atol=1e-5)


@pytest.mark.parametrize("players", [Players.features(5), GROUPS], ids=["features", "groups"])
@pytest.mark.parametrize("rows", [1, 4, 20, 1000])
@pytest.mark.parametrize("rectified", [False, True])
def test_the_first_layer_shortcut_gives_the_layers_outputs(players, rows, rectified):
    layer = nn.Linear(players.shape[0], 6).double()
    x = torch.randn(3, *players.shape).double()
    stand_ins = torch.randn(1, 2, *players.shape).double()
    layout = Layout.of(players, StandIns(x, stand_ins), rows)
    with torch.no_grad():
        assert len(list(first_layer_outputs(layout, layer, rectified))) == layout.blocks
        made = gather(first_layer_outputs(layout, layer, rectified), samples=3, draws=2, coalitions=2 ** len(players))
        expected = layer(all_masked_inputs(players, x, stand_ins.expand(3, -1, -1)))
    assert torch.allclose(made.transpose(1, 2), expected.relu() if rectified else expected)


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
    model = mlp(10, dtype=torch.float32)
    x = torch.randn(2, 10)
    values = torch.zeros(10)
    values[place] = 1e6
    game = MaskedModel(model, x, absence=Baseline(values), batch_size=16)
    assert torch.allclose(value_table(game).values[:, -1].float(), model(x)[:, 0], atol=1e-6)
    assert torch.equal(value_table(game).values.float(), game(enumerate_coalitions(10)))


def test_a_network_that_ends_in_a_rectifier_right_after_its_first_layer():
    model = nn.Sequential(nn.Linear(12, 1), nn.ReLU()).double()
    x = torch.rand(2, 12).double() + 0.5
    evaluator = Evaluator(Task(model, x, batch_size=64))
    fill = Baseline(0.25).bind(x)
    assert split_first_layer(model, evaluator.players) is not None
    assert torch.allclose(evaluator.table(fill).values, evaluator.table(ByPresence(fill)).values, atol=1e-12)
