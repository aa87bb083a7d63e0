"""What an audit recommends: evidence and score by hand, the rule on constructed figures, budgets, early ends."""

import itertools
import math
import sys
import time

import pytest
import torch
from torch.nn.functional import cross_entropy

import absentia as ab
from absentia.absences import StandIns
from absentia.audit.auditor import Games, Plan
from absentia.audit.figures import Companions, MaskingCurve, Plausibility, Removal, is_above
from absentia.audit.findings import AuditRecord, Cost
from known_games import mlp

AUDITOR = sys.modules["absentia.audit.auditor"]
METHODS = {"zero": ab.Baseline(0.0), "half": ab.Baseline(0.5)}


def randn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).double()


class Halves:
    """An absence that leaks: half of each value stays."""

    def bind(self, x):
        return StandIns(x, x[:, None] / 2)


class OwnModel:
    """An absence that brings its own model, which reads NaN as 0."""

    def bind(self, x):
        return StandIns(x, torch.full_like(x[:1], math.nan)[None])

    def instead_of(self, model):
        return lambda rows: model(rows.nan_to_num(0.0))


def two_blobs(samples=200, entries=4):
    """Two classes, told apart by the sign of all entries, and a model that knows: logits ± their sum."""
    y = torch.arange(samples) % 2
    x = (2 * y[:, None] - 1) + 0.5 * randn(samples, entries)
    return x, y, lambda rows: torch.stack([-rows.sum(1), rows.sum(1)], 1)


def test_evidence_is_cross_entropy_at_the_empty_coalition_less_the_entropy():
    x, y, model = two_blobs(31)
    found = ab.audit(model, x, y, {"b": ab.Baseline(0.1)}, draws=1)
    loss = cross_entropy(model(torch.full_like(x, 0.1)), y, reduction="none")
    shares = y.bincount() / len(y)
    each = loss + shares[y].log()
    beyond = float(loss.mean() + (shares * shares.log()).sum())
    assert beyond > 1 / 62
    assert float(found.curve.evidence.value) == pytest.approx(beyond - 1 / 62)  # (classes − 1) / 2N
    assert float(found.columns()["evidence_error"]) == pytest.approx(float(each.std() / 31**0.5))
    assert found.curve.unit == "nats"


@pytest.mark.parametrize("classes", [2, 10, 50])
def test_a_neutral_absence_invents_nothing_however_many_classes_there_are(classes):
    frequencies = torch.rand(classes, generator=torch.Generator().manual_seed(0)).double() + 0.2
    claims = []

    def model(rows):
        told = torch.nn.functional.one_hot(rows[:, 0].long(), classes)
        return frequencies.log() + 9 * told * (rows[:, 1:] > 0.5) * (rows[:, :1] > 0)

    for seed in range(12):
        generator = torch.Generator().manual_seed(seed)
        y = torch.multinomial(frequencies, 400, replacement=True, generator=generator)
        x = torch.stack([y + 0.5, torch.ones(400)], 1).double()
        found = ab.audit(model, x, y, {"zero": 0.0}, draws=1, seed=seed)
        assert len(found.curve.prior) == 400
        claims.append("neither leaks nor invents" not in str(found))
    assert sum(claims) <= 2


def test_evidence_of_other_readouts_is_a_share_of_the_variance():
    x, model = randn(40, 3), mlp(3)
    found = ab.audit(model, x, None, {"b": ab.Baseline(0.1)}, draws=1)
    full, empty = model(x).detach().squeeze(), model(torch.full_like(x[:1], 0.1)).detach().squeeze()
    expected = ((empty - full).square().mean() - full.var(correction=0)) / full.var(correction=0)
    assert float(found.curve.evidence.value) == pytest.approx(float(expected))
    assert found.curve.unit == "of the variance"
    assert found.curve.limit == 1


def test_what_leaves_something_leaks_and_what_argues_for_a_class_invents():
    x, y, model = two_blobs()
    methods = {"halves": Halves(), "zero": 0.0, "argues": 0.3, "insists": 1.0}
    found = ab.audit(model, x, y, methods, draws=1)
    value, error = found.curve.evidence
    assert value[0] < -10 * error[0]
    assert value[1].abs() < 1e-9
    assert value[2] > 2 * error[2]
    assert found.recommended == "zero"
    text = " ".join(found.verdict)
    assert found.verdict[0].startswith("Use zero: it neither leaks nor invents and needs 4 interactions; ")
    assert "halves leaks 0.67 nats" in found.verdict[0]
    assert "halves leaks 0.67" in text
    assert "masked samples still tell what they were" in text
    assert "insists invents 3.3" in text
    assert "more than there is to know (0.69)" in text


def test_the_score_by_size_converges_to_that_of_all_coalitions():
    x, y, model = two_blobs(400)
    found = ab.audit(model, x, y, {"b": ab.Baseline(0.2)}, draws=1)
    table = ab.value_table(ab.MaskedModel(model, x, y, absence=ab.Baseline(0.2))).values
    losses = torch.nn.functional.softplus(-table)
    sizes = ab.enumerate_coalitions(4).sum(1)
    by_size = torch.stack([losses[:, sizes == size].mean(1) for size in range(5)], 1)
    error = found.curve.scores[0].std(0) / 20
    assert bool(((found.curve.scores[0].mean(0) - by_size.mean(0)).abs() <= 4 * error).all())
    assert torch.allclose(found.curve.scores[0][:, [0, 4]], by_size[:, [0, 4]])
    score = found.curve.score
    assert float((score.value - by_size.mean()).abs()) < 4 * float(score.error)


def test_methods_are_compared_on_the_same_coalitions():
    x, y, model = two_blobs(50)
    found = ab.audit(model, x, y, {"b": 0.2, "again": ab.Baseline(0.2)}, draws=1)
    assert torch.equal(found.curve.scores[0], found.curve.scores[1])


def test_sizes_of_many_players_are_spread_from_nobody_to_all():
    found = ab.audit(lambda rows: rows.mean(1), randn(20, 196), None, {"b": 0.1}, draws=1, max_players=4)
    sizes = found.curve.sizes.tolist()
    assert sizes[0] == 0
    assert sizes[-1] == 196
    assert len(sizes) == len(set(sizes)) == 33
    assert {after - before for before, after in itertools.pairwise(sizes)} <= {6, 7}


def test_a_surrogate_is_a_floor_and_entries_that_stay_are_no_leak():
    x, y, model = two_blobs()
    found = ab.audit(model, x, y, {"own": OwnModel(), "b": 0.2}, draws=1)
    assert found.recommended == "b"
    assert found.verdict[-1].startswith("own explains another model: its score, ")
    alone = ab.audit(model, x, y, {"own": OwnModel()}, draws=1)
    assert alone.recommended is None
    assert repr(alone).startswith("Use none of these: own explains another model")
    shown = ab.Players.groups({"a": [0], "b": [1]}, 4)
    kept = ab.audit(model, x, y, {"zero": 0.0}, players=shown, draws=1)
    assert float(kept.curve.evidence.value) < -0.5
    assert kept.recommended == "zero"


def constructed(evidence, score, strength, r=None, distance=None, spread=0.05, samples=40, **more):
    """Make a verdict on figures by hand: two sizes, jitter around the means, and noise of no effect."""
    methods = len(evidence)
    column = lambda values: torch.tensor(values).double()[:, None]  # noqa: E731
    scores = torch.stack([1 + column(evidence), 2 * column(score) - 1 - column(evidence)], -1)
    scores = scores + spread * randn(methods, samples, 2)
    curve = MaskingCurve(scores, torch.ones(samples).double(), torch.tensor([0, 5]), "nats", limit=2.0, **more)
    by_order = torch.zeros(methods, samples, 1, 2).double()
    by_order[..., 1] = column(strength)[..., None] + spread * randn(methods, samples, 1, seed=1)
    ones = torch.ones(methods, samples, 1).double()
    companions = Companions(ones, 7 * ones, by_order, ones, ones, ones[..., None])
    masked = column(r or [0.5] * methods)[..., None] + spread * randn(methods, samples, 3, seed=2)
    whole = torch.ones(samples, 3).double()
    removal = Removal(masked, whole, 0 * whole, torch.zeros(samples).double())
    plausibility = Plausibility(
        torch.tensor(distance or [1.0] * methods).double(), torch.zeros(methods, 1, dtype=torch.bool)
    )
    names = [chr(ord("a") + number) for number in range(methods)]
    record = AuditRecord("", samples, 3, True, ("x",), 0, dict.fromkeys(names, Cost()), Cost(), ())
    return ab.Audit(tuple(names), ("x",), removal, companions, plausibility, record, curve)


RULE = {
    "a leak is out": ({"evidence": [-1, 0.2], "score": [0.1, 1], "strength": [1, 9]}, ["leaks", "best"]),
    "a leak within its error is none": (
        {"evidence": [-0.001, 0.2], "score": [0.1, 1], "strength": [1, 9]},
        ["best", "score"],
    ),
    "what was shown is no leak": (
        {"evidence": [-1, 0.2], "score": [0.1, 1], "strength": [1, 9], "all_absent": False},
        ["best", "score"],
    ),
    "far inventions are out": ({"evidence": [3, 0.2], "score": [0.5, 1], "strength": [1, 9]}, ["invents", "best"]),
    "a worse score is out": ({"evidence": [0, 0], "score": [1, 1.5], "strength": [9, 1]}, ["best", "score"]),
    "the shorter of equal scores": (
        {"evidence": [0, 0], "score": [1, 1.005], "strength": [9, 1]},
        ["strength", "best"],
    ),
    "R breaks ties": (
        {"evidence": [0, 0], "score": [1, 1], "strength": [1, 1], "r": [0.5, 0.1]},
        ["R", "best"],
    ),
    "distance breaks ties": (
        {"evidence": [0, 0], "score": [1, 1], "strength": [1, 1], "distance": [3.0, 1.0]},
        ["distance", "best"],
    ),
    "none if all leak": ({"evidence": [-1, -2], "score": [1, 1], "strength": [1, 1]}, ["leaks", "leaks"]),
    "none if all leak or invent": ({"evidence": [-1, 5], "score": [1, 3], "strength": [1, 1]}, ["leaks", "invents"]),
    "what is unknown decides nothing": (
        {
            "evidence": [0, 0],
            "score": [1, 1],
            "strength": [math.nan] * 2,
            "r": [math.nan] * 2,
            "distance": [1.0, 2.0],
        },
        ["best", "distance"],
    ),
    "no errors, no sure difference": (
        {"evidence": [-1, 0], "score": [1, 2], "strength": [1, 2], "samples": 1, "distance": [2.0, 1.0]},
        ["distance", "best"],
    ),
}


@pytest.mark.parametrize(("figures", "stages"), RULE.values(), ids=RULE.keys())
def test_the_rule_is_honest_first_then_short(figures, stages):
    found = constructed(**figures)
    assert list(found._stages) == stages
    assert found.recommended == ("ab"[stages.index("best")] if "best" in stages else None)
    first, *lines = found.verdict
    assert first.startswith(f"Use {found.recommended}: it " if found.recommended else "Use none of these: b ")
    assert len(lines) == 2
    assert found.recommended in (None, "ab"[found.order[0]])


def test_the_sentence_names_a_method_for_each_reason():
    found = constructed([0.3, 0, -1.6, 3, 0.3], [1, 1.4, 0.4, 2.5, 1], [1, 1, 1, 1, 3], spread=0.02)
    assert found.verdict[0] == (
        "Use a: it leaks nothing, invents 0.3 nats and needs 7 interactions; e has 3 times the Σ|U|, b predicts "
        "worse (score 1.4), d invents 3 nats."
    )
    assert found.order[0] == 0
    assert found.order[-1] == 2


def test_few_samples_or_draws_need_more_errors():
    values = torch.tensor([0.9, 1.1, 1.0, 1.0]).double()[:, None] - 0.89
    assert is_above(values + 0.05)
    assert not is_above(values)  # 2.7 errors; Student's factor for three degrees of freedom is 3.3
    many = values.repeat(20, 1)
    assert is_above(many)
    # Two draws that differ say little, however many samples share them.
    draws = torch.tensor([0.2, 0.6]).double().repeat(100, 1) + 0.01 * randn(100, 2)
    assert not is_above(draws)
    assert not is_above(torch.ones(1, 5).double())
    assert is_above(torch.ones(3, 1).double())


def test_few_shared_draws_do_not_make_differences_of_nothing():
    parts = randn(3, 500, 40, 3)
    values = parts[0][..., :1] + parts[1][:, :1] + parts[2]  # of samples, of draws, and of both
    assert sum(is_above(one) for one in values) / 500 < 0.05
    assert sum(is_above(one + 3) for one in values) / 500 > 0.5


def test_plans_keep_to_their_rows_or_to_the_least():
    whole = Plan.of(200, 16, 16, 5, 16, [1, 1, 1, 10, 32], states=7)
    assert whole.own == Games(200, 1, 16)
    assert whole.removal == Games(200, 5, 16)
    assert whole.within(whole.rows) == whole
    before = None
    for power in range(16, 33):
        plan = whole.within(2**power)
        assert plan.rows <= 2**power
        assert plan.rows > 2**power / 3 or plan == whole
        assert plan.samples >= max(plan.own.samples, plan.removal.samples) >= 16
        assert before is None or plan.own.players >= before.own.players
        before = plan
    least = whole.within(1)
    assert least.own == Games(16, 1, 4)
    assert least.removal == Games(16, 2, 4)
    assert least.samples == 16
    assert Plan.of(10_000, 784, 784, 5, 16, [1], 3).own == Games(500, 1, 12)


def test_a_budget_is_kept_and_noted():
    x, y = randn(100, 10), torch.arange(100) % 2
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
    assert any(note.startswith("Σ|U| is measured on") for note in found.record.notes)
    assert found.companions.shapley.shape[1] < found.curve.scores.shape[1]
    assert found.samples.tolist() != list(range(len(found.samples)))
    # Each part uses the first of the audited samples.
    some = found.samples[: found.companions.empty.shape[1]]
    assert torch.allclose(found.companions.full[0, :, 0], ab.LogOdds(y)(Counts().net(x), torch.arange(100))[some])
    with pytest.raises(ab.AbsentiaError, match=r"evaluations must be at least 2,832 for these absences. Got 5"):
        ab.audit(mlp(10, 2), x, y, METHODS, evaluations=5)


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


class StopsAfter(torch.nn.Module):
    """A model that is interrupted, or gets slow, after so many rows."""

    def __init__(self, rows, action):
        super().__init__()
        self.net, self.left, self.action = mlp(6, 2), rows, action

    def forward(self, rows):
        self.left -= len(rows)
        if self.left < 0:
            self.action(self)
        return self.net(rows)


def interrupt(model):
    model.left = math.inf  # once
    raise KeyboardInterrupt


@pytest.mark.parametrize("reached", ["curve", "games", "removal"])
def test_what_is_done_is_kept_on_an_interruption(reached, monkeypatch):
    monkeypatch.setattr(AUDITOR, "_STEPS", 10**9)  # steps as small as can be
    x, y = randn(40, 6), torch.arange(40) % 2
    rows = {"curve": 500, "games": 2000, "removal": 12_000}[reached]
    settings = {"draws": 3, "seed": 1}
    model = StopsAfter(rows, interrupt)
    monkeypatch.setattr("absentia.models.rows_per_batch", lambda *_: 16)
    found = ab.audit(model, x, y, METHODS, **settings)
    whole = ab.audit(mlp(6, 2), x, y, METHODS, **settings)
    assert found.record.stopped == "interrupted"
    assert "Note: the audit ended early (interrupted)" in repr(found)
    scores, games, draws = found.curve.scores, found.companions.strengths, found.removal.masked
    assert torch.allclose(scores, whole.curve.scores[:, : scores.shape[1]])
    assert torch.allclose(games, whole.companions.strengths[:, : games.shape[1]])
    assert torch.allclose(draws, whole.removal.masked[:, : draws.shape[1], : draws.shape[2]])
    assert (0 < scores.shape[1] < 40) == (reached == "curve")
    assert (0 < games.shape[1] < 40) == (reached == "games")
    assert (draws.shape[1] > 0) == (reached == "removal")
    assert found.recommended in METHODS
    assert math.isnan(float(found.columns()["R"][0])) == (reached != "removal")
    found.plot()


def test_an_interruption_before_anything_is_measured_is_passed_on():
    with pytest.raises(KeyboardInterrupt):
        ab.audit(StopsAfter(60, interrupt), randn(40, 6), torch.arange(40) % 2, METHODS)


def test_a_time_limit_keeps_what_is_done(monkeypatch, tmp_path):
    monkeypatch.setattr("absentia.models.rows_per_batch", lambda *_: 16)
    model = StopsAfter(300, lambda _: time.sleep(0.02))
    began = time.perf_counter()
    found = ab.audit(model, randn(40, 6), torch.arange(40) % 2, METHODS, seconds=0.3)
    assert time.perf_counter() - began < 3
    assert found.record.stopped == "time limit of 0.3 s"
    assert found.recommended in METHODS
    found.save(tmp_path / "part")
    loaded = ab.Audit.load(tmp_path / "part")
    assert repr(loaded) == repr(found)
    assert loaded.recommended == found.recommended
    with pytest.raises(ab.AbsentiaError, match="seconds must be a positive number"):
        ab.audit(model, randn(40, 6), seconds=0)


def change(model):
    torch.nn.init.ones_(model.net[-1].bias)


def slow_down(model):
    change(model)
    time.sleep(0.02)


def break_off(model):
    change(model)
    interrupt(model)


@pytest.mark.parametrize("action", [slow_down, break_off])
def test_an_audit_that_ends_early_checks_that_the_model_is_the_same(action, monkeypatch):
    monkeypatch.setattr("absentia.models.rows_per_batch", lambda *_: 16)
    monkeypatch.setattr(AUDITOR, "_STEPS", 10**9)
    with pytest.raises(ab.AbsentiaError, match="model must return the same for the same sample"):
        ab.audit(StopsAfter(500, action), randn(40, 6), None, METHODS, readout=ab.Output(0), seconds=1.0)


def test_the_bar_tells_rows_and_time(monkeypatch):
    shown = []

    class Bar:
        def __init__(self, *arguments):
            shown.append(arguments)

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def update(self, rows):
            shown.append(rows)

    monkeypatch.setattr(AUDITOR, "progress", Bar)
    found = ab.audit(mlp(4), randn(20, 4), None, METHODS)
    total, title, unit = shown[0]
    assert title.startswith("auditing, about ")
    assert title.endswith(" s")
    assert unit == "row"
    assert sum(shown[1:]) == total == found.record.evaluations


def test_values_that_do_not_vary_predict_nothing():
    found = ab.audit(mlp(3), randn(1, 3), None, METHODS, data=randn(9, 3), draws=1)
    assert found.recommended is None
    assert found.verdict[0] == "Use none by this audit: v(N) does not vary, so that there is nothing to predict."
    assert "could not be compared" in found.verdict[1]
