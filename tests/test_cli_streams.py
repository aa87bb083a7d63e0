"""Commands whose streams are closed, full or cannot show every sign, and that are ended: results are not lost."""

import os
import signal
import subprocess
import sys
import time

import pytest

import absentia as ab
from own_files import write_files

COMMAND = [sys.executable, "-P", "-c", "from absentia_command import main; main()"]
EXPLAIN = ["explain", "-m", "mymodule:build", "-d", "data.csv", "-t", "kind", "-a", "mean", "-o", "one.absentia"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("end", "variables"),
    [(">&- 2>&-", {}), (">/dev/full", {}), ("| true", {}), ("| cat", {"PYTHONIOENCODING": "latin-1"})],
)
def test_a_result_is_saved_whatever_the_streams_take(end, variables, tmp_path):
    write_files(tmp_path)
    run = f'"$@" {end}'
    ran = subprocess.run(
        ["bash", "-c", run, "bash", *COMMAND, *EXPLAIN], cwd=tmp_path, env=os.environ | variables, check=False,
        capture_output=True, text=True, timeout=120, errors="replace",
    )  # fmt: skip
    assert ab.load(tmp_path / "one.absentia").samples == 1
    assert "Traceback" not in ran.stderr
    if end == "| cat":
        assert "Written to one.absentia" in ran.stdout


@pytest.mark.slow
def test_the_workers_of_a_command_that_is_ended_end_too(tmp_path):
    write_files(tmp_path)
    words = ["-m", "mymodule:slow", "-d", "data.csv", "-t", "kind", "--readout", "output", "-a", "mean"]
    started = subprocess.Popen(
        [*COMMAND, "explain", *words, "--samples", "40", "--batch-size", "1", "--jobs", "2"], cwd=tmp_path,
        stderr=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip

    def group():
        found = subprocess.run(
            ["ps", "-o", "pid=", "-g", str(started.pid)], capture_output=True, text=True, check=False
        )
        return found.stdout.split()

    until = time.monotonic() + 60
    while len(group()) < 4 and time.monotonic() < until:  # the command, two workers, and what looks after them
        time.sleep(0.1)
    started.send_signal(signal.SIGTERM)
    started.communicate(timeout=60)
    assert started.returncode == 143
    while group() and time.monotonic() < until:
        time.sleep(0.1)
    assert not group()
