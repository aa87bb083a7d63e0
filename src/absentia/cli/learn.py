"""absentia learn: the baseline values that leave the least signal behind, for a user's own model and data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from absentia.cli.inputs import Inputs, Problem, prepare, takes_inputs
from absentia.cli.options import AsJson, Output
from absentia.cli.output import announced, check_output, hinting, show
from absentia.cli.saved import save_learned
from absentia.errors import wrong
from absentia.learning import LearnedBaseline, learn_baseline
from absentia.learning.space import entry_bounds

INTERRUPTED = 130
LOSSES = ("interactions", "shapley", "marginal")
SHARES = ("all", "class", "sample")


@takes_inputs
def learn(
    inputs: Inputs,
    output: Output = None,
    loss: Annotated[
        str,
        typer.Option(help="interactions, shapley or marginal.", autocompletion=lambda: list(LOSSES)),
    ] = "interactions",
    orders: Annotated[
        str | None, typer.Option(help="Penalise orders up to this: a number, or a share of the players as in 0.5.")
    ] = None,
    cube: Annotated[
        int | None, typer.Option(help="Measure interactions within drawn groups of so many players.", min=1)
    ] = None,
    start: Annotated[
        list[str] | None, typer.Option(help="zero, mean, median, a number or a saved baseline. Repeatable.")
    ] = None,
    bounds: Annotated[str, typer.Option(help="range, a number of standard deviations, or LOW,HIGH.")] = "range",
    share: Annotated[
        str, typer.Option(help="One for all, class or sample.", autocompletion=lambda: list(SHARES))
    ] = "all",
    categorical: Annotated[
        list[str] | None, typer.Option(help="A column of categories, or several that code one: a,b,c. Repeatable.")
    ] = None,
    samples: Annotated[int, typer.Option(help="Samples to learn from, drawn by the seed.", min=1)] = 256,
    evaluations: Annotated[
        int | None, typer.Option(help="Evaluations of the model in one comparison of baselines (262,144).")
    ] = None,
    steps: Annotated[int, typer.Option(help="Steps of descent; 0 where there is no gradient.", min=0)] = 60,
    sweep: Annotated[
        bool, typer.Option(help="After the steps, try other values of one coordinate at a time.")
    ] = True,
    checkpoint: Annotated[
        Path | None, typer.Option(help="A file to keep the search in, and to go on from where it exists.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Find the baseline values that leave the least signal of absent players behind.

    Example: absentia learn -m mymodule:build -w w.safetensors -d train.csv -t class -o base.absentia
    """
    check_output(output)
    _check_word("loss", loss, LOSSES)
    _check_word("share", share, SHARES)
    problem = prepare(inputs, ())
    settings = _settings(problem, orders, start, bounds, categorical)
    settings |= {"loss": loss, "cube": cube, "share": share}
    settings |= {"evaluations": evaluations, "steps": steps, "sweep": sweep, "checkpoint": checkpoint}
    problem.tell_notes()
    with announced(f"Learning a baseline for {len(problem.players)} players"), hinting():
        learned = _learn(problem, samples, settings)
    if output is not None:
        save_learned(learned, output, problem.samples.coding)
    show(learned, _payload(learned), as_json, output)
    if learned.record.stopped.startswith("interrupted"):
        raise typer.Exit(INTERRUPTED)


def _learn(problem: Problem, count: int, settings: dict[str, Any]) -> LearnedBaseline:
    samples, inputs = problem.samples, problem.inputs
    every = torch.arange(len(samples.x))
    x, y, chosen = samples.x, samples.y, samples.draw(count, inputs.seed)
    readout = problem.readout(every)
    if getattr(getattr(readout, "y", None), "ndim", 0) == 1:
        # A readout with a class for each sample has to know which samples are drawn: draw them here.
        x, y, readout = x[chosen], problem.classes(chosen), problem.readout(chosen)
        if not isinstance(settings["bounds"], tuple):
            settings = settings | {"bounds": entry_bounds(samples.x.double().flatten(1), settings["bounds"])}
    options: dict[str, Any] = {"players": problem.players, "readout": readout, "samples": count, "seed": inputs.seed}
    return learn_baseline(problem.model, x, y, **options, **settings)


def _settings(
    problem: Problem, orders: str | None, start: list[str] | None, bounds: str, categorical: list[str] | None
) -> dict[str, Any]:
    """Read the options that are words for several kinds of values; tokens are categories, all of them."""
    tokens = problem.players.integer and not problem.samples.x.is_floating_point()
    if tokens and not categorical:
        categorical = [str(place) for place in range(len(problem.players))]
    return {
        "orders": None if orders is None else _orders(orders),
        "start": [_start(word) for word in start or ["mean"]],
        "bounds": _bounds(bounds),
        "categorical": [*problem.samples.categorical, *(_columns(word, problem) for word in categorical or ())],
    }


def _check_word(argument: str, word: str, words: tuple[str, ...]) -> None:
    if word not in words:
        raise wrong(argument, f"be {', '.join(words[:-1])} or {words[-1]}", repr(word))


def _orders(word: str) -> float:
    """Read a number of players, or with a point a share of them."""
    number = int(word) if word.isdecimal() else _number(word)
    if number is None:
        raise wrong("orders", "be a number, or a share of the players as in 0.5", repr(word))
    return number


def _start(word: str) -> Any:
    if word in ("zero", "mean", "median"):
        return word
    if Path(word).is_file():
        return LearnedBaseline.load(word).values
    number = _number(word)
    if number is None:
        raise wrong("start", "be zero, mean, median, a number or a saved baseline", repr(word))
    return number


def _bounds(word: str) -> Any:
    if word == "range":
        return word
    numbers = [_number(part) for part in word.split(",")]
    if len(numbers) > 2 or any(number is None for number in numbers):
        raise wrong("bounds", "be range, a number of standard deviations, or two numbers LOW,HIGH", repr(word))
    return numbers[0] if len(numbers) == 1 else tuple(numbers)


def _columns(word: str, problem: Problem) -> list[int]:
    """Find the columns that a word lists, by name or number."""
    coding, count = problem.samples.coding, problem.samples.x[0].numel()
    names = () if coding is None else coding.columns
    found = []
    for part in word.split(","):
        if part in names:
            found.append(names.index(part))
        elif part.isdecimal() and int(part) < count:
            found.append(int(part))
        else:
            raise wrong("categorical", f"name columns, or numbers from 0 to {count - 1}", repr(part))
    return found


def _number(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None


def _payload(learned: LearnedBaseline) -> dict[str, Any]:
    return {
        "command": "learn",
        "names": learned.names,
        "share": learned.share,
        "classes": learned.classes,
        "values": learned.values,
        "loss": learned.loss,
        "record": learned.record,
    }
