"""Sources: files, archives and directories, read as UTF-8 whatever they were saved as, and never written to."""

import gzip
import hashlib
import json
import zipfile
from pathlib import Path

import apsw
import pytest

from convmem.importers import sources
from convmem.importers.sources import Source, Unreadable, found

VALUE = [{"a": "é 日本 \ufeff inside"}]
TEXT = json.dumps(VALUE, ensure_ascii=False)


def content(source: Source) -> bytes:
    with source.opened() as file:
        return file.read()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("packed", [False, True])
def test_a_text_is_utf_8_whatever_it_was_saved_as(tmp_path: Path, encoding: str, packed: bool):
    marks = {"utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}
    data = marks.get(encoding, b"") + TEXT.replace(", ", ",\r\n").encode(encoding)
    path = tmp_path / "x"
    path.write_bytes(gzip.compress(data) if packed else data)
    (source,) = found([path])
    assert json.loads(content(source)) == VALUE
    assert source.sample.values == tuple(VALUE)
    assert path.read_bytes() == (path.read_bytes())


def test_an_archive_is_its_members_without_the_noise_of_a_mac(tmp_path: Path):
    with zipfile.ZipFile(tmp_path / "export.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("data/conversations.json", TEXT)
        archive.writestr("__MACOSX/data/._conversations.json", "x")
        archive.writestr("data/._x", "x")
        archive.writestr("packed.json.gz", gzip.compress(TEXT.encode()))
    names = {source.name.removeprefix(f"{tmp_path}/"): source for source in found([tmp_path / "export.zip"])}
    assert list(names) == ["export.zip/data/conversations.json", "export.zip/packed.json.gz"]
    assert all(content(source).decode() == TEXT for source in names.values())
    assert [one.name for one in found([tmp_path])] == [one.name for one in names.values()]


def test_a_directory_is_all_below_it_but_links_to_directories_and_what_belongs_to_a_database(tmp_path: Path):
    (tmp_path / "in" / "deep").mkdir(parents=True)
    for name in ("b.json", "deep/a.json", "x.db-wal", "x.db-shm", "._b.json"):
        (tmp_path / "in" / name).write_text(TEXT)
    (tmp_path / "in" / "circle").symlink_to(tmp_path / "in")
    assert [source.parts[-1] for source in found([tmp_path / "in"])] == ["b.json", "a.json"]


def test_what_cannot_be_read_says_why(tmp_path: Path):
    with pytest.raises(Unreadable, match="No such file"):
        list(found([tmp_path / "nothing"]))
    (tmp_path / "bad.zip").write_bytes(b"PK\x03\x04" + b"x" * 100)
    (source,) = found([tmp_path / "bad.zip"])
    assert source.sample.values == ()
    with zipfile.ZipFile(tmp_path / "cut.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.json", TEXT * 100)
    data = bytearray((tmp_path / "cut.zip").read_bytes())
    data[60] ^= 255
    (tmp_path / "cut.zip").write_bytes(data)
    (member,) = found([tmp_path / "cut.zip"])
    with pytest.raises(Unreadable):
        content(member)


def test_a_packed_file_that_was_cut_off_is_read_as_far_as_it_goes(tmp_path: Path):
    lines = "".join(json.dumps({"number": number, "text": f"{number * 7919}"}) + "\n" for number in range(20_000))
    (tmp_path / "x.gz").write_bytes(gzip.compress(lines.encode())[:-20_000])
    (source,) = found([tmp_path / "x.gz"])
    read = content(source).decode()
    assert lines.startswith(read)
    assert len(read) > 1_000


def test_no_archive_fills_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sources, "IMPORT_UNPACKED_BYTES_MAX", 1_000_000)
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(b"\0" * 3_000_000))
    (source,) = found([tmp_path / "bomb.gz"])
    with pytest.raises(Unreadable, match="larger than"):
        content(source)


def test_a_database_in_use_is_read_with_what_waits_in_its_wal_and_not_touched(tmp_path: Path):
    path = tmp_path / "x.db"
    writer = apsw.Connection(str(path))
    writer.execute(
        "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; CREATE TABLE session (id, data)"
    ).fetchall()
    writer.execute("INSERT INTO session VALUES ('a', 'in the wal')")
    before = {one: hashlib.sha256(one.read_bytes()).digest() for one in tmp_path.iterdir()}
    (source,) = found([path])
    assert source.sample.tables == {"session": frozenset({"id", "data"})}
    with source.database() as copy:
        assert copy.execute("SELECT data FROM session").fetchall() == [("in the wal",)]
        copy.execute("DELETE FROM session")
    after = {one: hashlib.sha256(one.read_bytes()).digest() for one in tmp_path.iterdir()}
    assert after == before
    assert writer.execute("SELECT count(*) FROM session").fetchall() == [(1,)]


def test_a_damaged_database_says_so(tmp_path: Path):
    (tmp_path / "x.db").write_bytes(b"SQLite format 3\0" + b"x" * 5_000)
    (source,) = found([tmp_path / "x.db"])
    with pytest.raises(Unreadable, match="damaged"), source.database():
        raise AssertionError("it cannot be opened")


def test_a_sample_is_the_beginning_of_what_is_too_large(tmp_path: Path):
    elements = [{"mapping": {"x": "y" * 1_000}, "number": number} for number in range(1_000)]
    (tmp_path / "x.json").write_text(json.dumps(elements))
    (source,) = found([tmp_path / "x.json"])
    assert list(source.sample.values[:3]) == elements[:3]
    assert len(source.sample.values) < len(elements)
