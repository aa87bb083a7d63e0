"""Plans of audits keep to their budget."""

import pytest
import torch

import absentia as ab
from absentia.auditing.plan import Games, MethodRows, Plan
from audited_cases import METHODS, two_blobs
from known_games import mlp
from seeded_draws import randn


def test_plans_keep_to_their_rows_or_to_the_least():
    methods = [MethodRows(draws) for draws in (1, 1, 1, 10, 100)]
    whole = Plan.of(200, 16, 16, 5, 16, methods, states=7)
    assert whole.own == Games(200, 1, 16)
    assert whole.removal == Games(200, 5, 16)
    assert whole.within(whole.rows) == whole
    for power in range(17, 34):
        plan = whole.within(2**power)
        assert plan.rows <= 2**power
        assert plan.rows > 2**power / 4 or plan == whole
        assert plan.empty_samples >= plan.samples >= max(plan.own.samples, plan.removal.samples) >= 16
    least = whole.within(1)
    assert least.own == Games(16, 1, 4)
    assert least.removal == Games(16, 2, 4)
    assert least.samples == least.empty_samples == 16
    assert Plan.of(10_000, 784, 784, 5, 16, methods[:1], 3).own == Games(500, 1, 12)


def test_draws_are_saved_after_samples_and_sizes():
    whole = Plan.of(200, 30, 30, 5, 16, [MethodRows(1), MethodRows(100)], states=4)
    for power in range(14, 26):
        plan = whole.within(2**power)
        if plan.curve_draws < 100:
            assert plan.samples < 64
            assert plan.sizes == 8
    assert whole.within(2**25).curve_draws >= 100
    assert whole.within(2**14).curve_draws < 100


def test_a_budget_is_kept_and_noted():
    x = randn(100, 10)
    y = torch.arange(100) % 2
    seen = []

    class Counts(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.net = mlp(10, 2)

        def forward(self, rows):
            seen.append(len(rows))
            return self.net(rows)

    found = ab.audit(Counts(), x, y, METHODS, evaluations=60_000, draws=3)
    assert 20_000 < found.record.evaluations <= 60_000
    assert sum(seen) < 60_000 * 1.1  # and some to measure the time
    assert found.record.given == 100
    assert any(note.startswith("Length is measured on") for note in found.record.notes)
    assert found.companions.shapley.shape[1] < found.curve.scores.shape[1]
    assert found.samples.tolist() != list(range(len(found.samples)))
    # Each part uses the first of the audited samples.
    some = found.samples[: found.companions.empty.shape[1]]
    assert torch.allclose(found.companions.full[0, :, 0], ab.LogOdds(y)(Counts().net(x), torch.arange(100))[some])
    with pytest.raises(ab.AbsentiaError, match=r"evaluations must be at least 2,850 for these absences. Got 5"):
        ab.audit(mlp(10, 2), x, y, METHODS, evaluations=5)


@pytest.mark.slow
def test_a_seed_fixes_the_samples_and_coalitions_of_a_small_budget():
    x, y, model = two_blobs(200, 6)
    first, again, other = (ab.audit(model, x, y, METHODS, evaluations=9_000, seed=seed) for seed in (1, 1, 2))
    for name, values in first.columns().items():
        if name != "seconds":
            assert torch.equal(values.nan_to_num(9), again.columns()[name].nan_to_num(9)), name
    assert not torch.equal(first.samples, other.samples)
    assert not torch.equal(first.curve.scores, other.curve.scores)


def test_many_samples_are_drawn():
    x, y, model = two_blobs(700, 3)
    found = ab.audit(model, x, y, METHODS, draws=1)
    assert found.curve.scores.shape == (2, 500, 4)
    assert "on 500 of 700 samples" in repr(found)
