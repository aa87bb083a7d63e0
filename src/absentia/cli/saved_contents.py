"""The contents of files that absentia saved."""

from pathlib import Path
from typing import Any

import absentia as ab
from absentia.storage import read_tensors


def describe_file(path: Path) -> tuple[dict[str, Any], str]:
    """Return the header of a saved file and the shapes of its tensors for JSON, and the result as text."""
    tensors, header = read_tensors(path)
    shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    lines = [_describe_result(path, header)]
    if "coding" in header:
        lines.append(f"Columns: {', '.join(header['coding']['columns'])}")
    lines.append("Tensors: " + ", ".join(f"{name} {shape}" for name, shape in shapes.items()))
    return {"file": path, "header": header, "tensors": shapes}, "\n".join(lines)


def _describe_result(path: Path, header: dict[str, Any]) -> str:
    """Describe the saved result, or why it is not loaded."""
    if "fingerprint" in header:
        return f"A search for a baseline in progress, {header['evaluations']:,} evaluations so far"
    network = header.get("fields", {}).get("network", {})
    has_own_network = header.get("own_network", network.get("own"))
    if has_own_network:  # which only the user can make again
        return "A surrogate with a network of the user"
    return repr(ab.load(path))
