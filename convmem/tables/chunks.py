"""The older tier of a row's history: entries filed in chunks, which are JSON Lines, oldest first, packed with zstd.

The idea: versions of a row are nearly the same text, so together they take little more than one of them, as long as the
window of the compression reaches back to the line before. A chunk can be read alone, by any zstd. What cannot be read
as exactly the versions that it is filed under is damaged, as a whole.

A line is that of mini-app-mcp; `origin` is a key that only we fill. Packing happens while the writers of a table wait,
so it is quick rather than small.

Rejected: patches from one version to the next (one damaged entry loses all after it), and a dictionary that chunks
share (none could be read alone).
"""

import sys
from collections.abc import Sequence
from typing import Literal, NamedTuple

import apsw
import msgspec

from convmem.domain import Origin
from convmem.limits import HISTORY_CHUNK_BYTES, HISTORY_CHUNK_BYTES_MAX

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

Op = Literal["create", "update", "delete"]

CREATE = """
CREATE TABLE IF NOT EXISTS _row_history_archive (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    table_name TEXT NOT NULL,
    row_id TEXT NOT NULL,
    version_start INTEGER NOT NULL,
    version_end INTEGER NOT NULL,
    recorded_start INTEGER NOT NULL,
    recorded_end INTEGER NOT NULL,
    entry_count INTEGER NOT NULL,
    format TEXT NOT NULL DEFAULT 'jsonl-zstd',
    blob BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS idx_row_history_archive_version ON _row_history_archive(table_name, row_id, version_end);
"""
FORMAT = "jsonl-zstd"
# A version, and a time in seconds, that is behind all others.
BEHIND_ALL = sys.maxsize
# The newest chunk is joined by others until it holds this many of them: less often the same text from anew, and yet no
# entry is packed more than a few times.
JOINED_MAX = 4
# A window of 2 ** 23 bytes, 8 MiB, is what every reader must be able to hold (RFC 8878).
PACKING: dict[int, int] = {
    zstd.CompressionParameter.compression_level: 3,
    zstd.CompressionParameter.window_log: 23,
    zstd.CompressionParameter.enable_long_distance_matching: 1,
    zstd.CompressionParameter.checksum_flag: 1,
}
# In the byte behind the magic number: the frame ends with a checksum of its content (RFC 8878). Nothing joins a chunk
# without one: it may be damaged in its middle, and would take the newcomers along.
_CHECKSUM_FLAG = 4
_CHUNK = (
    "SELECT id, version_start, version_end, entry_count, format FROM _row_history_archive"
    " WHERE table_name = ? AND row_id = ?"
)
# What is raised by bytes that are no chunk.
_NOT_READABLE = (zstd.ZstdError, EOFError, ValueError, msgspec.MsgspecError)


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One change of a row: its JSON after it (None: deleted) and before it, as far as it was written down.

    `recorded_at` is in seconds since the Unix epoch. `origin` is JSON.
    """

    version: int
    recorded_at: int
    op: Op
    data_json: str | None = None
    prev_data_json: str | None = None
    origin: str | None = None

    @property
    def is_sound(self) -> bool:
        """False if it was read from a table where another program put something else than an entry holds."""
        texts = (self.data_json, self.prev_data_json, self.origin)
        numbers = (self.version, self.recorded_at)
        return all(isinstance(it, int) for it in numbers) and all(isinstance(it, str | None) for it in texts)

    @property
    def whence(self) -> Origin | None:
        """Who made the change; None if nobody wrote it down."""
        if self.origin is None:
            return None
        try:
            return msgspec.convert(msgspec.json.decode(self.origin, type=_OriginFacts).values(), Origin)
        except msgspec.MsgspecError:
            return None


class _OriginFacts(msgspec.Struct, frozen=True, omit_defaults=True):
    """An origin by name: the file belongs to people, who should see what is what."""

    device: str
    transport: str
    client: str | None = None

    def values(self) -> tuple[str, str, str | None]:
        return self.device, self.transport, self.client


class Chunk(NamedTuple):
    """A row of the archive without its content."""

    id: int
    version_start: int
    version_end: int
    entry_count: int
    format: str


def origin_json(origin: Origin | None) -> str | None:
    """An origin as the column holds it."""
    if origin is None:
        return None
    return msgspec.json.encode(_OriginFacts(origin.device, origin.transport, origin.client)).decode()


def packed(lines: bytes) -> bytes:
    """The chunk of these lines."""
    return zstd.compress(lines, options=PACKING)


def unpacked(blob: object) -> bytes | None:
    """The lines of a chunk; None if it is none, or larger than any that is written."""
    if not isinstance(blob, bytes):
        return None
    try:
        unpacking = zstd.ZstdDecompressor()
        lines = unpacking.decompress(blob, HISTORY_CHUNK_BYTES_MAX)
    except _NOT_READABLE:
        return None
    return lines if unpacking.eof and not unpacking.unused_data else None


def below(connection: apsw.Connection, table: str, row_id: str, before: int, until: int) -> list[Chunk]:
    """The chunks of a row that may hold versions below one and not after a time in seconds, newest first."""
    return [
        Chunk(*row)
        for row in connection.execute(
            f"{_CHUNK} AND version_start < ? AND recorded_start <= ? ORDER BY version_end DESC, id DESC",
            (table, row_id, before, until),
        )
    ]


def entries(connection: apsw.Connection, chunk: Chunk) -> list[Entry] | None:
    """The entries of a chunk, oldest first; None if it is damaged."""
    lines = unpacked(_blob(connection, chunk))
    return None if lines is None else _decoded(lines, chunk)


def file(connection: apsw.Connection, table: str, row_id: str, oldest: Sequence[Entry], *, chunk_min: int) -> int:
    """Put the oldest entries of a row into the archive, as many of them as one chunk may hold, and return how many.

    They join the newest chunk if that is small, sound and ours, else they are one of their own.
    """
    lines: list[bytes] = []
    size = 0
    for entry in oldest:
        line = msgspec.json.encode(entry) + b"\n"
        if lines and size + len(line) > HISTORY_CHUNK_BYTES:
            break
        lines.append(line)
        size += len(line)
    filed = oldest[: len(lines)]
    times = [entry.recorded_at for entry in filed]
    facts = (filed[-1].version, min(times), max(times), len(filed))
    row = connection.execute(f"{_CHUNK} ORDER BY version_end DESC LIMIT 1", (table, row_id)).fetchone()
    newest = Chunk(*row) if row else None
    if newest and newest.entry_count + len(filed) <= JOINED_MAX * (chunk_min + 1):
        blob = _blob(connection, newest)
        known = unpacked(blob) if blob and blob[4:5] and blob[4] & _CHECKSUM_FLAG else None
        if known and len(known) + size <= HISTORY_CHUNK_BYTES and _is_filed(known, newest):
            connection.execute(
                "UPDATE _row_history_archive SET version_end = ?, recorded_start = min(recorded_start, ?),"
                " recorded_end = max(recorded_end, ?), entry_count = entry_count + ?, blob = ? WHERE id = ?",
                (*facts, packed(known + b"".join(lines)), newest.id),
            )
            return len(filed)
    connection.execute(
        "INSERT INTO _row_history_archive (table_name, row_id, version_start, version_end, recorded_start,"
        " recorded_end, entry_count, format, blob) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (table, row_id, filed[0].version, *facts, FORMAT, packed(b"".join(lines))),
    )
    return len(filed)


def _blob(connection: apsw.Connection, chunk: Chunk) -> bytes | None:
    if chunk.format != FORMAT:
        return None
    row = connection.execute("SELECT CAST(blob AS BLOB) FROM _row_history_archive WHERE id = ?", (chunk.id,)).fetchone()
    return row and row[0]


def _is_filed(lines: bytes, chunk: Chunk) -> bool:
    """A quick look whether lines that have just been unpacked are those that the chunk is filed under."""
    ends = (lines[: lines.find(b"\n")], lines[lines.rfind(b"\n", 0, -1) + 1 :])
    try:
        versions = tuple(msgspec.json.decode(line, type=Entry).version for line in ends)
    except _NOT_READABLE:
        return False
    return versions == (chunk.version_start, chunk.version_end) and lines.count(b"\n") == chunk.entry_count


def _decoded(lines: bytes, chunk: Chunk) -> list[Entry] | None:
    """The entries of these lines; None if they are not those that the chunk is filed under."""
    try:
        found = [msgspec.json.decode(line, type=Entry) for line in lines.split(b"\n") if line]
    except _NOT_READABLE:
        return None
    versions = [entry.version for entry in found]
    ends = versions[:1] + versions[-1:]
    is_whole = versions == sorted(set(versions)) and ends == [chunk.version_start, chunk.version_end]
    return found if is_whole and len(found) == chunk.entry_count else None
