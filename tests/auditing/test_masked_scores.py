"""The masking curve by hand."""

import itertools
import math

import pytest
import torch

import absentia as ab
from absentia.absences import StandIns
from audited_cases import METHODS, two_blobs
from known_games import mlp
from seeded_draws import randn


class OwnModel:
    """An absence that brings its own model, which reads NaN as 0."""

    def bind(self, x):
        return StandIns(x, torch.full_like(x[:1], math.nan)[None])

    def instead_of(self, model):
        return lambda rows: model(rows.nan_to_num(0.0))


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


@pytest.mark.slow
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
    assert float(kept.leak.value) > 0.5
    assert "leak" not in kept.verdict[0]
    assert kept.recommended == "zero"


def test_values_that_do_not_vary_predict_nothing():
    few = ab.audit(mlp(3), randn(1, 3), None, METHODS, data=randn(9, 3), draws=1)
    assert few.recommended is None
    assert few.verdict == ("No recommendation: there are too few samples: pass at least 5.",)
    same = ab.audit(mlp(3), randn(1, 3).expand(9, -1), None, METHODS, data=randn(9, 3), draws=1)
    assert same.verdict == ("No recommendation: v(N) does not vary, so that there is nothing to predict.",)
    assert math.isnan(same.confidence)
