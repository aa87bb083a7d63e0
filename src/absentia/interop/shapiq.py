"""shapiq: games as its Game, absences as its imputers, and results to and from its InteractionValues."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from absentia.absences.protocol import Absence, StandIns
from absentia.arguments import checked
from absentia.attributions import Attribution
from absentia.coalitions import zeta
from absentia.data import Categorical, Table, as_tensor, check_number
from absentia.errors import AbsentiaError, require, wrong
from absentia.games import MAX_PLAYERS, Game, MaskedModel, ValueTable
from absentia.interop.shap import BaseValues, empty_values
from absentia.listed_sets import player_numbers, rows_of_players
from absentia.readouts import Features, Readout
from absentia.terms import Terms
from absentia.terms_in_words import BASES_OF_VALUES, WALSH
from absentia.walsh import walsh_to_harsanyi

# shapiq's names of the indices of players.
_INDICES = {"Shapley": "SV", "Banzhaf": "BV"}
# The indices of sets have the same names there.
_INTERACTION_INDICES = ("SII", "k-SII", "STII", "FSII", "BII", "FBII")


@checked
def to_shapiq(result: Terms | Attribution, sample: int = 0, *, base_values: BaseValues | None = None) -> Any:
    """Convert the result of one sample to shapiq's InteractionValues, for its plots and conversions between indices.

    shapiq does not store the names of players. Pass them to its plots.

    Parameters
    ----------
    result : Terms or Attribution
        Interactions become Möbius values of their sets, or values of their index, such as "k-SII". Walsh terms become
        the Möbius values of all subsets of their sets, which may have up to 16 players each. Attributions
        become Shapley ("SV") or Banzhaf ("BV") values. The shares of a `context_map` raise an error, because shapiq
        has no index for them.
    sample : int, default 0
    base_values : Game or numbers, optional
        v(∅), or the game that computes it. Required for an attribution. Interactions hold their own.

    Examples
    --------
    >>> values = to_shapiq(ab.harsanyi(ab.ValueTable([2.0, -2.0, -1.0, 1.0])))
    >>> values.index, values[(0, 1)], values.baseline_value
    ('Moebius', 6.0, 2.0)
    """
    if isinstance(result, Terms):
        check_number("sample", sample, 0, result.samples - 1)
        if result.basis in BASES_OF_VALUES:
            return _moebius_values(result, sample)
        return _index_values(result, sample)
    check_number("sample", sample, 0, len(result.values) - 1)
    if result.index not in _INDICES:
        then = "shapiq has no index for them."
        raise wrong("result", "hold interactions, Shapley values or Banzhaf values", result.kind, then)
    if base_values is None:
        raise AbsentiaError("An attribution needs base_values. Pass base_values=game, or v(∅) as a number.")
    base_value = float(empty_values(base_values, len(result.values))[sample])
    by_set: dict[tuple[int, ...], float] = {(): base_value}
    by_set |= {(player,): value for player, value in enumerate(result.values[sample].tolist())}
    budget = result.evaluations // len(result.values) if result.is_estimated else None
    index = _INDICES[result.index]
    return _interaction_values(by_set, index, len(result.names), base_value, max_order=1, budget=budget)


def _moebius_values(terms: Terms, sample: int) -> Any:
    """Convert Harsanyi effects. Walsh terms are converted to Harsanyi effects first."""
    by_set = _effects_by_set(terms, sample)
    order = max(len(members) for members in by_set)
    budget = None if terms.is_exact else terms.evaluations // terms.samples
    return _interaction_values(by_set, "Moebius", len(terms.names), by_set[()], max_order=order, budget=budget)


def _index_values(terms: Terms, sample: int) -> Any:
    """Convert an interaction index. Its base value is v(∅), except for the FBII, which fits its own."""
    if terms.basis not in _INTERACTION_INDICES:
        must = f"hold Harsanyi or Walsh effects, or the index {', '.join(_INTERACTION_INDICES)}"
        raise wrong("result", must, f"the basis {terms.basis}")
    by_set = _effects_by_set(terms, sample)
    base_value = by_set[()]
    if terms.basis != "FBII" and terms.base_values is not None:
        base_value = float(terms.base_values[sample])
    order = terms.order
    if order is None:
        order = max(len(members) for members in by_set)
    budget = None if terms.is_exact else terms.evaluations // terms.samples
    return _interaction_values(by_set, terms.basis, len(terms.names), base_value, max_order=order, budget=budget)


def _effects_by_set(terms: Terms, sample: int) -> dict[tuple[int, ...], float]:
    """Return the effects of a sample by the numbers of the players of their sets, with v(∅) among them."""
    sample_terms = terms.only(sample % terms.samples)
    effects = sample_terms.effects.detach().flatten()
    if terms.basis == WALSH:
        sets, effects, _ = walsh_to_harsanyi(sample_terms.sets, effects)
        players_of_all = player_numbers(sets)
    else:
        players_of_all = sample_terms.held.players_of_all()
    by_set: dict[tuple[int, ...], float] = {(): 0.0}
    for players, effect in zip(players_of_all, effects.tolist(), strict=True):
        by_set[players] = by_set.get(players, 0.0) + effect
    return by_set


def _interaction_values(
    by_set: dict[tuple[int, ...], float],
    index: str,
    players: int,
    base_value: float,
    *,
    max_order: int,
    budget: int | None = None,
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
        baseline_value=base_value,
        estimated=budget is not None,
        estimation_budget=budget,
    )


@checked
def from_shapiq(values: Any, names: Sequence[str] | None = None, *, listed: bool = False) -> Terms:
    """Convert shapiq's Möbius values of all sets, or an interaction index, to the terms of one sample.

    Parameters
    ----------
    values : shapiq.InteractionValues
        Values with the index "Moebius", "SII", "k-SII", "STII", "FSII", "BII" or "FBII", such as from shapiq's
        ExactComputer.
    names : sequence of str, optional
        The players' names.
    listed : bool, default False
        Whether sets that the values lack have no effect, such as those of a sparse approximation. By default, values
        must hold all 2ⁿ sets, because those of some orders alone do not add up to the values of coalitions.

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
    if values.index in _INTERACTION_INDICES:
        return _terms_of_index(values, names)
    then = 'Compute them with shapiq.ExactComputer(game)("Moebius").'
    if values.index != "Moebius":
        must = f"be Möbius values, or the index {', '.join(_INTERACTION_INDICES)}"
        raise wrong("values", must, f"the index {values.index!r}", then)
    players = int(values.n_players)
    by_set = {(): float(values.baseline_value), **values.dict_values}
    if listed:
        effects = torch.tensor([float(effect) for effect in by_set.values()], dtype=torch.float64)
        return Terms.listed(rows_of_players(list(by_set), players), effects, None if names is None else list(names))
    if len(by_set) != 2**players:
        total = f"{2**players}" if players <= MAX_PLAYERS else f"2^{players}"
        must = f"hold all {total} sets of {players} players"
        raise wrong("values", must, f"{len(by_set)} of them", f"{then} For sparse values, pass listed=True.")
    effects = torch.zeros(1, 2**players, dtype=torch.float64)
    for members, effect in by_set.items():
        number = sum(1 << player for player in members)
        effects[0, number] = float(effect)
    table = ValueTable(zeta(effects), names)
    return Terms(effects, table.names, table.readout, table.noise, evaluations=0)


def _terms_of_index(values: Any, names: Sequence[str] | None) -> Terms:
    """Convert the values of an interaction index, which need not list every set."""
    by_set = {(): float(values.baseline_value), **values.dict_values}
    sets = rows_of_players(list(by_set), int(values.n_players))
    effects = torch.tensor([float(effect) for effect in by_set.values()], dtype=torch.float64)
    terms = Terms.listed(sets, effects, None if names is None else tuple(names))
    base_values = torch.tensor([float(values.baseline_value)], dtype=torch.float64)
    return replace(terms, basis=values.index, order=int(values.max_order), base_values=base_values)


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
    """Make a BaselineImputer, which shapiq requires, that evaluates the game of the sample to explain."""
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
