"""The command line: parse, call, print; no maths. One file for each command."""

from absentia.cli.application import app, main

__all__ = ["app", "main"]
