"""Networks of the paper's experiments on tables and images: built untrained, drawn by a seed.

Images come as pixels between 0 and 1, and the first module normalises them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from absentia.errors import wrong

# Mean and standard deviation of each channel over the training images.
MNIST_STATISTICS = ((0.1307,), (0.3081,))
CIFAR_STATISTICS = ((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616))
VGG16_WIDTHS = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))


@final
class Normalise(nn.Module):
    """Shift and scale each channel: (x − mean)/std.

    >>> Normalise([0.5], [0.25])(torch.ones(1, 1, 1, 2))
    tensor([[[[2., 2.]]]])
    """

    def __init__(self, mean: Sequence[float], std: Sequence[float]) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor(mean).view(-1, 1, 1))
        self.register_buffer("std", torch.tensor(std).view(-1, 1, 1))

    def forward(
        self, x: Float[Tensor, "samples channels height width"]
    ) -> Float[Tensor, "samples channels height width"]:
        """Normalise images."""
        return (x - self.get_buffer("mean")) / self.get_buffer("std")


@final
class Residual(nn.Module):
    """Two convolutions beside a shortcut, which has no weights of its own: what it lacks in channels is zero.

    >>> Residual(16, 32, stride=2)(torch.zeros(5, 16, 8, 8)).shape
    torch.Size([5, 32, 4, 4])
    """

    def __init__(self, width: int, following: int, stride: int) -> None:
        super().__init__()
        self.stride, self.added = stride, following - width
        self.body = nn.Sequential(
            nn.Conv2d(width, following, 3, stride, padding=1, bias=False),
            nn.BatchNorm2d(following),
            nn.ReLU(),
            nn.Conv2d(following, following, 3, padding=1, bias=False),
            nn.BatchNorm2d(following),
        )

    def forward(
        self, x: Float[Tensor, "samples channels height width"]
    ) -> Float[Tensor, "samples following fewer_rows fewer_columns"]:
        """Add what the convolutions make of the input to the input."""
        shortcut = x[:, :, :: self.stride, :: self.stride]
        if self.added:
            shortcut = nn.functional.pad(shortcut, (0, 0, 0, 0, self.added // 2, self.added - self.added // 2))
        return torch.relu(self.body(x) + shortcut)


def mlp(widths: Sequence[int], seed: int) -> nn.Sequential:
    """Build linear layers of these widths with ReLU between them, drawn by the seed.

    >>> mlp((3, 5, 2), seed=0)
    Sequential(
      (0): Linear(in_features=3, out_features=5, bias=True)
      (1): ReLU()
      (2): Linear(in_features=5, out_features=2, bias=True)
    )
    """
    if len(widths) < 2 or min(widths) < 1:
        raise wrong("widths", "be two or more positive numbers, of the input first and of the output last", widths)
    layers: list[nn.Module] = []
    with drawn_by(seed):
        for width, following in itertools.pairwise(widths):
            layers += [nn.Linear(width, following), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def lenet(seed: int = 0) -> nn.Sequential:
    """Build LeNet-5 for MNIST, with ReLU and maxima in place of its sigmoids and means.

    >>> lenet()(torch.zeros(2, 1, 28, 28)).shape
    torch.Size([2, 10])
    """
    with drawn_by(seed):
        return nn.Sequential(
            Normalise(*MNIST_STATISTICS),
            *(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2)),
            nn.Flatten(),
            *(nn.Linear(400, 120), nn.ReLU()),
            *(nn.Linear(120, 84), nn.ReLU()),
            nn.Linear(84, 10),
        )


def alexnet(seed: int = 0) -> nn.Sequential:
    """Build AlexNet at the size of MNIST: its five convolutions with small kernels, and three linear layers.

    >>> alexnet()(torch.zeros(2, 1, 28, 28)).shape
    torch.Size([2, 10])
    """
    with drawn_by(seed):
        return nn.Sequential(
            Normalise(*MNIST_STATISTICS),
            *(nn.Conv2d(1, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(64, 192, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(192, 384, 3, padding=1), nn.ReLU()),
            *(nn.Conv2d(384, 256, 3, padding=1), nn.ReLU()),
            *(nn.Conv2d(256, 256, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
            nn.Flatten(),
            *(nn.Dropout(0.5), nn.Linear(256 * 3 * 3, 1024), nn.ReLU()),
            *(nn.Dropout(0.5), nn.Linear(1024, 512), nn.ReLU()),
            nn.Linear(512, 10),
        )


def resnet(layers: int, seed: int = 0) -> nn.Sequential:
    """Build a residual network for CIFAR-10 with this many layers, 6n + 2, as He et al. have it.

    >>> resnet(20)(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    """
    if layers < 8 or layers % 6 != 2:
        raise wrong("layers", "be 6n + 2 for n blocks of each width, such as 20 or 32", layers)
    widths = [width for width in (16, 32, 64) for _ in range((layers - 2) // 6)]
    with drawn_by(seed):
        return _he(
            nn.Sequential(
                Normalise(*CIFAR_STATISTICS),
                *(nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU()),
                *(Residual(before, width, 1 + (before < width)) for before, width in _pairs(16, widths)),
                *(nn.AdaptiveAvgPool2d(1), nn.Flatten()),
                nn.Linear(64, 10),
            )
        )


def vgg16(seed: int = 0) -> nn.Sequential:
    """Build VGG-16 for CIFAR-10: thirteen convolutions with batch normalisation, and one linear layer.

    >>> vgg16().eval()(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    """
    layers: list[nn.Module] = []
    before = 3
    with drawn_by(seed):
        for stage in VGG16_WIDTHS:
            for width_before, width in _pairs(before, stage):
                layers += [nn.Conv2d(width_before, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU()]
            layers.append(nn.MaxPool2d(2))
            before = stage[-1]
        return _he(nn.Sequential(Normalise(*CIFAR_STATISTICS), *layers, nn.Flatten(), nn.Linear(before, 10)))


@contextmanager
def drawn_by(seed: int) -> Iterator[None]:
    """Let all that is drawn inside depend on the seed alone, and leave the global generator as it was.

    >>> with drawn_by(3):
    ...     first = torch.rand(2)
    >>> with drawn_by(3):
    ...     torch.equal(torch.rand(2), first)
    True
    """
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(seed)
        yield


def _pairs(first: int, widths: Sequence[int]) -> list[tuple[int, int]]:
    return list(itertools.pairwise([first, *widths]))


def _he(network: nn.Sequential) -> nn.Sequential:
    """Draw the weights of convolutions such that signals keep their size through many of them."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    return network
