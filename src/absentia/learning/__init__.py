"""Learning the baseline values that represent absence."""

from absentia.learning.learned import LearnedBaseline
from absentia.learning.learner import absence_for, baseline_loss, learn_baseline
from absentia.learning.options import LearningOptions

__all__ = [
    "LearnedBaseline",
    "LearningOptions",
    "absence_for",
    "baseline_loss",
    "learn_baseline",
]
