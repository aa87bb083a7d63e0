"""The better of two assessments."""

import pytest
import torch

from absentia.learning.assessment import Assessment


def test_the_better_of_two_is_chosen_for_each_owner():
    first = Assessment(
        torch.tensor([[1.0, 2.0], [3.0, 4.0], [0.0, 0.0]]), torch.tensor([0.1, 0.2, 0.3]), torch.tensor([1.0, 5, 2])
    )
    second = Assessment(
        torch.tensor([[5.0, 6.0], [7.0, 8.0], [9.0, 9.0]]), torch.tensor([0.4, 0.5, 0.6]), torch.tensor([2.0, 4, 2])
    )
    assert first.or_better(None) is first
    best = first.or_better(second)
    assert best.baseline.tolist() == [[1.0, 2.0], [7.0, 8.0], [9.0, 9.0]]  # a tie goes to the other one
    assert best.penalties.tolist() == pytest.approx([0.1, 0.5, 0.6])
    assert best.losses.tolist() == [1.0, 4.0, 2.0]
