import numpy as np
import pandas as pd
import pytest
import torch

from absentia import AbsentiaError, Baseline, MaskedModel, learn_baseline
from absentia.arrays import as_tensor

FRAME = pd.DataFrame({"age": [1.0, 2.0], "income": [3.0, 4.0]})


@pytest.mark.parametrize(
    "value", [[[1.0, 3.0], [2.0, 4.0]], FRAME, FRAME.to_numpy(), torch.tensor(FRAME.to_numpy().copy())]
)
def test_data_of_every_kind_become_tensors(value):
    assert as_tensor("x", value).tolist() == [[1.0, 3.0], [2.0, 4.0]]
    assert as_tensor("x", value).dtype == torch.float64


def test_a_tensor_is_taken_as_it_is_and_what_may_not_be_written_is_copied():
    tensor = torch.zeros(2, requires_grad=True)
    assert as_tensor("x", tensor) is tensor
    frozen = np.zeros(2)
    frozen.setflags(write=False)
    as_tensor("x", frozen)[0] = 1.0
    assert frozen[0] == 0


def test_the_columns_of_a_frame_name_the_players():
    game = MaskedModel(lambda rows: rows.sum(1), FRAME, absence=Baseline.mean(FRAME))
    assert game.names == ("age", "income")
    assert learn_baseline(lambda rows: rows.prod(1), FRAME, steps=2).names == ("age", "income")


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("abc", "x must be a tensor, an array or a table of numbers. Got str"),
        ([[1.0], [1.0, 2.0]], "x must be a tensor, an array or a table of numbers. Got list"),
        (pd.DataFrame({"a": ["red"]}), r"Got DataFrame instead. Code text and categories as numbers first"),
    ],
)
def test_what_is_no_table_of_numbers_gets_a_sentence(value, sentence):
    with pytest.raises(AbsentiaError, match=sentence):
        as_tensor("x", value)
