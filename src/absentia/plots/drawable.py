"""What plots read of explanations and learned baselines, which are defined below this package."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor

from absentia.data import check_number
from absentia.errors import wrong
from absentia.players import ALWAYS_PRESENT, Players
from absentia.plots.look import label
from absentia.terms import Interactions
from absentia.text import written

if TYPE_CHECKING:
    from absentia.explanation import Explanation
    from absentia.learning import LearnedBaseline


def check_explanation(explanation: Explanation, sample: int, **counts: int) -> None:
    """Raise an error for what is no explanation, has no such sample, or for a number to draw below 1."""
    if getattr(explanation, "KIND", "") != "explanation":
        raise wrong("explanation", "be an Explanation, which explain returns", type(explanation).__name__)
    check_number("sample", sample, 0, len(explanation.outputs) - 1)
    for name, count in counts.items():
        check_number(name, count, 1)


def interactions_of(explanation: Explanation, sample: int = 0, **counts: int) -> Interactions:
    """Return the interactions of an explanation; check what is drawn, and raise an error if there are none."""
    check_explanation(explanation, sample, **counts)
    if explanation.interactions is None:
        then = "Group players until all coalitions can be evaluated, and do not pass evaluations."
        raise wrong("explanation", "be exact for a plot of interactions", "a sampled one", then)
    return explanation.interactions


def in_short(explanation: Explanation, sample: int | None = None) -> str:
    """Return what the value is, of one sample or of all, without the classes of all samples and further notes."""
    if sample is not None and explanation.record.values:
        return explanation.record.values[sample]
    return explanation.record.readout.partition(" (")[0].partition(";")[0]


def ends(explanation: Explanation, sample: int) -> tuple[str, str]:
    """Return the values with all players absent and with all present, as they are shown."""
    return written(float(explanation.base_values[sample]), 4), written(float(explanation.outputs[sample]), 4)


def answer(explanation: Explanation, sample: int) -> str:
    """Return the explanation of a sample in one sentence: its value, and which players add or take most."""
    values, texts = explanation.shapley.values[sample], dict(explanation.shapley.ranked(sample))
    (base, output), names = ends(explanation, sample), players_and_inputs(explanation, sample)
    rises = float(explanation.outputs[sample]) >= float(explanation.base_values[sample])
    sides = [("adds", "+", int(values.argmax())), ("takes", "−", int(values.argmin()))][:: 1 if rises else -1]
    shown = [f"“{names[i]}” {word} most ({texts[i]})" for word, sign, i in sides if texts[i].startswith(sign)]
    before = "as" if base == output else f"{'up' if rises else 'down'} from {base}"
    what = in_short(explanation, sample).removeprefix("the ").removesuffix(" as it is")
    verb, who = "are" if what.startswith("log-odds") else "is", ", ".join(shown) or "no player changes it"
    return f"the {what} {verb} {output}, {before} with all players absent; {who}."


def largest(values: Float[Tensor, " players"], most: int | None = None) -> list[int]:
    """Return the numbers of the largest absolute values, the largest first."""
    return values.abs().argsort(descending=True, stable=True)[:most].tolist()


def largest_and_others(values: Float[Tensor, " players"], most: int) -> tuple[list[int], list[int]]:
    """Return the players to draw, the largest |value| first, and the others, which are drawn as one if several."""
    ranked = largest(values)
    shown = len(ranked) if len(ranked) <= most + 1 else most
    return ranked[:shown], ranked[shown:]


def players_and_inputs(explanation: Explanation, sample: int) -> list[str]:
    """Return the names of the players, with the value of the entry of those that have only one (tokens aside)."""
    players = explanation.players
    (texts,) = players.texts(explanation.x[sample : sample + 1])
    known = zip(players.names, players.single.tolist(), texts, strict=True)
    return [f"{name} = {text}" if single else name for name, single, text in known]


def player_labels(explanation: Explanation, sample: int) -> list[str]:
    """Return the names of the players and their inputs, as short as plots need them."""
    return [label(name, 48) for name in players_and_inputs(explanation, sample)]


def players_of(learned: LearnedBaseline) -> Players:
    """Return the players of a learned baseline; for old files that do not have them, one for each entry."""
    if getattr(learned, "KIND", "") != "baseline":
        raise wrong("learned", "be a LearnedBaseline, which learn_baseline returns", type(learned).__name__)
    if learned.players is not None:
        return learned.players
    shape = learned.values.shape if learned.share == "all" else learned.values.shape[1:]
    return Players(torch.arange(shape.numel()).reshape(shape), Players.features(shape.numel()).names)


def entries_of(
    learned: LearnedBaseline, most: int, owners: int | None = None
) -> tuple[list[str], Float[Tensor, "owners entries"], list[list[str]], Tensor | None, list[bool]]:
    """Return names, values, texts and quantiles of the first entries of players, and which are undetermined."""
    players = players_of(learned)
    each = players.each_entry(most)
    rows = (learned.values[None] if learned.share == "all" else learned.values)[:owners].detach().double()
    quantiles = None if learned.quantiles is None else each.means(learned.quantiles)
    if quantiles is not None and each.categories:
        quantiles[:, [bool(names) for names in each.categories]] = torch.nan  # categories have no range
    whose = players.labels[each.labels != ALWAYS_PRESENT].tolist()
    undetermined = [learned.players is not None and learned.undetermined[owner] for owner in whose]
    return list(each.names), each.means(rows), each.texts(rows), quantiles, undetermined


def owner_names(learned: LearnedBaseline) -> list[str]:
    """Return the class or the sample that each baseline belongs to; none if all samples share one."""
    owners = learned.class_labels if learned.share == "class" else range(len(learned.values))
    return [] if learned.share == "all" else [f"{learned.share} {owner}" for owner in owners]
