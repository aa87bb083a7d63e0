"""Faults, injected for real into processes that compute: ``python tests/fuzz/faults.py``.

Every fault is a function that returns what was seen, or fails. Nothing may be lost: results are those of a run
without the fault, and a result that can't be written where it should be is kept elsewhere.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

import torch

import absentia as ab
from absentia.storage import read_tensors

FAULTS: dict[str, Callable[[Path], str]] = {}

COMMON = """
import os, resource, signal, sys, time, warnings
import torch, absentia as ab
torch.set_num_threads(1)
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Tanh(), torch.nn.Linear(32, 3))
x = torch.randn(60, 8)
y = model(x).argmax(1)

def learn(folder, **options):
    few = ab.LearningOptions(steps=60, rows_per_step=2048, **options)
    return ab.learn_baseline(model, x, y, options=few)
"""


def fault(title: str) -> Callable[[Callable[[Path], str]], Callable[[Path], str]]:
    """Register a fault under its title."""

    def keep(function: Callable[[Path], str]) -> Callable[[Path], str]:
        FAULTS[title] = function
        return function

    return keep


def start(program: str, *arguments: object) -> subprocess.Popen[str]:
    """Start a Python program."""
    command = [sys.executable, "-c", COMMON + textwrap.dedent(program), *map(str, arguments)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def run(program: str, *arguments: object) -> str:
    """Run a Python program to its end, and return what it printed."""
    process = start(program, *arguments)
    printed, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    return printed + errors


@contextmanager
def small_disk(folder: Path, kilobytes: int, options: str = ""):
    """Mount a disk of a few kilobytes in memory."""
    place = folder / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k{options}", "tmpfs", str(place)]
    subprocess.run(mount, check=True, capture_output=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


LEARN = "learn(sys.argv[1], checkpoint=sys.argv[1] + '/checkpoint').save(sys.argv[1] + '/learned')"


def learned_after_kills(folder: Path, kills: int) -> str:
    whole = folder / "whole"
    killed = folder / "killed"
    whole.mkdir()
    killed.mkdir()
    run(LEARN, whole)
    for _ in range(kills):
        process = start(LEARN, killed)
        before = (killed / "checkpoint").exists()
        changed = (killed / "checkpoint").stat().st_mtime_ns if before else 0
        while process.poll() is None:
            if (killed / "checkpoint").exists() and (killed / "checkpoint").stat().st_mtime_ns > changed:
                break
            time.sleep(0.002)
        assert process.poll() is None, process.stderr.read()
        process.kill()
        process.wait()
        assert not (killed / "learned").exists()
    run(LEARN, killed)
    one = ab.load(whole / "learned")
    two = ab.load(killed / "learned")
    assert torch.equal(one.values, two.values)
    assert one.loss == two.loss
    return "resumed; values and loss equal those of the whole run"


@fault("SIGKILL of the process while it learns")
def kill_once(folder: Path) -> str:
    return learned_after_kills(folder, 1)


@fault("SIGKILL three times in the same run")
def kill_thrice(folder: Path) -> str:
    return learned_after_kills(folder, 3)


@fault("SIGKILL while a result is written over another")
def kill_writer(folder: Path) -> str:
    program = """
        found = ab.explain(model, x[:1].repeat(200, 1), 0, absence=0.0)
        print("ready", flush=True)
        while True:
            found.save(sys.argv[1] + "/result")
    """
    alive = 0
    for number in range(20):
        process = start(program, folder)
        process.stdout.readline()
        while not (folder / "result").exists():
            time.sleep(0.001)
        time.sleep(0.0137 * number % 0.05)
        process.kill()
        process.wait()
        alive += ab.load(folder / "result").samples == 200
    left = list(folder.glob("*.part"))
    for path in left:
        os.utime(path, (0, 0))
    ab.load(folder / "result").save(folder / "result")
    assert not list(folder.glob("*.part"))
    return f"the file was whole after {alive} of 20 kills; {len(left)} left-overs were removed by the next save"


def explained_by_workers(folder: Path, setup: str, config: str, end: str = "") -> str:
    program = f"""
        import joblib, pathlib
        home, flag = os.getpid(), pathlib.Path(sys.argv[1]) / "died"

        def dying(rows):
            if os.getpid() != home and not flag.exists():
                flag.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return model(rows)

        if __name__ == "__main__":
            alone = ab.explain(dying, x, 0, absence=0.0, batch_size=64)
            {setup}
            with joblib.parallel_config({config}):
                together = ab.explain(dying, x, 0, absence=0.0, batch_size=64)
            assert flag.exists()
            print(torch.equal(alone.interactions.effects, together.interactions.effects))
            {end}
    """
    assert "True" in run(program, folder)
    return "its samples were done again; all effects equal those of one process"


@fault("SIGKILL of a worker of joblib")
def kill_worker(folder: Path) -> str:
    return explained_by_workers(folder, "", "'loky', n_jobs=2")


@fault("SIGKILL of a worker of a Dask cluster")
def kill_dask_worker(folder: Path) -> str:
    cluster = "distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)"
    setup = f"import distributed; client = distributed.Client({cluster})"
    return explained_by_workers(folder, setup, "'dask'", "client.shutdown()")


@fault("A full disk where a result is to be written")
def full_disk(folder: Path) -> str:
    program = """
        found = ab.explain(model, x, 0, absence=0.0)
        try:
            found.save(sys.argv[1] + "/result")
        except ab.AbsentiaError as error:
            print(error)
    """
    with small_disk(folder, 64) as place:
        said = run(program, place)
        assert not list(place.iterdir())
    kept = Path(re.search(r"The result is in (\S+) instead", said)[1])
    assert ab.load(kept).samples == 60
    kept.unlink()
    return "one sentence, which names the file that holds the result instead"


@fault("A full disk where a checkpoint is to be written")
def full_checkpoint(folder: Path) -> str:
    (folder / "whole").mkdir()
    run(LEARN, folder / "whole")
    program = """
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = learn(sys.argv[1], checkpoint=sys.argv[1] + "/checkpoint")
        assert any("checkpoint is not up to date" in str(one.message) for one in caught)
        found.save(sys.argv[2] + "/learned")
    """
    with small_disk(folder, 4) as place:
        run(program, place, folder)
    assert torch.equal(ab.load(folder / "learned").values, ab.load(folder / "whole" / "learned").values)
    return "a warning; learning ended with the values of the whole run"


@fault("A limit on the size of files")
def file_size(folder: Path) -> str:
    program = """
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        found = ab.explain(model, x, 0, absence=0.0)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        try:
            found.save(sys.argv[1] + "/result")
        except ab.AbsentiaError as error:
            print(error)
    """
    ab.explain(lambda rows: rows.sum(1), torch.ones(1, 2), absence=0.0).save(folder / "result")
    before = (folder / "result").read_bytes()
    assert "can't be written" in run(program, folder)
    assert (folder / "result").read_bytes() == before
    return "one sentence; the former file is untouched"


@fault("A folder that can only be read")
def read_only(folder: Path) -> str:
    program = """
        began = time.perf_counter()
        try:
            learn("", checkpoint=sys.argv[1] + "/checkpoint")
        except ab.AbsentiaError as error:
            print(error, time.perf_counter() - began)
    """
    with small_disk(folder, 64, ",ro") as place:
        said = run(program, place)
    assert "lie in a folder that can be written to" in said
    assert float(said.split()[-1]) < 1
    return "one sentence, before anything is computed"


@fault("Truncation of a saved file at every 1 %")
def truncation(folder: Path) -> str:
    ab.explain(lambda rows: rows.sum(1), torch.ones(3, 6), absence=0.0).save(folder / "whole")
    whole = (folder / "whole").read_bytes()
    refused = 0
    for percent in range(100):
        (folder / "cut").write_bytes(whole[: len(whole) * percent // 100])
        try:
            ab.load(folder / "cut")
        except ab.AbsentiaError:
            refused += 1
    assert refused == 100
    return "100 of 100 refused with a sentence"


@fault("A flipped bit in a saved file")
def flipped_bits(folder: Path) -> str:
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 2)
    x = torch.randn(30, 4)
    few = ab.LearningOptions(steps=2, rows_per_step=64)
    results = {
        "explanation": ab.explain(model, x[:3], 0, absence=0.0),
        "audit": ab.audit(model, x, [0, 1] * 15, ["zero", "mean"], draws=2),
        "baseline": ab.learn_baseline(model, x, [0, 1] * 15, options=few),
        "imputer": ab.train_imputer(x, epochs=1),
    }
    generator = torch.Generator().manual_seed(0)
    counts = {"refused": 0, "the same": 0}
    for name, result in results.items():
        result.save(folder / name)
        whole = (folder / name).read_bytes()
        for _ in range(300):
            place = int(torch.randint(8 * len(whole), (1,), generator=generator))
            damaged = bytearray(whole)
            damaged[place // 8] ^= 1 << place % 8
            (folder / "damaged").write_bytes(damaged)
            try:
                ab.load(folder / "damaged").save(folder / "again")
                ab.load(folder / name).save(folder / "whole")
                (some, header), (others, other) = (read_tensors(folder / one) for one in ("again", "whole"))
                assert repr(header) == repr(other), (name, place)
                assert all(torch.equal(some[key].nan_to_num(), others[key].nan_to_num()) for key in others), (
                    name,
                    place,
                )
                counts["the same"] += 1
            except ab.AbsentiaError:
                counts["refused"] += 1
    refused, alike = counts.values()
    return f"1,200 files of four kinds: {refused:,} refused with a sentence, {alike} read alike"


@fault("Too little memory for the usual batches")
def little_memory(folder: Path) -> str:
    program = """
        deep = torch.nn.Sequential(torch.nn.Conv2d(3, 256, 3, padding=1), torch.nn.ReLU(), torch.nn.Flatten(),
                                   torch.nn.Linear(256 * 32 * 32, 2))
        image, players = torch.rand(1, 3, 32, 32), ab.Players.grid((3, 32, 32), (2, 4))
        alone = ab.explain(deep, image, 0, absence=0.0, players=players, batch_size=4)
        now = int(open("/proc/self/statm").read().split()[0]) * 4096
        resource.setrlimit(resource.RLIMIT_AS, (now + 2**27, now + 2**27))
        found = ab.explain(deep, image, 0, absence=0.0, players=players, batch_size=256)
        torch.testing.assert_close(found.shapley.values, alone.shapley.values, rtol=1e-5, atol=1e-6)
        print("equal")
    """
    assert "equal" in run(program)
    return "batches were halved until they fitted; the same values to 1e-5"


@fault("Two processes that write to one path")
def two_writers(folder: Path) -> str:
    program = """
        found = ab.explain(model, x, 0, absence=float(sys.argv[2]))
        for _ in range(50):
            found.save(sys.argv[1] + "/result")
    """
    writers = [start(program, folder, number) for number in (0, 1)]
    reads = 0
    while any(writer.poll() is None for writer in writers):
        if (folder / "result").exists():
            reads += ab.load(folder / "result").samples == 60
        time.sleep(0.01)
    assert all(writer.returncode == 0 for writer in writers), [writer.stderr.read() for writer in writers]
    assert ab.load(folder / "result").samples == 60
    assert not list(folder.glob("*.part"))
    return f"100 writes; {reads} reads in between found a whole file"


@fault("Ctrl-C while a baseline is learned")
def interrupt(folder: Path) -> str:
    program = """
        signal.signal(signal.SIGINT, signal.default_int_handler)  # which jobs in the background lack
        def note(step):
            if step.step == 20:
                os.kill(os.getpid(), signal.SIGINT)
        found = learn("", callback=note)
        print(found.record.stopped)
        found.save(sys.argv[1] + "/learned")
    """
    said = run(program, folder)
    assert "interrupted after" in said
    assert ab.load(folder / "learned").values.isfinite().all()
    return "the best values so far are returned, and the record says so"


@fault("An error of the model in the middle of a run")
def failing_model(folder: Path) -> str:
    program = """
        calls = 0
        def failing(rows):
            global calls
            calls += 1
            if calls > 5:
                raise RuntimeError("lost the GPU")
            return model(rows)
        model.train()
        try:
            ab.explain(failing, x, 0, absence=0.0, batch_size=64)
        except Exception as error:
            print(type(error).__name__, error)
        assert model.training and all(one.requires_grad for one in model.parameters()) and torch.is_grad_enabled()
        print(float(ab.explain(model, x[:1], 0, absence=0.0).efficiency_gap.abs()) < 1e-6)
    """
    said = run(program)
    assert "lost the GPU" in said
    assert "True" in said
    return "the model's own error; modes and flags are restored, and the next call works"


@fault("SIGKILL of an experiment")
def kill_experiment(folder: Path) -> str:
    program = """
        from pathlib import Path
        from experiments.experiment import Run
        run = Run(experiment="toy", part="squares", folder=Path(sys.argv[1]))
        def job(number):
            print("job", flush=True)
            time.sleep(0.05)
            return number * number
        print(sum(run.each(job, {str(number): number for number in range(30)}).values()))
    """
    os.environ["ABSENTIA_CACHE"] = str(folder / "cache")
    try:
        process = start(program, folder)
        for _ in range(12):
            process.stdout.readline()
        process.kill()
        process.wait()
        said = run(program, folder)
    finally:
        del os.environ["ABSENTIA_CACHE"]
    assert "8555" in said
    assert said.count("job") < 20
    return f"killed in job 12 of 30; {said.count('job')} were left to do, and the sum is the same"


def main() -> int:
    """Inject all faults, or those whose title contains a word, and print what was seen."""
    failed = 0
    for title, inject in FAULTS.items():
        if len(sys.argv) > 1 and sys.argv[1] not in title:
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                seen = inject(Path(folder))
            except (AssertionError, OSError, subprocess.SubprocessError) as error:
                seen = f"FAILED: {type(error).__name__}: {error!s:.600}"
                failed = failed + 1
        print(f"{title}: {seen}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
