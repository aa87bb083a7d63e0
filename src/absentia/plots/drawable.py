"""What plots and reports show of explanations and terms.

The module of explanations imports this package, so it is imported here for type checking only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from jaxtyping import Float
from torch import Tensor

from absentia.attributions import Attribution
from absentia.data import check_number
from absentia.errors import wrong
from absentia.plots.look import label
from absentia.plots.strongest_sets import Ends, ends_of
from absentia.terms import Terms
from absentia.text import written, written_alike

if TYPE_CHECKING:
    from absentia.explanation import Explanation


class ShownValue(NamedTuple):
    """The attribution of a player, as shown."""

    player: int
    value: str
    error: str = ""  # its standard error, if known

    @property
    def text(self) -> str:
        """The value and its error."""
        return f"{self.value} ± {self.error}" if self.error else self.value

    @property
    def is_zero(self) -> bool:
        """Whether the value rounds to 0."""
        return self.value == "0"


def check_explanation(explanation: Explanation, sample: int, **counts: int) -> None:
    """Raise an error unless this is an explanation that has the sample, and every count is at least 1."""
    if getattr(explanation, "KIND", "") != "explanation":
        raise wrong("explanation", "be an Explanation, which explain returns", type(explanation).__name__)
    check_number("sample", sample, 0, len(explanation.outputs) - 1)
    for name, count in counts.items():
        check_number(name, count, 1)


def interactions_of(result: Explanation | Terms, sample: int = 0, **counts: int) -> Terms:
    """Return terms, or those of an explanation, after checking the arguments; raise an error if there are none."""
    if isinstance(result, Terms):
        check_number("sample", sample, 0, result.samples - 1)
        for name, count in counts.items():
            check_number(name, count, 1)
        return result
    if getattr(result, "KIND", "") != "explanation":
        must = "be an Explanation, which explain returns, or Terms"
        raise wrong("explanation", must, type(result).__name__)
    check_explanation(result, sample, **counts)
    if result.interactions is None:
        then = "Group players until all coalitions can be evaluated, and do not pass evaluations."
        raise wrong("explanation", "be exact for a plot of interactions", "a sampled one", then)
    return result.interactions


def change_of(result: Explanation | Terms, sample: int) -> float | None:
    """Return v(N) − v(∅) of a sample; None if the basis of terms does not determine it."""
    if not isinstance(result, Terms):
        return float(result.outputs[sample] - result.base_values[sample])
    ends = ends_of(result, sample)
    return None if ends is None else ends.output - ends.base


def ranked_values(attribution: Attribution, sample: int | None = 0) -> list[ShownValue]:
    """Return players with their values as shown, largest first; sample None stands for the means of |value|."""
    if sample is None:
        values = attribution.values.abs().mean(0)
        errors = attribution.errors.mean(0)
    else:
        values = attribution.values[sample]
        errors = attribution.errors[sample]
    players = largest(values)
    texts = written_alike(values[players].tolist(), plus=sample is not None)
    if not has_errors(attribution):
        return [ShownValue(player, text) for player, text in zip(players, texts, strict=True)]
    error_texts = [written(error, 2) for error in errors[players].tolist()]
    return [ShownValue(*shown) for shown in zip(players, texts, error_texts, strict=True)]


def values_by_player(attribution: Attribution, sample: int) -> dict[int, ShownValue]:
    """Return the values of a sample as shown, in the order of the players."""
    return {shown.player: shown for shown in ranked_values(attribution, sample)}


def has_errors(attribution: Attribution) -> bool:
    """Return whether standard errors are known and not all 0."""
    return bool((attribution.errors > 0).any())


def in_short(result: Explanation | Terms, sample: int | None = None) -> str:
    """Return a short description of the value, of one sample or of all; the whole one of terms, which hold words."""
    if isinstance(result, Terms):
        return result.readout
    record = result.record
    if sample is not None and record.values:
        return record.values[sample]
    return record.readout_note.short


def base_and_output(explanation: Explanation, sample: int) -> tuple[str, str]:
    """Return the values with all players absent and with all present, as shown."""
    base = float(explanation.base_values[sample])
    output = float(explanation.outputs[sample])
    return written(base, 4), written(output, 4)


def answer(explanation: Explanation, sample: int) -> str:
    """Explain a sample in one sentence: its value, and the players that add most and take most."""
    ends = Ends(base=float(explanation.base_values[sample]), output=float(explanation.outputs[sample]))
    labels = players_and_inputs(explanation, sample)
    record = explanation.record
    value = record.readout_note.with_verb(record.values[sample] if record.values else "")
    return describe_change(value, explanation.shapley, sample, ends, labels)


def describe_change(value: str, attribution: Attribution, sample: int, ends: Ends, labels: Sequence[str]) -> str:
    """Return a sentence that begins with ``value``, and names the players that add most and take most."""
    base = written(ends.base, 4)
    output = written(ends.output, 4)
    rises = ends.output >= ends.base
    if base == output:
        change = "as"
    elif rises:
        change = f"up from {base}"
    else:
        change = f"down from {base}"
    clauses = [_who_adds_most(attribution, sample, labels), _who_takes_most(attribution, sample, labels)]
    if not rises:
        clauses.reverse()
    reasons = ", ".join(clause for clause in clauses if clause)
    if not reasons:
        all_determined = bool(attribution.determined[sample].all())
        reasons = "no player changes it" if all_determined else "no player's part in it is determined"
    return f"{value} {output}, {change} with all players absent; {reasons}."


def _who_adds_most(attribution: Attribution, sample: int, labels: Sequence[str]) -> str:
    """Name the player that adds most to the value; return an empty text if there is none, or errors hide it."""
    values = attribution.values[sample]
    player = int(values.argmax())
    shown = values_by_player(attribution, sample)[player]
    if float(values[player]) <= 0 or shown.is_zero or not attribution.determined[sample, player]:
        return ""
    return f"“{labels[player]}” adds most ({shown.text})"


def _who_takes_most(attribution: Attribution, sample: int, labels: Sequence[str]) -> str:
    """Name the player that takes most from the value; return an empty text if there is none, or errors hide it."""
    values = attribution.values[sample]
    player = int(values.argmin())
    shown = values_by_player(attribution, sample)[player]
    if float(values[player]) >= 0 or shown.is_zero or not attribution.determined[sample, player]:
        return ""
    return f"“{labels[player]}” takes most ({shown.text})"


def largest(values: Float[Tensor, " players"], most: int | None = None) -> list[int]:
    """Return the positions of the largest absolute values, largest first."""
    return values.abs().argsort(descending=True, stable=True)[:most].tolist()


def largest_and_others(values: Float[Tensor, " players"], most: int) -> tuple[list[int], list[int]]:
    """Return the players to draw, largest |value| first, and the others, which are drawn together."""
    ranked = largest(values)
    shown = most
    if len(ranked) <= most + 1:  # a single remaining player is drawn as itself
        shown = len(ranked)
    return ranked[:shown], ranked[shown:]


def players_and_inputs(explanation: Explanation, sample: int) -> list[str]:
    """Return the names of the players, with the input of those that have a single entry, except for tokens."""
    players = explanation.players
    (inputs,) = players.texts(explanation.x[sample : sample + 1])
    names_and_inputs = zip(players.names, players.single.tolist(), inputs, strict=True)
    return [f"{name} = {text}" if single else name for name, single, text in names_and_inputs]


def player_labels(result: Explanation | Terms, sample: int) -> list[str]:
    """Return the names of the players, with inputs if there is an explanation, shortened for plots."""
    names = result.names if isinstance(result, Terms) else players_and_inputs(result, sample)
    return [label(name, 48) for name in names]
