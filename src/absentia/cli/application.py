"""The commands under one name, and the one way in which all of them end."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from absentia.cli.audit import audit
from absentia.cli.demo import demo
from absentia.cli.explain import explain
from absentia.cli.info import info
from absentia.cli.learn import learn
from absentia.cli.report import report
from absentia.cli.reproduce import reproduce
from absentia.cli.train import train
from absentia.errors import AbsentiaError
from absentia.version import __version__

WRONG_USE, INTERRUPTED = 2, 130
# What typer raises on a wrong use; it has kept these classes in several places.
_UsageError: Any = typer.BadParameter.__bases__[0]

app = typer.Typer(
    help="Find out what absence means to your model: learn it, audit it, explain with it.",
    epilog="Example: absentia demo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for command in (demo, learn, explain, audit, report, train, reproduce, info):
    app.command()(command)


def _print_version(wanted: bool | None) -> None:
    if wanted:
        typer.echo(f"absentia {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool | None, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = None,
    traceback: Annotated[
        bool, typer.Option("--traceback", help="Show where in the code an error arose, too.")
    ] = False,
) -> None:
    """Take options that come before the command."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0, 2 with one sentence for a wrong use, 130 on Ctrl-C.

    >>> main(["--version"])
    Traceback (most recent call last):
    ...
    SystemExit: 0
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        sys.exit(_run(words))
    except (AbsentiaError, _UsageError, OSError) as error:
        if "--traceback" in words:
            raise
        if isinstance(error, OSError) and error.errno == errno.EPIPE:  # whoever read the output has enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(1)
        typer.echo(f"absentia: {_sentence(error)}", err=True)
        sys.exit(WRONG_USE)
    except (KeyboardInterrupt, typer.Abort):
        typer.echo("absentia: interrupted.", err=True)
        sys.exit(INTERRUPTED)


def _run(words: list[str]) -> int:
    """Run a command; its own exit code, where it has one."""
    if not words:
        words = ["--help"]
    code = app(args=words, prog_name="absentia", standalone_mode=False)
    if code == INTERRUPTED:
        typer.echo("absentia: interrupted.", err=True)
    return code if isinstance(code, int) else 0


def _sentence(error: Exception) -> str:
    """Put an error into one line."""
    if isinstance(error, AbsentiaError):
        return str(error)
    if isinstance(error, OSError):
        return f"{error.filename or 'a file'} can't be used: {error.strerror or error}."
    context = getattr(error, "ctx", None)
    where = context.command_path if context is not None else "absentia"
    message = " ".join(str(error.format_message()).split())  # type: ignore[attr-defined]  # of all usage errors
    return f"{message.rstrip('.')}. Try {where} --help."
