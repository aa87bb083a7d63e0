import os
from dataclasses import asdict, replace

import pytest
import torch

from absentia import AbsentiaError, __version__
from experiments import trained_models as models
from experiments.networks import build, mlp
from experiments.trained_models import RECIPES, Header, load, model_file, save, train, trained
from experiments.training import Recipe, accuracy
from toy_data import pictures, sentences, table, weights

HEADER = Header("3-16-2", "toy", seed=4, test_accuracy=0.1 + 0.2, recipe="a recipe", absentia_version="1.2.3")
RECIPE = Recipe("adamw", 1e-2, weight_decay=0.0, batch=32, epochs=5, patience=5, held_out=0.2, hidden=(16,))
BRIEF = Recipe("adamw", 1e-2, weight_decay=0.0, batch=8, epochs=1)


@pytest.mark.parametrize(("name", "columns"), [("census", 12), ("credit", 20)])
def test_the_networks_of_tables_have_the_widths_of_the_paper(name, columns, tmp_path, monkeypatch):
    toy = table(40)
    rows = torch.rand(20, columns)
    data = replace(toy, x_train=rows, x_test=rows, mean=torch.zeros(columns), std=torch.ones(columns))
    monkeypatch.setitem(models.LOADERS, name, lambda: data)
    found = train(name, epochs=1, path=tmp_path / "model")
    assert found.header.architecture == f"{columns}-100-100-2"
    linear = [layer for layer in found.model if isinstance(layer, torch.nn.Linear)]
    assert [layer.in_features for layer in linear] + [linear[-1].out_features] == [columns, 100, 100, 2]


@pytest.mark.parametrize("architecture", ["3-16-2", "lenet", "resnet20", "cnn-12", "lstm-12"])
def test_save_and_load_give_back_the_model_and_its_header(tmp_path, architecture):
    model = build(architecture, seed=5)
    path = tmp_path / "deep" / "model.safetensors"
    save(model, path, replace(HEADER, architecture=architecture))
    again, header = load(path)
    assert header == replace(HEADER, architecture=architecture)
    assert all(torch.equal(again.state_dict()[name], weight) for name, weight in model.state_dict().items())
    assert str(again) == str(model)
    assert not again.training
    assert [file.name for file in path.parent.iterdir()] == ["model.safetensors"]


def test_the_header_can_be_read_by_safetensors_alone(tmp_path):
    from safetensors import safe_open

    save(mlp((3, 16, 2), seed=5), tmp_path / "model", HEADER)
    with safe_open(tmp_path / "model", framework="np") as file:
        metadata = file.metadata()
    assert len(metadata.pop("checksum")) == 64
    assert metadata == {name: str(value) for name, value in asdict(HEADER).items()}


def test_altered_weights_are_refused(tmp_path):
    from safetensors.torch import save_file

    model = mlp((3, 16, 2), seed=5)
    weights = {name: weight + 1 for name, weight in model.state_dict().items()}
    metadata = {name: str(value) for name, value in asdict(HEADER).items()}
    save_file(weights, tmp_path / "model", metadata | {"checksum": models.checksum_of(model.state_dict())})
    with pytest.raises(AbsentiaError, match="weights that do not have the checksum of its header"):
        load(tmp_path / "model")
    save_file(weights, tmp_path / "model", metadata)  # files of earlier versions have none
    assert load(tmp_path / "model")[1] == HEADER


def test_a_network_that_comes_along_is_used_unless_it_is_to_be_trained_anew(toy_models, tmp_path, monkeypatch):
    monkeypatch.setattr(models, "COMMITTED", tmp_path / "along")
    given = mlp((3, 16, 2), seed=9)
    save(given, tmp_path / "along" / model_file("toy").name, replace(HEADER, recipe=str(RECIPE)))
    assert torch.equal(weights(trained("toy")), weights(given))
    assert not torch.equal(weights(trained("toy", retrain=True)), weights(given))
    assert toy_models == ["toy"]


def test_the_networks_that_come_along_are_small_and_of_the_present_recipes():
    files = sorted(models.COMMITTED.glob("*.safetensors"))
    assert files
    assert max(file.stat().st_size for file in files) <= 2e6
    assert sum(file.stat().st_size for file in files) <= 12e6
    for file in files:
        name, network, _ = file.stem.split("-")
        _, header = load(file)
        assert header.recipe == str(RECIPES[name][network])
        assert header.test_accuracy > 0.7


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
    with pytest.raises(AbsentiaError, match="path must name a saved network"):
        load(path)
    path.write_bytes(b"no tensors")
    with pytest.raises(AbsentiaError, match=r"must be a network written by save\. Got damaged or foreign content"):
        load(path)
    save_file({"0.weight": torch.zeros(2, 3)}, path)
    with pytest.raises(AbsentiaError, match="Got a header without architecture, data_set, seed"):
        load(path)
    for architecture in ("3-9-2", "three", "3", "lenet", "cnn-7"):
        save(mlp((3, 16, 2), seed=5), path, replace(HEADER, architecture=architecture))
        with pytest.raises(AbsentiaError, match=f"weights that do not fit the architecture '{architecture}'"):
            load(path)
    metadata = {name: str(value) for name, value in asdict(HEADER).items()} | {"seed": "first"}
    save_file(mlp((3, 16, 2), seed=5).state_dict(), path, metadata=metadata)
    with pytest.raises(AbsentiaError, match="a header whose seed or test_accuracy is not a number"):
        load(path)


@pytest.fixture
def toy_models(tmp_path, monkeypatch):
    """Let `trained` know the toys, with a cache of its own; count how often data are loaded."""
    loads = []

    def loader(data):
        return lambda: loads.append(data.name) or data

    monkeypatch.setenv("ABSENTIA_CACHE", str(tmp_path))
    monkeypatch.setitem(models.LOADERS, "toy", loader(table()))
    monkeypatch.setitem(models.LOADERS, "sentences", loader(sentences()))
    monkeypatch.setitem(models.RECIPES, "toy", {"mlp": RECIPE})
    monkeypatch.setitem(models.RECIPES, "sentences", {"cnn": BRIEF, "lstm": BRIEF})
    return loads


def test_trained_trains_the_first_time_only(toy_models, tmp_path):
    first = trained("toy", seed=1)
    assert torch.equal(weights(trained("toy", seed=1)), weights(first))
    assert toy_models == ["toy"]
    trained("toy", seed=2)
    assert toy_models == ["toy", "toy"]
    assert model_file("toy", 1).parent == tmp_path / "models"
    assert len(list((tmp_path / "models").iterdir())) == 2


def test_quick_runs_take_what_is_at_hand_or_train_shortly(toy_models, monkeypatch):
    monkeypatch.setattr(models, "QUICK_ROWS", 20)
    short = trained("toy", seed=5, quick=True)
    assert model_file("toy", seed=5).with_stem("toy-mlp-seed5-quick").is_file()
    assert torch.equal(weights(trained("toy", seed=5, quick=True)), weights(short))
    whole = trained("toy", seed=5)
    assert not torch.equal(weights(whole), weights(short))
    assert torch.equal(weights(trained("toy", seed=5, quick=True)), weights(whole))


def test_trained_writes_the_header(toy_models):
    model = trained("toy", seed=1)
    data = table()
    _, header = load(model_file("toy", 1))
    expected = accuracy(model, data.x_test, data.y_test)
    assert header == Header("3-16-2", "toy", 1, expected, str(RECIPE), __version__)


def test_trained_trains_again_when_the_recipe_has_changed(toy_models, monkeypatch):
    first = trained("toy")
    monkeypatch.setitem(models.RECIPES, "toy", {"mlp": replace(RECIPE, weight_decay=1.0)})
    assert not torch.equal(weights(trained("toy")), weights(first))
    assert toy_models == ["toy", "toy"]


def test_networks_of_one_data_set_have_files_of_their_own(toy_models):
    cnn = trained("sentences")
    lstm = trained("sentences", network="lstm")
    assert (type(cnn).__name__, type(lstm).__name__) == ("TextCNN", "TextLSTM")
    assert load(model_file("sentences"))[1].architecture == "cnn-12"
    assert load(model_file("sentences", network="lstm"))[1].architecture == "lstm-12"
    assert torch.equal(weights(trained("sentences", network="lstm")), weights(lstm))
    assert len(toy_models) == 2


def test_other_numbers_of_epochs_do_not_stand_in_for_the_usual_one(toy_models):
    brief = train("toy", epochs=1)
    assert brief.path == model_file("toy", epochs=1) != model_file("toy")
    assert model_file("toy", epochs=RECIPE.epochs) == model_file("toy")
    assert not torch.equal(weights(trained("toy")), weights(brief.model))
    assert "epochs=1," in brief.header.recipe


def test_train_writes_to_the_path_that_is_given(toy_models, tmp_path):
    result = train("toy", seed=3, path=tmp_path / "own" / "model.safetensors")
    again, header = load(tmp_path / "own" / "model.safetensors")
    assert header == result.header
    assert torch.equal(weights(again), weights(result.model))
    assert not (tmp_path / "models").exists()


def test_an_interrupted_training_leaves_no_file(toy_models, tmp_path, monkeypatch):
    def interrupt(*_arguments, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr(torch.optim.AdamW, "step", interrupt)
    for name in ("toy", "sentences"):
        with pytest.raises(KeyboardInterrupt):
            trained(name)
    assert toy_models == ["toy", "sentences"]
    assert not list(tmp_path.iterdir())


def test_what_can_not_be_trained_is_refused_before_anything_is_loaded(toy_models, tmp_path):
    with pytest.raises(AbsentiaError, match="name must be one of census, credit, mnist, cifar10, sst2"):
        trained("imagenet")
    with pytest.raises(AbsentiaError, match=r"network must be one of cnn, lstm on sentences\. Got 'lenet'"):
        trained("sentences", network="lenet")
    with pytest.raises(AbsentiaError, match=r"epochs must be at least 1\. Got 0"):
        train("toy", epochs=0)
    with pytest.raises(AbsentiaError, match="path must name a file"):
        train("toy", path=tmp_path)
    assert not toy_models


@pytest.mark.slow
@pytest.mark.parametrize(("name", "network"), [(name, network) for name in RECIPES for network in RECIPES[name]])
def test_every_recipe_trains_the_network_of_its_name(name, network, tmp_path, monkeypatch):
    data = {"mnist": digits(1, 28), "cifar10": digits(3, 32), "sst2": sentences(8)}.get(name, table(40))
    monkeypatch.setitem(models.LOADERS, name, lambda: data)
    found = train(name, network=network, epochs=1, path=tmp_path / "model")
    grey = name == "mnist" and network in ("resnet32", "vgg16")  # networks that usually have three colours
    kind = {"mlp": "3-100-100-2"}.get(network, f"{network}-12" if name == "sst2" else network + "-1" * grey)
    assert found.header.architecture == kind
    untrained = build(kind, seed=0)
    assert str(found.model) == str(untrained)
    assert not torch.equal(weights(found.model), weights(untrained))


def digits(channels, size):
    toy = pictures(8)
    x = torch.rand(4, channels, size, size)
    return replace(toy, x_train=x, x_test=x)


@pytest.mark.real_data
@pytest.mark.parametrize(("name", "least"), [("census", 0.845), ("credit", 0.72)])
def test_the_models_of_the_real_data_are_good_enough(name, least, tmp_path, monkeypatch):
    monkeypatch.setenv("ABSENTIA_CACHE", str(tmp_path))
    trained(name, retrain=True)
    assert load(model_file(name))[1].test_accuracy >= least
