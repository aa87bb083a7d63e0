"""Optional packages: imported where they are used, and asked for by a sentence where they are missing."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

from absentia.errors import AbsentiaError


def require(package: str, extra: str | None = None) -> Any:
    """Import an optional package, or say how to install it.

    >>> require("no_such_package", extra="shap")
    Traceback (most recent call last):
    ...
    absentia.errors.AbsentiaError: no_such_package must be installed for this. Got an import error instead.
    Run pip install 'absentia[shap]'.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what a package says on import is about its own dependencies
            return importlib.import_module(package)
    except ImportError as error:
        raise AbsentiaError(
            f"{package.split('.')[0]} must be installed for this. Got an import error instead. "
            f"Run pip install 'absentia[{extra or package}]'."
        ) from error
