"""Learning resumes from its checkpoint after an interruption."""

import os
from dataclasses import replace

import pytest
import torch

import absentia as ab
import absentia.learning.sweeps as sweeps_module
from absentia import AbsentiaError, Output, learn_baseline
from absentia.learning import LearningOptions
from absentia.storage import read_tensors
from known_games import mlp
from known_product import product, uniform
from seeded_draws import randn
from small_classifiers import QUICK, classes_of_three, classifier
from small_learning import learn

FOUR_ROWS = torch.rand(4, 3, generator=torch.Generator().manual_seed(1))


@pytest.mark.slow
def test_learning_goes_on_with_a_warning_if_its_checkpoint_cannot_be_written(tmp_path, monkeypatch):
    def learn(**more):
        return ab.learn_baseline(
            lambda rows: rows.prod(1), FOUR_ROWS, options=LearningOptions(steps=2, **more)
        ).values

    def full(*given, **named):
        raise OSError("No space left on device")

    expected = learn()
    monkeypatch.setattr("absentia.storage.tensor_files.save_file", full)
    with pytest.warns(UserWarning, match="The checkpoint is not up to date. .*can't be written: No space left"):
        found = learn(checkpoint=tmp_path / "checkpoint")
    assert torch.equal(found, expected)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_checkpoint_is_gone_on_from_to_the_same_result(tmp_path):
    whole = learn(product, uniform(), start=[0.9, "mean"], bounds=(0.0, 1.0), steps=20)
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
            resumed = learn(stopping, uniform(), start=[0.9, "mean"], bounds=(0.0, 1.0), steps=20, checkpoint=path)
        except StopError:  # noqa: PERF203
            assert path.exists()
    assert torch.equal(resumed.values, whole.values)
    assert (resumed.history[1:] - resumed.history[:-1])[:, 1].max() <= 0
    assert resumed.record.final_losses == whole.record.final_losses
    assert [name for name in os.listdir(tmp_path) if "part" in name] == []
    tensors, header = read_tensors(path)
    assert 0.9 * resumed.evaluations < header["evaluations"] <= resumed.evaluations
    assert not any("adam" in name for name in tensors)  # no descent is under way
    settings = {"start": [0.9, "mean"], "bounds": (0.0, 1.0), "steps": 20, "checkpoint": path}
    again = learn(product, uniform(), **settings)
    assert torch.equal(again.values, whole.values)
    assert again.converged
    others = {
        "model": lambda: learn(lambda rows: 1.01 * product(rows), uniform(), **settings),
        "readout": lambda: learn(product, uniform(), readout=Output(0), **settings),
        "data": lambda: learn(product, uniform(seed=1), **settings),
        "seed": lambda: learn(product, uniform(), seed=5, **settings),
        "loss": lambda: learn(product, uniform(), loss="marginal", **settings),
        "held": lambda: learn(product, uniform(), held=torch.tensor([1, 0, 0, 0]), **settings),
    }
    for other in others.values():
        with pytest.raises(AbsentiaError, match="checkpoint must belong to the same model, data and settings"):
            other()


@pytest.mark.slow
def test_a_checkpoint_does_not_serve_another_model_or_other_classes(tmp_path):
    x = uniform(32)
    y = torch.arange(32) % 2
    path = tmp_path / "kept"
    settings = {"steps": 2, "rows_per_comparison": 2**8, "checkpoint": path}
    first = learn(mlp(4, 2), x, y, **settings)
    assert torch.equal(learn(mlp(4, 2), x, y, **settings).values, first.values)
    noisy = mlp(4, 2)
    with torch.no_grad():
        noisy[0].bias += 1e-9  # as threads and batches may change the last digits
    assert torch.equal(learn(noisy, x, y, **settings).values, first.values)
    for model, classes in ((mlp(4, 2, seed=1), y), (mlp(4, 2), 1 - y)):
        with pytest.raises(AbsentiaError, match=r"of another run instead\. Name another file"):
            learn(model, x, classes, **settings)


def test_a_resumed_search_that_was_cut_short_does_not_claim_to_have_converged(monkeypatch, tmp_path):
    monkeypatch.setattr(sweeps_module, "MAX_SWEEPS", 1)
    settings = {"start": 0.9, "bounds": (0.0, 1.0), "gradient": False, "checkpoint": tmp_path / "kept"}
    first, again = (learn(product, uniform(), **settings) for _ in range(2))
    assert not first.converged
    assert not again.converged
    assert again.record.stopped == first.record.stopped


@pytest.mark.slow
def test_a_search_over_categories_alone_is_kept_in_a_checkpoint(tmp_path):
    x = torch.eye(3).double().repeat(20, 1)
    options = {"categorical": [[0, 1, 2]], "rows_per_comparison": 2**9, "steps": 2, "checkpoint": tmp_path / "kept"}
    first, again = (learn(mlp(3, 2), x, **options) for _ in range(2))
    assert torch.equal(first.values, again.values)
    swept = learn(mlp(3, 2), x, categorical=[[0, 1, 2]], polish=False, rows_per_comparison=2**9, steps=2)
    assert torch.equal(swept.values, first.values)  # categories are swept over in any case


@pytest.mark.slow
def test_a_checkpoint_is_resumed_to_the_same_values(tmp_path):
    x = randn(40, 4)
    y = torch.arange(40) % 3
    whole = learn_baseline(classifier(), x, y, options=QUICK)

    def fail(step):
        if step.step == 8:
            raise ZeroDivisionError

    kept = LearningOptions(steps=12, rows_per_step=2**8, checkpoint=tmp_path / "kept", callback=fail)
    with pytest.raises(ZeroDivisionError):
        learn_baseline(classifier(), x, y, options=kept)
    resumed = learn_baseline(
        classifier(), x, y, options=LearningOptions(steps=12, rows_per_step=2**8, checkpoint=tmp_path / "kept")
    )
    assert torch.allclose(resumed.values, whole.values, rtol=1e-12)


@pytest.mark.slow
def test_each_part_goes_on_from_its_own_checkpoint(tmp_path):
    model, x, y = classes_of_three()
    told = []

    def fail(step):
        told.append(step)
        if len(told) == 15:  # in the second class, whose first five steps are kept
            raise RuntimeError

    plain = LearningOptions(steps=8, rows_per_step=2**8)
    whole = learn_baseline(model, x, y, share="class", options=plain)
    kept = replace(plain, checkpoint=tmp_path / "kept", callback=fail)
    with pytest.raises(RuntimeError):
        learn_baseline(model, x, y, share="class", options=kept)
    resumed = learn_baseline(
        model, x, y, share="class", options=replace(kept, callback=lambda step: told.append(step))
    )
    assert len(told) == 15 + 3 + 8
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept", "kept.1", "kept.2"]
    torch.testing.assert_close(resumed.values, whole.values, rtol=0, atol=1e-12)
    (tmp_path / "kept.1").rename(tmp_path / "kept")
    with pytest.raises(AbsentiaError, match="checkpoint must belong to the same model, data and settings"):
        learn_baseline(model, x, y, share="class", options=kept)
