"""Learning the baseline values that represent absence."""

from absentia.learning.learned import LearnedBaseline, LearningRecord
from absentia.learning.learner import LearningOptions, baseline_loss, choose_absence, learn_baseline

__all__ = [
    "LearnedBaseline",
    "LearningOptions",
    "LearningRecord",
    "baseline_loss",
    "choose_absence",
    "learn_baseline",
]
