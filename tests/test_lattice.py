import pytest
import torch
from torch import nn

import absentia.lattice as lattice_module
from absentia import Baseline, Marginal, MaskedModel, Players, value_table
from absentia.absence import StandIns
from absentia.coalitions import enumerate_coalitions
from absentia.lattice import Lattice, Layout
from absentia.sequential import FirstLayerLattice, reuse_memory, split_first_layer
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
    lattice = Lattice(players, StandIns(x, stand_ins), rows)
    blocks = [block.inputs.shape[:2].numel() for block in lattice]
    assert max(blocks) <= max(rows, 1)
    assert len(blocks) == len(lattice)
    made = gather(lattice, samples=3, draws=2, coalitions=2 ** len(players))
    assert made.dtype == dtype
    assert torch.equal(made.transpose(1, 2), all_masked_inputs(players, x, stand_ins))


@pytest.mark.parametrize("players", [Players.features(5), GROUPS], ids=["features", "groups"])
@pytest.mark.parametrize("rows", [1, 4, 20, 1000])
@pytest.mark.parametrize("rectified", [False, True])
def test_the_first_layer_shortcut_gives_the_layers_outputs(players, rows, rectified):
    layer = nn.Linear(players.shape[0], 6).double()
    x, stand_ins = torch.randn(3, *players.shape).double(), torch.randn(1, 2, *players.shape).double()
    lattice = FirstLayerLattice(layer, rectified, players, StandIns(x, stand_ins), rows)
    with torch.no_grad():
        assert len(list(lattice)) == len(lattice)
        made = gather(lattice, samples=3, draws=2, coalitions=2 ** len(players))
        expected = layer(all_masked_inputs(players, x, stand_ins.expand(3, -1, -1)))
    assert torch.allclose(made.transpose(1, 2), expected.relu() if rectified else expected)


def test_many_blocks_are_prepared_in_parts(monkeypatch):
    players, x = GROUPS, torch.randn(2, 7)
    whole = [block.inputs.clone() for block in Lattice(players, StandIns(x, torch.zeros(1, 1, 7)), rows=1)]
    monkeypatch.setattr(lattice_module, "_BLOCKS_AT_A_TIME", 3)
    parts = [block.inputs.clone() for block in Lattice(players, StandIns(x, torch.zeros(1, 1, 7)), rows=1)]
    assert len(parts) == 16
    assert all(torch.equal(a, b) for a, b in zip(whole, parts, strict=True))


@pytest.mark.parametrize(("players", "pairs", "rows"), [(5, 3, 8), (3, 10, 100), (4, 7, 16), (6, 1, 1)])
def test_the_layout_covers_everything_within_its_rows(players, pairs, rows):
    layout = Layout(players, pairs, rows)
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
