import pytest
import torch
from sklearn.covariance import LedoitWolf

import absentia as ab
from absentia import AbsentiaError, Players
from absentia.absences import GaussianConditional, Marginal, gaussian
from absentia.absences.gaussian import _correlations
from absentia.coalitions import enumerate_coalitions
from absentia.games import MaskedModel, value_table
from known_gaussian import COVARIANCE, ENTRIES, MEAN, conditional, draw, error

ALL = enumerate_coalitions(ENTRIES)
DATA = draw(4000)
X = draw(6, seed=1)


def moments(absence):
    """The mean and covariance that the absence works with, in the data's units."""
    return absence.mean, absence.scale[:, None] * absence.covariance * absence.scale


@pytest.mark.parametrize("rows", [5, 50, 2000])
def test_the_shrinkage_is_that_of_ledoit_and_wolf(rows):
    data = draw(rows)
    mean, scale, _, intensity = _correlations(data)
    peer = LedoitWolf().fit(((data - mean) / scale).numpy())
    assert intensity == pytest.approx(peer.shrinkage_, rel=1e-9)
    absence = GaussianConditional(data)
    assert absence.shrinkage == pytest.approx(peer.shrinkage_, rel=1e-9)
    assert torch.allclose(absence.covariance, torch.from_numpy(peer.covariance_))
    assert torch.allclose(absence.precision, torch.from_numpy(peer.covariance_).inverse())


def test_correlations_written_out():
    mean, deviation, correlation, intensity = _correlations(
        torch.tensor([[0.0, 1.0, 3.0], [2.0, 5.0, 3.0], [4.0, 3.0, 3.0]])
    )
    assert mean.tolist() == [2.0, 3.0, 3.0]
    assert deviation[2] == 0
    assert correlation[0].tolist() == pytest.approx([1.0, 0.5, 0.0])
    assert intensity == pytest.approx(0.571, abs=1e-3)


def test_the_shrinkage_does_not_depend_on_how_the_rows_are_read(monkeypatch):
    whole = _correlations(DATA)
    monkeypatch.setattr(gaussian, "_ROWS_AT_A_TIME", 7)
    in_parts = _correlations(DATA)
    assert torch.allclose(in_parts.mean, whole.mean)
    assert torch.allclose(in_parts.scale, whole.scale)
    assert torch.allclose(in_parts.correlations, whole.correlations)
    assert in_parts.shrinkage == pytest.approx(whole.shrinkage)


@pytest.mark.parametrize("memory", [1, 2**23])
def test_conditional_means_are_those_of_a_plain_solution(memory, monkeypatch):
    monkeypatch.setattr(gaussian, "_NUMBERS_AT_A_TIME", memory)
    absence = GaussianConditional(DATA, sample=False, shrinkage=0.1)
    masked = absence.bind(X)(slice(None), ALL[None])
    for number, coalition in enumerate(ALL):
        expected, _ = conditional(X, coalition, *moments(absence))
        assert torch.allclose(masked[:, number, 0], expected, atol=1e-9)


def test_draws_have_the_conditional_mean_and_covariance():
    absence = GaussianConditional(DATA, draws=20_000, shrinkage=0.0)
    masked = absence.bind(X)(slice(0, 1), ALL[None])[0]
    for number, coalition in enumerate(ALL):
        expected, covariance = conditional(X[:1], coalition, *moments(absence))
        scale = absence.scale
        assert torch.allclose((masked[number].mean(0) - expected[0]) / scale, torch.zeros(4).double(), atol=0.03)
        apart = (masked[number].T.cov() - covariance) / scale / scale[:, None]
        assert apart.abs().max() < 0.05


def test_more_rows_come_closer_to_the_truth():
    errors = []
    for rows in (30, 300, 3000, 30_000):
        tries = [GaussianConditional(draw(rows, seed), sample=False).bind(X) for seed in range(5)]
        errors.append(sum(error(fill, X, ALL[1:-1]) for fill in tries) / 5)
    assert errors[0] > 2 * errors[1] > 4 * errors[2] > 8 * errors[3]
    assert errors[-1] < 0.01 < error(Marginal(DATA).bind(X), X, ALL[1:-1])


def test_coalitions_share_their_random_numbers():
    fill = GaussianConditional(DATA, draws=3).bind(X)
    empty, first_present = fill(slice(0, 1), ALL[None, :2])[0]
    # Entry 3 is hardly correlated with entry 0, which is all that is present.
    assert torch.allclose(empty[:, 3], first_present[:, 3], atol=2.0)
    assert empty[:, 3].std() > 3


def test_own_presences_give_what_shared_ones_give():
    fill = GaussianConditional(DATA).bind(X)
    shared = fill(slice(None), ALL[None])
    assert torch.allclose(fill(slice(None), ALL[None].expand(6, -1, -1)), shared, atol=1e-9)


def test_entries_that_never_change_keep_their_value():
    data = torch.cat([DATA, torch.full((len(DATA), 1), 0.1).double()], dim=1)
    x = torch.cat([X, torch.full((6, 1), 7.0).double()], dim=1)
    assert GaussianConditional(data, shrinkage=0.0).shrinkage == 0
    masked = GaussianConditional(data, shrinkage=0.5).bind(x)(slice(None), enumerate_coalitions(5)[None])
    assert torch.allclose(masked[:, :16, :, 4], torch.tensor(0.1).double())  # where it is absent
    # And it says nothing of the others, whatever it is.
    assert torch.allclose(masked[:, 16, :, :4], masked[:, 0, :, :4])


def test_copied_columns_and_few_rows_do_no_harm():
    data = torch.cat([DATA[:6], DATA[:6]], dim=1)
    x = torch.cat([X, X], dim=1)
    masked = GaussianConditional(data, sample=False).bind(x)(slice(None), enumerate_coalitions(8)[None])
    assert torch.isfinite(masked).all()
    copied = GaussianConditional(torch.cat([DATA, DATA], 1), sample=False).bind(x)
    masked = copied(slice(None), torch.tensor([[[True] * 4 + [False] * 4]]))
    assert torch.allclose(masked[:, 0, 0, 4:], X, atol=0.05)


def test_images_of_cells_in_a_game():
    images = torch.rand(40, 1, 6, 6, generator=torch.Generator().manual_seed(0)).cumsum(-1)
    players = Players.grid((1, 6, 6), cells=(2, 2))
    absence = GaussianConditional(images)
    game = MaskedModel(lambda rows: rows.sum((1, 2, 3)), images[:2], players=players, absence=absence)
    values = value_table(game).values
    assert values.shape == (2, 16)
    assert torch.allclose(values[:, -1], images[:2].sum((1, 2, 3)).double())


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: GaussianConditional(DATA[:1]), r"data must have at least 2 rows.* Got shape \(1, 4\)"),
        (lambda: GaussianConditional(DATA, shrinkage=1.5), "shrinkage must lie between 0 and 1. Got 1.5"),
        (lambda: GaussianConditional(DATA, draws=0), "draws must be at least 1. Got 0"),
        (lambda: GaussianConditional(DATA, draws=3, sample=False), "draws must be left out for the conditional mean"),
        (lambda: GaussianConditional(DATA[:3], shrinkage=0.0), "shrinkage must be large enough .* Got 0 instead"),
        (lambda: GaussianConditional(DATA).bind(X.long()), "x must be in floating point for GaussianConditional"),
        (lambda: GaussianConditional(DATA).bind(X[:, :3]), r"data must have rows of the shape of one sample, \(3,\)"),
    ],
)
def test_bad_input_gets_a_sentence(make, sentence):
    with pytest.raises(AbsentiaError, match=sentence):
        make()


def test_the_oracle_is_right_for_two_entries():
    expected, covariance = conditional(X, torch.tensor([True, False, False, False]))
    slope = COVARIANCE[0, 1] / COVARIANCE[0, 0]
    assert torch.allclose(expected[:, 1], MEAN[1] + slope * (X[:, 0] - MEAN[0]))
    assert covariance[1, 1] == pytest.approx(float(COVARIANCE[1, 1] * (1 - 0.8**2)))


def test_a_covariance_of_too_many_entries_gets_a_sentence():
    with pytest.raises(
        AbsentiaError, match=r"data must have at most 8,192 entries in a row. Got 150,528 instead. Use an"
    ):
        ab.GaussianConditional(torch.zeros(2, 3, 224, 224))
