"""The values of coalitions under a fill."""

import subprocess
import sys

import pytest
import torch
from torch import nn

import absentia as ab
from absentia import Baseline, Evaluator, LogOdds, Marginal, Players
from absentia.absences import StandIns
from absentia.coalitions import enumerate_coalitions
from absentia.runtime.limits import OutOfTime, TimeLimit
from absentia.task import Task
from enumerated_inputs import ByPresence
from seeded_draws import normal_rows


@pytest.fixture
def network():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3)).double()


X = torch.rand(5, 4, generator=torch.Generator().manual_seed(2)).double()
Y = torch.tensor([0, 2, 1, 1, 0])


def test_values_of_some_samples_are_read_with_their_own_classes(network):
    evaluator = Evaluator(Task(network, X, Y))
    some = torch.tensor([2, 4])
    fill = Baseline(0.5).bind(evaluator.x)
    coalitions = enumerate_coalitions(4)
    every = evaluator.values(fill, coalitions)
    assert torch.equal(evaluator.values(fill.select(some), coalitions, samples=some), every[some])
    assert torch.allclose(evaluator.table(fill.select(some), samples=some).values, every[some], atol=1e-12)


def test_a_fill_may_bring_inputs_of_its_own_in_place_of_the_samples(network):
    evaluator = Evaluator(Task(network, X, Y))
    other = X.flip(1)
    found = evaluator.values(StandIns(other, torch.zeros(1, 1, 4).double()), torch.ones(1, 4, dtype=torch.bool))
    assert torch.allclose(found[:, 0], LogOdds(Y)(network(other), torch.arange(5)).detach())


def test_other_players_over_the_same_entries_need_no_other_evaluator(network):
    few = Players.groups({"a": [0, 3], "b": [1]}, features=4)
    evaluator = Evaluator(Task(network, X, Y))
    fill = Baseline(0.5).bind(X)
    own = Evaluator(Task(network, X, Y, players=few))
    assert torch.equal(evaluator.table(fill, players=few).values, own.table(fill).values)
    coalitions = enumerate_coalitions(2)
    assert torch.equal(evaluator.values(fill, coalitions, players=few), own.values(fill, coalitions))


def test_the_quick_way_and_the_way_by_presence_agree(network):
    evaluator = Evaluator(Task(network, X, Y))
    fill = Marginal(X[:3]).bind(X)
    quick = evaluator.table(fill)
    plain = evaluator.table(ByPresence(fill))
    assert torch.allclose(quick.values, plain.values, atol=1e-12)
    assert quick.evaluations == plain.evaluations == 5 * 16 * 3


def test_gradients_reach_the_fill_when_asked(network):
    values = torch.full((5, 1, 4), 0.5).double().requires_grad_()
    evaluator = Evaluator(Task(network, X, Y))
    coalitions = torch.zeros(1, 4, dtype=torch.bool)
    evaluator.values(StandIns(X, values), coalitions, gradient=True).sum().backward()
    assert bool((values.grad != 0).any())
    assert not evaluator.values(StandIns(X, values), coalitions).requires_grad
    assert all(parameter.requires_grad and parameter.grad is None for parameter in network.parameters())


def test_tables_and_values_end_between_two_batches(clock):
    evaluator = Evaluator(Task(lambda rows: rows.sum(1), normal_rows(4, 6), limit=TimeLimit(100)))
    fill = ab.Baseline(0.0).bind(evaluator.x)
    clock.advance(100)
    with pytest.raises(OutOfTime):
        evaluator.table(fill)
    with pytest.raises(OutOfTime):
        evaluator.values(fill, torch.ones(3, 6).bool())


@pytest.mark.slow
def test_large_inputs_are_held_a_few_at_a_time():
    """In a process of its own, whose memory is limited to what is there and 30 inputs of 10 MB each."""
    program = (
        "import resource, torch, absentia as ab\n"
        "torch.set_num_threads(1)\n"
        "x, players = torch.rand(1, 3, 900, 900), ab.Players.grid((3, 900, 900), (3, 3))\n"
        "used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + 30 * x.nbytes,) * 2)\n"
        "print(ab.explain(lambda rows: rows.amax((1, 2, 3)), x, absence=0.0, players=players, memory=2**24).samples)"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.stdout == "1\n", ran.stderr
