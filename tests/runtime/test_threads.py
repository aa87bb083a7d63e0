"""The quickest number of threads is used and restored."""

import pytest
import torch

from absentia.runtime.limits import TimeLimit
from absentia.runtime.threads import quickest_threads


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


def test_threads_are_not_timed_if_that_would_take_too_much_of_the_time(clock):
    torch.set_num_threads(2)
    calls = []

    def work():
        calls.append(1)
        clock.advance(0.02)

    with quickest_threads(work, torch.device("cpu"), TimeLimit(0.1)):
        pass
    assert len(calls) == 1


def test_calls_that_overlap_leave_the_number_of_threads_as_it_was():
    usual = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        first, second = (quickest_threads(lambda: None, torch.device("cpu")) for _ in range(2))
        first.__enter__()
        torch.set_num_threads(1)  # as the first call finds best
        second.__enter__()
        first.__exit__(None, None, None)
        second.__exit__(None, None, None)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(usual)
