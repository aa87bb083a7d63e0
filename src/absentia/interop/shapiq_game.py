"""One sample of a game as shapiq's Game, for its approximators and its exact computer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Shaped
from torch import Tensor

from absentia.absence import Absence, BringsModel, Fill, StandIns
from absentia.errors import wrong
from absentia.game import Game
from absentia.interop.base_values import check_sample
from absentia.masked_model import MaskedModel
from absentia.optional import require


def shapiq_game(game: Game, sample: int = 0, *, normalize: bool = False) -> Any:
    """Make shapiq's Game of one sample: players by name, and the values of whatever coalitions shapiq asks for.

    The empty coalition has its true value v(∅), which then is the ``baseline_value`` of shapiq's results; with
    ``normalize`` shapiq takes v(∅) from all values instead.

    >>> import absentia as ab
    >>> import shapiq
    >>> game = ab.MaskedModel(lambda rows: rows.prod(1), torch.tensor([[2.0, 3.0]]), absence=ab.Baseline(1.0))
    >>> values = shapiq.ExactComputer(shapiq_game(game))("SV")
    >>> values.get_n_order_values(1).tolist(), values.baseline_value
    ([2.0, 3.0], 1.0)
    """
    shapiq = require("shapiq")
    if not isinstance(game, Game):
        raise wrong("game", "be a game such as MaskedModel(…) or ValueTable(values)", type(game).__name__)
    check_sample(sample, game.samples)
    values = SampleValues(*_narrow(game, sample))
    empty = float(values(np.zeros((1, len(game.names)), dtype=bool))[0])
    peer = shapiq.Game(
        n_players=len(game.names), normalize=normalize, normalization_value=empty, player_names=list(game.names)
    )
    peer.value_function = values  # in place of a subclass that would hold nothing else
    return peer


@dataclass(frozen=True)
class SampleValues:
    """The values of one sample, as numpy asks for them and gets them."""

    game: Game
    sample: int

    def __call__(self, coalitions: np.ndarray) -> np.ndarray:
        """Evaluate coalitions."""
        values = self.game(torch.from_numpy(np.asarray(coalitions, dtype=bool)))[self.sample]
        array: np.ndarray = values.detach().cpu().double().numpy()
        return array


def _narrow(game: Game, sample: int) -> tuple[Game, int]:
    """Keep a model from being run on the other samples."""
    if game.samples == 1 or not isinstance(game, MaskedModel) or isinstance(game.absence, BringsModel):
        return game, sample
    return game.part(torch.tensor([sample]), _OneOf(game.absence, game.x, sample)), 0


@dataclass(frozen=True, eq=False)
class _OneOf:
    """An absence bound to all samples, of which one is asked for: what is drawn for each sample stays as it is."""

    absence: Absence
    x: Shaped[Tensor, "samples *entries"]
    sample: int

    def bind(self, x: Shaped[Tensor, "samples *entries"]) -> Fill:
        """Bind all samples, and leave the others aside."""
        fill = self.absence.bind(self.x)
        if isinstance(fill, StandIns):
            return StandIns(x, fill.values if len(fill.values) == 1 else fill.values[[self.sample]])
        return _OneOfFill(fill, self.sample)


@dataclass(frozen=True, eq=False)
class _OneOfFill:
    fill: Fill
    sample: int

    @property
    def draws(self) -> int:
        """How many masked inputs stand for one coalition."""
        return self.fill.draws

    def __call__(
        self, samples: slice, presence: Bool[Tensor, "#samples coalitions *entries"]
    ) -> Shaped[Tensor, "samples coalitions draws *entries"]:
        """Mask the one sample."""
        return self.fill(slice(self.sample, self.sample + 1), presence)
