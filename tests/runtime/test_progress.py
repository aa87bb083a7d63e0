"""Progress bars are shown on terminals only."""

import os
import sys

import pytest
import torch

from absentia.runtime.progress import progress


def test_a_bar_is_shown_on_a_terminal_and_in_a_notebook_alone(monkeypatch):
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)  # which tests of notebooks import
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    assert not progress(3, "working").disable
    monkeypatch.setattr("sys.stderr.isatty", lambda: False, raising=False)
    assert progress(3, "working").disable
    monkeypatch.setitem(sys.modules, "ipykernel", torch)
    assert not progress(3, "working").disable
    assert progress(3, "working", show=False).disable
    with progress(3, "working"):
        assert progress(3, "within").disable
    assert not progress(3, "after").disable


def test_a_bar_is_seen_on_a_terminal_without_a_size(monkeypatch):
    """A pseudo-terminal has no rows and columns unless they are set."""
    pty = pytest.importorskip("pty")
    reader, writer = pty.openpty()
    for variable in ("COLUMNS", "LINES"):
        monkeypatch.delenv(variable, raising=False)
    with os.fdopen(writer, "w") as terminal, monkeypatch.context() as patched:
        patched.setattr(sys, "stderr", terminal)
        patched.setattr(sys, "__stdout__", terminal)  # which is asked for the size
        with progress(0, "working", "step") as bar:
            bar.total = 25
            bar.start_t -= 10  # as if the work had begun earlier: a bar is shown after two seconds
            bar.last_print_t -= 10
            bar.update()
            seen = os.read(reader, 4096).decode()
    os.close(reader)
    assert "working" in seen
    assert "/25 [" in seen
