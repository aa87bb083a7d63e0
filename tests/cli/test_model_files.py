"""Model files run as the network they came from, and nothing untrusted is run."""

import os
import pickle
import sys
import warnings
from pathlib import Path

import pytest
import torch
from torch import nn

import absentia as ab
from absentia import AbsentiaError
from absentia.cli.model_files import is_estimator, load_model
from command_models import X, expected, load, values
from own_files import make_network, make_rows

QUICK = {"steps": 2, "rows_per_comparison": 256, "samples": 4}


def test_probabilities_are_found_out_and_taken_as_such(folder):
    with pytest.raises(AbsentiaError, match="--probabilities"):
        ab.explain(load("mymodule:probabilities"), X, absence=0.0)
    given = torch.softmax(X, 1)[:, :2]
    given = given / given.sum(1, keepdim=True)
    torch.testing.assert_close(load("mymodule:probabilities", probabilities=True)(X).exp(), given)


def script(folder, network):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.script(network).save(str(folder / "net.pt"))


def test_torchscript_runs_as_the_network_once_trusted(folder):
    script(folder, make_network())
    with pytest.raises(AbsentiaError, match=r"net\.pt is a TorchScript file.*Use --trust"):
        load("net.pt")
    model = load("net.pt", trust=True, device="cpu")
    torch.testing.assert_close(values(model), expected())
    options = ab.LearningOptions(**QUICK)
    learned = ab.learn_baseline(model, X, options=options)
    torch.testing.assert_close(learned.values, ab.learn_baseline(make_network(), X, options=options).values)
    assert load_model("net.pt", trust=True).double()(X).dtype == torch.float64


class Overwriting(nn.Module):
    """Why TorchScript is no safe file: it has no Python, and yet it writes to files."""

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        file = torch.from_file("victim.bin", shared=True, size=4, dtype=torch.uint8)
        return rows.sum(1) + file.fill_(65).sum()


def test_a_torchscript_that_overwrites_files_does_not_run_without_trust(folder):
    Path("victim.bin").write_bytes(b"safe")
    script(folder, Overwriting())
    with pytest.raises(AbsentiaError, match="overwrite files"):
        load("net.pt")
    assert Path("victim.bin").read_bytes() == b"safe"
    load("net.pt", trust=True)
    assert Path("victim.bin").read_bytes() == b"AAAA"  # the reason is true


def export(path, dynamic):
    shapes = ({0: torch.export.Dim("rows")},) if dynamic else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.export.save(torch.export.export(make_network(), (torch.ones(2, 3),), dynamic_shapes=shapes), path)


def test_exported_programs_run_as_the_network_once_trusted(folder):
    export("net.pt2", dynamic=True)
    with pytest.raises(AbsentiaError, match=r"net\.pt2 is a file of torch\.export.*Use --trust"):
        load("net.pt2")
    torch.testing.assert_close(values(load("net.pt2", trust=True)), expected())
    export("two.pt2", dynamic=False)
    with pytest.raises(AbsentiaError, match="dynamic_shapes"):
        load("two.pt2", trust=True)


def pipeline():
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression()).fit(*make_rows())


def test_skops_files_run_as_the_estimator(folder):
    import skops.io

    estimator = pipeline()
    skops.io.dump(estimator, "model.skops")
    torch.testing.assert_close(values(load("model.skops")), values(ab.interop.from_estimator(estimator)))


def test_types_that_skops_does_not_know_are_listed_and_need_trust(folder):
    import skops.io
    from sklearn.tree import DecisionTreeClassifier

    skops.io.dump(DecisionTreeClassifier(max_depth=2).fit(*make_rows()), "tree.skops")
    with pytest.raises(AbsentiaError, match=r"sklearn.tree._tree.Tree.*--trust"):
        load("tree.skops")
    assert load("tree.skops", trust=True)(X).shape == (40, 2)


class Malicious:
    def __reduce__(self):
        return os.mkdir, ("it-ran",)


def write_pickle(path):
    with open(path, "wb") as file:
        pickle.dump(Malicious(), file)


@pytest.mark.parametrize("name", ["m.pkl", "m.pickle", "m.joblib", "m.pt", "m.pth"])
def test_a_malicious_pickle_does_not_run_as_a_model(folder, name):
    torch.save(Malicious(), name) if name.startswith("m.pt") else write_pickle(name)
    with pytest.raises(AbsentiaError, match=rf"{name} is .* any code when it is read. Use --trust"):
        load(name)
    assert not Path("it-ran").exists()
    with pytest.raises(AbsentiaError):
        load(name, trust=True)  # no model, whatever else it is
    assert Path("it-ran").exists()  # the test can fail


@pytest.mark.parametrize("name", ["w.pt", "w.bin", "old.pth"])
def test_a_malicious_pickle_does_not_run_as_weights(folder, name):
    torch.save({"0.weight": Malicious()}, name, _use_new_zipfile_serialization=name != "old.pth")
    with pytest.raises(AbsentiaError, match="Use --trust"):
        load("mymodule:build", weights=name)
    assert not Path("it-ran").exists()


def test_a_trusted_pickle_is_read(folder):
    import joblib

    estimator = pipeline()
    joblib.dump(estimator, "model.joblib")
    Path("model.pkl").write_bytes(pickle.dumps(estimator))
    torch.save(make_network(), "whole.pt")
    for name in ("model.joblib", "model.pkl"):
        torch.testing.assert_close(values(load(name, trust=True)), values(ab.interop.from_estimator(estimator)))
    torch.testing.assert_close(values(load("whole.pt", trust=True)), expected())


@pytest.mark.parametrize(
    ("word", "options", "message"),
    [
        ("mymodule", {}, "package.module:object"),
        ("mymodule:", {}, "package.module:object"),
        ("mymodule.py:build", {}, "Write mymodule:build"),
        ("./mymodule.py:build", {}, "Write mymodule:build"),
        ("nowhere:build", {}, "No module named 'nowhere'"),
        ("mymodule:nothing", {}, "no attribute 'nothing'"),
        ("mymodule:fail", {}, "OSError: the weights are elsewhere"),
        ("mymodule:number", {}, "be an nn.Module, an estimator, or a callable"),
        ("mymodule:refuse", {}, "RuntimeError: no rows like these"),
        ("mymodule:build_conv", {}, "run on any number of rows of the data"),
        ("missing.onnx", {}, "name a file that exists"),
        ("missing.safetensors", {}, "name a file that exists"),
        ("data.csv", {}, "be a file of one of these kinds"),
        (".", {}, "name a file"),
        ("w.safetensors", {}, "be a whole network. Got w.safetensors, which holds weights"),
        ("w.pt", {}, "be a whole network"),
        ("broken.onnx", {}, "be an ONNX file"),
        ("broken.skops", {}, "be a file that skops saved"),
        ("broken.pt", {}, "be a file that torch"),
        ("broken.pt2", {"trust": True}, "be a file that torch saved"),
        ("broken.pkl", {"trust": True}, "be a pickle that can be read"),
        ("mymodule:build", {"weights": "missing.pt"}, "weights must name a file that exists"),
        (
            "mymodule:build",
            {"weights": "broken.safetensors"},
            "weights must be a file that torch can read. Got broken.safetensors",
        ),
        ("mymodule:build_conv", {"weights": "w.safetensors"}, "hold the tensors of the model by name.*Missing key"),
        ("mymodule:of_torch", {"weights": "w.pt"}, "weights must be left out"),
        ("mymodule:of_torch", {"device": "cpu"}, "device must be left out"),
        (
            "mymodule:build",
            {"device": "toaster"},
            "device must be one that torch has here: cpu.*Got 'toaster' instead",
        ),
        (
            "mymodule:build",
            {"device": "cuda:99"},
            "device must be one that torch has here: cpu.*Got 'cuda:99' instead",
        ),
        ("mymodule:build", {"device": "meta"}, "device must be one that torch has here: cpu.*Got 'meta' instead"),
    ],
)
def test_what_is_no_model_gets_a_sentence(folder, word, options, message):
    for name in ("onnx", "skops", "pt", "pt2", "pkl", "safetensors"):
        (folder / f"broken.{name}").write_bytes(b"nonsense" * 9)
    with pytest.raises(AbsentiaError, match=message):
        load(word, **options)


@pytest.mark.parametrize(
    ("package", "file", "extra"), [("onnxruntime", "net.onnx", "onnx"), ("skops.io", "m.skops", "skops")]
)
def test_a_missing_package_is_named_with_its_extra(folder, monkeypatch, package, file, extra):
    Path(file).write_bytes(b"x")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(AbsentiaError, match=rf"pip install 'absentia\[{extra}\]'"):
        load_model(file)


def test_estimators_are_told_from_networks_and_callables(folder):
    from sklearn.linear_model import LinearRegression

    rows, classes = make_rows()
    assert is_estimator(pipeline())
    assert is_estimator(LinearRegression().fit(rows, classes))
    assert not any(is_estimator(load_model(f"mymodule:{name}")) for name in ("network", "of_numpy", "of_torch"))
