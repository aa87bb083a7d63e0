"""Attributions: numbers for players, with their errors and cost."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from absentia.arguments import checked
from absentia.data import check_number
from absentia.determined import WHY_NOT_DETERMINED, are_determined, with_marks
from absentia.errors import wrong
from absentia.text import align, count_of, fold, written, written_alike


@checked
@dataclass(frozen=True, eq=False)
class Attribution:
    """One number for each player and sample, with its standard error and its cost.

    Examples
    --------
    >>> ab.shapley(ab.ValueTable([0.0, 1.0, 2.0, 5.0], names=["age", "income"]))
    Attribution: Shapley values of 1 sample, 2 players; value: given
      income  +3
      age     +2
    """

    values: Float[Tensor, "samples players"]
    errors: Float[Tensor, "samples players"]  # standard errors; 0 where values are exact, NaN where unknown
    evaluations: int  # rows that were evaluated: one for each coalition and draw of the absence
    names: tuple[str, ...]
    kind: str  # such as "Shapley values", in words
    readout: str
    index: str = "Shapley"  # the name of the index, or "contexts"; files of older versions hold Shapley values only
    rows_seen: int | None = None  # rows that the model saw for them, checks included; None if not known
    method: str = ""  # how sampled values were estimated, such as "process"
    notes: tuple[str, ...] = ()
    drawn: object | None = None  # the values of drawn coalitions, from which more can be drawn; not saved

    def packed(self) -> dict[str, Any]:
        """Return the fields that are saved."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name != "drawn"}

    @property
    def standard_errors(self) -> Float[Tensor, "samples players"] | None:
        """The errors, or None if values are exact."""
        return self.errors if self.is_estimated else None

    @property
    def is_estimated(self) -> bool:
        """Whether values have errors, even if these are unknown."""
        return bool((self.errors != 0).any())

    @property
    def has_known_errors(self) -> bool:
        """Whether there are standard errors above 0."""
        return bool((self.errors > 0).any())

    @property
    def determined(self) -> Bool[Tensor, "samples players"]:
        """Whether each value is at least as large as its standard error, or the error is unknown."""
        return are_determined(self.values, self.errors)

    @property
    def determined_means(self) -> Bool[Tensor, " players"]:
        """Whether the mean of each player's |value| over the samples is at least as large as its mean error."""
        return are_determined(self.values.abs().mean(0), self.errors.mean(0))

    def __repr__(self) -> str:
        samples = len(self.values)
        head = _title("Attribution", self.kind, samples, len(self.names), self.readout)
        if samples == 1:
            return "\n".join([head, *self._lines(0)])
        head += "; means of |value|"
        if self.has_known_errors:
            head += " ± mean standard error"
        return "\n".join([f"{head}:", *self._lines(None)])

    def _lines(self, sample: int | None) -> list[str]:
        """Return aligned lines of players and values, with a mark beside those that are not determined."""
        ranked = self.ranked(sample)
        determined = self.determined_means if sample is None else self.determined[sample]
        marks = [bool(determined[player]) for player, _ in ranked]
        lines = align(with_marks([(self.names[player], text) for player, text in ranked], marks), 2)
        if not all(marks):
            lines.append(f"  {WHY_NOT_DETERMINED}")
        return lines

    def ranked(self, sample: int | None = 0) -> list[tuple[int, str]]:
        """Return players with formatted values ± errors, largest first; None averages |value| over samples."""
        check_number("sample", sample, -len(self.values), len(self.values) - 1)
        if sample is None:
            values = self.values.abs().mean(0)
            errors = self.errors.mean(0)
        else:
            values = self.values[sample]
            errors = self.errors[sample]
        order = values.abs().argsort(dim=0, descending=True, stable=True).tolist()
        texts = written_alike(values[order].tolist(), plus=sample is not None)
        if self.has_known_errors:
            shown_errors = [written(float(errors[player]), 2) for player in order]
            texts = [f"{text} ± {error}" for text, error in zip(texts, shown_errors, strict=True)]
        return list(zip(order, texts, strict=True))


@checked
@dataclass(frozen=True, eq=False)
class OrderAttribution:
    """One number for each player, order and sample, such as the order-wise Shapley values.

    Examples
    --------
    >>> ab.order_shapley(ab.ValueTable([0.0, 1.0, 2.0, 5.0], names=["age", "income"]))
    OrderAttribution: order-wise Shapley values of 1 sample, 2 players; value: given; by order:
           age  income
      0    +1   +2
      1    +3   +4
    """

    values: Float[Tensor, "samples orders players"]
    evaluations: int  # rows that were evaluated: one for each coalition and draw of the absence
    names: tuple[str, ...]
    kind: str  # such as "order-wise Shapley values", in words
    readout: str
    orders: tuple[int, ...]  # the order of each entry of the second axis
    rows_seen: int | None = None  # rows that the model saw for them, checks included; None if not known
    standard_errors: Float[Tensor, "samples orders players"] | None = None  # None if values are exact
    notes: tuple[str, ...] = ()

    @property
    def errors(self) -> Float[Tensor, "samples orders players"]:
        """Standard errors; 0 where values are exact."""
        if self.standard_errors is None:
            return torch.zeros_like(self.values)
        return self.standard_errors

    @property
    def is_estimated(self) -> bool:
        """Whether values have errors."""
        return bool((self.errors != 0).any())

    @property
    def determined(self) -> Bool[Tensor, "samples orders players"]:
        """Whether each value is at least as large as its standard error."""
        return are_determined(self.values, self.errors)

    def at(self, *orders: int) -> OrderAttribution:
        """Return the values of the given orders.

        >>> ab.order_shapley(ab.ValueTable([0.0, 1.0, 2.0, 5.0])).at(1).values
        tensor([[[3., 4.]]], dtype=torch.float64)
        """
        for order in orders:
            check_number("orders", order, 0, len(self.names) - 1)
        for order in orders:
            if order not in self.orders:
                raise wrong("orders", f"be among {', '.join(map(str, self.orders))}", order)
        places = [self.orders.index(order) for order in orders]
        errors = None if self.standard_errors is None else self.standard_errors[:, places]
        return replace(self, values=self.values[:, places], orders=tuple(orders), standard_errors=errors)

    def only(self, sample: int) -> OrderAttribution:
        """Return the values of a single sample.

        >>> ab.order_shapley(ab.ValueTable([[0.0, 1.0], [0.0, 2.0]])).only(1).values
        tensor([[[2.]]], dtype=torch.float64)
        """
        check_number("sample", sample, -len(self.values), len(self.values) - 1)
        errors = None if self.standard_errors is None else self.standard_errors[[sample]]
        return replace(self, values=self.values[[sample]], standard_errors=errors)

    def mean(self) -> Attribution:
        """Return the mean over the orders; for order-wise Shapley values of all orders, these are Shapley values.

        The errors of estimated values are correlated in an unknown way, so the errors of their means are NaN.
        """
        means = exact_attribution(self, self.values.mean(1), f"means over the orders of {self.kind}")
        if not self.is_estimated:
            return means
        return replace(means, errors=torch.full_like(means.values, torch.nan), notes=self.notes)

    def __repr__(self) -> str:
        samples = len(self.values)
        head = _title("OrderAttribution", self.kind, samples, len(self.names), self.readout)
        values = self.values[0]
        where = "by order"
        if samples > 1:
            values = self.values.abs().mean(0)
            where = "means of |value| by order"
        rows = [["", *self.names]]
        errors = self.errors.mean(0).tolist()
        for order, row, row_errors in zip(self.orders, values.tolist(), errors, strict=True):
            texts = written_alike(row, plus=samples == 1)
            if self.is_estimated:
                texts = [f"{text} ± {written(error, 2)}" for text, error in zip(texts, row_errors, strict=True)]
            rows.append([f"{order}  ", *texts])
        return "\n".join([f"{head}; {where}:", *align(rows, 2), *(fold(f"  Note: {note}") for note in self.notes)])


@checked
@dataclass(frozen=True, eq=False)
class MarginalBenefits:
    """What one player adds to each coalition of the others, v(S∪i) − v(S), in counting order.

    Examples
    --------
    >>> ab.marginal_benefits(ab.ValueTable([0.0, 1.0, 2.0, 5.0]), player=0)
    MarginalBenefits: of x0 in 1 sample, 2 players; value: given; mean +2, from +1 to +3
    """

    values: Float[Tensor, "samples contexts"]
    evaluations: int  # rows that were evaluated: one for each coalition and draw of the absence
    names: tuple[str, ...]
    player: int
    readout: str
    rows_seen: int | None = None  # rows that the model saw for them, checks included; None if not known
    notes: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """A description of the values."""
        return f"marginal benefits of {self.names[self.player]}"

    @property
    def errors(self) -> Float[Tensor, "samples contexts"]:
        """Standard errors, which are 0: benefits are exact."""
        return torch.zeros_like(self.values)

    @property
    def standard_errors(self) -> None:
        """None, because benefits are exact."""

    @property
    def is_estimated(self) -> bool:
        """Whether values have errors: benefits have none."""
        return False

    def __repr__(self) -> str:
        place = f"of {self.names[self.player]} in {count_of(len(self.values), 'sample')}, {len(self.names)} players"
        mean = written(float(self.values.mean()), 4, plus=True)
        least = written(float(self.values.min()), 4, plus=True)
        most = written(float(self.values.max()), 4, plus=True)
        return f"MarginalBenefits: {place}; value: {self.readout}; mean {mean}, from {least} to {most}"


def _title(name: str, kind: str, samples: int, players: int, readout: str) -> str:
    """Return the first line of a result."""
    return f"{name}: {kind} of {count_of(samples, 'sample')}, {players} players; value: {readout}"


def exact_attribution(
    source: Any, values: Float[Tensor, "samples players"], kind: str, index: str = "Shapley"
) -> Attribution:
    """Return exact values as an attribution, with the names, cost and readout of a table or another result."""
    no_errors = torch.zeros_like(values)
    return Attribution(
        values,
        no_errors,
        source.evaluations,
        source.names,
        kind,
        source.readout,
        index,
        rows_seen=source.rows_seen,
    )
