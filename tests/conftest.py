"""Settings shared by all tests: reproducible draws, no more threads than a worker should take."""

import pytest
import torch
from hypothesis import settings

settings.register_profile("absentia", deadline=None, max_examples=25, derandomize=True)
settings.load_profile("absentia")


@pytest.fixture(autouse=True)
def _reproducible():
    torch.manual_seed(0)
    torch.set_num_threads(1)
