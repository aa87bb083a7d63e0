"""The data sets of the paper: where each one comes from, and how it is loaded.

Tables are standardised. Images keep pixels between 0 and 1: a network normalises them itself, so that absences act on
what a picture shows. Sentences become rows of word numbers.
"""

from __future__ import annotations

import gzip
import math
import struct
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from jaxtyping import Float32, Float64, Int, Int64, UInt8
from torch import Tensor

from absentia import AbsentiaError
from experiments.downloads import DataFile, DataSet, locate

CENSUS = DataSet(
    name="census",
    files=(
        DataFile(
            path="adult/adult.data",
            checksum="sha256:5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
            shape=(32561, 15),
            address="https://archive.ics.uci.edu/ml/machine-learning-databases/adult/adult.data",
        ),
        DataFile(
            path="adult/adult.test",
            checksum="sha256:a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
            shape=(16281, 15),
            address="https://archive.ics.uci.edu/ml/machine-learning-databases/adult/adult.test",
        ),
    ),
    licence="CC BY 4.0",
    citation="Becker, B. and Kohavi, R. (1996). Adult (Census Income). UCI Machine Learning Repository, id 2. "
    "https://doi.org/10.24432/C5XW20",
)

CREDIT = DataSet(
    name="credit",
    files=(
        DataFile(
            path="south_german_credit/SouthGermanCredit.asc",
            checksum="sha256:5f363343f356ca38a0236baab849e472846399b2176ccc5bd686483dd8a7562f",
            shape=(1000, 21),
            address="https://archive.ics.uci.edu/static/public/573/south+german+credit+update.zip",
        ),
    ),
    licence="CC BY 4.0",
    citation="Grömping, U. (2020). South German Credit (UPDATE). UCI Machine Learning Repository, id 573. "
    "https://doi.org/10.24432/C5QG88",
)

CHANNELS = ("BBC", "CNN", "CNNIBN", "NDTV", "TIMESNOW")
TV_NEWS = DataSet(
    name="tv-news",
    files=tuple(
        DataFile(
            path=f"tv_news/{channel}.txt",
            checksum="",
            shape=(),
            by_hand="it is in the archive of the UCI repository's data set 326",
        )
        for channel in CHANNELS
    ),
    licence="CC BY 4.0",
    citation="Guha, P., Vyas, A. and Prasanth, K. (2015). TV News Channel Commercial Detection. UCI Machine Learning "
    "Repository, id 326.",
)
# The first columns of the files; means of audio features, without their deviations and the words of bags after them.
TV_COLUMNS = {
    1: "shot length",
    2: "motion",
    4: "frame difference",
    6: "short-time energy",
    8: "zero crossings",
    10: "spectral centroid",
    12: "spectral roll-off",
    14: "spectral flux",
    16: "fundamental frequency",
}

# The columns of adult.data, in order. `education-num` codes the words in `education`, and `fnlwgt` weights rows for
# population totals. Without these two, 12 players are left, as in the paper.
ADULT_COLUMNS = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
)
ADULT_DROPPED = ("fnlwgt", "education")
ADULT_NUMBERS = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
ADULT_CLASSES = ("<=50K", ">50K")

# The columns of SouthGermanCredit.asc under the English names of its code table.
CREDIT_COLUMNS = (
    "status",
    "duration",
    "credit_history",
    "purpose",
    "amount",
    "savings",
    "employment_duration",
    "installment_rate",
    "personal_status_sex",
    "other_debtors",
    "present_residence",
    "property",
    "age",
    "other_installment_plans",
    "housing",
    "number_credits",
    "job",
    "people_liable",
    "telephone",
    "foreign_worker",
)
CREDIT_NUMBERS = ("duration", "amount", "age")  # the code table lists levels for all other columns
CREDIT_CLASSES = ("bad", "good")


@dataclass(frozen=True, eq=False)
class TabularData:
    """A table ready for a model: columns of mean 0 and standard deviation 1 over the training rows.

    ``x * std + mean`` restores the raw columns. A raw categorical column holds the codes of its categories.
    """

    name: str
    feature_names: tuple[str, ...]
    x_train: Float32[Tensor, "train features"]
    y_train: Int64[Tensor, " train"]
    x_test: Float32[Tensor, "test features"]
    y_test: Int64[Tensor, " test"]
    categorical: tuple[int, ...]
    class_names: tuple[str, ...]
    mean: Float32[Tensor, " features"]
    std: Float32[Tensor, " features"]


def census(source: DataSet = CENSUS) -> TabularData:
    """Load the census data: does a person earn more than 50,000 dollars a year? 12 columns, split as published.

    Categories are numbered in sorted order. A missing one, written ``?``, is its own category.
    """
    train, test = (_adult_rows(path) for path in locate(source))
    kept = tuple(name for name in ADULT_COLUMNS if name not in ADULT_DROPPED)
    labels = torch.tensor([ADULT_CLASSES.index(row[-1]) for row in train + test])
    columns = []
    for name in kept:
        position = ADULT_COLUMNS.index(name)
        column = [row[position] for row in train + test]
        columns.append([float(value) for value in column] if name in ADULT_NUMBERS else _codes(column))
    raw = torch.tensor(columns, dtype=torch.float64).T
    rows = torch.arange(len(raw))
    split = rows[: len(train)], rows[len(train) :]
    categorical = tuple(i for i, name in enumerate(kept) if name not in ADULT_NUMBERS)
    return _standardised(source.name, kept, categorical, ADULT_CLASSES, raw, labels, split)


def credit(source: DataSet = CREDIT, seed: int = 0) -> TabularData:
    """Load the credit data: did a debtor comply with the contract? 20 columns; a fifth of each class is test data.

    Categories keep the codes of the published code table.
    """
    lines = locate(source)[0].read_text(encoding="utf-8").splitlines()[1:]
    table = torch.tensor([[float(value) for value in line.split()] for line in lines], dtype=torch.float64)
    raw = table[:, :-1]
    labels = table[:, -1].long()
    categorical = tuple(i for i, name in enumerate(CREDIT_COLUMNS) if name not in CREDIT_NUMBERS)
    split = stratified_split(labels, share=0.2, seed=seed)
    return _standardised(source.name, CREDIT_COLUMNS, categorical, CREDIT_CLASSES, raw, labels, split)


def tv_news(source: DataSet = TV_NEWS, seed: int = 0) -> TabularData:
    """Load the shots of TV news: is one a commercial? Nine columns; a fifth of each class is test data."""
    rows = []
    labels = []
    for path in locate(source):
        for line in path.read_text(encoding="utf-8").splitlines():
            label, *entries = line.split()
            values = dict(entry.split(":", 1) for entry in entries)
            rows.append([float(values.get(str(column), 0.0)) for column in TV_COLUMNS])
            labels.append(int(float(label) > 0))
    targets = torch.tensor(labels)
    raw = torch.tensor(rows, dtype=torch.float64)
    split = stratified_split(targets, share=0.2, seed=seed)
    return _standardised(source.name, tuple(TV_COLUMNS.values()), (), ("news", "commercial"), raw, targets, split)


def stratified_split(
    labels: Int64[Tensor, " rows"], share: float, seed: int
) -> tuple[Int64[Tensor, " kept"], Int64[Tensor, " held_out"]]:
    """Draw the numbers of rows to keep and to hold out, a share of each class, both in random order.

    >>> kept, held_out = stratified_split(torch.tensor([1] * 10 + [0] * 5), share=0.2, seed=0)
    >>> len(kept), len(held_out)
    (12, 3)
    """
    # In random order, because published files may be sorted by class.
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))
    held_out = torch.zeros(len(labels), dtype=torch.bool)
    for label in labels.unique():
        members = torch.nonzero(labels[order] == label)[:, 0]
        held_out[members[: round(share * len(members))]] = True
    return order[~held_out], order[held_out]


def _adult_rows(path: Path) -> list[list[str]]:
    """Split a census file into fields; the test file starts with a remark and ends each label with a full stop."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [
        [field.strip() for field in line.removesuffix(".").split(",")]
        for line in lines
        if line.strip() and not line.startswith("|")
    ]


def _codes(column: Sequence[str]) -> list[float]:
    code = {category: float(number) for number, category in enumerate(sorted(set(column)))}
    return [code[category] for category in column]


def _standardised(
    name: str,
    feature_names: tuple[str, ...],
    categorical: tuple[int, ...],
    class_names: tuple[str, ...],
    raw: Float64[Tensor, "rows features"],
    labels: Int64[Tensor, " rows"],
    split: tuple[Int64[Tensor, " train"], Int64[Tensor, " test"]],
) -> TabularData:
    """Standardise by the training rows only, so that nothing of the test rows reaches the model."""
    train, test = split
    mean = raw[train].mean(0)
    std = raw[train].std(0, correction=0)
    std = torch.where(std > 0, std, 1.0)  # a constant column becomes 0, not NaN
    x = ((raw - mean) / std).float()
    return TabularData(
        name=name,
        feature_names=feature_names,
        x_train=x[train],
        y_train=labels[train],
        x_test=x[test],
        y_test=labels[test],
        categorical=categorical,
        class_names=class_names,
        mean=mean.float(),
        std=std.float(),
    )


_MNIST_ADDRESS = "https://storage.googleapis.com/cvdf-datasets/mnist"
_CIFAR_ADDRESS = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
_CIFAR_ARCHIVE = "md5:c32a1d4ab5d03f1284b67883e8d87530"  # as the authors' page states it
_CIFAR_SHAPE = (3, 32, 32)


def _mnist_file(name: str, shape: tuple[int, ...], checksum: str) -> DataFile:
    return DataFile(f"mnist/{name}.gz", f"sha256:{checksum}", shape, f"{_MNIST_ADDRESS}/{name}.gz")


def _cifar_file(name: str, shape: tuple[int, ...], checksum: str) -> DataFile:
    path = f"cifar-10-batches-bin/{name}"
    return DataFile(path, f"sha256:{checksum}", shape, _CIFAR_ADDRESS, archive_checksum=_CIFAR_ARCHIVE)


# The authors' own address no longer serves the files. This mirror has files with the published checksums.
MNIST = DataSet(
    name="mnist",
    files=tuple(
        _mnist_file(name, shape, checksum)
        for name, shape, checksum in (
            (
                "train-images-idx3-ubyte",
                (60000, 28, 28),
                "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
            ),
            ("train-labels-idx1-ubyte", (60000,), "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"),
            (
                "t10k-images-idx3-ubyte",
                (10000, 28, 28),
                "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
            ),
            ("t10k-labels-idx1-ubyte", (10000,), "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"),
        )
    ),
    licence="CC BY-SA 3.0",
    citation="LeCun, Y., Bottou, L., Bengio, Y. and Haffner, P. (1998). Gradient-based learning applied to document "
    "recognition. Proceedings of the IEEE 86(11). http://yann.lecun.com/exdb/mnist",
)

CIFAR10 = DataSet(
    name="cifar10",
    files=tuple(
        _cifar_file(name, shape, checksum)
        for name, shape, checksum in (
            ("batches.meta.txt", (10,), "558e74b5e208382e186da55784b4bac2cd52e558448e1b5800990fdb28ed8033"),
            ("data_batch_1.bin", (10000, 3073), "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5"),
            ("data_batch_2.bin", (10000, 3073), "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed"),
            ("data_batch_3.bin", (10000, 3073), "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67"),
            ("data_batch_4.bin", (10000, 3073), "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48"),
            ("data_batch_5.bin", (10000, 3073), "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add"),
            ("test_batch.bin", (10000, 3073), "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b"),
        )
    ),
    licence="none stated; the authors ask to cite the report",
    citation="Krizhevsky, A. (2009). Learning multiple layers of features from tiny images. Technical report, "
    "University of Toronto. https://www.cs.toronto.edu/~kriz/cifar.html",
)


@dataclass(frozen=True, eq=False)
class ImageData:
    """Images ready for a network: pixels between 0 and 1, split as published."""

    name: str
    x_train: Float32[Tensor, "train channels height width"]
    y_train: Int64[Tensor, " train"]
    x_test: Float32[Tensor, "test channels height width"]
    y_test: Int64[Tensor, " test"]
    class_names: tuple[str, ...]


def mnist(source: DataSet = MNIST) -> ImageData:
    """Load the handwritten digits: 28 × 28 pixels, one channel; 60,000 for training and 10,000 for testing."""
    train_images, train_labels, test_images, test_labels = (_read_idx(path) for path in locate(source))
    return ImageData(
        name=source.name,
        x_train=_pixels(train_images[:, None]),
        y_train=train_labels.long(),
        x_test=_pixels(test_images[:, None]),
        y_test=test_labels.long(),
        class_names=tuple("0123456789"),
    )


def cifar10(source: DataSet = CIFAR10) -> ImageData:
    """Load photographs of ten classes: 32 × 32 pixels, three channels; 50,000 for training and 10,000 for testing."""
    names, *train, test = locate(source)
    batches = [_read_cifar(path) for path in train]
    test_images, test_labels = _read_cifar(test)
    return ImageData(
        name=source.name,
        x_train=_pixels(torch.cat([images for images, _ in batches])),
        y_train=torch.cat([labels for _, labels in batches]),
        x_test=_pixels(test_images),
        y_test=test_labels,
        class_names=tuple(names.read_text(encoding="utf-8").split()),
    )


def _pixels(
    images: UInt8[Tensor, "images channels height width"],
) -> Float32[Tensor, "images channels height width"]:
    return images.float().div_(255)


def _read_idx(path: Path) -> UInt8[Tensor, "..."]:
    """Read bytes in the idx format: two zeros, a type, the number of axes, their lengths, the entries."""
    content = gzip.decompress(path.read_bytes())
    axes = content[3] if len(content) > 3 and content[:3] == b"\x00\x00\x08" else 0
    begin = 4 + 4 * axes
    shape = struct.unpack(f">{axes}I", content[4:begin]) if axes and len(content) >= begin else ()
    if not shape or len(content) - begin != math.prod(shape):
        raise AbsentiaError(
            f"{path} must be a file of bytes in the idx format. Got other or shortened content instead."
        )
    return _as_bytes(content[begin:]).view(shape)


def _read_cifar(
    path: Path,
) -> tuple[UInt8[Tensor, "images channels height width"], Int64[Tensor, " images"]]:
    """Read a binary file of CIFAR-10: for each image its label, then its red, green and blue pixels."""
    content = path.read_bytes()
    record = 1 + math.prod(_CIFAR_SHAPE)
    if not content or len(content) % record:
        raise AbsentiaError(f"{path} must hold images of {record} bytes each. Got {len(content)} bytes instead.")
    rows = _as_bytes(content).view(-1, record)
    return rows[:, 1:].reshape(-1, *_CIFAR_SHAPE), rows[:, 0].long()


def _as_bytes(content: bytes) -> UInt8[Tensor, " bytes"]:
    return torch.from_numpy(np.frombuffer(content, dtype=np.uint8).copy())  # torch needs writable memory


ABSENT = 0  # the number for no word
UNKNOWN = 1  # the number for words that are not in the vocabulary
MIN_COUNT = 2  # rarer words are unknown
_SST2_ADDRESS = "https://dl.fbaipublicfiles.com/glue/data/SST-2.zip"

# The publishers state no checksum of the archive, so the checksums of its files are compared.
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

    ``vocabulary[number]`` is the word. 0 is no word; 1 is any word that is not in the vocabulary.
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
        """Return the words of a row, without the zeros after its end."""
        return tuple(self.vocabulary[number] for number in row[: int(sentence_lengths(row[None])[0])].tolist())


def sst2(source: DataSet = SST2, min_count: int = MIN_COUNT) -> TextData:
    """Load the film reviews: phrases for training, the sentences of the published dev part for testing.

    The published test part has no labels. Words are split at white space and set in lower case. A word is in the
    vocabulary if the training part contains it at least ``min_count`` times.
    """
    parts = [_read_tsv(path) for path in locate(source)]
    (train, y_train), (test, y_test) = ((sentences, labels) for sentences, labels in parts)
    vocabulary = make_vocabulary(train, min_count)
    length = max(len(sentence) for sentence in train + test)
    x_train = encode(train, vocabulary, length)
    x_test = encode(test, vocabulary, length)
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
    """List the frequent words, the most frequent first, after the entries for absent and unknown words.

    >>> make_vocabulary([["a", "film"], ["a", "bad", "film"], ["film"]], min_count=2)
    ('<absent>', '<unknown>', 'film', 'a')
    """
    counts = Counter(word for sentence in sentences for word in sentence)
    often = sorted((word for word in counts if counts[word] >= min_count), key=lambda word: (-counts[word], word))
    return ("<absent>", "<unknown>", *often)


def encode(
    sentences: Sequence[Sequence[str]], vocabulary: Sequence[str], length: int
) -> Int64[Tensor, "sentences tokens"]:
    """Replace words by their numbers, and pad sentences with zeros to a length.

    >>> encode([["a", "good", "film"], ["film"]], ("<absent>", "<unknown>", "film", "a"), length=4)
    tensor([[3, 1, 2, 0],
            [2, 0, 0, 0]])
    """
    numbers = {word: number for number, word in enumerate(vocabulary)}
    longest = max((len(sentence) for sentence in sentences), default=0)
    if longest > length:
        raise AbsentiaError(
            f"length must be at least {longest}, the words of the longest sentence. Got {length} instead."
        )
    rows = [
        [numbers.get(word, UNKNOWN) for word in sentence] + [ABSENT] * (length - len(sentence))
        for sentence in sentences
    ]
    return torch.tensor(rows, dtype=torch.int64).view(len(rows), length)


def sentence_lengths(tokens: Int[Tensor, "sentences tokens"]) -> Int64[Tensor, " sentences"]:
    """Return where sentences end: after the last number that is not 0.

    >>> sentence_lengths(torch.tensor([[3, 0, 2, 0], [0, 0, 0, 0]]))
    tensor([3, 0])
    """
    places = torch.arange(1, tokens.shape[1] + 1, device=tokens.device)
    return ((tokens != ABSENT) * places).amax(1)


def _read_tsv(path: Path) -> tuple[list[list[str]], list[int]]:
    """Read lines of a sentence, a tab and a label; the first line names the columns."""
    sentences = []
    labels = []
    for line in path.read_text(encoding="utf-8").split("\n")[1:]:
        if line:
            sentence, _, label = line.rpartition("\t")
            if label.strip() not in ("0", "1"):
                must = f"{path} must hold lines of a sentence, a tab and a label 0 or 1"
                raise AbsentiaError(f"{must}. Got {line!r} instead.")
            sentences.append(split_words(sentence))
            labels.append(int(label))
    return sentences, labels


FUNCTIONS = DataSet(
    name="functions",
    files=(
        DataFile(
            path="synthetic_functions/functions.txt",
            checksum="sha256:4ffe086dca09bd038ae6c57da53d7e87399cfc99792d640415976d6c9428ab9a",
            shape=(100, 1),
            by_hand="the authors release the functions as a spreadsheet, models/synthetic_functions.xlsx of "
            "https://github.com/zzp1012/faithful-baseline-value: write them to this file, one per line",
        ),
    ),
    licence="MIT",
    citation="Ren, J., Zhou, Z., Chen, Q. and Zhang, Q. (2023). Can We Faithfully Represent Absence States to "
    "Compute Shapley Values on a DNN? ICLR. https://arxiv.org/abs/2105.10719",
)


def functions_file(source: DataSet = FUNCTIONS) -> Path:
    """Find the file of the paper's 100 functions, one per line."""
    return locate(source)[0]


AnyData: TypeAlias = TabularData | ImageData | TextData

# Each returns the kind of AnyData that its name implies.
LOADERS: dict[str, Callable[[], Any]] = {
    "census": census,
    "credit": credit,
    "mnist": mnist,
    "cifar10": cifar10,
    "sst2": sst2,
    "tv-news": tv_news,
}
