"""Fitted estimators and boosters as models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from absentia.errors import AbsentiaError, require, wrong
from absentia.models.arrays import NumpyModel
from absentia.models.boosters import Margins, find_margins
from absentia.models.fitted_categories import fitted_on_categories
from absentia.models.tree_source import find_source
from absentia.tables import EncodedTable, as_in_table

PredictionKind: TypeAlias = Literal["probabilities", "scores", "numbers"]

# Attributes of ensembles that weight their votes: by boosting, by stacking, or by the user's choice.
_VOTE_WEIGHTS = ("estimator_weights_", "final_estimator_", "weights")


def wrap_estimator(estimator: Any, table: EncodedTable | None = None, *, probabilities: bool = True) -> NumpyModel:
    """Make a model from a fitted estimator or booster; ``table`` decodes rows of numbers to its input.

    With ``probabilities``, the margins of boosters are used, and `confirm_margins` compares them with probabilities.
    """
    estimator = _best_found(estimator)
    fit = _Fit.of(estimator, table)
    margins = find_margins(estimator) if probabilities else None
    trees = find_source(estimator, fit.rows_for_estimator, margins)
    if margins is None:
        return replace(_by_prediction(estimator, fit, probabilities), trees=trees)
    if margins.scores:
        predict = _Prediction(margins, fit)
        model = NumpyModel(predict, False, fit.labels, columns=fit.known_columns, scores=True, trees=trees)
        return replace(model, table=table)
    fallback = None
    if margins.predicts_probabilities:
        not_read = replace(trees, why_not="its margins and its probabilities do not agree")
        fallback = replace(_by_prediction(estimator, fit, probabilities), trees=not_read)
    return replace(_by_margins(margins, fit, fallback), trees=trees)


def _best_found(estimator: Any) -> Any:
    """Return the best estimator of a search over settings such as GridSearchCV, which predicts with it."""
    is_search = type(estimator).__module__.startswith("sklearn.model_selection")
    if is_search and hasattr(estimator, "best_estimator_"):
        return estimator.best_estimator_
    return estimator


@dataclass(frozen=True)
class _Fit:
    """What an estimator knows about the data it was fitted on, and how rows of numbers become such data."""

    columns: tuple[str, ...]  # empty if the columns had no names
    features: int | None
    labels: tuple[Any, ...]
    table: EncodedTable | None  # decodes rows of numbers
    on_categories: bool  # whether a booster was fitted to columns of categories

    @classmethod
    def of(cls, estimator: Any, table: EncodedTable | None) -> _Fit:
        """Read the fit from the attributes that scikit-learn prescribes."""
        columns = [str(name) for name in getattr(estimator, "feature_names_in_", ())]
        if table is not None:
            columns = as_in_table(columns, table.columns)
        return cls(
            columns=tuple(columns),
            features=_feature_count(estimator),
            labels=_labels_of(estimator),
            table=table,
            on_categories=bool(columns) and fitted_on_categories(estimator),
        )

    @property
    def known_columns(self) -> tuple[str, ...]:
        """The columns that rows must have; none if a table decodes the rows, because it checks them itself."""
        return self.columns if self.table is None else ()

    def rows_for_estimator(self, rows: np.ndarray) -> Any:
        """Convert rows of numbers to what the estimator was fitted on."""
        if self.table is not None:
            decoded = self.table.decode(rows)
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
        given = self.fit.rows_for_estimator(rows)
        try:
            answer = self.method(given)
        except Exception as error:
            if self.fit.on_categories and self.fit.table is None:
                must = "be a DataFrame with the categories that the model was fitted on"
                then = "Pass a DataFrame with the columns and dtypes of the fit, and data likewise."
                raise wrong("x", must, "rows of numbers", then) from error
            raise
        if isinstance(answer, list):
            raise _several_outputs(len(answer))
        return np.asarray(answer)


def _labels_of(estimator: Any) -> tuple[Any, ...]:
    """Return the classes of an estimator; raise an error if it has classes for each of several outputs."""
    classes = getattr(estimator, "classes_", ())
    if isinstance(classes, list) and any(isinstance(of_output, np.ndarray) for of_output in classes):
        raise _several_outputs(len(classes))
    return tuple(np.asarray(classes).tolist())


def _several_outputs(outputs: int) -> AbsentiaError:
    """Return the error for an estimator of several targets."""
    then = (
        "Explain one output at a time: pass an estimator fitted to that target alone, or "
        "from_numpy(lambda rows: estimator.predict_proba(rows)[0], probabilities=True)."
    )
    return wrong("estimator", "have one output", f"{outputs} outputs", then)


def _by_margins(margins: Margins, fit: _Fit, fallback: NumpyModel | None) -> NumpyModel:
    """Read a booster by its margins."""
    predict = _Prediction(margins, fit)
    columns = fit.known_columns
    return NumpyModel(predict, False, fit.labels, columns=columns, margins=True, fallback=fallback, table=fit.table)


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
        table=fit.table,
    )


def _feature_count(estimator: Any) -> int | None:
    """Return the number of columns that an estimator or a Booster was fitted on, if it stores it."""
    count: int | None = getattr(estimator, "n_features_in_", None)
    # A Booster of XGBoost has the first method, and one of LightGBM the second.
    for name in ("num_features", "num_feature"):
        if count is None and hasattr(estimator, name):
            count = int(getattr(estimator, name)())
    return count


def _last_step(estimator: Any) -> Any:
    """Return the last step of a pipeline, even if pipelines are nested, or the estimator itself."""
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
    margins = find_margins(estimator)
    has_classes = np.size(getattr(estimator, "classes_", ())) > 0  # regressors of CatBoost have an empty list
    if has_classes and margins is None:
        raise wrong("estimator", must, "one that only predicts classes")
    return predict, _kind_of_plain_predictions(margins)


def _kind_of_plain_predictions(margins: Margins | None) -> PredictionKind:
    """Return the kind of predictions of a regressor's or a booster's ``predict``."""
    if margins is None:
        return "numbers"
    if margins.scores or not margins.predicts_probabilities:
        return "scores"
    return "probabilities"


def _least_probability(estimator: Any) -> float:
    """Return the smallest positive probability of neighbours, trees and forests, or 0 for other estimators."""
    if getattr(estimator, "weights", None) == "uniform" and getattr(estimator, "n_neighbors", None):
        return 1 / estimator.n_neighbors
    trees = _members_of(estimator)
    are_voters = all(hasattr(tree, "tree_") and hasattr(tree, "classes_") for tree in trees)
    are_weighted = any(getattr(estimator, name, None) is not None for name in _VOTE_WEIGHTS)
    if not trees or not are_voters or are_weighted:
        return 0.0
    shares = np.concatenate([_leaf_shares(tree) for tree in trees])
    return float(shares[shares > 0].min()) / len(trees)


def _members_of(estimator: Any) -> list[Any]:
    """Return the estimators of an ensemble, or the estimator itself."""
    members = getattr(estimator, "estimators_", [estimator])
    if isinstance(members, np.ndarray):  # one row for each stage of boosting
        return list(members.ravel())
    return list(members)


def _leaf_shares(tree: Any) -> np.ndarray:
    """Return the share of each class in each leaf of a fitted decision tree."""
    is_leaf = tree.tree_.children_left < 0
    counts = tree.tree_.value[is_leaf, 0]
    shares: np.ndarray = (counts / counts.sum(1, keepdims=True)).ravel()
    return shares
