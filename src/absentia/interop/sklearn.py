"""scikit-learn: fitted estimators and pipelines as models."""

from __future__ import annotations

from typing import Any

from absentia.arguments import checked
from absentia.errors import wrong
from absentia.models.arrays import NumpyModel
from absentia.models.estimators import wrap_estimator
from absentia.tables import EncodedTable, as_in_table


@checked
def from_estimator(estimator: Any, table: EncodedTable | None = None, *, probabilities: bool = True) -> NumpyModel:
    """Make a model from a fitted estimator or pipeline.

    Its outputs are the logarithms of ``predict_proba`` if the estimator has it, otherwise ``decision_function``, or
    ``predict`` for a regressor. For boosters of XGBoost, LightGBM, CatBoost and scikit-learn, the outputs are logits
    computed from the margins, which do not saturate as probabilities do. For two classes they are −z/2 and z/2, where
    z is the log-odds of the second class.

    `explain`, `audit` and `MaskedModel` accept estimators directly. Use this function for its options.

    Parameters
    ----------
    estimator : object
        A fitted estimator. Rows must have the columns of its fit, in that order.
    table : EncodedTable, optional
        The table whose rows are encoded. The estimator then receives the raw DataFrame, with categories.
    probabilities : bool, default True
        Whether to return the logarithms of probabilities, or the margins of a booster. If False, outputs are the
        probabilities themselves. Before taking logarithms, shares of votes are bounded: 0 of N votes is treated as 1
        of N + 2.

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
    fitted_columns = as_in_table([str(name) for name in getattr(estimator, "feature_names_in_", ())], table.columns)
    missing = [name for name in fitted_columns if name not in table.columns]
    if missing:
        must = f"have the columns of the fit, {', '.join(fitted_columns)}"
        raise wrong("table", must, f"none named {missing[0]!r}")
    return wrap_estimator(estimator, table, probabilities=probabilities)
