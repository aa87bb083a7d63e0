"""Published files: where each comes from, where it lies, and what proves it unaltered.

A file is looked for in the folder that the environment variable ABSENTIA_DATA names, then in the user's cache; it is
downloaded into the cache when neither has it. Wherever it comes from, its checksum is compared before it is read.
"""

from __future__ import annotations

import hashlib
import os
import tarfile
import textwrap
import uuid
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from types import ModuleType

from absentia.errors import wrong

DATA_VARIABLE = "ABSENTIA_DATA"
CACHE_VARIABLE = "ABSENTIA_CACHE"
ARCHIVES = (".zip", ".tar.gz")


@dataclass(frozen=True)
class DataFile:
    """One published file: where it lies in the data folder, where it comes from, and what proves it unaltered.

    The address is that of the file itself or of an archive that holds it; a file without one is placed by hand, as
    ``by_hand`` says. An archive has a checksum of its own where its publishers state one; where they don't, and may
    pack it anew, the checksum of the file within is what counts.
    """

    path: str
    checksum: str
    shape: tuple[int, ...]  # as published: rows and columns, the label's among them; or images and their pixels
    address: str | None = None
    archive_checksum: str | None = None
    by_hand: str = ""

    @property
    def archived(self) -> bool:
        """Whether the address is that of an archive."""
        return self.address is not None and self.address.endswith(ARCHIVES)


@dataclass(frozen=True)
class DataSet:
    """A data set as published: its files, and what its authors ask of those who use it."""

    name: str
    files: tuple[DataFile, ...]
    licence: str
    citation: str


def locate(source: DataSet) -> tuple[Path, ...]:
    """Find a data set's files in the folder ABSENTIA_DATA or in the cache, else download them; check each of them."""
    named = os.environ.get(DATA_VARIABLE)
    if named and not Path(named).is_dir():
        raise wrong(DATA_VARIABLE, "name a folder", repr(named), "Correct it, or unset it to download the data.")
    return tuple(_checked(_place(file, source), file) for file in source.files)


def cache_folder() -> Path:
    """Tell where downloads and trained models are kept: ABSENTIA_CACHE, else the system's folder for caches."""
    named = os.environ.get(CACHE_VARIABLE)
    return Path(named) if named else Path(_pooch().os_cache("absentia"))


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Give a place to write to that becomes ``path`` at the end: a reader sees the whole file or none.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "new" / "file.txt"
    >>> with written_whole(path) as unfinished:
    ...     _ = unfinished.write_text("all of it")
    ...     path.exists()
    False
    >>> path.read_text()
    'all of it'
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{uuid.uuid4().hex}")  # in the same folder: a rename within one disk
    try:
        yield unfinished
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def _place(file: DataFile, source: DataSet) -> Path:
    """Tell where a file lies, after a download if it lay nowhere."""
    named = os.environ.get(DATA_VARIABLE)
    if named and (Path(named) / file.path).is_file():
        return Path(named) / file.path
    place = cache_folder() / file.path
    if not place.is_file():
        # Files of one archive come together, so that it is downloaded once.
        together = [other for other in source.files if file.archived and other.address == file.address]
        _download(file, together or [file])
    return place


def _download(wanted: DataFile, together: list[DataFile]) -> None:
    """Fetch a file, or the archive that holds it and others, so that they lie in the cache."""
    place = cache_folder() / wanted.path
    where = f"Put it there, or at {wanted.path} in a folder that {DATA_VARIABLE} names"
    if wanted.address is None:
        raise wrong(place.name, f"be placed by hand at {place}", "no such file", f"{where}; {wanted.by_hand}.")
    pooch = _pooch()
    fetched = place.with_name(PurePosixPath(wanted.address).name) if wanted.archived else place
    try:
        pooch.retrieve(
            wanted.address,
            known_hash=wanted.archive_checksum if wanted.archived else wanted.checksum,
            fname=fetched.name,
            path=fetched.parent,
            progressbar=True,
        )
        if wanted.archived:
            _unpack(fetched, together)
    except Exception as error:  # of requests, urllib3, zipfile, tarfile or pooch: what to do next is the same for all
        failure = f"{type(error).__name__} ({textwrap.shorten(str(error), 200, placeholder=' …')})"
        raise wrong(place.name, f"be downloaded from {wanted.address} to {place}", failure, f"{where}.") from error
    finally:
        if wanted.archived:
            fetched.unlink(missing_ok=True)  # a damaged archive that stayed would be unpacked again for ever


def _unpack(archive: Path, files: list[DataFile]) -> None:
    """Take these files out of an archive by their names; where they go is never the archive's to say."""
    if archive.name.endswith(".zip"):
        with zipfile.ZipFile(archive) as packed:
            for file in files:
                _write(packed.read(_member(packed.namelist(), file)), file)
        return
    with tarfile.open(archive) as tape:
        for file in files:
            member = tape.extractfile(_member(tape.getnames(), file))
            if member is None:
                raise FileNotFoundError(f"{file.path} is not a plain file in {archive.name}")
            _write(member.read(), file)


def _member(names: list[str], file: DataFile) -> str:
    """Find a file in the list of an archive, in whatever folder it lies; of several, the one nearest the top."""
    found = [name for name in names if PurePosixPath(name).name == PurePosixPath(file.path).name]
    if not found:
        raise FileNotFoundError(f"{file.path} is not in the archive")
    return min(found, key=len)


def _write(content: bytes, file: DataFile) -> None:
    with written_whole(cache_folder() / file.path) as unfinished:
        unfinished.write_bytes(content)


def _checked(path: Path, file: DataFile) -> Path:
    """Compare the checksum: an altered file would give other models, and other results, without a word."""
    algorithm, _, expected = file.checksum.partition(":")
    found = hashlib.new(algorithm, path.read_bytes()).hexdigest() if path.is_file() else "no such file"
    if found != expected:
        source = f"from {file.address}" if file.address else f"by hand: {file.by_hand}"
        raise wrong(str(path), f"have the {algorithm} checksum {expected}", found, f"Replace it {source}.")
    return path


def _pooch() -> ModuleType:
    """Import pooch only when a cache is needed: a folder in ABSENTIA_DATA works without it."""
    try:
        import pooch  # type: ignore[import-untyped]
    except ImportError as error:
        then = f"Run pip install pooch, or set {DATA_VARIABLE} and {CACHE_VARIABLE} to folders of your own."
        raise wrong("pooch", "be installed to find the user's cache", "no such package", then) from error
    return pooch
