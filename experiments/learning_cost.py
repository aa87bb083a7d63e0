"""Experiment on cost: the time until convergence of the paper's schedule and of ours, on two cores.

On tables the published schedule runs for a few epochs, and the paper's 1,000 are extrapolated. On images one gradient
of its loss is measured. Its time grows with samples, players, orders and draws as the paper states.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial

import torch

import absentia as ab
from experiments.experiment import (
    Claim,
    Correction,
    Experiment,
    Figures,
    Found,
    Line,
    Quantity,
    Rule,
    Run,
    Verdict,
)
from experiments.masking_methods import SETTINGS, learn, reduced, set_scene
from experiments.published_schedule import PAPER_DRAWS, PAPER_EPOCHS, PAPER_SAMPLES
from experiments.tables import ResultTable
from experiments.tabular_baselines import tabular_part


@dataclass(frozen=True)
class PrintedCost:
    """The paper's time until convergence, on one GPU, and its epochs."""

    seconds: int
    epochs: int


PRINTED = {
    "census": PrintedCost(seconds=3780, epochs=1000),
    "credit": PrintedCost(seconds=5580, epochs=1000),
    "mnist": PrintedCost(seconds=9120, epochs=200),
    "cifar10": PrintedCost(seconds=13440, epochs=200),
}
OTHER_LOSS = "another loss, L_marginal along walks, so that neither losses nor times compare with the published"
PIXELS = 100  # which the paper draws as players
ORDERS = 0.2  # λ as a share of them


def image_part(name: str, run: Run) -> Found:
    """Measure the rate of the published schedule on an image network, and run ours to its end."""
    model = run.network(name, run.seed)
    setting = SETTINGS[name] if run.size == "full" else reduced(SETTINGS[name], run)
    scene = set_scene(run.data(name), setting, run.seed)
    rate = rows_per_second(model, scene.data, scene.labels, run)
    rows = 2 * PIXELS * round(ORDERS * PIXELS) * PAPER_DRAWS  # of one sample in one epoch
    printed = PRINTED[name]
    began = time.perf_counter()
    learned = learn(model, scene, setting, run.seed)
    seconds = time.perf_counter() - began
    schedule = rows * PAPER_SAMPLES * printed.epochs / rate
    note = (
        f"Published: L_Shapley of {PIXELS} drawn pixels, λ = {ORDERS:g} n, {PAPER_DRAWS} contexts for each pixel and "
        f"order, {PAPER_SAMPLES:,} images, {printed.epochs} epochs: {rows:,} rows of each image in an epoch. One "
        f"gradient of it evaluates {rate:,.0f} rows a second here; the rest is extrapolated. The paper does not "
        f"state its number of images. Ours: {OTHER_LOSS}, {learned.evaluations:,} evaluations, the loss on fixed "
        "walks before and after."
    )
    heads = ("schedule", "hours", "loss before", "loss after")
    table = ResultTable(f"Cost of learning: {name}", heads, note)
    table.add("published, on the paper's GPU", f"{printed.seconds / 3600:.2f}", "–", "–")
    table.add("published, here (extrapolated)", f"{schedule / 3600:,.0f}", "–", "–")
    table.add("ours, here", f"{seconds / 3600:.3f}", f"{learned.before:.4g}", f"{learned.after:.4g}")
    figures = {
        "seconds of the schedule": schedule,
        "seconds of ours": seconds,
        "loss before": learned.before,
        "loss of ours": learned.after,
    }
    return Found(figures, (table,))


def rows_per_second(model: torch.nn.Module, images: torch.Tensor, labels: torch.Tensor, run: Run) -> float:
    """Measure how many masked images a second have the gradient of their values taken."""
    shape = images.shape[1:]
    pixels = torch.randperm(shape[1] * shape[2], generator=torch.Generator().manual_seed(run.seed))[:PIXELS]
    place = torch.full((shape[1] * shape[2],), -1)
    place[pixels] = torch.arange(len(pixels))
    players = ab.Players.segments(place.view(shape[1:]), channels=int(shape[0]))
    evaluator = ab.Evaluator(ab.Task(model, images[:1], players=players, readout=ab.LogOdds(labels[:1])))
    values = images[0].clone().requires_grad_()
    count = run.pick(full=4096, quick=1024, tiny=64)
    coalitions = torch.rand(1, count, len(pixels)) < ORDERS / 2
    began = time.perf_counter()
    fill = ab.OwnBaselines(values[None]).bind(images[:1])
    evaluator.values(fill, coalitions, samples=torch.tensor([0]), gradient=True).abs().sum().backward()
    return count / (time.perf_counter() - began)


def judge_tables(figures: Figures) -> Verdict:
    """Compare our time with the paper's on tables, to as low a loss as that of its schedule where it ran."""
    lines = []
    shorter = []
    for name in [name for name in ("census", "credit") if name in figures]:
        measured = figures[name]
        ours = measured["seconds of ours"]
        schedule = measured["seconds of an epoch"] * PAPER_EPOCHS
        lines.append(f"{name} {ours:,.0f} s (the paper's schedule here {schedule / 3600:,.0f} h, extrapolated)")
        shorter.append(ours < PRINTED[name].seconds and measured["loss of ours"] <= measured["loss of the schedule"])
    if not lines:
        return Verdict("not measured", "–", "")
    if not all(shorter):
        return Verdict("no", "; ".join(lines), "Not shorter, or not to as low a loss, on every table.")
    reason = (
        "A search of our own takes less time on two cores than the paper's schedule on a GPU, to an "
        "L_Shapley of training rows that is no higher than that of the schedule after the few epochs that were run "
        "of it. On test rows this does not always hold, and more interactions are left: see the tables."
    )
    return Verdict("by another method", "; ".join(lines), reason, "Adam, far fewer evaluations", "Adam")


def judge_images(figures: Figures) -> Verdict:
    """Set our time on images beside the paper's, which is that of another loss."""
    lines = [
        f"{name} {figures[name]['seconds of ours']:,.0f} s by L_marginal"
        for name in ("mnist", "cifar10")
        if name in figures
    ]
    if not lines:
        return Verdict("not measured", "–", "")
    reason = "Ours is another loss, L_marginal along walks, so that neither times nor losses compare; and no GPU."
    return Verdict("untestable", "; ".join(lines), reason)


def _seconds(part: str, figures: Figures) -> list[Quantity]:
    """Return our seconds."""
    return [Quantity("{} s", figures[part]["seconds of ours"], form=".0f")]


EXPERIMENT = Experiment(
    name="cost",
    title="Time until convergence",
    claims=(
        Claim(
            "time to learn by L_Shapley, tables",
            "Table 14, the appendix's time cost",
            "1 h 3 min (census), 1 h 33 min (credit) on a GPU",
            Rule(
                "By another method: our search takes less time, to an L_Shapley that is no higher than that of the "
                "paper's schedule after the epochs that were run here.",
                "2026-11-18",
                "after",
                "An earlier rule counted images too.",
            ),
            judge_tables,
            ("census", "credit"),
            Line("time to learn, census (Table 14)", "63 min", partial(_seconds, "census"), ("census",)),
        ),
        Claim(
            "time to learn by L_Shapley, images",
            "Table 14, the appendix's time cost",
            "2 h 32 min (MNIST), 3 h 44 min (CIFAR-10) on a GPU",
            Rule("Untestable: it needs the paper's GPU, and the same loss.", "2026-11-18", "after"),
            judge_images,
            ("mnist", "cifar10"),
            Line("time to learn, MNIST (Table 14)", "152 min", partial(_seconds, "mnist"), ("mnist",)),
        ),
    ),
    settings=(
        "The paper's: L_Shapley, 100 contexts, λ = 0.5 n on tables and 0.2 n on images, 1,000 and 200 epochs. It "
        "prints no learning rate, number of samples or loss: the rate is the best of four on training rows, a step "
        "takes 50 samples, and 1,000 samples are taken. On images so many would take its GPU far longer than it "
        "says, so that its run was a smaller one. Its networks of tables have five layers, ours three. Ours: the "
        "same loss along the gradient alone on tables; another loss, L_marginal, on images."
    ),
    caveats=(
        "The paper's schedule is extrapolated from 10 epochs (census) and 4 (credit) of 1,000.",
        "Times are of one run each on a machine with other work, and have no errors.",
        "The rows learned by L_Shapley and L_marginal have ties, and orders below λ, as the released code; so have "
        "the columns of both losses.",
    ),
    not_again=(
        "The tables were not measured again after the change to the orders 0 … λ. The epochs of the paper's schedule "
        "that were run take four minutes on census and six on credit by their records; the time of the whole parts "
        "was not kept.",
    ),
    parts={
        **{name: partial(tabular_part, name) for name in ("census", "credit")},
        **{name: partial(image_part, name) for name in ("mnist", "cifar10")},
    },
    shown=("Cost of learning",),
    aliases={"census": ("census",), "credit": ("credit",)},
    corrections=(
        Correction(
            "census",
            "on training rows that are the same for both.",
            "on training rows that are the same for both. On the test rows of the table above, the published "
            "schedule leaves a smaller Σ|U| than the short run.",
        ),
        Correction(
            "credit",
            "on training rows that are the same for both.",
            "on training rows that are the same for both. On the test rows of the table above, the published "
            "schedule leaves a smaller Σ|U| than the short run, and a lower L_Shapley.",
        ),
        *(Correction(name, "Ours: L_marginal along walks,", f"Ours: {OTHER_LOSS},") for name in ("mnist", "cifar10")),
    ),
)
