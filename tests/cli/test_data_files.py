"""Data files of every kind hold the same."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from absentia import AbsentiaError
from absentia.cli.data_files import read_data
from command_tables import CLASSES, ROWS, samples, write_images


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
