"""Records count every row that a model sees."""

from pathlib import Path

import joblib
import numpy as np
import pytest
import torch
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LogisticRegression
from torch import nn

import absentia as ab
from absentia.models.arrays import NumpyModel
from absentia.solvers.leaves import sums_over_leaves

OLD_FILES = Path(__file__).parents[1] / "old_files"
X = torch.rand(24, 4, generator=torch.Generator().manual_seed(0))
Y = torch.arange(24) % 3
FEW_STEPS = ab.LearningOptions(steps=2, rows_per_step=256, rows_per_comparison=256)


class Tally:
    """Rows that models saw, noted in a file that all processes write to."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        path.touch()

    @property
    def rows(self) -> int:
        return sum(int(line) for line in Path(self.path).read_text().split())


@pytest.fixture
def tally(tmp_path):
    return Tally(tmp_path / "rows")


def noting(path: str):
    """Return a function that notes rows; made here so that it is sent to workers by value."""

    def note(rows: int) -> None:
        with open(path, "a") as file:
            file.write(f"{rows}\n")

    return note


def counted_module(path: str) -> nn.Module:
    note = noting(path)

    class Counted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.layers = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))

        def forward(self, rows):
            note(len(rows))
            return self.layers(rows)

    return Counted()


def counted_function(path: str):
    note = noting(path)
    weight = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))

    def run(rows):
        note(len(rows))
        return (rows @ weight).tanh()

    return run


def counted_numpy(path: str):
    note = noting(path)
    weight = np.random.default_rng(0).normal(size=(4, 3))

    def predict(rows):
        note(len(rows))
        return np.tanh(rows @ weight)

    return ab.from_numpy(predict)


def counted_estimator(path: str):
    note = noting(path)

    class Counted(LogisticRegression):
        def predict_proba(self, rows):
            note(len(rows))
            return super().predict_proba(rows)

    return Counted().fit(X.numpy(), Y.numpy())


def counted_booster(path: str):
    """Return a model that is read by its margins, after a comparison with its probabilities."""
    note = noting(path)

    def margins(rows):
        note(len(rows))
        return rows.sum(1) - 2

    def probabilities(rows):
        note(len(rows))
        return 1 / (1 + np.exp(2 - rows.sum(1)))

    return NumpyModel(margins, False, margins=True, fallback=NumpyModel(probabilities, True))


def counted_forest(path: str):
    """Return a model whose values are computed from its leaves, after a comparison with its predictions."""
    note = noting(path)
    forest = RandomForestRegressor(n_estimators=3, max_depth=3, random_state=0).fit(X.numpy(), X.sum(1).numpy())
    predict = forest.predict

    def counted_predict(rows):
        note(len(rows))
        return predict(rows)

    forest.predict = counted_predict
    return forest


MODELS = {
    "module": counted_module,
    "function": counted_function,
    "numpy": counted_numpy,
    "estimator": counted_estimator,
}


@pytest.fixture(params=MODELS)
def model(request, tally):
    return MODELS[request.param](tally.path)


def test_explaining_records_every_row(model, tally):
    record = ab.explain(model, X[:3], Y[:3], absence=0.0).record
    assert record.rows_seen == tally.rows
    assert record.evaluations == 3 * 16
    assert record.rows_seen > record.evaluations


def test_the_predicted_classes_take_rows_too(model, tally):
    assert ab.explain(model, X, absence="mean", data=X).record.rows_seen == tally.rows


def test_sampled_explanations_record_every_row(model, tally):
    explanation = ab.explain(model, X[:2], Y[:2], absence=0.0, evaluations=18, batch_size=5)
    assert explanation.record.rows_seen == explanation.shapley.rows_seen == tally.rows
    assert explanation.record.evaluations == explanation.shapley.evaluations


def test_absences_of_several_draws_record_every_row(model, tally):
    record = ab.explain(model, X[:2], Y[:2], absence=ab.Marginal(X, draws=3)).record
    assert record.rows_seen == tally.rows
    assert record.evaluations == 2 * 16 * 3


def test_all_results_of_a_game_count_its_setup_and_their_own_rows(model, tally):
    game = ab.MaskedModel(model, X[:1], Y[:1], absence=0.0)
    setup = tally.rows
    for compute in (
        ab.value_table,
        ab.shapley,
        lambda game: ab.shapley(game, evaluations=18, seed=1),
        ab.interactions,
        ab.harsanyi,
        ab.banzhaf,
        lambda game: ab.index(game, "Banzhaf"),
        ab.order_shapley,
        lambda game: ab.order_shapley(game).mean(),
        lambda game: ab.harsanyi(game).shapley(),
        lambda game: ab.harsanyi(game).order_shapley(),
        lambda game: ab.Terms.from_json(ab.harsanyi(game).to_json()),
        lambda game: ab.marginal_benefits(game, 0),
        lambda game: ab.context_map(game, 0, drawn=4, grown=2),
    ):
        before = tally.rows
        assert compute(game).rows_seen == setup + tally.rows - before


def test_all_results_from_leaves_count_the_comparison_with_the_model(tally):
    game = ab.MaskedModel(counted_forest(tally.path), X[:2], absence=0.0)
    before = tally.rows
    first = ab.value_table(game)
    assert tally.rows > before
    assert first.evaluations == 0
    leaves = sums_over_leaves(game)
    assert leaves is not None
    results = [
        first,
        ab.value_table(game),
        ab.shapley(game),
        leaves.terms(),
        leaves.shapley(),
        leaves.banzhaf(),
        leaves.order_shapley(),
    ]
    assert {result.rows_seen for result in results} == {tally.rows}


def test_rows_of_tables_and_games_of_users_are_unknown():
    class Majority:
        samples = 1
        names = ("a", "b", "c")

        def __call__(self, coalitions):
            return (coalitions.sum(1) >= 2).double()[None]

    assert ab.shapley(Majority()).rows_seen is None
    assert ab.interactions(ab.ValueTable([0.0, 1.0])).rows_seen is None
    assert ab.harsanyi(ab.ValueTable([0.0, 1.0], rows_seen=7)).rows_seen == 7


def test_auditing_records_every_row(model, tally):
    record = ab.audit(model, X, Y, ["zero", "marginal"], draws=2, evaluations=9_000).record
    assert record.rows_seen == tally.rows
    assert record.rows_seen > record.evaluations


def test_a_time_limit_changes_nothing_about_the_count(model, tally):
    assert ab.audit(model, X, Y, ["zero"], draws=2, evaluations=9_000, seconds=60).record.rows_seen == tally.rows


def test_cross_audits_record_every_row(model, tally):
    assert ab.cross_audit(model, X[:6], Y[:6], ["zero", "mean"], draws=2).record.rows_seen == tally.rows


def test_an_interrupted_audit_counts_the_step_that_is_lost(tally):
    note = noting(tally.path)
    calls = []

    def interrupted(rows):
        calls.append(len(rows))
        note(len(rows))
        if len(calls) == 16:
            raise KeyboardInterrupt
        return rows.prod(1)

    record = ab.audit(interrupted, X.double(), absences=["zero", "mean"], draws=2).record
    assert record.stopped == "interrupted"
    assert record.rows_seen == tally.rows


@pytest.mark.parametrize("loss", ["faithful", "interactions"])
def test_learning_records_every_row(model, tally, loss):
    learned = ab.learn_baseline(model, X[:9], Y[:9], loss=loss, options=FEW_STEPS)
    assert learned.record.rows_seen == tally.rows
    assert learned.record.rows_seen > learned.record.evaluations


def test_learning_in_parts_records_every_row(tally):
    learned = ab.learn_baseline(counted_module(tally.path), X, Y, share="class", options=FEW_STEPS)
    assert learned.record.rows_seen == tally.rows


def test_learning_that_computes_activations_again_records_their_rows(tally, monkeypatch):
    monkeypatch.setattr("absentia.learning.faithful._HELD_BYTES", 0)
    learned = ab.learn_baseline(counted_module(tally.path), X, Y, options=FEW_STEPS)
    assert learned.record.rows_seen == tally.rows


def test_learning_resumed_from_a_checkpoint_adds_to_the_rows_before(tally, tmp_path):
    model = counted_module(tally.path)
    options = {"rows_per_step": 256, "rows_per_comparison": 256, "checkpoint": str(tmp_path / "search")}
    first = ab.learn_baseline(model, X, Y, options=ab.LearningOptions(steps=4, **options))
    again = ab.learn_baseline(model, X, Y, options=ab.LearningOptions(steps=4, **options))
    assert first.record.rows_seen < again.record.rows_seen <= tally.rows


def test_a_baseline_learned_on_the_way_counts_as_rows_of_the_explanation(tally):
    explanation = ab.explain(counted_module(tally.path), X[:1], absence="learned", data=X)
    assert explanation.record.rows_seen == tally.rows
    assert explanation.shapley.rows_seen == tally.rows


def test_features_of_a_layer_count_as_rows(tally):
    model = counted_module(tally.path)
    game = ab.MaskedModel(model, X[:2], absence=0.0, readout=ab.Features("layers.0"))
    game(torch.ones(1, 4, dtype=torch.bool))
    assert game.task.row_count.rows == tally.rows


def test_margins_and_the_probabilities_that_confirm_them_count_as_rows(tally):
    assert ab.explain(counted_booster(tally.path), X[:3], 1, absence=0.0).record.rows_seen == tally.rows


def test_a_column_of_possible_probabilities_is_run_once_more(tally):
    note = noting(tally.path)

    def mean(rows):
        note(len(rows))
        return rows.mean(1)

    with pytest.raises(ab.AbsentiaError, match="probabilities from 0 to 1 in one column"):
        ab.Task(ab.from_numpy(mean), X, 1)
    of_trial = 3
    assert tally.rows == of_trial + len(X)


def test_the_rest_of_a_network_after_its_first_layer_counts_as_rows(tally):
    note = noting(tally.path)
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(10, 6), nn.ReLU(), nn.Linear(6, 3))
    network[2].register_forward_hook(lambda _layer, inputs, _output: note(len(inputs[0])))
    x = torch.rand(2, 10, generator=torch.Generator().manual_seed(1))
    record = ab.explain(network, x, 0, absence=0.0, batch_size=64).record
    assert record.rows_seen == tally.rows


def test_batches_that_run_out_of_memory_were_seen(tally):
    note = noting(tally.path)

    def small_memory(rows):
        note(len(rows))
        if len(rows) > 8:
            raise MemoryError
        return rows.sum(1)

    assert ab.explain(small_memory, X[:3], absence=0.0, batch_size=64).record.rows_seen == tally.rows


def test_a_model_that_cannot_run_in_double_precision_saw_the_rows(tally):
    note = noting(tally.path)

    def single_only(rows):
        note(len(rows))
        if rows.dtype == torch.float64:
            raise TypeError
        return rows.sum(1)

    record = ab.explain(single_only, X[:3], absence=0.0).record
    assert record.notes
    assert record.rows_seen == tally.rows


def test_an_audit_counts_the_rows_of_a_surrogate_too(tally):
    model = counted_module(tally.path)
    surrogate = ab.train_surrogate(model, X, epochs=1, progress=False)
    assert surrogate.record.rows_seen == tally.rows
    of_training = tally.rows
    record = ab.audit(model, X, Y, {"zero": 0.0, "surrogate": surrogate}, draws=2, evaluations=9_000).record
    assert record.rows_seen > record.evaluations
    assert record.rows_seen > tally.rows - of_training


def test_no_coalition_is_measured_twice_for_rounding_errors():
    numbers = ab.evaluation.rounding.measured_coalitions(torch.rand(3, 16), 4, 3)
    drawn = numbers[0, 2:].tolist()
    assert sorted(set(drawn)) == drawn


# Workers


@pytest.mark.parametrize("settings", [{}, {"evaluations": 18}], ids=["exact", "sampled"])
def test_rows_at_workers_are_added_up_for_an_explanation(model, tally, settings):
    with joblib.parallel_config("threading", n_jobs=2):
        record = ab.explain(model, X, Y, absence=0.0, batch_size=16, **settings).record
    assert record.rows_seen == tally.rows


def test_rows_at_workers_are_added_up_for_an_audit(model, tally):
    with joblib.parallel_config("threading", n_jobs=2):
        record = ab.audit(model, X, Y, ["zero", "mean"], draws=2, evaluations=9_000).record
    assert record.rows_seen == tally.rows


def test_rows_at_workers_are_added_up_for_learning(tally):
    with joblib.parallel_config("threading", n_jobs=2):
        learned = ab.learn_baseline(counted_module(tally.path), X, Y, share="class", options=FEW_STEPS)
    assert learned.record.rows_seen == tally.rows


@pytest.mark.slow
def test_rows_of_other_processes_are_added_up(tally):
    with joblib.parallel_config("loky", n_jobs=2):
        record = ab.explain(counted_module(tally.path), X, Y, absence=0.0, batch_size=16).record
    assert record.rows_seen == tally.rows


# Files


def test_the_rows_are_saved_and_are_unknown_in_older_files(tmp_path, tally):
    explanation = ab.explain(counted_module(tally.path), X[:1], Y[:1], absence=0.0)
    explanation.save(tmp_path / "explanation.safetensors")
    loaded = ab.load(tmp_path / "explanation.safetensors")
    assert loaded.record.rows_seen == loaded.interactions.rows_seen == tally.rows
    for name in ("explanation", "explanation_format3", "audit", "audit_format3", "cross_audit", "baseline"):
        assert ab.load(OLD_FILES / f"{name}.safetensors").record.rows_seen is None
    assert ab.load(OLD_FILES / "explanation.safetensors").shapley.rows_seen is None
