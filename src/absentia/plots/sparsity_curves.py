"""How few interactions there are: their strengths in descending order, several methods in one picture."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor

from absentia.errors import wrong
from absentia.interactions import Interactions
from absentia.plots.explained import Explained
from absentia.plots.interaction_lists import interactions_of
from absentia.plots.look import look_of, new_figure, plain, shorten

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_POINTS = 400  # so many ranks of a curve are drawn, closest where it falls


def sparsity(
    results: Explained | Interactions | Mapping[str, Explained | Interactions], sample: int | None = None
) -> Figure:
    """Draw the strengths |U| of all interactions in descending order, on logarithmic scales.

    ``results`` is an explanation or interactions, or several by name. Without a ``sample``, strengths of the same
    rank are averaged over the samples. The legend tells how many are salient: above 5 % of a sample's largest.

    >>> import torch
    >>> import absentia as ab
    >>> game = ab.ValueTable([0.0, 1.0, 2.0, 8.0])
    >>> ab.plots.sparsity({"given": ab.harsanyi(game)}).axes[0].lines[0].get_ydata().tolist()
    [5.0, 2.0, 1.0]
    """
    named = dict(results) if isinstance(results, Mapping) else {"": results}
    if not named:
        raise wrong("results", "hold at least one explanation", "none")
    figure = new_figure(columns=1, width=6.4, height=4.6)
    axes, any_left = figure.axes[0], False
    for number, (name, result) in enumerate(named.items()):
        interactions = _interactions(result)
        curve = _curve(interactions, sample)
        ranks = _ranks(len(curve))
        strengths = [value if value > 0 else math.nan for value in curve[ranks - 1].tolist()]
        colour, marker = look_of(number)
        salient = interactions.salient()[:, 1:].sum(1).double()
        count = float(salient.mean() if sample is None else salient[sample])
        label = plain(f"{shorten(name)}: {count:.3g} salient" if name else f"{count:.3g} salient")
        any_left = any_left or bool((curve > 0).any())
        axes.plot(
            ranks,
            strengths,
            label=label,
            color=colour,
            marker=marker,
            markevery=max(1, len(ranks) // 12),
            markersize=5,
        )
    axes.set_xscale("log")
    if any_left:  # 0 has no logarithm
        axes.set_yscale("log")
    axes.set_xlabel("rank of the interaction")
    axes.set_ylabel("strength |U|" + (", mean over samples" if sample is None else ""))
    axes.set_title("interactions in descending order", fontsize=11)
    axes.legend(fontsize=8, frameon=False, loc="lower left")
    return figure


def _interactions(result: Explained | Interactions) -> Interactions:
    if isinstance(result, Interactions):
        return result
    if not isinstance(result, Explained):
        raise wrong("results", "hold explanations or interactions", type(result).__name__)
    return interactions_of(result)


def _curve(interactions: Interactions, sample: int | None) -> Float[Tensor, " interactions"]:
    strength = interactions.effects[:, 1:].detach().abs().cpu()
    if sample is not None:
        if not 0 <= sample < len(strength):
            raise wrong("sample", f"lie between 0 and {len(strength) - 1}", sample)
        strength = strength[sample : sample + 1]
    return strength.sort(dim=1, descending=True).values.mean(0)


def _ranks(count: int) -> Tensor:
    """Choose ranks evenly on a logarithmic scale, the first and the last among them."""
    spaced = torch.logspace(0, math.log10(count), _POINTS, dtype=torch.float64).round().long()
    return spaced.clamp(1, count).unique()
