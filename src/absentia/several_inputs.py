"""Several inputs of a model as one, whose entries belong to the players of each."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from jaxtyping import Shaped
from torch import Tensor, nn

from absentia.data import as_tensor
from absentia.errors import wrong
from absentia.players import ALWAYS_PRESENT, Players


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
        floating = [kind for kind in self.types.values() if kind.is_floating_point]
        self.packed_type = floating[0] if floating else torch.get_default_dtype()
        self.players, self.x = self._join_players(given), self.pack(inputs)

    def _join_players(self, given: Mapping[Any, Any]) -> Players:
        """Make players of those of all inputs; put the input's name before names that two inputs share."""
        labels, names, count = [], [], 0
        for name, shape in self.shapes.items():
            own = given.get(name, Players.features(shape[0]) if len(shape) == 1 else None)
            if not isinstance(own, Players) or own.shape != shape:
                raise wrong("players", f"be Players of shape {shape} for input {name!r}", own)
            flat = own.labels.flatten()
            labels.append(torch.where(flat == ALWAYS_PRESENT, flat, flat + count))
            names += [(name if isinstance(name, str) else f"input {name}", one) for one in own.names]
            count += len(own)
        shared = len({one for _, one in names}) < count
        return Players(torch.cat(labels), tuple(f"{name} {one}" if shared else one for name, one in names))

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
