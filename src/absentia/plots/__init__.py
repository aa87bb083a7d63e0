"""Plots of results with matplotlib; every plot is a Figure, and its ``savefig`` writes it.

>>> explanation = ab.explain(lambda rows: rows.prod(1), [[2.0, 3.0]], absence=1.0)
>>> figure = ab.plots.waterfall(explanation, sample=0)
"""

from collections.abc import Callable
from typing import Any

from absentia.plots.absence_plots import baselines, learning_history
from absentia.plots.interaction_plots import and_or_graph, interaction_list, network, order_profile, sparsity, upset
from absentia.plots.look import new_figure
from absentia.plots.sample_plots import bars, beeswarm, image_heat_map, overview, scatter, text_line, waterfall

# What `Explanation.plot` draws, by name.
_DRAWN: tuple[Callable[..., Any], ...] = (
    overview, waterfall, bars, image_heat_map, text_line, interaction_list, upset, network, and_or_graph,
    order_profile, beeswarm, scatter, sparsity,
)  # fmt: skip
KINDS = {kind.__name__: kind for kind in _DRAWN}
OF_ALL_SAMPLES = ("beeswarm", "scatter", "sparsity")

__all__ = [
    "and_or_graph", "bars", "baselines", "beeswarm", "image_heat_map", "interaction_list", "learning_history",
    "network", "new_figure", "order_profile", "overview", "scatter", "sparsity", "text_line", "upset", "waterfall",
]  # fmt: skip
