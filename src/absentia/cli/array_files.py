"""Files of numpy arrays."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from absentia.cli.file_checks import reading
from absentia.cli.raw_data import RawData
from absentia.errors import wrong

ARRAYS = (".npz", ".npy")


def read_arrays(path: Path, argument: str, key: str | None, target: str | None) -> RawData:
    """Read arrays of samples and targets. Nothing in the file is unpickled."""
    then = "Arrays of Python objects, which can run code, are not read."
    with reading(argument, "be a file of numpy arrays", path, then), path.open("rb") as file:
        contents = np.load(file, allow_pickle=False)
        arrays: dict[str, np.ndarray] = dict(contents) if isinstance(contents, Mapping) else {"x": contents}
    name = key or _array_of_samples(arrays, target)
    required = {argument: name}
    if argument == "data" and target is not None:  # a background may lack targets
        required["target"] = target
    for option, array in required.items():
        if array not in arrays:
            then = "Name the array of samples as in file.npz:key, and that of targets with --target."
            raise wrong(option, f"name an array of {path.name}: {', '.join(arrays)}", array, then)
    inputs = arrays[name]
    classes = arrays.get(_array_of_targets(arrays, name, target))
    if inputs.ndim < 2 or inputs.size == 0 or inputs.dtype.kind not in "fiub":
        got = f"{inputs.dtype} of shape {inputs.shape} for {name!r}"
        raise wrong(argument, "hold samples, numbers of shape (samples, …)", got)
    if classes is not None and (classes.ndim != 1 or len(classes) != len(inputs)):
        raise wrong("target", f"hold one class for each of the {len(inputs)} samples", f"shape {classes.shape}")
    return RawData(inputs, classes)


def _array_of_samples(arrays: Mapping[str, np.ndarray], target: str | None) -> str:
    """Return the name of the array of samples: x, X, or the only one besides the targets; "none" if unclear."""
    for name in ("x", "X"):
        if name in arrays:
            return name
    others = [name for name in arrays if name not in (target, "y")]
    return others[0] if len(others) == 1 else "none"


def _array_of_targets(arrays: Mapping[str, np.ndarray], samples: str, target: str | None) -> str:
    """Return the name of the array of targets: the named one, or y; "" for none."""
    if target is not None and target in arrays:
        return target
    return "y" if samples != "y" else ""
