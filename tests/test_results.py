import errno
import math
import os
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

import absentia as ab
from absentia import AbsentiaError
from absentia.errors import require, wrong
from absentia.storage import Saved, load, read_header, read_tensors, write_tensors
from absentia.text import align, count_of, fold, html_result, html_table, with_error, written, written_alike

TENSORS = {"a": torch.arange(3.0), "b": torch.tensor([[1, 2]])}
OLD_FILES = Path(__file__).parent / "old_files"


@dataclass(frozen=True, eq=False)
class Inner:
    tensor: torch.Tensor
    names: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Thing(Saved, kind="thing", format=4):
    values: torch.Tensor
    none: torch.Tensor | None
    inner: Inner
    maybe: Inner | None
    costs: dict[str, Inner]
    number: float
    flags: tuple[bool, ...] = ()
    added_later: int = 7
    listed: list[int] = field(default_factory=list)

    @staticmethod
    def from_old(tensors, header):
        tensors |= {"values": tensors["a"], "inner.tensor": tensors["b"]}
        return {"inner": {"names": ["c"]}, "costs": {}, "number": header["format"]}


def thing():
    inner = Inner(torch.arange(4), ("a", "b"))
    return Thing(torch.rand(2, 3)[:, :2], None, inner, inner, {"x": inner}, 0.1, (True, False), listed=[1, 2])


def test_what_is_written_is_read(tmp_path):
    write_tensors(tmp_path / "file", TENSORS, {"kind": "thing", "list": [1, 2]})
    tensors, header = read_tensors(tmp_path / "file")
    assert header == {"kind": "thing", "list": [1, 2]}
    assert tensors.keys() == TENSORS.keys()
    assert all(torch.equal(tensors[name], TENSORS[name]) for name in TENSORS)


def test_a_result_is_read_as_it_was_saved_with_the_types_of_its_fields(tmp_path):
    saved = thing()
    saved.save(tmp_path / "file", coding={"columns": ["a"]})
    found = Thing.load(tmp_path / "file")
    assert torch.equal(found.values, saved.values)
    assert found.none is None
    assert torch.equal(found.maybe.tensor, saved.maybe.tensor)
    assert isinstance(found.costs["x"], Inner)
    assert torch.equal(found.costs["x"].tensor, saved.inner.tensor)
    assert (found.inner.names, found.number, found.flags, found.listed) == (("a", "b"), 0.1, (True, False), [1, 2])
    assert read_header(tmp_path / "file")["coding"] == {"columns": ["a"]}


def test_a_field_that_a_file_lacks_gets_its_default(tmp_path):
    thing().save(tmp_path / "file")
    tensors, header = read_tensors(tmp_path / "file")
    del header["fields"]["added_later"]
    write_tensors(tmp_path / "older", tensors, header)
    assert Thing.load(tmp_path / "older").added_later == 7


def test_files_of_old_formats_are_read_by_the_class(tmp_path):
    write_tensors(tmp_path / "file", TENSORS, {"kind": "thing", "format": 2})
    found = Thing.load(tmp_path / "file")
    assert torch.equal(found.values, TENSORS["a"])
    assert torch.equal(found.inner.tensor, TENSORS["b"])
    assert (found.inner.names, found.costs, found.number, found.added_later) == (("c",), {}, 2, 7)
    assert found.none is None
    assert found.maybe is None


def test_kinds_and_formats_are_told_apart(tmp_path):
    write_tensors(tmp_path / "new", TENSORS, {"kind": "thing", "format": 5, "version": "9.9"})
    with pytest.raises(AbsentiaError, match=r"format 4 or older. Got format 5 by absentia 9.9 instead. Install a"):
        Thing.load(tmp_path / "new")
    write_tensors(tmp_path / "other", TENSORS, {"kind": "imputer", "format": 1})
    with pytest.raises(AbsentiaError, match=r"path must hold a saved thing. Got .*, a saved imputer instead"):
        Thing.load(tmp_path / "other")
    write_tensors(tmp_path / "picture", TENSORS, {"kind": "picture", "format": 1})
    with pytest.raises(AbsentiaError, match=r"hold a saved .*explanation.* Got .*, a saved picture instead"):
        load(tmp_path / "picture")


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_tensors(path, TENSORS, {"n": 1})
    with pytest.raises(TypeError):
        write_tensors(path, TENSORS, {"n": object()})

    def full(*_):
        raise OSError("no space left")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(AbsentiaError, match=r"file can't be written: no space left.$"):
        write_tensors(path, TENSORS, {"n": 2})
    assert read_tensors(path)[1] == {"n": 1}
    assert os.listdir(tmp_path) == ["file"]


def test_what_cannot_be_written_is_kept_elsewhere_unless_it_is_a_checkpoint(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    path, touch = tmp_path / "full" / "file", Path.touch
    path.parent.mkdir()

    def full(self, *given, **named):
        if self.parent == path.parent:
            raise OSError(errno.ENOSPC, "No space left on device")
        touch(self, *given, **named)

    monkeypatch.setattr(Path, "touch", full)
    with pytest.raises(AbsentiaError, match=r"No space left on device. The result is in .*file instead") as caught:
        write_tensors(path, TENSORS, {"n": 2})
    kept = Path(str(caught.value).split(" is in ")[1].removesuffix(" instead."))
    assert read_tensors(kept)[1] == {"n": 2}
    with pytest.raises(AbsentiaError, match=r"No space left on device.$"):
        write_tensors(path, TENSORS, {"n": 2}, keep=False)
    assert not list(path.parent.iterdir())


@pytest.mark.slow
def test_a_full_disk_keeps_the_result_elsewhere(tmp_path):
    """A limit on the size of files, as a full disk would, stops the writing half-way."""
    program = (
        "import resource, signal, sys, torch, absentia as ab\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "found = ab.explain(lambda rows: rows.sum(1), torch.ones(1, 12), absence=0.0)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "try:\n    found.save(sys.argv[1])\nexcept ab.AbsentiaError as error:\n    print(error)"
    )
    (tmp_path / "here").write_text("before")
    ran = subprocess.run([sys.executable, "-c", program, str(tmp_path / "here")], capture_output=True, text=True)
    assert "here can't be written" in ran.stdout, ran.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["here"]
    assert (tmp_path / "here").read_text() == "before"


def test_a_folder_that_cannot_be_written_to_is_refused_first(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(AbsentiaError, match=r"path must lie in a folder that can be written to. Got .*file instead"):
        write_tensors(tmp_path / "file", TENSORS, {})


def test_what_is_no_file_is_not_replaced_by_one(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "null").symlink_to(os.devnull)
    for path in (tmp_path / "pipe", tmp_path / "null", tmp_path):
        with pytest.raises(
            AbsentiaError, match=r"path must name a file. Got .*, which is a folder or a device instead"
        ):
            write_tensors(path, TENSORS, {})
    assert (tmp_path / "pipe").is_fifo()


def test_no_link_is_followed_and_what_killed_runs_left_is_removed(tmp_path):
    left, fresh, old = f"file.{0:012x}.part", f"file.{1:012x}.part", 2 * 86_400
    others = ["file.notes.part", f"other.{0:012x}.part"]
    for name, age in ((left, old), (fresh, 60), *((other, old) for other in others)):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, times=(time.time() - age,) * 2)
    (tmp_path / f"file.{2:012x}.part").mkdir()
    os.utime(tmp_path / f"file.{2:012x}.part", times=(0, 0))
    victim = tmp_path / "victim"
    victim.write_text("untouched")
    (tmp_path / "file").symlink_to(victim)
    write_tensors(tmp_path / "file", TENSORS, {"n": 1})
    assert victim.read_text() == "untouched"
    assert sorted(os.listdir(tmp_path)) == sorted(["file", fresh, f"file.{2:012x}.part", *others, "victim"])


def test_a_file_is_synced_before_it_gets_its_name(tmp_path, monkeypatch):
    done, fsync, replace = [], os.fsync, os.replace

    def sync(number):
        done.append(os.readlink(f"/proc/self/fd/{number}") if sys.platform == "linux" else "")
        fsync(number)

    def rename(source, target):
        done.append(os.fspath(target))
        assert sys.platform != "linux" or done[0] == os.fspath(source)
        replace(source, target)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "replace", rename)
    write_tensors(tmp_path / "file", TENSORS, {"n": 1})
    assert len(done) == 2
    assert done[1] == str(tmp_path / "file")


def test_a_link_at_the_temporary_name_is_refused(tmp_path, monkeypatch):
    victim = tmp_path / "victim"
    victim.write_text("untouched")
    monkeypatch.setattr(uuid, "uuid4", lambda: uuid.UUID(int=0))
    (tmp_path / "file.000000000000.part").symlink_to(victim)
    with pytest.raises(AbsentiaError, match=r"file can't be written: .*File exists"):
        write_tensors(tmp_path / "file", TENSORS, {"n": 1}, keep=False)
    assert victim.read_text() == "untouched"


def test_files_that_another_writer_renames_meanwhile_do_not_matter(tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "glob", lambda path, pattern: [path / "file.gone.part"])
    write_tensors(tmp_path / "file", TENSORS, {"n": 1})
    assert (tmp_path / "file").exists()


def test_two_writers_of_one_path_both_end_well(tmp_path):
    def write(number):
        for _ in range(20):
            write_tensors(tmp_path / "file", {"a": torch.full((1000,), float(number))}, {"n": number})

    threads = [threading.Thread(target=write, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(20):
        if (tmp_path / "file").exists():
            tensors, header = read_tensors(tmp_path / "file")
            assert bool((tensors["a"] == header["n"]).all())
    for thread in threads:
        thread.join()
    assert os.listdir(tmp_path) == ["file"]


def test_a_file_of_another_library_gets_a_sentence(tmp_path):
    save_file(TENSORS, tmp_path / "file")
    with pytest.raises(AbsentiaError, match=r"be a file that absentia saved. Got .*no header of absentia's"):
        read_tensors(tmp_path / "file")
    (tmp_path / "text").write_text("nothing of the kind")
    with pytest.raises(AbsentiaError, match=r"be a file that absentia saved. Got .*can't be read"):
        load(tmp_path / "text")
    with pytest.raises(AbsentiaError, match="name a file that exists"):
        load(tmp_path / "nowhere")


def test_what_is_written_is_as_readable_as_any_file(tmp_path):
    write_tensors(tmp_path / "file", TENSORS, {})
    (tmp_path / "other").touch()
    assert (tmp_path / "file").stat().st_mode == (tmp_path / "other").stat().st_mode


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("explanation", ab.Explanation),
        ("explanation_groups", ab.Explanation),
        ("explanation_format3", ab.Explanation),
        ("baseline", ab.LearnedBaseline),
        ("baseline_class", ab.LearnedBaseline),
        ("baseline_format1", ab.LearnedBaseline),
        ("audit", ab.Audit),
        ("cross_audit", ab.CrossAudit),
    ],
)
def test_results_saved_by_earlier_versions_are_still_read_and_saved_anew(name, kind, tmp_path):
    found = load(OLD_FILES / f"{name}.safetensors")
    assert isinstance(found, kind)
    found.save(tmp_path / "new")
    assert repr(load(tmp_path / "new")) == repr(found)
    assert read_header(tmp_path / "new")["format"] == kind.FORMAT


def test_an_explanation_saved_by_an_earlier_version_holds_the_same_numbers():
    found = load(OLD_FILES / "explanation.safetensors")
    x = torch.rand(40, 3, generator=torch.Generator().manual_seed(0)).double()[:2]
    model = lambda rows: torch.stack([rows.prod(1), rows[:, 0] - rows[:, 1]], 1)  # noqa: E731
    again = ab.explain(model, x, (x[:, 0] > 0.5).long(), absence=0.25)
    assert torch.allclose(found.shapley.values, again.shapley.values, atol=1e-12)
    assert torch.allclose(found.interactions.effects, again.interactions.effects, atol=1e-12)
    assert found.record.readout == again.record.readout


def test_numbers_are_written_for_a_reader():
    assert (count_of(1, "sample"), count_of(1200, "sample")) == ("1 sample", "1,200 samples")
    assert [written(-0.12345), written(1234.5, plus=True), written(12345678.0)] == ["−0.123", "+1234", "1.23e+07"]
    assert [written(6.8147), written(6.8147, 4), written(math.inf)] == ["6.81", "6.815", "–"]


def test_figures_are_written_to_their_errors_digits():
    assert with_error(0.12345, 0.0234) == "0.123 ± 0.023"
    assert with_error(-0.12345, 0.0234) == "−0.123 ± 0.023"
    assert with_error(-1234.5, 200.0) == "−1230 ± 200"
    assert with_error(-6.8147, 0.0) == "−6.815 ± 0"
    assert with_error(-6.8147, math.nan) == written(-6.8147) == "−6.81"
    assert with_error(math.nan, 0.1) == "–"


def test_cells_and_notes_are_escaped_in_html():
    assert "<b>" not in html_table(["<b>"], [["<b>"]])
    assert html_result("a", {}, notes=["a < b"]).endswith("a &lt; b</p></div>")


def test_an_error_says_what_must_hold_and_what_to_do():
    assert str(wrong("sigma", "be positive", -1.0)) == "sigma must be positive. Got -1.0 instead."
    assert str(wrong("x", "be a batch", "one", "Pass x[None].")).endswith("Got one instead. Pass x[None].")
    with pytest.raises(AbsentiaError, match=r"needs the package no_such_one. Run pip install 'absentia\[shap\]'."):
        require("no_such_one.part", extra="shap")


def test_columns_line_up_and_long_sentences_are_folded():
    assert align([["a", "bb"], ["ccc", "d"]], 2) == ["  a    bb", "  ccc  d"]
    assert align([]) == []
    folded = fold("  " + "word " * 40)
    assert all(len(line) <= 118 for line in folded.splitlines())
    assert folded.splitlines()[1].startswith("    word")


def test_numbers_beside_each_other_have_the_same_decimal_place():
    assert written_alike([-12.344, 0.5, 1e-9], plus=True) == ["−12.34", "+0.50", "0"]
