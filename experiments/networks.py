"""The networks of the paper's experiments on tables, images and sentences, untrained.

The seed decides the first weights. Images are pixels between 0 and 1, and the first module normalises them. Sentences
are rows of word numbers. Zeros after the last word are ignored, so the length of the rows does not affect the
prediction. A zero between words, which an absent word leaves, is a word whose vector is zero.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import final

import torch
from jaxtyping import Bool, Float, Int, Int64
from torch import Tensor, nn

from absentia import AbsentiaError
from experiments.datasets import ABSENT, sentence_lengths

# Mean and standard deviation of each channel over the training images.
MNIST_STATISTICS = ((0.1307,), (0.3081,))
CIFAR_STATISTICS = ((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616))
KERNELS = (3, 4, 5)  # words in a window
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
    """Two convolutions and a shortcut without weights, whose missing channels are zero.

    >>> Residual(16, 32, stride=2)(torch.zeros(5, 16, 8, 8)).shape
    torch.Size([5, 32, 4, 4])
    """

    def __init__(self, width: int, following: int, stride: int) -> None:
        super().__init__()
        self.stride = stride
        self.added = following - width
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
        """Add the output of the convolutions to the input."""
        shortcut = x[:, :, :: self.stride, :: self.stride]
        if self.added:
            shortcut = nn.functional.pad(shortcut, (0, 0, 0, 0, self.added // 2, self.added - self.added // 2))
        return torch.relu(self.body(x) + shortcut)


def mlp(widths: Sequence[int], seed: int) -> nn.Sequential:
    """Build linear layers of these widths with ReLU between them.

    >>> mlp((3, 5, 2), seed=0)
    Sequential(
      (0): Linear(in_features=3, out_features=5, bias=True)
      (1): ReLU()
      (2): Linear(in_features=5, out_features=2, bias=True)
    )
    """
    if len(widths) < 2 or min(widths) < 1:
        must = "widths must be two or more positive numbers, of the input first and of the output last"
        raise AbsentiaError(f"{must}. Got {widths} instead.")
    layers: list[nn.Module] = []
    with drawn_by(seed):
        for width, following in itertools.pairwise(widths):
            layers += [nn.Linear(width, following), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def lenet(seed: int = 0) -> nn.Sequential:
    """Build LeNet-5 for MNIST, with ReLU and max pooling instead of its sigmoids and means.

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


def resnet(layers: int, seed: int = 0, colours: int = 3) -> nn.Sequential:
    """Build the residual network of He et al. with 6n + 2 layers: for CIFAR-10, or with one colour for MNIST.

    >>> resnet(20)(torch.zeros(2, 3, 32, 32)).shape, resnet(20, colours=1)(torch.zeros(2, 1, 28, 28)).shape
    (torch.Size([2, 10]), torch.Size([2, 10]))
    """
    if layers < 8 or layers % 6 != 2:
        raise AbsentiaError(f"layers must be 6n + 2 for n blocks of each width, such as 20. Got {layers} instead.")
    widths = [width for width in (16, 32, 64) for _ in range((layers - 2) // 6)]
    statistics = CIFAR_STATISTICS if colours == 3 else MNIST_STATISTICS
    with drawn_by(seed):
        return _he(
            nn.Sequential(
                Normalise(*statistics),
                *(nn.Conv2d(colours, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU()),
                *(Residual(before, width, 1 + (before < width)) for before, width in _pairs(16, widths)),
                *(nn.AdaptiveAvgPool2d(1), nn.Flatten()),
                nn.Linear(64, 10),
            )
        )


def vgg16(seed: int = 0, colours: int = 3) -> nn.Sequential:
    """Build VGG-16 for CIFAR-10: thirteen convolutions with batch normalisation, and one linear layer.

    With one colour it is for MNIST. It adds a margin of two pixels, because it halves images five times.

    >>> vgg16().eval()(torch.zeros(2, 3, 32, 32)).shape, vgg16(colours=1).eval()(torch.zeros(2, 1, 28, 28)).shape
    (torch.Size([2, 10]), torch.Size([2, 10]))
    """
    layers: list[nn.Module]
    if colours == 3:
        layers = [Normalise(*CIFAR_STATISTICS)]
    else:
        layers = [nn.ZeroPad2d(2), Normalise(*MNIST_STATISTICS)]
    before = colours
    with drawn_by(seed):
        for stage in VGG16_WIDTHS:
            for width_before, width in _pairs(before, stage):
                layers += [nn.Conv2d(width_before, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU()]
            layers.append(nn.MaxPool2d(2))
            before = stage[-1]
        return _he(nn.Sequential(*layers, nn.Flatten(), nn.Linear(before, 10)))


@contextmanager
def drawn_by(seed: int) -> Iterator[None]:
    """Seed the global generator inside the block, and restore it afterwards.

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
    """Draw the weights of convolutions so that signals keep their size through many layers."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    return network


@final
class TextCNN(nn.Module):
    """Convolutions over three, four and five words, the maximum of each over the sentence, and a linear layer.

    >>> TextCNN(words=10, dimensions=8, filters=4)(torch.tensor([[2, 3, 0, 0]])).shape
    torch.Size([1, 2])
    """

    def __init__(self, words: int, dimensions: int = 128, filters: int = 100) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, dimensions, padding_idx=ABSENT)
        # Windows may reach over an end of the sentence, because short sentences have no others.
        self.convolutions = nn.ModuleList(
            nn.Conv1d(dimensions, filters, kernel, padding=kernel - 1) for kernel in KERNELS
        )
        self.dropout = nn.Dropout(0.5)
        self.linear = nn.Linear(len(KERNELS) * filters, 2)

    def forward(self, tokens: Int[Tensor, "sentences tokens"]) -> Float[Tensor, "sentences classes"]:
        """Classify sentences."""
        tokens, lengths = _trimmed(tokens)
        return self.classify(self.embedding(tokens), lengths)

    def classify(
        self, vectors: Float[Tensor, "sentences tokens dimensions"], lengths: Int[Tensor, " sentences"]
    ) -> Float[Tensor, "sentences classes"]:
        """Classify sentences of embedded words."""
        maxima = []
        for convolution, kernel in zip(self.convolutions, KERNELS, strict=True):
            windows = convolution(vectors.transpose(1, 2))
            beyond = _beyond(windows.shape[2], lengths + kernel - 1)
            maxima.append(windows.masked_fill(beyond[:, None], -torch.inf).amax(2))
        return self.linear(self.dropout(torch.relu(torch.cat(maxima, dim=1))))


@final
class TextLSTM(nn.Module):
    """A recurrent layer in both directions, the maximum over the words, and a linear layer.

    >>> TextLSTM(words=10, dimensions=8, hidden=4)(torch.tensor([[2, 3, 0, 0]])).shape
    torch.Size([1, 2])
    """

    def __init__(self, words: int, dimensions: int = 128, hidden: int = 128) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, dimensions, padding_idx=ABSENT)
        self.lstm = nn.LSTM(dimensions, hidden, batch_first=True, bidirectional=True)
        self.dropout = nn.Dropout(0.5)
        self.linear = nn.Linear(2 * hidden, 2)

    def forward(self, tokens: Int[Tensor, "sentences tokens"]) -> Float[Tensor, "sentences classes"]:
        """Classify sentences."""
        tokens, lengths = _trimmed(tokens)
        return self.classify(self.dropout(self.embedding(tokens)), lengths)

    def classify(
        self, vectors: Float[Tensor, "sentences tokens dimensions"], lengths: Int[Tensor, " sentences"]
    ) -> Float[Tensor, "sentences classes"]:
        """Classify sentences of embedded words."""
        # Packed, so that the backward reading starts at the last word and not at the end of the row.
        packed = nn.utils.rnn.pack_padded_sequence(vectors, lengths.cpu(), batch_first=True, enforce_sorted=False)
        states, _ = nn.utils.rnn.pad_packed_sequence(self.lstm(packed)[0], batch_first=True, padding_value=-torch.inf)
        return self.linear(self.dropout(states.amax(1)))


@final
class OfVectors(nn.Module):
    """A text network whose inputs are embedded words, all of them present; a baseline is then a vector.

    >>> network = TextCNN(words=10, dimensions=8, filters=4).eval()
    >>> tokens = torch.tensor([[2, 3, 4]])
    >>> torch.equal(OfVectors(network)(network.embedding(tokens)), network(tokens))
    True
    """

    def __init__(self, network: TextCNN | TextLSTM) -> None:
        super().__init__()
        self.network = network

    def forward(self, vectors: Float[Tensor, "sentences tokens dimensions"]) -> Float[Tensor, "sentences classes"]:
        """Classify sentences of embedded words."""
        return self.network.classify(vectors, torch.full((len(vectors),), vectors.shape[1]))


def text_cnn(words: int, seed: int = 0) -> TextCNN:
    """Build the network of convolutions for a vocabulary of this many words.

    >>> text_cnn(10)(torch.tensor([[2, 3]])).shape
    torch.Size([1, 2])
    """
    with drawn_by(seed):
        return TextCNN(words)


def text_lstm(words: int, seed: int = 0) -> TextLSTM:
    """Build the recurrent network for a vocabulary of this many words.

    >>> text_lstm(10)(torch.tensor([[2, 3]])).shape
    torch.Size([1, 2])
    """
    with drawn_by(seed):
        return TextLSTM(words)


def _trimmed(tokens: Tensor) -> tuple[Int64[Tensor, "sentences fewer"], Int64[Tensor, " sentences"]]:
    """Cut rows after the longest sentence; a sentence without words is one absent word."""
    lengths = sentence_lengths(tokens).clamp(min=1)
    return tokens[:, : int(lengths.max())].long(), lengths


def _beyond(places: int, lengths: Int64[Tensor, " sentences"]) -> Bool[Tensor, "sentences places"]:
    """Mark the places after the end of a sentence."""
    return torch.arange(places, device=lengths.device) >= lengths[:, None]


# Networks by name; numbers that follow the name are passed on.
ARCHITECTURES: dict[str, Callable[..., nn.Module]] = {
    "lenet": lenet,
    "alexnet": alexnet,
    "resnet20": lambda colours=3, *, seed: resnet(20, seed, colours),
    "resnet32": lambda colours=3, *, seed: resnet(32, seed, colours),
    "vgg16": lambda colours=3, *, seed: vgg16(seed, colours),
    "cnn": text_cnn,
    "lstm": text_lstm,
}


def build(architecture: str, seed: int) -> nn.Module:
    """Build an untrained network: an MLP by its widths, another by its name and its vocabulary's size or its colours.

    >>> build("3-5-2", seed=0)
    Sequential(
      (0): Linear(in_features=3, out_features=5, bias=True)
      (1): ReLU()
      (2): Linear(in_features=5, out_features=2, bias=True)
    )
    >>> build("cnn-14311", seed=0).embedding
    Embedding(14311, 128, padding_idx=0)
    """
    name, *numbers = architecture.split("-")
    try:
        if name not in ARCHITECTURES:
            return mlp([int(name), *map(int, numbers)], seed)
        return ARCHITECTURES[name](*map(int, numbers), seed=seed)
    except (TypeError, ValueError, IndexError) as error:  # too many or too few numbers, none, or no words at all
        must = f"architecture must be widths such as 12-100-100-2, or one of {', '.join(ARCHITECTURES)}"
        sizes_of_texts = "The last two need the size of the vocabulary, as in cnn-14311."
        raise AbsentiaError(f"{must}. Got {architecture!r} instead. {sizes_of_texts}") from error
