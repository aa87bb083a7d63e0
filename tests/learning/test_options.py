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


@pytest.mark.parametrize("name", ["ties", "restart"])
def test_additions_to_the_papers_losses_are_off_for_them_and_refused_for_the_default_loss(name):
    x = torch.rand(8, 3, generator=generator()).double()
    with pytest.raises(AbsentiaError, match=f"{name} must be left out for the loss 'faithful'"):
        learn(lambda rows: rows.prod(1), x, loss="faithful", polish=False, **{name: True})
    ask = {"ties": LearningOptions.decides_ties, "restart": LearningOptions.restarts}[name]
    assert [ask(LearningOptions(), loss) for loss in ("shapley", "marginal", "interactions")] == [False, False, True]
    assert ask(LearningOptions(**{name: True}), "shapley")
    assert not ask(LearningOptions(**{name: False}), "interactions")
