"""What is imported, as bytes: files, directories and archives of them, each source read and never written to.

The idea: a format sees sources and nothing else. It does not know whether one was a file, lay in a ZIP, or was packed;
its text is UTF-8 without a byte order mark, whatever it was saved as. What has to be unpacked lies in a file without a
name meanwhile. A name says nothing of what is in a source, and is there for people, and for the formats whose ids stand
in paths alone.

A database of another program may be in use: it is copied with its WAL, and the copy is opened. Opened where it is, even
to be read, SQLite would write beside it.
"""

import codecs
import os
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import IO, Any

import apsw

from convmem import strict_json
from convmem.importers import databases
from convmem.importers.model import Sample
from convmem.limits import IMPORT_SAMPLE_BYTES, IMPORT_SOURCES_MAX, IMPORT_UNPACKED_BYTES_MAX

SQLITE, GZIP, ZIP = b"SQLite format 3\0", b"\x1f\x8b", b"PK\x03\x04"
# By their byte order marks; the longer ones first, since one begins with another.
ENCODINGS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
PIECE_BYTES = 1 << 20
WITH_A_GZIP_HEADER = 31
# What belongs to a database that is a source, and what archives of a Mac hold beside the files.
WRAPPERS = ("conversations", "items", "data", "results")
BESIDE_A_DATABASE = ("-wal", "-shm", "-journal")
COPIES_MAX = 5


class Unreadable(Exception):
    """A source that cannot be read; the sentence says why."""


@dataclass(frozen=True)
class Member:
    """A file of an archive."""

    archive: Path
    name: str


@dataclass(frozen=True, eq=False)
class Source:
    """One file, or one member of an archive. `name` is its path as a person gave it, `/` between its parts."""

    name: str
    place: Path | Member

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of its name."""
        return PurePosixPath(self.name).parts

    @contextmanager
    def opened(self) -> Iterator[IO[bytes]]:
        """Its text as UTF-8 without a byte order mark, from the beginning; it can be sought in. Unreadable."""
        with _told(self.name), _raw(self.place) as raw:
            if raw.read(2) == GZIP:
                raw.seek(0)
                with _spooled(_unzipped(raw)) as plain, _as_utf_8(plain) as text:
                    yield text
            else:
                raw.seek(0)
                with _as_utf_8(raw) as text:
                    yield text

    @cached_property
    def sample(self) -> Sample:
        """What its beginning says. Unreadable."""
        with self.opened() as file:
            head = file.read(IMPORT_SAMPLE_BYTES)
            is_whole = not file.read(1)
        if head.startswith(SQLITE):
            with self.database() as connection:
                return Sample(tables=databases.tables(connection))
        return Sample(tuple(_values(head, is_whole=is_whole)))

    @contextmanager
    def database(self) -> Iterator[apsw.Connection]:
        """A copy of the database that it is, with what waits in its WAL, as it is at one moment. Unreadable."""
        with _told(self.name), tempfile.TemporaryDirectory(prefix="convmem-import-") as directory:
            copy = Path(directory) / "copy.db"
            _copied(self.place, copy)
            try:
                with databases.opened(copy) as connection:
                    yield connection
            except databases.Damaged as error:
                raise Unreadable(f"the database is damaged: {error}") from None


def found(paths: Sequence[Path]) -> Iterator[Source]:
    """All sources of files, archives and directories, in the order of their names. Unreadable for what is none."""
    for path in paths:
        with _told(str(path)):
            yield from _found(path)


def _found(path: Path) -> Iterator[Source]:
    if path.is_dir():
        yield from _below(path)
    elif not stat.S_ISREG(os.stat(path).st_mode):
        raise Unreadable("it is neither a file nor a directory")
    elif zipfile.is_zipfile(path) and _begins_with(path, ZIP):
        yield from _members(path)
    else:
        yield Source(str(path), path)


def _below(directory: Path) -> Iterator[Source]:
    """Every file below a directory. Links to directories are not followed: they may lead round in a circle. Nor is
    another file system entered: it may hold what is no file, as /proc does.
    """
    count, device = 0, os.stat(directory).st_dev
    for place, inner, names in os.walk(directory):
        inner[:] = sorted(one for one in inner if one != "__MACOSX" and _is_on(device, Path(place) / one))
        for name in sorted(names):
            path = Path(place) / name
            if name.startswith("._") or name.endswith(BESIDE_A_DATABASE) or not path.is_file():
                continue
            if (count := count + 1) > IMPORT_SOURCES_MAX:
                raise Unreadable(f"the directory holds more than {IMPORT_SOURCES_MAX} files")
            yield from _found(path)


def _is_on(device: int, directory: Path) -> bool:
    try:
        return os.stat(directory).st_dev == device
    except OSError:
        return False


def _members(path: Path) -> Iterator[Source]:
    with zipfile.ZipFile(path) as archive:
        for info in sorted(archive.infolist(), key=lambda info: info.filename):
            parts = PurePosixPath(info.filename).parts
            is_noise = "__MACOSX" in parts or not parts or parts[-1].startswith("._")
            if not info.is_dir() and not is_noise:
                yield Source(f"{path}/{info.filename}", Member(path, info.filename))


def _begins_with(path: Path, magic: bytes) -> bool:
    with path.open("rb") as file:
        return file.read(len(magic)) == magic


@contextmanager
def _raw(place: Path | Member) -> Iterator[IO[bytes]]:
    if isinstance(place, Path):
        with place.open("rb") as file:
            yield file
        return
    with zipfile.ZipFile(place.archive) as archive:
        if archive.getinfo(place.name).flag_bits & 1:
            raise Unreadable("it is encrypted")
        with archive.open(place.name) as packed, _spooled(_pieces(packed)) as plain:
            yield plain


@contextmanager
def _spooled(pieces: Iterator[bytes]) -> Iterator[IO[bytes]]:
    """Pieces in a file without a name."""
    size = 0
    with tempfile.TemporaryFile() as file:
        for piece in pieces:
            size += len(piece)
            if size > IMPORT_UNPACKED_BYTES_MAX:
                raise Unreadable(f"it is larger than {IMPORT_UNPACKED_BYTES_MAX} bytes unpacked")
            file.write(piece)
        file.seek(0)
        yield file


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    while piece := file.read(PIECE_BYTES):
        yield piece


def _unzipped(file: IO[bytes]) -> Iterator[bytes]:
    """What of a packed file can be unpacked: one that was cut off is read as far as it goes."""
    unpacking = zlib.decompressobj(WITH_A_GZIP_HEADER)
    with suppress(zlib.error):
        for packed in _pieces(file):
            while packed:
                yield unpacking.decompress(packed, PIECE_BYTES)
                packed = unpacking.unconsumed_tail
                if unpacking.eof:
                    # Another one may stand behind it, which is the rest of the same text.
                    packed, unpacking = unpacking.unused_data, zlib.decompressobj(WITH_A_GZIP_HEADER)
        yield unpacking.flush()


@contextmanager
def _as_utf_8(file: IO[bytes]) -> Iterator[IO[bytes]]:
    head = file.read(4)
    file.seek(0)
    mark, encoding = next(((mark, name) for mark, name in ENCODINGS if head.startswith(mark)), (b"", "utf-8"))
    if not mark:
        yield file
        return
    file.seek(len(mark))
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    pieces = _pieces(file) if encoding == "utf-8" else (decoder.decode(piece).encode() for piece in _pieces(file))
    with _spooled(pieces) as text:
        yield text


def _values(head: bytes, *, is_whole: bool) -> Iterator[Any]:
    """The first JSON values of a text: of its array, or of its lines, or the one that it is."""
    try:
        value = strict_json.beginning(head)
    except strict_json.MalformedJSON:
        value = None
    else:
        yield from value if isinstance(value, list) else (*_wrapped(value), value)
        return
    lines = head.split(b"\n")
    for line in lines if is_whole else lines[:-1]:
        # Whoever has several objects on a line, or zeros before one, has a first one all the same.
        text = line.strip(b"\0 \t\r")
        try:
            yield strict_json.beginning(text[: text.find(b"}{") + 1] if b"}{" in text else text)
        except strict_json.MalformedJSON:
            continue


def _wrapped(value: Any) -> Iterator[Any]:
    """The elements of an array under a name that exporters give it."""
    for name in WRAPPERS if isinstance(value, dict) else ():
        if isinstance(value.get(name), list):
            yield from value[name]


def _copied(place: Path | Member, copy: Path) -> None:
    """A database and its WAL, as both were at one moment: as often as it takes until nobody wrote meanwhile."""
    if isinstance(place, Member):
        with _raw(place) as raw, copy.open("wb") as target:
            target.writelines(_pieces(raw))
        return
    for _ in range(COPIES_MAX):
        before = _state(place)
        for suffix in ("", "-wal"):
            own, other = Path(f"{copy}{suffix}"), Path(f"{place}{suffix}")
            with own.open("wb") as target:
                if other.exists():
                    with other.open("rb") as source:
                        target.writelines(_pieces(source))
        if _state(place) == before:
            return
    raise Unreadable("it is being written all the time; end the program that uses it for a moment")


def _state(place: Path) -> list[tuple[int, int] | None]:
    found = (Path(f"{place}{suffix}") for suffix in ("", "-wal"))
    return [(path.stat().st_size, path.stat().st_mtime_ns) if path.exists() else None for path in found]


@contextmanager
def _told(name: str) -> Iterator[None]:
    """What the system or an archive says of a source inside the block, as Unreadable."""
    try:
        yield
    except (OSError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError) as error:
        raise Unreadable(f"{name}: {getattr(error, 'strerror', None) or error}") from None
