"""The sentence of an error."""

import pytest

from absentia import AbsentiaError
from absentia.errors import require, wrong


def test_an_error_says_what_must_hold_and_what_to_do():
    assert str(wrong("sigma", "be positive", -1.0)) == "sigma must be positive. Got -1.0 instead."
    assert str(wrong("x", "be a batch", "one", "Pass x[None].")).endswith("Got one instead. Pass x[None].")
    with pytest.raises(AbsentiaError, match=r"needs the package no_such_one. Run pip install 'absentia\[shap\]'."):
        require("no_such_one.part", extra="shap")
