import itertools
import math
from dataclasses import replace

import pytest
import torch
from torch import nn

from absentia import AbsentiaError
from experiments import training
from experiments.datasets import stratified_split
from experiments.networks import Normalise, TextCNN, TextLSTM, drawn_by, mlp
from experiments.training import Recipe, accuracy, fit, one_cycle_rate, shift_and_flip
from toy_data import pictures, sentences, table, weights

WIDTHS = (3, 16, 2)
RECIPE = Recipe("adamw", 1e-2, weight_decay=0.0, batch=32, epochs=30, patience=5, held_out=0.2)
ONE_CYCLE = Recipe("sgd", 0.1, weight_decay=1e-4, batch=16, epochs=8)


def small_cnn(seed=0):
    with drawn_by(seed):
        return nn.Sequential(
            Normalise([0.1], [0.2]),
            *(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Flatten(), nn.Dropout(0.1), nn.Linear(128, 2)),
        )


def noise():
    """Labels without rule: the longer they are learnt, the worse for rows held out."""
    return replace(table(160), y_train=torch.randint(2, (80,), generator=torch.Generator().manual_seed(5)))


def train_mlp(data, recipe=RECIPE, seed=0):
    return fit(mlp(WIDTHS, seed), data, recipe, seed)


def test_a_table_that_can_be_learnt_is():
    data = table()
    assert accuracy(mlp(WIDTHS, 0), data.x_test, data.y_test) < 0.75
    model = train_mlp(data)
    assert accuracy(model, data.x_test, data.y_test) > 0.9
    assert not model.training


@pytest.mark.parametrize("bfloat16", [False, True])
def test_pictures_that_can_be_learnt_are(bfloat16):
    data = pictures()
    network = fit(small_cnn(), data, replace(ONE_CYCLE, bfloat16=bfloat16, flip=True), seed=0)
    assert accuracy(network, data.x_test, data.y_test) > 0.9
    assert not network.training
    assert all(weight.is_contiguous() for weight in network.state_dict().values())
    assert {weight.dtype for weight in network.parameters()} == {torch.float32}


@pytest.mark.parametrize("make", [TextCNN, TextLSTM])
def test_sentences_that_can_be_learnt_are(make):
    data = sentences()
    network = make(12, 8, 8)
    fit(network, data, Recipe("adamw", 3e-2, weight_decay=0.0, batch=16, epochs=8), seed=0)
    assert accuracy(network, data.x_test, data.y_test) > 0.9
    assert (network.embedding.weight[0] == 0).all()


@pytest.mark.parametrize(
    ("make", "data", "recipe"),
    [
        (lambda: mlp(WIDTHS, 2), table(), RECIPE),
        (small_cnn, pictures(), replace(ONE_CYCLE, epochs=2, shift=1, flip=True)),
    ],
    ids=["until no better", "one cycle"],
)
def test_a_seed_fixes_the_training_and_the_global_generator_has_no_part_in_it(make, data, recipe):
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    first = fit(make(), data, recipe, seed=2)
    assert torch.equal(torch.rand(3), expected)
    assert torch.equal(weights(fit(make(), data, recipe, seed=2)), weights(first))
    assert not torch.equal(weights(fit(make(), data, recipe, seed=3)), weights(first))


@pytest.mark.parametrize("recipe", [replace(RECIPE, epochs=2), replace(ONE_CYCLE, epochs=1)])
def test_training_never_looks_at_the_test_rows(recipe):
    data = table()
    blind = replace(data, x_test=torch.full_like(data.x_test, torch.nan), y_test=torch.zeros_like(data.y_test))
    assert torch.equal(weights(train_mlp(data, recipe)), weights(train_mlp(blind, recipe)))


def watched(monkeypatch, look):
    """Call a function before each step that the progress bar counts."""

    class Bar:
        def __init__(self, steps, **_options):
            self.steps = steps

        def __iter__(self):
            for step in self.steps:
                look(step)
                yield step

        def set_postfix(self, *_arguments, **_options):
            pass

    monkeypatch.setattr(training, "tqdm", Bar)


def test_a_small_model_takes_one_thread_and_gives_the_others_back(monkeypatch):
    threads = []
    watched(monkeypatch, lambda _: threads.append(torch.get_num_threads()))
    torch.set_num_threads(2)
    train_mlp(table(), replace(RECIPE, epochs=2))
    assert threads == [1] * 10  # two epochs of five batches
    assert torch.get_num_threads() == 2


def test_a_small_model_uses_every_kept_row_in_each_epoch(monkeypatch):
    batches = []
    watched(monkeypatch, batches.append)
    data = table()
    train_mlp(data, replace(RECIPE, epochs=2))
    kept, _ = stratified_split(data.y_train, RECIPE.held_out, seed=0)
    assert [len(rows) for rows in batches] == [32] * 5 * 2
    train_mlp(data, replace(RECIPE, epochs=1, batch=50))
    assert [len(rows) for rows in batches[10:]] == [50, 50, 50, 10]
    for epoch in (batches[:5], batches[5:10], batches[10:]):
        assert torch.equal(torch.cat(epoch).sort().values, kept.sort().values)


def test_the_epoch_with_the_lowest_held_out_loss_is_kept():
    data = noise()
    _, held_out = stratified_split(data.y_train, RECIPE.held_out, seed=0)
    x = data.x_train[held_out]
    y = data.y_train[held_out]
    endless = replace(RECIPE, patience=1000)
    losses = [
        nn.functional.cross_entropy(train_mlp(data, replace(endless, epochs=epochs))(x), y).item()
        for epochs in range(1, 30)
    ]
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] == losses[-10]


def test_training_ends_when_patience_does(monkeypatch):
    batches = []
    watched(monkeypatch, batches.append)
    patient = train_mlp(noise(), replace(RECIPE, epochs=500))
    assert len(batches) % 2 == 0  # 64 rows in batches of 32
    best = len(batches) // 2 - RECIPE.patience
    assert 0 < best < 100
    assert torch.equal(weights(patient), weights(train_mlp(noise(), replace(RECIPE, epochs=best))))


def test_the_rate_is_constant_with_patience_and_follows_one_cycle_without(monkeypatch):
    rates = []
    step = torch.optim.AdamW.step

    def record(optimiser, *arguments):
        rates.append(optimiser.param_groups[0]["lr"])
        return step(optimiser, *arguments)

    monkeypatch.setattr(torch.optim.AdamW, "step", record)
    train_mlp(table(), replace(RECIPE, epochs=1))
    assert rates == [RECIPE.learning_rate] * 5
    rates.clear()
    train_mlp(table(), replace(RECIPE, epochs=2, patience=None))
    assert rates == pytest.approx([RECIPE.learning_rate * one_cycle_rate(step, 12) for step in range(12)])


def test_one_cycle_takes_each_sample_once_an_epoch_in_whole_batches(monkeypatch):
    batches = []
    watched(monkeypatch, batches.append)
    fit(small_cnn(), pictures(100), replace(ONE_CYCLE, epochs=3), seed=0)
    assert [len(rows) for rows in batches] == [16] * 9
    epochs = [torch.cat(batches[start : start + 3]) for start in (0, 3, 6)]
    assert all(epoch.unique().numel() == 48 for epoch in epochs)
    assert not torch.equal(epochs[0], epochs[1])


def test_fewer_samples_than_a_batch_are_one_batch(monkeypatch):
    batches = []
    watched(monkeypatch, batches.append)
    fit(small_cnn(), pictures(12), replace(ONE_CYCLE, epochs=2), seed=0)
    assert [len(rows) for rows in batches] == [6, 6]


def test_a_training_that_goes_wrong_says_so():
    with pytest.raises(AbsentiaError, match=r"recipe\.learning_rate must be low enough for a finite loss\. Got 1e"):
        fit(mlp(WIDTHS, 0), table(), replace(ONE_CYCLE, learning_rate=1e38), seed=0)


def test_the_progress_bar_shows_loss_and_accuracy(monkeypatch):
    told = []
    watched(monkeypatch, lambda _: None)
    monkeypatch.setattr(training.tqdm, "set_postfix", lambda _self, figures, **_options: told.append(figures))
    fit(small_cnn(), pictures(), ONE_CYCLE, seed=0)
    train_mlp(table(), replace(RECIPE, epochs=1))
    assert all(set(figures) == {"loss", "accuracy"} for figures in told)
    assert float(told[23]["loss"]) < float(told[0]["loss"])  # the last batch of the pictures


def test_rates_rise_to_one_and_fall_towards_nothing():
    rates = [one_cycle_rate(step, 100) for step in range(100)]
    peak = rates.index(1.0)
    assert peak == 24
    assert rates[: peak + 1] == pytest.approx([(step + 1) / 25 for step in range(25)])
    assert rates[peak:] == pytest.approx([(1 + math.cos(math.pi * k / 76)) / 2 for k in range(76)])
    assert 0 < rates[-1] < 0.001
    assert [one_cycle_rate(0, 1), one_cycle_rate(1, 2)] == pytest.approx([1.0, 0.5])


def test_images_are_shifted_and_mirrored_as_a_whole():
    draw = torch.Generator().manual_seed(4)
    images = torch.rand(200, 2, 5, 6, generator=draw)
    moved = shift_and_flip(images, shift=1, flip=True, generator=draw)
    padded = nn.functional.pad(images, (1, 1, 1, 1))
    seen = set()
    for original, image in zip(padded, moved, strict=True):
        found = set()
        for top, left in itertools.product(range(3), range(3)):
            cut = original[:, top : top + 5, left : left + 6]
            found |= {
                (top, left, mirrored) for mirrored in (0, 1) if torch.equal(image, cut.flip(2) if mirrored else cut)
            }
        assert len(found) == 1
        seen |= found
    assert len(seen) == 18  # every way to move them occurs


def test_images_stay_where_they_are_if_nothing_is_asked_for():
    images = torch.rand(4, 3, 5, 5)
    assert torch.equal(shift_and_flip(images, 0, flip=False, generator=torch.Generator()), images)


def test_accuracy_counts_right_answers_batch_by_batch(monkeypatch):
    sizes = []

    def model(rows):
        sizes.append(len(rows))
        return torch.stack([-rows[:, 0], rows[:, 0]], dim=1)

    monkeypatch.setattr(training, "_EVALUATION_BATCH", 4)
    x = torch.tensor([1.0, -1, 1, 1, -1, 1, -1, -1, 1, 1])[:, None]
    y = torch.tensor([1, 0, 1, 1, 0, 1, 0, 1, 0, 0])
    assert accuracy(nn.Identity(), torch.cat([-x, x], 1), y) == 0.7
    assert accuracy(Wrapped(model), x, y) == 0.7
    assert sizes == [4, 4, 2]


class Wrapped(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, rows):
        return self.function(rows)


def test_accuracy_is_that_of_evaluation_mode():
    network = nn.Sequential(nn.Dropout(1.0), nn.Identity()).train()
    assert accuracy(network, torch.tensor([[0.0, 1.0]] * 8), torch.ones(8, dtype=torch.int64)) == 1
    assert network.training


def test_half_precision_is_used_where_the_machine_has_it(monkeypatch):
    seen = []

    class Watch(nn.Module):
        def forward(self, x):
            seen.append(x.dtype)
            return x

    for fast in (False, True):
        monkeypatch.setattr(training, "_is_fast_in_bfloat16", lambda _device, fast=fast: fast)
        network = small_cnn()
        network.insert(2, Watch())
        fit(network, pictures(24), replace(ONE_CYCLE, epochs=1, bfloat16=True), seed=0)
        fit(network, pictures(24), replace(ONE_CYCLE, epochs=1, bfloat16=False), seed=0)
    assert seen == [torch.float32, torch.float32, torch.bfloat16, torch.float32]
