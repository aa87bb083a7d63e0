"""Saved models: a network's weights and what is to be known of them, in one safetensors file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from torch import nn

from absentia.errors import AbsentiaError, wrong
from absentia.papers.data_files import written_whole
from absentia.papers.networks import alexnet, lenet, mlp, resnet, vgg16
from absentia.papers.text_networks import text_cnn, text_lstm

# What a network's name stands for; numbers that follow the name are handed on.
ARCHITECTURES: dict[str, Callable[..., nn.Module]] = {
    "lenet": lenet,
    "alexnet": alexnet,
    "resnet20": lambda seed: resnet(20, seed),
    "resnet32": lambda seed: resnet(32, seed),
    "vgg16": vgg16,
    "cnn": text_cnn,
    "lstm": text_lstm,
}


@dataclass(frozen=True)
class Header:
    """What a saved model says of itself."""

    architecture: str  # as `build` takes it: 12-100-100-2, resnet20, cnn-14311
    data_set: str
    seed: int
    test_accuracy: float
    recipe: str
    absentia_version: str


def build(architecture: str, seed: int) -> nn.Module:
    """Build a network, untrained: an MLP by its widths, another by its name and the words of its vocabulary.

    >>> build("3-5-2", seed=0)
    Sequential(
      (0): Linear(in_features=3, out_features=5, bias=True)
      (1): ReLU()
      (2): Linear(in_features=5, out_features=2, bias=True)
    )
    >>> build("cnn-14311", seed=0).embedding
    Embedding(14311, 128, padding_idx=0)
    """
    name, *numbers = architecture.split("-")
    try:
        if name not in ARCHITECTURES:
            return mlp([int(name), *map(int, numbers)], seed)
        return ARCHITECTURES[name](*map(int, numbers), seed=seed)
    except (TypeError, ValueError, IndexError) as error:  # too many or too few numbers, none, or no words at all
        must = f"be widths such as 12-100-100-2, or one of {', '.join(ARCHITECTURES)}"
        then = "The last two take the words of a vocabulary, as in cnn-14311."
        raise wrong("architecture", must, repr(architecture), then) from error


def save(model: nn.Module, path: Path, header: Header) -> None:
    """Write a model and its header to one safetensors file; a reader sees the whole file or none.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "model.safetensors"
    >>> save(mlp((3, 5, 2), seed=0), path, Header("3-5-2", "toy", 0, 0.9, "none", "0.1"))
    >>> load(path)[1].test_accuracy
    0.9
    """
    import safetensors.torch

    metadata = {name: str(value) for name, value in asdict(header).items()}
    weights = {name: weight.contiguous().cpu() for name, weight in model.state_dict().items()}
    with written_whole(path) as unfinished:
        unfinished.write_bytes(safetensors.torch.save(weights, metadata=metadata))


def load(path: Path) -> tuple[nn.Module, Header]:
    """Read a model and its header; nothing in the file is ever run, as a pickle would be."""
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        raise wrong("path", "name a saved model", f"{path}, which is no file")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  a handle, not a dict
    except SafetensorError as error:
        raise _not_saved_here(path, "damaged or foreign content") from error
    header = _header(path, metadata)
    try:
        model = build(header.architecture, seed=0)
        model.load_state_dict(weights)
    except (RuntimeError, AbsentiaError) as error:
        raise _not_saved_here(path, f"weights that do not fit the architecture {header.architecture!r}") from error
    return model.eval(), header


def _header(path: Path, metadata: dict[str, str]) -> Header:
    missing = [field.name for field in fields(Header) if field.name not in metadata]
    if missing:
        raise _not_saved_here(path, f"a header without {', '.join(missing)}")
    known = {field.name: metadata[field.name] for field in fields(Header)}
    try:
        numbers = {"seed": int(known.pop("seed")), "test_accuracy": float(known.pop("test_accuracy"))}
    except ValueError as error:
        raise _not_saved_here(path, "a header whose seed or test_accuracy is no number") from error
    return Header(**known, **numbers)  # type: ignore[arg-type]  # the numbers are the fields that are not strings


def _not_saved_here(path: Path, got: str) -> AbsentiaError:
    return wrong(str(path), "be a model written by save", got, "Delete it, and it is trained again.")
