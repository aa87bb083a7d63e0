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
from experiments.experiment import Claim, Experiment, Figures, Found, Line, Quantity, Rule, Run, Verdict
from experiments.tables import ResultTable

INK = 0.25  # a brighter pixel belongs to the digit
STRENGTHS = ("drawn", "largest drawn", "grown")  # |Δv| of contexts: in the mean, the largest, in the mean
DRAWN = 100  # contexts, of which the algorithm grows the best one
KEPT = 0.9  # the share of |Δv| that a context keeps while players are taken out of it
MUCH_LARGER = 2.0  # times the mean |Δv| of drawn contexts
HIGH = 0.9  # a share of contexts that players of known patterns must reach
# The games with known patterns.
PLAYERS = 16
PATTERNS = 4
SIZES = (2, 3, 4)  # the number of players in a pattern


def maps(run: Run) -> Found:
    """Grow contexts of one pixel of the digit in each of a few test images, and map them."""
    data: ImageData = run.data("mnist")
    model = run.network("mnist", run.seed)
    generator = torch.Generator().manual_seed(run.seed)
    chosen = torch.randperm(len(data.x_test), generator=generator)[: run.pick(full=6, quick=2, tiny=2)].tolist()
    side = int(data.x_test.shape[2]) // run.pick(full=2, quick=4, tiny=2)
    times = run.pick(full=12, quick=5, tiny=2)
    players = ab.Players.grid(tuple(data.x_test.shape[1:]), (side, side))
    mean = ab.Baseline.mean(data.x_train)

    def contexts_of(index: int) -> tuple[int, list[float], list[float], list[float], list[float], float]:
        """Return a pixel, the map of its contexts, |Δv| of drawn and grown ones, and the map and size of reduced."""
        x = data.x_test[index : index + 1]
        y = data.y_test[index : index + 1]
        game = ab.MaskedModel(model, x, y, absence=mean, players=players)
        image_generator = torch.Generator().manual_seed(run.seed + index)
        ink = (_shade(x, side) > INK).nonzero().flatten()
        tries = ink[torch.randperm(len(ink), generator=image_generator)[:5]].tolist() or [
            int(_shade(x, side).argmax())
        ]
        drawn = torch.rand(DRAWN, len(players), generator=image_generator) < 0.5
        strongest = max(tries, key=lambda player: float(benefits(game, player, drawn).max()))
        # One context at a time, whose shares are 0 and 1: it can be evaluated then.
        contexts = [
            ab.context_map(game, strongest, drawn=DRAWN, grown=1, seed=run.seed + number).values[0]
            for number in range(times)
        ]
        grown = torch.stack(contexts)
        strengths = [benefits(game, strongest, some).tolist() for some in (drawn, grown > 0.5)]
        fewer = reduce_contexts(game, strongest, grown > 0.5, image_generator).double()
        return strongest, grown.mean(0).tolist(), *strengths, fewer.mean(0).tolist(), float(fewer.sum(1).mean())

    found = replace(run, workers=1).each(contexts_of, {str(index): index for index in chosen})
    heads = ("image", "pixel", "mean |Δv| drawn", "largest drawn", "mean grown")
    note = (
        f"Test images of MNIST by seed {run.seed}, {side} × {side} players, the mean as absence, log-odds of the "
        f"class; the pixel with the largest benefit among five of the digit. {DRAWN} contexts are drawn, and {times} "
        f"are grown, each from the best of {DRAWN} others."
    )
    table = ResultTable("Contexts of a pixel", heads, note)
    where = ResultTable(
        "Where the pixels of contexts lie",
        ("image", "contexts", "players in one", "distance", "of all", "share on the digit", "of all"),
        "Distances from the pixel are in players. Both are weighted by p(j|i) less chance, the share that each of "
        "the other pixels has if as many are drawn anywhere; what is below chance counts as 0. Reduced: players are "
        f"taken out in a random order, again and again, as long as {KEPT:.0%} of |Δv| is left, because a pixel that "
        "does not matter stays in a grown context as it was drawn.",
    )
    figures: dict[str, float] = {"contexts": times, "side": side}
    pictures = []
    places = torch.cartesian_prod(torch.arange(side), torch.arange(side)).float()
    for number, index in enumerate(chosen):
        strongest, shares, drawn, grown, reduced, size = (torch.tensor(one) for one in found[str(index)])
        x = data.x_test[index : index + 1]
        apart = (places - places[strongest]).norm(dim=1)
        on_digit = _shade(x, side) > INK
        name = f"{index}, a {int(data.y_test[index])}"
        maps_of = (("grown", "", shares, float(shares.sum())), ("reduced", "reduced ", reduced, float(size)))
        for kind, key, some, players_in in maps_of:
            weights = above_chance(some, int(strongest))
            near = float((weights * apart).sum())
            far = float(apart.mean())
            on = float((weights * on_digit).sum())
            all_on = float(on_digit.double().mean())
            figures |= {f"{key}nearer {number}": near / far, f"{key}on the digit {number}": on / max(all_on, 1e-12)}
            where.add(name, kind, f"{players_in:.1f}", f"{near:.1f}", f"{far:.1f}", f"{on:.1%}", f"{all_on:.1%}")
        strengths = float(drawn.mean()), float(drawn.max()), float(grown.mean())
        figures |= {f"{key} {number}": value for key, value in zip(STRENGTHS, strengths, strict=True)}
        figures[f"players {number}"] = float(size)
        row, column = divmod(int(strongest), side)
        table.add(name, f"({row}, {column})", *(f"{value:.3f}" for value in strengths))
        pictures.append((x[0].mean(0), shares.view(side, side), reduced.view(side, side), (row, column)))
    return Found(figures, (table, where), (run.picture("maps", _draw(pictures)),))


def reduce_contexts(
    game: ab.MaskedModel, player: int, contexts: Bool[Tensor, "some players"], generator: torch.Generator
) -> Bool[Tensor, "some players"]:
    """Take players out of each context, one at a time in a random order, while most of |Δv_i(S)| is left.

    >>> game = ab.MaskedModel(lambda rows: rows[:, 0] * rows[:, 1] + 0 * rows[:, 2], torch.ones(1, 3), absence=0.0)
    >>> everyone = torch.tensor([[False, True, True]])
    >>> reduce_contexts(game, 0, everyone, torch.Generator().manual_seed(0))
    tensor([[False,  True, False]])
    """
    contexts = contexts.clone()
    contexts[:, player] = False
    enough = KEPT * benefits(game, player, contexts)
    rows = torch.arange(len(contexts))
    changed = True
    while changed:
        changed = False
        orders = torch.rand(contexts.shape, generator=generator).argsort(1)
        for candidates in orders.T:
            fewer = contexts.clone()
            fewer[rows, candidates] = False
            leaves = contexts[rows, candidates] & (benefits(game, player, fewer) >= enough)
            contexts[rows[leaves], candidates[leaves]] = False
            changed |= bool(leaves.any())
    return contexts


def above_chance(shares: Float[Tensor, " players"], player: int) -> Float[Tensor, " players"]:
    """Return weights of players: their shares of contexts less the mean of all others, none below 0, of sum 1.

    >>> above_chance(torch.tensor([0.0, 1.0, 0.5, 0.0]), player=0)
    tensor([0., 1., 0., 0.])
    """
    is_other = torch.arange(len(shares)) != player
    weights = (shares - shares[is_other].mean()).clamp_min(0) * is_other
    return weights / weights.sum().clamp_min(1e-12)


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
    inside = []
    outside = []
    for number in range(games):
        generator = torch.Generator().manual_seed(1000 * run.seed + number)
        game, patterns = game_of_patterns(generator)
        within = []
        beyond = []
        for player in sorted(set().union(*patterns)):
            shares = ab.context_map(game, player, drawn=DRAWN, seed=run.seed + PLAYERS * number + player).values[0]
            partners = set().union(*(pattern for pattern in patterns if player in pattern)) - {player}
            within += [float(shares[j]) for j in sorted(partners)]
            beyond += [float(shares[j]) for j in range(PLAYERS) if j != player and j not in partners]
        with_all = sum(share == 1 for share in within) / len(within)
        mean = sum(within) / len(within)
        rest = sum(beyond) / len(beyond)
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
    is_player = torch.arange(contexts.shape[1]) == player
    having, without = game(torch.cat([contexts | is_player, contexts & ~is_player]))[0].chunk(2)
    return (having - without).abs().detach()


def _shade(x: Tensor, side: int) -> Float[Tensor, " players"]:
    """Return the mean brightness of each player of one image."""
    return torch.nn.functional.adaptive_avg_pool2d(x.mean(1), side).flatten()


def _draw(drawn: list[tuple[Tensor, Tensor, Tensor, tuple[int, int]]]) -> Any:
    """Draw images, and the maps of their grown and reduced contexts below them; a dot marks the pixel."""
    figure = ab.plots.new_figure(len(drawn), width=1.7, height=5.0)
    for axes, (image, grown, reduced, (row, column)) in zip(figure.axes, drawn, strict=True):
        side = len(grown)
        picture = torch.nn.functional.interpolate(image[None, None], size=(4 * side, 4 * side))[0, 0]
        panels = [1 - picture]
        for shares in (grown, reduced):
            other_shares = shares.flatten()[torch.arange(side**2) != row * side + column]
            above = (shares - other_shares.mean()).clamp_min(0)
            scaled = above / above.max().clamp_min(1e-12)
            panels.append(scaled.repeat_interleave(4, 0).repeat_interleave(4, 1))
        gap = torch.zeros(4, 4 * side)
        axes.imshow(torch.cat([panels[0], gap, panels[1], gap, panels[2]]).numpy(), cmap="Greys", vmin=0, vmax=1)
        for place in range(3):
            axes.plot(4 * column + 1.5, 4 * row + 1.5 + place * (4 * side + 4), "o", color="#0072B2", markersize=5)
        axes.axis("off")
    figure.axes[0].set_title("image, grown, reduced", fontsize=8)
    return figure


def judge_algorithm(figures: Figures) -> Verdict:
    """Ask whether grown contexts are much stronger than drawn ones, and hold the players of known patterns."""
    lines = []
    fails = []
    if "known" in figures:
        measured = figures["known"]
        lines.append(f"known patterns: p(j|i) {measured['inside']:.2f} inside, {measured['outside']:.2f} outside")
        if measured["inside"] < HIGH:
            fails.append("players of known patterns are missed")
        if measured["outside"] >= measured["inside"]:
            fails.append("others are in contexts as often")
    if "maps" in figures:
        measured = figures["maps"]
        drawn, largest, grown = (_of_images(measured, f"{key} ") for key in STRENGTHS)
        ratios = [after / before for after, before in zip(grown, drawn, strict=True)]
        ratio = sum(grown) / sum(drawn)
        higher = sum(after > most for after, most in zip(grown, largest, strict=True))
        lines.append(
            f"|Δv| grown : drawn {_mean_and_error(ratios)}, above the largest drawn in {higher} of {len(grown)}"
        )
        if ratio < MUCH_LARGER:
            fails.append("grown contexts are not much better than drawn ones")
        if higher < len(grown):
            fails.append("the best of drawn contexts is as good")
    ours = "; ".join(lines)
    if not lines:
        return Verdict("not measured", "–", "")
    if fails:
        return Verdict("no", ours, f"Of what the algorithm is for, {', and '.join(fails)}.")
    reason = "The paper states no numbers of draws and no absence; S_max is drawn anew for each context here."
    return Verdict("in one reading", ours, reason, "our draws, the mean as absence", "our draws")


def judge_maps(figures: Figures) -> Verdict:
    """Describe the maps; there is nothing printed to compare them with."""
    if "maps" not in figures:
        return Verdict("not measured", "–", "")
    measured = figures["maps"]
    kinds = {"grown": ""}
    if "reduced nearer 0" in measured:
        kinds["reduced"] = "reduced "
    lines = []
    told = []
    for kind, key in kinds.items():
        near = _of_images(measured, f"{key}nearer ")
        on = _of_images(measured, f"{key}on the digit ")
        lines.append(
            f"{kind}: {_mean_and_error(near)} of the distance of pixels at large, {_mean_and_error(on)} times as "
            "often on the digit"
        )
        told.append(
            f"pixels of {kind} contexts are {_compared(near, 'nearer', 'further')} than pixels at large and "
            f"{_compared(on, 'rarer', 'more frequent')} on the digit"
        )
    reason = (
        "The paper's pictures have no numbers, and its words do not say what they show. With chance taken off, "
        f"{'; '.join(told)}. Part of this is no pattern: pixels at the border, which the mean image does not change, "
        "can't matter, and are taken out of reduced contexts."
    )
    return Verdict("untestable", "; ".join(lines), reason)


def _compared(ratios: Sequence[float], below: str, above: str) -> str:
    """Say on which side of 1 the mean of some ratios is, by two standard errors."""
    mean, error = _moments(ratios)
    if mean < 1 - 2 * error:
        return below
    if mean > 1 + 2 * error:
        return above
    return f"neither {below} nor {above}"


def _grown(figures: Figures) -> list[Quantity]:
    """Return how many times the |Δv| of drawn contexts that of grown ones is."""
    drawn = _of_images(figures["maps"], "drawn ")
    grown = _of_images(figures["maps"], "grown ")
    return [
        Quantity("{} times", *_moments([after / before for after, before in zip(grown, drawn, strict=True)]), ".1f")
    ]


def _on_the_digit(figures: Figures) -> list[Quantity]:
    """Return how many times as often as at large pixels of reduced contexts are on the digit."""
    measured = figures["maps"]
    start = "reduced on the digit " if "reduced on the digit 0" in measured else "on the digit "
    return [Quantity("on the digit {} times", *_moments(_of_images(measured, start)), ".1f")]


def _of_images(measured: Mapping[str, float], start: str) -> list[float]:
    """Return a figure of all images."""
    return [value for key, value in measured.items() if key.startswith(start)]


def _mean_and_error(values: Sequence[float]) -> str:
    """Write a mean with its standard error over images."""
    mean, error = _moments(values)
    return f"{mean:.2f} ± {error:.2f}"


def _moments(values: Sequence[float]) -> tuple[float, float]:
    """Return a mean and its standard error over images."""
    numbers = torch.tensor(values, dtype=torch.float64)
    error = float(numbers.std() / len(values) ** 0.5) if len(values) > 1 else float("nan")
    return float(numbers.mean()), error


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
            line=Line("greedy contexts are strong (Alg. 1)", "–", _grown, ("maps",)),
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
            Line("pixels of patterns (Fig. 4)", "maps", _on_the_digit, ("maps",)),
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
        "Chance, the mean of p(j|i) over all other pixels, is taken off in tables and pictures. Reduced contexts "
        "keep nine tenths of |Δv|; which players are taken out first is drawn.",
        "One network, one seed, six images; errors are over images.",
    ),
    parts={"maps": maps, "known": known},
    shown=("Contexts of a pixel", "Where the pixels"),
    aliases={"algorithm-1": ("maps", "known")},
)
