"""The experiments are a test of the API: they use only the public names of absentia."""

import ast
from pathlib import Path

import pytest

import absentia
import experiments

PUBLIC = {*absentia.__all__}
MODULES = sorted(Path(experiments.__file__).parent.glob("*.py"))


def private_names(source):
    """List what code uses of absentia besides its public names."""
    tree, found = ast.parse(source), []
    names = {"absentia"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name == "absentia":
                    names.add(alias.asname or "absentia")
                elif alias.name.startswith("absentia."):
                    found.append(alias.name)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "absentia":
            inside = node.module not in ("absentia", "absentia.plots", "absentia.interop")
            found += [f"{node.module}.{alias.name}" for alias in node.names
                      if inside or (node.module == "absentia" and alias.name not in PUBLIC)]  # fmt: skip
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in names:
            found += [] if node.attr in PUBLIC else [f"absentia.{node.attr}"]
        # What follows a public name must not be private either.
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
            owner = node.value.id if isinstance(node.value, ast.Name) else ""
            found += [] if owner in ("self", "cls", "argparse") else [node.attr]
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_a_module_uses_public_names_only(path):
    assert private_names(path.read_text()) == []


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("import absentia.learning", "absentia.learning"),
        ("from absentia.coalitions import moebius", "absentia.coalitions.moebius"),
        ("from absentia import coalitions", "absentia.coalitions"),
        ("import absentia as ab\nab.learning.learn_baseline", "absentia.learning"),
        ("import absentia\nabsentia.errors.wrong('x', 'y', 'z')", "absentia.errors"),
        ("import absentia as ab\nab.MaskedModel._evaluate", "_evaluate"),
    ],
)
def test_private_names_are_found(source, name):
    assert private_names(source) == [name]
