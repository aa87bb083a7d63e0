"""Readouts: which number (or vector) of the model's output is the value of a coalition."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import softplus

from absentia.arguments import checked
from absentia.data import (
    CheckedClasses,
    Classes,
    class_numbers,
    each_class,
    holds_text,
    order_unknown,
    read_classes,
)
from absentia.errors import AbsentiaError, wrong
from absentia.models.arrays import NumpyModel
from absentia.models.model import Model, Outputs
from absentia.models.outputs import are_probabilities
from absentia.models.tree_source import depth_of_decision
from absentia.readout_notes import ReadoutNote, Subject
from absentia.runtime.batches import BatchRunner
from absentia.runtime.readings import returns_probabilities

# A note on a readout lists at most this many classes of samples.
_MOST_CLASSES = 6

# The size of the log-odds where a model is certain: a logit may be minus infinity.
_SURE = 1e6


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


def check_logits(readout: Readout, output: Outputs, runner: BatchRunner, x: Tensor) -> None:
    """Raise an error if a readout of logits is used on probabilities, scores or the output of a regression."""
    model = runner.model
    if not isinstance(readout, LogOdds | Probability) or output.ndim > 2:
        return
    if _gives_scores(model):
        must = f"return log-odds or logits for the {readout.quantity} of a class"
        then = "Use readout=Margin(y) to explain the score of a class as it is."
        then_in_commands = "Use --readout score to explain the score of a class as it is."
        raise wrong("model", must, "scores", then, then_in_commands)
    single = _is_single_logit(output)
    if single and isinstance(model, NumpyModel) and model.regression:
        raise _y_of_regression()
    if are_probabilities(output) or returns_probabilities(runner, x, output):
        where = " in one column" if single else ""
        raise AbsentiaError(
            f"model must return logits for this readout. Got probabilities from 0 to 1{where} "
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


def _gives_scores(model: Model | None) -> bool:
    """Return whether a model is known to return class scores that are not log-odds, as SVMs do."""
    return isinstance(model, NumpyModel) and model.scores


def _is_single_logit(output: Tensor) -> bool:
    return output.ndim == 1 or output.shape[1] == 1


def _of_class(output: Tensor, target: Tensor) -> Tensor:
    """Return the target class's number in each row; a single logit z stands for (−z, z)."""
    if _is_single_logit(output):
        return output.reshape(len(output)) * (2 * target - 1)
    return output.gather(1, target[:, None])[:, 0]


@checked
@dataclass(frozen=True, eq=False)
class _OfClass:
    """The shared part of all readouts of a class."""

    y: Classes
    names: Sequence[Any] = ()
    quantity: ClassVar[str]

    def __post_init__(self) -> None:
        if holds_text(self.y) and len(self.names) == 0:
            raise order_unknown(self.y, option="names")
        object.__setattr__(self, "y", class_numbers(self.y, self.names))
        object.__setattr__(self, "names", tuple(str(name) for name in self.names))

    def __str__(self) -> str:
        return str(self.note)

    @property
    def note(self) -> ReadoutNote:
        """What is read, as a value."""
        if self.y.ndim:
            return _note_on_samples(Subject.OWN_CLASSES, self.quantity, self.y, self.names)
        number = int(self.y)
        name = self.names[number] if self.names else str(number)
        return ReadoutNote(Subject.ONE_CLASS, self.quantity, name)

    def check(self, output: Outputs, samples: int) -> None:
        """Raise an error unless the output has a number for every target class."""
        if output.ndim > 2:
            expected = "return (rows,), (rows, 1) or (rows, classes) for a readout of a class"
            raise wrong("model", expected, f"shape {tuple(output.shape)}")
        y = each_class(self.y, samples)
        classes = count_classes(output)
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


@checked
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

    quantity = "log-odds"

    def _read(self, output: Tensor, target: Int[Tensor, " rows"]) -> Tensor:
        """Return the log-odds without forming a probability, which would round to 0 or 1."""
        own = _of_class(output, target)
        return own if _is_single_logit(output) else own - output.scatter(1, target[:, None], -torch.inf).logsumexp(1)


@checked
@dataclass(frozen=True, eq=False)
class Logit(_OfClass):
    """The logit of a class, z_y; with a single logit z, −z for class 0. The parameters are those of `LogOdds`.

    Examples
    --------
    >>> Logit(1)(torch.tensor([[2.0, 0.5]]), torch.tensor([0]))
    tensor([0.5000])
    """

    quantity = "logit"


@checked
@dataclass(frozen=True, eq=False)
class Margin(_OfClass):
    """The score of a class as the model gives it; with a single score z, −z for class 0.

    This is the default for models whose scores are not log-odds, such as SVMs and boosters with a hinge loss. Such
    scores have neither a unit nor a log-loss, so an audit measures them as shares of their variance. The parameters
    are those of `LogOdds`.

    Examples
    --------
    >>> Margin(0)(torch.tensor([2.0, -0.5]), torch.tensor([0, 0]))
    tensor([-2.0000,  0.5000])
    >>> from sklearn.svm import LinearSVC
    >>> x = [[0.0], [1.0], [2.0], [3.0]]
    >>> machine = LinearSVC().fit(x, ["low", "low", "high", "high"])
    >>> ab.explain(machine, x[:2], ["low", "low"], absence=0.0).record.readout
    "score of each sample's class (low, low)"
    """

    quantity = "score"

    def class_means(self, output: Outputs) -> Float[Tensor, " samples"]:
        """Return the mean score of each sample's class over all samples: the best guess without seeing the sample."""
        means = []
        for number in range(count_classes(output)):
            target = torch.full((len(output),), number, device=output.device)
            means.append(self._read(output, target).double().mean())
        return torch.stack(means)[self.y.to(output.device)]


@checked
@dataclass(frozen=True, eq=False)
class Probability(_OfClass):
    """The probability of a class, the softmax or sigmoid of the outputs. The parameters are those of `LogOdds`.

    Examples
    --------
    >>> Probability(1)(torch.tensor([[0.0, 0.0]]), torch.tensor([0]))
    tensor([0.5000])
    """

    quantity = "probability"

    def _read(self, output: Tensor, target: Int[Tensor, " rows"]) -> Tensor:
        """Return the probability."""
        if _is_single_logit(output):
            return _of_class(output, target).sigmoid()
        return _of_class(output.softmax(1), target)


# The readouts of a class.
OF_CLASS = (LogOdds, Logit, Margin, Probability)


@dataclass(frozen=True, eq=False)
class EveryClass:
    """A readout of a class applied to every class, as a vector. Audits split it into leak and invention.

    Parameters
    ----------
    readout : LogOdds, Logit or Probability
        The readout of one class.

    Examples
    --------
    >>> EveryClass(LogOdds(0))(torch.tensor([[2.0, 0.5]]), torch.tensor([0]))
    tensor([[ 1.5000, -1.5000]], dtype=torch.float64)
    """

    readout: _OfClass

    def __str__(self) -> str:
        return f"{self.readout.quantity} of every class"

    def check(self, output: Outputs, samples: int) -> None:
        """Accept any output: the readout of one class has already checked it."""

    def __call__(self, output: Outputs, sample: Int[Tensor, " rows"]) -> Float[Tensor, "rows classes"]:
        """Return the number of each class, in double precision."""
        output = output.double()
        if isinstance(self.readout, LogOdds) and not _is_single_logit(output):
            return _every_log_odds(output)
        classes = torch.arange(count_classes(output), device=output.device)
        return torch.stack([self.readout._read(output, number.expand(len(output))) for number in classes], dim=1)


def _every_log_odds(logits: Float[Tensor, "rows classes"]) -> Float[Tensor, "rows classes"]:
    """Return log p − log(1 − p) of each class."""
    logarithms = logits.log_softmax(1)
    odds = logarithms - torch.log1p(-logarithms.exp())
    # Where p is close to 1, rounding ruins 1 − p, so it is computed from the other logits.
    largest = logits.argmax(1, keepdim=True)
    others = logits.scatter(1, largest, -torch.inf).logsumexp(1, keepdim=True)
    odds = odds.scatter(1, largest, logits.gather(1, largest) - others)
    return odds.clamp(-_SURE, _SURE)


@checked
@dataclass(frozen=True)
class Output:
    """One number of the output as it is, for regressions and for scores of any kind.

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
        return str(self.note)

    @property
    def note(self) -> ReadoutNote:
        """What is read, as a value."""
        return ReadoutNote(Subject.OUTPUT, name=str(self.index))

    def check(self, output: Outputs, samples: int) -> None:
        """Raise an error unless the index names one number of the output."""
        sizes = tuple(output.shape[1:]) or (1,)
        if not _names_one_number(self._positions, sizes):
            raise wrong("index", f"name one number of an output of shape {sizes}", self.index)

    def __call__(self, output: Outputs, sample: Int[Tensor, " rows"]) -> Float[Tensor, " rows"]:
        """Return the number."""
        if output.ndim == 1:
            return output
        return output[(slice(None), *self._positions)]

    @property
    def _positions(self) -> tuple[Any, ...]:
        """The index along each axis of a row."""
        index: Any = self.index  # an integer of numpy, or a list, is accepted as well
        if np.ndim(index) == 0:
            return (index,)
        return tuple(index)


@checked
@dataclass(frozen=True)
class LogOutput:
    """The logarithm of one number of the output, for positive predictions such as counts.

    Boosters fitted with a loss for counts or for sizes, such as Poisson, gamma or Tweedie, add up logarithms. So the
    interactions of these logarithms are exact for any number of columns.

    Parameters
    ----------
    index : int or tuple of int, default 0
        The position of the number in one row of the output.

    Examples
    --------
    >>> LogOutput()(torch.tensor([[1.0], [10.0]]), torch.tensor([0, 1]))
    tensor([0.0000, 2.3026], dtype=torch.float64)
    """

    index: int | tuple[int, ...] = 0

    def __str__(self) -> str:
        return f"logarithm of {Output(self.index).note.short}"

    def check(self, output: Outputs, samples: int) -> None:
        """Raise an error unless the index names one positive number of the output."""
        reader = Output(self.index)
        reader.check(output, samples)
        numbers = reader(output, torch.arange(len(output)))
        if not bool((numbers > 0).all()):
            raise wrong("model", "return positive numbers for LogOutput", f"{float(numbers.min()):g}")

    def __call__(self, output: Outputs, sample: Int[Tensor, " rows"]) -> Float[Tensor, " rows"]:
        """Return the logarithm of the number."""
        return Output(self.index)(output, sample).double().log()


def _names_one_number(positions: Sequence[Any], sizes: Sequence[int]) -> bool:
    """Return whether there is a valid position for each axis; True and False are not positions."""
    if len(positions) != len(sizes) or any(isinstance(position, bool) for position in positions):
        return False
    return all(position in range(size) for position, size in zip(positions, sizes, strict=True))


@checked
@dataclass(frozen=True)
class Features:
    """The output of a named layer of the model, such as the penultimate one, flattened to a vector.

    The value of a coalition is then a vector. Use it to learn with marginal benefits; effects need a single number.

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


@checked
@dataclass(frozen=True, eq=False)
class MeanDepth:
    """The mean depth at which the trees of an isolation forest isolate a sample. Unusual samples have a small depth.

    The forest's own score is a power of the depth. The depth itself is a sum over leaves, so its interactions are
    exact for any number of columns.

    Parameters
    ----------
    forest : IsolationForest
        The fitted forest that is explained.

    Examples
    --------
    >>> from sklearn.ensemble import IsolationForest
    >>> rows = torch.randn(200, 3, generator=torch.Generator().manual_seed(0)).numpy()
    >>> forest = IsolationForest(random_state=0).fit(rows)
    >>> explanation = ab.explain(forest, rows[:1] + 9, absence="mean", data=rows, readout=ab.MeanDepth(forest))
    >>> bool(explanation.outputs < explanation.base_values)
    True
    """

    forest: Any

    def __post_init__(self) -> None:
        if not hasattr(self.forest, "offset_") or not hasattr(self.forest, "max_samples_"):
            raise wrong("forest", "be a fitted IsolationForest", type(self.forest).__name__)

    def __str__(self) -> str:
        return "mean depth"

    def check(self, output: Outputs, samples: int) -> None:
        """Raise an error unless the model has one output."""
        if not _is_single_logit(output):
            raise wrong("model", "be the isolation forest of MeanDepth", f"outputs of shape {tuple(output.shape)}")

    def __call__(self, output: Outputs, sample: Int[Tensor, " rows"]) -> Float[Tensor, " rows"]:
        """Return the depth from which the forest computes its decision function."""
        return depth_of_decision(self.forest, output.reshape(len(output)).double())


def default_readout(
    output: Outputs, y: Classes | CheckedClasses, names: Sequence[Any] = (), model: Model | None = None
) -> tuple[Readout, ReadoutNote]:
    """Choose a readout by the model's output on the full samples, and describe it.

    | output | y given | y left out |
    |---|---|---|
    | (samples,), (samples, 1) | log-odds of a binary model with one logit | the output as it is |
    | (samples, classes) | log-odds of y | log-odds of the class predicted on the full sample |

    Scores that are not log-odds are read by `Margin`; a single score without ``y`` is read as that of class 1.
    Classes given by name need ``names`` in the order of the outputs, because the order is never guessed.
    """
    if output.ndim > 2:
        raise wrong("readout", "be given for a model with outputs of more than one axis", f"{tuple(output.shape)}")
    if getattr(model, "regression", False) and not _is_single_logit(output):
        must = f"be Output(i) for a regression with {output.shape[1]} outputs, i from 0 to {output.shape[1] - 1}"
        raise wrong("readout", must, "none" if y is None else "y")
    if getattr(model, "regression", False) and y is not None:
        raise _y_of_regression()
    if names and not (y is None and _is_single_logit(output)):
        check_names(names, output)
    kind = Margin if _gives_scores(model) else LogOdds
    if y is not None:
        of_classes = _of_numbers(kind, read_classes(y, names), names)
        return of_classes, of_classes.note
    if _is_single_logit(output):
        return _default_of_one_output(names, model)
    predicted = _of_numbers(kind, output.argmax(1).cpu())
    note = _note_on_samples(Subject.PREDICTED_CLASSES, kind.quantity, predicted.y, [str(name) for name in names])
    return predicted, note


def _y_of_regression() -> AbsentiaError:
    """Return the error for targets or classes that are passed with a regression."""
    return wrong("y", "be left out for a regression", "numbers", "Its predictions are explained as they are.")


def select_classes(readout: Readout | None, chosen: Int[Tensor, " chosen"], samples: int) -> Readout | None:
    """Return a readout for some of the samples: their classes, if it holds one for each of so many samples."""
    if not isinstance(readout, _OfClass) or readout.y.shape != (samples,):
        return readout
    of_chosen = copy.copy(readout)
    # A frozen dataclass does not let its own attributes be assigned.
    object.__setattr__(of_chosen, "y", readout.y[chosen])
    return of_chosen


def _of_numbers(kind: type[_OfClass], y: Int[Tensor, " *samples"], names: Sequence[Any] = ()) -> _OfClass:
    """Return a readout of classes that are known to be numbers."""
    readout = object.__new__(kind)
    object.__setattr__(readout, "y", y)
    object.__setattr__(readout, "names", tuple(str(name) for name in names))
    return readout


def _default_of_one_output(names: Sequence[Any], model: Model | None) -> tuple[Readout, ReadoutNote]:
    """Choose the readout of a model with one output if no class was given, and describe it."""
    if _gives_scores(model) and names:  # outlier detectors have scores but no classes
        score = Margin(1, names)
        return score, score.note
    if getattr(model, "probabilities", False) or getattr(model, "margins", False):
        return Output(0), ReadoutNote(Subject.ONE_CLASS, LogOdds.quantity, "1")
    return Output(0), ReadoutNote(Subject.OUTPUT)


def note_on(readout: Readout) -> ReadoutNote:
    """Return what a readout reads: its own note, or its description in words."""
    describes_itself = type(readout).__str__ not in (_OfClass.__str__, Output.__str__)
    if isinstance(readout, _OfClass | Output) and not describes_itself:
        return readout.note
    return ReadoutNote.in_words(str(readout))


def _note_on_samples(subject: Subject, quantity: str, y: Tensor, names: Sequence[str]) -> ReadoutNote:
    """Return the note on a readout of each sample's class, which lists the first few classes."""
    first = y[:_MOST_CLASSES].tolist()
    classes = tuple(names[number] if names else str(number) for number in first)
    return ReadoutNote(subject, quantity, classes=classes, more_classes=len(y) > _MOST_CLASSES)


@dataclass(frozen=True, eq=False)
class Score:
    """A proper score of values: how badly they predict each sample's class, or its full value if there is no class.

    For log-odds of each sample's class it is the log-loss in nats. For other readouts it is the squared difference
    from v(N), divided by the variance of v(N) over the samples. For scores of each sample's class, the variance is
    taken about the mean score of that class over all samples, because the mean of v(N) would give the class away.
    """

    readout: Readout  # how the values were read from the model's output
    full: Float[Tensor, "samples *features"]  # v(N) of each sample
    expected: Float[Tensor, " samples"] | None = (
        None  # the best guess of v(N) without the sample; None means its mean
    )

    @property
    def classes(self) -> Int[Tensor, " samples"] | None:
        """The class of each sample if the score is a log-loss, else None."""
        if not isinstance(self.readout, LogOdds):
            return None
        classes = self.readout.y
        return classes if isinstance(classes, Tensor) and classes.ndim == 1 else None

    @property
    def prior(self) -> Float[Tensor, " samples"]:
        """The score of the best prediction made without the sample: class frequencies, or the mean."""
        if self.classes is None:
            return self._squares / self._variance
        _, number, counts = torch.unique(self.classes, return_inverse=True, return_counts=True)
        return -(counts[number].to(self.full) / len(number)).log()

    @property
    def _variance(self) -> Float[Tensor, ""]:
        """The variance of v(N), or for outputs that are constant the square of their rounding error.

        It must not be so small that its inverse is infinite when it is scaled, because gradients would then be NaN.
        """
        precision = torch.finfo(self.full.dtype)
        rounding = precision.eps * float(self.full.abs().max())
        least = max(rounding**2, precision.tiny**0.5)
        return self._squares.mean().clamp_min(least)

    @property
    def _squares(self) -> Float[Tensor, " samples"]:
        expected = self.full.mean(0) if self.expected is None else self.expected.to(self.full)
        return (self.full - expected).square().reshape(len(self.full), -1).sum(1)

    def __call__(
        self, values: Float[Tensor, "some coalitions *features"], samples: Int[Tensor, " some"] | None = None
    ) -> Float[Tensor, "some coalitions"]:
        """Score the values of coalitions; ``samples`` holds the sample number of each row, by default all."""
        if self.classes is not None:
            return softplus(-values)
        full = (self.full if samples is None else self.full[samples])[:, None]
        squares = (values - full)[..., None].square().flatten(2).sum(2)
        return squares / self._variance
