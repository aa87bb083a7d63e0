"""The command ``absentia``. Ctrl-C ends it with one line from its first moment, while the library is loaded too."""

import os
import signal
import sys

INTERRUPTED = 130


def main() -> None:
    """Load the library, and run the command line, which ends by itself if it is interrupted."""
    signal.signal(signal.SIGINT, _end)  # packages may take an interrupt for a failed import
    from absentia.cli import main as run

    signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


def _end(*_: object) -> None:
    os.write(sys.stderr.fileno(), b"absentia: interrupted.\n")
    os._exit(INTERRUPTED)
