"""Explanations: samples taken apart, as frozen records that are shown, drawn, saved and loaded without the model."""

from absentia.explanation.explain import explain
from absentia.explanation.load import load
from absentia.explanation.record import Explanation, ExplanationRecord

__all__ = ["Explanation", "ExplanationRecord", "explain", "load"]
