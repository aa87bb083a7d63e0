import os
import subprocess
import sys
import time

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


@pytest.mark.parametrize("slow", [1, 2])
def test_the_quicker_number_of_threads_is_used_and_restored(slow):
    usual = torch.get_num_threads()
    torch.set_num_threads(2)

    def work():
        time.sleep(0.02 if torch.get_num_threads() == slow else 0.001)

    with quickest_threads(work, torch.device("cpu")) as threads:
        assert threads == torch.get_num_threads() == 3 - slow
    assert torch.get_num_threads() == 2
    with pytest.raises(ZeroDivisionError), quickest_threads(work, torch.device("cpu")):
        raise ZeroDivisionError
    assert torch.get_num_threads() == 2
    torch.set_num_threads(usual)


def test_threads_that_are_quick_only_at_times_are_not_used(monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads[-1])
    monkeypatch.setattr(torch, "set_num_threads", lambda number: threads.append(number))
    threads, calls = [2], []

    def work():
        calls.append(threads[-1])
        time.sleep(0.005 if threads[-1] == 1 else 0.001 if calls.count(2) % 3 == 0 else 0.05)

    with quickest_threads(work, torch.device("cpu")) as chosen:
        assert chosen == 1


def test_a_time_limit_counts_down():
    limit = TimeLimit(10)
    assert 9 < limit.left <= 10
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
        "import time\n"
        "from absentia.runtime.progress import progress\n"
        "with progress(0, 'working', 'step') as bar:\n"
        "    bar.total = 25\n"
        "    for _ in range(25):\n"
        "        time.sleep(0.1)\n"
        "        bar.update()\n"
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
