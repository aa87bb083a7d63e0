"""Commands say on stderr what long work takes, and print results only to stdout."""

import json
import sys

import pytest

from command_words import DATA, MODEL, succeed


@pytest.fixture
def piped(monkeypatch):
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)


def test_seconds_are_passed_on(run, monkeypatch):
    given = []

    def stop(*_arguments, **settings):
        given.append(settings["seconds"])
        raise ZeroDivisionError

    monkeypatch.setattr("absentia.explain", stop)
    for words in ([], ["--seconds", "9"], ["--seconds", "inf"]):
        run("explain", *MODEL, *DATA, "--absence", "zero", *words)
    assert given == [None, 9.0, float("inf")]


def test_a_wrong_limit_gets_a_sentence(run):
    code, _out, err = run("explain", *MODEL, *DATA, "--absence", "zero", "--seconds", "-1")
    assert code == 2
    assert "seconds must be a positive number" in err


def test_piped_output_holds_nothing_but_the_result(run, piped, monkeypatch):
    monkeypatch.setattr("absentia.runtime.progress._SECONDS_BEFORE_LINES", 0.0)
    monkeypatch.setattr("absentia.runtime.progress._SECONDS_BETWEEN_LINES", 0.0)
    monkeypatch.setattr("absentia.budgets.LONG", 0.0)
    words = ["explain", *MODEL, *DATA, "--absence", "zero", "--samples", "4", "--batch-size", "2", "--json"]
    code, out, err = run(*words)
    assert code == 0
    printed = out.splitlines()[-1]
    assert json.loads(printed)["command"] == "explain"
    assert "evaluating coalitions" not in out
    assert "takes about" not in out
    assert "absentia: explaining takes about" in err
    assert "absentia: evaluating coalitions: 50 %, about" in err


def test_the_seconds_of_a_command_limit_what_is_evaluated(run):
    out = succeed(run("explain", *MODEL, *DATA, "--absence", "zero", "--seconds", 60))
    assert "8 evaluations" in out
    assert "exact" in out
