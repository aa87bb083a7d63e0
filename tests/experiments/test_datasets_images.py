import gzip

import numpy as np
import pytest
import torch

from absentia import AbsentiaError
from experiments.datasets import CIFAR10, MNIST, cifar10, mnist
from published import cifar_batch, idx, publish

NAMES = "airplane\nautomobile\n\n"


def digits(count, seed):
    draw = np.random.default_rng(seed)
    images = draw.integers(0, 256, (count, 28, 28), dtype=np.uint8)
    return images, draw.integers(0, 10, count, dtype=np.uint8)


def test_mnist_is_pixels_between_0_and_1_with_one_channel(data):
    train, train_labels = digits(7, seed=0)
    test, test_labels = digits(3, seed=1)
    source = publish(data, MNIST, idx(train), idx(train_labels), idx(test), idx(test_labels))
    loaded = mnist(source)
    assert loaded.name == "mnist"
    assert loaded.class_names == ("0", "1", "2", "3", "4", "5", "6", "7", "8", "9")
    assert loaded.x_train.shape == (7, 1, 28, 28)
    np.testing.assert_allclose(loaded.x_train[:, 0], train / 255, rtol=1e-6)
    np.testing.assert_allclose(loaded.x_test[:, 0], test / 255, rtol=1e-6)
    assert loaded.y_train.tolist() == train_labels.tolist()
    assert loaded.y_test.tolist() == test_labels.tolist()
    assert (loaded.x_train.dtype, loaded.y_train.dtype) == (torch.float32, torch.int64)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00\x00\x09\x01\x00\x00\x00\x01a",
        b"\x00\x00\x08\x02\x00\x00\x00\x01",
        b"\x00\x00\x08\x01\x00\x00\x00\x02a",
    ],
    ids=["empty", "of other numbers", "cut in the head", "cut in the entries"],
)
def test_what_is_not_idx_is_refused(data, content):
    with pytest.raises(AbsentiaError, match=r"train-images-idx3-ubyte\.gz must be a file of bytes in the idx format"):
        mnist(publish(data, MNIST, *[gzip.compress(content)] * 4))


def photographs(count, seed):
    draw = np.random.default_rng(seed)
    return draw.integers(0, 256, (count, 3, 32, 32), dtype=np.uint8), draw.integers(0, 10, count).tolist()


def test_cifar_joins_its_batches_in_order_with_red_green_and_blue_as_channels(data):
    batches = [photographs(2, seed) for seed in range(6)]
    source = publish(data, CIFAR10, NAMES, *[cifar_batch(*batch) for batch in batches])
    loaded = cifar10(source)
    assert loaded.class_names == ("airplane", "automobile")
    assert loaded.x_train.shape == (10, 3, 32, 32)
    expected = np.concatenate([images for images, _ in batches[:5]]) / 255
    np.testing.assert_allclose(loaded.x_train, expected, rtol=1e-6)
    np.testing.assert_allclose(loaded.x_test, batches[5][0] / 255, rtol=1e-6)
    assert loaded.y_train.tolist() == [label for _, labels in batches[:5] for label in labels]
    assert loaded.y_test.tolist() == batches[5][1]


@pytest.mark.parametrize("content", [b"", b"\x00" * 3072], ids=["empty", "a byte short"])
def test_a_shortened_batch_is_refused(data, content):
    with pytest.raises(AbsentiaError, match=r"data_batch_1\.bin must hold images of 3073 bytes each\. Got"):
        cifar10(publish(data, CIFAR10, NAMES, *[content] * 6))


@pytest.mark.real_data
def test_the_real_digits():
    loaded = mnist()
    assert (len(loaded.x_train), *loaded.x_train.shape[2:]) == MNIST.files[0].shape
    assert (len(loaded.x_test), *loaded.x_test.shape[2:]) == MNIST.files[2].shape
    assert loaded.y_train[:5].tolist() == [5, 0, 4, 1, 9]
    assert (loaded.x_train.min(), loaded.x_train.max()) == (0, 1)


@pytest.mark.real_data
def test_the_real_photographs():
    loaded = cifar10()
    assert loaded.x_train.shape == (50000, 3, 32, 32)
    assert loaded.y_train.bincount().tolist() == [5000] * 10
    assert loaded.y_test.bincount().tolist() == [1000] * 10
    assert loaded.class_names[loaded.y_test[0]] == "cat"
