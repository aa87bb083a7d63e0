"""Small results of every kind for the tests of the report and of plots, with names that contain markup."""

import torch

import absentia as ab
from absentia.explanation import ExplanationRecord
from absentia.learning.learned import LearningRecord
from absentia.learning.search_ends import CONVERGED
from absentia.readout_notes import ReadoutNote, Subject

EVIL = "<script>document.title = 'run'</script>"
NAMES = ["age", "income per household member and year", EVIL, 'R&D "quoted" \\u003c', "tenure"]


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def model(rows):
    return rows[:, 0] * rows[:, 1] - 2 * rows[:, 2] + (rows[:, 3] * rows[:, 4]).sin()


PLAYERS = ab.Players.features(NAMES)


def explanation(samples=4):
    classes = torch.arange(samples) % 3
    found = ab.explain(model, draw(samples, 5), absence=ab.Baseline(0.25), players=PLAYERS)
    return ab.Explanation(**{**vars(found), "y": classes})


def sampled_explanation(players=30):
    return ab.explain(lambda rows: rows.square().sum(1), draw(2, players), absence=ab.Baseline(0.5), evaluations=150)


def image_explanation(channels=1):
    images = draw(3, channels, 8, 8).sigmoid()
    players = ab.Players.grid((channels, 8, 8), (2, 2))
    return ab.explain(lambda rows: rows.flatten(1).square().sum(1), images, absence=ab.Baseline(0.0), players=players)


WORDS = ["this", "is", "not", "a", "bad", "film", ",", "it", "is", "a", "very", "good", "one"]


def text_explanation():
    weights = torch.linspace(-1, 2, len(WORDS), dtype=torch.float64)
    return ab.explain(
        lambda rows: rows.double() @ weights + rows[:, 2] * rows[:, 4],
        torch.ones(1, len(WORDS), dtype=torch.int64),
        players=ab.Players.tokens(WORDS),
        absence=0.0,
    )


def close_explanation():
    """Return an explanation whose values differ little from −2.12: ticks with three digits would all be the same."""
    return ab.explain(lambda rows: rows @ torch.tensor([1e-4, -3e-4, 2e-4]).double() - 2.12, draw(1, 3), absence=0.0)


def crowded_explanation():
    """Return an explanation with interactions of six players, the first three of which are the same."""

    def value(rows):
        first = rows[:, :5].prod(1)
        return first * (3 * rows[:, 5] + 2 * rows[:, 6] - rows[:, 7])

    players = ab.Players.grid((1, 4, 2), (4, 2))
    return ab.explain(
        lambda rows: value(rows.flatten(1)), torch.ones(1, 1, 4, 2).double(), players=players, absence=0.0
    )


def methods():
    x = draw(40, 5)
    return {"zero": ab.Baseline(0.0), EVIL: ab.Baseline(3.0), "marginal": ab.Marginal(x, draws=2)}


def audit(samples=6):
    return ab.audit(model, draw(samples, 5), None, methods(), players=PLAYERS, data=draw(40, 5), draws=2)


def cross_audit():
    return ab.cross_audit(model, draw(4, 5), None, methods(), players=PLAYERS, data=draw(40, 5), draws=2)


def learned(values=None, names=NAMES, labels=None, **fields):
    """Return a learned baseline with invented values."""
    values = draw(len(names)) if values is None else values
    entries = values if fields.get("share", "all") == "all" else values[0]
    levels = torch.linspace(-2, 2, 7, dtype=torch.float64).view(-1, *[1] * entries.ndim)
    record = LearningRecord(
        *("interactions", True, 5, "range", ("mean", "zero"), (1.0, 1.5), 0, 32, True, CONVERGED, 4096, 1.5),
        undetermined=(names[-1],),
    )
    made = {
        "values": values,
        "share": "all",
        "classes": None,
        "players": ab.Players(torch.arange(len(names)) if labels is None else labels, tuple(names)),
        "loss": 1.0,
        "history": torch.tensor([[10.0, 3.0], [20.0, 2.0], [4096.0, 1.0]], dtype=torch.float64),
        "record": record,
        "quantiles": levels + torch.zeros_like(entries),
    }
    return ab.LearnedBaseline(**(made | fields))


def image_baseline(**fields):
    players = ab.Players.grid((1, 6, 6), (2, 2))
    return learned(draw(1, 6, 6), players.names, players.labels, **fields)


def wide_explanation(samples=60, players=2000):
    names = tuple(f"x{player}" for player in range(players))
    values = draw(samples, players)
    return ab.Explanation(
        x=draw(samples, players),
        y=None,
        players=ab.Players.features(list(names)),
        outputs=values.sum(1),
        base_values=torch.zeros(samples, dtype=torch.float64),
        shapley=ab.Attribution(values, values.abs() / 9, 1, names, "sampled Shapley values", "given"),
        order_shapley=None,
        interactions=None,
        stand_ins=None,
        record=ExplanationRecord(ReadoutNote.in_words("given"), "Surrogate", False, 1, 1.0, 0),
    )


def listed_terms(sets, effects, players, owners=None, noise=0.0):
    """Return terms with these sets of player numbers."""
    rows = torch.zeros(len(sets), players, dtype=torch.bool)
    for row, numbers in zip(rows, sets, strict=True):
        row[list(numbers)] = True
    samples = 1 if owners is None else max(owners) + 1
    return ab.Terms.listed(
        rows,
        effects,
        owners=None if owners is None else torch.tensor(owners),
        noise=torch.full((samples,), noise, dtype=effects.dtype),
    )


def large_explanation(samples=200, players=16):
    """Return a large explanation from random effects, without a model."""
    effects = draw(samples, 2**players)
    names = tuple(f"measurement number {player}" for player in range(players))
    noise = torch.full((samples,), 1e-12, dtype=torch.float64)
    interactions = ab.Interactions(effects, names, "the output as it is", noise, samples * 2**players)
    return ab.Explanation(
        x=draw(samples, players),
        y=None,
        players=ab.Players.features(list(names)),
        outputs=effects.sum(1),
        base_values=effects[:, 0].clone(),
        shapley=interactions.shapley(),
        order_shapley=ab.OrderAttribution(
            draw(samples, players, players), 1, names, "order-wise Shapley values", "given", tuple(range(players))
        ),
        interactions=interactions,
        stand_ins=draw(samples, players, seed=1),
        record=ExplanationRecord(ReadoutNote(Subject.OUTPUT), "Baseline(0)", True, samples * 2**players, 1.0, 0),
    )
