import os
from dataclasses import asdict, replace

import pytest
import torch

from absentia import AbsentiaError, __version__
from absentia.papers import models
from absentia.papers.datasets import TabularData, stratified_split
from absentia.papers.models import (
    RECIPES,
    Header,
    Recipe,
    accuracy,
    census_mlp,
    credit_mlp,
    load,
    mlp,
    model_file,
    save,
    train,
    trained,
)

pytest.importorskip("safetensors")

RECIPE = Recipe((3, 16, 2), 1e-2, weight_decay=0.0, batch=32, epochs=30, patience=5, held_out=0.2)
HEADER = Header("3-16-2", "toy", seed=4, test_accuracy=0.1 + 0.2, recipe="a recipe", absentia_version="1.2.3")


def toy(rows=400):
    """A class that depends on the product of two columns, which no linear model can tell."""
    x = torch.randn(rows, 3, generator=torch.Generator().manual_seed(1))
    y = (x[:, 0] * x[:, 1] > 0).long()
    half = rows // 2
    names, ones = ("a", "b", "c"), torch.ones(3)
    return TabularData(
        "toy", names, x[:half], y[:half], x[half:], y[half:], (), ("different", "same"), torch.zeros(3), ones
    )


def weights(model):
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


def test_the_models_have_the_widths_of_the_paper():
    for model, players in ((census_mlp(), 12), (credit_mlp(), 20)):
        linear = [layer for layer in model if isinstance(layer, torch.nn.Linear)]
        assert [layer.in_features for layer in linear] + [linear[-1].out_features] == [players, 100, 100, 2]
        assert model(torch.zeros(5, players)).shape == (5, 2)


def test_a_seed_fixes_the_initial_weights_and_leaves_the_global_generator_alone():
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    assert torch.equal(weights(mlp((4, 8, 2), seed=3)), weights(mlp((4, 8, 2), seed=3)))
    assert not torch.equal(weights(mlp((4, 8, 2), seed=3)), weights(mlp((4, 8, 2), seed=4)))
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize("widths", [(), (3,), (3, 0, 2)])
def test_widths_that_make_no_network_are_refused(widths):
    with pytest.raises(AbsentiaError, match="widths must be two or more positive numbers"):
        mlp(widths, seed=0)


def test_training_learns_what_can_be_learnt():
    data = toy()
    assert accuracy(mlp(RECIPE.widths, 0), data.x_test, data.y_test) < 0.75
    model = train(data, RECIPE)
    assert accuracy(model, data.x_test, data.y_test) > 0.9
    assert not model.training


def test_a_seed_fixes_the_training_and_the_global_generator_has_no_part_in_it():
    first = train(toy(), RECIPE, seed=2)
    torch.rand(1)
    assert torch.equal(weights(first), weights(train(toy(), RECIPE, seed=2)))
    assert not torch.equal(weights(first), weights(train(toy(), RECIPE, seed=3)))


def test_training_takes_one_thread_and_gives_the_others_back(monkeypatch):
    threads = []

    def watch(epochs, **_options):
        for epoch in epochs:
            threads.append(torch.get_num_threads())
            yield epoch

    monkeypatch.setattr(models, "tqdm", watch)
    torch.set_num_threads(2)
    train(toy(), replace(RECIPE, epochs=2))
    assert threads == [1, 1]
    assert torch.get_num_threads() == 2


def test_training_never_looks_at_the_test_rows():
    data = toy()
    blind = replace(data, x_test=torch.full_like(data.x_test, torch.nan), y_test=torch.zeros_like(data.y_test))
    assert torch.equal(weights(train(data, RECIPE)), weights(train(blind, RECIPE)))


def noise():
    """Labels without rule: the longer they are learnt, the worse for rows held out."""
    data = toy(160)
    return replace(data, y_train=torch.randint(2, (80,), generator=torch.Generator().manual_seed(5)))


def test_training_keeps_the_epoch_with_the_lowest_held_out_loss():
    data = noise()
    _, held_out = stratified_split(data.y_train, RECIPE.held_out, seed=0)
    x, y = data.x_train[held_out], data.y_train[held_out]
    endless = replace(RECIPE, patience=1000)
    losses = [
        torch.nn.functional.cross_entropy(train(data, replace(endless, epochs=epochs))(x), y).item()
        for epochs in range(1, 40)
    ]
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] == losses[-10]


def test_training_ends_when_patience_does(monkeypatch):
    seen = []

    def count(epochs, **_options):
        for epoch in epochs:
            seen.append(epoch)
            yield epoch

    monkeypatch.setattr(models, "tqdm", count)
    patient = train(noise(), replace(RECIPE, epochs=500))
    best = len(seen) - RECIPE.patience
    assert 0 < best < 100
    assert torch.equal(weights(patient), weights(train(noise(), replace(RECIPE, epochs=best))))


def test_a_recipe_for_other_data_is_refused():
    with pytest.raises(AbsentiaError, match=r"recipe\.widths must begin with the 3 columns .* its 2 classes\. Got"):
        train(toy(), RECIPES["census"])


def test_save_and_load_give_back_the_model_and_its_header(tmp_path):
    model = mlp((3, 16, 2), seed=5)
    path = tmp_path / "deep" / "model.safetensors"
    save(model, path, HEADER)
    again, header = load(path)
    assert header == HEADER
    assert torch.equal(weights(again), weights(model))
    assert str(again) == str(model)
    assert [file.name for file in path.parent.iterdir()] == ["model.safetensors"]


def test_the_header_can_be_read_by_safetensors_alone(tmp_path):
    from safetensors import safe_open

    save(mlp((3, 16, 2), seed=5), tmp_path / "model", HEADER)
    with safe_open(tmp_path / "model", framework="np") as file:
        assert file.metadata() == {name: str(value) for name, value in asdict(HEADER).items()}


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "model.safetensors"
    save(mlp((3, 16, 2), seed=5), path, HEADER)
    before = path.read_bytes()

    def fail(*_arguments):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        save(mlp((3, 16, 2), seed=6), path, HEADER)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_what_save_did_not_write_is_refused(tmp_path):
    from safetensors.torch import save_file

    path = tmp_path / "model.safetensors"
    with pytest.raises(AbsentiaError, match="path must name a saved model"):
        load(path)
    path.write_bytes(b"no tensors")
    with pytest.raises(AbsentiaError, match=r"must be a model written by save\. Got damaged or foreign content"):
        load(path)
    save_file({"0.weight": torch.zeros(2, 3)}, path)
    with pytest.raises(AbsentiaError, match="Got a header without architecture, data_set, seed"):
        load(path)
    for architecture in ("3-9-2", "three", "3"):
        save(mlp((3, 16, 2), seed=5), path, replace(HEADER, architecture=architecture))
        with pytest.raises(AbsentiaError, match=f"weights that do not fit the architecture '{architecture}'"):
            load(path)
    metadata = {name: str(value) for name, value in asdict(HEADER).items()} | {"seed": "first"}
    save_file(mlp((3, 16, 2), seed=5).state_dict(), path, metadata=metadata)
    with pytest.raises(AbsentiaError, match="a header whose seed or test_accuracy is no number"):
        load(path)


@pytest.fixture
def toy_models(tmp_path, monkeypatch):
    """Let `trained` know the toy, with a cache of its own; count how often the data are loaded."""
    loads = []

    def loader():
        loads.append("toy")
        return toy()

    monkeypatch.setenv("ABSENTIA_CACHE", str(tmp_path))
    monkeypatch.setitem(models.LOADERS, "toy", loader)
    monkeypatch.setitem(models.RECIPES, "toy", RECIPE)
    return loads


def test_trained_trains_the_first_time_only(toy_models, tmp_path):
    first = trained("toy", seed=1)
    assert torch.equal(weights(trained("toy", seed=1)), weights(first))
    assert toy_models == ["toy"]
    trained("toy", seed=2)
    assert toy_models == ["toy", "toy"]
    assert model_file("toy", 1).parent == tmp_path / "models"
    assert len(list((tmp_path / "models").iterdir())) == 2


def test_trained_writes_the_header(toy_models):
    model = trained("toy", seed=1)
    data = toy()
    _, header = load(model_file("toy", 1))
    expected = accuracy(model, data.x_test, data.y_test)
    assert header == Header("3-16-2", "toy", 1, expected, str(RECIPE), __version__)


def test_trained_trains_again_when_the_recipe_has_changed(toy_models, monkeypatch):
    first = trained("toy")
    monkeypatch.setitem(models.RECIPES, "toy", replace(RECIPE, weight_decay=1.0))
    assert not torch.equal(weights(trained("toy")), weights(first))
    assert toy_models == ["toy", "toy"]


def test_an_unknown_name_is_refused():
    with pytest.raises(AbsentiaError, match="name must be one of census, credit"):
        trained("mnist")


@pytest.mark.skipif(not os.environ.get("ABSENTIA_DATA"), reason="ABSENTIA_DATA names no folder with the real data")
@pytest.mark.parametrize(("name", "least"), [("census", 0.845), ("credit", 0.72)])
def test_the_models_of_the_real_data_are_good_enough(name, least, tmp_path, monkeypatch):
    monkeypatch.setenv("ABSENTIA_CACHE", str(tmp_path))
    trained(name)
    assert load(model_file(name))[1].test_accuracy >= least
