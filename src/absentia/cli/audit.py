"""absentia audit: whether masking methods remove the signal of a user's own model, and add none."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from absentia.audit import Audit, CrossAudit, cross_audit
from absentia.audit import audit as run_audit
from absentia.cli.inputs import Inputs, prepare, takes_inputs
from absentia.cli.options import AsJson, Output, SampleNumbers, SeveralAbsences
from absentia.cli.output import announced, check_output, hinting, show
from absentia.errors import wrong
from absentia.loading import load_absences
from absentia.loading.absences import for_classes


@takes_inputs
def audit(
    inputs: Inputs,
    absence: SeveralAbsences,
    sample: SampleNumbers = None,
    samples: Annotated[int, typer.Option(help="So many samples, drawn by the seed, unless named.", min=1)] = 20,
    region: Annotated[list[str] | None, typer.Option(help="A player to mask; all, left out. Repeatable.")] = None,
    draws: Annotated[int, typer.Option(help="Draws of the white noise.", min=1)] = 5,
    tau: Annotated[float | None, typer.Option(help="Effects beyond this are salient.", min=0)] = None,
    max_players: Annotated[int, typer.Option(help="Most players for all coalitions.", min=1)] = 16,
    cross: Annotated[
        bool, typer.Option("--cross", help="R of every absence against every absence, as a matrix.")
    ] = False,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Find out whether absences remove the signal of the players they mask, and add none.

    Example: absentia audit -m mymodule:build -d train.csv -t class -a zero -a mean -a base.absentia -o audit.absentia
    """
    check_output(output)
    if cross and tau is not None:
        raise wrong("tau", "be left out with --cross", tau)
    problem = prepare(inputs, absence, noise=True)
    data = problem.samples
    chosen = data.pick(sample) if sample else data.draw(samples, inputs.seed)
    y, readout = problem.classes(chosen), problem.readout(chosen)
    found = load_absences(absence, data, problem.players, chosen, inputs.seed)
    methods = {name: for_classes(method, y) for name, method in found.items()}
    options: dict[str, Any] = {"players": problem.players, "readout": readout, "region": region, "draws": draws}
    options |= {"data": data.background, "max_players": max_players, "seed": inputs.seed}
    arguments = (problem.model, data.x[chosen], y if readout is None else None, methods)
    result: Audit | CrossAudit
    work = f"Auditing {len(methods)} absences on {len(chosen)} samples, {len(problem.players)} players"
    problem.tell_notes()
    with announced(work), hinting():
        result = cross_audit(*arguments, **options) if cross else run_audit(*arguments, tau=tau, **options)
    if output is not None:
        result.save(output)
    payload = _cross_payload(result) if isinstance(result, CrossAudit) else _payload(result)
    show(result, payload | {"samples": chosen}, as_json, output)


def _payload(result: Audit) -> dict[str, Any]:
    columns = {name: values.tolist() for name, values in result.columns().items()}
    return {
        "command": "audit",
        "methods": {
            method: {name: values[number] for name, values in columns.items()}
            for number, method in enumerate(result.methods)
        },
        "verdict": result.verdict,
        "warnings": result.warnings,
        "players": result.players,
        "region": result.region,
        "record": result.record,
    }


def _cross_payload(result: CrossAudit) -> dict[str, Any]:
    return {
        "command": "audit",
        "methods": result.methods,
        "references": result.references,
        "R": result.R,
        "errors": result.errors,
        "record": result.record,
    }
