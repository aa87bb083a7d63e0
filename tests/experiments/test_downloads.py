import builtins
import hashlib
import io
import os
import tarfile
import zipfile
from dataclasses import replace

import pytest

from absentia import AbsentiaError
from experiments.datasets import (
    CENSUS,
    CIFAR10,
    CREDIT,
    MNIST,
    SST2,
    census,
    cifar10,
    credit,
    functions_file,
    mnist,
    sst2,
)
from experiments.downloads import DataFile, DataSet, cache_folder, locate, written_whole
from published import publish

CREDIT_TEXT = "names\n" + "\n".join(" ".join(map(str, [*range(20), row % 2])) for row in range(15)) + "\n"


@pytest.fixture
def offline(monkeypatch):
    pooch = pytest.importorskip("pooch")

    def refuse(*_arguments, **_options):
        raise ConnectionError("the network is unreachable")

    monkeypatch.setattr(pooch, "retrieve", refuse)


def test_an_altered_file_is_refused_in_one_sentence(data):
    publish(data, CREDIT, CREDIT_TEXT)
    with pytest.raises(AbsentiaError) as refusal:
        credit()
    sentence = str(refusal.value)
    assert str(data / CREDIT.files[0].path) in sentence
    assert "must have the sha256 checksum 5f363343" in sentence
    assert f"Replace it from {CREDIT.files[0].address}." in sentence


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize(
    ("load", "source"), [(census, CENSUS), (credit, CREDIT), (mnist, MNIST), (cifar10, CIFAR10), (sst2, SST2)]
)
def test_a_missing_file_without_network_names_the_address_and_the_place(data, load, source):
    with pytest.raises(AbsentiaError) as refusal:
        load()
    sentence = str(refusal.value)
    assert source.files[0].address in sentence
    assert str(cache_folder() / source.files[0].path) in sentence
    assert "Got ConnectionError (the network is unreachable) instead." in sentence
    assert f"{source.files[0].path} in a folder that ABSENTIA_DATA names." in sentence
    assert isinstance(refusal.value.__cause__, ConnectionError)


@pytest.mark.usefixtures("offline")
def test_the_functions_are_placed_by_hand(data):
    with pytest.raises(
        AbsentiaError, match=r"functions\.txt must be placed by hand at .*Got no such file"
    ) as refusal:
        functions_file()
    assert "https://github.com/zzp1012/faithful-baseline-value" in str(refusal.value)


@pytest.mark.usefixtures("offline")
def test_a_file_in_the_cache_needs_neither_network_nor_variable(data, monkeypatch):
    monkeypatch.delenv("ABSENTIA_DATA")
    source = publish(cache_folder(), CREDIT, CREDIT_TEXT)
    assert credit(source).x_train.shape == (12, 20)


def test_a_data_folder_that_does_not_exist_is_refused(data, monkeypatch):
    monkeypatch.setenv("ABSENTIA_DATA", str(data / "typo"))
    with pytest.raises(AbsentiaError, match=r"ABSENTIA_DATA must name a folder\. Got '.*typo' instead\."):
        locate(CREDIT)


def test_a_plain_file_is_downloaded_with_its_checksum(data, monkeypatch):
    pooch = pytest.importorskip("pooch")
    asked = []

    def serve(address, known_hash, fname, path, progressbar):
        asked.append((address, known_hash, progressbar))
        path.mkdir(parents=True, exist_ok=True)
        (path / fname).write_text("3, 4\n")

    monkeypatch.setattr(pooch, "retrieve", serve)
    checksum = "md5:" + hashlib.md5(b"3, 4\n").hexdigest()
    file = replace(CENSUS.files[0], checksum=checksum)
    source = replace(CENSUS, files=(file,))
    assert locate(source) == (cache_folder() / "adult" / "adult.data",)
    assert locate(source)[0].read_text() == "3, 4\n"
    assert asked == [(file.address, checksum, True)]


def serve_archive(monkeypatch, content):
    """Let pooch itself check an archive that no network had to carry; list the addresses that are asked for."""
    pooch = pytest.importorskip("pooch")
    asked = []

    def download(address, output_file, _pooch):
        asked.append(address)
        with open(output_file, "wb") as file:
            file.write(content)

    monkeypatch.setattr(pooch.core, "choose_downloader", lambda *_arguments, **_options: download)
    return asked


def two_files(content=b"one", checksum=None):
    """A data set of two files in one tar archive, the second of which has no content."""
    files = tuple(
        DataFile(
            path=f"pair/{name}",
            checksum="sha256:" + hashlib.sha256(text).hexdigest(),
            shape=(1,),
            address="https://example.org/pair.tar.gz",
            archive_checksum=checksum,
        )
        for name, text in (("a.bin", content), ("b.bin", b""))
    )
    return DataSet("pair", files, licence="none", citation="none")


def tape(*members):
    """Pack (name, content) pairs, a content of None standing for a symbolic link."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, content in members:
            member = tarfile.TarInfo(name)
            if content is None:
                member.type = tarfile.SYMTYPE
                member.linkname = "/etc/hostname"
            member.size = len(content or b"")
            archive.addfile(member, io.BytesIO(content or b""))
    return packed.getvalue()


def test_an_archive_is_unpacked_and_its_file_checked(data, tmp_path, monkeypatch):
    source = publish(tmp_path / "elsewhere", CREDIT, CREDIT_TEXT)
    archive = tmp_path / "packed.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr("SouthGermanCredit.asc", CREDIT_TEXT)
        packed.writestr("codetable.txt", "not asked for")
    serve_archive(monkeypatch, archive.read_bytes())
    assert credit(source).x_train.shape == (12, 20)
    assert [path.name for path in (cache_folder() / "south_german_credit").iterdir()] == ["SouthGermanCredit.asc"]


def test_the_files_of_one_archive_are_downloaded_together_and_nothing_else_is_unpacked(data, monkeypatch):
    content = tape(("pair/a.bin", b"one"), ("pair/b.bin", b""), ("../outside.bin", b"no"), ("pair/other", b"no"))
    source = two_files(checksum="md5:" + hashlib.md5(content).hexdigest())
    asked = serve_archive(monkeypatch, content)
    paths = locate(source)
    assert [path.read_bytes() for path in paths] == [b"one", b""]
    assert asked == ["https://example.org/pair.tar.gz"]
    assert sorted(path.name for path in cache_folder().rglob("*") if path.is_file()) == ["a.bin", "b.bin"]
    assert sorted(path.name for path in data.parent.iterdir()) == ["cache", "data"]


def test_an_archive_whose_checksum_is_another_is_not_unpacked(data, monkeypatch):
    content = tape(("pair/a.bin", b"one"), ("pair/b.bin", b""))
    serve_archive(monkeypatch, content)
    with pytest.raises(AbsentiaError, match=r"a\.bin must be downloaded from .* Got ValueError .*hash"):
        locate(two_files(checksum="md5:" + "0" * 32))
    assert not [path for path in cache_folder().rglob("*") if path.is_file()]


@pytest.mark.parametrize(
    ("members", "failure"),
    [
        ([("pair/b.bin", b"")], r"FileNotFoundError \(pair/a\.bin is not in the archive\)"),
        ([("pair/a.bin", None)], "FileNotFoundError|KeyError"),
    ],
    ids=["missing", "a link out of the archive"],
)
def test_an_archive_without_the_file_is_refused(data, monkeypatch, members, failure):
    serve_archive(monkeypatch, tape(*members))
    with pytest.raises(AbsentiaError, match=f"Got ({failure})"):
        locate(two_files())
    assert not [path for path in cache_folder().rglob("*") if path.is_file()]


def test_a_file_within_an_archive_is_checked_where_the_archive_is_not(data, monkeypatch):
    serve_archive(monkeypatch, tape(("pair/a.bin", b"two"), ("pair/b.bin", b"")))
    with pytest.raises(AbsentiaError, match=r"a\.bin must have the sha256 checksum"):
        locate(two_files())


def test_a_file_nearer_the_top_of_an_archive_goes_before_its_namesakes(data, monkeypatch):
    content = tape(("pair/old/a.bin", b"two"), ("pair/a.bin", b"one"), ("b.bin", b""))
    serve_archive(monkeypatch, content)
    assert locate(two_files())[0].read_bytes() == b"one"


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")

    def interrupted():
        with written_whole(path) as unfinished:
            unfinished.write_text("ne")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]


def test_a_damaged_archive_is_refused_and_not_kept(data, monkeypatch):
    serve_archive(monkeypatch, b"<html>moved</html>")
    with pytest.raises(AbsentiaError, match=r"Got BadZipFile \(File is not a zip file\) instead\."):
        credit()
    assert not list((cache_folder() / "south_german_credit").iterdir())


def test_without_pooch_a_sentence_says_what_to_install(data, monkeypatch):
    monkeypatch.delenv("ABSENTIA_CACHE")
    genuine = builtins.__import__

    def forget(name, *rest):
        if name == "pooch":
            raise ImportError(name)
        return genuine(name, *rest)

    monkeypatch.setattr(builtins, "__import__", forget)
    with pytest.raises(AbsentiaError, match=r"pooch must be installed .* Run pip install pooch"):
        cache_folder()


def test_the_cache_is_the_systems_unless_named(data, monkeypatch):
    pooch = pytest.importorskip("pooch")
    assert cache_folder() == data.parent / "cache"
    monkeypatch.delenv("ABSENTIA_CACHE")
    assert cache_folder() == pooch.os_cache("absentia")
