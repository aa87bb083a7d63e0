"""Find out what absence means to your model: interactions, Shapley values, and the masking behind them."""

from absentia import interop, plots
from absentia.absence import (
    Absence,
    Baseline,
    Blur,
    GaussianConditional,
    Imputer,
    Marginal,
    NearestNeighbours,
    Noise,
    OwnBaselines,
    Surrogate,
    train_imputer,
    train_surrogate,
)
from absentia.attributions import (
    Attribution,
    banzhaf,
    marginal_benefits,
    order_marginals,
    order_shapley,
    shapley,
)
from absentia.audit import Audit, CrossAudit, audit, cross_audit
from absentia.coalitions import moebius, zeta
from absentia.errors import AbsentiaError
from absentia.explanation import Explanation, explain, load
from absentia.game import Game, ValueTable, value_table
from absentia.inference import from_numpy
from absentia.interactions import Interaction, Interactions, OrderProfile, harsanyi
from absentia.learning import LearnedBaseline, learn_baseline
from absentia.masked_model import MaskedModel
from absentia.players import Players
from absentia.plots import plot_explanation
from absentia.readouts import Features, Logit, LogOdds, Output, Probability, Readout
from absentia.report import write_report
from absentia.version import __version__

__all__ = [
    "Absence",
    "AbsentiaError",
    "Attribution",
    "Audit",
    "Baseline",
    "Blur",
    "CrossAudit",
    "Explanation",
    "Features",
    "Game",
    "GaussianConditional",
    "Imputer",
    "Interaction",
    "Interactions",
    "LearnedBaseline",
    "LogOdds",
    "Logit",
    "Marginal",
    "MaskedModel",
    "NearestNeighbours",
    "Noise",
    "OrderProfile",
    "Output",
    "OwnBaselines",
    "Players",
    "Probability",
    "Readout",
    "Surrogate",
    "ValueTable",
    "__version__",
    "audit",
    "banzhaf",
    "cross_audit",
    "explain",
    "from_numpy",
    "harsanyi",
    "interop",
    "learn_baseline",
    "load",
    "marginal_benefits",
    "moebius",
    "order_marginals",
    "order_shapley",
    "plot_explanation",
    "plots",
    "shapley",
    "train_imputer",
    "train_surrogate",
    "value_table",
    "write_report",
    "zeta",
]
