"""Noise in the place of absent entries."""

import pytest
import torch

from absentia import AbsentiaError
from absentia.absences import Noise
from typechecker import unchecked

DATA = torch.tensor([[0.0, 7.0, -3.0], [2.0, 7.0, 9.0], [1.0, 7.0, 0.0]])
X = torch.ones(2, 3)


def noise(absence, x=X):
    return absence.bind(x).values[0]


def test_uniform_noise_fills_the_range_of_each_entry():
    drawn = noise(Noise(DATA, draws=4000))
    assert (drawn >= DATA.amin(0)).all()
    assert (drawn <= DATA.amax(0)).all()
    assert torch.allclose(drawn.mean(0), torch.tensor([1.0, 7.0, 3.0]), atol=0.2)
    assert torch.allclose(drawn.std(0), torch.tensor([2.0, 0.0, 12.0]) / 12**0.5, atol=0.1)


def test_normal_noise_has_the_mean_and_deviation_of_each_entry():
    drawn = noise(Noise(DATA, kind="normal", draws=4000))
    assert torch.allclose(drawn.mean(0), DATA.mean(0), atol=0.3)
    assert torch.allclose(drawn.std(0), DATA.std(0, correction=0), atol=0.2)
    plain = noise(Noise(kind="normal", draws=4000))
    assert torch.allclose(plain.mean(0), torch.zeros(3), atol=0.1)
    assert torch.allclose(plain.std(0), torch.ones(3), atol=0.1)


def test_pixels_of_a_channel_share_its_range():
    images = torch.zeros(5, 2, 3, 3)
    images[0, 0, 1, 1] = 1.0
    images[3, 1] = -4.0
    drawn = noise(Noise(images, draws=500), images)
    assert drawn[:, 0].amin((0, 1, 2)) >= 0
    assert (drawn[:, 0].amax(0) > 0.9).all()
    assert (drawn[:, 1].amin(0) < -3.6).all()


def test_the_range_can_be_given():
    assert noise(Noise(draws=100)).amin() >= 0
    assert noise(Noise(draws=100)).amax() <= 1
    wide = noise(Noise(DATA, low=-10.0, draws=500))
    assert (wide.amin(0) < -8).all()
    assert (wide.amax(0) <= DATA.amax(0)).all()


def test_entries_and_draws_are_independent():
    drawn = noise(Noise(draws=4000), torch.zeros(1, 4))
    assert (drawn.T.corrcoef() - torch.eye(4)).abs().max() < 0.06
    assert torch.corrcoef(torch.stack([drawn[:-1, 0], drawn[1:, 0]]))[0, 1].abs() < 0.06


def test_tokens_get_whole_numbers_of_the_range_equally_often():
    tokens = torch.tensor([[1, 4], [3, 4]])
    drawn = noise(Noise(tokens, draws=3000), tokens)
    assert drawn.dtype == torch.int64
    assert set(drawn[:, 0].tolist()) == {1, 2, 3}
    assert drawn[:, 0].bincount().max() < 1100
    assert drawn[:, 1].unique().tolist() == [4]


def test_the_seed_decides():
    assert torch.equal(noise(Noise(seed=1)), noise(Noise(seed=1)))
    assert not torch.equal(noise(Noise(seed=1)), noise(Noise(seed=2)))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: unchecked(Noise.__init__)(object.__new__(Noise), kind="pink"), "kind must be 'uniform' or 'normal'"),
        (lambda: Noise(low=2.0), "low must be finite and not above high. Got 2 and 1"),
        (lambda: Noise(DATA, high=5.0), "low must be finite and not above high. Got 7 and 5"),
        (lambda: Noise(kind="normal", low=0.0), "low and high must be left out for normal noise"),
        (lambda: Noise(draws=0), "draws must be at least 1"),
        (lambda: Noise(DATA).bind(torch.ones(2, 4)), r"data must have rows of the shape of one sample, \(4,\)"),
        (lambda: Noise(kind="normal").bind(torch.ones(2, 4).long()), "kind must be 'uniform' for integer inputs"),
    ],
)
def test_bad_input_gets_a_sentence(make, sentence):
    with pytest.raises(AbsentiaError, match=sentence):
        make()
