"""Ends of commands: exit codes of wrong uses, interrupts and signals."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

import absentia as ab
from absentia import AbsentiaError, demo
from absentia.cli import main
from command_process import COMMAND
from command_words import DATA, MODEL, QUICK
from own_files import make_network, make_rows, write_files
from wrong_uses import WRONG_USES


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


def test_an_error_is_one_sentence_and_exit_code_2(monkeypatch, capsys):
    def fail(output, seed):
        raise AbsentiaError("x must be this. Got that instead.")

    monkeypatch.setattr(demo, "run", fail)
    monkeypatch.setattr(sys, "argv", ["absentia", "demo"])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 2
    assert capsys.readouterr().err == "absentia: x must be this. Got that instead.\n"


@pytest.mark.slow
def test_a_wrong_option_gives_exit_code_2():
    result = subprocess.run([sys.executable, "-m", "absentia", "demo", "--sed", "1"], capture_output=True, text=True)
    assert result.returncode == 2
    assert "Traceback" not in result.stderr


def test_a_traceback_is_shown_when_asked_for(run):
    with pytest.raises(ab.AbsentiaError):
        main(["--traceback", "info", "missing"])


def test_an_interrupt_in_the_middle_keeps_the_best_so_far_as_a_whole(run):
    data = ["--data", "data.csv", "--target", "kind", "--readout", "output"]
    code, _, err = run("learn", "--model", "mymodule:interrupt", *data, *QUICK, "--polish", "-o", "base.absentia")
    assert code == 130
    assert "interrupted" in err
    if Path("base.absentia").exists():
        assert not ab.load("base.absentia").converged
    assert not list(Path().glob("*.part"))


def test_an_interrupt_while_writing_leaves_nothing(run, monkeypatch):
    def interrupt(source, target):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    for words in (
        ["learn", *QUICK],
        ["explain", "--absence", "zero"],
        ["audit", "--absence", "zero", "--samples", 3],
    ):
        code, _, err = run(*words, *MODEL, *DATA, "-o", "result.absentia")
        assert code == 130
        assert err.endswith("absentia: interrupted.\n")
    monkeypatch.undo()
    assert not list(Path().glob("result*"))


# A package whose import takes long, and which mistakes an interrupt for a failed import.
SLOW_PACKAGE = """
import sys
import time

print("loading", file=sys.stderr, flush=True)
try:
    time.sleep(60)
except KeyboardInterrupt:
    raise ImportError("no such extension")
"""

# A model that says which process runs it. Workers then wait until they are ended.
SPEAKING_MODEL = """
import os
import sys
import time


def model(rows):
    is_command = os.getpid() == os.getsid(0)  # the command leads its session, workers do not
    if not is_command:
        sys.stderr.write(f"worker {os.getpid()} runs\\n")
        time.sleep(60)
    return rows.prod(1)
"""


@pytest.fixture
def start_process(tmp_path):
    """Start processes whose output is read, and which Ctrl-C reaches; end them after the test."""
    processes = []

    def start(words, **options):
        process = subprocess.Popen(
            [str(word) for word in words],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # Tests that run in the background may have been told to ignore Ctrl-C, and would pass that on.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            **options,
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


@pytest.mark.slow
def test_ctrl_c_ends_a_real_process_with_130_and_no_half_file(tmp_path, start_process):
    write_files(tmp_path)
    words = ["learn", "--model", "mymodule:slow", *DATA, "--readout", "output", "-o", "base.absentia"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    process = start_process([sys.executable, "-m", "absentia", *words], env=environment)
    assert any("Learning a baseline for 3 players …" in process.stderr.readline() for _ in range(2))
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    # Both are 130 to a shell. Python ends itself by the signal if it came while code in a string ran, as in imports.
    assert process.returncode in (130, -signal.SIGINT)
    assert "absentia: interrupted." in err
    assert "Traceback" not in err
    assert not list(tmp_path.glob("*.part"))
    if (tmp_path / "base.absentia").exists():
        assert "interrupted" in ab.load(tmp_path / "base.absentia").record.stopped


@pytest.mark.slow
@pytest.mark.parametrize("start", [["-m", "absentia"], ["-c", "from absentia_command import main; main()"]])
def test_ctrl_c_while_the_library_is_loaded_prints_one_line(start, tmp_path, start_process):
    for package in ("numpy", "torch", "typer"):
        folder = tmp_path / package
        folder.mkdir()
        (folder / f"{package}.py").write_text(SLOW_PACKAGE)
        search_path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
        environment = os.environ | {"PYTHONPATH": search_path}
        process = start_process([sys.executable, *start, "info"], env=environment)
        assert process.stderr.readline() == "loading\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        assert process.returncode == 130
        assert err == "absentia: interrupted.\n"


def wait_for_workers(process, count):
    """Read what a command prints until that many workers run."""
    workers = set()
    for line in process.stderr:
        workers.update(re.findall(r"worker (\d+) runs", line))
        if len(workers) == count:
            return
    pytest.fail(f"The command ended before {count} workers ran.")


@pytest.mark.slow
def test_the_workers_of_a_command_that_is_ended_end_too(tmp_path, start_process):
    write_files(tmp_path)
    (tmp_path / "speaking.py").write_text(SPEAKING_MODEL)
    words = ["--model", "speaking:model", *DATA, "--readout", "output", "--absence", "mean"]
    size = ["--samples", 40, "--batch-size", 1, "--jobs", 2]
    process = start_process([*COMMAND, "explain", *words, *size], start_new_session=True)
    wait_for_workers(process, 2)
    process.send_signal(signal.SIGTERM)
    # Workers share the command's stderr, so its end is read only when the last of them has ended.
    process.communicate(timeout=30)
    assert process.returncode == 143
