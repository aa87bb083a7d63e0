"""Absences: what stands in for the players that are absent from a coalition."""

from absentia.absences.fixed import Baseline, Blur, Marginal, Noise, OwnBaselines
from absentia.absences.gaussian import GaussianConditional
from absentia.absences.imputer import Imputer, train_imputer
from absentia.absences.neighbours import NearestNeighbours
from absentia.absences.protocol import Absence, BringsModel, Fill, StandIns
from absentia.absences.surrogate import Surrogate, train_surrogate

__all__ = [
    "Absence",
    "Baseline",
    "Blur",
    "BringsModel",
    "Fill",
    "GaussianConditional",
    "Imputer",
    "Marginal",
    "NearestNeighbours",
    "Noise",
    "OwnBaselines",
    "StandIns",
    "Surrogate",
    "train_imputer",
    "train_surrogate",
]
