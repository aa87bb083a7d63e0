"""The values of coalitions: a model's output on samples in which a fill replaces absent players."""

from absentia.evaluation.checks import check_coalitions, check_finite
from absentia.evaluation.evaluator import Evaluator, Tabulated
from absentia.evaluation.rounding import rounding_noise

__all__ = ["Evaluator", "Tabulated", "check_coalitions", "check_finite", "rounding_noise"]
