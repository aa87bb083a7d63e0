"""Numbers of a page."""

import torch

from absentia.report.shown_numbers import numbers


def test_numbers_are_short_and_json_knows_them():
    values = torch.tensor([float("nan"), float("inf"), 1e-30, 123456.0, 0.1 + 0.2], dtype=torch.float64)
    assert numbers(values) == [None, None, 1e-30, 123456, 0.3]
    assert numbers(values[3:], digits=3) == [123000, 0.3]
    assert numbers(torch.tensor([1, 2])) == [1, 2]
