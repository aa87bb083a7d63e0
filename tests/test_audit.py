"""The audit against oracles: the metric by plain loops, closed forms, identities, and what it does with nonsense."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import absentia as ab
from absentia.absences import StandIns
from absentia.auditing.estimates import estimate
from absentia.data import data_range, seeded, white_noise
from absentia.learning.options import FAITHFUL
from known_games import cnn, harsanyi_by_definition, mlp, product, subsets
from typechecker import unchecked

ZERO_AND_MEAN = {"zero": ab.Baseline(0.0), "half": ab.Baseline(0.5)}


class Keeps:
    """An absence that masks nothing: every player keeps its values."""

    def bind(self, x):
        return StandIns(x, x[:, None])


class MeanOfPresent:
    """An absence that depends on the coalition: the mean of the present entries, and that plus 1, stand in."""

    def bind(self, x):
        return MeanOfPresentFill(x)


class MeanOfPresentFill:
    def __init__(self, x, numbers=(0, 1)):
        self.x, self.numbers, self.draws = x, numbers, len(numbers)

    def __call__(self, samples, presence):
        x = self.x[samples][:, None]
        mean = (x * presence).sum(-1, keepdim=True) / presence.sum(-1, keepdim=True).clamp(min=1)
        stand_ins = torch.stack([mean + number for number in self.numbers], dim=2)
        return torch.where(presence.unsqueeze(2), x.unsqueeze(2), stand_ins)

    def select(self, samples=None, draws=None):
        numbers = self.numbers if draws is None else [self.numbers[draw] for draw in draws]
        return MeanOfPresentFill(self.x if samples is None else self.x[samples], numbers)


class OwnModel:
    """An absence that brings its own model, which reads NaN as 0.5."""

    def bind(self, x):
        return StandIns(x, torch.full_like(x[:1], math.nan)[None])

    def instead_of(self, model):
        return lambda rows: model(rows.nan_to_num(0.5))


def samples(count, entries, seed=0):
    return torch.rand(count, entries, generator=torch.Generator().manual_seed(seed)).double()


@torch.no_grad()
def strength_by_definition(model, present, absent, region):
    """Σ|U(S)| over S ≠ ∅ of the game between two inputs, by loops over sets; ``absent`` may be a function of S."""
    values = []
    for coalition in sorted(subsets(region), key=lambda s: sum(2 ** region.index(i) for i in s)):
        stand_ins = absent(coalition) if callable(absent) else absent
        row = [stand_ins[i] if i in region and i not in coalition else present[i] for i in range(len(present))]
        values.append(float(model(torch.stack(row)[None])))
    return sum(abs(effect) for effect in harsanyi_by_definition(values)[1:])


def r_by_definition(model, x, masked, noise, references, region):
    """R by plain loops: strengths averaged over draws, ratios averaged over samples."""
    ratios = []
    for k in range(len(x)):
        totals = [0.0, 0.0, 0.0]
        for d in range(len(references)):
            for number, state in enumerate((masked[k][d], noise[d][k], x[k])):
                totals[number] += strength_by_definition(model, state, references[d][k], region)
        ratios.append((totals[0] - totals[1]) / totals[2])
    return sum(ratios) / len(ratios)


def replaced(x, region, values):
    masked = x.clone()
    masked[:, region] = values.expand_as(x)[:, region]
    return masked


@pytest.mark.parametrize("reference", ["noise", "baseline", "marginal"])
def test_r_is_the_definition_by_plain_loops(reference):
    model, x, region, draws = mlp(4), samples(3, 4), [0, 1, 3], 2
    data = samples(9, 4, seed=1)
    rows = data[:2]
    methods = {"zero": ab.Baseline(0.0), "rows": ab.Marginal(rows), "own": ab.OwnBaselines(x.flip(0))}
    chosen = {"noise": "noise", "baseline": ab.Baseline(0.3), "marginal": ab.Marginal(rows)}[reference]
    found = ab.audit(model, x, None, methods, region=region, reference=chosen, draws=draws, data=data, seed=3)

    within = data_range(data)
    noise = [replaced(x, region, white_noise(within, x, seeded(3, "replacement", d))) for d in range(draws)]
    references = {
        "noise": [white_noise(within, x, seeded(3, "reference", d)) for d in range(draws)],
        "baseline": [torch.full_like(x, 0.3)] * draws,
        "marginal": [rows[d].expand_as(x) for d in range(draws)],
    }[reference]
    masked = {
        "zero": [replaced(x, region, torch.zeros(4).double())] * draws,
        "rows": [replaced(x, region, rows[d]) for d in range(draws)],
        "own": [replaced(x, region, x.flip(0))] * draws,
    }
    for number, name in enumerate(methods):
        by_sample = [[masked[name][d][k] for d in range(draws)] for k in range(len(x))]
        expected = r_by_definition(model, x, by_sample, noise, references, region)
        assert float(found.R.value[number]) == pytest.approx(expected, rel=1e-9), name


def test_a_method_that_depends_on_the_coalition_is_bound_to_what_is_compared():
    model, x, region = mlp(3), samples(2, 3), [0, 2]
    found = ab.audit(model, x, None, {"mean": MeanOfPresent()}, region=region, reference=MeanOfPresent(), draws=2)
    for k in range(2):
        for d in range(2):
            masked = x[k].clone()
            masked[region] = x[k, 1] + d  # player 1 alone is present

            def stand_ins(coalition, present=masked, draw=d):
                there = [1, *coalition]
                return (present[there].mean() + draw).expand(3)

            expected = strength_by_definition(model, masked, stand_ins, region)
            assert float(found.removal.masked[0, k, d]) == pytest.approx(expected, rel=1e-9)


@pytest.mark.slow
@given(st.integers(1, 5), st.integers(0, 2**31))
def test_strengths_of_products_have_a_closed_form(players, seed):
    """Π(p − δ) against r: Σ|U| = Π(|p − r| + |r − δ|) − Π|r − δ|."""
    generator = torch.Generator().manual_seed(seed)
    x, data = torch.rand(2, 2, players, generator=generator).double()
    deltas, r, b = torch.rand(3, players, generator=generator).double()
    methods = {"b": ab.Baseline(b)}
    model = product(1.5, deltas)
    removal = ab.audit(model, x, None, methods, reference=ab.Baseline(r), data=data, draws=1).removal

    def closed_form(p):
        return 1.5 * (((p - r).abs() + (r - deltas).abs()).prod(-1) - (r - deltas).abs().prod(-1))

    assert torch.allclose(removal.original[:, 0], closed_form(x))
    assert torch.allclose(removal.masked[0, :, 0], closed_form(b).expand(2))


@pytest.mark.parametrize("absence", [ab.Baseline(0.3), ab.OwnBaselines(samples(5, 4, seed=2))], ids=repr)
def test_a_fully_masked_sample_has_no_effects_against_its_own_method(absence):
    found = ab.audit(mlp(4), samples(5, 4), None, {"own": absence}, reference=absence)
    assert torch.equal(found.removal.masked, torch.zeros(1, 5, 5).double())
    assert float(found.R.value) == pytest.approx(float(found.removal.unmasked.value) - 1)


def test_an_absence_that_keeps_everything_has_the_unmasked_samples_r():
    found = ab.audit(mlp(4), samples(30, 4), None, {"keeps": Keeps()})
    assert torch.equal(found.removal.masked[0], found.removal.original)
    noise = found.removal.noise.mean(1) / found.removal.original.mean(1)
    assert float(found.R.value) == pytest.approx(1 - float(noise.mean()))
    assert float(found.R.value) == float(found.removal.unmasked.value)
    assert found.curve.scores[0].abs().max() < 1e-12  # all that the samples hold is left, at every size
    assert found.recommended is None
    assert found.verdict[0].startswith("Use none of these (in 100 % of resamples): keeps leaks 1 of the variance.")


@pytest.mark.slow
@given(st.integers(2, 5), st.data())
def test_masking_a_player_removes_all_its_interactions_exactly(players, data):
    player = data.draw(st.integers(0, players - 1))
    x = samples(2, players, seed=data.draw(st.integers(0, 2**31)))
    baseline = ab.Baseline(samples(1, players, seed=data.draw(st.integers(0, 2**31)))[0])
    masked = x.clone()
    masked[:, player] = baseline.values[player]
    effects = ab.harsanyi(ab.MaskedModel(mlp(players), masked, absence=baseline))
    assert bool((effects.effects[:, effects.coalitions[:, player]] == 0).all())
    audited = ab.audit(mlp(players), x, None, {"b": baseline}, region=[player], reference=baseline, draws=1)
    assert torch.equal(audited.removal.masked, torch.zeros(1, 2, 1).double())


@pytest.mark.slow
def test_figures_do_not_depend_on_the_order_of_methods_or_on_other_methods():
    model, x = mlp(4), samples(6, 4)
    methods = {"zero": ab.Baseline(0.0), "rows": ab.Marginal(samples(20, 4, seed=1)), "keeps": Keeps()}
    one = ab.audit(model, x, None, methods, draws=3)
    other = ab.audit(model, x, None, dict(reversed(methods.items())), draws=3)
    alone = ab.audit(model, x, None, {"rows": methods["rows"]}, draws=3)
    for name, values in one.columns().items():
        if name not in ("seconds", "agreement", "wins"):
            assert torch.allclose(values, other.columns()[name].flip(0), equal_nan=True), name
            assert torch.allclose(values[1:2], alone.columns()[name], equal_nan=True), name


def test_a_seed_fixes_every_draw_and_more_draws_keep_the_first():
    model, x = mlp(4), samples(4, 4)
    first, again, other = (ab.audit(model, x, None, ZERO_AND_MEAN, draws=2, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(first.removal.masked, again.removal.masked)
    assert not torch.equal(first.removal.masked, other.removal.masked)
    more = ab.audit(model, x, None, ZERO_AND_MEAN, draws=4, seed=1)
    assert torch.equal(more.removal.masked[..., :2], first.removal.masked)
    assert not torch.equal(more.removal.noise[:, 0], more.removal.noise[:, 1])


def test_the_noise_that_replaces_players_is_not_that_of_the_reference():
    removal = ab.audit(mlp(4), samples(4, 4), None, ZERO_AND_MEAN, draws=3).removal
    assert bool((removal.noise > 0).all())
    assert removal.noise.unique().numel() == removal.noise.numel()  # every sample and draw has noise of its own


@pytest.mark.slow
def test_errors_shrink_with_samples_and_are_as_large_as_the_spread():
    model = mlp(3, hidden=8)
    data = samples(500, 3, seed=9)
    few, many = (ab.audit(model, data[:k], None, ZERO_AND_MEAN, data=data, draws=2) for k in (25, 400))
    assert 0.15 < float(many.R.error[0] / few.R.error[0]) < 0.4  # 1/4 is expected
    found = [
        ab.audit(model, samples(25, 3, seed=100 + k), None, ZERO_AND_MEAN, data=data, draws=2, seed=k).R
        for k in range(24)
    ]
    spread = torch.stack([r.value for r in found]).std(0)
    reported = torch.stack([r.error for r in found]).mean(0)
    assert bool(((spread / reported - 1).abs() < 0.4).all())


@pytest.mark.slow
def test_large_regions_are_audited_in_drawn_games():
    weights = torch.linspace(0.2, 1, 10).double()
    x, data = samples(12, 10), samples(200, 10, seed=1)
    methods = {"low": ab.Baseline(0.1), "half": ab.Baseline(0.5)}

    def additive(rows):
        return (rows * weights).sum(1)

    def interacting(rows):
        return (rows * weights).sum(1) + rows[:, 0] * rows[:, 1]

    exact = ab.audit(additive, x, None, methods, data=data, draws=4)
    drawn = ab.audit(additive, x, None, methods, data=data, draws=12, max_players=4)
    assert exact.record.exact
    assert not drawn.record.exact
    assert drawn.record.game_players == 4
    assert any("Length is measured in games of 4 of the 10 players" in note for note in drawn.record.notes)
    assert "R is measured in games of 4 of the 10 players, drawn for each sample." in drawn.notes_on_R
    assert drawn.companions.shapley.shape == (2, 12, 1, 4)
    # Without interactions between the players of different games, R is that of all coalitions.
    gap = (drawn.R.value - exact.R.value).abs()
    assert bool((gap < 3 * (drawn.R.error.square() + exact.R.error.square()).sqrt()).all())
    found = ab.audit(interacting, x, None, methods, data=data, draws=12, max_players=4)
    assert found.R.value[1] < found.R.value[0]


def game_of(players, size, draw, sample, seed):
    return sorted(torch.randperm(players, generator=seeded(seed, "game", draw, sample))[:size].tolist())


def test_every_draw_has_a_game_of_its_own_whose_other_players_keep_their_state():
    model, x, baseline = mlp(6), samples(2, 6), torch.full((6,), 0.3).double()
    methods = {"zero": ab.Baseline(0.0)}
    found = ab.audit(model, x, None, methods, reference=ab.Baseline(baseline), draws=3, max_players=3, seed=5)
    games = [[game_of(6, 3, d, k, seed=5) for k in range(2)] for d in range(3)]
    assert len({tuple(game) for games_of_draw in games for game in games_of_draw}) > 2
    for d in range(3):
        for k, game in enumerate(games[d]):
            original = strength_by_definition(model, x[k], baseline, game)
            masked = strength_by_definition(model, torch.zeros(6).double(), baseline, game)
            assert float(found.removal.original[k, d]) == pytest.approx(original)
            assert float(found.removal.masked[0, k, d]) == pytest.approx(masked)


def test_companions_are_those_of_each_absences_own_game():
    model, x = mlp(5), samples(4, 5)
    found = ab.audit(model, x, None, ZERO_AND_MEAN, region=[0, 1]).companions
    for number, absence in enumerate(ZERO_AND_MEAN.values()):
        effects = ab.harsanyi(ab.MaskedModel(model, x, absence=absence))
        table = ab.value_table(ab.MaskedModel(model, x, absence=absence))
        strength = effects.effects[:, 1:].abs().sum(1)
        assert float(estimate(found.strengths).value[number]) == pytest.approx(float(strength.mean()))
        assert float(estimate(found.strengths).error[number]) == pytest.approx(float(strength.std() / 2))
        assert torch.equal(found.salient[number, :, 0], effects.salient()[:, 1:].sum(1).double())
        assert torch.equal(found.terms[number, :, 0], effects.sparsity().double())
        assert torch.allclose(found.shapley[number, :, 0], ab.shapley(table).values)
        assert torch.equal(found.empty[number, :, 0], table.values[:, 0])
        by_order = effects.by_order().strength
        low = by_order[:, 1:3].sum() / by_order[:, 1:].sum()
        assert float(found.low_orders.value[number]) == pytest.approx(float(low))
        gap = (table.values[:, -1] - table.values[:, 0]).abs().mean()
        profile = [float(by_order[:, m].mean() / math.comb(5, m) / gap) for m in range(1, 6)]
        assert found.order_profile().value[number].tolist() == pytest.approx(profile)


def test_companions_of_a_random_absence_are_those_of_its_mean_game():
    model, x = mlp(4), samples(5, 4)
    rows = ab.Marginal(samples(12, 4, seed=1))
    found = ab.audit(model, x, None, {"rows": rows}, draws=1).companions
    table = ab.value_table(ab.MaskedModel(model, x, absence=rows))
    effects = ab.harsanyi(ab.MaskedModel(model, x, absence=rows))
    torch.testing.assert_close(found.shapley[0].mean(1), ab.shapley(table).values)
    torch.testing.assert_close(found.full[0].mean(1), table.values[:, -1])
    by_order = effects.by_order().strength
    gap = (table.values[:, -1] - table.values[:, 0]).abs().mean()
    profile = [float(by_order[:, m].mean() / math.comb(4, m) / gap) for m in range(1, 5)]
    assert found.order_profile().value[0].tolist() == pytest.approx(profile, rel=1e-6)


def test_a_threshold_of_ones_own_counts_salient_effects():
    found = ab.audit(product(1.0, [0.0, 0.0]), samples(3, 2) + 1, None, {"zero": ab.Baseline(0.0)}, tau=0.5)
    assert found.companions.salient.flatten().tolist() == [1.0, 1.0, 1.0]
    assert found.record.threshold == "above 0.5"


def test_an_absence_that_brings_its_model_has_companions_but_no_r():
    methods = {"own model": OwnModel(), "half": ab.Baseline(0.5)}
    found = ab.audit(mlp(4), samples(5, 4), None, methods)
    assert torch.isnan(found.R.value).tolist() == [True, False]
    assert found.recommended == "half"
    assert re.fullmatch(
        r"own model explains another model: its score, [\d.]+, is a floor for the others\.", found.verdict[-1]
    )
    assert torch.allclose(found.curve.scores[0], found.curve.scores[1])
    assert torch.allclose(found.companions.shapley[0], found.companions.shapley[1])
    assert float(found.companions.agreement()[0, 1]) == pytest.approx(1)
    assert "own model" in repr(found)
    assert len(found.plot().axes) == 3


def test_the_cost_is_what_the_model_saw(monkeypatch):
    seen = 0

    def model(rows):
        nonlocal seen
        seen += len(rows)
        return rows.prod(1)

    methods = {"zero": ab.Baseline(0.0), "rows": ab.Marginal(samples(40, 3, seed=1))}
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)  # else several numbers of threads are tried
    found = ab.audit(model, samples(5, 3), None, methods, draws=4)
    costs = {name: cost.evaluations for name, cost in found.record.costs.items()}
    # Each draw of R, the own game, a coalition of each size but the last, and ∅ once for all samples.
    assert costs == {"zero": 5 * (8 * (4 + 1) + 3) + 1, "rows": 5 * (8 * (4 + 40) + 3 * 40) + 40}
    # The samples' games and those of noise; whole samples beside ∅ and at the end of the curve.
    assert found.record.shared_cost.evaluations == 5 * (8 * 4 * 2 + 1 + 1)
    trials = 3 + 11 + 3  # of the evaluator, of the estimated time, and of the evaluator again
    assert seen == sum(costs.values()) + found.record.shared_cost.evaluations + trials
    assert found.record.evaluations == seen - trials
    assert not any("draws" in note for note in found.record.notes)


def test_images_tokens_frames_and_numpy_models_are_audited():
    pandas = pytest.importorskip("pandas")
    images = torch.rand(4, 1, 8, 8).double()
    grid = ab.Players.grid((1, 8, 8), cells=(2, 2))
    found = ab.audit(cnn(), images, [0, 1, 2, 0], {"blur": ab.Blur(1.0), "zero": ab.Baseline(0.0)}, players=grid)
    assert bool(torch.isfinite(found.R.value).all())
    assert "each sample's class" in found.record.readout

    embedding = torch.nn.Embedding(9, 3)
    tokens = torch.randint(0, 9, (5, 4))
    words = ab.Players.tokens(["not", "a", "bad", "film"])
    model = torch.nn.Sequential(embedding, torch.nn.Flatten(), torch.nn.Linear(12, 2))
    found = ab.audit(model, tokens, 1, {"pad": ab.Baseline(0)}, players=words, region=["not", "bad"])
    assert bool(torch.isfinite(found.R.value).all())
    assert any("tokens" in note for note in found.record.notes)

    frame = pandas.DataFrame(samples(6, 3).numpy(), columns=["age", "income", "debt"])
    model = ab.from_numpy(lambda rows: np.tanh(rows).prod(1))
    found = ab.audit(model, frame, None, ZERO_AND_MEAN, region=["debt", "age"], data=frame)
    assert found.players == ("age", "income", "debt")
    assert found.region == ("age", "debt")


def test_samples_that_the_model_does_not_respond_to_are_left_out():
    x = samples(6, 2)
    x[0] = -1.0
    data = samples(50, 2, seed=1)

    def model(rows):  # flat for the first sample's always-present entry
        return (rows[:, 0] * (rows[:, 1] > 0)).double()

    found = ab.audit(model, x, None, ZERO_AND_MEAN, region=[0], data=data)
    assert found.removal.kept.tolist() == [False] + [True] * 5
    assert found.removal.ratios.mean(-1).shape == (2, 5)
    assert "1 of 6 samples are left out of R: the model ignores their region." in found.notes_on_R


NONSENSE = {
    "an empty dict": ({"absences": {}}, "absences must be a mapping .* or a list .* Got {} instead"),
    "an empty list": ({"absences": []}, r"absences must be a mapping .* or a list .* Got \[\] instead"),
    "one word": ({"absences": "mean"}, "absences must be a mapping .* or a list .* Got 'mean' instead"),
    "one absence": ({"absences": ab.Baseline(0.0)}, "absences must be a mapping .* or a list .* Got Baseline"),
    "the same twice": ({"absences": ["mean", "mean"]}, "absences must have different names. Got 'mean' twice"),
    "y left out": ({"absences": None, "y": ZERO_AND_MEAN}, "Absences were passed in the place of y.*absences=…"),
    "y left out of a list": ({"absences": None, "y": [ab.Baseline(0.0)]}, "Absences were passed in the place of y"),
    "an unknown word": ({"absences": ["nothing"]}, "absence must be .*one of zero, mean.*Got 'nothing'"),
    "not an absence": (
        {"absences": {"zero": None}},
        "zero cannot be audited: absence must be an absence.*Got NoneType",
    ),
    "a truth value as absence": (
        {"absences": [True]},
        "True cannot be audited: absence must be an absence.*Got bool",
    ),
    "a class": ({"absences": {"blur": ab.Blur}}, "Got the class Blur instead. Call it."),
    "names that are the same as text": ({"absences": {1: 0.0, "1": 1.0}}, "have different names. Got '1' twice"),
    "an unknown player": ({"region": ["x0", "weight"]}, "region must hold players.*Got 'weight'"),
    "a player too far": ({"region": [4]}, "region must hold players.*Got 4"),
    "a truth value": ({"region": [True]}, "region must hold players.*Got True"),
    "an empty region": ({"region": []}, "region must name at least one player"),
    "a player twice": ({"region": ["x0", 0]}, "region must name each player once. Got 'x0' twice"),
    "one name": ({"region": "x0"}, r"region must be a list of players.*Pass \['x0'\]"),
    "no draws": ({"draws": 0}, "draws must be at least 1"),
    "too many players": ({"max_players": 30}, "max_players must lie between 1 and 24"),
    "a negative threshold": ({"tau": -1.0}, "tau must be at least 0"),
    "an unknown reference": (
        {"reference": "nothing"},
        "The reference cannot be used: absence must be .*Got 'nothing'",
    ),
    "no reference": ({"reference": None}, "The reference cannot be used: absence must be an absence"),
    "neighbours of the samples": ({"absences": ["neighbours"]}, "Each sample would be its own nearest row.*data=…"),
    "a reference with its own model": (
        {"reference": OwnModel()},
        "The reference cannot be used: It brings its own model",
    ),
    "other data": ({"data": torch.zeros(3, 5)}, "data must have rows of the shape of one sample"),
    "data with NaN": ({"data": torch.full((2, 4), math.nan)}, "data must be finite.*row 0"),
    "constant data": ({"data": torch.ones(5, 4)}, "data must vary in the region's entries"),
    "one sample without data": ({"x": samples(1, 4)}, "data must vary.*Pass data="),
    "a class that is not there": ({"y": 7}, "y must lie between 0 and 1"),
    "features": ({"readout": ab.Features("0")}, "readout must give one number for an audit"),
    "a misfit": ({"absences": {"b": ab.Baseline([1.0, 2.0])}}, "b cannot be audited: baseline must"),
    "a flat model": ({"model": lambda rows: rows[:, 0] * 0}, "The model does not respond to the region's players"),
    "infinite outputs": ({"model": lambda rows: rows[:, 0] / 0}, "model must give finite values"),
}


@pytest.mark.parametrize(("changes", "sentence"), NONSENSE.values(), ids=NONSENSE.keys())
def test_nonsense_gets_a_sentence(changes, sentence):
    given_ = {"model": mlp(4), "x": samples(3, 4), "y": None, "absences": ZERO_AND_MEAN, "draws": 1} | changes
    with pytest.raises(ab.AbsentiaError, match=sentence):
        unchecked(ab.audit)(**given_)


def test_the_cross_audit_is_an_audit_for_each_reference():
    model, x = mlp(3), samples(6, 3)
    methods = {"zero": ab.Baseline(0.0), "mean": MeanOfPresent(), "half": ab.Baseline(0.5)}
    found = ab.cross_audit(model, x, None, methods, draws=2)
    for row, reference in enumerate(["noise", *methods.values()]):
        alone = ab.audit(model, x, None, methods, draws=2, reference=reference)
        assert torch.equal(found.R[row], alone.R.value)
        assert torch.equal(found.errors[row], alone.R.error)
    assert float(found.R[1, 0]) < 0
    assert float(found.R[3, 2]) < 0
    assert found.references == ("white noise", "zero", "mean", "half")
    assert repr(found).count("(") == 3
    assert found.record.evaluations == 4 * 2 * 5 * 6 * 2**3  # references, draws, states, samples, coalitions
    assert found.to_frame().loc["half", "zero"] == float(found.R[3, 0])
    with pytest.raises(ab.AbsentiaError, match="absences must mask the model's input"):
        ab.cross_audit(model, x, None, {"own": OwnModel()})


def test_the_usual_absences_are_audited_by_default():
    data = samples(50, 3, seed=1)
    found = ab.audit(mlp(3), samples(5, 3), draws=1, data=data)
    assert found.methods == ("zero", "mean", "median", "marginal", "gaussian")
    by_name = ab.audit(mlp(3), samples(5, 3), None, {"zero": 0.0, "mean": ab.Baseline.mean(data)}, draws=1, data=data)
    assert torch.equal(by_name.R.value, found.R.value[:2])
    images = torch.rand(4, 1, 8, 8).double()
    grid = ab.Players.grid((1, 8, 8), cells=(2, 2))
    assert "blur" in ab.audit(cnn(), images, [0, 1, 2, 0], players=grid, draws=1).methods


def test_absences_are_taken_by_word_number_and_list():
    x, data = samples(5, 3), samples(50, 3, seed=1)
    listed = ab.audit(mlp(3), x, None, ["mean", 0.5, ab.Baseline(0.1), "marginal:4"], draws=2, data=data)
    assert listed.methods == ("mean", "0.5", "Baseline(0.1)", "marginal:4")
    mapped = {"a": ab.Baseline.mean(data), "b": ab.Baseline(0.5), "c": 0.1, "d": ab.Marginal(data, draws=4)}
    named = ab.audit(mlp(3), x, None, mapped, draws=2, data=data)
    assert torch.equal(named.R.value, listed.R.value)
    assert named.record.absences["c"] == "Baseline(0.1)"
    word = ab.audit(mlp(3), x, None, ["mean"], draws=2, data=data, reference="mean")
    assert torch.equal(word.removal.masked, torch.zeros(1, 5, 2).double())
    assert word.record.reference == "mean"


class OneForEachClass:
    """An absence with one baseline for each class."""

    needs_classes = True

    def __init__(self, values):
        self.values = values

    def of(self, y):
        return ab.OwnBaselines(self.values[y])

    def bind(self, x):
        raise ab.AbsentiaError("Pick the classes first.")


def test_baselines_of_classes_are_audited_as_they_are_explained():
    x, y, baselines = samples(4, 3), ["no", "yes", "yes", "no"], samples(2, 3, seed=7)
    model, method = mlp(3, 2), OneForEachClass(baselines)
    options = {"class_names": ["no", "yes"], "draws": 2}
    found = ab.audit(model, x, y, {"class": method}, reference=method, **options)
    own = ab.OwnBaselines(baselines[torch.tensor([0, 1, 1, 0])])
    expected = ab.audit(model, x, y, {"class": own}, reference=own, **options)
    assert "yes" in found.record.readout
    assert torch.equal(found.removal.masked, torch.zeros(1, 4, 2).double())
    assert torch.equal(found.companions.shapley, expected.companions.shapley)
    assert torch.equal(found.R.value, expected.R.value)
    one_class = ab.audit(model, x, 1, {"class": method}, draws=1)
    assert torch.equal(one_class.R.value, ab.audit(model, x, 1, {"b": ab.Baseline(baselines[1])}, draws=1).R.value)
    # With a readout, y only chooses among the baselines.
    other = ab.audit(model, x, y, {"class": method}, readout=ab.Output(0), **options)
    assert torch.equal(other.R.value, ab.audit(model, x, None, {"own": own}, readout=ab.Output(0), draws=2).R.value)
    with pytest.raises(ab.AbsentiaError, match=r"y must hold one class for each of the 4 samples\. Got 3"):
        ab.audit(model, x, [0, 1, 1], {"class": method}, readout=ab.Output(0))
    with pytest.raises(ab.AbsentiaError, match="class cannot be audited: y must be given"):
        ab.audit(model, x, None, {"class": method})


@pytest.mark.parametrize("own_data", [True, False])
def test_a_baseline_is_learned_by_word(own_data, monkeypatch):
    monkeypatch.setattr("absentia.learning.options.FAITHFUL", replace(FAITHFUL, steps=4))
    x, y = samples(24, 3), torch.arange(24) % 2
    data = None if own_data else samples(40, 3, seed=1)
    model = mlp(3, 2)
    found = ab.audit(model, x, y, ["learned", "mean"], data=data, draws=1)
    # The readout of the samples' classes fits the samples, and no other rows.
    learned = ab.learn_baseline(model, x, y) if own_data else ab.learn_baseline(model, data)
    expected = ab.audit(
        model, x, y, {"b": learned, "mean": ab.Baseline.mean(x if data is None else data)}, data=data, draws=1
    )
    assert found.methods == ("learned", "mean")
    assert torch.equal(found.R.value, expected.R.value)
    assert found.record.absences["learned"].startswith("LearnedBaseline")
