"""Measure whether audits and learning with many players would need fewer evaluations with a Gaussian process.

    python benchmarks/process_in_audits.py                       # some minutes; writes results/process_in_audits.md
    python benchmarks/process_in_audits.py --quick --output DIR  # a smoke test of some seconds

With many players, audits and `learn_baseline` evaluate all coalitions of some players of each sample. A process, or a
search for few terms, could be fitted to some of these coalitions, so that the same evaluations reach more samples.
Each way is measured sample by sample against the exact figures. Its error at a budget of evaluations has two parts:
the bias, which more samples do not reduce, and the spread over the samples that the budget reaches.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

import absentia as ab
from absentia.auditing.own_games import RECONSTRUCTION_ERROR
from absentia.auditing.plan import MOST_SAMPLES
from absentia.coalitions import enumerate_coalitions, moebius
from absentia.data import seeded
from absentia.solvers.evaluated_pairs import evaluate_pairs
from absentia.solvers.fitted_parts import FittedGame
from many_player_games import ManyPlayers, make
from result_tables import Row, Table, describe_machine, options, print_table, write

NAMES = ("tumours", "lenet", "digits")
SAMPLES = 32
# Evaluations of one absence, at which errors are compared.
BUDGETS = (2**12, 2**14, 2**16)
# The players that vary in a game of an audit, and in a game by which the learner compares two baselines.
AUDIT_PLAYERS = 12
LEARNER_PLAYERS = 8
# The coalitions of each sample that a process sees in such games.
AUDIT_COALITIONS = (128, 256, 512)
LEARNER_COALITIONS = (64, 128)
# The coalitions of a search for few terms.
SEARCHED_COALITIONS = 256
# The coalitions of a sample on the masking curve of an audit, and others with which to compare.
SCORED_COALITIONS = (8, 16, 32)
# The coalitions from which the true score of a sample is computed.
TRUE_SCORE_COALITIONS = 4096
# How often the coalitions of a score are drawn again.
REDRAWS = 5
# The least sum of which a logarithm is taken.
TINY = 1e-12


class SomePlayers:
    """The game of some players of a sample, while the others stay as in one coalition."""

    def __init__(self, game: ab.MaskedModel, players: Tensor, others: Tensor) -> None:
        self.game = game
        self.players = players
        self.others = others
        self.names = tuple(game.names[player] for player in players.tolist())
        self.samples = 1

    def __call__(self, coalitions: Tensor) -> Tensor:
        """Return the values of coalitions of these players."""
        whole = self.others.repeat(len(coalitions), 1)
        whole[:, self.players] = coalitions
        return self.game(whole).double()


class ScoreOfMasked:
    """The log-loss of a masked sample as a game."""

    def __init__(self, game: ab.MaskedModel) -> None:
        self.game = game
        self.names = game.names
        self.samples = 1

    def __call__(self, coalitions: Tensor) -> Tensor:
        """Return −log p of the sample's class, whose log-odds are the values of the game."""
        return torch.nn.functional.softplus(-self.game(coalitions).double())


@dataclass(frozen=True)
class Way:
    """A way to estimate the figures of a game, and the evaluations of one sample that it takes."""

    name: str
    evaluations: int
    is_unbiased: bool = False


@dataclass(frozen=True, eq=False)
class Measured:
    """What a way measured of each sample, the truth, and the seconds that it computes for a sample."""

    way: Way
    figures: Tensor  # (redraws · samples): those of the first redraw of all samples come first
    truths: Tensor  # (redraws · samples)
    seconds: float
    redraws: int = 1

    @property
    def bias(self) -> float:
        """The mean difference to the truth."""
        return float((self.figures - self.truths).mean())

    @property
    def bias_error(self) -> float:
        """The standard error of the bias."""
        by_sample = (self.figures - self.truths).view(self.redraws, -1).mean(0)
        return float(by_sample.std()) / math.sqrt(len(by_sample))

    @property
    def spread(self) -> float:
        """The standard deviation over samples, by which the mean of few samples differs from that of all."""
        return float(self.figures.std())

    def error(self, budget: int) -> float:
        """Return the root mean square error of the mean over the samples that a budget reaches."""
        samples = min(MOST_SAMPLES, max(1, budget // self.way.evaluations))
        squared_bias = 0.0 if self.way.is_unbiased else max(0.0, self.bias**2 - self.bias_error**2)
        return math.sqrt(squared_bias + self.spread**2 / samples)


def draw_game(game: ab.MaskedModel, count: int, in_context: bool, generator: torch.Generator) -> SomePlayers:
    """Draw the players that vary; the others are present, or those of a random coalition are."""
    players = len(game.names)
    varying = torch.randperm(players, generator=generator)[:count].sort().values
    others = torch.ones(players, dtype=torch.bool)
    if in_context:
        others = torch.rand(players, generator=generator) < torch.rand(1, generator=generator)
    return SomePlayers(game, varying, others)


def values_by_process(game: SomePlayers, coalitions: int, seed: int) -> Tensor:
    """Fit a process to drawn coalitions, and predict all of them."""
    drawn = evaluate_pairs(game, (coalitions - 2) // 2, seeded(seed))
    fitted = FittedGame.of_sample(drawn, 0, seed)
    return fitted.predict(enumerate_coalitions(len(game.names)))[None]


def length_of(values: Tensor) -> float:
    """Return the logarithm of the number of interactions that rebuild all values."""
    return log_length(ab.harsanyi(ab.ValueTable(values)))


def log_length(terms: ab.Terms) -> float:
    """Return the logarithm of the number of terms that rebuild all values."""
    return math.log(max(1, int(terms.sparsity(RECONSTRUCTION_ERROR)[0])))


def strength_of(values: Tensor) -> float:
    """Return the logarithm of the sum of |U(S)| over all sets but the empty one; few samples rule a mean of sums."""
    return math.log(max(TINY, float(moebius(values)[:, 1:].abs().sum())))


def with_two_absences(many: ManyPlayers) -> list[ManyPlayers]:
    """Return the games by the usual absence of the benchmarks, and by values half a standard deviation above it."""
    above = ab.Baseline(many.absence.values + 0.5 * many.x.std(0))
    return [many, replace(many, absence=above)]


def timed(function: Callable[[], float]) -> tuple[float, float]:
    """Return what a function returns, and the CPU seconds that it took."""
    began = time.process_time()
    result = function()
    return result, time.process_time() - began


@dataclass(frozen=True)
class TableFigure:
    """A figure of the values of all coalitions of some players."""

    name: str
    of_table: Callable[[Tensor], float]
    players: int
    in_context: bool
    coalitions: Sequence[int]  # those that a process sees
    searches_terms: bool = False


LENGTH = "length"
STRENGTH = "strength, of which R is made"
LEARNED_STRENGTH = "strength, by which baselines are learned"
SCORE = "score"
# The ways that are compared with the present one in the first table.
COMPARED = {
    LENGTH: (("process", 256), ("few terms", 256)),
    STRENGTH: (("process", 256),),
    LEARNED_STRENGTH: (("process", 128),),
    SCORE: (("process", 32), ("drawn coalitions", 8)),
}


def difference_in(figure: str) -> str:
    """Return the name of the difference of a figure between two absences."""
    return f"difference in {figure}"


COMPARED |= {difference_in(figure): ways for figure, ways in COMPARED.items()}
TABLE_FIGURES = (
    TableFigure(LENGTH, length_of, AUDIT_PLAYERS, False, AUDIT_COALITIONS, searches_terms=True),
    TableFigure(STRENGTH, strength_of, AUDIT_PLAYERS, False, AUDIT_COALITIONS),
    TableFigure(LEARNED_STRENGTH, strength_of, LEARNER_PLAYERS, True, LEARNER_COALITIONS),
)


def measure_tables(many: ManyPlayers, figure: TableFigure) -> list[Measured]:
    """Measure a figure of each sample by all coalitions, by processes, and by few terms."""
    ways = [Way("all coalitions", 2**figure.players, is_unbiased=True)]
    ways += [Way("process", coalitions) for coalitions in figure.coalitions]
    if figure.searches_terms:
        ways.append(Way("few terms", SEARCHED_COALITIONS))
    figures = torch.zeros(len(ways), many.samples, dtype=torch.float64)
    seconds = [0.0] * len(ways)
    for sample in range(many.samples):
        drawn = draw_game(many.game(sample), figure.players, figure.in_context, seeded(sample))
        for number, way in enumerate(ways):
            figures[number, sample], spent = timed(lambda: figure_by(way, figure, drawn, sample))  # noqa: B023
            seconds[number] += spent / many.samples
    truths = figures[0]
    return [Measured(way, own, truths, spent) for way, own, spent in zip(ways, figures, seconds, strict=True)]


def figure_by(way: Way, figure: TableFigure, game: SomePlayers, seed: int) -> float:
    """Return the figure of one game by one way."""
    if way.name == "process":
        return figure.of_table(values_by_process(game, way.evaluations, seed))
    if way.name == "few terms":
        return log_length(ab.interactions(game, evaluations=way.evaluations, seed=seed))
    return figure.of_table(game(enumerate_coalitions(len(game.names))))


def differences(first: list[Measured], second: list[Measured]) -> list[Measured]:
    """Return the differences of a figure between two absences, on which verdicts and comparisons depend."""
    compared = []
    for one, other in zip(first, second, strict=True):
        figures = one.figures - other.figures
        truths = one.truths - other.truths
        compared.append(Measured(one.way, figures, truths, one.seconds))
    return compared


def measure_scores(many: ManyPlayers) -> list[Measured]:
    """Measure the mean score of masked samples by drawn coalitions of all sizes, and by a process of the score."""
    ways = [Way("drawn coalitions", count, is_unbiased=True) for count in reversed(SCORED_COALITIONS)]
    ways += [Way("process", count) for count in SCORED_COALITIONS]
    figures = torch.zeros(len(ways), REDRAWS, many.samples, dtype=torch.float64)
    truths = torch.zeros(many.samples, dtype=torch.float64)
    seconds = [0.0] * len(ways)
    for sample in range(many.samples):
        game = ScoreOfMasked(many.game(sample))
        all_sizes = coalitions_of_all_sizes(many.count, TRUE_SCORE_COALITIONS, seeded(sample, "truth"))
        truths[sample] = game(all_sizes).mean()
        for redraw in range(REDRAWS):
            for number, way in enumerate(ways):
                figure, spent = timed(lambda: score_by(way, game, sample * REDRAWS + redraw))  # noqa: B023
                figures[number, redraw, sample] = figure
                seconds[number] += spent / figures[number].numel()
    truths = truths.repeat(REDRAWS)
    return [
        Measured(way, own.flatten(), truths, spent, REDRAWS)
        for way, own, spent in zip(ways, figures, seconds, strict=True)
    ]


def score_by(way: Way, game: ScoreOfMasked, seed: int) -> float:
    """Return the mean score of a sample over all sizes by one way."""
    players = len(game.names)
    if way.name == "drawn coalitions":
        return float(game(coalitions_of_all_sizes(players, way.evaluations, seeded(seed))).mean())
    drawn = evaluate_pairs(game, (way.evaluations - 2) // 2, seeded(seed))
    fitted = FittedGame.of_sample(drawn, 0, seed)
    return float(fitted.predict(coalitions_of_all_sizes(players, 1024, seeded(seed, "predicted"))).mean())


def coalitions_of_all_sizes(players: int, count: int, generator: torch.Generator) -> Tensor:
    """Draw coalitions whose sizes are spread evenly from 0 to all players but one."""
    sizes = torch.linspace(0, players - 1, count).round().long()
    places = torch.rand(count, players, generator=generator).argsort(1).argsort(1)
    return places < sizes[:, None]


def rows_of(many: ManyPlayers, figure: str, ways: list[Measured], size: float) -> list[Row]:
    """Return the rows of a table; figures are divided by a size."""
    rows: list[Row] = []
    for measured in ways:
        row: Row = {
            "game": many.description,
            "figure": figure,
            "way": measured.way.name,
            "evaluations of a sample": measured.way.evaluations,
            "bias": measured.bias / size,
            "its error": measured.bias_error / size,
            "spread over samples": measured.spread / size,
        }
        for budget in BUDGETS:
            row[f"error at {budget:,}"] = measured.error(budget) / size
        row["seconds of a sample"] = measured.seconds
        rows.append(row)
    return rows


def measure(many: ManyPlayers) -> list[Row]:
    """Measure all figures of one model."""
    absences = with_two_absences(many)
    rows = []
    for figure in TABLE_FIGURES:
        by_absence = [measure_tables(absence, figure) for absence in absences]
        rows += rows_of(many, figure.name, by_absence[0], size=1.0)
        rows += rows_of(many, difference_in(figure.name), differences(*by_absence), size=1.0)
    scores = measure_scores(many)
    return rows + rows_of(many, SCORE, scores, float(scores[0].truths.mean()))


def summary(rows: Sequence[Row]) -> list[Row]:
    """Return the errors of one or two other ways for each figure, as shares of those of the present way."""
    lines: list[Row] = []
    for game, figure in dict.fromkeys((row["game"], row["figure"]) for row in rows):
        present, *others = [row for row in rows if (row["game"], row["figure"]) == (game, figure)]
        for row in others:
            if (row["way"], row["evaluations of a sample"]) not in COMPARED[str(figure)]:
                continue
            line: Row = {name: row[name] for name in ("game", "figure", "way", "evaluations of a sample")}
            for budget in BUDGETS:
                line[f"share of the error at {budget:,}"] = error_at(row, budget) / error_at(present, budget)
            line["bias"] = row["bias"]
            line["its error"] = row["its error"]
            line["seconds over the present"] = seconds_of(row) / seconds_of(present)
            lines.append(line)
    return lines


def error_at(row: Row, budget: int) -> float:
    """Return the error of a way at a number of evaluations."""
    error = row[f"error at {budget:,}"]
    return error if isinstance(error, float) else math.inf


def seconds_of(row: Row) -> float:
    """Return the CPU seconds of a way for a sample."""
    seconds = row["seconds of a sample"]
    return seconds if isinstance(seconds, float) else math.nan


def main() -> None:
    """Measure, print and write."""
    chosen = options(__doc__, "one model, few samples").parse_args()
    torch.set_num_threads(1)
    machine = describe_machine()
    names = NAMES[:1] if chosen.quick else NAMES
    samples = 3 if chosen.quick else SAMPLES
    rows = []
    for name in names:
        many = make(name, samples)
        if many is None:
            continue
        rows += measure(many)
        print(f"{name}: done after {time.process_time():.0f} CPU seconds", flush=True)
    note = (
        f"Figures of {samples} samples. Lengths and strengths are logarithms: an error of 0.05 is one of 5 %. Scores "
        "are shares of their mean. Differences are those between two absences, on the same games. An error at a "
        f"number of evaluations is that of a mean over the samples that they reach, at most {MOST_SAMPLES}: the "
        "bias, and the spread over samples. Seconds are CPU seconds of one thread, the model's included."
    )
    shares = (
        "Errors of other ways at a number of evaluations, as shares of those of the way that audits and learning "
        "use: below 1 it would pay. The bias stays, however many samples there are; of a difference, it also depends "
        "on how much the two absences differ. Seconds of a sample, as a multiple of those that all its coalitions "
        "take with these quick models."
    )
    compared = Table("Other ways against the present one", shares, summary(rows))
    print_table(compared)
    write(
        "process_in_audits",
        "A process in audits of many players",
        machine,
        [compared, Table("Every way", note, rows)],
        chosen,
    )


if __name__ == "__main__":
    main()
