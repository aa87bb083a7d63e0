"""Classes are numbers, names or labels of an estimator."""

import numpy as np
import pandas as pd
import pytest
import torch

import absentia as ab
from absentia import AbsentiaError
from absentia.data import class_numbers, holds_text
from fitted_table import FITTED, TRAINING_TABLE


@pytest.mark.parametrize("y", [[[0], [1]], pd.DataFrame({"y": [0, 1]})])
def test_classes_have_one_axis(y):
    with pytest.raises(ab.AbsentiaError, match=r"y must be one class number or one for .* Got shape \(2, 1\)"):
        ab.explain(FITTED, TRAINING_TABLE[:2], y, absence=0.0)


def test_classes_are_numbers_names_or_an_estimators_labels():
    assert class_numbers([2, 0]).tolist() == [2, 0]
    assert class_numbers("b", ["a", "b"]).item() == 1
    assert class_numbers(pd.Series(["b", "a"]), ["a", "b"]).tolist() == [1, 0]
    assert class_numbers(np.array([7, 5, 7]), [5, 7]).tolist() == [1, 0, 1]
    assert class_numbers(1, ["a", "b"]).item() == 1


@pytest.mark.parametrize(
    ("y", "labels", "sentence"),
    [
        (["b", "a", "b"], (), r"the model does not know their order. Pass class_names=\['a', 'b'\] in the order of"),
        ([*"lkjihgfedcba"], (), r"Pass class_names=\['a', 'b', .*, 'j', …\] in the order of"),
        (["c"], ["a", "b"], "y must hold classes of the model: a, b. Got 'c'"),
        ([6], [5, 7], "y must hold classes of the model: 5, 7. Got 6"),
        ([0.5], (), "y must hold class numbers. Got torch.float64 values instead. Leave y out for a regression"),
        ([[0]], (), r"y must be one class number or one for each sample. Got shape \(1, 1\)"),
    ],
)
def test_classes_that_make_no_sense_get_a_sentence(y, labels, sentence):
    with pytest.raises(AbsentiaError, match=sentence):
        class_numbers(y, labels)


def test_text_is_told_from_numbers():
    assert holds_text("a")
    assert holds_text(np.array(["a"]))
    assert not holds_text([1, 2])
    assert not holds_text(torch.tensor([1]))
