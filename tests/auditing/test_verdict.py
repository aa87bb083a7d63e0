"""The rule of the audit on figures made by hand: what is out, what decides, how sure it is, and how it is said."""

import math
import re

import pytest
import torch

import absentia as ab
from absentia.auditing.audit_record import AuditRecord, Cost
from absentia.auditing.masked_scores import FullyMasked, MaskingCurve
from absentia.auditing.own_games import Companions
from absentia.auditing.plausibility import Plausibility
from absentia.auditing.removal import Removal
from absentia.auditing.verdict import Verdict
from absentia.readout_notes import NOT_RECORDED
from seeded_draws import randn


def column(values, samples, spread, seed):
    """Pseudo-values of one group: each method's figure, and jitter whose mean is 0, the same for all methods."""
    jitter = randn(samples, seed=seed)
    jitter = spread * (jitter - jitter.mean())
    return (torch.tensor(values).double()[:, None] + jitter)[..., None]


def constructed(
    leak, invention, score, length, distance=None, spread=0.05, samples=200, surrogates=(), whole=0.2, **more
):
    """Make an audit of figures by hand; the prior scores 1, and all that there is to know is 2.

    ``length`` is a number for each method, or what the logarithms are means of: (methods, samples, groups of draws).
    """
    methods = len(leak)
    ones = torch.ones(samples).double()
    empty = FullyMasked(
        leaks=column(leak, samples, spread, 0),
        inventions=column(invention, samples, spread, 1),
        averaging=torch.zeros(methods, samples, 1).double(),
        prior=ones,
        whole=whole * ones,
    )
    scores = column(score, samples, spread, 2)
    curve = MaskingCurve(
        scores.expand(-1, -1, 2), ones, torch.tensor([0, 5]), "nats", limit=2.0, by_draws=scores, **more
    )
    if isinstance(length, torch.Tensor):
        lengths = length
    else:
        lengths = column([math.log(number) for number in length], samples, spread, 3)
    figure = torch.ones_like(lengths)
    games = Companions(figure, lengths.exp(), figure[..., None], figure, figure, figure[..., None], lengths)
    strengths = torch.ones(samples, 3).double()
    removal = Removal(strengths.expand(methods, -1, -1), strengths, 0 * strengths, torch.zeros(samples).double())
    distances = torch.tensor(distance or [1.0] * methods).double()
    plausibility = Plausibility(distances, torch.zeros(methods, 1, dtype=torch.bool))
    names = tuple(chr(ord("a") + number) for number in range(methods))
    costs = dict.fromkeys(names, Cost())
    record = AuditRecord(NOT_RECORDED, samples, 3, True, ("x",), 0, costs, Cost(), (), surrogates=surrogates)
    return ab.Audit(names, ("x",), removal, games, plausibility, record, curve, fully_masked=empty)


RULE = {
    "a leak is out": (
        {"leak": [0.2, 0], "invention": [0, 0.5], "score": [0.3, 1], "length": [2, 90]},
        ["leaks", "best"],
    ),
    "a leak of less than 5 % of the prior's score is none": (
        {"leak": [0.04, 0], "invention": [0, 0.5], "score": [0.5, 1], "length": [2, 90]},
        ["best", "score"],
    ),
    "a leak within its error is none": (
        {"leak": [0.06, 0], "invention": [0, 0.5], "score": [0.5, 1], "length": [2, 90], "spread": 0.8},
        ["best", "score"],
    ),
    "what always stays is no leak": (
        {"leak": [0.5, 0], "invention": [0, 0], "score": [0.3, 1], "length": [2, 90], "all_absent": False},
        ["best", "score"],
    ),
    "an invention of more than all there is to know is out": (
        {"leak": [0, 0], "invention": [3, 1.9], "score": [0.3, 1], "length": [2, 90]},
        ["invents", "best"],
    ),
    "leak and invention do not cancel": (
        {"leak": [0.5, 0], "invention": [0.5, 0.3], "score": [0.3, 1], "length": [2, 90]},
        ["leaks", "best"],
    ),
    "a worse score is out": (
        {"leak": [0, 0], "invention": [0, 0], "score": [0.5, 0.7], "length": [90, 2]},
        ["best", "score"],
    ),
    "scores within 10 % of the prior's are level": (
        {"leak": [0, 0], "invention": [0, 0], "score": [0.5, 0.59], "length": [90, 2]},
        ["length", "best"],
    ),
    "but at most a third of what whole samples tell": (
        {"leak": [0, 0], "invention": [0, 0], "score": [0.5, 0.59], "length": [90, 2], "whole": 0.8},
        ["best", "score"],
    ),
    "lengths within 1.25 are level and the distance decides": (
        {"leak": [0, 0], "invention": [0, 0], "score": [0.5, 0.5], "length": [12, 10], "distance": [1.0, 2.0]},
        ["best", "distance"],
    ),
    "lengths beyond 1.25 are not": (
        {"leak": [0, 0], "invention": [0, 0], "score": [0.5, 0.5], "length": [13, 10], "distance": [1.0, 2.0]},
        ["length", "best"],
    ),
    "a surrogate is never recommended": (
        {"leak": [0, 0], "invention": [0, 0], "score": [0.1, 0.5], "length": [2, 90], "surrogates": ("a",)},
        ["surrogate", "best"],
    ),
    "none if all leak or invent": (
        {"leak": [1, 0], "invention": [0, 5], "score": [1, 3], "length": [1, 1]},
        ["leaks", "invents"],
    ),
    "unknown lengths decide nothing": (
        {
            "leak": [0, 0],
            "invention": [0, 0],
            "score": [0.5, 0.5],
            "length": [math.nan, math.nan],
            "distance": [1.0, 2.0],
        },
        ["best", "distance"],
    ),
    "unknown leaks are not judged": (
        {"leak": [math.nan, 0], "invention": [0, 0], "score": [0.1, 0.5], "length": [1, 2]},
        ["", "best"],
    ),
}


@pytest.mark.parametrize(("figures", "stages"), RULE.values(), ids=RULE.keys())
def test_the_rule_is_honest_first_then_short(figures, stages):
    found = constructed(**figures)
    assert list(found.judgement.stages) == stages
    assert found.recommended == ("ab"[stages.index("best")] if "best" in stages else None)
    first, *lines = found.verdict
    assert first.startswith(f"Use {found.recommended or 'none of these'} (in ")
    assert len(lines) == 2
    assert found.recommended in (None, "ab"[found.order[0]])


def test_the_sentence_names_a_method_for_each_reason_and_the_price_of_a_longer_account():
    found = constructed(
        leak=[0, 0, 0.5, 0, 0],
        invention=[0.3, 0, 0, 3, 0],
        score=[0.437, 0.9, 0.2, 2.5, 0.401],
        length=[15, 15, 2, 3, 1658],
        spread=0.01,
    )
    assert found.verdict[0] == (
        "Use a (in 100 % of resamples): it leaks nothing, invents 0.3 nats and needs 15 interactions; e predicts 8 % "
        "better but needs 111 times the interactions, b predicts worse (score 0.9), d invents 3 nats."
    )
    assert found.order[0] == 0
    assert found.order[-1] == 2


def test_neither_is_said_only_of_methods_within_their_errors():
    small = constructed([0.0, 0.0], [0.02, 0.0], [0.5, 0.5], [10, 10], spread=0.02, distance=[1.0, 2.0])
    assert "a leaks nothing, invents 0.02" in " ".join(small.verdict)
    assert "b neither leaks nor invents" in " ".join(small.verdict)
    both = constructed([0.03, 0.0], [0.04, 0.0], [0.5, 0.5], [10, 10], spread=0.02, distance=[1.0, 2.0])
    assert re.search(r"a leaks 0.0300 ± [\d.]+ nats and invents 0.0400 ± [\d.]+ nats", " ".join(both.verdict))


def uncertain(length, samples, spread=0.6):
    """Two methods that differ in length alone, with errors of their own."""
    jitter = spread * randn(2, samples, 1, seed=5)
    jitter -= jitter.mean(1, keepdim=True)
    lengths = torch.tensor(length).double().log()[:, None, None] + jitter
    return constructed([0, 0], [0, 0], [0.5, 0.5], lengths, samples=samples, distance=[1.0, 2.0])


def test_the_confidence_is_the_share_of_resamples_with_the_same_winner():
    sure = uncertain([20, 10], samples=50)
    assert sure.recommended == "b"
    assert sure.confidence > 0.95
    assert sure.level == ("b",)
    # The length is level below a factor of 1.25: at the border it wins in half of the resamples.
    border = uncertain([12.6, 10], samples=200)
    assert border.confidence == pytest.approx(0.5, abs=0.15)
    assert set(border.level) == {"a", "b"}
    assert sum(border.judgement.shares) == pytest.approx(1)


def test_level_methods_are_named_with_what_would_tell_them_apart():
    near = uncertain([13, 10], samples=50)
    assert near.recommended == "b"
    assert near.confidence < 2 / 3
    assert re.match(r"Use b or a: level \(b wins in \d+ % of resamples, a in \d+ %\)\. About ", near.verdict[0])
    assert "times as many samples would tell them apart. b neither leaks nor invents " in near.verdict[0]
    assert near.verdict[2].startswith("a neither leaks nor invents; it is level, and wins in ")
    border = uncertain([12.5001, 10], samples=50)
    assert "More samples would not tell them apart: use either." in border.verdict[0]


def judged(shares, times_the_samples):
    """Return the first sentences of an audit whose resamples the first method wins, with these shares."""
    methods = len(shares) - 1
    audit = constructed([0] * methods, [0] * methods, [0.5] * methods, [10] * methods)
    stages = ("best", *["score"] * (methods - 1))
    vars(audit)["judgement"] = Verdict(stages, shares, times_the_samples)  # where the cached property looks first
    return audit.verdict[0].split(" a neither ")[0]


def test_the_sentence_on_unclear_answers_fits_the_number_of_likely_methods():
    assert judged((0.5, 0.4, 0.1), 4) == (
        "Use a or b: level (a wins in 50 % of resamples, b in 40 %, none in 10 %). "
        "About 4 times as many samples would tell them apart."
    )
    assert judged((0.4, 0.3, 0.3, 0.0), None) == (
        "Use a, b or c: level (a wins in 40 % of resamples, b in 30 %, c in 30 %). "
        "More samples would not tell them apart: use any."
    )
    assert judged((0.55, 0.05, 0.4), None) == (
        "Use a, or none of these: a wins in 55 % of resamples, none in 40 %. More samples would not make this clear."
    )
    assert judged((0.6, 0.09, 0.09, 0.09, 0.09, 0.04), 10) == (
        "Use a: a wins in 60 % of resamples, each other method in less than 10 %. "
        "About 10 times as many samples would make this clear."
    )


def test_what_was_not_measured_has_no_confidence():
    found = constructed([math.nan] * 2, [math.nan] * 2, [0.5, 0.5], [1, 2])
    assert found.recommended is None
    assert math.isnan(found.confidence)
    assert found.level == ()
    assert found.verdict[0] == "No recommendation: the score of masked samples was not measured."


def test_draws_are_resampled_too():
    """All that differs is between draws: with few of them the answer is not sure, however many samples there are."""
    lengths = torch.tensor([13.0, 10.0]).double().log()[:, None, None].expand(2, 500, 4)
    sure = constructed([0, 0], [0, 0], [0.5, 0.5], lengths, distance=[1.0, 2.0], samples=500)
    assert sure.recommended == "b"
    assert sure.confidence == 1
    of_draws = torch.tensor([1.4, -0.9, 0.3, -0.8]).double()
    unsure = constructed([0, 0], [0, 0], [0.5, 0.5], lengths + of_draws, distance=[1.0, 2.0], samples=500)
    assert unsure.recommended == "b"
    assert unsure.confidence < 0.8
