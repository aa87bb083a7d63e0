"""The stages of a search."""

import pytest
import torch

from absentia import from_numpy
from absentia.evaluation import Evaluator
from absentia.learning import LearningOptions, learn_baseline
from absentia.learning.paper_objective import PaperObjective
from absentia.learning.penalties import Penalty
from absentia.task import Task
from known_games import mlp
from seeded_draws import generator
from small_learning import learn


def test_rare_samples_that_matter_are_learned_from():
    """Of 4,096 inputs one in 256 has all eight of the product's entries high: an even draw of 16 would miss them."""
    x = torch.cartesian_prod(*[torch.tensor([0.0, 1.0]).double()] * 12)
    evaluator = Evaluator(Task(lambda rows: rows[:, :8].prod(1), x))
    penalty = Penalty("marginal", 12, 12, per_sample=2**12)
    objective = PaperObjective(evaluator, penalty, torch.zeros(len(x), dtype=torch.int64), seed=0, rows=2**16)
    rows, weights = objective.compared
    rare = x[rows, :8].prod(1) == 1
    assert len(rows) == 16
    assert 6 <= int(rare.sum()) <= 10
    assert bool((weights[rare] < weights[~rare].min()).all())  # they are drawn too often, and weigh less


@pytest.mark.slow
def test_without_polish_learning_costs_less_and_says_so():
    x = torch.randn(64, 4, generator=generator()).double()
    whole, short = (
        learn(mlp(4, 2), x, steps=10, rows_per_comparison=2**9, polish=polish) for polish in (True, False)
    )
    assert 2 * short.evaluations < whole.evaluations
    assert short.loss >= whole.loss
    assert not short.record.converged
    assert short.record.stopped == "the steps are done; they were not polished"
    boxed = learn(mlp(4, 2), x[:8], gradient=False, polish=False, rows_per_comparison=2**8)
    assert boxed.record.converged  # without a gradient all coordinates are swept over


def test_kinks_are_found_closely():
    delta = torch.tensor([0.74, 0.68]).double()
    x = (torch.rand(256, 2, generator=generator()) < 0.7).double()
    learned = learn(lambda rows: 5 * (rows - delta).prod(1), x, start=0.5, steps=12, samples="all")
    assert torch.allclose(learned.values, delta, atol=0.003)


def test_a_search_without_a_gradient_does_not_count_steps():
    calls = []

    def model(rows):
        calls.append(len(rows))
        if len(calls) == 60:
            raise KeyboardInterrupt
        return rows.prod(1)

    x = torch.randn(60, 4, generator=generator()).double()
    found = learn_baseline(from_numpy(model), x, options=LearningOptions(rows_per_step=2**8))
    assert found.record.stopped == (
        "interrupted while values were searched one by one, because the model has no gradient; "
        "these are the best values so far"
    )


@pytest.mark.parametrize("restart", [None, True])
def test_the_papers_losses_start_again_from_a_usual_baseline_on_request_only(restart):
    """The product is least at 0.25, where the gradient from 3 does not lead in one step; the mean is much nearer."""
    x = 0.25 + 0.01 * torch.randn(64, 3, generator=generator()).double()
    settings = {"start": 3.0, "bounds": (0.0, 3.0), "steps": 1, "polish": False}
    learned = learn(lambda rows: (rows - 0.25).prod(1), x, loss="shapley", restart=restart, **settings)
    tried = [name for name in learned.record.starts if name.endswith("(tried)")]
    assert len(tried) == (1 if restart else 0)
    assert bool((learned.values < 1).all()) is bool(restart)


def test_ties_are_decided_on_request_only():
    """The output is 0 up to coalitions of two players, and with all; between these, only a detour reaches it."""
    x = torch.ones(16, 4).double()

    def model(rows):
        total = rows.sum(1)
        return 4 * (total - 3).clamp_min(0) * (4 - total)

    settings = {"loss": "shapley", "orders": 1, "start": 0.3, "bounds": (0.0, 1.0), "polish": False, "steps": 20}
    plain, decided = (learn(model, x, samples="all", ties=ties, **settings) for ties in (None, True))
    assert plain.values.tolist() == [0.3] * 4
    assert float(decided.values.abs().max()) < 0.05
    assert plain.loss == decided.loss == 0.0
