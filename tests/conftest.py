"""Shared by all tests: reproducible draws, one thread for each worker, a clock set by hand, and a browser."""

import os
import shutil

import pytest
import torch
from hypothesis import settings

from fake_clock import CLOCK

settings.register_profile("absentia", deadline=None, max_examples=25, derandomize=True)
settings.load_profile("absentia")

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
IS_BROWSER_REQUIRED = os.environ.get("ABSENTIA_REQUIRE_BROWSER") == "1"
BROWSER_OPTIONS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]


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


@pytest.fixture(scope="module")
def browser():
    """Chromium, without a window."""
    if CHROMIUM is None and not IS_BROWSER_REQUIRED:
        pytest.skip("Chromium is not installed (ABSENTIA_REQUIRE_BROWSER=1 makes this a failure)")
    assert CHROMIUM, "Chromium must be installed: ABSENTIA_REQUIRE_BROWSER is 1"
    if IS_BROWSER_REQUIRED:
        import playwright.sync_api as playwright
    else:
        playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as running:
        chromium = running.chromium.launch(executable_path=CHROMIUM, args=BROWSER_OPTIONS)
        yield chromium
        chromium.close()
