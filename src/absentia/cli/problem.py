"""What the shared options name: a model that runs on the samples, and the players."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jaxtyping import Int
from torch import Tensor

from absentia.cli.data_files import read_data
from absentia.cli.inputs import Inputs
from absentia.cli.model_files import is_estimator, load_model
from absentia.cli.player_words import find_columns, load_players, parse_size
from absentia.cli.raw_data import RawData
from absentia.cli.readout_words import load_readout
from absentia.cli.sample_files import Samples, make_samples
from absentia.cli.saved_words import saved_coding
from absentia.cli.table_files import likely_targets
from absentia.cli.trial_runs import fit_model
from absentia.errors import AbsentiaError, wrong
from absentia.models.encoded_inputs import check_categories
from absentia.models.model import Model
from absentia.players import Players


@dataclass(frozen=True, eq=False)
class Problem:
    """A model that runs on the samples, and the players, as the shared options name them."""

    inputs: Inputs
    model: Model
    samples: Samples
    chosen: Int[Tensor, " chosen"]  # the numbers of the samples to use
    players: Players
    notes: list[str]

    @property
    def y(self) -> Int[Tensor, " chosen"] | None:
        """The classes of the chosen samples, if there are any."""
        return None if self.samples.y is None else self.samples.y[self.chosen]

    def settings(self, **more: Any) -> dict[str, Any]:
        """Return more arguments with those that learning, explaining and auditing share."""
        class_names = [str(name) for name in self.samples.classes]
        readout = load_readout(self.inputs.readout, self._explained_class(class_names), self.model)
        shared = {"players": self.players, "class_names": class_names or None, "seed": self.inputs.seed}
        return shared | {"readout": readout} | more

    def _explained_class(self, class_names: list[str]) -> int | Int[Tensor, " chosen"] | None:
        """Return the class of --class by name or number, or else the classes of the chosen samples."""
        word = self.inputs.one_class
        if word is None:
            return self.y
        if word in class_names:
            return class_names.index(word)
        if not word.isdecimal():
            raise wrong("class", "be " + " or ".join([*class_names, "a class number"]), repr(word))
        return int(word)


def prepare(
    inputs: Inputs, absences: Sequence[str] = (), numbers: Sequence[int] = (), count: int | None = None
) -> Problem:
    """Load what the options name, and choose samples."""
    loaded = load_model(inputs.model, inputs.weights, inputs.trust, inputs.device, inputs.untrained)
    data, background = _read_both(inputs)
    class_names = [name.strip() for name in inputs.classes.split(",")] if inputs.classes else []
    try:
        samples = make_samples(data, loaded, background, classes=class_names, coding=saved_coding(absences))
        table = samples.table if samples.table.categorical else None
        model, tokens = fit_model(loaded, samples.x, table, inputs.probabilities, samples.table.columns)
        if table is not None:
            check_categories(model, table, samples.background, "background")
    except AbsentiaError as error:
        suggestion = "" if is_estimator(loaded) else likely_targets(data)
        raise AbsentiaError(f"{error.in_commands}{suggestion}") from error
    notes = [*getattr(loaded, "notes_on_file", ()), *samples.notes]
    chosen = samples.choose(numbers, count, inputs.seed)
    players = load_players(inputs.players, samples, tokens).with_categorical(samples.table.categorical)
    if inputs.categorical:
        players = players.with_categorical([find_columns(word, samples) for word in inputs.categorical])
    return Problem(inputs, model, samples, chosen, players, notes)


def _read_both(inputs: Inputs) -> tuple[RawData, RawData | None]:
    """Read the data, and the background if the options name one."""
    options: dict[str, Any] = {
        "drop": tuple(inputs.drop or ()),
        "index": inputs.index,
        "size": None if inputs.size is None else parse_size("size", inputs.size),
        "channels": inputs.channels,
    }
    data = read_data(inputs.data, inputs.target, rows=inputs.rows, **options)
    if inputs.background is None:
        return data, None
    return data, read_data(inputs.background, inputs.target, argument="background", **options)
