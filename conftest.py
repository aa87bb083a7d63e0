"""The name that examples in docstrings assume: ``ab`` for the library."""

import pytest


@pytest.fixture(autouse=True)
def _name_the_library(doctest_namespace):
    import absentia  # here, after the plugin that checks the axes of tensors has hooked into imports

    doctest_namespace["ab"] = absentia
