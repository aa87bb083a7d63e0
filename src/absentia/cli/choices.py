"""Players, readouts and absences as users name them: in words, or by a file."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

import absentia as ab
from absentia.absences.words import named_absence
from absentia.cli.output import check_file, reading
from absentia.cli.user_data import Samples
from absentia.errors import require, wrong
from absentia.players import ALWAYS_PRESENT, Players
from absentia.results import read_header

VOID = 255  # marks pixels of no segment in images, which hold no negative labels
SAVED = (".absentia", ".safetensors")
OF_A_CLASS: dict[str, Any] = {"log-odds": ab.LogOdds, "logit": ab.Logit, "probability": ab.Probability}


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
            groups = {str(name): list(columns) for name, columns in json.loads(path.read_text()).items()}
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


def load_readout(word: str | None, y: int | Int[Tensor, " samples"] | None) -> ab.Readout | None:
    """Make a readout from a word, and the class or the classes of samples, which without a word the library reads."""
    if word is None:
        return ab.LogOdds(y) if isinstance(y, int) else None
    name, _, detail = word.partition(":")
    if name in OF_A_CLASS and not detail:
        if y is None:
            raise wrong("target", f"be given for the {name} of a class", "none", "Or use --class NUMBER.")
        return OF_A_CLASS[name](y)
    if name == "output" and (not detail or detail.isdecimal()):
        return ab.Output(int(detail or 0))
    if name == "features" and detail:
        return ab.Features(detail)
    raise wrong("readout", "be log-odds, logit, probability, output, output:NUMBER or features:LAYER", repr(word))


def load_absences(
    words: Sequence[str], samples: Samples, players: Players, chosen: Int[Tensor, " samples"], seed: int = 0
) -> dict[str, ab.Absence]:
    """Make absences for the ``chosen`` samples from words of `named_absence`, saved files, or ``name=`` these."""
    found: dict[str, ab.Absence] = {}
    for word in words:
        name, spec = _split_name(word)
        if name in found:
            then = f"Give one of them another name, as in other={spec}."
            raise wrong("absence", "have a name of its own", f"{name!r} twice", then)
        path, rows = Path(spec), samples.background
        if path.suffix in SAVED or path.is_file():
            found[name] = saved = ab.load(check_file("absence", path))
            if not isinstance(saved, ab.Absence):
                raise wrong("absence", "be a saved baseline, imputer or surrogate", f"{path}, a saved {saved.KIND}")
            own, names = getattr(saved, "names", players.names), players.names
            if own != names and sorted(own) == sorted(names):
                must = f"be learned for the players in their order, {', '.join(names[:6])}"
                raise wrong("absence", must, f"{', '.join(own[:6])} in {path}")
            continue
        if spec.partition(":")[0] == "neighbours" and samples.background_is_data:
            # The nearest row of a sample would be the sample itself.
            rows = rows[~torch.isin(torch.arange(len(rows)), chosen)]
            if len(rows) == 0:
                then = "Name a --background, or choose fewer samples."
                raise wrong("background", "hold rows besides the chosen samples for neighbours", "none", then)
        categorical = samples.table.categorical
        found[name] = named_absence(spec, rows, players=players, categorical=categorical, seed=seed)
    return found


def saved_coding(words: Sequence[str]) -> dict[str, Any] | None:
    """Return the coding of the tables that saved absences were made for, if any."""
    paths = [Path(_split_name(word)[1]) for word in words]
    headers = [read_header(path) for path in paths if path.suffix in SAVED and path.is_file()]
    found: list[dict[str, Any]] = [header["coding"] for header in headers if "coding" in header]
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
