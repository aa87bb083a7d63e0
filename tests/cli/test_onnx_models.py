"""ONNX graphs run as the network they came from."""

import importlib.machinery
import sys
import types

import pytest
import torch
from torch import nn

from absentia import AbsentiaError
from absentia.cli.model_files import load_model
from absentia.cli.trial_runs import fit_model
from command_models import X, expected, values
from own_files import make_network


def write_onnx(path, batch="rows"):
    onnx = pytest.importorskip("onnx")
    network = make_network()
    weights = {"w0": network[0].weight.T, "b0": network[0].bias, "w1": network[2].weight.T, "b1": network[2].bias}
    constants = [onnx.numpy_helper.from_array(v.detach().numpy().copy(), k) for k, v in weights.items()]
    node = onnx.helper.make_node
    info = onnx.helper.make_tensor_value_info
    nodes = [
        node("Gemm", ["x", "w0", "b0"], ["h"]),
        node("Tanh", ["h"], ["t"]),
        node("Gemm", ["t", "w1", "b1"], ["logits"]),
        node("ArgMax", ["logits"], ["label"], axis=1),
    ]
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


def test_a_graph_without_numbers_to_explain_is_refused(folder):
    onnx = pytest.importorskip("onnx")
    info = onnx.helper.make_tensor_value_info
    node = onnx.helper.make_node
    graph = onnx.helper.make_graph(
        [node("ArgMax", ["x"], ["label"], axis=1)],
        "g",
        [info("x", onnx.TensorProto.FLOAT, ["rows", 3])],
        [info("label", onnx.TensorProto.INT64, ["rows", 1])],
    )
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9), "l.onnx")
    with pytest.raises(AbsentiaError, match="zipmap=False"):
        load_model("l.onnx")
