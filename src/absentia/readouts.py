"""Readouts: which number (or vector) of the model's output is the value of a coalition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import softplus

from absentia.data import Classes, class_numbers, each_class, holds_text
from absentia.errors import AbsentiaError, wrong
from absentia.models import Model, NumpyModel, Outputs, TimeLimit, are_probabilities, returns_probabilities


@runtime_checkable
class Readout(Protocol):
    """A choice of what to explain: which number of the model's output is the value.

    Examples
    --------
    >>> class Largest:
    ...     def check(self, output, samples): ...
    ...     def __call__(self, output, sample):
    ...         return output.amax(1)
    >>> isinstance(Largest(), Readout)
    True
    """

    def check(self, output: Outputs, samples: int) -> None:
        """Raise an error for a model whose output on full samples does not fit."""

    def __call__(self, output: Outputs, sample: Int[Tensor, " rows"]) -> Float[Tensor, "rows *features"]:
        """Return the value of every row of the model's output; ``sample`` is the number of each row's sample."""


def count_classes(output: Outputs) -> int:
    """Return the number of classes of an output of shape (rows,), (rows, 1) or (rows, classes)."""
    return 2 if output.ndim == 1 else max(2, output.shape[1])


def check_logits(readout: Readout, output: Outputs, model: Model, x: Tensor, limit: TimeLimit | None = None) -> None:
    """Raise an error for a readout of logits if the outputs of a model are probabilities, or one is a number."""
    if not isinstance(readout, LogOdds | Probability) or output.ndim > 2:
        return
    single = _is_single_logit(output)
    if single and isinstance(model, NumpyModel) and model.regression:
        raise wrong("y", "be left out for a regression", "classes", "The output is then explained as it is.")
    if are_probabilities(output) or returns_probabilities(model, x, output, limit):
        raise AbsentiaError(
            f"model must return logits for this readout. Got probabilities from 0 to 1{' in one column' * single} "
            "instead. Return the logits: leave out the last sigmoid, pass lambda rows: torch.logit(model(rows)), "
            "wrap a numpy model with from_numpy(…, probabilities=True), or use --probabilities in a command. Use "
            "readout=Output(0), or another column, to explain a probability itself, and Logit(y) if these are logits."
        )


def with_names(readout: Readout, output: Outputs, names: Sequence[Any]) -> Readout:
    """Return a readout of a class with the names of the classes, if it has none of its own."""
    if not isinstance(readout, _OfClass) or readout.names or not names or output.ndim > 2:
        return readout
    check_names(names, output)
    return type(readout)(readout.y, [str(name) for name in names])


def check_names(names: Sequence[Any], output: Outputs) -> None:
    """Raise an error unless there is a name for each class."""
    if len(names) != count_classes(output):
        raise wrong("class_names", f"name each of the {count_classes(output)} classes", f"{len(names)} names")


def _is_single_logit(output: Tensor) -> bool:
    return output.ndim == 1 or output.shape[1] == 1


def _of_class(output: Tensor, target: Tensor) -> Tensor:
    """Pick the target's number of each row; a single logit is that of class 1, its negative that of class 0."""
    if _is_single_logit(output):
        return output.reshape(len(output)) * (2 * target - 1)
    return output.gather(1, target[:, None])[:, 0]


@dataclass(frozen=True, eq=False)
class _OfClass:
    """What readouts of a class have in common."""

    y: Classes
    names: Sequence[Any] = ()
    what: ClassVar[str]

    def __post_init__(self) -> None:
        vars(self).update(y=class_numbers(self.y, self.names), names=tuple(str(name) for name in self.names))

    def __str__(self) -> str:
        if self.y.ndim:
            return f"{self.what} of each sample's class ({_class_list(self.y, self.names)})"
        return f"{self.what} of class {self.names[int(self.y)] if self.names else int(self.y)}"

    def check(self, output: Outputs, samples: int) -> None:
        """Raise an error unless the targets are classes of the output."""
        if output.ndim > 2:
            expected = "return (rows,), (rows, 1) or (rows, classes) for a readout of a class"
            raise wrong("model", expected, f"shape {tuple(output.shape)}")
        y, classes = each_class(self.y, samples), count_classes(output)
        outside = y[(y < 0) | (y >= classes)]
        if len(outside):
            raise wrong("y", f"lie between 0 and {classes - 1}, the model's classes", outside[0].item())

    def __call__(self, output: Outputs, sample: Int[Tensor, " rows"]) -> Float[Tensor, " rows"]:
        """Return the number of each row's class."""
        if output.ndim > 2 or len(output) != len(sample):
            raise wrong("output", f"be (rows, classes) of {len(sample)} rows", f"shape {tuple(output.shape)}")
        y = self.y.to(output.device)
        return self._read(output, y[sample] if y.ndim else y.expand(len(sample)))

    def _read(self, output: Tensor, target: Int[Tensor, " rows"]) -> Tensor:
        """Return the logit."""
        return _of_class(output, target)


@dataclass(frozen=True, eq=False)
class LogOdds(_OfClass):
    """The log-odds of a class, log p/(1 − p), from logits z as z_y − logsumexp(the other logits).

    With a single logit z, class 1 has log-odds z and class 0 has −z.

    Parameters
    ----------
    y : int, str, sequence or array
        One class for all samples, or one for each sample: numbers, or names if ``names`` is given.
    names : sequence of str, optional
        The names of the classes, in the order of the model's outputs.

    Examples
    --------
    >>> LogOdds(0)(torch.tensor([[2.0, 0.5]]), torch.tensor([0]))
    tensor([1.5000])
    """

    what = "log-odds"

    def _read(self, output: Tensor, target: Int[Tensor, " rows"]) -> Tensor:
        """Return the log-odds without forming a probability, which would round to 0 or 1."""
        own = _of_class(output, target)
        return own if _is_single_logit(output) else own - output.scatter(1, target[:, None], -torch.inf).logsumexp(1)


@dataclass(frozen=True, eq=False)
class Logit(_OfClass):
    """The logit of a class, z_y; with a single logit z, −z for class 0. The parameters are those of `LogOdds`.

    Examples
    --------
    >>> Logit(1)(torch.tensor([[2.0, 0.5]]), torch.tensor([0]))
    tensor([0.5000])
    """

    what = "logit"


@dataclass(frozen=True, eq=False)
class Probability(_OfClass):
    """The probability of a class, the softmax or sigmoid of the outputs. The parameters are those of `LogOdds`.

    Examples
    --------
    >>> Probability(1)(torch.tensor([[0.0, 0.0]]), torch.tensor([0]))
    tensor([0.5000])
    """

    what = "probability"

    def _read(self, output: Tensor, target: Int[Tensor, " rows"]) -> Tensor:
        """Return the probability."""
        single = _is_single_logit(output)
        return _of_class(output, target).sigmoid() if single else _of_class(output.softmax(1), target)


@dataclass(frozen=True)
class Output:
    """One number of the output as it is: for regressions and for scores of any kind.

    Parameters
    ----------
    index : int or tuple of int, default 0
        The position of the number in one row of the output.

    Examples
    --------
    >>> Output(1)(torch.tensor([[2.0, 0.5]]), torch.tensor([0]))
    tensor([0.5000])
    """

    index: int | tuple[int, ...] = 0

    def __str__(self) -> str:
        return f"output {self.index}"

    def check(self, output: Outputs, samples: int) -> None:
        """Check that the index names one number."""
        index: Any = self.index if np.ndim(self.index) else (self.index,)
        sizes, truths = output.shape[1:] or (1,), [i for i in index if isinstance(i, bool)]
        if truths or len(index) != len(sizes) or any(i not in range(n) for i, n in zip(index, sizes, strict=True)):
            raise wrong("index", f"name one number of an output of shape {tuple(sizes)}", self.index)

    def __call__(self, output: Outputs, sample: Int[Tensor, " rows"]) -> Float[Tensor, " rows"]:
        """Return the number."""
        index: Any = self.index if np.ndim(self.index) else (self.index,)
        return output if output.ndim == 1 else output[(slice(None), *index)]


@dataclass(frozen=True)
class Features:
    """The output of a named layer of the model, such as the penultimate one, flattened to a vector.

    The value of a coalition is then a vector: for learning with marginal benefits, not for effects.

    Parameters
    ----------
    layer : str
        A name from ``model.named_modules()``.

    Examples
    --------
    >>> model = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.Tanh(), torch.nn.Linear(5, 2))
    >>> game = ab.MaskedModel(model, torch.zeros(2, 3), absence=ab.Baseline(0.0), readout=Features("1"))
    >>> game(torch.ones(1, 3, dtype=torch.bool)).shape
    torch.Size([2, 1, 5])
    """

    layer: str

    def __str__(self) -> str:
        return f"features of layer {self.layer!r}"

    def check(self, output: Outputs, samples: int) -> None:
        """Accept any output."""

    def __call__(self, output: Outputs, sample: Int[Tensor, " rows"]) -> Float[Tensor, "rows features"]:
        """Flatten the layer's output, which the evaluator passes in place of the model's."""
        return output[:, None].flatten(1)


def default_readout(
    output: Outputs, y: Classes, names: Sequence[Any] = (), model: Model | None = None
) -> tuple[Readout, str]:
    """Choose a readout by the model's output on the full samples, and describe it.

    | output | y given | y left out |
    |---|---|---|
    | (samples,), (samples, 1) | log-odds of a binary model with one logit | the output as it is |
    | (samples, classes) | log-odds of y | log-odds of the class predicted on the full sample |

    Names of classes that the model does not know are taken in alphabetical order, if there is one for each output.
    """
    if output.ndim > 2:
        raise wrong("readout", "be given for a model with outputs of more than one axis", f"{tuple(output.shape)}")
    if getattr(model, "regression", False) and not _is_single_logit(output):
        must = f"be Output(i) for a regression with {output.shape[1]} outputs, i from 0 to {output.shape[1] - 1}"
        raise wrong("readout", must, "none" if y is None else "y")
    note = ""
    if y is not None and not names and holds_text(y):
        names = sorted({str(label) for label in np.asarray(y, dtype=object).reshape(-1).tolist()})
        note = f"; classes in alphabetical order: {', '.join(names)}"
        if len(names) != count_classes(output):
            got = f"{len(names)} names for {count_classes(output)} outputs of the model"
            raise wrong("y", "name every class", got, "Pass class_names=[…] in the order of the model's outputs.")
    if names and not (y is None and _is_single_logit(output)):
        check_names(names, output)
    if y is not None:
        given = LogOdds(y, names)
        return given, str(given) + note
    if _is_single_logit(output):
        return Output(0), "log-odds of class 1" if getattr(model, "probabilities", False) else "the output as it is"
    predicted = LogOdds(output.argmax(1).cpu())
    shown = _class_list(predicted.y, tuple(str(name) for name in names))
    return predicted, f"log-odds of the class predicted on the full sample ({shown})"


def same_kind(note: str, other: str) -> bool:
    """Return whether two descriptions are of the same readout; classes of other samples do not matter."""
    kinds = [text.partition(";")[0].partition(" (")[0] for text in (note, other)]
    usual = ("log-odds of each", "log-odds of the"), ("the output as it is", "output 0")
    return kinds[0] == kinds[1] or any(all(kind.startswith(words) for kind in kinds) for words in usual)


def _class_list(y: Tensor, names: Sequence[str], most: int = 6) -> str:
    return ", ".join(names[c] if names else str(c) for c in y[:most].tolist()) + (", …" if len(y) > most else "")


@dataclass(frozen=True, eq=False)
class Score:
    """A proper score of values: how badly they predict each sample's class, or else its full value.

    For log-odds of each sample's class it is the log-loss in nats. For other readouts it is the squared difference
    to v(N), divided by the variance of v(N) over the samples.
    """

    readout: Readout  # of the values
    full: Float[Tensor, "samples *features"]  # v(N) of each sample

    @property
    def classes(self) -> Int[Tensor, " samples"] | None:
        """The class of each sample if the score is a log-loss, else None."""
        classes = self.readout.y if isinstance(self.readout, LogOdds) else None
        return classes if isinstance(classes, Tensor) and classes.ndim == 1 else None

    @property
    def prior(self) -> Float[Tensor, " samples"]:
        """The score of the best prediction that knows nothing of the sample: class frequencies, or the mean."""
        if self.classes is None:
            return self._squares / self._squares.mean().clamp_min(torch.finfo(self.full.dtype).tiny)
        _, number, counts = torch.unique(self.classes, return_inverse=True, return_counts=True)
        return -(counts[number].to(self.full) / len(number)).log()

    @property
    def _squares(self) -> Float[Tensor, " samples"]:
        return (self.full - self.full.mean(0)).square().reshape(len(self.full), -1).sum(1)

    def __call__(
        self, values: Float[Tensor, "some coalitions *features"], samples: Int[Tensor, " some"] | None = None
    ) -> Float[Tensor, "some coalitions"]:
        """Score the values of coalitions; ``samples`` are the numbers of the rows' samples, all by default."""
        if self.classes is not None:
            return softplus(-values)
        full = (self.full if samples is None else self.full[samples])[:, None]
        squares = (values - full)[..., None].square().flatten(2).sum(2)
        return squares / self._squares.mean().clamp_min(torch.finfo(squares.dtype).tiny)
