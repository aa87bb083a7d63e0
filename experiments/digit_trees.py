"""Experiment on And-Or trees of digits: which baseline values give the Shapley values that their structure implies.

The paper's tree of a class adds the pixels that are bright in the class's mean image, and, but for a footnote that
drops this for its table, in the image itself. Both rules are measured. With g(x) = x where x passes the rule and 0
elsewhere, the tree's output is f = Σ g(xᵢ), and its probability is p = sigmoid(γ·(f − β)).

The paper explains the log-odds, and says that "the output probability should be fairly assigned". So both readouts
are measured. The log-odds are a sum over pixels: Shapley values are γ·(g(xᵢ) − g(bᵢ)). With γ = 40 the probability is
nearly a step, which is the AND pattern that the text describes. Its Shapley values are estimated from drawn
coalitions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal, TypeAlias

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from experiments.datasets import ImageData
from experiments.experiment import Claim, Experiment, Figures, Found, Line, Quantity, Rule, Run, Verdict
from experiments.tables import ResultTable, plus_minus

ReadoutName: TypeAlias = Literal["log-odds", "probability"]

PRINTED = {"zero": 92.99, "mean": 92.93, "SHAP": 93.37, "learned": 96.84}
NEAR = 1.0  # points, for learned values
STEEPNESS = 40.0
BRIGHT = 0.5
TOLERANCE = 0.01
READOUTS: tuple[ReadoutName, ...] = ("log-odds", "probability")
# A pixel of the class is added if it is brighter than this: always by the footnote's rule.
RULES = {"text": BRIGHT, "footnote": -1.0}
# β is "proportional to" the number of the class's pixels; the paper does not say by what factor.
SHARES = (0.0, 0.25, 0.5)
STARTS = ("zero", "mean")
# "Zero" is black, because the text says that pixels are at least 0. In inputs from −1 to 1 it would be mid-grey.
GREY = "zero as mid-grey"
LEFT_OUT = 20  # the first test images of each class were looked at before this was written
# Draws for each image.
_WALKS = 32
_BACKGROUNDS = 64
# Learning by L_marginal: λ as a share of the pixels, the rate of Adam, and the images in a step.
_ORDERS = 0.2
_RATE = 0.02
_ROWS = 64


@dataclass(frozen=True)
class Setting:
    """What the paper leaves open: the readout, the rule, the factor of β, and the values that learning starts from.

    >>> Setting.named("probability, footnote, 0.5, mean")
    Setting(readout='probability', rule='footnote', share=0.5, start='mean')
    """

    readout: ReadoutName
    rule: str
    share: float
    start: str

    def __str__(self) -> str:
        return f"{self.readout}, {self.rule}, {self.share:g}, {self.start}"

    @staticmethod
    def named(text: str) -> Setting:
        """Return the setting of this name."""
        return next(setting for setting in SETTINGS if str(setting) == text)

    @property
    def words(self) -> str:
        """The setting in words."""
        return f"the {self.readout}, the {self.rule}'s rule, β = {self.share:g}·pixels, a start from {self.start}"


SETTINGS = tuple(Setting(*one) for one in product(READOUTS, RULES, SHARES, STARTS))


# The setting that was chosen on training images for the log-odds.
FLOOR_SETTING = Setting("log-odds", "text", 0.25, "zero")


def passed(x: Float[Tensor, "*rows pixels"], above: float) -> Float[Tensor, "*rows pixels"]:
    """Keep pixels that are brighter than a bound, and set others to 0."""
    return torch.where(x > above, x, torch.zeros_like(x))


def read(f: Float[Tensor, "*rows"], beta: float, readout: ReadoutName) -> Float[Tensor, "*rows"]:
    """Return the log-odds or the probability of a tree's output."""
    logit = STEEPNESS * (f - beta)
    return logit if readout == "log-odds" else logit.sigmoid()


def true_shapley(
    x: Float[Tensor, "rows pixels"],
    bright: Bool[Tensor, " pixels"],
    share: float,
    above: float = BRIGHT,
    readout: ReadoutName = "log-odds",
) -> Float[Tensor, "rows pixels"]:
    """Share the readout equally among the pixels of V, those bright in the mean image and added by the rule."""
    used = bright & (x > above)
    value = read((x * used).sum(1), share * float(bright.sum()), readout)
    return used * (value / used.sum(1).clamp_min(1))[:, None]


def shapley_of_step(
    added: Float[Tensor, " pixels"],
    absent: Float[Tensor, "walks pixels"],
    betas: Float[Tensor, " betas"],
    generator: torch.Generator,
) -> Float[Tensor, "betas pixels"]:
    """Estimate the Shapley values of sigmoid(γ·(Σ − β)), a function of a sum over pixels, without bias.

    φᵢ = Σ_{k=0}^{n} E_{|S|=k}[v(S∪i) − v(S∖i)] / (n + 1): every drawn S serves all pixels, and a sum with or without
    one pixel needs no new evaluation of the others. Each walk from ∅ to N has its own row of absent values.

    >>> added, absent = torch.tensor([0.6, 0.6, 0.6]), torch.zeros(4000, 3)
    >>> shapley_of_step(added, absent, torch.tensor([1.5]), torch.Generator().manual_seed(0)).round(decimals=1)
    tensor([[0.3000, 0.3000, 0.3000]])
    """
    walks, players = absent.shape
    places = torch.rand(walks, players, generator=generator).argsort(1).argsort(1)
    present = places[:, None] < torch.arange(players + 1)[:, None]  # one pixel more at each step
    step = (added - absent)[:, None]
    sums = absent.sum(1)[:, None] + (step * present).sum(2)
    without = sums[:, :, None] - step * present
    values = []
    for beta in betas.tolist():
        value = (STEEPNESS * (sums - beta)).sigmoid()[:, :, None]
        other = (STEEPNESS * (torch.where(present, without, without + step) - beta)).sigmoid()
        values.append(torch.where(present, value - other, other - value).sum(1).mean(0) / (players + 1))
    return torch.stack(values)


def descend(
    rows: Float[Tensor, "rows some"],
    start: Float[Tensor, " some"],
    above: float,
    setting: Setting,
    steps: int,
    seed: int,
) -> Float[Tensor, " some"]:
    """Minimise L_marginal by gradient descent with the orders below λ = 0.2 n, on walks of drawn images.

    This is the loss alone. `absentia.learn_baseline` also breaks its ties, which the probability has many of, and so
    ends alike from both starts.
    """
    generator = torch.Generator().manual_seed(seed)
    baseline = start.clone().requires_grad_()
    orders = max(1, round(_ORDERS * rows.shape[1]))
    beta = setting.share * rows.shape[1]
    descent = torch.optim.Adam([baseline], lr=_RATE)
    for _ in range(steps):
        x = rows[torch.randint(len(rows), (_ROWS,), generator=generator)]
        first = torch.rand(x.shape, generator=generator).argsort(1)[:, :orders]
        absent = _softly_passed(baseline, above)
        gains = (_softly_passed(x, above) - absent).gather(1, first)
        sums = absent.sum() + torch.cat([torch.zeros(len(x), 1), gains.cumsum(1)], 1)
        descent.zero_grad()
        read(sums, beta, setting.readout).diff(dim=1).abs().sum(1).mean().backward()
        descent.step()
        baseline.data.clamp_(0, 1)
    return baseline.detach()


def _softly_passed(x: Float[Tensor, "*rows pixels"], above: float) -> Float[Tensor, "*rows pixels"]:
    """Soften the bound on brightness, so that it has a gradient."""
    return x * torch.sigmoid(200 * (x - above))


@dataclass(frozen=True, eq=False)
class Tree:
    """The tree of a class, on the pixels that are bright in the mean image; all other pixels have φ = 0, rightly."""

    bright: Bool[Tensor, " pixels"]
    train: Float[Tensor, "train some"]  # of the class
    everything: Float[Tensor, "all some"]  # of all classes
    run: Run

    @staticmethod
    def of_class(data: ImageData, digit: int, run: Run) -> Tree:
        """Make the tree of a class from training images."""
        train = data.x_train[data.y_train == digit].flatten(1)
        bright = train.mean(0) > BRIGHT
        everything = data.x_train[: run.pick(full=60_000, quick=5_000, tiny=50)].flatten(1)
        return Tree(bright, train[:, bright], everything[:, bright], run)

    def stand_ins(self, rule: str) -> dict[str, Float[Tensor, " some"]]:
        """Return the usual baseline values, as the tree adds them."""
        above = RULES[rule]
        nothing = torch.zeros_like(self.train[0])
        return {
            "zero": nothing,
            GREY: passed(nothing + 0.5, above),
            "mean": passed(self.everything.mean(0), above),
        }

    def learn(self, setting: Setting) -> Float[Tensor, " some"]:
        """Learn baseline values by L_marginal from images that are not scored; return them as the tree adds them."""
        rows = self.train[: -self.scored]
        above = RULES[setting.rule]
        start = torch.zeros_like(rows[0]) if setting.start == "zero" else self.everything.mean(0)
        steps = self.run.pick(full=150, quick=30, tiny=2)
        return passed(descend(rows, start, above, setting, steps, self.run.seed), above)

    @property
    def scored(self) -> int:
        """How many of the last training images are kept for the choice of a setting."""
        return self.run.pick(full=50, quick=4, tiny=3)

    def scores(
        self,
        x: Float[Tensor, "rows some"],
        readout: ReadoutName,
        rule: str,
        absent: Tensor,
        shares: tuple[float, ...],
    ) -> list[float]:
        """Return the accuracy for each factor of β; several rows of absent values are a background, as in SHAP."""
        above = RULES[rule]
        everyone = torch.ones_like(self.train[0], dtype=torch.bool)
        background = absent.ndim == 2
        betas = torch.tensor(shares) * x.shape[1]
        generator = torch.Generator().manual_seed(self.run.seed)
        added = passed(x, above)
        if readout == "log-odds":
            values = (STEEPNESS * (added - (absent.mean(0) if background else absent))).expand(len(shares), -1, -1)
        else:
            walks = []
            for row in added:
                drawn = torch.randint(len(absent), (_BACKGROUNDS,), generator=generator) if background else None
                absents = absent.expand(_WALKS, -1) if drawn is None else absent[drawn]
                walks.append(shapley_of_step(row, absents, betas, generator))
            values = torch.stack(walks, 1)
        truths = torch.stack([true_shapley(x, everyone, share, above, readout) for share in shares])
        right = ((values - truths).abs() <= TOLERANCE).double().mean((1, 2))
        inside = float(self.bright.double().mean())
        return (inside * right + 1 - inside).tolist()


def training_scores(data: ImageData, digit: int, run: Run) -> dict[str, float]:
    """Score all settings on training images of a class that nothing was learned from.

    Keys are the name of the baseline values and the setting, whose start only matters for learned ones.
    """
    tree = Tree.of_class(data, digit, run)
    x = tree.train[-tree.scored :]
    figures: dict[str, float] = {}
    for readout, rule in product(READOUTS, RULES):
        absents = {**tree.stand_ins(rule), "SHAP": passed(tree.everything, RULES[rule])}
        by_share = {name: tree.scores(x, readout, rule, absent, SHARES) for name, absent in absents.items()}
        for start in STARTS:
            same: Tensor | None = None
            for number, share in enumerate(SHARES):
                setting = Setting(readout, rule, share, start)
                if same is None or readout == "probability":  # β adds a constant to the log-odds
                    same = tree.learn(setting)
                figures |= {f"{name}, {setting}": scores[number] for name, scores in by_share.items()}
                (figures[f"learned, {setting}"],) = tree.scores(x, readout, rule, same, (share,))
    return figures


def unseen_scores(data: ImageData, digit: int, run: Run, chosen: Mapping[ReadoutName, Setting]) -> dict[str, float]:
    """Score the chosen settings on test images of a class, and the best that any constant can do for the log-odds."""
    tree = Tree.of_class(data, digit, run)
    images = data.x_test[data.y_test == digit].flatten(1)[run.pick(full=LEFT_OUT, quick=LEFT_OUT, tiny=0) :]
    x = images[: run.pick(full=300, quick=10, tiny=3), tree.bright]
    figures: dict[str, float] = {}
    for readout, setting in chosen.items():
        absents = {
            **tree.stand_ins(setting.rule),
            "SHAP": passed(tree.everything, RULES[setting.rule]),
            "learned": tree.learn(setting),
        }
        for name, absent in absents.items():
            (figures[f"{name}, {readout}"],) = tree.scores(x, setting.readout, setting.rule, absent, (setting.share,))
    exact = x.double()
    everyone = torch.ones(x.shape[1], dtype=torch.bool)
    for rule, above in RULES.items():
        bounds = []
        for share in SHARES:
            wanted = passed(exact, above) - true_shapley(exact, everyone, share, above) / STEEPNESS
            bounds.append(best_constant(wanted, tree.bright))
        figures |= {f"best constant, {rule}, {share:g}": bound for share, bound in zip(SHARES, bounds, strict=True)}
    return figures


def best_constant(wanted: Float[Tensor, "rows some"], bright: Bool[Tensor, " pixels"]) -> float:
    """Return the highest accuracy of any constant for the log-odds: for each pixel the most rows one value serves.

    ``wanted`` is the value that each row would need. All pixels that the tree does not add are right anyway.
    """
    width = 2 * TOLERANCE / STEEPNESS
    ranked = wanted.sort(dim=0).values
    ends = torch.searchsorted(ranked.T.contiguous(), (ranked.T + width).contiguous(), right=True)
    most = (ends - torch.arange(len(wanted))).amax(1)
    return float((most.sum() + (~bright).sum() * len(wanted)) / (len(bright) * len(wanted)))


def distance(figures: Mapping[str, float], setting: Setting) -> float:
    """Return the sum of squared differences from the four printed numbers."""
    return sum((figures[f"{name}, {setting}"] - printed) ** 2 for name, printed in PRINTED.items())


def trees(run: Run) -> Found:
    """Choose a setting for each readout on training images, and measure these on test images."""
    data: ImageData = run.data("mnist")
    digits = range(run.pick(full=10, quick=2, tiny=1))
    alone = replace(run, workers=1)
    jobs = {f"training {digit}": digit for digit in digits}
    trained = _mean(alone.each(lambda digit: training_scores(data, digit, run), jobs))
    nearest = sorted(SETTINGS, key=lambda setting: distance(trained, setting))
    chosen = {readout: next(one for one in nearest if one.readout == readout) for readout in READOUTS}
    names = "; ".join(str(setting) for setting in chosen.values())
    jobs = {f"test {digit}, {names}": digit for digit in digits}
    tested = _mean(alone.each(lambda digit: unseen_scores(data, digit, run, chosen), jobs))
    figures = {f"training: {key}": value for key, value in trained.items()} | tested
    numbers = {f"chosen {readout}": float(SETTINGS.index(setting)) for readout, setting in chosen.items()}
    figures |= numbers | {"chosen": float(SETTINGS.index(nearest[0]))}
    return Found(figures, (_test_table(figures, len(digits)), _training_table(trained, nearest, len(digits))))


def floors(run: Run) -> Found:
    """Score the answer 0 everywhere, and all settings on the tree's own pixels alone, on test images."""
    data: ImageData = run.data("mnist")
    digits = range(run.pick(full=10, quick=2, tiny=1))
    chosen = {"log-odds": FLOOR_SETTING}
    names = ("φ = 0 everywhere", *PRINTED)
    scores: dict[str, list[float]] = {f"{kind}, {name}": [] for name in names for kind in ("all", "own")}
    for digit in digits:
        tree = Tree.of_class(data, digit, run)
        images = data.x_test[data.y_test == digit].flatten(1)[run.pick(full=LEFT_OUT, quick=LEFT_OUT, tiny=0) :]
        x = images[: run.pick(full=300, quick=10, tiny=3), tree.bright]
        setting = chosen["log-odds"]
        absents = {
            **tree.stand_ins(setting.rule),
            "SHAP": passed(tree.everything, RULES[setting.rule]),
            "learned": tree.learn(setting),
        }
        everyone = torch.ones(x.shape[1], dtype=torch.bool)
        truth = true_shapley(x, everyone, setting.share, RULES[setting.rule])
        inside = float(tree.bright.double().mean())
        own_figures = {"φ = 0 everywhere": float((truth.abs() <= TOLERANCE).double().mean())}
        for name in PRINTED:
            (score,) = tree.scores(x, setting.readout, setting.rule, absents[name], (setting.share,))
            own_figures[name] = (score - (1 - inside)) / inside
        for name, value in own_figures.items():
            scores[f"own, {name}"].append(value)
            scores[f"all, {name}"].append(inside * value + 1 - inside)
    note = (
        f"Test images, the log-odds, the text's rule, β = {FLOOR_SETTING.share:g}·pixels, a start from zero; means "
        f"over {len(digits)} classes with standard errors over classes. All other pixels are right whatever is "
        "answered, because the tree does not read them: the floor is what the answer 0 everywhere scores."
    )
    heads = ("setting", "all pixels", "± error", "the tree's own pixels", "± error", "the paper (all)")
    table = ResultTable("The floor, and the pixels of the tree alone", heads, note)
    figures: dict[str, float] = {}
    for name in names:
        cells = []
        for kind in ("all", "own"):
            values = 100 * torch.tensor(scores[f"{kind}, {name}"], dtype=torch.float64)
            error = float(values.std(correction=min(1, len(values) - 1))) / len(values) ** 0.5
            figures |= {f"{kind}, {name}": float(values.mean()), f"error of {kind}, {name}": error}
            cells += [f"{float(values.mean()):.2f} %", f"{error:.2f} %"]
        table.add(name, *cells, f"{PRINTED[name]:.2f} %" if name in PRINTED else "–")
    return Found(figures, (table,))


def _mean(every: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Average the scores of classes, in per cent."""
    classes = list(every.values())
    return {key: 100 * sum(scores[key] for scores in classes) / len(classes) for key in classes[0]}


def _test_table(figures: Mapping[str, float], classes: int) -> ResultTable:
    chosen = {readout: SETTINGS[int(figures[f"chosen {readout}"])] for readout in READOUTS}
    note = (
        f"Accuracy of Shapley values over all pixels of test images, mean over {classes} classes, without the first "
        f"{LEFT_OUT} images of each class, which were looked at before; right within {TOLERANCE:g}, γ = "
        f"{STEEPNESS:g}. Settings were chosen on training images: "
        + "; ".join(setting.words for setting in chosen.values())
        + ". Best constant: for each pixel the value that serves most test images, the most that any baseline could "
        "score by any β that was tried; it is a bound only, and known for the log-odds only."
    )
    table = ResultTable("Shapley values of And-Or trees of digits", ("setting", *READOUTS, "the paper"), note)
    for name in (*PRINTED, GREY):
        printed = f"{PRINTED[name]:.2f} %" if name in PRINTED else "–"
        table.add(name, *(f"{figures[f'{name}, {readout}']:.2f} %" for readout in READOUTS), printed)
    for rule in RULES:
        table.add(f"best constant, by the {rule}'s rule", f"{_bound(figures, rule):.2f} %", "–", "–")
    return table


def _training_table(trained: Mapping[str, float], nearest: list[Setting], classes: int) -> ResultTable:
    note = (
        f"Accuracy on training images that nothing was learned from, mean over {classes} classes, the nearest to the "
        "printed numbers first. Distance: the sum of squared differences from the four printed numbers."
    )
    names = (*PRINTED, GREY)
    heads = ("readout, rule, β / pixels, start of learning", *names, "distance")
    table = ResultTable("The choice of a setting on training images", heads, note)
    for setting in nearest:
        cells = [f"{trained[f'{name}, {setting}']:.2f} %" for name in names]
        table.add(setting, *cells, f"{distance(trained, setting):.1f}")
    return table


def _bound(figures: Mapping[str, float], rule: str) -> float:
    return max(figures[f"best constant, {rule}, {share:g}"] for share in SHARES)


def judge(figures: Figures) -> Verdict:
    """Ask whether learned values score highest, and as printed, in the setting that was chosen on training images."""
    measured = figures.get("trees")
    if measured is None:
        return Verdict("not measured", "–", "")
    chosen = SETTINGS[int(measured["chosen"])]
    scores = {name: measured[f"{name}, {chosen.readout}"] for name in PRINTED}
    floor = figures.get("floor", {})
    ours = ", ".join(
        f"{name} {plus_minus(score, floor.get(f'error of all, {name}'), '.2f')}" for name, score in scores.items()
    )
    ours += " %"
    if floor:
        nothing = floor["all, φ = 0 everywhere"]
        ours += f"; the answer 0 everywhere {plus_minus(nothing, floor['error of all, φ = 0 everywhere'], '.2f')} %"
        own_words = (
            f"{name} {plus_minus(floor[f'own, {name}'], floor[f'error of own, {name}'], '.1f')}" for name in PRINTED
        )
        ours += f"; of the tree's own pixels {', '.join(own_words)} %"
    if _leads(scores) > 0 and abs(scores["learned"] - PRINTED["learned"]) <= NEAR:
        reason = f"Learned values score highest, within {NEAR:g} point of the printed."
        return Verdict("in one reading", ours, reason, chosen.words)
    by_step = {name: measured[f"{name}, probability"] for name in PRINTED}
    near = "" if abs(by_step["learned"] - PRINTED["learned"]) <= NEAR else "not "
    bound = max(_bound(measured, rule) for rule in RULES)
    highest = sum(
        _leads({name: measured[f"training: {name}, {setting}"] for name in PRINTED}) > 0 for setting in SETTINGS
    )
    reason = (
        f"By the log-odds, no constant can score above {bound:.2f} %, and the answer 0 everywhere scores as much as "
        "zero and learned values: the figure is one of the pixels that the tree does not read. By the probability, "
        f"learned values score {by_step['learned']:.2f} %, {near}within {NEAR:g} point of the "
        f"printed, and {_compared(by_step)}. On "
        f"training images, learned values score highest in {highest} of {len(SETTINGS)} settings."
    )
    return Verdict("no", ours, reason)


def _leads(scores: Mapping[str, float]) -> float:
    """Return by how much learned values score higher than all others."""
    return scores["learned"] - max(score for name, score in scores.items() if name != "learned")


def _compared(scores: Mapping[str, float]) -> str:
    """Say how learned values compare with the best others."""
    best = max((name for name in scores if name != "learned"), key=scores.__getitem__)
    lead = _leads(scores)
    if lead > 0:
        return "higher than all others"
    word = "lower" if lead < 0 else "no higher"
    return f"{word} than {best} ({scores[best]:.2f} %)"


def _learned_and_floor(figures: Figures) -> list[Quantity]:
    """Return the accuracies of learned values and of the answer 0 everywhere."""
    measured = figures["floor"]
    names = {"learned": "learned", "φ=0": "φ = 0 everywhere"}
    return [
        Quantity(f"{word} {{}} %", measured[f"all, {name}"], measured[f"error of all, {name}"])
        for word, name in names.items()
    ]


EXPERIMENT = Experiment(
    name="table-7",
    title="Shapley values of And-Or trees of digits",
    claims=(
        Claim(
            "Shapley values by learned values are right most often",
            "Table 7",
            "zero 92.99, mean 92.93, SHAP 93.37, learned 96.84 %",
            Rule(
                "In one reading: of the 24 settings that the text leaves open, the one nearest to the printed "
                "numbers on training images has learned values highest on test images, within 1 point of the "
                "printed.",
                "2026-11-18",
                "after",
            ),
            judge,
            line=Line("digit trees: learned most right (Table 7)", "96.84 %", _learned_and_floor, ("floor",)),
        ),
    ),
    settings=(
        "The paper's tree, γ = 40, right within 0.01. It leaves open the readout (log-odds, or the probability that "
        "its text shares out), the rule, β's factor and the start of learning: all of them are tried on training "
        "images, and the nearest to the four printed numbers is measured on test images. Learned by gradient descent "
        "on L_marginal with λ = 0.2 n, from training images of the class. Zero is black, as the text's xᵢ ≥ 0 says."
    ),
    caveats=(
        "The floor is the answer 0 everywhere; what is above it is little, and what is right of the tree's own "
        "pixels is mostly pixels whose true value is 0.",
        "Errors are over the ten classes. Seeds of learning and of draws, on the same test images, change nothing.",
        "L_marginal is taken alone, with orders below λ.",
    ),
    parts={"trees": trees, "floor": floors},
    shown=("The floor", "Shapley values of"),
)
