"""The default loss of a baseline: a short account of the model by masked predictions that are honest.

With the players' absence represented by a baseline b, the loss adds up, each as a multiple of a scale:

- *concision*: Σ|U(S)| of samples, over Σ|U(S)| at the mean;
- *evidence*: the proper score of masked predictions over all coalition sizes, over the score at the mean; and what
  the score with all players absent has above that of the best constant prediction, beyond a small allowance;
- *noise*: Σ|U(S)| of b itself against white noise, as far as it exceeds that of the mean, or that of white noise
  if this is lower.

All of it comes from the values of small fresh batches: whole tables of a few samples, or small sub-cubes of many,
over drawn contexts, if there are more players.
"""

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple, TypeAlias

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from absentia.absences.protocol import StandIns
from absentia.coalitions import draw_coalitions, enumerate_coalitions, moebius
from absentia.data import DataRange, blocks, seeded, white_noise
from absentia.evaluation import Evaluator
from absentia.learning.penalties import Baselines, Found, Owners, Penalty
from absentia.learning.processes import shared_values
from absentia.readouts import Score
from absentia.runtime.limits import OutOfTime
from absentia.runtime.modes import evaluation_mode

LARGEST_TABLE, _CUBE = 16, 8  # players whose coalitions are all evaluated, and those of a cube if there are more
_FEWEST = 4  # samples of a step
# Masked predictions are scored on this many coalitions of each of some samples, which take this share of the rows.
_SCORED, _SCORED_SHARE = 16, 1 / 16
# Predictions with all players absent are scored on this many samples at most, and this share of the rows.
_EMPTY, _EMPTY_SHARE = 512, 1 / 8
_ALLOWED, _EMPTY_WEIGHT = 0.2, 1.5  # how far that score may exceed the best constant's, and the weight beyond it
_SCALE_BATCHES = 8  # that the scales are measured on
_TINY = 1e-12  # the least that is divided by
_KEPT_ASIDE = 5  # one of this many samples
_JUDGED = 8  # rows of the comparison of candidates, as a multiple of those of a step
_PARTS = (1 / 8, 1 / 2, 1.0)  # of a comparison's samples: poor candidates are dropped early
# Bytes of activations that may be held for a gradient; beyond these they are computed twice.
_HELD_BYTES = 2**28

Figures: TypeAlias = Float[Tensor, "5 owners"]


class Batch(NamedTuple):
    """Samples and coalitions to evaluate, and the noise that they are compared with."""

    rows: Int[Tensor, " samples"]
    coalitions: Bool[Tensor, "*samples coalitions players"]
    scored_rows: Int[Tensor, " others"]  # samples whose masked predictions are scored
    scored: Bool[Tensor, "others scored players"]
    empty: Int[Tensor, "2 empty"]  # samples whose baselines are used, and samples that they are scored on
    references: Shaped[Tensor, "drawn *entries"]  # white noise, beside the baselines of the first samples
    usual: Float[Tensor, " drawn"]  # Σ|U(S)| of the mean against it


def keep_aside(owner: Int[Tensor, " samples"], seed: int) -> tuple[Tensor, Tensor]:
    """Return the samples to learn from and those to choose on: a fifth of each owner's, or all if they are few."""
    learned, aside, generator = [], [], seeded(seed, "aside")
    for number in range(int(owner.max()) + 1):
        mine = (owner == number).nonzero().flatten()
        mine = mine[torch.randperm(len(mine), generator=generator)]
        count = len(mine) // _KEPT_ASIDE
        learned.append(mine[count:])
        aside.append(mine[:count] if count else mine)
    return torch.cat(learned), torch.cat(aside)


class Faithful:
    """Concision, evidence and noise of baselines, for all samples, those of a class, or one sample.

    ``owner`` is the number of each sample's owner, or −1 if its baseline is not learned here. Scales are measured at
    the ``mean``. A step takes about ``rows`` evaluations. White noise lies ``within`` a range.
    """

    def __init__(
        self, evaluator: Evaluator, owner: Tensor, seed: int, rows: int, weights: tuple[float, float], mean: Tensor,
        within: DataRange,
    ) -> None:  # fmt: skip
        self.evaluator, self.owner, self.seed, self.rows = evaluator, owner, seed, rows
        self.evidence, self.noise = weights
        self.owners, self.players, self.evaluations = int(owner.max()) + 1, len(evaluator.players), 0
        self.learned, self.aside = keep_aside(owner, seed)
        self.for_all = int(owner.min()) == int(owner.max())  # one baseline for all samples
        self.cube, self.batch = _cube_and_batch(self.players, rows, self.owners)
        self.whole = self.cube == self.players
        self.within, self.mean = within, mean.unflatten(0, evaluator.players.shape).to(evaluator.x)[None]
        self.emptied = min(_EMPTY, max(_FEWEST, self.owners, int(_EMPTY_SHARE * rows)))
        self.scored = max(_FEWEST, self.owners, int(_SCORED_SHARE * rows / _SCORED))
        self.drawn = max(1, self.batch // 4)  # inputs against white noise
        tables = self.batch + (2 * self.drawn if self.noise else 0)
        self.rows_per_step = tables * 2**self.cube + self.scored * _SCORED + min(self.emptied, len(self.learned))
        self.judged_all = True  # whether there was time to judge on all samples kept aside
        self.recompute, x = False, evaluator.x
        full = self._values(x, x, torch.ones(1, self.players, dtype=torch.bool), torch.arange(len(x)))[:, 0]
        self.score = Score(evaluator.readout, full, evaluator.expected_values())
        self.scales = self._measure_scales(mean.expand(self.owners, -1))
        self.recompute = evaluator.x.is_floating_point() and self._holds_too_much()
        self.settings = ("faithful", *weights, self.cube, self.batch, seed)  # what the loss depends on
        self.record = {"exact": self.whole, "orders": self.cube, "kept_aside": len(self.aside), "weights": weights}

    def draw(self, pool: Tensor, generator: torch.Generator, count: int | None = None) -> Batch:
        """Draw samples from a pool, the same number of each owner's, and what they are evaluated on."""
        rows = self._draw_rows(pool, self.batch if count is None else count, generator)
        if self.whole:
            coalitions = enumerate_coalitions(self.players)
        else:
            cubes = Penalty("interactions", self.players, self.players, cube=self.cube)
            coalitions = cubes.subcubes(len(rows), 2**self.cube, generator).coalitions
        scored_rows = self._draw_rows(pool, self.scored, generator)
        # Sizes from 0 to n, evenly spread.
        steps = (torch.arange(_SCORED) + torch.rand(len(scored_rows), _SCORED, generator=generator)) / _SCORED
        sizes = (steps * (self.players + 1)).long().clamp_max(self.players).flatten()
        scored = draw_coalitions(self.players, sizes, generator).unflatten(0, (len(scored_rows), _SCORED))
        mine = self._draw_rows(pool, min(self.emptied, len(pool)), generator)
        # With several baselines, each is scored on samples of all owners: it must not tell whose it is.
        others = mine if self.for_all else torch.randint(len(self.owner), mine.shape, generator=generator)
        empty = torch.stack([mine, others])
        like = self.evaluator.x[:1].expand(min(len(rows), self.drawn), *self.evaluator.x.shape[1:])
        references = white_noise(self.within, like, generator)
        batch = Batch(rows, coalitions, scored_rows, scored, empty, references, torch.ones(len(like)).double())
        return batch._replace(usual=self._strength_in_noise(self.mean.expand_as(like), batch))

    def _draw_rows(self, pool: Tensor, count: int, generator: torch.Generator) -> Tensor:
        """Draw samples without repetition as far as possible, the owners in turn."""
        shuffled = pool[torch.randperm(len(pool), generator=generator)]
        if self.owners > 1:  # the first of every owner, then the second of every owner, …
            order = torch.argsort(self.owner[shuffled], stable=True)
            counts = self.owner[shuffled].bincount(minlength=self.owners)
            turn = torch.cat([torch.arange(int(number)) for number in counts])
            shuffled = shuffled[order][torch.argsort(turn, stable=True)]
        return shuffled.repeat(-(-count // len(shuffled)))[:count]

    def _values(self, present: Tensor, absent: Tensor, coalitions: Tensor, whose: Tensor) -> Tensor:
        """Evaluate coalitions of inputs whose absent players are replaced by other inputs."""
        self.evaluations += len(present) * coalitions.shape[-2]
        gradient, fill = present.requires_grad or absent.requires_grad, StandIns(present, absent[:, None])
        options = {"gradient": gradient, "recompute": gradient and self.recompute}
        return shared_values(self.evaluator, fill, coalitions, whose, **options).double().cpu()

    def figures(self, baseline: Baselines, batch: Batch) -> Figures:
        """Compute what the loss adds up for each owner, and the strength of the mean in white noise."""
        return torch.stack([*self._measure(baseline, batch), self._mean(batch.usual, batch.rows[: self.drawn])])

    def _measure(self, baseline: Baselines, batch: Batch) -> Iterator[Owners]:
        """Compute one by one: concision, score over sizes, score at ∅ above the prior, strength in white noise."""
        x, shape = self.evaluator.x, self.evaluator.players.shape

        def of(rows: Tensor) -> Tensor:  # converted last, so that the gradient adds up in double precision
            return baseline[self.owner[rows]].unflatten(1, shape).to(x)

        rows = batch.rows
        yield self._mean(_strength(self._values(x[rows], of(rows), batch.coalitions, rows)), rows)
        others = batch.scored_rows
        score = self.score(self._values(x[others], of(others), batch.scored, others), others).mean(1)
        yield self._mean(score, others)
        nobody, (mine, others) = torch.zeros(1, self.players, dtype=torch.bool), batch.empty
        empty = self.score(self._values(x[others], of(mine), nobody, others), others)[:, 0]
        yield self._mean(empty - self.score.prior[others], mine)
        few = rows[: self.drawn]
        yield self._mean(self._strength_in_noise(of(few), batch), few)

    def _strength_in_noise(self, states: Tensor, batch: Batch) -> Float[Tensor, " drawn"]:
        """Measure Σ|U(S)| of inputs against the white noise of a batch; as it is at the mean if it has no weight."""
        if not self.noise:
            return batch.usual
        few = len(batch.references)
        coalitions = batch.coalitions if self.whole else batch.coalitions[:few]
        return _strength(self._values(states, batch.references, coalitions, batch.rows[:few]))

    def _mean(self, values: Float[Tensor, " samples"], rows: Tensor) -> Owners:
        """Average over the samples of each owner; 0 for owners without one."""
        owner = self.owner[rows]
        counts = owner.bincount(minlength=self.owners).clamp_min(1)
        return torch.zeros(self.owners).double().index_add(0, owner, values) / counts

    def losses(self, figures: Figures) -> Owners:
        """Add up the terms of each owner."""
        concision, score, empty, noise, usual = figures
        scales = self.scales[:, None]
        total = concision / scales[0]
        if self.for_all:  # the baseline of a class could make predictions better by telling the class
            total = total + self.evidence * score / scales[1]
        total = total + self.evidence * _EMPTY_WEIGHT * (empty - _ALLOWED).clamp_min(0)
        return total + self.noise * (noise / (usual * scales[2]).clamp_min(_TINY) - 1).clamp_min(0)

    def _measure_scales(self, mean: Baselines) -> Float[Tensor, " 3"]:
        """Measure concision and score at the mean, and the strength of white noise as a share of the mean's, or 1."""
        figures, floors = [], []
        for number in range(_SCALE_BATCHES):
            batch = self.draw(self.learned, seeded(self.seed, "scales", number))
            figures.append(self.figures(mean, batch).mean(1))
            states = white_noise(self.within, batch.references, seeded(self.seed, "states", number))
            floors.append(self._strength_in_noise(states, batch).mean())
        concision, score, _, _, usual = torch.stack(figures).mean(0).clamp_min(_TINY)
        return torch.stack([concision, score, (torch.stack(floors).mean() / usual).clamp(_TINY, 1)])

    def _holds_too_much(self) -> bool:
        """Return whether the activations of a batch's tables would take too much memory."""
        held = [0, 0]  # bytes for one row and for two: the weights, which do not grow with the rows, cancel

        def count(tensor: Tensor) -> Tensor:
            held[number] += tensor.nbytes
            return tensor

        x, hooks = self.evaluator.x, torch.autograd.graph.saved_tensors_hooks
        try:
            for number in range(2):
                self.evaluator.limit.check()
                with evaluation_mode(self.evaluator.model, gradient=True), hooks(count, lambda tensor: tensor):
                    self.evaluator.model(x[[0] * (number + 1)].requires_grad_())
        except RuntimeError:  # no gradient: nothing is held
            return False
        return (held[1] - held[0]) * self.batch * 2**self.cube > _HELD_BYTES

    def gradient(self, baseline: Baselines, stream: int, step: int) -> tuple[Baselines, float]:
        """Compute the gradient of the loss on a fresh batch, and the loss."""
        leaf = baseline.detach().clone().requires_grad_()
        batch = self.draw(self.learned, seeded(self.seed, stream, step))
        nothing = torch.zeros(5, self.owners).double()
        nothing[4] = self._mean(batch.usual, batch.rows[: self.drawn])
        total = 0.0
        with evaluation_mode(self.evaluator.model, gradient=True):
            # The loss is a sum over the figures, so each can be followed back before the next is computed.
            for number, figure in enumerate(self._measure(leaf, batch)):
                term = self.losses(nothing.index_copy(0, torch.tensor([number]), figure[None])).sum()
                if term.requires_grad:
                    term.backward()
                total += float(term.detach())
        return torch.zeros_like(baseline) if leaf.grad is None else leaf.grad, total / self.owners

    def judge(self, baselines: Sequence[Baselines]) -> Float[Tensor, "baselines owners"]:
        """Compute losses on the samples that were kept aside; the same coalitions and noise for all baselines.

        If the time limit is reached, they are those of the batches that are done; without any, raise `OutOfTime`.
        """
        totals = [torch.zeros(5, self.owners).double() for _ in baselines]
        weight = 0
        self.judged_all = True
        try:
            for batch in self._fixed(self.aside, _JUDGED * self.rows, "judged"):
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
        """Return about how many rows it takes to judge this many baselines."""
        return _JUDGED * self.rows_per_step * baselines

    def looks(self, baseline: Baselines) -> Iterator[Found]:
        """Compute losses on ever more of the samples to learn from; the last are on all that are compared."""
        for losses in self._running(baseline, self._compared, _PARTS if self.owners == 1 else (1.0,)):
            yield Found(baseline, losses, losses)

    @cached_property
    def _compared(self) -> list[Batch]:
        return list(self._fixed(self.learned, 4 * self.rows, "compared"))

    def _fixed(self, pool: Tensor, rows: int, name: str) -> Iterator[Batch]:
        """Draw the same batches in every call, of about this many rows in all."""
        count = max(self.owners, min(len(pool), rows // 2**self.cube))
        generator = seeded(self.seed, name)
        order = self._draw_rows(pool, count, generator)
        size = count if self.owners > 1 else min(count, self.batch)
        # Predictions with all players absent cost one row each: score them on all samples, those of others too.
        others = pool if self.for_all else torch.arange(len(self.owner))
        empty = torch.stack([pool[:1].expand_as(others), others])
        for part in blocks(count, size):
            batch = self.draw(order[part], generator, part.stop - part.start)
            yield batch if self.owners > 1 else batch._replace(empty=empty)

    def _running(self, baseline: Baselines, batches: list[Batch], parts: tuple[float, ...]) -> Iterator[Owners]:
        """Compute the losses of the mean figures over the first part of the batches, then over ever more."""
        total, weight, done = torch.zeros(5, self.owners).double(), 0, 0
        for part in parts:
            stop = max(1, math.ceil(part * len(batches)))
            for batch in batches[done:stop]:
                total += len(batch.rows) * self.figures(baseline, batch)
                weight += len(batch.rows)
            done = max(done, stop)
            yield self.losses(total / weight)


def _cube_and_batch(players: int, rows: int, owners: int) -> tuple[int, int]:
    """Return how many players vary in a table, and how many samples a step has."""
    most = LARGEST_TABLE if players <= LARGEST_TABLE else _CUBE
    cube = min(players, most, max(1, int(math.log2(max(1.0, rows / max(_FEWEST, owners))))))
    return cube, max(_FEWEST, owners, rows >> cube)


def _strength(values: Float[Tensor, "samples coalitions *features"]) -> Float[Tensor, " samples"]:
    """Sum up |U(S)| over all S ≠ ∅, and over the features if values have several."""
    return moebius(values.reshape(*values.shape[:2], -1).transpose(1, 2).contiguous())[..., 1:].abs().sum((1, 2))
