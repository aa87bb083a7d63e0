"""The values of coalitions: a task's samples whose absent players a fill replaces."""

from absentia.evaluation.checks import check_coalitions, check_finite
from absentia.evaluation.evaluator import Evaluator, Tabulated
from absentia.evaluation.rounding import rounding_noise

__all__ = ["Evaluator", "Tabulated", "check_coalitions", "check_finite", "rounding_noise"]
