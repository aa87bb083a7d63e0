"""Compare exact results with bare forward passes and with peers, in speed and memory, in one run.

    python benchmarks/exact.py                          # about three minutes; writes results/exact.md and .json
    python benchmarks/exact.py --quick --output DIR     # a smoke test of a few seconds

1. Overhead: from the model to all effects, Shapley values and order-wise Shapley values, over the time of the bare
   forward passes on masked inputs that are ready-made.
2. Peers: the same results from shapiq, shap and captum. Every result is compared before its time is reported.
3. Transform: the butterfly's memory traffic over that of a plain copy.
4. Memory: the peak of a process that does what is timed in 1, above what it held before.

On a shared machine, times differ from run to run, and only ratios within a run are meaningful. So the contenders take
turns, and each round starts with a different one.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import absentia as ab
from absentia.coalitions import enumerate_coalitions, moebius_
from result_tables import Row, Table, describe_machine, options, print_table, verdict, write

BATCHES = (2048, 4096)  # bare passes use the better of these sizes
OVERHEAD_GOAL = 1.25  # for 2¹⁶ evaluations and more
SPEEDUP_GOAL = 100  # over shapiq, for 14 players and more
MEMORY_GOAL = 300  # megabytes


@dataclass(frozen=True)
class Plan:
    """How large and how often."""

    overhead: tuple[tuple[int, int, int], ...]  # players, samples, rounds
    moebius_players: int
    shapley_players: int
    captum_players: int  # captum goes through all permutations
    peer_rounds: int
    transform: tuple[tuple[int, int], ...]  # players, rounds
    memory_players: int


FULL = Plan(
    overhead=((12, 1, 200), (16, 1, 100), (20, 1, 15), (12, 64, 30)),
    moebius_players=14,
    shapley_players=12,
    captum_players=6,
    peer_rounds=2,
    transform=((16, 100), (20, 40), (24, 5)),
    memory_players=20,
)
QUICK = Plan(
    overhead=((4, 1, 2), (6, 1, 2), (4, 3, 2)),
    moebius_players=6,
    shapley_players=5,
    captum_players=4,
    peer_rounds=1,
    transform=((6, 3), (8, 3)),
    memory_players=8,
)


@dataclass(frozen=True)
class Turns:
    """The time of each contender in each round, and its last result."""

    seconds: dict[str, list[float]]
    results: dict[str, Any]

    def best(self, *names: str) -> float:
        """Return the least time of these contenders."""
        return min(min(self.seconds[name]) for name in names)

    def typical(self, *names: str) -> float:
        """Return the least median time among these contenders."""
        return min(median(self.seconds[name]) for name in names)


def take_turns(contenders: Mapping[str, Callable[[], object]], rounds: int, repeats: int = 1) -> Turns:
    """Time the contenders in turn, the first one ``repeats`` times in a round because the others are slow."""
    names = list(contenders)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    results: dict[str, Any] = {}
    for number in range(rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            for _ in range(repeats if name == names[0] else 1):
                start = time.perf_counter()
                results[name] = contenders[name]()
                seconds[name].append(time.perf_counter() - start)
    return Turns(seconds, results)


def check_agreement(ours: Tensor, theirs: Tensor, within: float) -> float:
    """Return the largest difference as a share of the largest value; raise an error beyond ``within``."""
    difference = float((ours - theirs).abs().max() / ours.abs().max())
    if not difference <= within:
        raise RuntimeError(
            f"Results must agree within {within:g} to be compared in speed. Got {difference:g} instead."
        )
    return difference


# 1. Overhead


class OwnModule(nn.Module):
    """The same layers in a custom class, whose first layer cannot be split off, as in most models."""

    def __init__(self, layers: nn.Module) -> None:
        super().__init__()
        self.layers = layers

    def forward(self, rows: Tensor) -> Tensor:
        """Run the layers."""
        output: Tensor = self.layers(rows)
        return output


@dataclass(frozen=True)
class Case:
    """A network n → 100 → 100 → 1 in float32, samples and a baseline."""

    model: nn.Module
    x: Tensor
    baseline: Tensor

    def game(self) -> ab.MaskedModel:
        """Create a new game, as a user would."""
        return ab.MaskedModel(self.model, self.x, absence=ab.Baseline(self.baseline))

    def masked_inputs(self, coalitions: Tensor) -> Tensor:
        """Make the masked inputs in the plain way, samples × coalitions rows."""
        return torch.where(coalitions, self.x[:, None], self.baseline).flatten(0, 1)


def make_case(players: int, samples: int = 1, width: int = 100) -> Case:
    torch.manual_seed(0)
    hidden = nn.Linear(width, width)
    model = nn.Sequential(nn.Linear(players, width), nn.ReLU(), hidden, nn.ReLU(), nn.Linear(width, 1)).eval()
    return Case(model, torch.randn(samples, players), torch.randn(players))


def explain(case: Case) -> ab.ValueTable:
    """Do everything that is timed: the game, its table, and three exact results."""
    table = ab.value_table(case.game())
    ab.harsanyi(table)
    ab.shapley(table)
    ab.order_shapley(table)
    return table


@torch.no_grad()
def run_bare(model: nn.Module, inputs: Tensor, batch: int) -> None:
    for rows in inputs.split(batch):
        model(rows)


def measure_overhead(players: int, samples: int, rounds: int) -> list[Row]:
    """Compare with bare passes, once for a plain nn.Sequential and once for a custom class."""
    case = make_case(players, samples)
    wrapped = replace(case, model=OwnModule(case.model))
    inputs = case.masked_inputs(enumerate_coalitions(players))
    with torch.no_grad():
        check_agreement(explain(case).values.flatten(), case.model(inputs).flatten(), within=1e-4)
    kinds = {"nn.Sequential": partial(explain, case), "own class": partial(explain, wrapped)}
    bare = {f"bare {batch}": partial(run_bare, case.model, inputs, batch) for batch in BATCHES}
    contenders: dict[str, Callable[[], object]] = {**bare, **kinds}
    take_turns(contenders, rounds=2)  # to warm up
    turns = take_turns(contenders, rounds)
    rows: list[Row] = []
    for kind in kinds:
        ratio = turns.best(kind) / turns.best(*bare)
        counts = samples * 2**players >= 2**16
        rows.append(
            {
                "players": players,
                "samples": samples,
                "model": kind,
                "bare, ms": 1e3 * turns.best(*bare),
                "absentia, ms": 1e3 * turns.best(kind),
                "ratio of minima": ratio,
                "ratio of medians": turns.typical(kind) / turns.typical(*bare),
                "goal": f"≤ {OVERHEAD_GOAL}" if counts else None,
                "verdict": verdict(ratio <= OVERHEAD_GOAL) if counts else None,
            }
        )
    return rows


def overhead(plan: Plan) -> Table:
    note = (
        "A float32 network n → 100 → 100 → 1. Bare: forward passes on ready-made masked inputs, in the better of "
        f"batches of {BATCHES[0]} and {BATCHES[1]} rows. absentia: MaskedModel, value_table, harsanyi, shapley and "
        "order_shapley. A plain nn.Sequential lets absentia compute the first layer's outputs by additions; a class "
        "of its own does not. The verdict goes by the ratio of minima."
    )
    rows = [row for sizes in plan.overhead for row in measure_overhead(*sizes)]
    return Table("Overhead over bare forward passes", note, rows)


# 2. Peers


@dataclass(frozen=True)
class Rival:
    """A peer's computation of one of our results; differences up to ``within`` count as the same result."""

    task: str
    peer: str
    ours: Callable[[], Tensor]
    theirs: Callable[[], Any]
    within: float
    read: Callable[[Any], Tensor] = torch.as_tensor  # converts their result to ours; not timed
    goal: float | None = None


def compare(rival: Rival, rounds: int) -> Row:
    """Compare the times for the same result."""
    turns = take_turns({"absentia": rival.ours, "peer": rival.theirs}, rounds, repeats=10)
    faster = turns.best("peer") / turns.best("absentia")
    return {
        "task": rival.task,
        "peer": rival.peer,
        "peer, s": turns.best("peer"),
        "absentia, s": turns.best("absentia"),
        "times faster": faster,
        "difference": check_agreement(turns.results["absentia"], rival.read(turns.results["peer"]), rival.within),
        "goal": None if rival.goal is None else f"≥ {rival.goal:g}",
        "verdict": None if rival.goal is None else verdict(faster >= rival.goal),
    }


def shapiq_rivals(players: int) -> list[Rival]:
    """Compare Möbius values: the transform of given values, and everything from the model."""
    from shapiq import ExactComputer, InteractionValues

    case = make_case(players)
    table = explain(case)

    def look_up(coalitions: np.ndarray) -> np.ndarray:
        return np.asarray(table(torch.from_numpy(coalitions))[0])

    @torch.no_grad()
    def evaluate(coalitions: np.ndarray) -> np.ndarray:
        batches = case.masked_inputs(torch.from_numpy(coalitions)).split(BATCHES[0])
        return np.asarray(torch.cat([case.model(rows)[:, 0] for rows in batches]).double())

    def transform(values: Callable[[np.ndarray], np.ndarray]) -> InteractionValues:
        return ExactComputer(values, n_players=players)("Moebius")

    def in_counting_order(found: InteractionValues) -> Tensor:
        effects = {sum(1 << player for player in members): value for members, value in found.dict_values.items()}
        return torch.tensor([effects[number] for number in range(2**players)], dtype=torch.float64)

    rival = partial(
        Rival,
        peer="shapiq ExactComputer, Möbius values",
        read=in_counting_order,
        goal=SPEEDUP_GOAL if players >= 14 else None,
    )
    return [
        rival(
            task=f"values to effects, n = {players}",
            ours=lambda: ab.harsanyi(table).effects[0],
            theirs=lambda: transform(look_up),
            within=1e-9,
        ),
        rival(
            task=f"model to effects, n = {players}",
            ours=lambda: ab.harsanyi(case.game()).effects[0],
            theirs=lambda: transform(evaluate),
            within=1e-2,  # other batches round float32 values differently, and an effect adds up many of them
        ),
    ]


def shap_rival(players: int) -> Rival:
    """Compare exact Shapley values, from the model."""
    from shap import ExactExplainer
    from shap.maskers import Independent

    case = make_case(players)

    @torch.no_grad()
    def predict(rows: np.ndarray) -> np.ndarray:
        return np.asarray(case.model(torch.from_numpy(rows).float())[:, 0])

    def theirs() -> np.ndarray:
        explainer = ExactExplainer(predict, Independent(case.baseline.numpy()[None]))
        values: np.ndarray = explainer(case.x.numpy(), silent=True).values
        return values

    theirs()  # compiles
    task = f"Shapley values, n = {players}"
    return Rival(task, "shap ExactExplainer", lambda: ab.shapley(case.game()).values, theirs, within=1e-4)


def captum_rivals(players: int, few_players: int) -> list[Rival]:
    """Compare Shapley values from the model: sampled with 2ⁿ evaluations, and exact for few players."""
    from captum.attr import ShapleyValues, ShapleyValueSampling

    case = make_case(players)
    few = make_case(few_players)
    permutations = 2**players // players

    def sampled() -> Tensor:
        torch.manual_seed(0)
        settings = {"n_samples": permutations, "perturbations_per_eval": players}
        values: Tensor = ShapleyValueSampling(case.model).attribute(case.x, case.baseline[None], **settings)
        return values

    def exact() -> Tensor:
        settings = {"perturbations_per_eval": few_players}
        values: Tensor = ShapleyValues(few.model).attribute(few.x, few.baseline[None], **settings)
        return values

    return [
        Rival(
            f"Shapley values, n = {players}",
            f"captum ShapleyValueSampling, {permutations} permutations",
            lambda: ab.shapley(case.game()).values,
            sampled,
            within=1.0,  # not the same result
        ),
        Rival(
            f"Shapley values, n = {few_players}",
            "captum ShapleyValues",
            lambda: ab.shapley(few.game()).values,
            exact,
            within=1e-4,
        ),
    ]


def peers(plan: Plan) -> Table:
    note = (
        "The same float32 network. Times are minima; differences are shares of the largest value. shapiq transforms "
        "3ⁿ terms in Python; shap evaluates 2ⁿ coalitions; captum's exact values take n!·n evaluations, so that they "
        "are out of reach where the others are compared."
    )
    rivals = shapiq_rivals(plan.moebius_players)
    rivals += [shap_rival(plan.shapley_players), *captum_rivals(plan.shapley_players, plan.captum_players)]
    return Table("Peers", note, [compare(rival, plan.peer_rounds) for rival in rivals])


# 3. Transform


def measure_transform(players: int, rounds: int) -> Row:
    """Compare the memory traffic of the in-place transform with that of copying the same table."""
    values = torch.randn(2**players, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    table = values.clone()
    contenders: dict[str, Callable[[], object]] = {
        "copy": lambda: table.copy_(values),
        "transform": lambda: moebius_(table),
    }
    take_turns(contenders, rounds=2)  # to warm up
    turns = take_turns(contenders, rounds)
    # A pass reads both halves of the table and writes one; a copy reads the table and writes another.
    transform = players * 1.5 * table.nbytes / turns.best("transform") / 1e9
    copy = 2 * table.nbytes / turns.best("copy") / 1e9
    return {
        "players": players,
        "table, MB": table.nbytes / 1e6,
        "transform, ms": 1e3 * turns.best("transform"),
        "transform, GB/s": transform,
        "copy, GB/s": copy,
        "ratio": transform / copy,
    }


def transform(plan: Plan) -> Table:
    note = (
        "moebius_ in place on a float64 table: n passes, each of which reads the table and writes half of it. Where "
        "the table outgrows the caches, the copy goes to memory; the passes of the first 16 players do not."
    )
    return Table("The transform alone", note, [measure_transform(*sizes) for sizes in plan.transform])


# 4. Memory


def probe_memory(players: int) -> None:
    """Print the peak memory of `explain` in bytes, above what the process held before."""
    case = make_case(players)
    before = resident_bytes("VmRSS")
    explain(case)
    print(resident_bytes("VmHWM") - before)


def resident_bytes(field: str) -> int:
    """Read this process's resident memory: now (VmRSS), or at its peak (VmHWM)."""
    status = Path("/proc/self/status")
    if status.exists():
        # Not ru_maxrss, which a child process inherits from its parent.
        line = next(line for line in status.read_text().splitlines() if line.startswith(field))
        return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def memory(plan: Plan) -> Table:
    """Measure in a separate process that has imported torch and absentia and built the model."""
    probe = [sys.executable, __file__, "--probe-memory", str(plan.memory_players)]
    extra = int(subprocess.run(probe, capture_output=True, text=True, check=True).stdout) / 1e6
    row: Row = {
        "players": plan.memory_players,
        "table, MB": 8 * 2**plan.memory_players / 1e6,
        "peak extra memory, MB": extra,
        "goal": f"< {MEMORY_GOAL}",
        "verdict": verdict(extra < MEMORY_GOAL),
    }
    return Table("Memory", "The peak above what the process held with torch imported and the model built.", [row])


def main() -> None:
    parser = options(__doc__, "small games, a few seconds")
    parser.add_argument("--probe-memory", type=int, metavar="PLAYERS", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.probe_memory is not None:
        probe_memory(chosen.probe_memory)
        return
    plan = QUICK if chosen.quick else FULL
    machine = describe_machine()
    tables = []
    for measure in (overhead, peers, transform, memory):
        tables.append(measure(plan))
        print_table(tables[-1])
    write("exact", "Exact results: speed and memory", machine, tables, chosen)


if __name__ == "__main__":
    main()
