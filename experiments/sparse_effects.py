"""Experiment on several networks: how few interactions are salient, and how well they rebuild all masked outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor

import absentia as ab
from experiments.datasets import ImageData, TabularData, TextData
from experiments.experiment import Claim, Experiment, Found, NotToBeHadError, Run, Verdict
from experiments.tables import ResultTable
from experiments.tabular_baselines import reconstruction_r2

CELLS = (4, 3)
TOKENS = 12
FEW = 100


def measured(name: str, games: Mapping[str, list[ab.Interactions]], run: Run) -> Found:
    """Tabulate the effects of some samples under each absence, and draw their strengths in descending order."""
    heads = ("absence", "effects", "salient", "share", "R² of the salient", f"R² of the {FEW} strongest")
    count = len(next(iter(games.values())))
    note = f"Means over {count} samples. Salient: above 5 % of a sample's largest effect. R²: of all masked outputs."
    table = ResultTable(f"Sparsity of effects: {name}", heads, note)
    figures: dict[str, float] = {}
    figure = ab.plots.new_figure(1, width=5.0, height=3.2, title=name)
    for absence, found in games.items():
        every = [one.effects.shape[1] - 1 for one in found]
        salient = [float(one.salient()[0, 1:].sum()) for one in found]
        share = sum(s / e for s, e in zip(salient, every, strict=True)) / count
        rebuilt = sum(float(_r2(one, one.salient())) for one in found) / count
        few = sum(float(reconstruction_r2(one, FEW)[0]) for one in found) / count
        figures |= {f"share of {absence}": share, f"R² of {absence}": rebuilt, f"few of {absence}": few}
        cells = (f"{sum(every) / count:,.0f}", f"{sum(salient) / count:.1f}", f"{share:.1%}")
        table.add(absence, *cells, f"{rebuilt:.3f}", f"{few:.3f}")
        ranked = found[0].effects[0, 1:].abs().sort(descending=True).values
        figure.axes[0].plot(range(1, len(ranked) + 1), (ranked / ranked[0]).clamp_min(1e-9).numpy(), label=absence)
    figure.axes[0].set(xlabel="rank", ylabel="|U(S)| of the largest", xscale="log")
    figure.axes[0].legend(fontsize=7, frameon=False)
    return Found(figures, (table,), (run.picture(run.part, figure),))


def _r2(found: ab.Interactions, keep: Tensor) -> Tensor:
    """Compute R² of all values rebuilt from v(∅) and the effects that are kept."""
    keep = keep.clone()
    keep[:, 0] = True
    values = found.reconstruct()
    left = (found.reconstruct(keep=keep) - values).square().sum(1)
    total = (values - values.mean(1, keepdim=True)).square().sum(1).clamp_min(1e-30)
    return (1 - left / total)[0]


def _effects(
    model: Any, x: Tensor, y: Tensor, absence: ab.Absence, players: ab.Players | None
) -> list[ab.Interactions]:
    """Compute the interactions of each sample for itself."""
    return [
        ab.harsanyi(ab.MaskedModel(model, x[i : i + 1], y[i : i + 1], absence=absence, players=players))
        for i in range(len(x))
    ]


def census(run: Run) -> Found:
    """Measure the first five test rows of each class of the census data."""
    data: TabularData = run.data("census")
    model = run.network("census", run.seed)
    each = run.pick(full=5, quick=3, tiny=1)
    chosen = torch.cat([(data.y_test == c).nonzero().flatten()[:each] for c in (0, 1)])
    learned = _learned(model, data.x_train, data.y_train, None, run)
    absences: dict[str, ab.Absence] = {"mean": ab.Baseline.mean(data.x_train), "learned": learned}
    x, y = data.x_test[chosen], data.y_test[chosen]
    games = {name: _effects(model, x, y, absence, None) for name, absence in absences.items()}
    return measured("MLP on census", games, run)


def images(name: str, network: str, run: Run) -> Found:
    """Measure test images, cut into twelve cells."""
    data: ImageData = run.data(name)
    model = run.network(name, run.seed, network)
    x, y = data.x_test[: run.pick(full=10, quick=3, tiny=1)], data.y_test[: run.pick(full=10, quick=3, tiny=1)]
    players = ab.Players.grid(tuple(x.shape[1:]), CELLS)
    rows = data.x_train[: run.pick(full=2000, quick=500, tiny=40)]
    learned = _learned(model, rows, data.y_train[: len(rows)], players, run)
    absences: dict[str, ab.Absence] = {"mean": ab.Baseline.mean(rows), "learned": learned}
    games = {word: _effects(model, x, y, absence, players) for word, absence in absences.items()}
    return measured(f"{network} on {name}", games, run)


def sentences(network: str, run: Run) -> Found:
    """Measure short test sentences; an absent word has the zero vector of the embedding."""
    data: TextData = run.data("sst2")
    model = run.network("sst2", run.seed, network)
    fitting = ((data.lengths_test <= TOKENS) & (data.lengths_test >= 2)).nonzero().flatten()
    found = []
    for index in fitting[: run.pick(full=10, quick=3, tiny=1)].tolist():
        length = int(data.lengths_test[index])
        x = data.x_test[index : index + 1, :length]
        players = ab.Players.tokens(length)
        found += _effects(model, x, data.y_test[index : index + 1], ab.Baseline(0), players)
    return measured(f"{network} on sst2", {"zero vector": found}, run)


def tv_news(run: Run) -> Found:
    """Say why the data of TV news cannot be had."""
    raise NotToBeHadError(
        "The data of commercials in TV news (UCI, id 326) are not among the data here, and cannot be downloaded from "
        "this machine."
    )


def _learned(model: Any, x: Tensor, y: Tensor, players: ab.Players | None, run: Run) -> ab.LearnedBaseline:
    sizes: dict[str, Any] = run.pick(
        full={}, quick={"steps": 30}, tiny={"steps": 2, "samples": 8, "rows_per_step": 64}
    )
    return ab.learn_baseline(model, x, y, players=players, seed=run.seed, options=ab.LearningOptions(**sizes))


PARTS: dict[str, Callable[[Run], Found]] = {
    "census": census,
    "mnist": partial(images, "mnist", "lenet"),
    "cifar10-resnet32": partial(images, "cifar10", "resnet32"),
    "cifar10-vgg16": partial(images, "cifar10", "vgg16"),
    "sst2-cnn": partial(sentences, "cnn"),
    "sst2-lstm": partial(sentences, "lstm"),
    "tv-news": tv_news,
}


def judge(figures: Mapping[str, Mapping[str, float]]) -> Verdict:
    """Ask whether at most a tenth of the effects is salient under the best absence of each network."""
    lines, sparse = [], []
    for name, found in figures.items():
        shares = {key.removeprefix("share of "): value for key, value in found.items() if key.startswith("share of ")}
        best = min(shares, key=lambda absence: shares[absence])
        few = found[f"few of {best}"]
        lines.append(f"{name} ({best}): {shares[best]:.1%} salient, R² {few:.2f} by the {FEW} strongest")
        sparse.append(shares[best] <= 0.1 and few >= 0.9)
    word: Any = "reproduced" if all(sparse) else "not reproduced"
    reason = f"At most a tenth salient, and {FEW} suffice for R² of 0.9, in {sum(sparse)} of {len(sparse)} networks."
    return Verdict(word, "; ".join(lines), reason)


EXPERIMENT = Experiment(
    name="fig-5",
    title="Sparsity of interactions",
    claims=(
        Claim("most effects are almost zero on the census network", "Fig. 5"),
        Claim("so on MLP, CNN, LSTM, ResNet-32 and VGG-16; fewer than 100 mostly suffice", "Fig. 6, Remark 1"),
    ),
    settings=(
        "The paper's data and kinds of networks; it states neither what stands for absence nor the players of "
        "images. Ours: twelve cells of an image, words of sentences up to twelve; the mean and values learned by "
        "default."
    ),
    parts=PARTS,
    judge=judge,
    aliases={"fig-6": tuple(name for name in PARTS if name != "census")},
)
