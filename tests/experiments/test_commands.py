"""The command line of the experiments: what it runs, prints and writes, and how it refuses wrong uses."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import absentia as ab
from experiments import __main__ as commands
from experiments import trained_models
from experiments.datasets import MNIST, SST2, mnist, sst2
from experiments.tables import ResultTable, write_results
from published import idx, publish, tsv

ROOT = Path(__file__).parents[2]


@pytest.fixture
def seen(monkeypatch):
    """Replace every experiment by one that returns a table with its name; list the options they were run with."""
    seen = []

    def replaced(name):
        def run(options):
            seen.append((name, options))
            table = ResultTable(f"About {name}", ("a",), "A note.")
            table.add(len(seen))
            return [table]

        return replace(commands.EXPERIMENTS[name], about="a test", run=run)

    for name in commands.EXPERIMENTS:
        monkeypatch.setitem(commands.EXPERIMENTS, name, replaced(name))
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


def test_an_experiment_is_run_shown_and_written(seen, tmp_path, capsys):
    assert commands.main(["tsang", "--seed", "1", "-o", str(tmp_path)]) == 0
    assert seen == [("tsang", commands.Options(1))]
    assert "About tsang" in capsys.readouterr().out
    text = (tmp_path / "tsang.md").read_text()
    assert text.startswith("# Reproduction: tsang\n\nWritten by `python -m experiments tsang --seed 1`;")


def test_options_reach_the_experiment_and_the_recorded_command(seen, tmp_path):
    words = ["functions", "--generated", "--count", "3", "--workers", "2", "-o", str(tmp_path)]
    assert commands.main(words) == 0
    assert commands.main(["census", "--epochs", "7", "-o", str(tmp_path)]) == 0
    assert commands.main(["usual", "--problems", "wine,trees", "--seeds", "0,2", "-o", str(tmp_path)]) == 0
    assert seen == [
        ("functions", commands.Options(0, workers=2, count=3, generated=True)),
        ("census", commands.Options(0, epochs=7)),
        ("usual", commands.Options(0, problems=("wine", "trees"), seeds=(0, 2))),
    ]
    recorded = [json.loads((tmp_path / f"{stem}.json").read_text())["command"]
                for stem in ("functions-generated", "census", "learned_against_usual")]  # fmt: skip
    assert recorded == [
        "python -m experiments functions --generated --count 3 --seed 0",
        "python -m experiments census --epochs 7 --seed 0",
        "python -m experiments usual --problems wine,trees --seeds 0,2",
    ]


def test_json_is_all_that_is_printed(seen, tmp_path, capsys):
    commands.main(["tsang", "-o", str(tmp_path), "--json"])
    printed = json.loads(capsys.readouterr().out)
    assert printed["tables"][0]["rows"] == [["1"]]


def test_all_experiments_are_run_in_turn(seen, tmp_path, capsys):
    assert commands.main(["all", "--seed", "2", "-o", str(tmp_path), "--json"]) == 0
    assert seen == [(name, commands.Options(2)) for name in commands.EXPERIMENTS]
    assert len(json.loads(capsys.readouterr().out)) == len(list(tmp_path.glob("*.md"))) == len(seen)


def test_list_names_every_experiment(capsys):
    assert commands.main(["list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(commands.EXPERIMENTS)


def test_every_experiment_has_a_result_that_its_command_wrote():
    for name, experiment in commands.EXPERIMENTS.items():
        written = json.loads((commands.RESULTS / f"{experiment.file or name}.json").read_text())
        assert written["command"].split(" --")[0] in (f"python -m experiments {name}", f"absentia reproduce {name}")


def test_the_package_runs_as_a_module():
    path = os.pathsep.join([str(Path(ab.__file__).parents[1]), str(ROOT)])
    ended = subprocess.run(
        [sys.executable, "-m", "experiments", "list"],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert ended.stdout.startswith("functions  ")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "arguments are required: COMMAND"),
        ("nothing", "invalid choice: 'nothing'"),
        ("tsang --workers 0", "argument --workers: '0' is not a whole number of at least 1"),
        ("functions --count 0", "argument --count"),
        ("census --epochs 0", "argument --epochs"),
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
        ("train imagenet", "name must be one of census, credit, mnist, cifar10, sst2. Got 'imagenet' instead."),
        ("train mnist --network cnn", "network must be one of lenet, alexnet on mnist. Got 'cnn' instead."),
        ("train mnist -o .", "path must name a file. Got the folder . instead."),
        ("tsang -o FILE", "output must name a folder. Got the file FILE instead."),
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
    def interrupt(_options):
        raise KeyboardInterrupt

    monkeypatch.setitem(commands.EXPERIMENTS, "tsang", commands.Experiment("a test", interrupt))
    assert commands.main(["tsang", "-o", str(tmp_path)]) == 130
    assert capsys.readouterr().err == "experiments: interrupted.\n"
    assert not list(tmp_path.iterdir())


@pytest.fixture
def small_data(data, monkeypatch):
    """A few digits and a few sentences in the published forms."""
    draw = np.random.default_rng(0)
    images = [idx(draw.integers(0, 256, (16, 28, 28), dtype=np.uint8)), idx(np.arange(16, dtype=np.uint8) % 10)]
    text = tsv(["a good film", "a bad film", "good", "bad bad"] * 4, [1, 0, 1, 0] * 4)
    digits, reviews = publish(data, MNIST, *images, *images), publish(data, SST2, text, text)
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
