"""The end of a command: its exit code, and one sentence for an error."""

import errno
import os
import sys
from collections.abc import Sequence
from typing import Any

import typer

from absentia.cli.commands import INTERRUPTED, app
from absentia.cli.file_checks import describe
from absentia.errors import AbsentiaError

# The exit code of wrong use.
WRONG_USE = 2

# The base class of typer's usage errors, which moves between modules from version to version.
_UsageError: Any = typer.BadParameter.__bases__[0]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0 on success, 2 with one sentence on wrong use, 130 on Ctrl-C."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = app(args=words or ["--help"], prog_name="absentia", standalone_mode=False)
    except Exception as error:
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
        return error.in_commands
    if isinstance(error, OSError):
        return f"{error.filename or 'A file or the output'} can't be used: {error.strerror or error}."
    if not isinstance(error, _UsageError):
        return f"{describe(error)}. The model or a file may be at fault: absentia --traceback … shows where."
    context = getattr(error, "ctx", None)
    where = context.command_path if context is not None else "absentia"
    message = " ".join(str(error.format_message()).split())
    if not message.endswith((".", "?")):
        message += "."
    return f"{message} Try {where} --help."
