"""Experiment on Shapley values that are known: which absences give them.

The paper's table of accuracies on 100 sums of products (800 values), and its three worked examples.
"""

from __future__ import annotations

import multiprocessing
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from tqdm.auto import tqdm

from absentia.absence import Baseline
from absentia.attributions import shapley
from absentia.coalitions import enumerate_coalitions
from absentia.game import ValueTable
from absentia.inference import Model
from absentia.learning import learn_baseline
from absentia.masked_model import MaskedModel
from absentia.papers.addition_multiplication import (
    PLAYERS,
    PRESENCE,
    ShapleyCase,
    WorkedExample,
    addition_multiplication,
    worked_examples,
)
from absentia.papers.results import ResultTable

Method: TypeAlias = Callable[[ShapleyCase], Tensor]  # → Shapley values (players,)

TOLERANCE = 0.01
BACKGROUND_ROWS = 100
CONDITIONAL_ROWS = 2000
LEARNING_ROWS = 256
# The printed values of the "setting in SHAP" are smaller than the exact ones by this factor.
PRINTED_DIVISOR = 128

PRINTED = {
    "zero": "82.88%",
    "0.5, the paper's printed mean": "72.63%",
    "exact SHAP": "81.25%",
    "Kernel SHAP": "33.88%",
    "conditional (Frye et al.)": "66.00%",
    "learned": "100%",
}


@dataclass(frozen=True)
class Score:
    """How many Shapley values are right: of all variables, and of those that the function uses."""

    right: tuple[int, int]
    of: tuple[int, int]

    def __add__(self, other: Score) -> Score:
        right = (self.right[0] + other.right[0], self.right[1] + other.right[1])
        return Score(right, (self.of[0] + other.of[0], self.of[1] + other.of[1]))

    def cells(self) -> list[str]:
        """Write each as a share."""
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
    return shapley(MaskedModel(case.function.model, case.x[None], absence=Baseline(baseline))).values[0]


def with_condition(case: ShapleyCase, background: Float[Tensor, "rows players"]) -> Float[Tensor, " players"]:
    """Compute exact Shapley values of conditional means."""
    return shapley(ValueTable(conditional_values(case.function.model, case.x, background))).values[0]


def conditional_values(
    model: Model, x: Float[Tensor, " players"], background: Float[Tensor, "rows players"]
) -> Float[Tensor, " coalitions"]:
    """Average the model over the rows that agree with the present entries, or over all rows where none agree.

    >>> rows = torch.tensor([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    >>> conditional_values(lambda rows: rows.sum(1), torch.tensor([0.0, 1.0]), rows)
    tensor([1., 0., 2., 1.], dtype=torch.float64)
    """
    coalitions = enumerate_coalitions(len(x))
    clashes = coalitions.double() @ (background != x).double().T
    weights = (clashes == 0).double()
    counts = weights.sum(1)
    values = weights @ model(background).double() / counts.clamp_min(1)
    for number in (counts == 0).nonzero().flatten().tolist():
        values[number] = model(torch.where(coalitions[number], x, background)).double().mean()
    return values


def with_shap(case: ShapleyCase, background: Float[Tensor, "rows players"]) -> Float[Tensor, " players"]:
    """Let shap compute exact Shapley values of the mean over a background."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its own, about its dependencies
        import shap

        masker = shap.maskers.Independent(background.numpy(), max_samples=len(background))
        found = shap.ExactExplainer(_numpy_model(case), masker)(case.x[None].numpy(), silent=True)
    return torch.as_tensor(np.asarray(found.values)[0]).double()


def with_kernel_shap(case: ShapleyCase, background: Float[Tensor, "rows players"]) -> Float[Tensor, " players"]:
    """Let shap estimate Shapley values by its weighted regression, as by its defaults."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its own, about its dependencies
        import shap

        explainer = shap.KernelExplainer(_numpy_model(case), background.numpy())
        found = explainer.shap_values(case.x[None].numpy(), silent=True)
    return torch.as_tensor(np.asarray(found)[0]).double()


def _numpy_model(case: ShapleyCase) -> Callable[[Any], Any]:
    return lambda rows: case.function.model(torch.as_tensor(np.asarray(rows, dtype=np.float64))).numpy()


def with_learned(case: ShapleyCase, inputs: Float[Tensor, "rows players"], seed: int) -> Float[Tensor, " players"]:
    """Compute exact Shapley values with baseline values learned from inputs.

    From 0.5 and not from the inputs' mean: where 1 is the frequent value, both variables of a product of two at 1 are
    a minimum too, though not the lowest one, and a change of one value at a time does not lead out of it.
    """
    learned = learn_baseline(case.function.model, inputs, start=0.5, samples=None, seed=seed)
    return with_baseline(case, learned.values)


def methods(seed: int) -> dict[str, Method]:
    """List the absences; backgrounds and inputs are drawn once, for all functions."""
    background, conditions = draw_inputs(BACKGROUND_ROWS, seed), draw_inputs(CONDITIONAL_ROWS, seed + 1)
    inputs = draw_inputs(LEARNING_ROWS, seed + 2)
    return {
        "zero": lambda case: with_baseline(case, 0.0),
        "0.7, the inputs' mean": lambda case: with_baseline(case, PRESENCE),
        "0.5, the paper's printed mean": lambda case: with_baseline(case, 0.5),
        "exact SHAP": lambda case: with_shap(case, background),
        f"exact SHAP divided by {PRINTED_DIVISOR}": lambda case: with_shap(case, background) / PRINTED_DIVISOR,
        "Kernel SHAP": lambda case: with_kernel_shap(case, background),
        "conditional (Frye et al.)": lambda case: with_condition(case, conditions),
        "learned": lambda case: with_learned(case, inputs, seed),
    }


def _scores_of(job: tuple[ShapleyCase, int]) -> list[Score]:
    case, seed = job
    torch.set_num_threads(1)
    return [score(case, method(case)) for method in methods(seed).values()]


def addition_multiplication_table(
    count: int | None = None, seed: int = 0, workers: int | None = None
) -> list[ResultTable]:
    """Count the right Shapley values of generated functions, 100 by default, for each absence."""
    jobs = [(case, seed) for case in addition_multiplication(100 if count is None else count, seed)]
    if workers == 1:
        return [tabulate(_watched(map(_scores_of, jobs), len(jobs)), seed)]
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        return [tabulate(_watched(pool.imap(_scores_of, jobs), len(jobs)), seed)]


def _watched(found: Iterable[list[Score]], total: int) -> list[list[Score]]:
    return list(tqdm(found, total=total, desc="explaining", disable=None))


def tabulate(found: Sequence[Sequence[Score]], seed: int) -> ResultTable:
    """Add the functions' scores up, one for each absence."""
    note = (
        f"{len(found)} functions generated by seed {seed}, one sample each; right is within {TOLERANCE:g} of the "
        "truth. The generator is fitted to the paper's rows for zero and mean baseline values, so that their "
        "agreement is no evidence. The functions are linear in each of their independent inputs, so that SHAP with a "
        "background, Kernel SHAP and conditional means all stand for the baseline 0.7, but for the sampling error of "
        "their rows. Every product has two factors or more: one alone, c·(x − δ), is the same function of x for "
        "every δ, up to a constant, so that its δ can't be learned. Learning starts from 0.5, on "
        f"{LEARNING_ROWS} inputs that are 1 with probability {PRESENCE:g}."
    )
    table = ResultTable(
        "Shapley values of sums of products",
        ("absence", "right, of all variables", "of used ones", "the paper"),
        note,
    )
    for number, name in enumerate(methods(seed)):
        total = sum((scores[number] for scores in found), Score((0, 0), (0, 0)))
        table.add(name, *total.cells(), PRINTED.get(name, "–"))
    return table


def agree(values: Float[Tensor, " players"], printed: Sequence[float]) -> bool:
    """Tell whether values round to the printed ones, to as many digits as are printed; a tie may go either way.

    >>> agree(torch.tensor([0.575, -0.0594]), [0.58, -0.06]), agree(torch.tensor([0.57, -0.0594]), [0.58, -0.06])
    (True, False)
    """
    digits = max(len(f"{value:.6f}".rstrip("0").partition(".")[2]) for value in printed)
    return _distance(values, printed) <= 0.5 * 10.0**-digits + 1e-6


def _distance(values: Tensor, printed: Sequence[float]) -> float:
    return float((values.double() - torch.tensor(list(printed), dtype=torch.float64)).abs().max())


def worked_tables() -> list[ResultTable]:
    """Set the Shapley values of the paper's three worked examples beside the printed ones."""
    return [_worked_table(example) for example in worked_examples()]


def _worked_table(example: WorkedExample) -> ResultTable:
    case = example.case
    note = (
        f"f = {case.function.text} at x = ({', '.join(f'{value:g}' for value in case.x.tolist())}). The printed mean "
        "rows need baseline values of 0.5, though the text says 0.7. The printed rows of the setting in SHAP equal "
        f"the exact means over the inputs' distribution divided by {PRINTED_DIVISOR}, up to noise."
    )
    columns = ("absence", "Shapley values", "printed", "largest difference", "agree to the printed digits")
    table = ResultTable(f"Shapley values of {case.function.name}", columns, note)
    # f is linear in each of its independent inputs: its mean over the absent ones is its value at their means.
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
