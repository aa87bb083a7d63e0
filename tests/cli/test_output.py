"""Results are written, printed, and not lost when a stream or disk fails."""

import os
import subprocess
from pathlib import Path

import pytest

import absentia as ab
from command_process import COMMAND
from command_words import DATA, MODEL
from own_files import write_files


def test_without_an_output_nothing_is_written_and_that_is_said(run):
    before = set(Path().iterdir())
    code, out, err = run("explain", *MODEL, *DATA, "--absence", "zero")
    assert code == 0
    assert "a module may print" not in out
    assert "Not saved" in err
    assert {path for path in Path().iterdir() if path.name != "__pycache__"} == before


def test_a_result_that_cannot_be_saved_is_printed(run, monkeypatch):
    def fail(source, target):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    code, out, err = run("explain", "--absence", "zero", *MODEL, *DATA, "-o", "result.absentia")
    assert code == 2
    assert out.startswith("Explanation of 1 sample, 3 players")
    assert "Written to" not in out
    assert err.endswith("absentia: result.absentia can't be written: disk full.\n")


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
        ["bash", "-c", run, "bash", *COMMAND, *EXPLAIN],
        cwd=tmp_path,
        env=os.environ | variables,
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
        errors="replace",
    )
    assert ab.load(tmp_path / "one.absentia").samples == 1
    assert "Traceback" not in ran.stderr
    if end == "| cat":
        assert "Written to one.absentia" in ran.stdout
