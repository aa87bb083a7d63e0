"""Work that several processes share: workers of joblib and of a Dask cluster, processes of torchrun."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
from dataclasses import replace
from pathlib import Path

import joblib
import pytest
import torch
from torch import nn

import absentia as ab
from absentia.runtime.workers import spread, worker_count

X = torch.randn(37, 8, generator=torch.Generator().manual_seed(0))


def network(seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 3))


def dies_once(flag: Path):
    """Return a model that kills the worker that runs it, once; not the process of the tests."""
    inner, home = network(), os.getpid()

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
                found.append(list(spread(lambda item, held=held: (*held, item), range(4), "counting")))

    found, usual = [], sys.getswitchinterval()
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
    monkeypatch.setattr("absentia.games.spread", lambda work, items, title: sent.extend(items) or map(work, items))
    monkeypatch.setattr("absentia.games.worker_count", lambda: 2)
    game = ab.MaskedModel(network(), X, 0, absence=0.0, batch_size=128)
    found = ab.value_table(game)
    assert [len(part) for part in sent] == [6] * 6 + [1]  # multiples of 4 · 128 / 2⁸ samples, about 4 for each worker
    monkeypatch.undo()
    assert torch.equal(found.values, ab.value_table(game).values)


def test_without_workers_nothing_is_packed():
    assert worker_count() == 1
    held = object()
    assert list(spread(lambda item: (item, held), [1, 2], "counting")) == [(1, held), (2, held)]


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


FILES = {
    "made.py": "import torch\n\ndef build():\n    torch.manual_seed(0)\n    return torch.nn.Linear(3, 2)\n",
    "data.csv": "a,b,c,t\n" + "\n".join(f"{row},{row * row % 7},{row % 3},{row % 2}" for row in range(30)),
}


def command(folder: Path, *words: str, start: tuple[str, ...] = ()) -> str:
    """Run a command on a small model and a table, in a process of its own."""
    for name, text in FILES.items():
        (folder / name).write_text(text)
    given = ("-m", "made:build", "--untrained", "-d", "data.csv", "-t", "t")
    call = [*(start or (sys.executable, "-m")), "absentia", words[0], *given, *words[1:]]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(call, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


@pytest.mark.slow
def test_commands_spread_samples_over_processes(tmp_path):
    words = ("explain", "-a", "mean", "--samples", "20", "--batch-size", "2")
    for name, more in (("alone", ()), ("together", ("--jobs", "2"))):
        assert "Written to" in command(tmp_path, *words, *more, "-o", name)
    alone, together = (ab.load(tmp_path / name).shapley.values for name in ("alone", "together"))
    assert torch.equal(alone, together)
    refused = command(tmp_path, *words, "--dask", "nonsense")
    assert "dask must be the address of a scheduler, as in tcp://host:8786. Got nonsense" in refused


@pytest.mark.slow
@pytest.mark.skipif(sys.version_info < (3, 11), reason="PYTHONSAFEPATH is of Python 3.11")
def test_files_here_do_not_stand_in_for_packages_in_processes_of_a_command(tmp_path):
    for name in ("numpy", "joblib", "re", "cloudpickle"):
        (tmp_path / f"{name}.py").write_text("open('was_run', 'w')\nraise SystemExit(7)\n")
    words = ("explain", "-a", "mean", "--samples", "20", "--batch-size", "2", "--jobs", "2", "-o", "found")
    printed = command(tmp_path, *words, start=(sys.executable, "-P", "-m"))
    assert "Written to" in printed, printed
    assert not (tmp_path / "was_run").exists()


@pytest.mark.slow
def test_torchrun_starts_a_command_that_writes_once(tmp_path):
    torchrun = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m")
    words = ("learn", "--steps", "3", "-o")
    assert command(tmp_path, *words, "together", start=torchrun).count("Written to") == 1
    assert command(tmp_path, *words, "alone").count("Written to") == 1
    alone, together = (ab.load(tmp_path / name).values for name in ("alone", "together"))
    torch.testing.assert_close(alone, together, atol=1e-6, rtol=0)


LEARNING = """
    import sys
    import torch
    import torch.distributed
    import absentia as ab

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(5, 16), torch.nn.Tanh(), torch.nn.Linear(16, 3))
    x = torch.randn(101, 5)  # which two processes can't share evenly
    y = model(x).argmax(1)
    few = ab.LearningOptions(steps=8, rows_per_step=512)
    settings = {"faithful": {}, "of a class": {"share": "class"}, "marginal": {"loss": "marginal"}}
    together = torch.distributed.is_torchelastic_launched()
    if together:
        torch.distributed.init_process_group("gloo")
    found = [ab.learn_baseline(model, x, y, options=few, **one).values for one in settings.values()]
    if not together or torch.distributed.get_rank() == 0:
        torch.save([values.double() for values in found], sys.argv[1])
    if together:
        torch.distributed.destroy_process_group()
"""


@pytest.mark.slow
def test_processes_of_torchrun_learn_the_values_of_one_process(tmp_path):
    script = tmp_path / "learn.py"
    script.write_text(textwrap.dedent(LEARNING))
    together = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    for name, command in (("one", [sys.executable]), ("two", together)):
        done = subprocess.run([*command, script, tmp_path / name], env=environment, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()
    one, two = (torch.load(tmp_path / name) for name in ("one", "two"))
    for alone, shared in zip(one, two, strict=True):
        torch.testing.assert_close(alone, shared, atol=1e-6, rtol=0)


def learned_by_parts(**options):
    y = network()(X).argmax(1)
    few = ab.LearningOptions(steps=6, rows_per_step=256, **options)
    by_class = ab.learn_baseline(network(), X, y, share="class", options=few)
    return by_class, ab.learn_baseline(network(), X[:20], y[:20], share="sample", loss="marginal", options=few)


@pytest.mark.slow
def test_workers_learn_the_baselines_of_classes_and_samples_as_one_process_does():
    torch.set_num_threads(1)  # as many as a worker has: sums of several threads differ by rounding errors
    alone = learned_by_parts()
    with joblib.parallel_config("loky", n_jobs=2):
        together = learned_by_parts()
    for one, other in zip(alone, together, strict=True):
        assert torch.equal(one.values, other.values)
        assert torch.equal(one.history, other.history)
        assert replace(one.record, seconds=0.0) == replace(other.record, seconds=0.0)
    assert [one.values.shape for one in alone] == [(3, 8), (20, 8)]
    assert alone[0].classes.tolist() == [0, 1, 2]
