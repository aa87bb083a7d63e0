"""Estimators of scikit-learn in files: saved by skops, or pickled."""

from __future__ import annotations

import importlib.util
import pickle
from pathlib import Path
from typing import Any

from absentia.errors import wrong
from absentia.loading.python_objects import describe
from absentia.loading.trust import untrusted
from absentia.optional import require


def read_skops(path: Path, trust: bool) -> Any:
    """Read an estimator that skops saved; types that skops does not know to be safe need trust."""
    skops = require("skops.io", "skops")
    try:
        unknown = sorted(skops.get_untrusted_types(file=path))
    except Exception as error:
        raise wrong("model", "be a file that skops saved", f"{path}: {describe(error)}") from error
    if unknown and not trust:
        why = f"it makes objects that skops does not know to be safe, {', '.join(unknown)}"
        raise untrusted(path, "a file of skops", why, "Look at these names first.")
    try:
        return skops.load(path, trusted=unknown)
    except Exception as error:
        raise wrong("model", "be a file of skops that can be read", f"{path}: {describe(error)}") from error


def read_pickle(path: Path, trust: bool) -> Any:
    """Read what pickle or joblib wrote, which needs trust."""
    if not trust:
        why = "it can run any code when it is read"
        raise untrusted(path, "a pickle", why, "Better, save it by skops.io.dump(estimator, 'model.skops').")
    try:
        if importlib.util.find_spec("joblib") is not None:  # reads plain pickles too
            return require("joblib", "sklearn").load(path)
        with path.open("rb") as file:
            return pickle.load(file)
    except Exception as error:
        raise wrong("model", "be a pickle that can be read", f"{path}: {describe(error)}") from error
