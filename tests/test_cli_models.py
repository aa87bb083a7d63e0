"""Models from words and files: each kind runs as the network it came from, and nothing untrusted is run."""

import importlib.machinery
import os
import pickle
import sys
import types
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import absentia as ab
from absentia import AbsentiaError
from absentia.cli.model_files import is_estimator, load_model
from absentia.cli.trial_runs import fit_model
from own_files import make_network, make_rows, write_files

X = torch.from_numpy(make_rows()[0])
QUICK = {"steps": 2, "rows_per_comparison": 256, "samples": 4}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "mymodule", raising=False)
    yield write_files(tmp_path)
    sys.modules.pop("mymodule", None)


def values(model, x=X):
    return ab.value_table(ab.MaskedModel(model, x[:5], absence=ab.Baseline(0.0))).values


def expected():
    return values(make_network())


def load(word, *, probabilities=False, **options):
    return fit_model(load_model(word, **options), X, probabilities=probabilities)[0]


@pytest.mark.parametrize("weights", ["w.safetensors", "w.pt"])
def test_a_function_that_makes_a_network_gets_its_weights(folder, weights):
    torch.testing.assert_close(values(load("mymodule:build", weights=weights)), expected())
    assert not torch.allclose(values(load("mymodule:build")), expected())


def test_objects_classes_and_callables_are_models(folder):
    torch.testing.assert_close(values(load("mymodule:network")), expected())
    assert isinstance(load("mymodule:Net", untrained=True), nn.Module)
    torch.testing.assert_close(load("mymodule:of_torch")(X), X.prod(1))
    of_numpy, rows = load("mymodule:of_numpy"), X.numpy()
    np.testing.assert_allclose(of_numpy(X).numpy(), np.exp(rows[:, 0]) * rows[:, 1] - rows[:, 2])
    torch.testing.assert_close(load("mymodule:in_place")(X.clone()), 2 * X[:, 1])
    assert ab.learn_baseline(load("mymodule:of_torch"), X, options=ab.LearningOptions(**QUICK)).evaluations


@pytest.mark.parametrize("name", ["Net", "with_new_head"])
def test_a_network_with_random_weights_is_refused_unless_that_is_meant(folder, name):
    with pytest.raises(
        AbsentiaError, match=f"mymodule:{name} makes has random weights. Pass --weights FILE, or --untr"
    ):
        load_model(f"mymodule:{name}")
    assert isinstance(load_model(f"mymodule:{name}", untrained=True), nn.Module)


def test_networks_that_bring_their_weights_are_taken(folder):
    for name in ("Restored", "build", "network"):
        assert isinstance(load_model(f"mymodule:{name}"), nn.Module)


def test_files_in_the_working_directory_do_not_stand_in_for_installed_packages(folder):
    Path("skops.py").write_text("raise SystemExit('the file in the working directory ran')")
    Path("wave.py").write_text("")
    load_model("mymodule:network")
    assert sys.path[-1] == str(Path.cwd())
    with pytest.raises(
        AbsentiaError, match=r"The file wave\.py is not used, because .*wave\.py has the same name. Rename"
    ):
        load_model("wave:build")


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


def write_onnx(path, batch="rows"):
    onnx = pytest.importorskip("onnx")
    network = make_network()
    weights = {"w0": network[0].weight.T, "b0": network[0].bias, "w1": network[2].weight.T, "b1": network[2].bias}
    constants = [onnx.numpy_helper.from_array(v.detach().numpy().copy(), k) for k, v in weights.items()]
    node, info = onnx.helper.make_node, onnx.helper.make_tensor_value_info
    nodes = [node("Gemm", ["x", "w0", "b0"], ["h"]), node("Tanh", ["h"], ["t"]),
             node("Gemm", ["t", "w1", "b1"], ["logits"]), node("ArgMax", ["logits"], ["label"], axis=1)]  # fmt: skip
    outputs = [info("label", onnx.TensorProto.INT64, None), info("logits", onnx.TensorProto.FLOAT, [batch, 2])]
    graph = onnx.helper.make_graph(nodes, "g", [info("x", onnx.TensorProto.FLOAT, [batch, 3])], outputs, constants)
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9), path)


@pytest.mark.parametrize("batch", ["rows", 1, 4])
def test_onnx_runs_as_a_black_box_whatever_its_batch(folder, batch):
    write_onnx("net.onnx", batch)
    loaded = load_model("net.onnx")
    assert "without gradients" in loaded.notes_on_file[0]
    assert "'logits'" in loaded.notes_on_file[0]
    torch.testing.assert_close(values(fit_model(loaded, X)[0]), expected(), atol=1e-5, rtol=1e-5)


def test_onnx_runs_as_a_network_where_onnx2torch_is_installed(folder, monkeypatch):
    write_onnx("net.onnx")
    converter = types.ModuleType("onnx2torch")
    converter.__spec__ = importlib.machinery.ModuleSpec("onnx2torch", None)
    converter.convert = lambda path: make_network()
    monkeypatch.setitem(sys.modules, "onnx2torch", converter)
    assert isinstance(load_model("net.onnx"), nn.Module)


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


def test_a_graph_without_numbers_to_explain_is_refused(folder):
    onnx = pytest.importorskip("onnx")
    info, node = onnx.helper.make_tensor_value_info, onnx.helper.make_node
    graph = onnx.helper.make_graph(
        [node("ArgMax", ["x"], ["label"], axis=1)],
        "g",
        [info("x", onnx.TensorProto.FLOAT, ["rows", 3])],
        [info("label", onnx.TensorProto.INT64, ["rows", 1])],
    )
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9), "l.onnx")
    with pytest.raises(AbsentiaError, match="zipmap=False"):
        load_model("l.onnx")


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
