"""With our absences and players, shap computes our values, and its plots draw our results."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from torch import Tensor

import absentia as ab
from absentia import interop
from absentia.learning import LearningOptions
from peer_cases import CASES, BringsOwn, absences, as_numpy, assert_asks_for, assert_same, network, normal

mpl.use("Agg")
with warnings.catch_warnings():
    warnings.simplefilter("ignore", PendingDeprecationWarning)  # matplotlib's, for the colour maps that shap makes
    import shap


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["baseline", "own", "marginal", "dependent"])
def test_shap_explains_with_our_absences(players: ab.Players, kind: str) -> None:
    model = network(players.shape)
    x = normal(3, *players.shape, seed=1)
    absence = absences(x)[kind]
    game = ab.MaskedModel(model, x, players=players, absence=absence)
    masker = interop.shap_masker(absence, players, x if kind in ("own", "dependent") else None)
    theirs = shap.ExactExplainer(as_numpy(model), masker)(x.numpy(), silent=True)
    assert_same(ab.shapley(game).values, theirs.values)
    none = torch.zeros(1, len(players), dtype=torch.bool)
    assert_same(game(none)[:, 0], theirs.base_values)


@pytest.mark.parametrize("algorithm", ["auto", "permutation"])
def test_shap_explains_by_permutations_too(players: ab.Players, algorithm: str) -> None:
    x = normal(2, *players.shape, seed=1)
    baseline = ab.Baseline(0.5)

    def pairs(rows: Tensor) -> Tensor:  # order two: a walk and its reverse give the exact values
        return rows.flatten(1).cumsum(1).square().sum(1)

    ours = ab.shapley(ab.MaskedModel(pairs, x, players=players, absence=baseline)).values
    explainer = shap.Explainer(as_numpy(pairs), interop.shap_masker(baseline, players), algorithm=algorithm, seed=0)
    assert_same(ours, explainer(x.numpy(), silent=True).values)


def test_a_learned_baseline_works_in_shap() -> None:
    model = network((2,))
    x = normal(8, 2, seed=1)
    learned = ab.learn_baseline(model, x, options=LearningOptions(samples=4, steps=1))
    masker = interop.shap_masker(learned, ab.Players.features(2))
    unseen = normal(2, 2, seed=6)  # a learned baseline may share a value with a sample that it was learned from
    theirs = shap.ExactExplainer(as_numpy(model), masker)(unseen.numpy(), silent=True)
    assert_same(ab.shapley(ab.MaskedModel(model, unseen, absence=learned)).values, theirs.values)


def test_a_masker_takes_a_number_as_an_absence() -> None:
    masker = interop.shap_masker(0.5, ab.Players.features(2))
    np.testing.assert_array_equal(masker(np.array([True, False]), np.array([3.0, 4.0]))[0], [[3.0, 0.5]])


def test_a_masker_takes_numbers_that_numpy_lacks() -> None:
    x = torch.tensor([[3.0, 4.0], [1.0, 2.0]]).bfloat16()
    for masker in (
        interop.shap_masker(0.5, ab.Players.features(2), x),
        interop.shap_masker(0.5, ab.Players.features(2)),
    ):
        (masked,) = masker(np.array([True, False]), x[0])
        assert (masked.dtype, masked.tolist()) == (np.float32, [[3.0, 0.5]])


def test_a_masker_refuses_what_it_cannot_mask() -> None:
    features = ab.Players.features(2)
    with pytest.raises(ab.AbsentiaError, match="shap cannot use an absence that replaces the model"):
        interop.shap_masker(BringsOwn(), features)
    masker = interop.shap_masker(ab.Baseline(0.0), features, x=normal(3, 2, seed=1))
    with pytest.raises(ab.AbsentiaError, match="among the samples"):
        masker(np.array([True, False]), np.zeros(2))
    with pytest.raises(ab.AbsentiaError, match="players' shape"):
        masker(np.array([True, False]), np.zeros(3))


@pytest.fixture
def figures() -> Iterator[None]:
    yield
    plt.close("all")


def drawings(explanation: shap.Explanation) -> dict[str, Callable[[], object]]:
    one = explanation[0]
    first = explanation[:, 0]
    return {
        "bar": lambda: shap.plots.bar(explanation, show=False),
        "bar of one": lambda: shap.plots.bar(one, show=False),
        "waterfall": lambda: shap.plots.waterfall(one, show=False),
        "force": lambda: shap.plots.force(one, matplotlib=True, show=False),
        "beeswarm": lambda: shap.plots.beeswarm(explanation, show=False),
        "violin": lambda: shap.plots.violin(explanation, show=False),
        "scatter": lambda: shap.plots.scatter(first, show=False),
        "coloured scatter": lambda: shap.plots.scatter(first, color=explanation, show=False),
        "heatmap": lambda: shap.plots.heatmap(explanation, show=False),
        "decision": lambda: shap.plots.decision(
            explanation.base_values[0],
            explanation.values,
            explanation.data,
            explanation.feature_names,
            show=False,
        ),
    }


def draw_all(explanation: shap.Explanation, names: tuple[str, ...]) -> None:
    for name, draw in drawings(explanation).items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about shap's own code
            draw()
        texts = [text.get_text() for axes in plt.gcf().axes for text in axes.findobj(mpl.text.Text)]
        assert any(names[0] in text for text in texts), f"{name} does not name the players: {texts}"
        plt.close("all")


@pytest.mark.slow
@pytest.mark.usefixtures("figures")
@pytest.mark.parametrize("case", ["features", "groups", "image with always present"])
def test_every_plot_of_shap_draws_our_values(case: str) -> None:
    players = CASES[case]
    x = normal(8, *players.shape, seed=1)
    game = ab.MaskedModel(network(players.shape), x, players=players, absence=ab.Baseline(0.5))
    ours = ab.shapley(game)
    explanation = interop.to_shap(ours, base_values=game)
    draw_all(explanation, players.names)
    torch.testing.assert_close(explanation.values.sum(1) + explanation.base_values, game.model(x).numpy())


@pytest.mark.slow
@pytest.mark.usefixtures("figures")
def test_every_plot_of_shap_draws_what_it_made_with_our_masker() -> None:
    players = CASES["groups"]
    x = normal(8, *players.shape, seed=1)
    masker = interop.shap_masker(ab.Baseline(0.5), players)
    made = shap.ExactExplainer(as_numpy(network(players.shape)), masker)(x.numpy(), silent=True)
    data = np.stack(made.data)
    names = list(players.names)
    np.testing.assert_allclose(data[:, 0], (x[:, 0] + x[:, 3]) / 2)
    draw_all(shap.Explanation(made.values, made.base_values, data, feature_names=names), players.names)


def test_an_explanation_has_names_data_and_base_values() -> None:
    players = CASES["groups"]
    x = normal(2, 5, seed=1)
    game = ab.MaskedModel(network((5,)), x, players=players, absence=ab.Baseline(0.5))
    from_game = interop.to_shap(ab.shapley(game), base_values=game)
    by_hand = interop.to_shap(
        ab.shapley(game), x, base_values=[game.model(torch.full((1, 5), 0.5).double()).item()] * 2, players=players
    )
    np.testing.assert_allclose(from_game.base_values, by_hand.base_values)
    np.testing.assert_array_equal(from_game.data, by_hand.data)
    assert from_game.feature_names == ["a", "b", "c"]
    assert from_game.display_data[1, 0] == f"{x[1, 0]:.4g}, {x[1, 3]:.4g}".replace("-", "−")
    assert from_game.error_std is None


def test_an_explanation_without_samples_has_no_data() -> None:
    explanation = interop.to_shap(ab.shapley(ab.ValueTable([0.0, 1.0, 2.0, 5.0])), base_values=0.0)
    assert explanation.data is None
    np.testing.assert_array_equal(explanation[0].values, [2.0, 3.0])


def test_an_explanation_has_an_output_for_each_class() -> None:
    tables = {"cat": ab.ValueTable([[1.0, 2.0, 4.0, 5.0]]), "dog": ab.ValueTable([[7.0, 2.0, 4.0, 5.0]])}
    explanation = interop.to_shap({name: ab.shapley(table) for name, table in tables.items()}, base_values=tables)
    assert explanation.values.shape == (1, 2, 2)
    np.testing.assert_array_equal(explanation[:, :, "dog"].values, ab.shapley(tables["dog"]).values)
    np.testing.assert_array_equal(explanation.base_values, [[1.0, 7.0]])
    with pytest.raises(ab.AbsentiaError, match="named as the attributions, cat, dog"):
        interop.to_shap({name: ab.shapley(t) for name, t in tables.items()}, base_values={"cat": 0.0})


def test_classes_have_the_same_samples_and_players() -> None:
    one = ab.shapley(ab.ValueTable([0.0, 1.0]))
    two = ab.shapley(ab.ValueTable([[0.0, 1.0], [0.0, 2.0]]))
    with pytest.raises(ab.AbsentiaError, match="the same samples and players"):
        interop.to_shap({"cat": one, "dog": two}, base_values=0.0)
    with pytest.raises(ab.AbsentiaError, match="at least one attribution"):
        interop.to_shap({}, base_values=0.0)


def test_sampled_values_come_with_their_errors() -> None:
    game = ab.MaskedModel(network((9,)), normal(2, 9, seed=1), absence=ab.Baseline(0.0))
    sampled = ab.shapley(game, evaluations=64)
    np.testing.assert_array_equal(interop.to_shap(sampled, base_values=game).error_std, sampled.errors)


def test_an_explanation_refuses_samples_that_do_not_fit() -> None:
    ours = ab.shapley(ab.ValueTable([0.0, 1.0, 2.0, 5.0]))
    with pytest.raises(
        ab.AbsentiaError, match=r"the attribution's 1 samples.*Pass players unless they are single features"
    ):
        interop.to_shap(ours, np.zeros((1, 3)), base_values=0.0)
    with pytest.raises(ab.AbsentiaError, match="the attribution's 1 samples"):
        interop.to_shap(ours, np.zeros((2, 2)), base_values=0.0)
    with pytest.raises(ab.AbsentiaError, match="base_values must be the game, one number"):
        interop.to_shap(ours, base_values=[0.0, 1.0])


def test_a_missing_shap_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    table = ab.ValueTable([0.0, 1.0])
    assert_asks_for("shap", "shap", monkeypatch, lambda: interop.to_shap(ab.shapley(table), base_values=table))
