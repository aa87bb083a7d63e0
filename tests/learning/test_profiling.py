"""Profiles of values that were learned for functions whose answer is known."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.ensemble import HistGradientBoostingRegressor
from torch import nn

import absentia as ab
from absentia.learning import LearningOptions, learn_baseline
from absentia.learning.value_profiles import ProfileKind, ProfilePath, SkipReason
from experiments.known_shapley import draw_inputs
from experiments.worked_examples import lone_variables, worked_examples
from seeded_draws import generator

OLD_FILES = Path(__file__).parents[1] / "old_files"

DETERMINED = ProfileKind.DETERMINED
NO_EFFECT = ProfileKind.NO_EFFECT
ADDITIVE = ProfileKind.ADDITIVE


def uniform(samples=256, players=3, low=0.0):
    return low + (1 - low) * torch.rand(samples, players, generator=generator()).double()


def gated(rows):
    """A plateau for the first entry up to 0.6, where its gradient is 0; the third entry is ignored."""
    return (rows[:, 0] - 0.6).relu() * rows[:, 1]


@pytest.mark.parametrize("loss", ["shapley", "marginal", "interactions"])
def test_a_gradient_of_zero_does_not_make_a_player_undetermined(loss):
    """The mean of the first entry lies on the plateau, so that its gradient is 0 throughout the search."""
    x = uniform()
    learned = learn_baseline(gated, x, loss=loss, options=LearningOptions(steps=30))
    profile = learned.profiles.of(0)
    assert profile.kind is ProfileKind.IN_A_RANGE
    assert profile.low == pytest.approx(float(x[:, 0].min()), abs=0.01)
    assert profile.high == pytest.approx(0.6, abs=0.06)
    assert bool((profile.excess[profile.points < 0.6] == 0).all())
    assert learned.profiles.kinds()[2] is NO_EFFECT
    assert learned.undetermined == [False, False, True]
    assert learned.record.undetermined == ("x2",)
    assert learned.values[2] == pytest.approx(float(x[:, 2].mean()))


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["shapley", "interactions"])
def test_factors_of_products_are_determined_and_lone_terms_are_additive(loss):
    """The paper's first worked example: one product of two variables, four lone terms, and a variable without any."""
    case = worked_examples()[0].case
    x = draw_inputs(256, 2)[:, : len(case.x)]
    learned = learn_baseline(case.function.model, x, loss=loss, start=0.5, bounds=(0.0, 1.0))
    kinds = learned.profiles.kinds()
    lone = lone_variables(case.function.model)
    assert {player for player, kind in enumerate(kinds) if kind is ADDITIVE} == lone
    assert {player for player, kind in enumerate(kinds) if kind is DETERMINED} == {3, 5}
    assert {player for player, kind in enumerate(kinds) if kind is NO_EFFECT} == {1}
    assert learned.record.undetermined == ("x1",)


def test_the_other_of_two_level_minima_is_found():
    x = uniform(low=-1.0)
    learned = learn_baseline(
        lambda rows: 2 * (rows[:, 0].square() - 0.25) * rows[:, 1],
        x,
        loss="interactions",
        start=0.4,
        options=LearningOptions(steps=40, rows_per_comparison=2**14),
    )
    profile = learned.profiles.of(0)
    assert profile.kind is ProfileKind.SEVERAL_MINIMA
    assert learned.values[0] == pytest.approx(0.5, abs=0.02)
    assert profile.other_minima == (pytest.approx(-0.5, abs=0.02),)
    assert learned.profiles.kinds()[1:] == (DETERMINED, NO_EFFECT)


def test_a_flat_valley_is_a_range():
    x = uniform(low=-1.0)
    learned = learn_baseline(
        lambda rows: (rows[:, 0].abs() - 0.5).relu() * (2 + rows[:, 1]),
        x,
        loss="interactions",
        options=LearningOptions(steps=20),
    )
    profile = learned.profiles.of(0)
    assert profile.kind is ProfileKind.IN_A_RANGE
    assert (profile.low, profile.high) == (pytest.approx(-0.5, abs=0.15), pytest.approx(0.5, abs=0.15))


def test_profiles_change_nothing_but_what_is_said():
    x = uniform()
    whole, without = (
        learn_baseline(gated, x, options=LearningOptions(steps=10, profiles=profiles)) for profiles in (True, False)
    )
    assert torch.equal(whole.values[:2], without.values[:2])
    assert (whole.loss, whole.evaluations) == (without.loss, without.evaluations)
    assert without.profiles is None
    assert without.record.undetermined == ()  # a gradient of 0 tells nothing
    assert "values" not in repr(without).split()
    assert 0 < whole.profiles.evaluations <= 0.36 * whole.evaluations


@pytest.mark.slow
def test_each_class_and_each_sample_has_its_profile():
    x = uniform(64)
    y = (x[:, 1] > 0.5).long()
    options = LearningOptions(steps=20, rows_per_step=2**12)
    of_classes = learn_baseline(gated, x, y, share="class", readout=ab.Output(0), options=options)
    assert of_classes.profiles.owners == 2
    assert of_classes.profiles.kinds(0)[2] is of_classes.profiles.kinds(1)[2] is NO_EFFECT
    assert of_classes.to_frame()["kind"].tolist()[2::3] == ["no effect"] * 2
    of_samples = learn_baseline(gated, x[:4], share="sample", options=options)
    assert of_samples.profiles.owners == 4
    assert "x2  no effect for 4 of 4 samples" in repr(of_samples)


def test_players_of_several_entries_are_moved_along_quantiles():
    x = uniform(64, 8).reshape(64, 1, 2, 4)
    players = ab.Players.grid((1, 2, 4), cells=(1, 2))
    learned = learn_baseline(
        lambda rows: rows[:, 0, :, :2].sum((1, 2)) - 1, x, players=players, options=LearningOptions(steps=10)
    )
    assert learned.profiles.paths == (ProfilePath.LEVELS,) * 2
    assert learned.profiles.kinds()[1] is NO_EFFECT
    assert learned.to_frame()["low"].isna().all()


@pytest.mark.slow
def test_categories_are_profiled_over_their_codes():
    """Only code 2 matters, so that the others are level; the third column is ignored."""
    codes = np.random.default_rng(0).integers(0, 4, (200, 2))
    x = np.column_stack([np.random.default_rng(1).random(200), codes])
    model = ab.from_numpy(lambda rows: (1 + rows[:, 0]) * (rows[:, 1] == 2))
    learned = learn_baseline(model, x, categorical=[1, 2], options=LearningOptions(rows_per_step=2**12))
    profile = learned.profiles.of(1)
    assert profile.path is ProfilePath.CODES
    assert profile.learned != 2
    assert set(profile.other_minima) == {0.0, 1.0, 3.0} - {profile.learned}
    assert learned.profiles.kinds()[2] is NO_EFFECT


@pytest.mark.slow
def test_leaves_give_profiles_without_running_the_model():
    x = np.random.default_rng(0).random((300, 3))
    booster = HistGradientBoostingRegressor(max_iter=20, random_state=0).fit(x, (x[:, 0] > 0.5) * x[:, 1])
    learned = learn_baseline(booster, x[:, :3])
    assert learned.record.trees == 20
    assert learned.profiles.evaluations == 0
    assert learned.profiles.samples > 0
    split = learned.profiles.of(0)
    assert split.kind is ProfileKind.IN_A_RANGE
    assert (split.low, split.high) == (pytest.approx(0.5, abs=0.03), pytest.approx(1.0, abs=0.01))
    assert learned.profiles.kinds()[2] is NO_EFFECT


@pytest.mark.parametrize("stops_at", ["time", "interrupt"])
def test_players_that_were_not_reached_have_no_profile(stops_at, monkeypatch):
    from absentia.learning import profiling
    from absentia.runtime.limits import OutOfTime

    measure = profiling._measure

    def stopping(run, loss, path, player):
        if player == 1:
            raise OutOfTime(1.0) if stops_at == "time" else KeyboardInterrupt
        return measure(run, loss, path, player)

    monkeypatch.setattr(profiling, "_measure", stopping)
    learned = learn_baseline(gated, uniform(), options=LearningOptions(steps=5))
    reason = SkipReason.TIME if stops_at == "time" else SkipReason.INTERRUPTED
    assert learned.profiles.reasons[1] is reason
    assert learned.profiles.kinds()[1] is ProfileKind.NOT_PROFILED
    assert reason in learned.profiles.reasons
    assert "not profiled: " in repr(learned)


def test_many_players_are_profiled_as_far_as_the_search_affords():
    x = uniform(64, 400)
    options = LearningOptions(steps=5, rows_per_step=2**12)
    learned = learn_baseline(lambda rows: rows[:, 0] * rows[:, 1], x, options=options)
    profiled = sum(reason is None for reason in learned.profiles.reasons)
    assert 0 < profiled < 400
    assert learned.profiles.reasons.count(SkipReason.COST) == 400 - profiled
    assert learned.profiles.evaluations < 0.5 * learned.evaluations


def test_profiles_are_saved_and_old_files_have_none(tmp_path):
    learned = learn_baseline(gated, uniform(), options=LearningOptions(steps=5))
    learned.save(tmp_path / "learned.ab")
    loaded = ab.load(tmp_path / "learned.ab")
    assert loaded.profiles.kinds() == learned.profiles.kinds()
    assert repr(loaded) == repr(learned)
    assert loaded.to_frame().equals(learned.to_frame())
    for name in ("baseline", "baseline_class", "baseline_format1"):
        old = ab.load(OLD_FILES / f"{name}.safetensors")
        assert old.profiles is None
        assert set(old.to_frame()["kind"]) <= {"not profiled", "fixed"}
        assert old.player_notes == []


def test_a_resumed_search_has_the_same_profiles(tmp_path):
    x = uniform()
    options = LearningOptions(steps=5, checkpoint=tmp_path / "kept")
    first = learn_baseline(gated, x, options=options)
    again = learn_baseline(gated, x, options=options)
    torch.testing.assert_close(again.profiles.excess, first.profiles.excess, rtol=0, atol=0, equal_nan=True)


def test_a_network_in_single_precision_ignores_a_player_up_to_rounding():
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1), nn.Flatten(0))
    with torch.no_grad():
        network[0].weight[:, 2] = 0
    learned = learn_baseline(network, uniform(128, 4).float(), options=LearningOptions(steps=10))
    kinds = learned.profiles.kinds()
    assert kinds[2] is NO_EFFECT
    assert NO_EFFECT not in kinds[:2]
    assert replace(learned, profiles=None).undetermined == [False, False, True, False]
