"""Players: which entries of an input are present or absent together; several inputs as one, with their players."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, count, product
from typing import Any, TypeAlias

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor, nn

from absentia.data import Array, Categorical, as_tensor, check_number, column_groups
from absentia.errors import wrong
from absentia.text import written

ALWAYS_PRESENT = -1
_MOST_ENTRIES_SHOWN = 4
_MOST_PLAYERS = 2**24  # that are counted, not named


# Columns by name or number, or groups of columns that are one category together.
Columns: TypeAlias = Sequence[int | str | Sequence[int | str]]


@dataclass(frozen=True, eq=False)
class Players:
    """A partition of an input's entries among players.

    Most users call `features`, `groups`, `grid`, `segments` or `tokens`.

    Parameters
    ----------
    labels : Tensor
        The player (0 … n − 1) that each entry of one sample belongs to, or −1 for entries that are always present.
    names : tuple of str
        The names of the players.
    integer : bool, default False
        Whether integer inputs are token numbers, which stay integers.
    categories : tuple of tuples of str, optional
        For each player the names of its categories, whose place is the number in the input; none for numbers.
    categorical : tuple of tuples of int, optional
        The entries that hold categories, by their numbers in a flat sample: a column of codes is a group of one, the
        columns of a one-hot code are one group. Entries whose categories have names always belong to it.

    Examples
    --------
    >>> Players.features(["age", "income"])
    Players(2 of shape (2,): age, income)
    """

    labels: Int[Tensor, " *entries"]
    names: tuple[str, ...]
    integer: bool = False
    categories: tuple[tuple[str, ...], ...] = ()
    categorical: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        used = torch.unique(self.labels[self.labels != ALWAYS_PRESENT]).tolist()
        if not used:
            raise wrong("players", "own at least one entry", "none")
        if used != list(range(len(used))):
            expected = f"hold −1 (always present) and 0 … {len(used) - 1} without a gap"
            raise wrong("labels", expected, f"labels {_shorten(used)}")
        if len(self.names) != len(used):
            raise wrong("names", f"name each of the {len(used)} players once", f"{len(self.names)} names")
        vars(self).update(categorical=self._all_categorical())  # a frozen class does not let attributes be set

    def _all_categorical(self) -> tuple[tuple[int, ...], ...]:
        """Return the groups of categorical entries in order, with those whose categories have names."""
        groups = column_groups(self.categorical, self.labels.numel())
        known = set(chain.from_iterable(groups))
        if any(self.categories):
            for entry, player in enumerate(self.labels.flatten().tolist()):
                if player != ALWAYS_PRESENT and self.categories[player] and entry not in known:
                    groups.append([entry])
        return tuple(sorted(tuple(sorted(group)) for group in groups))

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"Players({len(self)} of shape {self.shape}: {_shorten(self.names)})"

    @cached_property
    def _one_entry_each(self) -> bool:
        return self.labels.ndim == 1 and torch.equal(self.labels, torch.arange(len(self.labels)))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one sample."""
        return tuple(self.labels.shape)

    @property
    def sizes(self) -> Int[Tensor, " players"]:
        """The number of entries of each player."""
        return torch.bincount(self.labels[self.labels != ALWAYS_PRESENT])

    @property
    def is_image(self) -> bool:
        """Whether players are areas of an image: (channels, height, width) with 1 or 3 channels, or (height, width).

        Entries on two axes whose players are whole rows are tokens with their embedding; players of whole columns
        are parts of a series with several channels.
        """
        if self.labels.ndim != 2:
            return self.labels.ndim == 3 and self.labels.shape[0] in (1, 3)
        return not any(bool((self.labels == line).all()) for line in (self.labels[:, :1], self.labels[:1]))

    @property
    def single(self) -> Bool[Tensor, " players"]:
        """Which players are one column of a table; tokens are not."""
        return (self.sizes == 1) & (self.labels.ndim == 1 and not self.integer)

    @property
    def masks_categories(self) -> bool:
        """Whether some player owns a categorical entry, so that stand-ins must be categories."""
        labels = self.labels.flatten()
        return any(bool((labels[list(group)] != ALWAYS_PRESENT).any()) for group in self.categorical)

    def with_categorical(self, categorical: Categorical) -> Players:
        """Return the players with more categorical entries; raise an error for groups that contradict their own.

        >>> players = Players.features(["city", "red", "green"], {"city": ["Bern", "Oslo"]})
        >>> players.with_categorical([(1, 2)]).categorical
        ((0,), (1, 2))
        """
        groups = [tuple(sorted(group)) for group in column_groups(categorical, self.labels.numel())]
        new = [group for group in groups if group not in self.categorical]
        if not new:
            return self
        own_group = {entry: group for group in self.categorical for entry in group}
        for group in new:
            for entry in group:
                if entry in own_group:
                    must = f"agree with the players, who have one category in the columns {list(own_group[entry])}"
                    raise wrong("categorical", must, f"{list(group)}", "Leave it out: the players know it.")
        return replace(self, categorical=(*self.categorical, *new))

    def check_samples(self, x: Tensor) -> None:
        """Raise an error for samples of another shape."""
        x = as_tensor("x", x)
        if tuple(x.shape[1:]) != self.shape:
            then = "Pass x[None] for one sample." if self.shape == tuple(x.shape) else ""
            raise wrong("x", f"have samples of the players' shape {self.shape}", f"{tuple(x.shape[1:])}", then)

    def presence(self, coalitions: Bool[Tensor, "*rows players"]) -> Bool[Tensor, "*rows *entries"]:
        """Spread coalitions over the input's entries.

        >>> Players.groups({"a": [0, 2]}, features=3).presence(torch.tensor([[False], [True]])).tolist()
        [[False, True, False], [True, True, True]]
        """
        if self._one_entry_each:
            return coalitions
        # The always-present entries have label −1, which indexes this last column.
        always = coalitions.new_ones(*coalitions.shape[:-1], 1)
        spread = torch.cat([coalitions, always], dim=-1)[..., self.labels.flatten().to(coalitions.device)]
        return spread.unflatten(-1, self.shape)

    def only(self, chosen: Sequence[int | str], argument: str = "chosen") -> Players:
        """Return some of the players, by name or number, in their order; all other entries are then always present.

        >>> Players.features(["age", "income", "debt"]).only(["debt", 0]).labels
        tensor([ 0, -1,  1])
        """
        if isinstance(chosen, str):
            raise wrong(argument, "be a list of players", repr(chosen), f"Pass [{chosen!r}].")
        kept = sorted(_find(argument, "player", self.names, chosen))
        if not kept:
            raise wrong(argument, "name at least one player", "none")
        labels = torch.full_like(self.labels, ALWAYS_PRESENT)
        for new, old in enumerate(kept):
            labels[self.labels == old] = new
        categories = tuple(self.categories[number] for number in kept) if self.categories else ()
        names = tuple(self.names[number] for number in kept)
        return Players(labels, names, self.integer, categories, self.categorical)

    def each_entry(self, most: int | None = None) -> Players:
        """Make entries of players, the first or all, players of their own, numbered where the old ones have several.

        >>> Players.groups({"size": [0, 2], "mass": [1]}, features=3).each_entry()
        Players(3 of shape (3,): size 0, mass, size 1)
        """
        places = (self.labels.flatten() != ALWAYS_PRESENT).nonzero()[:, 0]
        owners, numbers = self.labels.flatten()[places].tolist(), defaultdict[str, Iterator[int]](count)
        sizes, shown = Counter(self.names[owner] for owner in owners), [self.names[owner] for owner in owners[:most]]
        names = [name if sizes[name] == 1 else f"{name} {next(numbers[name])}" for name in shown]
        labels = torch.full((self.labels.numel(),), ALWAYS_PRESENT)
        labels[places[:most]] = torch.arange(len(names))
        categories = tuple(self.categories[owner] for owner in owners[:most]) if self.categories else ()
        return Players(labels.reshape(self.shape), tuple(names), self.integer, categories, self.categorical)

    def entry_values(self, inputs: Shaped[Tensor, "samples *entries"]) -> Float[Tensor, "samples players"]:
        """Return the value of each player's entry; NaN for players of several entries."""
        return torch.where(self.sizes == 1, self.means(inputs), torch.nan)

    def named_values(self, inputs: Shaped[Tensor, "samples *entries"]) -> list[list[float | str]]:
        """Return the `entry_values`, with categories by their names."""
        known = self.categories or ((),) * len(self)
        rows = zip(self.entry_values(inputs).tolist(), self.texts(inputs), strict=True)
        return [[text if names else value for value, text, names in zip(*row, known, strict=True)] for row in rows]

    def sums(self, inputs: Shaped[Tensor, "samples *entries"]) -> Shaped[Tensor, "samples players"]:
        """Return the sum over the entries of each player.

        >>> Players.groups({"a": [0, 2], "b": [1]}, features=3).sums(torch.tensor([[1.0, 5.0, 3.0]]))
        tensor([[4., 5.]])
        """
        self.check_samples(inputs)
        labels, rows = self.labels.flatten().to(inputs.device), inputs.detach().flatten(1)
        owned = labels != ALWAYS_PRESENT
        return rows.new_zeros(len(rows), len(self)).index_add_(1, labels[owned], rows[:, owned])

    def means(self, inputs: Shaped[Tensor, "samples *entries"]) -> Float[Tensor, "samples players"]:
        """Return the mean over the entries of each player, in double precision."""
        self.check_samples(inputs)  # before anything is converted
        return self.sums(inputs.cpu().double()) / self.sizes

    def texts(self, inputs: Shaped[Tensor, "samples *entries"]) -> list[list[str]]:
        """Return the entries of each player as text, by the names of categories, or their mean if they are many.

        >>> Players.groups({"a": [0, 2], "b": [1]}, features=3).texts(torch.tensor([[1.0, 5.0, 3.5]]))
        [['1, 3.5', '5']]
        """
        self.check_samples(inputs)
        rows, known = inputs.detach().cpu(), self.categories or ((),) * len(self)
        parts = [(rows[:, self.labels == player], names) for player, names in enumerate(known)]
        return [[_text(entries[sample], names) for entries, names in parts] for sample in range(len(rows))]

    @classmethod
    def features(
        cls,
        features: int | Sequence[str],
        categories: Mapping[str, Sequence[object]] | None = None,
        *,
        categorical: Columns = (),
    ) -> Players:
        """Make every entry of a row a player, given their number or their names; name categories of some.

        ``categorical`` lists columns of categories that have no names, by name or number. Columns that are one
        category together, such as one-hot ones, are a list in it.

        >>> Players.features(["city", "age"], {"city": ["Bern", "Oslo"]}).texts(torch.tensor([[1.0, 30.0]]))
        [['Oslo', '30']]
        >>> Players.features(["age", "red", "green"], categorical=[["red", "green"]]).categorical
        ((1, 2),)
        """
        names, given = _names(features, "x{}"), categories or {}
        unknown = [name for name in given if name not in names]
        if unknown:
            raise wrong("categories", f"name features ({_shorten(names)})", repr(unknown[0]))
        known = tuple(tuple("missing" if one != one else str(one) for one in given.get(name, ())) for name in names)
        entries = _column_numbers(categorical, names)
        return cls(torch.arange(len(names)), names, categories=known if given else (), categorical=entries)

    @classmethod
    def groups(
        cls,
        groups: Mapping[str, Sequence[int | str]],
        features: int | Sequence[str],
        *,
        categorical: Columns = (),
    ) -> Players:
        """Make every named group of features a player; features in no group are always present.

        ``categorical`` lists columns of categories, as for `features`.

        >>> Players.groups({"size": ["width", "height"], "mass": ["mass"]}, ["width", "mass", "height"]).labels
        tensor([0, 1, 0])
        """
        columns, members = _names(features, "x{}"), chain.from_iterable(groups.values())
        labels = torch.full((len(columns),), ALWAYS_PRESENT)
        owners = [player for player, group in enumerate(groups.values()) for _ in group]
        labels[_find("groups", "feature", columns, members)] = torch.tensor(owners, dtype=torch.int64)
        for name, group in groups.items():
            if not group:
                raise wrong("groups", "have at least one feature each", f"none in {name!r}")
        return cls(labels, tuple(groups), categorical=_column_numbers(categorical, columns))

    @classmethod
    def grid(cls, shape: Sequence[int], cells: Sequence[int], only: Sequence[Sequence[int]] | None = None) -> Players:
        """Cut images of ``shape`` (channels, height, width) into a grid of ``cells`` (rows, columns).

        Series of shape (channels, length) are cut into ``cells`` (parts,). ``only`` lists the cells that are players,
        as in (row, column); all others are then always present.

        >>> Players.grid((1, 28, 28), cells=(7, 7), only=[(3, 2), (3, 3)])
        Players(2 of shape (1, 28, 28): r3c2, r3c3)
        >>> Players.grid((2, 48), cells=(4,))
        Players(4 of shape (2, 48): t0–11, t12–23, t24–35, t36–47)
        """
        sizes, cells = tuple(shape[1:]), tuple(cells)
        if len(sizes) not in (1, 2) or min(shape) < 1:
            raise wrong("shape", "be (channels, height, width) or (channels, length)", tuple(shape))
        if len(cells) != len(sizes) or not all(1 <= count <= size for count, size in zip(cells, sizes, strict=True)):
            raise wrong("cells", f"lie between {(1,) * len(sizes)} and {sizes}", cells)
        every = list(product(*map(range, cells)))
        players = every if only is None else [tuple(cell) for cell in only]
        if not set(players) <= set(every) or len(set(players)) != len(players):
            got = sorted(set(players) - set(every)) or players
            raise wrong("only", f"list each cell of the {' × '.join(map(str, cells))} grid at most once", got)
        player_of = torch.full(cells, ALWAYS_PRESENT)
        for player, cell in enumerate(players):
            player_of[cell] = player
        places = [torch.arange(size) * count // size for count, size in zip(cells, sizes, strict=True)]
        labels = player_of[torch.meshgrid(*places, indexing="ij")].expand(*shape).contiguous()
        if len(sizes) == 2:
            return cls(labels, tuple(f"r{row}c{column}" for row, column in players))
        times = [(places[0] == part).nonzero().flatten().tolist() for (part,) in players]
        return cls(labels, tuple(f"t{one[0]}–{one[-1]}" if len(one) > 1 else f"t{one[0]}" for one in times))

    @classmethod
    def segments(cls, labels: Array, channels: int | None = None) -> Players:
        """Make every segment of an integer label map a player; −1 marks what is always present.

        ``channels`` repeats a map of shape (height, width) for images of shape (channels, height, width).

        >>> Players.segments(torch.tensor([[0, 0], [1, -1]]), channels=3)
        Players(2 of shape (3, 2, 2): segment 0, segment 1)
        """
        labels = as_tensor("labels", labels)
        if labels.is_floating_point() or labels.dtype == torch.bool:
            raise wrong("labels", "be integers", f"{labels.dtype}")
        check_number("channels", channels, 1)
        if channels is not None:
            labels = labels.expand(channels, *labels.shape).contiguous()
        count = len(torch.unique(labels[labels != ALWAYS_PRESENT]))
        return cls(labels.to(torch.int64, copy=True), tuple(f"segment {number}" for number in range(count)))

    @classmethod
    def tokens(cls, tokens: int | Sequence[str], embedding: int | None = None) -> Players:
        """Make every token of a sequence a player, given their number or the words themselves.

        ``embedding`` is the width of embedded tokens, for inputs of shape (tokens, embedding).

        >>> Players.tokens("not a bad film".split())
        Players(4 of shape (4,): not, a, bad, film)
        """
        names = _names(tokens, "token {}")
        labels = torch.arange(len(names))
        if embedding is not None:
            labels = labels[:, None].expand(-1, embedding).contiguous()
        return cls(labels, names, integer=embedding is None)


class JoinedInputs(nn.Module):
    """A model of several inputs, such as an image and a table, as a model of one.

    Pass it as the model to `explain`, `audit` and `learn_baseline`, its ``x`` as the samples, and its ``players``.

    Parameters
    ----------
    model : nn.Module or callable
        Called with the inputs in their order, or by their names if they are a mapping.
    inputs : sequence or mapping of Tensor or array
        Batches of the same number of samples. Integers, such as tokens, are integers again for the model.
    players : sequence or mapping of Players, optional
        The players of each input; by default one for each column of a table.

    Examples
    --------
    >>> def model(image, age):
    ...     return image.sum((1, 2, 3)) * age[:, 0]
    >>> inputs = {"image": torch.rand(5, 1, 4, 4), "age": torch.rand(5, 1)}
    >>> players = {"image": ab.Players.grid((1, 4, 4), (2, 2)), "age": ab.Players.features(["age"])}
    >>> joined = JoinedInputs(model, inputs, players)
    >>> ab.explain(joined, joined.x[:1], players=joined.players, absence=0.0).names
    ('r0c0', 'r0c1', 'r1c0', 'r1c1', 'age')
    """

    def __init__(self, model: Any, inputs: Any, players: Any = None) -> None:
        super().__init__()
        self.model, parts = model, _by_name(inputs)
        given = {} if players is None else _by_name(players, tensors=False)
        self.shapes = {name: tuple(part.shape[1:]) for name, part in parts.items()}
        self.types = {name: part.dtype for name, part in parts.items()}
        floating = (kind for kind in self.types.values() if kind.is_floating_point)
        self.packed_type = next(floating, torch.get_default_dtype())
        self.players, self.x = self._join_players(given), self.pack(inputs)

    def _join_players(self, given: Mapping[Any, Any]) -> Players:
        """Make players of those of all inputs; put the input's name before names that two inputs share."""
        labels, names = list[Tensor](), list[tuple[str, str]]()
        categories: list[tuple[str, ...]] = []
        categorical: list[tuple[int, ...]] = []
        entries = 0  # of the inputs before
        for name, shape in self.shapes.items():
            own = given.get(name, Players.features(shape[0]) if len(shape) == 1 else None)
            if not isinstance(own, Players) or own.shape != shape:
                raise wrong("players", f"be Players of shape {shape} for input {name!r}", own)
            flat = own.labels.flatten()
            labels.append(torch.where(flat == ALWAYS_PRESENT, flat, flat + len(names)))
            names += [(name if isinstance(name, str) else f"input {name}", one) for one in own.names]
            categories += own.categories or [()] * len(own)
            categorical += [tuple(entries + entry for entry in group) for group in own.categorical]
            entries += len(flat)
        shared = len({one for _, one in names}) < len(names)
        full_names = tuple(f"{name} {one}" if shared else one for name, one in names)
        known = tuple(categories) if any(categories) else ()
        return Players(torch.cat(labels), full_names, categories=known, categorical=tuple(categorical))

    def pack(self, inputs: Any) -> Shaped[Tensor, "rows entries"]:
        """Join other rows, such as data that an absence is made from."""
        parts = _by_name(inputs)
        shapes = {name: tuple(part.shape[1:]) for name, part in parts.items()}
        if shapes != self.shapes:
            raise wrong("inputs", f"have samples of the shapes {self.shapes}", shapes)
        if len({len(part) for part in parts.values()}) > 1:
            rows = ", ".join(f"{len(part)} of {name!r}" for name, part in parts.items())
            raise wrong("inputs", "have the same number of samples", rows)
        return torch.cat([parts[name].flatten(1).to(self.packed_type) for name in self.shapes], dim=1)

    def forward(self, rows: Shaped[Tensor, "rows entries"]) -> Any:
        """Split rows into the inputs of the model, and call it with them."""
        split = rows.split([math.prod(shape) for shape in self.shapes.values()], dim=1)
        parts: dict[Any, Tensor] = {}
        for (name, shape), part in zip(self.shapes.items(), split, strict=True):
            whole = self.types[name].is_floating_point
            parts[name] = (part if whole else part.round().to(self.types[name])).unflatten(1, shape)
        return self.model(*parts.values()) if 0 in parts else self.model(**parts)


def _by_name(inputs: Any, tensors: bool = True) -> dict[Any, Any]:
    """Return inputs, or their players, by their names or numbers."""
    if not isinstance(inputs, Mapping | tuple | list) or not inputs:
        raise wrong("inputs", "be a tuple or a mapping of tensors", type(inputs).__name__)
    parts = dict(inputs) if isinstance(inputs, Mapping) else dict(enumerate(inputs))
    return {name: as_tensor(f"input {name}", part) for name, part in parts.items()} if tensors else parts


def _names(given: int | Sequence[str], pattern: str) -> tuple[str, ...]:
    if isinstance(given, int):
        check_number("players", given, 0, _MOST_PLAYERS)
        return tuple(pattern.format(number) for number in range(given))
    return tuple(str(name) for name in given)


def _column_numbers(categorical: Columns, names: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    """Return the numbers of categorical columns in their groups, given by name or number."""
    groups = [(item,) if isinstance(item, str) or not isinstance(item, Iterable) else item for item in categorical]
    members = list(chain.from_iterable(groups))
    numbers = iter(_find("categorical", "feature", names, members))
    return tuple(tuple(next(numbers) for _ in group) for group in groups)


def _find(argument: str, kind: str, names: Sequence[str], chosen: Iterable[Any]) -> list[int]:
    """Return the numbers of players or features, given by name or number; raise an error for others and repeats."""
    found, number_of, count = dict[int, None](), dict(zip(names, range(len(names)), strict=True)), Counter(names)
    for one in chosen:
        named = isinstance(one, str)
        if named and count[one] > 1:
            raise wrong(argument, f"tell {kind}s apart", f"{one!r}, which two {kind}s are called", "Use numbers.")
        number = number_of.get(one, one) if named else one
        if isinstance(number, bool | str) or number not in range(len(names)):
            must = f"hold {kind}s ({_shorten(names)}) or their numbers 0 … {len(names) - 1}"
            raise wrong(argument, must, repr(one))
        if number in found:
            raise wrong(argument, f"name each {kind} once", f"{names[int(number)]!r} twice")
        found[int(number)] = None
    return list(found)


def _text(entries: Tensor, categories: Sequence[str] = ()) -> str:
    if categories and len(entries) == 1:  # the mean of several categories is none
        return categories[int(entries[0])] if entries[0] in range(len(categories)) else "varies"
    if len(entries) > _MOST_ENTRIES_SHOWN:
        return f"mean {written(entries.double().mean().item())} of {len(entries)}"
    return ", ".join(written(entry, 4) for entry in entries.tolist())


def _shorten(items: Sequence[object], most: int = 8) -> str:
    shown = ", ".join(str(item) for item in items[:most])
    return shown if len(items) <= most else f"{shown} … ({len(items)} in all)"
