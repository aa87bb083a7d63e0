"""Readouts from words."""

from typing import Any

from jaxtyping import Int
from torch import Tensor

import absentia as ab
from absentia.errors import wrong
from absentia.models.model import Model

# The readouts of a class, by their words.
OF_A_CLASS: dict[str, Any] = {
    "log-odds": ab.LogOdds,
    "logit": ab.Logit,
    "score": ab.Margin,
    "probability": ab.Probability,
}


def load_readout(
    word: str | None, y: int | Int[Tensor, " samples"] | None, model: Model | None = None
) -> ab.Readout | None:
    """Make a readout from a word and a class, or the classes of samples; None leaves the choice to the library."""
    if word is None:
        if not isinstance(y, int):
            return None
        return ab.Margin(y) if getattr(model, "scores", False) else ab.LogOdds(y)
    name, _, detail = word.partition(":")
    if name in OF_A_CLASS and not detail:
        if y is None:
            raise wrong("target", f"be given for the {name} of a class", "none", "Or use --class NUMBER.")
        return OF_A_CLASS[name](y)
    if name == "output" and (not detail or detail.isdecimal()):
        return ab.Output(int(detail or 0))
    if name == "features" and detail:
        return ab.Features(detail)
    must = "be log-odds, logit, score, probability, output, output:NUMBER or features:LAYER"
    raise wrong("readout", must, repr(word))
