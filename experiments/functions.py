"""Functions with known baseline values: their notation, and the rule for the values.

A function is a sum of terms. A line of the paper's released file contains one function, with terms split by ``|`` and
variables a, b, c … for x₁, x₂, x₃ …: ``-0.185*a*(b+c)^2.432|+sigmoid(+3d*e-3f-1.50)``.

A term is activated in the rarest of its states over binary inputs. The true baseline value of a variable is the
opposite of its value there, so that masking any variable of the term deactivates the term.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float
from torch import Tensor

import absentia as ab

# All states of a term's variables are tried: 2²⁰ of them take a second.
MAX_TERM_VARIABLES = 20

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_TOKEN = re.compile(r"sigmoid|\d+(?:\.\d+)?|[a-z]|[-+*^()|]")
_EXAMPLE = "Write terms such as -0.5*a*(b+c)^1.5|+sigmoid(+3d*e-3f-1.50)."


@dataclass(frozen=True)
class AnnotatedFunction:
    """A function of x₁ … xₙ with the true baseline value of each variable, or None where it is unknown.

    ``model`` maps rows (rows, players) to values (rows,) and carries gradients; ``inputs`` are the low and the high
    value that each variable takes.
    """

    name: str
    text: str
    players: int
    model: Callable[[Tensor], Tensor]
    truth: tuple[float | None, ...]
    inputs: tuple[float, float] = (0.0, 1.0)

    def baseline(self, unknown: float) -> Float[Tensor, " players"]:
        """Return the true values as a tensor, with ``unknown`` for the variables that have none.

        >>> parse_function("+sigmoid(+3a*b-3c-1.50)").baseline(unknown=0.5)
        tensor([0., 0., 1.], dtype=torch.float64)
        """
        return torch.tensor([unknown if value is None else value for value in self.truth], dtype=torch.float64)


@runtime_checkable
class Term(Protocol):
    """One summand of a function."""

    @property
    def variables(self) -> tuple[int, ...]:
        """The variables it depends on, each once."""

    def __call__(self, rows: Float[Tensor, "rows players"]) -> Float[Tensor, " rows"]:
        """Evaluate the term."""

    def most_infrequent(self, states: Float[Tensor, "states players"]) -> Bool[Tensor, " states"]:
        """Mark the states in which the term is activated, among all binary states of its variables."""


@dataclass(frozen=True)
class PowerTerm:
    """c · Π xᵢ · (Σ ±xⱼ)ᵖ, activated where it is largest in size; without summands, a plain product."""

    coefficient: float
    factors: tuple[int, ...]
    summands: tuple[tuple[float, int], ...] = ()
    power: float = 1.0

    @property
    def variables(self) -> tuple[int, ...]:
        """The variables it depends on, each once."""
        return _each_once([*self.factors, *(variable for _, variable in self.summands)])

    def __call__(self, rows: Float[Tensor, "rows players"]) -> Float[Tensor, " rows"]:
        """Evaluate the term."""
        product = self.coefficient * _product(rows, self.factors)
        if not self.summands:
            return product
        first, *others = (sign * rows[:, variable] for sign, variable in self.summands)
        return product * sum(others, start=first) ** self.power

    def most_infrequent(self, states: Float[Tensor, "states players"]) -> Bool[Tensor, " states"]:
        """Mark the states where the term is largest in size."""
        sizes = self(states).abs()
        return sizes >= sizes.max() * (1 - 1e-9)  # equal sizes may differ by rounding


@dataclass(frozen=True)
class SigmoidTerm:
    """±sigmoid(Σ k · Πxᵢ + constant), activated on the rarer side of one half."""

    sign: float
    products: tuple[tuple[float, tuple[int, ...]], ...]
    constant: float

    @property
    def variables(self) -> tuple[int, ...]:
        """The variables it depends on, each once."""
        return _each_once([variable for _, variables in self.products for variable in variables])

    def __call__(self, rows: Float[Tensor, "rows players"]) -> Float[Tensor, " rows"]:
        """Evaluate the term."""
        return self.sign * torch.sigmoid(self._argument(rows))

    def most_infrequent(self, states: Float[Tensor, "states players"]) -> Bool[Tensor, " states"]:
        """Mark the states on the rarer side of one half; none, if the sides are equally frequent."""
        argument = self._argument(states)
        above = argument > 0
        below = argument < 0
        if above.sum() == below.sum():
            return torch.zeros_like(above)
        return above if above.sum() < below.sum() else below

    def _argument(self, rows: Float[Tensor, "rows players"]) -> Float[Tensor, " rows"]:
        products = (weight * _product(rows, variables) for weight, variables in self.products)
        return sum(products, start=rows.new_tensor(self.constant))


@dataclass(frozen=True)
class SumOfTerms:
    """The model of one line: Σ terms."""

    terms: tuple[Term, ...]

    def __call__(self, rows: Float[Tensor, "rows players"]) -> Float[Tensor, " rows"]:
        """Evaluate the function."""
        by_column = rows.T.contiguous().T  # whose columns are read several times as fast
        return torch.stack([term(by_column) for term in self.terms]).sum(0)


def _product(rows: Float[Tensor, "rows players"], variables: Sequence[int]) -> Float[Tensor, " rows"]:
    """Multiply columns, one after another: faster than to gather them."""
    return reduce(torch.mul, [rows[:, variable] for variable in variables] or [rows.new_ones(len(rows))])


def activated_states(term: Term) -> Bool[Tensor, "states variables"]:
    """List the states of the term's variables in which it is activated.

    >>> activated_states(parse_terms("-sigmoid(+3a*b-3c-1.50)")[0]).int().tolist()
    [[1, 1, 0]]
    """
    states = ab.enumerate_coalitions(len(term.variables))
    rows = torch.zeros(len(states), max(term.variables) + 1, dtype=torch.float64)
    rows[:, term.variables] = states.double()
    return states[term.most_infrequent(rows)]


def true_baseline(terms: Sequence[Term], players: int) -> tuple[float | None, ...]:
    """Return the opposite of each variable's value where its terms are activated, or None where these disagree.

    >>> true_baseline(parse_terms("-a*b|+sigmoid(-4c-4d+2.00)|+sigmoid(+2e-1.00)"), 5)
    (0.0, 0.0, 1.0, 1.0, None)
    """
    opposites: list[set[float]] = [set() for _ in range(players)]
    for term in terms:
        states = activated_states(term)
        for variable, values in zip(term.variables, states.T.tolist(), strict=True):
            opposites[variable] |= {0.0 if value else 1.0 for value in values}
    return tuple(next(iter(values)) if len(values) == 1 else None for values in opposites)


def read_functions(path: Path | str) -> list[AnnotatedFunction]:
    """Read a file of functions, one per line; a function is named after its line."""
    path = Path(path)
    if not path.is_file():
        raise ab.AbsentiaError(f"path must be a file of functions, one per line. Got {path} instead.")
    lines = path.read_text(encoding="utf-8").splitlines()
    return [parse_function(line, f"line {number}") for number, line in enumerate(lines, start=1) if line.strip()]


def parse_function(line: str, name: str = "line") -> AnnotatedFunction:
    """Read one function, and compute its true baseline values.

    >>> function = parse_function("-a*b|+sigmoid(+3c*d-3e-1.50)")
    >>> function.truth
    (0.0, 0.0, 0.0, 0.0, 1.0)
    >>> function.model(torch.tensor([[1.0, 1.0, 0.0, 1.0, 1.0]]))
    tensor([-0.9890])
    """
    terms = parse_terms(line, name)
    players = 1 + max(variable for term in terms for variable in term.variables)
    return AnnotatedFunction(name, line.strip(), players, SumOfTerms(terms), true_baseline(terms, players))


def parse_terms(line: str, name: str = "line") -> tuple[Term, ...]:
    """Read the terms of one function.

    >>> parse_terms("-0.5*a*(b+c)^2")
    (PowerTerm(coefficient=-0.5, factors=(0,), summands=((1.0, 1), (1.0, 2)), power=2.0),)
    """
    reader = _Reader(line, name)
    terms = [_term(reader)]
    while reader.accept("|"):
        terms.append(_term(reader))
    if reader.next != "":
        raise reader.refuse("| or its end")
    return tuple(terms)


class _Reader:
    """The tokens of a line, and the current place."""

    def __init__(self, line: str, name: str) -> None:
        self.line = line.strip()
        self.name = name
        self._place = 0

    @property
    def next(self) -> str:
        """The next token: empty at the end, one character where there is no token."""
        token = _TOKEN.match(self.line, self._place)
        return token.group() if token else self.line[self._place : self._place + 1]

    def accept(self, *tokens: str) -> str:
        """Consume and return the next token if it is one of these; otherwise return an empty string."""
        token = self.next
        if token not in tokens or token == "":
            return ""
        self._place += len(token)
        return token

    def require(self, token: str) -> None:
        if not self.accept(token):
            raise self.refuse(token)

    def sign(self) -> float:
        """Read a sign; the default is plus."""
        return -1.0 if self.accept("+", "-") == "-" else 1.0

    def number(self) -> float | None:
        token = self.next
        if not token[:1].isdecimal():
            return None
        self._place += len(token)
        return float(token)

    def variable(self) -> int:
        letter = self.accept(*_LETTERS)
        if not letter:
            raise self.refuse("a variable")
        return _LETTERS.index(letter)

    def product(self) -> tuple[int, ...]:
        """Read variables joined by *, and stop before a * that is followed by an opening bracket."""
        variables = [self.variable()]
        while self.next == "*" and not self.line.startswith("*(", self._place):
            self.accept("*")
            variables.append(self.variable())
        return tuple(variables)

    def refuse(self, expected: str) -> ab.AbsentiaError:
        token = repr(self.next) if self.next else "the end of the line"
        return _refusal(self.name, f"{expected} in column {self._place + 1}", token)


def _refusal(name: str, wanted: str, got: object) -> ab.AbsentiaError:
    return ab.AbsentiaError(f"{name} must have {wanted}. Got {got} instead. {_EXAMPLE}")


def _term(reader: _Reader) -> Term:
    sign = reader.sign()
    term = _sigmoid_term(reader, sign) if reader.accept("sigmoid") else _power_term(reader, sign)
    if len(term.variables) > MAX_TERM_VARIABLES:
        most = f"at most {MAX_TERM_VARIABLES} variables in a term, because all of their states are tried"
        raise _refusal(reader.name, most, len(term.variables))
    return term


def _power_term(reader: _Reader, sign: float) -> PowerTerm:
    coefficient = reader.number()
    if coefficient is not None:
        reader.require("*")
    factors: tuple[int, ...] = ()
    if reader.next != "(":
        factors = reader.product()
        if not reader.accept("*"):
            return PowerTerm(sign * (1.0 if coefficient is None else coefficient), factors)
    summands = _sum(reader)
    reader.require("^")
    power = reader.number()
    if power is None:
        raise reader.refuse("a power")
    # Below 1, the gradient is infinite where the sum is 0. A negative sum has only whole powers.
    whole = any(sign < 0 for sign, _ in summands)
    if power < 1 or (whole and power % 1):
        raise _refusal(reader.name, f"a {'whole ' if whole else ''}power of at least 1", power)
    return PowerTerm(sign * (1.0 if coefficient is None else coefficient), factors, summands, power)


def _sum(reader: _Reader) -> tuple[tuple[float, int], ...]:
    reader.require("(")
    summands = [(reader.sign(), reader.variable())]
    while reader.next in ("+", "-"):
        summands.append((reader.sign(), reader.variable()))
    reader.require(")")
    return tuple(summands)


def _sigmoid_term(reader: _Reader, sign: float) -> SigmoidTerm:
    reader.require("(")
    products: list[tuple[float, tuple[int, ...]]] = []
    constant = 0.0
    while True:
        weight = reader.sign()
        number = reader.number()
        if number is not None and reader.next in ("+", "-", ")"):
            constant += weight * number
        else:
            products.append((weight * (1.0 if number is None else number), reader.product()))
        if reader.next not in ("+", "-"):
            break
    reader.require(")")
    if not products:
        raise _refusal(reader.name, "a variable in every sigmoid", "a constant")
    return SigmoidTerm(sign, tuple(products), constant)


def _each_once(variables: Sequence[int]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(variables))
