"""The command ``absentia``, which ends with one line on Ctrl-C even while the library is still loading."""

import io
import os
import signal
import sys
import warnings

# Exit codes: 128 and the number of the signal.
INTERRUPTED = 130
TERMINATED = 143


def main() -> None:
    """Load the library and run the command line, which then handles interruptions itself."""
    end_quietly()
    open_streams()
    from absentia.cli import main as run

    warnings.formatwarning = lambda message, *_, **__: f"absentia: {message}\n"
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))  # an orderly exit also ends the workers
    run()


def open_streams() -> None:
    """Discard output to closed streams, and replace characters that a stream cannot encode."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - open for as long as the process runs
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def end_quietly() -> None:
    """End the process at once on Ctrl-C, because packages may mistake an interrupt for a failed import."""
    signal.signal(signal.SIGINT, _end)


def _end(*_: object) -> None:
    """Print one line and exit without any cleaning up."""
    os.write(sys.stderr.fileno(), b"absentia: interrupted.\n")
    os._exit(INTERRUPTED)
