"""Uses that would give wrong numbers without a word: they get the right ones, or a sentence."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import RadiusNeighborsClassifier
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier
from torch import nn

import absentia as ab

RNG = np.random.default_rng(0)
TABLE = pd.DataFrame({"a": RNG.normal(size=200), "b": RNG.normal(size=200)})
ONES = (TABLE.a + 0.3 * RNG.normal(size=200) > 0).astype(int)
FITTED = LogisticRegression().fit(TABLE, ONES)
SWAPPED = TABLE[["b", "a"]]
X = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))


def log_odds(estimator, rows):
    probability = estimator.predict_proba(rows)
    return np.log(probability[:, 1] / probability[:, 0])


@pytest.mark.parametrize(
    "call",
    [
        lambda: ab.explain(FITTED, SWAPPED[:2], 1, absence=0.0),
        lambda: ab.explain(FITTED, SWAPPED.iloc[0], 1, absence=0.0),
        lambda: ab.explain(FITTED, TABLE[:2].rename(columns={"b": "z"}), 1, absence=0.0),
        lambda: ab.MaskedModel(FITTED, SWAPPED[:2], 1, absence=0.0),
        lambda: ab.audit(FITTED, SWAPPED, ONES, ["mean"]),
        lambda: ab.learn_baseline(FITTED, SWAPPED, ONES, options=ab.LearningOptions(steps=1)),
    ],
)
def test_columns_are_those_of_the_fit(call):
    with pytest.raises(ab.AbsentiaError, match=r"x must have the columns of the fit, in their order. Got '[bz]'"):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: ab.explain(FITTED, TABLE[:2], 1, absence="mean", data=SWAPPED),
        lambda: ab.MaskedModel(FITTED, TABLE[:2], 1, absence="mean", data=SWAPPED),
        lambda: ab.audit(FITTED, TABLE[:9], ONES[:9], ["mean"], data=SWAPPED),
    ],
)
def test_data_have_the_columns_of_the_samples(call):
    with pytest.raises(
        ab.AbsentiaError, match=r"data must have the columns of x, in their order. Got 'b' in the place"
    ):
        call()
    found = ab.explain(FITTED, TABLE[:2], 1, absence="mean", data=TABLE)  # as they should be
    assert np.allclose(found.outputs.numpy(), log_odds(FITTED, TABLE[:2]))


@pytest.mark.parametrize("combine", ["stacking", "voting by weight"])
def test_probabilities_of_weighted_trees_are_not_taken_for_shares(combine):
    trees = [("a", DecisionTreeClassifier(random_state=0)), ("b", ExtraTreeClassifier(random_state=0))]
    weighted = VotingClassifier(trees, voting="soft", weights=[1, 999])
    made = (StackingClassifier(trees) if combine == "stacking" else weighted).fit(TABLE, ONES)
    others = pd.DataFrame(np.random.default_rng(1).normal(size=(200, 2)), columns=["a", "b"])
    rows = others[~np.isin(made.predict_proba(others), (0, 1)).any(1)][:5]  # on which the trees do not agree
    assert len(rows) == 5
    assert np.allclose(ab.explain(made, rows, 1, absence=0.0).outputs.numpy(), log_odds(made, rows))


def test_neighbours_within_a_radius_have_no_number():
    made = RadiusNeighborsClassifier(radius=9.0).fit(TABLE, ONES)
    assert np.allclose(ab.explain(made, TABLE[:2], 1, absence=0.0).outputs.numpy(), log_odds(made, TABLE[:2]))


def test_a_readout_by_number_names_the_class_of_an_estimator():
    made = LogisticRegression().fit(TABLE, ONES + 1)  # its classes are 1 and 2
    assert ab.explain(made, TABLE[:1], readout=ab.LogOdds(1), absence=0.0).record.readout == "log-odds of class 2"
    assert ab.explain(made, TABLE[:1], 2, absence=0.0).record.readout == "log-odds of class 2"
    with pytest.raises(ab.AbsentiaError, match=r"class_names must name each of the 2 classes. Got 1 names"):
        ab.explain(FITTED, TABLE[:1], readout=ab.LogOdds(1), class_names=["a"], absence=0.0)


def test_scores_of_pairs_of_classes_are_refused():
    classes = np.arange(200) % 3
    with pytest.raises(ab.AbsentiaError, match=r"estimator must have one score for each class"):
        ab.explain(SVC(decision_function_shape="ovo").fit(TABLE, classes), TABLE[:1], 1, absence=0.0)
    ab.explain(SVC().fit(TABLE, classes), TABLE[:1], 1, absence=0.0)


def test_a_model_that_depends_on_its_batch_is_noticed_when_values_are_sampled():
    torch.manual_seed(0)
    model = nn.Sequential(nn.BatchNorm1d(30, track_running_stats=False), nn.Linear(30, 1))
    with pytest.raises(ab.AbsentiaError, match=r"model must return the same for the same sample"):
        ab.explain(model, torch.randn(8, 30), absence=0.0)


def ensemble(*layers):
    return lambda rows: torch.stack([layer(rows).sigmoid() for layer in layers])


FIRST, SECOND = nn.Linear(4, 1), nn.Linear(4, 1)
SEVERAL = nn.Linear(4, 3)


@pytest.mark.parametrize(
    "model",
    [
        lambda rows: ensemble(FIRST, SECOND)(rows).mean(0),
        lambda rows: (FIRST(rows).sigmoid() + SECOND(rows).sigmoid()) / 2,
        lambda rows: 1 - FIRST(rows).sigmoid(),
        lambda rows: SEVERAL(rows).softmax(1)[:, [1]],
        lambda rows: nn.functional.logsigmoid(FIRST(rows)).exp(),
        nn.Sequential(SEVERAL, nn.Sigmoid()),  # of several labels
        nn.Sequential(SEVERAL, nn.Softmax(1)),
        ab.from_numpy(lambda rows: np.full((len(rows), 4), 0.25)),
    ],
)
def test_probabilities_are_not_read_as_logits_after_other_operations(model):
    for settings in ({"y": 1}, {"readout": ab.Probability(1)}):
        with pytest.raises(ab.AbsentiaError, match=r"model must return logits for this readout. Got probabilities"):
            ab.explain(model, X, absence=0.0, **settings)


def test_sums_of_logits_remain_logits():
    nn.init.constant_(FIRST.weight, 0.01)
    nn.init.constant_(FIRST.bias, 0.2)
    for model in (lambda rows: (FIRST(rows) + FIRST(rows)) / 2, lambda rows: FIRST(rows) * rows.softmax(1)[:, :1]):
        assert ab.explain(model, X, 1, absence=0.0).record.readout == "log-odds of class 1"


def test_a_number_that_is_not_one_is_refused():
    class Column:
        def check(self, output, samples): ...

        def __call__(self, output, sample):
            return output[:, :1]

    with pytest.raises(
        ab.AbsentiaError, match=r"readout must return a tensor of one number .* Got Tensor of shape \(1, 1\)"
    ):
        ab.explain(FIRST, X, absence=0.0, readout=Column())


WRONG_VALUES = {
    "one axis": lambda coalitions: coalitions.sum(1).double(),
    "a list": lambda coalitions: coalitions.sum(1).tolist(),
    "too many": lambda coalitions: coalitions.double()[None],
}
USES = {
    "exact": ab.shapley,
    "sampled": lambda game: ab.shapley(game, evaluations=26),
    "contexts": lambda game: ab.context_map(game, 0),
}


@pytest.mark.parametrize("values", WRONG_VALUES.values(), ids=WRONG_VALUES)
@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_game_returns_a_number_for_each_coalition(values, use):
    class Mine:
        samples, names = 1, tuple("abcdef")

        def __call__(self, coalitions):
            return values(coalitions)

    with pytest.raises(ab.AbsentiaError, match=r"game must return a tensor of shape"):
        use(Mine())


def test_stand_ins_that_are_drawn_are_said_to_be():
    notes = ab.explain(FIRST, X, absence="noise", data=X).record.notes
    assert any("means over 10 stand-ins; errors exclude the variance of the draw" in note for note in notes)
    assert not ab.explain(FIRST, X, absence=0.0).record.notes


def test_times_are_no_numbers():
    frame = pd.DataFrame({"t": pd.to_datetime(["2020-01-01", None]), "n": [1.0, 2.0]})
    for kind in ("t", "passed"):
        frame["passed"] = frame["t"] - pd.Timestamp("2019-01-01")
        with pytest.raises(
            ab.AbsentiaError, match=f"x must hold numbers. Got .* in column '{kind}' .* days since a date"
        ):
            ab.explain(lambda rows: rows.sum(1), frame[[kind, "n"]], absence=0.0)


def test_integers_keep_their_digits():
    rows = np.array([[16_000_001, 16_000_003], [16_000_000, 16_000_009]])
    made = LinearRegression().fit(rows / 1e6, rows.sum(1))
    found = ab.explain(ab.from_numpy(lambda x: x.sum(1)), rows, absence="mean", data=rows)
    assert found.base_values.tolist() == [rows.mean(0).sum()] * 2
    assert made.coef_.shape == (2,)

    class Total(nn.Module):
        def forward(self, x):
            return x.sum(1)

    assert ab.explain(Total(), [[2**24 + 1, 2**25 + 3]], absence=0.0).outputs.tolist() == [2**24 + 2**25 + 4]


def test_the_type_is_that_of_most_weights():
    class Mixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale, self.layer = nn.Parameter(torch.ones(1).double()), nn.Linear(4, 1)

        def forward(self, x):
            return self.layer(x) * self.scale.float()

    assert ab.explain(Mixed(), X, absence=0.0).samples == 6


def test_what_is_handed_in_may_change_later():
    values, rows, table = np.ones(3), np.ones((2, 3)), np.arange(4.0)
    made = ab.Baseline(values).values, ab.Marginal(rows).background, ab.ValueTable(table).values
    before = [one.clone() for one in made]
    for array in (values, rows, table):
        array[:] = 100
    assert all(map(torch.equal, made, before))


def test_the_floor_knows_single_precision_that_is_stored_in_double():
    layers = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))

    def predict(rows):
        return layers(torch.from_numpy(rows).float()).detach().double().numpy()[:, 0]

    noise = ab.value_table(ab.MaskedModel(ab.from_numpy(predict), X.double(), absence=0.0)).noise
    assert (noise > 1e-8).all()
    exact = ab.value_table(ab.MaskedModel(ab.from_numpy(lambda rows: rows.sum(1) / 3), X.double(), absence=0.0)).noise
    assert (exact < 1e-13).all()


def test_probabilities_are_said_to_be_read_as_log_odds_and_lie_between_0_and_1():
    def predict(rows):
        return 1 / (1 + np.exp(-rows.sum(1)))

    found = ab.explain(ab.from_numpy(predict, probabilities=True), X, absence=0.0)
    assert found.record.readout == "log-odds of class 1"
    assert torch.allclose(found.outputs.float(), X.sum(1), atol=1e-4)
    with pytest.raises(ab.AbsentiaError, match=r"model must return probabilities .* Got numbers from [0-9.]+ to"):
        ab.explain(ab.from_numpy(lambda rows: 100 * predict(rows), probabilities=True), X, absence=0.0)


def test_whole_numbers_are_transformed_without_wrapping():
    assert ab.moebius(torch.tensor([0, 1, 1, 0], dtype=torch.uint8)).tolist() == [0, 1, 1, -2]


@pytest.mark.parametrize("y", [[[0], [1]], pd.DataFrame({"y": [0, 1]})])
def test_classes_have_one_axis(y):
    with pytest.raises(ab.AbsentiaError, match=r"y must be one class number or one for .* Got shape \(2, 1\)"):
        ab.explain(FITTED, TABLE[:2], y, absence=0.0)


def test_learning_finds_its_gradient_wherever_it_is_called():
    few = ab.LearningOptions(steps=2)
    expected = ab.learn_baseline(FIRST, X, options=few)
    for within in (torch.no_grad, torch.inference_mode):
        with within():
            found = ab.learn_baseline(FIRST, X, options=few)
            imputer = ab.train_imputer(X, epochs=1, progress=False)
        assert torch.equal(found.values, expected.values)
        assert imputer.record.epochs == 1


@pytest.mark.slow
def test_values_of_another_order_of_players_are_refused():
    learned = ab.learn_baseline(FITTED, TABLE, ONES, options=ab.LearningOptions(steps=1))
    made = LogisticRegression().fit(SWAPPED, ONES)
    with pytest.raises(ab.AbsentiaError, match=r"absence must have values for the players in their order. Got a, b"):
        ab.explain(made, SWAPPED[:2], 1, absence=learned)
    with pytest.raises(ab.AbsentiaError, match=r"absence must have values for the players in their order. Got a, b"):
        ab.audit(made, SWAPPED, ONES, {"learned": learned})


def test_neighbours_are_found_in_half_precision():
    data = torch.tensor([[0.0], [1000.0], [2000.0]]).half()
    data, x = torch.cat([data, data], 1), torch.tensor([[700.0, 0.0]]).half()
    fill = ab.NearestNeighbours(data, neighbours=1, standardise=False).bind(x)
    assert fill(slice(None), torch.tensor([[[True, False]]])).flatten().tolist() == [700.0, 1000.0]
