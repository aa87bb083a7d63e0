"""The command ``absentia``. Ctrl-C ends it with one line from its first moment, while the library is loaded too."""

import io
import os
import signal
import sys
import warnings

INTERRUPTED, TERMINATED = 130, 143


def main() -> None:
    """Load the library, and run the command line, which ends by itself if it is interrupted."""
    end_quietly()
    open_streams()
    from absentia.cli import main as run

    warnings.formatwarning = lambda message, *_, **__: f"absentia: {message}\n"
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))  # so that workers are ended too
    run()


def open_streams() -> None:
    """Let closed streams swallow what is printed, and others replace signs that they can't show."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - for as long as the process runs
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def end_quietly() -> None:
    """Let Ctrl-C end the process at once, because packages may take it for a failed import."""
    signal.signal(signal.SIGINT, _end)


def _end(*_: object) -> None:
    os.write(sys.stderr.fileno(), b"absentia: interrupted.\n")
    os._exit(INTERRUPTED)
