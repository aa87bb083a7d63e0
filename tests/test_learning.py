import json
import os

import numpy as np
import pytest
import torch
from sklearn.ensemble import HistGradientBoostingClassifier
from torch.utils.data import DataLoader, TensorDataset

import absentia.learning.run as run_module
from absentia import (
    AbsentiaError,
    Baseline,
    Features,
    LearnedBaseline,
    MaskedModel,
    Output,
    Players,
    from_numpy,
    harsanyi,
    learn_baseline,
)
from absentia.absence import Absence
from absentia.learning.learned import read_tensors, write_tensors
from known_games import mlp

DELTA = torch.tensor([0.2, 0.8, 0.5, 0.35]).double()


@pytest.fixture(autouse=True)
def _small_work(monkeypatch):
    monkeypatch.setattr("absentia.learning.learn.EVALUATIONS", 2**12)


def uniform(rows=128, players=4, seed=0):
    return torch.rand(rows, players, generator=torch.Generator().manual_seed(seed)).double()


def product(rows):
    """One pattern: absent when any variable is at its δ."""
    return (rows - DELTA).prod(1)


def strength(model, x, absence, **options):
    """The mean Σ|U| over non-empty sets."""
    return harsanyi(MaskedModel(model, x, absence=absence, **options)).effects[:, 1:].abs().sum(1).mean().item()


@pytest.mark.parametrize("loss", ["shapley", "marginal", "interactions"])
@pytest.mark.parametrize("start", ["mean", "zero", 0.9])
def test_the_true_baseline_of_a_product_is_found_from_every_start(loss, start):
    learned = learn_baseline(product, uniform(), loss=loss, orders=1.0, start=start, bounds=(0.0, 1.0))
    assert torch.allclose(learned.values, DELTA, atol=0.03)
    assert learned.converged
    held_out = uniform(seed=9)
    assert strength(product, held_out, learned) < 0.5 * strength(product, held_out, Baseline.mean(held_out))


def test_learning_lowers_the_loss_of_a_network_below_usual_baselines_on_new_samples():
    model, x = mlp(6, 2, hidden=32), 2 * torch.randn(200, 6, generator=torch.Generator().manual_seed(0)).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2.0)
    learned = learn_baseline(model, x, readout=Output(0), samples=64, evaluations=2**14)
    new = 2 * torch.randn(32, 6, generator=torch.Generator().manual_seed(1)).double()
    mine = strength(model, new, learned, readout=Output(0))
    for usual in (Baseline.zeros(), Baseline.mean(x), Baseline.median(x)):
        assert mine < 0.8 * strength(model, new, usual, readout=Output(0))


def test_several_starts_end_close_together_and_the_result_says_how_close():
    learned = learn_baseline(product, uniform(), start=["zero", "mean", 1.0], bounds=(0.0, 1.0))
    assert learned.record.starts[:3] == ("zero", "mean", "1")
    assert len(learned.record.final_losses) == len(learned.record.starts)
    assert learned.record.spread < 0.1
    assert "ended within" in repr(learned)
    assert learned.loss <= min(learned.record.final_losses) * 1.001


def test_with_many_players_coalitions_are_drawn():
    deltas = torch.linspace(0.1, 0.9, 18).double()

    def model(rows):
        shifted = rows - deltas
        return sum(shifted[:, i : i + 3].prod(1) for i in range(0, 18, 3))

    for loss in ("marginal", "interactions"):
        learned = learn_baseline(model, uniform(256, 18), loss=loss, start="mean", bounds=(0.0, 1.0))
        assert not learned.record.exact
        assert (learned.values - deltas).abs().mean() < 0.12


def test_the_features_of_a_layer_can_be_penalised():
    model = mlp(4, 2)
    learned = learn_baseline(model, uniform(32), loss="marginal", readout=Features("3"), steps=5)
    assert learned.values.shape == (4,)
    assert learned.loss > 0


def test_one_baseline_for_each_class_or_sample():
    x, y = uniform(64), torch.arange(64) % 2

    def model(rows):
        return torch.stack([(rows - 0.2).prod(1), (rows - 0.2).prod(1) * 3], dim=1)

    by_class = learn_baseline(model, x, y, share="class", readout=Output(0), steps=20)
    assert by_class.values.shape == (2, 4)
    assert torch.allclose(by_class.values, torch.full((2, 4), 0.2).double(), atol=0.05)
    with pytest.raises(AbsentiaError, match=r"Use learned.of\(y\)"):
        MaskedModel(model, x, 0, absence=by_class)
    assert MaskedModel(model, x[:3], 0, absence=by_class.of([1, 0, 1])).samples == 3
    with pytest.raises(AbsentiaError, match=r"y must hold learned classes, \[0, 1\]. Got 5"):
        by_class.of([5])
    own = learn_baseline(product, x[:3], share="sample", steps=20, bounds=(0.0, 1.0))
    assert own.values.shape == (3, 4)
    assert MaskedModel(product, x[:3], absence=own).samples == 3


def test_entries_can_share_a_value_or_be_held():
    x = uniform()
    tied = learn_baseline(product, x, tie=torch.tensor([0, 0, 1, 1]), bounds=(0.0, 1.0), steps=20)
    assert tied.values[0] == tied.values[1]
    assert tied.values[2] == tied.values[3]
    held = learn_baseline(product, x, held=torch.tensor([True, False, False, False]), start=0.5, bounds=(0.0, 1.0))
    assert held.values[0] == pytest.approx(0.5)
    assert torch.allclose(held.values[1:], DELTA[1:], atol=0.05)


def test_images_may_have_one_colour_for_each_cell():
    players = Players.grid((3, 4, 4), cells=(2, 2))
    cell = torch.arange(4)[:, None] // 2 * 2 + torch.arange(4) // 2
    tie = torch.stack([cell * 3 + channel for channel in range(3)])
    learned = learn_baseline(lambda x: (x - 0.5).flatten(1).sum(1) ** 2, torch.rand(32, 3, 4, 4).double(),
                             players=players, tie=tie, steps=5)  # fmt: skip
    assert len(torch.unique(learned.values)) <= 12
    assert torch.equal(learned.values[:, :2, :2], learned.values[:, :1, :1].expand(3, 2, 2))


def test_black_boxes_are_searched_without_a_gradient():
    learned = learn_baseline(
        from_numpy(lambda rows: (rows - DELTA.numpy()).prod(1)), uniform().numpy(), bounds=(0.0, 1.0)
    )
    assert torch.allclose(learned.values, DELTA, atol=0.03)
    without = learn_baseline(lambda rows: product(rows.detach()), uniform(), bounds=(0.0, 1.0))
    assert torch.allclose(without.values, DELTA, atol=0.03)


def test_trees_are_learned_on_and_categories_stay_categories():
    generator = np.random.default_rng(0)
    x = np.column_stack(
        [generator.normal(size=(300, 3)), generator.integers(0, 4, 300), np.eye(3)[generator.integers(0, 3, 300)]]
    )
    y = (x[:, 0] * (x[:, 3] == 2) + x[:, 4] > 0.3).astype(int)
    trees = HistGradientBoostingClassifier(max_iter=20, random_state=0).fit(x, y)
    model = from_numpy(trees.predict_proba, probabilities=True)
    players = Players.groups({"a": [0], "b": [1], "c": [2], "kind": [3], "colour": [4, 5, 6]}, features=7)
    learned = learn_baseline(model, x, y, players=players, categorical=[3, (4, 5, 6)], samples=32)
    assert learned.values[3].item() in (0, 1, 2, 3)
    assert sorted(learned.values[4:].tolist()) == [0, 0, 1]
    new = x[100:116]
    mine = strength(model, new, learned, players=players, readout=None)
    assert mine <= strength(model, new, Baseline.mean(x), players=players, readout=None)


def test_players_that_the_model_ignores_are_said_to_be_undetermined():
    learned = learn_baseline(lambda rows: product(rows[:, :4]), uniform(players=5), bounds=(0.0, 1.0), start=0.4)
    assert learned.record.undetermined == ("x4",)
    assert learned.values[4] == pytest.approx(0.4)
    assert "undetermined  x4" in repr(learned)


def test_constant_entries_keep_their_value():
    x = uniform()
    x[:, 1] = 0.7
    learned = learn_baseline(product, x)
    assert learned.values[1] == pytest.approx(0.7)
    assert learned.record.undetermined == ()


def test_it_is_an_absence_that_prints_saves_and_loads(tmp_path):
    learned = learn_baseline(product, uniform(), steps=10)
    assert isinstance(learned, Absence)
    path = tmp_path / "base.absentia"
    learned.save(path)
    loaded = LearnedBaseline.load(path)
    assert torch.equal(loaded.values, learned.values)
    assert torch.equal(loaded.history, learned.history)
    assert loaded.record == learned.record
    assert loaded.loss == learned.loss
    assert repr(loaded) == repr(learned)
    assert os.listdir(tmp_path) == ["base.absentia"]
    for word in ("loss", "converged", "starts", "evaluations"):
        assert word in repr(learned)
    assert learned.plot_history().axes[0].lines


def test_files_that_are_not_ours_get_a_sentence(tmp_path):
    path = tmp_path / "file"
    with pytest.raises(AbsentiaError, match="path must name a file that exists"):
        LearnedBaseline.load(path)
    path.write_bytes(b"nonsense")
    with pytest.raises(AbsentiaError, match="path must be a file that absentia saved"):
        LearnedBaseline.load(path)
    write_tensors(path, {"values": torch.zeros(1)}, {"format": 99, "record": {"version": "9.9"}})
    with pytest.raises(AbsentiaError, match=r"format 99 by absentia 9.9 instead. Install a newer absentia"):
        LearnedBaseline.load(path)


def test_the_history_falls_and_the_same_seed_gives_the_same():
    first, again = (learn_baseline(product, uniform(), seed=3, steps=10) for _ in range(2))
    assert torch.equal(first.values, again.values)
    assert (first.history[1:, 1] <= first.history[:-1, 1] + 1e-12).all()
    assert (first.history[1:, 0] >= first.history[:-1, 0]).all()


def test_a_checkpoint_is_gone_on_from_to_the_same_result(tmp_path):
    whole = learn_baseline(product, uniform(), start=[0.9, "mean"], bounds=(0.0, 1.0), steps=20)
    path = tmp_path / "run.checkpoint"
    calls = 0

    class StopError(Exception):
        pass

    def stopping(rows):
        nonlocal calls
        calls += 1
        if calls in (120, 400, 900):
            raise StopError
        return product(rows)

    for _ in range(4):
        try:
            resumed = learn_baseline(
                stopping, uniform(), start=[0.9, "mean"], bounds=(0.0, 1.0), steps=20, checkpoint=path
            )
        except StopError:  # noqa: PERF203
            assert path.exists()
    assert torch.equal(resumed.values, whole.values)
    assert (resumed.history[1:] - resumed.history[:-1])[:, 1].max() <= 0
    assert resumed.record.final_losses == whole.record.final_losses
    assert [name for name in os.listdir(tmp_path) if "part" in name] == []
    _, header = read_tensors(path)
    assert json.dumps(header)
    with pytest.raises(AbsentiaError, match="checkpoint must belong to the same model, data and settings"):
        learn_baseline(product, uniform(), seed=5, checkpoint=path)


@pytest.mark.parametrize("source", ["tensor", "array", "dataset", "loader", "loader of inputs"])
def test_samples_come_from_anywhere(source):
    x, y = uniform(), torch.arange(128) % 2
    pairs = TensorDataset(x, y)
    sources = {
        "tensor": (x, y),
        "array": (x.numpy(), y.numpy()),
        "dataset": (pairs, None),
        "loader": (DataLoader(pairs, batch_size=10), None),
        "loader of inputs": (DataLoader(x, batch_size=10), None),
    }
    given, target = sources[source]
    learned = learn_baseline(product, given, target if source in ("tensor", "array") else None, samples=50,
                             readout=Output(0), steps=5)  # fmt: skip
    assert learned.record.samples == 50


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"loss": "size"}, "loss must be 'shapley', 'marginal' or 'interactions'. Got 'size'"),
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
        ({"orders": 9}, "orders must be a share between 0 and 1, or a number from 1 to 4"),
        ({"start": torch.zeros(3)}, "start must hold one number, or one for each of the 4 entries. Got 3"),
        ({"start": []}, "start must hold at least one start"),
        ({"bounds": (torch.zeros(3), 1.0)}, "bounds must hold one number, or one for each of the 4 entries"),
        ({"steps": -1}, "steps must be at least 0"),
        ({"checkpoint": "no/such/folder/file"}, "checkpoint must lie in a folder that exists. Got .* first"),
    ],
)
def test_bad_input_gets_a_sentence(options, sentence):
    from typechecker import unchecked

    with pytest.raises(AbsentiaError, match=sentence):
        unchecked(learn_baseline)(product, uniform(), **options)


def test_an_array_is_one_start_and_a_list_is_several():
    given = uniform().mean(0)
    by_tensor = learn_baseline(product, uniform(), start=given, bounds=(0.0, 1.0), steps=5)
    by_array = learn_baseline(product, uniform(), start=given.numpy(), bounds=(0.0, 1.0), steps=5)
    assert by_array.record.starts[0] == "given 0"
    assert torch.equal(by_tensor.values, by_array.values)
    assert learn_baseline(product, uniform(), start=[0.1, given], steps=2).record.starts[:2] == ("0.1", "given 1")


def test_nothing_to_learn_is_no_error():
    held = learn_baseline(product, uniform(), held=torch.ones(4), start=0.4, bounds=(0.0, 1.0))
    assert torch.allclose(held.values, torch.full((4,), 0.4).double())
    assert held.record.undetermined == ()


def test_tokens_must_be_learned_as_categories():
    model = torch.nn.Sequential(torch.nn.Embedding(10, 3), torch.nn.Flatten(), torch.nn.Linear(12, 2))
    x, players = torch.randint(1, 10, (20, 4)), Players.tokens(4)
    with pytest.raises(AbsentiaError, match="categorical must name the entries of inputs that are numbers of tokens"):
        learn_baseline(model, x, players=players)
    learned = learn_baseline(model, x, players=players, categorical=range(4))
    assert all(value in x[:, column] for column, value in enumerate(learned.values))
    assert MaskedModel(model, x[:2], 0, players=players, absence=learned).samples == 2


def test_a_search_that_was_cut_short_does_not_claim_to_have_converged(monkeypatch):
    monkeypatch.setattr(run_module, "MAX_SWEEPS", 1)
    cut = learn_baseline(product, uniform(), start=0.9, bounds=(0.0, 1.0), gradient=False)
    assert not cut.converged
    assert "the last still lowered the loss" in cut.record.stopped
    monkeypatch.setattr(run_module, "MAX_SWEPT", 3)
    unswept = learn_baseline(product, uniform(), steps=3)
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

    learned = learn_baseline(impatient, uniform(), start=0.9, bounds=(0.0, 1.0))
    assert not learned.converged
    assert torch.isfinite(learned.values).all()
    assert "interrupted" in repr(learned)


def test_a_value_that_is_not_finite_names_the_sample():
    def model(rows):
        return torch.where(rows[:, 0] > 0.99, torch.nan, rows.sum(1))

    x = uniform()
    x[7, 0], x[8:, 0] = 0.995, 0.1
    with pytest.raises(AbsentiaError, match=r"Got nan for sample \d+ with players"):
        learn_baseline(model, x, samples=None)
