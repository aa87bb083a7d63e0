"""Fitted estimators and boosters as models."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from absentia.errors import require, wrong
from absentia.models.arrays import NumpyModel
from absentia.models.boosters import find_margins


def wrap_estimator(
    estimator: Any, decode: Callable[[np.ndarray], Any] | None = None, *, probabilities: bool = True
) -> NumpyModel:
    """Make a model of a fitted estimator or booster; ``decode`` converts rows of numbers to what it takes.

    Boosters are read by their margins, which `confirm_margins` compares with probabilities, unless these are wanted.
    """
    last = _last_step(estimator)
    names = getattr(estimator, "feature_names_in_", None)
    columns = () if names is None else tuple(str(name) for name in names)
    features = getattr(estimator, "n_features_in_", None)

    def run(predict: Callable[[Any], Any], rows: np.ndarray) -> np.ndarray:
        if decode is None and features is not None and rows.shape[1:] != (features,):
            raise wrong("x", f"have the {features} columns of the fit", f"shape {rows.shape[1:]}")
        given: Any = rows if decode is None else decode(rows)
        if columns:
            frame = require("pandas", "sklearn").DataFrame
            given = frame(rows, columns=columns) if decode is None else given[list(columns)]
        answer = predict(given)
        if isinstance(answer, list):
            raise wrong("estimator", "have one output", f"{len(answer)} outputs", "Explain one estimator for each.")
        return np.asarray(answer)

    labels = tuple(np.asarray(getattr(estimator, "classes_", ())).tolist())
    known = columns if decode is None else ()
    margins = find_margins(estimator) if probabilities else None
    if margins is not None and margins.scores:
        return NumpyModel(partial(run, margins), False, labels, columns=known, scores=True)
    if margins is not None and not margins.predicts_probabilities:
        return NumpyModel(partial(run, margins), False, labels, columns=known, margins=True)
    predict, gives = _prediction(estimator, last)
    least = _least_probability(last)
    least /= 1 + 2 * least  # the least share after one more vote for each side: no positive probability is changed
    by_prediction = NumpyModel(
        partial(run, predict),
        probabilities=probabilities and gives == "probabilities",
        labels=labels,
        regression=gives == "numbers",
        least=least,
        columns=known,
        scores=gives == "scores",
    )
    if margins is None:
        return by_prediction
    return NumpyModel(partial(run, margins), False, labels, columns=known, margins=True, fallback=by_prediction)


def _last_step(estimator: Any) -> Any:
    """Return the last step of a pipeline, which may be a pipeline itself; any other estimator as it is."""
    while hasattr(estimator, "steps"):
        estimator = estimator.steps[-1][1]
    return estimator


def _prediction(estimator: Any, last: Any) -> tuple[Callable[[Any], Any], str]:
    """Return the method of an estimator that says most, and what it returns: probabilities, scores or numbers."""
    if hasattr(estimator, "predict_proba"):
        return estimator.predict_proba, "probabilities"
    if hasattr(estimator, "decision_function"):
        if getattr(last, "decision_function_shape", "") == "ovo" and len(estimator.classes_) > 2:
            ovr = "Use decision_function_shape='ovr'."
            raise wrong("estimator", "have one score for each class", "one for each pair of classes", ovr)
        return estimator.decision_function, "scores"
    predict = getattr(estimator, "inplace_predict", getattr(estimator, "predict", None))
    if predict is not None and not hasattr(estimator, "classes_"):
        margins = find_margins(estimator)
        if margins is None:
            return predict, "numbers"
        if margins.scores or not margins.predicts_probabilities:
            return predict, "scores"
        return predict, "probabilities"
    got = "one that only predicts classes" if predict is not None else type(estimator).__name__
    raise wrong("estimator", "have predict_proba, decision_function, or be a regressor with predict", got)


def _least_probability(estimator: Any) -> float:
    """Return the least positive probability of neighbours, trees and forests, which are shares; else 0."""
    if getattr(estimator, "weights", None) == "uniform" and getattr(estimator, "n_neighbors", None):
        return 1 / estimator.n_neighbors
    trees = np.ravel(getattr(estimator, "estimators_", [estimator])).tolist()
    voting = all(hasattr(tree, "tree_") and hasattr(tree, "classes_") for tree in trees)
    weighted = ("estimator_weights_", "final_estimator_", "weights")  # by boosting, by stacking, by the user
    if not trees or not voting or any(getattr(estimator, name, None) is not None for name in weighted):
        return 0.0
    leaves = [tree.tree_.value[tree.tree_.children_left < 0, 0] for tree in trees]
    shares = np.concatenate([(one / one.sum(1, keepdims=True)).ravel() for one in leaves])
    return float(shares[shares > 0].min()) / len(trees)
