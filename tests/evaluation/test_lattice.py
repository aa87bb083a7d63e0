"""The masked inputs of all coalitions, block by block."""

import pytest
import torch

import absentia.evaluation.lattice as lattice_module
from absentia import Players
from absentia.absences import StandIns
from absentia.evaluation.lattice import Layout, masked_inputs
from enumerated_inputs import GROUPS, all_masked_inputs, gather

GRID = Players.grid((2, 4, 6), cells=(2, 3), only=[(0, 0), (1, 2), (0, 1), (1, 0)])


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


def test_many_blocks_are_prepared_in_parts(monkeypatch):
    players = GROUPS
    x = torch.randn(2, 7)
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
