"""Explaining samples: the public function, from a model and samples to the whole record of a run."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from absentia.absence import Absence, BringsModel, describe_absence
from absentia.arrays import Array, Table, as_tensor
from absentia.attributions import order_shapley, shapley
from absentia.errors import wrong
from absentia.explanation.record import Explanation, ExplanationRecord
from absentia.explanation.stand_ins import empty_state
from absentia.game import MAX_PLAYERS, ValueTable, value_table
from absentia.inference import Model
from absentia.interactions import harsanyi
from absentia.learning import LearnedBaseline
from absentia.masked_model import MaskedModel
from absentia.players import Players
from absentia.readouts import Features, Readout

# Of each sample, where players are too many for all coalitions: so many coalitions, or so many for each player.
EVALUATIONS, EVALUATIONS_PER_PLAYER = 2**12, 16


def explain(
    model: Model,
    x: Table,
    y: int | Sequence[int] | Array | None = None,
    *,
    absence: Absence,
    players: Players | None = None,
    readout: Readout | None = None,
    evaluations: int | None = None,
    max_players: int = MAX_PLAYERS,
    seed: int = 0,
    batch_size: int | None = None,
    memory: int | None = None,
) -> Explanation:
    """Take the model's output on samples apart: Shapley values, by order too, and all interactions.

    ``x`` is one sample or a batch of them: a tensor, an array, or a DataFrame, whose columns then name the players.
    ``y`` holds their classes, which choose the value explained where there is no ``readout`` (see `MaskedModel`), and
    the stand-ins where a learned baseline has some for each class.

    Up to ``max_players`` players, everything is exact and comes from one table of 2ⁿ values of each sample. With
    more, or where ``evaluations`` says how many coalitions of each sample to evaluate, Shapley values are sampled by
    ``seed``, with standard errors, and there are no interactions. ``batch_size`` and ``memory`` are as for
    `MaskedModel`.

    >>> import absentia as ab
    >>> ab.explain(lambda rows: rows.prod(1), torch.tensor([3.0, 4.0]), absence=ab.Baseline(1.0))
    Explanation of 1 sample, 2 players; value: the output as it is
      absence  Baseline(1)
      cost     4 evaluations, ... s; exact
      value    1 with all players absent, 12 with all present
      Shapley values:
        x1  +6
        x0  +5
      strongest interactions:
        x0 & x1  +6
        x1       +3
        x0       +2
    """
    began = time.perf_counter()
    _check(y, absence, players)
    batch, players = _as_batch(x, players)
    classes = _classes(y if y is not None else getattr(readout, "y", None), len(batch))
    chosen = _choose_baselines(absence, classes)
    game = MaskedModel(
        model,
        batch,
        y if readout is None else None,
        players=players,
        readout=readout,
        absence=chosen,
        batch_size=batch_size,
        memory=memory,
    )
    if isinstance(game.readout, Features):
        raise wrong("readout", "give one number for an explanation", str(game.readout))
    count = _count_coalitions(len(game.players), evaluations, max_players)
    results = _exact(game) if count is None else _sampled(game, count, seed)
    record = ExplanationRecord(
        readout=game.readout_note,
        absence=describe_absence(absence),
        exact=count is None,
        evaluations=results.pop("evaluations"),
        seconds=time.perf_counter() - began,
        seed=seed,
        notes=tuple(_notes(absence, len(game.players), count, evaluations is None)),
    )
    stand_ins = empty_state(game.x, game.players, chosen)
    return Explanation(batch.detach().cpu(), classes, game.players, stand_ins=stand_ins, record=record, **results)


def _check(y: object, absence: object, players: object) -> None:
    if isinstance(y, Absence):
        raise wrong("absence", "be passed by name", "it in the place of y", "Write explain(model, x, absence=…).")
    if isinstance(absence, type):
        raise wrong("absence", "be an absence such as Baseline(0.0)", f"the class {absence.__name__}", "Call it.")
    if not isinstance(absence, Absence):
        raise wrong("absence", "be an absence such as Baseline(0.0)", type(absence).__name__)
    if players is not None and not isinstance(players, Players):
        raise wrong("players", "be Players, such as Players.features(names)", type(players).__name__)


def _as_batch(x: Table, players: Players | None) -> tuple[Tensor, Players | None]:
    """Take one sample as a batch of one; the columns of a DataFrame, or the index of its row, name the players."""
    names = getattr(x, "columns", getattr(x, "index", None))
    batch = as_tensor("x", x)
    if batch.ndim == 0:
        raise wrong("x", "be a sample or a batch of samples", "a single number")
    if batch.ndim == (1 if players is None else len(players.shape)):
        batch = batch[None]
    if players is None and batch.ndim == 2 and names is not None and not callable(names):
        players = Players.features(list(names))
    return batch, players


def _classes(y: object, samples: int) -> Int[Tensor, " samples"] | None:
    """Take classes as one for each sample; whether they are any is for the readout to say."""
    if y is None:
        return None
    classes = as_tensor("y", y).detach().cpu()
    if classes.ndim > 1 or (classes.ndim == 1 and len(classes) != samples):
        raise wrong("y", f"hold one class for each of the {samples} samples", f"shape {tuple(classes.shape)}")
    return classes.long().expand(samples).clone()


def _choose_baselines(absence: Absence, classes: Tensor | None) -> Absence:
    """Pick the baselines of the samples' classes, where a learned absence has one for each."""
    if not isinstance(absence, LearnedBaseline) or absence.share != "class":
        return absence
    if classes is None:
        raise wrong("y", "be given for a baseline learned for each class", "none")
    return absence.of(classes)


def _count_coalitions(players: int, evaluations: int | None, max_players: int) -> int | None:
    """Tell how many coalitions of each sample to draw; None for all of them."""
    if not 1 <= max_players <= MAX_PLAYERS:
        raise wrong("max_players", f"lie between 1 and {MAX_PLAYERS}", max_players)
    if evaluations is None:
        if players <= max_players:
            return None
        evaluations = max(EVALUATIONS, EVALUATIONS_PER_PLAYER * players)
    return None if evaluations >= 2**players else evaluations


def _exact(game: MaskedModel) -> dict[str, Any]:
    """Derive everything from the one table."""
    found = value_table(game)
    table = ValueTable(
        found.values.cpu(),
        found.names,
        readout=found.readout,
        noise=found.noise.cpu(),
        evaluations=found.evaluations,
    )
    return {
        "outputs": table.values[:, -1].clone(),
        "base_values": table.values[:, 0].clone(),
        "shapley": shapley(table),
        "order_shapley": order_shapley(table),
        "interactions": harsanyi(table),
        "evaluations": table.evaluations,
    }


def _sampled(game: MaskedModel, coalitions: int, seed: int) -> dict[str, Any]:
    """Estimate Shapley values from drawn coalitions."""
    attribution = shapley(game, evaluations=coalitions, seed=seed)
    ends: Float[Tensor, "samples 2"] = game(torch.tensor([[False], [True]]).expand(2, len(game.players)))
    base_values, outputs = ends.double().cpu().unbind(1)
    return {
        "outputs": outputs,
        "base_values": base_values,
        "shapley": attribution,
        "order_shapley": None,
        "interactions": None,
        "evaluations": attribution.evaluations + ends.numel() * game.draws,
    }


def _notes(absence: Absence, players: int, coalitions: int | None, chosen_here: bool) -> list[str]:
    notes = []
    if coalitions is not None:
        why = f"{players} players are too many for all 2^{players} coalitions" if chosen_here else "As was asked for"
        notes.append(
            f"{why}: Shapley values are sampled from {coalitions:,} coalitions of each sample, with standard errors; "
            "there are no interactions and no order-wise values. Put players together for exact ones."
        )
    if isinstance(absence, BringsModel):
        notes.append("The absence brings its own model: its outputs are explained, not those of the model given.")
    return notes
