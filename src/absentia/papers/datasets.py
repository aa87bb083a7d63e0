"""The data sets of the paper under one roof: where each comes from, and how it is loaded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from absentia.papers.data_files import DataFile, DataSet, cache_folder, locate
from absentia.papers.image_data import CIFAR10, MNIST, ImageData, cifar10, mnist
from absentia.papers.tabular_data import CENSUS, CREDIT, TabularData, census, credit, stratified_split
from absentia.papers.text_data import SST2, TextData, sst2

__all__ = [
    "CENSUS",
    "CIFAR10",
    "CREDIT",
    "FUNCTIONS",
    "LOADERS",
    "MNIST",
    "SST2",
    "AnyData",
    "DataFile",
    "DataSet",
    "ImageData",
    "TabularData",
    "TextData",
    "cache_folder",
    "census",
    "cifar10",
    "credit",
    "functions_file",
    "locate",
    "mnist",
    "sst2",
    "stratified_split",
]

AnyData: TypeAlias = TabularData | ImageData | TextData

# Each gives an AnyData; which of them, callers know by the name they ask for.
LOADERS: dict[str, Callable[[], Any]] = {
    "census": census,
    "credit": credit,
    "mnist": mnist,
    "cifar10": cifar10,
    "sst2": sst2,
}

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


def functions_file(source: DataSet = FUNCTIONS) -> Path:
    """Find the file of the paper's 100 functions, one a line."""
    return locate(source)[0]
