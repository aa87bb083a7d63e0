"""Several inputs, such as an image and a table, joined into one."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any

import torch
from jaxtyping import Shaped
from torch import Tensor, nn

from absentia.arguments import checked
from absentia.data import as_tensor
from absentia.errors import wrong
from absentia.players import ALWAYS_PRESENT, Players


@checked
class JoinedInputs(nn.Module):
    """A model with several inputs, such as an image and a table, wrapped as a model with one input.

    Pass it to `explain`, `audit` and `learn_baseline` as the model, with its ``x`` as the samples and its
    ``players``.

    Parameters
    ----------
    model : nn.Module or callable
        A model that is called with the inputs in order, or by name if they are a mapping.
    inputs : sequence or mapping of Tensor or array
        Batches with the same number of samples. The model receives integers, such as tokens, as integers.
    players : sequence or mapping of Players, optional
        The players of each input. The default is one player for each column of a table.

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
        self.model = model
        parts = _tensors_by_name(inputs)
        players_by_name = {} if players is None else _by_name("players", "Players", players)
        self.shapes = {name: tuple(part.shape[1:]) for name, part in parts.items()}
        self.types = {name: part.dtype for name, part in parts.items()}
        floating_types = [dtype for dtype in self.types.values() if dtype.is_floating_point]
        self.packed_type = floating_types[0] if floating_types else torch.get_default_dtype()
        self.players = self._join_players(players_by_name)
        self.x = self.pack(inputs)

    def _join_players(self, players_by_name: Mapping[Hashable, Any]) -> Players:
        """Join the players of all inputs; if two share a name, prefix all names with that of their input."""
        labels: list[Tensor] = []
        inputs_of_players: list[Hashable] = []
        names: list[str] = []
        categories: list[tuple[str, ...]] = []
        categorical: list[tuple[int, ...]] = []
        entries_before = 0
        for input_name, shape in self.shapes.items():
            players = _players_of_input(input_name, shape, players_by_name)
            own_labels = players.labels.flatten()
            labels.append(torch.where(own_labels == ALWAYS_PRESENT, own_labels, own_labels + len(names)))
            inputs_of_players += [input_name] * len(players)
            names += players.names
            categories += players.categories or [()] * len(players)
            categorical += [tuple(entries_before + entry for entry in group) for group in players.categorical]
            entries_before += len(own_labels)
        if len(set(names)) < len(names):
            pairs = zip(inputs_of_players, names, strict=True)
            names = [f"{_title(input_name)} {name}" for input_name, name in pairs]
        return Players(
            torch.cat(labels),
            tuple(names),
            categories=tuple(categories) if any(categories) else (),
            categorical=tuple(categorical),
        )

    def pack(self, inputs: Any) -> Shaped[Tensor, "rows entries"]:
        """Join other rows, such as the data from which an absence is made."""
        parts = _tensors_by_name(inputs)
        shapes = {name: tuple(part.shape[1:]) for name, part in parts.items()}
        if shapes != self.shapes:
            raise wrong("inputs", f"have samples of the shapes {self.shapes}", shapes)
        if len({len(part) for part in parts.values()}) > 1:
            rows = ", ".join(f"{len(part)} of {name!r}" for name, part in parts.items())
            raise wrong("inputs", "have the same number of samples", rows)
        flat_parts = [parts[name].flatten(1).to(self.packed_type) for name in self.shapes]
        return torch.cat(flat_parts, dim=1)

    def forward(self, rows: Shaped[Tensor, "rows entries"]) -> Any:
        """Split rows into the inputs of the model, and call it with them."""
        sizes = [math.prod(shape) for shape in self.shapes.values()]
        inputs: dict[Any, Tensor] = {}
        for (name, shape), part in zip(self.shapes.items(), rows.split(sizes, dim=1), strict=True):
            dtype = self.types[name]
            if not dtype.is_floating_point:
                part = part.round().to(dtype)
            inputs[name] = part.unflatten(1, shape)
        by_position = 0 in inputs
        if by_position:
            return self.model(*inputs.values())
        return self.model(**inputs)


def _players_of_input(name: Hashable, shape: tuple[int, ...], players_by_name: Mapping[Hashable, Any]) -> Players:
    """Return the players of an input, by default one for each column of a table, or raise an error if none fit."""
    if name in players_by_name:
        players = players_by_name[name]
    elif len(shape) == 1:
        players = Players.features(shape[0])
    else:
        players = None
    if not isinstance(players, Players) or players.shape != shape:
        raise wrong("players", f"be Players of shape {shape} for input {name!r}", players)
    return players


def _title(name: Hashable) -> str:
    """Return what to call an input in the names of its players."""
    return name if isinstance(name, str) else f"input {name}"


def _by_name(argument: str, kind: str, parts: Any) -> dict[Any, Any]:
    """Return the parts of a sequence by number, or of a mapping by name; raise an error for anything else."""
    if not isinstance(parts, Mapping | tuple | list) or not parts:
        raise wrong(argument, f"be a tuple or a mapping of {kind}", type(parts).__name__)
    if isinstance(parts, Mapping):
        return dict(parts)
    return dict(enumerate(parts))


def _tensors_by_name(inputs: Any) -> dict[Any, Tensor]:
    """Convert inputs to tensors, by name or number."""
    parts = _by_name("inputs", "tensors", inputs)
    return {name: as_tensor(f"input {name}", part) for name, part in parts.items()}
