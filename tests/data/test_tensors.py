"""Data of every kind become tensors."""

import numpy as np
import pandas as pd
import pytest
import torch

import absentia as ab
from absentia import AbsentiaError, Baseline, LearningOptions, MaskedModel, learn_baseline
from absentia.data import as_tensor, check_rows
from fitted_table import CLASSES, FITTED, SWAPPED, TRAINING_TABLE, log_odds

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
    options = LearningOptions(steps=2)
    assert learn_baseline(lambda rows: rows.prod(1), FRAME, options=options).names == ("age", "income")


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("abc", "x must be a tensor, an array or a table of numbers. Got str"),
        ([[1.0], [1.0, 2.0]], "x must be a tensor, an array or a table of numbers. Got list"),
        (
            pd.DataFrame({"b": [1], "a": ["red"]}),
            r"x must hold numbers. Got 'red' in column 'a' instead. Encode text",
        ),
        (pd.DataFrame({"a": [1.0, None]}, index=["u", "v"]), r"x must be finite. Got nan in column 'a', row 'v'"),
        (pd.DataFrame({"a": pd.array([1, None], "Int64")}), r"x must be finite. Got nan in column 'a', row 1"),
    ],
)
def test_what_is_no_table_of_numbers_gets_a_sentence(value, sentence):
    with pytest.raises(AbsentiaError, match=sentence):
        as_tensor("x", value)


def test_rows_that_are_missing_or_not_finite_get_a_sentence():
    with pytest.raises(AbsentiaError, match="data must have at least 2 rows"):
        check_rows([[1.0]], least=2)
    with pytest.raises(AbsentiaError, match=r"data must be finite\. Got nan in row 1, entry 0"):
        check_rows([[1.0], [float("nan")]])


def test_frames_of_several_types_become_numbers():
    frame = pd.DataFrame({"a": pd.array([1, 2], "Int64"), "b": [True, False], "c": [0.5, 1.5]})
    assert as_tensor("x", frame).tolist() == [[1.0, 1.0, 0.5], [2.0, 0.0, 1.5]]
    assert as_tensor("x", frame[["a"]].astype("int64")).dtype == torch.int64


@pytest.mark.parametrize(
    "value", [torch.ones(2, 2) * 1j, np.ones((2, 2)) * 1j, np.ma.masked_array(np.ones((2, 2)), mask=np.eye(2))]
)
def test_complex_and_masked_values_are_refused(value):
    with pytest.raises(AbsentiaError, match="x must hold real numbers, none of them missing"):
        as_tensor("x", value)


ARRAY = np.arange(12.0).reshape(4, 3)


@pytest.mark.parametrize(
    "array",
    [
        ARRAY[::-1, ::-1],
        ARRAY.astype(">f4"),
        ARRAY.astype(">i2"),
        ARRAY.astype(np.longdouble),
        ARRAY.astype("uint16"),
        ARRAY.astype("uint64"),
        ARRAY.astype("float16"),
        ARRAY.T,
        pd.DataFrame(ARRAY).convert_dtypes(),
        pd.DataFrame(ARRAY.astype("uint32")),
    ],
)
def test_arrays_of_any_layout_keep_their_numbers(array):
    expected = np.asarray(array, dtype=np.float64).tolist()
    assert as_tensor("x", array).tolist() == expected
    assert (
        ab.Baseline.median(array).values.tolist() == np.sort(np.array(expected), 0)[(len(expected) - 1) // 2].tolist()
    )


@pytest.mark.parametrize(
    "call",
    [
        lambda: ab.explain(FITTED, TRAINING_TABLE[:2], 1, absence="mean", data=SWAPPED),
        lambda: ab.MaskedModel(FITTED, TRAINING_TABLE[:2], 1, absence="mean", data=SWAPPED),
        lambda: ab.audit(FITTED, TRAINING_TABLE[:9], CLASSES[:9], ["mean"], data=SWAPPED),
    ],
)
def test_data_have_the_columns_of_the_samples(call):
    with pytest.raises(
        ab.AbsentiaError, match=r"data must have the columns of x, in their order. Got 'b' in place of"
    ):
        call()
    found = ab.explain(FITTED, TRAINING_TABLE[:2], 1, absence="mean", data=TRAINING_TABLE)  # as they should be
    assert np.allclose(found.outputs.numpy(), log_odds(FITTED, TRAINING_TABLE[:2]))


def test_times_are_no_numbers():
    frame = pd.DataFrame({"t": pd.to_datetime(["2020-01-01", None]), "n": [1.0, 2.0]})
    for kind in ("t", "passed"):
        frame["passed"] = frame["t"] - pd.Timestamp("2019-01-01")
        with pytest.raises(
            ab.AbsentiaError, match=f"x must hold numbers. Got .* in column '{kind}' .* days since a date"
        ):
            ab.explain(lambda rows: rows.sum(1), frame[[kind, "n"]], absence=0.0)


def test_what_is_handed_in_may_change_later():
    values = np.ones(3)
    rows = np.ones((2, 3))
    table = np.arange(4.0)
    made = ab.Baseline(values).values, ab.Marginal(rows).background, ab.ValueTable(table).values
    before = [one.clone() for one in made]
    for array in (values, rows, table):
        array[:] = 100
    assert all(map(torch.equal, made, before))
