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

from absentia.arguments import checked
from absentia.data import Classes, class_numbers, each_class, holds_text, order_unknown
from absentia.errors import AbsentiaError, wrong
from absentia.models.arrays import NumpyModel
from absentia.models.model import Model, Outputs
from absentia.models.outputs import are_probabilities
from absentia.runtime.limits import TimeLimit
from absentia.runtime.readings import returns_probabilities

# Log-odds of classes that a model rules out, whose logit is minus infinity.
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


def check_logits(readout: Readout, output: Outputs, model: Model, x: Tensor, limit: TimeLimit | None = None) -> None:
    """Raise an error for a readout of logits if the outputs of a model are probabilities or scores, or a number."""
    if not isinstance(readout, LogOdds | Probability) or output.ndim > 2:
        return
    if _gives_scores(model):
        then = "Use readout=Margin(y) to explain the score of a class as it is."
        raise wrong("model", f"return log-odds or logits for the {readout.what} of a class", "scores", then)
    single = _is_single_logit(output)
    if single and isinstance(model, NumpyModel) and model.regression:
        raise wrong("y", "be left out for a regression", "classes", "The output is then explained as it is.")
    if are_probabilities(output) or returns_probabilities(model, x, output, limit):
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
    """Return whether a model is known to return scores of classes that are no log-odds, as an SVM does."""
    return isinstance(model, NumpyModel) and model.scores


def _is_single_logit(output: Tensor) -> bool:
    return output.ndim == 1 or output.shape[1] == 1


def _of_class(output: Tensor, target: Tensor) -> Tensor:
    """Pick the target's number of each row; a single logit is that of class 1, its negative that of class 0."""
    if _is_single_logit(output):
        return output.reshape(len(output)) * (2 * target - 1)
    return output.gather(1, target[:, None])[:, 0]


@checked
@dataclass(frozen=True, eq=False)
class _OfClass:
    """What readouts of a class have in common."""

    y: Classes
    names: Sequence[Any] = ()
    what: ClassVar[str]

    def __post_init__(self) -> None:
        if holds_text(self.y) and len(self.names) == 0:
            raise order_unknown(self.y, option="names")
        object.__setattr__(self, "y", class_numbers(self.y, self.names))
        object.__setattr__(self, "names", tuple(str(name) for name in self.names))

    def __str__(self) -> str:
        if self.y.ndim:
            return f"{self.what} of each sample's class ({_class_list(self.y, self.names)})"
        number = int(self.y)
        name = self.names[number] if self.names else number
        return f"{self.what} of class {name}"

    def check(self, output: Outputs, samples: int) -> None:
        """Raise an error unless the targets are classes of the output."""
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

    what = "log-odds"

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

    what = "logit"


@checked
@dataclass(frozen=True, eq=False)
class Margin(_OfClass):
    """The score of a class as the model gives it; with a single score z, −z for class 0.

    For models whose scores are no log-odds, such as SVMs and boosters with a hinge loss: it is their default. Scores
    have no unit, and no log-loss: an audit measures them as shares of their variance. The parameters are those of
    `LogOdds`.

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

    what = "score"

    def class_means(self, output: Outputs) -> Float[Tensor, " samples"]:
        """Return the mean score over all samples of each sample's class: what can be said without the sample."""
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

    what = "probability"

    def _read(self, output: Tensor, target: Int[Tensor, " rows"]) -> Tensor:
        """Return the probability."""
        if _is_single_logit(output):
            return _of_class(output, target).sigmoid()
        return _of_class(output.softmax(1), target)


# The readouts of a class.
OF_CLASS = (LogOdds, Logit, Margin, Probability)


@dataclass(frozen=True, eq=False)
class EveryClass:
    """A readout of a class, for every class as a vector: what an audit splits into leak and invention.

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
        return f"{self.readout.what} of every class"

    def check(self, output: Outputs, samples: int) -> None:
        """Accept the outputs that the readout of a class has accepted."""

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
    # Where p is close to 1, 1 − p is rounded: the other logits tell it exactly.
    largest = logits.argmax(1, keepdim=True)
    others = logits.scatter(1, largest, -torch.inf).logsumexp(1, keepdim=True)
    odds = odds.scatter(1, largest, logits.gather(1, largest) - others)
    return odds.clamp(-_SURE, _SURE)


@checked
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


@checked
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

    Scores of a model that are no log-odds are read by `Margin`, a single one without ``y`` as that of class 1.
    Classes that are given by name need ``names`` in the order of the outputs: no order is guessed.
    """
    if output.ndim > 2:
        raise wrong("readout", "be given for a model with outputs of more than one axis", f"{tuple(output.shape)}")
    if getattr(model, "regression", False) and not _is_single_logit(output):
        must = f"be Output(i) for a regression with {output.shape[1]} outputs, i from 0 to {output.shape[1] - 1}"
        raise wrong("readout", must, "none" if y is None else "y")
    if y is not None and not names and holds_text(y):
        raise order_unknown(y)
    if names and not (y is None and _is_single_logit(output)):
        check_names(names, output)
    kind = Margin if _gives_scores(model) else LogOdds
    if y is not None:
        of_classes = kind(y, names)
        return of_classes, str(of_classes)
    if _is_single_logit(output):
        return _default_of_one_output(names, model)
    predicted = kind(output.argmax(1).cpu())
    shown = _class_list(predicted.y, tuple(str(name) for name in names))
    return predicted, f"{kind.what} of the class predicted on the full sample ({shown})"


def _default_of_one_output(names: Sequence[Any], model: Model | None) -> tuple[Readout, str]:
    """Choose the readout of a model with one output if no class was given, and describe it."""
    if _gives_scores(model) and names:  # a detector of outliers has no classes
        score = Margin(1, names)
        return score, str(score)
    if getattr(model, "probabilities", False) or getattr(model, "margins", False):
        return Output(0), "log-odds of class 1"
    return Output(0), "the output as it is"


def same_kind(note: str, other: str) -> bool:
    """Return whether two descriptions are of the same readout; classes of other samples do not matter."""
    kinds = [text.partition(";")[0].partition(" (")[0] for text in (note, other)]
    usual = (
        ("log-odds of each", "log-odds of the"),
        ("score of each", "score of the"),
        ("the output as it is", "output 0"),
    )
    return kinds[0] == kinds[1] or any(all(kind.startswith(words) for kind in kinds) for words in usual)


def _class_list(y: Tensor, names: Sequence[str], most: int = 6) -> str:
    """Return the first classes of samples by their names, or by their numbers."""
    shown = [names[number] if names else str(number) for number in y[:most].tolist()]
    if len(y) > most:
        shown.append("…")
    return ", ".join(shown)


@dataclass(frozen=True, eq=False)
class Score:
    """A proper score of values: how badly they predict each sample's class, or else its full value.

    For log-odds of each sample's class it is the log-loss in nats. For other readouts it is the squared difference
    to v(N), divided by the variance of v(N) over the samples. For scores of each sample's class, that is the variance
    about the mean score of the class over all samples: the mean of v(N) would know the class.
    """

    readout: Readout  # of the values
    full: Float[Tensor, "samples *features"]  # v(N) of each sample
    expected: Float[Tensor, " samples"] | None = None  # v(N) as far as it is known without the sample; or its mean

    @property
    def classes(self) -> Int[Tensor, " samples"] | None:
        """The class of each sample if the score is a log-loss, else None."""
        if not isinstance(self.readout, LogOdds):
            return None
        classes = self.readout.y
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
        expected = self.full.mean(0) if self.expected is None else self.expected.to(self.full)
        return (self.full - expected).square().reshape(len(self.full), -1).sum(1)

    def __call__(
        self, values: Float[Tensor, "some coalitions *features"], samples: Int[Tensor, " some"] | None = None
    ) -> Float[Tensor, "some coalitions"]:
        """Score the values of coalitions; ``samples`` are the numbers of the rows' samples, all by default."""
        if self.classes is not None:
            return softplus(-values)
        full = (self.full if samples is None else self.full[samples])[:, None]
        squares = (values - full)[..., None].square().flatten(2).sum(2)
        return squares / self._squares.mean().clamp_min(torch.finfo(squares.dtype).tiny)
