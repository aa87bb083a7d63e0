"""Options of learning are checked."""

import pytest
import torch

from absentia import AbsentiaError, LearningOptions
from seeded_draws import generator
from small_learning import learn


def test_the_size_of_a_cube_is_checked():
    x = torch.rand(8, 3, generator=generator()).double()
    with pytest.raises(AbsentiaError, match=r"cube must be a number of players from 1 to 3\. Got 4 instead"):
        learn(lambda rows: rows.prod(1), x, cube=4)
    with pytest.raises(AbsentiaError, match="cube must be left out for losses other than interactions"):
        learn(lambda rows: rows.prod(1), x, loss="marginal", cube=2)


@pytest.mark.parametrize("name", ["evidence", "noise", "rows_per_step"])
def test_weights_below_zero_get_a_sentence(name):
    with pytest.raises(AbsentiaError, match=f"{name} must be at least"):
        LearningOptions(**{name: -1})
