"""absentia demo: two models trained here, audited and explained."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import torch
import typer

from absentia import demo as demonstration
from absentia.cli.options import Seed


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The folder for what the demo writes.", file_okay=False)
    ] = Path("demo"),
    seed: Seed = 0,
) -> None:
    """Train two small models on data that come with scikit-learn, audit masking methods, and explain a prediction.

    Example: absentia demo --output demo
    """
    threads = torch.get_num_threads()
    # Its networks are so small that threads wait for each other longer than they work, above all on a busy machine.
    torch.set_num_threads(1)
    try:
        demonstration.run(output, seed)
    finally:
        torch.set_num_threads(threads)
