"""Readouts from words."""

import pytest
import torch
from sklearn.svm import LinearSVC

import absentia as ab
from absentia import AbsentiaError
from absentia.cli.readout_words import load_readout
from absentia.models.adapters import as_model
from small_boosters import TWO, X, gb


def test_the_command_line_reads_scores():
    machine = as_model(LinearSVC().fit(X, TWO))
    assert type(load_readout(None, 1, machine)) is ab.Margin
    assert type(load_readout(None, 1, as_model(gb()))) is ab.LogOdds
    assert load_readout(None, torch.tensor([1]), machine) is None
    assert type(load_readout("score", 1)) is ab.Margin
    with pytest.raises(ab.AbsentiaError, match=r"Use readout=Margin\(y\) to explain") as refused:
        ab.explain(machine, X[:2], readout=ab.LogOdds(1), absence=0.0)
    assert "Use --readout score to explain" in refused.value.in_commands


def test_readouts_are_those_of_the_library():
    y = torch.tensor([1, 0])
    output = torch.tensor([[2.0, 0.5], [1.0, 3.0]])
    sample = torch.arange(2)
    for word, kind in (
        ("log-odds", ab.LogOdds),
        ("logit", ab.Logit),
        ("score", ab.Margin),
        ("probability", ab.Probability),
    ):
        torch.testing.assert_close(load_readout(word, y)(output, sample), kind(y)(output, sample))
        with pytest.raises(AbsentiaError, match="target must be given"):
            load_readout(word, None)
    assert load_readout("output", y) == ab.Output(0)
    assert load_readout("output:1", None) == ab.Output(1)
    assert load_readout("features:0", None) == ab.Features("0")
    assert load_readout(None, y) is None
    assert isinstance(load_readout(None, 1), ab.LogOdds)
    for word in ("probs", "output:x", "logit:2", "features"):
        with pytest.raises(AbsentiaError, match="readout must be log-odds"):
            load_readout(word, y)
