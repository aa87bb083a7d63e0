"""Families of functions with known baseline values: one generated like the paper's, and the ten of Tsang et al."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from absentia import AbsentiaError
from experiments.functions import AnnotatedFunction, parse_function

# Some of Tsang's functions divide by a variable or take its logarithm, so the paper's inputs are not 0 and 1.
LOW = 0.001
HIGH = 0.999

# Taken from the paper's hundred released functions.
_PLAYERS = (10, 15)
_LEAST_TERM = 3
_STEEPNESS = (3, 8)
_POWERS = (1.0, 3.0)
_MOST_FACTORS_OF_A_SUM = 4
_LEAST_COEFFICIENT = 0.001


def generate_functions(count: int, seed: int) -> list[AnnotatedFunction]:
    """Draw functions like the paper's released ones, with true values by the same rule.

    >>> function = generate_functions(3, seed=1)[2]
    >>> function.text
    '+a*b*c*d*e*f*g*h*i|-sigmoid(-7j+7k*l*m*n*o-3.50)'
    >>> [letter for letter, value in zip("abcdefghijklmno", function.truth, strict=True) if value == 1]
    ['j']
    """
    if count < 1:
        raise AbsentiaError(f"count must be at least 1. Got {count} instead.")
    chance = random.Random(seed)
    return [parse_function(_draw_line(chance), f"generated {number}") for number in range(1, count + 1)]


def _draw_line(chance: random.Random) -> str:
    """Divide 10 to 15 variables among terms: half are sigmoids, a quarter powers, a quarter products."""
    players = chance.randint(*_PLAYERS)
    letters = "abcdefghijklmno"[:players]
    terms = []
    for size in _draw_sizes(chance, players):
        draw = chance.choice([_draw_product, _draw_power, _draw_sigmoid, _draw_sigmoid])
        terms.append(chance.choice("+-") + draw(chance, letters[:size]))
        letters = letters[size:]
    return "|".join(terms)


def _draw_sizes(chance: random.Random, players: int) -> list[int]:
    """Draw the number of terms, and the number of variables in each: at least three."""
    terms = chance.randint(1, players // _LEAST_TERM)
    spare = players - terms * _LEAST_TERM
    # Stars and bars: every division of the spare variables is equally likely.
    bars = sorted(chance.sample(range(spare + terms - 1), terms - 1))
    bounds = [-1, *bars, spare + terms - 1]
    return [_LEAST_TERM + after - before - 1 for before, after in itertools.pairwise(bounds)]


def _draw_product(_chance: random.Random, letters: str) -> str:
    return "*".join(letters)


def _draw_power(chance: random.Random, letters: str) -> str:
    """Draw c·factors·(sum)ᵖ with c = (number of summands)⁻ᵖ, so that the largest value is 1, as for a product."""
    factors = chance.randint(0, min(_MOST_FACTORS_OF_A_SUM, len(letters) - 2))
    summands = letters[factors:]
    # The coefficient has three decimals: a steeper power would make it 0.
    steepest = min(_POWERS[1], -math.log(_LEAST_COEFFICIENT, len(summands)))
    power = chance.uniform(_POWERS[0], steepest)
    coefficient = len(summands) ** -power
    return "*".join([f"{coefficient:.3f}", *letters[:factors], f"({'+'.join(summands)})^{power:.3f}"])


def _draw_sigmoid(chance: random.Random, letters: str) -> str:
    """Draw a sigmoid whose threshold only one state passes: that with the highest or the lowest sum."""
    steepness = chance.randint(*_STEEPNESS)
    passing, other = chance.choice([("+", "-"), ("-", "+")])
    body = ""
    passed = 0
    for product in _draw_products(chance, letters):
        # Only a single variable may have the other sign: it is 0 in the passing state; a product is 0 in many states.
        sign = chance.choice([passing, other]) if len(product) == 1 else passing
        body += f"{sign}{steepness}{'*'.join(product)}"
        passed += sign == passing
    constant = steepness * (0.5 - passed if passing == "+" else passed - 0.5)
    return f"sigmoid({body}{constant:+.2f})"


def _draw_products(chance: random.Random, letters: str) -> list[str]:
    """Split the letters into runs: each letter starts a new run with probability one half."""
    runs = [letters[0]]
    for letter in letters[1:]:
        if chance.random() < 0.5:
            runs.append(letter)
        else:
            runs[-1] += letter
    return runs


@dataclass(frozen=True)
class _Columns:
    """The columns of rows, numbered from 1 as in the paper."""

    rows: Float[Tensor, "rows players"]

    def __getitem__(self, number: int) -> Float[Tensor, " rows"]:
        return self.rows[:, number - 1]


@dataclass(frozen=True)
class TsangModel:
    """One of Tsang's functions on rows of ten variables."""

    formula: Callable[[_Columns], Tensor]

    def __call__(self, rows: Float[Tensor, "rows 10"]) -> Float[Tensor, " rows"]:
        """Evaluate the function."""
        return self.formula(_Columns(rows))


def tsang_functions() -> list[AnnotatedFunction]:
    """Return the ten functions of [tsang2018detecting] with the 61 baseline values that the paper states.

    >>> sum(value is not None for function in tsang_functions() for value in function.truth)
    61
    """
    functions = []
    for number, (text, formula, low, high) in enumerate(_TSANG, start=1):
        values = dict.fromkeys(low, LOW) | dict.fromkeys(high, HIGH)
        truth = tuple(values.get(variable) for variable in range(1, 11))
        functions.append(AnnotatedFunction(f"Tsang F{number}", text, 10, TsangModel(formula), truth, (LOW, HIGH)))
    return functions


def _f1(x: _Columns) -> Tensor:
    ratio = x[9] / x[10] * (x[7] / x[8]).sqrt()
    return math.pi ** (x[1] * x[2]) * (2 * x[3]).sqrt() - x[4].arcsin() + (x[3] + x[5]).log() - ratio - x[2] * x[7]


def _f2(x: _Columns) -> Tensor:
    ratio = x[9] / (1 + x[10].abs()) * (x[7] / (1 + x[8].abs())).sqrt()
    logarithm = ((x[3] + x[5]).abs() + 1).log()
    powers = math.pi ** (x[1] * x[2]) * (2 * x[3].abs()).sqrt()
    return powers - (0.5 * x[4]).arcsin() + logarithm + ratio - x[2] * x[7]


def _f3(x: _Columns) -> Tensor:
    logarithm = (x[4] ** 2 + x[5] ** 2 + x[7] ** 2 + x[8] ** 2).log()
    powers = (x[1] - x[2]).abs().exp() + (x[2] * x[3]).abs() - x[3] ** (2 * x[4].abs())
    return powers + logarithm + x[9] + 1 / (1 + x[10] ** 2)


def _f4(x: _Columns) -> Tensor:
    return _f3(x) + (x[1] * x[4]) ** 2


def _f5(x: _Columns) -> Tensor:
    fraction = 1 / (1 + x[1] ** 2 + x[2] ** 2 + x[3] ** 2)
    return fraction + (x[4] + x[5]).exp().sqrt() + (x[6] + x[7]).abs() + x[8] * x[9] * x[10]


def _f6(x: _Columns) -> Tensor:
    powers = ((x[1] * x[2]).abs() + 1).exp() - ((x[3] + x[4]).abs() + 1).exp()
    return powers + (x[5] + x[6] - x[8]).cos() + (x[8] ** 2 + x[9] ** 2 + x[10] ** 2).sqrt()


def _f7(x: _Columns) -> Tensor:
    fractions = -1 / (1 + (x[4] * x[5] * x[6] * x[7] * x[8]) ** 2) + (x[7].abs() / (1 + x[9].abs())) ** 5
    return (x[1].arctan() + x[2].arctan()) ** 2 + (x[3] * x[4] + x[6]).relu() + fractions + x.rows.sum(1)


def _f8(x: _Columns) -> Tensor:
    powers = 2 ** (x[3] + x[5] + x[6]) + 2 ** (x[3] + x[4] + x[5] + x[7])
    return x[1] * x[2] + powers + (x[7] * (x[8] + x[9]).sin()).sin() + (0.9 * x[10]).arccos()


def _f9(x: _Columns) -> Tensor:
    bounded = (x[1] * x[2] + x[3] * x[4]).tanh() * x[5].abs().sqrt()
    logarithm = ((x[6] * x[7] * x[8]) ** 2 + 1).log()
    return bounded + (x[5] + x[6]).exp() + logarithm + x[9] * x[10] + 1 / (1 + x[10].abs())


def _f10(x: _Columns) -> Tensor:
    return (x[1] + x[2]).sinh() + (x[3] + x[5] + x[7]).tanh().arccos() + (x[4] + x[5]).cos() + 1 / (x[7] * x[9]).cos()


# As printed: the function, and the variables whose true baseline value is low, then high. The paper leaves out
# variables that interact with no other, and those whose patterns disagree.
_TSANG: list[tuple[str, Callable[[_Columns], Tensor], tuple[int, ...], tuple[int, ...]]] = [
    ("π^(x1·x2)·√(2·x3) − arcsin(x4) + log(x3+x5) − x9/x10·√(x7/x8) − x2·x7", _f1, (1, 2, 7, 9), (5, 8, 10)),
    (
        "π^(x1·x2)·√(2|x3|) − arcsin(0.5·x4) + log(|x3+x5|+1) + x9/(1+|x10|)·√(x7/(1+|x8|)) − x2·x7",
        _f2,
        (1, 2, 7, 9),
        (5,),
    ),
    ("exp|x1−x2| + |x2·x3| − x3^(2|x4|) + log(x4²+x5²+x7²+x8²) + x9 + 1/(1+x10²)", _f3, (), (3, 5, 7, 8)),
    ("exp|x1−x2| + |x2·x3| − x3^(2|x4|) + (x1·x4)² + log(x4²+x5²+x7²+x8²) + x9 + 1/(1+x10²)", _f4, (), (3, 5, 7, 8)),
    ("1/(1+x1²+x2²+x3²) + √exp(x4+x5) + |x6+x7| + x8·x9·x10", _f5, (4, 5, 8, 9, 10), (1, 2, 3)),
    ("exp(|x1·x2|+1) − exp(|x3+x4|+1) + cos(x5+x6−x8) + √(x8²+x9²+x10²)", _f6, (1, 2, 3, 4, 5, 6), (8, 9, 10)),
    (
        "(arctan(x1)+arctan(x2))² + max(x3·x4+x6, 0) − 1/(1+(x4·x5·x6·x7·x8)²) + (|x7|/(1+|x9|))⁵ + Σxᵢ",
        _f7,
        (1, 2, 3, 4, 5, 6, 7, 8),
        (9,),
    ),
    ("x1·x2 + 2^(x3+x5+x6) + 2^(x3+x4+x5+x7) + sin(x7·sin(x8+x9)) + arccos(0.9·x10)", _f8, (1, 2, 3, 4, 5, 6), ()),
    ("tanh(x1·x2+x3·x4)·√|x5| + exp(x5+x6) + log((x6·x7·x8)²+1) + x9·x10 + 1/(1+|x10|)", _f9, (6, 7, 8, 9, 10), ()),
    ("sinh(x1+x2) + arccos(tanh(x3+x5+x7)) + cos(x4+x5) + sec(x7·x9)", _f10, (1, 2, 4), (3,)),
]
