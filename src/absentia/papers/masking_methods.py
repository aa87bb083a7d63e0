"""Experiment on images: what masking methods remove of the signal, and what they add.

The paper's table of R on MNIST and CIFAR-10, and its check that white noise has little signal to remove.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from absentia.absence import Absence, Baseline, Blur, train_imputer
from absentia.audit import Audit, audit
from absentia.errors import wrong
from absentia.inference import Model
from absentia.learning import LearnedBaseline, learn_baseline
from absentia.learning.penalties import Loss
from absentia.papers.image_data import ImageData, cifar10, mnist
from absentia.papers.models import trained
from absentia.papers.results import ResultTable
from absentia.players import Players

IMAGES = 20
# The masked cells: four rows of three in the middle.
MASKED_ROWS, MASKED_COLUMNS = 4, 3
# The mean |U(S)| that the paper prints of an image, and of white noise.
PRINTED_NOISE = (5.5285, 0.2321)


@dataclass(frozen=True)
class Setting:
    """One of the paper's two image experiments: the grid, the printed R, and how much work goes into it."""

    cells: tuple[int, int]
    printed: Mapping[str, float]
    blur: float  # in pixels
    rows: int  # of training images: the mean, white noise's range and the imputer are taken from them
    loss: Loss
    orders: float  # λ, as a share of the players
    learned_from: int
    evaluations: int  # of the network, in one comparison of baselines
    steps: int
    draws: int


SETTINGS = {
    "mnist": Setting(
        cells=(7, 7),
        printed={"zero": 1.1736, "mean": 0.3043, "blur": 0.4159, "conditional": 0.3780, "learned": 0.2185},
        blur=3.0, rows=10_000, loss="marginal", orders=0.2, learned_from=256, evaluations=2**14, steps=60, draws=3,
    ),
    "cifar10": Setting(
        cells=(8, 8),
        printed={"zero": 0.6630, "mean": 0.8042, "blur": 0.7288, "conditional": 0.4027, "learned": 0.1211},
        blur=4.0, rows=10_000, loss="marginal", orders=0.2, learned_from=128, evaluations=2**12, steps=40, draws=2,
    ),
}  # fmt: skip
READERS = {"mnist": mnist, "cifar10": cifar10}


@dataclass(frozen=True, eq=False)
class Scene:
    """Training images, images to audit, and the players among them."""

    data: Float[Tensor, "rows channels height width"]
    labels: Int[Tensor, " rows"]
    x: Float[Tensor, "images channels height width"]
    y: Int[Tensor, " images"]
    shape: tuple[int, int, int]
    players: Players  # the cells in the middle; all others are always present
    cells: Int[Tensor, "channels height width"]  # the number of each entry's cell, of its own for every channel


def set_scene(images: ImageData, setting: Setting, seed: int) -> Scene:
    """Draw images by seed, and cut them into cells."""
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randperm(len(images.x_train), generator=generator)[: setting.rows]
    test = torch.randperm(len(images.x_test), generator=generator)[:IMAGES]
    channels, height, width = images.x_train.shape[1:]
    shape = (int(channels), int(height), int(width))
    cells = Players.grid(shape, setting.cells).labels
    cells = cells + int(cells.max() + 1) * torch.arange(shape[0])[:, None, None]
    players = Players.grid(shape, setting.cells, only=central_cells(setting.cells))
    data, labels = images.x_train[rows], images.y_train[rows]
    return Scene(data, labels, images.x_test[test], images.y_test[test], shape, players, cells)


def central_cells(cells: tuple[int, int]) -> list[tuple[int, int]]:
    """List the four rows of three cells in the middle of a grid.

    >>> central_cells((8, 8))[0], central_cells((8, 8))[-1], len(central_cells((8, 8)))
    ((2, 2), (5, 4), 12)
    """
    if cells[0] < MASKED_ROWS or cells[1] < MASKED_COLUMNS:
        raise wrong("cells", f"hold {MASKED_ROWS} rows of {MASKED_COLUMNS}", cells)
    top, left = (cells[0] - MASKED_ROWS) // 2, (cells[1] - MASKED_COLUMNS) // 2
    return [(top + row, left + column) for row in range(MASKED_ROWS) for column in range(MASKED_COLUMNS)]


def learn(model: Model, scene: Scene, setting: Setting, seed: int) -> LearnedBaseline:
    """Learn a colour for every cell, as the paper does, from training images."""
    return learn_baseline(
        model, scene.data, scene.labels, players=scene.players, tie=scene.cells, loss=setting.loss,
        orders=setting.orders, samples=setting.learned_from, evaluations=setting.evaluations, steps=setting.steps,
        seed=seed,
    )  # fmt: skip


def methods(model: Model, scene: Scene, setting: Setting, seed: int) -> dict[str, Absence]:
    """Make the masking methods of the paper's table."""
    return {
        "zero": Baseline(0.0),
        "mean": Baseline.mean(scene.data),
        "blur": Blur(setting.blur),
        "conditional": train_imputer(scene.data, players=Players.grid(scene.shape, setting.cells), seed=seed),
        "learned": learn(model, scene, setting, seed),
    }


def masking_tables(name: str, seed: int = 0) -> list[ResultTable]:
    """Audit the masking methods on the "mnist" or "cifar10" network, and compare images with white noise."""
    if name not in SETTINGS:
        raise wrong("name", f"be one of {', '.join(SETTINGS)}", repr(name))
    setting = SETTINGS[name]
    return compare(name, trained(name, seed), set_scene(READERS[name](), setting, seed), setting, seed)


def compare(name: str, model: nn.Module, scene: Scene, setting: Setting, seed: int) -> list[ResultTable]:
    """Make the table of R beside the paper's, and the table of images and white noise."""
    found = audit(
        model, scene.x, scene.y, methods(model, scene, setting, seed),
        players=scene.players, data=scene.data, draws=setting.draws, seed=seed,
    )  # fmt: skip
    return [tabulate(name, found, setting.printed), compare_with_noise(name, model, scene, setting, seed)]


def tabulate(name: str, found: Audit, printed: Mapping[str, float]) -> ResultTable:
    """Set R and its companions beside the printed R."""
    learned = found.methods.index("learned")
    rivals = {method: found.removal.difference(number, learned)
              for number, method in enumerate(found.methods) if number != learned}  # fmt: skip
    beaten = [method for method, gap in rivals.items() if float(gap.value) > 2 * float(gap.error)]
    value, _ = found.R.at(learned)
    lowest = "met" if len(beaten) == len(rivals) else "missed"
    as_printed = "met" if value <= printed["learned"] else "missed"
    note = (
        f"{found.record.samples} test images of {name}, the {len(found.region)} cells in the middle masked, "
        f"seed {found.record.seed}; {found.record.readout}; reference: {found.record.reference}, "
        f"{found.record.draws} draws. R of the unmasked images: {float(found.removal.unmasked.value):.3f}. The paper "
        "does not say against which state its effects were measured, so that its figures and these can be compared "
        f"in order only. Goals: learned has the lowest R by two standard errors ({lowest}: it has against "
        f"{', '.join(beaten) or 'none'}); at most the paper's {printed['learned']:g} ({as_printed}: {value:.3f}). "
        + " ".join((*found.verdict, *found.warnings))
    )
    heads = ("method", "R", "± error", "the paper's R", "removed", "Σ|U| of its own game", "salient", "low orders")
    table = ResultTable(f"What masking methods leave and add: {name}", heads, note)
    columns = {key: values.tolist() for key, values in found.columns().items()}
    for number, method in enumerate(found.methods):
        table.add(
            method, f"{columns['R'][number]:.3f}", f"{columns['R_error'][number]:.3f}", f"{printed[method]:.4f}",
            f"{columns['removed'][number]:.1%}", f"{columns['strength'][number]:.4g}",
            f"{columns['salient'][number]:.1f}", f"{columns['low_orders'][number]:.1%}",
        )  # fmt: skip
    return table


def compare_with_noise(name: str, model: nn.Module, scene: Scene, setting: Setting, seed: int) -> ResultTable:
    """Compare the mean effect of whole images with that of white noise, both measured against other white noise."""
    players = Players.grid(scene.shape, (MASKED_ROWS, MASKED_COLUMNS))
    found = audit(
        model, scene.x, scene.y, {"zero": Baseline(0.0)}, players=players, data=scene.data, draws=setting.draws,
        seed=seed,
    )  # fmt: skip
    sets = 2 ** len(players) - 1
    image, noise = (float(strength.mean()) / sets for strength in (found.removal.original, found.removal.noise))
    note = (
        f"Mean |U(S)| over the {sets:,} sets S ≠ ∅ of the {len(players)} cells that cut the whole image, of "
        f"{IMAGES} test images and of white noise in the data's range, against other white noise; seed {seed}. The "
        "paper names neither its network nor its players, so that the ratios can be compared, not the figures."
    )
    table = ResultTable(f"Effects of images and of white noise: {name}", ("input", "mean |U|", "the paper's"), note)
    table.add("image", f"{image:.4g}", f"{PRINTED_NOISE[0]:g}")
    table.add("white noise", f"{noise:.4g}", f"{PRINTED_NOISE[1]:g}")
    table.add("ratio", f"{image / noise:.1f}", f"{PRINTED_NOISE[0] / PRINTED_NOISE[1]:.1f}")
    return table
