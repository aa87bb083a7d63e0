"""Absences from words and files."""

import numpy as np
import pytest
import torch

import absentia as ab
from absentia import AbsentiaError
from absentia.cli.absence_words import load_absences
from absentia.cli.inputs import Inputs
from absentia.cli.player_words import load_players
from absentia.cli.problem import Problem
from absentia.cli.raw_data import RawData
from absentia.cli.sample_files import make_samples
from absentia.cli.saved_words import saved_coding
from command_tables import CLASSES, NETWORK, ROWS, fitted, learn, samples, table_frame
from own_files import make_network


def absences(words, data=None, players=None, chosen=(0, 1), seed=0):
    data = data or make_samples(RawData(ROWS, CLASSES), NETWORK)
    players = players or load_players(None, data)
    return load_absences(
        words, Problem(Inputs("m", "d", seed=seed), NETWORK, data, torch.tensor(chosen), players, [])
    )


def test_words_are_those_of_the_library_with_the_background_and_the_seed():
    x = torch.from_numpy(ROWS)
    found = absences(["zero", "half=0.25", "mean", "marginal:7"], seed=5)
    assert list(found) == ["zero", "half", "mean", "marginal"]
    assert found["half"].values.item() == 0.25
    torch.testing.assert_close(found["mean"].values, ab.Baseline.mean(x.float()).values)  # as the network takes them
    expected = ab.Marginal(x, draws=7, seed=5)
    samples = x[:1].float()
    torch.testing.assert_close(found["marginal"].bind(samples).values, expected.bind(samples).values)


def test_a_sample_is_not_its_own_neighbour():
    assert len(absences(["neighbours:2"], chosen=(0, 1))["neighbours"].rows) == 38
    with pytest.raises(AbsentiaError, match="hold rows besides the chosen samples"):
        absences(["neighbours"], chosen=range(40))


def test_a_background_is_where_absences_come_from(folder):
    np.save("high.npy", ROWS + 10)
    data = samples("data.npz", None, background="high.npy")
    assert float(absences(["mean"], data)["mean"].values.min()) > 10
    found = absences(["neighbours:40"], data)["neighbours"]  # all of it: the samples are not among them
    assert len(found.rows) == 40


def test_saved_absences_are_read_whichever_they_are(folder):
    x = torch.from_numpy(ROWS).float()
    learned = learn()
    imputer = ab.train_imputer(x, epochs=1, progress=False)
    surrogate = ab.train_surrogate(make_network(), x, epochs=1, progress=False)
    for name, absence in (("base", learned), ("imputer", imputer), ("surrogate", surrogate)):
        absence.save(f"{name}.absentia")
    found = absences(["base.absentia", "imputer.absentia", "other=surrogate.absentia"])
    assert list(found) == ["base", "imputer", "other"]
    assert [type(one) for one in found.values()] == [ab.LearnedBaseline, ab.Imputer, ab.Surrogate]
    torch.testing.assert_close(found["base"].values, learned.values)
    assert saved_coding(["zero", "base.absentia", "missing.absentia"]) is None
    renamed = ab.Players.features(["x2", "x1", "x0"])
    with pytest.raises(AbsentiaError, match=r"absence must have values for the players in their order. Got x0, x1"):
        ab.MaskedModel(make_network(), x[:1], absence=found["base"], players=renamed)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["meen"], "absence must be"),
        (["blur:"], "absence must be"),
        (["zero:3"], "zero"),
        (["zero", "zero"], r"'zero' twice instead. Give one of them another name"),
        (["a=zero", "a=mean"], "'a' twice"),
        (["missing.absentia"], "absence must name a file that exists"),
        (["w.safetensors"], "be a file that absentia saved"),
        (["data.csv"], "be a file that absentia saved"),
        (["found.absentia"], "be a saved baseline, imputer or surrogate. Got found.absentia, a saved explanation"),
    ],
)
def test_what_is_no_absence_gets_a_sentence(folder, words, message):
    ab.explain(make_network(), ROWS[:1], absence=ab.Baseline(0.0)).save("found.absentia")
    with pytest.raises(AbsentiaError, match=message):
        absences(words)


def test_absences_keep_to_categories(folder):
    table_frame().to_csv("table.csv", index=False)
    data = samples("table.csv", "kind", fitted())
    for word in ("blur:1", "noise"):
        with pytest.raises(AbsentiaError, match="median"):
            absences([word], data)
    median = absences(["median"], data)["median"]
    torch.testing.assert_close(median.values, ab.Baseline.median(data.x, categorical=[3, 4]).values.to(median.values))
