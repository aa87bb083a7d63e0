import pytest
import torch

import absentia as ab
from absentia import AbsentiaError, Players
from absentia.absences import Marginal, NearestNeighbours, neighbours
from absentia.coalitions import enumerate_coalitions
from known_gaussian import ENTRIES, draw, error

DATA = torch.randn(40, 5, generator=torch.Generator().manual_seed(0)) * torch.tensor([1.0, 5.0, 0.2, 1.0, 3.0])
X = torch.randn(3, 5, generator=torch.Generator().manual_seed(1))
ALL = enumerate_coalitions(5)


def by_hand(absence, sample, coalition, scale):
    """Sort all rows by distance, one by one; equal ones in the order in which the absence holds them."""
    apart = [float((((sample - row) / scale)[coalition].double() ** 2).sum()) for row in absence.rows]
    order = sorted(range(len(apart)), key=lambda row: (apart[row], row))
    return absence.rows[order[: absence.neighbours]]


@pytest.mark.parametrize("standardise", [True, False])
@pytest.mark.parametrize("memory", [1, 2**23])
def test_the_nearest_rows_are_those_found_by_sorting(standardise, memory, monkeypatch):
    monkeypatch.setattr(neighbours, "_NUMBERS_AT_A_TIME", memory)
    monkeypatch.setattr(neighbours, "_NUMBERS_IN_CACHE", memory)
    absence = NearestNeighbours(DATA, neighbours=4, standardise=standardise)
    masked = absence.bind(X)(slice(None), ALL[None])
    scale = DATA.std(0, correction=0) if standardise else torch.ones(5)
    for sample in range(3):
        for number, coalition in enumerate(ALL):
            expected = torch.where(coalition, X[sample], by_hand(absence, X[sample], coalition, scale))
            assert torch.equal(masked[sample, number], expected)


def test_pixels_of_a_cell_are_compared_together(monkeypatch):
    groups = []
    differences = neighbours._Search._differences

    def watched(search, sample, group):
        groups.append(group)
        return differences(search, sample, group)

    monkeypatch.setattr(neighbours._Search, "_differences", watched)
    images = torch.rand(30, 2, 4, 4, generator=torch.Generator().manual_seed(2))
    absence = NearestNeighbours(images, neighbours=3)
    presence = Players.grid((2, 4, 4), cells=(2, 2)).presence(enumerate_coalitions(4))
    masked = absence.bind(images[:2] + 0.1)(slice(None), presence[None])
    assert [len(group.unique()) for group in groups] == [4, 4]
    scale = images.transpose(0, 1).flatten(1).std(1, correction=0)[:, None, None]
    for number in range(16):
        nearest = by_hand(absence, images[1] + 0.1, presence[number], scale)
        assert torch.equal(masked[1, number], torch.where(presence[number], images[1] + 0.1, nearest))


def test_tokens_are_near_where_they_are_equal():
    data = torch.tensor([[1, 2, 3, 9], [1, 2, 4, 8], [5, 2, 3, 7]])
    fill = NearestNeighbours(data, neighbours=1).bind(torch.tensor([[1, 2, 4, 0], [5, 6, 3, 0]]))
    presence = torch.tensor([[[True, True, True, False], [True, True, False, False]]])
    masked = fill(slice(None), presence)
    assert masked.dtype == torch.int64
    assert masked[0, 0, 0].tolist() == [1, 2, 4, 8]
    assert masked[1, :, 0].tolist() == [[5, 6, 3, 7], [5, 6, 3, 7]]


def test_with_nothing_present_the_rows_are_drawn_by_the_seed():
    nothing = torch.zeros(1, 1, 5, dtype=torch.bool)
    data = torch.arange(100.0)[:, None].expand(-1, 5)
    chosen = [NearestNeighbours(data, seed=seed).bind(X)(slice(None), nothing) for seed in (0, 0, 1)]
    assert torch.equal(chosen[0], chosen[1])
    assert not torch.equal(chosen[0], chosen[2])
    rows = chosen[0][0, 0, :, 0]
    assert len(rows.unique()) == 10
    assert rows.max() - rows.min() > 50  # not those that happen to come first
    assert torch.equal(chosen[0][0], chosen[0][2])


def test_equal_rows_are_taken_in_one_order_whatever_the_batch():
    data = torch.randint(0, 2, (200, 5), generator=torch.Generator().manual_seed(3)).float()
    absence = NearestNeighbours(data, neighbours=7)
    x = data[:3] + 0.1
    whole = absence.bind(x)(slice(None), ALL[None])
    for number in range(len(ALL)):
        assert torch.equal(absence.bind(x)(slice(None), ALL[None, number : number + 1])[:, 0], whole[:, number])
    for sample in range(3):
        expected = by_hand(absence, x[sample], ALL[9], data.std(0, correction=0))
        assert torch.equal(whole[sample, 9], torch.where(ALL[9], x[sample], expected))


def test_chosen_draws_are_the_neighbours_of_those_ranks():
    fill = NearestNeighbours(DATA, neighbours=6).bind(X)
    whole = fill(slice(None), ALL[None])
    part = fill.select(torch.tensor([2, 0]), [4, 1])(slice(None), ALL[None])
    assert torch.equal(part, whole[[2, 0]][:, :, [4, 1]])
    nearest = fill.select(draws=[0])(slice(None), ALL[None])
    assert torch.equal(nearest, NearestNeighbours(DATA, neighbours=1).bind(X)(slice(None), ALL[None]))


def test_a_sample_among_the_data_is_its_own_nearest_row():
    masked = NearestNeighbours(DATA, neighbours=1).bind(DATA[:2])(slice(None), ALL[None, 1:])
    assert torch.equal(masked[:, :, 0], DATA[:2, None].expand(-1, 31, -1))


def test_it_comes_near_the_conditional_mean_and_nearer_with_more_rows():
    x = draw(20, seed=1)
    coalitions = enumerate_coalitions(ENTRIES)[1:-1]
    few = error(NearestNeighbours(draw(200), neighbours=20).bind(x), x, coalitions)
    many = error(NearestNeighbours(draw(20_000), neighbours=20).bind(x), x, coalitions)
    assert many < 0.25 < error(Marginal(draw(1000)).bind(x), x, coalitions) / 2
    assert many < few


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: NearestNeighbours(DATA, neighbours=41), "neighbours must lie between 1 and 40"),
        (lambda: NearestNeighbours(DATA, neighbours=0), "neighbours must lie between 1"),
        (lambda: NearestNeighbours(DATA).bind(X[:, :2]), r"data must have rows of the shape of one sample, \(2,\)"),
        (lambda: NearestNeighbours(DATA).bind(X.long()), "data must hold whole numbers for integer inputs"),
        (lambda: NearestNeighbours(DATA / 0), "data must be finite"),
    ],
)
def test_bad_input_gets_a_sentence(make, sentence):
    with pytest.raises(AbsentiaError, match=sentence):
        make()


def test_neighbours_are_found_in_half_precision():
    data = torch.tensor([[0.0], [1000.0], [2000.0]]).half()
    data = torch.cat([data, data], 1)
    x = torch.tensor([[700.0, 0.0]]).half()
    fill = ab.NearestNeighbours(data, neighbours=1, standardise=False).bind(x)
    assert fill(slice(None), torch.tensor([[[True, False]]])).flatten().tolist() == [700.0, 1000.0]
