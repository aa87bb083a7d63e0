"""Progress is a bar on terminals and in notebooks, and lines on stderr elsewhere."""

import os
import sys

import pytest
import torch

from absentia.runtime.progress import THIS_THREAD, ProgressLines, announce, progress


def test_a_bar_is_shown_on_a_terminal_and_in_a_notebook_alone(monkeypatch):
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)  # which tests of notebooks import
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    assert not progress(3, "working").disable
    monkeypatch.setattr("sys.stderr.isatty", lambda: False, raising=False)
    assert isinstance(progress(3, "working"), ProgressLines)
    monkeypatch.setitem(sys.modules, "ipykernel", torch)
    assert not progress(3, "working").disable
    assert progress(3, "working", show=False).disable
    with progress(3, "working"):
        assert progress(3, "within").disable
    assert not progress(3, "after").disable


@pytest.fixture
def piped(monkeypatch):
    """Without a terminal and a notebook."""
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    monkeypatch.setattr("sys.stderr.isatty", lambda: False, raising=False)


def test_lines_say_how_much_is_done_now_and_then(piped, clock, capsys):
    with progress(1000, "working", "row") as lines:
        for _ in range(9):
            clock.advance(1)
            lines.update(10)
        assert capsys.readouterr().err == ""
        clock.advance(1)
        lines.update(10)
        assert capsys.readouterr() == ("", "absentia: working: 10 %, about 90 s left\n")
        clock.advance(29)
        lines.update(290)
        assert capsys.readouterr().err == ""
        clock.advance(11)
        lines.update(110)
        assert capsys.readouterr().err == "absentia: working: 50 %, about 50 s left\n"
        clock.advance(1000)
        lines.update(500)  # done
    assert capsys.readouterr() == ("", "")


def test_lines_of_work_of_unknown_length_count_what_is_done(piped, clock, capsys):
    with progress(0, "learning", "step") as lines:
        lines.set_description("learning, about 3 s")
        lines.set_postfix(loss="1")
        clock.advance(20)
        lines.update()
        assert capsys.readouterr().err == "absentia: learning: 1 step in 20 s, loss 1\n"
        lines.total = 4
        clock.advance(30)
        lines.update()
        assert capsys.readouterr().err == "absentia: learning: 50 %, about 50 s left, loss 1\n"


def test_work_within_other_work_writes_no_lines(piped, monkeypatch, capsys):
    with progress(3, "working"):
        assert progress(3, "within").disable
        announce("this takes long")
    assert isinstance(progress(3, "after"), ProgressLines)
    assert progress(3, "working", show=False).disable
    monkeypatch.setattr(THIS_THREAD, "is_worker", True, raising=False)
    assert progress(3, "at a worker").disable
    announce("this takes long")
    assert capsys.readouterr().err == ""


def test_work_that_fails_ends_its_lines(piped):
    with pytest.raises(ZeroDivisionError), progress(3, "working"):
        _ = 1 / 0
    assert isinstance(progress(3, "after"), ProgressLines)


def test_lines_are_written_only_if_stderr_takes_them(piped, monkeypatch, capsys):
    announce("this takes long.")
    assert capsys.readouterr() == ("", "absentia: this takes long.\n")

    class Full:
        def isatty(self):
            return False

        def write(self, _text):
            raise OSError("disk full")

        def flush(self):
            raise OSError("disk full")

    for stream in (None, Full()):
        monkeypatch.setattr(sys, "stderr", stream)
        announce("this takes long.")
        assert isinstance(progress(3, "working"), ProgressLines)


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
