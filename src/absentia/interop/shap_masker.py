"""An absence as a masker of shap, with which shap's own explainers remove players as absentia does."""

from __future__ import annotations

from typing import Any, final

import numpy as np
import torch
from torch import Tensor

from absentia.absence import Absence, BringsModel, Fill
from absentia.arrays import Array, Table, as_tensor
from absentia.errors import wrong
from absentia.interop.player_data import player_means
from absentia.optional import require
from absentia.players import Players


@final
class ShapMasker:
    """What shap asks of a masker: masked inputs for a coalition, and the players' number and names.

    >>> import absentia as ab
    >>> masker = shap_masker(ab.Baseline(0.0), ab.Players.groups({"a": [0, 2], "b": [1]}, features=3))
    >>> masker(np.array([True, False]), np.array([1.0, 2.0, 3.0]))[0].tolist()
    [[1.0, 0.0, 3.0]]
    """

    clustering = None  # plain Shapley values
    immutable_outputs = True  # nothing returned is written to again: shap need not copy it

    def __init__(self, absence: Absence, players: Players, x: Table | None = None) -> None:
        if not isinstance(absence, Absence):
            raise wrong("absence", "be an absence such as Baseline(0.0)", type(absence).__name__)
        if isinstance(absence, BringsModel):
            then = "Explain it with MaskedModel, and hand the result over with to_shap."
            raise wrong("absence", "leave the model as it is", "one that brings its own", then)
        self.absence = absence
        self.players = players
        self._known = None if x is None else self._as_rows(as_tensor("x", x))
        self._known_fill = None if self._known is None else absence.bind(self._known)
        # shap asks for one sample after the other, with all of its coalitions: the last one stays bound.
        self._last: tuple[Tensor, Fill, slice] | None = None
        if players.labels.numel() != len(players) or players.labels.ndim != 1:
            # shap must be told what players are called and look like where they are not entries. Where they are, it
            # is better left to itself: told, it keeps names and data in a form that some of its plots can't draw.
            self.feature_names = self._names
            self.data_transform = self._means

    def __repr__(self) -> str:
        return f"ShapMasker({self.absence}, {self.players})"

    def __call__(self, mask: np.ndarray, x: Array) -> tuple[np.ndarray]:
        """Mask one sample: a row for each draw of the absence, over which shap averages."""
        fill, sample = self._bound(x)
        coalition = torch.as_tensor(np.asarray(mask, dtype=bool))
        filled = fill(sample, self.players.presence(coalition[None, None]))
        return (filled[0, 0].detach().cpu().numpy(),)

    def shape(self, x: Array) -> tuple[int, int]:
        """Tell how many rows stand for a coalition, and how many players there are."""
        return self._bound(x)[0].draws, len(self.players)

    def mask_shapes(self, x: Array) -> list[tuple[int, ...]]:
        """Tell the shape of a coalition, which is that of the values."""
        return [(len(self.players),)]

    def tidy(self, explanation: Any) -> Any:
        """Name the players in an Explanation that shap made with this masker, so that all of its plots draw it."""
        return require("shap").Explanation(
            explanation.values,
            base_values=explanation.base_values,
            data=np.stack([np.asarray(row, dtype=np.float64) for row in explanation.data]),
            feature_names=list(self.players.names),
            output_names=explanation.output_names,
            error_std=explanation.error_std,
        )

    def _names(self, x: Array) -> list[list[str]]:
        return [list(self.players.names)]

    def _means(self, x: Array) -> list[np.ndarray]:
        return [player_means(as_tensor("x", x)[None], self.players)[0].numpy()]

    def _as_rows(self, x: Tensor) -> Tensor:
        if tuple(x.shape[1:]) != self.players.shape:
            raise wrong("x", f"have samples of the players' shape {self.players.shape}", f"{tuple(x.shape[1:])}")
        return x if x.is_floating_point() or self.players.integer else x.double()

    def _bound(self, x: Array) -> tuple[Fill, slice]:
        row = self._as_rows(as_tensor("x", x)[None])
        if self._last is None or not torch.equal(self._last[0], row):
            self._last = (row.clone(), *self._bind(row))
        return self._last[1:]

    def _bind(self, row: Tensor) -> tuple[Fill, slice]:
        if self._known is None or self._known_fill is None:
            return self.absence.bind(row), slice(0, 1)
        found = (self._known == row).flatten(1).all(1).nonzero()
        if len(found) == 0:
            then = "Pass them all to shap_masker(absence, players, x), or leave x out there."
            raise wrong("x", "be among the samples that the masker was made for", "another sample", then)
        return self._known_fill, slice(int(found[0]), int(found[0]) + 1)


def shap_masker(absence: Absence, players: Players, x: Table | None = None) -> ShapMasker:
    """Make a masker of an absence, for ``shap.Explainer(model, masker)`` and its exact and permutation explainers.

    Players may be groups, cells of an image, or segments: shap then gives one value for each. ``x`` holds the samples
    to be explained, for an absence that has values or draws of its own for each of them; then only those can be
    explained. The model that shap takes maps numpy rows to numbers, and shap averages them over the absence's draws:
    let it return the readout, such as the log-odds, for the values that absentia gives. For shap's plots of grouped
    players, pass what the explainer returns through ``masker.tidy``.

    >>> import absentia as ab
    >>> import shap
    >>> masker = shap_masker(ab.Baseline(1.0), ab.Players.features(2))
    >>> shap.ExactExplainer(lambda rows: rows.prod(1), masker)(np.array([[2.0, 3.0]]), silent=True).values.tolist()
    [[2.0, 3.0]]
    """
    return ShapMasker(absence, players, x)
