"""Experiment on the paper's three worked examples: their Shapley values under each setting of baseline values.

The functions are sums of products Σ c·Π(xᵢ − δᵢ) with no variable in two products, of the family in `known_shapley`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from experiments.experiment import Claim, Experiment, Found, Run, Verdict
from experiments.known_shapley import (
    PRESENCE,
    PRINTED_DIVISOR,
    Product,
    ShapleyCase,
    SumOfProducts,
    make_case,
    with_baseline,
)
from experiments.tables import ResultTable

# The rows that must agree with the printed ones, each in all three examples.
AGREEING = ("truth", "zero", "mean, as 0.5")


@dataclass(frozen=True, eq=False)
class WorkedExample:
    """A case that the paper prints, with its printed Shapley values for four settings of baseline values.

    The printed "mean" is 0.5 for every variable, not the 0.7 of the paper's text. The printed "setting in SHAP" is
    the mean over the distribution of the inputs, up to its sampling error, divided by 128.
    """

    case: ShapleyCase
    truth: tuple[float, ...]
    zero: tuple[float, ...]
    mean: tuple[float, ...]
    shap: tuple[float, ...]


def worked_examples() -> list[WorkedExample]:
    """Return the three examples that the paper prints.

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
            make_case("worked example 1", first, [0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]),
            truth=(0, 0, -5, -0.06, 0.10, -0.06, -4.23),
            zero=(0, 0, -5, -0.99, 1.15, 0.87, -4.23),
            mean=(1.31, 0, -2.50, -0.74, 0.58, 0.19, -2.11),
            shap=(0.014, 0, -0.011, -0.003, 0.003, 0.001, -0.010),
        ),
        WorkedExample(
            make_case("worked example 2", second, [1.0] * 8),
            truth=(-0.2236, -0.2236, 0, -0.2236, -0.2236, -0.2236, -0.2236, -0.2236),
            zero=(-0.1601, -0.1601, 0, -0.1601, -0.1601, -0.1601, -0.6043, -0.1601),
            mean=(-0.1624, -0.1624, 0, -0.1624, -0.1624, -0.1624, -0.5996, -0.1624),
            shap=(-0.0013, -0.0012, 0, -0.0011, -0.0012, -0.0012, -0.0044, -0.0014),
        ),
        WorkedExample(
            make_case("worked example 3", third, [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0]),
            truth=(0, -0.3263, -0.8800, 0.7168, -0.3263, 0, -0.6240, 0),
            zero=(0, 0.9772, -0.8800, 2.2400, -1.2215, 0, -1.6000, 0),
            mean=(0, 0.0523, -0.4400, 1.1200, -1.0470, 0, -0.8000, 2.2600),
            shap=(0, -0.0005, -0.0021, 0.0051, -0.0059, 0, -0.0037, 0.0246),
        ),
    ]


def _printed(*products: tuple[float, dict[int, float]]) -> SumOfProducts:
    """Make a sum of printed products: each is c, and the numbers of its variables, from 1, with their δ."""
    return SumOfProducts(
        tuple(Product(c, tuple((number - 1, shift) for number, shift in shifts.items())) for c, shifts in products)
    )


def agree(values: Float[Tensor, " players"], printed: Sequence[float]) -> bool:
    """Return whether values round to the printed ones, to as many digits as are printed.

    >>> agree(torch.tensor([0.575, -0.0594]), [0.58, -0.06]), agree(torch.tensor([0.57, -0.0594]), [0.58, -0.06])
    (True, False)
    """
    digits = max(len(f"{value:.6f}".rstrip("0").partition(".")[2]) for value in printed)
    return _distance(values, printed) <= 0.5 * 10.0**-digits + 1e-6


def _distance(values: Tensor, printed: Sequence[float]) -> float:
    return float((values.double() - torch.tensor(list(printed), dtype=torch.float64)).abs().max())


def examples(run: Run) -> Found:
    """Compare the Shapley values of the three examples with the printed ones."""
    tables = [_worked_table(example) for example in worked_examples()]
    figures: dict[str, float] = {}
    for table in tables:
        for row in table.rows:
            figures[row[0]] = figures.get(row[0], 0) + (row[-1] == "yes")
    apart = [float(row[3]) for table in tables for row in table.rows if row[0].endswith(f"by {PRINTED_DIVISOR}")]
    return Found({**figures, "largest difference after the division": max(apart)}, tuple(tables))


def judge(figures: Mapping[str, Mapping[str, float]]) -> Verdict:
    """Ask for all printed digits of truth, zero and mean, and for SHAP's up to the noise of its draws."""
    found = figures["examples"]
    right = sum(found[name] for name in AGREEING)
    apart = found["largest difference after the division"]
    ours = (
        f"{right:.0f} of 9 rows of truth, zero and mean to all printed digits; SHAP's, divided by {PRINTED_DIVISOR}, "
        f"within {apart:.2g}, not to all digits"
    )
    reason = (
        "The printed mean rows are those of 0.5, not of the text's 0.7, and SHAP's rows are near the exact ones "
        f"divided by {PRINTED_DIVISOR}, for a cause that is not known."
    )
    if right == 9 and apart < 1e-3:
        return Verdict("in one reading", ours, reason)
    return Verdict("no", ours, reason)


def _worked_table(example: WorkedExample) -> ResultTable:
    case = example.case
    note = (
        f"f = {case.function.text} at x = ({', '.join(f'{value:g}' for value in case.x.tolist())}). The printed mean "
        "rows need baseline values of 0.5, though the text says 0.7. The printed rows of the setting in SHAP equal "
        f"the exact means over the inputs' distribution divided by {PRINTED_DIVISOR}, up to noise; why is not known."
    )
    columns = ("absence", "Shapley values", "printed", "largest difference", "agree to the printed digits")
    table = ResultTable(f"Shapley values of {case.function.name}", columns, note)
    # f is linear in each of its independent inputs, so its mean over the absent ones is its value at their means.
    marginal = with_baseline(case, PRESENCE)
    rows = [
        ("truth", with_baseline(case, case.function.baseline(unknown=0.0)), example.truth),
        ("zero", with_baseline(case, 0.0), example.zero),
        ("mean, as 0.5", with_baseline(case, 0.5), example.mean),
        ("mean, as 0.7", with_baseline(case, PRESENCE), example.mean),
        ("setting in SHAP, exact", marginal, example.shap),
        (f"setting in SHAP, exact divided by {PRINTED_DIVISOR}", marginal / PRINTED_DIVISOR, example.shap),
    ]
    for name, values, printed in rows:
        table.add(
            name, _listed(values.tolist()), _listed(printed), f"{_distance(values, printed):.2g}",
            "yes" if agree(values, printed) else "no",
        )  # fmt: skip
    return table


def _listed(values: Sequence[float]) -> str:
    return ", ".join(f"{round(value, 4) + 0.0:g}" for value in values)


EXPERIMENT = Experiment(
    name="table-6",
    title="Shapley values of the worked examples",
    claims=(
        Claim("Shapley values of one function under four settings", "Table 6"),
        Claim("the same of two more functions", "Tables 12 and 13"),
    ),
    settings=(
        "The paper's functions and inputs. The mean rows are computed for 0.5 and for the text's 0.7; SHAP's setting "
        "is exact, because the mean of these functions over independent inputs is their value at the means."
    ),
    parts={"examples": examples},
    judge=judge,
    aliases={"table-12": ("examples",), "table-13": ("examples",)},
)
