"""Settings shared by all tests: reproducible draws, one thread for each worker, and a clock set by hand."""

import pytest
import torch
from hypothesis import settings

from fake_clock import CLOCK

settings.register_profile("absentia", deadline=None, max_examples=25, derandomize=True)
settings.load_profile("absentia")


@pytest.fixture(autouse=True)
def _reproducible():
    torch.manual_seed(0)
    torch.set_num_threads(1)


@pytest.fixture
def clock(monkeypatch):
    """A clock that replaces the one that the library reads. It stands still until ``clock.advance(seconds)``."""
    monkeypatch.setattr("time.perf_counter", CLOCK.read)
    monkeypatch.setattr("time.time", CLOCK.read)
    return CLOCK
