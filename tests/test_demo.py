import io
import subprocess
import sys

import pytest
import torch
from rich.console import Console
from typer.testing import CliRunner

from absentia import AbsentiaError, __version__, demo
from absentia.cli import app, main
from absentia.demo.tasks import accuracy, digit_model, digits, tumour_model, tumours
from absentia.learning import LearningOptions


def test_the_demo_tells_the_story_and_ends_in_a_report(tmp_path):
    console = Console(record=True, width=120, file=io.StringIO())
    options = LearningOptions(samples=8, steps=2, rows_per_comparison=2**10)
    effort = demo.Effort(options, audited=3, draws=1, explained=2)
    folder = demo.run(tmp_path / "new" / "folder", console=console, effort=effort)
    text = console.export_text()
    for part in ("Strongest interactions", "Shapley values", "Strength by order", "32,768", "size (worst)"):
        assert part in text
    for method in ("zero", "mean", "marginal", "gaussian", "neighbours", "blur", "learned"):
        assert f"\n  {method} " in text
    for name in ("explanation.png", "audit-tumours.png", "audit-digits.png"):
        assert (folder / name).read_bytes().startswith(b"\x89PNG")
        assert (folder / name).stat().st_size > 20_000
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert (folder / "report.html").resolve().as_uri() in text.replace("\n", "")
    for heading in (
        "Tumours: Audit of 7",
        "Tumours, learned: Baseline",
        "Digits, explained: Explanation of 2 samples",
    ):
        assert heading in page
    assert page.count("data:image/png") == 6  # two digits, their stand-ins, the baseline and the data's median
    assert len(page) < 1_000_000


def test_the_model_is_a_real_one_and_reproducible():
    task = tumours(seed=0)
    assert len(task.players) == 15
    assert not (task.players.labels == -1).any()
    model, again = (tumour_model(task, seed=0, epochs=60) for _ in range(2))
    assert accuracy(model, task) > 0.9
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), again.parameters(), strict=True))


def test_the_digits_are_read_by_a_network():
    task = digits(seed=0)
    assert len(task.players) == 12
    assert float(task.x.max()) == 1
    assert accuracy(digit_model(task, seed=0, epochs=5), task) > 0.8


def test_version_and_help():
    runner = CliRunner()
    assert runner.invoke(app, ["--version"]).output.strip() == f"absentia {__version__}"
    assert "demo" in runner.invoke(app, ["--help"]).output
    assert "Example" in runner.invoke(app, ["demo", "--help"]).output


def test_an_error_is_one_sentence_and_exit_code_2(monkeypatch, capsys):
    def fail(output, seed):
        raise AbsentiaError("x must be this. Got that instead.")

    monkeypatch.setattr(demo, "run", fail)
    monkeypatch.setattr(sys, "argv", ["absentia", "demo"])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 2
    assert capsys.readouterr().err == "absentia: x must be this. Got that instead.\n"


def test_without_scikit_learn_the_demo_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(AbsentiaError, match=r"pip install 'absentia\[demo\]'"):
        tumours(seed=0)


def test_without_matplotlib_drawing_says_what_to_install(monkeypatch):
    from absentia import ValueTable, harsanyi, plot_explanation, shapley

    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    table = ValueTable([0.0, 1.0])
    with pytest.raises(AbsentiaError, match=r"pip install 'absentia\[plot\]'"):
        plot_explanation(harsanyi(table), shapley(table))


def test_a_wrong_option_gives_exit_code_2():
    result = subprocess.run([sys.executable, "-m", "absentia", "demo", "--sed", "1"], capture_output=True, text=True)
    assert result.returncode == 2
    assert "Traceback" not in result.stderr
