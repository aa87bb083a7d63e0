"""Change the library in one place at a time, and count the changes that the tests notice.

    python benchmarks/mutants.py                                    # 100 mutants of each module
    python benchmarks/mutants.py coalitions.py --seed 2 --count 60  # another draw; --count 0 runs all mutants

The mutants are those of cosmic-ray. One process imports the library's dependencies, and is forked for each mutant.
The fork imports the mutated library and runs the tests of the module, fastest first, until one fails.
"""

from __future__ import annotations

import argparse
import ast
import gc
import importlib
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
COUNT = 100  # mutants of a module
SEED = 1  # tests were written in view of the mutants that seed 0 draws
# Modules to mutate, and the tests that should notice, in addition to the examples in the module itself.
MUTATED = {
    "coalitions.py": ("test_coalitions.py",),
    "terms.py": ("test_terms.py", "solvers/test_exact.py"),
    "listed_sets.py": ("test_terms.py", "plots/test_interaction_plots.py"),
    "subset_sums.py": ("test_interaction_indices.py", "test_terms.py"),
    "indices.py": ("test_indices.py", "test_attributions.py"),
    "interaction_indices.py": ("test_interaction_indices.py",),
    "trees/ensemble.py": ("trees/test_masked_trees.py", "trees/test_node_list.py", "trees/test_reading.py"),
    "trees/paths.py": ("trees/test_masked_trees.py",),
    "trees/joined_terms.py": ("trees/test_masked_trees.py",),
    "trees/masked_trees.py": ("trees/test_masked_trees.py",),
    "trees/node_list.py": ("trees/test_node_list.py",),
    "attributions.py": (
        "test_attributions.py",
        "test_indices.py",
        "solvers/test_contexts.py",
        "solvers/test_regression.py",
    ),
    "learning/penalties.py": (
        "learning/test_penalties.py",
        "learning/test_order_fit.py",
        "learning/test_paper_objective.py",
        "learning/test_close_calls.py",
    ),
}
WARM = (
    "beartype",
    "hypothesis",
    "jaxtyping",
    "jinja2",
    "numpy",
    "pandas",
    "pytest",
    "rich",
    "safetensors.torch",
    "torch",
    "torch.fx.experimental.symbolic_shapes",
    "tqdm",
)
# In CPU seconds. Slow tests are left out, so a mutant may survive that the whole suite would notice.
SLOW = 1.0
LEAST_LIMIT = 10  # of the tests of one mutant, in CPU seconds
MEMORY = 2**34  # bytes


@dataclass(frozen=True)
class Mutant:
    """A change at one place in a module."""

    operator: str
    occurrence: int
    start: tuple[int, int]  # line and column
    code: str  # the code of the whole module

    def __str__(self) -> str:
        line = self.code.splitlines()[self.start[0] - 1].strip()
        return f"line {self.start[0]}, {self.operator.split('/')[-1]}: {line}"


def dead_spans(source: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Return the places that are never evaluated: annotations, type names, and code for type checkers only."""
    dead: list[ast.expr | ast.stmt] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
            dead.append(node.annotation)
            if isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "TypeAlias" and node.value:
                dead.append(node.value)
        elif isinstance(node, ast.FunctionDef) and node.returns is not None:
            dead.append(node.returns)
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            dead.append(node)
    return [((one.lineno, one.col_offset), (one.end_lineno or 0, one.end_col_offset or 0)) for one in dead]


def find_mutants(source: str) -> list[tuple[str, int, tuple[int, int]]]:
    """Return the operator, occurrence and place of every mutant, in a fixed order."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.plugins import get_operator, operator_names

    tree = get_ast(source)
    dead = dead_spans(source)
    found = []
    for name in sorted(operator_names()):
        if get_operator(name).arguments():
            continue
        operator = get_operator(name)()
        places = (start for node in ast_nodes(tree) for start, _ in operator.mutation_positions(node))
        for occurrence, (line, column) in enumerate(places):
            # The columns of `ast` count bytes.
            place = line, len(source.splitlines()[line - 1][:column].encode())
            if not any(start <= place < end for start, end in dead):
                found.append((name, occurrence, (line, column)))
    return found


def draw_mutants(source: str, count: int, seed: int) -> tuple[list[Mutant], int]:
    """Draw mutants of a module, or all if ``count`` is 0; also return how many exist.

    Mutants that are not valid Python, such as a signature with // for *, are skipped.
    """
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    found = find_mutants(source)
    drawn: list[Mutant] = []
    for name, occurrence, start in random.Random(seed).sample(found, len(found)):
        code = mutate_code(source, get_operator(name)(), occurrence)
        if is_python(code):
            drawn.append(Mutant(name, occurrence, start, code))
        if len(drawn) == count:
            break
    return drawn, len(found)


def is_python(code: str) -> bool:
    """Return whether a module can be compiled."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        try:
            compile(code, "mutant", "exec")
        except SyntaxError:
            return False
    return True


class FastestFirst:
    """A pytest plugin that runs the fastest tests first, skips slow ones, and records how long tests take."""

    def __init__(self, seconds: dict[str, float]) -> None:
        self.known = dict(seconds)
        self.seconds: dict[str, float] = {}

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Sort the tests, without those that open a browser, which needs more memory than a mutant may use."""
        items[:] = [
            item
            for item in items
            if self.known.get(item.nodeid, 0.0) <= SLOW and "browser" not in getattr(item, "fixturenames", ())
        ]
        items.sort(key=lambda item: self.known.get(item.nodeid, 0.0))

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Begin to count."""
        self.seconds[nodeid] = -time.process_time()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Stop to count."""
        self.seconds[nodeid] += time.process_time()


def forked(run: Callable[[], int], limit: int) -> int:
    """Run a function in a fork and return its result, or a negative number if it takes too long or dies."""
    gc.freeze()  # forks must not collect what is already loaded
    child = os.fork()
    if not child:
        status = 70
        try:
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, 1)
            os.dup2(nothing, 2)
            status = run()
        finally:
            os._exit(status)
    end = time.monotonic() + 10 * limit  # for a fork that waits; one that computes reaches its CPU limit first
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return -signal.SIGKILL


class Project:
    """A copy of the library and its tests, in which one module is mutated."""

    def __init__(self, folder: Path, module: str) -> None:
        self.folder = folder
        self.path = folder / "src" / "absentia" / module
        for part in ("src", "tests", "experiments", "pyproject.toml", "conftest.py"):
            copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
            copy(ROOT / part, folder / part)
        self.source = self.path.read_text()
        self.tests = [*(f"tests/{one}" for one in MUTATED[module]), str(self.path.relative_to(folder))]
        self.seconds: dict[str, float] = {}
        if self._test(self.source, limit=600, first=True) != 0:
            raise SystemExit(f"the tests of {module} fail without a mutant")
        self.seconds = json.loads((folder / "seconds.json").read_text())
        self.limit = max(LEAST_LIMIT, round(4 * sum(one for one in self.seconds.values() if one <= SLOW)))
        for kept in self.path.parent.glob(f"__pycache__/{self.path.stem}.*"):
            kept.unlink()  # cached code could be mistaken for that of a mutant with the same size and time
        if self._test(self.source, self.limit) != 0:
            raise SystemExit(f"the tests of {module} fail without a mutant if they are run like those of one")

    def _test(self, code: str, limit: int, first: bool = False) -> int:
        self.path.write_text(code)

        def run() -> int:
            import pytest
            from hypothesis import Phase, settings

            # Failing examples need not be shrunk. The tests' own profile inherits what it does not set.
            settings.register_profile("short", phases=[Phase.explicit, Phase.generate])
            settings.load_profile("short")
            sys.dont_write_bytecode = not first
            sys.path[:0] = [str(self.folder / part) for part in ("src", "tests", "")]
            os.chdir(self.folder)
            plugin = FastestFirst(self.seconds)
            # Tensor shapes are checked in the mutated module only, because setting this up for all modules is slow.
            name = self.path.relative_to(self.folder / "src").with_suffix("").as_posix().replace("/", ".")
            checked = f"--jaxtyping-packages={name},typechecker.beartype"
            options = ["-o", f"addopts=--doctest-modules --strict-markers {checked}"]
            options += ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=no", "--show-capture=no"]
            options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # loaded modules were imported without it
            status = pytest.main([*options, *self.tests], [plugin])
            if first:
                import absentia

                assert Path(absentia.__file__).is_relative_to(self.folder)
                Path("seconds.json").write_text(json.dumps(plugin.seconds))
            return int(status)

        return forked(run, limit)

    def test(self, mutant: Mutant) -> int:
        """Run the tests on a mutant; return 0 if it survives, and a negative number if they hang or crash."""
        return self._test(mutant.code, self.limit)


def measure(module: str, count: int, seed: int) -> dict[str, int]:
    """Count the mutants of a module: all, drawn, noticed, and noticed because the tests hang."""
    start = time.monotonic()
    source = (ROOT / "src" / "absentia" / module).read_text()
    mutants, existing = draw_mutants(source, count, seed)
    with tempfile.TemporaryDirectory() as folder:
        project = Project(Path(folder), module)
        outcomes = []
        for one in sorted(mutants, key=lambda mutant: mutant.start):
            outcomes.append(project.test(one))
            if not outcomes[-1]:
                print(f"survived: {module}, {one}", flush=True)
    found = {"all": existing, "drawn": len(mutants), "noticed": sum(one != 0 for one in outcomes)}
    found |= {"endless": sum(one < 0 for one in outcomes), "seconds": round(time.monotonic() - start)}
    print(f"{module}, seed {seed}: {found}", flush=True)
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    help_modules = f"of {', '.join(MUTATED)}"
    parser.add_argument("modules", nargs="*", choices=[[], *MUTATED], metavar="MODULE", help=help_modules)
    parser.add_argument("--count", type=int, default=COUNT, help="mutants of each module; 0 for all of them")
    parser.add_argument("--seed", type=int, default=SEED, help="the seed for drawing mutants")
    parser.add_argument("--output", type=Path, help="a JSON file for the counts")
    arguments = parser.parse_args()
    # Loops run as plain Python, because compiling takes longer, and cached code would not see a mutant that it calls.
    os.environ["NUMBA_DISABLE_JIT"] = "1"
    for name in WARM:
        importlib.import_module(name)
    counts = {name: measure(name, arguments.count, arguments.seed) for name in arguments.modules or MUTATED}
    if arguments.output:
        arguments.output.write_text(json.dumps(counts, indent=2) + "\n")
