"""Statistics of rows with missing values are those of the known ones."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from absentia.data import data_quantiles, data_range, least_and_most, mean_and_deviation, most_frequent
from absentia.data.gaps import (
    has_gaps,
    known_deviation,
    known_least,
    known_mean,
    known_median,
    known_mode,
    known_most,
    known_quantiles,
)

ROWS = torch.tensor([[1.0, 5.0], [math.nan, 2.0], [3.0, 2.0], [4.0, math.nan], [3.0, 9.0]]).double()


def each_column(statistic):
    return torch.tensor([statistic(column[~np.isnan(column)]) for column in ROWS.numpy().T]).double()


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (known_mean(ROWS), each_column(np.mean)),
        (known_deviation(ROWS), each_column(np.std)),
        (known_median(ROWS), torch.tensor([3.0, 2.0]).double()),  # the lower of the middle two
        (known_mode(ROWS), torch.tensor([3.0, 2.0]).double()),
        (known_least(ROWS)[0], each_column(np.min)),
        (known_most(ROWS)[0], each_column(np.max)),
        (
            known_quantiles(ROWS, torch.tensor([0.25]).double())[0],
            each_column(lambda column: np.quantile(column, 0.25)),
        ),
        (mean_and_deviation(ROWS)[0], each_column(np.mean)),
        (mean_and_deviation(ROWS)[1], each_column(np.std)),
        (least_and_most(ROWS)[1], each_column(np.max)),
        (data_quantiles(ROWS)[0], each_column(np.min)),
        (data_quantiles(ROWS)[3], each_column(np.median)),
    ],
)
def test_missing_values_are_left_out(found, expected):
    torch.testing.assert_close(found, expected)


def test_without_gaps_nothing_changes():
    rows = ROWS.nan_to_num(7.0)
    assert has_gaps(ROWS)
    assert not has_gaps(rows)
    assert not has_gaps(rows.long())
    torch.testing.assert_close(known_mean(rows), rows.mean(0))
    torch.testing.assert_close(known_median(rows), rows.median(0).values)
    torch.testing.assert_close(known_mode(rows), rows.mode(0).values)
    torch.testing.assert_close(known_deviation(rows), rows.std(0, correction=0))


def test_a_column_without_known_values_has_no_statistics():
    rows = torch.tensor([[math.nan, 1.0], [math.nan, 2.0]])
    for statistic in (known_mean, known_median, known_mode, known_deviation):
        assert statistic(rows)[0].isnan()
    assert known_least(rows)[0, 0].isnan()
    assert known_most(rows)[0, 0].isnan()
    assert mean_and_deviation(rows)[1].tolist() == [0.0, 0.5]


def test_a_range_holds_missing_values_where_the_data_has_some():
    within = data_range(
        ROWS[:, :1]
        .repeat(1, 2)
        .nan_to_num(2.0)
        .index_put((torch.tensor(0), torch.tensor(0)), torch.tensor(math.nan).double())
    )
    held = within.holds(torch.tensor([[math.nan, math.nan], [2.0, 9.0]]).double())
    assert held.tolist() == [[True, False], [True, False]]


def test_the_most_frequent_row_is_a_known_one():
    rows = torch.tensor([[math.nan], [math.nan], [1.0], [2.0], [2.0]])
    assert most_frequent(rows).tolist() == [2.0]
    assert most_frequent(rows[:2]).isnan().all()
