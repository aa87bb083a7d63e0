"""Experiment on sums of products with known Shapley values: which absences lead to them.

The paper's table of accuracies on 100 functions (800 values). The functions are the extended Addition-Multiplication
family f(x) = Σ c·Π(xᵢ − δᵢ), with no variable in two products. With baseline values bᵢ = δᵢ, a product is 0 unless
all of its variables are present. It is then one interaction, and its value is shared equally among its variables.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

import absentia as ab
from experiments.experiment import (
    Claim,
    Correction,
    Experiment,
    Figures,
    Found,
    Line,
    Quantity,
    Rule,
    Run,
    Verdict,
)
from experiments.functions import AnnotatedFunction
from experiments.tables import ResultTable, mean_and_error, plus_minus

Method: TypeAlias = Callable[["ShapleyCase"], Tensor]  # → Shapley values (players,)

TOLERANCE = 0.01
BACKGROUND_ROWS = 100
CONDITIONAL_ROWS = 2000
LEARNING_ROWS = 256
# The printed values of the "setting in SHAP" are smaller than the exact ones by this factor.
PRINTED_DIVISOR = 128
DIVIDED = f"exact SHAP divided by {PRINTED_DIVISOR}"
NOTHING = "φ = 0 for every variable"
TRUTH = "true δ"
FEW = "Kernel SHAP, few coalitions"
# Kernel SHAP is exact with all 254 coalitions, so the printed accuracy must come from fewer. The paper does not say
# how many. The number is chosen among these on functions of other seeds: the run's seed plus these.
GRID = (4, 8, 10, 12, 14, 16, 18, 20, 24, 28, 32, 48, 64, 128)
OTHER_SEEDS = (100, 101, 102)
ONE_DRAW = "one draw for all functions"  # instead of one for each function; for information
ALL_RIGHT = 99.5  # per cent
NEAR = 5.0  # per cent; the accuracy of 100 other functions differs by about 2
CLEARLY = 10.0  # points below learning
LOSS = (
    "Learned by the loss interactions, Σ|U| of all orders, with sweeps, which is neither of the paper's two losses."
)

PRINTED = {
    "zero": "82.88%",
    "0.5, the paper's printed mean": "72.63%",
    "exact SHAP": "81.25%",
    "Kernel SHAP": "33.88%",
    "conditional (Frye et al.)": "66.00%",
    "learned": "100%",
}

# The paper's accuracies are in steps of 1/800: a hundred functions of eight variables.
PLAYERS = 8
PRESENCE = 0.7  # the probability that an input is 1

# The paper does not say how it drew its functions. The ranges are those of its three printed examples. The shares
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
        """Return the true Shapley values: each product's value is shared equally among its variables."""
        values = torch.zeros_like(rows)
        for product in self.products:
            values[:, product.variables] = (product(rows) / len(product.variables))[:, None]
        return values

    def truth(self, players: int) -> tuple[float | None, ...]:
        """Return the true baseline values: δ, and None for the variables that are not used."""
        shifts = dict(pair for product in self.products for pair in product.shifts)
        return tuple(shifts.get(variable) for variable in range(players))


@dataclass(frozen=True, eq=False)
class ShapleyCase:
    """A function, one binary sample, and the true Shapley values there."""

    function: AnnotatedFunction
    x: Float[Tensor, " players"]
    shapley: Float[Tensor, " players"]


def addition_multiplication(
    count: int, seed: int, *, players: int = PLAYERS, lone: float = 0.9, lone_factors: bool = False
) -> list[ShapleyCase]:
    """Draw functions of the family, each with one sample of independent inputs that are 1 with probability 0.7.

    Every product has two factors or more unless ``lone_factors`` are kept. A product of one factor, c·(x − δ), which
    two of the printed examples contain, is the same function for every δ up to a constant.

    ``lone`` is the share of functions that are a single product; the others divide their variables among up to six.
    It is fitted: by default zero baseline values score 83 % (83 % in the paper's table) and those of 0.5 score 69 %
    (73 %), so this agreement is no evidence. With ``lone=0``, like two of the printed examples, they score 60 % and
    24 %.

    >>> case = addition_multiplication(1, seed=1)[0]
    >>> case.function.text
    '-3.59*x1*(x3-0.38)*(x6-0.76)*(x7-0.8)*(x8-0.03)'
    >>> case.function.truth
    (0.0, None, 0.38, None, None, 0.76, 0.8, 0.03)
    """
    if count < 1:
        raise ab.AbsentiaError(f"count must be at least 1. Got {count} instead.")
    if players < 2:
        raise ab.AbsentiaError(f"players must be at least 2. Got {players} instead.")
    if not 0 <= lone <= 1:
        raise ab.AbsentiaError(f"lone must be a share, from 0 to 1. Got {lone} instead.")
    chance = random.Random(seed)
    cases = []
    for number in range(1, count + 1):
        products = 1 if chance.random() < lone else chance.randint(2, _MOST_PRODUCTS)
        model = _draw_sum(chance, players, products, lone_factors)
        x = [float(chance.random() < PRESENCE) for _ in range(players)]
        cases.append(make_case(f"generated {number}", model, x))
    return cases


def _draw_sum(chance: random.Random, players: int, products: int, lone_factors: bool) -> SumOfProducts:
    """Leave some variables out, and put the others into one product each; join lone factors unless they are kept."""
    members: dict[int, list[tuple[int, float]]] = {}
    while sum(map(len, members.values())) < 2:
        members.clear()
        for variable in range(players):
            if chance.random() >= _UNUSED:
                shift = round(chance.uniform(*_SHIFTS), 2) if chance.random() < _SHIFTED else 0.0
                members.setdefault(chance.randrange(products), []).append((variable, shift))
    factors = list(members.values())
    if not lone_factors:
        factors = _without_lone_factors(factors)
    return SumOfProducts(
        tuple(
            Product(chance.choice([1, -1]) * round(chance.uniform(*_SIZES), 2), tuple(shifts)) for shifts in factors
        )
    )


def _without_lone_factors(products: list[list[tuple[int, float]]]) -> list[list[tuple[int, float]]]:
    """Join single factors to one product, or add an only one to the first product."""
    together = [factors for factors in products if len(factors) > 1]
    alone = [factors[0] for factors in products if len(factors) == 1]
    if len(alone) > 1:
        return [*together, sorted(alone)]
    return [sorted(together[0] + alone), *together[1:]] if together else [alone]


def make_case(name: str, model: SumOfProducts, x: list[float]) -> ShapleyCase:
    """Make a case of a function and a binary sample."""
    sample = torch.tensor(x, dtype=torch.float64)
    function = AnnotatedFunction(name, str(model), len(x), model, model.truth(len(x)))
    return ShapleyCase(function, sample, model.shapley(sample[None])[0])


@dataclass(frozen=True)
class Score:
    """The number of right Shapley values: of all variables, and of those that the function uses."""

    right: tuple[int, int]
    of: tuple[int, int]

    def __add__(self, other: Score) -> Score:
        right = (self.right[0] + other.right[0], self.right[1] + other.right[1])
        return Score(right, (self.of[0] + other.of[0], self.of[1] + other.of[1]))

    def cells(self) -> list[str]:
        """Format both as shares."""
        return [f"{right / of:.2%}" if of else "–" for right, of in zip(self.right, self.of, strict=True)]


def score(case: ShapleyCase, values: Float[Tensor, " players"]) -> Score:
    """Compare Shapley values with the true ones.

    >>> case = addition_multiplication(1, seed=1)[0]
    >>> score(case, case.shapley + torch.tensor([0.02, 0, 0, 0, 0, 0, 0, 0])).cells()
    ['87.50%', '80.00%']
    """
    right = (values - case.shapley).abs() <= TOLERANCE
    used = torch.tensor([truth is not None for truth in case.function.truth])
    return Score((int(right.sum()), int((right & used).sum())), (len(right), int(used.sum())))


def draw_inputs(rows: int, seed: int, players: int = PLAYERS) -> Float[Tensor, "rows players"]:
    """Draw independent inputs that are 1 with probability 0.7."""
    return (torch.rand(rows, players, generator=torch.Generator().manual_seed(seed)) < PRESENCE).double()


def with_baseline(case: ShapleyCase, baseline: float | Tensor) -> Float[Tensor, " players"]:
    """Compute exact Shapley values with baseline values."""
    game = ab.MaskedModel(case.function.model, case.x[None], absence=ab.Baseline(baseline))
    return ab.shapley(game).values[0]


def with_condition(case: ShapleyCase, background: Float[Tensor, "rows players"]) -> Float[Tensor, " players"]:
    """Compute exact Shapley values of conditional means."""
    return ab.shapley(ab.ValueTable(conditional_values(case.function.model, case.x, background))).values[0]


def conditional_values(
    model: Callable[[Tensor], Tensor], x: Float[Tensor, " players"], background: Float[Tensor, "rows players"]
) -> Float[Tensor, " coalitions"]:
    """Average the model over the rows that agree with the present entries, or over all rows where none agree.

    >>> rows = torch.tensor([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    >>> conditional_values(lambda rows: rows.sum(1), torch.tensor([0.0, 1.0]), rows)
    tensor([1., 0., 2., 1.], dtype=torch.float64)
    """
    coalitions = ab.enumerate_coalitions(len(x))
    clashes = coalitions.double() @ (background != x).double().T
    weights = (clashes == 0).double()
    counts = weights.sum(1)
    values = weights @ model(background).double() / counts.clamp_min(1)
    for number in (counts == 0).nonzero().flatten().tolist():
        values[number] = model(torch.where(coalitions[number], x, background)).double().mean()
    return values


def with_shap(case: ShapleyCase, background: Float[Tensor, "rows players"]) -> Float[Tensor, " players"]:
    """Compute exact Shapley values of the mean over a background with shap."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about shap's own dependencies
        import shap

        masker = shap.maskers.Independent(background.numpy(), max_samples=len(background))
        explanation = shap.ExactExplainer(_numpy_model(case), masker)(case.x[None].numpy(), silent=True)
    return torch.as_tensor(np.asarray(explanation.values)[0]).double()


def with_kernel_shap(
    case: ShapleyCase,
    background: Float[Tensor, "rows players"],
    coalitions: int | None = None,
    draw: int | None = None,
) -> Float[Tensor, " players"]:
    """Estimate Shapley values with shap's weighted regression and its defaults, or from this many coalitions.

    Each function has its own draw of coalitions, if ``draw`` is not given.
    """
    options: dict[str, Any] = {} if coalitions is None else {"nsamples": coalitions, "l1_reg": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about shap's own dependencies
        import shap

        explainer = shap.KernelExplainer(_numpy_model(case), background.numpy())
        state = np.random.get_state()  # noqa: NPY002  shap draws coalitions by the global generator
        function_seed = random.Random(case.function.text).randrange(2**32)
        np.random.seed(function_seed if draw is None else draw)  # noqa: NPY002
        attributions = explainer.shap_values(case.x[None].numpy(), silent=True, **options)
        np.random.set_state(state)  # noqa: NPY002
    return torch.as_tensor(np.asarray(attributions)[0]).double()


def _numpy_model(case: ShapleyCase) -> Callable[[Any], Any]:
    return lambda rows: case.function.model(torch.as_tensor(np.asarray(rows, dtype=np.float64))).numpy()


def with_learned(
    case: ShapleyCase,
    inputs: Float[Tensor, "rows players"],
    seed: int,
    loss: Literal["shapley", "marginal", "interactions"] = "interactions",
    polish: bool = True,
) -> Float[Tensor, " players"]:
    """Compute exact Shapley values with baseline values learned from inputs.

    Learning starts from 0.5 and not from the mean. If 1 is the frequent value, two factors of a product both at 1 are
    a local minimum, and changing one value at a time does not leave it.
    """
    options = ab.LearningOptions(samples="all", polish=polish)
    learned = ab.learn_baseline(case.function.model, inputs, loss=loss, start=0.5, seed=seed, options=options)
    return with_baseline(case, learned.values)


def methods(seed: int, coalitions: int) -> dict[str, Method]:
    """List the absences; backgrounds and inputs are drawn once, for all functions.

    ``coalitions`` is the number from which the row of few coalitions is estimated.
    """
    background = draw_inputs(BACKGROUND_ROWS, seed)
    conditions = draw_inputs(CONDITIONAL_ROWS, seed + 1)
    inputs = draw_inputs(LEARNING_ROWS, seed + 2)
    return {
        NOTHING: lambda case: torch.zeros_like(case.x),
        "zero": lambda case: with_baseline(case, 0.0),
        "0.7, the inputs' mean": lambda case: with_baseline(case, PRESENCE),
        "0.5, the paper's printed mean": lambda case: with_baseline(case, 0.5),
        "exact SHAP": lambda case: with_shap(case, background),
        DIVIDED: lambda case: with_shap(case, background) / PRINTED_DIVISOR,
        "Kernel SHAP": lambda case: with_kernel_shap(case, background),
        FEW: lambda case: with_kernel_shap(case, background, coalitions),
        "conditional (Frye et al.)": lambda case: with_condition(case, conditions),
        "learned": lambda case: with_learned(case, inputs, seed),
        TRUTH: lambda case: with_baseline(case, case.function.baseline(unknown=0.0)),
    }


def kernel_accuracies(functions: int, seeds: Iterable[int]) -> dict[int, float]:
    """Measure the accuracy of Kernel SHAP for each number of coalitions, in per cent, on functions of these seeds."""
    totals = dict.fromkeys(GRID, Score((0, 0), (0, 0)))
    for seed in seeds:
        background = draw_inputs(BACKGROUND_ROWS, seed)
        for case in addition_multiplication(functions, seed):
            for count in GRID:
                totals[count] += score(case, with_kernel_shap(case, background, count))
    return {count: 100 * total.right[0] / total.of[0] for count, total in totals.items()}


def one_draw_accuracies(
    cases: Sequence[ShapleyCase], seed: int, coalitions: int, draws: int
) -> tuple[float, float, float]:
    """Return the lowest, mean and highest accuracy of Kernel SHAP if all functions share a draw, over some draws."""
    background = draw_inputs(BACKGROUND_ROWS, seed)
    accuracies = []
    for draw in range(draws):
        scores = [score(case, with_kernel_shap(case, background, coalitions, draw)) for case in cases]
        total = sum(scores, Score((0, 0), (0, 0)))
        accuracies.append(100 * total.right[0] / total.of[0])
    return min(accuracies), sum(accuracies) / len(accuracies), max(accuracies)


def nearest(accuracies: Mapping[int, float]) -> int:
    """Return the number of coalitions whose accuracy is nearest to the printed one.

    >>> nearest({12: 20.0, 14: 32.0, 16: 43.0})
    14
    """
    return min(accuracies, key=lambda count: abs(accuracies[count] - _printed("Kernel SHAP")))


def _printed(name: str) -> float:
    return float(PRINTED[name].rstrip("%"))


def _scores_of(job: tuple[ShapleyCase, int, int]) -> list[dict[str, Any]]:
    case, seed, coalitions = job
    return [asdict(score(case, method(case))) for method in methods(seed, coalitions).values()]


def family(run: Run) -> Found:
    """Count the right Shapley values of generated functions for each absence."""
    others = run.pick(full=100, quick=10, tiny=2)
    seeds = [run.seed + more for more in OTHER_SEEDS]
    accuracies = kernel_accuracies(others, seeds)
    coalitions = nearest(accuracies)
    cases = addition_multiplication(run.pick(full=100, quick=3, tiny=2), run.seed)
    found = run.each(_scores_of, {case.function.name: (case, run.seed, coalitions) for case in cases})
    scores = [[Score(tuple(one["right"]), tuple(one["of"])) for one in many] for many in found.values()]
    totals = {
        name: sum((many[number] for many in scores), Score((0, 0), (0, 0)))
        for number, name in enumerate(methods(run.seed, coalitions))
    }
    figures = {name: 100 * total.right[0] / total.of[0] for name, total in totals.items()}
    draws = run.pick(full=20, quick=3, tiny=2)
    low, mean, high = one_draw_accuracies(cases, run.seed, coalitions, draws)
    figures |= {
        "coalitions": coalitions,
        "lowest of one draw": low,
        "mean of one draw": mean,
        "highest of one draw": high,
    }
    chosen = ResultTable(
        "Kernel SHAP from few coalitions, on other functions",
        ("coalitions", "right, of all variables", "chosen"),
        f"{others} functions generated by each of the seeds {', '.join(map(str, seeds))}; none of them is among "
        f"those above. Chosen is the number nearest to the printed {PRINTED['Kernel SHAP']}. Each function has its "
        f"own draw of coalitions. With the chosen number and {ONE_DRAW} above, {draws} draws score from {low:.2f} to "
        f"{high:.2f} %, {mean:.2f} % on average.",
    )
    for count, accuracy in accuracies.items():
        chosen.add(count, f"{accuracy:.2f}%", "yes" if count == coalitions else "")
    return Found(figures, (tabulate(totals, len(cases), run.seed, coalitions), chosen))


def others(run: Run) -> Found:
    """Count the right Shapley values of each absence that needs no learning, with errors over functions."""
    count = run.pick(full=100, quick=10, tiny=3)
    cases = addition_multiplication(count, run.seed)
    absences = {
        name: method for name, method in methods(run.seed, 1).items() if name in PRINTED and name != "learned"
    }
    note = (
        f"{count} functions generated by seed {run.seed}, one sample each; errors are standard errors over functions."
    )
    table = ResultTable("The other settings, with errors", ("absence", "right", "± error", "the paper"), note)
    figures: dict[str, float] = {}
    for name, method in absences.items():
        shares = [counted.right[0] / counted.of[0] for counted in (score(case, method(case)) for case in cases)]
        mean, error = mean_and_error([100 * share for share in shares])
        figures |= {name: mean, f"error of {name}": error}
        table.add(name, f"{mean:.2f} %", f"{error:.2f} %", PRINTED[name])
    return Found(figures, (table,))


ALONE = "products of two factors or more"
# Functions with lone factors, in the part of the losses and in one of their own.
LONE_FUNCTIONS = 9
MORE_LONE_FUNCTIONS = 20


@dataclass(frozen=True)
class Learner:
    """A loss, and whether the search by it ends with sweeps."""

    loss: Literal["shapley", "marginal", "interactions"]
    polish: bool


LEARNERS = {
    "L_Shapley, λ = 0.5 n": Learner("shapley", polish=False),
    "L_marginal, λ = 0.5 n": Learner("marginal", polish=False),
    "Σ|U| with sweeps": Learner("interactions", polish=True),
}


def _learned_scores(job: tuple[ShapleyCase, int, tuple[str, ...]]) -> dict[str, Any]:
    """Score values learned by some losses, and the answer 0, on one function."""
    case, seed, names = job
    torch.set_num_threads(1)
    inputs = draw_inputs(LEARNING_ROWS, seed + 2)
    values = {NOTHING: torch.zeros_like(case.x), "zero": with_baseline(case, 0.0)}
    for name in names:
        learner = LEARNERS[name]
        values[name] = with_learned(case, inputs, seed, learner.loss, learner.polish)
    return {name: asdict(score(case, attributions)) for name, attributions in values.items()}


KEPT_FACTORS = "lone factors kept, several products"


def losses(run: Run) -> Found:
    """Count the right Shapley values by the paper's two losses, on functions without and with lone factors."""
    count = run.pick(full=100, quick=2, tiny=2)
    fewer = run.pick(full=LONE_FUNCTIONS, quick=2, tiny=2)
    families = {
        ALONE: addition_multiplication(count, run.seed),
        KEPT_FACTORS: addition_multiplication(fewer, run.seed, lone=0.0, lone_factors=True),
    }
    note = (
        f"{_LEARNED_NOTE} {count} functions of the other table, whose products have two factors or more, and {fewer} "
        "of two to six products, in which a factor may be alone, as in two of the paper's three printed functions."
    )
    # Sweeps take most of the time: on the first family, their row is in the other part's table.
    names = {ALONE: tuple(LEARNERS)[:2]}
    return _learn_families("Shapley values by the paper's losses, and with lone factors", note, families, names, run)


def lone(run: Run) -> Found:
    """Count the right Shapley values on more functions with lone factors."""
    count = run.pick(full=MORE_LONE_FUNCTIONS, quick=2, tiny=2)
    families = {KEPT_FACTORS: addition_multiplication(count, run.seed, lone=0.0, lone_factors=True)}
    note = f"{_LEARNED_NOTE} {count} functions of two to six products, in which a factor may be alone."
    return _learn_families("Shapley values with lone factors, of more functions", note, families, {}, run)


_LEARNED_NOTE = (
    f"Right Shapley values, within {TOLERANCE:g}; errors are standard errors over functions. L_Shapley and "
    "L_marginal are those of Eq. 7 with the orders 0 … λ, along the gradient from 0.5 alone; Σ|U| is followed by "
    "sweeps."
)


def _learn_families(
    title: str,
    note: str,
    families: Mapping[str, Sequence[ShapleyCase]],
    names: Mapping[str, tuple[str, ...]],
    run: Run,
) -> Found:
    """Learn by some losses, by all unless names are given, on all functions of some families."""
    jobs = {
        f"{family}, {case.function.name}": (case, run.seed, names.get(family, tuple(LEARNERS)))
        for family, cases in families.items()
        for case in cases
    }
    found = run.each(_learned_scores, jobs)
    table = ResultTable(
        title, ("functions", "learned by", "right, of all variables", "± error", "of used ones"), note
    )
    figures: dict[str, float] = {}
    for family, cases in families.items():
        scores = [found[f"{family}, {case.function.name}"] for case in cases]
        for name in scores[0]:
            each = [Score(tuple(one[name]["right"]), tuple(one[name]["of"])) for one in scores]
            total = sum(each, Score((0, 0), (0, 0)))
            shares = torch.tensor([one.right[0] / one.of[0] for one in each], dtype=torch.float64)
            error = 100 * float(shares.std(correction=min(1, len(shares) - 1))) / len(shares) ** 0.5
            figures |= {f"{name}: {family}": 100 * total.right[0] / total.of[0]}
            figures |= {f"error of {name}: {family}": error}
            share, used = total.cells()
            table.add(family, name, share, f"{error:.2f}%", used)
    return Found(figures, (table,))


def tabulate(totals: Mapping[str, Score], functions: int, seed: int, coalitions: int) -> ResultTable:
    """List the shares of right values for each absence."""
    note = (
        f"{functions} functions generated by seed {seed}, one sample each; right is within {TOLERANCE:g} of the "
        "truth. The generator is fitted to the paper's rows for zero and mean baseline values, so that their "
        "agreement is no evidence. The functions are linear in each of their independent inputs, so that SHAP with a "
        "background, Kernel SHAP and conditional means all stand for the baseline 0.7, but for the sampling error of "
        f"their rows. The first row is the share of true values that are 0. Few coalitions are {coalitions} of the "
        "254, chosen on other functions. Every product has two factors or more: one alone, c·(x − δ), is the same "
        f"function of x for every δ, up to a constant, so that its δ can't be learned. {LOSS} Learning starts from "
        f"0.5, on {LEARNING_ROWS} inputs that are 1 with probability {PRESENCE:g}."
    )
    table = ResultTable(
        "Shapley values of sums of products",
        ("absence", "right, of all variables", "of used ones", "the paper"),
        note,
    )
    for name, total in totals.items():
        table.add(name, *total.cells(), PRINTED.get(name, "–"))
    return table


def judge_learned(figures: Figures) -> Verdict:
    """Ask for all values by one of the paper's losses, or by Σ|U| with sweeps, and for clearly less by the others."""
    measured = figures.get("family")
    if measured is None:
        return Verdict("not measured", "–", "")
    losses = figures.get("losses", {})
    best_other = max(measured[name] for name in methods(0, 1) if name not in ("learned", TRUTH))
    lines = [f"Σ|U| with sweeps {measured['learned']:.2f} %"]
    papers = []
    for name in tuple(LEARNERS)[:2]:
        if f"{name}: {ALONE}" in losses:
            accuracy = losses[f"{name}: {ALONE}"]
            error = losses[f"error of {name}: {ALONE}"]
            lines.append(f"{name} {plus_minus(accuracy, error, '.1f')} %")
            papers.append(accuracy)
    lines.append(f"the best other {best_other:.2f} %")
    ours = "; ".join(lines)
    if any(accuracy >= ALL_RIGHT and best_other <= accuracy - CLEARLY for accuracy in papers):
        reason = "By one of the paper's losses alone, on functions of a generator of our own."
        return Verdict("in one reading", ours, reason, "our functions, without lone factors")
    if measured["learned"] >= ALL_RIGHT and best_other <= measured["learned"] - CLEARLY:
        reason = (
            "Only values learned by Σ|U| of all orders with sweeps are all right, which is neither of the paper's "
            f"losses, and only without lone factors, whose δ no sparsity determines.{_lone_words(figures)}"
        )
        reading = "Σ|U| of all orders with sweeps, no lone factors"
        return Verdict("by another method", ours, reason, reading, "Σ|U|, sweeps")
    return Verdict("no", ours, "No loss finds all values.")


def _lone_words(figures: Figures) -> str:
    """Say how many values are right of functions with lone factors."""
    measured = figures.get("lone", figures.get("losses", {}))
    shares = []
    for name in LEARNERS:
        key = f"{name}: {KEPT_FACTORS}"
        if key in measured:
            shares.append(
                f"{name.partition(',')[0]} {plus_minus(measured[key], measured[f'error of {key}'], '.0f')} %"
            )
    return f" Of functions with lone factors, right are: {', '.join(shares)}." if shares else ""


def _by_papers(figures: Figures) -> list[Quantity]:
    """Return the lower of the accuracies of the paper's two losses."""
    measured = figures["losses"]
    least = min(tuple(LEARNERS)[:2], key=lambda name: measured[f"{name}: {ALONE}"])
    return [Quantity("{} %", measured[f"{least}: {ALONE}"], measured[f"error of {least}: {ALONE}"], ".1f")]


def _by_shap(figures: Figures) -> list[Quantity]:
    """Return the accuracy of exact SHAP."""
    measured = figures["others"]
    return [Quantity("{} %", measured["exact SHAP"], measured["error of exact SHAP"], ".1f")]


def judge_others(figures: Figures) -> Verdict:
    """Ask for the printed rows of the other settings within a few points."""
    if "family" not in figures:
        return Verdict("not measured", "–", "")
    measured = figures["family"]
    near = {name: abs(measured[name] - _printed(name)) <= NEAR for name in PRINTED if name != "learned"}
    errors = figures.get("others", {})
    scores = (
        f"{name.partition(',')[0]} {plus_minus(measured[name], errors.get(f'error of {name}'), '.1f')}"
        for name in near
    )
    ours = ", ".join(scores) + " %"
    missed = [name for name, holds in near.items() if not holds]
    if not missed:
        return Verdict("as stated", ours, f"All rows are within {NEAR:g} points.")
    reason = (
        f"Further than {NEAR:g} points: {', '.join(missed)}. Exact SHAP divided by {PRINTED_DIVISOR}, as in the "
        f"worked examples, scores {measured[DIVIDED]:.2f} %, and the answer 0 scores {measured[NOTHING]:.2f} %. "
        f"Kernel SHAP scores {measured[FEW]:.2f} % with {measured['coalitions']:.0f} of 254 coalitions, a number "
        "chosen on other functions. The generator was fitted to the rows of zero and mean, so that these are no "
        "evidence."
    )
    return Verdict("no", ours, reason)


EXPERIMENT = Experiment(
    name="table-5",
    title="Shapley values of the extended Addition-Multiplication family",
    claims=(
        Claim(
            "Shapley values by learned values are right",
            "Table 5",
            "100 %",
            Rule(
                f"In one reading: L_Shapley or L_marginal alone has {ALL_RIGHT:g} % right on the functions of our "
                f"generator, {CLEARLY:g} points more than every other setting; by another method: Σ|U| with sweeps "
                "has. It can't be as stated, because the functions are not released.",
                "2026-11-18",
                "after",
                "An earlier rule judged Σ|U| with sweeps only, and called it reproduced. The paper's losses were "
                "measured after this one was fixed; the rows of Σ|U| and of the others are older.",
            ),
            judge_learned,
            ("family", "losses", "lone"),
            Line("Shapley values by learning (Table 5)", "100 %", _by_papers, ("losses",)),
        ),
        Claim(
            "those by other settings are wrong more often",
            "Table 5",
            "zero 82.88, mean 72.63, SHAP 81.25, Kernel SHAP 33.88, Frye et al. 66.00 %",
            Rule(
                f"As stated: all five printed rows within {NEAR:g} points.",
                "2026-11-18",
                "after",
                "It was the first rule, was dropped when SHAP and Kernel SHAP missed it, and is asked again.",
            ),
            judge_others,
            ("family", "others"),
            Line("by other settings, SHAP (Table 5)", "81.25 %", _by_shap, ("others",)),
        ),
    ),
    settings=(
        "The paper's: inputs are 1 with probability 0.7, right within 0.01, one sample of each function; 800 values. "
        f"It did not release its functions. {LOSS} Ours: a generator whose share of single products was fitted to "
        "the rows of zero and mean, so that their agreement is no evidence. The number of Kernel SHAP's coalitions "
        "is chosen on functions of other seeds."
    ),
    caveats=(
        "The learned row of the first table is by Σ|U| of all orders with sweeps, not by the paper's losses.",
        "The generator drops lone factors, which two of the paper's three printed functions have; the part losses "
        "keeps them.",
        "δ of a lone factor c·(x − δ) is not determined by any sparsity: see table-6.",
        "Functions are ours; most of them are a single product, a share that was fitted to the printed rows.",
    ),
    parts={"family": family, "losses": losses, "lone": lone, "others": others},
    many_jobs=("family", "losses", "lone"),
    shown=("Shapley values", "The other settings"),
    aliases={"shapley": ("family",)},
    corrections=(Correction("family", "Learning starts from 0.5,", f"{LOSS} Learning starts from 0.5,"),),
)
