"""Networks of the paper's experiments on sentences: rows of word numbers in, the logits of two classes out.

Zeros after a sentence's last word are passed over: how long the rows are has no part in what is predicted. A zero
between words, which is what an absent word leaves, is a word whose vector is zero.
"""

from __future__ import annotations

from typing import final

import torch
from jaxtyping import Bool, Float, Int, Int64
from torch import Tensor, nn

from absentia.papers.networks import drawn_by
from absentia.papers.text_data import ABSENT, sentence_lengths

KERNELS = (3, 4, 5)


@final
class TextCNN(nn.Module):
    """Convolutions over three, four and five words, the maximum of each over the sentence, and a linear layer.

    >>> TextCNN(words=10, dimensions=8, filters=4)(torch.tensor([[2, 3, 0, 0]])).shape
    torch.Size([1, 2])
    """

    def __init__(self, words: int, dimensions: int = 128, filters: int = 100) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, dimensions, padding_idx=ABSENT)
        # Windows that reach over an end of the sentence count, as short sentences have no others.
        self.convolutions = nn.ModuleList(
            nn.Conv1d(dimensions, filters, kernel, padding=kernel - 1) for kernel in KERNELS
        )
        self.dropout = nn.Dropout(0.5)
        self.linear = nn.Linear(len(KERNELS) * filters, 2)

    def forward(self, tokens: Int[Tensor, "sentences tokens"]) -> Float[Tensor, "sentences classes"]:
        """Classify sentences."""
        tokens, lengths = _trimmed(tokens)
        vectors = self.embedding(tokens).transpose(1, 2)
        maxima = []
        for convolution, kernel in zip(self.convolutions, KERNELS, strict=True):
            windows = convolution(vectors)
            beyond = _beyond(windows.shape[2], lengths + kernel - 1)
            maxima.append(windows.masked_fill(beyond[:, None], -torch.inf).amax(2))
        return self.linear(self.dropout(torch.relu(torch.cat(maxima, dim=1))))


@final
class TextLSTM(nn.Module):
    """A recurrent layer that reads a sentence both ways, the maximum over its words, and a linear layer.

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
        vectors = self.dropout(self.embedding(tokens))
        # Packed, so that the backward reading begins at a sentence's last word rather than at the row's end.
        packed = nn.utils.rnn.pack_padded_sequence(vectors, lengths.cpu(), batch_first=True, enforce_sorted=False)
        states, _ = nn.utils.rnn.pad_packed_sequence(self.lstm(packed)[0], batch_first=True, padding_value=-torch.inf)
        return self.linear(self.dropout(states.amax(1)))


def text_cnn(words: int, seed: int = 0) -> TextCNN:
    """Build the network of convolutions for a vocabulary of so many words, drawn by the seed.

    >>> text_cnn(10)(torch.tensor([[2, 3]])).shape
    torch.Size([1, 2])
    """
    with drawn_by(seed):
        return TextCNN(words)


def text_lstm(words: int, seed: int = 0) -> TextLSTM:
    """Build the recurrent network for a vocabulary of so many words, drawn by the seed.

    >>> text_lstm(10)(torch.tensor([[2, 3]])).shape
    torch.Size([1, 2])
    """
    with drawn_by(seed):
        return TextLSTM(words)


def _trimmed(tokens: Tensor) -> tuple[Int64[Tensor, "sentences fewer"], Int64[Tensor, " sentences"]]:
    """Cut rows after the longest sentence; a sentence without a word is one absent word."""
    lengths = sentence_lengths(tokens).clamp(min=1)
    return tokens[:, : int(lengths.max())].long(), lengths


def _beyond(places: int, lengths: Int64[Tensor, " sentences"]) -> Bool[Tensor, "sentences places"]:
    """Mark the places that come after a sentence's end."""
    return torch.arange(places, device=lengths.device) >= lengths[:, None]
