"""Readouts from a word: what number of the model's output is explained."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jaxtyping import Int
from torch import Tensor

from absentia.errors import wrong
from absentia.readouts import Features, Logit, LogOdds, Output, Probability, Readout

OF_A_CLASS: dict[str, Callable[[Any], Readout]] = {"log-odds": LogOdds, "logit": Logit, "probability": Probability}


def load_readout(word: str | None, y: int | Int[Tensor, " samples"] | None) -> Readout | None:
    """Make a readout by ``log-odds``, ``logit``, ``probability``, ``output``, ``output:2`` or ``features:layer``.

    ``y`` is the class, or one for each sample. None leaves the choice to the library, which has the samples' classes
    of its own; one class for all samples is read by its log-odds.

    >>> str(load_readout("logit", 1)), str(load_readout("output:2", None)), load_readout(None, None)
    ('logit of class 1', 'output 2', None)
    """
    if word is None:
        return LogOdds(y) if isinstance(y, int) else None
    name, _, detail = word.partition(":")
    if name in OF_A_CLASS and not detail:
        if y is None:
            raise wrong("target", f"be given for the {name} of a class", "none", "Or say --class NUMBER.")
        return OF_A_CLASS[name](y)
    if name == "output" and (not detail or detail.isdecimal()):
        return Output(int(detail or 0))
    if name == "features" and detail:
        return Features(detail)
    raise wrong("readout", "be log-odds, logit, probability, output, output:NUMBER or features:LAYER", repr(word))
