"""Work that several processes share: workers of joblib and of a Dask cluster."""

import os
import signal
import sys
import threading
from pathlib import Path

import joblib
import pytest
import torch
from torch import nn

import absentia as ab
from absentia.runtime.row_count import RowCount
from absentia.runtime.workers import spread, worker_count

X = torch.randn(37, 8, generator=torch.Generator().manual_seed(0))


def network(seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 3))


def dies_once(flag: Path):
    """Return a model that kills the worker that runs it, once; not the process of the tests."""
    inner = network()
    home = os.getpid()

    def run(rows):
        if os.getpid() != home:
            try:
                flag.touch(exist_ok=False)
            except FileExistsError:
                pass
            else:
                os.kill(os.getpid(), signal.SIGKILL)
        return inner(rows)

    return run


@pytest.mark.slow
@pytest.mark.parametrize("exact", [True, False], ids=["exact", "sampled"])
@pytest.mark.parametrize("absence", [0.0, ab.Marginal(X, draws=3), ab.GaussianConditional(X)], ids=str)
def test_workers_give_the_numbers_of_one_process(absence, exact):
    settings = {} if exact else {"evaluations": 40 * getattr(absence, "draws", 1)}
    alone = ab.explain(network(), X, 0, absence=absence, batch_size=64, **settings)
    with joblib.parallel_config("loky", n_jobs=2):
        assert worker_count() == 2
        together = ab.explain(network(), X, 0, absence=absence, batch_size=64, **settings)
    assert torch.equal(alone.shapley.values, together.shapley.values)
    assert torch.equal(alone.shapley.errors, together.shapley.errors)
    assert alone.shapley.evaluations == together.shapley.evaluations
    if exact:
        assert torch.equal(alone.interactions.effects, together.interactions.effects)


@pytest.mark.slow
def test_workers_audit_as_one_process_does():
    y = network()(X).argmax(1)
    alone = ab.audit(network(), X, y, ["zero", "mean", "marginal"], draws=2)
    with joblib.parallel_config("loky", n_jobs=2):
        together = ab.audit(network(), X, y, ["zero", "mean", "marginal"], draws=2)
    assert alone.verdict == together.verdict
    for name, column in alone.columns().items():
        if name != "seconds":
            torch.testing.assert_close(column, together.columns()[name], rtol=0, atol=0, equal_nan=True)
    assert {name: cost.evaluations for name, cost in alone.record.costs.items()} == {
        name: cost.evaluations for name, cost in together.record.costs.items()
    }


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_backends_that_give_all_results_at_the_end_serve_too():
    alone = ab.explain(network(), X, 0, absence=0.0, batch_size=64)
    with joblib.parallel_config("multiprocessing", n_jobs=2):
        together = ab.explain(network(), X, 0, absence=0.0, batch_size=64)
    assert torch.equal(alone.shapley.values, together.shapley.values)


def test_calls_of_several_threads_do_not_take_work_from_each_other():
    def call(number):
        with joblib.parallel_config("threading", n_jobs=2):
            for turn in range(30):
                held = (number, turn)
                found.append(list(spread(lambda item, _, held=held: (*held, item), range(4), "counting", RowCount())))

    found = []
    usual = sys.getswitchinterval()
    threads = [threading.Thread(target=call, args=(number,)) for number in range(6)]
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(usual)
    wanted = [[(number, turn, item) for item in range(4)] for number in range(6) for turn in range(30)]
    assert sorted(found) == wanted


def test_samples_are_sent_in_the_batches_of_one_process(monkeypatch):
    sent = []
    monkeypatch.setattr(
        "absentia.games.spread",
        lambda work, items, *_: sent.extend(items) or [work(item, RowCount()) for item in items],
    )
    monkeypatch.setattr("absentia.games.worker_count", lambda: 2)
    game = ab.MaskedModel(network(), X, 0, absence=0.0, batch_size=128)
    found = ab.value_table(game)
    assert [len(part) for part in sent] == [6] * 6 + [1]  # multiples of 4 · 128 / 2⁸ samples, about 4 for each worker
    monkeypatch.undo()
    assert torch.equal(found.values, ab.value_table(game).values)


def test_without_workers_nothing_is_packed():
    assert worker_count() == 1
    held = object()
    assert list(spread(lambda item, _: (item, held), [1, 2], "counting", RowCount())) == [(1, held), (2, held)]


@pytest.mark.slow
def test_an_error_at_a_worker_is_the_error_of_the_call():
    with joblib.parallel_config("loky", n_jobs=2), pytest.raises(ab.AbsentiaError, match="must give finite values"):
        ab.explain(lambda rows: rows.log().sum(1), X, absence=0.0, batch_size=64)


@pytest.mark.slow
def test_the_samples_of_a_worker_that_dies_are_done_again(tmp_path):
    model = dies_once(tmp_path / "died")
    alone = ab.explain(model, X, 0, absence=0.0, batch_size=64)
    with joblib.parallel_config("loky", n_jobs=2):
        together = ab.explain(model, X, 0, absence=0.0, batch_size=64)
    assert (tmp_path / "died").exists()
    assert torch.equal(alone.shapley.values, together.shapley.values)


@pytest.mark.slow
def test_a_dask_cluster_that_loses_a_worker_gives_the_same_numbers(tmp_path):
    distributed = pytest.importorskip("distributed")
    model = dies_once(tmp_path / "died")
    alone = ab.explain(model, X, 0, absence=0.0, batch_size=64)
    settings = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None, "silence_logs": 50}
    with (
        distributed.LocalCluster(**settings) as cluster,
        distributed.Client(cluster),
        joblib.parallel_config("dask"),
    ):
        assert worker_count() == 2
        together = ab.explain(model, X, 0, absence=0.0, batch_size=64)
    assert (tmp_path / "died").exists()
    assert torch.equal(alone.shapley.values, together.shapley.values)
