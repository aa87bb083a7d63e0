"""Every experiment at its tiniest size on toy data: what it returns, and at least one relation that must hold."""

from dataclasses import replace

import pytest
import torch
from torch import nn

import absentia as ab
from experiments import (
    adversarial_recovery,
    context_maps,
    datasets,
    digit_trees,
    learned_attributions,
    noise_effects,
    order_ratios,
    order_strengths,
    sparse_effects,
)
from experiments.datasets import LOADERS, ImageData, TabularData, TextData
from experiments.experiment import NotToBeHadError, Part, Record, Run
from experiments.networks import mlp, text_cnn, text_lstm
from experiments.registry import EXPERIMENTS
from experiments.report import judged_claims, summed_up
from toy_data import sentences

PARTS = {(one.name, part): (one, work) for one in EXPERIMENTS for part, work in one.parts.items()}
# These have tests of their own in test_known_baselines.py and test_known_shapley.py.
ELSEWHERE = {
    *(("table-4", part) for part in ("functions", "tsang", "generated", "functions-plain", "tsang-plain")),
    *(("table-5", part) for part in ("family", "losses")),
}


def toy_table(name):
    """Six columns whose class depends on products."""
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(120, 6, generator=generator)
    y = (x[:, 0] * x[:, 1] + x[:, 2] * x[:, 3] > 0).long()
    columns = tuple("abcdef")
    halves = (x[:60], y[:60], x[60:], y[60:])
    return TabularData(name, columns, *halves, (), ("no", "yes"), torch.full((6,), 0.5), torch.ones(6))


def toy_images(name, channels, side):
    """Images with a bright bar in the upper or lower half on a dark ground."""
    generator = torch.Generator().manual_seed(2)
    y = torch.arange(80) % 2
    x = 0.1 * torch.rand(80, channels, side, side, generator=generator)
    rows = torch.where(y == 0, side // 4, 3 * side // 4 - 1)
    x[torch.arange(80), :, rows, side // 4 : -side // 4] = 0.9
    return ImageData(name, x[:50], y[:50], x[50:], y[50:], ("upper", "lower"))


def toy_network(channels, side):
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(channels, 3, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(3 * side**2, 2)
    ).eval()


DATA = {
    "census": toy_table("census"),
    "credit": toy_table("credit"),
    "mnist": toy_images("mnist", 1, 14),
    "cifar10": toy_images("cifar10", 3, 16),
    "sst2": sentences(),
    "tv-news": toy_table("tv-news"),
}
NETWORKS = {"mnist": toy_network(1, 14), "cifar10": toy_network(3, 16)}


def network(name, seed=0, kind=None):
    if name == "sst2":
        return {"cnn": text_cnn, "lstm": text_lstm}[kind](12, seed).eval()
    return NETWORKS.get(name) or mlp((6, 8, 2), seed=0)


@pytest.fixture
def tiny(tmp_path, data):
    def make(experiment="trial", part="all"):
        folder = tmp_path / "results"
        return Run(experiment, part, "tiny", folder=folder, data=DATA.__getitem__, network=network)

    return make


@pytest.mark.slow
@pytest.mark.parametrize("key", [key for key in PARTS if key not in ELSEWHERE], ids="-".join)
def test_every_part_runs_on_toy_data_and_can_be_judged(key, tiny, monkeypatch):
    monkeypatch.setattr(ab, "train_imputer", lambda data, **_: ab.Marginal(data[:2]))
    experiment, work = PARTS[key]
    run = tiny(*key)
    found = work(run)
    assert found.figures
    assert all(isinstance(value, int | float) and value == value for value in found.figures.values())
    assert found.tables
    assert all(len(row) == len(table.columns) for table in found.tables for row in table.rows)
    assert all((run.folder / picture).stat().st_size < 200_000 for picture in found.pictures)
    record = Record(key[0], {key[1]: Part(found, "", "tiny", 0, 1.0, "")})
    assert all(judged.verdict.word for judged in judged_claims(experiment, record))
    assert bool(experiment.claims) is (summed_up(experiment, record) is None)


def test_sparsity_is_judged_by_the_networks_of_the_paper():
    judge = sparse_effects.judge_few
    dense, sparse = ({"few of zero": 0.82, "few of mean": 0.2, "few of learned": few} for few in (0.5, 0.95))
    papers = ("census", "sst2-cnn", "mnist-vgg16")
    ours = ("mnist", "cifar10-resnet32", "cifar10-vgg16")
    found = judge(dict.fromkeys(papers, sparse) | dict.fromkeys(ours, dense))
    assert found.word == "in one reading"
    assert found.which == "values that were learned for few effects as absence"
    assert "in 3 of 3 networks of the paper under values learned for this purpose" in found.reason
    assert "census 0.95" in found.ours
    by_zero = {part: sparse | {"few of zero": 0.92} for part in papers}
    assert judge(by_zero | dict.fromkeys(ours, dense)).word == "as stated"
    assert judge(dict.fromkeys(papers, dense) | dict.fromkeys(ours, sparse)).word == "no"


def test_most_effects_are_near_zero_if_it_is_so_under_every_absence():
    shares = {"share of zero": 0.2, "share of mean": 0.3, "share of learned": 0.01}
    assert sparse_effects.judge_most({"census": shares}).word == "in one reading"
    assert sparse_effects.judge_most({"census": shares | {"share of mean": 0.5}}).word == "no"


def test_missing_tv_news_are_not_to_be_had(tiny, monkeypatch, tmp_path):
    monkeypatch.setenv("ABSENTIA_DATA", str(tmp_path))
    monkeypatch.setenv("ABSENTIA_CACHE", str(tmp_path))
    run = replace(tiny("fig-5", "tv-news"), data=lambda name: LOADERS[name]())
    with pytest.raises(NotToBeHadError, match="data set 326"):
        PARTS["fig-5", "tv-news"][1](run)


def test_shots_of_tv_news_are_read_from_their_five_files(monkeypatch, tmp_path):
    monkeypatch.setenv("ABSENTIA_DATA", str(tmp_path))
    (tmp_path / "tv_news").mkdir()
    for number, channel in enumerate(datasets.CHANNELS):
        lines = [f"{label} 1:{number + row} 2:0.5 3:9 4:{row} 17:1 4124:2" for row, label in enumerate((1, -1) * 5)]
        (tmp_path / "tv_news" / f"{channel}.txt").write_text("\n".join(lines), encoding="utf-8")
    found = datasets.tv_news()
    assert found.x_train.shape == (40, 9)
    assert found.x_test.shape == (10, 9)
    raw = torch.cat([found.x_train, found.x_test]) * found.std + found.mean
    assert sorted(raw[:, 0].round().int().tolist()) == sorted(n + r for n in range(5) for r in range(10))
    assert int(found.y_train.sum()) == 20
    assert torch.allclose(raw[:, 1], torch.tensor(0.5))


def test_a_tree_s_true_values_add_up_to_its_log_odds():
    x = torch.tensor([[0.9, 0.2, 0.8, 1.0]]).double()
    bright = torch.tensor([True, True, True, False])
    truth = digit_trees.true_shapley(x, bright, share=0.25)
    assert truth[0, 1] == truth[0, 3] == 0
    assert truth[0, 0] == truth[0, 2]
    assert float(truth.sum()) == pytest.approx(40 * (1.7 - 0.75))


def test_no_constant_beats_the_best_one():
    wanted = torch.tensor([[0.3, 0.1], [0.3, 0.5], [0.9, 0.7]]).double()
    bright = torch.tensor([True, True, False])
    assert digit_trees.best_constant(wanted, bright) == pytest.approx((2 + 1 + 3) / 9)


def test_a_tree_s_true_values_of_the_probability_add_up_to_it():
    x = torch.tensor([[0.9, 0.2, 0.8, 1.0]]).double()
    bright = torch.tensor([True, True, True, False])
    truth = digit_trees.true_shapley(x, bright, 0.6, above=-1.0, readout="probability")
    assert truth[0, 0] == truth[0, 1] == truth[0, 2]
    assert float(truth.sum()) == pytest.approx(float(torch.sigmoid(torch.tensor(40 * (1.9 - 1.8)).double())))


def test_drawn_shapley_values_of_a_tree_s_probability_are_those_of_the_library():
    x = torch.tensor([0.9, 0.3, 0.6, 0.8, 0.1, 0.7])
    absent = torch.tensor([0.1, 0.4, 0.0, 0.2, 0.3, 0.1])
    betas = torch.tensor([1.5, 2.2])
    drawn = digit_trees.shapley_of_step(x, absent.expand(4000, -1), betas, torch.Generator().manual_seed(0))
    for beta, values in zip(betas, drawn, strict=True):
        game = ab.MaskedModel(
            lambda rows, beta=beta: digit_trees.read(rows.sum(1), float(beta), "probability"),
            x[None],
            absence=ab.Baseline(absent),
        )
        torch.testing.assert_close(values.double(), ab.shapley(game).values[0].double(), atol=0.01, rtol=0)


def test_descent_lowers_the_marginal_benefits_that_a_tree_is_learned_by():
    rows = 0.6 + 0.4 * torch.rand(50, 10, generator=torch.Generator().manual_seed(0))
    setting = digit_trees.Setting("log-odds", "footnote", 0.5, "zero")
    learned = digit_trees.descend(rows, torch.zeros(10), -1.0, setting, steps=100, seed=0)
    assert ((rows - learned).abs().mean() < 0.3 * rows.mean()).item()
    assert 0 <= float(learned.min()) <= float(learned.max()) <= 1


def test_the_trees_bound_holds_for_the_log_odds_that_were_chosen(tiny):
    found = digit_trees.trees(tiny("table-7", "trees")).figures
    chosen = digit_trees.SETTINGS[int(found["chosen log-odds"])]
    bound = found[f"best constant, {chosen.rule}, {chosen.share:g}"]
    assert max(found[f"{name}, log-odds"] for name in digit_trees.PRINTED) <= bound + 1e-6


def test_the_setting_of_trees_is_the_nearest_on_training_images(tiny):
    found = digit_trees.trees(tiny("table-7", "trees")).figures
    on_training = {key.removeprefix("training: "): value for key, value in found.items()}
    distances = [digit_trees.distance(on_training, one) for one in digit_trees.SETTINGS]
    assert distances[int(found["chosen"])] == min(distances)


def test_trees_hold_in_one_reading_if_learned_values_score_highest_and_as_printed(tiny):
    judge = digit_trees.judge
    names = digit_trees.PRINTED
    readouts = digit_trees.READOUTS
    found = dict(digit_trees.trees(tiny("table-7", "trees")).figures)
    found |= {f"{name}, {readout}": score for name, score in names.items() for readout in readouts}
    assert judge({"trees": found}).word == "in one reading"
    for readout in readouts:
        found[f"zero, {readout}"] = 98.0
    lower = judge({"trees": found})
    assert lower.word == "no"
    assert "within 1 point of the printed, and lower than zero (98.00 %)" in lower.reason
    assert "the answer 0 everywhere scores as much as zero" in lower.reason
    for readout in readouts:
        found |= {f"zero, {readout}": 93.0, f"learned, {readout}": 95.0}
    assert "not within 1 point of the printed, and higher than all others" in judge({"trees": found}).reason


def test_an_attack_stays_within_its_bound_and_raises_the_loss():
    images = DATA["mnist"]
    model = NETWORKS["mnist"]
    x = images.x_test[:8]
    y = images.y_test[:8]
    found = adversarial_recovery.attack(model, x, y, 0.1, steps=20)
    assert float((found.moved - x).abs().max()) <= 0.1 + 1e-6
    with torch.no_grad():
        before, after = (float(nn.functional.cross_entropy(model(one), y)) for one in (x, found.moved))
    assert after > before


def test_only_samples_that_lose_their_right_class_count_as_fooled():
    model = nn.Sequential(nn.Flatten(), nn.Linear(1, 2, bias=False))
    with torch.no_grad():
        model[1].weight.copy_(torch.tensor([[0.0], [100.0]]))
        model.append(nn.Linear(2, 2))
        model[2].weight.copy_(torch.eye(2))
        model[2].bias.copy_(torch.tensor([50.0, 0.0]))  # class 1 above 0.5
    x = torch.tensor([0.1, 0.45, 0.9, 0.9]).view(4, 1, 1, 1)
    y = torch.tensor([0, 0, 1, 0])
    found = adversarial_recovery.attack(model, x, y, 0.2, steps=20)
    assert found.fooled.tolist() == [False, True, False, False]  # the last one is wrong from the start
    assert found.first(2).x.flatten().tolist() == pytest.approx([0.45, 0.1])


def test_quicker_slopes_are_the_same():
    features = nn.Sequential(*list(NETWORKS["mnist"].children())[:-1])
    quicker = adversarial_recovery.quicker(features)
    assert isinstance(quicker[0], adversarial_recovery.OneChannel)
    x = DATA["mnist"].x_test[:4].clone().requires_grad_()
    torch.testing.assert_close(quicker(x), features(x))
    plain, quick = (torch.autograd.grad(one(x).square().sum(), x)[0] for one in (features, quicker))
    assert float(plain.abs().max()) > 0
    torch.testing.assert_close(quick, plain)


def test_values_come_back_to_the_sample_that_the_loss_masks():
    x = DATA["mnist"].x_test[:2]
    features = nn.Sequential(*list(NETWORKS["mnist"].children())[:-1])
    start = (x + 0.2).clamp(0, 1)
    for decay in ("linear", "cosine"):
        schedule = adversarial_recovery.Schedule(150, 0.01, decay)
        end = adversarial_recovery.recover(features, start[0], x[:1], schedule, torch.Generator().manual_seed(0))
        assert (end - x[0]).norm() < 0.8 * (start[0] - x[0]).norm()


def test_recovery_is_judged_by_its_direction_and_by_the_size_of_lenet_s():
    def word(lenet, resnet, fooled=1.0):
        ends = {"mnist-lenet": (2.0, lenet), "cifar10-resnet20": (1.0, resnet)}
        return adversarial_recovery.judge(
            {
                part: {
                    "before": start,
                    "after, the original sample": end,
                    "after, other samples of its class": 3.0,
                    "fooled": fooled,
                }
                for part, (start, end) in ends.items()
            }
        )

    assert word(1.0, 0.95).words == "in one reading (only if the loss is shown the answer)"
    assert "a loss that is shown the answer" in word(1.0, 0.95).reason
    assert "by 50% for mnist-lenet (printed 82%)" in word(1.0, 0.95).reason
    assert word(1.5, 0.95).word == "no"
    assert "less than half of the printed share" in word(1.5, 0.95).reason
    assert word(1.0, 0.999).word == "no"
    assert "For cifar10-resnet20 it does not fall." in word(1.0, 0.999).reason
    assert word(1.0, 0.95, fooled=0.0).word == "no"
    assert "fools no image" in word(1.0, 0.95, fooled=0.0).reason


@pytest.mark.slow
def test_contexts_are_judged_by_their_strength_and_by_known_patterns(tiny):
    known = context_maps.known(tiny("fig-4", "known")).figures
    assert known["inside"] > known["outside"] + 0.2
    images = {"drawn 0": 0.1, "largest drawn 0": 0.4, "grown 0": 0.5, "nearer 0": 0.9, "on the digit 0": 1.2}

    def word(**changed):
        found = images | {key.replace("_", " "): value for key, value in changed.items()}
        return context_maps.judge_algorithm({"maps": found, "known": known | {"inside": 0.95}}).word

    assert word() == "in one reading"
    assert word(grown_0=0.3) == word(drawn_0=0.39) == "no"
    assert context_maps.judge_algorithm({"known": known | {"inside": 0.8}}).word == "no"
    assert context_maps.judge_maps({"maps": images}).word == "untestable"


def test_a_game_of_patterns_is_their_sum():
    game, patterns = context_maps.game_of_patterns(torch.Generator().manual_seed(0))
    effect = ab.harsanyi(game).effects[0]
    strong = {frozenset(pattern) for pattern in patterns}
    numbers = {sum(2**player for player in pattern) for pattern in strong}
    assert set((effect.abs() > 0.5).nonzero().flatten().tolist()) == numbers


def test_a_mean_over_draws_of_noise_is_that_of_the_games():
    images = DATA["mnist"]
    model = NETWORKS["mnist"]
    scene = noise_effects.scene_of(images, model, True, 2, seed=0)
    found = scene.effects("nine cells", "weak noise", "weak noise", (1, 3))
    three = noise_effects.Setting("nine cells", "weak noise", "weak noise", 3, "image's class")
    generator = torch.Generator().manual_seed(scene.seed)
    z, stand_ins = (scene.noise("weak noise", count, generator) for count in (2, 3))
    for inputs, effects in ((scene.x, found[three].image), (z, found[three].noise)):
        game = ab.MaskedModel(
            model, inputs, scene.y, absence=ab.Marginal(stand_ins), players=scene.players("nine cells")
        )
        assert torch.allclose(effects, ab.harsanyi(game).effects[:, 1:], atol=1e-5)
    one = replace(three, draws=1)
    assert not torch.allclose(found[one].image, found[three].image, atol=1e-3)


def test_the_setting_nearest_to_the_printed_ratio_is_taken():
    settings = [noise_effects.Setting("nine cells", "weak noise", "zero", draws, "") for draws in (1, 2, 3)]
    assert noise_effects.nearest(dict(zip(settings, (2.0, 30.0, 90.0), strict=True))) == settings[1]
    assert noise_effects.nearest(dict(zip(settings, (14.0, 2.0, 50.0), strict=True))) == settings[0]


def test_noise_is_judged_by_the_ratio_on_test_images_and_by_all_of_them():
    def word(ratio, larger):
        rest = {"image": 0.5, "noise": 0.02, "images": 20, "plain": 7.0, "zero": 0.1, "larger": larger}
        tried = {f"training, setting {number}": 1.0 for number in range(3)}
        found = noise_effects.judge({"mnist": {"chosen: nine cells": ratio, **rest, **tried}})
        assert "Of 3 settings, the one nearest" in found.reason
        return found.words

    assert word(20.0, 1.0) == "in one reading (the nearest of 3 settings)"
    assert word(8.0, 1.0) == word(50.0, 1.0) == word(20.0, 0.8) == "no"
    assert noise_effects.judge({"cifar10": {"plain": 4.0, "zero": 0.5}}).word == "not measured"


def test_learned_values_as_absence_are_told_with_the_sign_of_their_ratio():
    rest = {"image": 0.5, "noise": 0.02, "images": 20, "plain": 7.0, "zero": 0.1, "larger": 1.0}
    learned = {"learned by L_shapley": 0.4, "error of learned by L_shapley": 0.1}
    learned |= {"learned by the default loss": 2.0, "error of learned by the default loss": 0.2}
    found = noise_effects.judge({"mnist": {"chosen: nine cells": 20.0, **rest}, "learned": learned})
    assert "L_shapley 0.40 ± 0.10, the default loss 2.00 ± 0.20 : 1" in found.ours
    assert "more than noise by the default loss, and less by L_shapley" in found.reason


def test_the_strength_by_order_is_that_of_the_definition():
    found = ab.harsanyi(ab.ValueTable([1.0, 2.0, 0.0, 5.0]))  # effects 1, 1, -1, 4; v(N) − v(∅) = 4
    strengths, changes = order_strengths.strength_by_order([found])
    assert strengths.tolist() == [pytest.approx([(1 + 1) / 2, 4])]
    assert changes.tolist() == pytest.approx([4])


def test_the_error_of_a_ratio_of_means_is_the_scatter_of_repeated_draws():
    generator = torch.Generator().manual_seed(0)
    below = 2 + torch.rand(4000, 50, generator=generator).double()
    above = 3 * below + torch.randn(4000, 50, generator=generator).double()
    ratios, errors = zip(
        *(order_strengths.ratio_of_means(a, b) for a, b in zip(above, below, strict=True)), strict=True
    )
    assert float(torch.stack(errors).mean()) == pytest.approx(float(torch.stack(ratios).std()), rel=0.05)


def test_low_orders_are_judged_by_the_plain_losses():
    found = {"low orders of zero": 0.2, "low orders of L_shapley": 0.1, "low orders of L_marginal": 0.15}
    assert order_strengths.judge_orders({"census": found}).word == "by another method"  # a record without the mean
    plain = found | {"low orders of mean": 0.05}
    assert order_strengths.judge_orders({"census": plain}).word == "as stated"
    assert "is lower than the lower of both" in order_strengths.judge_orders({"census": plain}).reason
    by_order = {
        f"order 2 of {name}": value for name, value in (("zero", 0.1), ("L_shapley", 0.2), ("L_marginal", 0.0))
    }
    apart = order_strengths.judge_orders({"census": plain | by_order})
    assert apart.words == "in one reading (the orders 1 … 6 together)"
    assert "higher than zero's: order 2 by L_shapley" in apart.reason
    assert order_strengths.judge_orders({"census": plain | {"low orders of L_marginal": 0.3}}).word == "no"


def test_two_functions_are_judged_together_and_equal_sums_are_told():
    names = ("zero", "mean", "L_shapley", "L_marginal")
    alike = {f"{what} of {name}": 1.0 + ("zero" in name) for what in ("shapley", "marginal") for name in names}
    apart = alike | {"shapley of L_shapley": 0.9}
    found = order_strengths.judge_function({"tsang": alike, "tsang-6": apart})
    assert found.words == "in one reading (the functions F5 and F6)"
    assert "Of F5, both sums are equal" in found.reason
    assert "equal" not in order_strengths.judge_function({"tsang-6": apart}).reason
    assert (
        order_strengths.judge_function({"tsang": alike, "tsang-6": apart | {"marginal of L_marginal": 3.0}}).word
        == "no"
    )


def test_players_that_a_context_does_not_need_are_taken_out():
    game, patterns = context_maps.game_of_patterns(torch.Generator().manual_seed(0))
    player = min(patterns[0])
    everyone = torch.ones(3, context_maps.PLAYERS, dtype=torch.bool)
    found = context_maps.reduce_contexts(game, player, everyone, torch.Generator().manual_seed(1))
    partners = set().union(*(pattern for pattern in patterns if player in pattern)) - {player}
    assert all(set(row.nonzero().flatten().tolist()) == partners for row in found)
    weights = context_maps.above_chance(found.double().mean(0), player)
    assert set(weights.nonzero().flatten().tolist()) == partners
    assert float(weights.sum()) == pytest.approx(1)


def test_maps_say_what_their_figures_say():
    images = {f"{what} {n}": value for n in range(3) for what, value in (("nearer", 1.0), ("on the digit", 1.1))}
    images |= {f"reduced nearer {n}": 0.5 + 0.01 * n for n in range(3)}
    images |= {f"reduced on the digit {n}": 2.0 + 0.1 * n for n in range(3)}
    reason = context_maps.judge_maps({"maps": images}).reason
    assert "pixels of grown contexts are neither nearer nor further than pixels at large" in reason
    assert "pixels of reduced contexts are nearer than pixels at large and more frequent on the digit" in reason


def test_sage_averages_probabilities_and_shap_log_odds():
    rows = torch.tensor([[-3.0], [3.0], [5.0]])

    def model(inputs):
        return torch.cat([torch.zeros_like(inputs), inputs], dim=1)

    x = torch.tensor([[2.0]])
    y = torch.tensor([1])
    nobody = torch.tensor([[False]])
    absence = ab.Marginal(rows)
    sage = learned_attributions.SageGame(model, x, y, absence)(nobody)
    assert float(sage) == pytest.approx(float(torch.logit(torch.sigmoid(rows.double()).mean())), rel=1e-5)
    shap = ab.MaskedModel(model, x, y, absence=absence)(nobody)
    assert float(shap) == pytest.approx(5 / 3, rel=1e-5)


def test_order_ratios_say_what_the_theorems_do(tiny):
    _, work = PARTS["table-9", "ratios"]
    found = work(tiny("table-9", "ratios")).figures
    assert found["theorem 4, b′ = 0.5"] == found["theorem 3, b′ = 0.5"] == 6
    # Where the wrong value is that of x, one pattern is left: right for m′ = 0 only.
    assert found[f"theorem 4, b′ = {order_ratios.OF_X}"] == 1
    assert found[f"theorem 3, b′ = {order_ratios.OF_X}"] == 6
    assert all(found[f"top {case}.0"] > found[f"top {case}.{wrong}"] for case in (1, 2, 3) for wrong in (1, 2, 3))
    assert found["top 1.0"] == 1


def test_order_ratios_are_judged_by_the_share_of_the_highest_order_alone(tiny):
    _, work = PARTS["table-9", "ratios"]
    found = dict(work(tiny("table-9", "ratios")).figures)
    assert order_ratios.judge_ratios({"ratios": found}).word == "as stated"
    assert order_ratios.judge_ratios({"ratios": found | {"patterns 1.0": 99}}).word == "as stated"
    assert order_ratios.judge_ratios({"ratios": found | {"top 3.2": 0.61}}).word == "no"
    assert order_ratios.judge_counts({"ratios": found}).word == "in one reading"
    assert order_ratios.judge_counts({"ratios": found | {"theorem 4, b′ = 0.5": 5}}).word == "no"
    own = {f"theorem 4, b′ = {order_ratios.OF_X}": 6}
    assert order_ratios.judge_counts({"ratios": found | own}).word == "as stated"


def test_toy_sentences_have_words_as_players():
    data = DATA["sst2"]
    assert isinstance(data, TextData)
    assert int(replace(data).lengths_test.max()) <= 12


def test_attributions_that_conflict_have_a_reason():
    table = {"similar": 1.0, "linear": 0.96, "agreement of mean-init": 0.9, "agreement of zero": 0.1}
    table |= {"agreement of mean": 0.95, "agreement above zero": 0.8, "error of agreement above zero": 0.1}

    def verdict(above):
        found = table | {"agreement above mean": above, "error of agreement above mean": 0.01}
        return learned_attributions.judge_agreement({"credit": found})

    assert verdict(0.05).word == "by another method"
    assert verdict(-0.05).word == "no"
    assert "R² of the best linear function for these networks is 0.96 (credit)" in verdict(-0.05).reason
    assert learned_attributions.judge_starts({"credit": table}).word == "by another method"
    assert learned_attributions.judge_starts({"credit": table | {"similar": 0.7}}).word == "no"


def test_the_control_says_whether_random_perturbations_are_recovered_too():
    falls = {"fall, adversarial": 0.6, "error of fall, adversarial": 0.05, "error of fall, random": 0.02, "images": 6}
    part = {"before": 2.0, "after, the original sample": 1.0, "after, other samples of its class": 3.0, "fooled": 1.0}
    for random, is_said in ((0.8, True), (0.1, False)):
        found = adversarial_recovery.judge({"mnist-lenet": part, "control": falls | {"fall, random": random}})
        assert f"it falls by {random:.0%} ± 2%" in found.reason
        assert ("not what is adversarial" in found.reason) is is_said


def test_a_random_perturbation_is_as_far_as_an_adversarial_one_and_within_the_range():
    x = torch.rand(3, 1, 6, 6, generator=torch.Generator().manual_seed(0)).round()  # all at an end of the range
    moved = (x + 0.1 * torch.randn(x.shape, generator=torch.Generator().manual_seed(1))).clamp(0, 1)
    found = adversarial_recovery.same_size(x, moved, torch.Generator().manual_seed(2))
    assert torch.allclose((found - x).flatten(1).norm(dim=1), (moved - x).flatten(1).norm(dim=1))
    assert 0 <= float(found.min()) <= float(found.max()) <= 1


def test_the_floor_of_trees_is_the_answer_0_and_own_pixels_are_a_share_of_all(tiny):
    found = digit_trees.floors(tiny("table-7", "floor")).figures
    data = DATA["mnist"]
    inside = float((data.x_train[data.y_train == 0].flatten(1).mean(0) > digit_trees.BRIGHT).double().mean())
    for name in ("φ = 0 everywhere", *digit_trees.PRINTED):
        assert found[f"all, {name}"] == pytest.approx(inside * found[f"own, {name}"] + 100 * (1 - inside))
