"""Messages for commands are made where the error is raised: no words of a message are replaced afterwards."""

import pickle

import pytest
import torch

import absentia as ab
from absentia.auditing.subject import errors_about
from absentia.cli.exits import _sentence
from absentia.errors import AbsentiaError, wrong
from absentia.plots.look import looks_of
from absentia.text import fold

NAMED_LIKE_AN_ARGUMENT = "data must hold numbers. Got the column 'readout=Margin(y)' instead."


def test_names_of_users_in_a_message_are_left_alone():
    assert _sentence(AbsentiaError(NAMED_LIKE_AN_ARGUMENT)) == NAMED_LIKE_AN_ARGUMENT


def test_a_hint_names_an_argument_in_python_and_an_option_in_commands():
    error = wrong("model", "give logits", "scores", "Use readout=Margin(y).", "Use --readout score.")
    assert str(error) == "model must give logits. Got scores instead. Use readout=Margin(y)."
    assert _sentence(error) == "model must give logits. Got scores instead. Use --readout score."
    assert pickle.loads(pickle.dumps(error)).in_commands == error.in_commands


def test_a_message_about_something_keeps_both_wordings():
    with pytest.raises(AbsentiaError, match="blur: one") as refused, errors_about("blur"):
        raise AbsentiaError("one", in_commands="other")
    assert refused.value.in_commands == "blur: other"


def test_infinite_log_odds_name_the_option():
    def certain(rows):
        return torch.where(rows.sum(1) > 1, torch.inf, 0.0)

    with pytest.raises(AbsentiaError, match=r"use readout=Probability\(y\) to explain these") as refused:
        ab.explain(certain, torch.ones(1, 2), absence=0.0)
    assert "use --readout probability to explain these" in refused.value.in_commands


def test_a_word_that_merely_begins_like_neighbours_is_not_taken_for_it():
    x = torch.rand(8, 2, generator=torch.Generator().manual_seed(0))
    with pytest.raises(AbsentiaError, match="Each sample would be its own nearest row"):
        ab.audit(lambda rows: rows.prod(1), x, absences=["neighbours:3"])
    with pytest.raises(AbsentiaError, match="must be an absence, a number, or one of"):
        ab.audit(lambda rows: rows.prod(1), x, absences=["neighboursome"])


def test_a_name_with_two_spaces_does_not_make_a_sentence_a_row_of_a_table():
    sentence = "Use “my  own” here, because " + "it is good and " * 12
    assert len(fold(sentence).splitlines()) == 2


def test_two_of_a_kind_that_users_name_after_a_word_share_its_look():
    plain, wide = looks_of(["blur", "blur: wide"])
    assert plain == wide
