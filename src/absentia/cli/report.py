"""absentia report: saved results on one page that any browser opens."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from absentia.cli.options import AsJson
from absentia.cli.output import announced, check_output, print_json
from absentia.errors import wrong
from absentia.explanation import load
from absentia.report import write_report


def report(
    files: Annotated[
        list[Path], typer.Argument(help="Saved explanations, audits and baselines, in the page's order.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The HTML file to write.")] = Path("report.html"),
    title: Annotated[str | None, typer.Option(help="The page's title.")] = None,
    as_json: AsJson = False,
) -> None:
    """Write saved results to one HTML file that needs nothing but a browser.

    Example: absentia report one.absentia audit.absentia base.absentia -o report.html
    """
    check_output(output)
    if output in files:
        raise wrong("output", "be another file than the results", output)
    results: dict[str, Any] = {}
    for path in files:
        name = path.stem if path.stem not in results else str(path)
        if name in results:
            raise wrong("files", "be named once", path)
        results[name] = load(path)
    with announced(f"Writing {output}"):
        write_report(results, output, title=title)
    kinds = {name: type(result).__name__ for name, result in results.items()}
    if as_json:
        print_json({"command": "report", "file": output, "results": kinds})
    else:
        typer.echo(f"Written to {output}: {', '.join(f'{name} ({kind})' for name, kind in kinds.items())}.")
