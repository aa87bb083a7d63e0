"""The command line: commands, and what they read from files and words. No maths."""

from absentia.cli.application import app, main

__all__ = ["app", "main"]
