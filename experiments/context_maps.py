"""Experiment on Algorithm 1: which pixels form patterns with a pixel, drawn over images.

The paper draws maps p(j|i) for a few images, and says nothing of what they show. So the algorithm is judged by what
it is for: contexts with large |Δv_i(S)|, and the players of i's patterns. The second is measured on games whose
patterns are known. Where the pixels of contexts lie is added for information.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

import absentia as ab
from experiments.datasets import ImageData
from experiments.experiment import Claim, Experiment, Figures, Found, Rule, Run, Verdict
from experiments.tables import ResultTable

INK = 0.25  # a brighter pixel belongs to the digit
STRENGTHS = ("drawn", "largest drawn", "grown")  # |Δv| of contexts: in the mean, the largest, in the mean
DRAWN = 100  # contexts, of which the algorithm grows the best one
MUCH_LARGER = 2.0  # times the mean |Δv| of drawn contexts
HIGH = 0.9  # a share of contexts that players of known patterns must reach
PLAYERS, PATTERNS, SIZES = 16, 4, (2, 3, 4)  # of the games with known patterns


def maps(run: Run) -> Found:
    """Grow contexts of one pixel of the digit in each of a few test images, and map them."""
    data: ImageData = run.data("mnist")
    model = run.network("mnist", run.seed)
    generator = torch.Generator().manual_seed(run.seed)
    chosen = torch.randperm(len(data.x_test), generator=generator)[: run.pick(full=6, quick=2, tiny=2)].tolist()
    side, times = int(data.x_test.shape[2]) // run.pick(full=2, quick=4, tiny=2), run.pick(full=12, quick=5, tiny=2)
    players = ab.Players.grid(tuple(data.x_test.shape[1:]), (side, side))
    mean = ab.Baseline.mean(data.x_train)

    def contexts_of(index: int) -> tuple[int, list[float], list[float], list[float]]:
        """Return the pixel of an image whose contexts are mapped, the map, and |Δv| of contexts drawn and grown."""
        x, y = data.x_test[index : index + 1], data.y_test[index : index + 1]
        game = ab.MaskedModel(model, x, y, absence=mean, players=players)
        own = torch.Generator().manual_seed(run.seed + index)
        ink = (_shade(x, side) > INK).nonzero().flatten()
        tries = ink[torch.randperm(len(ink), generator=own)[:5]].tolist() or [int(_shade(x, side).argmax())]
        drawn = torch.rand(DRAWN, len(players), generator=own) < 0.5
        strongest = max(tries, key=lambda player: float(benefits(game, player, drawn).max()))
        # One context at a time, whose shares are 0 and 1: it can be evaluated then.
        contexts = [
            ab.context_map(game, strongest, drawn=DRAWN, grown=1, seed=run.seed + number).values[0]
            for number in range(times)
        ]
        grown = torch.stack(contexts)
        strengths = (benefits(game, strongest, some).tolist() for some in (drawn, grown > 0.5))
        return strongest, grown.mean(0).tolist(), *strengths

    found = replace(run, workers=1).each(contexts_of, {str(index): index for index in chosen})
    heads = (
        "image", "pixel", "mean |Δv| drawn", "largest drawn", "mean grown",
        "distance of those in contexts", "of all", "share on the digit, in contexts", "of all",
    )  # fmt: skip
    note = (
        f"Test images of MNIST by seed {run.seed}, {side} × {side} players, the mean as absence, log-odds of the "
        f"class; the pixel with the largest benefit among five of the digit. {DRAWN} contexts are drawn, and {times} "
        f"are grown, each from the best of {DRAWN} others. Distances are in players, weighted by p(j|i) less its "
        "median: pixels that do not matter stay as they were drawn."
    )
    table = ResultTable("Contexts of a pixel", heads, note)
    figures: dict[str, float] = {"contexts": times, "side": side}
    pictures = []
    places = torch.cartesian_prod(torch.arange(side), torch.arange(side)).float()
    for number, index in enumerate(chosen):
        strongest, shares, drawn, grown = (torch.tensor(one) for one in found[str(index)])
        x = data.x_test[index : index + 1]
        on_digit = _shade(x, side) > INK
        weights = (shares - shares.median()).clamp_min(0)
        weights[strongest] = 0
        weights = weights / weights.sum().clamp_min(1e-12)
        apart = (places - places[strongest]).norm(dim=1)
        near, far = float((weights * apart).sum()), float(apart.mean())
        on, all_on = float((weights * on_digit).sum()), float(on_digit.double().mean())
        figures |= {f"nearer {number}": near / far, f"on the digit {number}": on / max(all_on, 1e-12)}
        strengths = float(drawn.mean()), float(drawn.max()), float(grown.mean())
        figures |= {f"{key} {number}": value for key, value in zip(STRENGTHS, strengths, strict=True)}
        row, column = divmod(int(strongest), side)
        about = f"{index}, a {int(data.y_test[index])}", f"({row}, {column})"
        measured = *(f"{value:.3f}" for value in strengths), f"{near:.1f}", f"{far:.1f}"
        table.add(*about, *measured, f"{on:.1%}", f"{all_on:.1%}")
        pictures.append((x[0].mean(0), shares.view(side, side), (row, column)))
    return Found(figures, (table,), (run.picture("maps", _draw(pictures)),))


def known(run: Run) -> Found:
    """Map the contexts of players of games that are sums of known patterns."""
    games = run.pick(full=10, quick=2, tiny=1)
    heads = (
        "game",
        "players in patterns",
        "p(j|i) of j in a pattern with i",
        "of all other j",
        "found in all contexts",
    )
    note = (
        f"Games of {PLAYERS} players by seed {run.seed}: v(S) is the sum of {PATTERNS} patterns of {SIZES[0]} to "
        f"{SIZES[-1]} players, each with a strength of its own if all of them are in S. p(j|i) of 20 contexts, for "
        "each player i of a pattern. Players that do not matter to i stay as they were drawn, half of them, "
        "and as they were added."
    )
    table = ResultTable("Contexts in games with known patterns", heads, note)
    inside, outside = [], []
    for number in range(games):
        generator = torch.Generator().manual_seed(1000 * run.seed + number)
        game, patterns = game_of_patterns(generator)
        within, beyond = [], []
        for player in sorted(set().union(*patterns)):
            shares = ab.context_map(game, player, drawn=DRAWN, seed=run.seed + PLAYERS * number + player).values[0]
            partners = set().union(*(pattern for pattern in patterns if player in pattern)) - {player}
            within += [float(shares[j]) for j in sorted(partners)]
            beyond += [float(shares[j]) for j in range(PLAYERS) if j != player and j not in partners]
        with_all = sum(share == 1 for share in within) / len(within)
        mean, rest = sum(within) / len(within), sum(beyond) / len(beyond)
        table.add(f"{number}", f"{len(set().union(*patterns))}", f"{mean:.3f}", f"{rest:.3f}", f"{with_all:.0%}")
        inside.append(mean)
        outside.append(rest)
    figures = {"inside": sum(inside) / games, "outside": sum(outside) / games, "least inside": min(inside)}
    return Found(figures | {"games": games}, (table,))


def game_of_patterns(generator: torch.Generator) -> tuple[ab.MaskedModel, list[set[int]]]:
    """Draw patterns of players, which may overlap, and return the game that is their sum."""
    sizes = torch.randint(SIZES[0], SIZES[-1] + 1, (PATTERNS,), generator=generator).tolist()
    patterns = [torch.randperm(PLAYERS, generator=generator)[:size].tolist() for size in sizes]
    strengths = (1 + torch.rand(PATTERNS, generator=generator)).tolist()

    def model(rows: Tensor) -> Tensor:
        terms = (strength * rows[:, pattern].prod(1) for strength, pattern in zip(strengths, patterns, strict=True))
        return torch.stack(list(terms)).sum(0)

    return ab.MaskedModel(model, torch.ones(1, PLAYERS), absence=0.0), [set(pattern) for pattern in patterns]


def benefits(game: ab.MaskedModel, player: int, contexts: Bool[Tensor, "some players"]) -> Float[Tensor, " some"]:
    """Return |Δv_i(S)| of a player in each context."""
    own = torch.arange(contexts.shape[1]) == player
    having, without = game(torch.cat([contexts | own, contexts & ~own]))[0].chunk(2)
    return (having - without).abs().detach()


def _shade(x: Tensor, side: int) -> Float[Tensor, " players"]:
    """Return the mean brightness of each player of one image."""
    return torch.nn.functional.adaptive_avg_pool2d(x.mean(1), side).flatten()


def _draw(drawn: list[tuple[Any, Any, tuple[int, int]]]) -> Any:
    """Draw each image beside its map; a dot marks the pixel."""
    figure = ab.plots.new_figure(2 * len(drawn), width=1.6, height=1.9)
    for number, (image, shares, (row, column)) in enumerate(drawn):
        left, right = figure.axes[2 * number], figure.axes[2 * number + 1]
        left.imshow(image.numpy(), cmap="gray")
        low, high = shares.quantile(torch.tensor([0.02, 0.98])).tolist()  # most shares are near a half
        right.imshow(shares.numpy(), cmap="Reds", vmin=low, vmax=high)
        right.plot(column, row, "o", color="#0072B2", markersize=4)
        left.axis("off")
        right.axis("off")
    return figure


def judge_algorithm(figures: Figures) -> Verdict:
    """Ask whether grown contexts are much stronger than drawn ones, and hold the players of known patterns."""
    lines, fails = [], []
    if "known" in figures:
        found = figures["known"]
        lines.append(f"known patterns: p(j|i) {found['inside']:.2f} inside, {found['outside']:.2f} outside")
        fails += ["players of known patterns are missed"] * (found["inside"] < HIGH)
        fails += ["others are in contexts as often"] * (found["outside"] >= found["inside"])
    if "maps" in figures:
        found = figures["maps"]
        drawn, largest, grown = (_of_images(found, f"{key} ") for key in STRENGTHS)
        ratios = [after / before for after, before in zip(grown, drawn, strict=True)]
        ratio = sum(grown) / sum(drawn)
        higher = sum(after > most for after, most in zip(grown, largest, strict=True))
        lines.append(
            f"|Δv| grown : drawn {_mean_and_error(ratios)}, above the largest drawn in {higher} of {len(grown)}"
        )
        fails += ["grown contexts are not much better than drawn ones"] * (ratio < MUCH_LARGER)
        fails += ["the best of drawn contexts is as good"] * (higher < len(grown))
    ours = "; ".join(lines)
    if not lines:
        return Verdict("not measured", "–", "")
    if fails:
        return Verdict("no", ours, f"Of what the algorithm is for, {', and '.join(fails)}.")
    reason = "The paper states no numbers of draws and no absence; S_max is drawn anew for each context here."
    return Verdict("in one reading", ours, reason, "our draws, the mean as absence")


def judge_maps(figures: Figures) -> Verdict:
    """Describe the maps; there is nothing printed to compare them with."""
    if "maps" not in figures:
        return Verdict("not measured", "–", "")
    found = figures["maps"]
    near, on = (_of_images(found, start) for start in ("nearer ", "on the digit "))
    ours = (
        f"{_mean_and_error(near)} of the distance of pixels at large, {_mean_and_error(on)} times as often "
        "on the digit"
    )
    reason = (
        "The paper's pictures have no numbers, and its words do not say what they show. Ours show no visible "
        "pattern: pixels of contexts are hardly nearer than others, though more often on the digit, after the share "
        "of pixels that do not matter (the median) is taken off."
    )
    return Verdict("untestable", ours, reason)


def _of_images(found: Mapping[str, float], start: str) -> list[float]:
    """Return a figure of all images."""
    return [value for key, value in found.items() if key.startswith(start)]


def _mean_and_error(values: Sequence[float]) -> str:
    """Write a mean with its standard error over images."""
    numbers = torch.tensor(values, dtype=torch.float64)
    error = float(numbers.std() / len(values) ** 0.5) if len(values) > 1 else float("nan")
    return f"{float(numbers.mean()):.2f} ± {error:.2f}"


EXPERIMENT = Experiment(
    name="fig-4",
    title="Pixels that form patterns with a pixel",
    claims=(
        Claim(
            "a greedy algorithm finds contexts S with large |Δv_i(S)|",
            "Algorithm 1",
            "no numbers",
            Rule(
                f"In one reading: grown contexts have at least {MUCH_LARGER:g} times the mean |Δv| of drawn ones, "
                "and more than the largest of 100 in every image, and in games with known patterns p(j|i) is at "
                "least 0.9 for players of i's patterns, and lower for others.",
                "2026-11-18",
                "after",
                "An earlier rule judged where the pixels lie.",
            ),
            judge_algorithm,
        ),
        Claim(
            "maps p(j|i) show the pixels that form patterns with a pixel i",
            "Fig. 4",
            "pictures",
            Rule(
                "Untestable: the pictures have no numbers, and the text does not describe them.",
                "2026-11-18",
                "after",
            ),
            judge_maps,
            ("maps",),
        ),
    ),
    settings=(
        "The paper's greedy algorithm; it states neither its numbers of draws nor what stands for absence. Ours: six "
        "images, 14 × 14 players (28 × 28 take 24 minutes), the mean image as absence; 12 contexts a pixel, each "
        "from the best of 100 drawn with a tenth of the players added, because players that do not matter stay as "
        "they were drawn."
    ),
    caveats=(
        "S_max is drawn anew for each context, where the paper takes one for all; and the pixel is the strongest of "
        "five of the digit, where the paper looks for it among all.",
        "Chance is taken off by the median of p(j|i). Contexts were not reduced to the players that they need.",
        "One network, one seed, six images; errors are over images.",
    ),
    not_again=("Contexts reduced to the players that they need were not run: each needs another search.",),
    parts={"maps": maps, "known": known},
    shown=("Contexts of a pixel",),
    aliases={"algorithm-1": ("maps", "known")},
)
