"""The players that tests of every peer run on."""

import pytest

import absentia as ab
from peer_cases import CASES


@pytest.fixture(params=CASES)
def players(request: pytest.FixtureRequest) -> ab.Players:
    return CASES[request.param]
