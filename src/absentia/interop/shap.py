"""shap: absences as its maskers, and attributions as its Explanation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from absentia.absences.protocol import Absence, BringsModel, Fill, describe_absence
from absentia.absences.words import named_absence
from absentia.arguments import checked
from absentia.attributions import Attribution
from absentia.data import Array, Table, as_tensor
from absentia.errors import AbsentiaError, require, wrong
from absentia.evaluation import check_coalitions
from absentia.games import Game, MaskedModel
from absentia.players import Players

# v(∅) as one number for all samples or one for each, or the game that computes it.
BaseValues: TypeAlias = Game | float | Sequence[float] | Array


@checked
@final
class ShapMasker:
    """A masker for ``shap.Explainer(model, masker)`` and shap's exact and permutation explainers.

    `shap_masker` is another name for it. shap explains the output of its model. To get the same values as absentia,
    let the model return the readout, such as the log-odds.

    Parameters
    ----------
    absence : Absence, str or float
    players : Players
        Features, groups, cells of an image or segments. shap returns one value for each.
    x : array-like of shape (samples, …), optional
        All samples that will be explained, if the absence has separate values or draws for each of them.

    Examples
    --------
    >>> import shap
    >>> masker = ab.interop.shap_masker(ab.Baseline(1.0), ab.Players.features(2))
    >>> masker(np.array([True, False]), np.array([2.0, 3.0]))[0].tolist()
    [[2.0, 1.0]]
    >>> shap.ExactExplainer(lambda rows: rows.prod(1), masker)(np.array([[2.0, 3.0]]), silent=True).values.tolist()
    [[2.0, 3.0]]
    """

    clustering = None  # plain Shapley values
    immutable_outputs = True  # shap need not copy what is returned

    def __init__(self, absence: Absence | str | float, players: Players, x: Table | None = None) -> None:
        absence = named_absence(absence, players=players)
        if isinstance(absence, BringsModel):
            then = "Explain it with MaskedModel, and convert the result with to_shap."
            raise AbsentiaError(f"shap cannot use an absence that replaces the model. {then}")
        self.absence = absence
        self.players = players
        self._only_samples: _BoundSamples | None = None
        self._last_sample: _BoundSamples | None = None
        if x is not None:
            rows = self._as_rows(as_tensor("x", x))
            self._only_samples = _BoundSamples(rows, absence.bind(rows))
        if players.labels.ndim != 1 or len(players.labels) != len(players):
            # shap needs the names and data of players that are not single entries. For single entries it uses its
            # own, because some of its plots cannot draw those that a masker returns.
            self.feature_names = lambda _x: [list(players.names)]
            self.data_transform = lambda x: [players.means(as_tensor("x", x)[None])[0].numpy()]

    def __repr__(self) -> str:
        return f"ShapMasker({describe_absence(self.absence)}, {self.players})"

    def __call__(self, mask: np.ndarray, x: Array) -> tuple[np.ndarray]:
        """Mask one sample; return a row for each draw of the absence."""
        coalition = torch.as_tensor(np.asarray(mask, dtype=bool))
        check_coalitions(coalition[None], len(self.players))
        filled = self._bound(x)(slice(0, 1), self.players.presence(coalition[None, None]))
        return (filled[0, 0].detach().cpu().numpy(),)

    def shape(self, x: Array) -> tuple[int, int]:
        """Return the number of rows for each coalition, and the number of players."""
        return self._bound(x).draws, len(self.players)

    def mask_shapes(self, x: Array) -> list[tuple[int, ...]]:
        """Return the shape of a coalition, which is also that of shap's values."""
        return [(len(self.players),)]

    def _as_rows(self, x: Tensor) -> Tensor:
        """Convert samples to a dtype that NumPy has, and that can hold stand-ins."""
        self.players.check_samples(x)
        if x.dtype == torch.bfloat16:
            return x.float()
        if x.is_floating_point() or self.players.integer:
            return x
        return x.double()

    def _bound(self, x: Array) -> Fill:
        """Return the fill of a sample, and cache it, because shap asks for all coalitions of a sample in turn."""
        row = self._as_rows(as_tensor("x", x)[None])
        last = self._last_sample
        if last is not None and torch.equal(last.rows, row):
            return last.fill
        fill = self.absence.bind(row) if self._only_samples is None else self._only_samples.fill_of(row)
        self._last_sample = _BoundSamples(row.clone(), fill)
        return fill


@dataclass(frozen=True, eq=False)
class _BoundSamples:
    """Samples, and the fill that an absence gives for them."""

    rows: Tensor
    fill: Fill

    def fill_of(self, row: Tensor) -> Fill:
        """Return the fill of one of the samples."""
        matches = (self.rows == row).flatten(1).all(1).nonzero().flatten()
        if len(matches) == 0:
            then = "Pass all of them to shap_masker(absence, players, x), or leave x out."
            raise wrong("x", "be among the samples that the masker was made for", "another sample", then)
        return self.fill.select(matches[:1])


shap_masker = ShapMasker
"""Make a `ShapMasker`."""


@checked
def to_shap(
    attribution: Attribution | Mapping[str, Attribution],
    x: Table | None = None,
    *,
    base_values: BaseValues | Mapping[str, BaseValues],
    players: Players | None = None,
) -> Any:
    """Convert attributions to shap's Explanation, which all its plots draw.

    Only Shapley values add up to the model's output, as shap's waterfall plot assumes.

    Parameters
    ----------
    attribution : Attribution or mapping of them
        The result of `shapley`, or a mapping from class names to results. In the latter case,
        ``explanation[:, :, name]`` is the part of one class.
    x : array-like of shape (samples, …), optional
        The samples. The default is those of the game in ``base_values``.
    base_values : Game, numbers, or a mapping of them
        v(∅), or the game that computes it, or a mapping from class names to these.
    players : Players, optional
        The players. The default is those of the game in ``base_values``, or one for each feature. The names of
        categories, and the entries of players with several entries, become the labels of the data.

    Examples
    --------
    >>> game = ab.MaskedModel(lambda rows: rows.prod(1), torch.tensor([[2.0, 3.0]]), absence=ab.Baseline(1.0))
    >>> explanation = to_shap(ab.shapley(game), base_values=game)
    >>> explanation.values.tolist(), explanation.base_values.tolist(), explanation.data.tolist()
    ([[2.0, 3.0]], [1.0], [[2.0, 3.0]])
    """
    by_class = attribution if isinstance(attribution, Mapping) else {"": attribution}
    bases = base_values if isinstance(base_values, Mapping) else dict.fromkeys(by_class, base_values)
    _check_classes(by_class, bases)
    first = next(iter(by_class.values()))
    game = next(iter(bases.values()))
    if isinstance(game, MaskedModel):
        x = game.x if x is None else x
        players = game.players if players is None else players
    data = None
    labels = None
    if x is not None:
        data, labels = _data_and_labels(first, as_tensor("x", x), players)

    values = _stacked([part.values for part in by_class.values()])
    errors = _stacked([part.errors for part in by_class.values()])
    empty = _stacked([empty_values(bases[name], len(first.values)) for name in by_class])
    output_names: list[str] | None = list(by_class)
    if not isinstance(attribution, Mapping):  # a single attribution has no axis of classes
        values = values[..., 0]
        errors = errors[..., 0]
        empty = empty[..., 0]
        output_names = None
    return require("shap").Explanation(
        values,
        empty,
        data,
        display_data=labels,
        error_std=errors if (errors > 0).any() else None,
        feature_names=list(first.names),
        output_names=output_names,
    )


def _check_classes(by_class: Mapping[str, Attribution], bases: Mapping[str, BaseValues]) -> None:
    """Raise an error unless all classes have base values, and the same samples and players."""
    if not by_class:
        raise wrong("attribution", "hold at least one attribution", "none")
    if set(bases) != set(by_class):
        raise wrong("base_values", f"be named as the attributions, {', '.join(by_class)}", ", ".join(bases))
    first, *others = by_class.values()
    for other in others:
        if other.names != first.names or other.values.shape != first.values.shape:
            raise AbsentiaError("The attributions of all classes must have the same samples and players.")


def _data_and_labels(
    attribution: Attribution, x: Tensor, players: Players | None
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return a number for each player and sample, and labels where numbers do not suffice."""
    then = ""
    if players is None:
        players = Players.features(attribution.names)
        then = "Pass players unless they are single features."
    samples, count = attribution.values.shape
    if len(players) != count or tuple(x.shape) != (samples, *players.shape):
        must = f"hold the attribution's {samples} samples, with its {count} players"
        raise wrong("x", must, f"shape {tuple(x.shape)} and {players}", then)
    data = players.means(x).numpy()
    if players.categories or not players.entry_values(x).isfinite().all():
        return data, np.asarray(players.texts(x))
    return data, None


def _stacked(parts: Sequence[Tensor]) -> np.ndarray:
    """Stack tensors of the classes along a last axis."""
    stacked: np.ndarray = torch.stack([part.detach().cpu() for part in parts], dim=-1).numpy()
    return stacked


def empty_values(base_values: BaseValues, samples: int) -> Float[Tensor, " samples"]:
    """Return v(∅) of each sample: the numbers, or what the game computes."""
    if isinstance(base_values, Game):
        nobody = torch.zeros(1, len(base_values.names), dtype=torch.bool)
        values = base_values(nobody)[:, 0]
    else:
        values = as_tensor("base_values", base_values)
    if values.ndim > 1 or (values.ndim == 1 and len(values) not in (1, samples)):
        must = f"be the game, one number, or one for each of the {samples} samples"
        raise wrong("base_values", must, f"shape {tuple(values.shape)}")
    return values.detach().cpu().double().expand(samples).clone()
