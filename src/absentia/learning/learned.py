"""The result of learning: baseline values as an absence, with a record of how they were found."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from absentia.absences.fixed import Baseline, OwnBaselines
from absentia.absences.protocol import Fill
from absentia.arguments import checked
from absentia.data import QUANTILES, Classes, class_numbers
from absentia.errors import DataFrame, Figure, require, wrong
from absentia.learning.profile_words import UNDETERMINED, PlayerNote, doubt_about, notes_on_players, summary_of
from absentia.learning.search_ends import SearchEnd
from absentia.learning.value_profiles import OPEN_KINDS, ProfileKind, ProfilePath, ValueProfiles
from absentia.players import ALWAYS_PRESENT, MISSING, Players
from absentia.plots import baselines
from absentia.plots.learned_entries import Finding
from absentia.readout_notes import NOT_RECORDED, ReadoutNote
from absentia.storage import Saved, keep_figure
from absentia.storage.old_words import upgraded_learning_record
from absentia.text import align, count_of, html_result, written
from absentia.version import __version__

Share: TypeAlias = Literal["all", "class", "sample"]

# The name of learned values among the candidates.
LEARNED = "learned"

# The maximum number of rows of the table in a notebook.
_MOST_ROWS_SHOWN = 20

# Quantiles that the table in a notebook leaves out.
_NOT_SHOWN = ("5 %", "95 %")

# The maximum number of players that are listed because the loss does not determine their values.
_MOST_NOTES = 4

# Whose baselines there are, in the plural.
_PLURALS = {"all": "samples", "class": "classes", "sample": "samples"}

# What usual baselines are called in a sentence.
_CALLED = {"mean": "the mean", "median": "the median", "zero": "zero", "the middle": "the middle of the bounds"}


@dataclass(frozen=True)
class LearningRecord:
    """How a baseline was learned: settings, cost, and the comparison with usual baselines."""

    loss: str
    exact: bool  # whether the penalty was computed from all coalitions up to order λ
    orders: int  # λ
    bounds: str
    starts: tuple[str, ...]
    final_losses: tuple[float, ...]  # where each start ended
    seed: int
    samples: int
    converged: bool
    end: SearchEnd  # why it stopped
    evaluations: int  # rows that were evaluated for values of coalitions
    seconds: float
    # Players of which no value that was tried changed the loss; they keep the values of the first start.
    undetermined: tuple[str, ...]
    readout_note: ReadoutNote = NOT_RECORDED  # what the baseline was learned for
    chosen: str = ""  # the best on the samples kept aside: "learned", or a usual baseline
    compared: dict[str, float] = field(default_factory=dict)  # the loss of each candidate on these samples
    kept_aside: int = 0  # the number of these samples
    weights: tuple[float, ...] = ()  # of evidence and noise in the default loss
    class_names: tuple[str, ...] = ()  # in the order of the model's outputs
    undetermined_numbers: tuple[int, ...] | None = None  # of these players; None in older files
    picked: dict[str, int] = field(default_factory=dict)  # how many baselines are learned, the mean, …
    version: str = __version__
    torch_version: str = str(torch.__version__)
    trees: int = 0  # the number of trees whose leaves gave the values; 0 if the model was run for them
    notes: tuple[str, ...] = ()  # such as why a model of trees was run
    rows_seen: int | None = None  # rows that the model saw, those of trials and checks included; None in older files

    @property
    def readout(self) -> str:
        """What the baseline was learned for, in words."""
        return str(self.readout_note)

    @property
    def stopped(self) -> str:
        """Why the search stopped, in words."""
        return str(self.end)

    @property
    def spread(self) -> float:
        """The spread of the losses that the starts ended with, as a share of the best loss."""
        best = min(self.final_losses, default=0.0)
        worst = max(self.final_losses, default=0.0)
        if best <= 0:
            return 0.0
        return (worst - best) / best

    @property
    def learned_names(self) -> tuple[str, ...]:
        """The names of the candidates that were learned; all others are usual baselines, or starts."""
        return (LEARNED, *(learned_from(start) for start in self.starts))


def learned_from(start: str) -> str:
    """Name the values that were learned from one of several starts."""
    return f"learned from {start}"


def best_candidate(compared: Mapping[str, float], learned: Collection[str]) -> str:
    """Return the candidate with the lowest loss, preferring usual ones in a tie; "" if there are none."""
    return min(compared, key=lambda name: (compared[name], name in learned), default="")


@checked
@dataclass(frozen=True, eq=False, repr=False)
class LearnedBaseline(Saved, kind="baseline", format=4):
    """Learned baseline values: an absence for any sample, for samples of known classes, or for the learned samples.

    Examples
    --------
    >>> x = torch.rand(64, 3, generator=torch.Generator().manual_seed(0)).double()
    >>> learned = ab.learn_baseline(lambda rows: (rows - 0.25).prod(1), x)
    >>> learned.converged, learned.share, learned.values.shape
    (True, 'all', torch.Size([3]))
    """

    values: Shaped[Tensor, " *shape"]  # of the shape of one sample, after an axis of classes or samples by share
    share: Share  # which samples share a baseline
    classes: Int[Tensor, " owners"] | None  # the class number of each baseline, if each class has one
    players: Players | None  # None for files of format 1 whose players have several entries
    loss: float  # the mean penalty per sample at these values
    history: Float[Tensor, "checks 2"]  # evaluations, and the least loss so far (with the terms that decide ties)
    record: LearningRecord
    quantiles: Float[Tensor, "quantiles *entries"] | None = None  # of the data, at `QUANTILES`; none of tokens
    other_names: tuple[str, ...] = ()  # of players whose entries are unknown
    profiles: ValueProfiles | None = None  # of the loss along each player's values; None in older files

    def __repr__(self) -> str:
        facts = [f"  {name:<12}  {text}" for name, text in self._facts.items()]
        lines = [*self._outcome_lines, self.description, *facts]
        return "\n".join([*lines, *align(self._listed_notes, indent=4)])

    def _repr_html_(self) -> str:
        shown = {name: cells for name, cells in self._columns.items() if name not in _NOT_SHOWN}
        rows = [[_cell(cell) for cell in row] for row in zip(*shown.values(), strict=True)]
        notes = [" ".join(row).strip() for row in self._listed_notes]
        if len(rows) > _MOST_ROWS_SHOWN:
            notes.append(f"… and {len(rows) - _MOST_ROWS_SHOWN:,} more values")
        title = " ".join([*self._outcome_lines, self.description])
        return html_result(title, self._facts, [list(shown), *rows[:_MOST_ROWS_SHOWN]], notes=notes)

    @property
    def outcome(self) -> str:
        """The outcome of learning in a sentence: learned values or usual ones. Empty if it is not known."""
        if self.share == "all":
            return self._outcome_of_one()
        return self._outcome_of_several()

    @property
    def description(self) -> str:
        """The shape of the values, and the samples they belong to."""
        owners = "all samples" if self.share == "all" else f"each {self.share}"
        if self.needs_classes:
            labels = ", ".join(str(label) for label in self.class_labels)
            owners = f"{owners} ({labels})"
        return f"LearnedBaseline of shape {tuple(self.values.shape)}, one for {owners}"

    @property
    def names(self) -> tuple[str, ...]:
        """The players' names."""
        return self.other_names if self.players is None else self.players.names

    @cached_property
    def undetermined(self) -> list[bool]:
        """Whether the loss is as low at all values of each player, by number because players may share a name."""
        without_effect = self._has_no_effect
        profiles = self.profiles
        if profiles is None:
            return without_effect
        open_values = []
        for player in range(len(self.names)):
            kinds = {profiles.of(player, owner).kind for owner in range(profiles.owners)}
            open_values.append(without_effect[player] or kinds <= set(OPEN_KINDS))
        return open_values

    @property
    def _has_no_effect(self) -> list[bool]:
        """Of which players no value changed the loss during the search."""
        numbers = self.record.undetermined_numbers
        if numbers is None:  # older files only know the names
            return [name in self.record.undetermined for name in self.names]
        return [player in numbers for player in range(len(self.names))]

    @property
    def player_notes(self) -> list[PlayerNote]:
        """A sentence on each player whose value the loss does not determine; none if there are no profiles."""
        if self.profiles is None:
            return []
        categories = () if self.players is None else self.players.categories
        return notes_on_players(self.profiles, self.names, categories, _PLURALS[self.share])

    @property
    def class_labels(self) -> tuple[str | int, ...]:
        """The name, or otherwise the number, of each class that has a baseline."""
        if self.classes is None:
            return ()
        numbers = self.classes.tolist()
        names = self.record.class_names
        if not names:
            return tuple(numbers)
        return tuple(names[number] for number in numbers)

    @property
    def needs_classes(self) -> bool:
        """Whether each class has its own baseline, so that samples need their classes."""
        return self.share == "class"

    @property
    def converged(self) -> bool:
        """Whether the search ended because nothing lowered the loss any further."""
        return self.record.converged

    @property
    def evaluations(self) -> int:
        """The number of rows that were evaluated for values of coalitions."""
        return self.record.evaluations

    @property
    def seconds(self) -> float:
        """How long learning took."""
        return self.record.seconds

    def bind(self, x: Shaped[Tensor, "samples *entries"]) -> Fill:
        """Stand in for absent entries of these samples."""
        if self.needs_classes:
            then = "Use learned.of(y), which picks each sample's baseline by its class."
            raise wrong("absence", "be one for these samples", "a baseline for each class", then)
        if self.share == "all":
            return Baseline(self.values).bind(x)
        return OwnBaselines(self.values).bind(x)

    def of(self, y: Classes) -> Baseline | OwnBaselines:
        """Return the baseline of a class, or of each sample's class, by number or name; for ``share="class"``."""
        if self.classes is None:
            raise wrong("share", "be 'class' to pick by class", repr(self.share))
        numbers = class_numbers(y, self.record.class_names)
        matches = numbers.reshape(-1, 1) == self.classes
        known = matches.any(1)
        if not bool(known.all()):
            unknown = numbers.reshape(-1)[~known][0].item()
            raise wrong("y", f"hold learned classes, {self.classes.tolist()}", unknown)
        values = self.values[matches.int().argmax(1)]
        if numbers.ndim == 0:
            return Baseline(values[0])
        return OwnBaselines(values)

    def coded_for(self, names: Mapping[int, Sequence[str]]) -> LearnedBaseline:
        """Return the baseline for a table that codes the categories of entries by their place among these names."""
        players = self.players
        if players is None or not players.categories:
            return self
        values = self.values.clone()
        rows = values.reshape(-1, players.labels.numel())
        for entry, player in enumerate(players.labels.flatten().tolist()):
            own_names = players.categories[player] if player >= 0 else ()
            if own_names and entry in names:
                rows[:, entry] = _recoded(rows[:, entry], players.names[player], own_names, names[entry])
        renamed = players.with_category_names(names, renew=True)
        # Profiles have codes of this table, and nobody looks at them in another one.
        return replace(self, values=values, players=renamed, profiles=None)

    def notes_on(self, readout: ReadoutNote) -> list[str]:
        """Return a note if the values were learned for another value than the one that is read out now."""
        if self.record.readout_note.is_same_kind(readout):
            return []
        return [f"The baseline was learned for another value: {self.record.readout}. Learn one for this value."]

    @staticmethod
    def upgraded(_tensors: dict[str, Tensor], fields: dict[str, Any]) -> dict[str, Any]:
        """Return fields with values in the record; formats before 4 had words."""
        return fields | {"record": upgraded_learning_record(fields["record"])}

    @staticmethod
    def from_old(tensors: dict[str, Tensor], header: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of a file in format 2, or in format 1, which had neither entries nor torch's version."""
        names = header["names"]
        record = {"torch_version": "unknown"} | header["record"]
        if "labels" not in tensors:  # format 1
            shape = tensors["values"].shape
            sample_shape = shape if header["share"] == "all" else shape[1:]
            if sample_shape != (len(names),):
                return header | {"record": record, "other_names": names}
        integer = "labels" in tensors and "quantiles" not in tensors
        tensors["players.labels"] = tensors.get("labels", torch.arange(len(names)))
        return header | {"record": record, "players": {"names": names, "integer": integer}}

    def to_frame(self) -> DataFrame:
        """Return a pandas DataFrame with a row for each entry (of each class or sample) and the data's quantiles.

        ``kind`` says what the loss says about the value, and from ``low`` to ``high`` the loss is as low. These are
        NaN for categories, and for players with several entries.
        """
        return require("pandas", "tables").DataFrame(self._columns)

    def plot(self, path: str | Path | None = None) -> Figure:
        """Plot the values beside the distribution of the data, and write the figure to a path if one is given."""
        return keep_figure(lambda: baselines(self), path)

    @property
    def _outcome_lines(self) -> list[str]:
        return [self.outcome] if self.outcome else []

    def _outcome_of_one(self) -> str:
        """Say whether the values for all samples are learned or usual, and how much better the learned ones are."""
        record = self.record
        if not record.chosen:
            return ""
        if record.chosen not in record.learned_names:
            called = _call(record.chosen)
            if math.isnan(self.loss):
                return f"There was no time to compare baselines: this is {called}."
            return f"Nothing better than {called} was found: this is {called}."
        if not self._best_usual:
            return ""
        loss = record.compared[self._best_usual]
        gain = written(100 * (1 - self.loss / loss), 2)
        return (
            f"The learned values beat the best usual baseline, {_call(self._best_usual)}, by {gain} % "
            f"{self._judged_on}: their loss is {self.loss:.3g} rather than {loss:.3g}."
        )

    def _outcome_of_several(self) -> str:
        """Say for how many classes or samples learned values are used, and for how many usual ones."""
        record = self.record
        usual = {name: count for name, count in record.picked.items() if name not in record.learned_names}
        total = sum(record.picked.values())
        learned = total - sum(usual.values())
        noun = _PLURALS[self.share]
        listed = ", ".join(f"{_call(name)} for {count:,}" for name, count in usual.items())
        if not total:
            return ""
        if math.isnan(self.loss):
            return f"There was no time to compare baselines of the {total:,} {noun}: these are {listed}."
        if not learned:
            return f"Nothing better than usual baselines was found for the {total:,} {noun}: these are {listed}."
        if usual:
            rest = f"nothing better was found than {listed}"
            return f"Learned values are used for {learned:,} of {total:,} {noun}; {rest}."
        if not self._best_usual:
            return ""
        loss = record.compared[self._best_usual]
        return (
            f"The learned values beat usual baselines for all {total:,} {noun} {self._judged_on}: their mean loss is "
            f"{self.loss:.3g}; that of the best usual one, {_call(self._best_usual)}, is {loss:.3g}."
        )

    @property
    def _best_usual(self) -> str:
        """The usual baseline or start with the lowest loss; "" if none was compared."""
        learned = self.record.learned_names
        usual = {name: loss for name, loss in self.record.compared.items() if name not in learned}
        return best_candidate(usual, learned)

    @property
    def _judged_on(self) -> str:
        """Say on which samples candidates were judged: on all of them if there were too few to hold some out."""
        count = count_of(self.record.kept_aside, "sample")
        if self.share == "sample" or self.record.kept_aside >= self.record.samples:
            return f"on the same {count}"
        return f"on {count} kept aside"

    @property
    def _compared_losses(self) -> str:
        """State the loss of the values, and the losses of the other candidates."""
        compared = {name: f"{name} {loss:.3g}" for name, loss in self.record.compared.items()}
        if self.share != "all":  # each class or sample has the best for it
            return f"{self.loss:.3g} {self._judged_on}; with one candidate for all: {', '.join(compared.values())}"
        first = f"{self.record.chosen} {self.loss:.3g} {self._judged_on}"
        others = [text for name, text in compared.items() if name != self.record.chosen]
        return "; ".join([first, ", ".join(others)])

    @property
    def _facts(self) -> dict[str, str]:
        record = self.record
        starts = ", ".join(record.starts) or "none"
        if len(record.starts) > 1:
            starts = f"{starts}: ended within {record.spread:.2%} of each other"
        converged = "yes" if record.converged else "no"
        facts = {
            "loss": self._loss_text,
            "value": record.readout,
            "converged": f"{converged}: {record.stopped}",
            "starts": starts,
            "cost": f"{self._cost}, {record.seconds:.1f} s",
        }
        if record.notes:
            facts["note"] = " ".join(record.notes)
        if self.profiles is not None:
            facts["values"] = self.summary
        elif record.undetermined:
            facts["undetermined"] = f"{', '.join(record.undetermined)}; the start's values were kept"
        return facts

    @property
    def summary(self) -> str:
        """How many values the loss determines; "not profiled" if there are no profiles."""
        if self.profiles is None:
            return "not profiled"
        return summary_of(self.profiles)

    @property
    def _listed_notes(self) -> list[tuple[str, str]]:
        """The names of and sentences on the first players with open values, and how many more there are."""
        notes = self.player_notes
        rows = [(note.name, note.sentence) for note in notes[:_MOST_NOTES]]
        if len(notes) > _MOST_NOTES:
            rows.append((f"and {len(notes) - _MOST_NOTES:,} more", ""))
        return rows

    @property
    def _cost(self) -> str:
        """The evaluations of the model, or the trees that make them unnecessary."""
        if self.record.trees:
            return f"values from the leaves of {count_of(self.record.trees, 'tree')}"
        return f"{self.record.evaluations:,} evaluations"

    @property
    def _loss_text(self) -> str:
        """The loss, and how it was measured."""
        record = self.record
        if record.compared:
            return self._compared_losses
        if math.isnan(self.loss):
            return f"not measured ({record.loss})"
        how = "exact" if record.exact else "sampled"
        return f"{self.loss:.5g} ({record.loss}, {how}, orders up to {record.orders})"

    @property
    def _columns(self) -> dict[str, Sequence[Any]]:
        """The columns of a table with a row for each entry of each baseline."""
        values = self.values.reshape(1, -1) if self.share == "all" else self.values.flatten(1)
        owners, entries = values.shape
        columns: dict[str, Sequence[Any]] = {}
        if self.share != "all":
            labels = self.class_labels or range(owners)
            columns[self.share] = [label for label in labels for _ in range(entries)]
        columns["entry"] = list(range(entries)) * owners
        columns["player"] = self._entry_players(entries) * owners
        columns["value"] = self._entry_values(values)
        quantiles = self.quantiles
        if quantiles is None:
            quantiles = torch.full((len(QUANTILES), entries), math.nan)
        for level, row in zip(QUANTILES, quantiles.flatten(1).tolist(), strict=True):
            columns[f"{100 * level:.0f} %"] = row * owners
        columns["undetermined"] = self._entries_undetermined(entries) * owners
        return columns | self._profile_columns(owners, entries)

    def _profile_columns(self, owners: int, entries: int) -> dict[str, Sequence[Any]]:
        """Return the kind of each value, and the range in which the loss is as low, of entries that move alone."""
        kinds: list[str] = []
        lows: list[float] = []
        highs: list[float] = []
        players = [ALWAYS_PRESENT] * entries
        if self.players is not None:
            players = self.players.labels.flatten().tolist()
        for owner in range(owners):
            for player in players:
                finding = self.finding(player, owner)
                kinds.append(finding.kind)
                lows.append(finding.low)
                highs.append(finding.high)
        return {"kind": kinds, "low": lows, "high": highs}

    def finding(self, player: int, owner: int = 0) -> Finding:
        """Return what the loss says about the entries of a player, in the baseline of a class or sample."""
        if player == ALWAYS_PRESENT:
            return Finding(ProfileKind.FIXED.value)
        doubt = ""
        if self.players is not None and self.undetermined[player]:
            doubt = UNDETERMINED
        if self.profiles is None:
            return Finding(ProfileKind.NOT_PROFILED.value, doubt)
        profile = self.profiles.of(player, owner)
        doubt = doubt or doubt_about(profile.kind)
        if profile.path is not ProfilePath.VALUES or profile.reason is not None:
            return Finding(profile.kind.value, doubt)
        return Finding(profile.kind.value, doubt, profile.low, profile.high, profile.other_minima)

    def _entry_values(self, values: Shaped[Tensor, "owners entries"]) -> list[float | str]:
        """Return the values of all entries of all owners, with categories by name."""
        numbers: list[float | str] = values.flatten().tolist()
        if self.players is None or not self.players.categories:
            return numbers
        labels = self.players.labels.flatten().tolist() * len(values)
        for place, player in enumerate(labels):
            names = self.players.categories[player] if player >= 0 else ()
            if names:
                numbers[place] = names[int(numbers[place])]
        return numbers

    def _entry_players(self, entries: int) -> list[str]:
        """Return the name of each entry's player."""
        if self.players is None:
            return ["?"] * entries
        names = [*self.names, "always present"]  # which label −1 indexes
        return [names[label] for label in self.players.labels.flatten().tolist()]

    def _entries_undetermined(self, entries: int) -> list[bool]:
        """Return whether each entry's player does not affect the loss."""
        if self.players is None:
            return [False] * entries
        marks = [*self.undetermined, False]  # the last for entries that are always present
        return [marks[label] for label in self.players.labels.flatten().tolist()]


def _recoded(codes: Tensor, player: str, names: Sequence[str], new_names: Sequence[str]) -> Tensor:
    """Return codes of categories by their place among other names; raise an error for one that is not among them.

    A missing value that has no code stays missing: whether the model takes it is tried when the absence is bound.
    """
    new_codes: list[float] = []
    for code in codes.tolist():
        name = MISSING if math.isnan(code) else names[int(code)]
        if name == MISSING and MISSING not in new_names:
            new_codes.append(math.nan)
            continue
        if name not in new_names:
            must = f"know the category {name!r} of {player!r}, which the absence was learned with"
            raise wrong("data", must, ", ".join(new_names), "Pass data=… with rows that hold it.")
        new_codes.append(new_names.index(name))
    return torch.tensor(new_codes).to(codes)


def _cell(cell: Any) -> str:
    """Return a cell of the table as text."""
    if isinstance(cell, bool):
        return "yes" if cell else ""
    if isinstance(cell, float):
        return f"{cell:.4g}"
    return str(cell)


def _call(name: str) -> str:
    """Return the name of a usual baseline or a start for use in a sentence."""
    return _CALLED.get(name, f"the start {name}")
