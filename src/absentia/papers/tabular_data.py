"""The paper's tables: the census and credit data, read and standardised."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Float32, Float64, Int64
from torch import Tensor

from absentia.papers.data_files import DataFile, DataSet, locate

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

# The columns of adult.data, in its order. The number in `education-num` codes the words in `education`, and `fnlwgt`
# weighs rows for population totals: without these two, 12 players are left, as many as the paper has.
ADULT_COLUMNS = (
    *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship"),
    *("race", "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country"),
)
ADULT_DROPPED = ("fnlwgt", "education")
ADULT_NUMBERS = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
ADULT_CLASSES = ("<=50K", ">50K")

# The columns of SouthGermanCredit.asc under the English names of its code table.
CREDIT_COLUMNS = (
    *("status", "duration", "credit_history", "purpose", "amount", "savings", "employment_duration"),
    *("installment_rate", "personal_status_sex", "other_debtors", "present_residence", "property", "age"),
    *("other_installment_plans", "housing", "number_credits", "job", "people_liable", "telephone", "foreign_worker"),
)
CREDIT_NUMBERS = ("duration", "amount", "age")  # the code table has levels for all the others
CREDIT_CLASSES = ("bad", "good")


@dataclass(frozen=True, eq=False)
class TabularData:
    """A table ready for a model: columns of mean 0 and standard deviation 1 over the training rows.

    ``x * std + mean`` gives the raw columns back; a categorical column then holds the codes of its categories.
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

    Categories are numbered in their sorted order; a missing one, written ``?``, is a category of its own.
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
    """Load the credit data: did a debtor comply with the contract? 20 columns; a fifth of each class is for testing.

    Categories keep the codes of the published code table.
    """
    lines = locate(source)[0].read_text(encoding="utf-8").splitlines()[1:]
    table = torch.tensor([[float(value) for value in line.split()] for line in lines], dtype=torch.float64)
    raw, labels = table[:, :-1], table[:, -1].long()
    categorical = tuple(i for i, name in enumerate(CREDIT_COLUMNS) if name not in CREDIT_NUMBERS)
    split = stratified_split(labels, share=0.2, seed=seed)
    return _standardised(source.name, CREDIT_COLUMNS, categorical, CREDIT_CLASSES, raw, labels, split)


def stratified_split(
    labels: Int64[Tensor, " rows"], share: float, seed: int
) -> tuple[Int64[Tensor, " kept"], Int64[Tensor, " held_out"]]:
    """Draw row numbers: a share of each class is held out, the others are kept; both in a random order.

    >>> kept, held_out = stratified_split(torch.tensor([1] * 10 + [0] * 5), share=0.2, seed=0)
    >>> len(kept), len(held_out)
    (12, 3)
    """
    # A random order, since published files may be sorted by class: the first rows are then a fair sample too.
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))
    held_out = torch.zeros(len(labels), dtype=torch.bool)
    for label in labels.unique():
        members = torch.nonzero(labels[order] == label)[:, 0]
        held_out[members[: round(share * len(members))]] = True
    return order[~held_out], order[held_out]


def _adult_rows(path: Path) -> list[list[str]]:
    """Split a census file into fields; its test part opens with a remark, and ends each label with a full stop."""
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
    """Standardise by the training rows alone, so that nothing of the test rows reaches the model."""
    train, test = split
    mean, std = raw[train].mean(0), raw[train].std(0, correction=0)
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
