"""The options that learn, explain and audit share, and what they name: model, samples, players, readout, absences."""

import inspect
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer
from jaxtyping import Int
from torch import Tensor, nn

import absentia as ab
from absentia.absences.words import named_absence, usual_words
from absentia.cli.data_files import read_data
from absentia.cli.file_checks import check_file, describe, reading
from absentia.cli.model_files import is_estimator, load_model
from absentia.cli.samples import Samples, make_samples
from absentia.cli.table_files import likely_targets
from absentia.errors import AbsentiaError, require, wrong
from absentia.interop import EncodedTable, from_estimator
from absentia.models.adapters import as_model, placement
from absentia.models.arrays import from_numpy, log_probabilities
from absentia.models.model import Model
from absentia.players import ALWAYS_PRESENT, Players
from absentia.runtime.modes import evaluation_mode
from absentia.storage import read_header
from absentia.task import model_rows

_model = partial(typer.Option, rich_help_panel="The model")
_data = partial(typer.Option, rich_help_panel="The data")
_game = partial(typer.Option, rich_help_panel="What is explained")
_work = partial(typer.Option, rich_help_panel="More than one process")
MODEL_HELP = (
    "package.module:object (a network, a fitted estimator, a function of rows, or a function that makes one), or a "
    "file: .onnx, .skops; with --trust also TorchScript .pt, torch.export .pt2, .pkl, .joblib."
)
DATA_HELP = "CSV, Parquet, npz (x and y, or file.npz:key), npy, or a folder of images with a subfolder per class."
CATEGORICAL_HELP = "Column of categories, or several that code one: a,b,c. Repeatable. Text needs none."
PLAYERS_HELP = (
    "features (the default for tables), grid:4x4 (the default for images), tokens, a map of labels (.npy, .npz, "
    ".csv, .png), or groups of columns (.json: names to columns)."
)
READOUT_HELP = "log-odds (the default for classes), logit, score, probability, output[:NUMBER], features:LAYER."
RUN_HELP = "Name other columns with --target and --drop. Export a program with dynamic_shapes for any number of rows."
MOST_SEED = 2**63 - 1  # that torch takes
_SECONDS_TO_CONNECT = 10
VOID = 255  # marks pixels of no segment in images, which hold no negative labels
SAVED = (".absentia", ".safetensors")
OF_A_CLASS: dict[str, Any] = {
    "log-odds": ab.LogOdds,
    "logit": ab.Logit,
    "score": ab.Margin,
    "probability": ab.Probability,
}
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
    categorical: Annotated[list[str] | None, _data(help=CATEGORICAL_HELP)] = None
    background: Annotated[Word, _data("--background", "-b", help="Data to make absences from, if not --data.")] = None
    rows: Annotated[int | None, _data(min=1, help="Read this many rows; of a folder, of each class in turn.")] = None
    size: Annotated[Word, _data(help="Resize images to this height and width: 224x224.")] = None
    channels: Annotated[int | None, _data(help="Convert images: 1 for grey, 3 for colours.")] = None
    players: Annotated[Word, _game("--players", "-p", help=PLAYERS_HELP)] = None
    readout: Annotated[Word, _game(help=READOUT_HELP, autocompletion=lambda: [*OF_A_CLASS, "output"])] = None
    one_class: Annotated[Word, _game("--class", help="Explain this class, not that of each sample.")] = None
    seed: Annotated[int, _game(help="Seed of all random draws.", min=0, max=MOST_SEED)] = 0
    jobs: Annotated[int, _work(min=1, help="Processes to spread samples over.")] = 1
    dask: Annotated[Word, _work(help="Dask cluster to spread samples over: tcp://host:8786.")] = None


def takes_inputs(command: Callable[..., None]) -> Callable[..., None]:
    """Add the shared options to a command whose first parameter is `Inputs`."""
    shared = list(inspect.signature(Inputs).parameters.values())
    own = list(inspect.signature(command, eval_str=True).parameters.values())[1:]

    def run(**given: Any) -> None:
        inputs = Inputs(**{one.name: given.pop(one.name) for one in shared})
        _check_output(inputs, given)
        with workers(inputs.jobs, inputs.dask):
            command(inputs, **given)

    options = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in (*shared, *own)]
    # typer reads the options from the signature and the annotations.
    run.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in options}
    run.__name__, run.__doc__ = command.__name__, command.__doc__
    return run


def _check_output(inputs: Inputs, given: dict[str, Any]) -> None:
    """Refuse to write the result over a file that the command reads."""
    words, output = given.get("absence") or [], given["output"]
    read: list[Any] = [_split_name(word)[1] for word in ([words] if isinstance(words, str) else words)]
    read += [inputs.data, inputs.model, inputs.weights, inputs.background, inputs.players, given.get("checkpoint")]
    read += given.get("start") or []
    if output is not None and output.resolve() in [Path(one).resolve() for one in read if one]:
        raise wrong("output", "be another file than those that are read", output)


@contextmanager
def workers(jobs: int, scheduler: str | None) -> Iterator[None]:
    """Spread samples over processes of this machine, or over the Dask cluster of a scheduler."""
    with ExitStack() as stack:
        if scheduler is not None:
            dask = require("distributed", "dask")
            with reading("dask", "be the address of a scheduler, as in tcp://host:8786", scheduler):
                stack.enter_context(dask.Client(scheduler, timeout=_SECONDS_TO_CONNECT))
            stack.enter_context(require("joblib", "scale").parallel_config("dask"))
        elif jobs > 1:
            os.environ.setdefault("PYTHONSAFEPATH", "1")  # no file here stands in for a package in the processes
            stack.enter_context(require("joblib", "scale").parallel_config("loky", n_jobs=jobs))
        yield


@dataclass(frozen=True, eq=False)
class Problem:
    """What the shared options name: a model that runs on the samples, and the players."""

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
        one, names = self.inputs.one_class, [str(name) for name in self.samples.classes]
        if one is not None and one not in names and not one.isdecimal():
            raise wrong("class", "be " + " or ".join([*names, "a class number"]), repr(one))
        y = self.y if one is None else names.index(one) if one in names else int(one)
        shared = {"players": self.players, "class_names": names or None, "seed": self.inputs.seed}
        return shared | {"readout": load_readout(self.inputs.readout, y, self.model)} | more


def prepare(
    inputs: Inputs, absences: Sequence[str] = (), numbers: Sequence[int] = (), count: int | None = None
) -> Problem:
    """Load what the options name, and choose samples."""
    loaded = load_model(inputs.model, inputs.weights, inputs.trust, inputs.device, inputs.untrained)
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
    notes = [*getattr(loaded, "notes_on_file", ()), *samples.notes]
    chosen = samples.choose(numbers, count, inputs.seed)
    players = load_players(inputs.players, samples, tokens).with_categorical(samples.table.categorical)
    if inputs.categorical:
        players = players.with_categorical([find_columns(word, samples) for word in inputs.categorical])
    return Problem(inputs, model, samples, chosen, players, notes)


def find_columns(word: str, samples: Samples) -> list[int]:
    """Return the numbers of the columns that a word lists, by name or number."""
    columns = samples.x[0].numel()
    numbers = {str(number): number for number in range(columns)}
    numbers |= {name: number for number, name in enumerate(samples.table.columns)}
    found = []
    for part in word.split(","):
        if part not in numbers:
            raise wrong("categorical", f"name columns, or numbers from 0 to {columns - 1}", repr(part))
        found.append(numbers[part])
    return found


def fit_model(
    loaded: Any, x: Tensor, table: EncodedTable | None = None, probabilities: bool = False
) -> tuple[Model, bool]:
    """Convert a loaded model to one that runs on the rows, which a table decodes; return also if it takes tokens."""
    model, wrapped = as_model(loaded), is_estimator(loaded)
    if wrapped and table is not None:
        model = from_estimator(loaded, table)
        _check_categories(model, table, x)
    elif not (wrapped or isinstance(loaded, nn.Module) or _takes_tensors(loaded, x)):
        model = from_numpy(loaded, probabilities=probabilities)
    elif probabilities and not wrapped:
        model = _in_logarithms(loaded)
    return model, _takes_tokens(model, x)


def _check_categories(model: Model, table: EncodedTable, x: Tensor, argument: str = "data") -> None:
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


def _in_logarithms(model: Model) -> Model:
    """Convert a model that returns probabilities to one that returns logits."""
    if not isinstance(model, nn.Module):
        return lambda rows: log_probabilities(model(rows))
    model.register_forward_hook(lambda _module, _inputs, output: log_probabilities(output))
    return model


def _takes_tensors(model: Callable[[Any], Any], x: Tensor) -> bool:
    """Return whether a callable uses torch. numpy refuses a tensor that requires a gradient."""
    rows = x[[0, -1]]
    if rows.is_floating_point():
        rows = rows.clone().requires_grad_().clone()  # not a leaf, which can't be changed in place
    return isinstance(_try(model, rows), Tensor)  # if not, the callable is tried with arrays, which shows errors


def _takes_tokens(model: Model, x: Tensor) -> bool:
    """Run the model on two and on three rows. Return whether it takes integers only: tokens."""
    device, dtype = placement(model, x)
    tokens = False
    for rows in (x[[0, -1]], x[[0, -1, 0]]):
        must = f"run on any number of rows of the data, here of shape {tuple(rows.shape)}"
        with evaluation_mode(model), reading("model", must, then=RUN_HELP):
            try:
                model(rows.to(device, dtype))
            except Exception:
                if x.is_floating_point():
                    raise
                model(rows.to(device).long())
                tokens = True
    return tokens


def load_players(word: str | None, samples: Samples, tokens: bool = False) -> Players:
    """Make players from a word, a label map or a JSON file; with ``tokens`` the model takes integers only."""
    shape = tuple(samples.x.shape[1:])
    if tokens and word not in (None, "tokens"):
        raise wrong("players", "be tokens for a model that takes whole numbers only", word)
    usual = f"grid:{min(4, shape[1])}x{min(4, shape[2])}" if len(shape) == 3 else "features"
    word = "tokens" if tokens else word or usual
    path = Path(word.removeprefix("groups:"))
    suffix = path.suffix.lower()
    if word == "tokens" and len(shape) in (1, 2):
        return Players.tokens(shape[0], shape[1] if len(shape) == 2 else None)
    if word == "features" and len(shape) == 1:
        return Players.features(samples.table.columns or shape[0], samples.table.categories)
    if word.partition(":")[0] == "grid" and len(shape) == 3:
        return Players.grid((shape[0], shape[1], shape[2]), parse_size("players", word.removeprefix("grid:")))
    if suffix == ".json" and len(shape) == 1:
        with reading("players", 'map names to lists of columns, as in {"size": ["width", "height"]}', path):
            pairs = json.loads(path.read_text(), object_pairs_hook=list)  # which keeps names that occur twice
            groups = {str(name): list(columns) for name, columns in pairs}
            if len(groups) < len(pairs):
                raise wrong("players", "name each group once", ", ".join(name for name, _ in pairs))
        return Players.groups(groups, samples.table.columns or shape[0])
    if suffix in (".npy", ".npz", ".csv", ".png"):
        return _segments(check_file("players", path), shape)
    must = "be features, grid:7x7, tokens, or a file (.npy, .npz, .csv or .png of labels, .json of groups)"
    raise wrong("players", f"{must} that suits samples of shape {shape}", word)


def parse_size(argument: str, word: str) -> tuple[int, int]:
    """Read two whole numbers, as in 7x7."""
    parts = word.lower().split("x")
    if len(parts) != 2 or not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise wrong(argument, "be two numbers, height and width, as in 7x7", repr(word))
    return int(parts[0]), int(parts[1])


def _segments(path: Path, shape: tuple[int, ...]) -> Players:
    """Read a map of labels that has the shape of a sample, or of one channel."""
    suffix = path.suffix.lower()
    with reading("players", "be a file of labels that can be read", path):
        if suffix == ".png":
            with require("PIL.Image", "images").open(path) as image:
                found: Any = np.array(image)
        elif suffix == ".csv":
            found = np.loadtxt(path, delimiter=",")
        else:
            found = np.load(path, allow_pickle=False)
            found = found[found.files[0]] if hasattr(found, "files") else found
    if found.dtype.kind not in "iuf" or not np.array_equal(found, np.round(found)):
        raise wrong("players", f"hold labels that are whole numbers, {path}", f"{found.dtype} values")
    labels = found.astype(np.int64)
    if suffix == ".png":
        labels[labels == VOID] = ALWAYS_PRESENT
    if labels.shape not in (shape, shape[1:] if len(shape) == 3 else shape):
        raise wrong("players", f"have the shape of one sample, {shape}", f"a map of shape {labels.shape} in {path}")
    return Players.segments(np.broadcast_to(labels, shape))


def load_readout(
    word: str | None, y: int | Int[Tensor, " samples"] | None, model: Model | None = None
) -> ab.Readout | None:
    """Make a readout from a word, and the class or the classes of samples, which without a word the library reads."""
    if word is None and isinstance(y, int):
        return ab.Margin(y) if getattr(model, "scores", False) else ab.LogOdds(y)
    if word is None:
        return None
    name, _, detail = word.partition(":")
    if name in OF_A_CLASS and not detail:
        if y is None:
            raise wrong("target", f"be given for the {name} of a class", "none", "Or use --class NUMBER.")
        return OF_A_CLASS[name](y)
    if name == "output" and (not detail or detail.isdecimal()):
        return ab.Output(int(detail or 0))
    if name == "features" and detail:
        return ab.Features(detail)
    raise wrong(
        "readout", "be log-odds, logit, score, probability, output, output:NUMBER or features:LAYER", repr(word)
    )


def load_absences(words: Sequence[str], problem: Problem) -> dict[str, ab.Absence]:
    """Make absences for the chosen samples from words of `named_absence`, saved files, or ``name=`` these."""
    found = dict[str, ab.Absence]()
    for word in words:
        name, spec = _split_name(word)
        if name in found:
            then = f"Give one of them another name, as in other={spec}."
            raise wrong("absence", "have a name of its own", f"{name!r} twice", then)
        path = Path(spec)
        if path.suffix in SAVED or path.is_file():
            found[name] = saved = ab.load(check_file("absence", path))
            if not isinstance(saved, ab.Absence):
                raise wrong("absence", "be a saved baseline, imputer or surrogate", f"{path}, a saved {saved.KIND}")
        else:
            found[name] = make_absence(spec, problem)
    return found


def usual_absences(problem: Problem) -> dict[str, ab.Absence]:
    """Make the usual absences for the chosen samples."""
    words = usual_words(problem.samples.background, problem.players)
    if "neighbours" in words and len(_rows_for("neighbours", problem)) == 0:
        words.remove("neighbours")
    return {word: make_absence(word, problem) for word in words}


def make_absence(word: str, problem: Problem) -> ab.Absence:
    """Make the absence that a word names from the background, in the type of the samples, as the library does."""
    rows = _rows_for(word, problem)
    if len(rows) == 0:
        then = "Name a --background, or choose fewer samples."
        raise wrong("background", "hold rows besides the chosen samples for neighbours", "none", then)
    samples = model_rows(problem.model, problem.samples.x[problem.chosen], problem.players)
    return named_absence(word, rows.to(samples), players=problem.players, seed=problem.inputs.seed)


def _rows_for(word: str, problem: Problem) -> Tensor:
    """Return the background; for neighbours without the chosen samples, which would be their own nearest rows."""
    rows = problem.samples.background
    if word.partition(":")[0] != "neighbours" or not problem.samples.background_is_data:
        return rows
    return rows[~torch.isin(torch.arange(len(rows)), problem.chosen)]


def saved_coding(words: Sequence[str]) -> dict[str, Any] | None:
    """Return the coding of the tables that saved absences were made for, if any."""
    paths = [Path(_split_name(word)[1]) for word in words]
    headers = [read_header(path) for path in paths if path.suffix in SAVED and path.is_file()]
    found: list[dict[str, Any]] = [header["coding"] for header in headers if isinstance(header.get("coding"), dict)]
    if any(coding != found[0] for coding in found):
        raise wrong("absences", "be saved for the same columns and categories", "files for different ones")
    return found[0] if found else None


def _split_name(word: str) -> tuple[str, str]:
    """Split ``name=word``. The default name is the word, or the stem of the file."""
    name, equals, spec = word.partition("=")
    if equals and name and spec and not Path(word).exists():
        return name, spec
    path = Path(word)
    return (path.stem if path.suffix in SAVED else word.partition(":")[0]), word
