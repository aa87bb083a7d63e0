"""Pictures of results, by matplotlib, in one look; every function returns a Figure, and ``savefig`` writes it.

Orange adds to the value, blue takes from it; what colour tells is told by hatching, dashes, markers or signs as well.

>>> import torch
>>> import absentia as ab
>>> explanation = ab.explain(lambda rows: rows.prod(1), torch.tensor([[2.0, 3.0]]), absence=ab.Baseline(1.0))
>>> figure = ab.plots.waterfall(explanation, sample=0)
"""

from absentia.plots.and_or_graph import and_or_graph
from absentia.plots.attributions import bars, draw_attribution, draw_waterfall, waterfall
from absentia.plots.audits import draw_agreement, draw_order_profiles, draw_removal
from absentia.plots.baseline_ranges import baselines
from absentia.plots.explained import Explained, Learned
from absentia.plots.images import draw_heat_map, image_heat_map
from absentia.plots.interaction_lists import draw_strongest, interaction_list
from absentia.plots.learning_course import learning_history
from absentia.plots.look import name_of_set, new_figure
from absentia.plots.orders import draw_order_profile, order_profile
from absentia.plots.overviews import overview, plot_explanation
from absentia.plots.sparsity_curves import sparsity

__all__ = [
    "Explained",
    "Learned",
    "and_or_graph",
    "bars",
    "baselines",
    "draw_agreement",
    "draw_attribution",
    "draw_heat_map",
    "draw_order_profile",
    "draw_order_profiles",
    "draw_removal",
    "draw_strongest",
    "draw_waterfall",
    "image_heat_map",
    "interaction_list",
    "learning_history",
    "name_of_set",
    "new_figure",
    "order_profile",
    "overview",
    "plot_explanation",
    "sparsity",
    "waterfall",
]
