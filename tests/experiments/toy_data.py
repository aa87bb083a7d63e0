"""Small data sets of every kind that small networks can learn."""

import torch

from experiments.datasets import ImageData, TabularData, TextData


def table(rows=400):
    """A class that depends on the product of two columns, which no linear model can tell."""
    x = torch.randn(rows, 3, generator=torch.Generator().manual_seed(1))
    y = (x[:, 0] * x[:, 1] > 0).long()
    half = rows // 2
    names = ("a", "b", "c")
    ones = torch.ones(3)
    return TabularData(
        "toy", names, x[:half], y[:half], x[half:], y[half:], (), ("different", "same"), torch.zeros(3), ones
    )


def pictures(count=96):
    """A bright cell somewhere in the upper half, or in the lower."""
    draw = torch.Generator().manual_seed(2)
    y = torch.randint(2, (count,), generator=draw)
    x = 0.2 * torch.rand(count, 1, 8, 8, generator=draw)
    rows = y * 4 + torch.randint(4, (count,), generator=draw)
    columns = torch.randint(8, (count,), generator=draw)
    x[torch.arange(count), 0, rows, columns] = 1.0
    half = count // 2
    return ImageData("pictures", x[:half], y[:half], x[half:], y[half:], ("above", "below"))


def sentences(count=160):
    """Sentences of various lengths that hold the good word, 2, or the bad one, 3, somewhere."""
    draw = torch.Generator().manual_seed(3)
    x = torch.randint(4, 12, (count, 9), generator=draw)
    y = torch.randint(2, (count,), generator=draw)
    lengths = torch.randint(2, 10, (count,), generator=draw)
    x[torch.arange(9) >= lengths[:, None]] = 0
    x[torch.arange(count), (torch.rand(count, generator=draw) * lengths).long()] = 3 - y
    half = count // 2
    words = tuple("0123456789AB")
    return TextData(
        *("sentences", words, x[:half], lengths[:half], y[:half], x[half:], lengths[half:], y[half:]), ("bad", "good")
    )


def weights(network):
    return torch.cat([parameter.detach().flatten() for parameter in network.parameters()])
