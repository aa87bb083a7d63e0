"""The commands on files of a user: what they write and print is what the library returns."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import absentia as ab
from absentia import __version__
from absentia import demo as demonstration
from absentia.auditing.measuring import CurveStep, GamesStep
from absentia.auditing.verdict import Verdict
from absentia.cli import app, main
from absentia.cli.payloads import record_payload
from command_words import DATA, MODEL, QUICK, succeed
from own_files import make_network, make_rows

ROWS, CLASSES = (torch.from_numpy(array) for array in make_rows())
PLAYERS = ab.Players.features(["a", "b", "c"])


def learn(**settings):
    quick = {"steps": 1, "rows_per_comparison": 256, "samples": 4} | {
        name: settings.pop(name) for name in ("orders", "samples") if name in settings
    }
    settings = {"loss": "marginal", "players": PLAYERS, "y": CLASSES} | settings
    return ab.learn_baseline(make_network(), ROWS, options=ab.LearningOptions(**quick), **settings)


@pytest.mark.slow
def test_the_four_commands_of_the_readme_work_together(run):
    learned = succeed(run("learn", *MODEL, *DATA, *QUICK, "-o", "base.absentia"))
    assert "LearnedBaseline of shape (3,)" in learned
    assert learned.endswith("Written to base.absentia\n")
    explained = succeed(
        run("explain", *MODEL, *DATA, "--absence", "base.absentia", "--sample", 3, "-o", "one.absentia")
    )
    assert explained.startswith("Explanation of 1 sample, 3 players")
    methods = ["--absence", "zero", "--absence", "mean", "--absence", "base.absentia"]
    audited = succeed(run("audit", *MODEL, *DATA, *methods, "--samples", 30, "-o", "audit.absentia"))
    assert audited.startswith("Use ")
    assert "% of resamples" in audited
    heads = audited.partition("Audit of")[0].rstrip().splitlines()[-4].split()
    assert heads == ["leak", "invention", "score", "length", "distance"]
    assert "Audit of 3 absences on 30 samples" in audited
    written = succeed(run("report", "one.absentia", "audit.absentia", "base.absentia", "-o", "report.html"))
    assert written.startswith("Written to report.html: one (Explanation), audit (Audit), base (LearnedBaseline)")
    assert "</html>" in Path("report.html").read_text()
    assert not list(Path().glob("*.part"))


def test_learn_says_first_what_came_out(run):
    command = ["learn", *MODEL, *DATA, "--steps", 1, "--rows-per-step", 256, "-o", "base.absentia"]
    printed = succeed(run(*command))
    said = ab.load("base.absentia").outcome
    assert said.startswith(("Nothing better than ", "The learned values beat "))
    assert printed.startswith(f"{said}\nLearnedBaseline of shape (3,)")
    assert json.loads(succeed(run(*command, "--json")))["outcome"] == said


def test_learn_is_learn_baseline(run):
    out = succeed(run("learn", *MODEL, *DATA, *QUICK, "--seed", 3, "-o", "base.absentia", "--json"))
    expected = learn(seed=3)
    saved = ab.load("base.absentia")
    printed = json.loads(out)
    torch.testing.assert_close(saved.values, expected.values)
    assert saved.names == ("a", "b", "c")
    assert printed["values"] == expected.values.tolist()
    assert printed["file"] == "base.absentia"
    seconds = {"seconds": saved.record.seconds}
    assert printed["record"] == json.loads(json.dumps(record_payload(replace(expected.record, **seconds))))


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (["--share", "class"], {"share": "class"}),
        (["--bounds", "0.1,0.9"], {"bounds": (0.1, 0.9)}),
        (["--start", "0.5", "--start", "median"], {"start": [0.5, "median"]}),
        (["--bounds", "2", "--orders", "1", "--loss", "shapley"], {"bounds": 2.0, "orders": 1, "loss": "shapley"}),
        (["--orders", "0.4", "--categorical", "b"], {"orders": 0.4, "categorical": [1]}),
        (["--categorical", "a,2"], {"categorical": [[0, 2]]}),
        (["--class", "1"], {"readout": ab.LogOdds(1), "y": None}),
        (["--readout", "output:1"], {"readout": ab.Output(1)}),
        (["--readout", "features:1"], {"readout": ab.Features("1")}),
        (["--readout", "logit"], {"readout": ab.Logit(CLASSES)}),
    ],
)
def test_the_options_of_learn_are_those_of_the_library(run, words, options):
    succeed(run("learn", *MODEL, *DATA, *QUICK, *words, "-o", "base.absentia"))
    torch.testing.assert_close(ab.load("base.absentia").values, learn(**options).values)


def test_a_search_goes_on_from_its_checkpoint_and_from_a_saved_baseline(run):
    words = ["learn", *MODEL, *DATA, *QUICK, "--checkpoint", "search", "-o"]
    succeed(run(*words, "one.absentia"))
    assert "A search for a baseline in progress" in succeed(run("info", "search"))
    succeed(run(*words, "two.absentia"))
    torch.testing.assert_close(ab.load("one.absentia").values, ab.load("two.absentia").values)
    succeed(run("learn", *MODEL, *DATA, *QUICK, "--start", "one.absentia"))


def test_explain_is_explain(run):
    words = ["explain", *MODEL, *DATA, "--absence", "mean", "--sample", 3, "--sample", 7, "-o", "two.absentia"]
    code, out, err = run(*words, "--json")
    assert code == 0
    assert "Samples of data.csv: row 3, class 1 (a = " in err
    absence = ab.Baseline.mean(ROWS)
    expected = ab.explain(make_network(), ROWS[[3, 7]], CLASSES[[3, 7]], absence=absence, players=PLAYERS)
    saved = ab.load("two.absentia")
    printed = json.loads(out)
    torch.testing.assert_close(saved.shapley.values, expected.shapley.values)
    torch.testing.assert_close(saved.interactions.effects, expected.interactions.effects)
    assert [one["sample"] for one in printed["samples"]] == [3, 7]
    assert printed["samples"][1]["shapley"] == dict(zip("abc", expected.shapley.values[1].tolist(), strict=True))
    assert printed["samples"][1]["class"] == int(CLASSES[7])
    assert printed["samples"][1]["efficiency_gap"] == pytest.approx(float(expected.efficiency_gap[1]), abs=1e-12)
    top = printed["samples"][1]["strongest_interactions"][0]
    assert top["effect"] == pytest.approx(expected.interactions.top(1, sample=1)[0].effect)


@pytest.mark.slow
def test_columns_of_categories_are_named_alike_in_all_commands(run):
    rows = ROWS.clone()
    rows[:, 1] = torch.tensor([0.0] * 16 + [1.0] * 12 + [2.0] * 12)  # most often 0, in the median 1
    np.savez("coded.npz", x=rows.numpy(), y=CLASSES.numpy())
    words = [*MODEL, "--data", "coded.npz", "--categorical", "1"]
    succeed(run("explain", *words, "--absence", "median", "-o", "one.absentia"))
    found = ab.load("one.absentia")
    assert found.stand_ins[0, 1] == 0
    assert found.players.categorical == ((1,),)
    succeed(run("explain", *words[:-2], "--absence", "median", "-o", "one.absentia"))
    assert ab.load("one.absentia").stand_ins[0, 1] == 1
    code, _, err = run("audit", *words, "--absence", "noise")
    assert code == 2
    assert "absence must keep to the categories of the table's categorical columns. Got noise instead." in err
    succeed(run("audit", *words, "--samples", 8, "--draws", 1, "-o", "audit.absentia"))
    assert ab.load("audit.absentia").methods == ("median", "mode", "marginal", "neighbours")
    succeed(run("audit", *words, "--samples", 40, "--draws", 1, "-o", "audit.absentia"))
    assert ab.load("audit.absentia").methods == ("median", "mode", "marginal")  # all rows are samples


def test_names_of_classes_need_their_order(run):
    kinds = np.where(CLASSES.numpy() == 1, "spam", "ham")
    np.savez("named.npz", x=ROWS.numpy(), y=kinds)
    for command in (["explain", "--absence", "mean"], ["audit"], ["learn"]):
        code, _, err = run(*command, *MODEL, "--data", "named.npz")
        assert code == 2
        assert "Use --classes ham,spam, in the order of the model's outputs." in err


def test_explain_draws_coalitions_samples_and_groups(run):
    words = ["--samples", 5, "--evaluations", 36, "--players", "groups.json", "--batch-size", 2, "--seed", 2]
    succeed(
        run("explain", *MODEL, *DATA, "--absence", "marginal:9", "--readout", "probability", *words, "-o", "five")
    )
    rows = torch.randperm(40, generator=torch.Generator().manual_seed(2))[:5]
    expected = ab.explain(
        *(make_network(), ROWS[rows]),
        readout=ab.Probability(CLASSES[rows]),
        evaluations=36,
        seed=2,
        absence=ab.Marginal(ROWS, draws=9, seed=2),
        players=ab.Players.groups({"both": [0, 2], "other": [1]}, 3),
    )
    torch.testing.assert_close(ab.load("five").shapley.values, expected.shapley.values)


def test_a_baseline_of_each_class_explains_each_class(run):
    succeed(run("learn", *MODEL, *DATA, *QUICK, "--samples", 12, "--share", "class", "-o", "base.absentia"))
    learned = ab.load("base.absentia")
    for command in (["explain", "--samples", 6], ["audit", "--samples", 6, "--absence", "zero"]):
        succeed(run(*command, *MODEL, *DATA, "--absence", "base.absentia", "-o", "found"))
    found = ab.audit(
        *(make_network(), ROWS[(rows := torch.randperm(40, generator=torch.Generator().manual_seed(0))[:6])]),
        *(CLASSES[rows], {"zero": ab.Baseline(0.0), "base": learned.of(CLASSES[rows])}),
        data=ROWS,
        players=PLAYERS,
    )
    torch.testing.assert_close(ab.load("found").R.value, found.R.value)


@pytest.mark.parametrize("words", [["--readout", "output:1"], ["--class", "1"]])
def test_a_baseline_of_each_class_is_that_of_the_sample_whatever_is_read(run, words):
    succeed(run("learn", *MODEL, *DATA, *QUICK, "--samples", 12, "--share", "class", "-o", "base.absentia"))
    own = ab.load("base.absentia").of(CLASSES[:2])
    for command in ("explain", "audit"):
        samples = ["--sample", 0, "--sample", 1, "--absence", "base.absentia"]
        succeed(run(command, *MODEL, *DATA, *words, *samples, "-o", command))
    torch.testing.assert_close(ab.load("explain").stand_ins.double(), own.values)
    readout = ab.Output(1) if "--readout" in words else ab.LogOdds(1)
    found = ab.audit(make_network(), ROWS[:2], None, {"base": own}, readout=readout, data=ROWS, players=PLAYERS)
    torch.testing.assert_close(ab.load("audit").R.value, found.R.value)


def test_classes_have_names(run):
    words = ["--classes", "few,many", "--class", "many", "--absence", "mean", "-o", "one.absentia"]
    succeed(run("explain", *MODEL, *DATA[:2], "--drop", "kind", *words))
    assert ab.load("one.absentia").record.class_names == ("few", "many")
    expected = ab.explain(make_network(), ROWS[:1], absence=ab.Baseline.mean(ROWS), readout=ab.LogOdds(1))
    torch.testing.assert_close(ab.load("one.absentia").shapley.values, expected.shapley.values)


def test_columns_come_in_the_order_of_the_saved_baseline(run):
    import pandas as pd

    pd.read_csv("data.csv")[["c", "kind", "a", "b"]].to_csv("shuffled.csv", index=False)
    succeed(run("learn", *MODEL, *DATA, *QUICK, "-o", "base.absentia"))
    for name in ("data", "shuffled"):
        words = ["--data", f"{name}.csv", "--target", "kind", "--absence", "base.absentia", "-o", name]
        succeed(run("explain", *MODEL, *words))
    torch.testing.assert_close(ab.load("data").shapley.values, ab.load("shuffled").shapley.values)
    assert ab.load("shuffled").names == ("a", "b", "c")


def check_answer(printed, expected):
    """Compare the JSON of an audit with the audit: the answer, how sure it is, and the figures that decide."""
    assert printed["recommended"] == expected.recommended
    assert printed["confidence"] == expected.confidence
    assert printed["level"] == list(expected.level)
    assert printed["none_wins"] == expected.judgement.share_of_none
    assert printed["samples_needed"] == (expected.judgement.times_the_samples or 0)
    assert printed["notes_on_R"] == list(expected.notes_on_R)
    for number, method in enumerate(expected.methods):
        figures = printed["methods"][method]
        assert figures["wins"] == expected.judgement.shares[number]
        for name in ("leak", "invention", "length", "score", "evidence"):
            value, error = getattr(expected, name)
            assert figures[name] == pytest.approx(float(value[number]))
            assert figures[f"{name}_error"] == pytest.approx(float(error[number]))


def test_an_audit_that_judged_nothing_has_a_confidence_of_null(run, monkeypatch):
    nothing = float("nan")
    verdict = Verdict(stages=("",), shares=(nothing, nothing))
    monkeypatch.setattr(ab.Audit, "judgement", property(lambda _: verdict))
    command = ["audit", *MODEL, *DATA, "--absence", "zero", "--samples", 3]
    printed = json.loads(succeed(run(*command, "--json")))
    assert printed["recommended"] is None
    assert printed["confidence"] is None
    assert printed["level"] == []
    assert printed["none_wins"] is None
    assert printed["methods"]["zero"]["wins"] is None
    out = succeed(run(*command))
    assert out.startswith("No recommendation")
    assert "nan" not in out


@pytest.mark.slow
def test_audit_is_audit_and_cross_audit(run):
    rows = list(range(1, 25))
    words = ["--absence", "zero", "--absence", "half=0.5", "--draws", 2]
    words += [word for row in rows for word in ("--sample", row)]
    words += ["--region", "a", "--region", "c", "-o", "found"]
    printed = json.loads(succeed(run("audit", *MODEL, *DATA, *words, "--tau", "0.01", "--json")))
    arguments = (
        make_network(),
        ROWS[rows],
        CLASSES[rows],
        {"zero": ab.Baseline(0.0), "half": ab.Baseline(0.5)},
    )
    options = {"data": ROWS, "players": PLAYERS, "region": ["a", "c"], "draws": 2}
    expected = ab.audit(*arguments, tau=0.01, **options)
    torch.testing.assert_close(ab.load("found").R.value, expected.R.value)
    assert printed["methods"]["half"]["R"] == pytest.approx(float(expected.R.value[1]))
    assert printed["verdict"] == list(expected.verdict)
    assert printed["samples"] == rows
    check_answer(printed, expected)
    printed = json.loads(succeed(run("audit", *MODEL, *DATA, *words, "--cross", "--json")))
    expected = ab.cross_audit(*arguments, **options)
    torch.testing.assert_close(ab.load("found").R, expected.R)
    np.testing.assert_allclose(printed["R"], expected.R.numpy())


def test_an_audit_ends_in_time_and_on_ctrl_c(run, monkeypatch):
    command = ["audit", *MODEL, *DATA, "--absence", "zero", "-o", "found"]
    measure_curve = CurveStep.measure

    def use_up_the_time(step, setup, ledger):
        outcome = measure_curve(step, setup, ledger)
        setup.subject.evaluator.limit.began -= 9
        return outcome

    with monkeypatch.context() as clock:
        clock.setattr(CurveStep, "measure", use_up_the_time)
        out = succeed(run(*command, "--seconds", 9, "--evaluations", 9000))
    assert "the audit ended early (time limit of 9 s)" in out
    assert ab.load("found").record.stopped == "time limit of 9 s"

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(GamesStep, "measure", stop)
    code, out, _ = run(*command)
    assert code == 130
    assert "the audit ended early (interrupted)" in out
    assert ab.load("found").recommended == "zero"


@pytest.mark.slow
def test_images_are_audited_by_cells(run, tmp_path):
    from PIL import Image

    for number in range(6):
        folder = tmp_path / "images" / "ab"[number % 2]
        folder.mkdir(parents=True, exist_ok=True)
        pixels = np.random.default_rng(number).integers(0, 256, (4, 4), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.png")
    words = ["--data", "images", "--players", "grid:2x1", "--absence", "blur", "--absence", "mean"]
    out = succeed(run("audit", "--model", "mymodule:build_conv", *words))
    assert "Audit of 2 absences on 6 samples: 2 players" in out
    out = succeed(run("audit", "--model", "mymodule:build_conv", "--data", "images", "--evaluations", "20000"))
    assert "on 6 samples: 16 players" in out  # cells of a grid, with the usual absences
    assert "blur" in out


def test_an_audit_ends_after_two_minutes_unless_told_otherwise(run, monkeypatch):
    limits = []
    monkeypatch.setattr(ab, "audit", lambda *_, **settings: limits.append(settings["seconds"]))
    with pytest.raises(SystemExit):  # of a result that is none
        main(["audit", *MODEL, *DATA, "--absence", "zero"])
    with pytest.raises(SystemExit):
        main(["audit", *MODEL, *DATA, "--absence", "zero", "--seconds", "inf"])
    assert limits == [120.0, float("inf")]


def test_tokens_are_players_and_categories_by_themselves(run):
    np.savez("tokens.npz", x=np.random.default_rng(0).integers(0, 9, (20, 4)), y=np.arange(20) % 2)
    model = ["--model", "mymodule:Tokens", "--untrained", "--data", "tokens.npz"]
    succeed(run("learn", *model, *QUICK, "-o", "base.absentia"))
    values = ab.load("base.absentia").values
    torch.testing.assert_close(values, values.round())
    out = succeed(run("explain", *model, "--absence", "base.absentia"))
    assert "token 3" in out
    code, _, err = run("explain", *model, "--absence", "zero", "--players", "features")
    assert code == 2
    assert "players must be tokens" in err


@pytest.mark.slow
def test_a_table_with_categories_goes_all_the_way(run):
    import pandas as pd
    import skops.io
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    frame = pd.read_csv("data.csv")
    frame["city"] = np.array(["Bern", "Oslo", "Rome"])[np.arange(40) % 3]
    coded = make_column_transformer((OneHotEncoder(), ["city"]), remainder="passthrough")
    pipeline = make_pipeline(coded, LogisticRegression()).fit(frame.drop(columns="kind"), frame["kind"])
    skops.io.dump(pipeline, "model.skops")
    frame.to_csv("all.csv", index=False)
    frame[frame["city"] == "Rome"].to_csv("rome.csv", index=False)
    model = ["--model", "model.skops", "--target", "kind"]
    succeed(run("learn", *model, "--data", "all.csv", *QUICK, "-o", "base.absentia"))
    assert "Columns: a, b, c, city" in succeed(run("info", "base.absentia"))
    succeed(run("explain", *model, "--data", "rome.csv", "--absence", "base.absentia", "-o", "rome.absentia"))
    assert ab.load("rome.absentia").x[0, 3] == 2  # Rome's place among all cities, not among those of this file
    words = ["--absence", "base.absentia", "--absence", "median", "--samples", 3, "--draws", 2]
    succeed(run("audit", *model, "--data", "all.csv", *words))


def wines(count=60):
    """A table with text, and a pipeline that is fitted to it."""
    import pandas as pd
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    places = np.arange(count)
    frame = pd.DataFrame({"bottle": [f"no. {place}" for place in places]})
    frame["city"] = np.array(["Bern", "Oslo", "Rome"])[places % 3]
    frame["acid"] = places % 7 / 7
    frame["wine"] = np.where((frame["city"] == "Rome") | (frame["acid"] > 0.6), "barbera", "barolo")
    coded = make_column_transformer((OneHotEncoder(), ["city"]), remainder="passthrough")
    return frame, make_pipeline(coded, LogisticRegression()).fit(frame[["city", "acid"]], frame["wine"])


def run_wines(run, frame, pipeline, *words):
    import skops.io

    skops.io.dump(pipeline, "wine.skops")
    frame.to_csv("wine.csv", index=False)
    options = ["--model", "wine.skops", "--data", "wine.csv", "--target", "wine", "--absence", "mode"]
    return run("explain", *options, *words)


def test_rows_classes_and_categories_keep_their_names(run):
    frame, pipeline = wines()
    code, out, err = run_wines(run, frame, pipeline, "--index", "bottle", "--sample", 17, "--json")
    assert code == 0
    assert "absentia: Samples of wine.csv: row 17 (no. 17), barbera (city = Rome, acid = 0.4286)." in err
    assert json.loads(out)["record"]["rows"] == ["17 (no. 17)"]
    (sample,) = json.loads(out)["samples"]
    assert (sample["sample"], sample["name"]) == (17, "row 17 (no. 17), barbera")
    assert sample["inputs"] == {"acid": pytest.approx(0.428571, abs=1e-6), "city": "Rome"}


def test_a_category_that_the_model_refuses_is_named_with_its_column_and_row(run):
    frame, pipeline = wines()
    for row in (17, 0, 59):
        strange = frame.copy()
        strange.loc[row, "city"] = "Paris"
        code, _, err = run_wines(run, strange, pipeline, "--sample", 3)
        assert code == 2
        assert f"categories of column 'city' that the model knows. Got 'Paris' in row {row} (" in err
    frame.to_csv("known.csv", index=False)
    code, _, err = run(
        "explain",
        "--model",
        "wine.skops",
        "--data",
        "known.csv",
        "--background",
        "wine.csv",
        "--target",
        "wine",
        "--absence",
        "mode",
    )
    assert code == 2
    assert err.startswith("absentia: background must hold categories of column 'city'")


def test_missing_categories_are_a_category_and_that_is_said(run):
    frame, _ = wines()
    frame.loc[5, "city"] = None
    pipeline = wines()[1].fit(frame[["city", "acid"]], frame["wine"])
    code, _, err = run_wines(run, frame, pipeline, "--sample", 5)
    assert code == 0
    assert "Missing values are a category of their own in city." in err


def test_log_odds_of_a_tree_are_finite_and_say_how(run):
    from sklearn.tree import DecisionTreeClassifier

    Path("tree.py").write_text("tree = None\n")
    sys.modules.pop("tree", None)
    sys.path.insert(0, str(Path.cwd()))
    import tree

    tree.tree = DecisionTreeClassifier().fit(ROWS.numpy(), CLASSES.numpy())
    try:
        words = ["explain", "--model", "tree:tree", *DATA, "--absence", "mean"]
        code, out, _ = run(*words)
        assert code == 0
        assert "probabilities of 0 and 1 are read as " in out
        code, out, _ = run(*words, "--readout", "probability")
        assert code == 0
    finally:
        sys.modules.pop("tree")


def test_demo_runs_the_demonstration(run, monkeypatch):
    asked = []
    monkeypatch.setattr(demonstration, "run", lambda folder, seed: asked.append((folder, seed)))
    succeed(run("demo", "--output", "there", "--seed", 7))
    assert asked == [(Path("there"), 7)]


@pytest.mark.parametrize("command", ["demo", "learn", "explain", "audit", "report", "info"])
def test_every_command_has_help_with_an_example(run, command):
    assert f"absentia {command}" in succeed(run(command, "--help")).split("Example:")[1]
    assert command in succeed(run("--help"))


def test_completion_can_be_installed(run):
    assert "--install-completion" in succeed(run("--help"))
    assert "--install-completion" in succeed(run())  # no words at all: the help


def test_version_and_help():
    runner = CliRunner()
    assert runner.invoke(app, ["--version"]).output.strip() == f"absentia {__version__}"
    assert "demo" in runner.invoke(app, ["--help"]).output
    assert "Example" in runner.invoke(app, ["demo", "--help"]).output
