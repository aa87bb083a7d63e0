"""Baselines are learned for products, networks, black boxes and categories."""

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.ensemble import HistGradientBoostingClassifier
from torch import nn
from torch.utils.data import DataLoader

import absentia as ab
import absentia.learning.sweeps as sweeps_module
from absentia import (
    AbsentiaError,
    Baseline,
    Features,
    LearnedBaseline,
    MaskedModel,
    Output,
    OwnBaselines,
    Players,
    from_numpy,
    harsanyi,
)
from absentia.coalitions import enumerate_coalitions
from absentia.indices import order_marginals_of
from absentia.learning import LearningOptions, absence_for, baseline_loss, learn_baseline
from absentia.learning.options import FAITHFUL
from absentia.tables import EncodedTable
from absentia.task import Task
from known_games import mlp
from known_product import DELTA, product, uniform
from small_learning import OPTIONS, learn


def strength(model, x, absence, **options):
    """The mean Σ|U| over non-empty sets."""
    return harsanyi(MaskedModel(model, x, absence=absence, **options)).effects[:, 1:].abs().sum(1).mean().item()


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["shapley", "marginal", "interactions"])
@pytest.mark.parametrize("start", ["mean", "zero", 0.9])
def test_the_true_baseline_of_a_product_is_found_from_every_start(loss, start):
    learned = learn(product, uniform(), loss=loss, orders=1.0, start=start, bounds=(0.0, 1.0))
    assert torch.allclose(learned.values, DELTA, atol=0.03)
    assert learned.converged
    held_out = uniform(seed=9)
    assert strength(product, held_out, learned) < 0.5 * strength(product, held_out, Baseline.mean(held_out))


@pytest.mark.slow
def test_learning_lowers_the_loss_of_a_network_below_usual_baselines_on_new_samples():
    model = mlp(6, 2, hidden=32)
    x = 2 * torch.randn(200, 6, generator=torch.Generator().manual_seed(0)).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2.0)
    learned = learn(model, x, readout=Output(0), samples=64, rows_per_comparison=2**14)
    new = 2 * torch.randn(32, 6, generator=torch.Generator().manual_seed(1)).double()
    mine = strength(model, new, learned, readout=Output(0))
    for usual in (Baseline(0.0), Baseline.mean(x), Baseline.median(x)):
        assert mine < 0.8 * strength(model, new, usual, readout=Output(0))


@pytest.mark.slow
def test_several_starts_end_close_together_and_the_result_says_how_close():
    learned = learn(product, uniform(), start=["zero", "mean", 1.0], bounds=(0.0, 1.0))
    assert learned.record.starts[:3] == ("zero", "mean", "1")
    assert len(learned.record.final_losses) == len(learned.record.starts)
    assert learned.record.spread < 0.1
    assert "ended within" in repr(learned)
    assert learned.loss <= min(learned.record.final_losses) * 1.001


@pytest.mark.slow
@pytest.mark.parametrize(
    ("players", "samples", "options"),
    [(18, 96, {"polish": False}), (9, 48, {"rows_per_comparison": 2**10})],
    ids=["along the gradient", "polished"],
)
@pytest.mark.parametrize("loss", ["marginal", "interactions"])
def test_with_many_players_coalitions_are_drawn(loss, players, samples, options):
    deltas = torch.linspace(0.1, 0.9, players).double()

    def model(rows):
        shifted = rows - deltas
        return sum(shifted[:, i : i + 3].prod(1) for i in range(0, players, 3))

    learned = learn(model, uniform(samples, players), loss=loss, start="mean", bounds=(0.0, 1.0), **options)
    assert not learned.record.exact
    assert (learned.values - deltas).abs().mean() < 0.05


@pytest.mark.slow
def test_the_features_of_a_layer_can_be_penalised():
    model = mlp(4, 2)
    x = uniform(32)
    learned = learn(model, x, loss="marginal", orders=1.0, readout=Features("3"), steps=5)
    game = MaskedModel(model, x, absence=learned, readout=Features("3"))
    tables = game(enumerate_coalitions(4))
    penalty = sum(order_marginals_of(tables[..., k]).sum((1, 2)) for k in range(tables.shape[-1]))
    assert learned.loss == pytest.approx(penalty.mean().item(), rel=1e-6)
    assert learned.loss < baseline_loss(
        model, x, absence="mean", loss="marginal", readout=Features("3"), options=LearningOptions(orders=1.0)
    )


@pytest.mark.slow
def test_one_baseline_for_each_class_or_sample():
    x = uniform(64)
    y = torch.arange(64) % 2

    def model(rows):
        return torch.stack([(rows - 0.2).prod(1), (rows - 0.2).prod(1) * 3], dim=1)

    by_class = learn(model, x, y, share="class", readout=Output(0), steps=20)
    assert by_class.values.shape == (2, 4)
    assert torch.allclose(by_class.values, torch.full((2, 4), 0.2).double(), atol=0.05)
    with pytest.raises(AbsentiaError, match=r"Use learned.of\(y\)"):
        by_class.bind(x)
    assert torch.equal(by_class.of([1, 0, 1]).values, by_class.values[[1, 0, 1]])
    game = MaskedModel(model, x[:3], [1, 0, 1], absence=by_class)
    assert torch.equal(game.fill.values[:, 0], by_class.values[[1, 0, 1]])
    one_class = MaskedModel(model, x[:3], 1, absence=by_class)
    assert torch.equal(one_class.fill.values[0, 0], by_class.values[1])
    with pytest.raises(AbsentiaError, match=r"y must hold learned classes, \[0, 1\]. Got 5"):
        by_class.of([5])
    own = learn(product, x[:3], share="sample", steps=20, bounds=(0.0, 1.0))
    assert own.values.shape == (3, 4)
    assert MaskedModel(product, x[:3], absence=own).samples == 3


@pytest.mark.slow
def test_entries_can_share_a_value_or_be_held():
    x = uniform()
    tied = learn(product, x, tie=torch.tensor([0, 0, 1, 1]), bounds=(0.0, 1.0), steps=20)
    assert tied.values[0] == tied.values[1]
    assert tied.values[2] == tied.values[3]
    held = learn(product, x, held=torch.tensor([True, False, False, False]), start=0.5, bounds=(0.0, 1.0))
    assert held.values[0] == pytest.approx(0.5)
    assert torch.allclose(held.values[1:], DELTA[1:], atol=0.05)


@pytest.mark.slow
def test_images_may_have_one_colour_for_each_cell():
    players = Players.grid((3, 4, 4), cells=(2, 2))
    cell = torch.arange(4)[:, None] // 2 * 2 + torch.arange(4) // 2
    tie = torch.stack([cell * 3 + channel for channel in range(3)])
    learned = learn(
        lambda x: (x - 0.5).flatten(1).sum(1) ** 2,
        torch.rand(32, 3, 4, 4).double(),
        players=players,
        tie=tie,
        steps=5,
    )
    assert len(torch.unique(learned.values)) <= 12
    assert torch.equal(learned.values[:, :2, :2], learned.values[:, :1, :1].expand(3, 2, 2))


@pytest.mark.slow
def test_models_that_fail_with_a_gradient_are_searched_without():
    buffer = torch.empty(2**20, dtype=torch.float64)
    found = [
        learn(model, uniform(), steps=2, gradient=None, polish=False)
        for model in (
            lambda rows: torch.from_numpy(rows.numpy().prod(1)),
            lambda rows: torch.prod(rows, 1, out=buffer[: len(rows)]),
            lambda rows: rows.detach().prod(1),
        )
    ]
    assert torch.equal(found[0].values, found[2].values)
    assert torch.equal(found[1].values, found[2].values)


def test_samples_that_have_a_gradient_are_samples_like_others():
    plain = learn(product, uniform(), steps=2, polish=False)
    with_gradient = learn(product, uniform().requires_grad_(), steps=2, polish=False)
    assert torch.equal(with_gradient.values, plain.values)


@pytest.mark.slow
def test_black_boxes_are_searched_without_a_gradient():
    learned = learn(from_numpy(lambda rows: (rows - DELTA.numpy()).prod(1)), uniform().numpy(), bounds=(0.0, 1.0))
    assert torch.allclose(learned.values, DELTA, atol=0.03)
    without = learn(lambda rows: product(rows.detach()), uniform(), bounds=(0.0, 1.0))
    assert torch.allclose(without.values, DELTA, atol=0.03)


@pytest.mark.slow
def test_trees_are_learned_on_and_categories_stay_categories():
    generator = np.random.default_rng(0)
    x = np.column_stack(
        [generator.normal(size=(300, 3)), generator.integers(0, 4, 300), np.eye(3)[generator.integers(0, 3, 300)]]
    )
    y = (x[:, 0] * (x[:, 3] == 2) + x[:, 4] > 0.3).astype(int)
    trees = HistGradientBoostingClassifier(max_iter=20, random_state=0).fit(x, y)
    model = from_numpy(trees.predict_proba, probabilities=True)
    players = Players.groups({"a": [0], "b": [1], "c": [2], "kind": [3], "colour": [4, 5, 6]}, features=7)
    learned = learn(model, x, y, players=players, categorical=[3, (4, 5, 6)], samples=32)
    assert learned.values[3].item() in (0, 1, 2, 3)
    assert sorted(learned.values[4:].tolist()) == [0, 0, 1]
    new = x[100:116]
    mine = strength(model, new, learned, players=players, readout=None)
    assert mine <= strength(model, new, Baseline.mean(x), players=players, readout=None)


@pytest.mark.slow
def test_players_that_the_model_ignores_are_said_to_be_undetermined():
    learned = learn(lambda rows: product(rows[:, :4]), uniform(players=5), bounds=(0.0, 1.0), start=0.4)
    assert learned.record.undetermined == ("x4",)
    assert learned.values[4] == pytest.approx(0.4)
    assert "    x4  no effect on the loss" in repr(learned)


def test_a_constant_model_determines_nothing():
    x = uniform()
    learned = learn_baseline(lambda rows: rows[:, 0] * 0 + 1, x, options=LearningOptions(steps=10))
    assert learned.undetermined == [True] * 4
    assert torch.equal(learned.values, x.mean(0))


@pytest.mark.slow
def test_constant_entries_keep_their_value():
    x = uniform()
    x[:, 1] = 0.7
    learned = learn(product, x)
    assert learned.values[1] == pytest.approx(0.7)
    assert learned.record.undetermined == ()


@pytest.mark.slow
def test_the_history_falls_and_the_same_seed_gives_the_same():
    first, again = (learn(product, uniform(), seed=3, steps=10) for _ in range(2))
    assert torch.equal(first.values, again.values)
    assert (first.history[1:, 1] <= first.history[:-1, 1] + 1e-12).all()
    assert (first.history[1:, 0] >= first.history[:-1, 0]).all()


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"loss": "size"}, "loss must be 'faithful', 'interactions', 'shapley' or 'marginal'. Got 'size'"),
        ({"start": "middle"}, "start must be 'zero', 'mean', 'median'"),
        ({"start": 2.0}, "start must lie within the bounds, .* Got 2 in entry 0"),
        ({"bounds": (5.0, 6.0)}, "bounds must overlap the data, here 5 to 6. Got data from"),
        ({"bounds": (1.0, 0.0)}, "bounds must have low ≤ high"),
        ({"bounds": -1.0}, "bounds must be a positive number of standard deviations"),
        ({"share": "none"}, "share must be 'all', 'class' or 'sample'"),
        ({"share": "class"}, "y must be given for a baseline of each class"),
        ({"tie": torch.zeros(3)}, r"tie must have the shape of one sample, \(4,\)"),
        ({"held": torch.zeros(3)}, "held must have the shape of one sample"),
        ({"categorical": [9]}, "categorical must name columns from 0 to 3. Got 9"),
        ({"samples": 0}, "samples must be at least 1"),
        ({"y": torch.zeros(3).long()}, "y must hold one class for each of the 128 samples"),
        ({"orders": 9, "loss": "shapley"}, "orders must be a share between 0 and 1, or a number from 1 to 4"),
        ({"start": torch.zeros(3)}, "start must hold one number, or one for each of the 4 entries. Got 3"),
        ({"start": []}, "start must hold at least one start"),
        ({"bounds": (torch.zeros(3), 1.0)}, "bounds must hold one number, or one for each of the 4 entries"),
        ({"steps": -1}, "steps must be at least 0"),
        ({"evidence": float("inf")}, "evidence must be at least 0, and finite. Got inf"),
        ({"rows_per_comparison": 10}, "rows_per_comparison must be at least 256"),
        ({"checkpoint": "no/such/folder/file"}, "checkpoint must lie in a folder that exists. Got .* first"),
    ],
)
def test_bad_input_gets_a_sentence(settings, sentence):
    from typechecker import unchecked

    options = {name: value for name, value in settings.items() if name in OPTIONS}
    others = {name: value for name, value in settings.items() if name not in OPTIONS}
    with pytest.raises(AbsentiaError, match=sentence):
        unchecked(learn_baseline)(product, uniform(), options=LearningOptions(**options), **others)


@pytest.mark.slow
def test_an_array_is_one_start_and_a_list_is_several():
    given = uniform().mean(0)
    settings = {"bounds": (0.0, 1.0), "steps": 2, "polish": False}
    by_tensor = learn(product, uniform(), start=given, **settings)
    by_array = learn(product, uniform(), start=given.numpy(), **settings)
    assert by_array.record.starts[0] == "given 0"
    assert torch.equal(by_tensor.values, by_array.values)
    assert learn(product, uniform(), start=[0.1, given], **settings).record.starts[:2] == ("0.1", "given 1")


def test_nothing_to_learn_is_no_error():
    held = learn(product, uniform(), held=torch.ones(4), start=0.4, bounds=(0.0, 1.0))
    assert torch.allclose(held.values, torch.full((4,), 0.4).double())
    assert held.record.undetermined == ()


def test_tokens_must_be_learned_as_categories():
    model = torch.nn.Sequential(torch.nn.Embedding(10, 3), torch.nn.Flatten(), torch.nn.Linear(12, 2))
    x = torch.randint(1, 10, (20, 4))
    players = Players.tokens(4)
    with pytest.raises(AbsentiaError, match="categorical must name the entries of inputs that are token numbers"):
        learn(model, x, players=players)
    learned = learn(model, x, players=players, categorical=range(4))
    assert all(value in x[:, column] for column, value in enumerate(learned.values))
    assert MaskedModel(model, x[:2], 0, players=players, absence=learned).samples == 2


def test_a_search_that_was_cut_short_does_not_claim_to_have_converged(monkeypatch):
    monkeypatch.setattr(sweeps_module, "MAX_SWEEPS", 1)
    cut = learn(product, uniform(), start=0.9, bounds=(0.0, 1.0), gradient=False)
    assert not cut.converged
    assert "the last still lowered the loss" in cut.record.stopped
    monkeypatch.setattr(sweeps_module, "MAX_SWEPT", 3)
    unswept = learn(product, uniform(), steps=3)
    assert not unswept.converged
    assert "too many to sweep" in repr(unswept)


@pytest.mark.parametrize("calls_until", [30, 60, 200])
def test_ctrl_c_returns_the_best_so_far(calls_until):
    calls = 0

    def impatient(rows):
        nonlocal calls
        calls += 1
        if calls == calls_until:
            raise KeyboardInterrupt
        return product(rows)

    learned = learn(impatient, uniform(), start=0.9, bounds=(0.0, 1.0))
    assert not learned.converged
    assert torch.isfinite(learned.values).all()
    assert "interrupted" in repr(learned)


def test_a_value_that_is_not_finite_names_the_sample():
    def model(rows):
        return torch.where(rows[:, 0] > 0.99, torch.nan, rows.sum(1))

    x = uniform()
    x[7, 0], x[8:, 0] = 0.995, 0.1
    with pytest.raises(AbsentiaError, match=r"Got nan for sample \d+ with players"):
        learn(model, x, samples="all")


def test_thirty_players_are_learned_without_a_table_of_all_coalitions():
    settings = {"steps": 1, "rows_per_comparison": 2**8, "orders": 2, "polish": False}
    learned = learn(lambda rows: (rows[:, :2] - 0.2).prod(1), uniform(32, 30), **settings)
    assert learned.values.shape == (30,)
    assert not learned.record.exact


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["shapley", "marginal", "interactions"])
def test_the_loss_of_learned_values_is_theirs_and_that_of_others_is_not_lower(loss):
    x = uniform()
    options = LearningOptions(rows_per_comparison=2**12, samples=100)
    learned = learn(product, x, loss=loss, samples=100)
    losses = {
        absence: baseline_loss(product, x, absence=absence, loss=loss, options=options)
        for absence in (learned, Baseline(learned.values), "mean", "median", 0.5)
    }
    assert losses[learned] == pytest.approx(learned.loss, rel=1e-9)
    assert min(losses.values()) == pytest.approx(learned.loss, rel=1e-9)
    own = OwnBaselines(x[torch.randperm(128, generator=torch.Generator().manual_seed(0))[:100]])
    assert baseline_loss(product, x, absence=own, loss=loss, options=options) == 0  # nothing is ever replaced
    assert learned.loss > 0


def test_the_loss_of_a_baseline_for_each_class_needs_the_classes():
    x = uniform(64)
    y = torch.arange(64) % 2
    learned = learn(mlp(4, 2), x, y, share="class", steps=5, polish=False)
    assert baseline_loss(mlp(4, 2), x, y, absence=learned, loss="interactions") == pytest.approx(learned.loss)
    with pytest.raises(AbsentiaError, match="be one of the paper's losses if stand-ins differ between samples"):
        baseline_loss(mlp(4, 2), x, y, absence=learned)
    with pytest.raises(AbsentiaError, match="y must be given for an absence with one baseline for each class"):
        baseline_loss(product, x, absence=learned)


def test_the_loss_is_that_of_fixed_values():
    for absence in ("marginal:3", "gaussian"):
        with pytest.raises(AbsentiaError, match="absence must have one fixed stand-in for each sample"):
            baseline_loss(product, uniform(), absence=absence)


class KnownByName:
    """An absence that knows the category of its only entry by name, and has no values before it is told the codes."""

    def bind(self, x):
        raise AssertionError("The codes were not told.")

    def coded_for(self, names):
        return Baseline([float(names[0].index("tree"))])


def test_the_loss_of_a_baseline_is_that_of_its_categories_in_the_codes_of_the_table():
    table = EncodedTable.of(pd.DataFrame({"city": ["bush", "tree", "weed", "tree"]}))
    model = replace(from_numpy(lambda rows: rows[:, 0] ** 2), table=table)
    coded = baseline_loss(model, table.rows, absence=Baseline([1.0]), loss="interactions")
    assert baseline_loss(model, table.rows, absence=KnownByName(), loss="interactions") == coded
    assert baseline_loss(model, table.rows, absence=Baseline([2.0]), loss="interactions") != coded


@pytest.mark.slow
def test_the_loss_of_a_baseline_may_be_learned_by_word(monkeypatch):
    monkeypatch.setattr("absentia.learning.options.FAITHFUL", replace(FAITHFUL, steps=4))
    x = uniform()
    learned = learn_baseline(product, x)
    assert baseline_loss(product, x, absence="learned") == baseline_loss(product, x, absence=learned)


@pytest.mark.slow
def test_an_absence_is_chosen_by_word_number_or_learning(monkeypatch):
    monkeypatch.setattr("absentia.learning.options.FAITHFUL", replace(FAITHFUL, steps=4))
    x = uniform()
    task = Task(product, x)
    baseline = Baseline(0.3)
    assert absence_for(task, baseline, x, seed=0) is baseline
    assert torch.equal(absence_for(task, "mean", x, seed=0).values, x.mean(0))
    assert absence_for(task, 0.5, x, seed=0).values == 0.5
    pair = Task(lambda rows: (rows[:, :2] - 0.25).prod(1), x[:, :2])
    learned = absence_for(pair, "learned", x[:, :2], seed=1)
    assert isinstance(learned, LearnedBaseline)
    assert learned.record.loss == "faithful"
    assert learned.record.seed == 1
    with pytest.raises(AbsentiaError, match="absence must be an absence, a number, or one of zero"):
        absence_for(task, "nothing", x, seed=0)


@pytest.mark.parametrize("source", ["list", "array", "loader"])
def test_classes_may_be_named(source):
    x = uniform(64)
    y = ["yes", "no"] * 32
    settings = {"share": "class", "steps": 2, "rows_per_comparison": 2**8, "samples": 20, "polish": False}
    by_number = learn(mlp(4, 2), x, torch.tensor([1, 0] * 32), **settings)
    settings["class_names"] = ["no", "yes"]
    if source == "loader":
        pairs = DataLoader(list(zip(x, y, strict=True)), batch_size=10)
        learned = learn(mlp(4, 2), pairs, **settings)
    else:
        learned = learn(mlp(4, 2), x, y if source == "list" else np.array(y), **settings)
        assert torch.equal(learned.values, by_number.values)
    assert learned.record.class_names == ("no", "yes")
    assert learned.classes.tolist() == [0, 1]
    assert "one for each class (no, yes)" in repr(learned)
    assert learned.to_frame()["class"].tolist() == ["no"] * 4 + ["yes"] * 4
    assert torch.equal(learned.of(["yes", "no"]).values, learned.values[[1, 0]])
    assert torch.equal(learned.of("yes").values, learned.values[1])


def test_a_name_that_few_samples_have_still_counts_and_unknown_ones_get_a_sentence():
    x = uniform(64)
    y = ["a"] * 31 + ["b"] * 32 + ["c"]
    learned = learn(
        mlp(4, 3), x, y, steps=1, rows_per_comparison=2**8, samples=4, polish=False, class_names=["a", "b", "c"]
    )
    assert learned.record.class_names == ("a", "b", "c")
    named = learn(
        mlp(4, 3), x, y, steps=1, rows_per_comparison=2**8, samples=4, polish=False, class_names=["c", "b", "a"]
    )
    assert named.record.class_names == ("c", "b", "a")
    assert named.loss != learned.loss
    with pytest.raises(AbsentiaError, match=r"y must hold classes of the model: a, b\. Got 'c'"):
        learn(mlp(4, 2), x, y, class_names=["a", "b"])


def test_only_columns_that_are_a_list_name_players():
    class Result:
        def columns(self):
            return {}

    with pytest.raises(AbsentiaError, match=r"x must be a tensor, an array, a Dataset or a DataLoader. Got Result"):
        learn(mlp(4, 2), Result())


def test_the_order_of_names_is_not_guessed():
    x = uniform(8)
    y = ["spam", "ham"] * 4
    sentence = r"y holds names of classes, .* Pass class_names=\['ham', 'spam'\] in the order of the model's outputs"
    for call in (learn, partial(baseline_loss, absence=0.0)):
        with pytest.raises(AbsentiaError, match=sentence):
            call(mlp(4, 2), x, y)
    by_number = baseline_loss(mlp(4, 2), x, torch.tensor([0, 1] * 4), absence=0.0)
    assert baseline_loss(mlp(4, 2), x, y, absence=0.0, class_names=["spam", "ham"]) == by_number


def test_an_estimator_is_wrapped_and_knows_its_classes():
    x = uniform(60).numpy()
    y = np.where(x[:, 0] * x[:, 1] > 0.25, "large", "small")
    trees = HistGradientBoostingClassifier(max_iter=2, random_state=0).fit(x, y)
    learned = learn(trees, x, y, steps=1, samples=4, rows_per_comparison=2**8, polish=False)
    assert learned.record.class_names == ("large", "small")
    assert learned.record.readout.startswith("log-odds of each sample's class (")


def test_what_was_computed_in_inference_mode_does_not_break_learning():
    model = nn.Linear(3, 2)
    with torch.inference_mode():
        x = torch.rand(8, 3)
        ab.explain(model, x, 0, absence=0.0)
    for loss in ("faithful", "interactions", "shapley", "marginal"):
        found = ab.learn_baseline(model, x, [0, 1] * 4, loss=loss, options=ab.LearningOptions(steps=1))
        assert found.values.isfinite().all()


NORMAL_ROWS = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))


FIRST, SECOND = nn.Linear(4, 1), nn.Linear(4, 1)


def test_learning_finds_its_gradient_wherever_it_is_called():
    few = ab.LearningOptions(steps=2)
    expected = ab.learn_baseline(FIRST, NORMAL_ROWS, options=few)
    for within in (torch.no_grad, torch.inference_mode):
        with within():
            found = ab.learn_baseline(FIRST, NORMAL_ROWS, options=few)
            imputer = ab.train_imputer(NORMAL_ROWS, epochs=1, progress=False)
        assert torch.equal(found.values, expected.values)
        assert imputer.record.epochs == 1
