"""Estimates that are not determined are marked in texts, tables and pictures, unless their error is unknown."""

import json
import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import absentia as ab
from absentia.determined import MEANING_OF_STYLE, NOT_DETERMINED, WHY_NOT_DETERMINED, are_determined, with_marks
from absentia.explaining import explanation_of_terms
from absentia.plots.drawable import answer
from absentia.plots.look import UNSURE
from absentia.plots.strongest_sets import strongest_sets
from seeded_draws import randn

numbers = st.floats(-1e6, 1e6)
errors = st.one_of(st.floats(0, 1e6), st.just(math.nan))


@given(st.lists(st.tuples(numbers, errors), min_size=1, max_size=6))
def test_a_number_is_undetermined_if_its_error_exceeds_it(drawn):
    values, own_errors = torch.tensor(drawn, dtype=torch.float64).T
    expected = [math.isnan(error) or abs(value) >= error for value, error in drawn]
    assert are_determined(values, own_errors).tolist() == expected
    assert are_determined(values, None).tolist() == [True] * len(drawn)
    sets = torch.eye(len(drawn)).bool()
    terms = ab.Terms.listed(sets, values, errors=own_errors)
    assert terms.determined.tolist() == expected
    by_player = {int(term.players[0][1:]): term.determined for term in terms.top(len(drawn))}
    assert [by_player[player] for player in range(len(drawn))] == expected
    drawn_sets = strongest_sets(terms, 0, len(drawn))
    assert {shown.players[0]: shown.determined for shown in drawn_sets} == dict(enumerate(expected))
    names = terms.names
    attribution = ab.Attribution(values[None], own_errors[None], 1, names, "Shapley values", "given")
    assert attribution.determined.tolist() == [expected]
    assert attribution.determined_means.tolist() == expected


def test_rows_get_a_column_of_marks_only_where_needed():
    rows = [("a", "+1"), ("b", "+2")]
    assert with_marks(rows, [True, True]) == rows
    assert with_marks(rows, [False, True]) == [("a", "+1", NOT_DETERMINED), ("b", "+2", "")]
    assert with_marks([], []) == []


def three_terms(effect_errors=(0.1, 2.0, math.nan), **fields):
    return ab.Terms.listed(
        torch.eye(3).bool(),
        torch.tensor([3.0, 1.0, 0.5]).double(),
        ["age", "tenure", "wage"],
        errors=None if effect_errors is None else torch.tensor(effect_errors).double(),
        **fields,
    )


def test_terms_mark_what_is_not_determined():
    assert repr(three_terms()).splitlines()[1:] == [
        "  age     +3 ± 0.1",
        "  tenure  +1 ± 2    not determined",
        "  wage    +0.5",
        "  not determined: its standard error exceeds it",
    ]
    assert NOT_DETERMINED not in repr(three_terms(None))


def test_frames_have_errors_and_say_what_is_determined():
    frame = three_terms().to_frame()
    assert frame["error"].tolist()[:2] == pytest.approx([0.1, 2.0])
    assert math.isnan(frame["error"].tolist()[2])
    assert frame["determined"].tolist() == [True, False, True]
    exact = three_terms(None).to_frame()
    assert exact["error"].tolist() == [0.0] * 3
    assert exact["determined"].tolist() == [True] * 3


@pytest.fixture(scope="module")
def sampled():
    """Sampled values of 30 players, most of which have hardly any effect, so that their errors exceed them."""
    weights = torch.cat([torch.tensor([3.0, -2.0, 1.0]), torch.full((27,), 1e-4)]).double()

    def model(rows):
        return rows @ weights + 3 * rows[:, 0] * rows[:, 1] * rows[:, 2] * rows[:, 3]

    return ab.explain(model, randn(3, 30), absence=0.0, evaluations=150)


def test_sampled_values_have_undetermined_ones(sampled):
    determined = sampled.shapley.determined
    expected = sampled.shapley.errors <= sampled.shapley.values.abs()
    assert torch.equal(determined, expected)
    assert bool(determined.any())
    assert not bool(determined.all())


def test_explanations_mark_players_that_are_not_determined(sampled):
    sampled = replace(sampled, shapley=replace(sampled.shapley, errors=4 * sampled.shapley.errors))
    text = repr(sampled)
    shown = [player for player, _ in sampled.shapley.ranked()[:8]]
    marked = sum(line.endswith(f"  {NOT_DETERMINED}") for line in text.splitlines())
    assert marked == int((~sampled.shapley.determined[0, shown]).sum()) > 0
    assert f"  {WHY_NOT_DETERMINED}" in text.splitlines()
    page = sampled._repr_html_()
    shown = [player for player, _ in sampled.shapley.ranked()[:20]]
    assert page.count(f">{NOT_DETERMINED}</td>") == int((~sampled.shapley.determined[0, shown]).sum())
    assert WHY_NOT_DETERMINED in page
    assert sampled.to_frame()["determined"].tolist() == sampled.shapley.determined.flatten().tolist()


def test_an_attribution_marks_means_over_samples(sampled):
    text = repr(sampled.shapley)
    marked = sum(line.endswith(f"  {NOT_DETERMINED}") for line in text.splitlines())
    assert marked == int((~sampled.shapley.determined_means).sum()) > 0


def explanation_of(terms):
    players = len(terms.names)
    game = ab.MaskedModel(lambda rows: rows.sum(1), randn(1, players), absence=ab.Baseline(0.0))
    return explanation_of_terms(game, terms)


def test_explanations_show_estimated_interactions_that_are_not_determined():
    text = repr(explanation_of(three_terms()))
    assert f"    tenure  +1 ± 2    {NOT_DETERMINED}" in text
    assert f"  {WHY_NOT_DETERMINED}" in text
    assert NOT_DETERMINED not in repr(explanation_of(three_terms((0.1, 0.9, math.nan))))


def dotted(axes):
    """The bars that are drawn with a dotted outline."""
    return [bar for bar in axes.patches if bar.get_linestyle() == ":"]


@pytest.mark.parametrize("kind", ["interaction_list", "upset"])
def test_bars_of_undetermined_interactions_are_dotted(kind):
    axes = ab.plots.KINDS[kind](three_terms()).axes[-1]
    assert [bar.get_width() for bar in dotted(axes)] == [1.0]
    assert f"dotted: {MEANING_OF_STYLE}" in axes.get_xlabel()
    sure = ab.plots.KINDS[kind](three_terms((0.1, 0.9, math.nan))).axes[-1]
    assert dotted(sure) == []
    assert "dotted" not in sure.get_xlabel()
    assert "hollow: within these errors" in sure.get_xlabel()


@pytest.mark.parametrize("kind", ["waterfall", "bars"])
def test_bars_of_undetermined_players_are_dotted(kind, sampled):
    axes = sampled.plot(kind=kind).axes[0]
    most = {"waterfall": 15, "bars": 20}[kind]
    shown = [player for player, _ in sampled.shapley.ranked()[:most]]
    assert len(dotted(axes)) == int((~sampled.shapley.determined[0, shown]).sum()) > 0
    assert f"dotted: {MEANING_OF_STYLE}" in axes.get_xlabel()


def test_bars_of_means_are_dotted(sampled):
    axes = sampled.plot(kind="bars", sample=None).axes[0]
    order = sampled.shapley.values.abs().mean(0).argsort(descending=True)[:20]
    assert len(dotted(axes)) == int((~sampled.shapley.determined_means[order]).sum()) > 0
    assert f"dotted: {MEANING_OF_STYLE}" in axes.get_xlabel()


def hollow_dots(axes):
    """The number of hollow dots."""
    colour = torch.tensor([int(UNSURE[place : place + 2], 16) / 255 for place in (1, 3, 5)])
    return sum(
        len(dots.get_offsets())
        for dots in axes.collections
        if len(dots.get_edgecolor()) and torch.allclose(torch.tensor(dots.get_edgecolor()[0][:3]).float(), colour)
    )


def test_dots_of_undetermined_values_are_hollow(sampled):
    axes = ab.plots.beeswarm(sampled).axes[0]
    shown = sampled.shapley.values.abs().mean(0).argsort(descending=True)[:12]
    assert hollow_dots(axes) == int((~sampled.shapley.determined[:, shown]).sum()) > 0
    assert f"hollow: {MEANING_OF_STYLE}" in axes.get_xlabel()
    player = int((~sampled.shapley.determined).sum(0).argmax())
    axes = ab.plots.scatter(sampled, player).axes[0]
    assert hollow_dots(axes) == int((~sampled.shapley.determined[:, player]).sum())
    assert f"hollow: {MEANING_OF_STYLE}" in axes.get_xlabel()
    sure = replace(sampled, shapley=replace(sampled.shapley, errors=torch.zeros_like(sampled.shapley.errors)))
    assert hollow_dots(ab.plots.beeswarm(sure).axes[0]) == 0
    assert "hollow" not in ab.plots.beeswarm(sure).axes[0].get_xlabel()


def with_errors(explanation, undetermined):
    """The explanation with errors that exceed the values of these players of the first sample."""
    values = explanation.shapley.values
    own_errors = values.abs() / 10
    own_errors[0, undetermined] = 2 * values[0, undetermined].abs() + 1
    return replace(explanation, shapley=replace(explanation.shapley, errors=own_errors))


def test_areas_of_undetermined_players_are_hatched():
    players = ab.Players.grid((1, 6, 6), (3, 2))
    explanation = ab.explain(
        lambda rows: rows.flatten(1) @ torch.arange(1.0, 37.0).double(),
        torch.ones(1, 1, 6, 6).double(),
        players=players,
        absence=0.0,
    )
    axes = with_errors(explanation, [1, 4]).plot(kind="image_heat_map").axes[1]
    hatched = torch.zeros(6, 6, dtype=torch.bool)
    for area in axes.patches:
        assert area.get_hatch()
        row = round(area.get_y() + 0.5)
        start = round(area.get_x() + 0.5)
        hatched[row, start : start + round(area.get_width())] = True
    labels = players.labels[0]
    assert torch.equal(hatched, (labels == 1) | (labels == 4))
    assert f"hatched: {MEANING_OF_STYLE}" in axes.get_title()
    assert len(axes.texts) == len(players) - 2
    assert len(explanation.plot(kind="image_heat_map").axes[1].patches) == 0


def test_undetermined_tokens_have_a_dotted_frame():
    players = ab.Players.tokens(["not", "so", "bad"])
    explanation = ab.explain(
        lambda rows: rows.double() @ torch.tensor([2.0, 1.0, -1.0]).double(),
        torch.ones(1, 3, dtype=torch.int64),
        players=players,
        absence=0.0,
    )
    axes = with_errors(explanation, [1]).plot(kind="text_line").axes[0]
    frames = {text.get_text(): text.get_bbox_patch() for text in axes.texts if text.get_bbox_patch()}
    assert [name for name, frame in frames.items() if frame.get_linestyle() == ":"] == ["so"]
    assert f"dotted: {MEANING_OF_STYLE}" in axes.get_title()


def data_of(path):
    """The data of the only section of a page."""
    text = path.read_text(encoding="utf-8")
    return json.loads(text.partition('id="data">')[2].partition("</script>")[0])[0]


def test_reports_mark_what_is_not_determined(sampled, tmp_path):
    data = data_of(ab.write_report(sampled, tmp_path / "page.html"))
    for number, sample in enumerate(data["samples"]):
        expected = (~sampled.shapley.determined[number]).nonzero()[:, 0].tolist()
        assert sample.get("undetermined", []) == expected
    marked = {row["player"] for row in data["overall"] if row.get("unsure")}
    assert marked <= set((~sampled.shapley.determined_means).nonzero()[:, 0].tolist())
    effects = data_of(ab.write_report(three_terms(), tmp_path / "terms.html"))["samples"][0]["effects"]
    assert [effects["sets"][place] for place in effects["undetermined"]] == [[1]]
    assert effects["errorTexts"][:2] == ["0.1", "2"]
    assert effects["errors"][2] is None
    exact = data_of(ab.write_report(three_terms(None), tmp_path / "exact.html"))["samples"][0]
    assert exact["effects"].keys() == {"sets", "values", "texts", "hollow"}
    assert "undetermined" not in exact


def test_answers_name_no_player_that_is_not_determined():
    explanation = ab.explain(lambda rows: rows @ torch.tensor([2.0, 1.0]), torch.ones(1, 2), absence=0.0)
    assert "“x0 = 1” adds most" in answer(explanation, 0)
    unsure = with_errors(explanation, [0])
    assert "adds most" not in answer(unsure, 0)
    unsure = with_errors(explanation, [0, 1])
    assert answer(unsure, 0).endswith("; no player's part in it is determined.")


@pytest.mark.slow
def test_reports_show_what_is_not_determined_in_a_browser(sampled, browser, tmp_path):
    path = ab.write_report([sampled, explanation_of(three_terms()), three_terms()], tmp_path / "report.html")
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    messages = []
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready=yes]")
    assert messages == []
    shown = [player for player, _ in sampled.shapley.ranked()[:20]]
    expected = int((~sampled.shapley.determined[0, shown]).sum())
    assert len(page.query_selector_all("#result-0 [data-chart=shapley] rect[stroke-dasharray]")) == expected
    assert page.locator("#result-0 .unsure").first.is_visible()
    table = page.locator("#result-0 .players tbody").text_content()
    assert table.count("not determined") == int((~sampled.shapley.determined[0]).sum())
    for result in (1, 2):
        bars = page.query_selector_all(f"#result-{result} [data-chart=interactions] .bar rect")
        assert [bar.get_attribute("stroke-dasharray") for bar in bars] == [None, "2 2", None]
        assert page.locator(f"#result-{result} figure:has([data-chart=interactions]) .unsure").is_visible()
    page.screenshot(path=tmp_path / "page.png", full_page=True)
    page.close()
