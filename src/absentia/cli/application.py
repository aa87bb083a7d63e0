"""The command-line application: its commands, and how a command ends."""

import errno
import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from absentia.cli.commands import INTERRUPTED, audit, demo, explain, info, learn, report
from absentia.errors import AbsentiaError
from absentia.version import __version__

WRONG_USE = 2
# The base class of typer's usage errors, which moves between modules from version to version.
_UsageError: Any = typer.BadParameter.__bases__[0]

app = typer.Typer(
    help="Find out what absence means to your model: learn it, audit it, explain with it.",
    epilog="Example: absentia demo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for command in (demo, learn, explain, audit, report, info):
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
    traceback: Annotated[bool, typer.Option("--traceback", help="Show the full traceback of an error.")] = False,
) -> None:
    """Read the options that come before the command."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0 on success, 2 with one sentence on wrong use, 130 on Ctrl-C."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = app(args=words or ["--help"], prog_name="absentia", standalone_mode=False)
    except (AbsentiaError, _UsageError, OSError) as error:
        if "--traceback" in words:
            raise
        if isinstance(error, OSError) and error.errno == errno.EPIPE:  # the reader of a pipe has closed it
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(1)
        typer.echo(f"absentia: {_sentence(error)}", err=True)
        sys.exit(WRONG_USE)
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    if code == INTERRUPTED:
        typer.echo("absentia: interrupted.", err=True)
    sys.exit(code if isinstance(code, int) else 0)


def _sentence(error: Exception) -> str:
    """Put an error into one line."""
    if isinstance(error, AbsentiaError):
        return str(error)
    if isinstance(error, OSError):
        return f"{error.filename or 'a file'} can't be used: {error.strerror or error}."
    context = getattr(error, "ctx", None)
    where = context.command_path if context is not None else "absentia"
    message = " ".join(str(error.format_message()).split())  # type: ignore[attr-defined]  # of all usage errors
    return f"{message}{'' if message.endswith(('.', '?')) else '.'} Try {where} --help."
