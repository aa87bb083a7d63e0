"""Learning a baseline: the public function, which sets the problem up and hands it to a run."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from absentia.absence import Baseline
from absentia.arrays import Array
from absentia.errors import wrong
from absentia.inference import Model, NumpyModel
from absentia.learning.checkpoint import Checkpoint
from absentia.learning.comparison import EVALUATIONS, Comparison
from absentia.learning.learned import LearnedBaseline, Share
from absentia.learning.objective import Objective
from absentia.learning.penalties import Loss, Penalty, Plan, count_orders
from absentia.learning.quantiles import data_quantiles
from absentia.learning.run import Run
from absentia.learning.samples import Chosen, Pool, collect
from absentia.learning.space import Bounds, Space, Start, make_space, start_baseline
from absentia.masked_model import MaskedModel
from absentia.players import Players
from absentia.readouts import Readout

LEAST_EVALUATIONS = 2**8
# A penalty is exact where all coalitions of all samples, or of so many, can be evaluated in one comparison. Beyond,
# coalitions are drawn: what holds for fewer samples exactly may not hold for others.
MANY_SAMPLES = 32


def learn_baseline(
    model: Model,
    x: Any,
    y: Sequence[int] | Array | None = None,
    *,
    players: Players | None = None,
    readout: Readout | None = None,
    loss: Loss = "interactions",
    orders: float | None = None,
    cube: int | None = None,
    start: Start | Sequence[Start] = "mean",
    bounds: Bounds = "range",
    share: Share = "all",
    tie: Array | None = None,
    held: Array | None = None,
    categorical: Sequence[int | Sequence[int]] = (),
    gradient: bool | None = None,
    samples: int | None = 256,
    evaluations: int | None = None,
    steps: int = 60,
    rate: float = 0.1,
    sweep: bool = True,
    seed: int = 0,
    checkpoint: str | Path | None = None,
) -> LearnedBaseline:
    """Find the baseline values that leave the least signal behind: the minimum of a penalty on low orders.

    ``x`` and ``y`` are tensors, arrays, a Dataset or a DataLoader, of which ``samples`` are used, drawn by ``seed``.
    ``loss`` is "interactions", "shapley" or "marginal" (see `absentia.learning.penalties`), up to ``orders``: a share
    of the players or a number (half of them for the paper's two, all for interactions). Interactions are those of the
    whole sample where its coalitions can all be evaluated, else within drawn groups of 6 players; or of ``cube``
    players in any case, which suits outputs that bend a little everywhere (see `docs/design.md`). ``start`` is
    "zero", "mean", "median", a number, a tensor, or several, of which the best end is kept (the mean, the median or
    the middle of the bounds joins them where it is lower than where they ended). ``bounds`` are the data's "range", a
    number k for mean ± k standard deviations, or a pair (low, high). One baseline is learned for "all", for each
    "class" or for each "sample", by ``share``. ``tie`` labels entries, and those of one label share a value; ``held``
    marks entries that keep the start's; ``categorical`` lists columns, or groups of columns such as a one-hot code,
    that take only values that occur together in the data. ``gradient=False`` is for models without one (found out if
    left out). ``evaluations`` of the model go into one comparison of baselines (262,144; fewer for slow models), a
    quarter into one of ``steps``. After them, a ``sweep`` tries other values of one coordinate at a time; without it,
    a loss nearly as low takes a small part of the evaluations, but may be a local minimum. ``checkpoint`` names a
    file, written at every check and gone on from if it exists.

    Descent stops when 20 checks in a row improve the loss by less than 0.5 %; the search, when trying other values of
    every coordinate in turn lowers it by less than 0.1 %. Ctrl-C ends it with the best values so far.

    >>> import absentia as ab
    >>> x = torch.rand(64, 3, generator=torch.Generator().manual_seed(0)).double()
    >>> learned = ab.learn_baseline(lambda rows: (rows - 0.25).prod(1), x)
    >>> learned.values.round(decimals=2)
    tensor([0.2500, 0.2500, 0.2500], dtype=torch.float64)
    """
    began, pool = time.perf_counter(), collect(x, y, samples, seed)
    game = _make_game(model, pool, players, readout, getattr(x, "columns", None))
    data = pool.data.double().flatten(1)
    space = make_space(data, game.players, bounds, tie, held, categorical)
    _check(game, space, steps, evaluations, loss, cube)
    owner, classes = _owners(share, pool)
    evaluations = EVALUATIONS if evaluations is None else evaluations
    per_sample = evaluations // min(len(pool.x), MANY_SAMPLES)
    penalty = Penalty(loss, len(game.players), _orders(loss, orders, len(game.players)), per_sample, cube)
    objective = Objective(game, penalty, owner)
    starts = _starts(start, data, space, objective.owners)
    first = next(iter(starts.values()))
    fingerprint = _fingerprint(pool.x, list(starts.values()), penalty, share, steps, rate, sweep, seed, space)
    steps = _steps(steps, gradient, sweep, objective, first, space)
    comparison = Comparison(objective, seed, evaluations)
    run = Run(comparison, space, seed, rate, steps, sweep, Checkpoint.open(checkpoint, fingerprint))
    run.search(starts, _usual_baselines(space, data, first))
    return _with_data(run.result(share, classes, _name_bounds(bounds), time.perf_counter() - began), pool, game)


def _with_data(found: LearnedBaseline, pool: Pool, game: MaskedModel) -> LearnedBaseline:
    """Add what the values are looked at beside: the data's quantiles, which tokens have none of, and the players."""
    tokens = game.players.integer and not pool.data.is_floating_point()
    quantiles = None if tokens else data_quantiles(pool.data)
    return replace(found, quantiles=quantiles, labels=game.players.labels.cpu())


def _make_game(
    model: Model, pool: Pool, players: Players | None, readout: Readout | None, columns: Iterable[str] | None
) -> MaskedModel:
    """Make the game; the columns of a DataFrame name its players."""
    if players is None and columns is not None:
        players = Players.features(list(columns))
    target = pool.y if readout is None else None
    # The absence is of no account here: every evaluation brings its own.
    return MaskedModel(model, pool.x, target, players=players, readout=readout, absence=Baseline(0.0))


def _check(game: MaskedModel, space: Space, steps: int, evaluations: int | None, loss: str, cube: int | None) -> None:
    if steps < 0:
        raise wrong("steps", "be at least 0", steps)
    if evaluations is not None and evaluations < LEAST_EVALUATIONS:
        raise wrong("evaluations", f"be at least {LEAST_EVALUATIONS}", evaluations)
    if not game.x.is_floating_point() and len(space.low):
        then = "Name every free entry, as in categorical=range(length), and hold the others."
        raise wrong("categorical", "name the entries of inputs that are numbers of tokens", "fewer", then)
    if cube is not None and loss != "interactions":
        raise wrong("cube", "be left out for other losses than interactions", f"{cube} for {loss!r}")
    if cube is not None and not 1 <= cube <= len(game.players):
        raise wrong("cube", f"be a number of players from 1 to {len(game.players)}", cube)


def _starts(start: object, data: Tensor, space: Space, owners: int) -> dict[str, Tensor]:
    """Make the baselines to start from, by name."""
    given = start if isinstance(start, list | tuple) else [start]
    if not given:
        raise wrong("start", "hold at least one start", "none")
    return {
        _name(one, number): start_baseline(one, data, space).expand(owners, -1).clone()
        for number, one in enumerate(given)
    }


def _usual_baselines(space: Space, data: Tensor, held: Tensor) -> dict[str, Tensor]:
    """Make the baselines that people use, within the bounds: one of them may be the better start."""
    points = {name: space.point(start_baseline(name, data, space)[None]) for name in ("mean", "median")}
    points["the middle"] = torch.full((1, len(space.low)), 0.5).double()
    return {name: space.place(point.expand(len(held), -1), held) for name, point in points.items()}


def _name(start: object, number: int) -> str:
    if isinstance(start, str):
        return start
    return f"{start:g}" if isinstance(start, int | float) else f"given {number}"


def _name_bounds(bounds: object) -> str:
    if isinstance(bounds, tuple):
        return (
            "given" if any(not isinstance(end, int | float) for end in bounds) else f"{bounds[0]:g} to {bounds[1]:g}"
        )
    return bounds if isinstance(bounds, str) else f"mean ± {bounds:g} sd"


def _orders(loss: str, orders: float | None, players: int) -> int:
    if loss not in ("shapley", "marginal", "interactions"):
        raise wrong("loss", "be 'shapley', 'marginal' or 'interactions'", repr(loss))
    if orders is None:
        orders = 1.0 if loss == "interactions" else 0.5
    return count_orders(orders, players)


def _owners(share: str, pool: Pool) -> tuple[Int[Tensor, " samples"], Int[Tensor, " owners"] | None]:
    """Tell which baseline each sample uses, and the class that each baseline is for."""
    if share == "all":
        return torch.zeros(len(pool.x), dtype=torch.int64), None
    if share == "sample":
        return torch.arange(len(pool.x)), None
    if share != "class":
        raise wrong("share", "be 'all', 'class' or 'sample'", repr(share))
    if pool.y is None:
        raise wrong("y", "be given for a baseline of each class", "none")
    classes, owner = torch.unique(pool.y.long(), return_inverse=True)
    return owner, classes


def _steps(steps: int, gradient: bool | None, sweep: bool, objective: Objective, first: Tensor, space: Space) -> int:
    """Take no steps where the model has no gradient."""
    if gradient is None:
        gradient = not isinstance(objective.game.model, NumpyModel) and _has_gradient(objective, first)
    if not sweep and not (gradient and steps):
        raise wrong("sweep", "be True where there are no steps along a gradient", sweep)
    if not sweep and space.choices:
        raise wrong("sweep", "be True where entries are categorical, for which there is no gradient", sweep)
    return steps if gradient else 0


def _has_gradient(objective: Objective, baseline: Tensor) -> bool:
    """Find out whether the model lets a gradient through to its inputs."""
    one = torch.zeros(1, dtype=torch.int64)
    plan = Penalty("marginal", objective.penalty.players, 1).plan(1, 2, torch.Generator().manual_seed(0))
    small = Plan(
        plan.coalitions[:1] if plan.coalitions.ndim == 2 else plan.coalitions[0, :1], lambda v: v.flatten(1).sum(1)
    )
    try:
        _, gradient = objective.gradient(baseline, Chosen.evenly(one), small)
    except RuntimeError as error:
        if "does not require grad" in str(error):
            return False
        raise
    return bool(torch.isfinite(gradient).all())


def _fingerprint(x: Tensor, starts: list[Tensor], *settings: object) -> str:
    """Sum up what a run depends on, the model aside."""
    digest = hashlib.blake2b(digest_size=16)
    for tensor in (x, *starts):
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    for one in settings:
        if isinstance(one, Space):
            for tensor in (one.low, one.high, one.parameter, *(choice.rows for choice in one.choices)):
                digest.update(tensor.numpy().tobytes())
        else:
            digest.update(repr(one).encode())
    return digest.hexdigest()
