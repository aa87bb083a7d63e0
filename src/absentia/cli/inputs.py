"""The options that learn, explain and audit share, and the model, samples and players that they name."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import typer
from jaxtyping import Int
from torch import Tensor, nn

from absentia import models
from absentia.absences.protocol import Absence
from absentia.cli.choices import OF_A_CLASS, load_absences, load_players, load_readout, parse_size, saved_coding
from absentia.cli.model_files import OnnxModel, is_estimator, load_model
from absentia.cli.output import describe, reading
from absentia.cli.user_data import Samples, likely_targets, make_samples, read_data
from absentia.errors import AbsentiaError, wrong
from absentia.interop import EncodedTable, from_estimator
from absentia.players import Players

_model = partial(typer.Option, rich_help_panel="The model")
_data = partial(typer.Option, rich_help_panel="The data")
_game = partial(typer.Option, rich_help_panel="What is explained")
MODEL_HELP = (
    "package.module:object (a network, a fitted estimator, a function of rows, or a function that makes one), or a "
    "file: .onnx, .skops; with --trust also TorchScript .pt, torch.export .pt2, .pkl, .joblib."
)
DATA_HELP = "CSV, Parquet, npz (x and y, or file.npz:key), npy, or a folder of images with a subfolder per class."
PLAYERS_HELP = (
    "features (the default for tables), grid:4x4 (the default for images), tokens, a map of labels (.npy, .npz, "
    ".csv, .png), or groups of columns (.json: names to columns)."
)
READOUT_HELP = "log-odds (the default for classes), logit, probability, output[:NUMBER], features:LAYER."
RUN_HELP = "Name other columns with --target and --drop. Export a program with dynamic_shapes for any number of rows."
MOST_SEED = 2**63 - 1  # that torch takes
Word = str | None


@dataclass(frozen=True)
class Inputs:
    """The shared options as the user gave them."""

    model: Annotated[str, _model("--model", "-m", help=MODEL_HELP, metavar="MODEL")]
    data: Annotated[str, _data("--data", "-d", help=DATA_HELP, metavar="FILE")]
    weights: Annotated[Word, _model("--weights", "-w", help="Safetensors file or state_dict of a network.")] = None
    probabilities: Annotated[bool, _model("--probabilities", help="The model returns probabilities.")] = False
    untrained: Annotated[bool, _model("--untrained", help="Take a network whose weights are random.")] = False
    device: Annotated[Word, _model(help="Device of a network: cpu, cuda, cuda:1, mps.")] = None
    trust: Annotated[bool, _model("--trust", help="Read files that can run code. You trust their source.")] = False
    target: Annotated[Word, _data("--target", "-t", help="Column or array that holds the classes.")] = None
    classes: Annotated[Word, _data(help="Class names in the order of the model's outputs: no,yes.")] = None
    index: Annotated[Word, _data(help="Column that names the rows; the model does not take it.")] = None
    drop: Annotated[list[str] | None, _data(help="Column that the model does not take. Repeatable.")] = None
    background: Annotated[Word, _data("--background", "-b", help="Data to make absences from, if not --data.")] = None
    rows: Annotated[int | None, _data(min=1, help="Read this many rows; of a folder, of each class in turn.")] = None
    size: Annotated[Word, _data(help="Resize images to this height and width: 224x224.")] = None
    channels: Annotated[int | None, _data(help="Convert images: 1 for grey, 3 for colours.")] = None
    players: Annotated[Word, _game("--players", "-p", help=PLAYERS_HELP)] = None
    readout: Annotated[Word, _game(help=READOUT_HELP, autocompletion=lambda: [*OF_A_CLASS, "output"])] = None
    one_class: Annotated[Word, _game("--class", help="Explain this class, not that of each sample.")] = None
    seed: Annotated[int, _game(help="Seed of all random draws.", min=0, max=MOST_SEED)] = 0


def takes_inputs(command: Callable[..., None]) -> Callable[..., None]:
    """Add the shared options to a command whose first parameter is `Inputs`."""
    shared = list(inspect.signature(Inputs).parameters.values())
    own = list(inspect.signature(command, eval_str=True).parameters.values())[1:]

    def run(**given: Any) -> None:
        command(Inputs(**{one.name: given.pop(one.name) for one in shared}), **given)

    options = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in (*shared, *own)]
    # typer reads the options from the signature and the annotations.
    run.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in options}
    run.__name__, run.__doc__ = command.__name__, command.__doc__
    return run


@dataclass(frozen=True, eq=False)
class Problem:
    """What the shared options name: a model that runs on the samples, and the players."""

    inputs: Inputs
    model: models.Model
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
        one, names = self.inputs.one_class, [str(name) for name in self.samples.classes]
        if one is not None and one not in names and not one.isdecimal():
            raise wrong("class", "be " + " or ".join([*names, "a class number"]), repr(one))
        y = self.y if one is None else names.index(one) if one in names else int(one)
        shared = {"players": self.players, "class_names": names or None, "seed": self.inputs.seed}
        return shared | {"readout": load_readout(self.inputs.readout, y)} | more

    def absences(self, words: Sequence[str]) -> dict[str, Absence]:
        """Make absences for the chosen samples."""
        return load_absences(words, self.samples, self.players, self.chosen, self.inputs.seed)


def prepare(
    inputs: Inputs, absences: Sequence[str] = (), numbers: Sequence[int] = (), count: int | None = None
) -> Problem:
    """Load what the options name, and choose samples."""
    given = inputs.model, inputs.weights
    loaded = load_model(*given, trust=inputs.trust, device=inputs.device, untrained=inputs.untrained)
    size = None if inputs.size is None else parse_size("size", inputs.size)
    options: dict[str, Any] = {"drop": tuple(inputs.drop or ()), "index": inputs.index}
    options |= {"size": size, "channels": inputs.channels}
    data, background = read_data(inputs.data, inputs.target, rows=inputs.rows, **options), None
    if inputs.background is not None:
        background = read_data(inputs.background, inputs.target, argument="background", **options)
    names = [name.strip() for name in inputs.classes.split(",")] if inputs.classes else []
    try:
        samples = make_samples(data, loaded, background, classes=names, coding=saved_coding(absences))
        table = samples.table if samples.table.categorical else None
        model, tokens = fit_model(loaded, samples.x, table, inputs.probabilities)
        if table is not None:
            _check_categories(model, table, samples.background, "background")
    except AbsentiaError as error:
        raise AbsentiaError(f"{error}{'' if is_estimator(loaded) else likely_targets(data)}") from error
    notes = [*([loaded.note] if isinstance(loaded, OnnxModel) else []), *samples.notes]
    chosen = samples.choose(numbers, count, inputs.seed)
    return Problem(inputs, model, samples, chosen, load_players(inputs.players, samples, tokens), notes)


def fit_model(
    loaded: Any, x: Tensor, table: EncodedTable | None = None, probabilities: bool = False
) -> tuple[models.Model, bool]:
    """Convert a loaded model to one that runs on the rows, which a table decodes; return also if it takes tokens."""
    model, wrapped = models.as_model(loaded), is_estimator(loaded)
    if wrapped and table is not None:
        model = from_estimator(loaded, table)
        _check_categories(model, table, x)
    elif not (wrapped or isinstance(loaded, nn.Module) or _takes_tensors(loaded, x)):
        model = models.from_numpy(loaded, probabilities=probabilities)
    elif probabilities and not wrapped:
        model = _in_logarithms(loaded)
    return model, _takes_tokens(model, x)


def _check_categories(model: models.Model, table: EncodedTable, x: Tensor, argument: str = "data") -> None:
    """Refuse a category that an estimator refuses, as most do if it was not in the data of their fit."""
    for number in table.categorical:
        column, codes = table.columns[number], x[:, number].unique()
        tries = x[:1].repeat(len(codes), 1)
        tries[:, number] = codes
        answers = [_try(model, one[None]) for one in tries] if isinstance(_try(model, tries), Exception) else []
        bad = [(code, error) for code, error in zip(codes, answers, strict=False) if isinstance(error, Exception)]
        if 0 < len(bad) < len(codes):  # all are, if the first row has such a category in another column
            code, error = bad[0]
            row, category = int((x[:, number] == code).nonzero()[0]), table.categories[column][int(code)]
            must = f"hold categories of column {column!r} that the model knows"
            raise wrong(argument, must, f"{category!r} in row {row} ({describe(error)})", "Drop such rows.")


def _try(model: Callable[[Any], Any], rows: Tensor) -> Any:
    """Return what a model returns, or the error that it raises."""
    try:
        return model(rows)
    except Exception as error:
        return error


def _in_logarithms(model: models.Model) -> models.Model:
    """Convert a model that returns probabilities to one that returns logits."""
    if not isinstance(model, nn.Module):
        return lambda rows: models.log_probabilities(model(rows))
    model.register_forward_hook(lambda _module, _inputs, output: models.log_probabilities(output))
    return model


def _takes_tensors(model: Callable[[Any], Any], x: Tensor) -> bool:
    """Return whether a callable uses torch. numpy refuses a tensor that requires a gradient."""
    rows = x[[0, -1]]
    if rows.is_floating_point():
        rows = rows.clone().requires_grad_().clone()  # not a leaf, which can't be changed in place
    return isinstance(_try(model, rows), Tensor)  # if not, the callable is tried with arrays, which shows errors


def _takes_tokens(model: models.Model, x: Tensor) -> bool:
    """Run the model on two and on three rows. Return whether it takes integers only: tokens."""
    device, dtype = models.placement(model, x)
    tokens = False
    for rows in (x[[0, -1]], x[[0, -1, 0]]):
        must = f"run on any number of rows of the data, here of shape {tuple(rows.shape)}"
        with models.evaluation_mode(model), reading("model", must, then=RUN_HELP):
            try:
                model(rows.to(device, dtype))
            except Exception:
                if x.is_floating_point():
                    raise
                model(rows.to(device).long())
                tokens = True
    return tokens
