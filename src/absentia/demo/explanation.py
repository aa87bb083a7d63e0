"""One prediction taken apart, in the terminal: the strongest interactions, Shapley values, strength by order."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from absentia.attributions import Attribution
from absentia.explanation import Explanation
from absentia.interactions import Interactions
from absentia.plots import name_of_set


def describe(console: Console, explanation: Explanation) -> None:
    """Say what was evaluated, and between which two values the players stand."""
    record, players = explanation.record, len(explanation.names)
    console.print(
        f"\nIts {players} players make {2**players:,} coalitions, absent ones at the learned values: all evaluated, "
        f"with those of {explanation.samples - 1} other samples, in {record.seconds:.2f} s.\n"
        f"The value, the log-odds of its class, is [bold]{float(explanation.outputs[0]):+.3f}[/bold] with all "
        f"players present and [bold]{float(explanation.base_values[0]):+.3f}[/bold] with all absent."
    )


def show_interactions(console: Console, interactions: Interactions, strongest: int = 10) -> None:
    """Print the strongest interactions, and how few of them it takes."""
    table = Table("players together", "order", "effect", "", title="Strongest interactions", title_justify="left")
    top = interactions.top(strongest)
    for found in top:
        effect = f"{found.effect:+.3f}" if found.measurable else f"({found.effect:+.1e})"
        table.add_row(name_of_set(found.players), str(found.order), effect, _bar(found.effect, top[0].effect))
    console.print("", table)
    salient = int(interactions.salient()[0].sum())
    count = int(interactions.sparsity(0.05)[0])
    total = interactions.effects.shape[1]
    console.print(
        f"{salient:,} of {total:,} are salient (above 5 % of the largest); the {count:,} strongest rebuild all "
        f"{total:,} values to within 5 %."
    )


def show_attribution(console: Console, attribution: Attribution) -> None:
    """Print the players by their Shapley values."""
    table = Table("player", "value", "", title="Shapley values", title_justify="left")
    values = attribution.values[0].tolist()
    ranked = sorted(range(len(values)), key=lambda player: abs(values[player]), reverse=True)
    for player in ranked:
        table.add_row(attribution.names[player], f"{values[player]:+.3f}", _bar(values[player], values[ranked[0]]))
    console.print("", table)


def show_orders(console: Console, interactions: Interactions) -> None:
    """Print how much of the strength lies at each order."""
    profile = interactions.by_order()
    table = Table("order", "Σ|U|", "share", "", title="Strength by order", title_justify="left")
    shares = profile.ratios[0].tolist()
    for order in range(1, len(shares)):
        strength = f"{profile.strength[0, order]:.3f}"
        table.add_row(str(order), strength, f"{shares[order]:.1%}", _bar(shares[order], max(shares)))
    console.print("", table)


def _bar(value: float, largest: float, width: int = 24) -> str:
    colour = "yellow" if value >= 0 else "blue"
    length = round(width * abs(value) / max(abs(largest), 1e-12))
    return f"[{colour}]{'█' * length}[/{colour}]"
