"""Small searches for a baseline by the paper's objective."""

import torch

from absentia.evaluation import Evaluator
from absentia.learning.paper_objective import PaperObjective
from absentia.learning.penalties import Penalty
from absentia.learning.sample_draws import WeightedSamples
from absentia.learning.search import Search
from absentia.learning.space import make_space
from absentia.learning.sweeps import SearchPlan
from absentia.runtime.limits import TimeLimit
from absentia.task import Task
from known_games import mlp
from seeded_draws import generator


def even(samples):
    return torch.ones(samples).double()


def alike(rows):
    return WeightedSamples(rows, even(len(rows)))


def sweeping(objective, space):
    """Make a run that sweeps over all coordinates."""
    return Search(objective, space, SearchPlan(steps=0, rate=0.1, polish=True), TimeLimit())


def make_run(samples=64, players=4, rows=2**12):
    x = torch.randn(samples, players, generator=generator()).double()
    evaluator = Evaluator(Task(mlp(players, 2), x))
    penalty = Penalty("interactions", players, players)
    objective = PaperObjective(evaluator, penalty, torch.zeros(samples, dtype=torch.int64), seed=0, rows=rows)
    space = make_space(x, evaluator.players, "range", None, None)
    return sweeping(objective, space)
