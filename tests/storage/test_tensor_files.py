"""Tensors and a header in one file."""

import pytest
import torch
from safetensors.torch import save_file

from absentia import AbsentiaError
from absentia.storage import load, read_tensors, write_tensors

TENSORS = {"a": torch.arange(3.0), "b": torch.tensor([[1, 2]])}


def test_what_is_written_is_read(tmp_path):
    write_tensors(tmp_path / "file", TENSORS, {"kind": "thing", "list": [1, 2]})
    tensors, header = read_tensors(tmp_path / "file")
    assert header == {"kind": "thing", "list": [1, 2]}
    assert tensors.keys() == TENSORS.keys()
    assert all(torch.equal(tensors[name], TENSORS[name]) for name in TENSORS)


def test_a_file_of_another_library_gets_a_sentence(tmp_path):
    save_file(TENSORS, tmp_path / "file")
    with pytest.raises(AbsentiaError, match=r"be a file that absentia saved. Got .*no header of absentia's"):
        read_tensors(tmp_path / "file")
    (tmp_path / "text").write_text("nothing of the kind")
    with pytest.raises(AbsentiaError, match=r"be a file that absentia saved. Got .*can't be read"):
        load(tmp_path / "text")
    with pytest.raises(AbsentiaError, match="name a file that exists"):
        load(tmp_path / "nowhere")
