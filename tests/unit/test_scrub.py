"""scrub.py: the log is verified from its first byte while the store is in use, and again for each generation."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from convmem import scrub as scrub_module
from convmem.files import RealFiles
from convmem.scrub import Scrub
from convmem.store.log import NAME
from convmem.store.store import Facts
from convmem.store.writer import Writer
from tests.support.engines import ORIGIN, running
from tests.support.notebook import Add, Strike
from tests.support.waiting import until


@pytest.fixture(autouse=True)
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slice is one frame, and there is no pause between two."""
    monkeypatch.setattr(scrub_module, "SLICE_BYTES", 1)
    monkeypatch.setattr(scrub_module, "PAUSE_S", 0)


async def fill(directory: Path, count: int = 6) -> None:
    async with running(directory) as engine:
        for number in range(count):
            await engine.access(ORIGIN).write(Add((f"note {number}",)))


def damage(directory: Path, at: int) -> None:
    with (directory / NAME).open("r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1]))


async def test_it_goes_from_the_first_byte_to_the_last_that_was_there_and_rests(tmp_path: Path) -> None:
    await fill(tmp_path)
    size = (tmp_path / NAME).stat().st_size
    async with running(tmp_path) as engine:
        seen: list[int] = []
        await engine.ready()
        await until(lambda: seen.append(engine.scrub.verified_bytes) or engine.scrub.verified_bytes == size)
        assert seen == sorted(seen)
        await engine.access(ORIGIN).write(Add(("later",)))
        assert engine.scrub.verified_bytes == size, "what is written now was checked when it was written"
        assert engine.scrub.damage is None


async def test_damage_is_told_with_its_place_and_the_store_is_marked(tmp_path: Path) -> None:
    await fill(tmp_path)
    damage(tmp_path, 60)
    async with running(tmp_path) as engine:
        await until(lambda: engine.scrub.damage)
        assert engine.scrub.damage == "the log is damaged at byte 0: the payload is damaged"
        assert engine.status() == "degraded"
        writer, _ = await engine.ready()
        assert await writer.alone(lambda store: store._index.state.damage_offset) == 0


async def test_it_begins_anew_with_each_generation(tmp_path: Path) -> None:
    await fill(tmp_path)
    async with running(tmp_path) as engine:
        access = engine.access(ORIGIN)
        await engine.ready()
        for sequence in (1, 2, 3):
            await until(lambda: engine.scrub.verified_bytes == (tmp_path / NAME).stat().st_size)
            await access.write(Strike(sequence))
            await access.rebuild()
        await until(lambda: engine.scrub.verified_bytes == (tmp_path / NAME).stat().st_size)
        assert engine.scrub.damage is None
        assert engine.status() == "ok"


async def test_a_new_generation_that_comes_in_the_middle_of_a_walk_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(tmp_path, 60)
    monkeypatch.setattr(scrub_module, "PAUSE_S", 0.001)
    async with running(tmp_path) as engine:
        access = engine.access(ORIGIN)
        await access.write(Strike(1))
        assert engine.scrub.verified_bytes < (tmp_path / NAME).stat().st_size
        await access.rebuild()
        await until(lambda: engine.scrub.verified_bytes == (tmp_path / NAME).stat().st_size)
        assert engine.scrub.damage is None


async def test_damage_of_a_later_generation_is_found_too(tmp_path: Path) -> None:
    await fill(tmp_path)
    async with running(tmp_path) as engine:
        await engine.access(ORIGIN).write(Strike(1))
        await engine.access(ORIGIN).rebuild()
        await until(lambda: engine.scrub.verified_bytes == (tmp_path / NAME).stat().st_size)
        damage(tmp_path, 60)
        engine.scrub.renew()
        await until(lambda: engine.scrub.damage)
        assert engine.scrub.damage == "the log is damaged at byte 0: the payload is damaged"


class Behind:
    """A writer that has not heard yet of the generation that has taken over."""

    def __init__(self, writer: Writer, facts: Facts) -> None:
        self._writer = writer
        self.facts = facts
        self.answered = 0

    async def alone(self, job: Any) -> Any:
        answer = await self._writer.alone(job)
        self.answered += 1
        return answer


async def test_the_file_of_a_generation_that_has_just_taken_over_is_not_taken_for_a_damaged_old_one(
    tmp_path: Path,
) -> None:
    """The name changes on the writer's thread, a moment before the loop hears of it."""
    await fill(tmp_path)
    async with running(tmp_path) as engine:
        writer, _ = await engine.ready()
        old = writer.facts
        await engine.access(ORIGIN).write(Strike(1))
        await engine.access(ORIGIN).rebuild()
        scrub = Scrub(RealFiles(tmp_path))
        behind = Behind(writer, old)
        walking = asyncio.ensure_future(scrub.run(behind))  # type: ignore[arg-type]
        await until(lambda: behind.answered)
        await asyncio.sleep(0)
        walking.cancel()
        assert scrub.damage is None
        assert await writer.alone(lambda store: store._index.state.damage_offset) is None
