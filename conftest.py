"""The name that examples in docstrings assume, ``ab`` for the library; and processors that announce too much."""

import os

import pytest
import torch

# Some virtual machines announce instructions for matrices (AMX) that they cannot run; a linear layer in bfloat16 then
# ends the process with "Illegal instruction".
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")


@pytest.fixture(autouse=True)
def _name_the_library(doctest_namespace):
    import absentia  # here, after the plugin that checks the axes of tensors has hooked into imports

    doctest_namespace["ab"] = absentia
    doctest_namespace["torch"] = torch
