"""Measure the reliability of the library, and write the figures to docs/reliability.md.

    python benchmarks/reliability.py                  # all of it: about two hours
    python benchmarks/reliability.py faults soak      # some of it; the page keeps the other figures
    python benchmarks/reliability.py --page-only      # write the page again from the stored figures
    python benchmarks/reliability.py --quick --output DIR

Figures are stored in results/reliability.json. The page is generated from this file alone.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any

import torch
from torch import nn

import absentia as ab
from result_tables import HERE, Row, Table, describe_machine, options, print_table, to_markdown, verdict

ROOT = HERE.parent
sys.path.insert(0, str(ROOT / "tests"))
from fuzz.faults import FAULTS  # type: ignore[import-not-found]  # noqa: E402
from fuzz.fuzzing import fuzz  # type: ignore[import-not-found]  # noqa: E402
from fuzz.soak import soak  # type: ignore[import-not-found]  # noqa: E402

PAGE = ROOT / "docs" / "reliability.md"
QUICK_FAULT = "A limit on the size of files"
# The goals, as shares: of statements that the tests run, of mutants that they notice, and of growth in memory.
COVERED = 0.95
KILLED = 0.85
GROWTH = 0.02


def malformed(quick: bool) -> Table:
    """Call public functions with malformed arguments, and load damaged files."""
    rows: list[Row] = []
    for seed in (0,) if quick else (0, 1, 2, 3):
        counts, wrong = fuzz(seed, seconds=3 if quick else 120)
        print(*wrong, sep="\n", end="\n" * bool(wrong))
        rows.append(
            {
                "seed": seed,
                "calls and files": f"{sum(counts.values()):,}",
                "a sentence": f"{counts['sentence']:,}",
                "a result": f"{counts['result']:,}",
                "another error": counts["raw"],
                "changed the user's objects": sum("changed what" in text for text in wrong),
            }
        )
    note = "Calls have one or two arguments of the wrong type. "
    note += "Every fifth item is a file that is truncated or has a flipped bit."
    return Table("Malformed calls and damaged files", note, rows)


def faults(quick: bool) -> Table:
    """Inject every fault."""
    rows: list[Row] = []
    for title, inject in FAULTS.items():
        if quick and title != QUICK_FAULT:
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                seen = inject(Path(folder))
            except (AssertionError, OSError, subprocess.SubprocessError) as error:
                seen = f"failed: {error!s:.200}"
        rows.append({"fault": title, "what was seen": seen})
    return Table("Faults", "Each fault is injected into a separate process.", rows)


def concurrent(quick: bool) -> Table:
    """Explain on two threads at once, and compare with one."""
    pairs = 3 if quick else 100
    rows: list[Row] = []
    shape = (nn.Linear(6, 12), nn.BatchNorm1d(12), nn.Tanh(), nn.Linear(12, 3))
    cases: dict[str, tuple[nn.Module, ab.Readout | None]] = {
        "dropout": (nn.Sequential(nn.Linear(6, 12), nn.Dropout(), nn.Linear(12, 3)), None),
        "batch normalisation": (nn.Sequential(*shape), None),
        "features of a layer": (nn.Sequential(*shape), ab.Features("2")),
    }
    for name, (model, readout) in cases.items():
        torch.manual_seed(0)
        model.train()
        before = {key: value.clone() for key, value in model.state_dict().items()}
        batches = torch.randn(2 * pairs, 4, 6)
        coalitions = ab.enumerate_coalitions(6)

        def work(x: torch.Tensor, model: nn.Module = model, readout: ab.Readout | None = readout) -> torch.Tensor:
            game = ab.MaskedModel(model, x, 0 if readout is None else None, absence=0.0, readout=readout)
            return game(coalitions)  # noqa: B023  the same for all

        alone = [work(x) for x in batches]
        with ThreadPoolExecutor(2) as threads:
            together = list(threads.map(work, batches))
        same = sum(
            torch.equal(alone[i], together[i]) and torch.equal(alone[i + 1], together[i + 1])
            for i in range(0, 2 * pairs, 2)
        )
        kept = all(torch.equal(before[key], value) for key, value in model.state_dict().items()) and model.training
        rows.append({"model": name, "pairs": pairs, "equal to one thread": same, "model unchanged": str(kept)})
    return Table("Two threads on one model", "The model is in training mode when it is passed.", rows)


def numerics(quick: bool) -> Table:
    """Compare the effects of v(S) = Π_{i∈S}(1 + xᵢ) with the exact ones, U(S) = Π_{i∈S} xᵢ, by order."""
    players = 8 if quick else 20
    x = torch.linspace(-0.9, 0.95, players).double()
    exact = reduce(lambda known, one: torch.cat([known, known * one]), x, torch.ones(1).double())
    sizes = ab.enumerate_coalitions(players).sum(1)
    found = {
        name: ab.harsanyi(ab.MaskedModel(lambda rows: (1 + rows).prod(1), x[None].to(dtype), absence=0.0))
        for name, dtype in (("single", torch.float32), ("double", torch.float64))
    }
    # In single precision the inputs are rounded first, so the exact effects are those of the rounded inputs.
    rounded = reduce(lambda known, one: torch.cat([known, known * one]), x.float().double(), torch.ones(1).double())
    rows: list[Row] = []
    for order in range(1, players + 1):
        row: Row = {"order": order, "largest effect": float(exact[sizes == order].abs().max())}
        for name, truth in (("single", rounded), ("double", exact)):
            error = float((found[name].effects[0] - truth)[sizes == order].abs().max())
            row |= {f"{name}: error": error, f"{name}: error / floor": error / float(found[name].floor[0, order])}
        rows.append(row)
    note = (
        f"All {2**players:,} effects of v(S) = Π_(i∈S)(1 + xᵢ) with {players} players are compared with their "
        "closed form. absentia treats effects below the floor as not measurable."
    )
    return Table("Errors of effects by order", note, rows)


def memory(quick: bool) -> Table:
    """Explain many times in one process."""
    count = 100 if quick else 2000
    before, after = soak(count)
    flat = after < (1 + GROWTH) * before
    row: Row = {
        "explanations": count,
        "MiB after a quarter": before / 2**20,
        "MiB at the end": after / 2**20,
        "growth": f"{after / before - 1:+.2%}",
        "goal": f"< {GROWTH:.0%}",
        "verdict": verdict(flat),
    }
    return Table("Memory over many explanations", "One process explains new models and samples over and over.", [row])


def coverage(quick: bool) -> Table:
    """Run the tests of the library, and measure which lines they cover."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        found = Path(folder) / "found.json"
        start = [sys.executable, "-m", "coverage"]
        chosen = ["tests/test_coalitions.py"] if quick else ["tests", "src", "--ignore", "tests/experiments"]
        settings = ["--data-file", str(data), "--source", str(ROOT / "src" / "absentia")]
        run = [*start, "run", *settings, "-m", "pytest", "-q", "-p", "no:cacheprovider", *chosen]
        tests = subprocess.run(run, cwd=ROOT, check=False, capture_output=True, text=True)
        print(*[line for line in tests.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))], sep="\n")
        subprocess.run([*start, "json", "--data-file", str(data), "-o", str(found)], check=True, capture_output=True)
        record = json.loads(found.read_text())
    rooms: dict[str, list[int]] = {}
    for path, one in record["files"].items():
        room = Path(path).relative_to("src/absentia").parts[0] if path.startswith("src") else Path(path).name
        counts = rooms.setdefault(room, [0, 0])
        counts[0] += one["summary"]["num_statements"]
        counts[1] += one["summary"]["covered_lines"]
    rows: list[Row] = [
        {"room": room, "statements": counts[0], "run by tests": f"{counts[1] / max(1, counts[0]):.1%}"}
        for room, counts in sorted(rooms.items())
        if counts[0]
    ]
    share = record["totals"]["covered_lines"] / record["totals"]["num_statements"]
    note = f"{share:.1%} of all statements; goal: at least {COVERED:.0%}, {verdict(share >= COVERED)}. "
    note += "Lines that only run in other processes do not count."
    return Table("Lines that the tests run", note, rows)


def mutants(quick: bool) -> Table:
    """Change the code in one place at a time, and count the changes that the tests notice."""
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder) / "counts.json"
        chosen = ["coalitions.py", "--count", "2"] if quick else []
        # A process that has not imported absentia.
        run = [sys.executable, str(HERE / "mutants.py"), "--output", str(kept), *chosen]
        subprocess.run(run, check=True)
        counts = json.loads(kept.read_text())
    rows: list[Row] = []
    for module, found in counts.items():
        share = found["noticed"] / found["drawn"]
        rows.append(
            {
                "module": module,
                "mutants": f"{found['drawn']} of {found['all']:,}",
                "noticed": found["noticed"],
                "of these without an end": found["endless"],
                "share": f"{share:.0%}",
                "goal": f"{KILLED:.0%}",
                "verdict": verdict(share >= KILLED),
            }
        )
    note = "Mutants are drawn at random from those of cosmic-ray, except mutants of annotations, which are never "
    note += "evaluated. Only the tests of the mutated module run, and only those that take up to a second. Mutants "
    note += "that only change the speed count as not noticed."
    return Table("Mutants", note, rows)


MEASURES: dict[str, Callable[[bool], Table]] = {
    "malformed": malformed,
    "faults": faults,
    "threads": concurrent,
    "numerics": numerics,
    "memory": memory,
    "coverage": coverage,
    "mutants": mutants,
}


@dataclass(frozen=True)
class Part:
    """One table, with the version of absentia and the machine that it was measured with."""

    version: str
    machine: dict[str, str]
    table: Table

    def dated(self) -> Table:
        """Return the table with the version and the processor in its note."""
        sentence = f"Measured with absentia {self.version} on {self.machine['CPU']}"
        if self.version != ab.__version__:
            sentence += "; its modules may have had other names"
        return replace(self.table, note=f"{self.table.note} {sentence}.")


def read_part(record: dict[str, Any]) -> Part:
    """Return a part that was saved."""
    return Part(record["version"], record["machine"], Table(**record["table"]))


def newest(parts: Sequence[Part]) -> Part:
    """Return the first part of today's version, or else the first part."""
    of_today = [part for part in parts if part.version == ab.__version__]
    return (of_today or list(parts))[0]


def main(arguments: argparse.Namespace) -> None:
    folder = arguments.output or (Path(tempfile.mkdtemp()) if arguments.quick else HERE / "results")
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / "reliability.json"
    record = json.loads(kept.read_text()) if kept.exists() else {}
    names = [] if arguments.page_only else arguments.names or list(MEASURES)
    for name in names:
        table = MEASURES[name](arguments.quick)
        print_table(table)
        record[name] = asdict(Part(ab.__version__, describe_machine(), table))
        kept.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n")
    parts = [read_part(record[name]) for name in MEASURES if name in record]
    machine = newest(parts).machine
    page = to_markdown("Reliability", "python benchmarks/reliability.py", machine, [part.dated() for part in parts])
    (folder / "reliability.md" if arguments.quick or arguments.output else PAGE).write_text(page)


if __name__ == "__main__":
    parser = options(__doc__, "a minute")
    parser.add_argument("--page-only", action="store_true", help="write the page from stored figures alone")
    parser.add_argument("names", nargs="*", choices=[[], *MEASURES], metavar="NAME", help=f"of {', '.join(MEASURES)}")
    main(parser.parse_args())
