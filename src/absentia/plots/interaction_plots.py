"""Plots of interactions: the strongest as lists and matrices, and the strength of all by order and by rank."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING

import torch
from jaxtyping import Int
from torch import Tensor

from absentia.arguments import checked
from absentia.attributions import OrderAttribution
from absentia.data import check_number
from absentia.errors import Axes, Figure, wrong
from absentia.plots.drawable import in_short, interactions_of, largest
from absentia.plots.look import NEUTRAL, Bar, Look, draw_bars, draw_curve, label, look_of, looks_of, new_figure
from absentia.plots.strongest_sets import (
    PlayerSet,
    count_salient,
    count_sets,
    largest_order,
    ranked_strengths,
    sets_with_room,
    strongest_sets,
)
from absentia.terms import Terms
from absentia.terms_in_words import WALSH, name_with_basis

if TYPE_CHECKING:
    from absentia.explanation import Explanation

_LONGEST_NAME = 76  # letters in the name of a set
_LETTERS_OF_A_LINE = 80  # below an axis
_LETTERS_OF_A_PLAYER = (20, 12, 7)  # tried in turn: large sets need shorter names of players
_MOST_POINTS = 400  # ranks drawn on a curve, evenly spaced on a logarithmic scale
_MARKERS = 12  # approximate number of markers on a curve
_MOST_MARKED = 30  # curves of up to this many points have a marker at each
_BARS_WIDTH = 5.4  # width of the bars beside a matrix, in inches


@checked
def interaction_list(explanation: Explanation | Terms, sample: int = 0, *, strongest: int = 16) -> Figure:
    """Draw a bar for each of the strongest interactions; those within rounding error are hollow.

    Parameters
    ----------
    explanation : Explanation or Terms
        An explanation with interactions, or terms alone.
    sample, strongest : int
        Number of the sample, and how many interactions to draw.

    Examples
    --------
    >>> explanation = ab.explain(lambda rows: rows.prod(1), [[3.0, 4.0]], absence=1.0)
    >>> [label.get_text() for label in ab.plots.interaction_list(explanation).axes[0].get_yticklabels()]
    ['x0 & x1', 'x1', 'x0']
    """
    interactions = interactions_of(explanation, sample, strongest=strongest)
    rows = min(strongest, count_sets(interactions, sample))
    figure = new_figure(1, width=8.0, rows=rows, title=f"value: {in_short(explanation, sample)}")
    draw_strongest(figure.axes[0], interactions, sample, strongest)
    return figure


def draw_strongest(axes: Axes, interactions: Terms, sample: int = 0, strongest: int = 12) -> None:
    """Draw the bars of `interaction_list` on given axes."""
    sets = strongest_sets(interactions, sample, strongest)
    _draw_sets(axes, sets, interactions.names)
    axes.set_title(_title(interactions, sample, len(sets)))
    add_remarks(axes, interactions, sample)


def _title(interactions: Terms, sample: int, drawn: int) -> str:
    """Say how many interactions are drawn, and in which basis unless it is the usual one."""
    title = f"strongest {drawn} of {count_sets(interactions, sample):,} interactions"
    return name_with_basis(title, interactions.basis, interactions.fidelity is not None)


def add_remarks(axes: Axes, interactions: Terms, sample: int) -> None:
    """Say below the axis how much the interactions explain, and what their basis means."""
    lines = [axes.get_xlabel()]
    for remark in interactions.remarks(sample):
        lines += textwrap.wrap(remark, _LETTERS_OF_A_LINE)
    axes.set_xlabel("\n".join(lines))


def _draw_sets(axes: Axes, sets: Sequence[PlayerSet], player_names: Sequence[str]) -> None:
    """Draw a bar for each set, with its error if it is estimated."""
    names = _short_names([[player_names[player] for player in drawn.players] for drawn in sets])
    draw_bars(
        axes,
        [
            Bar(name, drawn.effect, error=drawn.error, hollow=not drawn.measurable)
            for name, drawn in zip(names, sets, strict=True)
        ],
    )


def _short_names(sets: Sequence[Sequence[str]]) -> list[str]:
    """Return names of sets that fit beside bars, or else the shortest possible names."""
    names: list[str] = []
    for letters in _LETTERS_OF_A_PLAYER:
        names = names_of_sets([[label(name, letters) for name in players] for players in sets])
        if max(map(len, names), default=0) <= _LONGEST_NAME:
            return names
    return names


def names_of_sets(sets: Sequence[Sequence[str]], most: int = 3) -> list[str]:
    """Name interactions after their first players, with as many as are needed to tell them apart."""
    names = [_name_of_set(players, most) for players in sets]
    if len(set(names)) == len(names) or most >= max(map(len, sets), default=0):
        return names
    longer_names = names_of_sets(sets, most + 1)
    return [
        name if names.count(name) == 1 else longer_name for name, longer_name in zip(names, longer_names, strict=True)
    ]


def _name_of_set(players: Sequence[str], most: int) -> str:
    """Join the names of the first players, and count the others."""
    name = " & ".join(players[:most])
    if len(players) > most:
        return f"{name} & {len(players) - most} more"
    return name


@checked
def upset(explanation: Explanation | Terms, sample: int = 0, *, strongest: int = 16) -> Figure:
    """Draw the strongest interactions as a matrix with a dot for each player in the set, and a bar for the effect.

    The matrix has room for 48 players. Interactions that do not fit are left out, and the title counts them.

    Parameters
    ----------
    explanation, sample, strongest : see `interaction_list`

    Examples
    --------
    >>> explanation = ab.explain(lambda rows: rows.prod(1), [[3.0, 4.0]], absence=1.0)
    >>> ab.plots.upset(explanation).axes[0].lines[-1].get_xydata().tolist()
    [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 2.0]]
    """
    interactions = interactions_of(explanation, sample, strongest=strongest)
    all_sets = strongest_sets(interactions, sample, strongest)
    sets = sets_with_room(all_sets)
    players = sorted({player for drawn in sets for player in drawn.players})
    matrix_width = max(1.6, 0.26 * len(players))
    width = (matrix_width + _BARS_WIDTH) / 2
    figure = new_figure(2, width=width, rows=len(sets) + 4, ratios=(matrix_width, _BARS_WIDTH))
    matrix, bars = figure.axes
    _draw_sets(bars, sets, interactions.names)
    title = _title(interactions, sample, len(sets))
    add_remarks(bars, interactions, sample)
    if len(sets) < len(all_sets):
        title += f"\n({len(all_sets) - len(sets)} with more players than there is room for are left out)"
    bars.set_title(title)
    bars.set_yticks([])
    _draw_matrix(matrix, sets, players)
    matrix.set(xlim=(-0.6, len(players) - 0.4), ylim=bars.get_ylim(), yticks=[])
    names = [label(interactions.names[player], 20) for player in players]
    matrix.set_xticks(range(len(players)), names, rotation=60, ha="left", rotation_mode="anchor")
    matrix.tick_params(top=True, bottom=False, labeltop=True, labelbottom=False, length=0)
    matrix.spines[:].set_visible(False)
    return figure


def _draw_matrix(axes: Axes, sets: Sequence[PlayerSet], players: Sequence[int]) -> None:
    """Draw a row for each set: a dot for each player, black and connected for those in the set."""
    column_of = {player: column for column, player in enumerate(players)}
    for row, drawn in enumerate(sets):
        axes.plot(range(len(players)), [row] * len(players), "o", markersize=6, color="#DDDDDD")
        ends = [column_of[drawn.players[0]], column_of[drawn.players[-1]]]
        axes.plot(ends, [row, row], color="black", linewidth=1.2)
    columns = [column_of[player] for drawn in sets for player in drawn.players]
    rows = [row for row, drawn in enumerate(sets) for _ in drawn.players]
    axes.plot(columns, rows, "o", markersize=6, color="black")


@checked
def order_profile(explanation: Explanation | Terms, sample: int = 0, *, most: int = 6) -> Figure:
    """Draw the strength of interactions by order, and the order-wise Shapley values of the largest players.

    Parameters
    ----------
    explanation : Explanation or Terms
        An explanation with interactions, or terms alone.
    sample, most : see `bars`

    Examples
    --------
    >>> explanation = ab.explain(lambda rows: rows.prod(1), [[3.0, 4.0]], absence=1.0)
    >>> [round(float(bar.get_height()), 3) for bar in ab.plots.order_profile(explanation).axes[0].patches]
    [0.455, 0.545]
    """
    interactions = interactions_of(explanation, sample, most=most)
    figure = new_figure(2, width=5.6, height=4.4, title=f"value: {in_short(explanation)}")
    draw_order_profile(figure.axes[0], interactions, sample)
    values = _order_wise_values(explanation, sample)
    if values is None:
        figure.axes[1].axis("off")
        text = "Order-wise Shapley values are unknown:\neffects are estimated, or of another basis."
        figure.axes[1].text(0.5, 0.5, text, ha="center", va="center", fontsize=9)
    else:
        _draw_order_shapley(figure.axes[1], values, most)
    return figure


def _order_wise_values(result: Explanation | Terms, sample: int) -> OrderAttribution | None:
    """Return the order-wise Shapley values of a sample: those of the explanation, or computed from terms."""
    if not isinstance(result, Terms) and result.order_shapley is not None:
        return result.order_shapley.only(sample)
    terms = interactions_of(result)
    if terms.errors is not None or not terms.adds_up:
        return None
    return terms.only(sample).order_shapley()


def _draw_order_shapley(axes: Axes, by_order: OrderAttribution, most: int) -> None:
    """Draw a curve of order-wise Shapley values for each of the largest players; bands show two errors."""
    values = by_order.values[0].cpu()
    errors = by_order.errors[0].cpu()
    names = by_order.names
    players = largest(values.mean(0), most)  # the mean over the orders is the Shapley value
    orders = len(names)
    markers = max(1, orders // _MARKERS) if orders > _MOST_MARKED else 1
    for number, player in enumerate(players):
        look = look_of(number)
        draw_curve(axes, look, label(names[player]), by_order.orders, values[:, player], markevery=markers)
        if by_order.is_estimated:
            low = values[:, player] - 2 * errors[:, player]
            high = values[:, player] + 2 * errors[:, player]
            axes.fill_between(by_order.orders, low, high, color=axes.lines[-1].get_color(), alpha=0.2, linewidth=0)
    axes.axhline(0, color=NEUTRAL, linewidth=0.8)
    axes.set(xlabel="order: number of other players present", ylabel="mean of what the player adds")
    title = "order-wise Shapley values"
    if by_order.is_estimated:
        title += " ± 2 errors"
    if len(players) < orders:
        title += f", {len(players)} of {orders} players"
    axes.set_title(title)
    axes.locator_params(axis="x", integer=True)
    axes.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))


def symbol_of(interactions: Terms) -> str:
    """Return the letter for effects in formulas: w for Walsh terms, otherwise U."""
    return "w" if interactions.basis == WALSH else "U"


def draw_order_profile(axes: Axes, interactions: Terms, sample: int = 0) -> None:
    """Draw the share of each order in the strength of interactions, up to the largest order of the sample."""
    sample_terms = interactions.only(sample)
    ratios = sample_terms.by_order().ratios[0, 1 : largest_order(sample_terms) + 1].tolist()
    axes.bar(range(1, len(ratios) + 1), ratios, color=NEUTRAL)
    title = name_with_basis("strength by order", sample_terms.basis, sample_terms.fidelity is not None)
    share = f"share of Σ|{symbol_of(sample_terms)}|"
    axes.set(title=title, xlabel="order: players in the interaction", ylabel=share)
    axes.set_xlim(0.4, max(len(ratios), 2) + 0.6)
    axes.locator_params(axis="x", integer=True)
    axes.yaxis.set_major_formatter(lambda share, _position: f"{share:.0%}")


@checked
def sparsity(results: Explanation | Terms | Mapping[str, Explanation | Terms], sample: int | None = None) -> Figure:
    """Draw the strengths |U| of all interactions in descending order, on logarithmic scales.

    The legend counts the salient interactions: those above 5 % of a sample's largest.

    Parameters
    ----------
    results : Explanation, Terms or mapping
        An exact explanation, interactions, or several of them by name.
    sample : int, optional
        Number of the sample; None averages the strengths of each rank over all samples.

    Examples
    --------
    >>> game = ab.ValueTable([0.0, 1.0, 2.0, 8.0])
    >>> ab.plots.sparsity({"given": ab.harsanyi(game)}).axes[0].lines[0].get_ydata().tolist()
    [5.0, 2.0, 1.0]
    """
    named = results if isinstance(results, Mapping) else {"": results}
    if not named:
        raise wrong("results", "hold at least one explanation", "none")
    figure = new_figure(1, width=6.4, height=4.6)
    axes = figure.axes[0]
    for look, (name, result) in zip(looks_of(list(named)), named.items(), strict=True):
        interactions = _interactions_in(result)
        check_number("sample", sample, 0, interactions.samples - 1)
        _draw_strengths(axes, look, name, interactions, sample)
    axes.set_xscale("log")
    if math.isfinite(axes.dataLim.minposy):
        axes.set_yscale("log", nonpositive="mask")
    axes.set(title="interactions in descending order", xlabel="rank of the interaction")
    symbols = dict.fromkeys(f"|{symbol_of(_interactions_in(result))}|" for result in named.values())
    strength = f"strength {' or '.join(symbols)}"
    axes.set_ylabel(f"{strength}, mean over samples" if sample is None else strength)
    axes.legend(fontsize=8, frameon=False, loc="lower left")
    return figure


def _interactions_in(result: Explanation | Terms) -> Terms:
    """Return terms, or those of an explanation; raise an error for anything else."""
    if isinstance(result, Terms):
        return result
    if getattr(result, "KIND", "") != "explanation":
        raise wrong("results", "hold explanations or interactions", type(result).__name__)
    return interactions_of(result)


def _draw_strengths(axes: Axes, look: Look, name: str, interactions: Terms, sample: int | None) -> None:
    """Draw the strengths of one result in descending order, for one sample or averaged."""
    samples = range(interactions.samples) if sample is None else [sample]
    # Samples may have different numbers of listed sets, so shorter lists are padded with 0.
    strengths = [ranked_strengths(interactions, number) for number in samples]
    strength = torch.nn.utils.rnn.pad_sequence(strengths, batch_first=True).mean(0)
    salient = f"{fmean(count_salient(interactions, number) for number in samples):.3g} salient"
    text = f"{label(name)}: {salient}" if name else salient
    ranks = _spaced_ranks(len(strength))
    draw_curve(axes, look, text, ranks, strength[ranks - 1].numpy(), markevery=max(1, len(ranks) // _MARKERS))


def _spaced_ranks(count: int) -> Int[Tensor, " ranks"]:
    """Return ranks from 1 to count, evenly spaced on a logarithmic scale."""
    if count == 0:
        return torch.empty(0, dtype=torch.long)
    spaced = torch.logspace(0, math.log10(count), _MOST_POINTS, dtype=torch.float64)
    return spaced.round().long().clamp(1, count).unique()
