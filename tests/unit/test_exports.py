"""Files that callers ask for by name: whole, private, never in the place of another."""

import asyncio
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from convmem.errors import Conflict, DiskFault
from convmem.limits import EXPORT_PREVIEW_CODE_POINTS_MAX
from tests.support.engines import ORIGIN, running
from tests.support.manual_clock import ManualClock
from tests.support.notebook import Add, notes

NOTES = [f"note {number}" for number in range(3)]


def noted(connection: apsw.Connection) -> Iterator[bytes]:
    for _, note in notes(connection):
        yield f"{note}\n".encode()


async def test_an_export_is_a_private_file_of_one_moment(tmp_path: Path):
    async with running(tmp_path) as engine:
        access = engine.access(ORIGIN)
        await access.write(Add(tuple(NOTES)))
        facts = await access.save_export("mine.json", noted)
    path = tmp_path / "exports" / "mine.json"
    data = path.read_bytes()
    assert data.decode().split("\n")[:3] == NOTES
    assert facts == {
        "filename": "mine.json",
        "size_bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
        "preview": data.decode(),
    }
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)


async def test_a_name_that_is_taken_is_refused_and_the_file_stays(tmp_path: Path):
    async with running(tmp_path) as engine:
        access = engine.access(ORIGIN)
        await access.save_export("mine.json", lambda connection: iter([b"first"]))
        with pytest.raises(Conflict):
            await access.save_export("mine.json", lambda connection: iter([b"second"]))
    assert (tmp_path / "exports" / "mine.json").read_bytes() == b"first"


async def test_of_two_that_want_one_name_at_once_one_gets_it(tmp_path: Path):
    async with running(tmp_path) as engine:
        access = engine.access(ORIGIN)
        outcomes = await asyncio.gather(
            *(access.save_export("mine.json", lambda connection: iter([b"x" * 100_000])) for _ in range(4)),
            return_exceptions=True,
        )
    assert [type(outcome) for outcome in outcomes].count(Conflict) == 3


async def test_without_a_name_it_is_the_time_and_a_number_if_need_be(tmp_path: Path):
    async with running(tmp_path, clock=ManualClock()) as engine:
        access = engine.access(ORIGIN)
        names = [(await access.save_export(None, lambda connection: iter([b"{}"])))["filename"] for _ in range(3)]
    first = names[0].removesuffix(".json")
    assert names == [f"{first}.json", f"{first}-2.json", f"{first}-3.json"]
    assert sorted(path.name for path in (tmp_path / "exports").iterdir()) == sorted(names)


async def test_what_breaks_off_leaves_no_file(tmp_path: Path):
    def broken(connection: apsw.Connection) -> Iterator[bytes]:
        yield b"half"
        raise OSError(28, "No space left on device")

    async with running(tmp_path) as engine:
        with pytest.raises(DiskFault):
            await engine.access(ORIGIN).save_export("mine.json", broken)
        assert list((tmp_path / "exports").iterdir()) == []
        assert (await engine.access(ORIGIN).write(Add(("still writing",))))["sequence"] == 1


async def test_a_disk_that_refuses_is_told_without_paths_and_numbers(tmp_path: Path):
    def broken(connection: apsw.Connection) -> Iterator[bytes]:
        raise OSError(28, "No space left on device", str(tmp_path / "secret"))

    def without_reason(connection: apsw.Connection) -> Iterator[bytes]:
        raise OSError

    async with running(tmp_path) as engine:
        for pieces, reason in ((broken, "No space left on device"), (without_reason, "without a reason")):
            with pytest.raises(DiskFault) as refusal:
                await engine.access(ORIGIN).save_export("mine.json", pieces)
            assert str(refusal.value) == f"the disk refused it ({reason}); the store is as it was"


@pytest.mark.parametrize("in_the_way", ["file", "loop", "dangling", "pipe"])
async def test_what_stands_where_exports_belong_is_named_without_a_path(tmp_path: Path, in_the_way: str):
    place = tmp_path / "data" / "exports"
    place.parent.mkdir()
    if in_the_way == "file":
        place.write_text("mine")
    elif in_the_way == "pipe":
        os.mkfifo(place)
    else:
        place.symlink_to(place if in_the_way == "loop" else place.parent / "nowhere")
    async with running(tmp_path / "data") as engine:
        with pytest.raises(DiskFault) as refusal:
            await engine.access(ORIGIN).save_export("mine.json", lambda connection: iter([b"x"]))
        assert str(refusal.value) == "exports/ of the data directory is no directory; nothing was written"
        assert (await engine.access(ORIGIN).write(Add(("still writing",))))["sequence"] == 1
    assert in_the_way != "file" or place.read_text() == "mine"
    assert not (tmp_path / "data" / "nowhere").exists()


@pytest.mark.parametrize("is_directory", [True, False])
async def test_a_link_leads_nobody_out_of_the_data_directory(tmp_path: Path, is_directory: bool):
    inside, outside = tmp_path / "data", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    if is_directory:
        (inside / "exports").symlink_to(outside)
    else:
        (inside / "exports").mkdir()
        (inside / "exports" / "mine.json").symlink_to(outside / "theirs.json")
    async with running(inside) as engine:
        with pytest.raises(DiskFault if is_directory else Conflict):
            await engine.access(ORIGIN).save_export("mine.json", lambda connection: iter([b"x"]))
    assert list(outside.iterdir()) == []


async def test_the_preview_is_cut_and_says_so(tmp_path: Path):
    async with running(tmp_path) as engine:
        access = engine.access(ORIGIN)
        whole = await access.save_export("a.json", lambda connection: iter(["🟡".encode() * 500]))
        cut = await access.save_export("b.json", lambda connection: iter(["🟡".encode()] * 501))
    assert whole["preview"] == "🟡" * 500
    assert (len(cut["preview"]), cut["preview"][-2:]) == (EXPORT_PREVIEW_CODE_POINTS_MAX, "🟡…")
