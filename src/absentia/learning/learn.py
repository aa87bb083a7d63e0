"""Learning a baseline: the public function, which sets the problem up and hands it to a run."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from absentia.absence import Array, Baseline
from absentia.errors import wrong
from absentia.inference import Model, NumpyModel
from absentia.learning.checkpoint import Checkpoint
from absentia.learning.learned import LearnedBaseline, Share
from absentia.learning.objective import Objective
from absentia.learning.penalties import Loss, Penalty, Plan, count_orders
from absentia.learning.run import Run
from absentia.learning.samples import Pool, collect
from absentia.learning.space import Bounds, Space, Start, make_space, start_baseline
from absentia.masked_model import MaskedModel
from absentia.players import Players
from absentia.readouts import Readout


def learn_baseline(
    model: Model,
    x: Any,
    y: Sequence[int] | Array | None = None,
    *,
    players: Players | None = None,
    readout: Readout | None = None,
    loss: Loss = "interactions",
    orders: float | None = None,
    start: Start | Sequence[Start] = "mean",
    bounds: Bounds = "range",
    share: Share = "all",
    tie: Array | None = None,
    held: Array | None = None,
    categorical: Sequence[int | Sequence[int]] = (),
    gradient: bool | None = None,
    samples: int | None = 256,
    steps: int = 60,
    rate: float = 0.1,
    seed: int = 0,
    checkpoint: str | Path | None = None,
) -> LearnedBaseline:
    """Find the baseline values that leave the least signal behind: the minimum of a penalty on low orders.

    ``x`` and ``y`` are tensors, arrays, a Dataset or a DataLoader, of which ``samples`` are used, drawn by ``seed``.
    ``loss`` is "interactions", "shapley" or "marginal" (see `absentia.learning.penalties`), up to ``orders``: a share
    of the players or a number (half of them for the paper's two, all for interactions). ``start`` is "zero", "mean",
    "median", a number, a tensor, or several, of which the best end is kept (the mean, the median or the middle of the
    bounds join them where their loss is lower than any start's). ``bounds`` are the data's "range", a
    number k for mean ± k standard deviations, or a pair (low, high). One baseline is learned for "all", for each
    "class" or for each "sample", by ``share``. ``tie`` labels entries, and those of one label share a value; ``held``
    marks entries that keep the start's; ``categorical`` lists columns, or groups of columns such as a one-hot code,
    that take only values that occur together in the data. ``gradient=False`` is for models without one (found out if
    left out). ``checkpoint`` names a file that is written at every check, and gone on from where it exists.

    Descent stops when 20 checks in a row improve the loss by less than 0.5 %; the search, when no change of a single
    value lowers it. Ctrl-C ends it with the best values so far.

    >>> import absentia as ab
    >>> x = torch.rand(64, 3, generator=torch.Generator().manual_seed(0)).double()
    >>> learned = ab.learn_baseline(lambda rows: (rows - 0.25).prod(1), x)
    >>> learned.values.round(decimals=2)
    tensor([0.2500, 0.2500, 0.2500], dtype=torch.float64)
    """
    began = time.perf_counter()
    pool = collect(x, y, samples, seed)
    game = MaskedModel(model, pool.x, pool.y if readout is None else None, players=players, readout=readout,
                       absence=Baseline(0 if not pool.x.is_floating_point() else 0.0))  # fmt: skip
    data = pool.data.double().flatten(1)
    space = make_space(data, game.players, bounds, _tensor(tie), _tensor(held), categorical)
    owner, classes = _owners(share, pool)
    penalty = Penalty(loss, len(game.players), _orders(loss, orders, len(game.players)))
    objective = Objective(game, penalty, owner)
    starts: list[Start] = [start] if isinstance(start, str | int | float | Tensor) else list(start)
    begin = [start_baseline(one, data, space).expand(objective.owners, -1).clone() for one in starts]
    if gradient is None:
        gradient = not isinstance(model, NumpyModel) and _has_gradient(objective, begin[0])
    fingerprint = _fingerprint(pool.x, begin, penalty, share, steps, rate, seed, space)
    run = Run(objective, space, seed, rate, steps if gradient else 0, Checkpoint.open(checkpoint, fingerprint))
    names = [one if isinstance(one, str) else "given" if isinstance(one, Tensor) else f"{one:g}" for one in starts]
    if (found := _better_start(run, space, data, begin)) is not None:
        names.append(found[0])
        begin.append(found[1])
    stopped = run.search(begin)
    return run.result(share, classes, stopped, names, str(bounds)[:60], time.perf_counter() - began)


def _better_start(run: Run, space: Space, data: Tensor, begin: list[Tensor]) -> tuple[str, Tensor] | None:
    """Look at the usual baselines: one with a lower loss than all starts is worth a start too."""
    middle = space.place(torch.full((1, len(space.low)), 0.5).double(), begin[0][:1])
    usual = {"the middle": middle[0]}
    for name in ("mean", "median"):
        values = start_baseline(name, data, space)
        usual[name] = space.place(space.point(values[None]), begin[0][:1])[0]
    losses = {name: float(run.losses(one.expand_as(begin[0]).clone()).mean()) for name, one in usual.items()}
    best = min(losses, key=lambda name: losses[name])
    if losses[best] >= min(float(run.losses(one).mean()) for one in begin):
        return None
    return f"{best} (tried)", usual[best].expand_as(begin[0]).clone()


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


def _has_gradient(objective: Objective, baseline: Tensor) -> bool:
    """Find out whether the model lets a gradient through to its inputs."""
    one = torch.zeros(1, dtype=torch.int64)
    plan = Penalty("marginal", objective.penalty.players, 1).plan(1, 2, torch.Generator().manual_seed(0))
    small = Plan(
        plan.coalitions[:1] if plan.coalitions.ndim == 2 else plan.coalitions[0, :1], lambda v: v.flatten(1).sum(1)
    )
    try:
        _, gradient = objective.gradient(baseline, one, small)
    except RuntimeError as error:
        if "does not require grad" in str(error):
            return False
        raise
    return bool(torch.isfinite(gradient).all())


def _tensor(labels: Array | None) -> Tensor | None:
    return None if labels is None else torch.as_tensor(labels)


def _fingerprint(x: Tensor, starts: list[Tensor], *settings: object) -> str:
    """Sum up what a run depends on, the model aside."""
    digest = hashlib.blake2b(digest_size=16)
    for tensor in (x, *starts):
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    for one in settings:
        if isinstance(one, Space):
            for tensor in (one.low, one.high, one.parameter):
                digest.update(tensor.numpy().tobytes())
        else:
            digest.update(repr(one).encode())
    return digest.hexdigest()
