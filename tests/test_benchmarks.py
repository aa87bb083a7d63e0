"""The benchmarks run: what they write is complete and finite."""

from __future__ import annotations

import importlib.util
import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

EXACT = Path(__file__).parents[1] / "benchmarks" / "exact.py"
AUDIT, LEARNING = EXACT.with_name("audit.py"), EXACT.with_name("learning.py")


def test_exact_writes_finite_ratios(tmp_path: Path) -> None:
    subprocess.run([sys.executable, EXACT, "--quick", "--output", tmp_path], check=True, timeout=300)
    record = json.loads((tmp_path / "exact.json").read_text())
    tables = {table["title"]: table["rows"] for table in record["tables"]}
    page = (tmp_path / "exact.md").read_text()
    assert all(f"## {title}" in page for title in tables)
    ratios = [
        row[column]
        for rows in tables.values()
        for row in rows
        for column in ("ratio of minima", "ratio of medians", "times faster", "ratio", "peak extra memory, MB")
        if column in row
    ]
    assert len(ratios) == 2 * 6 + 5 + 2 + 1  # two for each overhead; peers; transforms; memory
    assert all(math.isfinite(ratio) and ratio > 0 for ratio in ratios)


def test_audit_writes_the_share_of_forward_passes(tmp_path: Path) -> None:
    subprocess.run([sys.executable, AUDIT, "--quick", "--output", tmp_path], check=True, timeout=300)
    (table,) = json.loads((tmp_path / "audit.json").read_text())["tables"]
    (row,) = table["rows"]
    assert 0 < row["share"] < 1
    assert row["forward passes, s"] < row["audit, s"]
    assert f"## {table['title']}" in (tmp_path / "audit.md").read_text()


def test_learning_writes_times_and_losses(tmp_path: Path) -> None:
    subprocess.run([sys.executable, LEARNING, "--quick", "--output", tmp_path], check=True, timeout=300)
    (table,) = json.loads((tmp_path / "learning.json").read_text())["tables"]
    (row,) = table["rows"]
    assert row["default, CPU s"] > 0
    assert row["default, held-out loss"] > 0
    assert row["times faster"] > 0


def test_reliability_writes_a_page_of_what_it_measures(tmp_path: Path) -> None:
    names = ["threads", "numerics", "faults"]
    run = [sys.executable, EXACT.with_name("reliability.py"), *names, "--quick", "--output", tmp_path]
    subprocess.run(run, check=True, timeout=300)
    record = json.loads((tmp_path / "reliability.json").read_text())
    assert all(row["equal to one thread"] == row["pairs"] for row in record["threads"]["table"]["rows"])
    assert all(row["single: error / floor"] < 1 for row in record["numerics"]["table"]["rows"])
    assert record["faults"]["table"]["rows"][0]["what was seen"] == "one sentence; the former file is untouched"
    assert "## Errors of effects by order" in (tmp_path / "reliability.md").read_text()


def test_verdicts_keep_the_figures_of_other_parts(tmp_path: Path) -> None:
    program = [sys.executable, EXACT.with_name("verdicts.py"), "--quick", "--output", tmp_path]
    subprocess.run([*program, "planted"], check=True, timeout=300)
    subprocess.run([*program, "coverage"], check=True, timeout=300)
    record = json.loads((tmp_path / "verdicts.json").read_text())
    tables = {table["title"]: table["rows"] for part in record.values() for table in part["tables"]}
    page = (tmp_path / "verdicts.md").read_text()
    assert all(f"## {title}" in page for title in tables)
    assert [row["recommended"] for row in tables["Planted winners"]] == ["100%"] * 4
    covered = tables["Coverage of the errors of leak and invention"]
    assert all(math.isfinite(row["mean"]) and row["error given"] > 0 for row in covered)
    assert {row["figure"] for row in tables["False accusations"]} == {"leak", "invention"}


def test_mutants_are_the_same_for_a_seed_and_none_is_of_what_nothing_evaluates() -> None:
    pytest.importorskip("cosmic_ray")
    spec = importlib.util.spec_from_file_location("mutants", EXACT.with_name("mutants.py"))
    mutants = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = mutants  # where dataclasses look for it
    spec.loader.exec_module(mutants)
    source = "Pair: TypeAlias = int | str\nif TYPE_CHECKING:\n    a = 1 + 2\n\ndef f(x: 'φ' | 3 = 4) -> 5 | 6:\n"
    source += "    return 7 + x\n"
    drawn, existing = mutants.draw_mutants(source, 0, seed=0)
    assert len(drawn) == existing
    changed = {one.code.replace(" ", "") for one in drawn}
    assert len(changed) == existing == 2 + 2 + 11  # 4 and 7, one up or down; the operators in the place of +
    before, after = source.replace(" ", "").split("=4")
    assert all(code.startswith(before) and code.count("->5|6:\n") == 1 for code in changed)
    assert after not in {code.split("=4")[-1] for code in changed if "=4" in code}
    some, again, others = (mutants.draw_mutants(source, 5, seed)[0] for seed in (3, 3, 4))
    assert some == again != others
