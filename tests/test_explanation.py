"""Explanations hold the results of their games, and are shown, saved and exported."""

import importlib
import math
from dataclasses import FrozenInstanceError, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch import nn

import absentia as ab
from absentia.absences.protocol import StandIns, empty_inputs
from absentia.explanation import ExplanationRecord
from absentia.learning.options import FAITHFUL
from absentia.storage import read_tensors, write_tensors
from known_games import cnn, harsanyi_by_definition, marginal_benefits_by_order, mlp, shapley_by_subsets
from seeded_draws import randn
from typechecker import unchecked

FEW = ab.LearningOptions(steps=2, rows_per_comparison=2**8)
OLD_FILES = Path(__file__).parent / "old_files"
SCRIPT = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def exact():
    return ab.explain(mlp(5, 3), randn(4, 5), [0, 1, 2, 0], absence=ab.Baseline(0.5))


@pytest.fixture(scope="module")
def sampled():
    return ab.explain(mlp(30, 3), randn(2, 30), [0, 1], absence=ab.Baseline(0.0), evaluations=400, seed=3)


def equal(a, b):
    return (a is None and b is None) or torch.equal(a, b)


def assert_same(first, second):
    for name in ("x", "y", "outputs", "base_values", "stand_ins"):
        assert equal(getattr(first, name), getattr(second, name)), name
    assert torch.equal(first.players.labels, second.players.labels)
    assert (first.players.names, first.players.integer) == (second.players.names, second.players.integer)
    assert equal(first.shapley.values, second.shapley.values)
    assert equal(first.shapley.errors, second.shapley.errors)
    assert (first.order_shapley is None) == (second.order_shapley is None)
    if first.order_shapley is not None:
        assert torch.equal(first.order_shapley.values, second.order_shapley.values)
        assert first.order_shapley.orders == second.order_shapley.orders
    assert (first.interactions is None) == (second.interactions is None)
    if first.interactions is not None:
        assert equal(first.interactions.effects, second.interactions.effects)
        assert equal(first.interactions.noise, second.interactions.noise)
        assert first.interactions.evaluations == second.interactions.evaluations
    assert first.record == second.record
    assert repr(first) == repr(second)
    assert first._repr_html_() == second._repr_html_()


def test_everything_exact_agrees_with_the_definitions(exact):
    values = ab.value_table(
        ab.MaskedModel(mlp(5, 3), randn(4, 5), [0, 1, 2, 0], absence=ab.Baseline(0.5))
    ).values.tolist()
    for sample, table in enumerate(values):
        assert exact.shapley.values[sample].tolist() == pytest.approx(shapley_by_subsets(table))
        assert exact.interactions.effects[sample].tolist() == pytest.approx(harsanyi_by_definition(table))
        orders = marginal_benefits_by_order(table)
        for order, row in enumerate(orders):
            assert exact.order_shapley.values[sample, order].tolist() == pytest.approx(row)
        assert (exact.base_values[sample], exact.outputs[sample]) == pytest.approx((table[0], table[-1]))


def test_shapley_values_share_the_difference_out(exact, sampled):
    for explanation in (exact, sampled):
        total = explanation.outputs - explanation.base_values
        assert torch.allclose(explanation.shapley.values.sum(1), total)


def test_shapley_values_that_miss_the_difference_are_reported(exact, sampled):
    for found in (exact, sampled):
        assert float(found.efficiency_gap.abs().max()) < 1e-9
        assert "miss the difference" not in repr(found)
    moved = replace(exact, outputs=exact.outputs + 0.5)
    assert torch.allclose(moved.efficiency_gap, torch.tensor(0.5).double())
    assert "miss the difference by" in repr(moved)


def test_the_model_runs_once_for_all_results():
    rows = []

    def model(inputs):
        rows.append(len(inputs))
        return inputs.prod(1)

    explanation = ab.explain(model, randn(2, 6), absence=ab.Baseline(1.0))
    assert explanation.record.evaluations == 2 * 2**6
    assert sum(rows) <= 2 * 2**6 + 4  # and a look at what comes out of it


def test_too_many_players_are_sampled_and_the_record_says_so(sampled):
    assert not sampled.record.exact
    assert not sampled.interactions.is_exact
    assert float(sampled.interactions.fidelity.min()) > 0.9
    assert "account for" in repr(sampled)
    by_order = sampled.order_shapley
    assert by_order.is_estimated
    torch.testing.assert_close(by_order.values.mean(1), sampled.shapley.values)
    assert (sampled.shapley.errors > 0).all()
    direct = ab.shapley(
        ab.MaskedModel(mlp(30, 3), randn(2, 30), [0, 1], absence=ab.Baseline(0.0)), evaluations=400, seed=3
    )
    # Its kernel is fitted without the coalitions that are held out for interactions.
    apart = (direct.values - sampled.shapley.values) / direct.errors
    assert float(apart.abs().max()) < 3
    assert sampled.record.evaluations == direct.evaluations == 2 * 400
    assert "As requested: values are estimated from 400 coalitions" in sampled.record.notes[0]
    unasked = ab.explain(lambda rows: rows.sum(1), randn(1, 25), absence=ab.Baseline(0.0))
    assert unasked.record.notes[0].startswith("25 players are too many for all 2^25 coalitions")
    assert unasked.record.evaluations <= 4096 + 2
    assert unasked.shapley.values[0].tolist() == pytest.approx(randn(1, 25)[0].tolist())  # exact for a sum


def test_a_lower_bound_on_players_samples_unless_all_coalitions_cost_no_more():
    x = randn(1, 14)
    many = ab.explain(lambda rows: rows.sum(1), x, absence=ab.Baseline(0.0), max_players=13)
    assert not many.record.exact
    few = ab.explain(lambda rows: rows.sum(1), x[:, :5], absence=ab.Baseline(0.0), max_players=4)
    assert few.record.exact
    assert ab.explain(lambda rows: rows.sum(1), x[:, :5], absence=ab.Baseline(0.0), evaluations=32).record.exact


def test_one_sample_is_a_batch_of_one():
    model = mlp(3)
    x = randn(2, 3)
    one = ab.explain(model, x[1], absence=ab.Baseline(0.0))
    both = ab.explain(model, x, absence=ab.Baseline(0.0))
    assert one.x.shape == (1, 3)
    assert torch.allclose(one.shapley.values[0], both.shapley.values[1])
    players = ab.Players.grid((1, 4, 4), cells=(2, 2))
    image = ab.explain(lambda rows: rows.sum((1, 2, 3)), torch.rand(1, 4, 4), players=players, absence=ab.Baseline(0))
    assert image.x.shape == (1, 1, 4, 4)


def test_frames_name_the_players_and_lists_and_arrays_are_taken():
    frame = pd.DataFrame({"age": [1.0, 2.0], "income in $": [3, 4]})
    explanations = [
        ab.explain(lambda rows: rows.prod(1), given, absence=ab.Baseline(1.0))
        for given in (frame, frame.iloc[0], frame.to_numpy(), [[1.0, 3.0], [2.0, 4.0]])
    ]
    assert [explanation.names for explanation in explanations[:2]] == [("age", "income in $")] * 2
    assert explanations[2].names == ("x0", "x1")
    for explanation in explanations:
        assert explanation.shapley.values[0].tolist() == pytest.approx([0, 2])


def test_samples_are_kept_as_given():
    x = np.array([[1, 2], [3, 4]], dtype=np.int32)
    explanation = ab.explain(mlp(2), x, absence=ab.Baseline(0.0))
    assert explanation.x.dtype == torch.int32
    assert torch.equal(explanation.x, torch.as_tensor(x))


def test_stand_ins_are_what_the_absence_puts_in():
    x = randn(3, 4)
    background = randn(7, 4, seed=1)
    players = ab.Players.groups({"first": [0], "others": [1, 2]}, features=4)
    explanation = ab.explain(lambda rows: rows.sum(1), x, players=players, absence=ab.Marginal(background))
    assert torch.allclose(explanation.stand_ins[:, :3], background.mean(0)[:3].expand(3, 3))
    assert torch.equal(explanation.stand_ins[:, 3], x[:, 3])  # always present
    own = ab.explain(lambda rows: rows.sum(1), x, absence=ab.OwnBaselines(2 * x))
    assert torch.equal(own.stand_ins, 2 * x)
    conditional = ab.GaussianConditional(background, draws=3)
    explanation = ab.explain(lambda rows: rows.sum(1), x, absence=conditional)
    presence = torch.zeros(1, 1, 4, dtype=torch.bool)
    assert torch.allclose(explanation.stand_ins, conditional.bind(x)(slice(0, 3), presence)[:, 0].mean(1))


def test_stand_ins_come_in_blocks_without_a_difference(monkeypatch):
    x = randn(5, 3)
    players = ab.Players.features(3)
    absence = ab.OwnBaselines(randn(5, 3, seed=1))
    monkeypatch.setattr("absentia.absences.protocol._NUMBERS_PER_BLOCK", 6)
    assert torch.equal(empty_inputs(absence.bind(x), 5, players, x.device), absence.values)


def test_tokens_stay_tokens():
    players = ab.Players.tokens(["not", "a", "film"])
    background = torch.tensor([[4, 2, 9], [4, 3, 9], [5, 3, 9]])
    explanation = ab.explain(
        lambda rows: rows.double().sum(1), torch.tensor([[1, 2, 3]]), players=players, absence=ab.Marginal(background)
    )
    assert explanation.stand_ins.tolist() == [[4, 3, 9]]  # the most frequent, for a mean is no token


def test_an_absence_with_its_own_model_has_no_stand_ins_and_is_noted(tmp_path):
    model = mlp(3)
    data = randn(60, 3)
    surrogate = ab.train_surrogate(model, data, epochs=1)
    explanation = ab.explain(model, data[:2], absence=surrogate)
    assert explanation.stand_ins is None
    assert "brings its own model" in explanation.record.notes[0]
    assert explanation.record.absence == repr(surrogate).splitlines()[0]
    explanation.save(tmp_path / "file")
    assert_same(explanation, ab.load(tmp_path / "file"))
    assert all(math.isnan(value) for value in explanation.to_frame()["stand_in"])


def test_stand_ins_that_do_not_exist_are_nan_also_for_named_categories():
    players = ab.Players.features(["city", "age"], {"city": ["Bern", "Oslo"]})
    data = torch.stack([torch.arange(40.0) % 2, torch.rand(40)], dim=1)
    surrogate = ab.train_surrogate(lambda rows: rows.sum(1), data, players=players, epochs=1)
    frame = ab.explain(lambda rows: rows.sum(1), data[:2], players=players, absence=surrogate).to_frame()
    assert frame["input"].tolist()[::2] == ["Bern", "Oslo"]
    assert frame["stand_in"].isna().all()


def test_baselines_learned_for_each_class_are_picked_by_y():
    model = mlp(3, 2)
    x = randn(8, 3)
    y = [0, 1] * 4
    learned = ab.learn_baseline(model, x, y, share="class", options=FEW)
    explanation = ab.explain(model, x, y, absence=learned)
    assert torch.allclose(explanation.stand_ins, learned.values[torch.tensor(y)])
    by_hand = ab.shapley(ab.MaskedModel(model, x, y, absence=learned.of(y)))
    assert torch.equal(explanation.shapley.values, by_hand.values)
    assert explanation.record.absence == "LearnedBaseline of shape (2, 3), one for each class (0, 1)"
    same = ab.explain(model, x, absence=learned, readout=ab.Logit(y))
    assert torch.equal(same.stand_ins, explanation.stand_ins)
    assert same.y.tolist() == y
    with pytest.raises(ab.AbsentiaError, match="y must be given for an absence with one baseline for each class"):
        ab.explain(model, x, absence=learned)


def test_y_is_kept_beside_a_readout_of_its_own():
    explanation = ab.explain(mlp(3, 2), randn(2, 3), 1, absence=ab.Baseline(0.0), readout=ab.Output(0))
    assert explanation.y.tolist() == [1, 1]
    assert explanation.record.readout == "output 0"


def test_the_record_is_frozen_and_complete(exact):
    assert isinstance(exact.record, ExplanationRecord)
    assert exact.record.version == ab.__version__
    assert exact.record.torch_version == torch.__version__
    assert exact.record.absence == "Baseline(0.5)"
    assert exact.record.seconds > 0
    with pytest.raises(FrozenInstanceError):
        exact.record.seed = 1
    with pytest.raises(FrozenInstanceError):
        exact.x = exact.x


@pytest.mark.parametrize("which", ["exact", "sampled"])
def test_what_is_saved_is_loaded(which, request, tmp_path):
    explanation = request.getfixturevalue(which)
    explanation.save(tmp_path / "file")
    assert_same(explanation, ab.Explanation.load(tmp_path / "file"))
    assert_same(explanation, ab.load(tmp_path / "file"))
    kept, header = read_tensors(tmp_path / "file")
    assert header["kind"] == "explanation"
    assert "interactions.effects" in kept
    assert ("interactions.fidelity" in kept) == (which == "sampled")


def test_every_kind_of_result_is_loaded_by_what_the_file_says(tmp_path):
    model = mlp(3)
    x = randn(6, 3)
    methods = {"zero": ab.Baseline(0.0), "one": ab.Baseline(1.0)}
    results = [
        ab.audit(model, x, None, methods, draws=2),
        ab.cross_audit(model, x, None, methods, draws=2),
        ab.learn_baseline(model, x, options=FEW),
    ]
    for number, result in enumerate(results):
        result.save(tmp_path / str(number))
        loaded = ab.load(tmp_path / str(number))
        assert type(loaded) is type(result)
        assert repr(loaded) == repr(result)


def test_other_files_get_a_sentence(tmp_path):
    path = tmp_path / "file"
    for header, sentence in [
        ({"fingerprint": "a checkpoint's"}, "a saved file of another kind instead"),
        ({"kind": "explanation", "format": 9, "record": {"version": "3.1"}}, "format 9 by absentia 3.1"),
        ({"kind": "cross audit", "format": 9, "record": {"version": "3.1"}}, "format 9 by absentia 3.1"),
    ]:
        write_tensors(path, {"x": torch.zeros(1)}, header)
        with pytest.raises(ab.AbsentiaError, match=sentence):
            ab.load(path)
    path.write_text("nonsense")
    with pytest.raises(ab.AbsentiaError, match="be a file that absentia saved"):
        ab.load(path)


def test_the_frame_has_a_row_for_each_sample_and_player(exact):
    frame = exact.to_frame()
    assert list(frame.columns) == ["sample", "player", "value", "error", "determined", "rank", "input", "stand_in"]
    assert len(frame) == 4 * 5
    third = frame[frame["sample"] == 2].set_index("player")
    assert third["value"].tolist() == exact.shapley.values[2].tolist()
    assert third["input"].tolist() == exact.x[2].tolist()
    assert set(frame["stand_in"]) == {0.5}
    by_rank = third.sort_values("rank")
    assert by_rank["rank"].tolist() == [1, 2, 3, 4, 5]
    assert by_rank["value"].abs().is_monotonic_decreasing


def test_players_of_several_entries_have_no_input_in_the_frame():
    players = ab.Players.groups({"pair": [0, 2], "single": [1]}, features=4)
    frame = ab.explain(mlp(4), randn(1, 4), players=players, absence=ab.Baseline(0.0)).to_frame()
    assert math.isnan(frame["input"][0])
    assert frame["input"][1] == randn(1, 4)[0, 1]


def test_shap_and_shapiq_get_the_same_values(exact, sampled):
    assert np.array_equal(exact.to_shap().values, exact.shapley.values.numpy())
    assert np.array_equal(exact.to_shap().base_values, exact.base_values.numpy())
    assert exact.to_shapiq(2)[(0, 3)] == pytest.approx(float(exact.interactions.effects[2, 0b01001]))
    of_shapiq = sampled.to_shapiq(1)
    for interaction in sampled.interactions.top(1000, sample=1):
        numbers = tuple(sampled.names.index(player) for player in interaction.players)
        assert of_shapiq[numbers] == pytest.approx(interaction.effect)


def test_it_reads_well_in_a_terminal(exact, sampled):
    lines = repr(exact).splitlines()
    assert lines[0] == "Explanation of 4 samples, 5 players; value: log-odds of each sample's class (0, 1, 2, 0)"
    strongest = int(exact.shapley.values[0].abs().argmax())
    assert lines[5].split() == [f"x{strongest}", f"{float(exact.shapley.values[0, strongest]):+.4g}"]
    assert "±" in repr(sampled)
    assert "… and 22 more players" in repr(sampled)
    assert max(len(line) for line in repr(sampled).splitlines()) <= 118


def test_notebooks_see_names_as_text():
    players = ab.Players.features([SCRIPT, 'a"b'])
    explanation = ab.explain(mlp(2), randn(1, 2), players=players, absence=ab.Baseline(0.0))
    html = explanation._repr_html_()
    assert "<script" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert 'a"b' not in html


def test_images_and_grids_of_cells_are_explained():
    players = ab.Players.grid((1, 8, 8), cells=(2, 2))
    x = torch.rand(2, 1, 8, 8).double()
    explanation = ab.explain(cnn(), x, [0, 2], players=players, absence=ab.Blur(1.0))
    assert explanation.stand_ins.shape == x.shape
    assert explanation.interactions.effects.shape == (2, 16)


class Bare:
    def bind(self, x):
        return StandIns(x, torch.zeros_like(x[:, None]))


def test_an_absence_that_says_nothing_is_named_by_its_class():
    assert ab.explain(mlp(2), randn(1, 2), absence=Bare()).record.absence == "Bare"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"y": ab.Baseline(0.0)}, "absence must be passed by name"),
        ({"absence": ab.Baseline}, "Got the class Baseline instead. Call it"),
        ({"y": [0, 1]}, "y must hold one class for each of the 3 samples"),
        ({"y": 7}, "y must lie between 0 and 1"),
        ({"x": 3.0}, "x must be a sample or a batch of samples"),
        ({"x": torch.zeros(0, 3)}, "x must have at least one sample"),
        ({"evaluations": 3}, "evaluations must be at least 14 for 3 players"),
        ({"max_players": 30}, "max_players must lie between 1 and 24"),
        ({"readout": ab.Features("0")}, "readout must give one number for an explanation"),
    ],
)
def test_a_mistake_gets_a_sentence(arguments, sentence):
    arguments = {"x": randn(3, 3), "absence": ab.Baseline(0.0)} | arguments
    with pytest.raises(ab.AbsentiaError, match=sentence):
        unchecked(ab.explain)(mlp(3, 2), **arguments)


def test_a_sampled_run_evaluates_no_coalition_twice():
    seen = []

    def model(rows):
        seen.append(rows.clone())
        return rows.prod(1)

    ab.explain(model, randn(1, 30), absence=0.5, evaluations=400)
    rows = torch.cat(seen)[2:-2]  # the first two and the last two are trials of the model
    assert len(rows.unique(dim=0)) == len(rows) == 400


def test_evaluations_count_the_rows_of_all_draws():
    x = randn(1, 30)
    found = ab.explain(lambda rows: rows.prod(1), x, absence=ab.Marginal(randn(3, 30, seed=1)), evaluations=600)
    assert found.record.evaluations == found.shapley.evaluations == 600
    with pytest.raises(ab.AbsentiaError, match="evaluations must be at least 366 for 30 players"):
        ab.explain(lambda rows: rows.prod(1), x, absence=ab.Marginal(randn(3, 30, seed=1)), evaluations=365)


@pytest.mark.parametrize("word", ["zero", "mean", "median", "mode", "noise", "marginal", "gaussian", "neighbours"])
def test_an_absence_may_be_named_by_a_word(word):
    x = randn(2, 3)
    data = randn(20, 3, seed=1)
    found = ab.explain(mlp(3), x, absence=word, data=data)
    assert torch.allclose(found.shapley.values.sum(1), found.outputs - found.base_values, atol=1e-5)


def test_words_and_numbers_are_the_absences_that_they_name():
    x = randn(2, 3)
    data = randn(20, 3, seed=1)
    model = mlp(3)
    for short, whole in [("mean", ab.Baseline.mean(data)), (0.5, ab.Baseline(0.5)), ("0.5", ab.Baseline(0.5))]:
        one = ab.explain(model, x, absence=short, data=data)
        other = ab.explain(model, x, absence=whole)
        assert torch.equal(one.shapley.values, other.shapley.values)
        assert one.record.absence == other.record.absence


def test_a_word_that_needs_data_asks_for_them():
    with pytest.raises(ab.AbsentiaError, match="data="):
        ab.explain(mlp(3), randn(2, 3), absence="mean")


def test_learned_values_may_be_named_by_a_word(monkeypatch):
    monkeypatch.setattr("absentia.learning.options.FAITHFUL", replace(FAITHFUL, steps=4))
    x = randn(2, 3)
    data = torch.rand(16, 3, generator=torch.Generator().manual_seed(0)).double()
    found = ab.explain(mlp(3), x, absence="learned", data=data)
    learned = ab.learn_baseline(mlp(3), data)
    assert torch.equal(found.stand_ins, learned.values.expand(2, 3))
    assert found.record.absence.startswith("LearnedBaseline")


def test_an_estimator_and_names_of_classes_need_no_wrapping():
    data = randn(40, 3, seed=1)
    labels = np.where(data[:, 0].numpy() > 0, "yes", "no")
    estimator = LogisticRegression().fit(data.numpy(), labels)
    found = ab.explain(estimator, data[:2], labels[:2], absence="mean", data=data)
    assert found.record.class_names == ("no", "yes")
    assert labels[0] in found.record.readout
    assert int(found.shapley.values[0].abs().argmax()) == 0


def test_rows_classes_and_categories_keep_their_names(tmp_path):
    frame = pd.DataFrame(
        {"city": ["Rome", "Oslo", "Rome", "Bern"], "age": [30.0, 41.0, 52.0, 25.0]}, index=["r7", "r9", "r17", "r4"]
    )
    table = ab.interop.EncodedTable.of(frame)
    model = nn.Linear(2, 2)
    weights = torch.tensor([[0.0, 0.1], [1.0, 0.0]])
    model.weight.data = weights
    x = pd.DataFrame(table.rows.numpy(), columns=table.columns, index=frame.index)
    found = ab.explain(
        model,
        x[2:],
        ["barbera", "nebbiolo"],
        players=table.players,
        absence="median",
        data=table.rows,
        class_names=["barbera", "nebbiolo"],
    )
    assert [found.sample_name(0), found.sample_name(1)] == ["row r17, barbera", "row r4, nebbiolo"]
    assert "of row r17, barbera: " in str(found)
    rows = found.to_frame()
    assert rows["row"].tolist() == ["r17", "r17", "r4", "r4"]
    assert rows["class"].tolist() == ["barbera", "barbera", "nebbiolo", "nebbiolo"]
    assert rows["input"].tolist() == ["Rome", 52.0, "Bern", 25.0]
    found.save(tmp_path / "named.safetensors")
    again = ab.load(tmp_path / "named.safetensors")
    assert again.sample_name(1) == "row r4, nebbiolo"
    assert again.players.categories == (("Bern", "Oslo", "Rome"), ())
    assert found.to_shap().display_data[0].tolist() == ["Rome", "52"]


def test_a_baseline_learned_for_another_value_is_noted():
    model = nn.Linear(3, 2)
    x = torch.randn(20, 3)
    y = torch.arange(20) % 2
    learned = ab.learn_baseline(model, x, y, options=ab.LearningOptions(steps=2, rows_per_step=64))
    assert ab.explain(model, x[:2], absence=learned).record.notes == ()
    assert ab.explain(model, x[:2], y[:2], absence=learned).record.notes == ()
    (note,) = ab.explain(model, x[:2], absence=learned, readout=ab.Probability(1)).record.notes
    assert note.startswith("The baseline was learned for another value: log-odds of each sample's class")
    audited = ab.audit(model, x, absences={"mine": learned, "zero": 0.0}, readout=ab.Probability(1), draws=1)
    assert f"mine: {note}" in audited.record.notes
    assert not any("another value" in one for one in ab.audit(model, x, y, {"mine": learned}, draws=1).record.notes)
    quick = ab.LearningOptions(steps=2, rows_per_step=64)
    by_class = ab.learn_baseline(model, x, y, share="class", options=quick)
    found = ab.explain(model, x[:2], y[:2], absence=by_class, readout=ab.Probability(1))
    assert any("another value" in one for one in found.record.notes)


def test_an_explanation_keeps_its_samples_when_the_users_change():
    x = torch.ones(1, 2)
    found = ab.explain(lambda rows: rows.sum(1), x, absence=0.0)
    x.zero_()
    assert found.x.tolist() == [[1.0, 1.0]]


def test_a_file_whose_order_wise_values_are_a_bare_tensor_still_loads():
    """Format 3 stored the values alone; the file was written by the code of that time."""
    x = torch.tensor([[2.0, 3.0, 1.0], [1.0, 5.0, 2.0]])
    now = ab.explain(lambda rows: rows.prod(1), x, absence=1.0)
    old = ab.load(OLD_FILES / "explanation_format3.safetensors")
    assert_same(old, replace(now, record=old.record))
    assert old.order_shapley.names == ("x0", "x1", "x2")
    assert repr(old.order_shapley) == repr(now.order_shapley)


def test_a_record_says_why_rounding_errors_could_not_be_measured():
    def only_single_precision(rows):
        if rows.dtype != torch.float32:
            raise NotImplementedError("float32 only")
        return rows.prod(1)

    x = torch.rand(2, 3, generator=torch.Generator().manual_seed(0))
    explanation = ab.explain(only_single_precision, x, absence=0.5)
    (note,) = explanation.record.notes
    assert note.startswith("Rounding errors are estimated rather than measured, because")
    assert "NotImplementedError" in note
    assert (explanation.interactions.noise > 0).all()
    assert not ab.explain(lambda rows: rows.prod(1), x, absence=0.5).record.notes


def test_a_call_checks_columns_and_wraps_the_model_once(monkeypatch):
    calls = []
    for module, name in [("absentia.task_inputs", "as_model"), ("absentia.task_inputs", "check_columns")]:
        original = getattr(importlib.import_module(module), name)
        monkeypatch.setattr(f"{module}.{name}", counted(original, calls))
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    ab.explain(lambda rows: rows.prod(1), frame, absence=0.0)
    assert sorted(calls) == ["as_model", "check_columns"]


def counted(function, calls):
    """Return a function that notes its calls by name."""

    def call(*args, **kwargs):
        calls.append(function.__name__)
        return function(*args, **kwargs)

    return call


FOUR_ROWS = torch.rand(4, 3, generator=torch.Generator().manual_seed(1))


def test_results_share_no_memory_with_what_users_hand_in_or_models_return():
    x = FOUR_ROWS.clone()
    buffer = torch.empty(99)
    out = []

    def reused(rows):
        torch.sum(rows, 1, out=buffer[: len(rows)])
        return buffer[: len(rows)]

    for batch_size in (None, 2):
        game = ab.MaskedModel(reused, x, absence=0.0, batch_size=batch_size)
        out.append(game(ab.enumerate_coalitions(3)))
        assert torch.equal(ab.explain(reused, x, absence=0.0, batch_size=batch_size).x, FOUR_ROWS)
    buffer.fill_(torch.nan)
    expected = ab.enumerate_coalitions(3).float() @ FOUR_ROWS.T
    assert all(torch.allclose(found, expected.T) for found in out)
    labels = torch.tensor([0, 1, 0])
    players = ab.Players.segments(labels)
    explanation = ab.explain(reused, x, players=players, absence=0.0)
    effects = explanation.interactions.effects.clone()
    outputs = explanation.outputs.clone()
    x.fill_(9.0)
    labels.fill_(1)
    assert torch.equal(explanation.x, FOUR_ROWS)
    assert torch.equal(explanation.interactions.effects, effects)
    assert torch.equal(explanation.outputs, outputs)
    assert players.labels.tolist() == explanation.players.labels.tolist() == [0, 1, 0]


NORMAL_ROWS = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))


FIRST, SECOND = nn.Linear(4, 1), nn.Linear(4, 1)


def test_stand_ins_that_are_drawn_are_said_to_be():
    notes = ab.explain(FIRST, NORMAL_ROWS, absence="noise", data=NORMAL_ROWS).record.notes
    assert any("means over 10 stand-ins; errors exclude the variance of the draw" in note for note in notes)
    assert not ab.explain(FIRST, NORMAL_ROWS, absence=0.0).record.notes
