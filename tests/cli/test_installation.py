"""What info tells about the installation."""

import importlib.util
import json
from pathlib import Path

import absentia as ab
from absentia.cli.installation import EXTRAS
from command_words import succeed

ROOT = Path(__file__).parents[2]


def test_info_describes_the_installation(run, monkeypatch):
    find_spec = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "shap" else find_spec(name))
    printed = json.loads(succeed(run("info", "--json")))
    assert printed["absentia"] == ab.__version__
    assert printed["missing"]["shap"] == "pip install 'absentia[shap]'"
    assert "plot" in printed["extras"]
    assert "pip install 'absentia[shap]'" in succeed(run("info"))


def test_info_names_the_extras_of_the_package():
    text = (ROOT / "pyproject.toml").read_text()
    for extra in EXTRAS:
        assert f"\n{extra} = [" in text, extra
