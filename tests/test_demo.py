import io
import re
import sys

import pytest
import torch
from rich.console import Console

from absentia import AbsentiaError, demo
from absentia.demo import _clearest, digit_model, digits


@pytest.mark.slow
def test_the_demo_tells_the_story_and_ends_in_a_report(tmp_path):
    console = Console(record=True, width=120, file=io.StringIO())
    folder = demo.run(tmp_path / "new" / "folder", console=console, few=True)
    text = console.export_text()
    # Which absences leak or invent, which one to use, and how the answer changes.
    lines = re.findall(r"^  (\w+) +\d+ % +\d+ % +(\d\.\d) +(\d\.\d) +(.*?) *$", text, re.MULTILINE)
    marks = {name: mark for name, _, _, mark in lines}
    leaks = {name: float(leak) for name, leak, _, _ in lines}
    inventions = {name: float(invention) for name, _, invention, _ in lines}
    assert sorted(marks) == ["blur", "learned", "marginal", "mean", "median", "zero"]
    assert marks["blur"] == "leaks the digit"
    assert marks["marginal"] == "invents digits"
    assert re.fullmatch("invents an? [0-9]", marks["mean"])
    # Fixed and random values can't tell the digit. Averaging log-odds over draws is no invention.
    assert {name for name, leak in leaks.items() if leak > 0} == {"blur"}
    assert inventions["marginal"] < inventions["mean"] < 2.3
    used = re.search(r"^Use (\w+) \(in \d+ % of resamples\): ", text, re.MULTILINE)[1]
    assert marks[used] == "recommended"
    assert re.search(r"^The learned baseline: (Nothing better than|The learned values beat)", text, re.MULTILINE)
    answers = re.findall(r"^By (\w+) the ([a-z ]+) says most: why it is a \d rather than", text, re.MULTILINE)
    assert [name for name, _ in answers] == ["zero", "mean", used]
    assert len({part for _, part in answers}) > 1
    for name in ("explanation.png", "audit.png"):
        assert (folder / name).read_bytes().startswith(b"\x89PNG")
        assert (folder / name).stat().st_size > 20_000
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert (folder / "report.html").resolve().as_uri() in text.replace("\n", "")
    for heading in ("Absences: Audit of 6", "Learned values: Baseline", f"by {used}: Explanation of 1 sample"):
        assert heading in page
    assert len(page) < 1_000_000


def test_the_clearest_case_is_the_one_in_which_each_absence_has_its_own_part_first():
    values = torch.tensor(
        [[[2.0, 1.9], [3.0, 1.0], [5.0, 1.0]], [[1.0, 0.9], [2.0, 1.0], [0.1, 1.0]]]
    ).double()  # two absences, three images, two parts: they differ on the last image alone
    assert _clearest(values, values.argmax(2)) == 2


def test_the_model_is_a_real_one_and_reproducible():
    dataset = digits(seed=0)
    assert len(dataset.players) == 9
    assert not (dataset.players.labels == -1).any()
    assert float(dataset.x.max()) == 1
    model, again = (digit_model(dataset, seed=0, epochs=5) for _ in range(2))
    assert float((model(dataset.x_test).argmax(1) == dataset.y_test).double().mean()) > 0.8
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), again.parameters(), strict=True))


def test_without_scikit_learn_the_demo_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(AbsentiaError, match=r"pip install 'absentia\[demo\]'"):
        digits(seed=0)
