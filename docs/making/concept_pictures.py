"""Draw the pictures of the README and the concepts page: the choice of an absence, a leak, an invention, concision.

Run this file to write them to ``docs/concepts/``. It trains the network of the demonstration, which takes a minute.
"""

from __future__ import annotations

from pathlib import Path

import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

import absentia as ab
from absentia.demo import Digits, digit_model, digits

FOLDER = Path(__file__).parents[1] / "concepts"
_TRUE, _FALSE, _OTHER = "#009e73", "#d55e00", "#bbbbbb"  # the image's own digit, one that is not there, the others


def draw_absent(model: nn.Module, dataset: Digits, absence: ab.Absence, sample: int, title: str) -> Figure:
    """Draw an image, the same with all parts absent, and the probabilities that the network gives to the latter."""
    x, digit = dataset.x_test[[sample]], int(dataset.y_test[sample])
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


def typical(model: nn.Module, dataset: Digits) -> int:
    """Return the number of the image that, blurred, has the median probability of its own digit."""
    blurred = ab.Blur(1.0).bind(dataset.x_test)(slice(None), torch.zeros(1, 1, 1, 8, 8, dtype=torch.bool))[:, 0, 0]
    with torch.no_grad():
        own = model(blurred).softmax(1).gather(1, dataset.y_test[:, None])[:, 0]
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


def draw_choice(model: nn.Module, dataset: Digits, absences: dict[str, ab.Absence]) -> Figure:
    """Draw an image and its explanations by several absences, with what each makes of an image without parts."""
    audit = ab.audit(
        model, dataset.x_test, dataset.y_test, absences, players=dataset.players, data=dataset.x, evaluations=2**17
    )
    found = {
        name: ab.explain(model, dataset.x_test[:100], dataset.y_test[:100], absence=one, players=dataset.players)
        for name, one in absences.items()
    }
    tops = torch.stack([one.shapley.values.argmax(1) for one in found.values()])
    apart = [len(set(column)) for column in tops.T.tolist()]
    sample = apart.index(max(apart))
    figure = Figure(figsize=(9.0, 2.5), layout="constrained")
    image, *places = figure.subplots(1, 1 + len(found))
    image.imshow(dataset.x_test[sample, 0], cmap="gray_r")
    image.set_title(f"Why does the network\nread a {int(dataset.y_test[sample])}?", fontsize=10)
    for place, (name, one) in zip(places, found.items(), strict=True):
        values = one.shapley.values[sample]
        heat = values[dataset.players.labels[0]]
        place.imshow(heat, cmap="RdBu_r", vmin=-heat.abs().max(), vmax=heat.abs().max())
        ink = dataset.x_test[sample, 0]
        place.imshow(torch.zeros(8, 8), cmap="gray", vmin=0, vmax=1, alpha=0.45 * ink / ink.max())
        words = describe_claims(audit, audit.methods.index(name))
        best = name == audit.recommended
        title = f"by {name}\n{words}" + ": use it" * best
        place.set_title(title, fontsize=10, fontweight="bold" if best else "normal")
        place.set_xlabel(f"“its {dataset.players.names[int(values.argmax())]}”", fontsize=10)
    for place in (image, *places):
        place.set(xticks=[], yticks=[])
    return figure


def describe_claims(audit: ab.Audit, number: int) -> str:
    """Say how much an absence leaks, or else how much it invents."""
    if audit.leaks(number):
        return f"leaks {float(audit.leak.value[number]):.1f} nats"
    return f"invents {float(audit.invention.value[number]):.1f} nats"


def main() -> None:
    """Write all pictures."""
    FOLDER.mkdir(exist_ok=True)
    dataset = digits(0)
    model = digit_model(dataset, 0)
    options = ab.LearningOptions(steps=60, rows_per_step=2**12)
    learned = ab.learn_baseline(model, dataset.x, dataset.y, players=dataset.players, options=options)
    sample = typical(model, dataset)
    absences = {"leak": ab.Blur(1.0), "invention": ab.Baseline.mean(dataset.x), "neither": learned}
    titles = {"leak": "blurred", "invention": "mean", "neither": "learned"}
    figures = {name: draw_absent(model, dataset, one, sample, titles[name]) for name, one in absences.items()}
    figures["concision"] = draw_concision()
    chosen = {"zero": ab.Baseline(0.0), "mean": ab.Baseline.mean(dataset.x), "blur": ab.Blur(1.0), "learned": learned}
    figures["choice"] = draw_choice(model, dataset, chosen)
    for name, figure in figures.items():
        figure.savefig(FOLDER / f"{name}.png", dpi=110)


if __name__ == "__main__":
    main()
