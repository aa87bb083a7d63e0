"""What a readout reads, as a value that records keep and views put into words."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

# Quantities whose name is a plural: the log-odds are, the logit is.
_PLURALS = ("log-odds",)


class Subject(str, Enum):
    """Whose number a readout takes."""

    ONE_CLASS = "one class"
    OWN_CLASSES = "own classes"  # the class of each sample
    PREDICTED_CLASSES = "predicted classes"  # the class that the model predicts for each full sample
    OUTPUT = "output"  # a number of the output by its place, or the only one
    OTHER = "other"  # what a readout says of itself


# Each sample has its own class, given or predicted.
_PER_SAMPLE = (Subject.OWN_CLASSES, Subject.PREDICTED_CLASSES)


@dataclass(frozen=True)
class ReadoutNote:
    """What is read from the model's output, and remarks on how; ``str(note)`` is the whole in words.

    Examples
    --------
    >>> note = ReadoutNote(Subject.ONE_CLASS, "log-odds", "cat", remarks=("from 'logits' of the model's output",))
    >>> note.short
    'log-odds of class cat'
    >>> str(note)
    "log-odds of class cat; from 'logits' of the model's output"
    """

    subject: Subject
    quantity: str = ""  # such as "log-odds", or the description of a readout of another kind
    name: str = ""  # of the class, or the place of the output; "" for the only output
    classes: tuple[str, ...] = ()  # the first classes of samples, by name or number
    more_classes: bool = False  # whether there are samples beyond these
    remarks: tuple[str, ...] = ()

    @classmethod
    def in_words(cls, description: str) -> ReadoutNote:
        """Return the note on a value that is known only by its description."""
        return cls(Subject.OTHER, description)

    @property
    def short(self) -> str:
        """What is read in words, without classes of samples and remarks."""
        if self.subject is Subject.ONE_CLASS:
            return f"{self.quantity} of class {self.name}"
        if self.subject is Subject.OWN_CLASSES:
            return f"{self.quantity} of each sample's class"
        if self.subject is Subject.PREDICTED_CLASSES:
            return f"{self.quantity} of the class predicted on the full sample"
        if self.subject is Subject.OTHER:
            return self.quantity
        return f"output {self.name}" if self.name else "the output as it is"

    def __str__(self) -> str:
        text = self.short
        if self.classes:
            listed = [*self.classes, "…"] if self.more_classes else self.classes
            text = f"{text} ({', '.join(listed)})"
        return "; ".join([text, *self.remarks])

    def with_verb(self, value: str = "") -> str:
        """Begin a sentence on the value, or on what it is called for one sample: the log-odds of class cat are."""
        noun = value or self.short
        if not value and self.subject is Subject.OUTPUT and not self.name:
            noun = "output"
        if self.subject is Subject.OTHER and noun.startswith("the "):  # the words of a user's own readout
            return f"{noun} is"
        verb = "are" if self.quantity in _PLURALS else "is"
        return f"the {noun} {verb}"

    def is_same_kind(self, other: ReadoutNote) -> bool:
        """Return whether two notes are on the same readout; classes of other samples do not matter."""
        if self.subject in _PER_SAMPLE and other.subject in _PER_SAMPLE:
            return self.quantity == other.quantity
        if self.subject is Subject.OUTPUT and other.subject is Subject.OUTPUT:
            return (self.name or "0") == (other.name or "0")
        return (self.subject, self.quantity, self.name) == (other.subject, other.quantity, other.name)


# The note of results that do not know what was read.
NOT_RECORDED = ReadoutNote.in_words("not recorded")
