"""Memory over many explanations in one process: ``python tests/fuzz/soak.py --explanations 2000``."""

from __future__ import annotations

import argparse
import gc
import sys
from pathlib import Path

import torch
from torch import nn

import absentia as ab


def resident() -> int:
    """Return the bytes of memory that this process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def soak(explanations: int) -> tuple[int, int]:
    """Explain fresh samples; return the memory after a quarter of the explanations, and after all of them."""
    generator = torch.Generator().manual_seed(0)
    held = []
    for number in range(explanations):
        model = nn.Sequential(nn.Linear(8, 16), nn.Dropout(), nn.Linear(16, 2))
        x = torch.rand(2, 8, generator=generator)
        ab.explain(model if number % 2 else lambda rows, model=model: model(rows), x, 0, absence=0.0)
        if number + 1 in (-(-explanations // 4), explanations):
            gc.collect()
            held.append(resident())
    return held[0], held[-1]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--explanations", type=int, default=2000)
    before, after = soak(parser.parse_args().explanations)
    print(f"{before / 2**20:.1f} MiB after a quarter, {after / 2**20:.1f} MiB at the end: {after / before - 1:+.1%}")
    sys.exit(after > 1.02 * before)
