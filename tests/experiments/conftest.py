"""What the tests of the experiments share: folders for data, and real data where they are present."""

import os

import pytest


@pytest.fixture
def data(tmp_path, monkeypatch):
    """An ABSENTIA_DATA folder, beside an empty cache."""
    monkeypatch.setenv("ABSENTIA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("ABSENTIA_DATA", str(tmp_path / "data"))
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


def pytest_configure(config):
    config.addinivalue_line("markers", "real_data: needs the real data, in the folder that ABSENTIA_DATA names")


def pytest_collection_modifyitems(items):
    if not os.environ.get("ABSENTIA_DATA"):
        for item in items:
            if item.get_closest_marker("real_data"):
                item.add_marker(pytest.mark.skip(reason="ABSENTIA_DATA names no folder with the real data"))
