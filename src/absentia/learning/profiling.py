"""Profiling learned values, player by player, within a modest share of the evaluations of the search.

If all players are too many, those that seemed not to matter come first. Work ends at the time limit and on Ctrl-C,
and the players that are left have no profile.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from absentia.coalitions import draw_coalitions
from absentia.data import seeded
from absentia.learning.closer_points import closer_points
from absentia.learning.faithful import FaithfulObjective
from absentia.learning.pace import StopLearning
from absentia.learning.paper_objective import PaperObjective
from absentia.learning.profile_paths import MOST_POINTS, Path, player_path
from absentia.learning.profiled_losses import ProfiledLoss, profiled_loss
from absentia.learning.search import Search
from absentia.learning.space import Baselines
from absentia.learning.sweeps import MAX_SWEPT
from absentia.learning.value_profiles import ComparedLosses, ProfilePath, SkipReason, ValueProfile, ValueProfiles
from absentia.runtime.limits import OutOfTime

# Profiles take at most this share of the search's rows. A gradient takes about as long as three evaluations, a sweep
# tries this many values of a coordinate and drops most of them early, and a search sweeps at least so many times.
SHARE_OF_SEARCH = 0.12
_ROWS_PER_GRADIENT = 3
_VALUES_PER_SWEEP = 10
_SHARE_NOT_DROPPED = 0.3
_SWEEPS_AFTER_STEPS = 2
_SWEEPS_WITHOUT_STEPS = 6
_STEPS_PER_COMPARISON = 5

# Minima away from the learned value are looked at more closely in so many rounds.
_ROUNDS = 3

# The ends of the range in which the loss is as low are found by halving gaps in so many rounds, down to this share of
# the width of all values.
_ROUNDS_AT_EDGES = 2
_SMALL_GAP = 1 / 20
_MOST_ADDED = 4

# Whether a player is additive is measured on at most this many samples, in this many contexts.
_SAMPLES_OF_CONTEXTS = 32
_CONTEXTS = 8

# A player is additive if its interactions change its effect by less than this share on average.
_INTERACTING_SHARE = 0.01

# Roundings of the model's type by which equal values may differ, and the share of the loss by which equal losses may.
_ROUNDINGS = 64
_LEAST_ROUNDING = 1e-9

# The stream of random numbers of the contexts.
_STREAM = "contexts"


class Profiling(NamedTuple):
    """The profiles of the learned values, and whether the user interrupted the work."""

    profiles: ValueProfiles
    interrupted: bool


class _Measured(NamedTuple):
    """The profile of one player: the losses at the points minus those at the learned values, and their errors."""

    points: Float[Tensor, " points"]
    excess: Float[Tensor, "owners points"]
    errors: Float[Tensor, "owners points"]
    losses: Float[Tensor, " owners"]  # at the learned values
    is_additive: bool

    def as_profile(self, learned: float) -> ValueProfile:
        """Return the profile of the only owner so far."""
        return ValueProfile(self.points, self.excess[0], self.errors[0], learned, float(self.losses[0]))

    def with_points(self, points: Float[Tensor, " added"], compared: ComparedLosses) -> _Measured:
        """Return the profile with more points."""
        excess = compared.losses[:, :-1] - compared.losses[:, -1:]
        together = torch.cat([self.points, points])
        order = together.argsort()
        return self._replace(
            points=together[order],
            excess=torch.cat([self.excess, excess], dim=1)[:, order],
            errors=torch.cat([self.errors, compared.errors[:, :-1]], dim=1)[:, order],
        )


def profile_values(run: Search, learned: Baselines) -> Profiling:
    """Profile the learned values of each player, as far as evaluations, the time limit and the user allow."""
    players = run.objective.evaluator.players
    paths = [player_path(run.space, players, player, learned) for player in range(len(players))]
    measured: dict[int, _Measured] = {}
    reasons = [path.reason for path in paths]
    order = _players_by_leverage(run, paths)
    left_out = SkipReason.COST
    interrupted = False
    loss: ProfiledLoss | None = None
    try:
        run.pace.check_time()
        affordable = _affordable(run, learned, paths, order)
        loss = affordable.loss
        for player in order[: affordable.players]:
            if loss is None:
                break
            run.pace.check_time()
            measured[player] = _measure(run, loss, paths[player], player)
    except (KeyboardInterrupt, StopLearning, OutOfTime) as error:
        interrupted = isinstance(error, KeyboardInterrupt) or (isinstance(error, StopLearning) and error.stop.by_user)
        left_out = SkipReason.INTERRUPTED if interrupted else SkipReason.TIME
    for player in order:
        if player not in measured:
            reasons[player] = left_out
    return Profiling(_profiles(run, paths, reasons, measured, loss), interrupted)


def _players_by_leverage(run: Search, paths: list[Path]) -> list[int]:
    """Return the players that have a path, those first that mattered least during the search."""
    profiled = [player for player, path in enumerate(paths) if path.reason is None]

    def most_leverage(player: int) -> float:
        return float(run.leverage[run.space.coordinate[paths[player].entries]].max())

    return sorted(profiled, key=most_leverage)


class _Affordable(NamedTuple):
    """The loss to profile with, and the number of players that are affordable."""

    loss: ProfiledLoss | None
    players: int


def _affordable(run: Search, learned: Baselines, paths: list[Path], order: list[int]) -> _Affordable:
    """Return a loss on as many samples as all players together can afford, or on the fewest for some of them."""
    budget = SHARE_OF_SEARCH * _rows_of_search(run)
    points = sum(len(paths[player].points) + _MOST_ADDED + 1 for player in order)
    if not order:
        return _Affordable(None, 0)
    loss = profiled_loss(run.objective, learned, int(budget / points))
    if loss is not None:
        return _Affordable(loss, len(order))
    # Fewer players, of which each gets more rows: halve their number until enough samples are affordable.
    players = len(order) // 2
    while players:
        loss = profiled_loss(run.objective, learned, int(budget / (players * (MOST_POINTS + _MOST_ADDED + 1))))
        if loss is not None:
            return _Affordable(loss, players)
        players //= 2
    return _Affordable(None, 0)


def _rows_of_search(run: Search) -> float:
    """Estimate how many evaluated rows take as long as the search, from its plan."""
    objective = run.objective
    plan = run.plan
    swept = len(run.sweeps.coordinates)
    if swept > MAX_SWEPT:
        swept = 0
    steps = plan.steps + (plan.steps_again if swept else 0)
    sweeps = _SWEEPS_AFTER_STEPS if steps else _SWEEPS_WITHOUT_STEPS
    of_sweeps = sweeps * swept * _VALUES_PER_SWEEP * _SHARE_NOT_DROPPED * objective.rows_per_comparison
    if isinstance(objective, FaithfulObjective):
        return _ROWS_PER_GRADIENT * steps * objective.rows_per_step + of_sweeps
    of_steps = _ROWS_PER_GRADIENT * steps * objective.rows_per_gradient
    return of_steps + steps / _STEPS_PER_COMPARISON * objective.rows_per_comparison + of_sweeps


def _measure(run: Search, loss: ProfiledLoss, path: Path, player: int) -> _Measured:
    """Compute the losses along a player's path, closer at other minima, and whether the player is additive."""
    compared = loss.compare(path.baselines(loss.learned))
    measured = _Measured(
        points=path.points,
        excess=compared.losses[:, :-1] - compared.losses[:, -1:],
        errors=compared.errors[:, :-1],
        losses=compared.losses[:, -1],
        is_additive=_is_additive(run.objective, loss, player),
    )
    if path.kind is not ProfilePath.VALUES or len(measured.excess) > 1:
        return measured
    learned = float(path.learned[0])
    for turn in range(_ROUNDS):
        closer = closer_points(measured.points, measured.excess[0], learned)
        if turn < _ROUNDS_AT_EDGES:
            closer = torch.cat([closer, _middles_of_edges(measured.as_profile(learned))]).sort().values
        if not len(closer):
            break
        added = loss.compare(path.at(closer).baselines(loss.learned))
        measured = measured.with_points(closer, added)
    return measured


def _middles_of_edges(profile: ValueProfile) -> Float[Tensor, " middles"]:
    """Return the middles of the gaps at the ends of the range in which the loss is as low, unless they are small."""
    width = float(profile.points[-1] - profile.points[0])
    middles = [(low + high) / 2 for low, high in profile.edges if high - low > _SMALL_GAP * width]
    return torch.tensor(middles).double()


def _is_additive(objective: PaperObjective | FaithfulObjective, loss: ProfiledLoss, player: int) -> bool:
    """Return whether a player's effect is the same in drawn contexts: then no interaction holds it.

    The values of other samples stand in for absent players, because learned values may hide interactions.
    """
    players = len(objective.evaluator.players)
    if players == 1 or len(loss.rows) == 1:
        return False
    rows = loss.rows[:_SAMPLES_OF_CONTEXTS]
    without = _contexts(players, player, objective.seed)
    with_player = without.clone()
    with_player[:, player] = True
    values = loss.values(rows, rows.roll(1), torch.cat([without, with_player])).double().cpu()
    before, after = values.split(len(without), dim=1)
    effects = after - before  # (samples, contexts, …)
    changes = (effects - effects[:, :1]).abs().mean()
    rounding = _ROUNDINGS * _precision(objective) * float(values.abs().max())
    size = float(effects.abs().mean())
    return size > rounding and float(changes) <= _INTERACTING_SHARE * size + rounding


def _contexts(players: int, player: int, seed: int) -> Tensor:
    """Return contexts without a player, of sizes that are spread evenly from nobody to everybody else."""
    sizes = torch.linspace(0, players - 1, _CONTEXTS).round().long()
    others = draw_coalitions(players - 1, sizes, seeded(seed, _STREAM, player))
    nobody = torch.zeros(len(others), 1, dtype=torch.bool)
    return torch.cat([others[:, :player], nobody, others[:, player:]], dim=1)


def _precision(objective: PaperObjective | FaithfulObjective) -> float:
    """Return the relative precision of the model's values."""
    return torch.finfo(objective.evaluator.task.probe.dtype).eps


def _profiles(
    run: Search,
    paths: list[Path],
    reasons: list[SkipReason | None],
    measured: dict[int, _Measured],
    loss: ProfiledLoss | None,
) -> ValueProfiles:
    """Collect the profiles of all players."""
    owners = run.objective.owners
    shape = (owners, len(paths), max((len(profile.points) for profile in measured.values()), default=0))
    points, excess, errors = (torch.full(shape, math.nan).double() for _ in range(3))
    losses = torch.full((owners,), math.nan).double()
    additive = torch.zeros(len(paths), dtype=torch.bool)
    for player, profile in measured.items():
        own = slice(len(profile.points))
        points[:, player, own] = profile.points
        excess[:, player, own] = profile.excess
        errors[:, player, own] = profile.errors
        additive[player] = profile.is_additive
        losses = profile.losses
    return ValueProfiles(
        points=points,
        excess=excess,
        errors=errors,
        learned=torch.stack([path.learned for path in paths], dim=1),
        losses=losses,
        additive=additive,
        paths=tuple(path.kind for path in paths),
        reasons=tuple(reasons),
        rounding=max(_LEAST_ROUNDING, _ROUNDINGS * _precision(run.objective)),
        samples=0 if loss is None else len(loss.rows),
        evaluations=0 if loss is None else loss.evaluations,
    )
