import os

import pytest
import torch

from absentia import AbsentiaError
from absentia.saving import check_kind, read_tensors, write_tensors

TENSORS = {"a": torch.arange(3.0), "b": torch.tensor([[1, 2]])}


def test_what_is_written_is_read(tmp_path):
    write_tensors(tmp_path / "file", TENSORS, {"kind": "thing", "list": [1, 2]})
    tensors, header = read_tensors(tmp_path / "file")
    assert header == {"kind": "thing", "list": [1, 2]}
    assert tensors.keys() == TENSORS.keys()
    assert all(torch.equal(tensors[name], TENSORS[name]) for name in TENSORS)


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_tensors(path, TENSORS, {"n": 1})
    with pytest.raises(TypeError):
        write_tensors(path, TENSORS, {"n": object()})

    def full(*_):
        raise OSError("no space left")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="no space left"):
        write_tensors(path, TENSORS, {"n": 2})
    assert read_tensors(path)[1] == {"n": 1}
    assert os.listdir(tmp_path) == ["file"]


def test_a_file_of_another_library_gets_a_sentence(tmp_path):
    from safetensors.torch import save_file

    save_file(TENSORS, tmp_path / "file")
    with pytest.raises(
        AbsentiaError, match=r"path must be a file that absentia saved. Got .*no header of absentia's"
    ):
        read_tensors(tmp_path / "file")


def test_kinds_and_formats_are_told_apart(tmp_path):
    header = {"kind": "thing", "format": 2, "record": {"version": "9.9"}}
    check_kind(tmp_path, header, "thing", newest=2)
    with pytest.raises(AbsentiaError, match=r"path must hold a saved baseline. Got .*, a saved thing instead"):
        check_kind(tmp_path, header, "baseline", newest=2)
    with pytest.raises(
        AbsentiaError, match=r"format 1 or older. Got format 2 by absentia 9.9 instead. Install a newer"
    ):
        check_kind(tmp_path, header, "thing", newest=1)


def test_what_is_written_is_as_readable_as_any_file(tmp_path):
    write_tensors(tmp_path / "file", TENSORS, {})
    (tmp_path / "other").touch()
    assert (tmp_path / "file").stat().st_mode == (tmp_path / "other").stat().st_mode
