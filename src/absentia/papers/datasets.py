"""Data sets of the paper: where each file comes from, how it is checked, and how it becomes tensors.

A file is looked for in the folder that the environment variable ABSENTIA_DATA names, then in the user's cache; it is
downloaded into the cache when neither has it. Wherever it comes from, its checksum is compared before it is read.
"""

from __future__ import annotations

import hashlib
import os
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import torch
from jaxtyping import Float32, Float64, Int64
from torch import Tensor

from absentia.errors import wrong

DATA_VARIABLE = "ABSENTIA_DATA"
CACHE_VARIABLE = "ABSENTIA_CACHE"


@dataclass(frozen=True)
class DataFile:
    """One published file: where it lies in the data folder, where it comes from, and what proves it unaltered.

    The address is that of the file itself or of a zip archive that holds it; a file without one is placed by hand,
    as ``by_hand`` says.
    """

    path: str
    checksum: str
    shape: tuple[int, int]  # rows and columns as published, the label's column included
    address: str | None = None
    by_hand: str = ""


@dataclass(frozen=True)
class DataSet:
    """A data set as published: its files, and what its authors ask of those who use it."""

    name: str
    files: tuple[DataFile, ...]
    licence: str
    citation: str


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

FUNCTIONS = DataSet(
    name="functions",
    files=(
        DataFile(
            path="synthetic_functions/functions.txt",
            checksum="sha256:4ffe086dca09bd038ae6c57da53d7e87399cfc99792d640415976d6c9428ab9a",
            shape=(100, 1),
            by_hand="the authors release the functions as a spreadsheet, models/synthetic_functions.xlsx of "
            "https://github.com/zzp1012/faithful-baseline-value: write them to this file, one a line",
        ),
    ),
    licence="MIT",
    citation="Ren, J., Zhou, Z., Chen, Q. and Zhang, Q. (2023). Can We Faithfully Represent Absence States to "
    "Compute Shapley Values on a DNN? ICLR. https://arxiv.org/abs/2105.10719",
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
    train, test = (_adult_rows(locate(file)) for file in source.files)
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
    lines = locate(source.files[0]).read_text(encoding="utf-8").splitlines()[1:]
    table = torch.tensor([[float(value) for value in line.split()] for line in lines], dtype=torch.float64)
    raw, labels = table[:, :-1], table[:, -1].long()
    categorical = tuple(i for i, name in enumerate(CREDIT_COLUMNS) if name not in CREDIT_NUMBERS)
    split = stratified_split(labels, share=0.2, seed=seed)
    return _standardised(source.name, CREDIT_COLUMNS, categorical, CREDIT_CLASSES, raw, labels, split)


def functions_file(source: DataSet = FUNCTIONS) -> Path:
    """Find the file of the paper's 100 functions, one a line."""
    return locate(source.files[0])


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


def locate(file: DataFile) -> Path:
    """Find a file in the folder ABSENTIA_DATA or in the cache, else download it; check it byte for byte."""
    named = os.environ.get(DATA_VARIABLE)
    if named and not Path(named).is_dir():
        raise wrong(DATA_VARIABLE, "name a folder", repr(named), "Correct it, or unset it to download the data.")
    if named and (Path(named) / file.path).is_file():
        return _checked(Path(named) / file.path, file)
    place = cache_folder() / file.path
    if not place.is_file():
        _download(file, place)
    return _checked(place, file)


def cache_folder() -> Path:
    """Tell where downloads and trained models are kept: ABSENTIA_CACHE, else the system's folder for caches."""
    named = os.environ.get(CACHE_VARIABLE)
    return Path(named) if named else Path(_pooch().os_cache("absentia"))


def _download(file: DataFile, place: Path) -> None:
    """Fetch a file, or the archive that holds it, so that it lies at ``place``."""
    where = f"Put it there, or at {file.path} in a folder that {DATA_VARIABLE} names"
    if file.address is None:
        raise wrong(place.name, f"be placed by hand at {place}", "no such file", f"{where}; {file.by_hand}.")
    pooch = _pooch()
    archived = file.address.endswith(".zip")
    fetched = place.with_name(place.name + ".zip") if archived else place
    try:
        pooch.retrieve(
            file.address,
            # UCI may pack an archive anew: what must not change is the file within, which is checked afterwards.
            known_hash=None if archived else file.checksum,
            fname=fetched.name,
            path=fetched.parent,
            processor=pooch.Unzip(members=[place.name], extract_dir=".") if archived else None,
            progressbar=True,
        )
    except Exception as error:  # of requests, urllib3, zipfile or pooch: what to do next is the same for all
        failure = f"{type(error).__name__} ({textwrap.shorten(str(error), 200, placeholder=' …')})"
        raise wrong(place.name, f"be downloaded from {file.address} to {place}", failure, f"{where}.") from error
    finally:
        if archived:
            fetched.unlink(missing_ok=True)  # a damaged archive that stayed would be unpacked again for ever


def _checked(path: Path, file: DataFile) -> Path:
    """Compare the checksum: an altered file would give other models, and other results, without a word."""
    algorithm, _, expected = file.checksum.partition(":")
    found = hashlib.new(algorithm, path.read_bytes()).hexdigest() if path.is_file() else "no such file"
    if found != expected:
        source = f"from {file.address}" if file.address else f"by hand: {file.by_hand}"
        raise wrong(str(path), f"have the {algorithm} checksum {expected}", found, f"Replace it {source}.")
    return path


def _pooch() -> ModuleType:
    """Import pooch only when a cache is needed: a folder in ABSENTIA_DATA works without it."""
    try:
        import pooch  # type: ignore[import-untyped]
    except ImportError as error:
        then = f"Run pip install pooch, or set {DATA_VARIABLE} and {CACHE_VARIABLE} to folders of your own."
        raise wrong("pooch", "be installed to find the user's cache", "no such package", then) from error
    return pooch


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
