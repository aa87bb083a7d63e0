"""Fitted estimators and boosters as models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from absentia.errors import require, wrong
from absentia.models.arrays import NumpyModel
from absentia.models.boosters import Margins, find_margins

Decoder: TypeAlias = Callable[[np.ndarray], Any]
PredictionKind: TypeAlias = Literal["probabilities", "scores", "numbers"]

# Attributes of ensembles that weight their votes: by boosting, by stacking, or as the user said.
_VOTE_WEIGHTS = ("estimator_weights_", "final_estimator_", "weights")


def wrap_estimator(estimator: Any, decode: Decoder | None = None, *, probabilities: bool = True) -> NumpyModel:
    """Make a model of a fitted estimator or booster; ``decode`` converts rows of numbers to what it takes.

    With ``probabilities``, boosters are read by their margins, which `confirm_margins` checks against probabilities.
    """
    fit = _Fit.of(estimator, decode)
    margins = find_margins(estimator) if probabilities else None
    if margins is None:
        return _by_prediction(estimator, fit, probabilities)
    if margins.scores:
        return NumpyModel(_Prediction(margins, fit), False, fit.labels, columns=fit.known_columns, scores=True)
    fallback = None
    if margins.predicts_probabilities:
        fallback = _by_prediction(estimator, fit, probabilities)
    return _by_margins(margins, fit, fallback)


@dataclass(frozen=True)
class _Fit:
    """What an estimator knows of the data it was fitted on, and how rows of numbers become such data."""

    columns: tuple[str, ...]  # empty if the columns had no names
    features: int | None
    labels: tuple[Any, ...]
    decode: Decoder | None

    @classmethod
    def of(cls, estimator: Any, decode: Decoder | None) -> _Fit:
        """Read the fit from the attributes that scikit-learn prescribes."""
        names = getattr(estimator, "feature_names_in_", None)
        return cls(
            columns=() if names is None else tuple(str(name) for name in names),
            features=getattr(estimator, "n_features_in_", None),
            labels=tuple(np.asarray(getattr(estimator, "classes_", ())).tolist()),
            decode=decode,
        )

    @property
    def known_columns(self) -> tuple[str, ...]:
        """The columns that rows must have; a table that is decoded checks its own."""
        return self.columns if self.decode is None else ()

    def rows_for_estimator(self, rows: np.ndarray) -> Any:
        """Convert rows of numbers to what the estimator was fitted on."""
        if self.decode is not None:
            decoded = self.decode(rows)
            return decoded[list(self.columns)] if self.columns else decoded
        if self.features is not None and rows.shape[1:] != (self.features,):
            raise wrong("x", f"have the {self.features} columns of the fit", f"shape {rows.shape[1:]}")
        if self.columns:
            return require("pandas", "sklearn").DataFrame(rows, columns=self.columns)
        return rows


@dataclass(frozen=True)
class _Prediction:
    """A method of an estimator as a function of rows of numbers."""

    method: Callable[[Any], Any]
    fit: _Fit

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Call the method, and return its single output."""
        answer = self.method(self.fit.rows_for_estimator(rows))
        if isinstance(answer, list):
            then = "Explain one estimator for each."
            raise wrong("estimator", "have one output", f"{len(answer)} outputs", then)
        return np.asarray(answer)


def _by_margins(margins: Margins, fit: _Fit, fallback: NumpyModel | None) -> NumpyModel:
    """Read a booster by its margins."""
    predict = _Prediction(margins, fit)
    return NumpyModel(predict, False, fit.labels, columns=fit.known_columns, margins=True, fallback=fallback)


def _by_prediction(estimator: Any, fit: _Fit, probabilities: bool) -> NumpyModel:
    """Read an estimator by its most informative method."""
    last_step = _last_step(estimator)
    method, kind = _best_method(estimator, last_step)
    least = _least_probability(last_step)
    return NumpyModel(
        _Prediction(method, fit),
        probabilities=probabilities and kind == "probabilities",
        labels=fit.labels,
        regression=kind == "numbers",
        # The smallest share after one more vote for each side, so that no positive probability is changed.
        least=least / (1 + 2 * least),
        columns=fit.known_columns,
        scores=kind == "scores",
    )


def _last_step(estimator: Any) -> Any:
    """Return the last step of a pipeline, also of nested pipelines, or the estimator itself."""
    while hasattr(estimator, "steps"):
        estimator = estimator.steps[-1][1]
    return estimator


def _best_method(estimator: Any, last_step: Any) -> tuple[Callable[[Any], Any], PredictionKind]:
    """Return the most informative method of an estimator, and the kind of its predictions."""
    if hasattr(estimator, "predict_proba"):
        return estimator.predict_proba, "probabilities"
    if hasattr(estimator, "decision_function"):
        by_pairs = getattr(last_step, "decision_function_shape", "") == "ovo"
        if by_pairs and len(estimator.classes_) > 2:
            then = "Use decision_function_shape='ovr'."
            raise wrong("estimator", "have one score for each class", "one for each pair of classes", then)
        return estimator.decision_function, "scores"
    # A Booster of XGBoost predicts arrays in place; its own ``predict`` takes only a DMatrix.
    predict = getattr(estimator, "inplace_predict", getattr(estimator, "predict", None))
    must = "have predict_proba, decision_function, or be a regressor with predict"
    if predict is None:
        raise wrong("estimator", must, type(estimator).__name__)
    if hasattr(estimator, "classes_"):
        raise wrong("estimator", must, "one that only predicts classes")
    return predict, _kind_of_plain_predictions(find_margins(estimator))


def _kind_of_plain_predictions(margins: Margins | None) -> PredictionKind:
    """Return what ``predict`` of a regressor (without margins) or of a booster returns."""
    if margins is None:
        return "numbers"
    if margins.scores or not margins.predicts_probabilities:
        return "scores"
    return "probabilities"


def _least_probability(estimator: Any) -> float:
    """Return the smallest positive probability of neighbours, trees and forests, which are shares; otherwise 0."""
    if getattr(estimator, "weights", None) == "uniform" and getattr(estimator, "n_neighbors", None):
        return 1 / estimator.n_neighbors
    trees = np.ravel(getattr(estimator, "estimators_", [estimator])).tolist()
    are_voters = all(hasattr(tree, "tree_") and hasattr(tree, "classes_") for tree in trees)
    are_weighted = any(getattr(estimator, name, None) is not None for name in _VOTE_WEIGHTS)
    if not trees or not are_voters or are_weighted:
        return 0.0
    shares = np.concatenate([_leaf_shares(tree) for tree in trees])
    return float(shares[shares > 0].min()) / len(trees)


def _leaf_shares(tree: Any) -> np.ndarray:
    """Return the share of each class in each leaf of a fitted decision tree."""
    is_leaf = tree.tree_.children_left < 0
    counts = tree.tree_.value[is_leaf, 0]
    shares: np.ndarray = (counts / counts.sum(1, keepdims=True)).ravel()
    return shares
