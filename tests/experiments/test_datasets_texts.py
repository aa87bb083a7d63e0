import pytest
import torch

from absentia import AbsentiaError
from experiments.datasets import SST2, encode, make_vocabulary, sentence_lengths, sst2
from published import publish, tsv

TRAIN = ["A film , a film", "a bad film", 'the " quoted', "bad"]


def test_sentences_become_rows_of_numbers_and_the_test_part_adds_no_words(data):
    loaded = sst2(publish(data, SST2, tsv(TRAIN, [1, 0, 1, 0]), tsv(["the bad novel", "a film of film"], [0, 1])))
    assert loaded.vocabulary == ("<absent>", "<unknown>", "a", "film", "bad")
    assert loaded.x_train.tolist() == [[2, 3, 1, 2, 3], [2, 4, 3, 0, 0], [1, 1, 1, 0, 0], [4, 0, 0, 0, 0]]
    assert loaded.x_test.tolist() == [[1, 4, 1, 0, 0], [2, 3, 1, 3, 0]]
    assert loaded.lengths_train.tolist() == [5, 3, 3, 1]
    assert loaded.lengths_test.tolist() == [3, 4]
    assert (loaded.y_train.tolist(), loaded.y_test.tolist()) == ([1, 0, 1, 0], [0, 1])
    assert loaded.class_names == ("negative", "positive")
    assert loaded.words(loaded.x_test[1]) == ("a", "film", "<unknown>", "film")
    assert loaded.x_train.dtype == torch.int64


def test_the_vocabulary_goes_by_count_then_by_name():
    sentences = [["b", "a", "c"], ["c", "a", "b"], ["c"]]
    assert make_vocabulary(sentences, min_count=1)[2:] == ("c", "a", "b")
    assert make_vocabulary(sentences, min_count=3)[2:] == ("c",)


def test_a_length_that_would_cut_a_sentence_is_refused():
    with pytest.raises(AbsentiaError, match=r"length must be at least 3, .*\. Got 2 instead\."):
        encode([["a"], ["a", "b", "c"]], ("", "", "a"), length=2)


def test_a_sentence_ends_after_its_last_word_whatever_is_absent_before():
    assert sentence_lengths(torch.tensor([[0, 5, 0, 7, 0], [0, 0, 0, 0, 0], [1, 1, 1, 1, 1]])).tolist() == [4, 0, 5]


@pytest.mark.parametrize("line", ["no label", "two\t2", "\t", "a film\tgood"])
def test_lines_of_another_form_are_refused(data, line):
    text = tsv(TRAIN, [1, 0, 1, 0])
    with pytest.raises(
        AbsentiaError, match=r"dev\.tsv must hold lines of a sentence, a tab and a label 0 or 1\. Got"
    ):
        sst2(publish(data, SST2, text, text + line + "\n"))


@pytest.mark.real_data
def test_the_real_reviews():
    loaded = sst2()
    assert [len(loaded.x_train), len(loaded.x_test)] == [file.shape[0] for file in SST2.files]
    assert torch.equal(sentence_lengths(loaded.x_train), loaded.lengths_train)
    assert " ".join(loaded.words(loaded.x_test[0])) == "it 's a charming and often affecting journey ."
    assert loaded.y_test.bincount().tolist() == [428, 444]
