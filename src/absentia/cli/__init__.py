"""The command line: commands, and what they read from files and words. No maths."""

from absentia.cli.commands import app
from absentia.cli.exits import main

__all__ = ["app", "main"]
