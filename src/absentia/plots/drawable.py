"""What plots and reports read from explanations, as it is shown.

Explanations are defined below this package, which imports them for types alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from jaxtyping import Float
from torch import Tensor

from absentia.attributions import Attribution
from absentia.data import check_number
from absentia.errors import wrong
from absentia.plots.look import label
from absentia.terms import Terms
from absentia.text import written, written_alike

if TYPE_CHECKING:
    from absentia.explanation import Explanation


class ShownValue(NamedTuple):
    """The attribution of a player as it is shown."""

    player: int
    value: str
    error: str = ""  # its standard error, if that is known

    @property
    def text(self) -> str:
        """The value and its error."""
        return f"{self.value} ± {self.error}" if self.error else self.value

    @property
    def is_zero(self) -> bool:
        """Whether the value is rounded to 0."""
        return self.value == "0"


def check_explanation(explanation: Explanation, sample: int, **counts: int) -> None:
    """Raise an error unless this is an explanation with this sample, and every count is at least 1."""
    if getattr(explanation, "KIND", "") != "explanation":
        raise wrong("explanation", "be an Explanation, which explain returns", type(explanation).__name__)
    check_number("sample", sample, 0, len(explanation.outputs) - 1)
    for name, count in counts.items():
        check_number(name, count, 1)


def interactions_of(explanation: Explanation, sample: int = 0, **counts: int) -> Terms:
    """Return the interactions of an explanation; check what is drawn, and raise an error if there are none."""
    check_explanation(explanation, sample, **counts)
    if explanation.interactions is None:
        then = "Group players until all coalitions can be evaluated, and do not pass evaluations."
        raise wrong("explanation", "be exact for a plot of interactions", "a sampled one", then)
    return explanation.interactions


def ranked_values(attribution: Attribution, sample: int | None = 0) -> list[ShownValue]:
    """Return the players and their values as shown, the largest first; None returns the means of |value|."""
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
    """Return the values of a sample as shown, by the number of the player."""
    return {shown.player: shown for shown in ranked_values(attribution, sample)}


def has_errors(attribution: Attribution) -> bool:
    """Return whether standard errors are known and not all 0."""
    return bool((attribution.errors > 0).any())


def in_short(explanation: Explanation, sample: int | None = None) -> str:
    """Return what the value is, of one sample or of all, without the classes of all samples and further notes.

    Records hold the readout in words only, so its notes are cut off here.
    """
    record = explanation.record
    if sample is not None and record.values:
        return record.values[sample]
    return record.readout.partition(" (")[0].partition(";")[0]


def base_and_output(explanation: Explanation, sample: int) -> tuple[str, str]:
    """Return the values with all players absent and with all present, as they are shown."""
    base = float(explanation.base_values[sample])
    output = float(explanation.outputs[sample])
    return written(base, 4), written(output, 4)


def answer(explanation: Explanation, sample: int) -> str:
    """Return the explanation of a sample in one sentence: its value, and which players add or take most."""
    base, output = base_and_output(explanation, sample)
    rises = float(explanation.outputs[sample]) >= float(explanation.base_values[sample])
    if base == output:
        change = "as"
    elif rises:
        change = f"up from {base}"
    else:
        change = f"down from {base}"
    clauses = [_who_adds_most(explanation, sample), _who_takes_most(explanation, sample)]
    if not rises:
        clauses.reverse()
    reasons = ", ".join(clause for clause in clauses if clause) or "no player changes it"
    return f"{_value_with_verb(explanation, sample)} {output}, {change} with all players absent; {reasons}."


def _who_adds_most(explanation: Explanation, sample: int) -> str:
    """Name the player that adds most to the value; nothing if none adds."""
    values = explanation.shapley.values[sample]
    player = int(values.argmax())
    shown = values_by_player(explanation.shapley, sample)[player]
    if float(values[player]) <= 0 or shown.is_zero:
        return ""
    return f"“{players_and_inputs(explanation, sample)[player]}” adds most ({shown.text})"


def _who_takes_most(explanation: Explanation, sample: int) -> str:
    """Name the player that takes most from the value; nothing if none takes."""
    values = explanation.shapley.values[sample]
    player = int(values.argmin())
    shown = values_by_player(explanation.shapley, sample)[player]
    if float(values[player]) >= 0 or shown.is_zero:
        return ""
    return f"“{players_and_inputs(explanation, sample)[player]}” takes most ({shown.text})"


def _value_with_verb(explanation: Explanation, sample: int) -> str:
    """Return what the value is as the beginning of a sentence: the output is, or the log-odds of a class are."""
    readout = in_short(explanation, sample).removeprefix("the ").removesuffix(" as it is")
    verb = "are" if readout.startswith("log-odds") else "is"
    return f"the {readout} {verb}"


def largest(values: Float[Tensor, " players"], most: int | None = None) -> list[int]:
    """Return the numbers of the largest absolute values, the largest first."""
    return values.abs().argsort(descending=True, stable=True)[:most].tolist()


def largest_and_others(values: Float[Tensor, " players"], most: int) -> tuple[list[int], list[int]]:
    """Return the players to draw, the largest |value| first, and the others, which are drawn as one if several."""
    ranked = largest(values)
    shown = most
    if len(ranked) <= most + 1:  # a single other player is drawn itself
        shown = len(ranked)
    return ranked[:shown], ranked[shown:]


def players_and_inputs(explanation: Explanation, sample: int) -> list[str]:
    """Return the names of the players, with the value of the entry of those that have only one (tokens aside)."""
    players = explanation.players
    (inputs,) = players.texts(explanation.x[sample : sample + 1])
    names_and_inputs = zip(players.names, players.single.tolist(), inputs, strict=True)
    return [f"{name} = {text}" if single else name for name, single, text in names_and_inputs]


def player_labels(explanation: Explanation, sample: int) -> list[str]:
    """Return the names of the players and their inputs, as short as plots need them."""
    return [label(name, 48) for name in players_and_inputs(explanation, sample)]
