"""Absences: what stands in for the players that are absent from a coalition.

An absence is bound to samples once (a blur is computed, background rows are drawn), which gives a fill: a function
from presence to masked inputs. New masking methods implement these two protocols and nothing else.
"""

from absentia.absences.baseline import Baseline, OwnBaselines
from absentia.absences.protocol import Absence, BringsModel, ClassWise, Fill, StandIns

__all__ = ["Absence", "Baseline", "BringsModel", "ClassWise", "Fill", "OwnBaselines", "StandIns"]
