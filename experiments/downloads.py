"""Published files: where each one comes from, where it is stored, and the checksum that proves it unaltered.

A file is looked for in the folder named by the environment variable ABSENTIA_DATA, then in the user's cache. It is
downloaded into the cache when neither has it. Its checksum is always compared before it is read.
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

from absentia import AbsentiaError

DATA_VARIABLE = "ABSENTIA_DATA"
CACHE_VARIABLE = "ABSENTIA_CACHE"
ARCHIVES = (".zip", ".tar.gz")


@dataclass(frozen=True)
class DataFile:
    """One published file.

    The address is that of the file itself or of an archive that contains it. A file without an address is placed by
    hand, as ``by_hand`` explains. An archive has its own checksum only if its publishers state one. A file that we
    never had has no checksum, and is not compared.
    """

    path: str  # in the data folder
    checksum: str
    shape: tuple[int, ...]  # as published: rows and columns with the label's, or images and their pixels
    address: str | None = None
    archive_checksum: str | None = None
    by_hand: str = ""

    @property
    def archived(self) -> bool:
        """Whether the address is that of an archive."""
        return self.address is not None and self.address.endswith(ARCHIVES)


@dataclass(frozen=True)
class DataSet:
    """A data set as published: its files, its licence, and the work to cite."""

    name: str
    files: tuple[DataFile, ...]
    licence: str
    citation: str


def locate(source: DataSet) -> tuple[Path, ...]:
    """Find the files of a data set, download those that are missing, and check all of them."""
    named = os.environ.get(DATA_VARIABLE)
    if named and not Path(named).is_dir():
        remedy = "Correct it, or unset it to download the data."
        raise AbsentiaError(f"{DATA_VARIABLE} must name a folder. Got {named!r} instead. {remedy}")
    return tuple(_checked(_place(file, source), file) for file in source.files)


def cache_folder() -> Path:
    """Return the folder for downloads and trained models: ABSENTIA_CACHE, or the cache folder of the system."""
    named = os.environ.get(CACHE_VARIABLE)
    return Path(named) if named else Path(_pooch().os_cache("absentia"))


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Yield a temporary file that replaces ``path`` at the end, so that a reader never sees part of a file.

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
    unfinished = path.with_name(f".{path.name}.{uuid.uuid4().hex}")  # same folder, so that renaming is atomic
    try:
        yield unfinished
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def _place(file: DataFile, source: DataSet) -> Path:
    """Return the path of a file, downloading it first if it is missing."""
    named = os.environ.get(DATA_VARIABLE)
    if named and (Path(named) / file.path).is_file():
        return Path(named) / file.path
    place = cache_folder() / file.path
    if not place.is_file():
        # All files of an archive are unpacked together, so that it is downloaded once.
        together = [other for other in source.files if file.archived and other.address == file.address]
        _download(file, together or [file])
    return place


def _download(wanted: DataFile, together: list[DataFile]) -> None:
    """Download a file into the cache, or the archive that contains it and others."""
    place = cache_folder() / wanted.path
    where = f"Put it there, or at {wanted.path} in a folder that {DATA_VARIABLE} names"
    if wanted.address is None:
        raise AbsentiaError(
            f"{place.name} must be placed by hand at {place}. Got no such file instead. {where}; {wanted.by_hand}."
        )
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
    except Exception as error:  # of requests, urllib3, zipfile, tarfile or pooch: the advice is the same for all
        failure = f"{type(error).__name__} ({textwrap.shorten(str(error), 200, placeholder=' …')})"
        must = f"{place.name} must be downloaded from {wanted.address} to {place}"
        raise AbsentiaError(f"{must}. Got {failure} instead. {where}.") from error
    finally:
        if wanted.archived:
            fetched.unlink(missing_ok=True)  # otherwise a damaged archive would be used again


def _unpack(archive: Path, files: list[DataFile]) -> None:
    """Extract files by name; the archive has no influence on where they are written."""
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
    """Find a file in the list of an archive, in any folder; of several, return the one nearest the top."""
    members = [name for name in names if PurePosixPath(name).name == PurePosixPath(file.path).name]
    if not members:
        raise FileNotFoundError(f"{file.path} is not in the archive")
    return min(members, key=len)


def _write(content: bytes, file: DataFile) -> None:
    with written_whole(cache_folder() / file.path) as unfinished:
        unfinished.write_bytes(content)


def _checked(path: Path, file: DataFile) -> Path:
    """Compare the checksum, because an altered file would silently change all results."""
    if not file.checksum:
        return path
    algorithm, _, expected = file.checksum.partition(":")
    checksum = hashlib.new(algorithm, path.read_bytes()).hexdigest() if path.is_file() else "no such file"
    if checksum != expected:
        source = f"from {file.address}" if file.address else f"by hand: {file.by_hand}"
        raise AbsentiaError(
            f"{path} must have the {algorithm} checksum {expected}. Got {checksum} instead. Replace it {source}."
        )
    return path


def _pooch() -> ModuleType:
    """Import pooch only when a cache is needed: a folder in ABSENTIA_DATA works without it."""
    try:
        import pooch  # type: ignore[import-untyped]
    except ImportError as error:
        raise AbsentiaError(
            "pooch must be installed to find the user's cache. Run pip install pooch, or set "
            f"{DATA_VARIABLE} and {CACHE_VARIABLE} to folders of your own."
        ) from error
    return pooch
