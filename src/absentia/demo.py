"""The demonstration: a network that reads digits, a baseline for it, an audit, an explanation and a report."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from rich.console import Console
from rich.table import Column, Table
from torch import Tensor, nn

from absentia.absences import Absence
from absentia.absences.words import named_absence
from absentia.auditing import Audit, audit
from absentia.data import seeded
from absentia.errors import require
from absentia.explanation import Explanation, explain
from absentia.learning import LearningOptions, learn_baseline
from absentia.players import Players
from absentia.report import write_report
from absentia.runtime.progress import progress
from absentia.text import percent


@dataclass(frozen=True)
class Effort:
    """How much the demonstration computes."""

    learning: LearningOptions
    audited_rows: int
    explained_images: int


FULL = Effort(
    learning=LearningOptions(steps=60, rows_per_step=2**12),
    audited_rows=2**21,  # enough for games of all nine parts with every draw of "marginal"
    explained_images=100,
)
# For tests.
FEW = Effort(
    learning=LearningOptions(samples=100, steps=20, rows_per_step=2**11),
    audited_rows=2**20,
    explained_images=20,
)

# The words of the usual absences, by the names they have in the demonstration.
ABSENCES = {"zero": "zero", "mean": "mean", "median": "median", "marginal": "marginal", "blur": "blur:1"}
# Their explanations are compared with that by the recommended absence.
COMPARED = ("zero", "mean")
PARTS = ("top left", "top", "top right", "left", "centre", "right", "bottom left", "bottom", "bottom right")
# Characters from light to dark, to draw an image in text.
SHADES = " ░▒▓█"


class Task(NamedTuple):
    """Images for training and for testing, and their parts, the players."""

    x: Float[Tensor, "rows 1 8 8"]
    y: Int[Tensor, " rows"]
    x_test: Float[Tensor, "test_rows 1 8 8"]
    y_test: Int[Tensor, " test_rows"]
    players: Players


@dataclass(frozen=True)
class EmptyReading:
    """What the network reads in images without any parts."""

    accuracy: float
    certainty: float
    digit: str  # in words: "a 3", or "digits" if it reads several


@dataclass(frozen=True, eq=False)
class Comparison:
    """The Shapley values of the same images by several absences, the recommended one last."""

    names: tuple[str, ...]
    values: Float[Tensor, "absences images parts"]
    shown: int  # the number of the image that shows best how they differ

    @property
    def top_parts(self) -> Int[Tensor, "absences images"]:
        """The part with the largest value."""
        return self.values.argmax(2)


def digits(seed: int) -> Task:
    """Load the handwritten digits, pixels from 0 to 1, in nine parts, and draw four fifths of them for training."""
    data = require("sklearn.datasets", "demo").load_digits()
    order = torch.randperm(len(data.images), generator=seeded(seed))
    x = torch.from_numpy(data.images[:, None] / 16).float()[order]
    y = torch.from_numpy(data.target).long()[order]
    cut = round(0.8 * len(x))
    players = replace(Players.grid((1, 8, 8), (3, 3)), names=PARTS)
    return Task(x[:cut], y[:cut], x[cut:], y[cut:], players)


def digit_model(task: Task, seed: int, epochs: int = 15) -> nn.Module:
    """Train two convolutions and a linear layer with Adam."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(16 * 4 * 4, 10),
        )
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
    effort = FEW if few else FULL
    folder.mkdir(parents=True, exist_ok=True)
    task = digits(seed)
    players = task.players
    model = digit_model(task, seed)
    learned = learn_baseline(model, task.x, task.y, players=players, seed=seed, options=effort.learning)
    absences = {name: named_absence(word, task.x, players=players) for name, word in ABSENCES.items()}
    absences["learned"] = learned
    audited = _audit(model, absences, task, effort, seed)
    recommended = audited.recommended or "learned"
    comparison = _compare(model, absences, recommended, task, effort)
    empty_readings = {name: _read_empty_images(model, absence, task) for name, absence in absences.items()}

    _show_absences(console, model, task, audited, empty_readings)
    console.print(f"The learned baseline: {learned.outcome}", highlight=False)
    _show_answers(console, task, comparison, empty_readings)

    explanation = _explain_image(model, absences[recommended], task, comparison.shown)
    explanation.plot(folder / "explanation.png")
    audited.plot(folder / "audit.png")
    digit = int(task.y_test[comparison.shown])
    results = {"Absences": audited, f"A {digit} by {recommended}": explanation, "Learned values": learned}
    page = write_report(results, folder / "report.html", title="Why does the network read this digit?")
    console.print(f"\nPictures are in [bold]{folder}[/bold]: audit.png and explanation.png. All results on a page:")
    console.print(f"[bold]{page.resolve().as_uri()}[/bold]", soft_wrap=True)
    return folder


def _audit(model: nn.Module, absences: Mapping[str, Absence], task: Task, effort: Effort, seed: int) -> Audit:
    """Audit the absences on the images for testing."""
    return audit(
        model,
        task.x_test,
        task.y_test,
        absences,
        players=task.players,
        data=task.x,
        draws=3,
        evaluations=effort.audited_rows,
        seed=seed,
    )


def _compare(
    model: nn.Module, absences: Mapping[str, Absence], recommended: str, task: Task, effort: Effort
) -> Comparison:
    """Explain the same images by two simple absences and by the recommended one, unless it is one of them."""
    x = task.x_test[: effort.explained_images]
    y = task.y_test[: effort.explained_images]
    names = tuple(dict.fromkeys((*COMPARED, recommended)))
    explanations = [explain(model, x, y, absence=absences[name], players=task.players) for name in names]
    values = torch.stack([explanation.shapley.values for explanation in explanations])
    return Comparison(names, values, shown=_clearest(values, values.argmax(2)))


def _explain_image(model: nn.Module, absence: Absence, task: Task, number: int) -> Explanation:
    """Explain one of the images for testing."""
    return explain(model, task.x_test[[number]], task.y_test[[number]], absence=absence, players=task.players)


def _clearest(values: Tensor, top_parts: Tensor) -> int:
    """Return the number of the image on which the last absence and the others differ most about the top part."""
    shares = values / values.abs().amax(2, keepdim=True)
    tops_of_last = top_parts[-1, :, None].expand(len(shares), -1, -1)
    others_on_top_of_last = shares.gather(2, tops_of_last)[..., 0]
    last_on_tops_of_others = shares[-1].gather(1, top_parts.T).T
    gaps = shares.amax(2) - torch.maximum(others_on_top_of_last, last_on_tops_of_others)
    return int(gaps[:-1].amin(0).argmax())


def _read_empty_images(model: nn.Module, absence: Absence, task: Task) -> EmptyReading:
    """Remove all parts of the images for testing, and let the network read what is left."""
    nobody = torch.zeros(1, 1, *task.x.shape[1:], dtype=torch.bool)
    with torch.no_grad():
        masked = absence.bind(task.x_test)(slice(None), nobody)[:, 0]  # images × draws
        probabilities = model(masked.flatten(0, 1)).softmax(1).unflatten(0, masked.shape[:2])
    certainty, answers = probabilities.max(2)
    accuracy = (answers == task.y_test[:, None]).double().mean()
    return EmptyReading(float(accuracy), float(certainty.mean()), _digit_in_words(answers.unique().tolist()))


def _digit_in_words(answers: Sequence[int]) -> str:
    """Name the digit that the network reads, if it is always the same."""
    if len(answers) > 1:
        return "digits"
    if answers[0] == 8:
        return "an 8"
    return f"a {answers[0]}"


def _show_absences(
    console: Console, model: nn.Module, task: Task, audited: Audit, empty_readings: Mapping[str, EmptyReading]
) -> None:
    """Print what the network says of images without parts, by each absence, and the recommendation."""
    with torch.no_grad():
        accuracy = float((model(task.x_test).argmax(1) == task.y_test).double().mean())
    images = len(task.y_test)
    console.print(f"\nA small network reads digits. It is right on {percent(accuracy)} of {images} new images.")
    console.print("Which part of an image tells it the digit? Remove parts, and see what it says.")
    console.print("[bold]But what stands in for a removed part?[/bold] With all removed, it should know nothing:\n")
    table = _table("absence", "right on", "sure to", "leak", "invention", "")
    for number in audited.order:
        name = audited.methods[number]
        reading = empty_readings[name]
        table.add_row(
            name,
            percent(reading.accuracy),
            percent(reading.certainty),
            _amount(float(audited.leak.value[number])),
            _amount(float(audited.invention.value[number])),
            _mark(audited, number, reading.digit),
        )
    console.print(table)
    console.print(
        "\nLeak: what such images still tell of their digits. Invention: what the stand-ins claim on their own. "
        f"Both in nats: {audited.curve.limit:.1f} is all that there is to know."
    )
    console.print(f"\n{audited.verdict[0]}", highlight=False)


def _mark(audited: Audit, number: int, digit: str) -> str:
    """Say in a few words what an absence does."""
    if audited.methods[number] == audited.recommended:
        return "[green]recommended[/green]"
    if audited.leaks(number):
        return "leaks the digit"
    if audited.invents(number):
        return f"invents {digit}"
    return ""


def _amount(nats: float) -> str:
    """Format a leak or an invention, which may fall below 0 by chance."""
    return f"{max(0.0, nats):.1f}"


def _show_answers(
    console: Console, task: Task, comparison: Comparison, empty_readings: Mapping[str, EmptyReading]
) -> None:
    """Print an image, the Shapley values of its parts by each absence, and how often answers differ."""
    names = comparison.names
    top_parts = comparison.top_parts
    digit = int(task.y_test[comparison.shown])
    side_by_side = Table.grid(padding=(0, 4))
    side_by_side.add_row(_drawing(task.x_test[comparison.shown, 0]), _table_of_values(comparison))
    console.print(f"\n[bold]The answer depends on it.[/bold] How much does each part say for this {digit}?\n")
    console.print(side_by_side, "")
    for name, top in zip(names, top_parts[:, comparison.shown].tolist(), strict=True):
        alternative = empty_readings[name].digit if name in COMPARED else "nothing"
        console.print(f"By {name} the {PARTS[top]} says most: why it is a {digit} rather than {alternative}.")
    shares = (top_parts[:-1] != top_parts[-1]).double().mean(1).tolist()
    often = [f"by {name} on {percent(share)}" for name, share in zip(names[:-1], shares, strict=True)]
    images = top_parts.shape[1]
    console.print(f"Another part than by {names[-1]} comes first {', '.join(often)} of {images} images.")


def _table_of_values(comparison: Comparison) -> Table:
    """Make a table of the values of the shown image, where an arrow marks the largest value by each absence."""
    table = _table("part", *(f"by {name}" for name in comparison.names))
    top_parts = comparison.top_parts[:, comparison.shown].tolist()
    for part, title in enumerate(PARTS):
        cells = []
        for value, top in zip(comparison.values[:, comparison.shown, part].tolist(), top_parts, strict=True):
            number = f"{value:+.1f}".replace("-", "−")
            cells.append(f"[bold]{number} ◂[/bold]" if part == top else f"{number}  ")
        table.add_row(title, *cells)
    return table


def _drawing(image: Float[Tensor, "height width"]) -> str:
    """Draw an image in text, two characters for each pixel."""
    levels = (image * len(SHADES)).long().clamp(max=len(SHADES) - 1).tolist()
    lines = ["".join(2 * SHADES[level] for level in row) for row in levels]
    return "\n" + "\n".join(lines)


def _table(first_head: str, *heads: str) -> Table:
    """Make a table without lines, whose columns with a head are aligned to the right."""
    columns = [Column(head, justify="right" if head else "left") for head in heads]
    return Table(first_head, *columns, box=None, padding=(0, 2))
