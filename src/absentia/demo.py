"""The demonstration: train a network that reads digits, learn a baseline, audit, explain, and write a report."""

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
from absentia.data import seeded, weights_drawn_from
from absentia.errors import require
from absentia.explaining import explain
from absentia.explanation import Explanation
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

# The usual absences: the name shown in the demonstration, and the word that stands for it.
ABSENCES = {"zero": "zero", "mean": "mean", "median": "median", "marginal": "marginal", "blur": "blur:1"}
# Absences whose explanations are compared with that of the recommended one.
COMPARED = ("zero", "mean")
PARTS = ("top left", "top", "top right", "left", "centre", "right", "bottom left", "bottom", "bottom right")
# Characters from light to dark, for drawing images as text.
SHADES = " ░▒▓█"


class Digits(NamedTuple):
    """Training and test images, and their parts, which are the players."""

    x: Float[Tensor, "rows 1 8 8"]
    y: Int[Tensor, " rows"]
    x_test: Float[Tensor, "test_rows 1 8 8"]
    y_test: Int[Tensor, " test_rows"]
    players: Players


@dataclass(frozen=True)
class EmptyReading:
    """What the network reads in images with all parts removed."""

    accuracy: float
    certainty: float
    digit: str  # in words: "a 3", or "digits" if it reads several


@dataclass(frozen=True, eq=False)
class Comparison:
    """The Shapley values of the same images under several absences, the recommended one last."""

    names: tuple[str, ...]
    values: Float[Tensor, "absences images parts"]
    shown: int  # the number of the image that shows the difference best

    @property
    def top_parts(self) -> Int[Tensor, "absences images"]:
        """The part with the largest value."""
        return self.values.argmax(2)


def digits(seed: int) -> Digits:
    """Load the handwritten digits in nine parts, with pixels from 0 to 1, and split them 80:20 at random."""
    data = require("sklearn.datasets", "demo").load_digits()
    order = torch.randperm(len(data.images), generator=seeded(seed))
    x = torch.from_numpy(data.images[:, None] / 16).float()[order]
    y = torch.from_numpy(data.target).long()[order]
    cut = round(0.8 * len(x))
    players = replace(Players.grid((1, 8, 8), (3, 3)), names=PARTS)
    return Digits(x[:cut], y[:cut], x[cut:], y[cut:], players)


def digit_model(dataset: Digits, seed: int, epochs: int = 15) -> nn.Module:
    """Train a network of two convolutions and a linear layer with Adam."""
    with weights_drawn_from(seed):
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
            for rows in torch.randperm(len(dataset.x), generator=generator).split(32):
                optimiser.zero_grad()
                nn.functional.cross_entropy(model(dataset.x[rows]), dataset.y[rows]).backward()
                optimiser.step()
            bar.update()
    return model.eval()


def run(folder: Path, seed: int = 0, console: Console | None = None, *, few: bool = False) -> Path:
    """Run the demonstration and return the folder of its report and pictures; ``few`` is the quick form for tests."""
    console = console or Console()
    effort = FEW if few else FULL
    folder.mkdir(parents=True, exist_ok=True)
    dataset = digits(seed)
    players = dataset.players
    model = digit_model(dataset, seed)
    learned = learn_baseline(model, dataset.x, dataset.y, players=players, seed=seed, options=effort.learning)
    absences = {name: named_absence(word, dataset.x, players=players) for name, word in ABSENCES.items()}
    absences["learned"] = learned
    audited = _audit(model, absences, dataset, effort, seed)
    recommended = audited.recommended or "learned"
    comparison = _compare(model, absences, recommended, dataset, effort)
    empty_readings = {name: _read_empty_images(model, absence, dataset) for name, absence in absences.items()}

    _show_absences(console, _accuracy(model, dataset), len(dataset.y_test), audited, empty_readings)
    console.print(f"The learned baseline: {learned.outcome}", highlight=False)
    _show_answers(console, dataset, comparison, empty_readings)

    explanation = _explain_image(model, absences[recommended], dataset, comparison.shown)
    explanation.plot(folder / "explanation.png")
    audited.plot(folder / "audit.png")
    digit = int(dataset.y_test[comparison.shown])
    results = {"Absences": audited, f"A {digit} by {recommended}": explanation, "Learned values": learned}
    page = write_report(results, folder / "report.html", title="Why does the network read this digit?")
    console.print(f"\nPictures are in [bold]{folder}[/bold]: audit.png and explanation.png. All results on a page:")
    console.print(f"[bold]{page.resolve().as_uri()}[/bold]", soft_wrap=True)
    return folder


def _audit(model: nn.Module, absences: Mapping[str, Absence], dataset: Digits, effort: Effort, seed: int) -> Audit:
    """Audit the absences on the test images."""
    return audit(
        model,
        dataset.x_test,
        dataset.y_test,
        absences,
        players=dataset.players,
        data=dataset.x,
        draws=3,
        evaluations=effort.audited_rows,
        seed=seed,
    )


def _compare(
    model: nn.Module, absences: Mapping[str, Absence], recommended: str, dataset: Digits, effort: Effort
) -> Comparison:
    """Explain the same images under two simple absences and under the recommended one, if that is a third."""
    x = dataset.x_test[: effort.explained_images]
    y = dataset.y_test[: effort.explained_images]
    names = tuple(dict.fromkeys((*COMPARED, recommended)))
    explanations = [explain(model, x, y, absence=absences[name], players=dataset.players) for name in names]
    values = torch.stack([explanation.shapley.values for explanation in explanations])
    return Comparison(names, values, shown=_clearest(values, values.argmax(2)))


def _explain_image(model: nn.Module, absence: Absence, dataset: Digits, number: int) -> Explanation:
    """Explain one of the test images."""
    return explain(
        model, dataset.x_test[[number]], dataset.y_test[[number]], absence=absence, players=dataset.players
    )


def _clearest(values: Float[Tensor, "absences images parts"], top_parts: Int[Tensor, "absences images"]) -> int:
    """Return the number of the image on which the last absence disagrees most with the others about the top part.

    Values are divided by the largest of their image. The gap between two absences is small if either values the
    other's top part almost as highly as its own.
    """
    shares = values / values.abs().amax(2, keepdim=True)  # (absences, images, parts)
    last_top_parts = top_parts[-1, :, None].expand(len(shares), -1, -1)  # (absences, images, 1)
    others_on_last_top = shares.gather(2, last_top_parts)[..., 0]  # (absences, images)
    last_on_others_tops = shares[-1].gather(1, top_parts.T).T  # (absences, images)
    gaps = shares.amax(2) - torch.maximum(others_on_last_top, last_on_others_tops)  # (absences, images)
    gaps_of_others = gaps[:-1]  # the last is compared with itself
    return int(gaps_of_others.amin(0).argmax())


def _read_empty_images(model: nn.Module, absence: Absence, dataset: Digits) -> EmptyReading:
    """Remove all parts of the test images, and let the network read what is left."""
    nobody = torch.zeros(1, 1, *dataset.x.shape[1:], dtype=torch.bool)
    with torch.no_grad():
        masked = absence.bind(dataset.x_test)(slice(None), nobody)[:, 0]  # images × draws
        probabilities = model(masked.flatten(0, 1)).softmax(1).unflatten(0, masked.shape[:2])
    certainty, answers = probabilities.max(2)
    accuracy = (answers == dataset.y_test[:, None]).double().mean()
    return EmptyReading(float(accuracy), float(certainty.mean()), _digit_in_words(answers.unique().tolist()))


def _digit_in_words(answers: Sequence[int]) -> str:
    """Name the digit that the network reads if it is always the same one."""
    if len(answers) > 1:
        return "digits"
    if answers[0] == 8:
        return "an 8"
    return f"a {answers[0]}"


def _accuracy(model: nn.Module, dataset: Digits) -> float:
    """Return the network's accuracy on the test images."""
    with torch.no_grad():
        answers = model(dataset.x_test).argmax(1)
    return float((answers == dataset.y_test).double().mean())


def _show_absences(
    console: Console, accuracy: float, images: int, audited: Audit, empty_readings: Mapping[str, EmptyReading]
) -> None:
    """Print what the network says about empty images under each absence, and the recommendation."""
    console.print(f"\nA small network reads digits. It is right on {percent(accuracy)} of {images} new images.")
    console.print("Which part of an image tells it the digit? Remove parts, and see what it says.")
    console.print("[bold]But what stands in for a removed part?[/bold] With all removed, it should know nothing:\n")
    table = _table("absence", "accuracy", "certainty", "leak", "invention", "")
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
    recommendation, *_ = audited.verdict
    console.print(f"\n{recommendation}", highlight=False)


def _mark(audited: Audit, number: int, digit: str) -> str:
    """Describe an absence in a few words."""
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
    console: Console, dataset: Digits, comparison: Comparison, empty_readings: Mapping[str, EmptyReading]
) -> None:
    """Print an image, the Shapley values of its parts under each absence, and how often the answers differ."""
    names = comparison.names
    top_parts = comparison.top_parts
    digit = int(dataset.y_test[comparison.shown])
    side_by_side = Table.grid(padding=(0, 4))
    side_by_side.add_row(_drawing(dataset.x_test[comparison.shown, 0]), _table_of_values(comparison))
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
    """Make a table of the shown image's values, in which an arrow marks the largest value under each absence."""
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
    """Draw an image as text, with two characters for each pixel."""
    levels = (image * len(SHADES)).long().clamp(max=len(SHADES) - 1).tolist()
    lines = ["".join(2 * SHADES[level] for level in row) for row in levels]
    return "\n" + "\n".join(lines)


def _table(first_head: str, *heads: str) -> Table:
    """Make a table without lines; columns with a heading are aligned to the right."""
    columns = [Column(head, justify="right" if head else "left") for head in heads]
    return Table(first_head, *columns, box=None, padding=(0, 2))
