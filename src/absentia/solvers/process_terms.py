"""Few terms of a game that a Gaussian process predicts well: their effects in the game itself, with errors.

The sum of few terms never gives all values of such a game. So the coefficients of the best sum differ from the
effects that the game has: from its Walsh terms a little, from its Harsanyi effects much. The process knows the
effects of the game, with errors. Walsh terms are listed with these, because their sum predicts nearly as well as the
best sum. Where it does not, coefficients of the best sum are listed, with errors that count how far the game's
effects are from them.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from absentia.coalitions import Coalitions, draw_coalitions
from absentia.cube.set_functionals import SetWeights
from absentia.data import seeded
from absentia.solvers.fitted_parts import FittedGame
from absentia.term_search.features import Basis, features_of
from absentia.term_search.forward_selection import least_squares
from absentia.term_search.growth import ChosenTerms, Growth, grow_terms, stop_at_share

# The process predicts this many coalitions, whose values terms are searched for.
_PREDICTED = 4000
# More terms than that are compared: what the best sum leaves is this share of what the listed terms may leave.
_LEFT_OF_COMPARED = 0.5
# Effects below this many standard errors are not listed.
_LEAST_ERRORS = 1.0
# Coefficients of the best sum are left out if the effect in the game is below this many standard errors.
_LEAST_ERRORS_OF_COEFFICIENTS = 0.25


class Predictions(NamedTuple):
    """What a process predicts for drawn coalitions."""

    coalitions: Coalitions
    values: Float[Tensor, " coalitions"]


class EstimatedTerms(NamedTuple):
    """Terms, and the errors of their effects."""

    terms: ChosenTerms
    errors: Float[Tensor, " terms"]


def drawn_predictions(fitted: FittedGame, ends: Float[Tensor, " 2"], seed: int) -> Predictions:
    """Return the expected values of coalitions whose sizes are drawn evenly; those of ∅ and all are known."""
    players = fitted.players
    generator = seeded(seed, "predicted")
    sizes = torch.randint(0, players + 1, (_PREDICTED,), generator=generator)
    coalitions = draw_coalitions(players, sizes, generator)
    values = fitted.predict(coalitions)
    values[sizes == 0] = ends[0]
    values[sizes == players] = ends[1]
    return Predictions(coalitions, values)


def estimated_walsh_terms(fitted: FittedGame, predicted: Predictions, growth: Growth, left: float) -> EstimatedTerms:
    """Return the largest Walsh terms of a game, as many as leave at most a share of the predicted variation."""
    coalitions, values = predicted
    stop = stop_at_share(_LEFT_OF_COMPARED * left)
    sets = grow_terms(coalitions, values, Basis.WALSH, growth, stop, prune=False).sets
    sets = torch.cat([sets, torch.eye(sets.shape[1], dtype=torch.bool)])
    sets = torch.cat([sets[:1], _distinct(sets[sets.any(1)])])
    effects, errors = estimates_of(fitted, sets, Basis.WALSH)
    is_listed = effects.abs() >= _LEAST_ERRORS * errors
    is_listed[0] = True
    sets, effects, errors = sets[is_listed], effects[is_listed], errors[is_listed]
    order = torch.cat([torch.zeros(1, dtype=torch.long), 1 + effects[1:].abs().argsort(descending=True)])
    sets, effects, errors = sets[order], effects[order], errors[order]
    count = _enough(features_of(sets, coalitions, Basis.WALSH).double() * effects, values, left)
    count = min(count, growth.most_terms)
    return EstimatedTerms(ChosenTerms(Basis.WALSH, sets[:count], effects[:count]), errors[:count])


def fitted_terms(
    fitted: FittedGame, predicted: Predictions, basis: Basis, growth: Growth, left: float
) -> EstimatedTerms:
    """Return few terms whose sum agrees best with the predictions; errors count how far the game's effects are."""
    coalitions, values = predicted
    terms = grow_terms(coalitions, values, basis, growth, stop_at_share(left), prune=False)
    effects, errors = estimates_of(fitted, terms.sets, basis)
    is_known = effects.abs() >= _LEAST_ERRORS_OF_COEFFICIENTS * errors
    is_known[0] = True
    if not bool(is_known.all()):  # the others would only make up for each other
        features = features_of(terms.sets[is_known], coalitions, basis)
        terms = ChosenTerms(basis, terms.sets[is_known], least_squares(features, values).coefficients)
    apart = terms.effects - effects[is_known]
    return EstimatedTerms(terms, (errors[is_known].square() + apart.square()).sqrt())


def _distinct(sets: Bool[Tensor, "terms players"]) -> Bool[Tensor, "distinct players"]:
    """Drop repeated sets."""
    return sets.unique(dim=0)


def _enough(parts: Float[Tensor, "coalitions terms"], values: Float[Tensor, " coalitions"], left: float) -> int:
    """Return how many of the parts, the first of all included, leave at most a share of the values' variation."""
    residuals = values[:, None] - parts.cumsum(1)
    shares = residuals.square().mean(0) / values.var(correction=0).clamp_min(torch.finfo(values.dtype).tiny)
    enough = (shares <= left).nonzero()
    return int(enough[0]) + 1 if len(enough) else int(shares.argmin()) + 1


class _Estimates(NamedTuple):
    """The effects of sets in the game, with their errors."""

    effects: Float[Tensor, " sets"]
    errors: Float[Tensor, " sets"]


def estimates_of(fitted: FittedGame, sets: Bool[Tensor, "sets players"], basis: Basis) -> _Estimates:
    """Return the expected effects of sets in the game itself, with standard errors."""
    effects = torch.zeros(len(sets), dtype=torch.float64)
    errors = torch.zeros(len(sets), dtype=torch.float64)
    sizes = sets.sum(1)
    for size in sizes.unique().tolist():
        own = sizes == size
        members = sets[own].nonzero()[:, 1].view(int(own.sum()), size)
        found = fitted.estimates(members, partial(effect_weights, basis, size, sets.shape[1]))
        effects[own] = found.values[0]
        errors[own] = found.errors[0]
    return _Estimates(effects, errors)


def effect_weights(basis: Basis, size: int, players: int, most_added: int) -> SetWeights:
    """Return the weights of Walsh terms in the effect of a set: its Walsh term, or its Harsanyi effect.

    Examples
    --------
    >>> effect_weights(Basis.HARSANYI, size=1, players=3, most_added=2).of_terms
    tensor([[ 2., -2.,  2.]], dtype=torch.float64)
    """
    others = players - size
    added = torch.arange(most_added + 1, dtype=torch.float64)
    if basis is Basis.WALSH:
        of_terms = (added == 0).double()
        of_contexts = torch.full((others + 1,), 2.0**-players, dtype=torch.float64)
    else:
        of_terms = torch.where(added <= others, 2.0**size * (1 - 2 * (added % 2)), 0.0)
        of_contexts = torch.zeros(others + 1, dtype=torch.float64)
        of_contexts[0] = 1.0
    return SetWeights(of_terms[None], of_contexts[None])
