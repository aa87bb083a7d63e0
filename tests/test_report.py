"""The report holds the numbers of its results, escapes their text, and fetches nothing."""

import base64
import hashlib
import io
import json
import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import combinations
from pathlib import Path

import pytest
import torch
from PIL import Image
from torch.utils._python_dispatch import TorchDispatchMode

import absentia as ab
import test_report_results as results
from absentia.auditing.own_games import Companions
from absentia.coalitions import coalition_sizes
from absentia.plots.look import LOOKS, LOWERS, NEUTRAL, RAISES, looks_of
from absentia.report import rendering
from absentia.report.audit_section import audit_section, how_sure
from absentia.report.baseline_section import baseline_section
from absentia.report.explanation_section import MOST_SAMPLES, explanation_section
from absentia.report.pixels import ImageScale, png
from absentia.report.shown_interactions import (
    KEPT_UP_TO_EACH_ORDER,
    curve_counts,
    interactions_by_sample,
    shown_effects,
    sparsity_curve,
    strongest,
)
from absentia.report.shown_numbers import numbers, texts
from absentia.text import written

FOLDER = Path(rendering.__file__).parent
OLD_FILES = Path(__file__).parent / "old_files"


class Page(HTMLParser):
    """A parsed page: elements with their attributes, the content of scripts and styles, and the visible text."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.blocks, self.text, self._inside = [], [], [], None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self._inside = (tag, dict(attrs))
            self.blocks.append([tag, dict(attrs), ""])

    def handle_endtag(self, tag):
        if tag in ("script", "style"):
            self._inside = None

    def handle_data(self, data):
        if self._inside:
            self.blocks[-1][2] += data
        else:
            self.text.append(data)

    def data(self):
        (block,) = [text for tag, attrs, text in self.blocks if attrs.get("type") == "application/json"]
        return json.loads(block)

    def words(self):
        return " ".join(" ".join(self.text).split())


def render(found, path, **options):
    return Page(ab.write_report(found, path / "report.html", **options).read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def everything():
    return {
        results.EVIL: results.explanation(),
        "methods": results.audit(),
        "baseline": results.learned(),
        "images": results.image_explanation(),
        "cross": results.cross_audit(),
    }


@pytest.fixture(scope="module")
def page(everything, tmp_path_factory):
    return render(everything, tmp_path_factory.mktemp("page"), title=f"Title {results.EVIL}")


def test_what_comes_from_data_stays_text(page):
    scripts = [(attrs, text) for tag, attrs, text in page.blocks if tag == "script"]
    assert len(scripts) == 1 + len(rendering.SCRIPTS)  # the data, and our own: no name has become another
    assert not any("document.title = 'run'" in text for attrs, text in scripts if "type" not in attrs)
    assert results.EVIL in page.words()
    explained, _, audit = page.data()[:3]
    assert explained["names"] == results.NAMES
    assert results.EVIL in audit["methods"]
    assert {tag for tag, _ in page.elements} & {"iframe", "object", "embed", "link", "base", "form"} == set()
    assert not [attrs for _, attrs in page.elements if any(name.startswith("on") for name in attrs)]


def test_no_text_in_the_data_can_end_its_element(everything, tmp_path):
    text = ab.write_report(everything, tmp_path / "report.html").read_text(encoding="utf-8")
    block = text.split('id="data">')[1].split("</script>")[0]
    assert not re.search("[<>&\u2028\u2029]", block)
    assert json.loads(rendering.json_block(["\u2028</script><!--&"])) == ["\u2028</script><!--&"]


def test_the_policy_allows_the_page_its_own_scripts_and_styles_and_nothing_else(page):
    (policy,) = [attrs["content"] for _, attrs in page.elements if attrs.get("http-equiv")]
    rules = {rule.split()[0]: rule.split()[1:] for rule in policy.split("; ")}
    assert rules["default-src"] == ["'none'"]
    assert rules["img-src"] == ["data:"]
    assert "unsafe" not in policy
    assert "http" not in policy

    def hashes(kind):
        shown = [text for tag, attrs, text in page.blocks if tag == kind and "type" not in attrs]
        return {f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in shown}

    assert set(rules["script-src"]) == hashes("script")
    assert hashes("style") < set(rules["style-src"])  # and the style that the charting library brings
    assert len(rules["style-src"]) == 2


def test_the_policy_comes_before_scripts_and_styles(page):
    order = [tag for tag, attrs in page.elements if attrs.get("http-equiv") or tag in ("script", "style")]
    assert order[0] == "meta"


def test_nothing_is_fetched(page):
    addresses = [value for _, attrs in page.elements for name, value in attrs.items() if name in ("src", "href")]
    assert addresses
    assert all(address.startswith("#") for address in addresses)
    style = page.blocks[0][2]
    assert "url(" not in style
    assert "@import" not in style


def test_the_vendored_files_are_those_that_the_readme_lists():
    readme = (FOLDER / "vendor" / "README.md").read_text()
    for file in ("d3.min.js", "plot.umd.min.js"):
        content = (FOLDER / "vendor" / file).read_bytes()
        assert f"`{hashlib.sha256(content).hexdigest()}`" in readme
        assert b"</script" not in content
    assert "7.9.0" in (FOLDER / "vendor" / "d3.min.js").read_text()[:100]
    assert "Permission to use" in (FOLDER / "vendor" / "d3.LICENSE").read_text()
    assert "Permission to use" in (FOLDER / "vendor" / "plot.LICENSE").read_text()


def test_the_colours_are_those_of_the_pictures():
    style, script = ((FOLDER / name).read_text() for name in ("report.css", "symbols.js"))
    for name, colour in {"raises": RAISES, "lowers": LOWERS, "neutral": NEUTRAL}.items():
        assert f"--{name}: {colour.lower()}" in style.lower()
    symbols = script.split("SYMBOLS = {")[1].split("};")[0]
    drawn = set(re.findall(r'(?:^|[ "])([^ "]+?)"?: (?:d3|polygon|saltire)', symbols))
    assert drawn == {marker for _, marker in LOOKS.values()}


def test_an_absence_has_one_colour_in_the_report_and_in_the_picture(everything, page):
    """Whatever its place is: by the word that names it."""
    from matplotlib.colors import to_rgb

    audit, data = everything["methods"], page.data()[2]
    figure = audit.plot()
    expected = [to_rgb(colour) for colour, _ in data["looks"]]
    for chart in figure.axes[:2]:  # bars, in the audit's order
        assert [bar.get_facecolor()[:3] for bar in chart.patches[: len(audit.methods)]] == expected
    scores = figure.axes[2].lines[: 2 * len(audit.methods) : 2]  # each is followed by that without inventions
    assert [to_rgb(line.get_color()) for line in scores] == expected
    place = data["methods"].index("zero")
    assert data["looks"][place] == list(LOOKS["zero"])
    assert looks_of(["b", "zero", "a"]) == looks_of(["a", "zero", "b"])[::-1]
    assert len({look.colour for look in looks_of(["own", "zero", "mean", "other"])}) == 4


def test_the_verdict_comes_first_and_every_figure_is_there(page, everything):
    audit, words = everything["methods"], page.words()
    for sentence in (*audit.verdict, *audit.warnings):
        assert sentence.replace("-", "−") in words.replace("-", "−")
    parts = (
        audit.verdict[0],
        "Does it leak or invent?",
        "What do masked samples tell?",
        "How long is its account?",
        "Is it plausible?",
        "Agreement of Shapley values",
        "The paper's measure: R",
    )
    places = [words.index(part) for part in parts]
    assert places == sorted(places)
    for sentence in audit.notes_on_R:
        assert words.index(sentence) > places[-1]
    assert page.data()[2]["methods"][0] == audit.methods[audit.order[0]]
    assert f"{audit.record.costs['zero'].evaluations:,}" in words


def test_the_numbers_are_the_results_own(page, everything):
    explained, images, audit, _, learned = page.data()
    first = everything[results.EVIL]
    for number, sample in enumerate(explained["samples"]):
        assert sample["values"] == pytest.approx(first.shapley.values[number].tolist(), rel=1e-3)
        assert sample["output"] == pytest.approx(float(first.outputs[number]), rel=1e-3)
        assert sample["base"] + sum(sample["values"]) == pytest.approx(sample["output"], rel=5e-3)
        assert sample["inputs"] == [f"{value:.4g}".replace("-", "−") for value in first.x[number].tolist()]
        assert [(player, text) for player, text in sample["ranked"]] == first.shapley.ranked(number)
        assert sample["standIns"] == ["0.25"] * 5
    found = everything["methods"]
    order = [found.methods.index(name) for name in audit["methods"]]
    assert order != list(range(3))  # so that the next lines can fail
    for key, values in found.columns().items():
        if key in audit["values"]:
            assert audit["values"][key] == pytest.approx(values[order].tolist(), rel=1e-3)
    profile = found.companions.order_profile().value[order[0]]
    assert audit["orders"]["texts"][0] == texts(profile, 3)
    assert audit["orders"]["values"][0] == pytest.approx(profile.tolist(), rel=1e-2)
    scores = found.curve.scores.mean(1)
    assert audit["scores"]["texts"][1] == texts(scores[order[1]], 3)
    assert audit["scores"]["values"][1] == pytest.approx(scores[order[1]].tolist(), rel=1e-2)
    assert audit["recalibrated"]["texts"][1] == texts((scores - found.curve.inventions)[order[1]], 3)
    assert {"leak", "invention", "score", "length", "distance", "R"} <= set(audit["values"])
    invention, error = found.invention.value[order], found.invention.error[order]
    assert audit["whiskers"]["invention"][0] == pytest.approx((invention - 2 * error).tolist(), rel=1e-3)
    length = found.length.value[order]
    factor = (2 * found.length.error[order] / length).exp()
    assert audit["whiskers"]["length"][0] == pytest.approx((length / factor).tolist(), rel=1e-3)
    assert audit["whiskers"]["length"][1] == pytest.approx((length * factor).tolist(), rel=1e-3)
    assert audit["leakLimit"] == pytest.approx(0.05 * float(found.fully_masked.prior.mean()), rel=1e-3)
    assert audit["inventionLimit"] == 1  # the variance itself
    assert learned["values"][0] == pytest.approx(everything["baseline"].values.tolist(), rel=1e-3)
    assert learned["quantiles"][0] == pytest.approx(everything["baseline"].quantiles[:, 0].tolist(), rel=1e-3)
    assert images["picture"]["labels"] == everything["images"].players.labels[0].flatten().tolist()


def test_the_strongest_effects_up_to_each_order_are_kept():
    players = 8
    effects = results.draw(2, 2**players)
    for row in effects.tolist():
        kept = strongest(torch.tensor(row), coalition_sizes(players))
        sets = sorted(range(1, 2**players), key=lambda number: -abs(row[number]))
        wanted = set()
        for order in range(1, players + 1):
            wanted |= set([number for number in sets if number.bit_count() <= order][:KEPT_UP_TO_EACH_ORDER])
        assert kept.tolist() == [number for number in sets if number in wanted]


def test_a_sparsity_curve_is_the_error_of_values_rebuilt_by_hand():
    table = ab.ValueTable(results.draw(2, 16))
    interactions = ab.harsanyi(table)
    curve = sparsity_curve(interactions)
    for sample in range(2):
        effects, values = interactions.effects[sample].tolist(), table.values[sample]
        ranked = sorted(range(1, 16), key=lambda number: -abs(effects[number]))
        for place, count in enumerate(curve_counts(4)):
            kept = {0, *ranked[:count]}
            rebuilt = [sum(effects[part] for part in kept if part & number == part) for number in range(16)]
            error = (torch.tensor(rebuilt, dtype=torch.float64) - values).square().mean().sqrt() / values.std(
                correction=0
            )
            assert float(curve[sample, place]) == pytest.approx(float(error), abs=1e-9)


def test_effects_that_rounding_could_have_made_are_marked():
    interactions = ab.harsanyi(ab.ValueTable([0.0, 1.0, 1.0, 2.0 + 1e-14]))
    (found,) = interactions_by_sample(replace(interactions, noise=torch.tensor([1e-10], dtype=torch.float64)), 1)
    assert [found["effects"]["sets"][place] for place in found["effects"]["hollow"]] == [(0, 1)]


def test_sets_of_any_number_of_players_are_lists_of_their_numbers():
    effects = torch.tensor([9.0, 1.0, -3.0, 2e-7], dtype=torch.float64)
    terms = results.listed_terms([(), (0, 999), (53, 54, 55), (7,)], effects, players=1000, noise=1e-6)
    assert shown_effects(terms, 0) == {
        "sets": [(53, 54, 55), (0, 999), (7,)],
        "values": [-3, 1, 2e-7],
        "texts": ["−3", "+1", "+2e−07"],
        "hollow": [2],
    }


def test_the_strongest_sets_are_kept_if_there_is_no_room_for_all():
    sets = [(number, *range(20, 1019)) for number in range(15)]
    shown = shown_effects(results.listed_terms(sets, torch.linspace(1, 2, 15), players=1019), 0)
    assert shown["sets"] == sets[:6:-1]  # the page holds up to 8,640 players of all sets
    assert len(shown["values"]) == len(shown["texts"]) == 8


def test_a_constant_game_has_no_sparsity_curve_but_a_page(tmp_path):
    flat = ab.explain(lambda rows: 0 * rows.sum(1) + 1, results.draw(2, 3), absence=ab.Baseline(0.0))
    (data,) = render(flat, tmp_path).data()
    assert data["samples"][0]["curve"] == {"values": [None] * 4, "texts": ["–"] * 4}
    assert data["samples"][0]["values"] == [0, 0, 0]


@pytest.mark.parametrize("channels", [1, 3])
def test_a_png_has_the_pixels_it_was_made_of(channels):
    pixels = torch.randint(256, (5, 7, channels), dtype=torch.uint8)
    kind, content = png(pixels).split(",")
    assert kind == "data:image/png;base64"
    image = Image.open(io.BytesIO(base64.b64decode(content)))
    assert image.mode == {1: "L", 3: "RGB"}[channels]
    assert list(image.tobytes()) == pixels.flatten().tolist()


def test_pictures_share_one_scale_and_shrink_to_fit():
    images = torch.stack([torch.full((1, 300, 200), -1.0), torch.full((1, 300, 200), 3.0)])
    scale = ImageScale.of(images, count=2)
    assert (scale.low, scale.high, scale.height, scale.width) == (-1, 3, 128, 85)
    assert ImageScale.of(images, count=10_000).height == 16
    decoded = [Image.open(io.BytesIO(base64.b64decode(scale.address(image).split(",")[1]))) for image in images]
    assert [set(image.tobytes()) for image in decoded] == [{0}, {255}]
    assert ImageScale(0, 1, 2, 2).labels(torch.arange(16).view(4, 4)) == [5, 7, 13, 15]


def test_images_of_two_axes_are_shown_as_images(tmp_path):
    """Segments of (height, width) are areas; tokens with their embeddings are not."""
    segments = ab.Players.segments(torch.tensor([[0, 0, 1], [0, 1, 1]]))
    drawn = ab.explain(
        lambda rows: rows.sum((1, 2)), results.draw(2, 2, 3), players=segments, absence=ab.Baseline(0.0)
    )
    tokens = ab.Players.tokens(2, embedding=3)
    told = ab.explain(lambda rows: rows.sum((1, 2)), results.draw(2, 2, 3), players=tokens, absence=ab.Baseline(0.0))
    first, second = render([drawn, told], tmp_path).data()
    assert first["picture"]["labels"] == [0, 0, 1, 0, 1, 1]
    assert first["samples"][1]["image"].startswith("data:image/png")
    assert "picture" not in second
    assert second["text"]
    assert not first["text"]
    assert len(second["samples"][0]["inputs"][0].split(", ")) == 3


class Largest(TorchDispatchMode):
    """Keep the size in bytes of the largest tensor that is made."""

    size = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        made = function(*args, **(kwargs or {}))
        if isinstance(made, torch.Tensor) and function._schema.returns[0].alias_info is None:  # no view
            self.size = max(self.size, made.numel() * made.element_size())
        return made


def test_images_are_written_one_by_one():
    """A copy of all of them in double precision would take 16 times the memory of what is shown."""
    images = results.draw(20, 3, 64, 64).float()
    players = ab.Players.grid((3, 64, 64), (2, 2))
    found = ab.explain(lambda rows: rows.sum((1, 2, 3)), images, players=players, absence=0.0)
    with Largest() as largest:
        explanation_section(found)
    assert 0 < largest.size <= 8 * images[0].numel()


def test_entries_of_a_baseline_are_named_by_their_players():
    found = results.learned(results.draw(4), ("a", "b"), torch.tensor([0, 1, 0, -1]))
    assert baseline_section(found).data["names"] == ["a 0", "b", "a 1"]  # the last is always present


def test_baselines_of_classes_and_images_and_old_files_have_a_section():
    by_class = results.learned(results.draw(2, 5), share="class", classes=torch.tensor([3, 7]))
    assert baseline_section(by_class).data["owners"] == ["class 3", "class 7"]
    assert len(baseline_section(by_class).data["values"]) == 2
    image = baseline_section(results.image_baseline())
    assert image.data["images"][0].startswith("data:image/png")
    assert image.data["median"].startswith("data:image/png")
    old = baseline_section(results.learned(quantiles=None, players=None))  # as in files of the first format
    assert "quantiles" not in old.data
    assert old.data["names"] == ["x0", "x1", "x2", "x3", "x4"]


def test_a_long_history_is_thinned_and_keeps_its_last_row():
    rows = torch.arange(1003.0).double()  # not a multiple of the rows that are skipped
    kept = baseline_section(results.learned(history=torch.stack([rows, 2000 - rows], dim=1))).data["history"]
    assert len(kept) <= 301
    assert kept[0] == [0, 2000, "0 evaluations: 2000"]
    assert kept[-1] == [1002, 998, "1,002 evaluations: 998"]


def test_the_caption_of_a_history_says_what_is_drawn(tmp_path):
    learned = results.learned()
    faithful = replace(learned, record=replace(learned.record, loss="faithful"))
    assert "The lowest loss so far" in render(learned, tmp_path).words()
    assert "A running mean over the steps" in render(faithful, tmp_path).words()
    assert "lowest loss" not in render(faithful, tmp_path).words()


def test_numbers_are_short_and_json_knows_them():
    values = torch.tensor([float("nan"), float("inf"), 1e-30, 123456.0, 0.1 + 0.2], dtype=torch.float64)
    assert numbers(values) == [None, None, 1e-30, 123456, 0.3]
    assert numbers(values[3:], digits=3) == [123000, 0.3]
    assert numbers(torch.tensor([1, 2])) == [1, 2]


def test_what_has_no_figure_is_left_empty(tmp_path):
    audit = results.audit(samples=1)  # which has no errors
    masked = audit.removal.masked.clone()
    masked[0] = torch.nan  # as that of an absence with a model of its own
    audit = replace(audit, removal=replace(audit.removal, masked=masked))
    explained = replace(results.explanation(), stand_ins=None)
    page = render([audit, explained], tmp_path)
    explained, audited = page.data()
    place = audited["methods"].index("zero")
    assert [value is None for value in audited["values"]["R"]] == [k == place for k in range(3)]
    assert audited["figures"]["R"][place] == "–"
    low, high = audited["whiskers"]["R"]
    assert low == high == audited["values"]["R"]
    assert "standIns" not in explained["samples"][0]


def charts_of(page):
    return [attrs["data-chart"] for _, attrs in page.elements if "data-chart" in attrs]


@pytest.mark.parametrize("name", ["audit", "audit_format3"])
def test_an_audit_of_an_older_version_shows_what_it_has(name, tmp_path):
    old = ab.load(OLD_FILES / f"{name}.safetensors")
    page = render(old, tmp_path)
    words = page.words()
    assert "leak and invention were not measured. Run the audit again." in words
    assert charts_of(page) == ["length", "orders", "distance", "agreement", "R", "strength"]
    assert "Does it leak or invent?" not in words
    assert page.data()[0]["figures"]["leak"] == ["–", "–"]
    assert page.data()[0]["leakLimit"] is None
    assert "recalibrated" not in page.data()[0]


def judged(audit, **changes):
    """Return the audit with another judgement."""
    changed = replace(audit)
    vars(changed)["judgement"] = replace(audit.judgement, **changes)  # where the cached property looks first
    return changed


def test_the_page_says_how_sure_the_answer_is(tmp_path):
    audit = results.audit()
    assert audit.judgement.stages[0] == "best"
    audit = judged(audit, shares=(0.94, 0.0, 0.05, 0.01))
    sentence = "The same answer in 94 % of resamples of the samples and draws. In the others: marginal 5 %, none 1 %."
    assert how_sure(audit) == sentence
    assert sentence in render(audit, tmp_path).words()
    audit = judged(audit, shares=(1.0, 0.0, 0.0, 0.0))
    assert how_sure(audit) == "The same answer in 100 % of resamples of the samples and draws."


def test_the_page_names_the_absences_that_are_level_and_what_tells_them_apart(tmp_path):
    audit = judged(results.audit(), shares=(0.48, 0.0, 0.41, 0.11), samples_needed=4)
    sentence = "Level: of resamples of the samples and draws, zero wins 48 %, marginal wins 41 %, none wins 11 %."
    assert how_sure(audit) == f"{sentence} About 4 times as many samples would tell them apart."
    assert sentence in render(audit, tmp_path).words()
    audit = judged(audit, samples_needed=0)
    assert how_sure(audit) == f"{sentence} More samples would not tell them apart."


def test_the_page_of_an_audit_that_judged_nothing_says_nothing_about_resamples(tmp_path):
    nothing = float("nan")
    audit = judged(results.audit(), shares=(nothing,) * 4, stages=("",) * 3, samples_needed=0)
    assert math.isnan(audit.confidence)
    page = render(audit, tmp_path)
    assert how_sure(audit) == page.data()[0]["sure"] == ""
    assert not [attrs for _, attrs in page.elements if attrs.get("class") == "sure"]
    assert page.data()[0]["figures"]["wins"] == ["–"] * 3


def test_averaging_is_told_only_where_log_odds_are_averaged(tmp_path):
    audit = results.audit()
    assert "averaging" not in audit.shown_columns
    assert "averaging" not in render(audit, tmp_path).words()
    masked = audit.fully_masked
    audit = replace(audit, fully_masked=replace(masked, averaging=torch.full_like(masked.averaging, 0.5)))
    words = render(audit, tmp_path).words()
    assert "what averaging log-odds over draws adds to the log-loss, which is no invention" in words
    assert "averaging 0.5000 ± 0" in words or "averaging 0.5 ± 0" in words


def test_what_present_entries_tell_is_not_marked_as_a_leak(tmp_path):
    audit = results.audit()
    leak_counts = "a leak beyond its error rules an absence out"
    assert leak_counts in render(audit, tmp_path).words()
    audit = replace(audit, measured_curve=replace(audit.curve, all_absent=False))
    page = render(audit, tmp_path)
    assert leak_counts not in page.words()
    assert "what they tell is no leak" in page.words()
    assert page.data()[0]["leakLimit"] is None


def test_the_prior_is_shown_where_samples_of_rare_classes_are_left_out(tmp_path):
    audit = results.audit()
    prior = audit.curve.prior.clone()
    prior[0] = torch.nan
    audit = replace(audit, measured_curve=replace(audit.curve, prior=prior))
    page = render(audit, tmp_path)
    assert page.data()[0]["prior"] == pytest.approx(float(prior[1:].mean()), rel=1e-3)
    assert f"which knows nothing ({written(float(prior[1:].mean()))})" in page.words()


def test_large_results_are_trimmed_and_the_page_says_so(tmp_path):
    many = results.explanation(samples=MOST_SAMPLES + 3)
    page = render(many, tmp_path)
    assert len(page.data()[0]["samples"]) == MOST_SAMPLES
    assert f"first {MOST_SAMPLES} of {MOST_SAMPLES + 3} samples" in page.words()
    few = render(results.explanation(), tmp_path)
    assert "The page holds the first" not in few.words()
    overall = many.shapley.values.abs().mean(0).tolist()
    rows = page.data()[0]["overall"]
    assert sorted(row["player"] for row in rows) == list(range(len(overall)))
    for row in rows:
        mean = overall[row["player"]]  # of all samples, shown or not
        assert row["value"] == pytest.approx(mean, rel=1e-5)
        assert float(row["shown"]) == pytest.approx(mean, abs=1e-3 * max(overall))  # to the decimals of the largest


def test_the_page_states_errors_of_estimates_and_what_values_lack(tmp_path):
    players = ab.Players.grid((1, 4, 4), (4, 4))
    x = torch.rand(2, 1, 4, 4, generator=torch.Generator().manual_seed(0))
    found = ab.explain(lambda rows: rows.flatten(1).sum(1) ** 3, x, players=players, absence=0.0, evaluations=300)
    errors, words = found.shapley.errors, render(found, tmp_path).words()
    assert f"The median standard error of the values is {written(errors.median().item(), 2)}." in words
    assert f"Its standard error is {written(errors.mean(0).max().item(), 2)} at most; whiskers show two." in words
    shown, means = explanation_section(found).data["overall"], found.shapley.values.abs().mean(0)
    assert {row["player"] for row in shown} == set(range(16))
    for row in shown:
        player = row["player"]
        assert float(row["shown"]) == pytest.approx(float(means[player]), rel=0.01)
        assert row["value"] == pytest.approx(float(means[player]), rel=1e-5)
        for error in (row["error"], float(row["shownError"])):
            assert error == pytest.approx(float(errors[:, player].mean()), rel=0.05)
    assert "miss the difference" not in words
    wrong = replace(found, shapley=replace(found.shapley, values=found.shapley.values + 1))
    assert "Gap Shapley values miss the difference by" in render(wrong, tmp_path).words()


def test_menu_answer_text_and_picture_write_a_value_alike():
    """Each from the number itself: to three digits 6.8147 is 6.81, and what was rounded to 6.815 would be 6.82."""
    explained = results.explanation()
    explained = replace(explained, outputs=torch.full_like(explained.outputs, -6.8147))
    section = explanation_section(explained)
    assert section.data["samples"][0]["choice"].endswith(": −6.815")
    assert " is −6.815, down from " in section.answer
    assert "−6.815 with all present" in repr(explained)
    assert ab.plots.waterfall(explained).axes[0].get_yticklabels()[-1].get_text() == "all present: −6.815"


@pytest.mark.parametrize(("value", "shown"), [(0.6749, "0.67"), (-0.6749, "−0.67"), (0.675000001, "0.68")])
def test_agreement_is_rounded_once(value, shown, monkeypatch):
    """To three digits and then to two, 0.6749 would be 0.68."""
    pair = torch.full((3, 3), value, dtype=torch.float64).fill_diagonal_(1.0)
    monkeypatch.setattr(Companions, "agreement", lambda _: pair)
    section = audit_section(results.audit())
    assert section.data["agreement"]["texts"][0] == ["1", shown, shown]
    assert section.data["agreement"]["values"][0] == pytest.approx([1, value, value], abs=0.005)
    assert section.data["figures"]["agreement"] == [shown] * 3


def test_the_answer_is_one_sentence_with_the_players_that_add_and_take_most():
    def told(rows, **changes):
        found = ab.explain(lambda x: x @ torch.tensor([3.0, -2.0, 0.5]).double(), rows, absence=0.0, **changes)
        return explanation_section(found).answer

    row = torch.ones(1, 3).double()
    assert told(row) == (
        "Sample 0: the output is 1.5, up from 0 with all players absent; “x0 = 1” adds most (+3.0), "
        "“x1 = 1” takes most (−2.0)."
    )
    end = "down from 0 with all players absent; “x0 = −1” takes most (−3.0), “x1 = −1” adds most (+2.0)."
    assert told(-row).endswith(end)
    assert told(0 * row).endswith("is 0, as with all players absent; no player changes it.")
    assert told(row * torch.tensor([1.0, 0.0, 1.0])).endswith("; “x0 = 1” adds most (+3.0).")
    tiny = row * torch.tensor([1.0, 1e-9, 1.0])
    assert told(tiny).endswith("; “x0 = 1” adds most (+3.0).")  # what is written as 0 takes nothing


def test_the_answer_names_the_class_and_the_category():
    players = ab.Players.features(["city", "age"], {"city": ["Bern", "Oslo"]})
    model = lambda rows: torch.stack([0 * rows[:, 0], 2 * rows[:, 0] - rows[:, 1] / 10], dim=1)  # noqa: E731
    arguments = {"absence": 0.0, "players": players, "class_names": ["stays", "moves"]}
    row = torch.tensor([[1.0, 5.0]])
    for age, name, part in ((5.0, "moves", "adds most (+2.0)"), (45.0, "stays", "takes most (−2.0)")):
        answer = explanation_section(ab.explain(model, [[1.0, age]], **arguments)).answer  # of the predicted class
        assert answer.startswith(f"Sample 0: the log-odds of {name} are ")
        assert f"“city = Oslo” {part}" in answer
    told = ab.explain(model, row, "stays", **arguments)
    start = "Sample 0, stays: the log-odds of stays are −1.5, down from 0 with all players absent; "
    assert explanation_section(told).answer == start + "“city = Oslo” takes most (−2.0), “age = 5” adds most (+0.5)."


def test_samples_are_listed_with_the_names_of_their_classes():
    explained = results.explanation()
    named = replace(explained, record=replace(explained.record, class_names=("cat", "dog", "owl")))
    assert explanation_section(explained).data["samples"][1]["choice"].startswith("sample 1, class 1: ")
    assert explanation_section(named).data["samples"][1]["choice"].startswith("sample 1, dog: ")


def test_very_many_players_leave_room_for_fewer_samples(monkeypatch):
    monkeypatch.setattr("absentia.report.explanation_section._MOST_VALUES", 1000)
    assert len(explanation_section(results.wide_explanation(60, 20)).data["samples"]) == 50


@pytest.mark.slow
def test_the_report_of_200_samples_and_16_players_is_small(tmp_path):
    path = ab.write_report(results.large_explanation(), tmp_path / "report.html")
    assert path.stat().st_size < 5_000_000
    (data,) = Page(path.read_text(encoding="utf-8")).data()
    assert len(data["samples"]) == 200
    for sample in data["samples"][:3]:
        orders = {len(players) for players in sample["effects"]["sets"]}
        assert set(range(1, 8)) <= orders


def test_a_report_of_one_result_is_less_than_a_megabyte(tmp_path):
    assert ab.write_report(results.audit(), tmp_path / "a.html").stat().st_size < 1_000_000


def test_the_same_results_make_the_same_file(everything, tmp_path):
    one, two = (ab.write_report(everything, tmp_path / name).read_bytes() for name in ("one.html", "two.html"))
    assert one == two


def test_saved_results_make_the_same_page(everything, tmp_path):
    loaded = {}
    for number, (name, result) in enumerate(everything.items()):
        result.save(tmp_path / f"{number}.absentia")
        loaded[name] = ab.load(tmp_path / f"{number}.absentia")
    before = ab.write_report(everything, tmp_path / "before.html").read_bytes()
    assert ab.write_report(loaded, tmp_path / "after.html").read_bytes() == before


def test_headings_are_names_where_there_are_any(tmp_path):
    words = render({"My audit": results.audit()}, tmp_path).words()
    assert "My audit: Audit of 3 absences on 6 samples" in words
    assert "What absence means to the model" in words


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ([], "results must hold at least one result. Got none instead."),
        ({}, "results must hold at least one result"),
        ("audit.absentia", r"Got str instead. Read a saved result with absentia.load\(path\) first."),
        ([Path("audit.absentia")], r"Got \w*Path instead. Read a saved result"),
        ([1.0], "results must hold explanations, audits or learned baselines. Got float instead."),
        (None, "Got NoneType instead"),
    ],
)
def test_bad_results_raise_an_error_that_says_what_to_do(found, message, tmp_path):
    with pytest.raises(ab.AbsentiaError, match=message):
        ab.write_report(found, tmp_path / "a.html")
    assert not list(tmp_path.iterdir())


def test_a_bad_path_raises_an_error(tmp_path):
    audit = results.audit()
    with pytest.raises(ab.AbsentiaError, match="path must lie in a folder that exists"):
        ab.write_report(audit, tmp_path / "none" / "a.html")
    with pytest.raises(ab.AbsentiaError, match=r"path must name a file\. Got the folder"):
        ab.write_report(audit, tmp_path)


def test_what_fails_leaves_the_old_file_and_nothing_half_written(tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("old")

    def fail(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("absentia.storage.whole_files.os.replace", fail)
    with pytest.raises(KeyboardInterrupt):
        ab.write_report(results.explanation(), path)
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


def test_ids_are_unique_and_every_control_has_a_label(page):
    ids = [attrs["id"] for _, attrs in page.elements if "id" in attrs]
    assert all(one != other for one, other in combinations(ids, 2))
    labelled = {attrs.get("for") for tag, attrs in page.elements if tag == "label"}
    selects = [attrs["id"] for tag, attrs in page.elements if tag == "select"]
    assert selects
    assert set(selects) <= labelled
    buttons = [attrs for tag, attrs in page.elements if tag == "button"]
    assert all(attrs.get("aria-label") for attrs in buttons)


def test_what_is_kept_of_a_small_game():
    assert strongest(torch.tensor([9.0, 1.0, -2.0, 0.5]), coalition_sizes(2)).tolist() == [2, 1, 3]
    assert curve_counts(3) == [1, 2, 4, 7]
    assert sparsity_curve(ab.harsanyi(ab.ValueTable([0.0, 0.0, 0.0, 1.0]))).tolist() == [[0, 0, 0]]
    assert rendering.json_block({"name": "</script>"}) == r'{"name":"\u003c/script\u003e"}'
