"""The shape of the package: what is public, what may import what, and what each call runs through."""

import ast
import inspect
import subprocess
import sys
from collections import Counter
from itertools import chain
from pathlib import Path

import pytest

import absentia
from absentia import interop, plots
from modules_crossed import measure

ROOT = Path(__file__).parents[1]
PACKAGE = Path(absentia.__file__).parent
DESIGN = ROOT / "docs" / "design.md"
EXPERIMENTS = sorted((ROOT / "experiments").rglob("*.py"))

# Files of tests that are not about one module.
SUITES = {"architecture", "benchmarks", "docs", "every_experiment", "extending", "fuzz"}

PUBLIC = {
    "Absence",
    "AbsentiaError",
    "Attribution",
    "Audit",
    "Baseline",
    "Blur",
    "CrossAudit",
    "Evaluator",
    "Explanation",
    "Features",
    "Game",
    "GaussianConditional",
    "Imputer",
    "Interaction",
    "Interactions",
    "JoinedInputs",
    "LearnedBaseline",
    "LearningOptions",
    "LogOdds",
    "Logit",
    "Margin",
    "LogOutput",
    "MeanDepth",
    "Marginal",
    "MarginalBenefits",
    "MaskedModel",
    "NearestNeighbours",
    "Noise",
    "OrderAttribution",
    "OrderProfile",
    "Output",
    "OwnBaselines",
    "Players",
    "Probability",
    "Readout",
    "Surrogate",
    "Task",
    "Terms",
    "ValueTable",
    "__version__",
    "audit",
    "banzhaf",
    "baseline_loss",
    "context_map",
    "cross_audit",
    "draw_coalitions",
    "enumerate_coalitions",
    "explain",
    "from_numpy",
    "harsanyi",
    "index",
    "interactions",
    "interop",
    "learn_baseline",
    "load",
    "marginal_benefits",
    "moebius",
    "order_marginals",
    "order_shapley",
    "plots",
    "shapley",
    "train_imputer",
    "train_surrogate",
    "value_table",
    "write_report",
    "zeta",
}


def sources():
    return sorted(PACKAGE.rglob("*.py"))


def modules():
    return [path for path in sources() if path.name != "__init__.py"]


def name_of(path):
    return str(path.relative_to(PACKAGE))


def layout():
    """The modules in the order of the design's layout, which is the order of import."""
    block = DESIGN.read_text().split("```")[1]
    names = [line.split()[0] for line in block.splitlines() if line.startswith("  ")]
    return [name.removesuffix(".py").removesuffix("/") for name in names]


def imports(path):
    """Which modules of the package a file imports when it runs, each as a dotted path below it."""
    tree = ast.parse(path.read_text())
    types = [node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    for node in chain.from_iterable(ast.walk(part) for part in tree.body if part not in types):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "absentia":
            inside = node.module.split(".")[1:]
            if inside:
                yield ".".join(inside)
            yield from (".".join([*inside, alias.name]) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[2] for alias in node.names if alias.name.startswith("absentia."))


def misplaced(path, order):
    """Which imports of a file stand below it in the layout."""
    own = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    assert own in order, f"{own} is not in docs/design.md"
    found = {name.split(".")[0] for name in imports(path)}
    return {name for name in found if name in order and order.index(name) > order.index(own)}


def private_uses(path):
    """Which names that are not public a file outside the package takes from it."""
    tree = ast.parse(path.read_text())
    aliases = {}
    found = set()
    doors = {"absentia": absentia.__all__, "absentia.plots": plots.__all__, "absentia.interop": interop.__all__}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "absentia":
                    aliases[alias.asname or alias.name] = alias.name
                    found |= set() if alias.name in doors else {alias.name}
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "absentia":
            known = doors.get(node.module, ())
            found |= {f"{node.module}.{alias.name}" for alias in node.names if alias.name not in known}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in aliases:
            module = aliases[node.value.id]
            found |= set() if node.attr in doors.get(module, ()) else {f"{module}.{node.attr}"}
    return found


def test_the_public_names_are_these():
    assert set(absentia.__all__) == PUBLIC


def public_things():
    for module in (absentia, plots, interop):
        for name in module.__all__:
            thing = getattr(module, name)
            if callable(thing):
                yield pytest.param(thing, id=f"{module.__name__}.{name}")


@pytest.mark.parametrize("thing", list(public_things()))
def test_every_public_name_has_an_example_and_functions_document_their_parameters(thing):
    text = inspect.getdoc(thing)
    assert ">>>" in text
    if inspect.isfunction(thing):
        assert "Parameters\n----------" in text


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_a_module_imports_only_what_stands_above_it_in_the_design(path):
    assert not misplaced(path, layout())


def test_the_order_of_imports_can_be_broken(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "PACKAGE", tmp_path)
    (tmp_path / "coalitions.py").write_text("from absentia.games import Game")
    assert misplaced(tmp_path / "coalitions.py", layout()) == {"games"}
    (tmp_path / "coalitions.py").write_text("if TYPE_CHECKING:\n    from absentia.games import Game")
    assert not misplaced(tmp_path / "coalitions.py", layout())


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: path.name)
def test_experiments_use_public_names_only(path):
    assert not private_uses(path)


def test_the_use_of_private_names_is_noticed(tmp_path):
    assert EXPERIMENTS
    path = tmp_path / "bad.py"
    lines = ["import absentia as ab", "from absentia.data import seeded", "ab.explain", "ab.results"]
    path.write_text("\n".join([*lines, "import absentia.cli"]))
    assert private_uses(path) == {"absentia.data.seeded", "absentia.results", "absentia.cli"}


@pytest.mark.parametrize("path", sources(), ids=name_of)
def test_a_module_says_in_one_line_what_it_holds_and_nothing_is_asserted_on_users(path):
    tree = ast.parse(path.read_text())
    assert ast.get_docstring(tree)
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Assert)]


def test_every_module_of_the_design_exists_and_every_module_is_in_the_design():
    there = {path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in modules()}
    assert there == set(layout())


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_functions_fit_on_a_screen(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef):
            body = node.end_lineno - node.lineno - len((ast.get_docstring(node) or "").splitlines())
            assert body < 70, f"{node.name} is {body} lines long"


def test_no_two_modules_have_one_name():
    names = Counter(path.stem for path in modules() if path.name != "__main__.py")
    names.update(path.parent.name for path in sources() if path.name == "__init__.py" and path.parent != PACKAGE)
    assert not [name for name, count in names.items() if count > 1]


@pytest.mark.parametrize(("name", "room"), [("explain", "games.py"), ("learn", "learning"), ("audit", "auditing")])
def test_the_walk_of_a_call_is_traced(name, room):
    walk, model = measure(name)
    assert any(module.startswith(room) for module in walk.modules)
    assert walk.frames > len(walk.modules)
    assert model.rows >= model.calls > 0


@pytest.mark.parametrize("name", ["explain", "learn", "audit", "explain, word", "audit, words"])
def test_nothing_is_checked_or_converted_twice(name):
    walk, _ = measure(name)
    counts = walk.functions
    assert [counts[function] for function in ("encode_inputs", "as_model", "class_numbers")] == [1, 1, 1]
    # The samples, and the data if there are any.
    tables = 1 if name in ("explain", "learn") else 2
    assert counts["check_columns"] == tables
    assert counts["rows_of"] == counts["check_rows"] == tables - 1
    if name.startswith("audit"):
        # The samples that each method masks are new: their plausibility is measured.
        methods = 4 if name.endswith("words") else 2
        assert counts["check_samples"] == methods
    else:
        assert counts["check_samples"] == 0
        # The samples, the labels, a table of values, and with a word the data and the mean.
        assert counts["as_tensor"] <= 3 + 2 * (tables - 1)


def test_importing_the_library_is_light():
    heavy = [
        "matplotlib",
        "sklearn",
        "shap",
        "captum",
        "shapiq",
        "scipy",
        "pandas",
        "typer",
        "rich",
        "jinja2",
        "tqdm",
    ]
    program = (
        "import sys, torch; before = set(sys.modules); import absentia; "
        f"print([name for name in {heavy} if name in set(sys.modules) - before])"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_the_command_line_is_installed():
    from absentia.cli import main

    assert callable(main)


def test_tests_are_named_by_the_module_that_they_test():
    tests = Path(__file__).parent
    for file in sorted(tests.rglob("test_*.py")):
        name = file.stem.removeprefix("test_")
        if name in SUITES:
            continue
        room = file.parent.relative_to(tests)
        source = ROOT / "experiments" if room.name == "experiments" else PACKAGE / room
        modules = [path.stem.strip("_") for path in source.iterdir()]
        assert any(name == module or name.startswith(f"{module}_") for module in modules), file
