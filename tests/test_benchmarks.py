"""The benchmarks run: what they write is complete and finite."""

from __future__ import annotations

import ast
import importlib.util
import json
import math
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

EXACT = Path(__file__).parents[1] / "benchmarks" / "exact.py"
AUDIT, LEARNING = EXACT.with_name("audit.py"), EXACT.with_name("learning.py")
TREES, TREE_LEARNING = EXACT.with_name("trees.py"), EXACT.with_name("tree_learning.py")


@pytest.mark.slow
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


@pytest.mark.slow
def test_audit_writes_the_share_of_forward_passes(tmp_path: Path) -> None:
    subprocess.run([sys.executable, AUDIT, "--quick", "--output", tmp_path], check=True, timeout=300)
    (table,) = json.loads((tmp_path / "audit.json").read_text())["tables"]
    (row,) = table["rows"]
    assert math.isfinite(row["share"])
    assert {"forward passes, s", "audit, s"} < set(row)
    assert f"## {table['title']}" in (tmp_path / "audit.md").read_text()


@pytest.mark.slow
def test_learning_writes_times_and_losses(tmp_path: Path) -> None:
    subprocess.run([sys.executable, LEARNING, "--quick", "--output", tmp_path], check=True, timeout=300)
    (table,) = json.loads((tmp_path / "learning.json").read_text())["tables"]
    (row,) = table["rows"]
    assert row["default, CPU s"] > 0
    assert row["default, held-out loss"] > 0
    assert row["times faster"] > 0


@pytest.mark.slow
def test_trees_writes_times_beside_those_of_peers(tmp_path: Path) -> None:
    subprocess.run([sys.executable, TREES, "--quick", "--output", tmp_path], check=True, timeout=300)
    (table,) = json.loads((tmp_path / "trees.json").read_text())["tables"]
    assert [row["background"] for row in table["rows"]] == [1, 100]
    for row in table["rows"]:
        assert row["absentia, ms"] > 0
        assert math.isfinite(row["over the fastest"])
        assert math.isfinite(row["over the fastest's Shapley values"])


@pytest.mark.slow
def test_tree_learning_writes_times_and_losses(tmp_path: Path) -> None:
    subprocess.run([sys.executable, TREE_LEARNING, "--quick", "--output", tmp_path], check=True, timeout=300)
    (table,) = json.loads((tmp_path / "tree_learning.json").read_text())["tables"]
    (row,) = table["rows"]
    assert row["from leaves, CPU s"] > 0
    assert 0 < row["from leaves, held-out loss"] < math.inf
    assert "black box no better" in row["goals"]


@pytest.mark.slow
def test_reliability_writes_a_page_of_what_it_measures(tmp_path: Path) -> None:
    names = ["threads", "numerics", "faults"]
    run = [sys.executable, EXACT.with_name("reliability.py"), *names, "--quick", "--output", tmp_path]
    subprocess.run(run, check=True, timeout=300)
    record = json.loads((tmp_path / "reliability.json").read_text())
    assert all(row["equal to one thread"] == row["pairs"] for row in record["threads"]["table"]["rows"])
    assert all(row["single: error / floor"] < 1 for row in record["numerics"]["table"]["rows"])
    assert record["faults"]["table"]["rows"][0]["what was seen"] == "one sentence; the former file is untouched"
    assert "## Errors of effects by order" in (tmp_path / "reliability.md").read_text()


@pytest.mark.slow
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


def load(name: str) -> ModuleType:
    """Import a benchmark, which is no part of a package."""
    spec = importlib.util.spec_from_file_location(name, EXACT.with_name(f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look for it
    spec.loader.exec_module(module)
    return module


DENSE = '''"""A docstring
of two lines."""

# A comment.
def f(given, rate):
    """Return it."""
    one, some = (
        given(), rate if rate else 1
    )  # fmt: skip
    if one and some:
        return [thing for thing in one if thing]
    a, b = 0, 1
    a, b = b, a
    return a
'''


def test_style_counts_are_those_by_hand(tmp_path: Path) -> None:
    style_counts = load("style_counts")
    assert style_counts.count_source(DENSE) == style_counts.Counts(
        lines=9,
        nodes=len(list(ast.walk(ast.parse(DENSE)))),
        conditional_expressions=1,
        unrelated_assignments=1,  # neither constants nor a swap
        format_skips=1,
        local_names=7,  # given, rate, one, some, thing, a, b
        vague_names=4,
        functions=1,
        complexity=3,  # the function, its branch, its comprehension
        longest_function=9,
    )
    (tmp_path / "dense.py").write_text(DENSE)
    (tmp_path / "empty.py").write_text("")
    first, _, *rows = style_counts.table([tmp_path, tmp_path / "empty.py"]).splitlines()
    assert first == f"|  | {tmp_path} | {tmp_path / 'empty.py'} |"
    assert "| lines of code | 9 | 0 |" in rows
    assert "| local names such as one, some, found | 57.1% | 0.0% |" in rows
    assert all(row.count("|") == 4 for row in rows)


def test_modules_that_are_mutated_and_their_tests_exist() -> None:
    root = EXACT.parents[1]
    for module, tests in load("mutants").MUTATED.items():
        assert (root / "src" / "absentia" / module).is_file(), module
        assert all((root / "tests" / name).is_file() for name in tests), tests


def test_mutants_are_the_same_for_a_seed_and_none_is_of_what_nothing_evaluates() -> None:
    pytest.importorskip("cosmic_ray")
    mutants = load("mutants")
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
