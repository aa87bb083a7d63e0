"""Find out what absence means to your model: interactions, Shapley values, and the masking behind them."""

import sys

if sys.argv[:1] == ["-m"] and "absentia" in sys.orig_argv:  # python -m absentia, which loads this file first
    __import__("absentia_command").end_quietly()

from absentia import interop, plots
from absentia.absences.fixed import Baseline, Blur, Marginal, Noise, OwnBaselines
from absentia.absences.gaussian import GaussianConditional
from absentia.absences.imputer import Imputer, train_imputer
from absentia.absences.neighbours import NearestNeighbours
from absentia.absences.protocol import Absence
from absentia.absences.surrogate import Surrogate, train_surrogate
from absentia.attributions import Attribution, MarginalBenefits, OrderAttribution
from absentia.auditing import Audit, CrossAudit, audit, cross_audit
from absentia.coalitions import draw_coalitions, enumerate_coalitions, moebius, zeta
from absentia.errors import AbsentiaError
from absentia.evaluation import Evaluator
from absentia.explaining import explain
from absentia.explanation import Explanation
from absentia.games import Game, MaskedModel, ValueTable, value_table
from absentia.indices import banzhaf, index, marginal_benefits, order_marginals, order_shapley, shapley
from absentia.learning import LearnedBaseline, LearningOptions, baseline_loss, learn_baseline
from absentia.models.arrays import from_numpy
from absentia.models.joined_inputs import JoinedInputs
from absentia.players import Players
from absentia.readouts import (
    Features,
    Logit,
    LogOdds,
    LogOutput,
    Margin,
    MeanDepth,
    Output,
    Probability,
    Readout,
)
from absentia.report import write_report
from absentia.solvers.choice import interactions
from absentia.solvers.contexts import context_map
from absentia.solvers.exact import harsanyi
from absentia.storage import load
from absentia.task import Task
from absentia.terms import Interaction, Interactions, OrderProfile, Terms
from absentia.version import __version__

__all__ = [
    "Absence",
    "AbsentiaError",
    "Attribution",
    "Audit",
    "Baseline",
    "Blur",
    "CrossAudit",
    "Evaluator",
    "Explanation",
    "Features",
    "Game",
    "GaussianConditional",
    "Imputer",
    "Interaction",
    "Interactions",
    "JoinedInputs",
    "LearnedBaseline",
    "LearningOptions",
    "LogOdds",
    "LogOutput",
    "Logit",
    "Margin",
    "Marginal",
    "MarginalBenefits",
    "MaskedModel",
    "MeanDepth",
    "NearestNeighbours",
    "Noise",
    "OrderAttribution",
    "OrderProfile",
    "Output",
    "OwnBaselines",
    "Players",
    "Probability",
    "Readout",
    "Surrogate",
    "Task",
    "Terms",
    "ValueTable",
    "__version__",
    "audit",
    "banzhaf",
    "baseline_loss",
    "context_map",
    "cross_audit",
    "draw_coalitions",
    "enumerate_coalitions",
    "explain",
    "from_numpy",
    "harsanyi",
    "index",
    "interactions",
    "interop",
    "learn_baseline",
    "load",
    "marginal_benefits",
    "moebius",
    "order_marginals",
    "order_shapley",
    "plots",
    "shapley",
    "train_imputer",
    "train_surrogate",
    "value_table",
    "write_report",
    "zeta",
]
