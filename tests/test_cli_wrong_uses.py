"""Wrong uses of every command: exit code 2, one sentence that a user can act on, and no traceback."""

import os
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

import absentia as ab
from absentia.cli import main
from own_files import make_network, make_rows, write_files

RUN = "-m mymodule:build -d data.csv -t kind"

WRONG_USES = {
    "demo": [
        ("--sed 1", "No such option: --sed"),
        ("--seed one", "--seed"),
        ("--seed -1", "--seed"),
        (f"--seed {2**63}", "--seed"),
        ("-o data.csv", "'data.csv' is a file"),
        ("again", "unexpected extra argument"),
        ("--output", "requires an argument"),
    ],
    "learn": [
        ("", "Missing option '--model'"),
        ("-m mymodule:build", "Missing option '--data'"),
        ("-m nowhere:build -d data.csv", "No module named 'nowhere'"),
        ("-m mymodule:build -d nowhere.csv", "data must name a file or a folder that exists"),
        ("-m mymodule:build -d data.csv", "Was --target forgotten? It could name kind."),
        ("-m mymodule:build -d text.csv", "Got text in 'kind' instead"),
        ("-m mymodule:build -d text.csv", "Was --target forgotten? It could name kind."),
        ("-m mymodule:Net -d data.csv -t kind", "mymodule:Net makes has random weights. Pass --weights FILE"),
        ("-m mymodule:build -d data.csv -t nothing", "target must name a column"),
        (f"{RUN} -o nowhere/base", "output must lie in a folder that exists"),
        (f"{RUN} -o .", "is a directory"),
        (f"{RUN} -o ./data.csv", "output must be another file than those that are read. Got data.csv"),
        (f"{RUN} --loss none", "'none' is not one of"),
        (f"{RUN} --share none", "'none' is not one of"),
        (f"{RUN} --orders many", "orders must be"),
        (f"{RUN} --orders nan --loss marginal", "orders must be"),
        (f"{RUN} --bounds nan,1", "bounds must be"),
        (f"{RUN} --orders 9", "orders must be"),
        (f"{RUN} --bounds low", "bounds must be"),
        (f"{RUN} --bounds 1,2,3", "bounds must be"),
        (f"{RUN} --bounds 7,8", "bounds must overlap the data"),
        (f"{RUN} --start nowhere", "start must be"),
        (f"{RUN} --start 99", "start must lie within the bounds"),
        (f"{RUN} --categorical z", "categorical must name columns"),
        (f"{RUN} --rows-per-comparison 3", "rows_per_comparison must be at least 256"),
        (f"{RUN} --steps -1", "--steps"),
        (f"{RUN} --samples 0", "--samples"),
        (f"{RUN} --class 5", "y must lie between 0 and 1"),
        (f"{RUN} --class five", "class must be a class number"),
        (f"{RUN} --readout none", "readout must be log-odds"),
        (f"{RUN} --seed -1", "--seed"),
        (f"{RUN} --seed {2**63}", "--seed"),
        (f"{RUN} --players grid:2x2", "that suits samples of shape (3,)"),
        (f"{RUN} --checkpoint nowhere/it", "checkpoint must lie in a folder that exists"),
        (f"{RUN} --checkpoint it -o it", "output must be another file than those that are read. Got it"),
        (f"{RUN} -o {'a' * 244}", "output must have a name of at most 220 bytes. Got 244"),
        (f"{RUN} --steps {'9' * 26}", "steps must lie within ±2^63"),
    ],
    "explain": [
        (f"{RUN} -w w.safetensors -a zero -o ./w.safetensors", "output must be another file than those"),
        (f"{RUN} -a b=class.absentia -o class.absentia", "output must be another file than those that are read"),
        (f"{RUN} -a zero -b text.csv -o text.csv", "output must be another file than those that are read"),
        ("-m mymodule:build -d shifted.csv -t kind -a zero", "Length of header or names does not match"),
        ("-m mymodule:build -d a_pipe.csv -t kind -a zero", "data must name a file or a folder that exists"),
        ("-m exits:build -d data.csv -t kind -a zero", "be imported or made. Got exits:build (SystemExit)"),
        ("-m mymodule:later -d data.csv -a zero --batch-size 1", "ZeroDivisionError: now. The model or a file"),
        (f"{RUN} -a deep.absentia", "path must be a file that absentia saved"),
        (f"{RUN} -a empty.absentia", "path must be a file that absentia saved"),
        (f"{RUN} -a zero --class {'9' * 5000}", "absentia --traceback … shows where."),
        (f"{RUN} -a zero --batch-size 99999999999999999999", "batch_size must lie within ±2^63"),
        (f"{RUN} -a noise:99999999999", "This takes more memory than there is"),
        (RUN, "Missing option '--absence'"),
        (f"{RUN} -a nothing", "absence must be"),
        (f"{RUN} -a zero --sample 40", "sample must be a row from 0 to 39"),
        (f"{RUN} -a zero --sample x", "--sample"),
        (f"{RUN} -a zero --sample 1 --samples 2", "samples must be left out"),
        (f"{RUN} -a zero --size 4", "size must be two numbers"),
        (f"{RUN} -a zero --device meta", "device must be one that torch has here: cpu"),
        (f"{RUN} -a zero --index nothing", "index must name a column of the table: a, b, c, kind"),
        ("-m mymodule:build -d data.npz -a zero --index a", "index must be left out if the data are not a table"),
        (f"{RUN} -a zero --size 4x4", "be left out if the data are not a folder"),
        (f"{RUN} -a zero --rows 0", "--rows"),
        (f"{RUN} -a zero --evaluations 0", "--evaluations"),
        (f"{RUN} -a zero --weights data.csv", "weights must be a file that torch"),
        (f"{RUN} -a zero --background nowhere.csv", "background must name a file"),
        (f"{RUN} -a zero --readout features:1", "readout must give one number"),
        (f"{RUN} -a blur", "x must be images"),
        (f"{RUN} -a zero --classes no", "target must hold classes of the model: no"),
        ("-m bad.pkl -d data.csv -a zero", "bad.pkl is a pickle"),
        ("-m mymodule:build -d data.npz -a class.absentia:x", "absence must be"),
        ("-m mymodule:build -d data.csv --drop kind -a class.absentia --readout output", "y must be given"),
        ("-m mymodule:of_torch -d data.csv -t a -a zero --readout logit", "target must be given"),
    ],
    "audit": [
        (f"{RUN} -a zero -a zero", "'zero' twice"),
        (f"{RUN} -a zero --region z", "region must hold players"),
        (f"{RUN} -a zero --draws 0", "--draws"),
        (f"{RUN} -a zero --tau -1", "--tau"),
        (f"{RUN} -a zero --tau 1 --cross", "tau must be left out with --cross"),
        (f"{RUN} -a zero --seconds 9 --cross", "seconds must be left out with --cross"),
        (f"{RUN} -a zero --seconds 0", "seconds must be a positive number"),
        (f"{RUN} -a zero --evaluations 9", "evaluations must be at least"),
        (f"{RUN} -a zero --max-players 99", "max_players must lie between"),
        (f"{RUN} -a zero --sample 40", "sample must be a row from 0 to 39"),
        (f"{RUN} -a one.absentia", "be a saved baseline, imputer or surrogate"),
        (f"{RUN} -a zero -o nowhere/it", "output must lie in a folder that exists"),
        (f"{RUN} -a surrogate.absentia --cross", "absences must mask the model's input"),
    ],
    "report": [
        ("", "Missing argument"),
        ("nowhere.absentia", "path must name a file that exists"),
        ("data.csv", "be a file that absentia saved"),
        ("foreign.safetensors", "be a file that absentia saved"),
        ("surrogate.absentia", "hold explanations, audits or learned baselines. Got Surrogate"),
        ("one.absentia one.absentia one.absentia", "files must be named once"),
        ("one.absentia -o one.absentia", "output must be another file"),
        ("one.absentia -o nowhere/report.html", "output must lie in a folder that exists"),
        ("one.absentia -o .", "is a directory"),
        ("one.absentia --title", "requires an argument"),
    ],
    "info": [
        ("nowhere", "file must name a file that exists"),
        (".", "file must name a file"),
        ("data.csv", "be a file that absentia saved"),
        ("foreign.safetensors", "be a file that absentia saved"),
        ("one.absentia two.absentia", "unexpected extra argument"),
        ("--jsn", "No such option: --jsn"),
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def user_folder(tmp_path_factory):
    folder = write_files(tmp_path_factory.mktemp("user"))
    rows, classes = make_rows()
    x = torch.from_numpy(rows)
    ab.explain(make_network(), x[:1], absence=ab.Baseline(0.0)).save(folder / "one.absentia")
    quick = ab.LearningOptions(steps=1, rows_per_comparison=256, samples=4)
    learned = ab.learn_baseline(make_network(), x, classes, share="class", loss="marginal", options=quick)
    learned.save(folder / "class.absentia")
    ab.train_surrogate(make_network(), x.float(), epochs=1, progress=False).save(folder / "surrogate.absentia")
    save_file({"a": torch.zeros(2)}, folder / "foreign.safetensors")
    text = (folder / "data.csv").read_text().replace(",1\n", ",yes\n").replace(",0\n", ",no\n")
    (folder / "text.csv").write_text(text)
    (folder / "bad.pkl").write_bytes(b"\x80\x04N.")
    (folder / "shifted.csv").write_text("a,b,c,kind\n1,2,3,0,1\n2,3,1,0,1\n")
    (folder / "exits.py").write_text("import sys\nsys.exit()\n")
    os.mkfifo(folder / "a_pipe.csv")
    save_file({}, folder / "deep.absentia", metadata={"absentia": "[" * 100_000})
    with (folder / "empty.absentia").open("wb") as sparse:
        sparse.truncate(2**36)  # more than memory holds
    return folder


def test_every_command_has_at_least_five_wrong_uses():
    assert len(WRONG_USES) == 6
    assert min(len(uses) for uses in WRONG_USES.values()) >= 5


@pytest.mark.parametrize(
    ("command", "words", "message"),
    [(command, words, message) for command, uses in WRONG_USES.items() for words, message in uses],
)
def test_a_wrong_use_gets_one_sentence_and_exit_code_2(user_folder, monkeypatch, capsys, command, words, message):
    monkeypatch.chdir(user_folder)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = {path for path in Path().iterdir() if path.name != "__pycache__"}
    with pytest.raises(SystemExit) as caught:
        main([command, *words.split()])
    sys.modules.pop("mymodule", None)
    out, err = capsys.readouterr()
    assert caught.value.code == 2
    assert out == ""
    said = [line for line in err.splitlines() if line != "a module may print when it is imported"]
    assert len(said) == 1, err
    assert said[0].startswith("absentia: ")
    assert said[0].endswith(".")
    assert message in said[0]
    assert {path for path in Path().iterdir() if path.name != "__pycache__"} == before


def test_a_command_that_is_none_gets_a_sentence(capsys):
    for words in (["explian"], ["--verzion"]):
        with pytest.raises(SystemExit) as caught:
            main(words)
        assert caught.value.code == 2
        said = capsys.readouterr().err
        assert said.count("\n") == 1
        assert "?." not in said


def test_a_folder_that_may_not_be_written_gets_a_sentence(user_folder, monkeypatch, capsys):
    def refuse(*_):
        raise PermissionError(13, "Permission denied", "one.html")

    monkeypatch.chdir(user_folder)
    monkeypatch.setattr(ab, "write_report", lambda *_, **__: refuse())
    with pytest.raises(SystemExit) as caught:
        main(["report", "one.absentia", "-o", "one.html"])
    assert caught.value.code == 2
    assert capsys.readouterr().err == "absentia: one.html can't be used: Permission denied.\n"
