"""Experiment on the census and credit networks: what masking methods remove of the signal of a table's columns.

The paper measures R on images alone; the audit is the same for rows of a table, all of whose players are masked.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from absentia.absence import Absence, Baseline, GaussianConditional, Marginal, NearestNeighbours
from absentia.audit import Audit, audit
from absentia.errors import wrong
from absentia.inference import Model
from absentia.papers.datasets import TabularData
from absentia.papers.models import LOADERS, trained
from absentia.papers.results import ResultTable
from absentia.papers.tabular_baselines import held_out, learn, raw_zero
from absentia.players import Players
from absentia.wording import count_of

HEADS = (
    *("method", "R", "± error", "removed", "Σ|U| of its own game", "± error", "salient", "terms", "low orders"),
    *("v(∅)", "agreement", "evaluations"),
)


@dataclass(frozen=True)
class Work:
    """How much goes into an audit."""

    rows: int  # of the test set
    draws: int
    background: int  # training rows that distributions are taken from
    learned_from: int = 256
    steps: int = 60


# The credit data's 20 players are more than an audit enumerates: each of its draws is a game of twelve of them.
WORK = {"census": Work(rows=64, draws=4, background=2000), "credit": Work(rows=64, draws=8, background=700)}


def methods(model: Model, data: TabularData, work: Work, seed: int) -> dict[str, Absence]:
    """Make the masking methods; whatever they know, they know from training rows."""
    order = torch.randperm(len(data.x_train), generator=torch.Generator().manual_seed(seed))
    background = data.x_train[order[: work.background]]
    return {
        "zero (raw)": Baseline(raw_zero(data)),
        "mean": Baseline.mean(data.x_train),
        "median": Baseline.median(data.x_train),
        "marginal": Marginal(background, draws=16, seed=seed),
        "Gaussian": GaussianConditional(background, draws=16, seed=seed),
        "neighbours": NearestNeighbours(background, neighbours=16),
        "learned": learn(model, data, seed, samples=work.learned_from, steps=work.steps),
    }


def audit_tables(seed: int = 0) -> list[ResultTable]:
    """Audit the masking methods on both networks."""
    return [audit_table(name, seed) for name in WORK]


def audit_table(name: str, seed: int = 0) -> ResultTable:
    """Audit the masking methods on the "census" or the "credit" network."""
    if name not in WORK:
        raise wrong("name", f"be one of {', '.join(WORK)}", repr(name))
    return compare(trained(name, seed), LOADERS[name](), WORK[name], seed)


def compare(model: Model, data: TabularData, work: Work, seed: int) -> ResultTable:
    """Make the table of R and its companions on test rows, of which no method knows."""
    x, y = held_out(data, work.rows, seed)
    players = Players.features(data.feature_names)
    absences = methods(model, data, work, seed)
    found = audit(model, x, y, absences, players=players, data=data.x_train, draws=work.draws, seed=seed)
    return tabulate(data.name, found)


def tabulate(name: str, found: Audit) -> ResultTable:
    """Set all figures of an audit side by side, in the order in which the methods were given."""
    record = found.record
    played = "" if record.exact else f", in drawn games of {record.game_players}, one for each draw"
    note = (
        f"{record.samples} test rows of {name}, all {len(found.players)} players masked{played}; seed {record.seed}; "
        f"log-odds of each row's class; reference: {record.reference}, {count_of(record.draws, 'draw')}. "
        "R of the unmasked rows: "
        f"{float(found.removal.unmasked.value):.3f}. Salient: {record.threshold}; terms: effects that rebuild all "
        "values to 5 %; low orders: up to half the players; agreement: mean rank correlation with the others' "
        "Shapley values. Learned: the minimum of Σ|U(S)| over all orders, on training rows. "
        + " ".join((*found.verdict, *found.warnings, *record.notes))
    )
    table = ResultTable(f"What masking methods leave and add: {name}", HEADS, note)
    columns = {key: values.tolist() for key, values in found.columns().items()}
    for number, method in enumerate(found.methods):
        one = {key: values[number] for key, values in columns.items()}
        table.add(
            method, f"{one['R']:.3f}", f"{one['R_error']:.3f}", f"{one['removed']:.1%}", f"{one['strength']:.4g}",
            f"{one['strength_error']:.2g}", f"{one['salient']:.1f}", f"{one['terms']:.1f}",
            f"{one['low_orders']:.1%}", f"{one['empty_value']:+.3f}", f"{one['agreement']:.3f}",
            f"{one['evaluations']:,}",
        )  # fmt: skip
    return table
