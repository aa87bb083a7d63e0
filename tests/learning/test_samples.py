"""Samples to learn from, read from any source."""

import itertools

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

import absentia as ab
from absentia import AbsentiaError, Output, explain
from absentia.learning import LearningOptions
from absentia.learning.samples import keep_aside
from known_product import product, uniform
from small_learning import learn

SIX_ROWS = torch.rand(6, 3, generator=torch.Generator().manual_seed(1))


def test_a_dataset_without_classes_and_rows_of_low_precision_are_learned_from():
    options = ab.LearningOptions(steps=1)
    assert ab.learn_baseline(nn.Linear(3, 1), TensorDataset(SIX_ROWS), options=options).values.shape == (3,)
    model = nn.Linear(3, 1).bfloat16()
    assert ab.learn_baseline(model, SIX_ROWS.bfloat16(), options=options).values.isfinite().all()


FOUR_ROWS = torch.rand(4, 3, generator=torch.Generator().manual_seed(1))


def test_batches_of_a_loader_may_hold_the_inputs_alone():
    def model(rows):
        return rows.prod(1)

    options = LearningOptions(steps=2)
    loaded = ab.learn_baseline(model, DataLoader(TensorDataset(FOUR_ROWS), batch_size=2), options=options)
    assert torch.equal(loaded.values, ab.learn_baseline(model, FOUR_ROWS, options=options).values)


class Stream(IterableDataset):
    """Samples one after another, so often."""

    def __init__(self, samples, times=1):
        self.samples = samples
        self.times = times

    def __iter__(self):
        return itertools.chain.from_iterable(itertools.repeat(self.samples, self.times))


SOURCES = ["tensor", "array", "dataset", "loader", "loader of inputs", "stream", "loader of a stream", "endless"]


@pytest.mark.parametrize("source", SOURCES)
def test_samples_come_from_anywhere(source):
    x = uniform()
    y = torch.arange(128) % 2
    pairs = TensorDataset(x, y)
    sources = {
        "stream": (Stream(pairs), None),
        "loader of a stream": (DataLoader(Stream(x), batch_size=10), None),
        "endless": (Stream(x, 10**9), None),
        "tensor": (x, y),
        "array": (x.numpy(), y.numpy()),
        "dataset": (pairs, None),
        "loader": (DataLoader(pairs, batch_size=10), None),
        "loader of inputs": (DataLoader(x, batch_size=10), None),
    }
    given, target = sources[source]
    learned = learn(
        product,
        given,
        target if source in ("tensor", "array") else None,
        samples=50,
        readout=Output(0),
        steps=5,
        polish=False,
    )
    assert learned.record.samples == 50


def test_all_samples_of_a_stream_are_read_if_it_ends():
    state = torch.get_rng_state()
    assert learn(product, Stream(uniform()), samples="all", steps=1, polish=False).record.samples == 128
    assert torch.equal(torch.get_rng_state(), state)
    with pytest.raises(AbsentiaError, match=r"samples must be a number if x may be endless. Got 'all'"):
        learn(product, DataLoader(Stream(uniform(), 10**9), batch_size=1000), samples="all", steps=1)


@pytest.mark.parametrize("kind", [Stream, lambda x: DataLoader(Stream(x)), iter])
def test_functions_that_take_no_stream_say_what_to_do(kind):
    with pytest.raises(AbsentiaError, match=r"x must be a tensor, .* Join its samples first, with torch.stack"):
        explain(product, kind(uniform()), absence=0.0)


def test_a_fifth_of_each_owner_is_kept_aside():
    owner = torch.cat([torch.zeros(50), torch.ones(10), torch.full((3,), 2.0)]).long()
    learned, aside = keep_aside(owner, seed=0)
    assert owner[aside].bincount().tolist() == [10, 2, 3]  # of the few, all are used twice
    assert not set(learned[owner[learned] < 2].tolist()) & set(aside.tolist())


def test_a_fifth_of_the_samples_is_kept_aside_or_all_if_they_are_few():
    assert [len(part) for part in keep_aside(torch.zeros(20, dtype=torch.int64), seed=0)] == [16, 4]
    assert [len(part) for part in keep_aside(torch.arange(3), seed=0)] == [3, 3]
