"""The default loss of a baseline, which asks for short explanations and honest masked predictions.

If a baseline b represents absence, the loss is the sum of three terms, each divided by a scale:

- *concision*: Σ|U(S)| of samples, divided by Σ|U(S)| at the mean;
- *evidence*: the proper score of masked predictions over all coalition sizes, divided by the score at the mean; and
  the excess of the score with all players absent over that of the best constant prediction, beyond a small allowance;
- *noise*: the amount by which Σ|U(S)| of b itself, measured against white noise, exceeds that of the mean, or that of
  white noise if it is lower.

All terms are computed on small new batches: whole tables of a few samples, or, if there are more players, small
sub-cubes of many samples over drawn contexts.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from absentia.coalitions import draw_coalitions, enumerate_coalitions
from absentia.data import DataRange, blocks, count_blocks, seeded, white_noise
from absentia.evaluation import Evaluator
from absentia.learning.assessment import Assessment
from absentia.learning.penalties import Penalty
from absentia.learning.samples import keep_aside
from absentia.learning.space import Baselines, Owners
from absentia.learning.value_sources import EvaluatedValues, ValueSource
from absentia.readouts import Score
from absentia.runtime.limits import OutOfTime

# The maximum number of players whose coalitions are all evaluated, and the players of a cube if there are more.
LARGEST_TABLE = 16
_CUBE_PLAYERS = 8

# The minimum number of samples of a step.
_FEWEST_SAMPLES = 4

# Masked predictions are scored on this many coalitions of each sample, which take this share of the rows.
_SCORED_COALITIONS = 16
_SCORED_SHARE = 1 / 16

# Predictions with all players absent are scored on at most this many samples, which take this share of the rows.
_MOST_EMPTY = 512
_EMPTY_SHARE = 1 / 8

# How far the score with all players absent may exceed the best constant's, and the weight of what goes beyond it.
_ALLOWED_EXCESS = 0.2
_EXCESS_WEIGHT = 1.5

# If the loss is computed on fewer samples, it is scored with all players absent on this many for each of them.
_EMPTY_PER_SAMPLE = 8

# One in this many of a batch's samples has its baseline compared with white noise.
_SAMPLES_PER_NOISE = 4

# The number of batches on which the scales are measured.
_SCALE_BATCHES = 8

# The smallest divisor.
_TINY = 1e-12

# The rows of a comparison during the search, and of the final judgement, as multiples of the rows of a step.
_COMPARED_STEPS = 4
_JUDGED_STEPS = 8

# Shares of a comparison's samples that are evaluated in turn: poor candidates are dropped early.
_PARTS = (1 / 8, 1 / 2, 1.0)

# The bytes of activations that may be held for a gradient. Beyond this, activations are computed twice.
_HELD_BYTES = 2**28

# The figures that the loss is made of, in this order.
_CONCISION = 0
_SCORE = 1
_EXCESS = 2
_NOISE = 3
_NOISE_OF_MEAN = 4
_FIGURES = 5

Figures: TypeAlias = Float[Tensor, "5 owners"]

# Several baselines, such as those of the points of a profile.
SeveralBaselines: TypeAlias = Float[Tensor, "baselines owners entries"]


@dataclass(frozen=True)
class Weights:
    """The weights of the terms of the loss; that of concision is 1."""

    evidence: float
    noise: float


class Batch(NamedTuple):
    """Samples and coalitions to evaluate, and the noise with which baselines are compared."""

    rows: Int[Tensor, " samples"]
    coalitions: Bool[Tensor, "*samples coalitions players"]
    scored_rows: Int[Tensor, " others"]  # samples whose masked predictions are scored
    scored: Bool[Tensor, "others scored players"]
    empty: Int[Tensor, "2 empty"]  # samples whose baselines are used, and samples that they are scored on
    references: Shaped[Tensor, "drawn *entries"]  # white noise, beside the baselines of the first samples
    usual: Float[Tensor, " drawn"]  # Σ|U(S)| of the mean against it


class FigureOfSamples(NamedTuple):
    """What a figure is the mean of, for each baseline and sample, and the samples, whose owners it counts for."""

    values: Float[Tensor, "baselines samples"]
    rows: Int[Tensor, " samples"]


class _Repeated:
    """Samples that are asked once for each of several baselines."""

    def __init__(self, rows: Int[Tensor, " samples"], times: int) -> None:
        self.times = times
        self.rows = self.of(rows)

    def of(self, own: Shaped[Tensor, "samples *axes"]) -> Shaped[Tensor, "asked *axes"]:
        """Repeat what belongs to the samples."""
        if self.times == 1:
            return own
        return own.repeat(self.times, *[1] * (own.ndim - 1))

    def own(self, coalitions: Bool[Tensor, "*samples coalitions players"]) -> Tensor:
        """Repeat coalitions, if each sample has its own."""
        return coalitions if coalitions.ndim == 2 else self.of(coalitions)

    def split(self, values: Float[Tensor, " asked"]) -> Float[Tensor, "baselines samples"]:
        """Return the values of each baseline."""
        return values.unflatten(0, (self.times, -1))


class FaithfulObjective:
    """Concision, evidence and noise of baselines, for all samples, those of a class, or one sample.

    ``owner`` is the number of each sample's owner, or −1 if its baseline is not learned here. Scales are measured at
    the ``mean``. A step takes about ``rows`` evaluations. White noise lies ``within`` a range. Values come from a
    ``source``, by default from the model.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        owner: Tensor,
        seed: int,
        rows: int,
        weights: Weights,
        mean: Tensor,
        within: DataRange,
        source: ValueSource | None = None,
    ) -> None:
        self.evaluator = evaluator
        self.source = EvaluatedValues(evaluator) if source is None else source
        self.owner = owner
        self.seed = seed
        self.rows = rows
        self.weights = weights
        self.within = within
        self.inputs = self.source.encode(evaluator.x)
        self.mean = self.source.encode(mean.unflatten(0, evaluator.players.shape).to(evaluator.x)[None])
        self.owners = int(owner.max()) + 1
        self.players = len(evaluator.players)
        self.evaluations = 0
        self.learned, self.aside = keep_aside(owner, seed)
        self.for_all = int(owner.min()) == int(owner.max())  # one baseline for all samples
        self.judged_all = True  # whether there was time to judge on all samples kept aside
        self._share_rows()
        self.score = Score(evaluator.readout, self._full_values(), evaluator.expected_values())
        self._mean_baselines = mean.expand(self.owners, -1)
        self.scales = self._measure_scales(self._mean_baselines)
        if isinstance(self.source, EvaluatedValues):
            self.source.recompute = evaluator.x.is_floating_point() and self._holds_too_much()

    def _share_rows(self) -> None:
        """Distribute the rows of a step among tables, scored coalitions and fully masked samples."""
        if self.source.sums_are_exact:
            self.cube = self.players
            self.table_rows = self.source.table_rows
            self.batch = max(_FEWEST_SAMPLES, self.owners, self.rows // self.table_rows)
        else:
            self.cube, self.batch = _cube_and_batch(self.players, self.rows, self.owners)
            self.table_rows = 2**self.cube
        self.whole = self.cube == self.players
        self.empty_count = min(_MOST_EMPTY, max(_FEWEST_SAMPLES, self.owners, int(_EMPTY_SHARE * self.rows)))
        scored_count = int(_SCORED_SHARE * self.rows / _SCORED_COALITIONS)
        self.scored_count = max(_FEWEST_SAMPLES, self.owners, scored_count)
        self.noise_count = max(1, self.batch // _SAMPLES_PER_NOISE)
        tables = self.batch
        if self.weights.noise:
            tables += 2 * self.noise_count  # of the baselines and of the mean
        scored_rows = self.scored_count * _SCORED_COALITIONS
        self.rows_per_step = tables * self.table_rows + scored_rows + min(self.empty_count, len(self.learned))

    @property
    def rows_per_comparison(self) -> int:
        """About how many rows it takes to compare a baseline with others during the search."""
        samples = max(self.owners, min(len(self.learned), _COMPARED_STEPS * self.rows // self.table_rows))
        batches = math.ceil(samples / self.batch)
        of_tables = samples * self.table_rows
        if self.weights.noise:
            of_tables += batches * self.noise_count * self.table_rows
        of_scores = batches * (self.scored_count * _SCORED_COALITIONS + len(self.learned))
        return of_tables + of_scores

    def rows_per_sample(self, cube: int) -> int:
        """Return about how many rows it takes to compute the loss on a sample, within cubes of so many players."""
        tables = 2 if self.weights.noise else 1
        return tables * 2**cube + _SCORED_COALITIONS + _EMPTY_PER_SAMPLE

    def on_fewer_samples(self, samples: int, cube: int) -> FaithfulObjective:
        """Return the loss on batches of this many samples, within cubes of at most so many players.

        Its scales are measured again if cubes are smaller.
        """
        smaller = copy.copy(self)
        vars(smaller).pop("compared_batches", None)
        smaller.evaluations = 0
        smaller.batch = samples
        smaller.scored_count = samples
        smaller.noise_count = samples  # few draws of noise would make errors large
        smaller.empty_count = min(_MOST_EMPTY, _EMPTY_PER_SAMPLE * samples)
        if cube < self.cube and not self.source.sums_are_exact:
            smaller.cube = cube
            smaller.table_rows = 2**cube
            smaller.whole = False
            smaller.scales = smaller._measure_scales(self._mean_baselines)
        return smaller

    @property
    def settings(self) -> tuple[Any, ...]:
        """What the loss depends on in addition to the model and the samples; part of a checkpoint's fingerprint."""
        return ("faithful", self.weights.evidence, self.weights.noise, self.cube, self.batch, self.seed)

    @property
    def record(self) -> dict[str, Any]:
        """The fields of the record of learning that the loss knows."""
        return {
            "exact": self.whole,
            "orders": self.cube,
            "kept_aside": len(self.aside),
            "weights": (self.weights.evidence, self.weights.noise),
            "trees": self.source.tree_count,
            "notes": self.source.notes,
        }

    @property
    def evaluated_rows(self) -> int:
        """The rows that the model evaluated for values: none if they come from leaves."""
        return 0 if self.source.tree_count else self.evaluations

    def _full_values(self) -> Float[Tensor, "samples *features"]:
        """Evaluate all samples with all players present."""
        inputs = self.inputs
        everyone = torch.ones(1, self.players, dtype=torch.bool)
        return self._values(inputs, inputs, everyone, torch.arange(len(inputs)))[:, 0]

    def draw(self, pool: Tensor, generator: torch.Generator, count: int | None = None) -> Batch:
        """Draw the same number of samples for each owner from a pool, and what they are evaluated on."""
        rows = self._draw_rows(pool, self.batch if count is None else count, generator)
        coalitions = self._draw_tables(len(rows), generator)
        scored_rows = self._draw_rows(pool, self.scored_count, generator)
        scored = self._draw_scored(len(scored_rows), generator)
        empty = self._draw_empty(pool, generator)
        references = self._draw_noise(min(len(rows), self.noise_count), generator)
        return Batch(
            rows=rows,
            coalitions=coalitions,
            scored_rows=scored_rows,
            scored=scored,
            empty=empty,
            references=references,
            usual=self._strength_of_mean(references, coalitions, rows),
        )

    def _draw_rows(self, pool: Tensor, count: int, generator: torch.Generator) -> Tensor:
        """Draw samples without repetition as far as possible, the owners in turn."""
        shuffled = pool[torch.randperm(len(pool), generator=generator)]
        if self.owners > 1:  # the first of every owner, then the second of every owner, …
            order = torch.argsort(self.owner[shuffled], stable=True)
            counts = self.owner[shuffled].bincount(minlength=self.owners)
            turn = torch.cat([torch.arange(int(number)) for number in counts])
            shuffled = shuffled[order][torch.argsort(turn, stable=True)]
        repetitions = count_blocks(count, len(shuffled))
        return shuffled.repeat(repetitions)[:count]

    def _draw_tables(self, samples: int, generator: torch.Generator) -> Tensor:
        """Return all coalitions, the same for all samples; or those of a drawn cube for each sample."""
        if self.source.sums_are_exact:
            return torch.zeros(0, self.players, dtype=torch.bool)  # none is needed
        if self.whole:
            return enumerate_coalitions(self.players)
        cubes = Penalty("interactions", self.players, self.players, cube=self.cube)
        return cubes.subcubes(samples, 2**self.cube, generator).coalitions

    def _draw_scored(self, samples: int, generator: torch.Generator) -> Bool[Tensor, "samples scored players"]:
        """Draw the coalitions whose predictions are scored, with sizes from 0 to n, evenly spread."""
        jitter = torch.rand(samples, _SCORED_COALITIONS, generator=generator)
        levels = (torch.arange(_SCORED_COALITIONS) + jitter) / _SCORED_COALITIONS
        sizes = (levels * (self.players + 1)).long().clamp_max(self.players).flatten()
        return draw_coalitions(self.players, sizes, generator).unflatten(0, (samples, _SCORED_COALITIONS))

    def _draw_noise(self, count: int, generator: torch.Generator) -> Shaped[Tensor, "drawn *entries"]:
        """Draw white noise in the range of the samples, encoded."""
        like = self.evaluator.x[:1].expand(count, *self.evaluator.x.shape[1:])
        return self.source.encode(white_noise(self.within, like, generator))

    def _draw_empty(self, pool: Tensor, generator: torch.Generator) -> Int[Tensor, "2 empty"]:
        """Draw the samples whose baselines are scored with all players absent, and those they are scored on."""
        owned = self._draw_rows(pool, min(self.empty_count, len(pool)), generator)
        if self.for_all:
            return torch.stack([owned, owned])
        # If there are several baselines, each is scored on samples of all owners, so that it does not reveal its own.
        anyone = torch.randint(len(self.owner), owned.shape, generator=generator)
        return torch.stack([owned, anyone])

    def values_between(self, rows: Int[Tensor, " rows"], others: Int[Tensor, " rows"], coalitions: Tensor) -> Tensor:
        """Evaluate coalitions of samples whose absent players have the values of other samples."""
        return self._values(self.inputs[rows], self.inputs[others], coalitions, rows)

    def _values(self, present: Tensor, absent: Tensor, coalitions: Tensor, rows: Tensor) -> Tensor:
        """Evaluate coalitions of inputs whose absent players are replaced by other inputs."""
        self.evaluations += len(present) * coalitions.shape[-2]
        return self.source.values(present, absent, coalitions, rows)

    def _strengths(self, present: Tensor, absent: Tensor, coalitions: Tensor, rows: Tensor) -> Tensor:
        """Sum |U(S)| of inputs whose absent players are replaced by other inputs."""
        self.evaluations += len(present) * self.table_rows
        return self.source.strength(present, absent, coalitions, rows)

    def figures(self, baseline: Baselines, batch: Batch) -> Figures:
        """Compute the figures of the loss for each owner, and the strength of the mean in white noise."""
        noise_of_mean = self.mean_by_owner(batch.usual, batch.rows[: len(batch.usual)])
        return torch.stack([*self._measure(baseline, batch), noise_of_mean])

    def _measure(self, baseline: Baselines, batch: Batch) -> Iterator[Owners]:
        """Compute one by one: concision, score over sizes, score at ∅ above the prior, strength in white noise."""
        for figure in self.figures_of_samples(baseline[None], batch):
            yield self.mean_by_owner(figure.values[0], figure.rows)

    def figures_of_samples(self, baselines: SeveralBaselines, batch: Batch) -> Iterator[FigureOfSamples]:
        """Compute what the figures are means of, one by one, for several baselines on the same draws."""
        yield self._concision(baselines, batch)
        yield self._score_over_sizes(baselines, batch)
        yield self._excess_at_nothing(baselines, batch)
        yield self._noise(baselines, batch)

    def _concision(self, baselines: SeveralBaselines, batch: Batch) -> FigureOfSamples:
        """Compute Σ|U(S)| of samples."""
        rows = batch.rows
        asked = _Repeated(rows, len(baselines))
        stand_ins = self._stand_ins(baselines, rows)
        coalitions = asked.own(batch.coalitions)
        strengths = self._strengths(asked.of(self.inputs[rows]), stand_ins, coalitions, asked.rows)
        return FigureOfSamples(asked.split(strengths), rows)

    def _score_over_sizes(self, baselines: SeveralBaselines, batch: Batch) -> FigureOfSamples:
        """Compute the score of masked predictions over all coalition sizes."""
        rows = batch.scored_rows
        asked = _Repeated(rows, len(baselines))
        stand_ins = self._stand_ins(baselines, rows)
        values = self._values(asked.of(self.inputs[rows]), stand_ins, asked.own(batch.scored), asked.rows)
        return FigureOfSamples(asked.split(self.score(values, asked.rows).mean(1)), rows)

    def _excess_at_nothing(self, baselines: SeveralBaselines, batch: Batch) -> FigureOfSamples:
        """Compute how far the score with all players absent exceeds that of the best constant prediction."""
        owned, scored_on = batch.empty
        asked = _Repeated(scored_on, len(baselines))
        nobody = torch.zeros(1, self.players, dtype=torch.bool)
        stand_ins = self._stand_ins(baselines, owned)
        values = self._values(asked.of(self.inputs[scored_on]), stand_ins, nobody, asked.rows)
        score = self.score(values, asked.rows)[:, 0]
        return FigureOfSamples(asked.split(score - self.score.prior[asked.rows]), owned)

    def _noise(self, baselines: SeveralBaselines, batch: Batch) -> FigureOfSamples:
        """Compute Σ|U(S)| of the baselines themselves against white noise; if it has no weight, use the mean's."""
        rows = batch.rows[: len(batch.usual)]
        if not self.weights.noise:
            return FigureOfSamples(batch.usual.expand(len(baselines), -1), rows)
        asked = _Repeated(rows, len(baselines))
        strengths = self._strengths(
            self._stand_ins(baselines, rows),
            asked.of(batch.references),
            asked.own(self._coalitions_of_noise(batch)),
            asked.rows,
        )
        return FigureOfSamples(asked.split(strengths), rows)

    def _stand_ins(self, baselines: SeveralBaselines, rows: Tensor) -> Tensor:
        """Return the baseline of each sample, encoded, first of the first baselines, then of the next."""
        return torch.cat([self.source.stand_ins(baseline, self.owner[rows]) for baseline in baselines])

    def _strength_in_noise(self, states: Tensor, batch: Batch) -> Float[Tensor, " drawn"]:
        """Measure Σ|U(S)| of inputs against the white noise of a batch; if noise has no weight, use the mean's."""
        if not self.weights.noise:
            return batch.usual
        return self._strengths_in_noise(states, batch.references, batch.coalitions, batch.rows)

    def _strength_of_mean(self, references: Tensor, coalitions: Tensor, rows: Tensor) -> Float[Tensor, " drawn"]:
        """Measure Σ|U(S)| of the mean against white noise beside the first samples; 1 if noise has no weight."""
        if not self.weights.noise:
            return torch.ones(len(references)).double()
        return self._strengths_in_noise(self.mean.expand_as(references), references, coalitions, rows)

    def _strengths_in_noise(
        self, states: Tensor, references: Tensor, coalitions: Tensor, rows: Tensor
    ) -> Float[Tensor, " drawn"]:
        """Measure Σ|U(S)| of inputs against white noise beside the first samples."""
        count = len(references)
        return self._strengths(states, references, coalitions if self.whole else coalitions[:count], rows[:count])

    def _coalitions_of_noise(self, batch: Batch) -> Tensor:
        """Return the coalitions of the tables of white noise."""
        return batch.coalitions if self.whole else batch.coalitions[: len(batch.references)]

    def mean_by_owner(self, values: Float[Tensor, " samples"], rows: Tensor) -> Owners:
        """Average over the samples of each owner; 0 for owners without one."""
        owner = self.owner[rows]
        counts = owner.bincount(minlength=self.owners).clamp_min(1)
        return torch.zeros(self.owners).double().index_add(0, owner, values) / counts

    def losses(self, figures: Figures) -> Owners:
        """Add up the terms of each owner; a term must be 0 where its figure is 0, as `gradient` relies on it."""
        concision_scale, score_scale, noise_scale = self.scales
        total = figures[_CONCISION] / concision_scale
        if self.for_all:  # the baseline of a class could improve predictions by revealing the class
            total = total + self.weights.evidence * figures[_SCORE] / score_scale
        excess = (figures[_EXCESS] - _ALLOWED_EXCESS).clamp_min(0)
        total = total + self.weights.evidence * _EXCESS_WEIGHT * excess
        allowed_noise = (figures[_NOISE_OF_MEAN] * noise_scale).clamp_min(_TINY)
        return total + self.weights.noise * (figures[_NOISE] / allowed_noise - 1).clamp_min(0)

    def _measure_scales(self, mean: Baselines) -> Float[Tensor, " 3"]:
        """Measure concision and score at the mean, and the strength of white noise as a share of the mean's, or 1."""
        figures = []
        floors = []
        for number in range(_SCALE_BATCHES):
            batch = self.draw(self.learned, seeded(self.seed, "scales", number))
            figures.append(self.figures(mean, batch).mean(1))
            like = self.evaluator.x[:1].expand(len(batch.references), *self.evaluator.x.shape[1:])
            states = self.source.encode(white_noise(self.within, like, seeded(self.seed, "states", number)))
            floors.append(self._strength_in_noise(states, batch).mean())
        averages = torch.stack(figures).mean(0).clamp_min(_TINY)
        noise_scale = (torch.stack(floors).mean() / averages[_NOISE_OF_MEAN]).clamp(_TINY, 1)
        return torch.stack([averages[_CONCISION], averages[_SCORE], noise_scale])

    def _holds_too_much(self) -> bool:
        """Return whether the activations of a batch's tables would take too much memory."""
        try:
            # The weights, which do not grow with the rows, cancel.
            of_one_row = self._held_bytes(rows=1)
            bytes_per_row = self._held_bytes(rows=2) - of_one_row
        except RuntimeError:  # no gradient: nothing is held
            return False
        return bytes_per_row * self.batch * self.table_rows > _HELD_BYTES

    def _held_bytes(self, rows: int) -> int:
        """Count the bytes that are held for the gradient of this many rows."""
        held_bytes = 0

        def count(tensor: Tensor) -> Tensor:
            nonlocal held_bytes
            held_bytes += tensor.nbytes
            return tensor

        self.evaluator.limit.check()
        counting = torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor)
        with self.evaluator.task.evaluation_mode(gradient=True), counting:
            self.evaluator.task.row_count.add(rows)
            self.evaluator.model(self.evaluator.x[[0] * rows].requires_grad_())
        return held_bytes

    def gradient(self, baseline: Baselines, stream: int, step: int) -> tuple[Baselines, float]:
        """Compute the gradient of the loss on a fresh batch, and the loss; a stream and step fix the draw.

        The loss is a sum of terms, each of one figure, and each term is 0 where its figure is 0: see `losses`. So the
        loss of one figure, with 0 for all others, is its term alone. Each term is backpropagated before the next
        figure is computed, so that the activations of one figure are in memory at a time.
        """
        leaf = baseline.detach().clone().requires_grad_()
        batch = self.draw(self.learned, seeded(self.seed, stream, step))
        no_figures = torch.zeros(_FIGURES, self.owners).double()
        # This one is not a term: the noise of the baseline is measured relative to it, and it has no gradient.
        no_figures[_NOISE_OF_MEAN] = self.mean_by_owner(batch.usual, batch.rows[: self.noise_count])
        total = 0.0
        with self.evaluator.task.evaluation_mode(gradient=True):
            for number, figure in enumerate(self._measure(leaf, batch)):
                only_this_figure = no_figures.index_copy(0, torch.tensor([number]), figure[None])
                term = self.losses(only_this_figure).sum()
                if term.requires_grad:
                    term.backward()
                total += float(term.detach())
        slope = torch.zeros_like(baseline) if leaf.grad is None else leaf.grad
        return slope, total / self.owners

    def judge(self, baselines: Sequence[Baselines]) -> Float[Tensor, "baselines owners"]:
        """Compute losses on the held-out samples, with the same coalitions and noise for all baselines.

        If the time limit is reached, the losses are those of the finished batches. If there are none, raise
        `OutOfTime`.
        """
        totals = [torch.zeros(_FIGURES, self.owners).double() for _ in baselines]
        weight = 0
        self.judged_all = True
        try:
            for batch in self._fixed(self.aside, _JUDGED_STEPS * self.rows, "judged"):
                figures = [self.figures(baseline, batch) for baseline in baselines]
                for total, measured in zip(totals, figures, strict=True):
                    total += len(batch.rows) * measured
                weight += len(batch.rows)
        except OutOfTime:
            if not weight:
                raise
            self.judged_all = False
        return torch.stack([self.losses(total / weight) for total in totals])

    def judged_rows(self, baselines: int) -> int:
        """Estimate how many rows it takes to judge this many baselines."""
        return _JUDGED_STEPS * self.rows_per_step * baselines

    def running_assessments(self, baseline: Baselines) -> Iterator[Assessment]:
        """Compute losses on more and more of the samples to learn from, at last on all that are compared."""
        parts = _PARTS if self.owners == 1 else (1.0,)
        for losses in self._running(baseline, self.compared_batches, parts):
            yield Assessment(baseline, losses, losses)

    @cached_property
    def compared_batches(self) -> list[Batch]:
        """The batches that baselines are compared on."""
        return list(self._fixed(self.learned, _COMPARED_STEPS * self.rows, "compared"))

    def _fixed(self, pool: Tensor, rows: int, name: str) -> Iterator[Batch]:
        """Draw the same batches in every call, of about this many rows in all."""
        count = max(self.owners, min(len(pool), rows // self.table_rows))
        generator = seeded(self.seed, name)
        order = self._draw_rows(pool, count, generator)
        if self.owners > 1:
            yield self.draw(order, generator, count)
            return
        # Predictions with all players absent cost one row each: score them on all samples, those of others too.
        scored_on = pool if self.for_all else torch.arange(len(self.owner))
        empty = torch.stack([pool[:1].expand_as(scored_on), scored_on])
        for part in blocks(count, min(count, self.batch)):
            batch = self.draw(order[part], generator, part.stop - part.start)
            yield batch._replace(empty=empty)

    def _running(self, baseline: Baselines, batches: list[Batch], parts: tuple[float, ...]) -> Iterator[Owners]:
        """Compute the losses of the mean figures over the first part of the batches, then over ever more."""
        total = torch.zeros(_FIGURES, self.owners).double()
        weight = 0
        done = 0
        for part in parts:
            stop = max(1, math.ceil(part * len(batches)))
            for batch in batches[done:stop]:
                total += len(batch.rows) * self.figures(baseline, batch)
                weight += len(batch.rows)
            done = max(done, stop)
            yield self.losses(total / weight)


def _cube_and_batch(players: int, rows: int, owners: int) -> tuple[int, int]:
    """Return how many players vary in a table, and how many samples a step has."""
    most = LARGEST_TABLE if players <= LARGEST_TABLE else _CUBE_PLAYERS
    rows_per_sample = max(1.0, rows / max(_FEWEST_SAMPLES, owners))
    affordable = max(1, int(math.log2(rows_per_sample)))
    cube = min(players, most, affordable)
    return cube, max(_FEWEST_SAMPLES, owners, rows >> cube)
