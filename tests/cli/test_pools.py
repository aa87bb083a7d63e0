"""Commands spread over processes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import absentia as ab

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
