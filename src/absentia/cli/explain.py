"""absentia explain: samples of a user's own data taken apart, with an absence of choice."""

from __future__ import annotations

from typing import Annotated, Any

import torch
import typer
from torch import Tensor

from absentia.cli.inputs import Inputs, prepare, takes_inputs
from absentia.cli.options import AsJson, OneAbsence, Output, SampleNumbers
from absentia.cli.output import announced, check_output, hinting, show, tell
from absentia.errors import wrong
from absentia.explanation import Explanation
from absentia.explanation import explain as take_apart
from absentia.loading import load_absences
from absentia.loading.absences import for_classes

TOP = 10


@takes_inputs
def explain(
    inputs: Inputs,
    absence: OneAbsence,
    sample: SampleNumbers = None,
    samples: Annotated[int | None, typer.Option(help="So many samples, drawn by the seed.", min=1)] = None,
    evaluations: Annotated[
        int | None, typer.Option(help="Draw so many coalitions of each sample, rather than take all.", min=1)
    ] = None,
    batch_size: Annotated[int | None, typer.Option(help="Rows that the model runs on at a time.", min=1)] = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Take the model's output on samples apart: Shapley values and interactions; the first sample, if none is named.

    Example: absentia explain -m mymodule:build -d test.csv -t class -a base.absentia --sample 3 -o one.absentia
    """
    check_output(output)
    if sample and samples is not None:
        raise wrong("samples", "be left out where samples are named by --sample", samples)
    problem = prepare(inputs, [absence])
    data = problem.samples
    chosen = data.pick(sample or [0]) if samples is None else data.draw(samples, inputs.seed)
    method = next(iter(load_absences([absence], data, problem.players, chosen, inputs.seed).values()))
    for_classes(method, problem.classes(chosen))  # a baseline of each class is refused here where there are none
    options: dict[str, Any] = {"players": problem.players, "readout": problem.readout(chosen), "absence": method}
    options |= {"evaluations": evaluations, "batch_size": batch_size, "seed": inputs.seed}
    problem.tell_notes()
    with announced(f"Explaining {len(chosen)} of {len(data.x):,} samples, {len(problem.players)} players"), hinting():
        found = take_apart(problem.model, data.x[chosen], problem.classes(chosen), **options)
    if output is not None:
        found.save(output)
    numbers = ", ".join(map(str, chosen[:12].tolist())) + (", …" if len(chosen) > 12 else "")
    tell(f"Samples by their rows in {inputs.data}: {numbers}.")
    show(found, _payload(found, chosen), as_json, output)


def _payload(found: Explanation, chosen: Tensor) -> dict[str, Any]:
    return {
        "command": "explain",
        "players": found.names,
        "samples": [_sample(found, place, int(number)) for place, number in enumerate(chosen)],
        "record": found.record,
    }


def _sample(found: Explanation, place: int, number: int) -> dict[str, Any]:
    names = found.names
    errors = torch.broadcast_to(found.shapley.errors, found.shapley.values.shape)
    top = [] if found.interactions is None else found.interactions.top(TOP, sample=place)
    return {
        "sample": number,
        "class": None if found.y is None else int(found.y[place]),
        "output": found.outputs[place],
        "base_value": found.base_values[place],
        "shapley": dict(zip(names, found.shapley.values[place].tolist(), strict=True)),
        "errors": dict(zip(names, errors[place].tolist(), strict=True)),
        "strongest_interactions": [{"players": one.players, "effect": one.effect} for one in top],
    }
