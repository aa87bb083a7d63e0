"""Readouts: which number (or vector) to take from the model's output as the value of a coalition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from absentia.arrays import Array, as_tensor
from absentia.errors import AbsentiaError, wrong


@runtime_checkable
class Readout(Protocol):
    """A choice of what to explain: which number of the model's output is the value.

    >>> class Largest:
    ...     def check(self, output, samples): ...
    ...     def __call__(self, output, sample):
    ...         return output.amax(1)
    >>> isinstance(Largest(), Readout)
    True
    """

    def check(self, output: Float[Tensor, "rows *output"], samples: int) -> None:
        """Refuse, with a sentence, a model whose output on full samples does not fit."""

    def __call__(
        self, output: Float[Tensor, "rows *output"], sample: Int[Tensor, " rows"]
    ) -> Float[Tensor, "rows *features"]:
        """Read the value of every row of the model's output; ``sample`` tells whose row it is."""


def _targets(y: int | Sequence[int] | Array) -> Tensor:
    """Take class numbers in the one form that the readouts use: an integer tensor, one or one for each sample."""
    target = as_tensor("y", y)
    if target.ndim > 1:
        raise wrong("y", "be one class number or one for each sample", f"shape {tuple(target.shape)}")
    if target.is_complex() or not torch.equal(target.double(), target.double().round()):
        raise wrong("y", "hold class numbers", f"{target.dtype} values", "Leave y out for a regression.")
    return target.long()


def _check_classes(output: Tensor, y: Tensor, samples: int) -> None:
    """Check that the targets name classes of an output of shape (rows,), (rows, 1) or (rows, classes)."""
    if output.ndim > 2:
        expected = "return (rows,), (rows, 1) or (rows, classes) for a readout of a class"
        raise wrong("model", expected, f"shape {tuple(output.shape)}")
    if y.ndim == 1 and len(y) != samples:
        raise wrong("y", f"hold one class for each of the {samples} samples", f"{len(y)}")
    classes = 2 if output.ndim == 1 else max(2, output.shape[1])
    if not 0 <= int(y.min()) <= int(y.max()) < classes:
        outside = y[(y < 0) | (y >= classes)].flatten()[0].item()
        raise wrong("y", f"lie between 0 and {classes - 1}, the model's classes", outside)


def _check_logits(output: Tensor) -> None:
    """Refuse probabilities where logits are needed: taking them for logits would be silently wrong."""
    if output.ndim == 2 and output.shape[1] > 1 and bool((output >= 0).all()):
        sums = output.sum(-1)
        if torch.allclose(sums, torch.ones_like(sums), atol=1e-4):
            raise AbsentiaError(
                "model must return logits for this readout. Got rows of probabilities that add up to 1 instead. "
                "Return their logarithm, wrap a numpy model with from_numpy(…, probabilities=True), "
                "or read Output(class) to explain the probability itself."
            )


def _is_single_logit(output: Tensor) -> bool:
    return output.ndim == 1 or output.shape[1] == 1


def _signed_logit(output: Tensor, y: Tensor, sample: Tensor) -> Tensor:
    """Read a binary model with one logit, which speaks for class 1: its negative speaks for class 0."""
    target = y.to(output.device)
    target = target if target.ndim == 0 else target[sample]
    return output.reshape(len(output)) * (2 * target - 1)


def _target_column(output: Tensor, y: Tensor, sample: Tensor) -> Tensor:
    target = y.to(output.device)
    return (target.expand(len(sample)) if target.ndim == 0 else target[sample])[:, None]


@dataclass(frozen=True, eq=False, init=False)
class LogOdds:
    """The log-odds of a class, log p/(1 − p), from logits z as z_y − logsumexp(the other logits).

    ``y`` is one class or one for each sample. With a single logit, class 1 has log-odds z and class 0 has −z.

    >>> LogOdds(0)(torch.tensor([[2.0, 0.5]]), torch.tensor([0]))
    tensor([1.5000])
    """

    y: Int[Tensor, " *samples"]

    def __init__(self, y: int | Sequence[int] | Array) -> None:
        object.__setattr__(self, "y", _targets(y))

    def __str__(self) -> str:
        return f"log-odds of {_class_phrase(self.y)}"

    def check(self, output: Float[Tensor, "rows *output"], samples: int) -> None:
        """Check the targets, and that the outputs are not probabilities."""
        _check_classes(output, self.y, samples)
        _check_logits(output)

    def __call__(self, output: Float[Tensor, "rows *output"], sample: Int[Tensor, " rows"]) -> Float[Tensor, " rows"]:
        """Read the log-odds without ever forming a probability, which would round to 0 or 1."""
        if _is_single_logit(output):
            return _signed_logit(output, self.y, sample)
        column = _target_column(output, self.y, sample)
        others = output.scatter(1, column, -torch.inf)
        return output.gather(1, column)[:, 0] - others.logsumexp(1)


@dataclass(frozen=True, eq=False, init=False)
class Logit:
    """The logit of a class, z_y.

    >>> Logit(1)(torch.tensor([[2.0, 0.5]]), torch.tensor([0]))
    tensor([0.5000])
    """

    y: Int[Tensor, " *samples"]

    def __init__(self, y: int | Sequence[int] | Array) -> None:
        object.__setattr__(self, "y", _targets(y))

    def __str__(self) -> str:
        return f"logit of {_class_phrase(self.y)}"

    def check(self, output: Float[Tensor, "rows *output"], samples: int) -> None:
        """Check the targets."""
        _check_classes(output, self.y, samples)

    def __call__(self, output: Float[Tensor, "rows *output"], sample: Int[Tensor, " rows"]) -> Float[Tensor, " rows"]:
        """Read the logit."""
        if _is_single_logit(output):
            return _signed_logit(output, self.y, sample)
        return output.gather(1, _target_column(output, self.y, sample))[:, 0]


@dataclass(frozen=True, eq=False, init=False)
class Probability:
    """The probability of a class, the softmax (or, with a single logit, the sigmoid) of the outputs.

    >>> Probability(1)(torch.tensor([[0.0, 0.0]]), torch.tensor([0]))
    tensor([0.5000])
    """

    y: Int[Tensor, " *samples"]

    def __init__(self, y: int | Sequence[int] | Array) -> None:
        object.__setattr__(self, "y", _targets(y))

    def __str__(self) -> str:
        return f"probability of {_class_phrase(self.y)}"

    def check(self, output: Float[Tensor, "rows *output"], samples: int) -> None:
        """Check the targets, and that the outputs are not probabilities already."""
        _check_classes(output, self.y, samples)
        _check_logits(output)

    def __call__(self, output: Float[Tensor, "rows *output"], sample: Int[Tensor, " rows"]) -> Float[Tensor, " rows"]:
        """Read the probability."""
        if _is_single_logit(output):
            return _signed_logit(output, self.y, sample).sigmoid()
        return output.softmax(1).gather(1, _target_column(output, self.y, sample))[:, 0]


@dataclass(frozen=True)
class Output:
    """One number of the output as it is, by its index: for regressions and for scores of any kind.

    >>> Output(1)(torch.tensor([[2.0, 0.5]]), torch.tensor([0]))
    tensor([0.5000])
    """

    index: int | tuple[int, ...] = 0

    def __str__(self) -> str:
        return f"output {self.index}"

    def check(self, output: Float[Tensor, "rows *output"], samples: int) -> None:
        """Check that the index names one number."""
        index = (self.index,) if isinstance(self.index, int) else self.index
        sizes = output.shape[1:] or (1,)
        if len(index) != len(sizes) or any(not 0 <= i < size for i, size in zip(index, sizes, strict=True)):
            raise wrong("index", f"name one number of an output of shape {tuple(sizes)}", self.index)

    def __call__(self, output: Float[Tensor, "rows *output"], sample: Int[Tensor, " rows"]) -> Float[Tensor, " rows"]:
        """Read the number."""
        if output.ndim == 1:
            return output
        for index in (self.index,) if isinstance(self.index, int) else self.index:
            output = output[:, index]
        return output


@dataclass(frozen=True)
class Features:
    """The vector that leaves a named layer of the model, such as the penultimate one, flattened.

    The value of a coalition is then a vector: for learning with marginal benefits, not for effects.
    ``layer`` is a name from ``model.named_modules()``.

    >>> import absentia as ab
    >>> model = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.Tanh(), torch.nn.Linear(5, 2))
    >>> game = ab.MaskedModel(model, torch.zeros(2, 3), absence=ab.Baseline(0.0), readout=Features("1"))
    >>> game(torch.ones(1, 3, dtype=torch.bool)).shape
    torch.Size([2, 1, 5])
    """

    layer: str

    def __str__(self) -> str:
        return f"features of layer {self.layer!r}"

    def check(self, output: Float[Tensor, "rows *output"], samples: int) -> None:
        """Accept any output."""

    def __call__(
        self, output: Float[Tensor, "rows *output"], sample: Int[Tensor, " rows"]
    ) -> Float[Tensor, "rows features"]:
        """Flatten the layer's output, which the game hands over in place of the model's."""
        return output.flatten(1)


def default_readout(output: Float[Tensor, "samples *output"], y: object) -> tuple[Readout, str]:
    """Choose a readout by the model's output on the full samples, and say what was chosen.

    | output | y given | y left out |
    |---|---|---|
    | (samples,), (samples, 1) | log-odds of a binary model with one logit | the output as it is |
    | (samples, classes) | log-odds of y | log-odds of the class predicted on the full sample |
    """
    if output.ndim > 2:
        raise wrong("readout", "be given for a model with outputs of more than one axis", f"{tuple(output.shape)}")
    if y is not None:
        given = LogOdds(y)  # type: ignore[arg-type]
        return given, str(given)
    if _is_single_logit(output):
        return Output(0), "the output as it is"
    predicted = LogOdds(output.argmax(1).cpu())
    return predicted, f"log-odds of the class predicted on the full sample ({_class_list(predicted.y)})"


def _class_phrase(y: Tensor) -> str:
    return f"class {int(y)}" if y.ndim == 0 else f"each sample's class ({_class_list(y)})"


def _class_list(y: Tensor, most: int = 6) -> str:
    return ", ".join(str(int(c)) for c in y[:most]) + (", …" if len(y) > most else "")
