"""Models named by module and object."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import absentia as ab
from absentia import AbsentiaError
from absentia.cli.model_files import load_model
from command_models import X, expected, load, values

QUICK = {"steps": 2, "rows_per_comparison": 256, "samples": 4}


@pytest.mark.parametrize("weights", ["w.safetensors", "w.pt"])
def test_a_function_that_makes_a_network_gets_its_weights(folder, weights):
    torch.testing.assert_close(values(load("mymodule:build", weights=weights)), expected())
    assert not torch.allclose(values(load("mymodule:build")), expected())


def test_objects_classes_and_callables_are_models(folder):
    torch.testing.assert_close(values(load("mymodule:network")), expected())
    assert isinstance(load("mymodule:Net", untrained=True), nn.Module)
    torch.testing.assert_close(load("mymodule:of_torch")(X), X.prod(1))
    of_numpy = load("mymodule:of_numpy")
    rows = X.numpy()
    np.testing.assert_allclose(of_numpy(X).numpy(), np.exp(rows[:, 0]) * rows[:, 1] - rows[:, 2])
    torch.testing.assert_close(load("mymodule:in_place")(X.clone()), 2 * X[:, 1])
    assert ab.learn_baseline(load("mymodule:of_torch"), X, options=ab.LearningOptions(**QUICK)).evaluations


@pytest.mark.parametrize("name", ["Net", "with_new_head"])
def test_a_network_with_random_weights_is_refused_unless_that_is_meant(folder, name):
    with pytest.raises(
        AbsentiaError, match=f"mymodule:{name} makes has random weights. Pass --weights FILE, or --untr"
    ):
        load_model(f"mymodule:{name}")
    assert isinstance(load_model(f"mymodule:{name}", untrained=True), nn.Module)


def test_networks_that_bring_their_weights_are_taken(folder):
    for name in ("Restored", "build", "network"):
        assert isinstance(load_model(f"mymodule:{name}"), nn.Module)


def test_files_in_the_working_directory_do_not_stand_in_for_installed_packages(folder):
    Path("skops.py").write_text("raise SystemExit('the file in the working directory ran')")
    Path("wave.py").write_text("")
    load_model("mymodule:network")
    assert sys.path[-1] == str(Path.cwd())
    with pytest.raises(
        AbsentiaError, match=r"The file wave\.py is not used, because .*wave\.py has the same name. Rename"
    ):
        load_model("wave:build")
