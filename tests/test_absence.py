"""The conformance suite that every absence must pass, and the particulars of each."""

import pytest
import torch
from scipy.ndimage import gaussian_filter

from absentia import Absence, AbsentiaError, Baseline, Blur, LearnedBaseline, Marginal, OwnBaselines
from absentia.absence import Fill
from absentia.coalitions import enumerate_coalitions
from absentia.learning import LearningRecord

TABLE = torch.randn(5, 6, generator=torch.Generator().manual_seed(1))
IMAGES = torch.rand(3, 2, 6, 7, generator=torch.Generator().manual_seed(2))
BACKGROUND = torch.randn(20, 6, generator=torch.Generator().manual_seed(3))


def learned_baseline(values, share):
    record = LearningRecord("interactions", True, 6, "range", ("mean",), (1.0,), 0, 5, True, "done", 1, 0.1, ())
    return LearnedBaseline(values, share, None, tuple("abcdef"), 1.0, torch.zeros(1, 2).double(), record)


# Every masking method, with samples that it takes. A new one is added here, and must pass all that follows.
CASES = {
    "scalar baseline": (Baseline(0.5), TABLE),
    "vector baseline": (Baseline(torch.arange(6.0)), TABLE),
    "baseline per channel": (Baseline([0.1, 0.9]), IMAGES),
    "baseline per entry": (Baseline(torch.rand(2, 6, 7)), IMAGES),
    "baseline of integers": (Baseline(0), torch.randint(1, 9, (4, 6))),
    "mean": (Baseline.mean(BACKGROUND), TABLE),
    "median": (Baseline.median(BACKGROUND), TABLE),
    "mode": (Baseline.mode(BACKGROUND.round()), TABLE),
    "learned": (learned_baseline(torch.arange(6.0), "all"), TABLE),
    "blur": (Blur(1.5), IMAGES),
    "marginal": (Marginal(BACKGROUND), TABLE),
    "marginal, drawn": (Marginal(BACKGROUND, draws=4, seed=7), TABLE),
}


@pytest.fixture(params=CASES.values(), ids=CASES.keys())
def case(request):
    return request.param


def random_presence(samples, coalitions, x):
    return torch.rand(samples, coalitions, *x.shape[1:], generator=torch.Generator().manual_seed(5)) > 0.5


def test_it_is_an_absence_and_binds_to_a_fill(case):
    absence, x = case
    assert isinstance(absence, Absence)
    assert isinstance(absence.bind(x), Fill)


def test_masked_inputs_have_the_stated_shape_type_and_device(case):
    absence, x = case
    fill = absence.bind(x)
    masked = fill(slice(1, 3), random_presence(1, 4, x))
    assert masked.shape == (2, 4, fill.draws, *x.shape[1:])
    assert masked.dtype == x.dtype
    assert masked.device == x.device


def test_present_entries_keep_their_values_exactly(case):
    absence, x = case
    presence = random_presence(len(x), 8, x)
    fill = absence.bind(x)
    masked = fill(slice(0, len(x)), presence)
    kept = presence[:, :, None].expand_as(masked)
    assert torch.equal(masked[kept], x[:, None, None].expand_as(masked)[kept])


def test_the_full_coalition_is_the_sample(case):
    absence, x = case
    masked = absence.bind(x)(slice(None), torch.ones(1, 1, *x.shape[1:], dtype=torch.bool))
    assert torch.equal(masked, x[:, None, None].expand_as(masked))


def test_absent_values_are_finite_and_do_not_change_from_call_to_call(case):
    absence, x = case
    presence = random_presence(1, 6, x)
    first, second = (absence.bind(x)(slice(None), presence) for _ in range(2))
    assert torch.isfinite(first.double()).all()
    assert torch.equal(first, second)


def test_a_sample_is_masked_the_same_alone_and_in_a_batch(case):
    absence, x = case
    presence = random_presence(1, 6, x)
    together = absence.bind(x)(slice(None), presence)
    alone = absence.bind(x[1:2])(slice(None), presence)
    assert torch.allclose(together[1:2].double(), alone.double(), atol=1e-6)


def test_each_sample_may_have_a_presence_of_its_own(case):
    absence, x = case
    presence = random_presence(len(x), 3, x)
    fill = absence.bind(x)
    together = fill(slice(None), presence)
    for sample in range(len(x)):
        assert torch.equal(together[[sample]], fill(slice(sample, sample + 1), presence[[sample]]))


def test_a_baseline_is_found_where_players_are_absent():
    masked = Baseline([1.0, 2.0, 3.0]).bind(torch.zeros(1, 3))(slice(None), enumerate_coalitions(3)[None])
    assert masked[0, 0, 0].tolist() == [1.0, 2.0, 3.0]
    assert masked[0, 5, 0].tolist() == [0.0, 2.0, 0.0]


@pytest.mark.parametrize(
    "absence", [OwnBaselines(-TABLE), learned_baseline(-TABLE, "sample")], ids=["own", "learned"]
)
def test_each_sample_may_have_a_baseline_of_its_own(absence):
    masked = absence.bind(TABLE)(slice(1, 3), torch.zeros(1, 1, 6, dtype=torch.bool))
    assert torch.equal(masked[:, 0, 0], -TABLE[1:3])
    with pytest.raises(AbsentiaError, match=r"baselines must hold one row for each sample, of shape \(2, 6\)"):
        absence.bind(TABLE[:2])


def test_baselines_made_from_data():
    data = torch.tensor([[0.0, 3.0], [1.0, 3.0], [5.0, 9.0], [6.0, 3.0]])
    assert Baseline.mean(data).values.tolist() == [3.0, 4.5]
    assert Baseline.median(data).values.tolist() == [1.0, 3.0]
    assert Baseline.mode(torch.tensor([[2, 1], [2, 1], [5, 1]])).values.tolist() == [2, 1]
    assert Baseline.median(torch.tensor([[1.0, 7.0], [2.0, 9.0], [3.0, 9.0]]), categorical=[1]).values.tolist() == [
        2,
        9,
    ]
    assert Baseline.zeros().values.item() == 0
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
        (lambda: Baseline(float("nan")), "values must be finite"),
        (
            lambda: Baseline(torch.zeros(5)).bind(TABLE),
            r"baseline must be one number or have the shape .*\(6,\)\. Got",
        ),
        (lambda: Baseline(torch.zeros(7)).bind(IMAGES), r"baseline must .* Got shape \(7,\)"),
        (lambda: Baseline(0.5).bind(torch.zeros(1, 3, dtype=torch.int64)), "baseline must hold whole numbers"),
        (lambda: Baseline.mean(torch.zeros(0, 3)), r"data must have at least one row.* Got shape \(0, 3\)"),
        (lambda: Baseline.mean(torch.tensor([[0.0], [torch.nan]])), "data must be finite.* in row 1"),
        (lambda: Blur(0.0), "sigma must be a positive number of pixels. Got 0.0"),
        (lambda: Blur(float("inf")), "sigma must be a positive number"),
        (lambda: Blur(1.0).bind(TABLE), "x must be images"),
        (lambda: Marginal(BACKGROUND, draws=21), "draws must lie between 1 and the background's 20 rows. Got 21"),
        (lambda: Marginal(BACKGROUND[:, :5]).bind(TABLE), r"background must have rows of the shape .*\(6,\)\. Got"),
    ],
)
def test_bad_input_gets_a_sentence(make, sentence):
    with pytest.raises(AbsentiaError, match=sentence):
        make()
