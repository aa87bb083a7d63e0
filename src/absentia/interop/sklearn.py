"""scikit-learn: fitted estimators and pipelines as models."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from absentia.arguments import checked
from absentia.errors import wrong
from absentia.interop.encoded_tables import EncodedTable
from absentia.models.arrays import NumpyModel
from absentia.models.estimators import wrap_estimator


@checked
def from_estimator(estimator: Any, table: EncodedTable | None = None, *, probabilities: bool = True) -> NumpyModel:
    """Make a model of a fitted estimator or pipeline.

    Its outputs are the logarithms of ``predict_proba``, or else ``decision_function``, or a regressor's ``predict``.
    Boosters of XGBoost, LightGBM, CatBoost and scikit-learn give logits instead, their margins, which do not saturate
    as probabilities do: for two classes −z/2 and z/2, where z is the log-odds of the second one.
    `explain`, `audit` and `MaskedModel` take estimators directly; use this function for its options.

    Parameters
    ----------
    estimator : object
        A fitted estimator. Rows must have the columns of its fit, in that order.
    table : EncodedTable, optional
        The table whose rows are encoded; the estimator then gets the raw DataFrame, with categories.
    probabilities : bool, default True
        Whether to take logarithms, or the margins of a booster; if not, outputs are the probabilities themselves.
        Shares of votes are bounded first: 0 of N votes is read as 1 of N + 2.

    Examples
    --------
    >>> import torch
    >>> from sklearn.linear_model import LogisticRegression
    >>> estimator = LogisticRegression().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> model = from_estimator(estimator)
    >>> torch.allclose(model(torch.tensor([[1.5]])).exp(), torch.tensor([[0.5, 0.5]]).double(), atol=1e-4)
    True
    """
    if table is None:
        return wrap_estimator(estimator, probabilities=probabilities)
    fitted_columns = [str(name) for name in getattr(estimator, "feature_names_in_", ())]
    missing = [name for name in fitted_columns if name not in table.columns]
    if missing:
        must = f"have the columns of the fit, {', '.join(fitted_columns)}"
        raise wrong("table", must, f"none named {missing[0]!r}")
    model = wrap_estimator(estimator, table.decode, probabilities=probabilities)
    return replace(model, categorical=tuple(table.categorical))
