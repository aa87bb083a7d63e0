"""Values of coalitions from the leaves of a model's trees, without running the model.

A value that is a sum over leaves has exact interactions and Shapley values at any number of players. Other values,
such as the log-odds of three classes, are computed from the sums of the leaves that each coalition reaches.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from absentia.absences.protocol import Fill, StandIns
from absentia.coalitions import draw_coalitions
from absentia.data import seeded
from absentia.errors import wrong
from absentia.models.arrays import NumpyModel
from absentia.models.tree_source import TreeSource, decision_of_depth, separate
from absentia.readouts import Logit, LogOdds, LogOutput, Margin, MeanDepth, Output, Probability, Readout
from absentia.task import Task

if TYPE_CHECKING:
    from absentia.trees.masked_trees import LeafWeights, MaskedTrees
    from absentia.trees.reading import TreeReading

# A reading is compared with the model on all samples and stand-ins, and on mixtures of this many samples, ...
_SAMPLES_COMPARED = 64
# ... in all on this many coalitions of samples, ...
_MASKED_COMPARED = 512
# ... each with at most this many of an absence's draws.
_DRAWS_COMPARED = 4
# Sums of leaves may differ from those of the library by this many units of single precision, at their largest.
_UNITS_APART = 32
# Logarithms of averaged shares may differ by this much.
_LOGARITHMS_APART = 1e-6


# The ensemble's outputs, and the number of the sample that they belong to, or of each row's own → values.
ValueOf: TypeAlias = Callable[[np.ndarray, "int | Tensor"], Tensor]


@dataclass(frozen=True, eq=False)
class LeafValues:
    """The values of a task's samples under a fill, from the leaves of its model's trees."""

    trees: MaskedTrees
    weights: LeafWeights | None  # None if the value is not a sum over leaves
    value_of: ValueOf
    model_outputs: Callable[[np.ndarray], Tensor]  # the ensemble's outputs → what readouts take
    codes_of: Callable[[np.ndarray], np.ndarray]  # rows of inputs → their codes
    exact_readout: str  # what to explain instead for a value that is a sum over leaves
    sums_are_logarithms: bool = False  # whether predictions are exponentials of the sums over leaves

    @property
    def rounding_scale(self) -> float:
        """A bound on the sums of absolute leaf values, which rounding errors are proportional to."""
        return float(self.trees.ensemble.largest_sums().max())

    def rounding(self, values: Tensor) -> Tensor:
        """Return by how much values of this size may differ where leaves are added up in single precision."""
        of_sums = _UNITS_APART * float(np.finfo(np.float32).eps) * self.rounding_scale
        if self.sums_are_logarithms:
            return (of_sums + _LOGARITHMS_APART) * (1 + values.abs())
        return of_sums + _LOGARITHMS_APART * (1 + values.abs())

    def ends(self, samples: int) -> tuple[Float[Tensor, " samples"], Float[Tensor, "samples draws"]]:
        """Return v(N) of the first samples, and the value with all players absent for each draw, by the readout."""
        ensemble = self.trees.ensemble
        full_outputs = ensemble.outputs_of(self.trees.samples[:samples])
        full = [self.value_of(full_outputs[[sample]], sample) for sample in range(samples)]
        empty = [
            self.value_of(ensemble.outputs_of(self.trees.masked_codes(sample)), sample) for sample in range(samples)
        ]
        return torch.cat(full), torch.stack(empty)

    @property
    def tree_count(self) -> int:
        """The number of trees."""
        return len(self.trees.ensemble.roots)

    def values(self, coalitions: Bool[Tensor, "*own coalitions players"]) -> Float[Tensor, "samples coalitions"]:
        """Return the values of coalitions, shared or each sample's own, averaged over the draws of the absence."""
        asked = coalitions.cpu().numpy()
        rows = []
        for sample in range(len(self.trees.samples)):
            outputs = self.trees.outputs(sample, asked if asked.ndim == 2 else asked[sample])
            flat = outputs.reshape(-1, outputs.shape[-1])
            rows.append(self.value_of(flat, sample).reshape(outputs.shape[:2]).mean(0))
        return torch.stack(rows)


@dataclass(frozen=True)
class NotFromLeaves:
    """Why values are not computed from leaves. No note for models that are not trees."""

    note: str = ""


def leaf_values(task: Task, fill: Fill) -> LeafValues | NotFromLeaves:
    """Return the values of a task's samples from the leaves of its model's trees, if it has any that can be read."""
    model = task.model
    if not isinstance(model, NumpyModel) or model.trees is None or task.x.ndim != 2:
        return NotFromLeaves()
    # Imported here, because numba takes a second.
    from absentia.trees.ensemble import UnreadableTreesError
    from absentia.trees.reading import Link, holds_trees

    estimator = model.trees.estimator
    if model.trees.why_not:
        return _run_instead(model.trees.why_not)
    try:
        reading = model.trees.read()
        if reading is None:
            if holds_trees(estimator):
                return _run_instead(f"the trees within a {type(estimator).__name__} are not read")
            return NotFromLeaves()
        if not isinstance(fill, StandIns):
            return _run_instead("what stands in for absent columns depends on those that are present")
        if reading.link is Link.OTHER:
            return _run_instead("its predictions are not those of its leaves added up")
        trees = _mask(model.trees, reading, task, fill)
    except UnreadableTreesError as error:
        return NotFromLeaves(f"The model's trees are not read, and it is run on masked inputs: {error}")
    if trees is None:
        return _run_instead("a step before its trees mixes columns of different players")
    values = _values_of(task, model, model.trees, reading, trees)
    apart = _largest_difference(task, fill, values)
    if not apart <= 1:  # also where a difference is not a number
        return _run_instead("its trees, as they were read, give other outputs than the model")
    return values


def _run_instead(why: str) -> NotFromLeaves:
    """Say why a model of trees is run on masked inputs."""
    return NotFromLeaves(f"The model is run on masked inputs, because {why}.")


def _mask(source: TreeSource, reading: TreeReading, task: Task, fill: StandIns) -> MaskedTrees | None:
    """Return the ensemble on samples and stand-ins; None if columns cannot be distinguished by their players."""
    from absentia.trees.masked_trees import MaskedTrees

    inner_rows = partial(source.inner_rows, reading)
    samples = task.x.detach().cpu().numpy()
    stand_ins = fill.values.detach().cpu().numpy()
    labels = task.players.labels.cpu().numpy()
    flat = stand_ins.reshape(-1, stand_ins.shape[-1])
    if source.transformers:
        player = separate(inner_rows, samples, flat, labels)
        if player is None:
            return None
    else:
        player = labels
    ensemble = reading.ensemble
    codes = ensemble.codes(inner_rows(flat))
    return MaskedTrees(
        ensemble,
        ensemble.codes(inner_rows(samples)),
        codes.reshape(*stand_ins.shape[:2], -1),
        player.astype(np.int64),
        len(task.players),
    )


def _values_of(
    task: Task, model: NumpyModel, source: TreeSource, reading: TreeReading, trees: MaskedTrees
) -> LeafValues:
    """Return the values, as sums over leaves if they are that."""
    from absentia.trees.reading import Link

    is_sum, exact_readout = _is_sum_of_outputs(task.readout, reading, task.probe.last)

    def model_outputs(outputs: np.ndarray) -> Tensor:
        return model.outputs(_answers(outputs, reading, source)).double()

    def value_of(outputs: np.ndarray, samples: int | Tensor) -> Tensor:
        numbers = torch.as_tensor(samples).expand(len(outputs))
        return task.readout(model_outputs(outputs), numbers).double()

    weights = None
    if is_sum:
        weights = _weights_of_outputs(task, reading, trees, value_of)
    elif len(trees.ensemble.roots) == 1:
        weights = _weights_of_single_tree(trees, value_of)

    def codes_of(rows: np.ndarray) -> np.ndarray:
        return reading.ensemble.codes(source.inner_rows(reading, rows))

    return LeafValues(trees, weights, value_of, model_outputs, codes_of, exact_readout, reading.link is Link.LOG)


def _is_sum_of_outputs(readout: Readout, reading: TreeReading, output: Tensor) -> tuple[bool, str]:
    """Return whether the value is a weighted sum of the ensemble's outputs, and the readout that would be one."""
    from absentia.trees.reading import Link

    kind = type(readout)  # a subclass may read something else
    if kind is MeanDepth and reading.link is not Link.MEAN_DEPTH:
        raise wrong("readout", "be MeanDepth(forest) only for that isolation forest", "another model")
    if reading.link is Link.PROBABILITIES:
        return kind is Probability, "Probability(y)"
    if reading.link is Link.MEAN_DEPTH:
        return kind is MeanDepth, "MeanDepth(model)"
    if reading.link is Link.LOG:
        return kind is LogOutput, "LogOutput()"
    if reading.link is Link.IDENTITY:
        return kind in (Logit, Margin, Output), "Output()"
    if kind is LogOdds:
        has_two_classes = output.ndim == 1 or output.shape[1] <= 2
        return has_two_classes, "Logit(y)"
    return kind in (Logit, Margin, Output), "Logit(y)"


def _answers(outputs: np.ndarray, reading: TreeReading, source: TreeSource) -> np.ndarray:
    """Return what the estimator predicts where its ensemble has these outputs."""
    from absentia.trees.reading import Link

    if reading.link is Link.MEAN_DEPTH:
        return decision_of_depth(source.estimator, outputs[:, 0])
    answers = outputs[:, 0] if outputs.shape[1] == 1 else outputs
    if reading.link is Link.LOG:
        with np.errstate(over="ignore"):
            answers = np.exp(answers)
    if source.margins is not None:
        return source.margins.of_raw(answers)
    return answers


def _weights_of_outputs(task: Task, reading: TreeReading, trees: MaskedTrees, value_of: ValueOf) -> LeafWeights:
    """Return the weights of leaves for a value that is a weighted sum of outputs: one kind for each class."""
    from absentia.trees.masked_trees import LeafWeights
    from absentia.trees.reading import Link

    ensemble = trees.ensemble
    classes = _classes_of(task)
    targets, first, kinds = np.unique(classes, return_index=True, return_inverse=True)
    weights = []
    base = []
    for target, sample in zip(targets.tolist(), first.tolist(), strict=True):
        if reading.link is Link.PROBABILITIES:
            of_outputs = np.eye(ensemble.outputs)[target]
            at_zero = 0.0
        elif reading.link is Link.MEAN_DEPTH:
            of_outputs = np.ones(1)
            at_zero = 0.0
        else:
            at_points = value_of(np.concatenate([np.zeros((1, ensemble.outputs)), np.eye(ensemble.outputs)]), sample)
            at_zero = float(at_points[0])
            of_outputs = (at_points[1:] - at_points[0]).numpy()
        weights.append(ensemble.leaf_weights(of_outputs))
        base.append(at_zero + float(ensemble.base @ of_outputs))
    return LeafWeights(np.stack(weights), np.array(base), kinds)


def _classes_of(task: Task) -> np.ndarray:
    """Return the class whose value is explained for each sample; 0 for readouts without classes."""
    target = getattr(task.readout, "y", None)
    if not isinstance(target, Tensor):
        return np.zeros(task.samples, np.int64)
    classes: np.ndarray = target.expand(task.samples).cpu().numpy()
    return classes


def _weights_of_single_tree(trees: MaskedTrees, value_of: ValueOf) -> LeafWeights:
    """Return the weights of the leaves of one tree: each leaf's own value, whatever the readout."""
    from absentia.trees.masked_trees import LeafWeights

    ensemble = trees.ensemble
    outputs = ensemble.base + ensemble.weights_by_output
    samples = range(len(trees.samples))
    weights = np.stack([value_of(outputs, sample).numpy() for sample in samples])
    return LeafWeights(weights, np.zeros(len(samples)), np.arange(len(samples)))


def _largest_difference(task: Task, fill: StandIns, values: LeafValues) -> float:
    """Compare values from leaves with the model's own; rounding explains differences up to 1.

    All samples and all stand-ins are compared, and mixtures of some. Sums of weights must give the same values.
    """
    own_stand_ins = task.samples if len(fill.values) > 1 else 1  # one row of stand-ins may serve all samples
    full, empty = values.ends(task.samples)
    nobody = torch.zeros(1, len(task.players), dtype=torch.bool)
    every_draw = list(range(fill.draws))
    pairs = [
        (full, _values_of_model(task, fill, ~nobody, task.samples, [0])),
        (empty[:own_stand_ins].flatten(), _values_of_model(task, fill, nobody, own_stand_ins, every_draw)),
        _values_of_random_coalitions(task, fill, values),
    ]
    if values.weights is not None:
        empty_sums, full_sums = values.trees.ends(values.weights)
        pairs.append((torch.from_numpy(full_sums), full))
        pairs.append((torch.from_numpy(empty_sums), empty.mean(1)))
    apart = [((ours - theirs).abs() / values.rounding(theirs)).max() for ours, theirs in pairs]
    return float(torch.stack(apart).max())


def _values_of_random_coalitions(task: Task, fill: StandIns, values: LeafValues) -> tuple[Tensor, Tensor]:
    """Return the values of the same random coalitions and stand-ins twice: from leaves, and by the model."""
    generator = seeded(0)
    players = len(task.players)
    samples = min(task.samples, _SAMPLES_COMPARED)
    sizes = torch.randint(players + 1, (_MASKED_COMPARED // samples,), generator=generator)
    coalitions = draw_coalitions(players, sizes, generator)
    draws = torch.randperm(fill.draws, generator=generator)[:_DRAWS_COMPARED].tolist()
    by_leaves = []
    for sample in range(samples):
        outputs = values.trees.outputs(sample, coalitions.numpy(), draws)  # draws × coalitions × outputs
        flat = outputs.swapaxes(0, 1).reshape(-1, outputs.shape[-1])
        by_leaves.append(values.value_of(flat, sample))
    return torch.cat(by_leaves), _values_of_model(task, fill, coalitions, samples, draws)


def _values_of_model(
    task: Task, fill: StandIns, coalitions: Tensor, samples: int, draws: list[int]
) -> Float[Tensor, " values"]:
    """Run the model on coalitions of the first samples: one value for each sample, coalition and draw."""
    chosen = fill.select(slice(0, samples), draws=draws)
    inputs = chosen(slice(0, samples), task.players.presence(coalitions)[None].to(task.x.device))
    rows = inputs.flatten(0, 2)
    outputs = task.runner(task.forward)(rows.clone())
    numbers = torch.arange(samples, device=rows.device).repeat_interleave(len(coalitions) * len(draws))
    return task.readout(outputs, numbers).double().cpu()
