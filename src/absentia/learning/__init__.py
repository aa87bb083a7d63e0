"""Learning the baseline values that represent absence."""

from absentia.learning.learned import LearnedBaseline
from absentia.learning.learner import LearningOptions, absence_for, baseline_loss, choose_absence, learn_baseline

__all__ = [
    "LearnedBaseline",
    "LearningOptions",
    "absence_for",
    "baseline_loss",
    "choose_absence",
    "learn_baseline",
]
