"""The options that several commands share beside their inputs: where to write, and JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from absentia.loading.absences import WORDS

ABSENCE_HELP = (
    "What stands in for absent players: zero, mean, median, a number, blur[:sigma], marginal[:rows], noise[:draws], "
    "gaussian[:draws], neighbours[:rows], or a saved file; name=… names it."
)

Output: TypeAlias = Annotated[Path | None, typer.Option("--output", "-o", help="The file to write the result to.")]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON object rather than words.")]
Seed: TypeAlias = Annotated[int, typer.Option("--seed", help="Fixes every draw.", min=0)]
OneAbsence: TypeAlias = Annotated[
    str, typer.Option("--absence", "-a", help=ABSENCE_HELP, autocompletion=lambda: list(WORDS))
]
SeveralAbsences: TypeAlias = Annotated[
    list[str],
    typer.Option("--absence", "-a", help=f"{ABSENCE_HELP} Repeatable.", autocompletion=lambda: list(WORDS)),
]
SampleNumbers: TypeAlias = Annotated[
    list[int] | None, typer.Option("--sample", "-s", help="A sample, by its row in the data, from 0. Repeatable.")
]
