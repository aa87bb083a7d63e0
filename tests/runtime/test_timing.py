"""The time of rows is found from runs of a few of them."""

import pytest

from absentia.runtime.timing import RowTime, rows_to_time, time_rows


def timed(clock, per_batch, per_row, most, *, block=1):
    """Time a model whose time is known, which runs whole blocks of rows; return the time and the runs."""
    runs = []

    def run(rows):
        whole = max(block, rows // block * block)
        runs.append(whole)
        clock.advance(per_batch + per_row * whole)
        return whole

    return time_rows(run, most), runs


@pytest.mark.parametrize(("per_batch", "per_row"), [(0.0, 0.005), (1.0, 0.0), (0.5, 0.001), (1e-3, 1e-5)])
def test_the_fixed_part_and_the_part_of_each_row_are_told_apart(per_batch, per_row, clock):
    row_time, _runs = timed(clock, per_batch, per_row, 1024)
    assert row_time.per_batch == pytest.approx(per_batch, abs=1e-4)
    assert row_time.per_row == pytest.approx(per_row, rel=0.05, abs=1e-5)
    assert row_time.seconds_per_row(100) == pytest.approx(per_batch / 100 + per_row, rel=0.05)


def test_slow_rows_are_timed_with_few_of_them_and_calls_that_cost_much_with_many(clock):
    _time, slow_rows = timed(clock, 0.0, 1.0, 1024)
    assert slow_rows == [2, 8]
    _time, slow_calls = timed(clock, 1.0, 0.0, 1000)
    assert slow_calls == [2, 8, 32, 128, 512, 1000]
    _time, quick = timed(clock, 0.0, 0.001, 1024)
    assert quick == [2, 8, 32, 128]


def test_a_model_that_runs_whole_blocks_is_timed_by_one_of_them(clock):
    row_time, runs = timed(clock, 0.0, 0.01, 60, block=64)
    assert runs == [64, 64]
    assert row_time.seconds_per_row(64) == pytest.approx(0.01, rel=0.01)


def test_neither_part_is_negative(clock):
    times = iter([0.5, 0.1, 0.05, 0.04])

    def run(rows):
        clock.advance(next(times))
        return rows

    row_time = time_rows(run, 64)
    assert row_time.per_row == 0
    assert row_time.per_batch == pytest.approx(0.04, abs=1e-4)

    grows = iter([0.001, 0.9])

    def jump(rows):
        clock.advance(next(grows))
        return rows

    row_time = time_rows(jump, 4)
    assert row_time.per_batch == 0
    assert row_time.per_row == pytest.approx(0.9 / 4, rel=0.01)


def test_timed_runs_are_a_small_share_of_the_work():
    assert rows_to_time(2**18, 64) == 64
    assert rows_to_time(320, 64) == 10
    assert rows_to_time(3, 64) == 2


def test_batches_are_as_long_as_fits_a_time():
    assert RowTime(1.0, 0.01).rows_within(5.0, most=64) == 64
    assert RowTime(1.0, 0.01).rows_within(5.0, most=4096) == 256
    assert RowTime(0.0, 60.0).rows_within(5.0, most=4096) == 2  # some models cannot run a single row
    assert RowTime(0.0, 60.0).rows_within(5.0, most=1) == 1
