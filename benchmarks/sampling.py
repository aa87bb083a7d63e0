"""Compare sampled Shapley values with shap, captum and shapiq at equal evaluations, on models of 12 to 784 players.

    python benchmarks/sampling.py                          # about 20 minutes; writes results/sampling.md and .json
    python benchmarks/sampling.py --only digits cost       # some games and parts; the page keeps the other figures
    python benchmarks/sampling.py --quick --output DIR     # a smoke test of some seconds

errors: each game is explained by each method of absentia and by each peer with the same model, absence and budget: 5,
    10, 20 and 40 evaluations for each player. Truth comes from all coalitions, from the leaves of trees, or from a
    regression on far more coalitions, whose own error is given.
coverage: how often do 95 % intervals hold the truth?
cost: how long do methods compute beyond the bare forward passes?
memory: how much memory does a process need at 784 players?

Each game is written when it is done, so that a run that was stopped can be continued with ``--only``, and two runs
can share the games. Times are CPU seconds of one thread. A data set that cannot be had leaves its games out.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from threadpoolctl import threadpool_limits

import absentia as ab
from many_player_games import MAKERS, ManyPlayers, Truth, ValuesOfRows, make
from result_tables import HERE, Cell, Row, Table, describe_machine, options, print_table, to_markdown, verdict
from shapley_peers import PEERS, can_run, estimate

METHODS = ("process", "leverage", "antithetic", "permutation", "auto")
JUDGED = "process"
REFERENCE = "shap permutation"
ERROR_GOAL = 0.45  # of the error of shap's permutations, on average
GOAL_FROM = 10  # evaluations for each player from which the goal for errors holds
COVERAGE_GOAL = (0.92, 0.98)
COST_GOAL = 0.15  # of the bare forward passes, by leverage
MEMORY_GOAL = 2.0  # GB

COST_GAME = "lenet"
COST_EVALUATIONS = 10_240
MEMORY_GAME = "pixels"
MEMORY_EVALUATIONS = 20_000
COVERED_METHODS = ("process", "leverage", "antithetic", "permutation")
COVERED_GAMES = ("census", "credit", "tumours", "trees", "lenet", "digits")
NORMAL_QUANTILE = 1.96
PARTS = ("coverage", "cost", "memory")
TITLE = "Sampled Shapley values"


@dataclass(frozen=True)
class Effort:
    """How much is measured."""

    games: tuple[str, ...]
    parts: tuple[str, ...]
    samples: int
    seeds: int  # at most, for each game
    multiples: tuple[int, ...]  # evaluations for each player
    covered_games: tuple[str, ...]
    covered_seeds: int
    covered_multiple: int
    repeats: int  # of timed runs
    pairs: int | None = None  # for truths that come from drawn pairs, if not as many as the game says


FULL = Effort(
    games=tuple(MAKERS),
    parts=PARTS,
    samples=3,
    seeds=3,
    multiples=(5, 10, 20, 40),
    covered_games=COVERED_GAMES,
    covered_seeds=20,
    covered_multiple=10,
    repeats=3,
)
QUICK = Effort(
    games=("tumours",),
    parts=("coverage",),
    samples=1,
    seeds=1,
    multiples=(10,),
    covered_games=("tumours",),
    covered_seeds=1,
    covered_multiple=10,
    repeats=1,
    pairs=2**12,
)


def make_for(name: str, effort: Effort) -> ManyPlayers | None:
    """Return a game with the effort's samples, or None if it cannot be had."""
    played = make(name, effort.samples)
    if played is None or effort.pairs is None:
        return played
    return replace(played, pairs=effort.pairs)


@dataclass
class Measured:
    """What one method did on one game with one budget, over samples and seeds."""

    errors: list[float]
    seconds: list[float]  # for one sample
    evaluations: int = 0  # the most for one sample

    def add(self, error: float, seconds: float, evaluations: int) -> None:
        """Add the result of one sample."""
        self.errors.append(error)
        self.seconds.append(seconds)
        self.evaluations = max(self.evaluations, evaluations)

    def record(self) -> dict[str, float | int]:
        """Return means, as they are written."""
        return {
            "error": float(np.mean(self.errors)),
            "seconds": float(np.mean(self.seconds)),
            "evaluations": self.evaluations,
        }


def relative_error(found: np.ndarray, true: np.ndarray) -> float:
    return float(np.linalg.norm(found - true) / np.linalg.norm(true))


def measure_own(played: ManyPlayers, truth: Truth, evaluations: int, seeds: int, method: str) -> Measured:
    """Explain all samples at once by a method of absentia, with each seed."""
    measured = Measured([], [])
    for seed in range(seeds):
        game = played.game()
        began = time.process_time()
        found = ab.shapley(game, evaluations=evaluations, method=method, seed=seed)
        seconds = (time.process_time() - began) / played.samples
        for values, true in zip(found.values.numpy(), truth.values, strict=True):
            measured.add(relative_error(values, true), seconds, -(-found.evaluations // played.samples))
    return measured


def measure_peer(played: ManyPlayers, truth: Truth, evaluations: int, seeds: int, peer: str) -> Measured:
    """Explain each sample by a peer, with each seed."""
    measured = Measured([], [])
    for seed in range(seeds):
        for sample in range(played.samples):
            values = ValuesOfRows(played.game(sample))
            began = time.process_time()
            found = estimate(peer, values, played.count, evaluations, seed)
            seconds = time.process_time() - began
            measured.add(relative_error(found, truth.values[sample]), seconds, values.evaluations)
    return measured


def measure_errors(played: ManyPlayers, effort: Effort) -> dict[str, Any]:
    """Measure every method at every budget; check that none evaluates more than its budget."""
    truth = played.truth()
    seeds = min(effort.seeds, played.seeds)
    peers = [peer for peer in PEERS if can_run(peer, played.count)]
    for peer in peers:
        estimate(
            peer, ValuesOfRows(played.game(0)), played.count, 5 * played.count, seed=0
        )  # compiles on the first run
    budgets = []
    for multiple in effort.multiples:
        evaluations = multiple * played.count
        found = {method: measure_own(played, truth, evaluations, seeds, method) for method in METHODS}
        found |= {peer: measure_peer(played, truth, evaluations, seeds, peer) for peer in peers}
        for name, measured in found.items():
            if measured.evaluations > evaluations:
                over = f"{name} took {measured.evaluations} on {played.name}"
                raise RuntimeError(f"Methods must evaluate at most {evaluations} coalitions. {over} instead.")
        records = {name: measured.record() for name, measured in found.items()}
        budgets.append({"multiple": multiple, "evaluations": evaluations, "methods": records})
        shown = ", ".join(f"{name} {record['error']:.3f}" for name, record in records.items())
        print(f"{played.name}, {evaluations:,} evaluations: {shown}", flush=True)
    return {
        "description": played.description,
        "players": played.count,
        "samples": played.samples,
        "seeds": seeds,
        "truth": played.truth_by,
        "error of the truth": truth.relative_error,
        "budgets": budgets,
    }


def measure_coverage(effort: Effort) -> list[dict[str, Any]]:
    """Count how often the truth is within 1.96 standard errors, over players, samples and seeds."""
    counted = []
    for name in effort.covered_games:
        played = make_for(name, effort)
        if played is None:
            continue
        truth = torch.from_numpy(played.truth().values)
        game = played.game()
        evaluations = effort.covered_multiple * played.count
        shares = {}
        for method in COVERED_METHODS:
            within = []
            for seed in range(effort.covered_seeds):
                found = ab.shapley(game, evaluations=evaluations, method=method, seed=seed)
                within.append((found.values - truth).abs() <= NORMAL_QUANTILE * found.errors)
            shares[method] = float(torch.stack(within).double().mean())
        described = {"game": played.description, "evaluations": evaluations, "seeds": effort.covered_seeds}
        counted.append(described | {"shares": shares})
        print(
            f"coverage, {name}: " + ", ".join(f"{method} {share:.1%}" for method, share in shares.items()), flush=True
        )
    return counted


def bare_passes(played: ManyPlayers, evaluations: int) -> float:
    """Return the CPU seconds of the model alone on as many rows, which are masked before."""
    game = played.game(0)
    present = torch.rand(evaluations, *played.x.shape[1:], generator=torch.Generator().manual_seed(0)) < 0.5
    rows = torch.where(present, played.x[:1], played.absence.values)
    with torch.inference_mode():
        began = time.process_time()
        for batch in rows.split(game.evaluator.batch_size):
            played.model(batch)
        return time.process_time() - began


def measure_cost(effort: Effort) -> list[dict[str, Any]]:
    """Time methods and peers on one sample, in turn with the bare passes; keep the least time of each."""
    played = make(COST_GAME, 1)
    if played is None:
        return []
    peers = [peer for peer in PEERS if can_run(peer, played.count)]
    seconds: dict[str, list[float]] = {name: [] for name in ("bare", *METHODS, *peers)}
    for repeat in range(effort.repeats + 1):  # the first run compiles, and is not kept
        timed = {"bare": bare_passes(played, COST_EVALUATIONS)}
        for method in METHODS:
            game = played.game()
            began = time.process_time()
            ab.shapley(game, evaluations=COST_EVALUATIONS, method=method, seed=repeat)
            timed[method] = time.process_time() - began
        for peer in peers:
            values = ValuesOfRows(played.game(0))
            began = time.process_time()
            estimate(peer, values, played.count, COST_EVALUATIONS, seed=repeat)
            timed[peer] = time.process_time() - began
        if repeat > 0:
            for name, taken in timed.items():
                seconds[name].append(taken)
        print(f"cost, run {repeat} of {effort.repeats}: bare passes {timed['bare']:.2f} s", flush=True)
    least = {name: min(taken) for name, taken in seconds.items()}
    bare = least.pop("bare")
    return [
        {"method": name, "bare": bare, "seconds": taken, "beyond": (taken - bare) / bare}
        for name, taken in least.items()
    ]


def peak_memory() -> float:
    """Return the most memory that this process held, in GB."""
    status = Path("/proc/self/status")
    if status.exists():  # where resource would also count the process that started this one
        lines = status.read_text().splitlines()
        kilobytes = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
        return kilobytes * 1024 / 1e9
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9


def memory_of(method: str) -> dict[str, Any]:
    """Explain one sample in this process, and return the memory before and after."""
    torch.set_num_threads(1)
    played = make(MEMORY_GAME, 1)
    if played is None:
        return {}
    before = peak_memory()
    began = time.process_time()
    ab.shapley(played.game(), evaluations=MEMORY_EVALUATIONS, method=method, seed=0)
    return {"method": method, "before": before, "peak": peak_memory(), "seconds": time.process_time() - began}


def measure_memory(effort: Effort) -> list[dict[str, Any]]:
    """Measure each method in a process of its own."""
    measured = []
    for method in METHODS:
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            memory = pool.submit(memory_of, method).result()
        if memory:
            measured.append(memory)
            print(f"memory, {method}: {memory['peak']:.2f} GB, {memory['seconds']:.0f} s", flush=True)
    return measured


MEASURES: dict[str, Callable[[Effort], list[dict[str, Any]]]] = {
    "coverage": measure_coverage,
    "cost": measure_cost,
    "memory": measure_memory,
}


def error_rows(games: dict[str, Any]) -> list[Row]:
    """Return the errors of every method, a row for each game and budget."""
    rows: list[Row] = []
    for found in games.values():
        for budget in found["budgets"]:
            errors = {name: record["error"] for name, record in budget["methods"].items()}
            best_peer = min((peer for peer in errors if peer in PEERS), key=errors.__getitem__)
            row: Row = {
                "game": found["description"],
                "players": found["players"],
                "evaluations": f"{budget['evaluations']:,} = {budget['multiple']} n",
                "error of the truth": found["error of the truth"],
            }
            row |= {name: errors.get(name) for name in (*METHODS, *PEERS)}
            row[f"{JUDGED} over {REFERENCE}"] = errors[JUDGED] / errors[REFERENCE]
            row["best peer"] = best_peer
            row["at or below every peer"] = verdict(errors[JUDGED] <= errors[best_peer])
            rows.append(row)
    return rows


def time_rows(games: dict[str, Any]) -> list[Row]:
    """Return the CPU seconds of a sample by every method, and how long peers would take for the error of "auto"."""
    rows: list[Row] = []
    for found in games.values():
        for budget in found["budgets"]:
            records = budget["methods"]
            own = records["auto"]
            # An error falls with the root of the evaluations, and nearly all time is in proportion to them.
            needed = {
                peer: records[peer]["seconds"] * (records[peer]["error"] / own["error"]) ** 2
                for peer in PEERS
                if peer in records
            }
            fastest = min(needed, key=needed.__getitem__)
            row: Row = {
                "game": found["description"],
                "evaluations": budget["evaluations"],
                "error of auto": own["error"],
            }
            row |= {
                f"{name}, s": records[name]["seconds"] if name in records else None for name in (*METHODS, *PEERS)
            }
            row["fastest peer for that error"] = fastest
            row["it would take, s"] = needed[fastest]
            row["auto over it"] = own["seconds"] / needed[fastest]
            rows.append(row)
    return rows


def goal_rows(record: dict[str, Any]) -> list[Row]:
    """Return the goals with what was reached."""
    rows: list[Row] = []
    budgets = [(found, budget) for found in record["games"].values() for budget in found["budgets"]]
    ratios = []
    beaten = []
    for _, budget in budgets:
        errors = {name: measured["error"] for name, measured in budget["methods"].items()}
        beaten.append(errors[JUDGED] <= min(error for name, error in errors.items() if name in PEERS))
        if budget["multiple"] >= GOAL_FROM:
            ratios.append(errors[JUDGED] / errors[REFERENCE])
    if ratios:
        mean = float(np.mean(ratios))
        goal = f"error of {JUDGED} over that of {REFERENCE}, mean of rows from {GOAL_FROM} n on: at most {ERROR_GOAL}"
        rows.append({"goal": goal, "reached": mean, "verdict": verdict(mean <= ERROR_GOAL)})
    if beaten:
        goal = f"{JUDGED} at or below every peer in every row"
        rows.append({"goal": goal, "reached": f"{sum(beaten)} of {len(beaten)}", "verdict": verdict(all(beaten))})
    low, high = COVERAGE_GOAL
    for method in COVERED_METHODS:
        shares = [counted["shares"][method] for counted in record.get("coverage", [])]
        if shares:
            reached = f"{min(shares):.1%} to {max(shares):.1%}"
            met = low <= min(shares) and max(shares) <= high
            goal = f"95 % intervals of {method} cover {low:.0%} to {high:.0%} in every game"
            rows.append({"goal": goal, "reached": reached, "verdict": verdict(met)})
    for timed in record.get("cost", []):
        if timed["method"] == "leverage":
            goal = f"leverage beyond the bare passes, {COST_EVALUATIONS:,} evaluations: at most {COST_GOAL:.0%}"
            met = timed["beyond"] <= COST_GOAL
            rows.append({"goal": goal, "reached": f"{timed['beyond']:.0%}", "verdict": verdict(met)})
    if record.get("memory"):
        most = max(measured["peak"] for measured in record["memory"])
        goal = f"memory at 784 players and {MEMORY_EVALUATIONS:,} evaluations, every method: under {MEMORY_GOAL:g} GB"
        rows.append({"goal": goal, "reached": f"{most:.2f} GB", "verdict": verdict(most < MEMORY_GOAL)})
    return rows


def coverage_rows(coverage: list[dict[str, Any]]) -> list[Row]:
    rows: list[Row] = []
    for counted in coverage:
        shares: dict[str, Cell] = {method: f"{share:.1%}" for method, share in counted["shares"].items()}
        rows.append(
            {"game": counted["game"], "evaluations": counted["evaluations"], "seeds": counted["seeds"]} | shares
        )
    return rows


def to_tables(record: dict[str, Any]) -> list[Table]:
    """Return all that was measured as tables."""
    games = record["games"]
    rounds = ", ".join(f"{found['description']} {found['samples']} × {found['seeds']}" for found in games.values())
    left_out = ", ".join(record["left out"]) or "none"
    not_run = ", ".join(name for name in MAKERS if name not in games and name not in record["left out"]) or "none"
    tables = [
        Table(
            "Goals",
            f"Games left out, because their data could not be had: {left_out}. Games not run: {not_run}.",
            goal_rows(record),
        ),
        Table(
            "Relative errors",
            "‖φ̂ − φ‖₂ / ‖φ‖₂, mean over samples and seeds. Model, absence and budget are the same for all. ∅ and N "
            "count once each, whatever a method spends on them. Permutations are whole: each peer walks along as "
            "many as the budget allows. shap kernel runs without its default of keeping ten players; shapiq kernel "
            f"also with pairs of complements. An empty cell: too many players for it. Samples × seeds: {rounds}.",
            error_rows(games),
        ),
        Table(
            "Seconds of a sample",
            "CPU seconds of one thread, the model's included. Peers get values by the same vectorised function. The "
            "last columns ask which peer would have the error of auto first, if errors fall with the root of the "
            "evaluations and times grow in proportion to them.",
            time_rows(games),
        ),
        Table(
            "Coverage of 95 % intervals",
            "The share of players, samples and seeds for which the truth is within 1.96 standard errors.",
            coverage_rows(record.get("coverage", [])),
        ),
        Table(
            "Seconds beyond the bare forward passes",
            f"One sample of {COST_GAME} with 49 cells, {COST_EVALUATIONS:,} evaluations, CPU seconds of one thread, "
            "the least of some runs in turn. Bare: the model alone on as many rows, which were masked before.",
            [
                {
                    "method": timed["method"],
                    "bare passes, s": timed["bare"],
                    "all of it, s": timed["seconds"],
                    "beyond the bare passes": f"{timed['beyond']:.0%}",
                }
                for timed in record.get("cost", [])
            ],
        ),
        Table(
            "Memory",
            f"The most memory of a process that explains one sample of {MEMORY_GAME}, 784 players, by "
            f"{MEMORY_EVALUATIONS:,} evaluations. Before: the most until the model and its data were loaded.",
            [
                {
                    "method": measured["method"],
                    "before, GB": measured["before"],
                    "peak, GB": measured["peak"],
                    "CPU seconds": measured["seconds"],
                }
                for measured in record.get("memory", [])
            ],
        ),
    ]
    return [table for table in tables if table.rows]


def read_record(path: Path) -> dict[str, Any]:
    """Return the earlier measurements."""
    if not path.exists():
        return {"games": {}, "left out": []}
    record: dict[str, Any] = json.loads(path.read_text())["measured"]
    return record


def write_record(folder: Path, record: dict[str, Any], machine: dict[str, str]) -> None:
    """Write what was measured so far, as figures and as a page."""
    record["games"] = {name: record["games"][name] for name in MAKERS if name in record["games"]}
    tables = to_tables(record)
    folder.mkdir(parents=True, exist_ok=True)
    command = f"python {HERE.name}/sampling.py"
    (folder / "sampling.md").write_text(to_markdown(TITLE, command, machine, tables))
    written = {
        "command": command,
        "machine": machine,
        "tables": [asdict(table) for table in tables],
        "measured": record,
    }
    (folder / "sampling.json").write_text(json.dumps(written, indent=2, ensure_ascii=False) + "\n")


def run(chosen: argparse.Namespace) -> None:
    """Measure games and parts, and write after each."""
    effort = QUICK if chosen.quick else FULL
    folder = chosen.output or HERE / "results"
    file = folder / "sampling.json"
    machine = describe_machine()
    for name in chosen.only or (*effort.games, *effort.parts):
        began = time.perf_counter()
        if name in MEASURES:
            part = MEASURES[name](effort)
            record = read_record(file)  # read after measuring, because other parts may run at the same time
            record[name] = part
        else:
            played = make_for(name, effort)
            found = None if played is None else measure_errors(played, effort)
            record = read_record(file)
            record["left out"] = [other for other in record["left out"] if other != name]
            if found is None:
                record["left out"].append(name)
            else:
                record["games"][name] = found
        write_record(folder, record, machine)
        print(f"{name}: {time.perf_counter() - began:.0f} s", flush=True)
    print_table(to_tables(record)[0])


def main() -> None:
    """Measure, print and write."""
    parser = options(__doc__, "one small game, some seconds")
    names = [*MAKERS, *PARTS]
    parser.add_argument("--only", nargs="+", choices=names, metavar="NAME", help=f"some of {', '.join(names)}")
    chosen = parser.parse_args()
    if chosen.quick and chosen.output is None:
        parser.error("--quick needs --output")
    torch.set_num_threads(1)
    with threadpool_limits(1):
        run(chosen)


if __name__ == "__main__":
    main()
