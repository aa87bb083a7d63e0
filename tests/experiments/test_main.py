"""The command line of the experiments: what it runs, prints and writes, and how it refuses wrong uses."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import absentia as ab
from experiments import __main__ as commands
from experiments import registry, trained_models
from experiments.datasets import MNIST, SST2, mnist, sst2
from experiments.experiment import Claim, Experiment, Found, Rule, Verdict, read_record
from experiments.tables import ResultTable, write_results
from published import idx, publish, tsv

ROOT = Path(__file__).parents[2]


@pytest.fixture
def seen(monkeypatch, data):
    """Replace the experiments by two that return a table with their name; list the runs of their parts."""
    seen = []

    def part(run):
        seen.append((run.experiment, run.part, run.size, run.seed))
        table = ResultTable(f"About {run.experiment}", ("a",), "A note.")
        table.add(len(seen))
        return Found({"figure": 1.0}, (table,))

    def judge(figures):
        return Verdict("as stated", f"{len(figures)} parts", "It is made so.")

    rule = Rule("As stated: always.", "2026-11-18", "before")
    claims = (Claim("it runs", "Table 0", "2", rule, judge),)
    both = (
        Experiment("table-0", "nothing", "None.", {"one": part, "two": part}, claims, aliases={"old": ("two",)}),
        Experiment("fig-0", "nothing drawn", "None.", {"one": part}, claims),
    )
    monkeypatch.setattr(registry, "EXPERIMENTS", both)
    monkeypatch.setattr(commands, "EXPERIMENTS", both)
    return seen


def test_results_are_written_for_people_and_machines(tmp_path):
    table = ResultTable("A title", ("a", "b"), "A note.")
    table.add(1, "x|y")
    path = write_results(tmp_path / "new", "name", "python -m experiments name", [table])
    assert "| 1 | x\\|y |" in path.read_text()
    assert "Written by `python -m experiments name`" in path.read_text()
    written = json.loads((tmp_path / "new" / "name.json").read_text())
    assert written["command"] == "python -m experiments name"
    assert written["tables"] == [
        {"title": "A title", "note": "A note.", "columns": ["a", "b"], "rows": [["1", "x|y"]]}
    ]


def test_an_experiment_is_run_shown_and_recorded(seen, tmp_path, capsys):
    assert commands.main(["table-0", "--seed", "1", "--workers", "1", "-o", str(tmp_path)]) == 0
    assert seen == [("table-0", "one", "full", 1), ("table-0", "two", "full", 1)]
    printed = capsys.readouterr().out
    assert "About table-0" in printed
    assert "table-0, it runs: as stated. 2 parts. It is made so." in printed
    assert read_record(tmp_path, "table-0", "full").parts["two"].seed == 1


def test_an_alias_and_only_run_some_parts_and_keep_the_others(seen, tmp_path):
    assert commands.main(["table-0", "--only", "one", "-o", str(tmp_path)]) == 0
    assert commands.main(["old", "--seed", "3", "-o", str(tmp_path)]) == 0
    assert [part for _, part, *_ in seen] == ["one", "two"]
    parts = read_record(tmp_path, "table-0", "full").parts
    assert {name: part.seed for name, part in parts.items()} == {"one": 0, "two": 3}


def test_records_of_other_seeds_have_a_folder_of_their_own(seen, tmp_path, monkeypatch):
    monkeypatch.setattr(commands, "RESULTS", tmp_path)
    assert commands.main(["fig-0", "--seed", "2"]) == 0
    assert commands.main(["fig-0"]) == 0
    assert read_record(tmp_path / "seed-2", "fig-0", "full").parts["one"].seed == 2
    assert read_record(tmp_path, "fig-0", "full").parts["one"].seed == 0


def test_quick_runs_have_records_of_their_own(seen, tmp_path):
    assert commands.main(["fig-0", "--quick", "-o", str(tmp_path)]) == 0
    assert seen == [("fig-0", "one", "quick", 0)]
    assert [path.name for path in tmp_path.glob("*.json")] == ["fig-0-quick.json"]


def test_json_is_all_that_is_printed(seen, tmp_path, capsys):
    commands.main(["fig-0", "-o", str(tmp_path), "--json"])
    printed = json.loads(capsys.readouterr().out)
    assert printed["parts"]["one"]["found"]["tables"][0]["rows"] == [["1"]]


def test_all_experiments_are_run_and_reported_and_an_error_stops_only_its_own(seen, tmp_path, capsys, monkeypatch):
    def fail(run):
        raise ab.AbsentiaError("It fails.")

    failing = Experiment("table-9", "failure", "None.", {"one": fail})
    monkeypatch.setattr(commands, "EXPERIMENTS", (failing, *commands.EXPERIMENTS))
    assert commands.main(["all", "--quick", "--workers", "1", "-o", str(tmp_path / "results")]) == 2
    assert len(seen) == 3
    printed = capsys.readouterr()
    assert "table-9, one: It fails." in printed.out
    assert "Got errors in table-9 one instead" in printed.err
    assert "| [it runs](pages/fig-0.md) |" in (tmp_path / "RESULTS.md").read_text()
    assert (tmp_path / "pages" / "fig-0.md").is_file()
    assert '<h2 id="fig-0">' in (tmp_path / "results" / "report.html").read_text()


def test_list_names_every_experiment(capsys):
    assert commands.main(["list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [
        experiment.name for experiment in registry.EXPERIMENTS
    ]


def test_retraining_and_the_quick_size_reach_the_networks(monkeypatch, seen, tmp_path):
    asked = []
    monkeypatch.setattr(trained_models, "trained", lambda name, seed=0, network=None, **rest: asked.append(rest))
    part = lambda run: Found({"figure": float(run.network("mnist", 0) is None)})  # noqa: E731
    one = Experiment("table-0", "nothing", "None.", {"one": part})
    monkeypatch.setattr(registry, "EXPERIMENTS", (one,))
    for words in ([], ["--retrain"], ["--quick"]):
        assert commands.main(["table-0", "-o", str(tmp_path), *words]) == 0
    assert [(one["retrain"], one["quick"]) for one in asked] == [(False, False), (True, False), (False, True)]


@pytest.mark.slow
def test_the_package_runs_as_a_module():
    path = os.pathsep.join([str(Path(ab.__file__).parents[1]), str(ROOT)])
    ended = subprocess.run(
        [sys.executable, "-m", "experiments", "list"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout.startswith("table-1")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "arguments are required: COMMAND"),
        ("nothing", "invalid choice: 'nothing'"),
        ("tsang --workers 0", "argument --workers: '0' is not a whole number of at least 1"),
        ("tsang --seed x", "argument --seed: 'x' is not a whole number of at least 0"),
        ("tsang --seed -1", "argument --seed"),
        ("usual --seeds 0,x", "argument --seeds: 'x' is not a whole number of at least 0"),
        ("tsang --count 3", "unrecognized arguments: --count 3"),
        ("train", "arguments are required: name"),
        ("train mnist --epochs few", "argument --epochs"),
    ],
)
def test_words_that_no_command_takes_are_refused(words, message, capsys):
    with pytest.raises(SystemExit) as end:
        commands.main(words.split())
    assert end.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("train none", "name must be one of census, credit, mnist, cifar10, sst2, tv-news. Got 'none' instead."),
        (
            "train mnist --network cnn",
            "network must be one of lenet, alexnet, resnet32, vgg16 on mnist. Got 'cnn' instead.",
        ),
        ("train mnist -o .", "path must name a file. Got the folder . instead."),
        ("tsang -o FILE", "output must name a folder. Got the file FILE instead."),
        ("table-9 --only x", "parts of table-9 must be among ratios. Got 'x' instead."),
    ],
)
def test_wrong_values_give_one_sentence_and_exit_code_2(words, sentence, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    words, sentence = (text.replace("FILE", str(tmp_path / "file")) for text in (words, sentence))
    assert commands.main(words.split()) == 2
    assert capsys.readouterr().err == f"experiments: {sentence}\n"
    with pytest.raises(ab.AbsentiaError):
        commands.main(["--traceback", *words.split()])


def test_an_interrupted_experiment_ends_with_130(seen, tmp_path, monkeypatch, capsys):
    def interrupt(_run):
        raise KeyboardInterrupt

    one = Experiment("table-0", "nothing", "None.", {"one": interrupt})
    monkeypatch.setattr(registry, "EXPERIMENTS", (one,))
    assert commands.main(["table-0", "-o", str(tmp_path)]) == 130
    assert "interrupted. The same command goes on from what is finished." in capsys.readouterr().err
    assert not list(tmp_path.glob("*.json"))


@pytest.fixture
def small_data(data, monkeypatch):
    """A few digits and a few sentences in the published forms."""
    draw = np.random.default_rng(0)
    images = [idx(draw.integers(0, 256, (16, 28, 28), dtype=np.uint8)), idx(np.arange(16, dtype=np.uint8) % 10)]
    text = tsv(["a good film", "a bad film", "good", "bad bad"] * 4, [1, 0, 1, 0] * 4)
    digits = publish(data, MNIST, *images, *images)
    reviews = publish(data, SST2, text, text)
    monkeypatch.setitem(trained_models.LOADERS, "mnist", lambda: mnist(digits))
    monkeypatch.setitem(trained_models.LOADERS, "sst2", lambda: sst2(reviews))


@pytest.mark.usefixtures("small_data")
@pytest.mark.parametrize("words", [("mnist",), ("sst2",), ("sst2", "--network", "lstm")], ids=" ".join)
def test_train_prints_accuracy_and_file(words, capsys):
    assert commands.main(["train", *words, "--epochs", "1", "--seed", "2"]) == 0
    path = trained_models.model_file(words[0], seed=2, network=words[2] if len(words) > 1 else None, epochs=1)
    header = trained_models.load(path)[1]
    assert capsys.readouterr().out == (
        f"{header.architecture} on {words[0]}: test accuracy {header.test_accuracy:.2%}\nWritten to {path}\n"
    )


@pytest.mark.usefixtures("small_data")
def test_train_writes_to_a_given_file_and_prints_its_header_as_json(tmp_path, capsys):
    path = tmp_path / "own.safetensors"
    assert commands.main(["train", "sst2", "--epochs", "2", "-o", str(path), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["file"] == str(path)
    assert trained_models.Header(**printed["header"]) == trained_models.load(path)[1]
    assert printed["header"]["data_set"] == "sst2"
