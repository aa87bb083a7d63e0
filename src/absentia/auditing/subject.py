"""The subject of an audit: a model on samples, the data they come from, and the absences bound to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from jaxtyping import Int
from torch import Tensor

from absentia.absences import Absence, BringsModel, Fill, StandIns
from absentia.absences.protocol import describe_absence
from absentia.absences.words import split_word, usual_words
from absentia.auditing.audit_leaves import AuditLeaves, find_leaves_for_audit
from absentia.data import CheckedRows, DataRange, Rows, Table, data_range
from absentia.errors import AbsentiaError, wrong
from absentia.evaluation import Evaluator
from absentia.evaluation.leaf_values import NotFromLeaves
from absentia.learning import absence_for
from absentia.models.adapters import as_model
from absentia.players import ALWAYS_PRESENT, Players
from absentia.readouts import OF_CLASS, EveryClass, Features, LogOdds, Output, Readout
from absentia.task import Task
from absentia.task_inputs import TaskInputs, TaskOptions

Region: TypeAlias = Sequence[str | int]
Absences: TypeAlias = Mapping[str, Absence | str | float] | Sequence[Absence | str | float]


@dataclass(frozen=True, eq=False)
class Method:
    """An absence bound to the audited samples."""

    absence: Absence
    evaluator: Evaluator  # its own if the absence brings a model
    fill: Fill
    of_class: Mapping[int, Fill]  # one for each class that has a baseline of its own

    @property
    def is_surrogate(self) -> bool:
        """Whether the absence brings its own model."""
        return isinstance(self.absence, BringsModel)

    @property
    def shares_stand_ins(self) -> bool:
        """Whether all samples have the same stand-ins."""
        fills = list(self.of_class.values()) or [self.fill]
        return all(isinstance(fill, StandIns) and len(fill.values) == 1 for fill in fills)

    @property
    def fills(self) -> int:
        """The number of fills for one value: one for each class if each class has its own baseline."""
        return max(1, len(self.of_class))

    def select(self, samples: Tensor) -> Method:
        """Return the method for some of the samples."""
        of_class = {number: fill.select(samples) for number, fill in self.of_class.items()}
        return Method(self.absence, self.evaluator, self.fill.select(samples), of_class)


@dataclass(frozen=True, eq=False)
class Subject:
    """A model on samples, the region that is masked for R, and the data that the samples come from."""

    evaluator: Evaluator
    region: Players
    data: Rows
    data_range: DataRange
    data_were_passed: bool  # or else the samples are the data
    every_class: EveryClass | None  # reads the values of all classes, if samples have classes
    classes: Int[Tensor, " samples"]
    seed: int
    leaves: AuditLeaves | NotFromLeaves

    @classmethod
    def of(cls, evaluator: Evaluator, region: Region | None, data: Table | None, seed: int) -> Subject:
        """Check the arguments; by default the samples are also the data."""
        readout = evaluator.readout
        if isinstance(readout, Features):
            raise wrong("readout", "give one number for an audit", str(readout))
        every_class = None
        classes = torch.zeros(evaluator.samples, dtype=torch.int64)
        if isinstance(readout, OF_CLASS) and readout.y.ndim == 1:
            # The values of a sample's own class are scored together with those of all other classes.
            every_class = EveryClass(readout)
            classes = readout.y.cpu()
        masked = evaluator.players if region is None else evaluator.players.only(region, "region")
        rows = evaluator.x if data is None else evaluator.task.rows_of(data)
        within = data_range(rows, evaluator.players.categorical)
        subject = cls(
            evaluator=evaluator,
            region=masked,
            data=rows,
            data_range=within,
            data_were_passed=data is not None,
            every_class=every_class,
            classes=classes,
            seed=seed,
            leaves=find_leaves_for_audit(evaluator, masked, rows[-1]),
        )
        subject._check_range()
        return subject

    def leaves_of(self, method: Method) -> AuditLeaves | None:
        """Return the leaves from which a method's values are computed; None if the model is run."""
        if isinstance(self.leaves, NotFromLeaves) or method.evaluator.model is not self.evaluator.model:
            return None
        fills = list(method.of_class.values()) or [method.fill]
        if not all(isinstance(fill, StandIns) for fill in fills):
            return None
        return self.leaves

    def _check_range(self) -> None:
        """Raise an error if no white noise can be drawn."""
        owned = self.region.labels.to(self.evaluator.x.device) >= 0
        if not bool(((self.data_range.high > self.data_range.low) & owned).any()):
            then = "Pass data=… with rows that show the range of white noise."
            raise wrong("data", "vary in the region's entries", "constants", then)

    @property
    def samples_are_the_data(self) -> bool:
        """Whether the data are the samples themselves, whether passed explicitly or by default."""
        return self.data is self.evaluator.x

    @property
    def measured_readout(self) -> Readout | EveryClass:
        """What is read for scores: the values of every class, or the value itself."""
        return self.every_class or self.evaluator.readout

    @property
    def in_nats(self) -> bool:
        """Whether values are log-odds of classes, which are scored by the log-loss."""
        return self.every_class is not None and isinstance(self.evaluator.readout, LogOdds)

    @property
    def all_absent(self) -> bool:
        """Whether ∅ leaves no entry of a sample."""
        return not bool((self.evaluator.players.labels == ALWAYS_PRESENT).any())

    def has_one_empty_value(self, method: Method) -> bool:
        """Return whether ∅ has the same value for all samples: neither stand-ins nor readout depend on them."""
        same_readout = self.every_class is not None or isinstance(self.evaluator.readout, (*OF_CLASS, Output))
        return same_readout and self.all_absent and method.shares_stand_ins

    def make_absence(self, description: object) -> Absence:
        """Return an absence as it is, or make the one that a word or a number names from the data."""
        is_neighbours = isinstance(description, str) and split_word(description)[0] == "neighbours"
        if self.samples_are_the_data and is_neighbours:
            raise AbsentiaError("Each sample would be its own nearest row. Pass data=… without the audited samples.")
        return absence_for(self.evaluator.task, description, CheckedRows(self.data), self.seed)

    def bind_methods(self, absences: Any) -> dict[str, Method]:
        """Make the absences, and bind them to the samples."""
        methods = {}
        for name, description in self._named(absences).items():
            with errors_about(f"{name} cannot be audited"):
                methods[name] = self._bind(self.make_absence(description))
        return methods

    def _bind(self, absence: Absence) -> Method:
        """Bind an absence to the samples, and to its own model if it brings one."""
        evaluator = self.evaluator
        if isinstance(absence, BringsModel):
            evaluator.limit.check()
            model = as_model(absence.instead_of(evaluator.model))
            inputs = TaskInputs(model, evaluator.x, evaluator.x)
            options = TaskOptions(players=evaluator.players, readout=evaluator.readout)
            task = Task.of_inputs(inputs, options, evaluator.limit, evaluator.task.row_count)
            evaluator = Evaluator(task)
        fill = evaluator.task.bind(absence, self.evaluator.task.classes)
        of_class: dict[int, Fill] = {}
        if getattr(absence, "needs_classes", False) and self.every_class is not None:
            for number in self.classes.unique().tolist():
                same_class = torch.full((self.evaluator.samples,), number)
                of_class[number] = _share(evaluator.task.bind(absence, same_class))
        return Method(absence, evaluator, fill, of_class)

    def _named(self, absences: Any) -> dict[str, Any]:
        """Return the absences by name, which is the key of a mapping, the word, or the description."""
        if absences is None:
            words = usual_words(CheckedRows(self.data), self.evaluator.players, self.evaluator.task.takes_missing)
            if self.samples_are_the_data and "neighbours" in words:
                words.remove("neighbours")  # each sample would be its own nearest row
            return {word: word for word in words}
        if isinstance(absences, str) or not isinstance(absences, Mapping | Sequence) or not absences:
            must = "be a mapping such as {'zero': 0.0}, or a list such as ['mean', 'blur']"
            raise wrong("absences", must, repr(absences))
        # Iterating over a mapping gives its keys.
        names = [describe_absence(item) if isinstance(item, Absence) else str(item) for item in absences]
        if len(set(names)) < len(names):
            then = "Pass a mapping from names to absences."
            raise wrong("absences", "have different names", f"{max(names, key=names.count)!r} twice", then)
        values = absences.values() if isinstance(absences, Mapping) else absences
        return dict(zip(names, values, strict=True))


def _share(fill: Fill) -> Fill:
    """Keep a single copy of the stand-ins if they are the same for all samples."""
    if isinstance(fill, StandIns) and bool((fill.values == fill.values[:1]).all()):
        return StandIns(fill.x, fill.values[:1])
    return fill


@contextmanager
def errors_about(subject: str) -> Iterator[None]:
    """Prefix the message of an error with its subject."""
    try:
        yield
    except AbsentiaError as error:
        raise AbsentiaError(f"{subject}: {error}", in_commands=f"{subject}: {error.in_commands}") from error
