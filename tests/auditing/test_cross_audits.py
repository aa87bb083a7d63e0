"""An audit for each reference."""

import pytest
import torch

import absentia as ab
from audited_cases import MeanOfPresent, OwnModel, samples
from known_games import mlp
from seeded_draws import randn


def test_the_cross_audit_is_an_audit_for_each_reference():
    model = mlp(3)
    x = samples(6, 3)
    methods = {"zero": ab.Baseline(0.0), "mean": MeanOfPresent(), "half": ab.Baseline(0.5)}
    found = ab.cross_audit(model, x, None, methods, draws=2)
    for row, reference in enumerate(["noise", *methods.values()]):
        alone = ab.audit(model, x, None, methods, draws=2, reference=reference)
        assert torch.equal(found.R[row], alone.R.value)
        assert torch.equal(found.errors[row], alone.R.error)
    assert float(found.R[1, 0]) < 0
    assert float(found.R[3, 2]) < 0
    assert found.references == ("white noise", "zero", "mean", "half")
    assert repr(found).count("(") == 3
    assert found.record.evaluations == 4 * 2 * 5 * 6 * 2**3  # references, draws, states, samples, coalitions
    assert found.to_frame().loc["half", "zero"] == float(found.R[3, 0])
    with pytest.raises(ab.AbsentiaError, match="absences must mask the model's input"):
        ab.cross_audit(model, x, None, {"own": OwnModel()})


def test_a_cross_audit_is_saved_and_loaded_whole(tmp_path):
    found = ab.cross_audit(mlp(3), randn(6, 3), None, {"zero": 0.0, "one": 1.0}, draws=2)
    found.save(tmp_path / "cross")
    loaded = ab.CrossAudit.load(tmp_path / "cross")
    assert repr(loaded) == repr(found)
    assert loaded.record == found.record
    assert torch.equal(loaded.R, found.R)
