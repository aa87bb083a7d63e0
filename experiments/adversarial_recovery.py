"""Experiment on adversarial examples: whether baseline values that start there come back to the original sample.

L_marginal of a sample x is 0 where b = x: then nothing changes by masking. The paper does not say which samples its
loss is taken on. If it is the original one, then learning is told the answer; so it is taken on other samples, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from experiments.datasets import ImageData
from experiments.experiment import Claim, Experiment, Found, Run, Verdict
from experiments.published_schedule import count_orders
from experiments.tables import ResultTable

# The bound of the attack, and the printed distances before and after.
PRINTED = {
    "mnist-lenet": (32 / 255, 2.33, 0.43),
    "mnist-alexnet": (32 / 255, 2.53, 1.15),
    "cifar10-resnet20": (8 / 255, 1.19, 1.11),
}
ATTACK_STEPS = 20
ORDERS = 0.2  # the paper's λ, as a share of the pixels
# The first rate of Adam. That of ResNet-20 was chosen on five training images: on one, the distance fell more than by
# 0.0005 and 0.0025; on the four others, more than by 0.0007.
RATES = {"mnist-lenet": 0.01, "mnist-alexnet": 0.01, "cifar10-resnet20": 0.001}
# Images and steps at full size: as many as two cores take in about a quarter of an hour.
SIZES = {"mnist-lenet": (20, 250), "mnist-alexnet": (5, 60), "cifar10-resnet20": (10, 60)}
FALL = 0.01  # the least share of the distance that counts as a fall
OWN, OTHERS = "the original sample", "other samples of its class"


def attack(
    model: nn.Module, x: Float[Tensor, "rows *entries"], y: Int[Tensor, " rows"], bound: float
) -> Float[Tensor, "rows *entries"]:
    """Raise the loss by projected gradient steps within a box around the samples, from a random point in it."""
    generator = torch.Generator().manual_seed(0)
    moved = (x + bound * (2 * torch.rand(x.shape, generator=generator) - 1)).clamp(0, 1)
    for _ in range(ATTACK_STEPS):
        leaf = moved.clone().requires_grad_()
        (slope,) = torch.autograd.grad(nn.functional.cross_entropy(model(leaf), y, reduction="sum"), leaf)
        moved = (moved + 2.5 * bound / ATTACK_STEPS * slope.sign()).clamp(x - bound, x + bound).clamp(0, 1)
    return moved


def recover(
    features: nn.Module,
    start: Float[Tensor, "channels height width"],
    masked: Float[Tensor, "some channels height width"],
    steps: int,
    rate: float,
    generator: torch.Generator,
) -> Float[Tensor, "channels height width"]:
    """Minimise L_marginal of a baseline over the samples that are masked with it, from a start.

    A step lets the pixels of one sample arrive in a random order up to λ, and follows Σ‖h(x_{S∪i}) − h(x_S)‖₁.
    """
    values = start.clone().requires_grad_()
    adam = torch.optim.Adam([values], lr=rate)
    height, width = start.shape[-2:]
    sizes = torch.arange(count_orders(ORDERS, height * width) + 1)[:, None]
    for step in range(steps):
        adam.param_groups[0]["lr"] = rate * (1 - step / steps)
        arrival = torch.rand(height * width, generator=generator).argsort().argsort()
        present = (arrival < sizes).view(-1, 1, height, width)
        x = masked[torch.randint(len(masked), (1,), generator=generator)]
        along = features(torch.where(present, x, values))
        adam.zero_grad()
        (along[1:] - along[:-1]).abs().sum().backward()
        adam.step()
        with torch.no_grad():
            values.clamp_(0, 1)
    return values.detach()


def recovery(part: str, run: Run) -> Found:
    """Attack test images, learn from the adversarial examples, and measure the distances to the originals."""
    name, network = part.split("-")
    bound, before_printed, after_printed = PRINTED[part]
    images, steps = SIZES[part]
    steps = run.pick(full=steps, quick=8, tiny=2)
    data: ImageData = run.data(name)
    model = run.network(name, run.seed, network)
    assert_sequential(model)
    generator = torch.Generator().manual_seed(run.seed)
    chosen = torch.randperm(len(data.x_test), generator=generator)[: run.pick(full=images, quick=1, tiny=2)]
    x, y = data.x_test[chosen], data.y_test[chosen]
    adversarial = attack(model, x, y, bound)
    with torch.no_grad():
        fooled = float((model(adversarial).argmax(1) != y).double().mean())
    features = nn.Sequential(*list(model.children())[:-1])
    others = torch.stack([_of_class(data, int(label), 64, generator) for label in y])

    def distances(job: tuple[str, int]) -> list[float]:
        """Learn from one adversarial example, and return the L2 and L1 distances to its original."""
        kind, row = job
        samples = x[row : row + 1] if kind == OWN else others[row]
        own = torch.Generator().manual_seed(run.seed + row)
        end = recover(features, adversarial[row], samples, steps, RATES[part], own)
        return [float((end - x[row]).norm()), float((end - x[row]).abs().sum())]

    jobs = {f"{kind}, {row}": (kind, row) for kind in (OWN, OTHERS) for row in range(len(x))}
    ends = replace(run, workers=1).each(distances, jobs)
    before = float((adversarial - x).flatten(1).norm(dim=1).mean())
    figures = {"before": before, "fooled": fooled}
    heads = ("loss taken on", "‖x_adv − x‖₂", "‖b − x‖₂", "L1: share of rows nearer", "the paper")
    note = (
        f"{len(x)} test images of {name}, {network}; projected gradient descent within {bound * 255:.0f}/255, which "
        f"changes the class of {fooled:.0%}. L_marginal of pixels with features of the penultimate layer, λ = "
        f"{ORDERS:g} n, {steps} steps of Adam of up to {RATES[part]:g}, each along one order of the pixels."
    )
    table = ResultTable(f"Recovery from adversarial examples: {network} on {name}", heads, note)
    moved = (adversarial - x).abs().flatten(1).sum(1)
    for kind in (OWN, OTHERS):
        far, total = torch.tensor([ends[f"{kind}, {row}"] for row in range(len(x))]).T
        after, nearer = float(far.mean()), float((total <= moved).double().mean())
        figures |= {f"after, {kind}": after, f"nearer, {kind}": nearer}
        table.add(kind, f"{before:.2f}", f"{after:.2f}", f"{nearer:.0%}", f"{before_printed:g} → {after_printed:g}")
    return Found(figures, (table,))


def assert_sequential(model: nn.Module) -> None:
    """Refuse a model whose last layer cannot be cut off."""
    if not isinstance(model, nn.Sequential):
        raise TypeError(f"model must be an nn.Sequential. Got {type(model).__name__} instead.")


def _of_class(data: ImageData, label: int, count: int, generator: torch.Generator) -> Tensor:
    rows = (data.y_train == label).nonzero().flatten()
    return data.x_train[rows[torch.randint(len(rows), (count,), generator=generator)]]


def judge(figures: Mapping[str, Mapping[str, float]]) -> Verdict:
    """Ask whether the distance falls if the loss is taken on the original sample, and say what other samples give."""
    lines, fell, at_least = [], [], []
    for part, found in figures.items():
        before, after, other = (found[key] for key in ("before", f"after, {OWN}", f"after, {OTHERS}"))
        _, before_printed, after_printed = PRINTED[part]
        lines.append(f"{part}: {before:.3f} → {after:.3f} (on other samples {other:.2f})")
        fell.append(part if after > (1 - FALL) * before else "")
        at_least.append(after / before <= after_printed / before_printed)
    reason = "The distance falls if the loss masks the original sample, which has its minimum, 0, at b = x."
    if not any(found[f"after, {OTHERS}"] < found["before"] for found in figures.values()):
        reason += " On other samples of the class it does not fall."
    if any(fell):
        short = " and ".join(part for part in fell if part)
        nearer = min(figures[part][f"nearer, {OWN}"] for part in fell if part)
        reason += (
            f" By {short} it falls by less than {FALL:.0%}, after as many steps as two cores take in a quarter of an "
            f"hour; in L1 at least {nearer:.0%} of the images come nearer. The paper does not state its steps."
        )
        return Verdict("not reproduced", "; ".join(lines), reason)
    better = all(at_least) and len(figures) == len(PRINTED)
    return Verdict("better" if better else "reproduced", "; ".join(lines), reason)


EXPERIMENT = Experiment(
    name="table-8",
    title="Recovery of samples from adversarial examples",
    claims=(
        Claim("‖x_adv − x‖₂ → ‖b − x‖₂: LeNet 2.33 → 0.43, AlexNet 2.53 → 1.15, ResNet-20 1.19 → 1.11", "Table 8"),
    ),
    settings=(
        "The paper's: projected gradient descent, 32/255 on MNIST and 8/255 on CIFAR-10, L_marginal on features, λ = "
        "0.2 n, starting at the adversarial example. Ours: 20 steps of attack, the samples that the loss masks, and "
        "the rates: 0.01 on MNIST; on CIFAR-10 the best of four on training images. By a first rate, 0.0025, the "
        "distance of ten test images fell by 0.2 % only, and by 0.01 it rose."
    ),
    parts={part: partial(recovery, part) for part in PRINTED},
    judge=judge,
)
