"""Data, players, absences and readouts from words and files are those that the library makes from arrays."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import absentia as ab
from absentia import AbsentiaError
from absentia.cli.absence_words import load_absences
from absentia.cli.data_files import read_data
from absentia.cli.inputs import Inputs
from absentia.cli.output import finish
from absentia.cli.player_words import load_players
from absentia.cli.problem import Problem
from absentia.cli.raw_data import RawData
from absentia.cli.readout_words import load_readout
from absentia.cli.sample_files import make_samples
from absentia.cli.saved_words import saved_coding
from absentia.cli.trial_runs import fit_model
from own_files import make_network, make_rows, write_files

NETWORK = make_network()
ROWS, CLASSES = make_rows()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return write_files(tmp_path)


def samples(source="data.csv", target="kind", model=NETWORK, background=None, **options):
    other = None if background is None else read_data(background, target, argument="background")
    names = {key: options.pop(key) for key in ("classes", "coding") if key in options}
    return make_samples(read_data(source, target, **options), model, other, **names)


def test_csv_parquet_and_npz_hold_the_same(folder):
    frame = pd.read_csv("data.csv")
    frame.to_parquet("data.parquet")
    frame.to_csv("data.tsv", sep="\t", index=False)
    for source, target in (("data.csv", "kind"), ("data.parquet", "kind"), ("data.tsv", "kind"), ("data.npz", None)):
        found = samples(source, target)
        np.testing.assert_allclose(found.x.numpy(), ROWS)
        assert found.y.tolist() == CLASSES.tolist()
        assert found.background_is_data


def test_arrays_are_found_by_their_names(folder):
    np.savez("named.npz", rows=ROWS, kind=CLASSES, other=ROWS * 2)
    assert read_data("named.npz:rows", "kind").target.tolist() == CLASSES.tolist()
    np.testing.assert_allclose(read_data("named.npz:other").inputs, ROWS * 2)
    np.testing.assert_allclose(read_data("./data.npz").inputs, ROWS)
    np.savez("one.npz", only=ROWS)
    np.testing.assert_allclose(read_data("one.npz").inputs, ROWS)
    np.save("x.npy", ROWS)
    assert read_data("x.npy", rows=7).inputs.shape == (7, 3)
    with pytest.raises(AbsentiaError, match=r"file\.npz:key"):
        read_data("named.npz")


def test_a_malicious_array_does_not_run(folder):
    class Malicious:
        def __reduce__(self):
            return Path("it-ran").mkdir, ()

    np.savez("bad.npz", x=np.array([[Malicious()]], dtype=object))
    with pytest.raises(AbsentiaError, match="which can run code, are not read"):
        read_data("bad.npz")
    assert not Path("it-ran").exists()


def write_images(folder, names=("cat", "dog"), shape=(4, 4), count=3):
    from PIL import Image

    rng = np.random.default_rng(0)
    pixels = {}
    for name in names:
        (folder / name).mkdir(parents=True, exist_ok=True)
        for number in range(count):
            array = rng.integers(0, 256, shape, dtype=np.uint8)
            Image.fromarray(array).save(folder / name / f"{number}.png")
            pixels[name, number] = array
    return pixels


def test_a_folder_of_images_has_its_subfolders_as_classes(folder):
    pixels = write_images(folder / "pets")
    found = samples("pets", None)
    assert found.x.shape == (6, 1, 4, 4)
    assert found.y.tolist() == [0, 0, 0, 1, 1, 1]
    assert found.classes == ("cat", "dog")
    assert "0 is cat, 1 is dog" in found.notes[0]
    np.testing.assert_allclose(found.x[4, 0].numpy(), pixels["dog", 1] / 255, rtol=1e-6)
    assert samples("pets", None, classes=["dog", "cat"]).y.tolist() == [1, 1, 1, 0, 0, 0]
    assert samples("pets", None, rows=2).y.tolist() == [0, 1]  # one of each
    assert samples("pets/dog", None).y is None
    assert samples("pets", None, size=(2, 6), channels=3).x.shape == (6, 3, 2, 6)
    write_images(folder / "numbers", names=("10", "9"))
    assert samples("numbers", None).y.tolist() == [10, 10, 10, 9, 9, 9]
    write_images(folder / "colours", names=("one",), shape=(4, 5, 3))
    assert samples("colours", None).x.shape == (3, 3, 4, 5)


def test_images_of_sixteen_bits_keep_them(folder):
    from PIL import Image

    (folder / "deep").mkdir()
    Image.fromarray(np.array([[0, 65535], [256, 32768]], dtype=np.uint16)).save(folder / "deep" / "a.png")
    expected = torch.tensor([[0.0, 1.0], [256 / 65535, 32768 / 65535]])
    torch.testing.assert_close(samples("deep", None).x[0, 0], expected)


def numbers(target, classes=()):
    return make_samples(RawData(ROWS[: len(target)], np.array(target)), NETWORK, classes=classes).y.tolist()


def test_targets_are_numbered_in_the_order_of_the_model_or_refused():
    assert numbers([True, False]) == [1, 0]
    assert numbers([2.0, 0.0]) == [2, 0]
    assert numbers([7, 3], ["3", "7"]) == [1, 0]
    with pytest.raises(AbsentiaError, match="--classes no,yes"):
        numbers(["yes", "no"])
    with pytest.raises(AbsentiaError, match=r"target must hold classes of the model: no, yes. Got 'maybe'"):
        numbers(["maybe"], ["no", "yes"])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: read_data("missing.csv"), "data must name a file or a folder that exists"),
        (lambda: read_data("mymodule.py"), "be a folder of images, or one of"),
        (lambda: read_data("data.csv", "nothing"), "target must name a column of the table: a, b, c, kind"),
        (lambda: read_data("data.csv", drop=("nothing",)), "drop must name a column"),
        (lambda: read_data("data.csv", size=(2, 2)), "be left out if the data are not a folder"),
        (lambda: read_data("data.npz", drop=("a",)), "drop must be left out"),
        (lambda: read_data("data.npz", "nothing"), "target must name an array of data.npz: x, y"),
        (lambda: read_data("data.npz:nothing"), "data must name an array of data.npz: x, y. Got nothing"),
        (lambda: read_data("."), "hold images"),
        (lambda: read_data("pets", "kind"), "target must be left out for a folder"),
        (lambda: read_data("pets", channels=2), "channels must be 1 for grey or 3"),
        (lambda: read_data("mixed"), r"--size 224x224"),
        (lambda: read_data("unreadable"), "hold images that can be read"),
        (lambda: read_data("broken.npz"), "be a file of numpy arrays"),
        (lambda: read_data("empty.csv"), "hold at least one row"),
        (lambda: read_data("columns.csv"), "have each column once. Got 'a' more than once in columns.csv"),
        (
            lambda: samples(background="gaps.csv", target=None, source="two.csv"),
            "background must be finite. Got nan in column 'b', row 1",
        ),
        (lambda: read_data("twice.csv"), r"be a table that pandas can read"),
        (lambda: read_data("flat.npy"), r"hold samples, numbers of shape \(samples, …\)"),
        (lambda: samples("gaps.csv", None), "data must be finite. Got nan in column 'b', row 1"),
        (lambda: samples("text.csv", None), "Got text in 'b'"),
        (lambda: read_data("gaps.csv", "b"), "target must have no missing values"),
        (lambda: samples(background="data.npz"), "background must be a table"),
        (lambda: samples("data.npz", None, background="wide.npy"), "background must hold rows of the samples' shape"),
        (lambda: samples().choose([40], 1, 0), "sample must be a row from 0 to 39, each named once. Got 40"),
        (lambda: samples().choose([1, 1], 1, 0), "sample must be a row from 0 to 39, each named once. Got 1"),
    ],
)
def test_what_is_no_data_gets_a_sentence(folder, call, message):
    write_images(folder / "pets")
    write_images(folder / "mixed")
    write_images(folder / "mixed", names=("emu",), shape=(5, 5))
    (folder / "unreadable").mkdir()
    (folder / "unreadable" / "a.png").write_bytes(b"nonsense")
    (folder / "broken.npz").write_bytes(b"nonsense")
    (folder / "empty.csv").write_text("a,b\n")
    (folder / "twice.csv").write_text('a,b\n1,2\n"')
    (folder / "columns.csv").write_text("a,b,a\n1,2,3\n")
    (folder / "two.csv").write_text("a,b\n1,2\n")
    (folder / "gaps.csv").write_text("a,b\n1,2\n3,\n")
    (folder / "text.csv").write_text("a,b\n1,no\n3,yes\n")
    np.save(folder / "flat.npy", ROWS[:, 0])
    np.save(folder / "wide.npy", np.ones((3, 4)))
    with pytest.raises(AbsentiaError, match=message):
        call()


def test_rows_are_named_by_a_column_or_by_their_files(folder):
    frame = pd.read_csv("data.csv")
    frame.index = [f"r{number}" for number in range(len(frame))]
    frame.to_csv("indexed.csv")
    found = samples("indexed.csv")
    assert found.table.columns == ("a", "b", "c")
    assert found.names[7] == "r7"
    assert found.x[7].tolist() == pytest.approx(ROWS[7].tolist())
    assert samples(index="b").table.columns == ("a", "c")
    write_images(folder / "pets")
    pets = samples("pets", None)
    assert (pets.names[4], pets.classes[int(pets.y[4])]) == ("dog/1.png", "dog")


class CountedName(str):
    """A column's name that counts how often it is compared."""

    compared = 0

    def __str__(self):
        return self

    def __eq__(self, other):
        CountedName.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


class WideEstimator:
    def __init__(self, columns):
        self.feature_names_in_ = columns

    def predict(self, rows):
        return np.zeros(len(rows))


def test_columns_are_found_in_linear_time():
    columns = [f"c{number}" for number in range(500)]
    model = WideEstimator([CountedName(name) for name in columns])
    found = make_samples(RawData(pd.DataFrame(np.ones((2, 500)), columns=columns), None), model)
    assert found.table.columns == tuple(columns)
    assert CountedName.compared < 20 * 500


def test_a_missing_package_is_named_with_its_extra(folder, monkeypatch):
    pd.read_csv("data.csv").to_parquet("data.parquet")
    write_images(folder / "pets")
    for package, source, extra in (
        ("PIL", "pets", "images"),
        ("pyarrow", "data.parquet", "parquet"),
        ("pandas", "data.csv", "tables"),
    ):
        with monkeypatch.context() as without:
            without.setitem(sys.modules, package, None)
            with pytest.raises(AbsentiaError, match=rf"pip install 'absentia\[{extra}\]'"):
                read_data(source)


def test_samples_are_named_or_drawn():
    data = make_samples(RawData(ROWS, CLASSES), NETWORK)
    assert data.choose([5, 2], 1, seed=3).tolist() == [5, 2]
    drawn = torch.randperm(40, generator=torch.Generator().manual_seed(3))[:7]
    assert data.choose((), 7, seed=3).tolist() == drawn.tolist()
    assert data.choose((), 400, seed=3).tolist() == list(range(40))


# Tables with categories.


def table_frame():
    frame = pd.DataFrame(ROWS, columns=["a", "b", "c"])
    frame["city"] = np.array(["Oslo", "Bern", "Rome"])[np.arange(40) % 3]
    frame["new"] = np.arange(40) % 2 == 0
    frame["kind"] = np.array(["no", "yes"])[CLASSES]
    return frame


def fitted():
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    frame = table_frame()
    coded = make_column_transformer((OneHotEncoder(), ["city", "new"]), remainder="passthrough")
    return make_pipeline(coded, LogisticRegression()).fit(frame.drop(columns="kind"), frame["kind"])


def test_categories_reach_a_pipeline_as_they_were(folder):
    frame, pipeline = table_frame(), fitted()
    frame[["new", "kind", "c", "city", "b", "a"]].to_csv("table.csv", index=False)  # another order of the columns
    found = samples("table.csv", "kind", pipeline)
    assert found.table.columns == ("a", "b", "c", "city", "new")
    assert found.table.categorical == [3, 4]
    assert found.classes == ("no", "yes")
    assert found.y.tolist() == CLASSES.tolist()
    model, _ = fit_model(pipeline, found.x, found.table)
    expected = pipeline.predict_log_proba(frame.drop(columns="kind"))
    np.testing.assert_allclose(model(found.x).numpy(), expected)


def test_other_tables_are_coded_as_the_saved_one_was(folder):
    frame, loaded = table_frame(), fitted()
    frame.to_csv("table.csv", index=False)
    frame[frame["city"] != "Bern"].to_csv("fewer.csv", index=False)
    whole = samples("table.csv", "kind", loaded)
    alone = samples("fewer.csv", "kind", loaded)
    alike = samples("fewer.csv", "kind", loaded, **whole.coding)
    kept = torch.tensor((frame["city"] != "Bern").tolist())
    torch.testing.assert_close(alike.x, whole.x[kept])
    assert not torch.equal(alone.x, alike.x)  # which is what would go wrong
    with_background = samples("fewer.csv", "kind", loaded, background="table.csv")
    torch.testing.assert_close(with_background.x, whole.x[kept])
    torch.testing.assert_close(with_background.background, whole.x)
    with pytest.raises(AbsentiaError, match="column 'city' must hold known categories"):
        samples("table.csv", "kind", loaded, **alone.coding)
    numbers = whole.coding["coding"] | {"categories": {"city": ["Bern", "Oslo", "Rome"]}}
    with pytest.raises(AbsentiaError, match="column 'new' must hold numbers, as it did when the absence was saved"):
        samples("table.csv", "kind", loaded, coding=numbers)


def test_values_between_categories_are_refused(folder):
    table_frame().to_csv("table.csv", index=False)
    loaded = fitted()
    found = samples("table.csv", "kind", loaded)
    noisy = found.x.clone()
    noisy[:, 3] = 1.4
    with pytest.raises(AbsentiaError, match="hold the numbers 0 … 2 of its categories"):
        fit_model(loaded, found.x, found.table)[0](noisy)


def test_columns_that_the_model_does_not_take_are_ignored_and_missing_ones_named(folder):
    from sklearn.linear_model import LogisticRegression

    frame = pd.read_csv("data.csv")
    model = LogisticRegression().fit(frame[["c", "a"]], frame["kind"])
    found = samples(model=model)
    np.testing.assert_allclose(found.x.numpy(), ROWS[:, [2, 0]])
    assert "ignored: b" in found.notes[0]
    with pytest.raises(AbsentiaError, match=r"data must have the columns c, a\. Got none named 'c'"):
        samples(model=model, drop=("c",))


def test_a_regression_has_no_classes(folder):
    from sklearn.linear_model import LinearRegression

    model = LinearRegression().fit(ROWS[:, :2], ROWS[:, 2])
    assert samples(target="c", model=model, drop=("kind",)).y is None
    assert "no classes" in samples(target="c").notes[0]


# Players.


def images(shape=(1, 4, 4)):
    return make_samples(RawData(np.random.default_rng(0).random((5, *shape)), None), nn.Flatten())


def test_players_are_those_of_the_library(folder):
    table = samples()
    assert load_players(None, table).names == ("a", "b", "c")
    assert load_players("features", samples("data.npz", None)).names == ("x0", "x1", "x2")
    groups = load_players("groups.json", table)
    assert groups.names == ("both", "other")
    assert groups.labels.tolist() == [0, 1, 0]
    Path("twice.json").write_text('{"g": ["a"], "g": ["b"], "h": ["c"]}')
    with pytest.raises(AbsentiaError, match=r"players must name each group once. Got g, g, h instead"):
        load_players("twice.json", table)
    assert load_players("groups:groups.json", table).names == groups.names
    grid = ab.Players.grid((1, 4, 4), cells=(2, 4))
    assert torch.equal(load_players("grid:2x4", images()).labels, grid.labels)
    assert load_players("tokens", table).integer
    assert load_players("tokens", images((4, 6))).labels.shape == (4, 6)


def test_maps_of_labels_are_players_whatever_the_file(folder):
    from PIL import Image

    labels = np.repeat(np.arange(4), 4).reshape(4, 4)
    labels[0, 0] = -1
    np.save("labels.npy", labels)
    np.savez("labels.npz", labels)
    np.savetxt("labels.csv", labels, delimiter=",", fmt="%d")
    Image.fromarray(np.where(labels < 0, 255, labels).astype(np.uint8)).save("labels.png")
    for name in ("labels.npy", "labels.npz", "labels.csv", "labels.png"):
        found = load_players(name, images((3, 4, 4)))
        assert torch.equal(found.labels, torch.from_numpy(labels).expand(3, 4, 4))


@pytest.mark.parametrize(
    ("word", "shape", "message"),
    [
        (None, (2, 1, 4, 4), "be features, grid:7x7, tokens, or a file"),
        ("pixels", (1, 4, 4), "be features, grid:7x7, tokens, or a file"),
        ("grid", (1, 4, 4), "be two numbers"),
        ("grid:2", (1, 4, 4), "be two numbers"),
        ("grid:0x2", (1, 4, 4), "be two numbers"),
        ("grid:9x9", (1, 4, 4), "cells must lie between"),
        ("grid:2x2", (4,), r"that suits samples of shape \(4,\)"),
        ("tokens", (1, 4, 4), r"that suits samples of shape \(1, 4, 4\)"),
        ("missing.npy", (1, 4, 4), "name a file that exists"),
        ("broken.npy", (1, 4, 4), "be a file of labels that can be read"),
        ("broken.json", (4,), "map names to lists of columns"),
        ("list.json", (4,), "map names to lists of columns"),
        ("groups.json", (1, 4, 4), r"that suits samples of shape \(1, 4, 4\)"),
        ("groups.json", (4,), "hold features .* or their numbers 0 … 3"),
        ("half.npy", (1, 4, 4), "hold labels that are whole numbers"),
        ("small.npy", (1, 4, 4), r"have the shape of one sample, \(1, 4, 4\)"),
        ("gap.npy", (1, 4, 4), "without a gap"),
    ],
)
def test_what_is_no_player_gets_a_sentence(folder, word, shape, message):
    (folder / "broken.npy").write_bytes(b"nonsense")
    (folder / "broken.json").write_text("{")
    (folder / "list.json").write_text("[1]")
    np.save(folder / "half.npy", np.full((4, 4), 0.5))
    np.save(folder / "small.npy", np.zeros((2, 2), dtype=int))
    np.save(folder / "gap.npy", np.full((4, 4), 7))
    with pytest.raises(AbsentiaError, match=message):
        load_players(word, images(shape))


# Absences and readouts.


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


def learn(share="all", **options):
    quick = ab.LearningOptions(steps=1, rows_per_comparison=256)
    return ab.learn_baseline(
        make_network(), ROWS[:8], CLASSES[:8], share=share, loss="marginal", options=quick, **options
    )


def test_saved_absences_are_read_whichever_they_are(folder):
    x = torch.from_numpy(ROWS).float()
    learned, imputer = learn(), ab.train_imputer(x, epochs=1, progress=False)
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
    for word in ("mean", "noise", "gaussian"):
        with pytest.raises(AbsentiaError, match="median"):
            absences([word], data)
    median = absences(["median"], data)["median"]
    torch.testing.assert_close(median.values, ab.Baseline.median(data.x, categorical=[3, 4]).values.to(median.values))


def test_saved_codings_must_agree(folder):
    learned = learn()
    for name, columns in (("one", "abc"), ("two", "cba")):
        finish(learned, {}, False, Path(f"{name}.absentia"), coding={"columns": list(columns), "categories": {}})
    finish(learned, {}, False, Path("none.absentia"))
    assert saved_coding(["one.absentia", "x=one.absentia", "none.absentia"])["columns"] == ["a", "b", "c"]
    torch.testing.assert_close(ab.load("one.absentia").values, learned.values)
    with pytest.raises(AbsentiaError, match="be saved for the same columns"):
        saved_coding(["one.absentia", "two.absentia"])


def test_readouts_are_those_of_the_library():
    y = torch.tensor([1, 0])
    output, sample = torch.tensor([[2.0, 0.5], [1.0, 3.0]]), torch.arange(2)
    for word, kind in (
        ("log-odds", ab.LogOdds),
        ("logit", ab.Logit),
        ("score", ab.Margin),
        ("probability", ab.Probability),
    ):
        torch.testing.assert_close(load_readout(word, y)(output, sample), kind(y)(output, sample))
        with pytest.raises(AbsentiaError, match="target must be given"):
            load_readout(word, None)
    assert load_readout("output", y) == ab.Output(0)
    assert load_readout("output:1", None) == ab.Output(1)
    assert load_readout("features:0", None) == ab.Features("0")
    assert load_readout(None, y) is None
    assert isinstance(load_readout(None, 1), ab.LogOdds)
    for word in ("probs", "output:x", "logit:2", "features"):
        with pytest.raises(AbsentiaError, match="readout must be log-odds"):
            load_readout(word, y)
