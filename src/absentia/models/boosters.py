"""The margins of boosters: their outputs before a link function turns them into probabilities.

XGBoost computes probabilities in single precision, so log-odds computed from them saturate: a margin of 190.9 becomes
87.3 or 16.6. The margins themselves do not saturate. Most are log-odds, or logits whose softmax gives the
probabilities, up to a factor that depends on the training loss. The margins of other losses are scores.

Nothing is imported here: a booster is recognised by the names of its class and its package.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Losses:
    """The training losses of a package, grouped by the meaning of the margins."""

    logits: tuple[str, ...]
    scores: tuple[str, ...]


XGBOOST = Losses(
    logits=("binary:logistic", "binary:logitraw", "multi:softprob", "multi:softmax"),
    scores=("binary:hinge",),
)
LIGHTGBM = Losses(logits=("binary", "cross_entropy", "multiclass"), scores=("multiclassova",))
CATBOOST = Losses(logits=("Logloss", "CrossEntropy", "MultiClass"), scores=("MultiClassOneVsAll",))

# A line in the saved form of LightGBM's random forests.
_AVERAGES = "average_output"

# With this loss a Booster of XGBoost predicts labels.
XGBOOST_LABELS = "multi:softmax"
# With this loss XGBoost predicts the margins themselves.
XGBOOST_RAW = "binary:logitraw"


@dataclass(frozen=True)
class Margins:
    """The margins of a fitted booster: how to read them, and what they mean."""

    read: Callable[[Any], Any]  # rows in the form the booster takes → margins
    scores: bool = False  # whether they are class scores rather than log-odds or logits
    factor: float = 1.0  # turns them into log-odds
    predicts_probabilities: bool = True  # whether the booster's own predictions are probabilities to check against
    each_class: bool = False  # whether a binary model needs one output for each class, as classifiers have

    def __call__(self, rows: Any) -> np.ndarray:
        """Return the margins of rows: scores unchanged, others as log-odds or as logits of the classes."""
        return self.of_raw(np.asarray(self.read(rows)))

    def of_raw(self, margins: np.ndarray) -> np.ndarray:
        """Return raw margins as what they mean."""
        if self.scores:
            return margins
        if self.factor != 1:
            margins = margins * self.factor
        has_each_class = margins.ndim == 2 and margins.shape[1] > 1
        if has_each_class or not self.each_class:
            return margins
        # Halves are exact in floating point, and so is their difference: the log-odds of class 1.
        halves = margins.reshape(len(margins)) / 2
        return np.stack([-halves, halves], axis=1)


def find_margins(estimator: Any) -> Margins | None:
    """Return the margins of a fitted booster, or of a pipeline that ends in one, or None for other models."""
    steps = getattr(estimator, "steps", None)
    if isinstance(steps, list) and steps:
        *transformers, last_step = [step for _, step in steps]
        margins = find_margins(last_step)
        if margins is None:
            return None
        return replace(margins, read=partial(_read_last_step, transformers, margins.read))
    for class_or_parent in type(estimator).__mro__:
        package = class_or_parent.__module__.partition(".")[0]
        find = _FINDERS.get((package, class_or_parent.__name__))
        if find is not None:
            return find(estimator)
    return None


def _read_last_step(transformers: Sequence[Any], read: Callable[[Any], Any], rows: Any) -> Any:
    """Transform rows by the first steps of a pipeline, and read the last step on the result."""
    for transformer in transformers:
        # "passthrough" has no transform, nor have steps that only resample training data.
        if hasattr(transformer, "transform"):
            rows = transformer.transform(rows)
    return read(rows)


def _is_fitted(classifier: Any) -> bool:
    """Return whether an XGBoost or LightGBM classifier is fitted."""
    return bool(classifier.__sklearn_is_fitted__())


def _of_xgboost_classifier(classifier: Any) -> Margins | None:
    """Read an XGBClassifier. Margins and probabilities both use the trees up to the best iteration."""
    if not _is_fitted(classifier):
        return None
    read = partial(classifier.predict, output_margin=True)
    if callable(classifier.objective):
        return Margins(read, scores=True)
    objective = _xgboost_objective(classifier.get_booster())
    if objective in XGBOOST.scores:
        return Margins(read, scores=True)
    if objective in XGBOOST.logits:
        return Margins(read, each_class=True, predicts_probabilities=objective != XGBOOST_RAW)
    return None


def _of_xgboost_booster(booster: Any) -> Margins | None:
    """Read an XGBoost Booster. Margins and predictions both use all trees."""
    read = partial(booster.inplace_predict, predict_type="margin")
    objective = _xgboost_objective(booster)
    if objective in XGBOOST.scores:
        return Margins(read, scores=True)
    if objective in XGBOOST.logits:
        return Margins(read, predicts_probabilities=objective not in (XGBOOST_RAW, XGBOOST_LABELS))
    return None


def _xgboost_objective(booster: Any) -> str:
    """Return the loss that an XGBoost Booster was trained with."""
    return str(json.loads(booster.save_config())["learner"]["objective"]["name"])


def _of_lightgbm_classifier(classifier: Any) -> Margins | None:
    """Read an LGBMClassifier. Margins and probabilities both use the trees up to the best iteration."""
    if not _is_fitted(classifier):
        return None
    read = partial(classifier.predict, raw_score=True)
    return _of_lightgbm(classifier.booster_, read, each_class=True)


def _of_lightgbm_booster(booster: Any) -> Margins | None:
    """Read a LightGBM Booster. Margins and predictions both use the trees up to the best iteration."""
    return _of_lightgbm(booster, partial(booster.predict, raw_score=True), each_class=False)


def _of_lightgbm(booster: Any, read: Callable[[Any], Any], each_class: bool) -> Margins | None:
    """Read a LightGBM model by the loss in its saved form, where every loss has a single name."""
    saved_lines = booster.model_to_string(num_iteration=1).splitlines()
    objective_lines = [line for line in saved_lines if line.startswith("objective=")]
    if not objective_lines:  # a custom loss has no name
        return Margins(read, scores=True)
    if _AVERAGES in saved_lines:
        read = partial(_averaged, read, _iterations(booster))
    objective, *settings = objective_lines[0].removeprefix("objective=").split()
    if objective in LIGHTGBM.scores:
        return Margins(read, scores=True)
    if objective not in LIGHTGBM.logits:
        return None
    factors = [float(setting.removeprefix("sigmoid:")) for setting in settings if setting.startswith("sigmoid:")]
    factor = factors[0] if factors else 1.0
    return Margins(read, factor=factor, each_class=each_class)


def _averaged(read: Callable[[Any], Any], iterations: int, rows: Any) -> np.ndarray:
    """Return the mean of a forest's trees, which probabilities are computed from; its raw scores are their sum."""
    sums: np.ndarray = np.asarray(read(rows))
    return sums / iterations


def _iterations(booster: Any) -> int:
    """Return how many iterations a LightGBM booster predicts with."""
    best = int(booster.best_iteration)
    return best if best > 0 else int(booster.current_iteration())


def _of_catboost_classifier(classifier: Any) -> Margins | None:
    """Read a CatBoostClassifier."""
    if not classifier.is_fitted():
        return None
    read = partial(classifier.predict, prediction_type="RawFormulaVal")
    loss = _catboost_loss(classifier)
    if loss in CATBOOST.scores:
        return Margins(read, scores=True)
    if loss in CATBOOST.logits:
        return Margins(read, each_class=True)
    return None


def _of_plain_catboost(model: Any) -> Margins | None:
    """Read a plain CatBoost model, which predicts margins if its loss is one of classes; None for other losses."""
    if not model.is_fitted() or np.size(model.classes_) == 0:
        return None
    read = partial(model.predict, prediction_type="RawFormulaVal")
    if _catboost_loss(model) in CATBOOST.logits:
        return Margins(read, each_class=True, predicts_probabilities=False)
    return Margins(read, scores=True, predicts_probabilities=False)


def _catboost_loss(model: Any) -> str:
    """Return the loss that a CatBoost model was trained with, without parameters such as in Logloss:border=0.5."""
    return str(model.get_all_params().get("loss_function", "")).partition(":")[0]


def _of_gradient_boosting(classifier: Any) -> Margins:
    """Read scikit-learn's GradientBoostingClassifier. The minimiser of its exponential loss is half the log-odds."""
    factor = 2.0 if classifier.loss == "exponential" else 1.0
    return Margins(classifier.decision_function, factor=factor, each_class=True)


def _of_histogram_boosting(classifier: Any) -> Margins:
    """Read scikit-learn's HistGradientBoostingClassifier."""
    return Margins(classifier.decision_function, each_class=True)


# Functions that read a booster, by the package and name of its class.
_FINDERS: dict[tuple[str, str], Callable[[Any], Margins | None]] = {
    ("xgboost", "XGBClassifier"): _of_xgboost_classifier,
    ("xgboost", "Booster"): _of_xgboost_booster,
    ("lightgbm", "LGBMClassifier"): _of_lightgbm_classifier,
    ("lightgbm", "Booster"): _of_lightgbm_booster,
    ("catboost", "CatBoostClassifier"): _of_catboost_classifier,
    ("catboost", "CatBoost"): _of_plain_catboost,
    ("sklearn", "GradientBoostingClassifier"): _of_gradient_boosting,
    ("sklearn", "HistGradientBoostingClassifier"): _of_histogram_boosting,
}
