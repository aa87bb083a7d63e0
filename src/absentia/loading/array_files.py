"""Arrays: npz files with an array of samples and one of targets, and npy files of samples alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from absentia.errors import wrong
from absentia.loading.python_objects import describe


def read_arrays(
    path: Path, argument: str, key: str | None, target: str | None, needs_target: bool
) -> tuple[np.ndarray, np.ndarray | None]:
    """Read samples and targets; nothing in the file is ever unpickled."""
    arrays = _read(path, argument)
    name = _inputs_key(arrays, argument, key, target)
    inputs, found = arrays[name], None
    if target is None and "y" in arrays and name != "y":
        target = "y"
    if target is not None and (needs_target or target in arrays):
        if target not in arrays:
            raise wrong("target", f"name an array of {path.name}: {', '.join(arrays)}", repr(target))
        found = arrays[target]
    if inputs.ndim < 2 or inputs.size == 0:
        raise wrong(argument, "hold samples, of shape (samples, …)", f"shape {inputs.shape} for {name!r}")
    if inputs.dtype.kind not in "fiub":
        raise wrong(argument, "hold numbers", f"{inputs.dtype} for {name!r}")
    if found is not None and (found.ndim != 1 or len(found) != len(inputs)):
        raise wrong("target", f"hold one class for each of the {len(inputs)} samples", f"shape {found.shape}")
    return inputs, found


def _read(path: Path, argument: str) -> dict[str, np.ndarray]:
    try:
        found = np.load(path, allow_pickle=False)
        if isinstance(found, np.ndarray):
            return {"x": found}
        with found:
            return {name: found[name] for name in found.files}
    except ValueError as error:
        if "Object arrays" in str(error):
            then = "Save arrays of numbers or of text, such as array.astype(str)."
            got = "Python objects, which could run code when they are read"
            raise wrong(argument, f"hold no Python objects, {path.name}", got, then) from error
        raise wrong(argument, f"be a file of numpy's, {path}", describe(error)) from error
    except Exception as error:
        raise wrong(argument, f"be a file of numpy's, {path}", describe(error)) from error


def _inputs_key(arrays: dict[str, np.ndarray], argument: str, key: str | None, target: str | None) -> str:
    """Tell which array holds the samples: the one that is named, else x, else the only one."""
    others = [name for name in arrays if name not in (target, "y")]
    for name in [key] if key is not None else ["x", "X", *(others if len(others) == 1 else [])]:
        if name in arrays:
            return name
    got = f"no array {key!r}" if key is not None else f"the arrays {', '.join(arrays) or 'none'}"
    then = f"It has {', '.join(arrays)}." if key is not None else "Name the samples' by file.npz:key."
    raise wrong(argument, "have an array of samples", got, then)
