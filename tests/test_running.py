import os
import subprocess
import sys

import pytest
import torch
from torch import nn

from absentia import AbsentiaError, from_numpy
from absentia.runtime.cost import affordable_rows, operations_per_row
from absentia.runtime.limits import TimeLimit
from absentia.runtime.progress import progress
from absentia.runtime.threads import quickest_threads


def test_operations_are_those_of_the_layers_and_a_little_more():
    wide, narrow = (operations_per_row(nn.Linear(64, width), torch.zeros(3, 64)) for width in (512, 256))
    assert wide - narrow == 2 * 64 * 256


def test_fewer_rows_are_affordable_for_a_larger_model():
    small, large = (affordable_rows(nn.Linear(64, width), torch.zeros(1, 64), 1e9) for width in (8, 8192))
    assert small > 8 * large
    assert small.bit_count() == large.bit_count() == 1
    assert affordable_rows(from_numpy(lambda rows: rows.sum(1)), torch.zeros(1, 64), 1e9) > 1000
    assert affordable_rows(nn.Linear(64, 64), torch.zeros(1, 64), 1.0) == 1
    assert affordable_rows(nn.Linear(4, 1), torch.zeros(1, 4), 1e6) == 128


@pytest.mark.parametrize("slower", [1, 2])
def test_the_quicker_number_of_threads_is_used_and_restored(slower, clock):
    usual = torch.get_num_threads()
    torch.set_num_threads(2)

    def work():
        clock.advance(0.02 if torch.get_num_threads() == slower else 0.001)

    with quickest_threads(work, torch.device("cpu")) as threads:
        assert threads == torch.get_num_threads() == 3 - slower
    assert torch.get_num_threads() == 2
    with pytest.raises(ZeroDivisionError), quickest_threads(work, torch.device("cpu")):
        raise ZeroDivisionError
    assert torch.get_num_threads() == 2
    torch.set_num_threads(usual)


def test_threads_that_are_quick_only_at_times_are_not_used(monkeypatch, clock):
    numbers_of_threads = [2]
    monkeypatch.setattr(torch, "get_num_threads", lambda: numbers_of_threads[-1])
    monkeypatch.setattr(torch, "set_num_threads", numbers_of_threads.append)
    calls = []

    def work():
        threads = numbers_of_threads[-1]
        calls.append(threads)
        if threads == 1:
            clock.advance(0.005)
        elif calls.count(2) % 3 == 0:
            clock.advance(0.001)
        else:
            clock.advance(0.05)

    with quickest_threads(work, torch.device("cpu")) as chosen:
        assert chosen == 1


def test_a_time_limit_counts_down(clock):
    limit = TimeLimit(10)
    clock.advance(4)
    assert limit.left == pytest.approx(6, abs=0.01)
    assert not limit.is_reached
    clock.advance(6)
    assert limit.is_reached
    assert TimeLimit().left == float("inf")
    for wrong in (0, -1, "10"):
        with pytest.raises(AbsentiaError, match="seconds must be a positive number"):
            TimeLimit(wrong)


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


def test_a_bar_is_seen_on_a_terminal_without_a_size():
    """A pseudo-terminal has no rows and columns unless they are set."""
    pty = pytest.importorskip("pty")
    script = (
        "from absentia.runtime.progress import progress\n"
        "with progress(0, 'working', 'step') as bar:\n"
        "    bar.total = 25\n"
        "    bar.start_t -= 10  # as if the work had begun earlier: a bar is shown after two seconds\n"
        "    bar.last_print_t -= 10\n"
        "    bar.update()\n"
    )
    terminal, side = pty.openpty()
    with subprocess.Popen([sys.executable, "-c", script], stdin=side, stdout=side, stderr=side) as process:
        os.close(side)
        seen = b""
        try:
            while part := os.read(terminal, 4096):
                seen += part
        except OSError:  # the end of the output
            pass
    os.close(terminal)
    assert process.returncode == 0
    assert b"working" in seen
    assert b"/25 [" in seen
