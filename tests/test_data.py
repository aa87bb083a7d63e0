import numpy as np
import pandas as pd
import pytest
import torch

from absentia import AbsentiaError, Baseline, LearningOptions, MaskedModel, learn_baseline
from absentia.data import (
    as_tensor,
    check_rows,
    class_numbers,
    data_quantiles,
    data_range,
    holds_text,
    least_and_most,
    mean_and_deviation,
    seeded,
    white_noise,
)

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


def test_streams_of_random_numbers_differ_and_come_again():
    first = torch.rand(3, generator=seeded(0, "noise", 1))
    assert torch.equal(first, torch.rand(3, generator=seeded(0, "noise", 1)))
    assert not torch.equal(first, torch.rand(3, generator=seeded(0, "noise", 2)))
    assert not torch.equal(first, torch.rand(3, generator=seeded(1, "noise", 1)))


def test_scales_are_those_of_entries_or_of_an_images_channels():
    table = torch.tensor([[0.0, 5.0], [2.0, 5.0]])
    assert [part.tolist() for part in mean_and_deviation(table)] == [[1.0, 5.0], [1.0, 0.0]]
    assert [part.tolist() for part in least_and_most(table)] == [[0.0, 5.0], [2.0, 5.0]]
    assert mean_and_deviation(torch.zeros(10, 3, 8, 8))[0].shape == (3, 1, 1)
    assert data_range(torch.zeros(10, 3, 8, 8)).high.shape == (3, 8, 8)


def test_quantiles_are_those_of_each_entry():
    assert data_quantiles(torch.arange(21.0)[:, None]).flatten().tolist() == [0.0, 1.0, 5.0, 10.0, 15.0, 19.0, 20.0]


def test_white_noise_fills_the_range_and_integers_include_both_ends():
    within = data_range(torch.tensor([[0.0, -2.0], [1.0, 3.0]]))
    noise = white_noise(within, torch.zeros(4000, 2), seeded(0))
    assert bool(within.holds(noise).all())
    assert torch.allclose(noise.mean(0), torch.tensor([0.5, 0.5]), atol=0.1)
    tokens = white_noise(within, torch.zeros(4000, 2, dtype=torch.int64), seeded(0))
    assert tokens[:, 1].unique().tolist() == [-2, -1, 0, 1, 2, 3]


def test_white_noise_has_the_categories_of_drawn_rows():
    rows = torch.tensor([[0.0, -2.0, 7.0], [1.0, 3.0, 8.0]])
    noise = white_noise(data_range(rows, categorical=[[1, 2]]), torch.zeros(400, 3), seeded(0))
    assert noise[:, 1:].unique(dim=0).tolist() == rows[:, 1:].tolist()
    assert len(noise[:, 0].unique()) > 300


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
