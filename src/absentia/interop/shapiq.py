"""shapiq: games as its Game, absences as its imputers, and results to and from its InteractionValues."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from absentia.absences.protocol import Absence, StandIns
from absentia.attributions import Attribution
from absentia.coalitions import coalition_members, zeta
from absentia.data import Categorical, Table, as_tensor, check_number
from absentia.errors import AbsentiaError, require, wrong
from absentia.games import Game, MaskedModel, ValueTable
from absentia.interop.shap import BaseValues, empty_values
from absentia.readouts import Features, Readout
from absentia.terms import Interactions

# shapiq's name of each index.
_INDICES = {"Shapley": "SV", "Banzhaf": "BV"}


def to_shapiq(result: Interactions | Attribution, sample: int = 0, *, base_values: BaseValues | None = None) -> Any:
    """Convert one sample's result to shapiq's InteractionValues, for its plots and its conversion to other indices.

    shapiq keeps no names: pass them to its plots.

    Parameters
    ----------
    result : Interactions or Attribution
        Interactions become Möbius values of all sets, attributions Shapley ("SV") or Banzhaf ("BV") values. The
        shares of a `context_map` are refused: shapiq has no index for them.
    sample : int, default 0
    base_values : Game or numbers, optional
        v(∅), or the game that computes it; needed for an attribution.

    Examples
    --------
    >>> values = to_shapiq(ab.harsanyi(ab.ValueTable([2.0, -2.0, -1.0, 1.0])))
    >>> values.index, values[(0, 1)], values.baseline_value
    ('Moebius', 6.0, 2.0)
    """
    if isinstance(result, Interactions):
        check_number("sample", sample, 0, len(result.effects) - 1)
        kind: dict[str, Any] = {"index": "Moebius", "max_order": len(result.names), "estimated": False}
        sets = {coalition_members(number): effect for number, effect in enumerate(result.effects[sample].tolist())}
    else:
        check_number("sample", sample, 0, len(result.values) - 1)
        if result.index not in _INDICES:
            then = "shapiq has no index for them."
            raise wrong("result", "hold interactions, Shapley values or Banzhaf values", result.kind, then)
        if base_values is None:
            raise AbsentiaError("An attribution needs base_values. Pass base_values=game, or v(∅) as a number.")
        kind = {"index": _INDICES[result.index], "max_order": 1, "estimated": False}
        sets = {(): float(empty_values(base_values, len(result.values))[sample])}
        sets |= {(player,): value for player, value in enumerate(result.values[sample].tolist())}
        if result.is_estimated:
            kind |= {"estimated": True, "estimation_budget": result.evaluations // len(result.values)}
    shared = {"min_order": 0, "n_players": len(result.names), "baseline_value": sets[()]}
    return require("shapiq").InteractionValues(sets, **kind, **shared)


def from_shapiq(values: Any, names: Sequence[str] | None = None) -> Interactions:
    """Convert shapiq's Möbius values of all sets to the interactions of one sample.

    Parameters
    ----------
    values : shapiq.InteractionValues
        Values with the index "Moebius", such as from shapiq's ExactComputer.
    names : sequence of str, optional
        The players' names.

    Examples
    --------
    >>> interactions = ab.harsanyi(ab.ValueTable([2.0, -2.0, -1.0, 1.0], names=["p", "q"]))
    >>> from_shapiq(to_shapiq(interactions), names=["p", "q"])
    Interactions of 1 sample, 2 players; value: given; strongest:
      p & q     +6
      p         −4
      q         −3
    """
    if not hasattr(values, "dict_values"):
        raise wrong("values", "be shapiq's InteractionValues", type(values).__name__)
    then = 'Compute them with shapiq.ExactComputer(game)("Moebius").'
    if values.index != "Moebius":
        raise wrong("values", "be Möbius values", f"the index {values.index!r}", then)
    players = int(values.n_players)
    found = {(): float(values.baseline_value), **values.dict_values}
    if len(found) != 2**players:
        raise wrong("values", f"hold all {2**players} sets of {players} players", f"{len(found)} of them", then)
    effects = torch.zeros(1, 2**players, dtype=torch.float64)
    for members, effect in found.items():
        effects[0, sum(1 << player for player in members)] = float(effect)
    table = ValueTable(zeta(effects), names)
    return Interactions(effects, table.names, table.readout, table.noise, evaluations=0)


def shapiq_game(game: Game, sample: int = 0, *, normalize: bool = False) -> Any:
    """Convert one sample of a game to shapiq's Game, for its approximators and its exact computer.

    Parameters
    ----------
    game : Game
    sample : int, default 0
    normalize : bool, default False
        Whether shapiq subtracts v(∅) from all values. If not, v(∅) is the ``baseline_value`` of shapiq's results.

    Examples
    --------
    >>> import shapiq
    >>> game = ab.MaskedModel(lambda rows: rows.prod(1), torch.tensor([[2.0, 3.0]]), absence=ab.Baseline(1.0))
    >>> values = shapiq.ExactComputer(shapiq_game(game))("SV")
    >>> values.get_n_order_values(1).tolist(), values.baseline_value
    ([2.0, 3.0], 1.0)
    """
    shapiq = require("shapiq")
    check_number("sample", sample, 0, game.samples - 1)
    row, players = sample, len(game.names)
    values: Callable[[Tensor], Tensor] = game
    if isinstance(game, MaskedModel):  # the model then runs on this sample only
        number = torch.tensor([sample])
        values, row = partial(game.evaluator.values, game.fill.select(number), samples=number), 0
    empty = float(_evaluate(values, np.zeros((1, players), dtype=bool))[row, 0])
    peer = shapiq.Game(players, normalize=normalize, normalization_value=empty, player_names=list(game.names))
    peer.value_function = lambda coalitions: _evaluate(values, coalitions)[row]
    return peer


def shapiq_imputer(
    model: Any,
    absence: Absence | str | float,
    x: Table,
    *,
    readout: Readout | None = None,
    categorical: Categorical = (),
) -> Any:
    """Return an imputer for ``shapiq.TabularExplainer``; it has the class that shapiq needs, with any absence.

    The ``baseline_value`` of shapiq's results is v(∅) of the explained sample.

    Parameters
    ----------
    model, absence, categorical
        See `MaskedModel`.
    x : array-like of shape (samples, features)
        Rows of the data, in the dtype that the model takes.
    readout : Readout, optional
        Which number of several outputs to explain, for all samples.

    Examples
    --------
    >>> import shapiq
    >>> x = torch.tensor([[2.0, 3.0], [4.0, 5.0]])
    >>> imputer = shapiq_imputer(lambda rows: rows.prod(1), ab.Baseline(1.0), x)
    >>> explainer = shapiq.TabularExplainer(imputer.predict, x.numpy(), imputer=imputer, index="SV", max_order=1)
    >>> values = explainer.explain(x[0].numpy(), budget=4)
    >>> values.get_n_order_values(1).round(3).tolist(), values.baseline_value
    ([2.0, 3.0], 1.0)
    """
    rows = as_tensor("x", x).detach().cpu()
    rows = rows.float() if rows.dtype == torch.bfloat16 else rows  # which NumPy lacks
    if rows.ndim != 2 or len(rows) == 0:
        then = "For images and groups, use shapiq_game."
        raise wrong("x", "hold rows of features, of shape (samples, features)", f"shape {tuple(rows.shape)}", then)
    if isinstance(readout, Features):
        raise wrong("readout", "be one number", "features of a layer", "Use LogOdds(class) or Output(number).")
    if isinstance(absence, str | int | float):
        absence = MaskedModel(
            model, rows[:1], readout=readout, absence=absence, data=rows, categorical=categorical
        ).absence
    everyone = np.ones((1, rows.shape[1]), dtype=bool)

    def game_of(samples: np.ndarray) -> MaskedModel:
        given = as_tensor("x", samples)
        # Samples may have fractions where the data are integers.
        given = given.to(rows.dtype) if rows.is_floating_point() else given
        return MaskedModel(model, given, readout=readout, absence=absence)

    class AbsenceImputer(require("shapiq").imputer.BaselineImputer):  # type: ignore[misc]
        """A BaselineImputer whose absent features an absence replaces."""

        def __init__(self) -> None:
            super().__init__(model=lambda x: _evaluate(game_of(x), everyone)[:, 0], data=rows.numpy())
            self.fit(rows[0].numpy())

        def init_background(self, data: np.ndarray) -> Any:
            """Ignore the background, because the absence has its own values."""
            return self

        def fit(self, x: np.ndarray) -> Any:
            """Set the sample to explain, and compute its v(∅)."""
            super().fit(x)
            self._game = game_of(self._x)
            self.empty_prediction = float(self.value_function(~everyone)[0])
            self.normalization_value = self.empty_prediction  # approximators are most precise if v(∅) is 0
            fill, self.baseline_values = self._game.fill, np.full(everyone.shape, np.nan)
            if isinstance(fill, StandIns) and fill.draws == 1:
                self.baseline_values = fill.values[0].cpu().numpy()
            return self

        def value_function(self, coalitions: np.ndarray) -> np.ndarray:
            """Evaluate coalitions of the sample."""
            return _evaluate(self._game, coalitions)[0]

    return AbsenceImputer()


def _evaluate(game: Callable[[Tensor], Tensor], coalitions: np.ndarray) -> np.ndarray:
    """Return the values of numpy coalitions."""
    values: np.ndarray = game(torch.from_numpy(np.asarray(coalitions, dtype=bool))).detach().cpu().double().numpy()
    return values
