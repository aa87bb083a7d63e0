"""The report in a browser: charts, controls, tips, printing, phones, and no use of the network."""

import os
import re
import shutil

import pytest

import absentia as ab
import test_report_results as results

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
REQUIRED = os.environ.get("ABSENTIA_REQUIRE_BROWSER") == "1"
OPTIONS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 360, "height": 740}


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None and not REQUIRED:
        pytest.skip("Chromium is not installed (ABSENTIA_REQUIRE_BROWSER=1 makes this a failure)")
    assert CHROMIUM, "Chromium must be installed: ABSENTIA_REQUIRE_BROWSER is 1"
    if REQUIRED:
        import playwright.sync_api as playwright
    else:
        playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as running:
        chromium = running.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    found = {
        "table": results.explanation(),
        "audit": results.audit(),
        "baseline": results.learned(),
        "images": results.image_explanation(),
        "sampled": results.sampled_explanation(),
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
    assert results.EVIL in texts(page, "#result-0 .players td:nth-child(2)")
    assert any(results.EVIL in text for text in texts(page, "#result-1 fieldset label"))
    assert any(text.startswith("<script>doc") for text in texts(page, "#result-0 [data-chart=shapley] svg text"))
    page.select_option("#result-0 [data-control=sample]", "2")
    assert page.title() == "What absence means to the model"
    assert page.messages == []


def test_choosing_a_sample_changes_text_charts_and_table(page):
    explanation = results.explanation()
    section = "#result-0"
    for number in (0, 2, 3):
        page.select_option(f"{section} [data-control=sample]", str(number))
        reading = page.text_content(f"{section} .reading")
        assert reading.startswith(f"Sample {number}: v(N) = ")
        assert f"{float(explanation.outputs[number]):.3g}".replace("-", "−") in reading
        order = explanation.shapley.values[number].abs().argsort(descending=True).tolist()
        assert texts(page, f"{section} .players td:nth-child(2)") == [results.NAMES[player] for player in order]
        assert len(page.query_selector_all(f"{section} [data-chart=shapley] .bar rect")) == len(results.NAMES)


def test_buttons_step_through_the_samples_and_stop_at_the_ends(page):
    back, forth = (page.locator(f"#result-0 [data-step='{step}']") for step in (-1, 1))
    assert back.is_disabled()
    for number in (1, 2, 3):
        forth.click()
        assert page.text_content("#result-0 .reading").startswith(f"Sample {number}:")
    assert forth.is_disabled()
    assert not back.is_disabled()


def test_the_waterfall_goes_from_all_absent_to_all_present(page):
    """Bars follow each other without gaps, and their lengths are proportional to the Shapley values."""
    explanation = results.explanation()
    values = explanation.shapley.values[0]
    ranked = values[values.abs().argsort(descending=True)].tolist()
    boxes = page.eval_on_selector_all(
        "#result-0 [data-chart=shapley] .bar rect",
        "bars => bars.map(bar => [Number(bar.getAttribute('x')), Number(bar.getAttribute('width'))])",
    )
    unit = boxes[0][1] / abs(ranked[0])
    place = boxes[0][0] if ranked[0] > 0 else boxes[0][0] + boxes[0][1]
    for value, (left, width) in zip(ranked, boxes, strict=True):
        assert width == pytest.approx(unit * abs(value), abs=0.3)
        assert (left if value > 0 else left + width) == pytest.approx(place, abs=0.3)
        place += unit * value


def test_an_order_filters_interactions_and_a_context_changes_the_values(page):
    section = "#result-0"
    everything = len(page.query_selector_all(f"{section} [data-chart=interactions] .bar rect"))
    page.select_option(f"{section} [data-control=order]", "1")
    singles = page.query_selector_all(f"{section} [data-chart=interactions] .bar rect")
    assert len(singles) == len(results.NAMES) < everything
    before = texts(page, f"{section} [data-chart=shapley] svg text")
    page.select_option(f"{section} [data-control=context]", "0")
    alone = texts(page, f"{section} [data-chart=shapley] svg text")
    assert alone != before
    assert "v(N)" in before
    assert "v(N)" not in alone  # values with no other player present do not add up to it


def test_hovering_shows_names_and_numbers(page):
    chart = page.locator("#result-0 [data-chart=shapley] svg")
    chart.scroll_into_view_if_needed()
    bar = page.locator("#result-0 [data-chart=shapley] .bar rect").first.bounding_box()
    before = len(texts(page, "#result-0 [data-chart=shapley] [aria-label=tip] text"))
    page.mouse.move(bar["x"] + bar["width"] / 2, bar["y"] + bar["height"] / 2)
    page.wait_for_selector("#result-0 [data-chart=shapley] [aria-label=tip] text")
    tip = " ".join(texts(page, "#result-0 [data-chart=shapley] [aria-label=tip] text"))
    explanation = results.explanation()
    player = int(explanation.shapley.values[0].abs().argmax())
    assert before == 0
    assert results.NAMES[player][:10] in tip
    assert re.search(r"[+−]\d", tip)


def test_a_method_is_chosen_by_keyboard_and_its_figures_shown(page):
    section = "#result-1"
    assert page.locator(f"{section} .method:visible").count() == 0
    assert len(page.query_selector_all(f"{section} [data-chart=removal] .sample line")) == 0
    page.focus(f"{section} input[type=radio]")
    page.keyboard.press("ArrowDown")
    (panel,) = page.locator(f"{section} .method:visible").all()
    chosen = page.evaluate("document.activeElement.parentElement.textContent.trim()")
    assert panel.locator("h3").text_content() == chosen
    assert len(page.query_selector_all(f"{section} [data-chart=removal] .sample line")) == 6
    assert len(page.query_selector_all(f"{section} [data-chart=agreement] .cell rect")) == 9


def test_images_have_a_heat_map_over_their_pixels(page):
    section = "#result-3"
    assert len(page.query_selector_all(f"{section} .pictures img")) == 2
    sizes = page.eval_on_selector_all(f"{section} .pictures img", "all => all.map(one => one.naturalWidth)")
    assert sizes == [8, 8]
    first = page.eval_on_selector_all(f"{section} .pictures img", "all => all.map(one => one.src)")
    assert len(page.query_selector_all(f"{section} .heat rect")) > 3
    page.select_option(f"{section} [data-control=sample]", "1")
    second = page.eval_on_selector_all(f"{section} .pictures img", "all => all.map(one => one.src)")
    assert first[0] != second[0]
    assert first[1] == second[1]  # zero, whatever the sample


def test_sampled_values_have_whiskers_and_no_interactions(page):
    section = "#result-4"
    assert (
        len(page.query_selector_all(f"{section} [data-chart=shapley] .whisker line")) == 20
    )  # the others' sum has none
    assert page.query_selector(f"{section} [data-chart=interactions]") is None
    assert "± " in page.text_content(f"{section} .players tbody")
    assert "10 others" in " ".join(texts(page, f"{section} [data-chart=shapley] svg text"))


def test_a_baseline_stands_in_the_range_of_the_data_and_classes_can_be_chosen(page):
    assert len(page.query_selector_all("#result-2 [data-chart=baseline] .value path")) == len(results.NAMES)
    assert "tenure (undetermined)" in page.text_content("#result-2 .entries")
    assert len(page.query_selector_all("#result-5 .pictures img")) == 2
    before = page.text_content("#result-6 .entries tbody")
    page.select_option("#result-6 [data-control=owner]", "1")
    assert page.text_content("#result-6 .entries tbody") != before


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_it_all_without_scrolling_sideways(open_page, scheme):
    page = open_page(viewport=PHONE, color_scheme=scheme)
    assert not scrolls_sideways(page)
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    page.locator("#result-1 input[type=radio]").nth(1).check()
    assert not scrolls_sideways(page)
    widths = page.eval_on_selector_all(".drawing svg", "all => all.map(one => one.getBoundingClientRect().width)")
    assert max(widths) <= PHONE["width"]
    assert page.messages == []


def test_charts_are_drawn_again_for_another_width(page):
    chart = "#result-0 [data-chart=shapley] svg"
    before = page.get_attribute(chart, "width")
    page.set_viewport_size(PHONE)
    page.wait_for_selector(f"{chart}:not([width='{before}'])")
    assert int(page.get_attribute(chart, "width")) <= PHONE["width"] < int(before)
    assert not scrolls_sideways(page)


def test_it_prints_with_all_details_and_without_controls(page):
    folded = page.locator("#result-1 details:not([open]) .settings").first
    assert not folded.is_visible()
    page.emulate_media(media="print")
    assert folded.is_visible()
    assert not page.locator("#result-0 .controls").is_visible()
    assert not page.locator("#result-1 .controls").is_visible()
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
