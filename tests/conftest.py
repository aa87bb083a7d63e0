"""Shared by all tests: reproducible draws, one thread for each worker, a clock set by hand, and a browser."""

import math
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


# Tests of these modules are about the time that a model takes without a limit of the user's.
TESTS_OF_A_MINUTE = ("test_budgets",)
# Tests of these modules are about what "auto" does where a fit takes longer than evaluations.
TESTS_OF_QUICK_FITS = ("test_sampled_shapley",)
OPERATIONS_PER_SECOND = 5e10


@pytest.fixture(scope="session", autouse=True)
def _fits_take_the_time_of_a_usual_machine():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("absentia.solvers.cost_of_fits.operations_per_second", lambda: OPERATIONS_PER_SECOND)
        yield


@pytest.fixture(autouse=True)
def _results_do_not_depend_on_the_machine(request, monkeypatch):
    """Without a clock set by hand, models and fits may take any time, so that a busy machine changes no result."""
    if "clock" in request.fixturenames or request.module.__name__.endswith(TESTS_OF_A_MINUTE):
        return
    for module in ("budgets", "auditing.audit_setup", "auditing.audit_run"):
        monkeypatch.setattr(f"absentia.{module}.MINUTE", math.inf)
    if not request.module.__name__.endswith(TESTS_OF_QUICK_FITS):
        monkeypatch.setattr("absentia.solvers.sampled_shapley._UNNOTICED_SECONDS", math.inf)


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
