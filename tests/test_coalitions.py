import math
from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import absentia as ab
from absentia.coalitions import (
    coalition_members,
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
from seeded_draws import generator


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
    assert torch.equal(draw_coalitions(players, sizes, generator()).sum(1), sizes)


def test_coalitions_are_drawn_uniformly_among_those_of_their_size():
    draws = 20_000
    rows = draw_coalitions(5, torch.full((draws,), 2), generator())
    counts = Counter(coalition_numbers(rows).tolist())
    expected = draws / math.comb(5, 2)
    assert len(counts) == 10
    chi_square = sum((count - expected) ** 2 / expected for count in counts.values())
    assert chi_square < 27.9  # the 0.999 quantile with 9 degrees of freedom


def test_the_same_seed_draws_the_same():
    sizes = torch.arange(6)
    assert torch.equal(draw_coalitions(5, sizes, generator(3)), draw_coalitions(5, sizes, generator(3)))
    assert not torch.equal(draw_coalitions(50, sizes * 5, generator(3)), draw_coalitions(50, sizes * 5, generator(4)))


@pytest.mark.parametrize("sizes", [[6], [-1]])
def test_impossible_sizes_are_refused(sizes):
    with pytest.raises(AbsentiaError, match="sizes must lie between 0 and 5 players"):
        draw_coalitions(5, torch.tensor(sizes), generator())


@given(st.integers(0, 6), st.integers(0, 2**31))
def test_moebius_is_the_definition(players, seed):
    values = torch.randn(2**players, generator=generator(seed), dtype=torch.float64)
    expected = torch.tensor(harsanyi_by_definition(values.tolist()), dtype=torch.float64)
    assert torch.allclose(moebius(values), expected)


@pytest.mark.parametrize("players", [0, 1, 3, 10, 17, 18])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_zeta_undoes_moebius(players, dtype):
    values = torch.randint(-8, 8, (2, 2**players), generator=generator()).to(dtype)
    effects = moebius(values)
    assert effects.dtype == dtype
    assert torch.equal(zeta(effects), values)  # small whole numbers: exact in both types


def test_transforms_of_a_batch_are_those_of_its_rows():
    values = torch.randn(3, 5, 2**11, dtype=torch.float64)
    expected = torch.stack([torch.stack([moebius(row) for row in rows]) for rows in values])
    assert torch.equal(moebius(values), expected)


def test_large_tables_are_transformed_like_small_ones():
    # 18 players take two blocks and more; a product of two games has the product of their effects.
    first = torch.randn(2**9, dtype=torch.float64)
    second = torch.randn(2**9, dtype=torch.float64)
    both = (second[:, None] * first).flatten()
    assert torch.allclose(moebius(both), (moebius(second)[:, None] * moebius(first)).flatten())


def test_in_place_transforms_work_in_place():
    values = torch.randn(4, 64, dtype=torch.float64)
    expected = moebius(values)
    table = values.clone()
    assert moebius_(table) is table
    assert torch.equal(table, expected)
    assert torch.allclose(zeta_(table), values)


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
    rows = enumerate_coalitions(players)
    sizes = coalition_sizes(players)
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


@pytest.mark.parametrize("players", [-1, 63])
def test_an_impossible_number_of_players_is_refused(players):
    with pytest.raises(AbsentiaError, match=rf"^players must lie between 0 and 62\. Got {players} instead\.$"):
        enumerate_coalitions(players, 0, 0)


def test_the_last_coalitions_of_the_most_players_are_those_of_the_largest_numbers():
    rows = enumerate_coalitions(62, 2**62 - 2)
    assert rows.sum(1).tolist() == [61, 62]
    assert not rows[0, 0]


@pytest.mark.parametrize(("start", "stop"), [(0, 0), (3, 3), (8, 8), (0, 8), (7, 8)])
def test_a_block_may_be_empty_and_reach_the_end(start, stop):
    assert torch.equal(enumerate_coalitions(3, start, stop), enumerate_coalitions(3)[start:stop])


@pytest.mark.parametrize(("start", "stop"), [(-1, 4), (0, 9), (5, 4), (9, 9)])
def test_a_block_outside_the_coalitions_is_refused(start, stop):
    sentence = rf"^start and stop must lie between 0 and 8, in this order\. Got {start} and {stop} instead\.$"
    with pytest.raises(AbsentiaError, match=sentence):
        enumerate_coalitions(3, start, stop)


@given(st.integers(0, 2**70))
def test_the_members_of_a_coalition_are_the_bits_of_its_number(number):
    members = coalition_members(number)
    assert sum(2**player for player in members) == number
    assert list(members) == sorted(set(members))


def test_numbers_are_those_of_any_batch_of_rows():
    rows = enumerate_coalitions(4).view(2, 8, 4)
    assert coalition_numbers(rows).tolist() == [list(range(8)), list(range(8, 16))]


def test_single_coalitions_are_drawn_uniformly():
    one_source = generator()
    size = torch.tensor([1])
    drawn = Counter(int(coalition_numbers(draw_coalitions(4, size, one_source))) for _ in range(2000))
    assert set(drawn) == {1, 2, 4, 8}
    assert sum((count - 500) ** 2 / 500 for count in drawn.values()) < 16.3  # the 0.999 quantile, 3 degrees


def test_no_sizes_draw_no_coalitions():
    assert draw_coalitions(3, torch.zeros(0, dtype=torch.int64), generator()).shape == (0, 3)


def test_one_impossible_size_among_possible_ones_is_refused():
    for sizes in ([0, 6], [-1, 5]):
        with pytest.raises(
            AbsentiaError, match=rf"^sizes must lie between 0 and 5 players\. Got {min(sizes)} to {max(sizes)} "
        ):
            draw_coalitions(5, torch.tensor(sizes), generator())


def test_an_empty_table_is_refused():
    with pytest.raises(AbsentiaError, match=r"values must have 2ⁿ entries in the last axis.* Got 0 instead"):
        zeta(torch.zeros(2, 0))


def test_values_that_are_not_contiguous_are_transformed_out_of_place_and_left_as_they_are():
    values = torch.randn(8, 4, dtype=torch.float64).T
    before = values.clone()
    assert torch.allclose(moebius(values), moebius(values.contiguous()))
    assert torch.equal(values, before)


def test_in_place_transforms_leave_no_graph():
    values = torch.randn(8, dtype=torch.float64, requires_grad=True)
    before = values.detach().clone()
    assert moebius_(values).grad_fn is None
    assert torch.allclose(zeta_(values.detach()), before)


@pytest.mark.parametrize("keep", [coalition_sizes, sums_by_size_and_player])
def test_what_was_kept_of_other_numbers_of_players_does_not_matter(keep):
    for players in [*range(12), *range(12)]:
        if keep is coalition_sizes:
            assert coalition_sizes(players).tolist() == [number.bit_count() for number in range(2**players)]
        else:
            expected = [math.comb(players - 1, size - 1) if size else 0 for size in range(players + 1)]
            sums = sums_by_size_and_player(torch.ones(2**players, dtype=torch.float64))
            assert sums.T.tolist() == [expected] * players


def test_sums_keep_the_type_and_pass_a_gradient_of_any_batch():
    table = torch.randn(2, 3, 8, dtype=torch.float32, requires_grad=True)
    for total in (sums_by_size, sums_by_size_and_player):
        assert total(table).dtype == torch.float32
        assert torch.autograd.gradcheck(total, table.detach().double().requires_grad_())


@pytest.mark.parametrize("transform", [moebius, zeta])
def test_gradients_of_large_tables_are_those_of_the_adjoint(transform):
    values = torch.randn(2**17, dtype=torch.float64, requires_grad=True)
    slopes = torch.randn(2**17, dtype=torch.float64)
    transformed = transform(values)
    (gradient,) = torch.autograd.grad(transformed, values, slopes)
    assert float(transformed.detach() @ slopes) == pytest.approx(float(values.detach() @ gradient))


def test_sums_have_a_place_for_each_size_from_none_to_all():
    for players in (0, 1, 4):
        table = torch.ones(2, 2**players, dtype=torch.float64)
        assert sums_by_size(table).tolist() == [[math.comb(players, size) for size in range(players + 1)]] * 2
        assert sums_by_size_and_player(table).shape == (2, players + 1, players)


def test_whole_numbers_are_transformed_without_wrapping():
    assert ab.moebius(torch.tensor([0, 1, 1, 0], dtype=torch.uint8)).tolist() == [0, 1, 1, -2]
