"""A search under way: descent and sweeps from every start, the best so far, and the record of how it got there."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from tqdm.auto import tqdm

from absentia.learning.checkpoint import Checkpoint
from absentia.learning.close_calls import CloseCalls
from absentia.learning.comparison import Comparison, mix
from absentia.learning.learned import LearnedBaseline, LearningRecord, Share
from absentia.learning.search import Descent, cosine, sweep
from absentia.learning.space import HELD, Space

# Descent stops after this many checks without an improvement of this share.
PLATEAU_CHECKS, PLATEAU_SHARE = 20, 0.005
STEPS_PER_CHECK = 5
# More parameters than this are left to the gradient alone: a sweep tries about ten values of each.
MAX_SWEPT = 256
MAX_SWEEPS = 14
FIRST_RADIUS, LAST_RADIUS = 0.15, 0.003
# After the gradient, which may come to rest beside a kink, these shares of the range are tried to both sides.
CLOSE_RADII = (0.016, 0.008, 0.004, 0.002)


@dataclass
class Run:
    """A search under way: what baselines are compared on, the best so far, and how it got there."""

    comparison: Comparison
    space: Space
    seed: int
    rate: float
    steps: int
    sweep: bool
    checkpoint: Checkpoint
    best: Tensor | None = None
    best_losses: Tensor | None = None
    best_penalties: Tensor | None = None  # the penalty itself, without what settles ties: this is reported
    finals: dict[str, float] = field(default_factory=dict)  # where each start ended
    converged: bool = True
    stopped: str = "no other value of a single coordinate lowers the loss by 0.1 %"
    end: tuple[Tensor, Tensor, Tensor] | None = None  # the best of the starts' ends: baseline, losses, penalties
    leverage: Tensor | None = None  # the most that each coordinate was ever seen to matter
    history: list[tuple[float, float]] = field(default_factory=list)
    bar: Any = None
    first: Tensor | None = None  # the first start: what players keep whose values make no difference

    def __post_init__(self) -> None:
        self.objective = self.comparison.objective
        self.history = list(self.checkpoint.history)
        if self.history:
            self.objective.evaluations = self.checkpoint.evaluations

    def losses(self, baseline: Float[Tensor, "owners entries"]) -> Float[Tensor, " owners"]:
        """Compute the loss that baselines are compared by, and remember the best of each owner."""
        *_, found = self.looks(baseline)
        return found

    def looks(self, baseline: Float[Tensor, "owners entries"]) -> Iterator[Float[Tensor, " owners"]]:
        """Compute the loss on ever more samples, so that hopeless baselines can be given up on the first of them."""
        for found in self.comparison.looks(baseline):
            yield found[1]
        self._remember(baseline, *found)

    def _remember(self, baseline: Tensor, penalties: Tensor, found: Tensor) -> None:
        """Keep the best of each owner, and the history."""
        if self.best is None or self.best_losses is None or self.best_penalties is None:
            self.best, self.best_losses, self.best_penalties = baseline.clone(), found, penalties
        better = found < self.best_losses
        self.best = torch.where(better[:, None], baseline, self.best)
        self.best_losses = torch.where(better, found, self.best_losses)
        self.best_penalties = torch.where(better, penalties, self.best_penalties)
        least = min([float(self.best_losses.mean()), *(loss for _, loss in self.history[-1:])])
        self.history.append((float(self.objective.evaluations), least))
        if self.bar is not None:
            self.bar.set_postfix(loss=f"{self.history[-1][1]:.4g}", refresh=False)

    def _glance(self, baseline: Tensor) -> float:
        """Compute the loss on the first two parts of the samples alone."""
        return float([found.mean() for found in islice(self.looks(baseline), 2)][-1])

    def search(self, starts: dict[str, Tensor], usual: dict[str, Tensor]) -> None:
        """Search from every start, and from the best of the usual baselines where all of them ended above it."""
        self.first = next(iter(starts.values()))
        stages = (len(starts) + 1) * (self.steps + self.steps // 3 + 2)
        with tqdm(total=stages, desc="learning the baseline", delay=2, disable=None, leave=False) as self.bar:
            try:
                self.losses(self.first)  # so that there is something to return from now on
                # A glance will do to choose one, and costs a quarter.
                best = min(usual, key=lambda name: self._glance(usual[name]))
                before = self.losses(usual[best])
                for number, (name, baseline) in enumerate(starts.items()):
                    self._keep_end(name, self._from_start(number, baseline))
                if self.end is None or bool((before < self.end[1]).any()):
                    self._keep_end(f"{best} (tried)", self._from_start(len(starts), usual[best]))
            except KeyboardInterrupt:
                self.stopped, self.converged = "interrupted; these are the best values so far", False
                return
        if self.end is not None:
            self.best, self.best_losses, self.best_penalties = self.end

    def _keep_end(self, name: str, baseline: Tensor) -> None:
        """Compare where a start ended with where the others did: the result is the best of the ends."""
        *_, (penalties, losses) = self.comparison.looks(baseline)
        self.finals[name] = float(penalties.mean())
        if self.end is None:
            self.end = (baseline, losses, penalties)
        else:
            better = losses < self.end[1]
            self.end = (
                torch.where(better[:, None], baseline, self.end[0]),
                torch.where(better, losses, self.end[1]),
                torch.where(better, penalties, self.end[2]),
            )

    def _from_start(self, number: int, baseline: Tensor) -> Tensor:
        """Go down from one start: the gradient, sweeps as long as they help, the gradient again, and ever closer."""
        baseline = self._descend(f"{number}: descent", baseline, self.steps, self.rate)
        baseline = self._sweeps(number, "sweep", baseline)
        before = float(self.losses(baseline).mean())
        baseline = self._descend(f"{number}: polish", baseline, self.steps // 3, self.rate / 5)
        if float(self.losses(baseline).mean()) < before * (1 - PLATEAU_SHARE):
            baseline = self._sweeps(number, "last sweep", baseline)
        baseline = self._close_in(f"{number}: closing in", baseline)
        return self._settle(number, baseline)

    def _settle(self, number: int, baseline: Tensor) -> Tensor:
        """Look at the close calls of the last wide sweep again, on all samples."""
        calls = self.checkpoint.stages.get(f"{number}: calls")
        return baseline if calls is None else CloseCalls(self.comparison).settle(baseline, calls)

    def _sweeps(self, number: int, name: str, baseline: Tensor) -> Tensor:
        """Try other values of one coordinate at a time, until none helps; keep the close calls of the last time."""
        key = f"{number}: {name}"
        coordinates = len(self.space.low) + len(self.space.choices)
        if not self.sweep or coordinates > MAX_SWEPT:
            why = f"{coordinates} values are too many to sweep" if self.sweep else "no sweep was wanted"
            self.stopped, self.converged = f"the steps are done; {why}", False
            return baseline
        if f"{key}: done" in self.checkpoint.stages:
            return self._resume(f"{key}: done")
        wide, radius = True, FIRST_RADIUS
        for turn in range(MAX_SWEEPS):
            order = torch.randperm(coordinates, generator=torch.Generator().manual_seed(mix(self.seed, 2, turn)))
            found = sweep(self.space, self.looks, baseline, radius, order, wide=wide)
            baseline = found.baseline
            if wide:
                self.checkpoint.stages[f"{number}: calls"] = found.close_calls
            self._note(found.leverage)
            self._advance()
            if wide and not found.improved and (turn or self.steps):
                break
            # Without a gradient, a wide sweep is followed by ever closer looks around what it found; then a wide one
            # again, to see whether that is all.
            if self.steps == 0:
                wide, radius = (True, FIRST_RADIUS) if radius < LAST_RADIUS else (False, radius / 3)
        else:
            self.stopped, self.converged = f"{MAX_SWEEPS} sweeps are done, and the last still lowered the loss", False
        return self._finish(f"{key}: done", baseline)

    def _close_in(self, key: str, baseline: Tensor) -> Tensor:
        """Look ever closer around the values that the gradient left."""
        coordinates = len(self.space.low)
        if self.steps == 0 or not self.sweep or coordinates == 0 or coordinates + len(self.space.choices) > MAX_SWEPT:
            return baseline
        if key in self.checkpoint.stages:
            return self._resume(key)
        for radius in CLOSE_RADII:
            found = sweep(self.space, self.looks, baseline, radius, torch.arange(coordinates), wide=False)
            baseline = found.baseline
            self._note(found.leverage)
        return self._finish(key, baseline)

    def _descend(self, key: str, baseline: Tensor, steps: int, rate: float) -> Tensor:
        """Follow the gradient; keep the best baseline of all checks."""
        if steps == 0 or len(self.space.low) == 0:
            return baseline
        if key in self.checkpoint.stages:
            return self._resume(key)
        state = Descent.start(self.space, baseline)
        if self.checkpoint.descent is not None and self.checkpoint.descent[0] == key:
            state = self.checkpoint.descent[1]
        best = self.losses(state.best)
        gradient = self.comparison.gradient(stream=1 + _number_of(key))
        while state.step < steps and state.stalled < PLATEAU_CHECKS:
            state.advance(self.space, gradient, cosine(state.step, steps, rate))
            self._advance()
            if state.step % STEPS_PER_CHECK == 0 or state.step == steps:
                here = state.baseline(self.space)
                found = self.losses(here)
                state.stalled = 0 if bool((found < best * (1 - PLATEAU_SHARE)).any()) else state.stalled + 1
                state.best = torch.where((found < best)[:, None], here, state.best)
                best = torch.minimum(found, best)
                self.checkpoint.descent = (key, state)
                self.checkpoint.save(self.history, self.objective.evaluations)
        self.checkpoint.descent = None
        self._note(torch.cat([state.square.amax(0).sqrt(), torch.zeros(len(self.space.choices)).double()]))
        return self._finish(key, state.best)

    def _advance(self) -> None:
        if self.bar is not None:
            self.bar.update()

    def _note(self, leverage: Tensor) -> None:
        self.leverage = leverage if self.leverage is None else torch.maximum(self.leverage, leverage)

    def _resume(self, key: str) -> Tensor:
        """Take up what a stage found before an interruption."""
        self._note(self.checkpoint.stages[f"{key}: leverage"])
        return self.checkpoint.stages[key]

    def _finish(self, key: str, baseline: Tensor) -> Tensor:
        self.checkpoint.stages[key] = baseline
        if self.leverage is not None:
            self.checkpoint.stages[f"{key}: leverage"] = self.leverage
        self.checkpoint.save(self.history, self.objective.evaluations)
        return baseline

    def result(self, share: Share, classes: Tensor | None, bounds: str, seconds: float) -> LearnedBaseline:
        """Put the best values and the record together."""
        game, penalty = self.objective.game, self.objective.penalty
        if self.best is None or self.best_penalties is None:
            raise KeyboardInterrupt  # before anything was evaluated: there is no best so far to return
        undetermined = self._undetermined()
        values = self._without_invention(self.best, undetermined).unflatten(1, game.players.shape)
        record = LearningRecord(
            loss=penalty.loss, exact=penalty.exact, orders=penalty.orders, bounds=bounds, starts=tuple(self.finals),
            final_losses=tuple(self.finals.values()), seed=self.seed, samples=len(self.objective.owner),
            converged=self.converged, stopped=self.stopped, evaluations=self.objective.evaluations, seconds=seconds,
            undetermined=undetermined,
        )  # fmt: skip
        history = torch.tensor(self.history).double().reshape(-1, 2)
        values = values[0] if share == "all" else values
        loss = float(self.best_penalties.mean())
        return LearnedBaseline(values, share, classes, game.names, loss, history, record)

    def _without_invention(self, baseline: Tensor, undetermined: tuple[str, ...]) -> Tensor:
        """Leave the players that nothing determines at the first start."""
        game = self.objective.game
        idle = torch.tensor([name in undetermined for name in game.names] + [False])
        first = baseline if self.first is None else self.first
        return torch.where(idle[game.players.labels.flatten()], first, baseline)

    def _undetermined(self) -> tuple[str, ...]:
        """Name the players none of whose values makes a difference, constants aside."""
        if self.leverage is None or self.best_losses is None or len(self.leverage) == 0:
            return ()
        game, space = self.objective.game, self.space
        idle = self.leverage <= 1e-9 * float(self.best_losses.abs().max())
        idle[: len(space.low)] &= space.high > space.low
        labels = game.players.labels.flatten()
        coordinate = space.parameter.clone()
        for number, choice in enumerate(space.choices):
            coordinate[choice.entries] = len(space.low) + number
        moved = coordinate != HELD
        matters = torch.zeros(len(game.players), dtype=torch.bool)
        matters[labels[moved & ~idle[coordinate]]] = True
        free = torch.zeros(len(game.players), dtype=torch.bool)
        free[labels[moved & idle[coordinate]]] = True
        return tuple(name for name, f, m in zip(game.names, free, matters, strict=True) if f and not m)


def _number_of(text: str) -> int:
    """Turn a text into a number, the same in every process."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=4).digest(), "big")
