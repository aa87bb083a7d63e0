"""The registry: all experiments, those of the paper first, by name and by alias."""

from __future__ import annotations

from absentia import AbsentiaError
from experiments import (
    adversarial_recovery,
    and_or_graph,
    context_maps,
    digit_trees,
    known_baselines,
    known_shapley,
    learned_attributions,
    learning_cost,
    masking_methods,
    noise_effects,
    order_ratios,
    order_strengths,
    sparse_effects,
    tabular_audits,
    tree_baselines,
    worked_examples,
)
from experiments.experiment import Experiment

EXPERIMENTS: tuple[Experiment, ...] = tuple(
    module.EXPERIMENT
    for module in (
        masking_methods,
        and_or_graph,
        known_baselines,
        known_shapley,
        worked_examples,
        learned_attributions,
        digit_trees,
        adversarial_recovery,
        order_ratios,
        context_maps,
        sparse_effects,
        noise_effects,
        order_strengths,
        learning_cost,
        tabular_audits,
        tree_baselines,
    )
)


def names() -> dict[str, tuple[Experiment, tuple[str, ...]]]:
    """Return the experiment and the parts that each name and alias stands for; no parts are all of them."""
    experiments: dict[str, tuple[Experiment, tuple[str, ...]]] = {
        experiment.name: (experiment, ()) for experiment in EXPERIMENTS
    }
    for experiment in EXPERIMENTS:
        for alias, parts in experiment.aliases.items():
            if alias in experiments:
                raise AbsentiaError(f"names of experiments must differ. Got {alias!r} twice instead.")
            experiments[alias] = (experiment, parts)
    return experiments
