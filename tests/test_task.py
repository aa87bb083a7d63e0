"""A task checks its model, samples and classes once."""

import joblib
import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch import nn

import absentia as ab
from absentia import AbsentiaError, Baseline, Evaluator, Output
from absentia.learning import LearningOptions
from absentia.runtime.limits import TimeLimit
from absentia.runtime.row_count import RowCount
from absentia.task import Task
from fitted_table import CLASSES, FITTED, TRAINING_TABLE


@pytest.fixture
def network():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3)).double()


X = torch.rand(5, 4, generator=torch.Generator().manual_seed(2)).double()
Y = torch.tensor([0, 2, 1, 1, 0])


def test_names_of_classes_are_kept_and_read_in_the_given_order(network):
    named = Evaluator(Task(network, X, ["no", "yes", "maybe", "maybe", "no"], class_names=["no", "maybe", "yes"]))
    assert torch.equal(named.readout.y, Y)
    assert named.class_names == ("no", "maybe", "yes")
    assert "no, yes, maybe" in str(named.readout_note)
    sentence = (
        r"y holds names of classes, but .* Pass class_names=\['maybe', 'no', 'yes'\] in the order of the model's"
    )
    with pytest.raises(AbsentiaError, match=sentence):
        Evaluator(Task(network, X, ["no", "yes", "maybe", "maybe", "no"]))
    with pytest.raises(AbsentiaError, match=sentence):
        Evaluator(Task(network, X, ["no", "yes", "maybe", "maybe", "no"], readout=Output(0)))
    with pytest.raises(AbsentiaError, match=r"Pass class_names=\['yes'\] in the order of the model's outputs"):
        Evaluator(Task(network, X, "yes"))
    with pytest.raises(AbsentiaError, match=r"class_names must name each of the 3 classes\. Got 2 names"):
        Evaluator(Task(network, X, Y, class_names=["no", "yes"]))


def test_estimators_are_wrapped_and_know_their_classes():
    labels = np.array(["red", "green", "red", "green", "blue"])
    estimator = LogisticRegression().fit(X.numpy(), labels)
    evaluator = Evaluator(Task(estimator, X, labels))
    assert evaluator.class_names == ("blue", "green", "red")
    assert evaluator.readout.y.tolist() == [2, 1, 2, 1, 0]
    full = evaluator.values(Baseline(0.0).bind(X), torch.ones(1, 4, dtype=torch.bool))[:, 0]
    chance = torch.tensor(estimator.predict_proba(X.numpy()))[torch.arange(5), evaluator.readout.y]
    assert torch.allclose(full, torch.logit(chance))
    same = Evaluator(Task(estimator.predict_proba, X, labels)).values(
        Baseline(0.0).bind(X), torch.ones(1, 4, dtype=torch.bool)
    )
    assert torch.equal(same[:, 0], full)


def test_numbers_are_labels_of_an_estimator_that_was_fitted_with_numbers():
    estimator = LogisticRegression().fit(X.numpy(), [5, 7, 5, 7, 9])
    assert Evaluator(Task(estimator, X, [9, 7, 5, 5, 7])).readout.y.tolist() == [2, 1, 0, 0, 1]
    with pytest.raises(AbsentiaError, match=r"y must hold classes of the model: 5, 7, 9\. Got 2"):
        Evaluator(Task(estimator, X, 2))


FOUR_ROWS = torch.rand(4, 3, generator=torch.Generator().manual_seed(1))


def explain(model, x=FOUR_ROWS):
    return ab.explain(model, x, absence=0.0).interactions.effects


class Unsteady:
    """A model that returns something else from some call on."""

    def __init__(self, after=10**9):
        self.calls = 0
        self.after = after

    def __call__(self, rows):
        self.calls += 1
        return rows.sum(1) + (rows[:, 0] > 0.99) * float(self.calls > self.after)


def test_a_model_that_is_not_deterministic_is_refused_by_every_function():
    def model(rows):
        return rows.sum(1) + torch.rand(len(rows))

    for run in (
        lambda: explain(model),
        lambda: ab.explain(model, FOUR_ROWS, absence=0.0, evaluations=8),
        lambda: ab.learn_baseline(model, FOUR_ROWS),
        lambda: ab.audit(model, FOUR_ROWS, absences={"zero": ab.Baseline(0.0)}),
    ):
        with pytest.raises(
            AbsentiaError, match=r"the same output for the same sample. Got results for sample \d+ that differ"
        ):
            run()


@pytest.mark.usefixtures("clock")  # a slow machine would time the model with further calls
@pytest.mark.parametrize("absence", [ab.Baseline(0.0), ab.NearestNeighbours(torch.rand(9, 12), neighbours=2)])
@pytest.mark.parametrize("evaluations", [None, 100])
def test_a_model_that_changes_on_the_way_is_refused_with_the_sample_and_the_difference(absence, evaluations):
    x = torch.cat([torch.ones(3, 1), torch.zeros(3, 11)], 1)
    steady = Unsteady()
    ab.explain(steady, x, absence=absence, evaluations=evaluations)
    with pytest.raises(AbsentiaError, match=r"results for sample 2 that differ by 1 instead. Put it into evaluation"):
        ab.explain(Unsteady(steady.calls - 1), x, absence=absence, evaluations=evaluations)


@pytest.mark.parametrize("work", [explain, lambda model: ab.learn_baseline(model, FOUR_ROWS)])
def test_random_outputs_are_refused_also_where_they_are_small_beside_an_offset(work):
    with pytest.raises(AbsentiaError, match="the same output for the same sample"):
        work(lambda rows: 1000 + rows.prod(1) + 2 * torch.randn(len(rows)))


class Drifting:
    """A model that changes for good at some call."""

    def __init__(self, after=10**9):
        self.calls = 0
        self.after = after

    def __call__(self, rows):
        self.calls += 1
        return rows.prod(1) * (1.0 if self.calls <= self.after else 3.0)


def at_workers(model):
    with joblib.parallel_config("threading", n_jobs=2):
        return ab.explain(model, FOUR_ROWS, absence=0.0, batch_size=2)


@pytest.mark.parametrize(
    "work",
    [
        lambda model: ab.audit(model, FOUR_ROWS, absences=["zero", "mean"]),
        lambda model: ab.cross_audit(model, FOUR_ROWS, absences=["zero", "mean"]),
        lambda model: ab.learn_baseline(model, FOUR_ROWS, options=LearningOptions(steps=2)),
        lambda model: ab.explain(model, torch.rand(2, 12), absence=0.0, evaluations=100, batch_size=8),
        at_workers,
    ],
)
def test_a_model_that_drifts_is_refused_by_every_function(work):
    steady = Drifting()
    work(steady)
    with pytest.raises(AbsentiaError, match="the same output for the same sample"):
        work(Drifting(5 if work is at_workers else steady.calls // 2))


def test_rounding_errors_of_low_precision_are_no_change_of_the_model():
    torch.manual_seed(0)
    layers = [layer for _ in range(6) for layer in (nn.Linear(10, 10), nn.ReLU())]
    for kind in (torch.bfloat16, torch.float16):
        network = nn.Sequential(*layers, nn.Linear(10, 2)).to(kind)
        ab.explain(network, torch.rand(3, 10), 0, absence=0.0)


def test_a_readout_by_number_names_the_class_of_an_estimator():
    made = LogisticRegression().fit(TRAINING_TABLE, CLASSES + 1)  # its classes are 1 and 2
    assert (
        ab.explain(made, TRAINING_TABLE[:1], readout=ab.LogOdds(1), absence=0.0).record.readout
        == "log-odds of class 2"
    )
    assert ab.explain(made, TRAINING_TABLE[:1], 2, absence=0.0).record.readout == "log-odds of class 2"
    with pytest.raises(ab.AbsentiaError, match=r"class_names must name each of the 2 classes. Got 1 names"):
        ab.explain(FITTED, TRAINING_TABLE[:1], readout=ab.LogOdds(1), class_names=["a"], absence=0.0)


def test_a_model_that_depends_on_its_batch_is_noticed_when_values_are_sampled():
    torch.manual_seed(0)
    model = nn.Sequential(nn.BatchNorm1d(30, track_running_stats=False), nn.Linear(30, 1))
    with pytest.raises(ab.AbsentiaError, match=r"model must return the same output for the same sample"):
        ab.explain(model, torch.randn(8, 30), absence=0.0)


def test_memory_is_a_positive_number_of_bytes():
    for memory in (0, -5):
        with pytest.raises(AbsentiaError, match=f"memory must be at least 1. Got {memory} instead."):
            Task(lambda rows: rows.sum(1), torch.rand(2, 3), memory=memory)


SAMPLES = torch.rand(24, 4, generator=torch.Generator().manual_seed(0))
LABELS = torch.arange(24) % 3


def test_samples_of_any_kind_become_rows_of_the_models_type():
    network = nn.Linear(2, 3).double()
    for x in ([[1, 2]], np.array([[1, 2]]), pd.DataFrame({"a": [1], "b": [2]}), torch.tensor([[1, 2]])):
        task = ab.Task(network, x)
        assert task.x.dtype == torch.float64
        assert task.x.tolist() == [[1.0, 2.0]]


def test_columns_of_a_frame_name_the_players():
    task = ab.Task(lambda rows: rows.sum(1), pd.DataFrame({"age": [1.0], "income": [2.0]}))
    assert task.names == ("age", "income")


def test_classes_are_numbers_by_the_names_of_the_classes():
    task = ab.Task(nn.Linear(4, 2), SAMPLES[:2], ["no", "yes"], class_names=["no", "yes"])
    assert task.classes.tolist() == [0, 1]
    assert task.class_names == ("no", "yes")


def test_data_must_look_like_the_samples():
    task = ab.Task(nn.Linear(4, 2), SAMPLES[:2])
    assert torch.equal(task.rows_of(SAMPLES.double()), SAMPLES)
    with pytest.raises(ab.AbsentiaError, match="data"):
        task.rows_of(SAMPLES[:, :3])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"model": 3}, "model must be an nn.Module, an estimator, or a callable"),
        ({"x": torch.zeros(0, 4)}, "x must"),
        ({"x": torch.zeros(2, 2, 4)}, "players must be given for samples of shape"),
        ({"players": ab.Players.features(5)}, "x must have samples of the players' shape"),
        ({"model": lambda rows: rows[:1]}, "model must return one row for each of the 3 input rows"),
        ({"model": lambda rows: rows.long()}, "model must return floating-point numbers"),
        ({"model": lambda rows: rows + torch.rand(len(rows), 1)}, "must return the same output for the same sample"),
        ({"model": nn.Sequential(nn.Linear(4, 3), nn.Softmax(1)), "y": LABELS}, "model must return logits"),
        ({"batch_size": 0}, "batch_size must be"),
    ],
)
def test_what_is_wrong_is_said_before_anything_runs_for_long(arguments, sentence):
    with pytest.raises(ab.AbsentiaError, match=sentence):
        ab.Task(**{"model": nn.Linear(4, 3), "x": SAMPLES} | arguments)


def test_a_task_with_another_count_or_limit_is_the_same_otherwise():
    task = ab.Task(nn.Linear(4, 3), SAMPLES)
    counted_elsewhere = task.with_count(RowCount())
    limited = task.with_limit(TimeLimit(9.0))
    assert counted_elsewhere.x is limited.x is task.x
    assert (counted_elsewhere.row_count.rows, limited.row_count) == (0, task.row_count)
    assert (limited.limit.seconds, counted_elsewhere.limit) == (9.0, task.limit)


def test_evaluators_and_games_read_their_task():
    task = ab.Task(nn.Linear(4, 3), SAMPLES, LABELS)
    evaluator = ab.Evaluator(task)
    game = ab.MaskedModel.of_task(task, ab.Baseline(0.0))
    for name in ("model", "x", "samples", "players", "readout"):
        assert getattr(evaluator, name) is getattr(game, name) is getattr(task, name)
    assert game.task is task
    assert game.names == task.names
