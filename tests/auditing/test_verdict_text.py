"""The warnings of an audit."""

import torch

import absentia as ab
from absentia.auditing.audit_record import AuditRecord, Cost
from absentia.auditing.own_games import join_games
from absentia.auditing.plausibility import Plausibility
from absentia.auditing.removal import Removal
from absentia.readout_notes import NOT_RECORDED
from known_games import mlp
from seeded_draws import randn


def make_removal(*shares, samples=20, draws=3, noise=0.1, spread=0.01):
    """Strengths by hand: samples of strength 1, noise and masked samples with given shares of it, jittered."""
    jitter = spread * randn(len(shares) + 1, samples, draws)
    masked = torch.tensor(shares).double()[:, None, None] + jitter[1:]
    return Removal(masked, torch.ones(samples, draws).double(), noise + jitter[0], torch.zeros(samples).double())


def doubt(removal):
    """The notes on R of an audit in which R alone was measured."""
    plausible = Plausibility(torch.ones(2).double(), torch.zeros(2, 3, dtype=torch.bool))
    record = AuditRecord(NOT_RECORDED, 20, 3, True, ("x", "y", "z"), 0, {}, Cost(), ())
    return ab.Audit(("a", "b"), ("x", "y", "z"), removal, join_games([], 2, 3), plausible, record).notes_on_R


def test_noise_as_strong_as_the_samples_is_warned_of():
    removal = make_removal(0.5, 1.2, noise=1.1)
    assert doubt(removal) == ("White noise has 110 % of the effects of the samples themselves: R says little.",)
    assert torch.isnan(removal.removed.value).all()


def test_rounding_and_single_samples_are_warned_of():
    found = ab.audit(mlp(3, 2), randn(1, 3), 0, {"a": 0.0, "b": 1.0}, data=randn(9, 3), draws=1)
    assert "One sample has no standard error: pass more samples to get errors." in found.warnings
    fine = make_removal(0.5, 0.9)
    rough = Removal(fine.masked, fine.original, fine.noise, fine.rounding + 0.1)
    assert doubt(rough)[0].startswith("Rounding errors can make up 10 %")
    assert doubt(fine) == ()


def test_a_model_that_does_not_predict_is_warned_of_and_three_warnings_are_enough():
    x = randn(40, 3)
    y = torch.randint(0, 2, (40,), generator=torch.Generator().manual_seed(0))
    found = ab.audit(mlp(3, 2), x, y, {"far": 99.0, "away": -99.0}, draws=1)
    assert found.warnings[0].startswith("The model predicts no better than the class frequencies")
    assert len(found.warnings) == 3


def test_masked_samples_far_from_the_data_or_outside_its_range_are_warned_of():
    data = randn(300, 3)
    methods = {"far": ab.Baseline(9.0), "mean": ab.Baseline.mean(data), "row": ab.Baseline(data[0])}
    found = ab.audit(mlp(3), data[:10], None, methods, data=data, region=["x0", "x2"])
    assert found.plausibility.outside.tolist() == [[True, True], [False, False], [False, False]]
    assert "far uses values outside the data's range for x0, x2." in found.warnings
    assert [name for name in methods if any(f"{name} makes samples" in w for w in found.warnings)] == ["far"]
