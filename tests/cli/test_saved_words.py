"""Codings of saved files."""

from pathlib import Path

import pytest
import torch

import absentia as ab
from absentia import AbsentiaError
from absentia.cli.output import finish
from absentia.cli.saved_words import saved_coding
from command_tables import learn


def test_saved_codings_must_agree(folder):
    learned = learn()
    for name, columns in (("one", "abc"), ("two", "cba")):
        finish(learned, {}, False, Path(f"{name}.absentia"), coding={"columns": list(columns), "categories": {}})
    finish(learned, {}, False, Path("none.absentia"))
    assert saved_coding(["one.absentia", "x=one.absentia", "none.absentia"])["columns"] == ["a", "b", "c"]
    torch.testing.assert_close(ab.load("one.absentia").values, learned.values)
    with pytest.raises(AbsentiaError, match="be saved for the same columns"):
        saved_coding(["one.absentia", "two.absentia"])
