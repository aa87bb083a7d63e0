import math
from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from absentia.coalitions import (
    coalition_numbers,
    coalition_sizes,
    draw_coalitions,
    enumerate_coalitions,
    moebius,
    moebius_,
    sums_by_size,
    sums_by_size_and_player,
    zeta,
    zeta_,
)
from absentia.errors import AbsentiaError
from known_games import harsanyi_by_definition


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


@given(st.integers(0, 8))
def test_rows_are_in_counting_order(players):
    rows = enumerate_coalitions(players)
    assert rows.shape == (2**players, players)
    for number, row in enumerate(rows.tolist()):
        assert row == [bool(number >> player & 1) for player in range(players)]


def test_the_complement_of_every_coalition_is_flip():
    rows = enumerate_coalitions(5)
    assert torch.equal(~rows, rows.flip(0))


def test_a_block_of_coalitions_is_a_part_of_all():
    assert torch.equal(enumerate_coalitions(6, 13, 40), enumerate_coalitions(6)[13:40])


def test_numbers_and_sizes_agree_with_the_rows():
    rows = enumerate_coalitions(7)
    assert torch.equal(coalition_numbers(rows), torch.arange(128))
    assert torch.equal(coalition_sizes(7), rows.sum(1))


@given(st.integers(1, 9), st.data())
def test_drawn_coalitions_have_exactly_the_size_asked_for(players, data):
    sizes = torch.tensor(data.draw(st.lists(st.integers(0, players), min_size=1, max_size=20)))
    assert torch.equal(draw_coalitions(players, sizes, seeded()).sum(1), sizes)


def test_coalitions_are_drawn_uniformly_among_those_of_their_size():
    draws = 20_000
    rows = draw_coalitions(5, torch.full((draws,), 2), seeded())
    counts = Counter(coalition_numbers(rows).tolist())
    expected = draws / math.comb(5, 2)
    assert len(counts) == 10
    chi_square = sum((count - expected) ** 2 / expected for count in counts.values())
    assert chi_square < 27.9  # the 0.999 quantile with 9 degrees of freedom


def test_the_same_seed_draws_the_same():
    sizes = torch.arange(6)
    assert torch.equal(draw_coalitions(5, sizes, seeded(3)), draw_coalitions(5, sizes, seeded(3)))
    assert not torch.equal(draw_coalitions(50, sizes * 5, seeded(3)), draw_coalitions(50, sizes * 5, seeded(4)))


@pytest.mark.parametrize("sizes", [[6], [-1]])
def test_impossible_sizes_are_refused(sizes):
    with pytest.raises(AbsentiaError, match="sizes must lie between 0 and 5 players"):
        draw_coalitions(5, torch.tensor(sizes), seeded())


@given(st.integers(0, 6), st.integers(0, 2**31))
def test_moebius_is_the_definition(players, seed):
    values = torch.randn(2**players, generator=seeded(seed), dtype=torch.float64)
    expected = torch.tensor(harsanyi_by_definition(values.tolist()), dtype=torch.float64)
    assert torch.allclose(moebius(values), expected)


@pytest.mark.parametrize("players", [0, 1, 3, 10, 17, 18])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_zeta_undoes_moebius(players, dtype):
    values = torch.randint(-8, 8, (2, 2**players), generator=seeded()).to(dtype)
    effects = moebius(values)
    assert effects.dtype == dtype
    assert torch.equal(zeta(effects), values)  # small whole numbers: exact in both types


def test_transforms_of_a_batch_are_those_of_its_rows():
    values = torch.randn(3, 5, 2**11, dtype=torch.float64)
    expected = torch.stack([torch.stack([moebius(row) for row in rows]) for rows in values])
    assert torch.equal(moebius(values), expected)


def test_large_tables_are_transformed_like_small_ones():
    # 18 players take two blocks and more; a product of two games has the product of their effects.
    first, second = torch.randn(2**9, dtype=torch.float64), torch.randn(2**9, dtype=torch.float64)
    both = (second[:, None] * first).flatten()
    assert torch.allclose(moebius(both), (moebius(second)[:, None] * moebius(first)).flatten())


def test_in_place_transforms_work_in_place():
    values = torch.randn(4, 64, dtype=torch.float64)
    expected = moebius(values)
    given = values.clone()
    assert moebius_(given) is given
    assert torch.equal(given, expected)
    assert torch.allclose(zeta_(given), values)


def test_in_place_needs_contiguous_memory():
    with pytest.raises(AbsentiaError, match="values must be contiguous"):
        moebius_(torch.randn(8, 4).T)


@pytest.mark.parametrize("transform", [moebius, zeta])
def test_gradients_of_the_transforms(transform):
    values = torch.randn(2, 8, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(transform, values)
    assert torch.autograd.gradgradcheck(transform, values)


def test_a_table_of_the_wrong_length_is_refused():
    with pytest.raises(AbsentiaError, match=r"values must have 2ⁿ entries in the last axis.* Got 6 instead"):
        moebius(torch.zeros(6))


@pytest.mark.parametrize("players", [0, 1, 2, 5, 6])
def test_sums_by_size_and_player_are_sums(players):
    table = torch.randn(3, 2**players, dtype=torch.float64)
    rows, sizes = enumerate_coalitions(players), coalition_sizes(players)
    for size in range(players + 1):
        assert torch.allclose(sums_by_size(table)[:, size], table[:, sizes == size].sum(1))
        for player in range(players):
            expected = table[:, (sizes == size) & rows[:, player]].sum(1)
            assert torch.allclose(sums_by_size_and_player(table)[:, size, player], expected)


def test_tables_that_are_kept_can_be_used_with_a_gradient_later():
    with torch.inference_mode():
        sums_by_size_and_player(torch.rand(2**11, dtype=torch.float32))
    table = torch.rand(2**11, dtype=torch.float32, requires_grad=True)
    sums_by_size_and_player(table).sum().backward()
    assert table.grad.isfinite().all()
