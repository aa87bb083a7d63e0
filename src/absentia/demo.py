"""The demonstration: train a network that reads digits, learn a baseline, audit absences, explain a digit, report."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, TypeAlias

import torch
from jaxtyping import Float, Int
from rich.console import Console
from rich.table import Column, Table
from torch import Tensor, nn

from absentia.absences import Absence
from absentia.auditing import Audit, audit
from absentia.data import seeded
from absentia.errors import require
from absentia.explanation import explain
from absentia.learning import LearningOptions, choose_absence, learn_baseline
from absentia.players import Players
from absentia.report import write_report
from absentia.runtime.progress import progress
from absentia.text import percent

# The usual absences; the blur has a width.
_WORDS = ("zero", "mean", "median", "marginal", "blur:1")
_COMPARED = ("zero", "mean")  # with the recommended one
_LEARNING = LearningOptions(steps=60, rows_per_step=2**12)
_FEW_STEPS = LearningOptions(samples=100, steps=20, rows_per_step=2**11)
# The rows of the audit: enough for games of all nine parts with every draw of "marginal".
_AUDITED_ROWS = 2**21
_FEW_AUDITED_ROWS = 2**20
_SHADES = " ░▒▓█"
_PARTS = ("top left", "top", "top right", "left", "centre", "right", "bottom left", "bottom", "bottom right")

Removed: TypeAlias = Mapping[str, tuple[float, float, str]]  # see `_remove_all`


class Task(NamedTuple):
    """Images for training and for testing, and their parts, the players."""

    x: Float[Tensor, "rows 1 8 8"]
    y: Int[Tensor, " rows"]
    x_test: Float[Tensor, "test_rows 1 8 8"]
    y_test: Int[Tensor, " test_rows"]
    players: Players


def digits(seed: int) -> Task:
    """Load the handwritten digits, pixels from 0 to 1, in nine parts, and draw four fifths of them for training."""
    data = require("sklearn.datasets", "demo").load_digits()
    order = torch.randperm(len(data.images), generator=seeded(seed))
    x, y = torch.from_numpy(data.images[:, None] / 16).float()[order], torch.from_numpy(data.target).long()[order]
    cut = round(0.8 * len(x))
    return Task(x[:cut], y[:cut], x[cut:], y[cut:], replace(Players.grid((1, 8, 8), (3, 3)), names=_PARTS))


def digit_model(task: Task, seed: int, epochs: int = 15) -> nn.Module:
    """Train two convolutions and a linear layer with Adam."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        first = (nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        second = (nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.Flatten())
        model = nn.Sequential(*first, *second, nn.Linear(16 * 4 * 4, 10))
    optimiser = torch.optim.Adam(model.parameters(), lr=0.003, weight_decay=0.003)
    generator = seeded(seed)
    with progress(epochs, "training the model", "epoch") as bar:
        for _ in range(epochs):
            for rows in torch.randperm(len(task.x), generator=generator).split(32):
                optimiser.zero_grad()
                nn.functional.cross_entropy(model(task.x[rows]), task.y[rows]).backward()
                optimiser.step()
            bar.update()
    return model.eval()


def run(folder: Path, seed: int = 0, console: Console | None = None, *, few: bool = False) -> Path:
    """Run the whole demonstration, in tests on few images; return the folder of its report and pictures."""
    console = console or Console()
    learning = _FEW_STEPS if few else _LEARNING
    audited_rows = _FEW_AUDITED_ROWS if few else _AUDITED_ROWS
    folder.mkdir(parents=True, exist_ok=True)
    task = digits(seed)
    model, players = digit_model(task, seed), task.players
    learned = learn_baseline(model, task.x, task.y, players=players, seed=seed, options=learning)
    absences = {word.partition(":")[0]: choose_absence(word, model, task.x, players=players) for word in _WORDS}
    absences["learned"] = learned
    found = audit(
        model,
        task.x_test,
        task.y_test,
        absences,
        players=players,
        data=task.x,
        draws=3,
        evaluations=audited_rows,
        seed=seed,
    )
    best = found.recommended or "learned"
    x, y = (part[: 20 if few else 100] for part in (task.x_test, task.y_test))
    names = dict.fromkeys((*_COMPARED, best))
    explained = {name: explain(model, x, y, absence=absences[name], players=players) for name in names}
    values = torch.stack([one.shapley.values for one in explained.values()])
    shown = _clearest(values, values.argmax(2))
    removed = {name: _remove_all(model, absence, task) for name, absence in absences.items()}
    _show_absences(console, model, task, found, removed)
    console.print(f"The learned baseline: {learned.outcome}", highlight=False)
    _show_answers(console, task, [*explained], values, shown, removed)
    one = explain(model, x[[shown]], y[[shown]], absence=absences[best], players=players)
    one.plot(folder / "explanation.png")
    found.plot(folder / "audit.png")
    results = {"Absences": found, f"A {int(y[shown])} by {best}": one, "Learned values": learned}
    page = write_report(results, folder / "report.html", title="Why does the network read this digit?")
    console.print(f"\nPictures are in [bold]{folder}[/bold]: audit.png and explanation.png. All results on a page:")
    console.print(f"[bold]{page.resolve().as_uri()}[/bold]", soft_wrap=True)
    return folder


def _clearest(values: Tensor, tops: Tensor) -> int:
    """Return the number of the image on which the last absence and the others differ most about the first part."""
    shares = values / values.abs().amax(2, keepdim=True)
    of_last = shares.gather(2, tops[-1, :, None].expand(len(shares), -1, -1))[..., 0]  # what others give its part
    of_others = shares[-1].gather(1, tops.T).T  # what it gives their parts
    return int((shares.amax(2) - torch.maximum(of_last, of_others))[:-1].amin(0).argmax())


def _remove_all(model: nn.Module, absence: Absence, task: Task) -> tuple[float, float, str]:
    """Return how often the network is right on images without parts, how sure it is, and which digit it reads."""
    nobody = torch.zeros(1, 1, *task.x.shape[1:], dtype=torch.bool)
    with torch.no_grad():
        masked = absence.bind(task.x_test)(slice(None), nobody)[:, 0]  # images and draws
        sure, read = model(masked.flatten(0, 1)).softmax(1).unflatten(0, masked.shape[:2]).max(2)
    found = read.unique().tolist()
    digit = "digits" if len(found) > 1 else f"an {found[0]}" if found == [8] else f"a {found[0]}"
    return float((read == task.y_test[:, None]).double().mean()), float(sure.mean()), digit


def _show_absences(console: Console, model: nn.Module, task: Task, found: Audit, removed: Removed) -> None:
    """Print what the network says of images without parts, by each absence, and the recommendation."""
    with torch.no_grad():
        right = float((model(task.x_test).argmax(1) == task.y_test).double().mean())
    images = len(task.y_test)
    console.print(f"\nA small network reads digits. It is right on {percent(right)} of {images} new images.")
    console.print("Which part of an image tells it the digit? Remove parts, and see what it says.")
    console.print("[bold]But what stands in for a removed part?[/bold] With all removed, it should know nothing:\n")
    table = _table("absence", "right on", "sure to", "leak", "invention", "")
    for number in found.order:
        name = found.methods[number]
        right, sure, digit = removed[name]
        leak = _amount(float(found.leak.value[number]))
        invention = _amount(float(found.invention.value[number]))
        table.add_row(name, percent(right), percent(sure), leak, invention, _mark(found, number, digit))
    console.print(table)
    console.print(
        "\nLeak: what such images still tell of their digits. Invention: what the stand-ins claim on their own. "
        f"Both in nats: {found.curve.limit:.1f} is all that there is to know."
    )
    console.print(f"\n{found.verdict[0]}", highlight=False)


def _mark(found: Audit, number: int, digit: str) -> str:
    """Say in a few words what an absence does."""
    if found.methods[number] == found.recommended:
        return "[green]recommended[/green]"
    if found.leaks(number):
        return "leaks the digit"
    if found.invents(number):
        return f"invents {digit}"
    return ""


def _amount(nats: float) -> str:
    """Write a leak or an invention, which may fall below 0 by chance."""
    return f"{max(0.0, nats):.1f}"


def _show_answers(
    console: Console, task: Task, names: Sequence[str], values: Tensor, shown: int, removed: Removed
) -> None:
    """Print an image, the Shapley values of its parts by each absence, and how often answers differ."""
    tops, parts, digit = values.argmax(2), task.players.names, int(task.y_test[shown])
    table = _table("part", *(f"by {name}" for name in names))
    for part, title in enumerate(parts):
        cells = zip(map(_signed, values[:, shown, part].tolist()), (tops[:, shown] == part).tolist(), strict=True)
        table.add_row(title, *(f"[bold]{value} ◂[/bold]" if first else f"{value}  " for value, first in cells))
    levels = (task.x_test[shown, 0] * len(_SHADES)).long().clamp(max=len(_SHADES) - 1).tolist()
    both = Table.grid(padding=(0, 4))
    both.add_row("\n" + "\n".join("".join(2 * _SHADES[level] for level in row) for row in levels), table)
    console.print(f"\n[bold]The answer depends on it.[/bold] How much does each part say for this {digit}?\n")
    console.print(both, "")
    for name, top in zip(names, tops[:, shown].tolist(), strict=True):
        than = removed[name][2] if name in _COMPARED else "nothing"
        console.print(f"By {name} the {parts[top]} says most: why it is a {digit} rather than {than}.")
    shares = (tops[:-1] != tops[-1]).double().mean(1).tolist()
    often = [f"by {name} on {percent(share)}" for name, share in zip(names, shares, strict=False)]
    console.print(f"Another part than by {names[-1]} comes first {', '.join(often)} of {tops.shape[1]} images.")


def _table(*heads: str) -> Table:
    """Make a table without lines, whose columns with a head are aligned to the right."""
    columns = [Column(head, justify="right" if head else "left") for head in heads[1:]]
    return Table(heads[0], *columns, box=None, padding=(0, 2))


def _signed(value: float) -> str:
    return f"{value:+.1f}".replace("-", "−")
