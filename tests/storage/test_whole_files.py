"""Files are written whole or not at all."""

import errno
import os
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from pathlib import Path

import pytest
import torch

from absentia import AbsentiaError
from absentia.storage import read_tensors, write_tensors

TENSORS = {"a": torch.arange(3.0), "b": torch.tensor([[1, 2]])}


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
    path = tmp_path / "full" / "file"
    touch = Path.touch
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
    left = f"file.{0:012x}.part"
    fresh = f"file.{1:012x}.part"
    old = 2 * 86_400
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
    done = []
    fsync = os.fsync
    replace = os.replace

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


def test_what_is_written_is_as_readable_as_any_file(tmp_path):
    write_tensors(tmp_path / "file", TENSORS, {})
    (tmp_path / "other").touch()
    assert (tmp_path / "file").stat().st_mode == (tmp_path / "other").stat().st_mode
