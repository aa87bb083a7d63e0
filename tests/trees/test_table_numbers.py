"""Tables become the rows of numbers that trees see."""

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse

from absentia.trees.ensemble import UnreadableTreesError
from absentia.trees.table_numbers import category_columns, table_numbers

NUMBERS = np.array([[1.0, 0.0], [0.0, 2.5]])


@pytest.mark.parametrize(
    "data",
    [NUMBERS, NUMBERS.tolist(), sparse.csr_matrix(NUMBERS), pd.DataFrame(NUMBERS), torch.from_numpy(NUMBERS)],
    ids=lambda data: type(data).__name__,
)
def test_numbers_stay_numbers(data):
    numbers = table_numbers(data)
    assert numbers.dtype == np.float64
    np.testing.assert_array_equal(numbers, NUMBERS)


def test_columns_of_a_frame():
    frame = pd.DataFrame(
        {
            "truth": [True, False, True],
            "whole": pd.array([1, None, 3], dtype="Int64"),
            "text": ["b", None, "c"],
            "category": pd.Categorical(["y", "x", None]),
        }
    )
    assert category_columns(frame) == [3]
    assert category_columns(NUMBERS) == []
    numbers = table_numbers(frame, {2: ["a", "b"], 3: ["x", "y"]})
    np.testing.assert_array_equal(numbers, [[1, 1, 1, 1], [0, np.nan, np.nan, 0], [1, 3, np.nan, np.nan]])


def test_text_without_labels_has_a_clear_error():
    with pytest.raises(UnreadableTreesError, match="Column 'text' does not hold numbers"):
        table_numbers(pd.DataFrame({"text": ["b", "c"]}))
