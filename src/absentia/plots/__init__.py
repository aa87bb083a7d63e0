"""Plots of results with matplotlib. Every plot is a Figure, and its ``savefig`` writes it to a file.

>>> explanation = ab.explain(lambda rows: rows.prod(1), [[2.0, 3.0]], absence=1.0)
>>> figure = ab.plots.waterfall(explanation, sample=0)
"""

from collections.abc import Callable
from typing import Any

from absentia.plots.baseline_plots import baselines, learning_history
from absentia.plots.dot_plots import beeswarm, scatter
from absentia.plots.graph_plots import and_or_graph, network
from absentia.plots.image_plots import image_heat_map
from absentia.plots.interaction_plots import interaction_list, order_profile, sparsity, upset
from absentia.plots.look import new_figure
from absentia.plots.sample_plots import bars, overview, waterfall
from absentia.plots.text_plots import text_line

# What `Explanation.plot` draws, by name.
KINDS: dict[str, Callable[..., Any]] = {
    "overview": overview,
    "waterfall": waterfall,
    "bars": bars,
    "image_heat_map": image_heat_map,
    "text_line": text_line,
    "interaction_list": interaction_list,
    "upset": upset,
    "network": network,
    "and_or_graph": and_or_graph,
    "order_profile": order_profile,
    "beeswarm": beeswarm,
    "scatter": scatter,
    "sparsity": sparsity,
}
OF_ALL_SAMPLES = ("beeswarm", "scatter", "sparsity")

__all__ = [
    "and_or_graph",
    "bars",
    "baselines",
    "beeswarm",
    "image_heat_map",
    "interaction_list",
    "learning_history",
    "network",
    "new_figure",
    "order_profile",
    "overview",
    "scatter",
    "sparsity",
    "text_line",
    "upset",
    "waterfall",
]
