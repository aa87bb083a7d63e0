"""Sums of products with known Shapley values: the extended Addition-Multiplication family, and its printed examples.

f(x) = Σ c·Π(xᵢ − δᵢ), no variable in two products. With the baseline values bᵢ = δᵢ a product is 0 unless all of its
variables are present: it is one interaction, and its value on a sample belongs to its variables in equal shares.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from absentia.errors import wrong
from absentia.papers.functions import AnnotatedFunction

# The paper scores 800 Shapley values, in steps of 1/800: a hundred functions of eight variables.
PLAYERS = 8
# The inputs' probability of being 1.
PRESENCE = 0.7

# The paper does not say how it drew its functions. The ranges are those of its three printed examples; the shares
# were chosen so that zero and mean baseline values score near the paper's table: see `addition_multiplication`.
_UNUSED = 1 / 6
_SHIFTED = 0.5
_SIZES = (0.5, 5.0)
_SHIFTS = (0.01, 0.99)
_MOST_PRODUCTS = 6


@dataclass(frozen=True)
class Product:
    """c · Π(xᵢ − δᵢ)."""

    coefficient: float
    shifts: tuple[tuple[int, float], ...]  # variable i and its δ, 0 where the factor is plain

    @property
    def variables(self) -> list[int]:
        """The variables of its factors."""
        return [variable for variable, _ in self.shifts]

    def __call__(self, rows: Float[Tensor, "rows players"]) -> Float[Tensor, " rows"]:
        """Evaluate the product."""
        shifts = rows.new_tensor([shift for _, shift in self.shifts])
        return self.coefficient * (rows[:, self.variables] - shifts).prod(1)

    def __str__(self) -> str:
        factors = [f"(x{i + 1}-{shift:g})" if shift else f"x{i + 1}" for i, shift in self.shifts]
        return f"{self.coefficient:+g}*{'*'.join(factors)}"


@dataclass(frozen=True)
class SumOfProducts:
    """The model f(x) = Σ c·Π(xᵢ − δᵢ), no variable in two products.

    >>> model = SumOfProducts((Product(3.2, ((0, 0.0), (1, 0.0))), Product(1.5, ((2, 0.0), (3, 1.0)))))
    >>> print(model)
    +3.2*x1*x2+1.5*x3*(x4-1)
    >>> model.shapley(torch.tensor([[1.0, 1.0, 1.0, 0.0], [1.0, 1.0, 1.0, 1.0]]))
    tensor([[ 1.6000,  1.6000, -0.7500, -0.7500],
            [ 1.6000,  1.6000,  0.0000,  0.0000]])
    """

    products: tuple[Product, ...]

    def __call__(self, rows: Float[Tensor, "rows players"]) -> Float[Tensor, " rows"]:
        """Evaluate the function."""
        return torch.stack([product(rows) for product in self.products]).sum(0)

    def __str__(self) -> str:
        return "".join(str(product) for product in self.products)

    def shapley(self, rows: Float[Tensor, "rows players"]) -> Float[Tensor, "rows players"]:
        """Give the true Shapley values: each product's value in equal shares to its variables."""
        values = torch.zeros_like(rows)
        for product in self.products:
            values[:, product.variables] = (product(rows) / len(product.variables))[:, None]
        return values

    def truth(self, players: int) -> tuple[float | None, ...]:
        """Give the true baseline values: δ, and None for the variables that are not used."""
        shifts = dict(pair for product in self.products for pair in product.shifts)
        return tuple(shifts.get(variable) for variable in range(players))


@dataclass(frozen=True, eq=False)
class ShapleyCase:
    """A function, one binary sample, and the true Shapley values there."""

    function: AnnotatedFunction
    x: Float[Tensor, " players"]
    shapley: Float[Tensor, " players"]


@dataclass(frozen=True, eq=False)
class WorkedExample:
    """A case that the paper prints, with the Shapley values that it prints for four settings of baseline values.

    The printed "mean" is 0.5 for every variable, not the 0.7 of the paper's text. The printed "setting in SHAP" is
    the mean over the inputs' distribution, to within its sampling error, divided by 128.
    """

    case: ShapleyCase
    truth: tuple[float, ...]
    zero: tuple[float, ...]
    mean: tuple[float, ...]
    shap: tuple[float, ...]


def addition_multiplication(count: int, seed: int, *, players: int = PLAYERS, lone: float = 0.9) -> list[ShapleyCase]:
    """Draw functions of the family, each with one sample of independent inputs that are 1 with probability 0.7.

    Every product has two factors or more, as in the functions that the paper's text defines the family by. A product
    of one, c·(x − δ), which two of the printed examples have, is the same function for every δ up to a constant.

    ``lone`` is the share of functions that are one product; the others spread their variables over up to six. It is
    fitted: by default zero baseline values score 83 % (83 % in the paper's table) and those of 0.5 score 69 % (73 %),
    so their agreement is no evidence. With ``lone=0``, like two of the printed examples, they score 60 % and 24 %.

    >>> case = addition_multiplication(1, seed=1)[0]
    >>> case.function.text
    '-3.59*x1*(x3-0.38)*(x6-0.76)*(x7-0.8)*(x8-0.03)'
    >>> case.function.truth
    (0.0, None, 0.38, None, None, 0.76, 0.8, 0.03)
    """
    if count < 1:
        raise wrong("count", "be at least 1", count)
    if players < 2:
        raise wrong("players", "be at least 2", players)
    if not 0 <= lone <= 1:
        raise wrong("lone", "be a share, from 0 to 1", lone)
    chance = random.Random(seed)
    cases = []
    for number in range(1, count + 1):
        model = _draw_sum(chance, players, 1 if chance.random() < lone else chance.randint(2, _MOST_PRODUCTS))
        x = [float(chance.random() < PRESENCE) for _ in range(players)]
        cases.append(_case(f"generated {number}", model, x))
    return cases


def _draw_sum(chance: random.Random, players: int, products: int) -> SumOfProducts:
    """Leave some variables out, and put each of the others into one of the products, of two or more."""
    members: dict[int, list[tuple[int, float]]] = {}
    while sum(map(len, members.values())) < 2:
        members.clear()
        for variable in range(players):
            if chance.random() >= _UNUSED:
                shift = round(chance.uniform(*_SHIFTS), 2) if chance.random() < _SHIFTED else 0.0
                members.setdefault(chance.randrange(products), []).append((variable, shift))
    return SumOfProducts(
        tuple(
            Product(chance.choice([1, -1]) * round(chance.uniform(*_SIZES), 2), tuple(shifts))
            for shifts in _without_lone_factors(list(members.values()))
        )
    )


def _without_lone_factors(products: list[list[tuple[int, float]]]) -> list[list[tuple[int, float]]]:
    """Put factors that are alone together, or with the first product where there is but one."""
    together = [factors for factors in products if len(factors) > 1]
    alone = [factors[0] for factors in products if len(factors) == 1]
    if len(alone) > 1:
        return [*together, sorted(alone)]
    return [sorted(together[0] + alone), *together[1:]] if together else [alone]


def _case(name: str, model: SumOfProducts, x: list[float]) -> ShapleyCase:
    sample = torch.tensor(x, dtype=torch.float64)
    function = AnnotatedFunction(name, str(model), len(x), model, model.truth(len(x)))
    return ShapleyCase(function, sample, model.shapley(sample[None])[0])


def worked_examples() -> list[WorkedExample]:
    """Give the three examples that the paper prints.

    >>> for example in worked_examples():
    ...     print(example.case.function.text)
    -2.62*x1-5*x3-1.98*x6*(x4-0.94)+1.15*(x5-0.91)-4.23*x7
    -4.23*x1*x2*x4*x5*x6*(x7-0.63)*x8
    -3.49*(x2-0.15)*(x5-0.78)-0.88*x3+2.24*(x4-0.68)-1.6*(x7-0.61)-4.52*x8
    """
    first = _printed(
        (-2.62, {1: 0.0}), (-5.0, {3: 0.0}), (-1.98, {6: 0.0, 4: 0.94}), (1.15, {5: 0.91}), (-4.23, {7: 0.0})
    )
    second = _printed((-4.23, {1: 0.0, 2: 0.0, 4: 0.0, 5: 0.0, 6: 0.0, 7: 0.63, 8: 0.0}))
    third = _printed(
        (-3.49, {2: 0.15, 5: 0.78}), (-0.88, {3: 0.0}), (2.24, {4: 0.68}), (-1.60, {7: 0.61}), (-4.52, {8: 0.0})
    )
    return [
        WorkedExample(
            _case("worked example 1", first, [0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]),
            truth=(0, 0, -5, -0.06, 0.10, -0.06, -4.23),
            zero=(0, 0, -5, -0.99, 1.15, 0.87, -4.23),
            mean=(1.31, 0, -2.50, -0.74, 0.58, 0.19, -2.11),
            shap=(0.014, 0, -0.011, -0.003, 0.003, 0.001, -0.010),
        ),
        WorkedExample(
            _case("worked example 2", second, [1.0] * 8),
            truth=(-0.2236, -0.2236, 0, -0.2236, -0.2236, -0.2236, -0.2236, -0.2236),
            zero=(-0.1601, -0.1601, 0, -0.1601, -0.1601, -0.1601, -0.6043, -0.1601),
            mean=(-0.1624, -0.1624, 0, -0.1624, -0.1624, -0.1624, -0.5996, -0.1624),
            shap=(-0.0013, -0.0012, 0, -0.0011, -0.0012, -0.0012, -0.0044, -0.0014),
        ),
        WorkedExample(
            _case("worked example 3", third, [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0]),
            truth=(0, -0.3263, -0.8800, 0.7168, -0.3263, 0, -0.6240, 0),
            zero=(0, 0.9772, -0.8800, 2.2400, -1.2215, 0, -1.6000, 0),
            mean=(0, 0.0523, -0.4400, 1.1200, -1.0470, 0, -0.8000, 2.2600),
            shap=(0, -0.0005, -0.0021, 0.0051, -0.0059, 0, -0.0037, 0.0246),
        ),
    ]


def _printed(*products: tuple[float, dict[int, float]]) -> SumOfProducts:
    """Put printed products together: each is c, and the number of each variable, from 1, with its δ."""
    return SumOfProducts(
        tuple(Product(c, tuple((number - 1, shift) for number, shift in shifts.items())) for c, shifts in products)
    )
