"""Walsh terms: sums by definition over all coalitions, exact conversions, and views at any number of players."""

import json
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import absentia as ab
from absentia import walsh
from absentia.explaining import explanation_of_terms
from absentia.interaction_indices import InteractionIndex
from absentia.storage.tensor_files import read_tensors, write_tensors
from absentia.terms_in_words import WALSH_MEANING, share_explained
from absentia.walsh import (
    harsanyi_sets_of,
    harsanyi_to_walsh,
    walsh_mean_squares,
    walsh_shapley_shares,
    walsh_shares_by_context,
    walsh_to_harsanyi,
)
from known_games import harsanyi_by_definition, marginal_benefits_by_order, number, shapley_by_subsets, subsets
from seeded_draws import randn

INDICES = ["SII", "k-SII", "STII", "FSII", "BII", "FBII"]


@st.composite
def listed_walsh(draw, most=6):
    """A few distinct sets of players with effects, and their number of players."""
    count = draw(st.integers(1, most))
    every = list(subsets(range(count)))
    sets = draw(st.lists(st.sampled_from(every), min_size=1, max_size=12, unique=True))
    effects = draw(st.lists(st.floats(-3, 3), min_size=len(sets), max_size=len(sets)))
    return count, sets, torch.tensor(effects, dtype=torch.float64)


def rows_of(sets, players):
    rows = torch.zeros(len(sets), players, dtype=torch.bool)
    for row, members in zip(rows, sets, strict=True):
        row[list(members)] = True
    return rows


def walsh_terms(sets, effects, players, **fields):
    return ab.Terms.listed(rows_of(sets, players), effects, basis="Walsh", **fields)


def values_by_definition(sets, effects, players):
    """v(S) as the sum of products of ±1, by loops, in counting order."""
    values = [0.0] * 2**players
    for coalition in subsets(range(players)):
        for members, effect in zip(sets, effects.tolist(), strict=True):
            sign = math.prod(1 if player in coalition else -1 for player in members)
            values[number(coalition)] += effect * sign
    return values


@given(listed_walsh())
def test_values_are_signed_sums(drawn):
    players, sets, effects = drawn
    terms = walsh_terms(sets, effects, players)
    values = torch.tensor(values_by_definition(sets, effects, players), dtype=torch.float64)
    torch.testing.assert_close(terms.reconstruct()[0], values)
    torch.testing.assert_close(terms.predict(ab.enumerate_coalitions(players))[0], values)
    mean = sum(effect for members, effect in zip(sets, effects.tolist(), strict=True) if not members)
    assert float(values.mean()) == pytest.approx(mean, abs=1e-9)


def test_values_are_summed_block_by_block(monkeypatch):
    sets = list(subsets(range(5)))
    terms = walsh_terms(sets, randn(32), 5, owners=torch.arange(32) % 3)
    expected = terms.reconstruct()
    monkeypatch.setattr(walsh, "PAIRS_AT_ONCE", 64)
    torch.testing.assert_close(terms.reconstruct(), expected)


@given(listed_walsh())
def test_terms_convert_to_the_harsanyi_effects_of_their_values(drawn):
    players, sets, effects = drawn
    values = values_by_definition(sets, effects, players)
    expected = harsanyi_by_definition(values)
    converted = walsh_to_harsanyi(rows_of(sets, players), effects)
    found = dict(zip(map(tuple, converted.sets.int().tolist()), converted.effects.tolist(), strict=True))
    assert len(found) == len(converted.sets) == harsanyi_sets_of(rows_of(sets, players))
    for members in subsets(range(players)):
        key = tuple(int(player in members) for player in range(players))
        assert found.get(key, 0.0) == pytest.approx(expected[number(members)], abs=1e-8)
    contained = {inner for members in sets for inner in subsets(members)} | {()}
    assert len(found) == len(contained)


@given(listed_walsh())
def test_conversions_undo_each_other(drawn):
    players, sets, effects = drawn
    rows = rows_of(sets, players)
    there = harsanyi_to_walsh(rows, effects)
    back = walsh_to_harsanyi(there.sets, there.effects)
    coalitions = ab.enumerate_coalitions(players)
    expected = ab.Terms.listed(rows, effects).predict(coalitions)
    through_walsh = ab.Terms.listed(there.sets, there.effects, basis="Walsh").predict(coalitions)
    torch.testing.assert_close(through_walsh, expected, atol=1e-8, rtol=0)
    again = ab.Terms.listed(back.sets, back.effects).predict(coalitions)
    torch.testing.assert_close(again, expected, atol=1e-8, rtol=0)


@given(listed_walsh(), st.integers(0, 1000), st.sampled_from([walsh_to_harsanyi, harsanyi_to_walsh]))
def test_covariances_are_those_of_converted_draws(drawn, seed, convert):
    """A covariance Σ d dᵀ is that of errors d, so it converts to the sum over converted errors."""
    players, sets, effects = drawn
    rows = rows_of(sets, players)
    errors = randn(3, len(sets), seed=seed)
    converted = convert(rows, effects, errors.T @ errors)
    each = torch.stack([convert(rows, error).effects for error in errors])
    torch.testing.assert_close(converted.covariance, each.T @ each, atol=1e-7, rtol=1e-9)
    torch.testing.assert_close(converted.errors, each.square().sum(0).sqrt(), atol=1e-4, rtol=1e-6)
    assert convert(rows, effects).errors is None


def test_independent_errors_grow_by_two_to_the_order():
    rows = torch.tensor([[True, True, True]])
    converted = walsh_to_harsanyi(rows, torch.tensor([1.0]), torch.tensor([[0.25]]))
    assert converted.errors[-1] == 8 * 0.5


def test_sets_of_many_players_are_not_converted():
    rows = torch.ones(1, 17, dtype=torch.bool)
    assert harsanyi_sets_of(rows) == 2**17
    with pytest.raises(ab.AbsentiaError, match=r"sets must be small enough .*a set of 17 players, more than 16"):
        walsh_to_harsanyi(rows, torch.ones(1))
    assert len(walsh_to_harsanyi(rows[:, :16], torch.ones(1)).sets) == 2**16


def test_too_many_subsets_are_not_converted(monkeypatch):
    monkeypatch.setattr(walsh, "_MOST_PAIRS", 10)
    with pytest.raises(ab.AbsentiaError, match=r"4 sets with 16 subsets, more than 10 instead\. .*keep fewer terms"):
        harsanyi_to_walsh(torch.ones(4, 2, dtype=torch.bool), torch.ones(4))
    monkeypatch.undo()
    monkeypatch.setattr(walsh, "_MOST_COVARIANCES", 9)
    with pytest.raises(ab.AbsentiaError, match=r"at most 3 subsets if a covariance is converted\. Got 4"):
        walsh_to_harsanyi(torch.ones(1, 2, dtype=torch.bool), torch.ones(1), torch.ones(1, 1))


def test_no_sets_convert_to_the_empty_set():
    nothing = torch.zeros(0, 4, dtype=torch.bool)
    converted = walsh_to_harsanyi(nothing, torch.zeros(0), torch.zeros(0, 0))
    assert converted.effects.tolist() == [0.0]
    assert harsanyi_sets_of(nothing) == 1


@given(listed_walsh())
def test_indices_of_players_are_those_of_the_table(drawn):
    players, sets, effects = drawn
    terms = walsh_terms(sets, effects, players)
    values = values_by_definition(sets, effects, players)
    table = ab.ValueTable(values)
    shapley = torch.tensor(shapley_by_subsets(values), dtype=torch.float64)
    torch.testing.assert_close(terms.shapley().values[0], shapley, atol=1e-8, rtol=0)
    banzhaf = ab.index(terms, "Banzhaf")
    torch.testing.assert_close(banzhaf.values, ab.banzhaf(table).values, atol=1e-8, rtol=0)
    assert (banzhaf.kind, banzhaf.index) == ("Banzhaf values", "Banzhaf")
    assert float(banzhaf.errors.abs().max()) == 0
    by_order = torch.tensor(marginal_benefits_by_order(values), dtype=torch.float64)
    torch.testing.assert_close(terms.order_shapley().values[0], by_order, atol=1e-8, rtol=0)


@given(listed_walsh(most=5))
def test_interaction_indices_are_those_of_the_table(drawn):
    players, sets, effects = drawn
    terms = walsh_terms(sets, effects, players)
    table = ab.harsanyi(ab.ValueTable(values_by_definition(sets, effects, players)))
    for name in INDICES:
        for order in range(1, players + 1):
            from_terms = ab.index(terms, name, order=order)
            expected = by_set(ab.index(table, name, order=order))
            found = by_set(from_terms)
            assert set(found) <= set(expected)
            for members, effect in expected.items():
                assert found.get(members, 0.0) == pytest.approx(effect, abs=1e-7)
            assert float(from_terms.base_values[0]) == pytest.approx(float(table.effects[0, 0]), abs=1e-9)


def by_set(terms):
    """The numbers of the only sample by the players of their sets."""
    players = [tuple(row.nonzero()[:, 0].tolist()) for row in terms.sets]
    if terms.owners is None:
        return dict(zip(players, terms.effects[0].tolist(), strict=True))
    return dict(zip(players, terms.effects.tolist(), strict=True))


def test_an_index_of_a_set_of_forty_players_needs_no_subsets_of_all_sizes():
    """The term of 40 players: derivatives of smaller subsets cancel, so their Banzhaf interactions are 0."""
    terms = walsh_terms([tuple(range(40))], torch.ones(1).double(), 40)
    bii = ab.index(terms, "BII", order=1)
    assert bii.effects.tolist() == [0.0] * 41
    sii = by_set(ab.index(terms, "SII", order=1))
    assert all(sii[player,] == pytest.approx(0, abs=1e-12) for player in range(40))
    odd = walsh_terms([tuple(range(39))], torch.ones(1).double(), 40)
    assert by_set(ab.index(odd, "SII", order=1))[5,] == pytest.approx(2 / 39)


def test_errors_of_an_index_are_bounds_of_those_of_its_sums():
    sets = [(0,), (0, 1), (0, 1, 2)]
    errors = torch.tensor([0.1, 0.2, 0.3]).double()
    terms = walsh_terms(sets, torch.ones(3).double(), 3, errors=errors)
    plain = walsh_terms(sets, torch.ones(3).double(), 3)
    found = by_set(ab.index(terms, "BII", order=1))
    bounds = dict(zip(found, ab.index(terms, "BII", order=1).errors.tolist(), strict=True))
    largest = {}
    for signs in torch.cartesian_prod(*[torch.tensor([-1.0, 1.0]).double()] * 3):
        moved = walsh_terms(sets, plain.effects + signs * errors, 3)
        for members, effect in by_set(ab.index(moved, "BII", order=1)).items():
            largest[members] = max(largest.get(members, 0.0), abs(effect - found[members]))
    assert bounds == pytest.approx(largest)


def test_own_indices_may_have_weights_in_floating_point():
    own = InteractionIndex(lambda subset_size, size, order: 0.5**size)
    terms = walsh_terms([(0, 1)], torch.ones(1).double(), 2)
    table = ab.harsanyi(ab.ValueTable([1.0, -1.0, -1.0, 1.0]))
    assert by_set(own.of_terms(terms, 2, "own")) == pytest.approx(by_set(own.of_terms(table, 2, "own")))


def test_banzhaf_values_have_the_errors_of_their_terms():
    terms = walsh_terms([(0,), (1, 2)], torch.ones(2).double(), 3, errors=torch.tensor([0.25, 0.5]).double())
    banzhaf = ab.index(terms, "Banzhaf")
    assert banzhaf.values.tolist() == [[2.0, 0.0, 0.0]]
    assert banzhaf.errors[0, 0] == 0.5
    assert banzhaf.errors[0, 1:].isnan().all()
    assert terms.shapley().errors.isnan().all()


@pytest.mark.parametrize("players", [1, 2, 7, 40, 1000])
def test_what_a_player_adds_by_context_is_a_mean_over_contexts(players):
    others = players - 1
    sizes = sorted({1, 2, 3, 4, players // 2, players - 1, players} & set(range(1, players + 1)))
    found = walsh_shares_by_context(torch.tensor(sizes), players)
    for column, size in enumerate(sizes):
        for present in range(0, players, max(1, players // 17)):
            total = 0
            for inside in range(max(0, present - others + size - 1), min(size - 1, present) + 1):
                contexts = math.comb(size - 1, inside) * math.comb(others - size + 1, present - inside)
                total += (-1) ** (size - 1 - inside) * contexts
            expected = 2 * total / math.comb(others, present)
            assert float(found[present, column]) == pytest.approx(expected, abs=1e-13)
    torch.testing.assert_close(found.mean(0), walsh_shapley_shares(torch.tensor(sizes)), atol=1e-13, rtol=0)


@given(listed_walsh(), st.floats(0.0, 0.9))
def test_the_errors_of_rebuilt_values_are_those_of_all_coalitions(drawn, error):
    players, sets, effects = drawn
    terms = walsh_terms(sets, effects, players)
    values = terms.reconstruct()
    rebuilding = terms.rebuilding_errors()
    assert rebuilding.deviation == pytest.approx(float(values.std(correction=0)), abs=1e-9)
    for count in range(len(rebuilding.errors)):
        rest = terms.keep(count).reconstruct() - values
        assert float(rebuilding.errors[count]) == pytest.approx(float(rest.square().mean().sqrt()), abs=1e-9)
    length = int(terms.sparsity(error))
    spread = error * rebuilding.deviation
    assert float(rebuilding.errors[length]) <= spread
    assert length == 0 or float(rebuilding.errors[length - 1]) > spread


def test_a_set_that_is_listed_twice_counts_by_its_sum():
    rows = rows_of([(0,), (1,), (0,), (0, 1), (0,)], 2)
    effects = torch.tensor([2.0, 1.0, -1.5, 3.0, 0.25]).double()
    squares = walsh_mean_squares(rows, effects)
    for count in range(6):
        rest = ab.Terms.listed(rows[count:], effects[count:], basis="Walsh", samples=1).reconstruct()
        assert float(squares[count]) == pytest.approx(float(rest.square().mean()))


def test_rounding_errors_of_walsh_terms_do_not_grow_with_their_order():
    sets = [(), (0,), (0, 1, 2)]
    terms = walsh_terms(sets, torch.tensor([1.0, 0.3, 0.3]).double(), 3, noise=torch.tensor([0.25]).double())
    assert terms.floor.tolist() == [[0.25] * 4]
    assert terms.measurable.tolist() == [True, True, True]
    plain = ab.Terms.listed(rows_of(sets, 3), terms.effects, noise=terms.noise)
    assert plain.measurable.tolist() == [True, False, False]


def test_a_full_table_is_not_of_walsh_terms():
    with pytest.raises(ab.AbsentiaError, match=r"basis must be Harsanyi for a full table\. Got Walsh"):
        ab.Terms(torch.ones(1, 4), ("a", "b"), "given", torch.zeros(1), basis="Walsh")
    with pytest.raises(ab.AbsentiaError, match=r"basis must be Harsanyi or Walsh\. Got 'Fourier'"):
        ab.Terms.listed(torch.eye(2).bool(), torch.ones(2), basis="Fourier")


# A fit of two samples at 12 players, and of one at 1,000.
def fitted_terms(players, samples=1, terms=40, seed=0):
    generator = torch.Generator().manual_seed(seed)
    rows = torch.rand(terms, players, generator=generator).argsort(1)[:, :4]
    sizes = torch.randint(1, 5, (terms,), generator=generator)
    sets = torch.zeros(terms, players, dtype=torch.bool)
    for place in range(4):
        chosen = (sizes > place).nonzero()[:, 0]
        sets[chosen, rows[chosen, place]] = True
    sets[:samples] = False
    effects = randn(terms, seed=seed) * torch.logspace(0, -2, terms, dtype=torch.float64)
    return ab.Terms.listed(
        sets,
        effects,
        owners=torch.arange(terms) % samples,
        errors=torch.full((terms,), 0.04, dtype=torch.float64),
        readout="the log-odds of spam",
        evaluations=4000,
        basis="Walsh",
        fidelity=torch.tensor([0.96, 0.9])[:samples].double().round(decimals=2),
        fidelity_error=torch.tensor([0.01, 0.02])[:samples].double().round(decimals=2),
    )


CASES = [(12, 2), (1000, 1)]


@pytest.fixture(scope="module", params=CASES, ids=["few", "many"])
def terms(request):
    return fitted_terms(*request.param)


def explanation_of(terms):
    players = len(terms.names)
    game = ab.MaskedModel(lambda rows: rows.sum(1), randn(terms.samples, players), absence=ab.Baseline(0.0))
    return explanation_of_terms(game, terms)


@pytest.fixture(scope="module")
def explanation(terms):
    return explanation_of(terms)


def test_the_fidelity_is_that_of_each_sample(terms):
    assert terms.only(0).fidelity.tolist() == [0.96]
    count = 39 if terms.samples == 1 else 19
    sentence = f"These {count} interactions account for 96 % ± 1 % of the variation."
    assert terms.remarks() == [sentence, WALSH_MEANING]
    if terms.samples > 1:
        assert "account for 90 % ± 2 % of the variation" in terms.remarks(1)[0]
        assert "account for 90 % ± 2 % of the variation" in terms.only(1).remarks()[0]


def test_the_fidelity_of_fewer_terms_is_unknown(terms):
    kept = terms.keep(3)
    assert kept.fidelity.isnan().all()
    assert kept.remarks() == [WALSH_MEANING]
    assert not kept.is_exact
    assert terms.keep(40).remarks() == terms.remarks()


def test_fidelities_that_do_not_fit_are_refused():
    with pytest.raises(ab.AbsentiaError, match=r"fidelity must hold one number for each of the 1 samples"):
        walsh_terms([(0,)], torch.ones(1), 2, fidelity=torch.ones(2))


def test_walsh_terms_are_saved_and_read_back(terms, tmp_path):
    terms.save(tmp_path / "terms.absentia")
    for read in (ab.load(tmp_path / "terms.absentia"), ab.Terms.from_json(terms.to_json())):
        assert read.basis == "Walsh"
        assert torch.equal(read.effects, terms.effects)
        assert torch.equal(read.fidelity, terms.fidelity)
        assert torch.equal(read.fidelity_error, terms.fidelity_error)
        assert repr(read) == repr(terms)


def test_json_of_format_3_had_one_fidelity(terms):
    fields = json.loads(terms.to_json())
    fields |= {"format": 3, "fidelity": 0.875}
    del fields["fidelity_error"]
    read = ab.Terms.from_json(json.dumps(fields))
    assert read.fidelity.tolist() == [0.875] * terms.samples
    assert read.fidelity_error is None


def test_texts_name_the_basis_and_what_it_means(terms, explanation):
    assert repr(terms).startswith("Interactions (Walsh) of ")
    plain = " ".join(repr(terms).split())
    assert WALSH_MEANING in plain
    shown = " ".join(repr(explanation).split())
    count = 39 if terms.samples == 1 else 19
    assert f"strongest interactions (Walsh), 5 of {count}:" in shown
    assert f"These {count} interactions account for 96 % ± 1 % of the variation." in shown
    assert WALSH_MEANING in shown
    page = explanation._repr_html_()
    assert f"strongest interactions (Walsh), 10 of {count}" in page
    assert WALSH_MEANING in page


def test_an_explanation_adds_up(terms, explanation):
    torch.testing.assert_close(explanation.efficiency_gap, torch.zeros(terms.samples).double(), atol=1e-9, rtol=0)
    assert explanation.order_shapley is None


def test_explanations_are_saved_and_loaded(explanation, tmp_path):
    explanation.save(tmp_path / "explanation.absentia")
    assert repr(ab.load(tmp_path / "explanation.absentia")) == repr(explanation)


def test_walsh_terms_go_to_shapiq_as_moebius_values(terms):
    pytest.importorskip("shapiq")
    values = ab.interop.to_shapiq(terms)
    assert (values.index, values.estimated) == ("Moebius", True)
    nobody = torch.zeros(1, len(terms.names), dtype=torch.bool)
    assert values.baseline_value == pytest.approx(float(terms.predict(nobody)[0, 0]))
    back = ab.interop.from_shapiq(values, terms.names, listed=True)
    drawn = torch.rand(50, len(terms.names), generator=torch.Generator().manual_seed(0)) < 0.5
    torch.testing.assert_close(back.predict(drawn)[0], terms.predict(drawn)[0], atol=1e-9, rtol=0)


def test_a_set_of_too_many_players_does_not_go_to_shapiq():
    pytest.importorskip("shapiq")
    terms = walsh_terms([tuple(range(17))], torch.ones(1).double(), 20)
    with pytest.raises(ab.AbsentiaError, match="a set of 17 players, more than 16"):
        ab.interop.to_shapiq(terms)


PLOTS = ["interaction_list", "upset", "network", "and_or_graph", "order_profile", "sparsity"]


@pytest.mark.parametrize("kind", PLOTS)
def test_walsh_terms_and_their_explanations_are_drawn(terms, explanation, kind, tmp_path):
    for result in (terms, explanation):
        ab.plots.KINDS[kind](result).savefig(tmp_path / "terms.png")


def test_pictures_name_the_basis_and_what_it_means(terms):
    count = 39 if terms.samples == 1 else 19
    share = f"These {count} interactions account for 96 % ± 1 % of the variation."
    axes = ab.plots.interaction_list(terms).axes[0]
    assert axes.get_title() == f"strongest 16 of {count} interactions (Walsh)"
    bars = ab.plots.upset(terms).axes[1]
    assert bars.get_title().startswith(f"strongest 16 of {count} interactions (Walsh)")
    graphs = [ab.plots.KINDS[kind](terms).axes[0].get_title() for kind in ("network", "and_or_graph")]
    for text in (axes.get_xlabel(), bars.get_xlabel(), *graphs):
        plain = text.replace("\n", " ")
        assert share in plain
        assert WALSH_MEANING in plain
    for title in graphs:
        assert "interactions (Walsh), with " in title.replace("\n", " ")
    assert "|w|" in ab.plots.sparsity(terms).axes[0].get_ylabel()
    assert "|w|" in ab.plots.order_profile(terms).axes[0].get_ylabel()


def test_order_wise_values_of_exact_walsh_terms_are_drawn():
    terms = walsh_terms([(0,), (0, 1), (1, 2, 3)], torch.ones(3).double(), 4)
    lines = ab.plots.order_profile(terms).axes[1].lines
    expected = terms.order_shapley().values[0]
    drawn = {line.get_label(): list(map(float, line.get_ydata())) for line in lines}
    for player, name in enumerate(terms.names):
        assert drawn[name] == pytest.approx(expected[:, player].tolist())


def data_of(path):
    """The data of the only section of a page."""
    text = path.read_text(encoding="utf-8")
    return json.loads(text.partition('id="data">')[2].partition("</script>")[0])[0]


def test_reports_name_the_basis_and_what_it_means(terms, explanation, tmp_path):
    count = 39 if terms.samples == 1 else 19
    for result in (terms, explanation):
        path = ab.write_report(result, tmp_path / "page.html")
        text = path.read_text(encoding="utf-8")
        assert "<h3>Strongest interactions (Walsh)</h3>" in text
        assert WALSH_MEANING in text
        assert "A <em>Walsh term</em>" in text
        assert "The effects of all subsets of S add up" not in text
        sample = data_of(path)["samples"][0]
        assert sample["fit"] == f"These {count} interactions account for 96 % ± 1 % of the variation."
        assert {"effects", "shares", "curve", "values", "ranked"} <= sample.keys()


@pytest.mark.slow
def test_a_report_of_walsh_terms_opens_in_a_browser(terms, explanation, browser, tmp_path):
    path = ab.write_report([terms, explanation], tmp_path / "report.html")
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    messages = []
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready=yes]")
    assert messages == []
    assert page.query_selector_all("[data-chart]:empty") == []
    for result in (0, 1):
        assert "account for 96 % ± 1 %" in page.locator(f"#result-{result} .fit").text_content()
    page.close()


def test_files_of_format_3_and_4_had_one_fidelity(terms, explanation, tmp_path):
    """Files as the formats before wrote them: a float in the header in place of a tensor for each sample."""
    for result, place, format_number in ((terms, "", 3), (explanation, "interactions.", 4)):
        path = tmp_path / "result.absentia"
        result.save(path)
        tensors, header = read_tensors(path)
        old = {name: tensor for name, tensor in tensors.items() if not name.startswith(f"{place}fidelity")}
        fields = header["fields"]["interactions"] if place else header["fields"]
        fields["fidelity"] = 0.75
        del fields["fidelity_error"]
        write_tensors(path, old, header | {"format": format_number})
        loaded = ab.load(path)
        loaded_terms = loaded.interactions if place else loaded
        assert loaded_terms.fidelity.tolist() == [0.75] * terms.samples
        assert loaded_terms.fidelity_error is None
        assert torch.equal(loaded_terms.effects, terms.effects)


@pytest.mark.parametrize(
    ("fidelity", "error", "text"),
    [
        (0.957, 0.0098, "for 96 % ± 1 % of"),
        (0.957, 0.0042, "for 95.7 % ± 0.4 % of"),
        (0.95712, 0.00096, "for 95.7 % ± 0.1 % of"),
        (0.5, 0.123, "for 50 % ± 10 % of"),
        (0.876, math.nan, "for 87.6 % of"),
        (0.876, 0.0, "for 87.6 % of"),
        (0.99999, math.nan, "for more than 99.9 % of"),
        (1.0, math.nan, "for 100 % of"),
        (-0.2, 0.1, "for none of the variation: R² is −0.2."),
    ],
)
def test_the_share_of_the_variation_is_written_to_its_error(fidelity, error, text):
    assert share_explained(7, fidelity, error).startswith(f"These 7 interactions account {text}")
    assert share_explained(1, fidelity, error).startswith(f"This interaction accounts {text}")
    assert share_explained(7, math.nan, error) == ""
