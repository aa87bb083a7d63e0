"""Absences: what stands in for the players that are absent from a coalition.

An absence is bound to samples once (a blur is computed, background rows are drawn), which gives a fill: a function
from presence to masked inputs. New masking methods implement these two protocols and nothing else.
"""

from absentia.absence.baselines import Baseline, OwnBaselines
from absentia.absence.blur import Blur
from absentia.absence.description import describe_absence
from absentia.absence.gaussian import GaussianConditional
from absentia.absence.imputer import Imputer, train_imputer
from absentia.absence.marginal import Marginal
from absentia.absence.neighbours import NearestNeighbours
from absentia.absence.noise import Noise
from absentia.absence.protocols import Absence, BringsModel, Fill
from absentia.absence.stand_ins import StandIns
from absentia.absence.surrogate import Surrogate
from absentia.absence.surrogate_training import train_surrogate

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
    "describe_absence",
    "train_imputer",
    "train_surrogate",
]
