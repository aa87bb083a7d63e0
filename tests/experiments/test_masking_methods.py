import pytest
import torch
from torch import nn

import absentia as ab
from experiments import masking_methods as experiment
from experiments.cell_colours import Colours, Schedule, learn_colours, penultimate
from experiments.datasets import ImageData

SETTING = experiment.Setting(
    cells=(4, 4),
    printed={"zero": 1.0, "mean": 0.5, "blur": 0.4, "conditional": 0.3, "learned": 0.2},
    blur=1.0,
    rows=40,
    schedule=Schedule(images=20, steps=3, batch=4),
    tried="one setting",
    from_noise=Schedule(images=20, steps=3, batch=4, orders=1.0),
    imputer_rows=20,
    imputer_epochs=1,
    imputer_draws=2,
    draws=1,
    default_images=8,
    default_steps=2,
)


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
    assert learned.values.shape == (2, 8, 8)
    for cell in scene.cells.unique():
        assert len(learned.values[scene.cells == cell].unique()) == 1
    # 4 orders of 16 players: walks of 5 coalitions; 20 images before and after, 3 steps of 4.
    assert learned.evaluations == 5 * (20 + 20 + 3 * 4)


def test_colours_are_learned_that_the_network_does_not_respond_to():
    """Features |x − colour| of a constant image: the colour itself has no marginal benefits, and no other has."""
    colour = torch.tensor([0.7, 0.2])

    class Apart(nn.Module):
        def forward(self, x):
            return (x - colour[:, None, None]).flatten(1)

    torch.manual_seed(0)
    network = nn.Sequential(Apart(), nn.Linear(32, 2))
    data = colour[:, None, None] + 0.1 * torch.randn(60, 2, 4, 4, generator=torch.Generator().manual_seed(0))
    cells = torch.arange(2)[:, None, None].expand(2, 4, 4)
    players = ab.Players.grid((2, 4, 4), cells=(2, 2))
    start = data + torch.tensor([-0.4, 0.4])[:, None, None]
    data = torch.cat([data] * 9 + [start])  # so that the mean is not the answer, but the median is
    schedule = Schedule(images=600, steps=60, batch=16, value="features")
    found = learn_colours(network, data, torch.zeros(600).long(), players, cells, schedule, seed=0)
    assert torch.allclose(found.values[:, 0, 0], data.flatten(2).movedim(1, 0).flatten(1).median(1).values, atol=0.02)
    assert found.after < found.before


def test_colours_learned_from_noise_look_at_noise_in_the_masked_cells_alone(images, model, monkeypatch):
    scene = experiment.set_scene(images, SETTING, seed=0)
    seen = {}

    def learn(network, data, labels, players, cells, schedule, seed):
        seen.update(data=data, labels=labels, players=players, orders=schedule.orders)
        return Colours(data[0], 0.0, 0.0, 0)

    monkeypatch.setattr(experiment, "learn_colours", learn)
    experiment.learn_from_noise(model, scene, SETTING, seed=0)
    masked = scene.players.labels >= 0
    assert torch.equal(seen["data"][:, ~masked], scene.data[:20, ~masked])
    noise = seen["data"][:, masked]
    assert not torch.isin(noise, scene.data).any()
    assert scene.data.min() <= noise.min() < noise.max() <= scene.data.max()
    assert seen["players"] is scene.players
    assert seen["orders"] == 1.0


def test_features_are_those_of_the_layer_before_the_last(model):
    assert penultimate(model) == ab.Features("2")
    with pytest.raises(ab.AbsentiaError, match=r"model must be an nn.Sequential of two layers or more. Got Linear"):
        penultimate(nn.Linear(2, 2))


@pytest.mark.slow
def test_the_table_sets_ours_beside_the_printed_figures(images, model, monkeypatch):
    monkeypatch.setattr(ab, "train_imputer", lambda data, **_: ab.Marginal(data[:2]))
    scene = experiment.set_scene(images, SETTING, seed=0, count=3)
    figures, (masking,) = experiment.compare("toy", model, scene, SETTING, seed=0)
    assert [row[0] for row in masking.rows] == [*SETTING.printed, "learned from noise", "learned by default"]
    assert [row[3] for row in masking.rows] == [*(f"{value:.4f}" for value in SETTING.printed.values()), "–", "–"]
    assert figures["R of mean"] == pytest.approx(float(masking.rows[1][1]), abs=6e-4)
    assert "Goals, learned: the lowest R" in masking.note
    assert "Goals, learned from noise: the lowest R" in masking.note
    assert "a colour for each of 16 cells" in masking.note
    assert "This was chosen among one setting." in masking.note
    assert "3 test images of toy" in masking.note


def test_the_verdict_asks_for_the_lowest_r_and_one_as_low_as_printed():
    def verdict(**changes):
        figures = {"R of zero": 1.0, "R of mean": 0.4, "R of learned": 0.2, "R of learned by default": 0.3, **changes}
        return experiment.judge_lowest({"mnist": figures}).word

    assert verdict() == "as stated"
    assert verdict(**{"R of learned": 0.5, "R of learned from noise": 0.1}) == "no"
    assert verdict(**{"R of mean": 0.1}) == "no"
    assert verdict(**{"R of learned": 0.25}) == "no"  # the paper has 0.2185


def test_the_default_loss_is_another_method_because_r_measures_one_of_its_terms():
    figures = {"R of zero": 1.0, "R of mean": 0.4, "R of learned": 0.5, "R of learned by default": 0.1}
    figures["R of learned by L_Shapley"] = 0.45
    found = experiment.judge_lowest({"mnist": figures})
    assert found.words == "by another method (the default loss, which holds R's construction)"
    assert "which cells are masked" in found.reason
    figures["R of learned by L_Shapley"] = 0.15
    assert experiment.judge_lowest({"mnist": figures}).word == "as stated"


def test_the_usual_methods_are_judged_by_whether_the_conditional_has_the_lowest_r():
    figures = {"R of zero": 1.0, "R of mean": 0.4, "R of blur": 0.5, "R of conditional": 0.3, "R of learned": 0.1}
    both = {"mnist": figures, "cifar10": figures}
    assert experiment.judge_order(both).word == "as stated"
    found = experiment.judge_order({**both, "mnist": figures | {"R of mean": 0.2}})
    assert found.word == "no"
    assert "has on mnist mean (printed: mean), on cifar10 conditional (printed: conditional)" in found.reason


def test_the_verdict_tells_what_other_settings_of_few_images_give():
    usual = {"R of zero": 1.0, "R of mean": 0.4, "R of learned": 0.5, "R of learned by default": 0.1}
    name = experiment.WITHOUT_NOISE
    more = {f"R of {name}": 0.5, f"error of {name}": 0.1, "R of mean on the same images": 0.45}
    more |= {f"noise everywhere of {name}": 0.2, "noise everywhere of mean": 0.3}
    few = {"images": 3, f"by white noise, R of {experiment.EACH}": 0.2, "by white noise, R of mean": 0.1}
    few |= {f"by zero, R of {experiment.EACH}": 0.2, "by zero, R of mean": 0.3}
    reason = experiment.judge_lowest({"mnist": usual, "mnist-more": more, "mnist-few": few}).reason
    assert "has R 0.50 ± 0.10 on MNIST, above the mean's 0.45 on the same images" in reason
    assert "noise everywhere, it is below the mean (0.20 and 0.30)" in reason
    assert "for each of 3 images have R 0.20, the mean 0.10 there; by 1 of 2 references" in reason
    assert "is fitted to images with white noise in the masked cells" in reason
