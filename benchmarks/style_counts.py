"""Count how densely code is written: ``python benchmarks/style_counts.py src/absentia other/src``.

The table has one column for each path. There are no targets: the figures show where code is denser or looser than
before, or than a peer's. Only Python files are read. Docstrings, comments and blank lines are not lines of code.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

SOURCES = Path(__file__).parents[1] / "src" / "absentia"

# Local names that do not say what they hold: pronouns, participles, and words for anything.
VAGUE_NAMES = frozenset(
    {
        "found",
        "given",
        "got",
        "held",
        "kept",
        "known",
        "mine",
        "one",
        "ones",
        "others",
        "own",
        "shown",
        "some",
        "such",
        "that",
        "then",
        "these",
        "thing",
        "things",
        "this",
        "those",
        "usual",
        "what",
        "which",
        "whose",
    }
)

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

# Each of these adds one path through a function: as in ruff's C901, which does not count comprehensions, though.
BRANCHES = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.comprehension, *FUNCTIONS)

# Tokens that are not code.
LAYOUT = frozenset(
    {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
)


@dataclass(frozen=True)
class Counts:
    """The counts of one file, or of all files in a path."""

    lines: int = 0
    nodes: int = 0
    conditional_expressions: int = 0
    unrelated_assignments: int = 0
    format_skips: int = 0
    local_names: int = 0
    vague_names: int = 0
    functions: int = 0
    complexity: int = 0  # the sum over functions
    longest_function: int = 0  # in lines

    def __add__(self, other: Counts) -> Counts:
        """Return the sum of both counts."""
        return Counts(
            lines=self.lines + other.lines,
            nodes=self.nodes + other.nodes,
            conditional_expressions=self.conditional_expressions + other.conditional_expressions,
            unrelated_assignments=self.unrelated_assignments + other.unrelated_assignments,
            format_skips=self.format_skips + other.format_skips,
            local_names=self.local_names + other.local_names,
            vague_names=self.vague_names + other.vague_names,
            functions=self.functions + other.functions,
            complexity=self.complexity + other.complexity,
            longest_function=max(self.longest_function, other.longest_function),
        )


def count_source(source: str) -> Counts:
    """Count one file."""
    tree = ast.parse(source)
    nodes = list(ast.walk(tree))
    functions = [node for node in nodes if isinstance(node, FUNCTIONS)]
    names = [name for function in functions for name in local_names(function)]
    return Counts(
        lines=code_lines(source, tree),
        nodes=len(nodes),
        conditional_expressions=sum(isinstance(node, ast.IfExp) for node in nodes),
        unrelated_assignments=sum(is_unrelated_assignment(node) for node in nodes),
        format_skips=sum(is_format_skip(comment) for comment in comments(source)),
        local_names=len(names),
        vague_names=sum(name in VAGUE_NAMES for name in names),
        functions=len(functions),
        complexity=sum(complexity(function) for function in functions),
        longest_function=max(map(length, functions), default=0),
    )


def count_path(path: Path) -> Counts:
    """Count a file, or all Python files in a folder."""
    files = [path] if path.is_file() else sorted(path.rglob("*.py"))
    if not files:
        raise SystemExit(f"{path} holds no Python files.")
    return sum((count_source(file.read_text(encoding="utf-8")) for file in files), Counts())


def code_lines(source: str, tree: ast.Module) -> int:
    """Return the number of lines with code, without docstrings, comments and blank lines."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in LAYOUT:
            lines.update(range(token.start[0], token.end[0] + 1))
    for docstring in docstrings(tree):
        lines.difference_update(range(docstring.lineno, (docstring.end_lineno or docstring.lineno) + 1))
    return len(lines)


def docstrings(tree: ast.Module) -> Iterator[ast.Expr]:
    """Yield the docstrings of a module, its classes and functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | Function) and ast.get_docstring(node) is not None:
            first = node.body[0]
            assert isinstance(first, ast.Expr)
            yield first


def comments(source: str) -> Iterator[str]:
    """Yield all comments."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


def is_format_skip(comment: str) -> bool:
    """Return whether a comment disables the formatter."""
    return re.match(r"#\s*fmt:\s*(skip|off)\b", comment) is not None


def is_unrelated_assignment(node: ast.AST) -> bool:
    """Return whether unrelated things are assigned at once, as in ``model, rate = make(), 0.1``.

    Swaps (``a, b = b, a``) and constants alone (``a, b = 0, 1``) are easy to read and do not count.
    """
    if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple)):
        return False
    target = node.targets[0]
    if not (isinstance(target, ast.Tuple | ast.List) and len(target.elts) == len(node.value.elts) > 1):
        return False
    values = [ast.dump(value) for value in node.value.elts]
    is_swap = sorted(map(ast.unparse, target.elts)) == sorted(map(ast.unparse, node.value.elts))
    only_constants = all(isinstance(value, ast.Constant) for value in node.value.elts)
    return len(set(values)) > 1 and not is_swap and not only_constants


def own_nodes(function: Function) -> Iterator[ast.AST]:
    """Yield the nodes of a function, without those of nested functions and classes."""
    waiting: list[ast.AST] = [function.args, *function.body]
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            waiting.extend(ast.iter_child_nodes(node))


def local_names(function: Function) -> set[str]:
    """Return the names that a function binds: its arguments and variables, including those of comprehensions."""
    names: set[str] = set()
    for node in own_nodes(function):
        if isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return names - {"self", "cls", "_"}


def complexity(function: Function) -> int:
    """Return the number of paths through a function: one, and one more for each branch."""
    inner = [node for statement in function.body for node in ast.walk(statement)]
    return 1 + sum(isinstance(node, BRANCHES) for node in inner)


def length(function: Function) -> int:
    """Return the lines of a function without its docstring."""
    whole = (function.end_lineno or function.lineno) - function.lineno + 1
    return whole - len((ast.get_docstring(function) or "").splitlines())


def ratio(part: float, whole: float) -> float:
    """Return a part's share of the whole, or 0 if the whole is 0."""
    return part / whole if whole else 0.0


FIGURES: dict[str, Callable[[Counts], str]] = {
    "lines of code": lambda counts: f"{counts.lines:,}",
    "syntax nodes in a line of code": lambda counts: f"{ratio(counts.nodes, counts.lines):.1f}",
    "conditional expressions in 100 lines": lambda counts: (
        f"{ratio(100 * counts.conditional_expressions, counts.lines):.1f}"
    ),
    "assignments of unrelated things at once, in 100 lines": lambda counts: (
        f"{ratio(100 * counts.unrelated_assignments, counts.lines):.1f}"
    ),
    "`fmt: skip`": lambda counts: str(counts.format_skips),
    "local names such as one, some, found": lambda counts: f"{ratio(counts.vague_names, counts.local_names):.1%}",
    "lines of the longest function": lambda counts: str(counts.longest_function),
    "mean complexity of a function": lambda counts: f"{ratio(counts.complexity, counts.functions):.1f}",
}


def table(paths: Iterable[Path]) -> str:
    """Return a table in Markdown: a row for each figure, a column for each path."""
    counted = {str(path): count_path(path) for path in paths}
    rows = [["", *counted], ["---"] * (len(counted) + 1)]
    rows += [[name, *(figure(counts) for counts in counted.values())] for name, figure in FIGURES.items()]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def main() -> None:
    parser = argparse.ArgumentParser(description="Count how densely code is written.")
    parser.add_argument("paths", nargs="*", type=Path, default=[SOURCES], help="files or folders to compare")
    print(table(parser.parse_args().paths))


if __name__ == "__main__":
    main()
