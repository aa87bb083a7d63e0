"""Experiments: runs that go on where they stopped, records, and the report."""

import json
import os
from dataclasses import replace

import joblib
import pytest
import torch

import absentia as ab
from experiments import experiment as core
from experiments.experiment import (
    Claim,
    Correction,
    Experiment,
    Found,
    Journal,
    NotToBeHadError,
    Part,
    Record,
    Run,
    Verdict,
    best_record,
    measure,
    measure_parts,
    read_record,
    save_record,
)
from experiments.registry import EXPERIMENTS, names
from experiments.report import as_html, as_markdown, minutes_on_two_cores, verdict_of, write_report
from experiments.tables import ResultTable

done = []


def square(number):
    done.append(number)
    if number == 3 and done.count(3) == 1:
        raise KeyboardInterrupt
    return {"square": number**2}


@pytest.fixture
def run(data, tmp_path):
    done.clear()
    return Run("trial", "all", "tiny", folder=tmp_path / "results")


def test_jobs_that_were_finished_before_an_interruption_are_not_done_again(run):
    jobs = {str(number): number for number in range(5)}
    with pytest.raises(KeyboardInterrupt):
        run.each(square, jobs)
    found = run.each(square, jobs)
    assert done == [0, 1, 2, 3, 3, 4]
    assert found == {str(number): {"square": number**2} for number in range(5)}


def test_a_line_that_was_cut_off_counts_as_not_finished(run):
    run.each(square, {"1": 1, "2": 2})
    whole = run.unfinished.read_text()
    run.unfinished.write_text(whole[:-5])
    run.each(square, {"1": 1, "2": 2})
    assert done == [1, 2, 2]


def test_results_of_other_code_are_not_used(run, monkeypatch):
    run.each(square, {"1": 1})
    monkeypatch.setattr(core, "__version__", "another")
    run.each(square, {"1": 1})
    assert done == [1, 1]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("backend", ["loky", "multiprocessing"])
def test_several_processes_give_the_same_results(run, backend):
    with joblib.parallel_config(backend):
        found = Run("trial", "both", "tiny", workers=2).each(abs, {"a": -1, "b": -2, "c": 3})
    assert found == {"a": 1, "b": 2, "c": 3}


@pytest.mark.slow
def test_parts_that_a_command_finished_before_a_kill_are_not_measured_again(run, monkeypatch):
    def part(name):
        def work(_run):
            done.append(name)
            if name == "second" and done.count("second") == 1:
                raise KeyboardInterrupt
            return Found({"number": len(done)})

        return work

    parts = {name: part(name) for name in ("first", "second", "third")}
    trial = Experiment("trial", "A trial", "None.", parts, lambda figures: Verdict("as stated", "", ""))
    with pytest.raises(KeyboardInterrupt):
        measure(trial, run, journal=Journal("all"))
    record = measure(trial, run, journal=Journal("all"))
    assert done == ["first", "second", "second", "third"]
    assert list(record.parts) == ["first", "second", "third"]
    assert not Journal("of another command").finished
    monkeypatch.setattr(core, "__version__", "another")
    assert not Journal("all").finished
    monkeypatch.undo()
    Journal("all").close()
    assert not Journal("all").finished


def test_parts_are_measured_in_processes_and_those_with_many_jobs_spread_these(run):
    def whole(own):
        return Found({"process": os.getpid(), "threads": torch.get_num_threads(), "workers": own.workers})

    def jobs(own):
        return Found({"process": os.getpid(), "workers": own.workers, **own.each(abs, {"a": -1, "b": -2})})

    def fails(own):
        raise ab.AbsentiaError("It fails.")

    parts = {"one": whole, "two": whole, "wrong": fails, "jobs": jobs}
    trial = Experiment(
        "trial", "A trial", "None.", parts, lambda figures: Verdict("as stated", "", ""), many_jobs=("jobs",)
    )
    two = Run("trial", "all", "tiny", workers=2, folder=run.folder)
    ended = {name: error for _, name, error in measure_parts([(trial, part) for part in parts], two)}
    assert {name for name, error in ended.items() if error is None} == {"one", "two", "jobs"}
    assert str(ended["wrong"]) == "It fails."
    found = read_record(run.folder, "trial", "tiny").figures()
    here = os.getpid()
    for name in ("one", "two"):
        assert found[name]["process"] != here
        assert (found[name]["threads"], found[name]["workers"]) == (1, 1)
    assert found["jobs"] == {"process": here, "workers": 2, "a": 1, "b": 2}


def part_of(run):
    found = run.each(square, {"1": 1, "2": 2})
    table = ResultTable("Squares", ("of", "square"), "A note.")
    for key, one in found.items():
        table.add(key, one["square"])
    figure = ab.plots.new_figure(1, height=2.0)
    return Found({"sum": sum(one["square"] for one in found.values())}, (table,), (run.picture("squares", figure),))


def unavailable(run):
    raise NotToBeHadError("The data are not published.")


def judge(figures):
    return Verdict("as stated", f"{figures['squares']['sum']:.0f}", "Because.")


SQUARES = Experiment(
    "fig-0",
    "Squares of numbers",
    "All of them.",
    {"squares": part_of, "cubes": unavailable},
    judge,
    (Claim("the sum is 5", "Fig. 0"),),
)


def test_each_part_is_saved_with_its_reason_if_it_cannot_be_had(run):
    found = measure(SQUARES, run)
    assert found.figures() == {"squares": {"sum": 5}}
    assert found.parts["cubes"].missing == "The data are not published."
    assert read_record(run.folder, "fig-0", "tiny") == found
    assert not list((run.unfinished.parent).glob("*"))
    assert (run.folder / "fig-0-squares-tiny.png").read_bytes().startswith(b"\x89PNG")


def test_a_full_part_is_shown_rather_than_a_quick_one(tmp_path):
    for size in ("quick", "full"):
        save_record(tmp_path, "fig-0", size, {"squares": Part(None, size, size, 0, 1.0, "")})
    save_record(tmp_path, "fig-0", "quick", {"cubes": Part(None, "quick", "quick", 0, 1.0, "")})
    found = best_record(tmp_path, "fig-0").parts
    assert {name: part.size for name, part in found.items()} == {"squares": "full", "cubes": "quick"}


def test_the_report_sets_claim_ours_verdict_and_reason_in_one_table(run, tmp_path):
    record = measure(SQUARES, run)
    text = as_markdown([(SQUARES, record)], tmp_path / "results")
    row = "| [fig-0](#fig-0) | the sum is 5 (Fig. 0) | 5 | as stated (quick size) | Because. |"
    assert row in text
    assert "*cubes*: not to be had: The data are not published." in text
    assert "| 2 | 4 |" in text
    assert "![Squares of numbers](results/fig-0-squares-tiny.png)" in text


def test_parts_side_by_side_take_two_cores_and_those_with_many_jobs_follow():
    times = {"a": 9, "b": 2, "c": 4}
    record = Record("times", {name: Part(None, "", "full", 0, 60.0 * time, "") for name, time in times.items()})
    assert minutes_on_two_cores(SQUARES, record) == pytest.approx(9)
    assert minutes_on_two_cores(SQUARES, Record("times", {"b": record.parts["b"], "c": record.parts["c"]})) == 4
    assert minutes_on_two_cores(replace(SQUARES, many_jobs=("c",)), record) == pytest.approx(9 + 4)
    assert minutes_on_two_cores(SQUARES, Record("nothing", {})) == 0


def test_a_long_note_is_a_list_that_readers_open():
    table = ResultTable("Squares", ("of",), "The first sentence. " * 50)
    part = Part(Found({"sum": 5}, (table,)), "", "full", 0, 1.0, "")
    entries = [(SQUARES, Record("fig-0", {"squares": part}))]
    assert as_markdown(entries, core.RESULTS).count("\n- The first sentence.") == 50
    assert as_html(entries, core.RESULTS).count("<li>The first sentence.") == 50


def test_the_page_holds_its_pictures(run):
    measure(SQUARES, Run("", "", "quick", folder=run.folder))
    path = write_report([SQUARES], run.folder)
    assert path == run.folder.parent / "RESULTS.md"
    page = (run.folder / "report.html").read_text()
    assert 'src="data:image/png;base64,' in page
    assert "as stated 1." in page


def test_what_has_no_figures_is_not_measured_or_untestable():
    assert verdict_of(SQUARES, Record("fig-0", {})).word == "not measured"
    record = Record("fig-0", {"cubes": Part(None, "No data.", "full", 0, 1.0, "")})
    assert verdict_of(SQUARES, record) == Verdict("untestable", "–", "No data.")


def test_names_and_aliases_differ_and_aliases_name_parts():
    assert len(names()) == sum(1 + len(one.aliases) for one in EXPERIMENTS)
    for one in EXPERIMENTS:
        assert all(set(parts) <= set(one.parts) for parts in one.aliases.values())
        assert one.settings.endswith(".")


@pytest.mark.parametrize("one", [one for one in EXPERIMENTS if one.claims], ids=lambda one: one.name)
def test_every_claim_of_the_paper_has_a_place_and_every_record_a_verdict(one):
    assert all(claim.says and claim.place for claim in one.claims)
    record = best_record(core.RESULTS, one.name)
    assert set(record.parts) <= set(one.parts)
    assert verdict_of(one, record).word


def test_the_committed_report_is_that_of_the_committed_records():
    entries = [(one, best_record(core.RESULTS, one.name)) for one in EXPERIMENTS]
    assert (core.RESULTS.parent / "RESULTS.md").read_text() == as_markdown(entries, core.RESULTS)


def test_the_report_counts_the_verdicts_and_says_what_they_mean_and_what_is_measured_again(tmp_path):
    part = Part(Found({"sum": 5}), "", "full", 0, 1.0, "")
    again = replace(SQUARES, again="the odd ones")
    entries = [(again, Record("fig-0", {"squares": part})), (SQUARES, Record("fig-0", {}))]
    text = as_markdown(entries, tmp_path)
    assert "Of 2 experiments of the paper: as stated 1, not measured 1." in text
    assert "These figures will be measured again: fig-0 (the odd ones)." in text
    assert "by another method: what it claims is found, but by another loss or search than the paper's" in text
    assert "measured again" not in as_markdown(entries[1:], tmp_path)


def test_the_report_says_how_the_paper_s_losses_are_minimised(tmp_path):
    for text in (as_markdown([], tmp_path), as_html([], tmp_path)):
        assert "two terms that decide ties" in text
        assert "starts again from the mean, the median or the middle of the bounds" in text
        assert "quantiles of the data" in text


def test_the_report_links_to_the_comparison_with_the_usual_baselines(tmp_path):
    assert "learned_against_usual" not in as_markdown([], tmp_path)
    (tmp_path / "learned_against_usual.md").write_text("# Goals")
    link = f"[learned_against_usual.md]({tmp_path.name}/learned_against_usual.md)"
    assert link in as_markdown([], tmp_path)
    assert '<a href="learned_against_usual.md">' in as_html([], tmp_path)


def test_a_statement_of_a_record_is_corrected_in_the_report_and_the_record_stays(run):
    record = measure(SQUARES, run)
    note = record.parts["squares"].found.tables[0].note
    corrected = replace(SQUARES, corrections=(Correction("squares", note, "What is true."),))
    text = as_markdown([(corrected, record)], run.folder)
    assert note
    assert "What is true." in text
    assert note not in text
    assert read_record(run.folder, "fig-0", "tiny").parts["squares"].found.tables[0].note == note
    other = replace(SQUARES, corrections=(Correction("cubes", note, "What is true."),))
    assert note in as_markdown([(other, record)], run.folder)


def test_every_correction_is_of_a_statement_in_a_committed_record():
    for experiment in EXPERIMENTS:
        parts = best_record(core.RESULTS, experiment.name).parts
        for correction in experiment.corrections:
            notes = [table.note for table in parts[correction.part].found.tables]
            assert any(correction.said in note for note in notes), (
                "remove the correction: its part was measured again"
            )


def test_a_record_is_plain_json(run):
    measure(SQUARES, run, ("squares",))
    content = json.loads((run.folder / "fig-0-tiny.json").read_text())
    assert content["parts"]["squares"]["found"]["figures"] == {"sum": 5}
    assert content["parts"]["squares"]["seconds"] >= 0
