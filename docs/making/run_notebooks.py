"""Run the notebooks of the documentation, and keep what they print and draw in them."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"


def run(path: Path) -> nbformat.NotebookNode:
    """Run a notebook in a folder of its own, and return it with its outputs, but without progress and times."""
    notebook = nbformat.read(path, as_version=4)
    with TemporaryDirectory() as folder:
        NotebookClient(notebook, timeout=600, resources={"metadata": {"path": folder}}).execute()
    notebook.metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    for cell in (cell for cell in notebook.cells if cell.cell_type == "code"):
        cell.metadata = {}
        cell.outputs = [one for one in cell.get("outputs", []) if one.get("name") != "stderr"]
    return notebook


if __name__ == "__main__":
    for given in [Path(name) for name in sys.argv[1:]] or sorted(NOTEBOOKS.glob("*.ipynb")):
        nbformat.write(run(given), given)
