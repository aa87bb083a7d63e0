"""Players: which entries of an input are present or absent together."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice, product
from typing import Any, TypeAlias

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from absentia.arguments import checked
from absentia.data import Array, Categorical, Rows, as_tensor, check_number, column_groups
from absentia.errors import wrong
from absentia.text import written

# The name of the category of missing values, and what is shown for a missing number.
MISSING = "missing"

# The label of entries that belong to no player.
ALWAYS_PRESENT = -1

# Players of more entries are shown by their mean.
_MOST_ENTRIES_SHOWN = 4
# The most players that can be given by their number.
_MOST_PLAYERS = 2**24

# Columns by name or number, or groups of columns that code one category together.
Columns: TypeAlias = Sequence[int | str | Sequence[int | str]]


@checked
@dataclass(frozen=True, eq=False)
class Players:
    """A partition of an input's entries among players.

    Most users call `features`, `groups`, `grid`, `segments` or `tokens`.

    Parameters
    ----------
    labels : Tensor
        The player (0 … n − 1) to which each entry of a sample belongs, or −1 for entries that are always present.
    names : tuple of str
        The names of the players.
    integer : bool, default False
        Whether integer inputs are token numbers, which stay integers.
    categories : tuple of tuples of str, optional
        For each player, the names of its categories in the order of their codes in the input. Numeric players have
        none.
    categorical : tuple of tuples of int, optional
        Groups of categorical entries, by their numbers in a flat sample. A column of codes is a group of one, and the
        columns of a one-hot encoding are one group. Entries whose categories have names are always included.

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
        # A frozen dataclass does not let its own attributes be assigned.
        object.__setattr__(self, "categorical", self._all_categorical())

    def _all_categorical(self) -> tuple[tuple[int, ...], ...]:
        """Return the groups of categorical entries in order, including entries whose categories have names."""
        groups = column_groups(self.categorical, self.labels.numel())
        grouped = set(chain.from_iterable(groups))
        if any(self.categories):
            for entry, player in enumerate(self.labels.flatten().tolist()):
                has_names = player != ALWAYS_PRESENT and bool(self.categories[player])
                if has_names and entry not in grouped:
                    groups.append([entry])
        return tuple(sorted(tuple(sorted(group)) for group in groups))

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"Players({len(self)} of shape {self.shape}: {_shorten(self.names)})"

    @cached_property
    def _one_entry_each(self) -> bool:
        """Whether each entry is its own player, so that coalitions and presence are the same."""
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
        labels = self.labels
        if labels.ndim == 3:
            return labels.shape[0] in (1, 3)
        if labels.ndim != 2:
            return False
        whole_rows = bool((labels == labels[:, :1]).all())
        whole_columns = bool((labels == labels[:1]).all())
        return not whole_rows and not whole_columns

    @property
    def single(self) -> Bool[Tensor, " players"]:
        """Which players are one column of a table; tokens are not."""
        is_table = self.labels.ndim == 1 and not self.integer
        return (self.sizes == 1) & is_table

    @property
    def masks_categories(self) -> bool:
        """Whether some player owns a categorical entry, so that stand-ins must be categories."""
        labels = self.labels.flatten()
        return any(bool((labels[list(group)] != ALWAYS_PRESENT).any()) for group in self.categorical)

    def with_categorical(self, categorical: Categorical) -> Players:
        """Return the players with additional categorical entries, or raise an error for contradicting groups.

        >>> players = Players.features(["city", "red", "green"], {"city": ["Bern", "Oslo"]})
        >>> players.with_categorical([(1, 2)]).categorical
        ((0,), (1, 2))
        """
        groups = [tuple(sorted(group)) for group in column_groups(categorical, self.labels.numel())]
        new_groups = [group for group in groups if group not in self.categorical]
        if not new_groups:
            return self
        for group in new_groups:
            self._check_agreement(group)
        return replace(self, categorical=(*self.categorical, *new_groups))

    def _check_agreement(self, group: Sequence[int]) -> None:
        """Raise an error for a group that shares columns with a group of the players but is not the same."""
        for known_group in self.categorical:
            if not set(known_group).isdisjoint(group):
                must = f"agree with the players, which have one category in the columns {list(known_group)}"
                if set(group) <= set(known_group):
                    then = "Leave it out: the players know it."
                else:
                    then = f"Or make players whose categorical columns are {list(group)}."
                raise wrong("categorical", must, f"{list(group)}", then)

    def with_category_names(self, categories: Mapping[int, Sequence[object]], *, renew: bool = False) -> Players:
        """Return the players with names for the categories of entries, by the entry's number.

        Players of several entries stay as they are. So do players whose categories have names already, unless
        ``renew``.

        >>> players = Players.features(["city", "age"]).with_category_names({0: ["Bern", "Oslo"]})
        >>> players.texts(torch.tensor([[1, 30]]))
        [['Oslo', '30']]
        """
        names = list(self.categories or [()] * len(self))
        sizes = self.sizes.tolist()
        for entry, player in enumerate(self.labels.flatten().tolist()):
            if player == ALWAYS_PRESENT or sizes[player] > 1 or entry not in categories:
                continue
            if renew or not names[player]:
                names[player] = tuple(category_name(value) for value in categories[entry])
        return replace(self, categories=tuple(names) if any(names) else ())

    def check_samples(self, x: Tensor) -> None:
        """Raise an error for samples of another shape."""
        check_sample_shape(self, as_tensor("x", x))

    def presence(self, coalitions: Bool[Tensor, "*rows players"]) -> Bool[Tensor, "*rows *entries"]:
        """Spread coalitions over the input's entries.

        >>> Players.groups({"a": [0, 2]}, features=3).presence(torch.tensor([[False], [True]])).tolist()
        [[False, True, False], [True, True, True]]
        """
        if self._one_entry_each:
            return coalitions
        # The always-present entries have label −1, so this column comes first.
        always = coalitions.new_ones(*coalitions.shape[:-1], 1)
        padded = torch.cat([always, coalitions], dim=-1)
        places = self.labels.flatten().to(coalitions.device) + 1
        # This is several times faster than indexing with the places.
        spread = padded.gather(-1, places.expand(*coalitions.shape[:-1], -1))
        return spread.unflatten(-1, self.shape)

    def only(self, chosen: Sequence[int | str], argument: str = "chosen") -> Players:
        """Keep only some players, by name or number; all other entries are then always present.

        >>> Players.features(["age", "income", "debt"]).only(["debt", 0]).labels
        tensor([ 0, -1,  1])
        """
        if isinstance(chosen, str):
            raise wrong(argument, "be a list of players", repr(chosen), f"Pass [{chosen!r}].")
        numbers = sorted(_find(argument, "player", self.names, chosen))
        if not numbers:
            raise wrong(argument, "name at least one player", "none")
        labels = torch.full_like(self.labels, ALWAYS_PRESENT)
        for new, old in enumerate(numbers):
            labels[self.labels == old] = new
        names = tuple(self.names[number] for number in numbers)
        return Players(labels, names, self.integer, self._categories_of(numbers), self.categorical)

    def each_entry(self, most: int | None = None) -> Players:
        """Make each entry of the players, or only the first ``most``, a player; number those that shared a player.

        >>> Players.groups({"size": [0, 2], "mass": [1]}, features=3).each_entry()
        Players(3 of shape (3,): size 0, mass, size 1)
        """
        flat_labels = self.labels.flatten()
        owned = (flat_labels != ALWAYS_PRESENT).nonzero()[:, 0]
        owners = flat_labels[owned].tolist()
        entries_by_name = Counter(self.names[owner] for owner in owners)
        numbered: Counter[str] = Counter()  # how many entries of each name have a number already
        names = []
        for owner in owners[:most]:
            name = self.names[owner]
            if entries_by_name[name] == 1:
                names.append(name)
            else:
                names.append(f"{name} {numbered[name]}")
                numbered[name] += 1
        labels = torch.full((self.labels.numel(),), ALWAYS_PRESENT)
        labels[owned[:most]] = torch.arange(len(names))
        categories = self._categories_of(owners[:most])
        return Players(labels.reshape(self.shape), tuple(names), self.integer, categories, self.categorical)

    def _categories_of(self, players: Iterable[int]) -> tuple[tuple[str, ...], ...]:
        """Return the names of the categories of these players, or nothing if no categories have names."""
        if not self.categories:
            return ()
        return tuple(self.categories[player] for player in players)

    def entry_values(self, inputs: Shaped[Tensor, "samples *entries"]) -> Float[Tensor, "samples players"]:
        """Return the value of each player's entry; NaN for players of several entries."""
        return torch.where(self.sizes == 1, self.means(inputs), torch.nan)

    def named_values(self, inputs: Shaped[Tensor, "samples *entries"]) -> list[list[float | str]]:
        """Return the `entry_values`, with categories by their names, and missing values in words."""
        values: list[list[float | str]] = self.entry_values(inputs).tolist()
        texts = self.texts(inputs)
        sizes = self.sizes.tolist()
        for sample_values in values:
            for player, value in enumerate(sample_values):
                if value != value and sizes[player] == 1:
                    sample_values[player] = MISSING
        for player, category_names in enumerate(self.categories):
            if category_names:
                for sample in range(len(values)):
                    values[sample][player] = texts[sample][player]
        return values

    def sums(self, inputs: Shaped[Tensor, "samples *entries"]) -> Shaped[Tensor, "samples players"]:
        """Return the sum over the entries of each player.

        >>> Players.groups({"a": [0, 2], "b": [1]}, features=3).sums(torch.tensor([[1.0, 5.0, 3.0]]))
        tensor([[4., 5.]])
        """
        self.check_samples(inputs)
        labels = self.labels.flatten().to(inputs.device)
        rows = inputs.detach().flatten(1)
        owned = labels != ALWAYS_PRESENT
        return rows.new_zeros(len(rows), len(self)).index_add_(1, labels[owned], rows[:, owned])

    def means(self, inputs: Shaped[Tensor, "samples *entries"]) -> Float[Tensor, "samples players"]:
        """Return the mean over the entries of each player, in double precision."""
        self.check_samples(inputs)  # before anything is converted
        return self.sums(inputs.cpu().double()) / self.sizes

    def texts(self, inputs: Shaped[Tensor, "samples *entries"]) -> list[list[str]]:
        """Return the entries of each player as text: category names, numbers, or their mean if they are many.

        >>> Players.groups({"a": [0, 2], "b": [1]}, features=3).texts(torch.tensor([[1.0, 5.0, 3.5]]))
        [['1, 3.5', '5']]
        """
        self.check_samples(inputs)
        rows = inputs.detach().cpu()
        texts: list[list[str]] = [[] for _ in rows]
        for player in range(len(self)):
            category_names = self.categories[player] if self.categories else ()
            entries = rows[:, self.labels == player]
            for sample, sample_entries in enumerate(entries):
                texts[sample].append(_text(sample_entries, category_names))
        return texts

    @classmethod
    def features(
        cls,
        features: int | Sequence[str],
        categories: Mapping[str, Sequence[object]] | None = None,
        *,
        categorical: Columns = (),
    ) -> Players:
        """Make every entry of a row a player, given their number or their names.

        ``categories`` maps the name of a feature to the names of its categories. ``categorical`` lists columns whose
        categories have no names, by name or number. Columns that encode one category together, such as one-hot
        columns, form a list in it.

        >>> Players.features(["city", "age"], {"city": ["Bern", "Oslo"]}).texts(torch.tensor([[1.0, 30.0]]))
        [['Oslo', '30']]
        >>> Players.features(["age", "red", "green"], categorical=[["red", "green"]]).categorical
        ((1, 2),)
        """
        names = _names(features, "x{}")
        category_names: tuple[tuple[str, ...], ...] = ()
        if categories:
            unknown = [name for name in categories if name not in names]
            if unknown:
                raise wrong("categories", f"name features ({_shorten(names)})", repr(unknown[0]))
            category_names = tuple(tuple(map(category_name, categories.get(name, ()))) for name in names)
        entries = _column_numbers(categorical, names)
        return cls(torch.arange(len(names)), names, categories=category_names, categorical=entries)

    @classmethod
    def groups(
        cls,
        groups: Mapping[str, Sequence[int | str]],
        features: int | Sequence[str],
        *,
        categorical: Columns = (),
    ) -> Players:
        """Make every named group of features a player; features in no group are always present.

        ``categorical`` lists categorical columns, as in `features`.

        >>> Players.groups({"size": ["width", "height"], "mass": ["mass"]}, ["width", "mass", "height"]).labels
        tensor([0, 1, 0])
        """
        columns = _names(features, "x{}")
        members = _find("groups", "feature", columns, chain.from_iterable(groups.values()))
        owners = [player for player, group in enumerate(groups.values()) for _ in group]
        labels = torch.full((len(columns),), ALWAYS_PRESENT)
        labels[members] = torch.tensor(owners, dtype=torch.int64)
        for name, group in groups.items():
            if not group:
                raise wrong("groups", "have at least one feature each", f"none in {name!r}")
        return cls(labels, tuple(groups), categorical=_column_numbers(categorical, columns))

    @classmethod
    def grid(cls, shape: Sequence[int], cells: Sequence[int], only: Sequence[Sequence[int]] | None = None) -> Players:
        """Cut images of ``shape`` (channels, height, width) into a grid of ``cells`` (rows, columns).

        Series of shape (channels, length) are cut into ``cells`` (parts,). ``only`` lists the cells that are players,
        as in (row, column). All other cells are then always present.

        >>> Players.grid((1, 28, 28), cells=(7, 7), only=[(3, 2), (3, 3)])
        Players(2 of shape (1, 28, 28): r3c2, r3c3)
        >>> Players.grid((2, 48), cells=(4,))
        Players(4 of shape (2, 48): t0–11, t12–23, t24–35, t36–47)
        """
        sizes = tuple(shape[1:])
        cells = tuple(cells)
        if len(sizes) not in (1, 2) or min(shape) < 1:
            raise wrong("shape", "be (channels, height, width) or (channels, length)", tuple(shape))
        if len(cells) != len(sizes) or not all(1 <= count <= size for count, size in zip(cells, sizes, strict=True)):
            raise wrong("cells", f"lie between {(1,) * len(sizes)} and {sizes}", cells)
        players = _cells_that_play(cells, only)
        player_of_cell = torch.full(cells, ALWAYS_PRESENT)
        for player, cell in enumerate(players):
            player_of_cell[cell] = player
        # Along each axis, the number of the cell that each place belongs to.
        cell_of_place = [torch.arange(size) * count // size for count, size in zip(cells, sizes, strict=True)]
        labels = player_of_cell[torch.meshgrid(*cell_of_place, indexing="ij")].expand(*shape).contiguous()
        if len(sizes) == 2:
            names = tuple(f"r{row}c{column}" for row, column in players)
        else:
            names = tuple(_name_of_times(cell_of_place[0] == part) for (part,) in players)
        return cls(labels, names)

    @classmethod
    def segments(cls, labels: Array, channels: int | None = None) -> Players:
        """Make every segment of an integer label map a player; −1 marks entries that are always present.

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


def check_sample_shape(players: Players, rows: Rows) -> None:
    """Raise an error for rows that do not have the shape of the players' samples."""
    if tuple(rows.shape[1:]) != players.shape:
        then = "Pass x[None] for one sample." if players.shape == tuple(rows.shape) else ""
        raise wrong("x", f"have samples of the players' shape {players.shape}", f"{tuple(rows.shape[1:])}", then)


def _cells_that_play(cells: tuple[int, ...], only: Sequence[Sequence[int]] | None) -> list[tuple[int, ...]]:
    """Return the cells of a grid that are players, or raise an error for unknown or repeated cells."""
    grid = list(product(*map(range, cells)))
    if only is None:
        return grid
    players = [tuple(cell) for cell in only]
    unknown = sorted(set(players) - set(grid))
    if unknown or len(set(players)) != len(players):
        must = f"list each cell of the {' × '.join(map(str, cells))} grid at most once"
        raise wrong("only", must, unknown or players)
    return players


def _name_of_times(belongs: Bool[Tensor, " length"]) -> str:
    """Name a part of a series by its first and last time."""
    times = belongs.nonzero().flatten().tolist()
    if len(times) == 1:
        return f"t{times[0]}"
    return f"t{times[0]}–{times[-1]}"


def category_name(value: object) -> str:
    """Return the name of a category; only a missing value, NaN, differs from itself."""
    return MISSING if value != value else str(value)


def _names(names: int | Sequence[str], pattern: str) -> tuple[str, ...]:
    """Return the names, or make the given number of them."""
    if isinstance(names, int):
        check_number("players", names, 0, _MOST_PLAYERS)
        return tuple(pattern.format(number) for number in range(names))
    return tuple(str(name) for name in names)


def _column_numbers(categorical: Columns, names: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    """Return the numbers of categorical columns in their groups, given by name or number."""
    groups: list[Sequence[int | str]] = []
    for item in categorical:
        if isinstance(item, str) or not isinstance(item, Iterable):
            groups.append([item])
        else:
            groups.append(list(item))
    numbers = iter(_find("categorical", "feature", names, chain.from_iterable(groups)))
    return tuple(tuple(islice(numbers, len(group))) for group in groups)


def _find(argument: str, kind: str, names: Sequence[str], chosen: Iterable[Any]) -> list[int]:
    """Return the numbers of players or features given by name or number, each of them known and named once."""
    number_of = {name: number for number, name in enumerate(names)}
    times_used = Counter(names)
    numbers: dict[int, None] = {}  # in their order
    for item in chosen:
        if isinstance(item, str) and times_used[item] > 1:
            must = f"name {kind}s unambiguously"
            raise wrong(argument, must, f"{item!r}, the name of two {kind}s,", "Use numbers.")
        number: Any = number_of.get(item) if isinstance(item, str) else item
        if isinstance(number, bool) or number not in range(len(names)):
            must = f"hold {kind}s ({_shorten(names)}) or their numbers 0 … {len(names) - 1}"
            raise wrong(argument, must, repr(item))
        if number in numbers:
            raise wrong(argument, f"name each {kind} once", f"{names[int(number)]!r} twice")
        numbers[int(number)] = None
    return list(numbers)


def _text(entries: Tensor, categories: Sequence[str]) -> str:
    """Show the entries of a player: the name of a category, a few numbers, or the mean of many."""
    if len(entries) == 1 and entries.isnan().any():
        return MISSING
    if categories and len(entries) == 1:
        if entries[0] in range(len(categories)):
            return categories[int(entries[0])]
        return "varies"  # an average over draws may lie between categories
    if len(entries) > _MOST_ENTRIES_SHOWN:
        return f"mean {written(entries.double().nanmean().item())} of {len(entries)}"
    return ", ".join(MISSING if math.isnan(entry) else written(entry, 4) for entry in entries.tolist())


def _shorten(items: Sequence[object], most: int = 8) -> str:
    """List the first items, and the total number if there are more."""
    shown = ", ".join(str(item) for item in items[:most])
    if len(items) <= most:
        return shown
    return f"{shown} … ({len(items)} in all)"
