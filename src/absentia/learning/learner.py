"""Learning a baseline: the public functions, and how they set up the problem."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Subset

from absentia.absences.protocol import Absence, BringsModel, StandIns, for_classes
from absentia.absences.words import named_absence
from absentia.data import Array, Classes, Table, as_tensor, class_numbers, data_quantiles, holds_text, seeded
from absentia.errors import AbsentiaError, wrong
from absentia.evaluation import Evaluator
from absentia.learning.learned import LearnedBaseline, LearningRecord, Share
from absentia.learning.objective import Objective
from absentia.learning.penalties import Loss, Penalty, count_orders
from absentia.learning.search import Run
from absentia.learning.space import Bounds, Space, Start, make_space, start_baseline
from absentia.models import NumpyModel, as_model, labels_of
from absentia.players import Players
from absentia.readouts import Logit, LogOdds, Probability, Readout

_LEAST_ROWS = 2**8
# A penalty is exact if all coalitions of all samples, or of this many, fit into one comparison. If not, coalitions
# are drawn, because an exact result on fewer samples may not hold for others.
_MANY_SAMPLES = 32
_CONVERGED = "no other value of a single coordinate lowers the loss by 0.1 %"


@dataclass(frozen=True, eq=False)
class LearningOptions:
    """Options of `learn_baseline` that few users need.

    Parameters
    ----------
    orders : float or int, optional
        The highest order λ of the penalty: a share of the players or a number of them. The default is half of them
        for "shapley" and "marginal", as in the paper, and all of them for "interactions".
    cube : int, optional
        Measure interactions within drawn groups of this many players, which suits outputs that bend a little
        everywhere. By default they are those of the whole sample, or within groups of 6 if players are many.
    tie, held : array, optional
        Labels of the shape of one sample: entries of one ``tie`` share a value; ``held`` ones keep that of the start.
    gradient : bool, optional
        Whether the model has a gradient; by default this is found out.
    samples : int or None, default 256
        The number of samples to learn from, drawn by the seed; None for all.
    rows_per_comparison : int, default 262,144
        Rows that the model evaluates to compare two baselines. A step along the gradient takes a quarter of them.
    steps, rate : int, default 60; float, default 0.1
        The number of steps along the gradient, and the first step size as a share of the bounds.
    sweep : bool, default True
        Whether to try other values of one coordinate at a time after the steps. Without it learning takes far fewer
        evaluations and ends nearly as low, but maybe in a local minimum.
    checkpoint : str or Path, optional
        A file that is written at every check. If it exists, learning goes on from it.

    Examples
    --------
    >>> LearningOptions(steps=10, samples=None).rows_per_comparison
    262144
    """

    orders: float | None = None
    cube: int | None = None
    tie: Array | None = None
    held: Array | None = None
    gradient: bool | None = None
    samples: int | None = 256
    rows_per_comparison: int = 2**18
    steps: int = 60
    rate: float = 0.1
    sweep: bool = True
    checkpoint: str | Path | None = None

    def __post_init__(self) -> None:
        for name, least in (("samples", 1), ("rows_per_comparison", _LEAST_ROWS), ("steps", 0)):
            if getattr(self, name) is not None and getattr(self, name) < least:
                raise wrong(name, f"be at least {least}", getattr(self, name))


def learn_baseline(
    model: Any,
    x: Any,
    y: Classes = None,
    *,
    players: Players | None = None,
    readout: Readout | None = None,
    loss: Loss = "interactions",
    start: Start | Sequence[Start] = "mean",
    bounds: Bounds = "range",
    share: Share = "all",
    categorical: Sequence[int | Sequence[int]] = (),
    class_names: Sequence[str] | None = None,
    seed: int = 0,
    options: LearningOptions | None = None,
) -> LearnedBaseline:
    """Find the baseline values that leave the least signal: the minimum of a penalty on interactions.

    The search stops when no other value of a single coordinate lowers the loss by 0.1 %. Ctrl-C stops it with the
    best values so far.

    Parameters
    ----------
    model, players, readout, class_names
        See `Evaluator`.
    x, y
        Samples, and their classes as numbers or names; or a Dataset or DataLoader, whose items may be pairs (x, y).
    loss : {"interactions", "shapley", "marginal"}
        The penalty: Σ|U(S)|, or the paper's L_Shapley or L_marginal.
    start : {"mean", "median", "zero"}, float, array, or a list of these
        The values to start from. Of several starts, the best end is kept. The mean, the median or the middle of the
        bounds is another start if it is lower than where the others ended.
    bounds : "range", float or tuple
        The data's range, a number k for mean ± k standard deviations, or a pair (low, high).
    share : {"all", "class", "sample"}
        Learn one baseline for all samples, for each class or for each sample.
    categorical : sequence
        Columns, or groups of columns such as a one-hot code, that only take values that occur together in the data.
    seed, options
        The seed of all draws, and `LearningOptions`.

    Examples
    --------
    >>> import absentia as ab
    >>> x = torch.rand(64, 3, generator=torch.Generator().manual_seed(0)).double()
    >>> learned = ab.learn_baseline(lambda rows: (rows - 0.25).prod(1), x)
    >>> learned.values.round(decimals=2)
    tensor([0.2500, 0.2500, 0.2500], dtype=torch.float64)
    """
    began, options = time.perf_counter(), options or LearningOptions()
    given = {"players": players, "readout": readout, "class_names": class_names}
    objective, rows, numbers, classes = _make_problem(model, x, y, loss, share, seed, options, **given)
    evaluator, data = objective.evaluator, rows.detach().cpu().double().flatten(1)
    space = make_space(data, evaluator.players, bounds, options.tie, options.held, categorical)
    if not evaluator.x.is_floating_point() and len(space.low):
        then = "Name every free entry, as in categorical=range(length), and hold the others."
        raise wrong("categorical", "name the entries of inputs that are token numbers", "fewer", then)
    starts, usual = _starts(start, data, space, objective.owners)
    first = next(iter(starts.values()))
    run = Run(objective, space, _count_steps(objective, first, space, options), options.rate, options.sweep)
    if options.checkpoint is not None:
        settings = (share, seed, options.steps, options.rate, options.sweep)
        run.resume(options.checkpoint, *_identity(objective, numbers, space, starts, settings))
    found = run.search(starts, usual)
    idle = run.undetermined(found.losses)
    # Reset players that do not affect the loss to their start values.
    values = torch.where(evaluator.players.presence(~idle).flatten(), found.baseline, first)
    values = values.unflatten(1, evaluator.players.shape)
    return LearnedBaseline(
        values[0] if share == "all" else values, share, classes, evaluator.players, float(found.penalties.mean()),
        torch.tensor(run.history).double().reshape(-1, 2), _record(run, bounds, idle, time.perf_counter() - began),
        data_quantiles(rows) if evaluator.x.is_floating_point() else None,
    )  # fmt: skip


def baseline_loss(
    model: Any,
    x: Any,
    y: Classes = None,
    *,
    absence: Absence | str | float,
    loss: Loss = "interactions",
    players: Players | None = None,
    readout: Readout | None = None,
    options: LearningOptions | None = None,
    seed: int = 0,
) -> float:
    """Compute the mean penalty per sample of given baseline values.

    Samples and coalitions are those on which `learn_baseline`, with the same arguments, compares baselines for all
    samples. So the losses of several absences can be compared, also with the ``loss`` of a learned baseline.

    Parameters
    ----------
    model, x, y, loss, players, readout, seed
        See `learn_baseline`.
    absence : Absence, str or float
        Fixed values: an absence with one stand-in for each sample, whichever players are present.
    options : LearningOptions, optional
        Its orders, cube, samples and rows_per_comparison are used.

    Examples
    --------
    >>> import absentia as ab
    >>> x = torch.rand(64, 3, generator=torch.Generator().manual_seed(0)).double()
    >>> losses = [baseline_loss(lambda rows: rows.prod(1), x, absence=ab.Baseline(value)) for value in (0.0, 0.5)]
    >>> losses[0] < losses[1]
    True
    """
    options = options or LearningOptions()
    given = {"players": players, "readout": readout, "class_names": None}
    objective, data, numbers, _ = _make_problem(model, x, y, loss, "all", seed, options, **given)
    evaluator = objective.evaluator
    absence = named_absence(absence, data, players=evaluator.players)
    classes = getattr(evaluator.readout, "y", None) if y is None else numbers
    fill = for_classes(absence, classes).bind(evaluator.x)
    if isinstance(absence, BringsModel) or not isinstance(fill, StandIns) or fill.draws != 1:
        raise wrong("absence", "have one fixed stand-in for each sample", absence)
    stand_ins = fill.values[:, 0].flatten(1).double().cpu().expand(evaluator.samples, -1)
    objective.owner = torch.arange(evaluator.samples)  # of its own stand-ins
    losses, (rows, weights) = objective.losses(stand_ins, objective.compared, objective.plan), objective.compared
    return float((losses[rows] * weights).sum() / weights.sum())


def choose_absence(
    absence: object,
    model: Any,
    data: Table,
    y: Classes = None,
    *,
    players: Players | None = None,
    readout: Readout | None = None,
    categorical: Sequence[int] = (),
    seed: int = 0,
) -> Absence:
    """Return an absence as it is, or the one that a word or a number names; "learned" learns it from the data."""
    if isinstance(absence, str) and absence == "learned":
        if data is None:
            raise AbsentiaError("A baseline is learned from data. Pass data=…, rows such as those of the training.")
        return learn_baseline(model, data, y, players=players, readout=readout, categorical=categorical, seed=seed)
    return named_absence(absence, data, players=players, categorical=categorical, seed=seed)


def _make_problem(
    model: Any, x: Any, y: Classes, loss: Any, share: str, seed: int, options: LearningOptions, **given: Any
) -> tuple[Objective, Tensor, Tensor | None, Tensor | None]:
    """Return the objective on drawn samples, all rows, the samples' classes, and the class of each baseline.

    ``given`` are players, readout and class names.
    """
    if share not in ("all", "class", "sample"):
        raise wrong("share", "be 'all', 'class' or 'sample'", repr(share))
    if given["players"] is None and hasattr(x, "columns"):  # those of a DataFrame name the players
        given["players"] = Players.features(list(x.columns))
    data, y, rows = _collect(x, y, options.samples, seed)
    model, note = as_model(model), ""
    labels = labels_of(model) if given["class_names"] is None else tuple(given["class_names"])
    if y is not None and not labels and holds_text(y):
        labels = tuple(sorted({str(label) for label in y}))
        note = f"; classes in alphabetical order: {', '.join(labels)}"
    numbers = None if y is None else class_numbers(y, labels).cpu()[rows]
    readout = given["readout"]
    if isinstance(readout, LogOdds | Logit | Probability) and readout.y.shape == (len(data),):
        given["readout"] = type(readout)(readout.y[rows], readout.names)
    given["class_names"] = [str(label) for label in labels] or None
    evaluator = Evaluator(model, data[rows], y=numbers if given["readout"] is None else None, **given)
    evaluator.readout_note += note
    if share == "class" and numbers is None:
        raise wrong("y", "be given for a baseline of each class", "none")
    whose = numbers if share == "class" else torch.arange(len(rows)) * (share == "sample")
    owners, owner = torch.unique(whose, return_inverse=True)
    penalty = _make_penalty(loss, len(evaluator.players), len(rows), options)
    objective = Objective(evaluator, penalty, owner, seed, options.rows_per_comparison)
    return objective, data, numbers, owners if share == "class" else None


def _make_penalty(loss: Any, players: int, samples: int, options: LearningOptions) -> Penalty:
    if loss not in ("shapley", "marginal", "interactions"):
        raise wrong("loss", "be 'shapley', 'marginal' or 'interactions'", repr(loss))
    if options.cube is not None and loss != "interactions":
        raise wrong("cube", "be left out for other losses than interactions", f"{options.cube} for {loss!r}")
    if options.cube is not None and not 1 <= options.cube <= players:
        raise wrong("cube", f"be a number of players from 1 to {players}", options.cube)
    usual = 1.0 if loss == "interactions" else 0.5
    orders = count_orders(usual if options.orders is None else options.orders, players)
    return Penalty(loss, players, orders, options.rows_per_comparison // min(samples, _MANY_SAMPLES), options.cube)


def _collect(x: Any, y: Classes, samples: int | None, seed: int) -> tuple[Tensor, Classes, Int[Tensor, " samples"]]:
    """Return all rows at hand, their classes, and which rows to learn from: drawn ones, or the first of a loader."""
    generator = seeded(seed)
    if hasattr(x, "shape"):
        data = as_tensor("x", x)
        if data.ndim < 2 or len(data) == 0:
            raise wrong("x", "hold at least one sample, of shape (samples, …)", f"shape {tuple(data.shape)}")
        shape = (len(data),) if y is None else tuple(y.shape) if hasattr(y, "shape") else np.shape(y)
        if shape != (len(data),):
            raise wrong("y", f"hold one class for each of the {len(data)} samples", f"shape {shape}")
        few = samples is None or samples >= len(data)
        return data, y, torch.arange(len(data)) if few else torch.randperm(len(data), generator=generator)[:samples]
    if y is not None:
        raise wrong("y", "be left out for a Dataset or DataLoader", "both", "Let its items be pairs (x, y).")
    if isinstance(x, Dataset) and hasattr(x, "__getitem__"):
        drawn = torch.randperm(len(x), generator=generator)[:samples].tolist()  # type: ignore[arg-type]
        x = DataLoader(Subset(x, drawn), batch_size=256, generator=generator)
    if not isinstance(x, Iterable):
        raise wrong("x", "be a tensor, an array, a Dataset or a DataLoader", type(x).__name__)
    inputs: list[Tensor] = []
    targets: list[Any] = []
    for item in x:
        batch, target = item if isinstance(item, tuple | list) else (item, ())
        inputs.append(torch.as_tensor(batch))
        targets.extend(np.asarray(target).tolist())
        if samples is not None and sum(map(len, inputs)) >= samples:
            break
    if not inputs:
        raise wrong("x", "hold at least one sample", "an empty source")
    data = torch.cat(inputs)[:samples]
    return data, targets[:samples] or None, torch.arange(len(data))


def _starts(start: object, data: Tensor, space: Space, owners: int) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return the baselines to start from, by name; and usual ones within the bounds, which may be better starts."""
    given = start if isinstance(start, list | tuple) else [start]
    if not given:
        raise wrong("start", "hold at least one start", "none")
    starts = {}
    for number, one in enumerate(given):
        name = f"{one:g}" if isinstance(one, int | float) else one if isinstance(one, str) else f"given {number}"
        starts[name] = start_baseline(one, data, space).expand(owners, -1).clone()
    first = next(iter(starts.values()))
    points = {name: space.point(start_baseline(name, data, space)[None]) for name in ("mean", "median")}
    points["the middle"] = torch.full((1, len(space.low)), 0.5).double()
    return starts, {name: space.place(point.expand(owners, -1), first) for name, point in points.items()}


def _count_steps(objective: Objective, first: Tensor, space: Space, options: LearningOptions) -> int:
    """Return the number of steps along the gradient: none if the model has no gradient."""
    gradient = options.gradient
    if gradient is None:
        gradient = not isinstance(objective.evaluator.model, NumpyModel) and _has_gradient(objective, first)
    if not options.sweep and not (gradient and options.steps):
        raise wrong("sweep", "be True if there are no steps along a gradient", options.sweep)
    if not options.sweep and space.choices:
        raise wrong("sweep", "be True for categorical entries, which have no gradient", options.sweep)
    return options.steps if gradient else 0


def _has_gradient(objective: Objective, baseline: Tensor) -> bool:
    """Return whether the gradient of a value with all players absent is finite."""
    leaf = baseline.detach().clone().requires_grad_()
    nobody = torch.zeros(1, objective.penalty.players, dtype=torch.bool)
    try:
        objective.values(leaf, torch.zeros(1, dtype=torch.int64), nobody).double().sum().backward()
    except RuntimeError as error:
        if "does not require grad" in str(error):
            return False
        raise
    return leaf.grad is not None and bool(torch.isfinite(leaf.grad).all())


def _identity(
    objective: Objective, y: Tensor | None, space: Space, starts: dict[str, Tensor], settings: object
) -> tuple[str, Tensor]:
    """Return what a run depends on: a digest, and values of the model with all players present or absent."""
    evaluator, classes = objective.evaluator, () if y is None else (y,)
    digest = hashlib.blake2b(repr((objective.penalty, evaluator.readout_note, settings)).encode(), digest_size=16)
    for tensor in (evaluator.x, *classes, *starts.values(), space.low, space.high, space.coordinate, *space.choices):
        digest.update(tensor.detach().cpu().double().numpy().tobytes())
    everyone, nobody = torch.arange(evaluator.samples), torch.zeros(1, len(evaluator.players), dtype=torch.bool)
    values = [objective.outputs(), *(objective.values(one, everyone, nobody)[:, 0] for one in starts.values())]
    return digest.hexdigest(), torch.cat([one.double().cpu().flatten() for one in values])


def _record(run: Run, bounds: object, idle: Tensor, seconds: float) -> LearningRecord:
    """Describe how a baseline was learned."""
    evaluator, penalty = run.objective.evaluator, run.objective.penalty
    box = bounds if isinstance(bounds, str) else "given" if isinstance(bounds, tuple) else f"mean ± {bounds:g} sd"
    if isinstance(bounds, tuple) and all(isinstance(end, int | float) for end in bounds):
        box = f"{bounds[0]:g} to {bounds[1]:g}"
    return LearningRecord(
        loss=penalty.loss, exact=penalty.exact, orders=penalty.orders, bounds=box, starts=tuple(run.finals),
        final_losses=tuple(run.finals.values()), seed=run.objective.seed, samples=evaluator.samples,
        converged=not run.unfinished, stopped=run.unfinished or _CONVERGED, evaluations=run.objective.evaluations,
        undetermined=tuple(name for name, one in zip(evaluator.names, idle.tolist(), strict=True) if one),
        seconds=seconds, readout=evaluator.readout_note, class_names=evaluator.class_names,
    )  # fmt: skip
