"""Measure the speedup by more workers, and the cost of a unit of work in time, memory and bytes.

    python benchmarks/scaling.py                        # a few minutes; writes results/scaling.md and .json, and the
                                                        # table in docs/scaling.md
    python benchmarks/scaling.py --quick --output DIR   # a smoke test of half a minute

One worker and two are measured in turn on a local Dask cluster, so the speedup is meaningful but not the time itself.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import statistics
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import cloudpickle
import distributed
import joblib
import torch
from torch import nn

import absentia as ab
from audit import TimedLeNet
from result_tables import Row, Table, describe_machine, options, print_table, to_markdown, verdict, write

EFFICIENCY_GOAL = 0.85
PAGE = Path(__file__).parents[1] / "docs" / "scaling.md"
MARK = "<!-- measured by benchmarks/scaling.py: not to be edited below -->\n"
MILLION = 10**6


@dataclass(frozen=True)
class Plan:
    """How large."""

    samples: int
    cells: tuple[int, int]
    rounds: int
    pixels: int  # the side of the images of the large network
    rows: int


FULL = Plan(samples=64, cells=(7, 2), rounds=3, pixels=224, rows=32)
QUICK = Plan(samples=4, cells=(3, 2), rounds=1, pixels=32, rows=2)


def efficiency(plan: Plan) -> Table:
    """Explain images with a LeNet in one process and with two workers, in turn."""
    torch.set_num_threads(1)  # this process is the worker if there is only one; workers of Dask have one thread each
    model = TimedLeNet().layers
    images = torch.rand(plan.samples, 1, 28, 28, generator=torch.Generator().manual_seed(0))
    players = ab.Players.grid((1, 28, 28), cells=plan.cells)
    seconds: dict[int, list[float]] = {1: [], 2: []}
    found = {}
    for _ in range(plan.rounds):
        for workers in seconds:
            settings = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": None, "silence_logs": 50}
            with (
                distributed.LocalCluster(**settings) as cluster,
                distributed.Client(cluster),
                joblib.parallel_config("dask"),
            ):
                ab.explain(model, images[:2], 0, absence=0.0, players=players, batch_size=64)  # workers load absentia
                began = time.perf_counter()
                found[workers] = ab.explain(model, images, 0, absence=0.0, players=players)
                seconds[workers].append(time.perf_counter() - began)
    one, two = (statistics.median(seconds[workers]) for workers in (1, 2))
    row: Row = {
        "samples": plan.samples,
        "players": len(players),
        "evaluations": found[1].shapley.evaluations,
        "one process, s": one,
        "two workers, s": two,
        "efficiency": one / (2 * two),
        "goal": f"≥ {EFFICIENCY_GOAL}",
        "verdict": verdict(one / (2 * two) >= EFFICIENCY_GOAL),
        "same numbers": str(torch.equal(found[1].shapley.values, found[2].shapley.values)),
    }
    note = f"A LeNet on random images; medians of {plan.rounds} rounds in turn, one thread each."
    return Table("Two workers of a Dask cluster against one process", note, [row])


def large_network() -> nn.Sequential:
    """Return a network as large as those for ImageNet: the convolutions of VGG-11 and a linear layer."""
    layers: list[nn.Module] = []
    before = 3
    for width, pool in ((64, 1), (128, 1), (256, 0), (256, 1), (512, 0), (512, 1), (512, 0), (512, 1)):
        layers += [nn.Conv2d(before, width, 3, padding=1), nn.ReLU(), *[nn.MaxPool2d(2)] * pool]
        before = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000)).eval()


def unit_costs(plan: Plan) -> Table:
    """Measure rows per second, and extrapolate to a million samples and a network for ImageNet."""
    torch.manual_seed(0)
    network = large_network()
    rows = torch.rand(plan.rows, 3, plan.pixels, plan.pixels)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with torch.no_grad():
        network(rows[:1])
        began = time.perf_counter()
        for row in rows.split(4):
            network(row)
        per_row = (time.perf_counter() - began) / len(rows)
    torch.set_num_threads(threads)
    sent = len(cloudpickle.dumps(network))
    # A fresh process, for its peak memory.
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as worker:
        held = worker.submit(peak_memory, plan.rows, plan.pixels).result()
    table: list[Row] = []
    explanations = (
        ("sampled, 196 cells", 196, 4096),
        ("exact, 10 segments", 10, 2**10),
        ("exact, 16 cells", 16, 2**16),
    )
    for how, players, evaluations in explanations:
        result = 8 * (2**players if players <= 24 else 2 * players)
        table.append(
            {
                "explanation": how,
                "evaluations of a sample": f"{evaluations:,}",
                "evaluations": f"{MILLION * evaluations:.2g}",
                "core-hours, by the measured rate": f"{MILLION * evaluations * per_row / 3600:,.0f}",
                "on 1,000 cores, days": f"{MILLION * evaluations * per_row / 3600 / 24 / 1000:,.1f}",
                "sent to workers": f"{(MILLION * rows[0].nbytes) / 2**30:,.0f} GiB of samples",
                "returned": f"{MILLION * result / 2**30:,.0f} GiB",
            }
        )
    note = (
        f"Measured: {1 / per_row:.1f} rows a second on one core, for the convolutions of VGG-11 on {plan.pixels} × "
        f"{plan.pixels} pixels ({sum(one.numel() for one in network.parameters()) / 1e6:.1f} million weights, "
        f"{sent / 2**20:.0f} MiB, sent to a worker once for each call). A worker held {held / 2**20:,.0f} MiB at "
        "most, with Python and torch; values of its samples come on top, 8 bytes for each coalition of an exact "
        "explanation. Hours are evaluations by this rate; a GPU does them as many times faster as its rate of rows "
        "is higher."
    )
    return Table("A million samples of a network of ImageNet's size", note, table)


def peak_memory(rows: int, pixels: int) -> int:
    """Evaluate masked images with the large network, as a worker does, and return the peak memory in bytes."""
    torch.set_num_threads(1)
    players = ab.Players.grid((3, pixels, pixels), cells=(4, 4))
    game = ab.MaskedModel(large_network(), torch.rand(1, 3, pixels, pixels), 0, absence=0.0, players=players)
    game(ab.enumerate_coalitions(16, 0, rows))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def write_page(page: Path, machine: dict[str, str], tables: list[Table]) -> None:
    """Replace everything below the mark on a page with the tables."""
    head = page.read_text().split(MARK)[0]
    body = to_markdown("Measured", "python benchmarks/scaling.py", machine, tables)
    page.write_text(head + MARK + "\n" + body.replace("\n## ", "\n### ").replace("# Measured", "## Measured", 1))


def main(arguments: argparse.Namespace) -> None:
    plan = QUICK if arguments.quick else FULL
    machine = describe_machine()
    tables = [efficiency(plan), unit_costs(plan)]
    for table in tables:
        print_table(table)
    write("scaling", "More than one process", machine, tables, arguments)
    if not arguments.quick:
        write_page(PAGE, machine, tables)


if __name__ == "__main__":
    main(options(__doc__, "a few seconds").parse_args())
