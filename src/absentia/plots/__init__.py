"""Plots of results with matplotlib; every plot is a Figure, and its ``savefig`` writes it.

>>> explanation = ab.explain(lambda rows: rows.prod(1), [[2.0, 3.0]], absence=1.0)
>>> figure = ab.plots.waterfall(explanation, sample=0)
"""

from absentia.plots.absence_plots import baselines, learning_history
from absentia.plots.graph import and_or_graph
from absentia.plots.images import image_heat_map
from absentia.plots.interaction_plots import interaction_list, order_profile, sparsity
from absentia.plots.look import new_figure
from absentia.plots.sample_plots import bars, overview, plot_explanation, waterfall

__all__ = [
    "and_or_graph",
    "bars",
    "baselines",
    "image_heat_map",
    "interaction_list",
    "learning_history",
    "new_figure",
    "order_profile",
    "overview",
    "plot_explanation",
    "sparsity",
    "waterfall",
]
