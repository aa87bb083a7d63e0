import copy
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import absentia as ab
from absentia import AbsentiaError, LogOdds, Players, Probability, from_numpy
from absentia.absences import Baseline, BringsModel, Imputer, Marginal, StandIns, Surrogate, train_surrogate
from absentia.coalitions import enumerate_coalitions
from absentia.games import MaskedModel, value_table
from absentia.storage import read_tensors, write_tensors
from known_games import mlp
from known_gaussian import ENTRIES, conditional, draw

ALL = enumerate_coalitions(ENTRIES)
OLD_FILES = Path(__file__).parents[1] / "old_files"
WEIGHTS = torch.tensor([1.0, 4.0, 0.5, -0.2])
DATA = draw(1500).float()
X = draw(40, seed=1).float()


def linear(rows):
    return rows @ WEIGHTS.to(rows)


def logits(rows):
    """Two classes, sure of themselves."""
    score = 3 * (rows[:, 0] - 1)
    return torch.stack([torch.zeros_like(score), score], dim=1)


@pytest.fixture(scope="module")
def surrogate():
    return train_surrogate(linear, DATA, epochs=60)


@pytest.fixture(scope="module")
def of_classes():
    return train_surrogate(logits, DATA, epochs=30)


def test_it_gives_the_conditional_expectation_of_the_output(surrogate):
    truth = torch.stack([conditional(X.double(), coalition)[0] @ WEIGHTS.double() for coalition in ALL], dim=1)
    errors = {
        name: float((MaskedModel(linear, X, absence=absence)(ALL) - truth).square().mean().sqrt())
        for name, absence in {"surrogate": surrogate, "marginal": Marginal(DATA, draws=200)}.items()
    }
    assert errors["surrogate"] < 0.15 * linear(DATA).std()
    assert errors["surrogate"] < 0.5 * errors["marginal"]


def test_with_nothing_absent_it_is_nearly_the_model(surrogate):
    game = MaskedModel(linear, X, absence=surrogate)
    assert surrogate.fidelity > 0.98
    assert surrogate.masked_fidelity < surrogate.fidelity
    apart = game(ALL[-1:])[:, 0] - linear(X)
    assert 1 - apart.square().sum() / (linear(X) - linear(X).mean()).square().sum() > 0.97


def test_classes_are_given_the_average_probability(of_classes):
    assert of_classes.classes
    assert of_classes.fidelity > 0.9
    with_nothing = MaskedModel(logits, X, absence=of_classes, readout=Probability(1))(ALL[:1])
    assert torch.allclose(with_nothing, logits(DATA).softmax(1)[:, 1].mean(), atol=0.06)
    # Entry 3 says nothing of entry 0, which decides.
    alone = MaskedModel(logits, X, absence=of_classes, readout=Probability(1))(ALL[8:9])
    assert (alone - with_nothing).abs().mean() < 0.1


def test_the_game_runs_the_surrogate_and_reads_its_output(of_classes):
    calls = 0

    def counting(rows):
        nonlocal calls
        calls += 1
        return logits(rows)

    game = MaskedModel(counting, X, 1, absence=of_classes)
    table = value_table(game)
    assert calls == 0
    assert isinstance(of_classes, BringsModel)
    assert game.draws == 1
    masked = torch.where(ALL[5], X, torch.nan)
    expected = LogOdds(1)(of_classes.network(masked), torch.arange(len(X)))
    assert torch.allclose(table.values[:, 5].float(), expected, atol=1e-5)
    assert torch.allclose(game(ALL), table.values.float(), atol=1e-5)


class Halves:
    """An absence with a model of its own that is known: absent entries count as 0.5."""

    def bind(self, x):
        return StandIns(x, torch.full_like(x[:1], torch.nan)[None])

    def instead_of(self, model):
        return lambda rows: model(rows.nan_to_num(0.5))


@pytest.mark.parametrize("readout", [LogOdds(1), Probability(0), None])
def test_an_own_model_that_fills_in_a_baseline_makes_the_game_of_that_baseline(readout):
    assert isinstance(Halves(), BringsModel)
    assert not isinstance(Baseline(0.5), BringsModel)
    model = mlp(ENTRIES, 3, dtype=torch.float32)
    own = MaskedModel(model, X, absence=Halves(), readout=readout)
    plain = MaskedModel(model, X, absence=Baseline(0.5), readout=readout)
    assert torch.allclose(own(ALL), plain(ALL), atol=1e-4)
    assert torch.allclose(value_table(own).values, value_table(plain).values, atol=1e-4)


def test_some_samples_of_a_game_have_the_values_of_the_whole(surrogate):
    game = MaskedModel(linear, X, absence=surrogate)
    chosen = torch.tensor([4, 3])
    part = game.evaluator.values(game.fill.select(chosen), ALL, samples=chosen)
    assert torch.allclose(part, game(ALL)[[4, 3]], atol=1e-5)


def test_estimators_are_wrapped():
    from sklearn.linear_model import LogisticRegression

    estimator = LogisticRegression().fit(DATA[:200].numpy(), (DATA[:200, 0] > 1).numpy())
    assert train_surrogate(estimator, DATA[:200], epochs=5).classes


def test_any_model_and_any_players_will_do():
    x = np.random.default_rng(0).normal(size=(60, 4))
    players = Players.groups({"first": [0, 1], "last": [3]}, features=4)
    model = from_numpy(lambda rows: np.stack([rows[:, 0] > 0, rows[:, 0] <= 0], 1) * 1.0, probabilities=True)
    surrogate = train_surrogate(model, x, players=players, epochs=2)  # a probability of 0 has a logit of −∞
    assert surrogate.record.players == 2
    module = mlp(4, 3)
    module.train()
    double = train_surrogate(module, x, epochs=1)
    assert module.training
    game = MaskedModel(module, x[:3], absence=double)
    assert game.x.dtype == torch.float32
    assert game(ALL).shape == (3, 16)
    assert train_surrogate(lambda rows: rows[:, :2] + 1.0, x, classes=False, epochs=1).network.outputs == (2,)


def test_images_have_convolutions_and_a_plane_of_presence():
    images = torch.rand(80, 2, 6, 7, generator=torch.Generator().manual_seed(0))
    players = Players.grid((2, 6, 7), cells=(2, 2))
    surrogate = train_surrogate(lambda rows: rows.mean((1, 2, 3)), images, players=players, epochs=1)
    assert surrogate.network.body[0].in_channels == 3
    game = MaskedModel(lambda rows: rows.mean((1, 2, 3)), images[:2], players=players, absence=surrogate)
    assert value_table(game).values.shape == (2, 16)


def test_the_same_seed_gives_the_same_and_the_generator_of_torch_is_left_alone():
    state = torch.get_rng_state()
    first = train_surrogate(linear, DATA[:100], epochs=2, seed=3)
    again = train_surrogate(linear, DATA[:100], epochs=2, seed=3)
    other = train_surrogate(linear, DATA[:100], epochs=2, seed=4)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(first.network(X), again.network(X))
    assert not torch.equal(first.network(X), other.network(X))


def test_training_stops_when_nothing_improves():
    surrogate = train_surrogate(lambda rows: rows[:, 0] * 0 + 2.0, DATA[:200], epochs=100_000)
    assert surrogate.record.stopped == "the held-out loss no longer fell"
    assert surrogate.record.epochs < 5000
    assert surrogate.record.loss < 1e-3


def test_it_is_saved_and_read_again(surrogate, tmp_path):
    path = tmp_path / "surrogate.safetensors"
    surrogate.save(path)
    again = Surrogate.load(path)
    masked = torch.where(ALL[6], X, torch.nan)
    assert torch.equal(again.network(masked), surrogate.network(masked))
    assert again.record == surrogate.record
    assert repr(again) == repr(surrogate)
    assert os.listdir(tmp_path) == ["surrogate.safetensors"]
    for word in ("1,350 rows", "4 players", "R²", "(4,)"):
        assert word in repr(surrogate)


def test_an_own_network_is_trained_and_is_needed_to_read_it_again(tmp_path):
    own = nn.Sequential(nn.Linear(8, 5), nn.Tanh(), nn.Linear(5, 1))
    before = copy.deepcopy(own.state_dict())
    surrogate = train_surrogate(linear, DATA[:100], network=own, epochs=2)
    assert all(torch.equal(before[name], value) for name, value in own.state_dict().items())
    surrogate.save(tmp_path / "own")
    assert torch.equal(Surrogate.load(tmp_path / "own", network=own).network(X), surrogate.network(X))
    with pytest.raises(AbsentiaError, match=r"network must be given, as it was to train_surrogate"):
        Surrogate.load(tmp_path / "own")
    with pytest.raises(AbsentiaError, match=r"network must have the layers of the saved network"):
        Surrogate.load(tmp_path / "own", network=nn.Linear(8, 1))


def test_files_that_are_not_surrogates_get_a_sentence(surrogate, tmp_path):
    path = tmp_path / "file"
    surrogate.save(path)
    with pytest.raises(AbsentiaError, match=r"path must hold a saved imputer. Got .*file, a saved surrogate"):
        Imputer.load(path)
    tensors, header = read_tensors(path)
    write_tensors(path, tensors, header | {"kind": "imputer"})
    with pytest.raises(AbsentiaError, match=r"path must hold a saved surrogate. Got .*file, a saved imputer"):
        Surrogate.load(path)
    write_tensors(path, tensors, header | {"format": 99})
    with pytest.raises(AbsentiaError, match=r"path must hold a saved surrogate of format 3 or older. Got format 99"):
        Surrogate.load(path)
    with pytest.raises(AbsentiaError, match=r"path must lie in a folder that exists"):
        surrogate.save(tmp_path / "nowhere" / "file")


def test_files_of_the_first_format_are_read():
    path = OLD_FILES / "surrogate_own.safetensors"
    fresh = nn.Linear(6, 2)
    untouched = fresh.weight.clone()
    old = Surrogate.load(path, network=fresh)
    answer = old.network(torch.tensor([[0.2, torch.nan, 0.9], [0.5, 0.1, torch.nan]]))
    expected = torch.tensor([[1.37638009, -0.08308201], [0.03453358, 0.15477593]])  # of the code that wrote it
    assert torch.allclose(answer, expected, atol=1e-6)
    assert torch.equal(fresh.weight, untouched)
    assert (old.classes, old.fidelity, old.masked_fidelity, old.record.epochs) == (True, 1.0, 0.9375, 1)
    with pytest.raises(AbsentiaError, match=r"network must be given, as it was to train_surrogate"):
        Surrogate.load(path)


def test_the_loss_is_the_divergence_of_the_distributions(of_classes):
    masked = torch.where(ALL[torch.arange(40) % 16], X, torch.nan)
    answer = of_classes.network(masked).log_softmax(1)
    expected = nn.functional.kl_div(answer, logits(X).log_softmax(1), log_target=True, reduction="none").sum(1)
    assert torch.allclose(of_classes.network.loss(masked, logits(X), classes=True), expected, atol=1e-5)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: train_surrogate(linear, DATA[:1]), "data must have at least 2 rows"),
        (lambda: train_surrogate(linear, DATA[:50], epochs=0), "epochs must be at least 1"),
        (
            lambda: train_surrogate(linear, DATA[:50], players=Players.features(3)),
            r"players must have the rows' shape",
        ),
        (lambda: train_surrogate(linear, DATA[:50], classes=True), r"model must return \(rows, classes\) for a surr"),
        (
            lambda: train_surrogate(lambda r: logits(r).softmax(1), DATA[:50]),
            "model must return logits for a surrogate",
        ),
        (
            lambda: train_surrogate(lambda r: logits(r) / 0, DATA[:50]),
            "model must return logits. Got NaN or infinity",
        ),
        (lambda: train_surrogate(lambda r: linear(r) / 0, DATA[:50]), "model must return finite outputs. Got 50"),
        (
            lambda: train_surrogate(linear, DATA[:50], network=nn.Linear(4, 1)),
            r"network must take rows of shape \(8,\)",
        ),
        (lambda: train_surrogate(linear, DATA[:50], network=nn.Linear(8, 3)), r"network must return \(rows, 1\)"),
        (
            lambda: train_surrogate(linear, torch.ones(9, 4).long(), players=Players.tokens(4)),
            "x must be in floating point for a surrogate. Got torch.int64 instead. Embed tokens first",
        ),
    ],
)
def test_bad_input_gets_a_sentence(make, sentence):
    with pytest.raises(AbsentiaError, match=sentence):
        make()


def test_samples_that_do_not_fit_get_a_sentence(surrogate):
    with pytest.raises(AbsentiaError, match=r"surrogate must have rows of the shape of one sample, \(3,\)"):
        surrogate.bind(X[:, :3])
    with pytest.raises(AbsentiaError, match=r"x must be in floating point for Surrogate. .* Embed tokens first"):
        surrogate.bind(X.long())


SIX_ROWS = torch.rand(6, 3, generator=torch.Generator().manual_seed(1))


def total(rows):
    return rows.sum(1)


def test_a_network_that_is_given_for_a_surrogate_is_not_changed():
    network = nn.Linear(6, 1).double()
    ab.train_surrogate(total, SIX_ROWS, epochs=1, progress=False, network=network)
    assert network.weight.dtype == torch.float64
