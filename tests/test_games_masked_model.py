"""Games of a model on masked samples."""

import numpy as np
import pytest
import torch
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from torch import nn

from absentia import (
    AbsentiaError,
    Baseline,
    Blur,
    Features,
    Logit,
    LogOdds,
    Marginal,
    MaskedModel,
    Output,
    Players,
    Probability,
    from_numpy,
    harsanyi,
    value_table,
)
from absentia.coalitions import enumerate_coalitions
from known_games import cnn, mlp
from typechecker import unchecked

X = torch.randn(4, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
ZERO = Baseline(0.0)
ALL = enumerate_coalitions(5)


def by_hand(model, x, baseline, coalitions):
    """Mask and run one row at a time."""
    rows = [[model(torch.where(c, sample, baseline)[None])[0] for c in coalitions] for sample in x]
    return torch.stack([torch.stack(row) for row in rows]).detach()


@pytest.mark.parametrize("batch_size", [None, 1, 3, 7, 1000])
def test_values_are_the_models_on_masked_inputs(batch_size):
    model = mlp(5)
    game = MaskedModel(model, X, absence=Baseline(0.3), batch_size=batch_size)
    expected = by_hand(model, X, torch.tensor(0.3, dtype=torch.float64), ALL)[..., 0]
    assert torch.allclose(game(ALL), expected)
    assert torch.allclose(value_table(game).values, expected)


@pytest.mark.parametrize("batch_size", [1, 10, 1000])
def test_each_sample_may_have_coalitions_of_its_own(batch_size):
    game = MaskedModel(mlp(5), X, absence=ZERO, batch_size=batch_size)
    own = torch.rand(4, 6, 5) > 0.5
    together = game(own)
    for sample in range(4):
        assert torch.allclose(together[sample], game(own[sample])[sample])


def test_values_are_averaged_over_all_draws():
    model = mlp(5)
    background = torch.randn(7, 5, dtype=torch.float64)
    game = MaskedModel(model, X, absence=Marginal(background), batch_size=4)
    expected = torch.stack([by_hand(model, X, row, ALL)[..., 0] for row in background]).mean(0)
    assert game.draws == 7
    assert torch.allclose(game(ALL), expected)
    table = value_table(game)
    assert torch.allclose(table.values, expected)
    assert table.evaluations == 4 * 32 * 7


def test_images_with_grid_players_and_a_blur():
    model = cnn()
    x = torch.rand(2, 1, 8, 8, dtype=torch.float64)
    players = Players.grid((1, 8, 8), cells=(2, 2))
    game = MaskedModel(model, x, [0, 2], players=players, absence=Blur(1.0))
    table = value_table(game)
    assert table.names == ("r0c0", "r0c1", "r1c0", "r1c1")
    assert torch.allclose(table.values[:, -1], LogOdds([0, 2])(model(x), torch.tensor([0, 1])).detach())


def test_tokens_stay_integers():
    model = nn.Sequential(nn.Embedding(10, 3), nn.Flatten(), nn.Linear(12, 2))
    x = torch.randint(1, 10, (2, 4))
    game = MaskedModel(model, x, 1, players=Players.tokens(4), absence=Baseline(0))
    assert value_table(game).values.shape == (2, 16)
    assert game.x.dtype == torch.int64


def test_integers_become_the_models_type_otherwise():
    game = MaskedModel(mlp(3, dtype=torch.float32), np.array([[1, 2, 3]]), absence=ZERO)
    assert game.x.dtype == torch.float32
    assert value_table(game).samples == 1


@pytest.mark.parametrize(
    ("outputs", "y", "note"),
    [
        (1, None, "the output as it is"),
        (1, [1, 0, 1, 1], "log-odds of each sample's class (1, 0, 1, 1)"),
        (3, 2, "log-odds of class 2"),
    ],
)
def test_without_a_readout_the_result_says_what_was_taken(outputs, y, note):
    game = MaskedModel(mlp(5, outputs), X, y, absence=ZERO)
    assert value_table(game).readout == note
    assert note in repr(harsanyi(game))


def test_without_y_the_class_predicted_on_the_full_sample_is_taken():
    model = mlp(5, 3)
    game = MaskedModel(model, X, absence=ZERO, batch_size=2)
    predicted = model(X).argmax(1)
    assert torch.equal(game.readout.y, predicted)
    assert "class predicted on the full sample" in value_table(game).readout
    assert torch.allclose(game(ALL)[:, -1], LogOdds(predicted)(model(X), torch.arange(4)).detach())


def test_a_model_of_shape_batch_is_taken_as_it_is():
    game = MaskedModel(lambda rows: rows.sum(1), X, absence=ZERO)
    assert torch.allclose(game(ALL)[:, -1], X.sum(1))


@pytest.mark.parametrize("readout", [LogOdds([0, 1, 2, 0]), Logit(1), Probability(2), Output(1)])
def test_readouts_of_every_kind(readout):
    model = mlp(5, 3)
    game = MaskedModel(model, X, absence=ZERO, readout=readout)
    assert torch.allclose(game(ALL)[:, -1], readout(model(X), torch.arange(4)).detach())
    assert value_table(game).readout == str(readout)


def test_features_of_a_layer_are_vectors():
    model = mlp(5, 3)
    game = MaskedModel(model, X, absence=ZERO, readout=Features("3"))
    values = game(ALL)
    assert values.shape == (4, 32, 16)
    assert torch.allclose(values[:, -1], model[:4](X).detach())
    with pytest.raises(AbsentiaError, match=r"readout must give one number for a table of values\. Got features of"):
        value_table(game)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_scikit_learn_models_by_the_adapter():
    x = np.random.default_rng(0).normal(size=(60, 5))
    y = np.arange(60) % 2
    forest = GradientBoostingClassifier(n_estimators=5, random_state=0).fit(x, y)
    game = MaskedModel(from_numpy(forest.predict_proba, probabilities=True), x[:3], y[:3], absence=Baseline.mean(x))
    p = forest.predict_proba(x[:3])[np.arange(3), y[:3]]
    assert np.allclose(value_table(game).values[:, -1], np.log(p / (1 - p)))


def test_probabilities_taken_for_logits_are_refused():
    x = np.random.default_rng(0).normal(size=(60, 5))
    y = np.arange(60) % 2
    forest = RandomForestClassifier(n_estimators=3, random_state=0).fit(x, y)
    with pytest.raises(AbsentiaError, match=r"model must return logits .* from_numpy\(…, probabilities=True\)"):
        MaskedModel(from_numpy(forest.predict_proba), x[:3], 1, absence=ZERO)
    assert (
        value_table(MaskedModel(from_numpy(forest.predict_proba), x[:3], absence=ZERO, readout=Output(1))).samples
        == 3
    )


def test_gradients_reach_the_baseline_and_only_when_asked():
    values = torch.zeros(5, dtype=torch.float64, requires_grad=True)
    model = mlp(5)
    assert not MaskedModel(model, X, absence=Baseline(values))(ALL).requires_grad
    game = MaskedModel(model, X, absence=Baseline(values), gradient=True, batch_size=7)
    harsanyi(game).effects.abs().sum().backward()
    assert values.grad.abs().min() > 0
    assert all(p.grad is None for p in model.parameters())


def test_the_models_mode_is_put_back():
    model = nn.Sequential(nn.Linear(5, 4), nn.Dropout(0.5), nn.Linear(4, 1)).double().train()
    game = MaskedModel(model, X, absence=ZERO)
    assert torch.equal(game(ALL), game(ALL))
    assert model.training
    assert model[1].training


def test_memory_that_runs_out_halves_the_batch():
    net = mlp(5)

    def model(rows):
        if len(rows) > 5:
            raise MemoryError
        return net(rows)

    game = MaskedModel(model, X, absence=ZERO, batch_size=32)
    assert torch.allclose(value_table(game).values, MaskedModel(net, X, absence=ZERO).table().values)
    assert torch.allclose(game(ALL), MaskedModel(net, X, absence=ZERO)(ALL))


def test_the_masked_inputs_are_never_made_all_at_once():
    largest = 0

    def model(rows):
        nonlocal largest
        largest = max(largest, len(rows))
        return rows.sum(1)

    value_table(MaskedModel(model, torch.zeros(2, 12), absence=ZERO, batch_size=16))
    assert largest == 16


@pytest.mark.parametrize("outputs", [1, 3])
def test_a_model_that_works_in_place_leaves_the_samples_alone(outputs):
    model = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(5, outputs)).double()
    x = X.clone()
    game = MaskedModel(model, x, absence=ZERO)
    table = value_table(game).values
    by_presence = game(ALL)
    assert torch.equal(x, X)
    assert torch.allclose(table, by_presence)
    assert torch.allclose(table[:, -1], game.readout(model(X.clone()), torch.arange(4)).detach())


@pytest.mark.parametrize("route", ["presence", "table"])
def test_a_value_that_is_not_finite_names_sample_and_coalition(route):
    def model(rows):
        return torch.where((rows[:, 0] == 0) & (rows[:, 1] == 7), torch.nan, rows.sum(1))

    x = torch.tensor([[1.0, 2.0, 3.0], [1.0, 7.0, 3.0]])
    game = MaskedModel(model, x, absence=ZERO)
    with pytest.raises(
        AbsentiaError, match=r"model must give finite values. Got nan for sample 1 with players \[1\]"
    ):
        game(enumerate_coalitions(3)) if route == "presence" else value_table(game)


def test_infinite_log_odds_say_how_to_explain_the_probability():
    def model(rows):
        return torch.stack([rows[:, 0], 1 - rows[:, 0]], dim=1).log()

    x = torch.tensor([[1.0, 2.0]])
    with pytest.raises(AbsentiaError, match=r"Got inf for sample 0 .* use readout=Probability\(y\)"):
        value_table(MaskedModel(model, x, 0, absence=0.5))
    assert torch.isfinite(value_table(MaskedModel(model, x, absence=0.5, readout=Probability(0))).values).all()


def forgetful(rows):
    return rows.sum(1)[: max(1, len(rows) - 1)]


IMAGE = torch.zeros(1, 1, 4, 4)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            lambda: MaskedModel(mlp(5), X[0], absence=ZERO),
            r"x must have at least one sample, .* Got shape \(5,\) .* x\[None\]",
        ),
        (lambda: MaskedModel(mlp(5), X[:0], absence=ZERO), r"x must have at least one sample, .* Got shape \(0, 5\)"),
        (lambda: MaskedModel(mlp(5), X / 0, absence=ZERO), r"x must be finite. Got .*inf in sample 0, entry 0"),
        (
            lambda: MaskedModel(mlp(5), X, players=Players.features(4), absence=ZERO),
            r"x must have samples of the .*\(4,\)",
        ),
        (lambda: MaskedModel(cnn(), IMAGE, absence=ZERO), r"players must be given for samples of shape \(1, 4, 4\)"),
        (
            lambda: MaskedModel(cnn(), IMAGE[0], players=Players.grid((1, 4, 4), (2, 2)), absence=ZERO),
            r"x must have samples of the players' shape \(1, 4, 4\). Got \(4, 4\) instead. Pass x\[None\]",
        ),
        (lambda: MaskedModel(mlp(5), X, absence=Baseline(torch.zeros(4))), "baseline must be one number or have the"),
        (
            lambda: MaskedModel(mlp(5, 3), X, 3, absence=ZERO),
            "y must lie between 0 and 2, the model's classes. Got 3",
        ),
        (lambda: MaskedModel(mlp(5, 3), X, [0, 1], absence=ZERO), "y must hold one class for each of the 4 samples"),
        (lambda: MaskedModel(forgetful, X, absence=ZERO), "model must return one row for each of the 3 input rows"),
        (
            lambda: MaskedModel(from_numpy(lambda rows: np.zeros(1)), X, absence=ZERO),
            r"model must return one row for each of the 3 input rows. Got shape \(1,\)",
        ),
        (lambda: MaskedModel(mlp(5), X, absence=ZERO, batch_size=0), "batch_size must be at least 1. Got 0"),
        (
            lambda: MaskedModel(mlp(5), X, absence=ZERO)(ALL[:, :4]),
            r"coalitions must be boolean of shape \(coal.* 5\)",
        ),
        (lambda: MaskedModel(mlp(5), X, absence=ZERO)(ALL[:0]), "coalitions must hold at least one coalition"),
        (lambda: MaskedModel(mlp(5), X, absence=ZERO)(ALL[None]), "coalitions must be boolean of shape"),
        (
            lambda: unchecked(MaskedModel.__init__)(object.__new__(MaskedModel), "net", X, absence=ZERO),
            "model must be an",
        ),
        (
            lambda: unchecked(MaskedModel.__init__)(object.__new__(MaskedModel), mlp(5), X, absence=[0.0]),
            "absence must be an absence such as Baseline",
        ),
    ],
)
def test_bad_input_gets_a_sentence(make, sentence):
    with pytest.raises(AbsentiaError, match=sentence):
        make()
