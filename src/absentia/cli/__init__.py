"""The command line: commands, and the files and words that they read, without any maths."""

from absentia.cli.commands import app
from absentia.cli.exits import main

__all__ = ["app", "main"]
