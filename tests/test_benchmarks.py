"""The benchmarks run: what they write is complete and finite."""

from __future__ import annotations

import ast
import importlib.util
import json
import math
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

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


def test_versions_are_compared_row_by_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(EXACT.parent)  # as when it is run as a script
    alternate = load("alternate")
    rows = [
        {
            "players": 4,
            "samples": 1,
            "model": "own class",
            "bare, ms": 1.0,
            "absentia, ms": 3.0,
            "ratio of minima": 3.0,
        },
        {"players": 6, "samples": 1, "model": "own class", "bare, ms": 1.0, "absentia, ms": None},
    ]
    figures = alternate.read_figures("exact", [{"title": "Overhead", "rows": rows}])
    name = ("exact", "Overhead", "players 4, samples 1, model own class")
    assert figures == {(*name, "absentia, ms"): 3.0, (*name, "ratio of minima"): 3.0}
    # Ratios of 1/2, 1 and 2: the mean of their logarithms is 0, and the standard deviation log 2.
    row = alternate.compare((*name, "absentia, ms"), [2.0, 3.0, 4.0], [1.0, 3.0, 8.0])
    margin = 4.302652729911275 * math.log(2) / math.sqrt(3)  # from a table of Student's t with 2 degrees of freedom
    assert math.isclose(row["ratio"], 1.0)
    assert math.isclose(row["low"], math.exp(-margin))
    assert math.isclose(row["high"], math.exp(margin))
    assert row["verdict"] == "missed"
    assert alternate.compare((*name, "absentia, ms"), [2.0, 4.0], [2.0, 4.0])["verdict"] == "met"


@pytest.mark.slow
def test_the_library_compared_with_itself_has_every_row(tmp_path: Path) -> None:
    checkout = str(EXACT.parents[1])
    options = ["--quick", "--runs", "2", "--only", "learning", "--output", str(tmp_path)]
    command = [sys.executable, str(EXACT.with_name("alternate.py")), checkout, checkout, *options]
    subprocess.run(command, check=True, timeout=300)
    (table,) = json.loads((tmp_path / "alternate.json").read_text())["tables"]
    (row,) = table["rows"]
    assert row["figure"] == "default, CPU s"
    assert 0 < row["low"] <= row["ratio"] <= row["high"] < math.inf


def run_quickly(name: str, folder: Path) -> dict[str, Any]:
    """Run a benchmark with --quick, its caches in the folder too, and return what it wrote."""
    own_cache = os.environ | {"ABSENTIA_CACHE": str(folder / "cache")}
    program = [sys.executable, EXACT.with_name(f"{name}.py"), "--quick", "--output", folder]
    subprocess.run(program, check=True, timeout=300, env=own_cache)
    record: dict[str, Any] = json.loads((folder / f"{name}.json").read_text())
    page = (folder / f"{name}.md").read_text()
    assert all(f"## {table['title']}" in page for table in record["tables"])
    return record


@pytest.mark.slow
def test_process_in_audits_writes_errors_of_every_way(tmp_path: Path) -> None:
    record = run_quickly("process_in_audits", tmp_path)
    tables = {table["title"]: table["rows"] for table in record["tables"]}
    every = tables["Every way"]
    present = [row for row in every if row["way"] == "all coalitions"]
    assert len(present) == 2 * 3  # three figures, and their differences
    assert all(row["bias"] == 0 for row in present)
    errors = [row[name] for row in every for name in row if name.startswith("error at")]
    assert all(math.isfinite(error) and error > 0 for error in errors)
    assert {row["way"] for row in tables["Other ways against the present one"]} == {
        "process",
        "few terms",
        "drawn coalitions",
    }


@pytest.mark.slow
def test_sampling_writes_errors_of_equal_budgets(tmp_path: Path) -> None:
    record = run_quickly("sampling", tmp_path)
    tables = {table["title"]: table["rows"] for table in record["tables"]}
    (budget,) = record["measured"]["games"]["tumours"]["budgets"]
    measured = budget["methods"]
    assert len(measured) == 5 + 8  # methods and peers
    assert all(
        0.8 * budget["evaluations"] <= one["evaluations"] <= budget["evaluations"] for one in measured.values()
    )
    # Nobody who estimates Shapley values of this game is that far off but SVARM, whose strata are hardly filled.
    assert all(0 < one["error"] < 0.3 for name, one in measured.items() if name != "shapiq SVARM")
    (errors,) = tables["Relative errors"]
    ratio = measured["process"]["error"] / measured["shap permutation"]["error"]
    assert errors["process over shap permutation"] == pytest.approx(ratio)
    (covered,) = record["measured"]["coverage"]
    assert all(0.5 < share <= 1 for share in covered["shares"].values())
    verdicts = {row["goal"]: row["verdict"] for row in tables["Goals"]}
    assert len(verdicts) == 2 + 4
    assert verdicts["process at or below every peer in every row"] == errors["at or below every peer"]


@pytest.mark.slow
def test_interactions_writes_what_terms_account_for(tmp_path: Path) -> None:
    record = run_quickly("interactions", tmp_path)
    tables = {table["title"]: table["rows"] for table in record["tables"]}
    explained = {row["method"]: row for row in tables["Fresh coalitions"]}
    assert set(explained) == {"absentia", "absentia, max_terms", "LASSO on pairs"}
    assert all(0.8 < row["R², sizes alike"] <= 1 for row in explained.values())
    assert all(0.8 * 300 <= row["evaluations"] <= 300 for row in explained.values())
    (planted,) = tables["Planted sets"]
    assert 0 < planted["absentia"] <= planted["absentia, best cut"] <= 1
    assert 0 < planted["LASSO on pairs"] <= planted["LASSO on pairs, best cut"] <= 1
    game, other = tables["Fidelity"]
    assert game["shown"] == pytest.approx(explained["absentia"]["R², sizes alike"])
    assert other["game"] == "planted among 20"
    assert len(tables["Goals"]) == 3


class Products:
    """A game of given terms."""

    samples, names = 1, tuple("abcdef")

    def __call__(self, coalitions: Tensor) -> Tensor:
        """Return 2 ab − 3 cde + f + 1."""
        a, b, c, d, e, f = coalitions.double().T
        return (2 * a * b - 3 * c * d * e + f + 1)[None]


class Weighted:
    """A linear game, whose Shapley values any regression finds exactly."""

    samples = 1

    def __init__(self, players: int) -> None:
        self.names = tuple(str(player) for player in range(players))
        self.weights = torch.arange(players, dtype=torch.float64).cos()

    def __call__(self, coalitions: Tensor) -> Tensor:
        """Return the sum of the weights."""
        return (coalitions.double() @ self.weights)[None]


def test_truths_from_drawn_pairs_have_errors_that_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(EXACT.parent)
    games = load("many_player_games")
    values, errors = games.regression_on_pairs(Products(), 2**12)
    true = torch.tensor([[1.0, 1.0, -1.0, -1.0, -1.0, 1.0]], dtype=torch.float64)
    assert bool(((values - true).abs() <= 4 * errors + 1e-9).all())
    assert 0 < float(errors.max()) < 0.05
    assert float(values.sum()) == pytest.approx(0)


def test_truths_from_drawn_pairs_bear_players_who_draw_the_same_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(EXACT.parent)
    games = load("many_player_games")
    rand = torch.rand
    monkeypatch.setattr(torch, "rand", lambda *shape, **settings: (rand(*shape, **settings) * 16).round() / 16)
    linear = Weighted(20)
    values, errors = games.regression_on_pairs(linear, 2**10)
    assert values.numpy() == pytest.approx(linear.weights.numpy()[None], abs=1e-8)
    assert float(errors.max()) < 1e-8


def test_peers_spend_no_more_than_their_budget_and_find_the_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(EXACT.parent)
    games, peers = load("many_player_games"), load("shapley_peers")
    true = [1.0, 1.0, -1.0, -1.0, -1.0, 1.0]
    for name in peers.PEERS:
        found = []
        for seed in range(20):
            values = games.ValuesOfRows(Products())
            found.append(peers.estimate(name, values, 6, 60, seed=seed))
            assert 50 <= values.evaluations <= 60, name
        apart = np.mean(found, axis=0) - true
        assert np.linalg.norm(apart) < 0.2 * np.linalg.norm(true), name


def test_terms_of_any_basis_become_the_same_effects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(EXACT.parent)
    found_terms, peers = load("found_terms"), load("interaction_peers")
    true = {(): 1.0, (0, 1): 2.0, (2, 3, 4): -3.0, (5,): 1.0}
    every = torch.cartesian_prod(*[torch.tensor([False, True])] * 6)
    values = Products()(every)[0].numpy()
    in_walsh = found_terms.WalshTerms(6, true)
    assert in_walsh.predict(every.numpy()) == pytest.approx(values)
    # 3 subsets of a pair, 7 of a triple, 1 single player, none of them shared
    assert in_walsh.terms == 3 + 7 + 1
    sets = torch.from_numpy(found_terms.rows_of(in_walsh.walsh, 6))
    for sign in (1, -1):  # either convention of the basis
        terms = SimpleNamespace(sets=sets, names=Products.names, basis="Walsh")
        coefficients = torch.tensor([value * sign ** len(one) for one, value in in_walsh.walsh.items()])
        terms.predict = partial(predict_walsh, sets, coefficients.double(), sign)
        effects = found_terms.OwnTerms(terms).effects()
        strong = {one: value for one, value in effects.items() if abs(value) > 1e-9}
        assert strong == pytest.approx({one: value for one, value in true.items() if one})
    fitted = peers.fit_quietly("LASSO on pairs", lambda rows: rows[:, 0] * rows[:, 1] * 2.0 + 1, 6, 60, 0)
    assert fitted.effects()[(0, 1)] == pytest.approx(2, abs=0.1)


def predict_walsh(sets: Tensor, coefficients: Tensor, sign: int, coalitions: Tensor) -> Tensor:
    """Return Σ_T c_T Π_{i∈T} sᵢ, where sᵢ is ``sign`` if i is present and its negative if not."""
    signs = torch.where(coalitions, sign, -sign).double()
    products = torch.stack([signs[:, members].prod(1) for members in sets], dim=1)
    return (products @ coefficients)[None]


def test_noise_of_planted_games_belongs_to_the_coalition(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(EXACT.parent)
    games = load("planted_games")
    game = games.plant(64, seed=1)
    drawn = torch.rand(20_000, 64, generator=torch.Generator().manual_seed(0)) < 0.5
    values = game(drawn)[0].numpy()
    assert (game(drawn.flip(0))[0].numpy()[::-1] == values).all()
    sums = game.sums(drawn.numpy())
    noise = values - sums
    assert noise.var() / sums.var() == pytest.approx(0.1, rel=0.05)
    assert abs(np.corrcoef(noise, sums)[0, 1]) < 0.03
    assert np.abs(noise).max() / noise.std() == pytest.approx(4, abs=1)  # as of 20,000 normal numbers
    assert sorted({len(members) for members in game.sets}) == [1, 2, 3, 4, 5]
    assert len(game.sets) == 20
