"""Absences by word and number: the same as the library makes from data."""

import numpy as np
import pytest
import torch

from absentia import AbsentiaError, Players
from absentia.absences import Baseline, Blur, GaussianConditional, Marginal, NearestNeighbours, Noise
from absentia.absences.words import WORDS, named_absence, usual_absences

ROWS = torch.rand(40, 3, generator=torch.Generator().manual_seed(0))
IMAGES = torch.rand(6, 1, 60, 80, generator=torch.Generator().manual_seed(1))
TOKENS = torch.randint(9, (20, 4), generator=torch.Generator().manual_seed(2))


def masked(absence, x):
    """What an absence puts in for the first column."""
    presence = torch.ones(1, 1, *x.shape[1:], dtype=torch.bool)
    presence[..., 0] = False
    return absence.bind(x)(slice(None), presence)


@pytest.mark.parametrize(
    ("word", "made"),
    [
        ("zero", lambda x: Baseline(0.0)),
        (0, lambda x: Baseline(0.0)),
        (0.25, lambda x: Baseline(0.25)),
        (np.float64(0.25), lambda x: Baseline(0.25)),
        ("0.25", lambda x: Baseline(0.25)),
        ("-1e-3", lambda x: Baseline(-1e-3)),
        ("mean", Baseline.mean),
        ("median", Baseline.median),
        ("mode", Baseline.mode),
        ("marginal", Marginal),
        ("marginal:7", lambda x: Marginal(x, draws=7, seed=5)),
        ("noise", lambda x: Noise(x, seed=5)),
        ("noise:3", lambda x: Noise(x, draws=3, seed=5)),
        ("gaussian", lambda x: GaussianConditional(x, seed=5)),
        ("gaussian:4", lambda x: GaussianConditional(x, draws=4, seed=5)),
        ("neighbours", lambda x: NearestNeighbours(x, seed=5)),
        ("neighbours:2", lambda x: NearestNeighbours(x, neighbours=2, seed=5)),
    ],
)
def test_words_are_the_absences_of_the_library(word, made):
    found = named_absence(word, ROWS, seed=5)
    torch.testing.assert_close(masked(found, ROWS[:2]), masked(made(ROWS), ROWS[:2]))


def test_an_absence_is_returned_as_it_is():
    absence = Blur(2.0)
    assert named_absence(absence) is absence


def test_data_come_as_arrays_and_lists():
    assert named_absence("mean", [[0.0, 2.0], [1.0, 4.0]]).values.tolist() == [0.5, 3.0]
    assert named_absence("mean", ROWS.numpy()).values.tolist() == Baseline.mean(ROWS).values.tolist()


def test_a_blur_fits_the_image_and_a_marginal_is_a_hundred_rows():
    assert named_absence("blur", IMAGES) == Blur(3.0)
    assert named_absence("blur", players=Players.grid((1, 60, 80), (2, 2))) == Blur(3.0)
    assert named_absence("blur", IMAGES[..., :8, :8]) == Blur(1.0)
    assert named_absence("blur:0.5") == Blur(0.5)
    assert repr(named_absence("marginal", torch.rand(150, 3))) == "Marginal(100 of 150 rows)"
    assert repr(named_absence("neighbours", ROWS[:4])) == "NearestNeighbours(4 of 4 rows, standardised)"


@pytest.mark.parametrize(
    ("word", "message"),
    [
        (
            "meen",
            "absence must be an absence, a number, or one of zero, mean, .* Got 'meen' instead. Some take a num",
        ),
        ("blur:", "absence must be an absence, a number, or one of"),
        ("zero:3", "absence must be zero without a number. Got zero:3"),
        ("mean:3", "absence must be mean without a number"),
        ("median:3", "absence must be median without a number"),
        ("mode:3", "absence must be mode without a number"),
        ("blur:x", "absence must give the blur a number of pixels, as in blur:2. Got blur:x"),
        ("blur:-1", "sigma must be a positive number"),
        ("marginal:x", "absence must give marginal a whole number, as in marginal:10"),
        ("marginal:99", "draws must lie between 1 and 40"),
        ("noise:0", "draws must be at least 1"),
        ("neighbours:0", "neighbours must lie between 1"),
        ("nan", "values must be finite"),
        ("learned", r"A learned absence has to be learned first. Call learn_baseline\(model, x, y\)"),
        (Baseline, "absence must be an absence .* Got the class Baseline"),
    ],
)
def test_what_is_no_absence_gets_a_sentence(word, message):
    with pytest.raises(AbsentiaError, match=message):
        named_absence(word, ROWS)


@pytest.mark.parametrize("word", [word for word in WORDS if word != "zero"])
def test_words_that_need_data_say_so(word):
    with pytest.raises(AbsentiaError, match=rf"The absence '{word}' is computed from data. Pass data=…"):
        named_absence(word)


def test_absences_keep_to_categories():
    data = torch.cat([ROWS, TOKENS[:, :1].repeat(2, 1)], dim=1)
    for word in ("mean", "blur:1", "noise", "gaussian"):
        with pytest.raises(AbsentiaError, match=r"absence must keep to the categories .* Use median"):
            named_absence(word, data, categorical=[3])
    median = named_absence("median", data, categorical=[3])
    assert median.values[3] == data[:, 3].mode().values


def test_the_usual_absences_depend_on_the_kind_of_data():
    table, image = Players.features(3), Players.grid((1, 60, 80), (2, 2))
    usual = usual_absences(ROWS, table)
    assert list(usual) == ["zero", "mean", "median", "marginal", "gaussian"]
    assert repr(usual["marginal"]) == "Marginal(32 of 40 rows)"
    assert list(usual_absences(ROWS, table, categorical=[2])) == ["median", "mode", "marginal", "neighbours"]
    assert list(usual_absences(IMAGES, image)) == ["zero", "mean", "blur", "noise", "marginal"]
    assert list(usual_absences(TOKENS, Players.tokens(4))) == ["mode", "marginal"]
    for data, players in ((ROWS, table), (IMAGES, image), (TOKENS, Players.tokens(4))):
        for absence in usual_absences(data, players).values():
            assert masked(absence, data[:2]).shape[0] == 2


def test_a_covariance_of_many_entries_or_of_one_row_is_left_out():
    assert "gaussian" not in usual_absences(torch.rand(4, 2000), Players.features(2000))
    assert "gaussian" not in usual_absences(ROWS[:1], Players.features(3))
