"""Games: coalition → value; and the table of all their values, computed or given."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, final, runtime_checkable

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from absentia.arrays import Array, as_tensor
from absentia.coalitions import (
    coalition_numbers,
    coalition_of,
    enumerate_coalitions,
    sums_by_size_and_player,
    table_players,
)
from absentia.errors import AbsentiaError, wrong
from absentia.inference import blocks
from absentia.wording import count_of

MAX_PLAYERS = 24
MAX_TABLE_BYTES = 4 * 2**30

# How many coalitions are asked of a game at a time.
_COALITIONS_PER_STEP = 2**14


@runtime_checkable
class Game(Protocol):
    """Coalition → value, for a batch of samples that share the players.

    >>> import absentia as ab
    >>> class Majority:
    ...     samples, names = 1, ("a", "b", "c")
    ...     def __call__(self, coalitions):
    ...         return (coalitions.sum(1) >= 2).double()[None]
    >>> ab.shapley(Majority()).values
    tensor([[0.3333, 0.3333, 0.3333]], dtype=torch.float64)
    """

    @property
    def samples(self) -> int:
        """How many samples: the first axis of the values."""

    @property
    def names(self) -> tuple[str, ...]:
        """The players' names."""

    def __call__(self, coalitions: Bool[Tensor, "coalitions players"]) -> Float[Tensor, "samples coalitions"]:
        """Give the value of each coalition for each sample."""


@runtime_checkable
class TabulatedGame(Protocol):
    """A game with a way of its own to the values of all coalitions."""

    def table(self) -> ValueTable:
        """Evaluate all coalitions."""


@final
@dataclass(frozen=True, eq=False, init=False)
class ValueTable:
    """The values of all 2ⁿ coalitions in counting order: from `value_table`, or from values you already have.

    ``noise`` is the size of the rounding errors in the values, for each sample. Left out, it is the precision of
    the values' type times the largest of them.

    >>> table = ValueTable([2.0, -2.0, -1.0, 1.0])
    >>> table
    ValueTable(1 sample, 2 players, 4 coalitions; value: given)
    >>> table(torch.tensor([[True, False]]))
    tensor([[-2.]], dtype=torch.float64)
    """

    values: Float[Tensor, "samples coalitions"]
    names: tuple[str, ...]
    readout: str
    noise: Float[Tensor, " samples"]
    evaluations: int

    def __init__(
        self,
        values: Sequence[float] | Sequence[Sequence[float]] | Array,
        names: Sequence[str] | None = None,
        *,
        readout: str = "given",
        noise: Float[Tensor, " samples"] | None = None,
        evaluations: int = 0,
    ) -> None:
        given = as_tensor("values", values)
        if given.ndim not in (1, 2) or given.numel() == 0:
            expected = "have shape (2ⁿ,) or (samples, 2ⁿ) with at least one sample"
            raise wrong("values", expected, f"shape {tuple(given.shape)}")
        table = given.reshape(-1, given.shape[-1]).double()
        players = table_players(table.shape[-1])
        numbers = torch.arange(len(table))
        check_finite(table, numbers, lambda _row, column: coalition_of(players, column), argument="values")
        named = tuple(f"x{i}" for i in range(players)) if names is None else tuple(names)
        if len(named) != players:
            raise wrong("names", f"name each of the {players} players", f"{len(named)} names")
        object.__setattr__(self, "values", table)
        object.__setattr__(self, "names", named)
        object.__setattr__(self, "readout", readout)
        object.__setattr__(self, "noise", rounding_noise(table, given.dtype) if noise is None else noise)
        object.__setattr__(self, "evaluations", evaluations)

    def __repr__(self) -> str:
        samples, coalitions = self.values.shape
        count = count_of(samples, "sample")
        return f"ValueTable({count}, {len(self.names)} players, {coalitions} coalitions; value: {self.readout})"

    @property
    def samples(self) -> int:
        """How many samples."""
        return len(self.values)

    @cached_property
    def sums(self) -> Float[Tensor, "samples sizes players"]:
        """The sums of the values over the coalitions of each size that contain each player."""
        return sums_by_size_and_player(self.values)

    def table(self) -> ValueTable:
        """Return itself: it is the table."""
        return self

    def __call__(self, coalitions: Bool[Tensor, "coalitions players"]) -> Float[Tensor, "samples coalitions"]:
        """Look the coalitions up."""
        check_coalitions(coalitions, len(self.names))
        return self.values[:, coalition_numbers(coalitions)]


def value_table(game: Game, *, max_players: int = MAX_PLAYERS) -> ValueTable:
    """Evaluate all 2ⁿ coalitions; every exact result is a function of this table.

    Refuses more than ``max_players`` players.

    >>> import absentia as ab
    >>> game = ab.MaskedModel(lambda rows: rows.prod(1), torch.tensor([[2.0, 3.0]]), absence=ab.Baseline(1.0))
    >>> ab.value_table(game).values
    tensor([[1., 2., 3., 6.]], dtype=torch.float64)
    """
    if isinstance(game, ValueTable):
        return game
    if not isinstance(game, Game):
        raise wrong("game", "be a game such as MaskedModel(…) or ValueTable(values)", type(game).__name__)
    _refuse_beyond_memory(len(game.names), game.samples, max_players)
    if isinstance(game, TabulatedGame):
        return game.table()
    coalitions = 2 ** len(game.names)
    steps = blocks(coalitions, _COALITIONS_PER_STEP)
    parts = [game(enumerate_coalitions(len(game.names), step.start, step.stop)) for step in steps]
    return ValueTable(torch.cat(parts, dim=1), game.names, evaluations=game.samples * coalitions)


def rounding_noise(values: Float[Tensor, "samples coalitions"], dtype: torch.dtype) -> Float[Tensor, " samples"]:
    """Estimate the rounding errors of values computed in ``dtype``: its precision times the largest value."""
    precision = torch.finfo(dtype if dtype.is_floating_point else torch.float64).eps
    low, high = values.detach().aminmax(dim=1)
    return torch.maximum(-low, high).double() * precision


def _refuse_beyond_memory(players: int, samples: int, max_players: int) -> None:
    size = 8 * samples * 2**players
    need = f"{samples} × 2^{players} = {samples * 2**players:.2g} values, {size / 2**30:.2g} GiB"
    if players > max_players:
        raise AbsentiaError(
            f"players must be at most {max_players} for exact results. Got {players} instead, which would take "
            f"{need}. Use shapley(game, evaluations=…) for sampled values with errors, put players together with "
            f"Players.groups or a coarser Players.grid, or raise the bound: value_table(game, max_players={players})."
        )
    if size > MAX_TABLE_BYTES:
        raise AbsentiaError(
            f"x must hold fewer samples for exact results with {players} players. Got {samples} instead, which "
            f"would take {need}. Explain {max(1, samples * MAX_TABLE_BYTES // size)} at a time."
        )


def check_coalitions(coalitions: Tensor, players: int, samples: int | None = None) -> None:
    """Refuse coalitions of the wrong type or shape; with ``samples``, each sample may have coalitions of its own."""
    own = samples is not None and coalitions.ndim == 3 and len(coalitions) == samples
    if coalitions.dtype != torch.bool or not (own or coalitions.ndim == 2) or coalitions.shape[-1] != players:
        expected = f"be boolean of shape (coalitions, {players})"
        expected += f" or ({samples}, coalitions, {players})" if samples is not None else ""
        raise wrong("coalitions", expected, f"{coalitions.dtype} of shape {tuple(coalitions.shape)}")


def check_finite(
    values: Tensor, samples: Tensor, coalition: Callable[[int, int], Tensor], argument: str = "model"
) -> None:
    """Refuse NaN and infinite values: say for which sample and which coalition."""
    if math.isfinite(values.detach().sum().item()):  # the quick check; a sum of finite values may still overflow
        return
    bad = (~torch.isfinite(values)).nonzero()
    if len(bad) == 0:
        return
    row, column = bad[0].tolist()[:2]
    present = coalition(row, column).nonzero().flatten().tolist()
    value = values[row, column].flatten()[0].item()
    got = f"{value} for sample {int(samples[row])} with players {present} present"
    raise wrong(argument, "give finite values" if argument == "model" else "be finite", got)
