"""Rows run in batches that fit the memory and the time."""

import pytest
import torch
from torch import nn

from absentia import AbsentiaError
from absentia.runtime.batches import BatchRunner, rows_per_batch, try_rows
from absentia.runtime.limits import OutOfTime, TimeLimit
from absentia.runtime.row_count import RowCount
from seeded_draws import normal_rows


def test_batches_fit_the_memory_given():
    model = nn.Sequential(nn.Linear(10, 1000), nn.ReLU(), nn.Linear(1000, 10))
    cpu = torch.device("cpu")
    output, size, *_ = try_rows(model, torch.zeros(2, 10), RowCount())
    assert output.shape == (2, 10)
    assert size == 8000  # the largest layer takes 1000 numbers in and 1000 out
    assert not any(part._forward_hooks for part in model)
    batch = rows_per_batch(model, size, cpu, memory=2**20)
    assert batch * size <= 2**20 < 2 * batch * size
    assert rows_per_batch(model, size, cpu, memory=1) == 1
    _, assumed, *_ = try_rows(lambda rows: rows, torch.zeros(2, 10), RowCount())
    assert rows_per_batch(lambda rows: rows, assumed, cpu, memory=2**20) > 1


def test_a_model_without_enough_memory_gets_smaller_batches_for_good():
    sizes = []

    def model(rows):
        sizes.append(len(rows))
        if len(rows) > 3:
            raise MemoryError
        return rows[:, 0]

    runner = BatchRunner(model, batch=16)
    rows = torch.arange(20.0)[:, None]
    assert torch.equal(runner(rows), rows[:, 0])
    assert sizes[:3] == [16, 8, 4]
    assert runner.batch == 2
    sizes.clear()
    runner(rows)
    assert set(sizes) == {2}


def test_the_cpu_allocators_error_counts_as_out_of_memory_and_others_do_not():
    def model(rows):
        if len(rows) > 1:
            raise RuntimeError("[enforce fail at alloc_cpu.cpp] . DefaultCPUAllocator: can't allocate memory")
        return rows[:, 0]

    assert len(BatchRunner(model, 8)(torch.zeros(5, 1))) == 5

    def broken(rows):
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    with pytest.raises(RuntimeError, match="mat1"):
        BatchRunner(broken, 8)(torch.zeros(5, 1))


def test_a_model_that_cannot_take_one_row_is_told_so():
    def model(rows):
        raise MemoryError

    with pytest.raises(AbsentiaError, match="The model runs out of memory with a single row"):
        BatchRunner(model, 4)(torch.zeros(2, 1))


def test_a_model_may_return_the_same_memory_again():
    kept = torch.zeros(4)

    def model(rows):
        return kept[: len(rows)].copy_(rows.sum(1))

    rows = torch.arange(20.0).reshape(10, 2)
    assert torch.equal(BatchRunner(model, 4)(rows), rows.sum(1))


def test_batches_are_small_at_first_and_grow_while_they_are_quick(clock):
    sizes = []

    def model(rows):
        sizes.append(len(rows))
        return rows.sum(1)

    BatchRunner(model, 300, TimeLimit(100))(normal_rows(1000, 2))
    assert sizes == [16, 64, 256, 300, 300, 64]
    sizes.clear()
    BatchRunner(model, 300, TimeLimit())(normal_rows(1000, 2))
    assert sizes == [300, 300, 300, 100]


def test_work_ends_between_two_batches(clock):
    limit = TimeLimit(100)
    calls = []

    def model(rows):
        calls.append(len(rows))
        clock.advance(60)
        return rows.sum(1)

    with pytest.raises(OutOfTime):
        BatchRunner(model, 16, limit)(normal_rows(100, 2))
    assert calls == [16, 16]
