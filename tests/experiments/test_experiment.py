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
    MEANINGS,
    Claim,
    Correction,
    Experiment,
    Found,
    Journal,
    Line,
    NotToBeHadError,
    Part,
    Quantity,
    Record,
    Rule,
    Run,
    Verdict,
    best_record,
    measure,
    measure_parts,
    read_record,
    save_record,
    seed_folder,
)
from experiments.registry import EXPERIMENTS, names
from experiments.report import (
    as_html,
    as_markdown,
    judged_claims,
    minutes_on_two_cores,
    page_markdown,
    settings_markdown,
    summed_up,
    write_report,
)
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
    trial = Experiment("trial", "A trial", "None.", parts)
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
    trial = Experiment("trial", "A trial", "None.", parts, many_jobs=("jobs",))
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


RULE = Rule("As stated: the sum is 5.", "2026-11-18", "before")
SUM = Claim("the sum is that of both", "Fig. 0", "5", RULE, judge)
SQUARES = Experiment(
    "fig-0",
    "Squares of numbers",
    "All of them.",
    {"squares": part_of, "cubes": unavailable},
    (SUM,),
    caveats=("They are few.",),
    shown=("Squares",),
)


def word_of(experiment, record):
    """Return the verdict on the only claim."""
    (judged,) = judged_claims(experiment, record)
    return judged.verdict


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


def test_the_report_has_a_line_for_each_claim(run, tmp_path):
    record = measure(SQUARES, run)
    text = as_markdown([(SQUARES, record)], tmp_path / "results")
    row = "| [the sum is that of both](pages/fig-0.md) | 5 | 5 | 1 | as stated; quick size | 11-18 before |"
    assert row in text
    settings = settings_markdown([(SQUARES, record)])
    assert "| setting | stated in the paper | released code | ours |" in settings
    assert "| census | mlp | at most 60 | 85." in settings
    assert "| mnist | alexnet | 1 | not in a record |" in settings


def test_the_accuracy_of_a_network_that_does_not_come_along_is_that_of_its_record():
    figures = {"accuracy of the network": 0.9, "samples of the accuracy": 2000}
    part = Part(Found(figures), "", "full", 0, 1.0, "")
    fig_5 = replace(SQUARES, name="fig-5")
    text = settings_markdown([(fig_5, Record("fig-5", {"mnist-vgg16": part}))])
    assert "| mnist | vgg16 | 1 | 90.00% of 2,000 |" in text


def sum_in_short(figures):
    return [Quantity("{} in all", figures["squares"]["sum"], 0.5, ".1f")]


def test_figures_of_several_seeds_are_averaged_with_their_errors_and_counted(tmp_path):
    line = Line("the sum (Fig. 0)", "5", sum_in_short, ("squares",))
    one = replace(SQUARES, claims=(replace(SUM, line=line, parts=("squares",)),))
    for seed, total in enumerate((4, 5, 9)):
        part = Part(Found({"sum": total}), "", "full", seed, 1.0, "")
        save_record(seed_folder(tmp_path, seed), "fig-0", "full", {"squares": part})
    record = best_record(tmp_path, "fig-0")
    (alone,) = judged_claims(one, record)
    assert (alone.ours_in_short, alone.seed_count) == ("4.0 ± 0.5 in all", "1")
    (judged,) = judged_claims(one, record, tmp_path)
    assert (judged.ours_in_short, judged.seed_count) == ("6.0 ± 1.5 in all", "3")  # √(7 / 3)
    assert judged.verdict.ours == "4"
    for seed in (1, 2):
        same = Part(Found({"sum": 4}), "", "full", seed, 1.0, "")
        save_record(seed_folder(tmp_path / "same", seed), "fig-0", "full", {"squares": same})
    (alike,) = judged_claims(one, record, tmp_path / "same")
    assert (alike.ours_in_short, alike.seed_count) == ("4.0 ± 0.5 in all", "3")  # over samples
    assert not judged.notes

    def strict(figures):
        return Verdict("no" if figures["squares"]["sum"] > 5 else "as stated", "4", "Because.")

    (split,) = judged_claims(replace(one, claims=(replace(one.claims[0], judge=strict),)), record, tmp_path)
    assert split.words == "as stated; 2 of 3 seeds"
    text = page_markdown(one, record, tmp_path)
    assert "| the sum is that of both | 2 | 9.0 ± 0.5 in all | as stated |" in text
    assert "| [the sum (Fig. 0)](pages/fig-0.md) | 5 | 6.0 ± 1.5 in all | 3 |" in as_markdown(
        [(one, record)], tmp_path
    )
    exact = replace(SQUARES, claims=(replace(SUM, line=replace(line, exact=True), parts=("squares",)),))
    assert judged_claims(exact, record)[0].seed_count == "–"


def test_a_line_whose_part_was_not_measured_shows_the_figures_of_the_verdict(tmp_path):
    line = Line("the sum (Fig. 0)", "5", sum_in_short, ("squares", "cubes"))
    one = replace(SQUARES, claims=(replace(SUM, line=line),))
    record = Record("fig-0", {"squares": Part(Found({"sum": 5}), "", "full", 0, 1.0, "")})
    assert judged_claims(one, record)[0].ours_in_short == "5"


def test_a_page_begins_with_its_picture_and_folds_what_it_does_not_show(run, tmp_path):
    record = measure(SQUARES, run)
    text = page_markdown(SQUARES, record, tmp_path / "results")
    assert "*cubes*: not to be had: The data are not published." in text
    places = [
        text.index(part)
        for part in (
            "![Squares of numbers](../results/fig-0-squares-tiny.png)", "## Side by side", "Because. *Rule*: As",
            "- They are few.", "| 2 | 4 |", "## Settings",
        )
    ]  # fmt: skip
    assert places == sorted(places)
    folded = page_markdown(replace(SQUARES, shown=("Cubes",)), record, tmp_path / "results")
    assert folded.index("<details><summary>Squares</summary>") < folded.index("| 2 | 4 |")
    assert folded.index("## Settings") < folded.index("| 2 | 4 |")
    assert "<details><summary>Squares</summary>" not in text


def test_a_claim_is_judged_by_its_own_parts_and_their_seeds(tmp_path):
    parts = {
        "squares": Part(Found({"sum": 5}), "", "full", 3, 1.0, ""),
        "cubes": Part(Found({"sum": 9}), "", "quick", 4, 1.0, ""),
    }
    seen = []

    def remember(figures):
        seen.append(set(figures))
        return Verdict("in one reading", "5", "Because.", "all of them")

    claims = (replace(SUM, judge=remember, parts=("squares",)), replace(SUM, judge=remember))
    first, second = judged_claims(replace(SQUARES, claims=claims), Record("fig-0", parts))
    assert seen == [{"squares"}, {"squares", "cubes"}]
    assert (first.seeds, second.seeds) == ((3,), (3, 4))
    assert (first.seed_count, second.seed_count) == ("1", "2")
    assert first.words == "in one reading (all of them)"
    assert second.words == "in one reading (all of them); partly quick size"
    (left,) = judged_claims(SQUARES, Record("fig-0", {"squares": parts["squares"]}))
    assert left.words == "as stated; without cubes"


def test_a_rule_says_when_it_was_fixed_and_whether_it_was_changed_after_its_result():
    changed = replace(RULE, known="after", earlier="An earlier rule asked for 6.")
    assert RULE.when == "2026-11-18, before the result"
    assert changed.when == "2026-11-18, after the result, changed"
    assert str(changed).endswith("Fixed on 2026-11-18, after the result. An earlier rule asked for 6.")
    assert replace(changed, known="before").was_changed
    assert not RULE.was_changed
    assert (RULE.when_in_short, changed.when_in_short) == ("11-18 before", "11-18 after, changed")
    assert replace(RULE, known="after a trial").when == "2026-11-18, after a trial"
    assert replace(RULE, of="the cubes").when == "2026-11-18, before the result of the cubes"
    with pytest.raises(ValueError, match="tomorrow"):
        replace(RULE, fixed="tomorrow")
    with pytest.raises(ab.AbsentiaError, match="told in sentences"):
        replace(RULE, asks="the sum is 5")


def test_every_rule_says_what_it_takes_for_its_word_and_verdicts_name_their_reading():
    for experiment in EXPERIMENTS:
        assert bool(experiment.claims) is (experiment.beyond is None)
        assert len(experiment.caveats) <= 5
        for judged in judged_claims(experiment, best_record(core.RESULTS, experiment.name)):
            assert judged.verdict.word in MEANINGS
            assert judged.verdict.reason
            named = judged.verdict.word in ("in one reading", "by another method")
            assert bool(judged.verdict.which) is named, judged.claim.says


def test_every_page_of_the_report_is_that_of_the_committed_records():
    pages = core.RESULTS.parent / "pages"
    assert {path.stem for path in pages.glob("*.md")} == {"settings", *(one.name for one in EXPERIMENTS)}
    entries = [(one, best_record(core.RESULTS, one.name)) for one in EXPERIMENTS]
    assert (pages / "settings.md").read_text() == settings_markdown(entries)
    for one in EXPERIMENTS:
        text = page_markdown(one, best_record(core.RESULTS, one.name), core.RESULTS)
        assert (pages / f"{one.name}.md").read_text() == text


def test_the_summary_is_read_in_three_minutes():
    """At about 300 words a minute, the bars of the table included."""
    text = (core.RESULTS.parent / "RESULTS.md").read_text()
    assert len(text.split()) <= 3 * 300


def test_parts_side_by_side_take_two_cores_and_those_with_many_jobs_follow():
    times = {"a": 9, "b": 2, "c": 4}
    record = Record("times", {name: Part(None, "", "full", 0, 60.0 * time, "") for name, time in times.items()})
    assert minutes_on_two_cores(SQUARES, record) == pytest.approx(9)
    assert minutes_on_two_cores(SQUARES, Record("times", {"b": record.parts["b"], "c": record.parts["c"]})) == 4
    assert minutes_on_two_cores(replace(SQUARES, many_jobs=("c",)), record) == pytest.approx(9 + 4)
    assert minutes_on_two_cores(SQUARES, Record("nothing", {})) == 0


def test_a_long_note_is_a_list_that_readers_open():
    table = ResultTable("Squares", ("of",), "The first sentence. " * 50)
    table.add("2")
    part = Part(Found({"sum": 5}, (table,)), "", "full", 0, 1.0, "")
    entries = [(SQUARES, Record("fig-0", {"squares": part}))]
    assert page_markdown(*entries[0], core.RESULTS).count("\n- The first sentence.") == 50
    assert as_html(entries, core.RESULTS).count("<li>The first sentence.") == 50


def test_the_page_holds_its_pictures(run):
    measure(SQUARES, Run("", "", "quick", folder=run.folder))
    path = write_report([SQUARES], run.folder)
    assert path == run.folder.parent / "RESULTS.md"
    assert (path.parent / "pages" / "fig-0.md").is_file()
    page = (run.folder / "report.html").read_text()
    assert 'src="data:image/png;base64,' in page
    assert "as stated 1." in page


def test_what_has_no_figures_is_not_measured_or_untestable():
    assert word_of(SQUARES, Record("fig-0", {})).word == "not measured"
    record = Record("fig-0", {"cubes": Part(None, "No data.", "full", 0, 1.0, "")})
    assert word_of(SQUARES, record) == Verdict("untestable", "–", "No data.")
    beyond = replace(SQUARES, claims=(), beyond=judge)
    assert summed_up(beyond, record) is None
    assert (
        summed_up(beyond, Record("fig-0", {"squares": Part(Found({"sum": 5}), "", "full", 0, 1.0, "")})).ours == "5"
    )


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
    assert all(judged.verdict.word for judged in judged_claims(one, record))


def test_the_committed_report_is_that_of_the_committed_records():
    entries = [(one, best_record(core.RESULTS, one.name)) for one in EXPERIMENTS]
    assert (core.RESULTS.parent / "RESULTS.md").read_text() == as_markdown(entries, core.RESULTS)


def test_the_report_counts_the_verdicts_and_the_rules_that_were_changed_and_says_what_they_mean(tmp_path):
    part = Part(Found({"sum": 5}), "", "full", 0, 1.0, "")
    late = replace(SUM, rule=replace(RULE, known="after", earlier="An earlier rule asked for 6."))
    changed = replace(SQUARES, claims=(late,), not_again=("The odd ones take hours.",))
    entries = [(changed, Record("fig-0", {"squares": part})), (SQUARES, Record("fig-0", {}))]
    text = as_markdown(entries, tmp_path)
    assert "Of 2 claims: as stated 1, not measured 1. 1 rules replaced earlier ones." in text
    assert "**By another method**: by another loss or search." in text
    meaning = "**by another method**: what it claims is found, but by another loss or search than the paper's"
    assert meaning in settings_markdown(entries)
    assert "- The odd ones take hours." in page_markdown(*entries[0], tmp_path)
    assert "not again" not in page_markdown(*entries[1], tmp_path)


def test_the_report_says_how_the_paper_s_losses_are_minimised(tmp_path):
    for text in (settings_markdown([]), as_html([], tmp_path)):
        assert "with the orders 0 … λ, along the gradient from the start alone" in text
        assert "two small terms that decide" in text
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
    text = page_markdown(corrected, record, run.folder)
    assert note
    assert "What is true." in text
    assert note not in text
    assert read_record(run.folder, "fig-0", "tiny").parts["squares"].found.tables[0].note == note
    other = replace(SQUARES, corrections=(Correction("cubes", note, "What is true."),))
    assert note in page_markdown(other, record, run.folder)


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
