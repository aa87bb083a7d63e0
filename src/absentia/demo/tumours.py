"""The demonstration: a real model, trained here, taken apart; one function for each step."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Float, Int
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn
from tqdm.auto import tqdm

from absentia.absence import Baseline
from absentia.attributions import Attribution, shapley
from absentia.errors import AbsentiaError
from absentia.game import value_table
from absentia.interactions import Interactions, harsanyi
from absentia.masked_model import MaskedModel
from absentia.players import Players
from absentia.plots import name_of_set, plot_explanation

# The thirty measurements of a tumour's cell nuclei are ten quantities, each as mean, error and worst. Five groups of
# quantities that measure nearly the same thing, times three, make fifteen players.
QUANTITIES = {
    "size": ("radius", "perimeter", "area"),
    "texture": ("texture",),
    "smoothness": ("smoothness",),
    "concavity": ("compactness", "concavity", "concave points"),
    "form": ("symmetry", "fractal dimension"),
}
STATISTICS = {"mean": "mean {}", "error": "{} error", "worst": "worst {}"}


@dataclass(frozen=True)
class Task:
    """Standardised data, split into rows for training and for testing, and its players."""

    x: Float[Tensor, "rows features"]
    y: Int[Tensor, " rows"]
    x_test: Float[Tensor, "test_rows features"]
    y_test: Int[Tensor, " test_rows"]
    players: Players
    class_names: tuple[str, ...]


def run(folder: Path, seed: int = 0, console: Console | None = None) -> Path:
    """Run the whole demonstration; return the picture's path."""
    console = console or Console()
    task = breast_cancer(seed)
    model = train(task, seed)
    number = describe_model(console, model, task)
    interactions, attribution = take_apart(console, model, task, number)
    show_interactions(console, interactions)
    show_attribution(console, attribution)
    show_orders(console, interactions)
    folder.mkdir(parents=True, exist_ok=True)
    picture = folder / "explanation.png"
    title = f"sample {number}, {task.class_names[int(task.y_test[number])]}: {interactions.readout}"
    plot_explanation(interactions, attribution, title=title).savefig(picture, dpi=120)
    console.print(f"\nThe same as a picture: [bold]{picture}[/bold]")
    return picture


def breast_cancer(seed: int) -> Task:
    """Load the breast-cancer data that come with scikit-learn, and group its features into fifteen players."""
    try:
        from sklearn.datasets import load_breast_cancer
    except ImportError as error:
        raise AbsentiaError(
            "scikit-learn must be installed for the demo's data. Got none instead. Run: pip install 'absentia[demo]'."
        ) from error
    data = load_breast_cancer()
    order = torch.randperm(len(data.target), generator=torch.Generator().manual_seed(seed))
    x = torch.from_numpy(data.data).float()[order]
    y = torch.from_numpy(data.target).long()[order]
    rows = round(0.8 * len(x))
    mean, std = x[:rows].mean(0), x[:rows].std(0)
    x = (x - mean) / std
    groups = {
        f"{quantity} ({statistic})": [pattern.format(member) for member in members]
        for quantity, members in QUANTITIES.items()
        for statistic, pattern in STATISTICS.items()
    }
    players = Players.groups(groups, list(data.feature_names))
    return Task(x[:rows], y[:rows], x[rows:], y[rows:], players, tuple(data.target_names))


def train(task: Task, seed: int, epochs: int = 200) -> nn.Module:
    """Train a small MLP: 30–32–32–2, by Adam on the whole training set."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        features = task.x.shape[1]
        model = nn.Sequential(nn.Linear(features, 32), nn.GELU(), nn.Linear(32, 32), nn.GELU(), nn.Linear(32, 2))
    optimiser = torch.optim.Adam(model.parameters(), lr=0.005, weight_decay=0.003)
    with tqdm(range(epochs), desc="training the model", disable=None) as bar:
        for _ in bar:
            optimiser.zero_grad()
            loss = nn.functional.cross_entropy(model(task.x), task.y)
            loss.backward()
            optimiser.step()
            bar.set_postfix(loss=f"{loss.item():.4f}")
    return model


def describe_model(console: Console, model: nn.Module, task: Task) -> int:
    """Say how good the model is, and choose the malignant test sample that it is least sure of."""
    with torch.no_grad():
        logits = model(task.x_test)
    accuracy = (logits.argmax(1) == task.y_test).double().mean().item()
    malignant = task.y_test == 0
    margin = torch.where(malignant, (logits[:, 0] - logits[:, 1]).abs(), torch.inf)
    number = int(margin.argmin())
    console.print(
        f"A small MLP, trained on {len(task.x)} tumours: {accuracy:.1%} of {len(task.y_test)} others are right."
    )
    console.print(f"Sample {number}, {task.class_names[int(task.y_test[number])]}, is its closest call.")
    return number


def take_apart(console: Console, model: nn.Module, task: Task, number: int) -> tuple[Interactions, Attribution]:
    """Evaluate all coalitions of the sample's players, and derive everything from that table."""
    game = MaskedModel(
        model,
        task.x_test[[number]],
        int(task.y_test[number]),
        players=task.players,
        absence=Baseline.mean(task.x),
    )
    start = time.perf_counter()
    table = value_table(game)
    interactions = harsanyi(table)
    seconds = time.perf_counter() - start
    values = table.values[0]
    console.print(
        f"\nIts {len(task.players)} players make {len(values):,} coalitions, absent ones at their mean: "
        f"evaluated and transformed in {seconds:.2f} s.\n"
        f"The value, the {interactions.readout}, is [bold]{values[-1]:+.3f}[/bold] with all players present "
        f"and [bold]{values[0]:+.3f}[/bold] with all absent."
    )
    return interactions, shapley(table)


def show_interactions(console: Console, interactions: Interactions, strongest: int = 10) -> None:
    """Print the strongest interactions, and how few of them it takes."""
    table = Table("players together", "order", "effect", "", title="Strongest interactions", title_justify="left")
    top = interactions.top(strongest)
    for found in top:
        effect = f"{found.effect:+.3f}" if found.measurable else f"({found.effect:+.1e})"
        table.add_row(name_of_set(found.players), str(found.order), effect, _bar(found.effect, top[0].effect))
    console.print("", table)
    salient = int(interactions.salient().sum())
    count = int(interactions.sparsity(0.05))
    total = interactions.effects.shape[1]
    console.print(
        f"{salient:,} of {total:,} are salient (above 5 % of the largest); the {count:,} strongest rebuild all "
        f"{total:,} values to within 5 %."
    )


def show_attribution(console: Console, attribution: Attribution) -> None:
    """Print the players by their Shapley values."""
    table = Table("player", "value", "", title="Shapley values", title_justify="left")
    values = attribution.values[0].tolist()
    ranked = sorted(range(len(values)), key=lambda player: abs(values[player]), reverse=True)
    for player in ranked:
        table.add_row(attribution.names[player], f"{values[player]:+.3f}", _bar(values[player], values[ranked[0]]))
    console.print("", table)


def show_orders(console: Console, interactions: Interactions) -> None:
    """Print how much of the strength lies at each order."""
    profile = interactions.by_order()
    table = Table("order", "Σ|U|", "share", "", title="Strength by order", title_justify="left")
    shares = profile.ratios[0].tolist()
    for order in range(1, len(shares)):
        strength = f"{profile.strength[0, order]:.3f}"
        table.add_row(str(order), strength, f"{shares[order]:.1%}", _bar(shares[order], max(shares)))
    console.print("", table)


def _bar(value: float, largest: float, width: int = 24) -> str:
    colour = "yellow" if value >= 0 else "blue"
    length = round(width * abs(value) / max(abs(largest), 1e-12))
    return f"[{colour}]{'█' * length}[/{colour}]"
