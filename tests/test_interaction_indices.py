"""Interaction indices: their definitions, axioms, and the listed form for any number of players."""

import math
import time
from itertools import combinations

import matplotlib.pyplot as plt
import pytest
import shapiq
import torch
from hypothesis import given
from hypothesis import strategies as st

import absentia as ab
from absentia import interop, subset_sums
from absentia.indices import INDICES, PlayerIndex
from absentia.interaction_indices import InteractionIndex, bernoulli_number, fsii, k_sii
from known_games import number, subsets

NAMES = ["SII", "k-SII", "STII", "FSII", "BII", "FBII"]
# These distribute v(N) − v(∅) among all sets but ∅.
EFFICIENT = ["k-SII", "STII", "FSII"]

games = st.builds(
    lambda players, seed: torch.randn(2, 2**players, generator=torch.Generator().manual_seed(seed)).double(),
    st.integers(1, 5),
    st.integers(0, 2**31),
)


def players_of(values):
    """The number of players of a table."""
    return values.shape[1].bit_length() - 1


def orders_of(values):
    """All orders that an index of a table may have."""
    return range(1, players_of(values) + 1)


def by_set(terms, sample=0):
    """The numbers of a sample by the players of their sets."""
    own = terms.of_sample(sample)
    return {
        tuple(members.nonzero().flatten().tolist()): effect
        for members, effect in zip(own.sets, own.effects.tolist(), strict=True)
    }


def mean_derivative(values, members, weight):
    """The weighted mean of the discrete derivatives of a set, by loops over sets."""
    players = len(values).bit_length() - 1
    total = 0.0
    for context in subsets(set(range(players)) - set(members)):
        derivative = sum(
            (-1) ** (len(members) - len(inner)) * values[number((*context, *inner))] for inner in subsets(members)
        )
        total += weight(len(context), players - len(members)) * derivative
    return total


def listed(sets, effects, players, **fields):
    """Listed terms of sets that are written as tuples of players."""
    rows = torch.zeros(len(sets), players, dtype=torch.bool)
    for row, members in zip(rows, sets, strict=True):
        row[list(members)] = True
    return ab.Terms.listed(rows, torch.tensor(effects, dtype=torch.float64), **fields)


@pytest.mark.parametrize("players", [1, 2, 3, 4, 5, 8])
@pytest.mark.parametrize("name", NAMES)
def test_indices_are_those_of_shapiq_at_every_order(name, players):
    values = torch.randn(2, 2**players, generator=torch.Generator().manual_seed(players)).double()
    table = ab.ValueTable(values)
    peer = shapiq.ExactComputer(interop.shapiq_game(table, 1))
    # shapiq solves a regression for the FSII, with large weights in place of the constraints at v(∅) and v(N).
    tolerance = 3e-6 if name == "FSII" else 1e-9
    for order in orders_of(values):
        theirs = peer(name, order).dict_values
        ours = by_set(ab.index(table, name, order=order), 1)
        if order == 1 and name == "SII":
            ours[()] = theirs[()]  # shapiq calls it "SV", and has v(∅) there
        assert ours == pytest.approx(theirs, abs=tolerance)


@given(games)
def test_interaction_indices_are_means_of_derivatives(values):
    for order in orders_of(values):
        sii = by_set(ab.index(ab.ValueTable(values), "SII", order=order))
        bii = by_set(ab.index(ab.ValueTable(values), "BII", order=order))
        for members in sii:
            row = values[0].tolist()
            shapley_mean = mean_derivative(row, members, lambda m, n: 1 / ((n + 1) * math.comb(n, m)))
            assert sii[members] == pytest.approx(shapley_mean, abs=1e-9)
            assert bii[members] == pytest.approx(mean_derivative(row, members, lambda m, n: 2.0**-n), abs=1e-9)


@given(games)
def test_the_faithful_banzhaf_index_is_the_best_fit(values):
    players = players_of(values)
    coalitions = ab.enumerate_coalitions(players)
    for order in orders_of(values):
        terms = ab.index(ab.ValueTable(values), "FBII", order=order)
        own = terms.of_sample(0)
        contained = ((~coalitions).double() @ own.sets.double().T == 0).double()
        fitted = torch.linalg.lstsq(contained, values[0][:, None]).solution[:, 0]
        torch.testing.assert_close(own.effects, fitted, atol=1e-8, rtol=0)


@given(games)
def test_the_faithful_shapley_index_is_the_best_fit_that_keeps_both_ends(values):
    players = players_of(values)
    coalitions = ab.enumerate_coalitions(players)
    sizes = coalitions.sum(1).tolist()
    between = [place for place, size in enumerate(sizes) if 0 < size < players]
    weights = [1 / (math.comb(players - 2, sizes[place] - 1) * (players - 1)) for place in between]
    for order in orders_of(values):
        own = ab.index(ab.ValueTable(values), "FSII", order=order).of_sample(0)
        contained = ((~coalitions).double() @ own.sets.double().T == 0).double()
        ends = contained[[0, -1]]
        weighted = contained[between].T * torch.tensor(weights, dtype=torch.float64)
        # The conditions of Lagrange for the least squares between the ends.
        left = torch.cat(
            [
                torch.cat([weighted @ contained[between], ends.T], dim=1),
                torch.cat([ends, torch.zeros(2, 2, dtype=torch.float64)], dim=1),
            ]
        )
        right = torch.cat([weighted @ values[0, between], values[0, [0, -1]]])
        fitted = torch.linalg.lstsq(left, right[:, None], driver="gelsd").solution[: len(own.effects), 0]
        torch.testing.assert_close(own.effects, fitted, atol=1e-7, rtol=0)


@given(games)
def test_listed_terms_give_what_the_table_gives(values):
    terms = ab.harsanyi(ab.ValueTable(values))
    as_listed = terms.keep(values.shape[1])
    for name in NAMES:
        for order in orders_of(values):
            from_table = ab.index(terms, name, order=order)
            from_list = ab.index(as_listed, name, order=order)
            assert (from_list.basis, from_list.order) == (from_table.basis, from_table.order) == (name, order)
            torch.testing.assert_close(from_list.base_values, values[:, 0])
            for sample in range(2):
                assert by_set(from_list, sample) == pytest.approx(by_set(from_table, sample), abs=1e-10)


@given(games)
def test_axiom_of_efficiency(values):
    for name in EFFICIENT:
        for order in orders_of(values):
            terms = ab.index(ab.ValueTable(values), name, order=order)
            sums = terms.effects.view(2, -1).sum(1)  # with v(∅)
            torch.testing.assert_close(sums, values[:, -1], atol=1e-9, rtol=0)


@given(games, st.floats(-3, 3), st.floats(-3, 3))
def test_axiom_of_linearity(values, first, second):
    other = values.flip(0).roll(1, 1)
    for name in NAMES:
        for order in orders_of(values):
            one = ab.index(ab.ValueTable(values), name, order=order).effects
            two = ab.index(ab.ValueTable(other), name, order=order).effects
            both = ab.index(ab.ValueTable(first * values + second * other), name, order=order).effects
            torch.testing.assert_close(both, first * one + second * two, atol=1e-8, rtol=0)


@given(games, st.floats(-3, 3))
def test_axiom_of_dummy(values, alone):
    # A last player that adds the same amount to every coalition, and interacts with nobody.
    extended = torch.cat([values, values + alone], dim=1)
    last = players_of(values)
    for name in NAMES:
        for order in orders_of(values):
            without = by_set(ab.index(ab.ValueTable(values), name, order=order))
            having = by_set(ab.index(ab.ValueTable(extended), name, order=order))
            assert having.pop((last,)) == pytest.approx(alone, abs=1e-9)
            for members, effect in having.items():
                if members:  # ∅ of SII, BII and FBII is a mean of values
                    assert effect == pytest.approx(without.get(members, 0.0), abs=1e-9)


@given(games, st.randoms())
def test_axiom_of_symmetry(values, random):
    players = players_of(values)
    new_numbers = list(range(players))
    random.shuffle(new_numbers)
    renamed = torch.empty_like(values)
    for members in subsets(range(players)):
        renamed[:, number(new_numbers[player] for player in members)] = values[:, number(members)]
    for name in NAMES:
        for order in orders_of(values):
            before = by_set(ab.index(ab.ValueTable(values), name, order=order))
            after = by_set(ab.index(ab.ValueTable(renamed), name, order=order))
            moved = {tuple(sorted(new_numbers[player] for player in members)): before[members] for members in before}
            assert after == pytest.approx(moved, abs=1e-9)


@given(games)
def test_at_the_highest_order_indices_are_effects(values):
    effects = by_set(ab.harsanyi(ab.ValueTable(values)))
    for name in ["k-SII", "STII", "FSII", "FBII"]:
        highest = ab.index(ab.ValueTable(values), name, order=players_of(values))
        assert by_set(highest) == pytest.approx(effects, abs=1e-9)


@given(games)
def test_at_order_1_indices_are_values_of_players(values):
    table = ab.ValueTable(values)
    players = players_of(values)
    shapley = ab.shapley(table).values
    banzhaf = ab.banzhaf(table).values
    for name in NAMES:
        of_players = ab.index(table, name, order=1).effects.view(2, -1)[:, 1:]
        expected = banzhaf if "B" in name else shapley
        assert of_players.shape == (2, players)
        torch.testing.assert_close(of_players, expected, atol=1e-9, rtol=0)


@given(games)
def test_values_of_players_from_terms(values):
    table = ab.ValueTable(values)
    for terms in (ab.harsanyi(table), ab.harsanyi(table).keep(values.shape[1])):
        for name in ["Shapley", "Banzhaf"]:
            from_terms = ab.index(terms, name)
            from_table = ab.index(table, name)
            torch.testing.assert_close(from_terms.values, from_table.values)
            assert (from_terms.kind, from_terms.index) == (from_table.kind, from_table.index)


def test_gradients_pass_through_indices():
    values = torch.randn(2, 8, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda v: ab.index(ab.ValueTable(v), "k-SII").effects, values)
    sets = torch.tensor([[True, True, True], [True, False, True]])
    effects = torch.randn(2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda e: ab.index(ab.Terms.listed(sets, e), "FSII").effects, effects)


def test_subsets_of_listed_sets_are_listed_by_sample():
    terms = listed([(0, 1, 4), (1, 4), (2,), ()], [6.0, 2.0, 5.0, 1.0], 5, owners=torch.tensor([1, 1, 0, 0]))
    sii = ab.index(terms, "SII")
    assert by_set(sii, 0) == {(): 3.5, (2,): 5.0}
    triple = {(): 1.5 + 2 / 3, (0,): 2.0, (1,): 3.0, (4,): 3.0, (0, 1): 3.0, (0, 4): 3.0, (1, 4): 5.0}
    assert by_set(sii, 1) == pytest.approx(triple)
    assert sii.base_values.tolist() == [1.0, 0.0]
    assert sii.owners.tolist() == [0, 0, 1, 1, 1, 1, 1, 1, 1]


def test_a_set_may_be_listed_twice_and_a_sample_may_have_none():
    terms = listed([(0, 1), (0, 1)], [1.0, 2.0], 3, owners=torch.tensor([2, 2]), samples=4)
    stii = ab.index(terms, "STII")
    assert by_set(stii, 2) == {(): 0.0, (0,): 0.0, (1,): 0.0, (0, 1): 3.0}
    assert by_set(stii, 3) == {(): 0.0}


def test_samples_in_several_blocks_give_what_one_block_gives(monkeypatch):
    generator = torch.Generator().manual_seed(0)
    sets = ab.draw_coalitions(9, torch.randint(0, 7, (60,), generator=generator), generator)
    owners = torch.randint(0, 7, (60,), generator=generator)
    effects = torch.randn(60, generator=generator).double()
    terms = ab.Terms.listed(sets, effects, owners=owners, samples=8)
    whole = ab.index(terms, "k-SII", order=3)
    monkeypatch.setattr(subset_sums, "_PAIRS_AT_ONCE", 200)
    monkeypatch.setattr(subset_sums, "_MARKED_ENTRIES", 0)
    monkeypatch.setattr(subset_sums, "_MARKED_ENTRIES_PER_NUMBER", 0)
    in_blocks = ab.index(terms, "k-SII", order=3)
    assert torch.equal(in_blocks.members, whole.members)
    assert torch.equal(in_blocks.owners, whole.owners)
    torch.testing.assert_close(in_blocks.effects, whole.effects)


def test_errors_are_bounds_of_the_errors_of_sums():
    terms = listed([(0, 1, 2), (0, 1)], [6.0, 2.0], 3, errors=torch.tensor([0.6, 0.2]).double())
    sii = ab.index(terms, "SII")
    errors = dict(zip(by_set(sii), sii.errors.tolist(), strict=True))
    assert errors[0, 1] == pytest.approx(0.6 / 2 + 0.2)
    assert errors[1, 2] == pytest.approx(0.6 / 2)
    # Negative weights do not cancel errors.
    assert ab.index(terms, "FSII").errors.min() >= 0
    full = ab.Terms(torch.ones(1, 4), ("a", "b"), "given", torch.zeros(1), errors=torch.ones(1, 4))
    assert ab.index(full, "SII").errors.tolist() == pytest.approx([1 + 1 / 2 + 1 / 2 + 1 / 3, 1.5, 1.5, 1.0])
    assert ab.index(terms, "Banzhaf").errors.isnan().all()


@pytest.fixture(scope="module")
def many_terms():
    """Twenty thousand sets of up to six of a thousand players."""
    generator = torch.Generator().manual_seed(0)
    sizes = torch.randint(1, 7, (20_000,), generator=generator)
    sets = ab.draw_coalitions(1000, sizes, generator)
    return ab.Terms.listed(sets, torch.randn(20_000, generator=generator).double())


@pytest.mark.parametrize("name", NAMES)
def test_a_thousand_players_with_twenty_thousand_sets(many_terms, name):
    started = time.process_time()
    indexed = ab.index(many_terms, name)
    # 0.1 s on one idle core; the limit allows for a busy machine.
    assert time.process_time() - started < 3
    if name in EFFICIENT:
        assert indexed.effects.sum().item() == pytest.approx(many_terms.effects.sum().item())
    strongest = many_terms.keep(50)
    numbers = by_set(ab.index(strongest, name))
    expected = dict.fromkeys(numbers, 0.0)
    weight = INDICES[name].weight
    for members, effect in by_set(strongest).items():
        for size in range(min(2, len(members)) + 1):
            for subset in combinations(members, size):
                expected[subset] += float(weight(size, len(members), 2)) * effect
    assert numbers == pytest.approx(expected)


@pytest.mark.parametrize("name", NAMES)
def test_sets_of_a_thousand_players_do_not_overflow(name):
    terms = listed([range(1200), range(2)], [1.0, 1.0], 1200)
    indexed = ab.index(terms, name)
    assert indexed.effects.isfinite().all()
    if name in EFFICIENT:
        assert indexed.effects.sum().item() == pytest.approx(2.0)


def test_too_many_subsets_are_refused():
    terms = listed([range(400)], [1.0], 400)
    with pytest.raises(ab.AbsentiaError, match=r"order must be so small that .*Use a lower order, or fewer sets"):
        ab.index(terms, "SII", order=5)


def test_weights_are_exact():
    assert [str(bernoulli_number(place)) for place in range(5)] == ["1", "-1/2", "1/6", "0", "-1/30"]
    # All effects are kept at the highest order: the terms of the sum cancel exactly.
    assert [k_sii(subset_size, 30, 30) for subset_size in (1, 15, 29, 30)] == [0, 0, 0, 1]
    assert float(fsii(1, 5000, 2)) == pytest.approx(0, abs=1e-3)


def test_the_index_is_shown_saved_and_tabulated(tmp_path):
    table = ab.ValueTable([0.0, 1.0, 2.0, 5.0], names=["age", "income"])
    terms = ab.index(table, "k-SII")
    assert repr(terms).startswith("Interactions (k-SII of order 2) of 1 sample, 2 players; value: given; strongest:")
    assert [term.effect for term in terms.top(3)] == [2.0, 2.0, 1.0]
    frame = terms.to_frame()
    assert set(frame["players"]) == {"age", "income", "age & income"}
    assert terms.by_order().strength.tolist() == [[0.0, 3.0, 2.0]]
    terms.save(tmp_path / "terms.safetensors")
    back = ab.load(tmp_path / "terms.safetensors")
    assert (back.basis, back.order, back.base_values.tolist()) == ("k-SII", 2, [0.0])
    assert torch.equal(back.effects, terms.effects)
    for method in (terms.shapley, terms.sparsity, terms.reconstruct):
        with pytest.raises(ab.AbsentiaError, match=r"basis must be Harsanyi( or Walsh)? for .*\. Got k-SII instead"):
            method()


def test_samples_of_an_index_can_be_told_apart():
    values = torch.randn(3, 8, generator=torch.Generator().manual_seed(0)).double()
    together = ab.index(ab.ValueTable(values), "BII")
    for sample in range(3):
        alone = ab.index(ab.ValueTable(values[sample]), "BII")
        assert by_set(together, sample) == pytest.approx(by_set(alone))


def test_rounding_errors_of_an_index_are_below_the_floor_of_effects():
    # The floor of an effect of the same size serves for indices, too.
    noise = torch.randn(2000, 2**6, generator=torch.Generator().manual_seed(0)).double()
    for name in NAMES:
        for order in range(1, 7):
            terms = ab.index(ab.ValueTable(noise), name, order=order)
            deviations = terms.effects.view(2000, -1).std(0) / 2 ** (terms.orders[: len(terms.orders) // 2000] / 2)
            assert deviations.max() < 1.5


def test_nonsense_is_refused():
    table = ab.ValueTable(torch.randn(1, 8).double())
    known = "Shapley, Banzhaf, SII, k-SII, STII, FSII, BII, FBII"
    with pytest.raises(ab.AbsentiaError, match=rf"name must be one of {known}\. Got 'Owen' instead"):
        ab.index(table, "Owen")
    for order in (0, -1, 4):
        with pytest.raises(ab.AbsentiaError, match=rf"order must lie between 1 and 3\. Got {order} instead"):
            ab.index(table, "SII", order=order)
    with pytest.raises(ab.AbsentiaError, match=r"order must be a whole number\. Got 1\.5 instead"):
        ab.index(table, "SII", order=1.5)
    with pytest.raises(
        ab.AbsentiaError, match=r"order must be 1 for Shapley.*Got 2.*Interaction indices are SII, k-"
    ):
        ab.index(table, "Shapley", order=2)
    with pytest.raises(
        ab.AbsentiaError, match=r"terms must hold Harsanyi or Walsh effects.*Got effects of SII instead"
    ):
        ab.index(ab.index(table, "SII"), "FSII")
    with pytest.raises(
        ab.AbsentiaError, match=r"terms must hold Harsanyi or Walsh effects.*Got effects of SII instead"
    ):
        ab.index(ab.index(table, "SII"), "Shapley")
    assert ab.index(table, "Shapley", order=1).values.shape == (1, 3)


def test_the_usual_order_of_one_player_is_one():
    assert ab.index(ab.ValueTable([1.0, 4.0]), "SII").order == 1


def test_indices_can_be_added(monkeypatch):
    monkeypatch.setitem(INDICES, "Co-Moebius", InteractionIndex(lambda subset_size, size, order: 1))
    table = ab.ValueTable(torch.randn(1, 8, generator=torch.Generator().manual_seed(0)).double())
    # What a set adds in the presence of all the others.
    values = table.values[0]
    assert by_set(ab.index(table, "Co-Moebius"))[0, 2] == pytest.approx(
        (values[7] - values[6] - values[3] + values[2]).item()
    )
    monkeypatch.setitem(INDICES, "first", PlayerIndex(lambda table: ab.shapley(table)))
    assert torch.equal(ab.index(table, "first").values, ab.shapley(table).values)
    with pytest.raises(ab.AbsentiaError, match="game must be a game for first, which needs the values of coalitions"):
        ab.index(ab.harsanyi(table), "first")


def test_an_index_is_drawn_reported_and_written_as_json(tmp_path):
    values = torch.randn(2, 16, generator=torch.Generator().manual_seed(0)).double()
    for name in NAMES:
        terms = ab.index(ab.ValueTable(values), name)
        for draw in (ab.plots.interaction_list, ab.plots.network, ab.plots.order_profile, ab.plots.upset):
            plt.close(draw(terms, 1))
        ab.write_report([terms], tmp_path / "report.html")
        assert name in (tmp_path / "report.html").read_text()
        back = ab.Terms.from_json(terms.to_json())
        assert (back.basis, back.order) == (name, 2)
        assert torch.equal(back.effects, terms.effects)
        assert torch.equal(back.base_values, terms.base_values)
        assert by_set(terms.only(1)) == by_set(terms, 1)
