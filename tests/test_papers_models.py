import os
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from absentia import AbsentiaError, __version__
from absentia.cli import app
from absentia.papers import models
from absentia.papers.datasets import MNIST, SST2, mnist, sst2
from absentia.papers.models import (
    RECIPES,
    Header,
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
from absentia.papers.saved_models import build
from absentia.papers.training import OneCycle, Recipe
from published import idx, publish, tsv
from toy_data import sentences, table, weights

pytest.importorskip("safetensors")

HEADER = Header("3-16-2", "toy", seed=4, test_accuracy=0.1 + 0.2, recipe="a recipe", absentia_version="1.2.3")
RECIPE = Recipe((3, 16, 2), 1e-2, weight_decay=0.0, batch=32, epochs=5, patience=5, held_out=0.2)
BRIEF = OneCycle("adamw", 1e-2, weight_decay=0.0, batch=8, epochs=1)


def test_the_models_have_the_widths_of_the_paper():
    for model, players in ((census_mlp(), 12), (credit_mlp(), 20)):
        linear = [layer for layer in model if isinstance(layer, torch.nn.Linear)]
        assert [layer.in_features for layer in linear] + [linear[-1].out_features] == [players, 100, 100, 2]
        assert model(torch.zeros(5, players)).shape == (5, 2)
    assert RECIPES["census"]["mlp"].widths[0] == 12
    assert RECIPES["credit"]["mlp"].widths[0] == 20


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
    for architecture in ("3-9-2", "three", "3", "lenet", "cnn-7"):
        save(mlp((3, 16, 2), seed=5), path, replace(HEADER, architecture=architecture))
        with pytest.raises(AbsentiaError, match=f"weights that do not fit the architecture '{architecture}'"):
            load(path)
    metadata = {name: str(value) for name, value in asdict(HEADER).items()} | {"seed": "first"}
    save_file(mlp((3, 16, 2), seed=5).state_dict(), path, metadata=metadata)
    with pytest.raises(AbsentiaError, match="a header whose seed or test_accuracy is no number"):
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
    cnn, lstm = trained("sentences"), trained("sentences", network="lstm")
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


def test_a_recipe_for_other_data_is_refused(toy_models, monkeypatch):
    monkeypatch.setitem(models.RECIPES, "toy", RECIPES["census"])
    with pytest.raises(AbsentiaError, match=r"recipe\.widths must begin with the 3 columns .* its 2 classes\. Got"):
        trained("toy")


def test_every_recipe_has_a_network(monkeypatch):
    for name, recipes in RECIPES.items():
        for network, recipe in recipes.items():
            if isinstance(recipe, OneCycle):
                assert build(f"{network}-9" if name == "sst2" else network, seed=0)


def small_files(folder):
    """A few digits and a few sentences in the published forms."""
    draw = np.random.default_rng(0)
    images = [idx(draw.integers(0, 256, (16, 28, 28), dtype=np.uint8)), idx(np.arange(16, dtype=np.uint8) % 10)]
    text = tsv(["a good film", "a bad film", "good", "bad bad"] * 4, [1, 0, 1, 0] * 4)
    return publish(folder, MNIST, *images, *images), publish(folder, SST2, text, text)


@pytest.fixture
def shell(tmp_path, monkeypatch):
    digits, reviews = small_files(tmp_path / "data")
    monkeypatch.setenv("ABSENTIA_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("ABSENTIA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(models.LOADERS, "mnist", lambda: mnist(digits))
    monkeypatch.setitem(models.LOADERS, "sst2", lambda: sst2(reviews))
    return lambda *words: CliRunner().invoke(app, ["train", *words])


@pytest.mark.parametrize("words", [("mnist",), ("sst2",), ("sst2", "--network", "lstm")], ids=" ".join)
def test_the_command_trains_and_tells_accuracy_and_file(shell, words):
    result = shell(*words, "--epochs", "1", "--seed", "2")
    assert result.exit_code == 0
    path = model_file(words[0], seed=2, network=words[2] if len(words) > 1 else None, epochs=1)
    header = load(path)[1]
    assert result.stdout == (
        f"{header.architecture} on {words[0]}: test accuracy {header.test_accuracy:.2%}\nWritten to {path}\n"
    )


def test_the_command_writes_to_a_file_of_ones_own(shell, tmp_path):
    assert shell("sst2", "--epochs", "2", "-o", str(tmp_path / "own.safetensors")).exit_code == 0
    assert load(tmp_path / "own.safetensors")[1].data_set == "sst2"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["imagenet"], "name must be one of census, credit, mnist, cifar10, sst2. Got 'imagenet' instead."),
        (
            ["mnist", "--network", "cnn"],
            "network must be one of lenet, alexnet on mnist. Got 'cnn' instead.",
        ),
    ],
)
def test_wrong_names_give_one_sentence_and_exit_code_2(words, sentence, capsys, monkeypatch):
    from absentia import cli

    monkeypatch.setattr("sys.argv", ["absentia", "train", *words])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 2
    assert capsys.readouterr().err == f"absentia: {sentence}\n"


@pytest.mark.skipif(not os.environ.get("ABSENTIA_DATA"), reason="ABSENTIA_DATA names no folder with the real data")
@pytest.mark.parametrize(("name", "least"), [("census", 0.845), ("credit", 0.72)])
def test_the_models_of_the_real_data_are_good_enough(name, least, tmp_path, monkeypatch):
    monkeypatch.setenv("ABSENTIA_CACHE", str(tmp_path))
    trained(name)
    assert load(model_file(name))[1].test_accuracy >= least
