"""Forward selection against least squares on every candidate."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from absentia.term_search.forward_selection import forward_path, least_squares


@given(seed=st.integers(0, 1000))
def test_each_step_adds_the_feature_that_leaves_least(seed):
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(40, 8, generator=generator)
    features[:, 0] = 1.0
    values = torch.randn(40, generator=generator).double()
    path = forward_path(features, values, most=8)

    def left(columns):
        own = features[:, columns].double()
        return float((values - own @ torch.linalg.lstsq(own, values[:, None]).solution[:, 0]).square().sum())

    chosen = path.chosen.tolist()
    assert chosen[0] == 0
    for step in range(1, len(chosen)):
        squares = {column: left([*chosen[:step], column]) for column in range(8) if column not in chosen[:step]}
        assert squares[chosen[step]] <= min(squares.values()) + 1e-6
        assert abs(float(path.residual_squares[step]) - squares[chosen[step]]) < 1e-6 * float(values @ values)


def test_features_that_repeat_others_are_not_chosen():
    features = torch.randn(30, 3, generator=torch.Generator().manual_seed(0))
    features = torch.cat([features, features[:, 1:2], features[:, 1:2] + features[:, 2:]], dim=1)
    values = torch.randn(30, generator=torch.Generator().manual_seed(1)).double()
    assert len(forward_path(features, values, most=5).chosen) == 3


def test_the_first_feature_is_chosen_even_if_it_explains_nothing():
    features = torch.tensor([[1.0, 1.0], [1.0, -1.0], [1.0, 1.0], [1.0, -1.0]])
    path = forward_path(features, torch.tensor([2.0, -2.0, 2.0, -2.0]).double(), most=2)
    assert path.chosen.tolist() == [0, 1]
    assert path.residual_squares.tolist() == [16.0, 0.0]
    nothing = forward_path(features, torch.zeros(4).double(), most=2)
    assert nothing.chosen.tolist() == [0]


def test_the_fit_is_that_of_least_squares():
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(30, 4, generator=generator)
    values = torch.randn(30, generator=generator).double()
    fit = least_squares(features, values)
    expected = torch.linalg.lstsq(features.double(), values[:, None]).solution[:, 0]
    torch.testing.assert_close(fit.coefficients, expected, atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(fit.inverse, torch.linalg.inv(features.T @ features).double(), atol=1e-5, rtol=1e-4)
