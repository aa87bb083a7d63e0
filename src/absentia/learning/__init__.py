"""Learning the baseline values that represent absence."""

from absentia.learning.learned import LearnedBaseline, LearningRecord
from absentia.learning.learner import LearningOptions, baseline_loss, choose_absence, learn_baseline
from absentia.learning.search import LearningStep

__all__ = [
    "LearnedBaseline",
    "LearningOptions",
    "LearningRecord",
    "LearningStep",
    "baseline_loss",
    "choose_absence",
    "learn_baseline",
]
