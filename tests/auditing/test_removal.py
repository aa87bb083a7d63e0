"""The metric R against its definition by plain loops, closed forms and identities."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import absentia as ab
from absentia.auditing.removal import Removal
from absentia.data import data_range, seeded, white_noise
from audited_cases import METHODS, Keeps, MeanOfPresent, samples
from known_games import harsanyi_by_definition, mlp, product, subsets


@torch.no_grad()
def strength_by_definition(model, present, absent, region):
    """Σ|U(S)| over S ≠ ∅ of the game between two inputs, by loops over sets; ``absent`` may be a function of S."""

    def number_of(coalition):
        return sum(2 ** region.index(player) for player in coalition)

    values = []
    for coalition in sorted(subsets(region), key=number_of):
        stand_ins = absent
        if callable(absent):
            stand_ins = absent(coalition)
        row = present.clone()
        for player in set(region) - set(coalition):
            row[player] = stand_ins[player]
        values.append(float(model(row[None])))
    return sum(abs(effect) for effect in harsanyi_by_definition(values)[1:])


def r_by_definition(model, x, masked, noise, references, region):
    """R by plain loops: strengths averaged over draws, ratios averaged over samples."""
    ratios = []
    for k in range(len(x)):
        strength_masked = 0.0
        strength_of_noise = 0.0
        strength_original = 0.0
        for d in range(len(references)):
            reference = references[d][k]
            strength_masked += strength_by_definition(model, masked[k][d], reference, region)
            strength_of_noise += strength_by_definition(model, noise[d][k], reference, region)
            strength_original += strength_by_definition(model, x[k], reference, region)
        ratios.append((strength_masked - strength_of_noise) / strength_original)
    return sum(ratios) / len(ratios)


def replaced(x, region, values):
    masked = x.clone()
    masked[:, region] = values.expand_as(x)[:, region]
    return masked


@pytest.mark.parametrize("reference", ["noise", "baseline", "marginal"])
def test_r_is_the_definition_by_plain_loops(reference):
    model = mlp(4)
    x = samples(3, 4)
    region = [0, 1, 3]
    draws = 2
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
    model = mlp(3)
    x = samples(2, 3)
    region = [0, 2]
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


def test_the_noise_that_replaces_players_is_not_that_of_the_reference():
    removal = ab.audit(mlp(4), samples(4, 4), None, METHODS, draws=3).removal
    assert bool((removal.noise > 0).all())
    assert removal.noise.unique().numel() == removal.noise.numel()  # every sample and draw has noise of its own


@pytest.mark.slow
def test_errors_shrink_with_samples_and_are_as_large_as_the_spread():
    model = mlp(3, hidden=8)
    data = samples(500, 3, seed=9)
    few = ab.audit(model, data[:25], None, METHODS, data=data, draws=2)
    many = ab.audit(model, data[:400], None, METHODS, data=data, draws=2)
    assert 0.15 < float(many.R.error[0] / few.R.error[0]) < 0.4  # 1/4 is expected
    found = [
        ab.audit(model, samples(25, 3, seed=100 + k), None, METHODS, data=data, draws=2, seed=k).R for k in range(24)
    ]
    spread = torch.stack([r.value for r in found]).std(0)
    reported = torch.stack([r.error for r in found]).mean(0)
    assert bool(((spread / reported - 1).abs() < 0.4).all())


@pytest.mark.slow
def test_large_regions_are_audited_in_drawn_games():
    weights = torch.linspace(0.2, 1, 10).double()
    x = samples(12, 10)
    data = samples(200, 10, seed=1)
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
    model = mlp(6)
    x = samples(2, 6)
    baseline = torch.full((6,), 0.3).double()
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


def test_the_metric_divides_what_is_left_beyond_noise_by_the_samples_own():
    removal = Removal(torch.tensor([[[3.0]]]), torch.tensor([[10.0]]), torch.tensor([[1.0]]), torch.zeros(1))
    assert float(removal.R.value) == pytest.approx(0.2)
    assert float(removal.unmasked.value) == pytest.approx(0.9)
    assert float(removal.removed.value) == pytest.approx(1 - 0.2 / 0.9)
