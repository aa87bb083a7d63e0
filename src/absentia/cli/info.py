"""absentia info: versions, devices and extras, or what a saved file holds."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from absentia.absence import Imputer, Surrogate
from absentia.cli.options import AsJson
from absentia.cli.output import print_json
from absentia.errors import AbsentiaError, wrong
from absentia.explanation import load
from absentia.saving import read_tensors
from absentia.version import __version__

# Which modules each extra brings; the names are those of pip install 'absentia[…]'.
EXTRAS: dict[str, tuple[str, ...]] = {
    "plot": ("matplotlib",),
    "tables": ("pandas",),
    "parquet": ("pandas", "pyarrow"),
    "images": ("PIL",),
    "onnx": ("onnxruntime",),
    "skops": ("skops",),
    "sklearn": ("sklearn", "pandas"),
    "shap": ("shap",),
    "captum": ("captum",),
    "shapiq": ("shapiq",),
    "papers": ("matplotlib", "sklearn", "pooch"),
}


def info(
    file: Annotated[Path | None, typer.Argument(help="A file that absentia saved.")] = None,
    as_json: AsJson = False,
) -> None:
    """Tell versions, devices, folders and extras; or, given a file that absentia saved, what it holds.

    Example: absentia info base.absentia
    """
    if file is None:
        facts = installation()
        print_json({"command": "info"} | facts) if as_json else typer.echo(_lines(facts))
        return
    header, tensors, text = _describe(file)
    if as_json:
        print_json({"command": "info", "file": file, "header": header, "tensors": tensors})
        return
    typer.echo(text)
    typer.echo("Tensors: " + ", ".join(f"{name} {tuple(shape)}" for name, shape in tensors.items()))


def installation() -> dict[str, Any]:
    """Gather what is installed and found here.

    >>> installation()["absentia"] == __version__
    True
    """
    missing = {extra: [name for name in names if not _found(name)] for extra, names in EXTRAS.items()}
    return {
        "absentia": __version__,
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "numpy": importlib.metadata.version("numpy"),
        "devices": _devices(),
        "threads": torch.get_num_threads(),
        "data": os.environ.get("ABSENTIA_DATA") or "downloaded into the cache (ABSENTIA_DATA names a folder)",
        "cache": _cache(),
        "extras": [extra for extra, names in missing.items() if not names],
        "missing": {extra: f"pip install 'absentia[{extra}]'" for extra, names in missing.items() if names},
    }


def _found(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def _devices() -> list[str]:
    cuda = [f"cuda:{number} ({torch.cuda.get_device_name(number)})" for number in range(torch.cuda.device_count())]
    return ["cpu", *cuda, *(["mps"] if torch.backends.mps.is_available() else [])]


def _cache() -> str:
    from absentia.papers.data_files import cache_folder

    try:
        return str(cache_folder())
    except AbsentiaError:  # the system's folder is told by a package of an extra
        return "the system's folder for caches (ABSENTIA_CACHE names another)"


def _lines(facts: dict[str, Any]) -> str:
    shown = {name: ", ".join(value) if isinstance(value, list) else value for name, value in facts.items()}
    lines = [f"{name:<10}{value}" for name, value in shown.items() if name != "missing"]
    lines += [f"{'missing':<10}{extra}: {command}" for extra, command in facts["missing"].items()]
    return "\n".join(lines)


def _describe(path: Path) -> tuple[dict[str, Any], dict[str, list[int]], str]:
    """Read a file: what its header says, the shapes of its tensors, and what the result says of itself."""
    if path.is_dir():
        raise wrong("file", "name a file", f"the folder {path}")
    try:
        tensors, header = read_tensors(path)
    except AbsentiaError:
        return _describe_network(path)
    readers: dict[str, Any] = {"imputer": Imputer.load, "surrogate": Surrogate.load}
    kind = header.get("kind", "baseline")
    if "fingerprint" in header:
        text = f"A search for a baseline under way, {header['evaluations']:,} evaluations so far"
    elif header.get("own_network"):
        text = "A surrogate with a network of the user's own"
    else:
        text = repr(readers.get(kind, load)(path))
    coding = header.get("coding")
    if coding is not None:
        text += f"\nColumns: {', '.join(coding['columns'])}"
    return header, {name: list(tensor.shape) for name, tensor in tensors.items()}, text


def _describe_network(path: Path) -> tuple[dict[str, Any], dict[str, list[int]], str]:
    """Describe a network that `absentia train` wrote, and refuse what is none of absentia's files."""
    from absentia.papers import saved_models

    try:
        network, header = saved_models.load(path)
    except AbsentiaError as error:
        if not path.is_file():
            raise wrong("file", "name a file that exists", path) from error
        raise wrong("file", "be one that absentia saved", path) from error
    facts: dict[str, Any] = vars(header)
    text = "\n".join(["A trained network", *(f"  {name:<18}{value}" for name, value in facts.items())])
    return facts, {name: list(tensor.shape) for name, tensor in network.state_dict().items()}, text
