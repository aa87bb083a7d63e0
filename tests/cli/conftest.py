"""A folder with a user's files, and the command line that runs in it."""

import sys

import pytest

from absentia.cli import main
from own_files import write_files


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run the command line in a user's folder: exit code, stdout, stderr."""
    monkeypatch.chdir(write_files(tmp_path))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "mymodule", raising=False)
    monkeypatch.setattr("absentia.learning.sweeps.MAX_SWEEPS", 1)  # a short search, by the command and here alike
    monkeypatch.setattr("absentia.learning.sweeps._CLOSE_RADII", (0.01,))

    def call(*words):
        with pytest.raises(SystemExit) as caught:
            main([str(word) for word in words])
        return caught.value.code, *capsys.readouterr()

    yield call
    sys.modules.pop("mymodule", None)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "mymodule", raising=False)
    yield write_files(tmp_path)
    sys.modules.pop("mymodule", None)
