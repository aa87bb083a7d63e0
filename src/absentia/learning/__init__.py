"""Learning the baseline values that represent absence."""

from absentia.learning.learn import learn_baseline
from absentia.learning.learned import LearnedBaseline, LearningRecord

__all__ = ["LearnedBaseline", "LearningRecord", "learn_baseline"]
