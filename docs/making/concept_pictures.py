"""Draw the pictures of the concepts page: a leak, an invention, and what a learned baseline does; and concision.

Run this file to write them to ``docs/concepts/``. It trains the network of the demonstration, which takes a minute.
"""

from __future__ import annotations

from pathlib import Path

import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

import absentia as ab
from absentia.demo.tasks import Task, digit_model, digits

FOLDER = Path(__file__).parents[1] / "concepts"
_TRUE, _FALSE, _OTHER = "#009e73", "#d55e00", "#bbbbbb"  # the image's own digit, one that is not there, the others


def draw_absent(model: nn.Module, task: Task, absence: ab.Absence, sample: int, title: str) -> Figure:
    """Draw an image, the same with all parts absent, and the probabilities that the network gives to the latter."""
    x, digit = task.x_test[[sample]], int(task.y_test[sample])
    masked = absence.bind(x)(slice(None), torch.zeros(1, 1, 1, 8, 8, dtype=torch.bool))[0, 0]
    with torch.no_grad():
        said = model(masked.float()).softmax(1)[0]
    figure = Figure(figsize=(6.4, 2.1), layout="constrained")
    axes = figure.subplots(1, 3, width_ratios=(1, 1, 2))
    for place, image, text in zip(axes, (x[0, 0], masked[0, 0]), ("the sample", title), strict=False):
        place.imshow(image, cmap="gray", vmin=0, vmax=1)
        place.set(title=text, xticks=[], yticks=[])
    sure = int(said.argmax())
    colours = [_TRUE if one == digit else _FALSE if one == sure else _OTHER for one in range(10)]
    axes[2].bar(range(10), said, color=colours)
    axes[2].axhline(0.1, color="black", linewidth=0.8, linestyle="--")
    axes[2].set(
        title="the network's answer to this",
        xticks=range(10),
        ylim=(0, 1),
        xlabel="dashed: no idea",
    )
    axes[2].spines[["top", "right"]].set_visible(False)
    return figure


def typical(model: nn.Module, task: Task) -> int:
    """Return the number of the image that, blurred, has the median probability of its own digit."""
    blurred = ab.Blur(1.0).bind(task.x_test)(slice(None), torch.zeros(1, 1, 1, 8, 8, dtype=torch.bool))[:, 0, 0]
    with torch.no_grad():
        own = model(blurred).softmax(1).gather(1, task.y_test[:, None])[:, 0]
    return int(own.argsort()[len(own) // 2])


def draw_concision() -> Figure:
    """Draw all interactions of the page's function, by zero and by the values where its terms vanish."""

    def function(rows: Tensor) -> Tensor:
        a, b, c, d = rows.T
        return (a - 2) * (b - 1) * (c - 3) + 2 * (d - 1)

    players, x = ab.Players.features(["a", "b", "c", "d"]), torch.tensor([[4.0, 3.0, 4.0, 2.0]]).double()
    figure = Figure(figsize=(6.4, 2.3), layout="constrained")
    pair = {"zero": ab.Baseline(0.0), "true values": ab.Baseline(torch.tensor([2.0, 1.0, 3.0, 1.0]).double())}
    for axes, (name, absence) in zip(figure.subplots(1, 2, sharey=True), pair.items(), strict=True):
        found = ab.harsanyi(ab.MaskedModel(function, x, players=players, absence=absence)).top(15)
        sets = sorted((one for one in found if abs(one.effect) > 1e-9), key=lambda one: -abs(one.effect))
        axes.bar([" ".join(one.players) for one in sets], [one.effect for one in sets], color="#0072b2")
        axes.axhline(0, color="black", linewidth=0.8)
        axes.set(title=f"{name}: {len(sets)} interactions", xlim=(-0.6, 7.6))
        axes.tick_params(axis="x", labelrotation=60)
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def main() -> None:
    """Write all pictures."""
    FOLDER.mkdir(exist_ok=True)
    task = digits(0)
    model = digit_model(task, 0)
    options = ab.LearningOptions(steps=60, rows_per_step=2**12)
    learned = ab.learn_baseline(model, task.x, task.y, players=task.players, options=options)
    sample = typical(model, task)
    absences = {"leak": ab.Blur(1.0), "invention": ab.Baseline.mean(task.x), "neither": learned}
    titles = {"leak": "blurred", "invention": "mean", "neither": "learned"}
    figures = {name: draw_absent(model, task, one, sample, titles[name]) for name, one in absences.items()}
    for name, figure in (figures | {"concision": draw_concision()}).items():
        figure.savefig(FOLDER / f"{name}.png", dpi=110)


if __name__ == "__main__":
    main()
