"""shap, captum and shapiq with our absences, players and games give our values; their plots draw our results."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable, Iterator

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import shapiq
import torch
from captum.attr import FeatureAblation, IntegratedGradients, KernelShap, ShapleyValues
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from torch import Tensor, nn

import absentia as ab
from absentia import interop

mpl.use("Agg")
with warnings.catch_warnings():
    warnings.simplefilter("ignore", PendingDeprecationWarning)  # matplotlib's, for the colour maps that shap makes
    import shap

CAPTUM_PRECISION = 2e-5  # it adds up in float32, whatever the type of the inputs and the model


def normal(*shape: int, seed: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def network(shape: tuple[int, ...]) -> Callable[[Tensor], Tensor]:
    """A model with one output and interactions of every order, whatever the shape of a sample."""
    entries = math.prod(shape)
    model = nn.Sequential(nn.Flatten(), nn.Linear(entries, 12), nn.Tanh(), nn.Linear(12, 1), nn.Flatten(0)).double()
    generator = torch.Generator().manual_seed(7)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.8, generator=generator)
    return model.requires_grad_(False)


CASES = {
    "features": ab.Players.features(["a", "b", "c", "d"]),
    "groups": ab.Players.groups({"a": [0, 3], "b": [1], "c": [4, 2]}, features=5),
    "groups and always present": ab.Players.groups({"a": [0, 3], "b": [4]}, features=5),
    "image": ab.Players.grid((2, 4, 4), cells=(2, 2)),
    "image with always present": ab.Players.grid((1, 4, 4), cells=(2, 2), only=[(0, 1), (1, 0), (1, 1)]),
}


@pytest.fixture(params=CASES)
def players(request: pytest.FixtureRequest) -> ab.Players:
    return CASES[request.param]


class Dependent:
    """An absence whose stand-ins depend on which players are present, and on which sample of the batch it is."""

    def bind(self, x: Tensor) -> Callable[..., Tensor]:
        class Fill:
            draws = 1

            def __call__(self, samples: slice, presence: Tensor) -> Tensor:
                rows = x[samples, None]
                share = presence.flatten(2).double().mean(2).unflatten(1, (-1, *[1] * (x.ndim - 1)))
                number = torch.arange(len(x))[samples].view(-1, *[1] * x.ndim)
                return torch.where(presence, rows, share + number).unsqueeze(2)

        return Fill()


def absences(x: Tensor) -> dict[str, ab.Absence]:
    entries = x.shape[1:]
    return {
        "baseline": ab.Baseline(normal(*entries, seed=2)),
        "own": ab.OwnBaselines(normal(*x.shape, seed=3)),
        "marginal": ab.Marginal(normal(5, *entries, seed=4)),
        "dependent": Dependent(),
    }


def brute_force(value: Callable[[tuple[int, ...]], float], n: int) -> list[float]:
    """Average a player's marginal benefit over all orders in which the players may come."""
    orders = list(itertools.permutations(range(n)))
    total = [0.0] * n
    for order in orders:
        for place, player in enumerate(order):
            total[player] += value(order[: place + 1]) - value(order[:place])
    return [sum_ / len(orders) for sum_ in total]


def assert_same(ours: Tensor, theirs: object, within: float = 1e-11) -> None:
    torch.testing.assert_close(ours, torch.as_tensor(theirs, dtype=torch.float64), rtol=within, atol=within)
    assert ours.abs().min() > 100 * within, "values of about 0 would agree whatever was computed"


# shap


def as_numpy(model: Callable[[Tensor], Tensor]) -> Callable[[np.ndarray], np.ndarray]:
    return lambda rows: model(torch.as_tensor(rows)).numpy()


@pytest.mark.parametrize("kind", ["baseline", "own", "marginal", "dependent"])
def test_shap_explains_with_our_absences(players: ab.Players, kind: str) -> None:
    model, x = network(players.shape), normal(3, *players.shape, seed=1)
    absence = absences(x)[kind]
    game = ab.MaskedModel(model, x, players=players, absence=absence)
    masker = interop.shap_masker(absence, players, x if kind in ("own", "dependent") else None)
    theirs = shap.ExactExplainer(as_numpy(model), masker)(x.numpy(), silent=True)
    assert_same(ab.shapley(game).values, theirs.values)
    none = torch.zeros(1, len(players), dtype=torch.bool)
    assert_same(game(none)[:, 0], theirs.base_values)


@pytest.mark.parametrize("algorithm", ["auto", "permutation"])
def test_shap_explains_by_permutations_too(players: ab.Players, algorithm: str) -> None:
    x, baseline = normal(2, *players.shape, seed=1), ab.Baseline(0.5)

    def pairs(rows: Tensor) -> Tensor:  # of order two: a walk and its reverse then give the exact values
        return rows.flatten(1).cumsum(1).square().sum(1)

    ours = ab.shapley(ab.MaskedModel(pairs, x, players=players, absence=baseline)).values
    explainer = shap.Explainer(as_numpy(pairs), interop.shap_masker(baseline, players), algorithm=algorithm, seed=0)
    assert_same(ours, explainer(x.numpy(), silent=True).values)


def test_a_learned_baseline_works_in_shap() -> None:
    model, x = network((2,)), normal(8, 2, seed=1)
    learned = ab.learn_baseline(model, x, samples=4, steps=1)
    masker = interop.shap_masker(learned, ab.Players.features(2))
    unseen = normal(2, 2, seed=6)  # a learned baseline may share a value with a sample that it was learned from
    theirs = shap.ExactExplainer(as_numpy(model), masker)(unseen.numpy(), silent=True)
    assert_same(ab.shapley(ab.MaskedModel(model, unseen, absence=learned)).values, theirs.values)


def test_a_masker_refuses_what_it_cannot_mask() -> None:
    class BringsOwn(Dependent):
        def instead_of(self, model: object) -> object:
            return model

    features = ab.Players.features(2)
    with pytest.raises(ab.AbsentiaError, match="leave the model as it is"):
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
    one, first = explanation[0], explanation[:, 0]
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
            warnings.simplefilter("ignore")  # shap's, on its own account
            draw()
        texts = [text.get_text() for axes in plt.gcf().axes for text in axes.findobj(mpl.text.Text)]
        assert any(names[0] in text for text in texts), f"{name} does not name the players: {texts}"
        plt.close("all")


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


@pytest.mark.usefixtures("figures")
def test_every_plot_of_shap_draws_what_it_made_with_our_masker() -> None:
    players = CASES["groups"]
    x = normal(8, *players.shape, seed=1)
    masker = interop.shap_masker(ab.Baseline(0.5), players)
    made = shap.ExactExplainer(as_numpy(network(players.shape)), masker)(x.numpy(), silent=True)
    tidied = masker.tidy(made)
    np.testing.assert_allclose(tidied.data[:, 0], (x[:, 0] + x[:, 3]) / 2)
    draw_all(tidied, players.names)


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
    assert from_game.display_data[1, 0] == f"{x[1, 0]:.4g}, {x[1, 3]:.4g}"
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


def test_sampled_values_come_with_their_errors() -> None:
    game = ab.MaskedModel(network((9,)), normal(2, 9, seed=1), absence=ab.Baseline(0.0))
    sampled = ab.shapley(game, evaluations=64)
    np.testing.assert_array_equal(interop.to_shap(sampled, base_values=game).error_std, sampled.errors)
    values = interop.to_shapiq(sampled, 1, base_values=game)
    assert values.estimated
    assert values.estimation_budget == sampled.evaluations // 2


def test_an_explanation_refuses_samples_that_do_not_fit() -> None:
    ours = ab.shapley(ab.ValueTable([0.0, 1.0, 2.0, 5.0]))
    with pytest.raises(ab.AbsentiaError, match="players must be given"):
        interop.to_shap(ours, np.zeros((1, 3)), base_values=0.0)
    with pytest.raises(ab.AbsentiaError, match="the attribution's 1 samples"):
        interop.to_shap(ours, np.zeros((2, 2)), base_values=0.0)
    with pytest.raises(ab.AbsentiaError, match="base_values must be the game, one number"):
        interop.to_shap(ours, base_values=[0.0, 1.0])


# captum


@pytest.mark.parametrize("kind", ["baseline", "own"])
def test_captum_explains_with_our_baselines(players: ab.Players, kind: str) -> None:
    model, x = network(players.shape), normal(2, *players.shape, seed=1)
    absence = absences(x)[kind]
    ours = ab.shapley(ab.MaskedModel(model, x, players=players, absence=absence)).values
    baselines = interop.captum_baselines(absence, x, players)
    mask = interop.captum_feature_mask(players)
    theirs = ShapleyValues(model).attribute(x, baselines=baselines, feature_mask=mask)
    assert_same(ours, interop.from_captum(theirs, players).double(), CAPTUM_PRECISION)


def test_captum_ablates_players_with_our_baselines(players: ab.Players) -> None:
    model, x = network(players.shape), normal(2, *players.shape, seed=1)
    absence = absences(x)["baseline"]
    game = ab.MaskedModel(model, x, players=players, absence=absence)
    everyone = torch.ones(1, len(players), dtype=torch.bool)
    ours = game(everyone) - game(~torch.eye(len(players), dtype=torch.bool))
    baselines, mask = interop.captum_baselines(absence, x, players), interop.captum_feature_mask(players)
    theirs = FeatureAblation(model).attribute(x, baselines=baselines, feature_mask=mask)
    assert_same(ours, interop.from_captum(theirs, players).double(), CAPTUM_PRECISION)


def test_captum_fits_kernel_values_and_integrates_gradients_with_our_baselines() -> None:
    players = CASES["groups and always present"]
    x, weights = normal(1, 5, seed=1), normal(5, seed=5)

    def linear(rows: Tensor) -> Tensor:
        return rows @ weights

    absence = ab.Baseline(normal(5, seed=2))
    ours = ab.shapley(ab.MaskedModel(linear, x, players=players, absence=absence)).values
    baselines, mask = interop.captum_baselines(absence, x, players), interop.captum_feature_mask(players)
    fitted = KernelShap(linear).attribute(x, baselines=baselines, feature_mask=mask, n_samples=60)
    assert_same(ours, interop.from_captum(fitted, players).double(), 1e-3)
    gradients = IntegratedGradients(linear).attribute(x, baselines=baselines)
    assert_same(ours, interop.from_captum(gradients, players, by_entry=True), 1e-9)


def test_captum_is_refused_what_it_cannot_do() -> None:
    x = normal(2, 3, seed=1)
    with pytest.raises(ab.AbsentiaError, match=r"one stand-in .* Got 5 draws"):
        interop.captum_baselines(ab.Marginal(normal(5, 3, seed=2)), x)
    with pytest.raises(ab.AbsentiaError, match="fixed stand-ins"):
        interop.captum_baselines(Dependent(), x)
    with pytest.raises(ab.AbsentiaError, match="players' shape"):
        interop.captum_baselines(ab.Baseline(0.0), x, ab.Players.features(4))
    with pytest.raises(ab.AbsentiaError, match=r"inputs' shape, \(samples, 4\)"):
        interop.from_captum(x, ab.Players.features(4))


def test_captum_gets_values_of_its_own() -> None:
    absence = ab.Baseline(torch.zeros(3).double())
    interop.captum_baselines(absence, normal(2, 3, seed=1)).add_(1.0)
    assert not absence.values.any()


# shapiq


@pytest.mark.parametrize("kind", ["baseline", "own", "marginal", "dependent"])
def test_shapiq_computes_our_values(players: ab.Players, kind: str) -> None:
    model, x = network(players.shape), normal(3, *players.shape, seed=1)
    game = ab.MaskedModel(model, x, players=players, absence=absences(x)[kind])
    exact = shapiq.ExactComputer(interop.shapiq_game(game, 2))
    theirs = exact("SV")
    assert_same(ab.shapley(game).values[2], theirs.get_n_order_values(1))
    assert theirs.baseline_value == pytest.approx(ab.value_table(game).values[2, 0].item())
    effects = interop.from_shapiq(exact("Moebius"), players.names).effects
    torch.testing.assert_close(effects[0], ab.harsanyi(game).effects[2], rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("normalize", [False, True])
def test_shapiqs_approximators_take_our_games(normalize: bool) -> None:
    game = ab.MaskedModel(network((5,)), normal(2, 5, seed=1), absence=ab.Baseline(2.0))
    peer = interop.shapiq_game(game, 1, normalize=normalize)
    found = shapiq.KernelSHAP(5, random_state=0).approximate(2**5, peer)
    assert_same(ab.shapley(game).values[1], found.get_n_order_values(1), 1e-6)
    empty = ab.value_table(game).values[1, 0].item()
    assert found.baseline_value == pytest.approx(0.0 if normalize else empty)
    assert peer([("x0", "x3")])[0] == pytest.approx(
        game(torch.tensor([[True, False, False, True, False]]))[1].item() - normalize * empty
    )


def test_the_model_runs_for_the_one_sample_only() -> None:
    rows = 0

    def model(inputs: Tensor) -> Tensor:
        nonlocal rows
        rows += len(inputs)
        return inputs.sum(1)

    game = ab.MaskedModel(model, normal(50, 3, seed=1), absence=ab.Baseline(0.0))
    rows = 0
    shapiq.ExactComputer(interop.shapiq_game(game))("SV")
    assert rows == 1 + 2**3


@pytest.mark.parametrize("kind", ["baseline", "marginal", "dependent"])
def test_shapiqs_explainer_takes_our_imputer(kind: str) -> None:
    model, x = network((4,)), normal(6, 4, seed=1)
    absence = absences(x)[kind]
    imputer = interop.shapiq_imputer(model, absence, x)
    explainer = shapiq.TabularExplainer(imputer.predict, x.numpy(), imputer=imputer, index="k-SII", max_order=2)
    for row in x[:2]:
        game = ab.MaskedModel(model, row[None], absence=absence)
        exact = shapiq.ExactComputer(interop.shapiq_game(game))(index="k-SII", order=2)
        found = explainer.explain(row.numpy(), budget=2**4)
        assert found.baseline_value == imputer.empty_prediction == pytest.approx(exact.baseline_value)
        assert found.baseline_value != 0.0
        for order in (1, 2):
            np.testing.assert_allclose(found.get_n_order_values(order), exact.get_n_order_values(order), atol=1e-8)
        assert imputer.predict(row.numpy()[None])[0] == pytest.approx(game(torch.ones(1, 4).bool()).item())


def test_our_imputer_holds_the_values_that_stand_in() -> None:
    x = normal(3, 4, seed=1)
    imputer = interop.shapiq_imputer(network((4,)), ab.Baseline(x[1]), x)
    np.testing.assert_array_equal(imputer.baseline_values[0], x[1].numpy())
    assert np.isnan(interop.shapiq_imputer(network((4,)), absences(x)["marginal"], x).baseline_values).all()
    with pytest.raises(ab.AbsentiaError, match=r"x must hold rows of features.*hand it over with shapiq_game"):
        interop.shapiq_imputer(network((2, 2)), ab.Baseline(0.0), normal(3, 2, 2, seed=1))


def test_our_imputer_takes_rows_of_any_kind() -> None:
    whole = torch.tensor([[1, 2, 3, 4], [2, 0, 1, 5]])
    imputer = interop.shapiq_imputer(lambda rows: rows.double().sum(1), ab.Baseline(0.0), whole)
    row = np.array([0.5, 0.5, 0.25, 0.0])
    row.flags.writeable = False
    assert imputer.fit(row)(np.ones((1, 4), dtype=bool))[0] == pytest.approx(1.25)
    interop.shapiq_imputer(network((4,)), ab.Baseline(0.0), normal(3, 4, seed=1).requires_grad_())
    with pytest.raises(ab.AbsentiaError, match=r"readout must be one number\. Got features of a layer"):
        interop.shapiq_imputer(network((4,)), ab.Baseline(0.0), normal(3, 4, seed=1), readout=ab.Features("0"))


def test_our_imputer_explains_one_of_several_outputs() -> None:
    x = normal(3, 4, seed=1)
    model = torch.nn.Linear(4, 3).double()
    imputer = interop.shapiq_imputer(model, ab.Baseline(0.5), x, readout=ab.LogOdds(2))
    found = shapiq.ExactComputer(imputer.fit(x[2].numpy()))("SV")
    ours = ab.shapley(ab.MaskedModel(model, x[2:], absence=ab.Baseline(0.5), readout=ab.LogOdds(2)))
    assert_same(ours.values[0], found.get_n_order_values(1))


def test_interactions_go_to_shapiq_and_back() -> None:
    values = normal(2, 16, seed=1)
    ours = ab.harsanyi(ab.ValueTable(values, names=["a", "b", "c", "d"]))
    there = interop.to_shapiq(ours, 1)
    assert there[(1, 3)] == ours.effects[1, 0b1010]
    back = interop.from_shapiq(there, ours.names)
    assert torch.equal(back.effects, ours.effects[1:])
    assert torch.equal(back.measurable, ours.measurable[1:])
    assert back.names == ours.names
    converter = shapiq.game_theory.moebius_converter.MoebiusConverter(there)
    assert_same(ab.shapley(ab.ValueTable(values)).values[1], converter("SV", order=1).get_n_order_values(1))


def test_attributions_go_to_shapiq() -> None:
    table = ab.ValueTable(normal(8, seed=1))
    peer = interop.shapiq_game(table)
    for index, ours in (("SV", ab.shapley(table)), ("BV", ab.banzhaf(table))):
        made, theirs = interop.to_shapiq(ours, base_values=table), shapiq.ExactComputer(peer)(index, 1)
        assert made.index == theirs.index
        assert made.baseline_value == pytest.approx(theirs.baseline_value)
        np.testing.assert_allclose(made.get_n_order_values(1), theirs.get_n_order_values(1))
        assert not made.estimated


def test_shapleys_of_a_table_are_those_over_all_orders() -> None:
    values = normal(8, seed=1)
    brute = brute_force(lambda members: values[sum(1 << i for i in members)].item(), 3)
    made = interop.to_shapiq(ab.shapley(ab.ValueTable(values)), base_values=values[0].item())
    np.testing.assert_allclose(made.get_n_order_values(1), brute)


def test_shapiq_is_refused_what_does_not_fit() -> None:
    table = ab.ValueTable(normal(8, seed=1))
    exact = shapiq.ExactComputer(interop.shapiq_game(table))
    with pytest.raises(ab.AbsentiaError, match=r"be Möbius values\. Got the index 'SV'"):
        interop.from_shapiq(exact("SV"))
    with pytest.raises(ab.AbsentiaError, match=r"hold all 8 sets of 3 players\. Got 7"):
        interop.from_shapiq(exact("Moebius").get_n_order(min_order=0, max_order=2))
    with pytest.raises(ab.AbsentiaError, match="name each of the 3"):
        interop.from_shapiq(exact("Moebius"), ["a"])
    with pytest.raises(ab.AbsentiaError, match="base_values must be given"):
        interop.to_shapiq(ab.shapley(table))
    with pytest.raises(ab.AbsentiaError, match="sample must lie between 0 and 0"):
        interop.shapiq_game(table, 1)


# scikit-learn


def made_up(rows: int = 120) -> tuple[pd.DataFrame, np.ndarray]:
    draw = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": draw.integers(18, 80, rows),
            "city": draw.choice(["Bern", "Oslo", "Rome"], rows),
            "income": draw.normal(3.0, 1.0, rows),
            "member": draw.random(rows) < 0.5,
            "grade": pd.Categorical(draw.choice(["low", "high"], rows), categories=["low", "mid", "high"]),
        }
    )
    score = (frame.city == "Oslo") * 2.0 + frame.income - 3.0 + (frame.grade == "high") * 1.0 - frame.member
    return frame, (score + draw.normal(size=rows) > 0.5).to_numpy().astype(int)


def pipeline(frame: pd.DataFrame, y: np.ndarray) -> Pipeline:
    steps = ColumnTransformer(
        [
            ("categories", OneHotEncoder(), ["city", "member", "grade"]),
            ("numbers", StandardScaler(), ["age", "income"]),
        ]
    )
    return Pipeline([("columns", steps), ("classifier", LogisticRegression())]).fit(frame, y)


def test_a_pipeline_with_categories_is_explained_by_its_raw_columns() -> None:
    frame, y = made_up()
    fitted = pipeline(frame, y)
    table = interop.EncodedTable.of(frame)
    model = interop.from_estimator(fitted, table)
    x, other = table.rows[:4], table.rows[60]
    ours = ab.shapley(ab.MaskedModel(model, x, 1, players=table.players, absence=ab.Baseline(other)))
    assert ours.names == tuple(frame.columns)

    def log_odds(sample: int, members: tuple[int, ...]) -> float:  # by frames alone
        mixed = frame.iloc[[60]].copy()
        for member in members:
            mixed[frame.columns[member]] = frame[frame.columns[member]].iloc[[sample]].to_numpy()
        mixed = mixed.astype(frame.dtypes.to_dict())
        return float(fitted.decision_function(mixed)[0])

    asked: dict[frozenset[int], float] = {}
    for members in itertools.chain.from_iterable(itertools.combinations(range(5), size) for size in range(6)):
        asked[frozenset(members)] = log_odds(2, members)
    brute = brute_force(lambda members: asked[frozenset(members)], 5)
    np.testing.assert_allclose(ours.values[2], brute, atol=1e-9)
    assert np.abs(brute[1]) + np.abs(brute[2]) > 0.1


def test_columns_come_in_the_order_of_the_fit() -> None:
    frame, y = made_up()
    fitted = LogisticRegression().fit(frame[["income", "age"]], y)
    plain = interop.from_estimator(fitted)
    np.testing.assert_allclose(
        plain(torch.from_numpy(frame[["income", "age"]].to_numpy())).exp(),
        fitted.predict_proba(frame[["income", "age"]]),
    )
    shuffled = interop.EncodedTable.of(frame[["age", "income"]])
    np.testing.assert_allclose(interop.from_estimator(fitted, shuffled)(shuffled.rows), plain(shuffled.rows.flip(1)))
    with pytest.raises(ab.AbsentiaError, match="none named 'income'"):
        interop.from_estimator(fitted, interop.EncodedTable.of(frame[["age"]]))
    with pytest.raises(ab.AbsentiaError, match="the 2 columns of the fit"):
        plain(torch.zeros(1, 3))


def test_estimators_give_what_says_most() -> None:
    x, y = normal(40, 2, seed=1).numpy(), np.arange(40) % 2
    rows = torch.from_numpy(x)
    bayes = GaussianNB().fit(x, y)
    np.testing.assert_allclose(interop.from_estimator(bayes)(rows), bayes.predict_log_proba(x), atol=1e-9)
    raw = interop.from_estimator(bayes, probabilities=False)
    np.testing.assert_allclose(raw(rows), bayes.predict_proba(x))
    machine = LinearSVC().fit(x, y)
    np.testing.assert_allclose(interop.from_estimator(machine)(rows), machine.decision_function(x))
    line = LinearRegression().fit(x, x @ [2.0, -1.0])
    ours = ab.shapley(ab.MaskedModel(interop.from_estimator(line), rows[:3], absence=ab.Baseline(0.5)))
    np.testing.assert_allclose(ours.values, (x[:3] - 0.5) * [2.0, -1.0], atol=1e-9)
    with pytest.raises(ab.AbsentiaError, match="have predict_proba"):
        interop.from_estimator(object())


def test_a_classifier_that_only_names_classes_is_refused() -> None:
    class Names:
        classes_ = (0, 1)

        def predict(self, rows: np.ndarray) -> np.ndarray:
            return np.zeros(len(rows))

    with pytest.raises(ab.AbsentiaError, match="one that only predicts classes"):
        interop.from_estimator(Names())


def test_tables_are_coded_and_decoded() -> None:
    frame, _ = made_up()
    frame.loc[3, "city"] = None
    table = interop.EncodedTable.of(frame)
    assert table.categorical == [1, 3, 4]
    assert table.categories["grade"] == ("low", "mid", "high")
    assert len(table.categories["city"]) == 4
    pd.testing.assert_frame_equal(table.decode(table.rows), frame.astype({"age": float}))
    assert torch.equal(table.encode(frame[frame.columns[::-1]]), table.rows)


def test_tables_refuse_what_is_no_category() -> None:
    frame, y = made_up()
    table = interop.EncodedTable.of(frame)
    model = interop.from_estimator(pipeline(frame, y), table)
    with pytest.raises(ab.AbsentiaError, match=r"column 'city' must hold the numbers 0 … 2 .* Baseline.median"):
        ab.value_table(ab.MaskedModel(model, table.rows[:1], 1, absence=ab.Baseline.mean(table.rows)))
    median = ab.Baseline.median(table.rows, categorical=table.categorical)
    assert ab.value_table(ab.MaskedModel(model, table.rows[:1], 1, absence=median)).values.isfinite().all()
    with pytest.raises(ab.AbsentiaError, match=r"known categories. Got 'Nice' instead. Known are Bern, Oslo, Rome"):
        table.encode(frame.assign(city="Nice"))
    with pytest.raises(ab.AbsentiaError, match="none named 'age'"):
        table.encode(frame[["city"]])
    with pytest.raises(ab.AbsentiaError, match="times in 'when'"):
        interop.EncodedTable.of(pd.DataFrame({"when": pd.to_datetime(["2020-01-01"])}))
    with pytest.raises(ab.AbsentiaError, match="with names, each once"):
        interop.EncodedTable.of(pd.DataFrame([[1.0, 2.0]]))


# Packages that are not there


@pytest.mark.parametrize(
    ("package", "extra", "use"),
    [
        ("shap", "shap", lambda table: interop.to_shap(ab.shapley(table), base_values=table)),
        ("shapiq", "shapiq", lambda table: interop.to_shapiq(ab.harsanyi(table))),
        ("pandas", "sklearn", lambda table: interop.EncodedTable.of(pd.DataFrame({"a": [1.0]}))),
    ],
)
def test_a_missing_package_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, package: str, extra: str, use: Callable[[ab.ValueTable], object]
) -> None:
    def refuse(name: str, *arguments: object) -> object:
        raise ModuleNotFoundError(f"No module named {name!r}")

    monkeypatch.setattr("importlib.import_module", refuse)
    with pytest.raises(ab.AbsentiaError, match=rf"{package} must be installed .* pip install 'absentia\[{extra}\]'"):
        use(ab.ValueTable([0.0, 1.0]))
