"""Notes on readouts are values: nothing that a user names is cut or misread, whatever characters it holds."""

import dataclasses
from pathlib import Path

import pytest
import torch

import absentia as ab
from absentia.plots.drawable import answer, in_short
from absentia.readout_notes import NOT_RECORDED, ReadoutNote, Subject
from absentia.storage.codec import Unpacker
from absentia.storage.old_words import note_from_words

ODD_NAMES = ("cat (big; wild)", "dog; of class cat")
X = torch.tensor([[2.0, 0.5], [0.25, 3.0]])
OLD_FILES = Path(__file__).parent / "old_files"


def logits(rows):
    return 2 * rows


@dataclasses.dataclass(frozen=True)
class Lead:
    """A readout with a description of its own."""

    text: str

    def __str__(self):
        return self.text

    def check(self, output, samples):
        pass

    def __call__(self, output, sample):
        return output[:, 0] - output[:, 1]


def explain(**options):
    return ab.explain(logits, X, **{"absence": 0.0} | options)


@pytest.mark.parametrize(
    "text", ["lead; in nats", "lead (of the first class)", "output 0 (as is); log-odds of class 1"]
)
def test_the_description_of_an_own_readout_is_kept_whole(text, tmp_path):
    explanation = explain(readout=Lead(text))
    assert in_short(explanation) == text
    assert answer(explanation, 0).startswith(f"the {text} is 3, ")
    explanation.save(tmp_path / "saved")
    loaded = ab.load(tmp_path / "saved").record
    assert loaded.readout_note == explanation.record.readout_note == ReadoutNote.in_words(text)
    assert loaded.readout == text


def test_a_description_with_an_article_gets_no_other_one():
    assert answer(explain(readout=Lead("the lead")), 0).startswith("the lead is 3, ")


@pytest.mark.parametrize("name", range(2))
def test_names_of_classes_are_kept_whole(name, tmp_path):
    explanation = explain(readout=ab.LogOdds(name, ODD_NAMES))
    note = explanation.record.readout_note
    assert note == ReadoutNote(Subject.ONE_CLASS, "log-odds", ODD_NAMES[name])
    assert in_short(explanation) == f"log-odds of class {ODD_NAMES[name]}"
    assert answer(explanation, 0).startswith(f"the log-odds of {ODD_NAMES[name]} are ")
    explanation.save(tmp_path / "saved")
    assert ab.load(tmp_path / "saved").record == explanation.record


def test_classes_of_samples_are_no_part_of_the_short_form():
    explanation = explain(y=[0, 1], class_names=ODD_NAMES)
    assert in_short(explanation) == "log-odds of each sample's class"
    assert explanation.record.readout == f"log-odds of each sample's class ({', '.join(ODD_NAMES)})"
    predicted = explain(class_names=ODD_NAMES)
    assert in_short(predicted) == "log-odds of the class predicted on the full sample"
    assert predicted.record.readout_note.is_same_kind(explanation.record.readout_note)


def test_classes_with_odd_names_are_told_apart():
    one, other = (ReadoutNote(Subject.ONE_CLASS, "log-odds", name) for name in ("a (1)", "a (2)"))
    assert not one.is_same_kind(other)
    one, other = (ReadoutNote.in_words(text) for text in ("lead; in nats", "lead; in bits"))
    assert not one.is_same_kind(other)


def test_a_baseline_for_a_class_with_an_odd_name_is_noted_for_another_class():
    names = ["a (1)", "a (2)"]
    data = torch.rand(32, 2, generator=torch.Generator().manual_seed(0)).double()
    options = ab.LearningOptions(steps=2, rows_per_step=64)
    learned = ab.learn_baseline(logits, data, readout=ab.LogOdds(0, names), options=options)
    assert not explain(absence=learned, readout=ab.LogOdds(0, names)).record.notes
    (note,) = explain(absence=learned, readout=ab.LogOdds(1, names)).record.notes
    assert note.startswith("The baseline was learned for another value: log-odds of class a (1).")


def test_remarks_do_not_change_what_is_read():
    note = ReadoutNote(Subject.OUTPUT)
    remarked = dataclasses.replace(note, remarks=("from 'y (1)' of the model's output", "more; of it"))
    assert str(remarked) == "the output as it is; from 'y (1)' of the model's output; more; of it"
    assert remarked.short == note.short
    assert remarked.is_same_kind(note)
    assert note.is_same_kind(ReadoutNote(Subject.OUTPUT, name="0"))
    assert not note.is_same_kind(ReadoutNote(Subject.OUTPUT, name="1"))
    assert note.with_verb() == "the output is"


@pytest.mark.parametrize(
    "note",
    [
        ReadoutNote(Subject.ONE_CLASS, "probability", "cat (big)"),
        ReadoutNote(Subject.OWN_CLASSES, "score", classes=("0", "1"), remarks=("from 0 of the model's output",)),
        ReadoutNote(Subject.PREDICTED_CLASSES, "log-odds", classes=tuple("abcdef"), more_classes=True),
        ReadoutNote(Subject.OUTPUT),
        ReadoutNote(Subject.OUTPUT, name="(0, 1)", remarks=("one", "two")),
        NOT_RECORDED,
    ],
)
def test_files_before_0_2_hold_words_that_are_decoded(note):
    decoded = Unpacker({}, {}).unpack(ReadoutNote, note_from_words(str(note)))
    assert decoded == note
    assert str(decoded) == str(note)


@pytest.mark.parametrize("name", ["explanation", "explanation_format3", "audit", "audit_format3", "baseline"])
def test_old_files_have_notes(name):
    record = ab.load(OLD_FILES / f"{name}.safetensors").record
    assert isinstance(record.readout_note, ReadoutNote)
    assert isinstance(record.readout_note.subject, Subject)
    assert record.readout == str(record.readout_note)
