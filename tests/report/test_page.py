"""The report as a whole: its results, numbers, size and file."""

from pathlib import Path

import pytest

import absentia as ab
import small_results as results
from absentia.report import rendering
from absentia.report.shown_numbers import texts
from rendered_pages import Page, render


@pytest.mark.slow
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
    invention = found.invention.value[order]
    error = found.invention.error[order]
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


def test_a_constant_game_has_no_sparsity_curve_but_a_page(tmp_path):
    flat = ab.explain(lambda rows: 0 * rows.sum(1) + 1, results.draw(2, 3), absence=ab.Baseline(0.0))
    (data,) = render(flat, tmp_path).data()
    assert data["samples"][0]["curve"] == {"values": [None] * 4, "texts": ["–"] * 4}
    assert data["samples"][0]["values"] == [0, 0, 0]


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
        ([1.0], "results must hold explanations, terms, audits or learned baselines. Got float instead."),
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
