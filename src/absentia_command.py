"""The command ``absentia``. Ctrl-C ends it with one line from its first moment, while the library is loaded too."""

import os
import signal
import sys

INTERRUPTED = 130


def main() -> None:
    """Load the library, and run the command line, which ends by itself if it is interrupted."""
    end_quietly()
    from absentia.cli import main as run

    signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


def end_quietly() -> None:
    """Let Ctrl-C end the process at once, because packages may take it for a failed import."""
    signal.signal(signal.SIGINT, _end)


def _end(*_: object) -> None:
    os.write(sys.stderr.fileno(), b"absentia: interrupted.\n")
    os._exit(INTERRUPTED)
