"""One prediction taken apart, in the terminal: the strongest interactions, Shapley values, strength by order."""

from __future__ import annotations

import time

from rich.console import Console
from rich.table import Table
from torch import nn

from absentia.absence import Absence
from absentia.attributions import Attribution, shapley
from absentia.demo.task import Task
from absentia.game import value_table
from absentia.interactions import Interactions, harsanyi
from absentia.masked_model import MaskedModel
from absentia.plots import name_of_set


def take_apart(
    console: Console, model: nn.Module, task: Task, number: int, absence: Absence
) -> tuple[Interactions, Attribution]:
    """Evaluate all coalitions of the sample's players, and derive everything from that table."""
    x, y = task.x_test[[number]], int(task.y_test[number])
    game = MaskedModel(model, x, y, players=task.players, absence=absence)
    start = time.perf_counter()
    table = value_table(game)
    interactions = harsanyi(table)
    seconds = time.perf_counter() - start
    values = table.values[0]
    console.print(
        f"\nIts {len(task.players)} players make {len(values):,} coalitions, absent ones at the learned values: "
        f"evaluated and transformed in {seconds:.2f} s.\n"
        f"The value, the {interactions.readout}, is [bold]{values[-1]:+.3f}[/bold] with all players present "
        f"and [bold]{values[0]:+.3f}[/bold] with all absent."
    )
    return interactions, shapley(table)


def show_interactions(console: Console, interactions: Interactions, strongest: int = 10) -> None:
    """Print the strongest interactions, and how few of them it takes."""
    table = Table("players together", "order", "effect", "", title="Strongest interactions", title_justify="left")
    top = interactions.top(strongest)
    for found in top:
        effect = f"{found.effect:+.3f}" if found.measurable else f"({found.effect:+.1e})"
        table.add_row(name_of_set(found.players), str(found.order), effect, _bar(found.effect, top[0].effect))
    console.print("", table)
    salient = int(interactions.salient().sum())
    count = int(interactions.sparsity(0.05))
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
