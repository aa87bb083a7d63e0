"""Measure the report of 200 samples with 16 players: its size, and the time to write and to open it.

    python benchmarks/report.py                         # a minute; writes results/report.md and .json
    python benchmarks/report.py --quick --output DIR    # a smoke test of a few seconds

Opening is timed in Chromium, from requesting the file until all charts are drawn. Reported are the least and the
median time of several openings, each in a fresh window.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import torch

import absentia as ab
from absentia.explanation import ExplanationRecord
from absentia.readout_notes import ReadoutNote
from result_tables import Row, Table, describe_machine, options, print_table, verdict, write

SIZE_GOAL = 5.0  # megabytes
OPENING_GOAL = 2.0  # seconds


@dataclass(frozen=True)
class Plan:
    """How large."""

    samples: int
    players: int
    openings: int


FULL = Plan(samples=200, players=16, openings=7)
QUICK = Plan(samples=5, players=8, openings=2)


def explanation(plan: Plan) -> ab.Explanation:
    """Make up an explanation from random effects, which are the hardest to trim because none is small."""
    generator = torch.Generator().manual_seed(0)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    effects = draw(plan.samples, 2**plan.players)
    players = ab.Players.features([f"measurement number {player}" for player in range(plan.players)])
    noise = torch.full((plan.samples,), 1e-12, dtype=torch.float64)
    interactions = ab.Interactions(effects, players.names, "drawn", noise, effects.numel())
    return ab.Explanation(
        x=draw(plan.samples, plan.players),
        y=None,
        players=players,
        outputs=effects.sum(1),
        base_values=effects[:, 0].clone(),
        shapley=interactions.shapley(),
        order_shapley=ab.OrderAttribution(
            draw(plan.samples, plan.players, plan.players),
            evaluations=effects.numel(),
            names=players.names,
            kind="order-wise Shapley values",
            readout="drawn",
            orders=tuple(range(plan.players)),
        ),
        interactions=interactions,
        stand_ins=draw(plan.samples, plan.players),
        record=ExplanationRecord(ReadoutNote.in_words("drawn"), "drawn", True, effects.numel(), 0.0, 0),
    )


def opening_seconds(path: Path, times: int) -> list[float]:
    """Open a page several times and return the times; return no times without Chromium."""
    chromium = shutil.which("chromium")
    if chromium is None:
        return []
    from playwright.sync_api import sync_playwright

    seconds = []
    with sync_playwright() as running:
        browser = running.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for _ in range(times):
            page = browser.new_page()
            began = time.perf_counter()
            page.goto(path.as_uri())
            page.wait_for_selector("html[data-ready=yes]", state="attached")
            seconds.append(time.perf_counter() - began)
            page.close()
        browser.close()
    return seconds


def measure(plan: Plan) -> Table:
    """Write the report, and open it."""
    found = explanation(plan)
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        path = ab.write_report(found, Path(folder) / "report.html")
        writing = time.perf_counter() - began
        size = path.stat().st_size / 1e6
        openings = opening_seconds(path, plan.openings)
    row: Row = {"samples": plan.samples, "players": plan.players, "size, MB": size, "writing, s": writing}
    if openings:
        row |= {"opening, s (least)": min(openings), "opening, s (median)": statistics.median(openings)}
        met = size < SIZE_GOAL and statistics.median(openings) < OPENING_GOAL
    else:
        met = size < SIZE_GOAL
    row |= {"goal": f"< {SIZE_GOAL:g} MB, < {OPENING_GOAL:g} s", "verdict": verdict(met)}
    note = (
        "Effects drawn at random; exact Shapley values by order, interactions, inputs and stand-ins of every sample."
    )
    return Table(
        "One explanation as a page", note if openings else f"{note} No Chromium was there to open it.", [row]
    )


def main() -> None:
    chosen = options(__doc__, "a small report, seconds").parse_args()
    machine = describe_machine()
    table = measure(QUICK if chosen.quick else FULL)
    print_table(table)
    write("report", "The report: size and speed", machine, [table], chosen)


if __name__ == "__main__":
    main()
