"""shapiq: games as its Game, absences as its imputers, and results to and from its InteractionValues."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from absentia.absences.protocol import Absence, StandIns
from absentia.arguments import checked
from absentia.attributions import Attribution
from absentia.coalitions import coalition_members, zeta
from absentia.data import Categorical, Table, as_tensor, check_number
from absentia.errors import AbsentiaError, require, wrong
from absentia.games import Game, MaskedModel, ValueTable
from absentia.interop.shap import BaseValues, empty_values
from absentia.readouts import Features, Readout
from absentia.terms import Terms

# shapiq's names of the indices.
_INDICES = {"Shapley": "SV", "Banzhaf": "BV"}


@checked
def to_shapiq(result: Terms | Attribution, sample: int = 0, *, base_values: BaseValues | None = None) -> Any:
    """Convert one sample's result to shapiq's InteractionValues, for its plots and its conversion to other indices.

    shapiq keeps no names: pass them to its plots.

    Parameters
    ----------
    result : Terms or Attribution
        Interactions become Möbius values of their sets, attributions Shapley ("SV") or Banzhaf ("BV") values. The
        shares of a `context_map` raise an error, because shapiq has no index for them.
    sample : int, default 0
    base_values : Game or numbers, optional
        v(∅), or the game that computes it; required for an attribution.

    Examples
    --------
    >>> values = to_shapiq(ab.harsanyi(ab.ValueTable([2.0, -2.0, -1.0, 1.0])))
    >>> values.index, values[(0, 1)], values.baseline_value
    ('Moebius', 6.0, 2.0)
    """
    if isinstance(result, Terms):
        check_number("sample", sample, 0, result.samples - 1)
        by_set = _effects_by_set(result, sample)
        largest_order = max(len(members) for members in by_set)
        return _interaction_values(by_set, "Moebius", len(result.names), max_order=largest_order)
    check_number("sample", sample, 0, len(result.values) - 1)
    if result.index not in _INDICES:
        then = "shapiq has no index for them."
        raise wrong("result", "hold interactions, Shapley values or Banzhaf values", result.kind, then)
    if base_values is None:
        raise AbsentiaError("An attribution needs base_values. Pass base_values=game, or v(∅) as a number.")
    by_set = {(): float(empty_values(base_values, len(result.values))[sample])}
    by_set |= {(player,): value for player, value in enumerate(result.values[sample].tolist())}
    budget = result.evaluations // len(result.values) if result.is_estimated else None
    return _interaction_values(by_set, _INDICES[result.index], len(result.names), max_order=1, budget=budget)


def _effects_by_set(terms: Terms, sample: int) -> dict[tuple[int, ...], float]:
    """Return the effects of a sample by the numbers of the players of their sets, with v(∅) among them."""
    if terms.is_full:
        effects = terms.effects[sample].tolist()
        return {coalition_members(number): effect for number, effect in enumerate(effects)}
    own = terms.of_sample(sample)
    by_set: dict[tuple[int, ...], float] = {(): 0.0}
    for members, effect in zip(own.sets, own.effects.tolist(), strict=True):
        players = tuple(members.nonzero().flatten().tolist())
        by_set[players] = by_set.get(players, 0.0) + effect
    return by_set


def _interaction_values(
    by_set: dict[tuple[int, ...], float], index: str, players: int, *, max_order: int, budget: int | None = None
) -> Any:
    """Make shapiq's InteractionValues; values are exact unless they have a budget of evaluations."""
    return require("shapiq").InteractionValues(
        by_set,
        index=index,
        min_order=0,
        max_order=max_order,
        n_players=players,
        # Without a lookup, shapiq would list all sets of all players.
        interaction_lookup={members: number for number, members in enumerate(by_set)},
        baseline_value=by_set[()],
        estimated=budget is not None,
        estimation_budget=budget,
    )


@checked
def from_shapiq(values: Any, names: Sequence[str] | None = None) -> Terms:
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
    by_set = {(): float(values.baseline_value), **values.dict_values}
    if len(by_set) != 2**players:
        raise wrong("values", f"hold all {2**players} sets of {players} players", f"{len(by_set)} of them", then)
    effects = torch.zeros(1, 2**players, dtype=torch.float64)
    for members, effect in by_set.items():
        number = sum(1 << player for player in members)
        effects[0, number] = float(effect)
    table = ValueTable(zeta(effects), names)
    return Terms(effects, table.names, table.readout, table.noise, evaluations=0)


@checked
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
    players = len(game.names)
    values = _values_of_sample(game, sample)
    empty = float(_evaluate(values, np.zeros((1, players), dtype=bool))[0])
    peer = shapiq.Game(players, normalize=normalize, normalization_value=empty, player_names=list(game.names))
    peer.value_function = partial(_evaluate, values)
    return peer


def _values_of_sample(game: Game, sample: int) -> Callable[[Tensor], Tensor]:
    """Return a function from coalitions to the values of one sample; a model runs on this sample only."""
    if isinstance(game, MaskedModel):
        number = torch.tensor([sample])
        fill = game.fill.select(number)
        evaluator = game.evaluator
        return lambda coalitions: evaluator.values(fill, coalitions, samples=number)[0]
    return lambda coalitions: game(coalitions)[sample]


@checked
def shapiq_imputer(
    model: Any,
    absence: Absence | str | float,
    x: Table,
    *,
    readout: Readout | None = None,
    categorical: Categorical = (),
) -> Any:
    """Return an imputer for ``shapiq.TabularExplainer`` that uses any absence.

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
    rows = _rows_of_features(x)
    if isinstance(readout, Features):
        raise wrong("readout", "be one number", "features of a layer", "Use LogOdds(class) or Output(number).")
    if isinstance(absence, str | int | float):
        game = MaskedModel(model, rows[:1], readout=readout, absence=absence, data=rows, categorical=categorical)
        absence = game.absence

    def game_of(samples: np.ndarray) -> MaskedModel:
        x = as_tensor("x", samples)
        if rows.is_floating_point():  # otherwise keep fractions, which samples of integer data may have
            x = x.to(rows.dtype)
        return MaskedModel(model, x, readout=readout, absence=absence)

    return _make_imputer(game_of, rows.numpy())


def _make_imputer(game_of: Callable[[np.ndarray], MaskedModel], data: np.ndarray) -> Any:
    """Make a BaselineImputer, which shapiq demands, that evaluates the game of the sample to explain."""
    everyone = np.ones((1, data.shape[1]), dtype=bool)

    def predict(samples: np.ndarray) -> np.ndarray:
        return _evaluate(game_of(samples), everyone)[:, 0]

    class AbsenceImputer(require("shapiq").imputer.BaselineImputer):  # type: ignore[misc]
        """A BaselineImputer that replaces absent features by an absence."""

        def __init__(self) -> None:
            super().__init__(model=predict, data=data)
            self.fit(data[0])

        def init_background(self, data: np.ndarray) -> Any:
            """Ignore the background, because the absence has its own values."""
            return self

        def fit(self, x: np.ndarray) -> Any:
            """Set the sample to explain, and compute its v(∅)."""
            super().fit(x)
            self._game = game_of(self._x)
            self.empty_prediction = float(self.value_function(~everyone)[0])
            self.normalization_value = self.empty_prediction  # approximators are most precise if v(∅) is 0
            self.baseline_values = np.full(everyone.shape, np.nan)
            fill = self._game.fill
            if isinstance(fill, StandIns) and fill.draws == 1:
                self.baseline_values = fill.values[0].cpu().numpy()
            return self

        def value_function(self, coalitions: np.ndarray) -> np.ndarray:
            """Evaluate coalitions of the sample."""
            return _evaluate(self._game, coalitions)[0]

    return AbsenceImputer()


def _rows_of_features(x: Table) -> Tensor:
    """Convert a table to rows of a dtype that NumPy has."""
    rows = as_tensor("x", x).detach().cpu()
    if rows.ndim != 2 or len(rows) == 0:
        then = "For images and groups, use shapiq_game."
        raise wrong("x", "hold rows of features, of shape (samples, features)", f"shape {tuple(rows.shape)}", then)
    return rows.float() if rows.dtype == torch.bfloat16 else rows


def _evaluate(values_of: Callable[[Tensor], Tensor], coalitions: np.ndarray) -> np.ndarray:
    """Evaluate numpy coalitions, and return their values as an array."""
    values = values_of(torch.from_numpy(np.asarray(coalitions, dtype=bool)))
    array: np.ndarray = values.detach().cpu().double().numpy()
    return array
