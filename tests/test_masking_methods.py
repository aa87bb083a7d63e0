import pytest
import torch
from torch import nn

import absentia as ab
from absentia.papers import masking_methods as experiment
from absentia.papers.image_data import ImageData

SETTING = experiment.Setting(
    cells=(4, 4),
    printed={"zero": 1.0, "mean": 0.5, "blur": 0.4, "conditional": 0.3, "learned": 0.2},
    blur=1.0, rows=40, loss="marginal", orders=0.2, learned_from=4, evaluations=2**8, steps=1, draws=1,
)  # fmt: skip


@pytest.fixture
def images():
    """Eight-pixel images of two colours whose class is which half is brighter."""
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(80, 2, 8, 8, generator=generator)
    y = (x[:, :, :4].mean((1, 2, 3)) > x[:, :, 4:].mean((1, 2, 3))).long()
    return ImageData("toy", x[:50], y[:50], x[50:], y[50:], ("lower", "upper"))


@pytest.fixture
def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(256, 2)).eval()


def test_the_middle_of_the_paper_s_grids():
    assert experiment.central_cells((7, 7))[0] == (1, 2)
    assert experiment.central_cells((7, 7))[-1] == (4, 4)
    with pytest.raises(ab.AbsentiaError, match="cells must hold 4 rows of 3"):
        experiment.central_cells((3, 7))


def test_the_scene_has_twelve_players_and_a_cell_of_its_own_for_every_colour(images):
    scene = experiment.set_scene(images, SETTING, seed=0)
    assert len(scene.players) == 12
    assert scene.data.shape == (40, 2, 8, 8)
    assert len(scene.cells.unique()) == 2 * 16
    assert not set(scene.cells[0].unique().tolist()) & set(scene.cells[1].unique().tolist())
    again = experiment.set_scene(images, SETTING, seed=0)
    assert torch.equal(scene.x, again.x)


def test_the_learned_baseline_has_one_colour_a_cell(images, model):
    scene = experiment.set_scene(images, SETTING, seed=0)
    learned = experiment.learn(model, scene, SETTING, seed=0)
    for cell in scene.cells.unique():
        inside = (scene.cells == cell) & (scene.players.labels >= 0)
        assert len(learned.values[inside].unique()) <= 1


def test_the_tables_set_ours_beside_the_printed_figures(images, model, monkeypatch):
    monkeypatch.setattr(experiment, "IMAGES", 3)
    monkeypatch.setattr(experiment, "train_imputer", lambda data, **_: ab.Marginal(data[:2]))
    scene = experiment.set_scene(images, SETTING, seed=0)
    masking, noise = experiment.compare("toy", model, scene, SETTING, seed=0)
    assert [row[0] for row in masking.rows] == list(SETTING.printed)
    assert [row[3] for row in masking.rows] == [f"{value:.4f}" for value in SETTING.printed.values()]
    assert "Goals: learned has the lowest R" in masking.note
    assert [row[0] for row in noise.rows] == ["image", "white noise", "ratio"]
    image, white, ratio = (float(row[1]) for row in noise.rows)
    assert ratio == pytest.approx(image / white, rel=0.05)


def test_an_unknown_data_set_is_refused():
    with pytest.raises(ab.AbsentiaError, match="name must be one of mnist, cifar10"):
        experiment.masking_tables("census")
