"""Models named as Python objects: package.module:object."""

import importlib
import inspect
import pkgutil
import sys
from contextlib import redirect_stdout, suppress
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

import torch
from torch import nn

from absentia.cli.file_checks import reading
from absentia.errors import AbsentiaError, wrong


def load_object(word: str, *, check_weights: bool) -> Any:
    """Import ``package.module:object``, and call it if it is a class or a function that needs no arguments."""
    module, _, name = word.partition(":")
    then = f"The working directory is {Path.cwd()}."
    if module.endswith(".py"):
        then = f"Write {Path(module).stem}:{name}, in the folder of the file."
    if not all(part.isidentifier() for part in (*module.split("."), *name.split("."))):
        raise wrong("model", "name a file that exists, or an object as package.module:object", repr(word), then)
    local_file = Path.cwd() / f"{module.partition('.')[0]}.py"
    _make_importable(local_file)
    hiding_file = _file_that_hides(local_file)
    if hiding_file is not None:
        then = f"The file {local_file.name} is not used, because {hiding_file} has the same name. Rename it."
    # What the module prints is not part of the command's output.
    with redirect_stdout(sys.stderr), reading("model", "name an object that can be imported or made", word, then):
        named_object = pkgutil.resolve_name(word)
        if not _makes_model(named_object):
            return named_object
        return _make_model(named_object, word, check_weights)


def _make_importable(local_file: Path) -> None:
    """Add the working directory to the search path if it holds the module or a package of its name."""
    working_directory = str(local_file.parent)
    is_here = local_file.is_file() or local_file.with_suffix("").is_dir()
    if not is_here or working_directory in sys.path:
        return
    # Import pandas first: the optional packages that it looks for must not be files of the working directory.
    with suppress(ImportError):
        importlib.import_module("pandas")
    # It stays there, because a model may import more when it runs. It comes last, so that no file hides a package.
    sys.path.append(working_directory)


def _file_that_hides(local_file: Path) -> str | None:
    """Return the file that is imported instead of a file of the working directory, if there is one."""
    if not local_file.is_file():
        return None
    spec = PathFinder.find_spec(local_file.stem)
    if spec is None or spec.origin == str(local_file):
        return None
    return str(spec.origin)


def _makes_model(named_object: Any) -> bool:
    """Return whether an object makes a model: a class, or a function that needs no arguments."""
    if isinstance(named_object, type):
        return True
    if isinstance(named_object, nn.Module) or not callable(named_object) or hasattr(named_object, "predict"):
        return False
    try:
        inspect.signature(named_object).bind()
    except (TypeError, ValueError):  # it needs arguments, or is written in C and has no signature
        return False
    return True


def _make_model(make: Any, word: str, check_weights: bool) -> Any:
    """Make a model, and raise an error if its weights are random, unless they need no check."""
    state_before = torch.get_rng_state()
    model = make()
    drew_numbers = not torch.equal(state_before, torch.get_rng_state())
    # Two networks have equal weights if these are loaded, or drawn from a fixed seed.
    if check_weights and drew_numbers and not _have_equal_weights(model, make()):
        then = "Pass --weights FILE, or --untrained to go on."
        raise AbsentiaError(f"The network that {word} makes has random weights. {then}")
    return model


def _have_equal_weights(model: Any, other: Any) -> bool:
    """Return whether two models have equal parameters; models that are not networks have none."""
    if not isinstance(model, nn.Module) or not isinstance(other, nn.Module):
        return True
    return all(map(torch.equal, model.parameters(), other.parameters()))
