"""Columns that hold categories."""

import pytest
import torch
from torch import nn

import absentia as ab
from absentia import AbsentiaError
from absentia.data import column_groups


def test_categories_that_share_a_column_are_refused():
    data = torch.rand(32, 3).round()
    for make in (
        lambda: ab.Baseline.median(data, categorical=[[0, 1], [1, 2]]),
        lambda: ab.learn_baseline(lambda rows: rows.sum(1), data, categorical=[[0, 1], [1, 2]]),
        lambda: ab.audit(lambda rows: rows.sum(1), data, absences={"zero": ab.Baseline(0.0)}, categorical=[1, 1]),
    ):
        with pytest.raises(
            AbsentiaError, match=r"categorical must name each column once. Got column 1 twice instead"
        ):
            make()


def test_numbers_that_are_not_whole_are_not_rounded_without_a_word():
    embedding = nn.Embedding(5, 2)
    tokens = torch.tensor([[1, 2]])
    players = ab.Players.tokens(2)

    def model(rows):
        return embedding(rows).sum((1, 2))

    for run, sentence in (
        (lambda: column_groups([0.5], 3), "categorical must name columns from 0 to 2. Got 0.5"),
        (
            lambda: ab.explain(model, tokens, players=players, absence=ab.Noise(low=0.5, high=2.5)),
            "low and high must hold whole numbers for integer inputs. Got 0.5",
        ),
    ):
        with pytest.raises(AbsentiaError, match=sentence):
            run()
