"""The section of an audit."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import absentia as ab
import small_results as results
from absentia.auditing.own_games import Companions
from absentia.plots.look import LOOKS, looks_of
from absentia.report.audit_section import audit_section, how_sure
from absentia.text import written
from rendered_pages import render

OLD_FILES = Path(__file__).parents[1] / "old_files"


@pytest.mark.slow
def test_an_absence_has_one_colour_in_the_report_and_in_the_picture(everything, page):
    """Whatever its place is: by the word that names it."""
    from matplotlib.colors import to_rgb

    audit = everything["methods"]
    data = page.data()[2]
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
    audit = everything["methods"]
    words = page.words()
    for sentence in (*audit.verdict, *audit.warnings):
        assert sentence.replace("-", "−") in words.replace("-", "−")
    parts = (
        audit.verdict[0],
        "Does it leak or invent?",
        "What do masked samples tell?",
        "How many interactions does it need?",
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
    audit = judged(results.audit(), shares=(0.48, 0.0, 0.41, 0.11), times_the_samples=4)
    sentence = "Level: of resamples of the samples and draws, zero wins 48 %, marginal wins 41 %, none wins 11 %."
    assert how_sure(audit) == f"{sentence} About 4 times as many samples would tell them apart."
    assert sentence in render(audit, tmp_path).words()
    audit = judged(audit, times_the_samples=None)
    assert how_sure(audit) == f"{sentence} More samples would not tell them apart."


def test_the_page_of_an_audit_that_judged_nothing_says_nothing_about_resamples(tmp_path):
    nothing = float("nan")
    audit = judged(results.audit(), shares=(nothing,) * 4, stages=("",) * 3, times_the_samples=None)
    assert math.isnan(audit.confidence)
    page = render(audit, tmp_path)
    assert how_sure(audit) == page.data()[0]["sure"] == ""
    assert not [attrs for _, attrs in page.elements if attrs.get("class") == "sure"]
    assert page.data()[0]["figures"]["wins"] == ["–"] * 3


@pytest.mark.slow
def test_averaging_is_told_only_where_log_odds_are_averaged(tmp_path):
    audit = results.audit()
    assert "averaging" not in audit.shown_columns
    assert "averaging" not in render(audit, tmp_path).words()
    masked = audit.fully_masked
    audit = replace(audit, fully_masked=replace(masked, averaging=torch.full_like(masked.averaging, 0.5)))
    words = render(audit, tmp_path).words()
    assert "what averaging log-odds over draws adds to the log-loss; it is not an invention" in words
    assert "averaging 0.5000 ± 0" in words or "averaging 0.5 ± 0" in words


@pytest.mark.slow
def test_what_present_entries_tell_is_not_marked_as_a_leak(tmp_path):
    audit = results.audit()
    leak_counts = "a leak beyond its error rules an absence out"
    assert leak_counts in render(audit, tmp_path).words()
    audit = replace(audit, measured_curve=replace(audit.curve, all_absent=False))
    page = render(audit, tmp_path)
    assert leak_counts not in page.words()
    assert "what they tell is not a leak" in page.words()
    assert page.data()[0]["leakLimit"] is None


def test_the_prior_is_shown_where_samples_of_rare_classes_are_left_out(tmp_path):
    audit = results.audit()
    prior = audit.curve.prior.clone()
    prior[0] = torch.nan
    audit = replace(audit, measured_curve=replace(audit.curve, prior=prior))
    page = render(audit, tmp_path)
    assert page.data()[0]["prior"] == pytest.approx(float(prior[1:].mean()), rel=1e-3)
    assert f"which knows nothing ({written(float(prior[1:].mean()))})" in page.words()


@pytest.mark.parametrize(("value", "shown"), [(0.6749, "0.67"), (-0.6749, "−0.67"), (0.675000001, "0.68")])
def test_agreement_is_rounded_once(value, shown, monkeypatch):
    """To three digits and then to two, 0.6749 would be 0.68."""
    pair = torch.full((3, 3), value, dtype=torch.float64).fill_diagonal_(1.0)
    monkeypatch.setattr(Companions, "agreement", lambda _: pair)
    section = audit_section(results.audit())
    assert section.data["agreement"]["texts"][0] == ["1", shown, shown]
    assert section.data["agreement"]["values"][0] == pytest.approx([1, value, value], abs=0.005)
    assert section.data["figures"]["agreement"] == [shown] * 3
