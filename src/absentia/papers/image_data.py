"""The paper's images: MNIST and CIFAR-10, as pixels between 0 and 1.

Pixels stay as they are: a network normalises them itself, so that absences act on what a picture shows.
"""

from __future__ import annotations

import gzip
import math
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float32, Int64, UInt8
from torch import Tensor

from absentia.errors import wrong
from absentia.papers.data_files import DataFile, DataSet, locate

_MNIST_ADDRESS = "https://storage.googleapis.com/cvdf-datasets/mnist"
_CIFAR_ADDRESS = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
_CIFAR_ARCHIVE = "md5:c32a1d4ab5d03f1284b67883e8d87530"  # as the authors' page states it
_CIFAR_SHAPE = (3, 32, 32)


def _mnist_file(name: str, shape: tuple[int, ...], checksum: str) -> DataFile:
    return DataFile(f"mnist/{name}.gz", f"sha256:{checksum}", shape, f"{_MNIST_ADDRESS}/{name}.gz")


def _cifar_file(name: str, shape: tuple[int, ...], checksum: str) -> DataFile:
    path = f"cifar-10-batches-bin/{name}"
    return DataFile(path, f"sha256:{checksum}", shape, _CIFAR_ADDRESS, archive_checksum=_CIFAR_ARCHIVE)


# The authors' own address no longer serves the files: a mirror does, whose files have the published checksums.
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
    """Load photographs of ten things: 32 × 32 pixels, three channels; 50,000 for training and 10,000 for testing."""
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
    """Read a file of bytes in the idx format: two zeros, a type, a number of axes, their lengths, the entries."""
    content = gzip.decompress(path.read_bytes())
    axes = content[3] if len(content) > 3 and content[:3] == b"\x00\x00\x08" else 0
    begin = 4 + 4 * axes
    shape = struct.unpack(f">{axes}I", content[4:begin]) if axes and len(content) >= begin else ()
    if not shape or len(content) - begin != math.prod(shape):
        raise wrong(str(path), "be a file of bytes in the idx format", "other or shortened content")
    return _as_bytes(content[begin:]).view(shape)


def _read_cifar(
    path: Path,
) -> tuple[UInt8[Tensor, "images channels height width"], Int64[Tensor, " images"]]:
    """Read a file of CIFAR-10's binary version: for each image its label, then its red, green and blue pixels."""
    content, record = path.read_bytes(), 1 + math.prod(_CIFAR_SHAPE)
    if not content or len(content) % record:
        raise wrong(str(path), f"hold images of {record} bytes each", f"{len(content)} bytes")
    rows = _as_bytes(content).view(-1, record)
    return rows[:, 1:].reshape(-1, *_CIFAR_SHAPE), rows[:, 0].long()


def _as_bytes(content: bytes) -> UInt8[Tensor, " bytes"]:
    return torch.from_numpy(np.frombuffer(content, dtype=np.uint8).copy())  # torch refuses memory it can't write to
