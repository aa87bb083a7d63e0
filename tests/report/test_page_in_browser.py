"""The report in a browser: charts, controls, tips, printing, phones, and no use of the network."""

import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import absentia as ab
import small_results as results
from absentia.plots.look import looks_of
from absentia.report.audit_section import audit_section
from absentia.report.explanation_section import explanation_section

pytestmark = pytest.mark.slow  # a browser is started, and most tests open the page anew
OLD_FILES = Path(__file__).parents[1] / "old_files"
DESKTOP = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}
WIDE = {"width": 1920, "height": 1080}
# The sections in the order of the page.
TABLE, IMAGES, SAMPLED, TEXT, CLOSE, CROWDED, AUDIT, CROSS, BASELINE, IMAGE_BASELINE, CLASSES = (
    f"#result-{number}" for number in range(11)
)


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    found = {
        "audit": results.audit(),
        "table": results.explanation(),
        "baseline": results.learned(),
        "images": results.image_explanation(),
        "sampled": results.sampled_explanation(),
        "text": results.text_explanation(),
        "close": results.close_explanation(),
        "crowded": results.crowded_explanation(),
        "image baseline": results.image_baseline(),
        "classes": results.learned(results.draw(2, 5), share="class", classes=results.torch.tensor([0, 1])),
        "cross": results.cross_audit(),
    }
    return ab.write_report(found, tmp_path_factory.mktemp("report") / "report.html").as_uri()


@pytest.fixture
def open_page(browser, address):
    """Open the report in a window of a given size, and keep messages and requests of the browser."""
    contexts = []

    def opened(viewport=DESKTOP, address=address, **options):
        context = browser.new_context(viewport=viewport, **options)
        contexts.append(context)
        page = context.new_page()
        page.messages = []
        page.on("console", lambda message: page.messages.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: page.messages.append(f"error: {error}"))
        page.on("requestfailed", lambda request: page.messages.append(f"failed: {request.url}"))
        page.on("request", lambda request: requested(page, request.url))
        page.goto(address)
        page.wait_for_selector("html[data-ready=yes]")
        return page

    def requested(page, url):
        if url != address and not url.startswith(("data:", "file:")):
            page.messages.append(f"requested {url}")

    yield opened
    for context in contexts:
        context.close()


@pytest.fixture
def page(open_page):
    return open_page()


def texts(page, selector):
    return [element.text_content() for element in page.query_selector_all(selector)]


def scrolls_sideways(page):
    return page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")


def test_it_opens_without_messages_and_every_chart_is_drawn(page):
    assert page.messages == []
    assert texts(page, "[data-chart]:empty") == []
    for chart in page.query_selector_all(".drawing[data-chart]"):
        name = chart.get_attribute("data-chart")
        assert chart.query_selector("svg[role=img][aria-label]"), name
        assert len(chart.query_selector_all("svg rect, svg path, svg circle")) > 1, name


def test_the_policy_is_in_force(page):
    page.evaluate("const s = document.createElement('style'); s.textContent = 'body {}'; document.head.append(s)")
    page.evaluate("fetch('https://example.invalid/').catch(() => 0)")
    page.wait_for_timeout(50)
    assert any("style-src" in text for text in page.messages)
    assert any("default-src" in text or "connect-src" in text for text in page.messages)


def test_a_name_that_is_a_script_is_text_and_runs_nothing(page):
    assert page.title() == "What absence means to the model"
    assert results.EVIL in texts(page, f"{TABLE} .players td:nth-child(2)")
    assert any(results.EVIL in text for text in texts(page, f"{AUDIT} fieldset label"))
    assert any(text.startswith("<script>doc") for text in texts(page, f"{TABLE} [data-chart=shapley] svg text"))
    page.select_option(f"{TABLE} [data-control=sample]", "2")
    assert page.title() == "What absence means to the model"
    assert page.messages == []


def test_choosing_a_sample_changes_text_charts_and_table(page):
    explanation = results.explanation()
    section = TABLE
    for number in (0, 2, 3):
        page.select_option(f"{section} [data-control=sample]", str(number))
        answer = page.text_content(f"{section} .answer")
        assert answer.startswith(f"Sample {number}, class {number % 3}: the output is ")
        assert f"is {float(explanation.outputs[number]):.4g}".replace("-", "−") in answer
        order = explanation.shapley.values[number].abs().argsort(descending=True).tolist()
        assert texts(page, f"{section} .players td:nth-child(2)") == [results.NAMES[player] for player in order]
        assert len(page.query_selector_all(f"{section} [data-chart=shapley] .bar rect")) == len(results.NAMES)


def test_buttons_step_through_the_samples_and_stop_at_the_ends(page):
    back, forth = (page.locator(f"{TABLE} [data-step='{step}']") for step in (-1, 1))
    assert back.is_disabled()
    for number in (1, 2, 3):
        forth.click()
        assert page.text_content(f"{TABLE} .answer").startswith(f"Sample {number}, ")
    assert forth.is_disabled()
    assert not back.is_disabled()


def test_the_waterfall_goes_from_all_absent_to_all_present(page):
    """Bars follow each other without gaps, and their lengths are proportional to the Shapley values."""
    explanation = results.explanation()
    values = explanation.shapley.values[0]
    ranked = values[values.abs().argsort(descending=True)].tolist()
    boxes = page.eval_on_selector_all(
        f"{TABLE} [data-chart=shapley] .bar rect",
        "bars => bars.map(bar => [Number(bar.getAttribute('x')), Number(bar.getAttribute('width'))])",
    )
    unit = boxes[0][1] / abs(ranked[0])
    place = boxes[0][0] if ranked[0] > 0 else boxes[0][0] + boxes[0][1]
    for value, (left, width) in zip(ranked, boxes, strict=True):
        assert width == pytest.approx(unit * abs(value), abs=0.3)
        assert (left if value > 0 else left + width) == pytest.approx(place, abs=0.3)
        place += unit * value


def test_an_order_filters_interactions_and_a_context_changes_the_values(page):
    section = TABLE
    everything = len(page.query_selector_all(f"{section} [data-chart=interactions] .bar rect"))
    page.select_option(f"{section} [data-control=order]", "1")
    singles = page.query_selector_all(f"{section} [data-chart=interactions] .bar rect")
    assert len(singles) == len(results.NAMES) < everything
    before = texts(page, f"{section} [data-chart=shapley] svg text")
    page.select_option(f"{section} [data-control=context]", "0")
    alone = texts(page, f"{section} [data-chart=shapley] svg text")
    assert alone != before
    assert any(text.startswith("all present: ") for text in before)
    # Values with no other player present do not add up to it.
    assert not any(text.startswith("all present: ") for text in alone)


def test_hovering_shows_names_and_numbers(page):
    chart = page.locator(f"{TABLE} [data-chart=shapley] svg")
    chart.scroll_into_view_if_needed()
    bar = page.locator(f"{TABLE} [data-chart=shapley] .bar rect").first.bounding_box()
    before = len(texts(page, f"{TABLE} [data-chart=shapley] [aria-label=tip] text"))
    page.mouse.move(bar["x"] + bar["width"] / 2, bar["y"] + bar["height"] / 2)
    page.wait_for_selector(f"{TABLE} [data-chart=shapley] [aria-label=tip] text")
    tip = " ".join(texts(page, f"{TABLE} [data-chart=shapley] [aria-label=tip] text"))
    explanation = results.explanation()
    player = int(explanation.shapley.values[0].abs().argmax())
    assert before == 0
    assert results.NAMES[player][:10] in tip
    assert re.search(r"[+−]\d", tip)


def test_a_method_is_chosen_by_keyboard_and_set_off(page):
    assert len(page.query_selector_all(f"{AUDIT} [data-chart=R] .sample line")) == 0
    page.focus(f"{AUDIT} input[type=radio]:checked")
    page.keyboard.press("ArrowUp")
    chosen = page.evaluate("document.activeElement.parentElement.textContent.trim()")
    last = results.audit().methods[results.audit().order[-1]]
    assert chosen.startswith(last)
    assert texts(page, f"{AUDIT} .all th.chosen") == [last, last]  # in both tables
    assert len(page.query_selector_all(f"{AUDIT} [data-chart=R] .sample line")) == 6
    assert len(page.query_selector_all(f"{AUDIT} [data-chart=agreement] .cell rect")) == 9


def test_every_chart_of_an_audit_gives_an_absence_the_same_colour(page):
    audit = results.audit()
    expected = [look.colour for look in looks_of([audit.methods[number] for number in audit.order])]
    symbols = page.eval_on_selector_all(
        f"{AUDIT} fieldset .symbol path", "all => all.map(one => one.getAttribute('fill'))"
    )
    assert symbols == expected
    for name in ("leak", "invention", "score", "length", "distance", "R", "strength"):
        chart = f"{AUDIT} [data-chart={name}]"
        fills = page.eval_on_selector_all(
            f"{chart} .dot :is(path, circle)", "all => all.map(one => one.closest('[fill]').getAttribute('fill'))"
        )
        assert fills == expected, name
        shown = texts(page, f"{chart} .shown text")
        assert shown == audit_section(audit).data["figures"][name]
    for lines in ("[data-chart=masking] .line", "[data-chart=masking] .thin", "[data-chart=orders] .line"):
        strokes = page.eval_on_selector_all(
            f"{AUDIT} {lines} path", "all => all.map(one => one.closest('[stroke^=\"#\"]').getAttribute('stroke'))"
        )
        assert strokes == expected, lines


def test_images_have_a_heat_map_over_their_pixels_in_the_colours_of_the_values(page):
    pictures = f"{IMAGES} .pictures img"
    sizes = page.eval_on_selector_all(pictures, "all => all.map(one => one.naturalWidth)")
    assert sizes == [8, 8]
    first = page.eval_on_selector_all(pictures, "all => all.map(one => one.src)")
    values = results.image_explanation().shapley.values[0]
    cells = page.eval_on_selector_all(
        f"{IMAGES} .heat .cell path:first-child",
        """all => all.map(one => [
            one.parentNode.dataset.players, getComputedStyle(one).fill, Number(one.getAttribute("fill-opacity"))
        ])""",
    )
    assert [int(player) for player, *_ in cells] == [0, 1, 2, 3]
    for (_, fill, opacity), value in zip(cells, values.tolist(), strict=True):
        assert fill == ("rgb(230, 159, 0)" if value >= 0 else "rgb(0, 114, 178)")
        assert opacity == pytest.approx(0.9 * abs(value) / float(values.abs().max()), abs=1e-4)
    most = f"{float(values.abs().max()):.4g}"
    assert texts(page, f"{IMAGES} .scale span") == [f"−{most}", "0", f"+{most}"]
    page.select_option(f"{IMAGES} [data-control=sample]", "1")
    second = page.eval_on_selector_all(pictures, "all => all.map(one => one.src)")
    assert first[0] != second[0]
    assert first[1] == second[1]  # zero, whatever the sample


def lit(page, selector):
    return page.eval_on_selector_all(f"{selector}.lit", "all => all.map(one => one.dataset.players)")


def test_hovering_over_a_bar_outlines_its_cell_and_the_reverse(page):
    bars = f"{IMAGES} [data-chart=shapley] .bar rect"
    cells = f"{IMAGES} .heat .cell"
    order = results.image_explanation().shapley.values[0].abs().argsort(descending=True).tolist()
    page.locator(bars).nth(2).hover(force=True)
    assert lit(page, cells) == [str(order[2])]
    width = "one => getComputedStyle(one.querySelector('.edge')).strokeWidth"
    assert page.locator(f"{cells}.lit").evaluate(width) == "3px"
    page.locator(cells).nth(1).hover()
    assert lit(page, cells) == ["1"]
    assert lit(page, bars) == ["1"]
    page.mouse.move(0, 0)
    assert lit(page, cells) == []


def test_hovering_over_an_interaction_outlines_all_of_its_cells(page):
    row = page.locator(f"{CROWDED} [data-chart=interactions] .bar rect").first
    row.hover(force=True)
    assert lit(page, f"{CROWDED} .heat .cell") == ["0", "1", "2", "3", "4", "5"]


def test_a_text_is_shown_as_a_sentence_whose_tokens_are_coloured(page):
    tokens = f"{TEXT} .sentence .token"
    assert texts(page, tokens) == results.WORDS
    assert " ".join(page.text_content(f"{TEXT} .sentence").split()) == " ".join(results.WORDS)
    values = results.text_explanation().shapley.values[0].tolist()
    classes = page.eval_on_selector_all(tokens, "all => all.map(one => one.classList[1])")
    assert classes == ["adds" if value >= 0 else "takes" for value in values]
    strengths = page.eval_on_selector_all(
        tokens, "all => all.map(one => parseInt(one.style.getPropertyValue('--strength')))"
    )
    most = max(map(abs, values))
    assert strengths == [pytest.approx(100 * abs(value) / most, abs=0.6) for value in values]
    backgrounds = page.eval_on_selector_all(tokens, "all => all.map(one => getComputedStyle(one).backgroundColor)")
    assert len(set(backgrounds)) > 5


@pytest.mark.parametrize("viewport", [PHONE, DESKTOP, WIDE], ids=lambda one: str(one["width"]))
def test_the_first_screen_has_the_answer_and_its_picture(open_page, tmp_path, viewport):
    found = {"an audit": results.audit(), "a digit": results.image_explanation()}
    page = open_page(viewport, ab.write_report(found, tmp_path / "digit.html").as_uri())
    answer, picture = (page.locator(one).first.bounding_box() for one in (".answer", ".heat"))
    assert page.locator(".answer").first.text_content() == explanation_section(results.image_explanation()).answer
    assert answer["y"] + answer["height"] < picture["y"]
    assert picture["y"] + picture["height"] < viewport["height"]
    assert picture["width"] > min(300, 0.85 * viewport["width"])
    table = open_page(viewport, ab.write_report(results.explanation(), tmp_path / "table.html").as_uri())
    waterfall = table.locator("[data-chart=shapley] svg").bounding_box()
    assert waterfall["y"] + waterfall["height"] < viewport["height"]


@pytest.mark.parametrize("viewport", [DESKTOP, WIDE], ids=lambda one: str(one["width"]))
def test_no_row_of_charts_is_half_empty_and_no_table_is_cut_off(open_page, viewport):
    page = open_page(viewport)
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    free = page.eval_on_selector_all(
        ".charts",
        """all => all.map(row => {
            const ends = new Map();
            for (const {offsetTop, offsetLeft, offsetWidth} of row.children)
                ends.set(offsetTop, Math.max(ends.get(offsetTop) ?? 0, offsetLeft + offsetWidth));
            return Math.max(...[...ends.values()].map(end => row.offsetLeft + row.offsetWidth - end));
        })""",
    )
    assert max(free) <= 1
    cut = page.eval_on_selector_all(".scroll", "all => all.filter(one => one.scrollWidth > one.clientWidth).length")
    assert cut == 0


@pytest.mark.parametrize("viewport", [PHONE, DESKTOP], ids=lambda one: str(one["width"]))
def test_labels_can_be_read_and_stay_inside(open_page, viewport):
    page = open_page(viewport)
    outside = page.evaluate(
        """() => [...document.querySelectorAll('.drawing svg text')].filter(text => {
            const box = text.getBoundingClientRect();
            if (!text.textContent.trim()) return false;
            return box.left < -1 || box.right > innerWidth + 1 || parseFloat(getComputedStyle(text).fontSize) < 8.5;
        }).map(text => text.textContent)"""
    )
    assert outside == []


def test_every_tick_of_a_logarithmic_axis_has_its_number(page):
    for chart in ("curve", "orders"):
        for axis in page.query_selector_all(f"[data-chart={chart}] [aria-label='y-axis tick label']"):
            shown = [text.text_content() for text in axis.query_selector_all("text")]
            assert len(shown) > 1
            assert all(shown), shown


def test_bars_are_named_by_their_categories_and_controls_by_one_line(open_page, tmp_path):
    players = ab.Players.features(["city", "age"], {"city": ["Bern", "Oslo"]})
    rows = torch.tensor([[1.0, -30.5], [0.0, 41.0]])
    found = ab.explain(lambda x: x[:, 0] * 30 + x[:, 1], rows, players=players, absence=0.0)
    page = open_page(PHONE, ab.write_report(found, tmp_path / "city.html").as_uri())
    chart = "[data-chart=shapley]"
    names = texts(page, f"{chart} [aria-label='y-axis tick label'] text")
    assert names == ["age = −30.5", "city = Oslo"]
    ends = [text for text in texts(page, f"{chart} svg text") if text.startswith("all ")]
    assert ends == ["all absent: 0", "all present: −0.5"]
    page.select_option("[data-control=sample]", "1")
    assert "city = Bern" in texts(page, f"{chart} [aria-label='y-axis tick label'] text")
    assert page.locator("div.controls label").bounding_box()["height"] < 30


def test_the_ticks_of_an_axis_differ(page):
    found = page.eval_on_selector_all(
        ".drawing svg [aria-label$='axis tick label']",
        "all => all.map(one => [...one.querySelectorAll('text')].map(text => text.textContent).filter(Boolean))",
    )
    axes = [axis for axis in found if all(re.match(r"−?\d", text) for text in axis)]  # without names of players
    assert sum(len(axis) > 1 for axis in axes) > 20
    for axis in axes:
        assert len(set(axis)) == len(axis), axis
    values = [axis for axis in axes if any(text.startswith("−2.12") for text in axis)]
    assert values, "the axis of the close values is there"


def test_no_two_interactions_look_the_same(page):
    for section in (TABLE, TEXT, CROWDED):
        chart = f"{section} [data-chart=interactions]"
        rows = page.eval_on_selector_all(
            f"{chart} .matrix g",
            "all => all.map(row => [...row.children].map(dot => dot.getAttribute('class')).join(' '))",
        ) or texts(page, f"{chart} [aria-label='y-axis tick label'] text")
        assert len(rows) == len(page.query_selector_all(f"{chart} .bar rect")) > 1
        assert len(set(rows)) == len(rows), section


def test_interactions_of_more_than_53_players_are_those_of_their_sets(open_page, tmp_path):
    """As the bits of a number, the last players would be lost: a script's numbers have 53 bits."""
    sets = [(0, 53), (54, 55, 59), (1, 58), (59,), (0, 52), (59,), (0, 52)]
    effects = torch.tensor([4.0, -3.0, 2.0, 1.0, 1e-9, 5.0, -6.0], dtype=torch.float64)
    terms = results.listed_terms(sets, effects, players=60, owners=[0, 0, 0, 0, 0, 1, 1], noise=1e-8)
    explanation = replace(results.wide_explanation(samples=2, players=60), interactions=terms)
    page = open_page(DESKTOP, ab.write_report(explanation, tmp_path / "listed.html").as_uri())
    chart = "[data-chart=interactions]"
    players = f"{chart} .bar rect"

    def drawn():
        return page.eval_on_selector_all(players, "all => all.map(one => one.dataset.players)")

    assert page.messages == []
    assert drawn() == ["0 53", "54 55 59", "1 58", "59"]  # the last one is within rounding error
    names = texts(page, f"{chart} [aria-label='y-axis tick label'] text")
    assert names == ["x0 & x53", "x54 & x55 & x59", "x1 & x58", "x59"]
    assert sorted(texts(page, f"{chart} .shown text")) == sorted(["+4", "−3", "+2", "+1"])
    orders = texts(page, "[data-control=order] option")
    assert [order.strip() for order in orders] == ["3 (all)", "2", "1"]
    page.select_option("[data-control=order]", "2")
    assert drawn() == ["0 53", "1 58", "59"]
    page.select_option("[data-control=sample]", "1")
    assert drawn() == ["0 52", "59"]
    assert len(page.query_selector_all("[data-chart=profile] .bar rect")) == 3  # up to the largest order
    assert page.query_selector("[data-chart=curve] svg")  # of listed sets, too


def test_effects_with_an_exponent_have_bars(open_page, tmp_path):
    """A script that read numbers from their texts, +2e−06, drew none."""
    weights = torch.tensor([1.0, 2e-6]).double()
    found = ab.explain(lambda rows: rows @ weights, torch.ones(1, 2).double(), absence=0.0)
    page = open_page(DESKTOP, ab.write_report(found, tmp_path / "small.html").as_uri())
    chart = "[data-chart=interactions]"
    assert "+2e−06" in texts(page, f"{chart} .shown text")
    assert len(page.query_selector_all(f"{chart} .bar rect")) == len(texts(page, f"{chart} .shown text")) == 2


def test_numbers_beside_bars_are_those_that_python_writes(page):
    explanation = results.explanation()
    shown = texts(page, f"{TABLE} [data-chart=shapley] .shown text")
    assert sorted(shown) == sorted(text for _, text in explanation.shapley.ranked(0))
    effects = explanation.interactions.top(15)
    sure = [f"{one.effect:+.4g}".replace("-", "−") for one in effects if one.measurable]
    assert sorted(texts(page, f"{TABLE} [data-chart=interactions] .shown text")) == sorted(sure)


@pytest.mark.parametrize(
    ("word", "drawn"),
    [
        ("Whiskers", ".whisker line"),
        ("standard errors", ".whisker line"),
        ("ashed", ".level line[stroke-dasharray], .level[stroke-dasharray] line"),
        ("hollow", ".bar rect[fill=transparent], .value [fill='var(--paper)']"),
        ("line is", ".level line"),
    ],
)
def test_what_a_caption_speaks_of_is_drawn(page, word, drawn):
    figures = page.locator("figure.chart").all()
    spoken = 0
    for figure in figures:
        note = figure.locator(".note")
        if note.count() and word in note.inner_text():
            spoken += 1
            assert figure.locator(drawn).count(), f"{figure.locator('h3').first.text_content()}: {note.inner_text()}"
    assert spoken or word in ("line is", "Whiskers")


def test_a_page_of_200_samples_and_16_players_is_small_and_opens(browser, tmp_path):
    path = ab.write_report(results.large_explanation(), tmp_path / "large.html")
    assert path.stat().st_size < 5_000_000
    page = browser.new_page(viewport=DESKTOP)
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready=yes]", timeout=20_000)  # benchmarks/report.py measures how long it takes
    page.close()


def test_sampled_values_and_interactions_have_whiskers(page):
    section = SAMPLED
    assert (
        len(page.query_selector_all(f"{section} [data-chart=shapley] .whisker line")) == 20
    )  # the others' sum has none
    assert len(page.query_selector_all(f"{section} [data-chart=overall] .whisker line")) == 20
    assert not page.query_selector_all(f"{TABLE} [data-chart=overall] .whisker line")
    assert page.query_selector_all(f"{section} [data-chart=interactions] .whisker line")
    assert not page.query_selector_all(f"{TABLE} [data-chart=interactions] .whisker line")
    assert "± " in page.text_content(f"{section} .players tbody")
    assert "10 others" in " ".join(texts(page, f"{section} [data-chart=shapley] svg text"))


def test_a_baseline_stands_in_the_range_of_the_data_and_classes_can_be_chosen(page):
    assert len(page.query_selector_all(f"{BASELINE} [data-chart=baseline] .value path")) == len(results.NAMES)
    assert "tenure (undetermined)" in page.text_content(f"{BASELINE} .entries")
    assert len(page.query_selector_all(f"{IMAGE_BASELINE} .pictures img")) == 2
    before = page.text_content(f"{CLASSES} .entries tbody")
    page.select_option(f"{CLASSES} [data-control=owner]", "1")
    assert page.text_content(f"{CLASSES} .entries tbody") != before


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_it_all_without_scrolling_sideways(open_page, scheme):
    page = open_page(viewport=PHONE, color_scheme=scheme)
    assert not scrolls_sideways(page)
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    page.locator(f"{AUDIT} input[type=radio]").nth(1).check()
    assert not scrolls_sideways(page)
    widths = page.eval_on_selector_all(".drawing svg", "all => all.map(one => one.getBoundingClientRect().width)")
    assert max(widths) <= PHONE["width"]
    assert page.messages == []


def test_charts_are_drawn_again_for_another_width(page):
    chart = f"{TABLE} [data-chart=shapley] svg"
    before = page.get_attribute(chart, "width")
    page.set_viewport_size(PHONE)
    page.wait_for_selector(f"{chart}:not([width='{before}'])")
    assert int(page.get_attribute(chart, "width")) <= PHONE["width"] < int(before)
    assert not scrolls_sideways(page)


def test_it_prints_with_all_details_and_without_controls(page):
    folded = page.locator(f"{AUDIT} details:not([open]) .settings").first
    assert not folded.is_visible()
    page.emulate_media(media="print")
    assert folded.is_visible()
    assert not page.locator(f"{TABLE} .controls").is_visible()
    assert not page.locator(f"{AUDIT} .controls").is_visible()
    page.emulate_media(media="screen")
    printed = page.pdf(format="A4")
    assert printed.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) >= 8  # each result begins on a new page
    assert b"/Font" in printed
    assert not folded.is_visible()  # and is closed again afterwards


def test_without_scripts_the_verdict_and_the_figures_are_there(browser, address):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address)
    words = page.text_content("body")
    audit = results.audit()
    assert audit.verdict[0] in words
    assert "scripts are switched off" in words
    context.close()


def test_old_audits_and_lengths_that_are_far_apart_are_drawn(open_page, tmp_path):
    audit = results.audit()
    lengths = audit.companions.log_terms.clone()
    lengths[1] += math.log(400)
    found = {
        "old": ab.load(OLD_FILES / "audit.safetensors"),
        "older": ab.load(OLD_FILES / "audit_format3.safetensors"),
        "one sample": results.audit(samples=1),
        "far apart": replace(audit, companions=replace(audit.companions, log_terms=lengths)),
    }
    page = open_page(DESKTOP, ab.write_report(found, tmp_path / "audits.html").as_uri())
    assert page.messages == []
    assert texts(page, "[data-chart]:empty") == []
    old, _, single, far = (texts(page, f"#result-{number} [data-chart=length] svg text") for number in range(4))
    assert {"0", "2", "4"} <= set(old)
    assert {"0", "2", "4"} <= set(single)
    assert {"1", "10", "100", "1000"} <= set(far)
    starts = page.eval_on_selector_all(
        "#result-3 [data-chart=length] .bar rect", "bars => bars.map(bar => Number(bar.getAttribute('x')))"
    )
    assert len(set(starts)) == 1  # all bars begin at a length of 1
