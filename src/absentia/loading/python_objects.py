"""Models named as Python objects: ``package.module:object``, found from the working directory too."""

from __future__ import annotations

import importlib
import inspect
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from torch import nn

from absentia.errors import wrong


def load_object(word: str) -> Any:
    """Import ``package.module:object``; a class, or a function without arguments that are needed, is called.

    >>> load_object("collections:OrderedDict")
    OrderedDict()
    >>> load_object("math:sin").__name__
    'sin'
    """
    module, _, path = word.partition(":")
    names = path.split(".")
    if not all(part.isidentifier() for part in (*module.split("."), *names)):
        must = "name a file that exists, or an object as package.module:object"
        raise wrong("model", must, repr(word), _without_suffix(module, path))
    found = _import(module, path)
    for name in names:
        if not hasattr(found, name):
            public = [one for one in vars(found) if not one.startswith("_")] if hasattr(found, "__dict__") else []
            then = f"It has {', '.join(public[:8])}{', …' if len(public) > 8 else ''}." if public else ""
            raise wrong("model", f"name an object in {module}", repr(path), then)
        found = getattr(found, name)
    return _make(found, word)


def _without_suffix(module: str, path: str) -> str:
    """Tell a user who named a module by its file how to name it."""
    return f"Write {Path(module).stem}:{path}, in the file's folder." if module.endswith(".py") else ""


def _import(module: str, path: str) -> Any:
    # As `python -m` does; it stays there, for a model may import more when it is called.
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        with redirect_stdout(sys.stderr):  # what a module prints on import is no part of a command's output
            return importlib.import_module(module)
    except ModuleNotFoundError as error:
        then = _without_suffix(module, path) or f"The working directory is {Path.cwd()}."
        raise wrong("model", "name a module that can be imported", f"no module named {error.name!r}", then) from error
    except Exception as error:
        raise wrong("model", f"be in a module that imports without errors, {module}", describe(error)) from error


def _make(found: Any, word: str) -> Any:
    """Call what makes a model; leave alone what is one."""
    if not isinstance(found, type) and (isinstance(found, nn.Module) or not _needs_nothing(found)):
        return found
    try:
        with redirect_stdout(sys.stderr):
            return found()
    except Exception as error:
        raise wrong("model", f"be made by calling {word} without arguments", describe(error)) from error


def _needs_nothing(found: Any) -> bool:
    """Tell a function that makes a model from a model: it can be called without arguments."""
    if not callable(found) or hasattr(found, "predict"):
        return False
    try:
        parameters = inspect.signature(found).parameters.values()
    except (TypeError, ValueError):  # some that are written in C tell nothing
        return False
    starred = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return all(one.default is not inspect.Parameter.empty or one.kind in starred for one in parameters)


def describe(error: BaseException) -> str:
    r"""Put an exception of somebody else's code into one line.

    >>> describe(ValueError("first line\nsecond line"))
    'ValueError: first line'
    """
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:300]}" if lines else type(error).__name__
