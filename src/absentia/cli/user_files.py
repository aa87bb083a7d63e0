"""What users bring: models, as Python objects or files of torch, ONNX or scikit-learn; and data that these take."""

import importlib.util
import inspect
import pickle
import pkgutil
import sys
import warnings
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass, replace
from importlib.machinery import PathFinder
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Int, Shaped
from safetensors.torch import load_file
from torch import Tensor, nn

from absentia.cli.output import check_file, check_trust, describe, reading
from absentia.data import as_tensor, class_numbers, holds_text, seeded
from absentia.errors import AbsentiaError, require, wrong
from absentia.interop.encoded_tables import EncodedTable, listed
from absentia.models.adapters import as_model, labels_of
from absentia.models.arrays import NumpyModel

TORCH_FILES = (".pt", ".pth", ".ts", ".jit", ".torchscript")
PICKLES = (".pkl", ".pickle", ".joblib")
FILES = (*TORCH_FILES, ".pt2", ".onnx", ".skops", *PICKLES)
NAME_IT = "Better, name the function that builds the network: --model package.module:build --weights FILE."
# Keys under which training scripts save weights, and prefixes that wrappers add to their names.
_ENTRIES = ("state_dict", "model_state_dict", "model")
_PREFIXES = ("module.", "_orig_mod.")
PARQUET = (".parquet", ".pq")
TABLES = (".csv", ".tsv", *PARQUET)
ARRAYS = (".npz", ".npy")
IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm")
GREY_MODES = ("1", "L", "I", "I;16", "F", "LA")
NAMES = ("data", "background")
NO_TABLE = EncodedTable(torch.empty(0, 0), (), {}, {})  # of arrays and images


def is_estimator(model: Any) -> bool:
    """Return whether a loaded model is an estimator or a booster, which the library wraps."""
    return isinstance(as_model(model), NumpyModel)


def devices() -> dict[str, str]:
    """Return the devices that torch has here, and the names of GPUs."""
    found = {f"cuda:{number}": torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())}
    return {"cpu": ""} | found | ({"mps": ""} if torch.backends.mps.is_available() else {})


def load_model(
    word: str, weights: str | None = None, trust: bool = False, device: str | None = None, untrained: bool = False
) -> Any:
    """Load ``package.module:object``, with weights unless it may be ``untrained``, or a file. Most need ``trust``."""
    path = Path(word)
    suffix = path.suffix.lower()
    if suffix in FILES or path.exists():
        model = _read(check_file("model", path), suffix, trust)
    else:
        model = _load_object(word, check=weights is None and not untrained)
    as_model(model)  # refuses what is no model
    for option, given in (("weights", weights), ("device", device)):
        if given is not None and not isinstance(model, nn.Module):
            raise wrong(option, "be left out for a model that is not a torch network", given)
    if weights is not None:
        _load_weights(model, check_file("weights", Path(weights)), trust)
    if device is None:
        return model
    try:
        torch.zeros(1, device=device).tolist()  # which fails on the device "meta" too
    except Exception as error:
        raise wrong("device", f"be one that torch has here: {', '.join(devices())}", repr(device)) from error
    return model.to(device)


def _load_object(word: str, check: bool) -> Any:
    """Import ``package.module:object``. Call it if it is a class or needs no arguments; ``check`` its weights."""
    module, _, path = word.partition(":")
    then = f"The working directory is {Path.cwd()}."
    if module.endswith(".py"):
        then = f"Write {Path(module).stem}:{path}, in the folder of the file."
    if not all(part.isidentifier() for part in (*module.split("."), *path.split("."))):
        raise wrong("model", "name a file that exists, or an object as package.module:object", repr(word), then)
    local = Path.cwd() / f"{module.partition('.')[0]}.py"
    if str(Path.cwd()) not in sys.path and (local.is_file() or local.with_suffix("").is_dir()):
        # For good: a model may import more when called. Last: no file here stands in for a package, nor in pandas.
        with suppress(ImportError):
            importlib.import_module("pandas")
        sys.path.append(str(Path.cwd()))
    spec = PathFinder.find_spec(local.stem)
    if local.is_file() and spec is not None and spec.origin != str(local):
        then = f"The file {local.name} is not used, because {spec.origin} has the same name. Rename it."
    # What the module prints is not part of the command's output.
    with redirect_stdout(sys.stderr), reading("model", "name an object that can be imported or made", word, then):
        found = pkgutil.resolve_name(word)
        if not _makes_model(found):
            return found
        before = torch.get_rng_state()
        model = found()
        if check and not torch.equal(before, torch.get_rng_state()):
            made = [list(one.parameters()) if isinstance(one, nn.Module) else [] for one in (model, found())]
            if not all(map(torch.equal, *made)):  # equal weights are loaded, or drawn from a fixed seed
                then = "Pass --weights FILE, or --untrained to go on."
                raise AbsentiaError(f"The network that {word} makes has random weights. {then}")
        return model


def _makes_model(found: Any) -> bool:
    """Return whether an object makes a model: a class, or a function that needs no arguments."""
    if isinstance(found, type):
        return True
    if isinstance(found, nn.Module) or not callable(found) or hasattr(found, "predict"):
        return False
    with suppress(TypeError, ValueError):  # it needs arguments, or is written in C and has no signature
        inspect.signature(found).bind()
        return True
    return False


def _read(path: Path, suffix: str, trust: bool) -> Any:
    if suffix == ".onnx":
        why = "onnx2torch is not installed"
        if importlib.util.find_spec("onnx2torch") is not None:
            try:
                return require("onnx2torch").convert(str(path)).eval()
            except Exception as error:  # the graph then runs as a black box
                why = f"onnx2torch can't convert the file ({describe(error)})"
        return OnnxModel(path, why)
    if suffix == ".skops":
        skops = require("skops.io", "skops")
        with reading("model", "be a file that skops saved", path):
            unknown = sorted(skops.get_untrusted_types(file=path))
            what = f"makes objects that skops does not know to be safe, {', '.join(unknown)}"
            check_trust(trust or not unknown, path, what, "Look at these names first.")
            return skops.load(path, trusted=unknown)
    if suffix in PICKLES:
        better = "Better, save the model with skops.io.dump(estimator, 'model.skops')."
        check_trust(trust, path, "is a pickle, which can run any code when it is read", better)
        with reading("model", "be a pickle that can be read", path):
            return require("joblib", "sklearn").load(path)  # which reads plain pickles too
    if suffix == ".pt2" or (suffix in TORCH_FILES and _is_script(path)):
        return _read_program(path, suffix == ".pt2", trust)
    if suffix not in (".safetensors", *TORCH_FILES):
        raise wrong("model", f"be a file of one of these kinds: {', '.join(FILES)}", path)
    found = _read_torch(path, "model", trust)
    if not isinstance(found, nn.Module):
        raise wrong("model", "be a whole network", f"{path}, which holds weights or other values", NAME_IT)
    return found


def _read_program(path: Path, exported: bool, trust: bool) -> nn.Module:
    """Read a program of torch.export or TorchScript."""
    # torch.export.load may unpickle constants without limits, and evaluates shapes as expressions.
    what = "is a file of torch.export, parts of which torch unpickles: it can run any code when it is read"
    if not exported:  # torch.from_file, which every such program may call, maps any file for writing.
        what = "is a TorchScript file, which is a program that can read and overwrite files when it runs"
    check_trust(trust, path, what, NAME_IT)
    with reading("model", "be a file that torch saved", path), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about deprecated parts of torch, TorchScript among them
        program: Any = torch.export.load(path) if exported else torch.jit.load(path, map_location="cpu")
        # In a container, because TorchScript takes no hooks itself.
        return program.module() if exported else nn.Sequential(program)


def _is_script(path: Path) -> bool:
    """Return whether a file is TorchScript. Files of torch.save are archives too, but hold no code."""
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return any("/code/" in name or name.endswith("/constants.pkl") for name in archive.namelist())


def _read_torch(path: Path, argument: str, trust: bool) -> Any:
    """Read safetensors, or a file of torch.save: tensors and containers of them, or anything if it is trusted."""
    with reading(argument, "be a file that torch can read", path):
        if path.suffix == ".safetensors":
            return load_file(path)
        try:
            return torch.load(path, map_location="cpu", weights_only=not trust)
        except pickle.UnpicklingError as error:
            # An unsupported operand is a byte that no pickle has: the file is something else.
            if "Weights only load failed" in str(error) and "Unsupported operand" not in str(error):
                what = "is a pickle that holds Python objects: it can run any code when it is read"
                check_trust(trust, path, what, "Better, save model.state_dict(), or its tensors with safetensors.")
            raise wrong(argument, "be a file that torch can read", path) from error


def _load_weights(network: nn.Module, path: Path, trust: bool) -> None:
    """Load weights from a safetensors file or a state_dict that torch saved."""
    found = _read_torch(path, "weights", trust)
    with reading("weights", "hold the tensors of the model by name", path):
        if isinstance(found, nn.Module):
            found = found.state_dict()
        for entry in _ENTRIES:
            found = found[entry] if isinstance(found.get(entry), Mapping) else found
        for prefix in _PREFIXES:
            if all(name.startswith(prefix) for name in found):
                found = {name.removeprefix(prefix): tensor for name, tensor in found.items()}
        network.load_state_dict(found)


class OnnxModel:
    """An ONNX graph with one input as a numpy callable that returns its first floating-point output."""

    def __init__(self, path: Path, why: str) -> None:
        runtime = require("onnxruntime", "onnx")
        with reading("model", "be an ONNX file with one input of numbers", path):
            self.session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
            (first,) = self.session.get_inputs()
            name = first.type.removeprefix("tensor(").removesuffix(")")
            self.input, self.dtype = first.name, np.dtype({"float": "float32", "double": "float64"}.get(name, name))
        found = self.session.get_outputs()
        self.output = next((one.name for one in found if one.type in ("tensor(float)", "tensor(double)")), None)
        if self.output is None:
            got = ", ".join(f"{one.name} of {one.type}" for one in found)
            then = "Convert scikit-learn's classifiers with zipmap=False, so that probabilities are a tensor."
            raise wrong("model", "have an output of floating-point numbers", got, then)
        fixed = first.shape and isinstance(first.shape[0], int) and first.shape[0] > 0
        self.batch = first.shape[0] if fixed else None  # the number of rows that the graph takes at a time
        slow = f"The ONNX file runs as a black box, without gradients, because {why}."
        self.notes_on_file = [f"{slow} Its output is {self.output!r}."]

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Run the graph, in padded batches if its number of rows is fixed."""
        size = self.batch or len(rows)
        padding = np.repeat(rows[-1:], -len(rows) % size, axis=0)
        parts = np.split(np.concatenate([rows, padding]).astype(self.dtype), -(-len(rows) // size))
        found = [np.asarray(self.session.run([self.output], {self.input: part})[0]) for part in parts]
        return np.concatenate(found)[: len(rows)]


@dataclass(frozen=True, eq=False)
class RawData:
    """Rows as a file holds them, a DataFrame or an array, and their targets, if any."""

    inputs: Any
    target: np.ndarray | None
    folders: tuple[str, ...] = ()  # the names of subfolders, if they are the classes
    names: Sequence[str] = ()  # of the rows, if they have any


def read_data(
    source: str | Path, target: str | None = None, *, argument: str = "data", drop: tuple[str, ...] = (),
    index: str | None = None, rows: int | None = None, size: tuple[int, int] | None = None,
    channels: int | None = None,
) -> RawData:  # fmt: skip
    """Read a table, arrays or a folder of images, and the targets, which a background may lack."""
    head, _, key = str(source).rpartition(":")
    has_key = head.lower().endswith(".npz")
    path = Path(head if has_key else source)
    suffix = path.suffix.lower()
    if not path.is_file() and not path.is_dir():
        raise wrong(argument, "name a file or a folder that exists", path)
    for option, columns in (("drop", ", ".join(drop)), ("index", index)):
        if columns and suffix not in TABLES:
            raise wrong(option, "be left out if the data are not a table", columns)
    if path.is_dir():
        if target is not None and argument == "data":
            raise wrong("target", "be left out for a folder of images, whose subfolders are the classes", target)
        return _read_images(path, argument, rows, size, channels)
    if size is not None or channels is not None:
        raise wrong("size and channels", "be left out if the data are not a folder of images", path)
    if suffix in TABLES:
        found = _read_table(path, argument, target, drop, index)
    elif suffix in ARRAYS:
        found = _read_arrays(path, argument, key if has_key else None, target)
    else:
        raise wrong(argument, f"be a folder of images, or one of {', '.join(TABLES + ARRAYS)}", path)
    return replace(found, inputs=found.inputs[:rows], target=None if found.target is None else found.target[:rows])


def _read_table(path: Path, argument: str, target: str | None, drop: tuple[str, ...], index: str | None) -> RawData:
    """Read a table with pandas. Separate the target and the names of the rows, and drop columns."""
    pandas, suffix = require("pandas", "tables"), path.suffix.lower()
    if suffix in PARQUET:
        require("pyarrow", "parquet")
    separator = "\t" if suffix == ".tsv" else ","
    with reading(argument, "be a table that pandas can read", path), warnings.catch_warnings():
        warnings.simplefilter("error", pandas.errors.ParserWarning)  # of rows with more fields than the header
        named = {} if suffix in PARQUET else {"sep": separator, "index_col": False}  # no field names its row
        frame = (pandas.read_parquet if suffix in PARQUET else pandas.read_csv)(path, **named)
    header = frame.columns = frame.columns.astype(str)
    if suffix not in PARQUET:  # pandas renames columns that are there twice, or have no name
        first = pandas.read_csv(path, sep=separator, header=None, nrows=1, dtype=str, na_filter=False)
        header = pandas.Index(first.iloc[0])
    twice = [repr(name) for name in header[header.duplicated()].unique()]
    if twice:
        then = "Rename the columns, so that --drop and --target can tell them apart."
        raise wrong(argument, "have each column once", f"{', '.join(twice[:6])} more than once in {path}", then)
    if list(header[:1]) == [""] and index is None:  # so pandas writes the names of rows
        index = frame.columns[0]
    if argument != "data":
        target, index = (column if column in frame.columns else None for column in (target, index))
    for option, column in [*(("drop", one) for one in drop), ("target", target), ("index", index)]:
        if column is not None and column not in frame.columns:
            raise wrong(option, f"name a column of the table: {listed(frame.columns)}", repr(column))
    names = [] if index is None else frame[index].astype(str).tolist()
    left = frame.drop(columns=[*drop, *(column for column in (target, index) if column is not None)])
    if left.empty:
        must = "hold at least one row, and one column besides the target, the index and the dropped ones"
        raise wrong(argument, must, f"{len(left)} rows and {left.shape[1]} columns in {path}")
    if target is None:
        return RawData(left, None, names=names)
    missing = frame[target].isna().to_numpy()
    if missing.any():
        raise wrong("target", f"have no missing values in column {target!r}", f"one in row {int(missing.argmax())}")
    return RawData(left, frame[target].to_numpy(), names=names)


def likely_targets(data: RawData) -> str:
    """Say which columns may hold classes, if no target is given: text or whole numbers, with few different values."""
    if data.target is not None or not hasattr(data.inputs, "columns"):
        return ""
    whole = data.inputs.select_dtypes(exclude="floating")
    counts = whole.nunique()
    found = counts[counts <= min(20, len(whole) // 2)].index
    return f" Was --target forgotten? It could name {listed(found, 6)}." if len(found) else ""


def _read_arrays(path: Path, argument: str, key: str | None, target: str | None) -> RawData:
    """Read arrays of samples and targets. Nothing in the file is unpickled."""
    then = "Arrays of Python objects, which can run code, are not read."
    with reading(argument, "be a file of numpy arrays", path, then), path.open("rb") as file:
        found = np.load(file, allow_pickle=False)
        arrays: dict[str, np.ndarray] = dict(found) if isinstance(found, Mapping) else {"x": found}
    others = [name for name in arrays if name not in (target, "y")]
    usual = [name for name in ("x", "X") if name in arrays] or (others if len(others) == 1 else [])
    name = key or (usual[0] if usual else "none")
    for option, wanted in ((argument, name), ("target", target if argument == "data" else None)):
        if wanted is not None and wanted not in arrays:
            then = "Name the array of samples as in file.npz:key, and that of targets with --target."
            raise wrong(option, f"name an array of {path.name}: {', '.join(arrays)}", wanted, then)
    if target not in arrays:
        target = "y" if "y" in arrays and name != "y" else None
    inputs, classes = arrays[name], None if target is None else arrays[target]
    if inputs.ndim < 2 or inputs.size == 0 or inputs.dtype.kind not in "fiub":
        got = f"{inputs.dtype} of shape {inputs.shape} for {name!r}"
        raise wrong(argument, "hold samples, numbers of shape (samples, …)", got)
    if classes is not None and (classes.ndim != 1 or len(classes) != len(inputs)):
        raise wrong("target", f"hold one class for each of the {len(inputs)} samples", f"shape {classes.shape}")
    return RawData(inputs, classes)


def _read_images(
    folder: Path, argument: str, rows: int | None, size: tuple[int, int] | None, channels: int | None
) -> RawData:
    """Read images as (samples, channels, height, width) with pixels from 0 to 1. Subfolders are the classes."""
    if channels not in (None, 1, 3):
        raise wrong("channels", "be 1 for grey or 3 for colours", channels)
    require("PIL", "images")
    classes = sorted(path.name for path in folder.iterdir() if path.is_dir() and _images_in(path))
    groups = [_images_in(folder / name) for name in classes] or [_images_in(folder)]
    if classes and _images_in(folder):
        raise wrong(argument, "hold images in subfolders or in itself, not both", folder)
    if not any(groups):
        raise wrong(argument, f"hold images ({', '.join(IMAGES)})", f"none in {folder}")
    # With fewer rows, take the first images of each class in turn.
    chosen = sorted([path for path in chain.from_iterable(zip_longest(*groups)) if path is not None][:rows])
    images, pillow = [], require("PIL.Image", "images")
    for path in chosen:
        with reading(argument, "hold images that can be read", path), pillow.open(path) as image:
            images.append(image.copy() if size is None else image.resize(size[::-1]))
    if channels is None:
        channels = 1 if all(image.mode in GREY_MODES for image in images) else 3
    with reading(argument, "hold images of one size", folder, "Use --size to resize them, as in --size 224x224."):
        pixels = np.stack([_pixels(image, channels) for image in images])
    target = np.array([path.parent.name for path in chosen])
    names = [str(path.relative_to(folder)) for path in chosen]
    if all(name.isdecimal() for name in classes):  # folders that are named by class numbers, or none
        return RawData(pixels, target.astype(np.int64) if classes else None, names=names)
    return RawData(pixels, target, tuple(classes), names)


def _images_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.suffix.lower() in IMAGES and path.is_file())


def _pixels(image: Any, channels: int) -> np.ndarray:
    """Convert an image to numbers from 0 to 1."""
    if image.mode in ("I", "I;16"):  # 16 bits, which pillow would clip at 255
        return np.repeat(np.asarray(image, dtype=np.float32)[None] / 65535, channels, axis=0)
    array = np.asarray(image.convert("L" if channels == 1 else "RGB"), dtype=np.float32) / 255
    return array[None] if channels == 1 else array.transpose(2, 0, 1)


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples, their classes, and the background that absences are made from, in the form the model takes."""

    x: Shaped[Tensor, "samples *entries"]
    y: Int[Tensor, " samples"] | None
    background: Shaped[Tensor, "rows *entries"]
    background_is_data: bool = True  # whether the samples themselves are the background
    table: EncodedTable = NO_TABLE  # the columns of a table, and the categories that are coded
    classes: tuple[Any, ...] = ()  # names in the order of the model's outputs, if they are known
    notes: tuple[str, ...] = ()
    names: Sequence[str] = ()  # of the rows, if they have any

    @property
    def coding(self) -> dict[str, Any]:
        """The columns and categories of a table, to save with results, so that other tables are coded alike."""
        columns, categories = self.table.columns, self.table.categories
        return {"coding": {"columns": columns, "categories": categories}} if columns else {}

    def choose(self, numbers: Sequence[int], count: int | None, seed: int) -> Int[Tensor, " chosen"]:
        """Return the named rows of samples, or else ``count`` that are drawn, or all."""
        bad = [one for one in numbers if not 0 <= one < len(self.x) or numbers.count(one) > 1]
        if bad:
            raise wrong("sample", f"be a row from 0 to {len(self.x) - 1}, each named once", bad[0])
        if numbers or count is None or count >= len(self.x):
            return torch.tensor(numbers or range(len(self.x)))
        return torch.randperm(len(self.x), generator=seeded(seed))[:count]


def make_samples(
    data: RawData, model: Any, background: RawData | None = None, classes: Sequence[str] = (), coding: Any = None
) -> Samples:
    """Convert data and background to what the model takes, with columns as an estimator or a saved ``coding`` has."""
    labels = labels_of(as_model(model))
    notes: list[str] = []
    names = tuple(classes) or labels or data.folders
    is_regressor = is_estimator(model) and not labels
    y = None if is_regressor or data.target is None else _class_numbers(data.target, names, notes)
    if data.folders and names == data.folders:
        shown = ", ".join(f"{number} is {name}" for number, name in enumerate(names[:6]))
        notes.append(f"Classes are subfolders by name: {shown}.")
    sources, table = [data.inputs] if background is None else [data.inputs, background.inputs], NO_TABLE
    if hasattr(data.inputs, "columns"):
        rows, table = _code_tables(sources, model, coding, notes)
    else:
        rows = [as_tensor("data", one) for one in sources]
    if rows[-1].shape[1:] != rows[0].shape[1:]:
        must = f"hold rows of the samples' shape {tuple(rows[0].shape[1:])}"
        raise wrong("background", must, tuple(rows[-1].shape[1:]))
    return Samples(rows[0], y, rows[-1], background is None, table, names, tuple(notes), data.names)


def _class_numbers(target: np.ndarray, names: Sequence[Any], notes: list[str]) -> Tensor | None:
    """Convert targets to numbers in the order of the model's outputs."""
    if names:
        as_text = any(isinstance(name, str) for name in names)
        return class_numbers(target.astype(str) if as_text else target, names, "target")
    if holds_text(target):
        found = sorted({str(value) for value in target.tolist()})
        then = f"Use --classes {','.join(found[:6])}, in the order of the model's outputs."
        raise wrong("target", "hold class numbers, or names that --classes puts in order", ", ".join(found[:6]), then)
    if target.dtype.kind == "f" and not np.array_equal(target, np.round(target)):
        notes.append("The target holds no classes. The output of the model is explained as it is.")
        return None
    return class_numbers(target, name="target")


def _code_tables(
    frames: list[Any], model: Any, coding: Mapping[str, Any] | None, notes: list[str]
) -> tuple[Sequence[Tensor], EncodedTable]:
    """Convert the tables of samples and background to numbers in the same way."""
    if not all(hasattr(frame, "columns") for frame in frames):
        raise wrong("background", "be a table like the data", "arrays or images")
    usual = frames[0].columns if coding is None else coding["columns"]
    wanted = [str(name) for name in getattr(model, "feature_names_in_", usual)]
    for frame, argument in zip(frames, NAMES, strict=False):
        missing = [column for column in wanted if column not in frame.columns]
        if missing:
            raise wrong(argument, f"have the columns {listed(wanted)}", f"none named {missing[0]!r}")
    extra = frames[0].columns.difference(wanted, sort=False)
    if len(extra):
        notes.append(f"Columns that the model does not take are ignored: {listed(extra, 8)}.")
    whole = require("pandas", "tables").concat(frames, ignore_index=True)[wanted]
    flags = () if is_estimator(model) else whole.select_dtypes("bool").columns
    table = EncodedTable.of(whole.astype(dict.fromkeys(flags, float)))  # booleans are numbers for a network
    if table.categories and not is_estimator(model):
        then = "Code it as numbers in the way that the model was trained with, or drop it with --drop."
        got = f"text in {next(iter(table.categories))!r}"
        raise wrong("data", "hold numbers for a model that is not an estimator", got, then)
    if coding is not None:
        categories = {column: tuple(values) for column, values in coding["categories"].items()}
        new = [column for column in table.categories if column not in categories]
        if new:
            raise wrong(f"column {new[0]!r}", "hold numbers, as it did when the absence was saved", "text")
        dtypes = {column: whole[column].dtype for column in categories}
        table = replace(table, columns=tuple(coding["columns"]), categories=categories, dtypes=dtypes)
    empty = [column for column in table.categories if whole[column].isna().any()]
    if empty:
        notes.append(f"Missing values are a category of their own in {listed(empty, 8)}.")
    return [as_tensor(name, table.numbers(frame)) for name, frame in zip(NAMES, frames, strict=False)], table
