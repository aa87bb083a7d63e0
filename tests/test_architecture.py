"""The shape of the package: what is public, what may import what, what every module must have."""

import ast
import importlib
import inspect
from pathlib import Path

import pytest

import absentia

PACKAGE = Path(absentia.__file__).parent
DESIGN = Path(__file__).parents[1] / "docs" / "design.md"

PUBLIC = {
    "Absence",
    "AbsentiaError",
    "Attribution",
    "Audit",
    "Baseline",
    "Blur",
    "CrossAudit",
    "Explanation",
    "Features",
    "Game",
    "GaussianConditional",
    "Imputer",
    "Interaction",
    "Interactions",
    "LearnedBaseline",
    "LogOdds",
    "Logit",
    "Marginal",
    "MaskedModel",
    "NearestNeighbours",
    "Noise",
    "OrderProfile",
    "Output",
    "OwnBaselines",
    "Players",
    "Probability",
    "Readout",
    "Surrogate",
    "ValueTable",
    "__version__",
    "audit",
    "banzhaf",
    "cross_audit",
    "explain",
    "from_numpy",
    "harsanyi",
    "interop",
    "learn_baseline",
    "load",
    "marginal_benefits",
    "moebius",
    "order_marginals",
    "order_shapley",
    "plot_explanation",
    "plots",
    "shapley",
    "train_imputer",
    "train_surrogate",
    "value_table",
    "write_report",
    "zeta",
}


def modules():
    return sorted(path for path in PACKAGE.rglob("*.py") if path.name != "__init__.py")


def layout():
    """The modules in the order of the design's layout, which is the order of import."""
    block = DESIGN.read_text().split("```")[1]
    names = [line.split()[0] for line in block.splitlines() if line.startswith("  ")]
    return [name.removesuffix(".py").removesuffix("/") for name in names]


def imported(path):
    """Which of the package's top-level modules a file imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            parts = node.module.split(".")
            if parts[0] == "absentia":
                found.update([parts[1]] if len(parts) > 1 else [alias.name for alias in node.names])
    return found


def test_the_public_names_are_these():
    assert set(absentia.__all__) == PUBLIC


def test_every_public_name_has_a_docstring_with_an_example():
    for name in absentia.__all__:
        thing = getattr(absentia, name)
        if name == "__version__":
            continue
        assert ">>>" in inspect.getdoc(thing), name


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_imports_only_what_stands_above_it_in_the_design(path):
    order = layout()
    own = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    assert own in order, f"{own} is not in docs/design.md"
    later = {name for name in imported(path) if name in order and order.index(name) > order.index(own)}
    assert not later


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_says_in_one_line_what_it_holds_and_nothing_is_asserted_on_users(path):
    tree = ast.parse(path.read_text())
    assert ast.get_docstring(tree)
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Assert)]


def test_every_module_of_the_design_exists_or_is_marked_as_planned():
    planned = DESIGN.read_text().split("Planned, not yet here:")[1].split("\n\n")[0]
    for name in layout():
        exists = (PACKAGE / f"{name}.py").exists() or (PACKAGE / name).is_dir()
        assert exists != (f"`{name}`" in planned), name


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_functions_fit_on_a_screen(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef):
            assert node.end_lineno - node.lineno < 70, f"{node.name} is {node.end_lineno - node.lineno} lines long"


def test_importing_the_library_is_light():
    heavy = {"matplotlib", "sklearn", "shap", "captum", "shapiq", "scipy", "pandas"}
    for path in modules():
        tree = ast.parse(path.read_text())
        for node in tree.body:  # imports at the top of a module, not inside functions
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not {name.split(".")[0] for name in names} & heavy, path


def test_the_command_line_is_installed():
    assert callable(importlib.import_module("absentia.cli").main)
