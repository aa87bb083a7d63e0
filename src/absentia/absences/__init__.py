"""Absences: what stands in for the players that are absent from a coalition.

An absence is bound to samples once (a blur is computed, background rows are drawn), which gives a fill: a function
from presence to masked inputs. New masking methods implement these two protocols and nothing else.
"""

from absentia.absences.baseline import Baseline, OwnBaselines
from absentia.absences.blur import Blur
from absentia.absences.gaussian import GaussianConditional
from absentia.absences.imputer import Imputer, train_imputer
from absentia.absences.marginal import Marginal
from absentia.absences.neighbours import NearestNeighbours
from absentia.absences.noise import Noise
from absentia.absences.protocol import Absence, BringsModel, ClassWise, Fill, StandIns
from absentia.absences.surrogate import Surrogate, train_surrogate

__all__ = [
    "Absence",
    "Baseline",
    "Blur",
    "BringsModel",
    "ClassWise",
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
