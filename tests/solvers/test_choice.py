"""Solvers are chosen by name."""

import pytest
import torch

import absentia as ab


def test_interactions_come_from_a_named_solver():
    table = ab.ValueTable([2.0, -2.0, -1.0, 1.0])
    assert torch.equal(ab.interactions(table).effects, ab.harsanyi(table).effects)
    with pytest.raises(
        ab.AbsentiaError, match=r"solver must be one of auto, exact, leaves, few\. Got 'magic' instead"
    ):
        ab.interactions(table, solver="magic")
