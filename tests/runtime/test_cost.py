"""The cost of a model's rows."""

import torch
from torch import nn

from absentia import from_numpy
from absentia.runtime.cost import affordable_rows, operations_per_row
from absentia.runtime.row_count import RowCount


def test_operations_are_those_of_the_layers_and_a_little_more():
    wide, narrow = (operations_per_row(nn.Linear(64, width), torch.zeros(3, 64), RowCount()) for width in (512, 256))
    assert wide - narrow == 2 * 64 * 256


def test_fewer_rows_are_affordable_for_a_larger_model():
    small, large = (affordable_rows(nn.Linear(64, width), torch.zeros(1, 64), 1e9, RowCount()) for width in (8, 8192))
    assert small > 8 * large
    assert small.bit_count() == large.bit_count() == 1
    assert affordable_rows(from_numpy(lambda rows: rows.sum(1)), torch.zeros(1, 64), 1e9, RowCount()) > 1000
    assert affordable_rows(nn.Linear(64, 64), torch.zeros(1, 64), 1.0, RowCount()) == 1
    assert affordable_rows(nn.Linear(4, 1), torch.zeros(1, 4), 1e6, RowCount()) == 128
