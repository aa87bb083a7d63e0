"""A model with an absence as an imputer of shapiq, with which its explainers remove features as absentia does."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import torch

from absentia.absence import Absence, StandIns
from absentia.arrays import Table, as_tensor
from absentia.errors import wrong
from absentia.inference import Model
from absentia.interop.shapiq_game import SampleValues
from absentia.masked_model import MaskedModel
from absentia.optional import require
from absentia.readouts import Features, Readout


def shapiq_imputer(model: Model, absence: Absence, x: Table, *, readout: Readout | None = None) -> Any:
    """Make shapiq's imputer of a model whose absent features are left to an absence: for ``TabularExplainer``.

    ``x`` are rows of the data, in the type that the model takes; ``readout`` tells which number of several outputs is
    explained, for all samples alike. The imputer is a ``BaselineImputer``, as shapiq demands, but takes any absence;
    its empty prediction is v(∅) of the sample that it is fitted to, and stays the ``baseline_value`` of the results.

    >>> import absentia as ab
    >>> import shapiq
    >>> x = torch.tensor([[2.0, 3.0], [4.0, 5.0]])
    >>> imputer = shapiq_imputer(lambda rows: rows.prod(1), ab.Baseline(1.0), x)
    >>> explainer = shapiq.TabularExplainer(imputer.predict, x.numpy(), imputer=imputer, index="SV", max_order=1)
    >>> values = explainer.explain(x[0].numpy(), budget=4)
    >>> values.get_n_order_values(1).round(3).tolist(), values.baseline_value
    ([2.0, 3.0], 1.0)
    """
    rows = as_tensor("x", x)
    if rows.ndim != 2 or len(rows) == 0:
        then = "For images and groups, make a game and hand it over with shapiq_game."
        raise wrong("x", "hold rows of features, of shape (samples, features)", f"shape {tuple(rows.shape)}", then)
    if isinstance(readout, Features):
        raise wrong("readout", "be one number", "features of a layer", "Take LogOdds(class) or Output(number).")
    return _imputer_class()(model, absence, readout, rows.detach().cpu())


@cache
def _imputer_class() -> type:
    """Make the class when it is first asked for: shapiq is imported on use."""
    base = require("shapiq").imputer.BaselineImputer

    class AbsenceImputer(base):  # type: ignore[misc, valid-type]
        """An imputer of shapiq that leaves what is absent to an absence."""

        def __init__(self, model: Model, absence: Absence, readout: Readout | None, rows: torch.Tensor) -> None:
            self._made_of = model, absence, readout, rows.dtype
            self._game = self._game_of(rows[:1].numpy())
            super().__init__(model=self._outputs, data=rows.numpy())
            self.fit(rows[0].numpy())

        def fit(self, x: np.ndarray) -> Any:
            """Take the sample to explain, and its value with nothing present."""
            super().fit(x)
            self._game = self._game_of(self._x)
            self.calc_empty_prediction()
            return self

        def init_background(self, data: np.ndarray) -> Any:
            """Leave the background aside: the absence knows what stands in."""
            return self

        def value_function(self, coalitions: np.ndarray) -> np.ndarray:
            """Evaluate coalitions of the sample."""
            return SampleValues(self._game, 0)(coalitions)

        def calc_empty_prediction(self) -> float:
            """Evaluate the sample with nothing present."""
            self.empty_prediction = float(self.value_function(np.zeros((1, self.n_features), dtype=bool))[0])
            # shapiq's approximators are at their best where the empty coalition has no value.
            self.normalization_value = self.empty_prediction
            fill = self._game.absence.bind(self._game.x)
            self.baseline_values = np.full((1, self.n_features), np.nan)
            if isinstance(fill, StandIns) and fill.draws == 1:
                self.baseline_values = fill.values[0].cpu().numpy()
            return self.empty_prediction

        def _game_of(self, x: np.ndarray) -> MaskedModel:
            model, absence, readout, dtype = self._made_of
            rows = as_tensor("x", x)
            # Whole numbers among the data say nothing about the next sample.
            rows = rows.to(dtype) if dtype.is_floating_point else rows
            return MaskedModel(model, rows, readout=readout, absence=absence)

        def _outputs(self, x: np.ndarray) -> np.ndarray:
            """Evaluate rows as they are."""
            game = self._game_of(x)
            values: np.ndarray = game(torch.ones(1, self.n_features, dtype=torch.bool))[:, 0].double().cpu().numpy()
            return values

    return AbsenceImputer
