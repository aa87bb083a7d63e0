"""Compare few terms for games of many players with SPEX, ProxySPEX, LightGBM and LASSO on pairs at equal evaluations.

    python benchmarks/interactions.py                        # about 45 minutes; writes results/interactions.*
    python benchmarks/interactions.py --only digits planted  # some games and parts; the page keeps other figures
    python benchmarks/interactions.py --quick --output DIR   # a smoke test of some seconds

games: how much of the variation of fresh coalitions do the terms account for, by how many terms? Is the fidelity that
    absentia says what 5,000 fresh coalitions show?
planted: a few AND terms of orders 1 to 5 are planted among 20, 64 and 256 players, with noise. Are their sets found?

Each game, and each budget of planted games, is written when it is done, so that a run that was stopped can be
continued with ``--only``, and two runs can share the games. Most of the time is that of SPEX and ProxySPEX. Times are
CPU seconds of one thread. A data set that cannot be had leaves its games out.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from threadpoolctl import threadpool_limits

import absentia as ab
from found_terms import Found, OwnTerms
from interaction_peers import FITTERS, can_fit, drawn_alike, drawn_by_size, fit_quietly
from many_player_games import MAKERS, ManyPlayers, ValuesOfRows, make
from planted_games import NOISE_SHARE, PlantedGame, plant, scores
from result_tables import HERE, Row, Table, describe_machine, options, print_table, to_markdown, verdict

OWN = "absentia"
ASKED = "absentia, max_terms"
RIVALS = ("SPEX", "ProxySPEX")
FRESH = 5000  # coalitions
FRESH_SEED = 2**20  # apart from the seeds of fits
STRONGEST = (10, 30, 100, 300)  # terms
CUT = 0.05  # of the largest effect, above which a set counts as found
COMPILED_PLAYERS = 12
COMPILED_EVALUATIONS = 400
FIDELITY_GOAL = 0.02
FIDELITY_SHARE = 0.9  # of the checks
PLANTED = "planted"
TITLE = "Few terms for many players"


@dataclass(frozen=True)
class Effort:
    """How much is measured."""

    games: tuple[str, ...]
    samples: int  # explained by absentia, for checks of fidelity
    compared: int  # of these, explained by every method
    multiples: tuple[int, ...]  # evaluations for each player
    planted_players: tuple[int, ...]
    planted_multiples: tuple[int, ...]
    planted_draws: int
    peers: tuple[str, ...]
    planted_peers: tuple[str, ...]


FULL = Effort(
    games=tuple(MAKERS),
    samples=3,
    compared=1,
    multiples=(10, 40),
    planted_players=(20, 64, 256),
    planted_multiples=(10, 20, 40),
    planted_draws=2,
    peers=tuple(FITTERS),
    planted_peers=("SPEX", "ProxySPEX", "LightGBM", "LASSO on pairs"),
)
QUICK = Effort(
    games=("tumours",),
    samples=1,
    compared=1,
    multiples=(10,),
    planted_players=(20,),
    planted_multiples=(10,),
    planted_draws=1,
    peers=("LASSO on pairs",),
    planted_peers=("LASSO on pairs",),
)


def explained(values: np.ndarray, predicted: np.ndarray) -> float:
    """Return R², the share of the variance of values that predictions account for."""
    return float(1 - np.mean((values - predicted) ** 2) / values.var())


@dataclass(frozen=True, eq=False)
class Fresh:
    """Coalitions other than ∅ and N, which every fit sees, and their values."""

    by_size: np.ndarray
    alike: np.ndarray
    values_by_size: np.ndarray
    values_alike: np.ndarray

    @classmethod
    def of(cls, game: ab.Game) -> Fresh:
        """Draw coalitions, and evaluate them."""
        players = len(game.names)
        by_size = drawn_by_size(players, FRESH, FRESH_SEED)
        alike = drawn_alike(players, FRESH, FRESH_SEED)
        values = ValuesOfRows(game)
        return cls(by_size, alike, values(by_size), values(alike))

    def judge(self, found: Found) -> dict[str, Any]:
        """Return how much of the variation terms account for."""
        strongest = {
            str(count): explained(self.values_by_size, found.predict(self.by_size, count)) for count in STRONGEST
        }
        return {
            "terms": found.terms,
            "by size": explained(self.values_by_size, found.predict(self.by_size)),
            "alike": explained(self.values_alike, found.predict(self.alike)),
            "strongest": strongest,
        }


@dataclass(frozen=True, eq=False)
class Fit:
    """What a method found, and what it took."""

    found: Found
    seconds: float
    evaluations: int


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute in one thread, also where a fit before has changed that: the compiler that SPEX uses does."""
    torch.set_num_threads(1)
    with threadpool_limits(1):
        yield


def fit_own(game: ab.Game, evaluations: int, seed: int, max_terms: int | None = None) -> Fit:
    """Find terms by absentia."""
    with one_thread():
        began = time.process_time()
        terms = ab.interactions(game, evaluations=evaluations, seed=seed, max_terms=max_terms)
        return Fit(OwnTerms(terms), time.process_time() - began, terms.evaluations)


def fit_peer(name: str, game: ab.Game, evaluations: int, seed: int) -> Fit | None:
    """Find terms by a peer; None if the budget is too small for it."""
    values = ValuesOfRows(game)
    with one_thread():
        compile_peer(name)
        began = time.process_time()
        found = fit_quietly(name, values, len(game.names), evaluations, seed)
        if found is None:
            return None
        return Fit(found, time.process_time() - began, values.evaluations)


@cache
def compile_peer(name: str) -> None:
    """Fit a peer to a small game once, so that the compilation of its code does not count as its time."""
    game = plant(COMPILED_PLAYERS, seed=0)
    fit_quietly(name, ValuesOfRows(game), COMPILED_PLAYERS, COMPILED_EVALUATIONS, seed=0)


def fit_all(game: ab.Game, evaluations: int, seed: int, peers: tuple[str, ...]) -> dict[str, Fit | None]:
    """Find terms by every method; check that none evaluates more than its budget."""
    fits: dict[str, Fit | None] = {OWN: fit_own(game, evaluations, seed)}
    for name in peers:
        if can_fit(name, len(game.names)):
            fits[name] = fit_peer(name, game, evaluations, seed)
    for name, fit in fits.items():
        if fit is not None and fit.evaluations > evaluations:
            over = f"{name} took {fit.evaluations}"
            raise RuntimeError(f"Methods must evaluate at most {evaluations} coalitions. {over} instead.")
    return fits


def measure_game(played: ManyPlayers, effort: Effort) -> dict[str, Any]:
    """Find terms of each sample by every method, and judge them by fresh coalitions."""
    budgets = []
    samples = 1 if played.slow else played.samples
    fresh = [Fresh.of(played.game(sample)) for sample in range(samples)]
    for multiple in effort.multiples:
        evaluations = multiple * played.count
        methods: dict[str, list[dict[str, Any]]] = {}
        checks = []
        for sample in range(samples):
            is_compared = sample < effort.compared
            peers = effort.peers if is_compared else ()
            for name, fit in fit_all(played.game(sample), evaluations, sample, peers).items():
                if fit is None:
                    continue
                judged = fresh[sample].judge(fit.found)
                judged |= {"seconds": fit.seconds, "evaluations": fit.evaluations}
                if is_compared:
                    methods.setdefault(name, []).append(judged)
                if isinstance(fit.found, OwnTerms):
                    checks.append(check_of_fidelity(fit.found.found, judged["by size"]))
            if is_compared and not played.slow:
                asked = judge_asked(played.game(sample), evaluations, sample, fresh[sample])
                methods.setdefault(ASKED, []).append(asked)
        budgets.append(
            {"multiple": multiple, "evaluations": evaluations, "methods": methods, "fidelity": checks},
        )
        shown = ", ".join(f"{name} {mean_of(judged, 'by size'):.3f}" for name, judged in methods.items())
        print(f"{played.name}, {evaluations:,} evaluations, R²: {shown}", flush=True)
    return {
        "description": played.description,
        "players": played.count,
        "samples": samples,
        "budgets": budgets,
    }


def judge_asked(game: ab.Game, evaluations: int, seed: int, fresh: Fresh) -> dict[str, Any]:
    """Ask absentia for the best sum of so many terms, for each number, from the same coalitions."""
    fits = {count: fit_own(game, evaluations, seed, max_terms=count) for count in STRONGEST}
    judged = fresh.judge(fits[STRONGEST[-1]].found)
    for count, fit in fits.items():
        judged["strongest"][str(count)] = explained(fresh.values_by_size, fit.found.predict(fresh.by_size))
    judged["seconds"] = float(np.mean([fit.seconds for fit in fits.values()]))
    judged["evaluations"] = max(fit.evaluations for fit in fits.values())
    return judged


def mean_of(judged: list[dict[str, Any]], figure: str) -> float:
    return float(np.mean([one[figure] for one in judged]))


def check_of_fidelity(terms: ab.Terms, shown: float) -> dict[str, Any]:
    """Compare the fidelity that terms state with R² on fresh coalitions; terms without one are exact."""
    stated = 1.0
    error = 0.0
    if terms.fidelity is not None:
        stated = float(terms.fidelity)
    if terms.fidelity_error is not None:
        error = float(terms.fidelity_error)
    allowed = max(FIDELITY_GOAL, 2 * error)
    within = abs(stated - shown) <= allowed
    return {"stated": stated, "error": error, "shown": shown, "within": within}


def measure_planted(effort: Effort) -> Iterator[dict[str, Any]]:
    """Find the planted sets by every method; yield what was measured at every budget."""
    for players in effort.planted_players:
        for multiple in effort.planted_multiples:
            evaluations = multiple * players
            methods: dict[str, list[dict[str, Any]]] = {}
            checks = []
            for draw in range(effort.planted_draws):
                game = plant(players, draw)
                fresh = Fresh.of(game)
                for name, fit in fit_all(game, evaluations, draw, effort.planted_peers).items():
                    judged: dict[str, Any] = {"F1": 0.0, "F1 at the best cut": 0.0}
                    if fit is not None:
                        judged = judge_sets(fit.found, game) | fresh.judge(fit.found)
                        judged |= {"seconds": fit.seconds, "evaluations": fit.evaluations}
                        if isinstance(fit.found, OwnTerms):
                            checks.append(check_of_fidelity(fit.found.found, judged["by size"]))
                    methods.setdefault(name, []).append(judged)
            shown = ", ".join(f"{name} {mean_of(judged, 'F1'):.2f}" for name, judged in methods.items())
            print(f"planted among {players}, {evaluations:,} evaluations, F1: {shown}", flush=True)
            yield {
                "players": players,
                "multiple": multiple,
                "evaluations": evaluations,
                "planted": len(plant(players, 0).sets),
                "methods": methods,
                "fidelity": checks,
            }


def with_row(planted: list[dict[str, Any]], measured: dict[str, Any]) -> list[dict[str, Any]]:
    """Add what was measured at one budget, in the place of what was measured there before."""
    rows = {(row["players"], row["multiple"]): row for row in (*planted, measured)}
    return [rows[place] for place in sorted(rows)]


def judge_sets(found: Found, game: PlantedGame) -> dict[str, float]:
    """Compare sets that a method found with those that were planted."""
    effects = found.effects()
    planted = set(game.sets)
    ranked = sorted(effects, key=lambda members: -abs(effects[members]))
    least = CUT * max((abs(effect) for effect in effects.values()), default=0.0)
    beyond = {members for members in ranked if abs(effects[members]) > least}
    most = 4 * len(planted)  # a longer list has an F1 of less than a half at best
    best = max((scores(set(ranked[:count]), planted) for count in range(1, most + 1)), default=0.0)
    return {"F1": scores(beyond, planted), "F1 at the best cut": max(best, scores(beyond, planted))}


def explained_rows(games: dict[str, Any]) -> list[Row]:
    """Return R² of fresh coalitions, a row for each game, budget and method."""
    rows: list[Row] = []
    for found in games.values():
        for budget in found["budgets"]:
            for name in (OWN, ASKED, *FITTERS):
                judged = budget["methods"].get(name)
                if judged is None:
                    continue
                row: Row = {
                    "game": found["description"],
                    "players": found["players"],
                    "budget": f"{budget['evaluations']:,} = {budget['multiple']} n",
                    "method": name,
                    "evaluations": round(mean_of(judged, "evaluations")),
                    "terms": round(mean_of(judged, "terms")),
                    "R², sizes alike": mean_of(judged, "by size"),
                    "R², coalitions alike": mean_of(judged, "alike"),
                }
                for count in STRONGEST:
                    row[f"R² of {count}"] = float(np.mean([one["strongest"][str(count)] for one in judged]))
                row["CPU seconds"] = mean_of(judged, "seconds")
                rows.append(row)
    return rows


def planted_rows(planted: list[dict[str, Any]]) -> list[Row]:
    """Return F1, a row for each game and budget."""
    rows: list[Row] = []
    for measured in planted:
        methods = measured["methods"]
        row: Row = {
            "players": measured["players"],
            "planted sets": measured["planted"],
            "evaluations": f"{measured['evaluations']:,} = {measured['multiple']} n",
        }
        for name in (OWN, *FULL.planted_peers):
            row[name] = mean_of(methods[name], "F1") if name in methods else None
            row[f"{name}, best cut"] = mean_of(methods[name], "F1 at the best cut") if name in methods else None
        row["at or above SPEX and ProxySPEX"] = verdict(beats_rivals(methods))
        rows.append(row)
    return rows


def beats_rivals(methods: dict[str, Any]) -> bool:
    """Return whether absentia's F1 is at or above that of SPEX and ProxySPEX."""
    rivals = [name for name in RIVALS if name in methods]
    return all(mean_of(methods[OWN], "F1") >= mean_of(methods[name], "F1") for name in rivals)


def predicts_best(methods: dict[str, Any]) -> bool:
    """Return whether absentia's R² is at or above that of every peer."""
    peers = [name for name in methods if name in FITTERS]
    return all(mean_of(methods[OWN], "by size") >= mean_of(methods[name], "by size") for name in peers)


def fidelity_rows(record: dict[str, Any]) -> list[Row]:
    """Return the stated and the shown fidelity, a row for each game and budget."""
    named = [(found["description"], budget) for found in record["games"].values() for budget in found["budgets"]]
    named += [(f"planted among {one['players']}", one) for one in record.get(PLANTED, [])]
    rows: list[Row] = []
    for name, budget in named:
        checks = budget["fidelity"]
        rows.append(
            {
                "game": name,
                "evaluations": budget["evaluations"],
                "stated": mean_of(checks, "stated"),
                "stated error": mean_of(checks, "error"),
                "shown": mean_of(checks, "shown"),
                "furthest apart": max(abs(check["stated"] - check["shown"]) for check in checks),
                "within": f"{sum(check['within'] for check in checks)} of {len(checks)}",
            }
        )
    return rows


def goal_rows(record: dict[str, Any]) -> list[Row]:
    """Return the goals with what was reached."""
    rows: list[Row] = []
    planted = record.get(PLANTED, [])
    if planted:
        beaten = sum(beats_rivals(measured["methods"]) for measured in planted)
        goal = "F1 at or above SPEX and ProxySPEX in every row"
        rows.append(
            {"goal": goal, "reached": f"{beaten} of {len(planted)}", "verdict": verdict(beaten == len(planted))}
        )
    budgets = [budget for found in record["games"].values() for budget in found["budgets"]] + planted
    compared = [budget["methods"] for found in record["games"].values() for budget in found["budgets"]]
    if compared:
        explained_best = sum(predicts_best(methods) for methods in compared)
        goal = "R² of fresh coalitions, sizes alike, at or above every other method in every row"
        reached = f"{explained_best} of {len(compared)}"
        rows.append({"goal": goal, "reached": reached, "verdict": verdict(explained_best == len(compared))})
    checks = [check["within"] for budget in budgets for check in budget["fidelity"]]
    if checks:
        goal = (
            f"fidelity within {FIDELITY_GOAL:g} or two stated errors of {FRESH:,} fresh coalitions, nine of ten times"
        )
        met = np.mean(checks) >= FIDELITY_SHARE
        rows.append({"goal": goal, "reached": f"{sum(checks)} of {len(checks)}", "verdict": verdict(bool(met))})
    return rows


def to_tables(record: dict[str, Any]) -> list[Table]:
    """Return all that was measured as tables."""
    left_out = ", ".join(record["left out"]) or "none"
    tables = [
        Table("Goals", f"Games left out, because their data could not be had: {left_out}.", goal_rows(record)),
        Table(
            "Fresh coalitions",
            f"R² on {FRESH:,} fresh coalitions other than ∅ and N, for the first sample: with sizes drawn alike, as "
            "fidelity is measured, and with all coalitions drawn alike, as SPEX and ProxySPEX draw theirs. The "
            "columns of 10 to 300: by the constant and so many of the strongest terms of a method's own basis, sizes "
            "alike: Walsh for SPEX and ProxySPEX, AND for LightGBM and LASSO, the one that it chose for absentia. "
            "With max_terms, absentia searches so many terms from the same coalitions; other columns are of 300, "
            "CPU seconds those of one search. It is left out where models are slow. "
            "ProxySPEX with sizes alike gets coalitions as fidelity is measured. Missing rows: the budget is too "
            "small for SPEX, or the players are too many.",
            explained_rows(record["games"]),
        ),
        Table(
            "Planted sets",
            "F1 of the sets found, mean over draws. Orders 1 to 5 in turn, weights from ±0.5 to ±1.5, noise of "
            f"{NOISE_SHARE:.0%} of the variance over all coalitions. Of every method, effects in the AND basis are "
            "read, into which its own terms are converted exactly; a set is found if its effect is above "
            f"{CUT:.0%} of the largest one. Best cut: at the number of strongest sets with the best F1, which nobody "
            "knows who has not planted them. 0 where the budget is too small for SPEX.",
            planted_rows(record.get(PLANTED, [])),
        ),
        Table(
            "Fidelity",
            f"The R² that absentia states, and what {FRESH:,} fresh coalitions show, sizes alike; sample means.",
            fidelity_rows(record),
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
    command = f"python {HERE.name}/interactions.py"
    (folder / "interactions.md").write_text(to_markdown(TITLE, command, machine, tables))
    written = {
        "command": command,
        "machine": machine,
        "tables": [asdict(table) for table in tables],
        "measured": record,
    }
    (folder / "interactions.json").write_text(json.dumps(written, indent=2, ensure_ascii=False) + "\n")


def run(chosen: argparse.Namespace) -> None:
    """Measure games and parts, and write after each."""
    effort = QUICK if chosen.quick else FULL
    folder = chosen.output or HERE / "results"
    file = folder / "interactions.json"
    machine = describe_machine()
    for name in chosen.only or (*effort.games, PLANTED):
        began = time.perf_counter()
        if name == PLANTED:
            for measured in measure_planted(effort):
                record = read_record(file)  # read after measuring, because other games may run at the same time
                record[PLANTED] = with_row(record.get(PLANTED, []), measured)
                write_record(folder, record, machine)
        else:
            played = make(name, effort.samples)
            found = None if played is None else measure_game(played, effort)
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
    parser = options(__doc__, "one game and one planted game, some seconds")
    names = [*MAKERS, PLANTED]
    parser.add_argument("--only", nargs="+", choices=names, metavar="NAME", help=f"some of {', '.join(names)}")
    chosen = parser.parse_args()
    if chosen.quick and chosen.output is None:
        parser.error("--quick needs --output")
    with one_thread():
        run(chosen)


if __name__ == "__main__":
    main()
