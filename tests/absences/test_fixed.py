"""Baselines, blur and marginal background."""

import pytest
import torch
from scipy.ndimage import gaussian_filter

import absentia as ab
from absentia import AbsentiaError
from absentia.absences import Baseline, Blur, GaussianConditional, Marginal, NearestNeighbours, Noise, OwnBaselines
from absentia.coalitions import enumerate_coalitions

TABLE = torch.randn(5, 6, generator=torch.Generator().manual_seed(1))
IMAGES = torch.rand(3, 2, 6, 7, generator=torch.Generator().manual_seed(2))
BACKGROUND = torch.randn(20, 6, generator=torch.Generator().manual_seed(3))


def random_presence(samples, coalitions, x):
    return torch.rand(samples, coalitions, *x.shape[1:], generator=torch.Generator().manual_seed(5)) > 0.5


def test_data_come_as_arrays_and_tables_too():
    pandas = pytest.importorskip("pandas")
    presence = random_presence(1, 2, TABLE)
    frame = pandas.DataFrame(BACKGROUND.double().numpy())
    for make in (Marginal, GaussianConditional, NearestNeighbours, Noise):
        from_tensor = make(BACKGROUND.double()).bind(TABLE.double())(slice(None), presence)
        from_frame = make(frame).bind(TABLE.double())(slice(None), presence)
        assert torch.equal(from_tensor, from_frame)


def test_a_baseline_is_found_where_players_are_absent():
    masked = Baseline([1.0, 2.0, 3.0]).bind(torch.zeros(1, 3))(slice(None), enumerate_coalitions(3)[None])
    assert masked[0, 0, 0].tolist() == [1.0, 2.0, 3.0]
    assert masked[0, 5, 0].tolist() == [0.0, 2.0, 0.0]


def test_each_sample_may_have_a_baseline_of_its_own():
    absence = OwnBaselines(-TABLE)
    nobody = torch.zeros(1, 1, 6, dtype=torch.bool)
    assert torch.equal(absence.bind(TABLE)(slice(1, 3), nobody)[:, 0, 0], -TABLE[1:3])
    assert torch.equal(absence.bind(TABLE).select(torch.tensor([4, 0]))(slice(None), nobody)[:, 0, 0], -TABLE[[4, 0]])
    with pytest.raises(AbsentiaError, match=r"baselines must hold one row for each sample, of shape \(2, 6\)"):
        absence.bind(TABLE[:2])


def test_baselines_made_from_data():
    data = torch.tensor([[0.0, 3.0], [1.0, 3.0], [5.0, 9.0], [6.0, 3.0]])
    assert Baseline.mean(data).values.tolist() == [3.0, 4.5]
    assert Baseline.median(data).values.tolist() == [1.0, 3.0]
    assert Baseline.mode(torch.tensor([[2, 1], [2, 1], [5, 1]])).values.tolist() == [2, 1]
    codes = torch.tensor([[1.0, 7.0], [2.0, 9.0], [3.0, 9.0]])
    assert Baseline.median(codes, categorical=[1]).values.tolist() == [2, 9]
    assert Baseline.mean(torch.tensor([[1, 2], [2, 2]])).values.tolist() == [1.5, 2.0]


def test_a_baseline_lets_gradients_through():
    values = torch.zeros(3, requires_grad=True)
    masked = Baseline(values).bind(torch.ones(2, 3))(slice(None), torch.tensor([[[True, False, False]]]))
    masked.sum().backward()
    assert values.grad.tolist() == [0.0, 2.0, 2.0]


@pytest.mark.parametrize("sigma", [0.4, 1.5, 8.0])
def test_blur_is_a_gaussian_filter_mirrored_at_the_border(sigma):
    x = IMAGES.double()
    blurred = Blur(sigma).bind(x)(slice(None), torch.zeros(1, 1, 2, 6, 7, dtype=torch.bool))
    radius = int(-(-4 * sigma // 1))
    expected = gaussian_filter(x.numpy(), (0, 0, sigma, sigma), mode="mirror", radius=(0, 0, radius, radius))
    assert torch.allclose(blurred[:, 0, 0], torch.from_numpy(expected), atol=1e-12)


def test_blur_keeps_a_constant_image():
    x = torch.full((1, 1, 5, 5), 0.3, dtype=torch.float64)
    assert torch.allclose(Blur(3.0).bind(x)(slice(None), torch.zeros(1, 1, 1, 5, 5, dtype=torch.bool)), x)


def test_marginal_uses_every_row_unless_told_how_many():
    presence = torch.zeros(1, 1, 6, dtype=torch.bool)
    assert torch.equal(Marginal(BACKGROUND).bind(TABLE)(slice(0, 1), presence)[0, 0], BACKGROUND)
    drawn = Marginal(BACKGROUND, draws=5, seed=1).bind(TABLE)(slice(0, 1), presence)[0, 0]
    rows = [(row == BACKGROUND).all(1).nonzero().item() for row in drawn]
    assert len(set(rows)) == 5


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Baseline(float("inf")), "values must be finite, or NaN"),
        (
            lambda: Baseline(torch.zeros(5)).bind(TABLE),
            r"baseline must be one number or have the shape .*\(6,\)\. Got",
        ),
        (lambda: Baseline(torch.zeros(7)).bind(IMAGES), r"baseline must .* Got shape \(7,\)"),
        (lambda: Baseline(0.5).bind(torch.zeros(1, 3, dtype=torch.int64)), "baseline must hold whole numbers"),
        (lambda: Baseline.mean(torch.zeros(0, 3)), r"data must have at least one row.* Got shape \(0, 3\)"),
        (lambda: Baseline.mean(torch.tensor([[0.0], [torch.inf]])), "data must be finite.* in row 1"),
        (lambda: Blur(0.0), "sigma must be a positive number of pixels. Got 0.0"),
        (lambda: Blur(float("inf")), "sigma must be a positive number"),
        (lambda: Blur(1.0).bind(TABLE), "x must be images"),
        (lambda: Marginal(BACKGROUND, draws=21), "draws must lie between 1 and 20. Got 21"),
        (lambda: Marginal(BACKGROUND[:, :5]).bind(TABLE), r"background must have rows of the shape .*\(6,\)\. Got"),
    ],
)
def test_bad_input_gets_a_sentence(make, sentence):
    with pytest.raises(AbsentiaError, match=sentence):
        make()


def test_a_tensor_where_numbers_may_be_listed_keeps_its_gradient():
    values = torch.zeros(3, requires_grad=True)
    assert ab.Baseline(values).values is values
