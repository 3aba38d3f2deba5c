"""A chunk is exactly the entries that it is filed under, or it is damaged."""

import apsw
import msgspec
import pytest

from convmem.limits import HISTORY_CHUNK_BYTES, MIB
from convmem.store import sqlite
from convmem.tables import chunks, history
from convmem.tables.chunks import Chunk, Entry


@pytest.fixture
def connection() -> apsw.Connection:
    connection = sqlite.connect(":memory:")
    history.prepare(connection)
    return connection


def some(first: int, last: int, data_json: str = "{}") -> list[Entry]:
    return [Entry(version=n, recorded_at=n, op="update", data_json=data_json) for n in range(first, last + 1)]


def only(connection: apsw.Connection) -> Chunk:
    (chunk,) = chunks.below(connection, "t", "r", 2**62, 2**62)
    return chunk


def test_a_chunk_gives_back_what_was_filed(connection: apsw.Connection):
    nasty = [
        Entry(version=1, recorded_at=-5, op="create", data_json='{"a":"\\u0000 \\"\u2028 é"}', origin='{"device":"x"}'),
        Entry(version=4, recorded_at=2**62, op="delete", prev_data_json="\n\r\n"),
    ]
    assert chunks.file(connection, "t", "r", nasty, chunk_min=48) == 2
    chunk = only(connection)
    assert (chunk.version_start, chunk.version_end, chunk.entry_count) == (1, 4, 2)
    assert chunks.entries(connection, chunk) == nasty


def test_a_chunk_is_lines_of_json_that_any_zstd_unpacks(connection: apsw.Connection):
    chunks.file(connection, "t", "r", some(1, 2), chunk_min=48)
    (blob,) = connection.execute("SELECT blob FROM _row_history_archive").fetchone() or (None,)
    assert isinstance(blob, bytes)
    lines = chunks.zstd.decompress(blob).split(b"\n")
    assert msgspec.json.decode(lines[0]) == {"version": 1, "recorded_at": 1, "op": "update", "data_json": "{}"}
    assert lines[2:] == [b""]


def test_chunks_are_joined_while_they_are_small(connection: apsw.Connection):
    for first in range(1, 71, 10):
        assert chunks.file(connection, "t", "r", some(first, first + 9), chunk_min=9) == 10
    found = chunks.below(connection, "t", "r", 2**62, 2**62)
    assert [(chunk.version_start, chunk.version_end) for chunk in found] == [(41, 70), (1, 40)]
    assert [len(chunks.entries(connection, chunk) or ()) for chunk in found] == [30, 40]


def test_nothing_joins_a_chunk_whose_middle_may_be_damaged(connection: apsw.Connection):
    chunks.file(connection, "t", "r", some(1, 3), chunk_min=48)
    lines = [msgspec.json.encode(entry) for entry in some(1, 3)]
    connection.execute(
        "UPDATE _row_history_archive SET blob = ?", (chunks.zstd.compress(b"\n".join([lines[0], b"?", lines[2], b""])),)
    )
    chunks.file(connection, "t", "r", some(4, 5), chunk_min=48)
    newest, oldest = chunks.below(connection, "t", "r", 2**62, 2**62)
    assert chunks.entries(connection, oldest) is None
    assert [entry.version for entry in chunks.entries(connection, newest) or ()] == [4, 5]


def test_only_so_much_is_packed_at_once(connection: apsw.Connection):
    filed = chunks.file(connection, "t", "r", some(1, 49, "x" * MIB), chunk_min=48)
    assert filed == HISTORY_CHUNK_BYTES // MIB - 1
    assert chunks.file(connection, "t", "r", some(filed + 1, filed + 1, "x" * MIB), chunk_min=48) == 1
    assert len(chunks.below(connection, "t", "r", 2**62, 2**62)) == 2
    assert chunks.file(connection, "t", "r", some(90, 91, "x" * HISTORY_CHUNK_BYTES), chunk_min=48) == 1


@pytest.mark.parametrize(
    "damage",
    [
        "blob = x''",
        "blob = x'00'",
        "blob = 'text'",
        "blob = substr(blob, 1, length(blob) / 2)",
        "blob = substr(blob, 1, length(blob) - 1)",
        "blob = blob || x'00'",
        "blob = CAST(substr(blob, 1, 12) || x'ffff' || substr(blob, 15) AS BLOB)",
        "format = 'jsonl'",
        "version_start = 0",
        "version_end = 6",
        "entry_count = 4",
    ],
)
def test_what_is_not_what_it_is_filed_under_is_damaged(connection: apsw.Connection, damage: str):
    chunks.file(connection, "t", "r", some(1, 5), chunk_min=48)
    assert chunks.entries(connection, only(connection)) is not None
    connection.execute(f"UPDATE _row_history_archive SET {damage}")
    assert chunks.entries(connection, only(connection)) is None
    chunks.file(connection, "t", "r", some(6, 9), chunk_min=48)
    sound = chunks.below(connection, "t", "r", 2**62, 2**62)[0]
    assert [entry.version for entry in chunks.entries(connection, sound) or ()] == [6, 7, 8, 9]


@pytest.mark.parametrize(
    "lines",
    [
        b"",
        b"{}\n",
        b"[1]\n",
        b"\xff\n",
        b'{"version":1,"recorded_at":1,"op":"drop"}\n',
        b'{"version":1,"recorded_at":1,"op":"update","data_json":"\\ud800"}\n',
        b'{"version":1,"recorded_at":1,"op":"update"}\n' * 2,
    ],
)
def test_lines_that_are_no_entries_are_damage(connection: apsw.Connection, lines: bytes):
    chunks.file(connection, "t", "r", some(1, 1), chunk_min=48)
    connection.execute("UPDATE _row_history_archive SET blob = ?", (chunks.packed(lines),))
    assert chunks.entries(connection, only(connection)) is None


def test_no_changed_byte_goes_unnoticed():
    blob = chunks.packed(b'{"version":1,"recorded_at":1,"op":"update","data_json":"abcdefgh"}\n')
    lines = chunks.unpacked(blob)
    assert lines is not None
    for at in range(len(blob)):
        for bit in range(8):
            changed = chunks.unpacked(blob[:at] + bytes([blob[at] ^ 1 << bit]) + blob[at + 1 :])
            assert changed in (None, lines)


def test_a_bomb_is_damage_and_is_not_unpacked():
    assert chunks.unpacked(chunks.packed(b"\0" * (chunks.HISTORY_CHUNK_BYTES_MAX + 1))) is None
