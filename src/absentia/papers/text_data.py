"""The paper's sentences: SST-2, film reviews and whether they praise, as rows of numbered words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Int, Int64
from torch import Tensor

from absentia.errors import wrong
from absentia.papers.data_files import DataFile, DataSet, locate

ABSENT, UNKNOWN = 0, 1  # the first numbers stand for no word, and for words that training sentences hardly hold
MIN_COUNT = 2  # a word met once in training teaches nothing that an unknown one would not
_SST2_ADDRESS = "https://dl.fbaipublicfiles.com/glue/data/SST-2.zip"

# The publishers state no checksum of the archive; the files within have been checked, and their checksums count.
SST2 = DataSet(
    name="sst2",
    files=(
        DataFile(
            path="SST-2/train.tsv",
            checksum="sha256:48eac26399f8456935f81dd9e3a745c1430adb6c62e233ccfe22db4a0d15d1d1",
            shape=(67349, 2),
            address=_SST2_ADDRESS,
        ),
        DataFile(
            path="SST-2/dev.tsv",
            checksum="sha256:54a9c12c77e402fc14d6a66a506f24d999f596b0176eb777c972cccc2f9cc4b0",
            shape=(872, 2),
            address=_SST2_ADDRESS,
        ),
    ),
    licence="none stated; the authors ask to cite the paper",
    citation="Socher, R., Perelygin, A., Wu, J., Chuang, J., Manning, C., Ng, A. and Potts, C. (2013). Recursive "
    "deep models for semantic compositionality over a sentiment treebank. EMNLP. https://nlp.stanford.edu/sentiment",
)


@dataclass(frozen=True, eq=False)
class TextData:
    """Sentences ready for a network: numbers of words, 0 after a sentence's end, all rows of one length.

    ``vocabulary[number]`` is the word; 0 is no word at all, 1 any word that the vocabulary lacks.
    """

    name: str
    vocabulary: tuple[str, ...]
    x_train: Int64[Tensor, "train tokens"]
    lengths_train: Int64[Tensor, " train"]
    y_train: Int64[Tensor, " train"]
    x_test: Int64[Tensor, "test tokens"]
    lengths_test: Int64[Tensor, " test"]
    y_test: Int64[Tensor, " test"]
    class_names: tuple[str, ...]

    def words(self, row: Int[Tensor, " tokens"]) -> tuple[str, ...]:
        """Give the words of a row, without the zeros after its end."""
        return tuple(self.vocabulary[number] for number in row[: int(sentence_lengths(row[None])[0])].tolist())


def sst2(source: DataSet = SST2, min_count: int = MIN_COUNT) -> TextData:
    """Load the film reviews: phrases to train on, whole sentences of the published dev part to test on.

    The published test part has no labels. Words are split at white space and in lower case, as published; a word
    belongs to the vocabulary if the training part holds it ``min_count`` times.
    """
    parts = [_read_tsv(path) for path in locate(source)]
    (train, y_train), (test, y_test) = ((sentences, labels) for sentences, labels in parts)
    vocabulary = make_vocabulary(train, min_count)
    length = max(len(sentence) for sentence in train + test)
    x_train, x_test = (encode(sentences, vocabulary, length) for sentences in (train, test))
    return TextData(
        name=source.name,
        vocabulary=vocabulary,
        x_train=x_train,
        lengths_train=torch.tensor([len(sentence) for sentence in train]),
        y_train=torch.tensor(y_train),
        x_test=x_test,
        lengths_test=torch.tensor([len(sentence) for sentence in test]),
        y_test=torch.tensor(y_test),
        class_names=("negative", "positive"),
    )


def split_words(sentence: str) -> list[str]:
    """Split a sentence at white space, in lower case.

    >>> split_words("It 's a charming journey . ")
    ['it', "'s", 'a', 'charming', 'journey', '.']
    """
    return sentence.lower().split()


def make_vocabulary(sentences: Sequence[Sequence[str]], min_count: int) -> tuple[str, ...]:
    """List the words that occur often enough, the most frequent first, after the two that stand for no such word.

    >>> make_vocabulary([["a", "film"], ["a", "bad", "film"], ["film"]], min_count=2)
    ('<absent>', '<unknown>', 'film', 'a')
    """
    counts = Counter(word for sentence in sentences for word in sentence)
    often = sorted((word for word in counts if counts[word] >= min_count), key=lambda word: (-counts[word], word))
    return ("<absent>", "<unknown>", *often)


def encode(
    sentences: Sequence[Sequence[str]], vocabulary: Sequence[str], length: int
) -> Int64[Tensor, "sentences tokens"]:
    """Give words their numbers, and fill sentences up with zeros to a length.

    >>> encode([["a", "good", "film"], ["film"]], ("<absent>", "<unknown>", "film", "a"), length=4)
    tensor([[3, 1, 2, 0],
            [2, 0, 0, 0]])
    """
    numbers = {word: number for number, word in enumerate(vocabulary)}
    longest = max((len(sentence) for sentence in sentences), default=0)
    if longest > length:
        raise wrong("length", f"be at least {longest}, the words of the longest sentence", length)
    rows = [
        [numbers.get(word, UNKNOWN) for word in sentence] + [ABSENT] * (length - len(sentence))
        for sentence in sentences
    ]
    return torch.tensor(rows, dtype=torch.int64).view(len(rows), length)


def sentence_lengths(tokens: Int[Tensor, "sentences tokens"]) -> Int64[Tensor, " sentences"]:
    """Tell where sentences end: after the last number that is not 0.

    >>> sentence_lengths(torch.tensor([[3, 0, 2, 0], [0, 0, 0, 0]]))
    tensor([3, 0])
    """
    places = torch.arange(1, tokens.shape[1] + 1, device=tokens.device)
    return ((tokens != ABSENT) * places).amax(1)


def _read_tsv(path: Path) -> tuple[list[list[str]], list[int]]:
    """Read lines of a sentence and a label, between which a tab stands; the first line names the columns."""
    sentences, labels = [], []
    for line in path.read_text(encoding="utf-8").split("\n")[1:]:
        if line:
            sentence, _, label = line.rpartition("\t")
            if label.strip() not in ("0", "1"):
                raise wrong(str(path), "hold lines of a sentence, a tab and a label 0 or 1", repr(line))
            sentences.append(split_words(sentence))
            labels.append(int(label))
    return sentences, labels
