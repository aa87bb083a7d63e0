"""The margins of boosters: what they compute before a link function makes probabilities of it.

XGBoost computes probabilities in single precision, so that log-odds taken from them saturate: a margin of 190.9 reads
as 87.3 or as 16.6. The margins themselves do not. Most of them are log-odds, or logits whose softmax are the
probabilities, up to a factor that the loss of the training decides. Those of other losses are scores.

Nothing is imported here: a booster is known by the names of its class and of its package.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

# The losses of XGBoost whose margins are logits, and those whose margins are scores.
_XGBOOST_LOGITS = ("binary:logistic", "binary:logitraw", "multi:softprob", "multi:softmax")
_XGBOOST_SCORES = ("binary:hinge",)
# XGBoost's own predictions are labels with multi:softmax, and raw margins with binary:logitraw.
_XGBOOST_LABELS = "multi:softmax"
_XGBOOST_RAW = "binary:logitraw"
_LIGHTGBM_LOGITS = ("binary", "cross_entropy", "multiclass")
_LIGHTGBM_SCORES = ("multiclassova",)
_CATBOOST_LOGITS = ("Logloss", "CrossEntropy", "MultiClass")
_CATBOOST_SCORES = ("MultiClassOneVsAll",)


@dataclass(frozen=True)
class Margins:
    """How the margins of a fitted booster are read, and what they are."""

    read: Callable[[Any], Any]  # from the rows that the booster takes
    scores: bool = False  # whether they are scores of classes, not log-odds or logits
    factor: float = 1.0  # makes log-odds of them
    predicts_probabilities: bool = True  # whether the booster's own predictions are probabilities to compare with
    each_class: bool = False  # whether a binary model has an output for each class, as classifiers have

    def __call__(self, rows: Any) -> np.ndarray:
        """Return scores as they are; otherwise log-odds, or logits of the classes."""
        margins = np.asarray(self.read(rows))
        if self.scores:
            return margins
        if self.factor != 1:
            margins = margins * self.factor
        if not self.each_class or (margins.ndim == 2 and margins.shape[1] > 1):
            return margins
        # Halves are exact in floating point, and so is their difference: the log-odds of class 1.
        halves = margins.reshape(len(margins)) / 2
        return np.stack([-halves, halves], axis=1)


def find_margins(estimator: Any) -> Margins | None:
    """Return the margins of a fitted booster, or of a pipeline that ends in one; None for all else."""
    steps = getattr(estimator, "steps", None)
    if isinstance(steps, list) and steps:
        *before, last = [step for _, step in steps]
        margins = find_margins(last)
        if margins is None:
            return None
        return replace(margins, read=partial(_read_last, before, margins.read))
    for kind in type(estimator).__mro__:
        package = kind.__module__.partition(".")[0]
        find = _FINDERS.get((package, kind.__name__))
        if find is not None:
            return find(estimator)
    return None


def _read_last(before: Sequence[Any], read: Callable[[Any], Any], rows: Any) -> Any:
    """Read the last step of a pipeline on what the steps before make of rows."""
    for step in before:
        if hasattr(step, "transform"):  # "passthrough" has none, nor have steps that only resample training data
            rows = step.transform(rows)
    return read(rows)


def _is_fitted(classifier: Any) -> bool:
    """Return whether a classifier of XGBoost or LightGBM is fitted."""
    return bool(classifier.__sklearn_is_fitted__())


def _of_xgboost_classifier(classifier: Any) -> Margins | None:
    """Read an XGBClassifier, which uses the trees up to its best iteration for margins and probabilities alike."""
    if not _is_fitted(classifier):
        return None
    read = partial(classifier.predict, output_margin=True)
    if callable(classifier.objective):
        return Margins(read, scores=True)
    objective = _xgboost_objective(classifier.get_booster())
    if objective in _XGBOOST_SCORES:
        return Margins(read, scores=True)
    if objective in _XGBOOST_LOGITS:
        return Margins(read, each_class=True, predicts_probabilities=objective != _XGBOOST_RAW)
    return None


def _of_xgboost_booster(booster: Any) -> Margins | None:
    """Read a Booster of XGBoost, which uses all of its trees for margins and predictions alike."""
    read = partial(booster.inplace_predict, predict_type="margin")
    objective = _xgboost_objective(booster)
    if objective in _XGBOOST_SCORES:
        return Margins(read, scores=True)
    if objective in _XGBOOST_LOGITS:
        return Margins(read, predicts_probabilities=objective not in (_XGBOOST_RAW, _XGBOOST_LABELS))
    return None


def _xgboost_objective(booster: Any) -> str:
    """Return the loss that a Booster of XGBoost was trained with."""
    return str(json.loads(booster.save_config())["learner"]["objective"]["name"])


def _of_lightgbm_classifier(classifier: Any) -> Margins | None:
    """Read an LGBMClassifier, which uses the trees up to its best iteration for margins and probabilities alike."""
    if not _is_fitted(classifier):
        return None
    read = partial(classifier.predict, raw_score=True)
    return _of_lightgbm(classifier.booster_, read, each_class=True)


def _of_lightgbm_booster(booster: Any) -> Margins | None:
    """Read a Booster of LightGBM, which uses the trees up to its best iteration, too."""
    return _of_lightgbm(booster, partial(booster.predict, raw_score=True), each_class=False)


def _of_lightgbm(booster: Any, read: Callable[[Any], Any], each_class: bool) -> Margins | None:
    """Find the loss and its factor in what the booster would save, which has one name for each loss."""
    header = booster.model_to_string(num_iteration=1).splitlines()
    lines = [line for line in header if line.startswith("objective=")]
    if not lines:  # a loss of the user's own has no name
        return Margins(read, scores=True)
    objective, *settings = lines[0].removeprefix("objective=").split()
    if objective in _LIGHTGBM_SCORES:
        return Margins(read, scores=True)
    if objective not in _LIGHTGBM_LOGITS:
        return None
    factors = [float(setting.removeprefix("sigmoid:")) for setting in settings if setting.startswith("sigmoid:")]
    factor = factors[0] if factors else 1.0
    return Margins(read, factor=factor, each_class=each_class)


def _of_catboost_classifier(classifier: Any) -> Margins | None:
    """Read a CatBoostClassifier."""
    if not classifier.is_fitted():
        return None
    read = partial(classifier.predict, prediction_type="RawFormulaVal")
    loss = str(classifier.get_all_params().get("loss_function", ""))
    name = loss.partition(":")[0]  # parameters follow, as in Logloss:border=0.5
    if name in _CATBOOST_SCORES:
        return Margins(read, scores=True)
    if name in _CATBOOST_LOGITS:
        return Margins(read, each_class=True)
    return None


def _of_gradient_boosting(classifier: Any) -> Margins:
    """Read scikit-learn's GradientBoostingClassifier; half of the log-odds minimise its exponential loss."""
    factor = 2.0 if classifier.loss == "exponential" else 1.0
    return Margins(classifier.decision_function, factor=factor, each_class=True)


def _of_histogram_boosting(classifier: Any) -> Margins:
    """Read scikit-learn's HistGradientBoostingClassifier."""
    return Margins(classifier.decision_function, each_class=True)


# By the package and the name of the class.
_FINDERS: dict[tuple[str, str], Callable[[Any], Margins | None]] = {
    ("xgboost", "XGBClassifier"): _of_xgboost_classifier,
    ("xgboost", "Booster"): _of_xgboost_booster,
    ("lightgbm", "LGBMClassifier"): _of_lightgbm_classifier,
    ("lightgbm", "Booster"): _of_lightgbm_booster,
    ("catboost", "CatBoostClassifier"): _of_catboost_classifier,
    ("sklearn", "GradientBoostingClassifier"): _of_gradient_boosting,
    ("sklearn", "HistGradientBoostingClassifier"): _of_histogram_boosting,
}
