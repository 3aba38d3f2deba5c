"""hooks/spool: in order, bounded, and whole whatever dies in the middle."""

import fcntl
import itertools
import json
import os
import resource
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from convmem import file_descriptors
from convmem.hooks import late
from convmem.hooks import spool as module
from convmem.hooks.late import Late
from convmem.hooks.lines import line_of
from convmem.hooks.spool import Busy, Spool, Unavailable
from convmem.limits import SPOOL_AGE_MS_MAX, SPOOL_BYTES_MAX, SPOOL_ROOM_BYTES, SPOOL_TAKEN_BYTES_MAX
from tests.support.manual_clock import START_MS, ManualClock

NAME = "0123"


def event(number: int, filling: int = 0, at: int = START_MS) -> bytes:
    return json.dumps({"event_id": f"e{number}", "at": at, "content": "x" * filling}).encode()


def numbers(events: tuple[bytes, ...]) -> list[int]:
    return [int(json.loads(text)["event_id"][1:]) for text in events]


def facts(depth: int, dropped: int = 0, oldest_at: int | None = START_MS, since: int = START_MS) -> dict[str, Any]:
    return {
        "depth": depth,
        "oldest_at": oldest_at if depth else None,
        "dropped": dropped,
        "dropped_since": since if dropped else None,
    }


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def spool(tmp_path: Path, clock: ManualClock) -> Spool:
    return Spool(str(tmp_path / "convmem" / "spool"), NAME, clock)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "convmem" / "spool" / f"{NAME}.jsonl"


def everything(spool: Spool) -> list[int]:
    """All that waits, delivered batch by batch."""
    found = []
    while (batch := spool.head()).raw:
        found += numbers(batch.events)
        spool.take_off(batch, batch.spoiled)
    return found


def test_events_leave_in_the_order_they_came_and_nothing_is_left(spool: Spool, file: Path):
    assert spool.is_empty()
    spool.append([event(0), event(1)])
    spool.append([event(2)])
    assert not spool.is_empty()
    assert file.read_bytes() == b"".join(line_of(event(number), START_MS) for number in range(3))
    batch = spool.head(2)
    assert numbers(batch.events) == [0, 1]
    assert batch.behind == facts(1)
    spool.take_off(batch, 0)
    assert spool.facts() == facts(1)
    assert everything(spool) == [2]
    assert spool.is_empty()
    assert spool.facts() == facts(0)


def test_all_of_it_is_for_the_owner_alone(spool: Spool, file: Path):
    spool.append([event(0)])
    spool.append([], 1)
    claim = spool.claim()
    assert claim is not None
    claim.close()
    found = {path.name: path.stat().st_mode & 0o777 for path in file.parent.iterdir()}
    assert found == dict.fromkeys([f"{NAME}.{end}" for end in ("jsonl", "state", "lock", "drain")], 0o600)
    assert {path.stat().st_mode & 0o777 for path in (file.parent, file.parent.parent)} == {0o700}


def test_looking_makes_nothing(spool: Spool, file: Path):
    assert (spool.facts(), spool.at_rest(), spool.is_empty()) == (facts(0), facts(0), True)
    assert not file.parent.exists()


def test_a_glance_tells_the_same_and_touches_nothing(spool: Spool, file: Path):
    assert spool.glance() == facts(0)
    assert not file.parent.exists()
    spool.append([event(0, at=START_MS - 5), event(1), event(2)], dropped=2)
    spool.take_off(spool.head(1), 0)
    before = {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in file.parent.iterdir()}
    assert spool.glance() == facts(2, 2)
    assert {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in file.parent.iterdir()} == before
    assert spool.facts() == facts(2, 2)


def test_a_line_that_was_never_finished_spoils_no_other(spool: Spool, file: Path):
    spool.append([event(0)])
    with file.open("ab") as torn:
        torn.write(event(1)[:20])
    spool.append([event(2)])
    batch = spool.head()
    assert (numbers(batch.events), batch.spoiled) == ([0, 2], 1)


def test_an_unfinished_line_that_is_being_sent_off_leaves_room_for_the_next(spool: Spool, file: Path):
    spool.append([event(0)])
    with file.open("ab") as torn:
        torn.write(event(1)[:20])
    batch = spool.head()
    spool.append([event(2)])
    spool.take_off(batch, batch.spoiled)
    assert spool.facts() == facts(1, dropped=1)
    assert everything(spool) == [2]


def test_sending_is_not_in_the_way_of_what_comes_meanwhile(spool: Spool):
    spool.append([event(0)])
    batch = spool.head()
    spool.append([event(1)])
    spool.take_off(batch, 0)
    assert everything(spool) == [1]


def test_taking_off_twice_takes_nothing_more(spool: Spool):
    spool.append([event(0), event(1)])
    batch = spool.head(1)
    spool.take_off(batch, 0)
    spool.take_off(batch, 0)
    assert everything(spool) == [1]


def test_the_head_moves_without_rewriting_and_much_that_was_taken_is_cut_off(spool: Spool, file: Path):
    filling = 60_000
    count = 2 * SPOOL_TAKEN_BYTES_MAX // filling + 20
    spool.append([event(number, filling) for number in range(count)])
    first, whole = file.stat().st_ino, file.stat().st_size
    spool.take_off(spool.head(), 0)
    assert (file.stat().st_ino, file.stat().st_size) == (first, whole)
    while file.stat().st_ino == first:
        spool.take_off(spool.head(), 0)
    assert 0 < file.stat().st_size < whole / 2
    left = everything(spool)
    assert left == list(range(count - len(left), count))


def test_the_oldest_make_room_and_are_counted(spool: Spool, file: Path):
    sent = 0
    largest = 0
    while sent < 3 * SPOOL_BYTES_MAX // 50_000:
        spool.append([event(number, 50_000) for number in range(sent, sent + 10)])
        sent += 10
        largest = max(largest, file.stat().st_size)
    assert SPOOL_BYTES_MAX - SPOOL_ROOM_BYTES < largest <= SPOOL_BYTES_MAX
    found = spool.facts()
    assert found == facts(sent - found["dropped"], dropped=found["dropped"])
    assert found["depth"] * 50_000 > SPOOL_BYTES_MAX - 2 * SPOOL_ROOM_BYTES
    assert everything(spool) == list(range(found["dropped"], sent))


def test_what_was_taken_off_makes_room_before_anything_that_waits_does(spool: Spool):
    count = SPOOL_BYTES_MAX // 60_000 - 2
    spool.append([event(number, 60_000) for number in range(count)])
    batch = spool.head()
    spool.take_off(batch, 0)
    spool.append([event(number, 60_000) for number in range(count, count + len(batch.events))])
    assert spool.facts() == facts(count)
    assert everything(spool) == list(range(len(batch.events), count + len(batch.events)))


def test_what_left_to_make_room_while_it_was_sent_is_not_taken_off_twice(spool: Spool):
    count = SPOOL_BYTES_MAX // 60_000 - 1
    spool.append([event(number, 60_000) for number in range(count)])
    batch = spool.head()
    spool.append([event(count, 60_000), event(count + 1, 60_000)])
    spool.take_off(batch, 0)
    dropped = spool.facts()["dropped"]
    assert dropped > len(batch.events)
    assert everything(spool) == list(range(dropped, count + 2))


def test_of_a_batch_that_left_in_part_the_rest_is_taken_off(spool: Spool, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "SPOOL_ROOM_BYTES", 61_000)
    count = SPOOL_BYTES_MAX // 60_000
    spool.append([event(number, 60_000) for number in range(count)])
    batch = spool.head()
    spool.append([event(number, 60_000) for number in range(count, count + 3)])
    dropped = spool.facts()["dropped"]
    assert 0 < dropped < len(batch.events)
    spool.take_off(batch, 0)
    assert everything(spool) == list(range(len(batch.events), count + 3))


def test_more_than_the_spool_holds_is_refused(spool: Spool):
    with pytest.raises(Unavailable, match="more than the spool holds"):
        spool.append([event(0, SPOOL_BYTES_MAX)])


def test_what_is_too_old_is_dropped_and_counted(spool: Spool, clock: ManualClock):
    spool.append([event(0)])
    clock.pass_ms(SPOOL_AGE_MS_MAX)
    spool.append([event(1, at=clock.at_ms)])
    clock.pass_ms(1)
    batch = spool.head()
    assert (numbers(batch.events), batch.spoiled) == ([1], 1)
    assert batch.behind == facts(0, dropped=1, since=clock.at_ms)


def test_the_count_is_kept_for_a_while_and_then_forgotten(spool: Spool, clock: ManualClock):
    spool.append([], 2)
    clock.pass_ms(SPOOL_AGE_MS_MAX)
    spool.append([], 3)
    assert spool.at_rest() == facts(0, dropped=5)
    clock.pass_ms(1)
    assert spool.at_rest() == facts(0)
    assert spool.facts() == facts(0)
    spool.append([], 1)
    assert spool.at_rest() == facts(0, dropped=1, since=clock.at_ms)


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", "null", '{"offset": 5}', "\0" * 90),
        '{"file": "x", "offset": 5, "dropped": 0, "dropped_since": 0}',
        '{"file": 1, "offset": -5, "dropped": 0, "dropped_since": 0}',
        '{"file": 1, "offset": true, "dropped": 0, "dropped_since": 0}',
        '{"file": 1, "offset": 5, "dropped": 0, "dropped_since": 0}',
    ],
)
def test_a_state_that_is_damaged_or_of_another_file_loses_no_event(spool: Spool, file: Path, text: str):
    spool.append([event(0), event(1)])
    file.with_suffix(".state").write_text(text)
    assert everything(spool) == [0, 1]


def test_a_file_that_was_removed_takes_its_head_along(spool: Spool, file: Path):
    spool.append([event(0), event(1), event(2)])
    spool.take_off(spool.head(2), 0)
    file.unlink()
    spool.append([event(number) for number in range(3, 9)])
    assert everything(spool) == list(range(3, 9))


def doors(monkeypatch: pytest.MonkeyPatch, deadly: int) -> Iterator[None]:
    """Each change of the disk is one step; the process dies before the step with this number."""
    steps = itertools.count()
    for name in ("write_at_end", "truncate", "replace", "keep_from", "open_file"):
        real = getattr(file_descriptors, name)

        def step(*arguments: Any, real: Any = real) -> Any:
            if next(steps) == deadly:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments)

        monkeypatch.setattr(file_descriptors, name, step)
    real_rename = os.rename

    def rename(old: str, new: str) -> None:
        if next(steps) == deadly:
            os.kill(os.getpid(), signal.SIGKILL)
        real_rename(old, new)
        if next(steps) == deadly:
            os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(os, "rename", rename)
    yield


def killed_at(step: int, monkeypatch: pytest.MonkeyPatch, work: Any) -> bool:
    """Do the work in a process of its own that dies before a step; whether it did."""
    child = os.fork()
    if child == 0:
        try:
            with monkeypatch.context() as patched:
                next(doors(patched, step))
                work()
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


# Small bounds, so that every kind of change happens within a few events.
BOUNDS = {"SPOOL_BYTES_MAX": 3_000, "SPOOL_ROOM_BYTES": 500, "SPOOL_TAKEN_BYTES_MAX": 600}


@pytest.mark.slow
@pytest.mark.parametrize("delivered", [1, 7, 100])
def test_a_kill_at_any_step_loses_nothing_and_sends_nothing_out_of_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, delivered: int
):
    for name, bound in BOUNDS.items():
        monkeypatch.setattr(module, name, bound)
    deaths = 0
    for step in itertools.count():
        directory = tmp_path / str(step)
        spool = Spool(str(directory), NAME, ManualClock())
        spool.append([event(number) for number in range(10)])

        def work(spool: Spool = spool) -> None:
            for number in range(10, 20):
                spool.append([event(number)])
            while (batch := spool.head(delivered)).raw:
                # What was sent is told by a file: the process itself may die.
                with (Path(spool._directory) / "sent").open("a") as sent:
                    sent.write("".join(f"{number}\n" for number in numbers(batch.events)))
                spool.take_off(batch, 0)
            spool.append([event(20)])

        if not killed_at(step, monkeypatch, work):
            break
        deaths += 1
        spool.append([event(99)])
        there = directory / "sent"
        sent = [int(text) for text in there.read_text().split()] if there.exists() else []
        left = everything(spool)
        last = max([19 * bool(sent), *(number for number in left if number < 99), 9])
        assert left[-1] == 99
        assert left == sorted(left)
        assert set(sent) | set(left) == {*range(last + 1), 99}, (step, sent, left)
        assert spool.facts()["dropped"] == 0
    assert deaths > 40


@pytest.mark.slow
def test_a_kill_while_room_is_made_loses_only_what_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name, bound in BOUNDS.items():
        monkeypatch.setattr(module, name, bound)
    deaths = 0
    for step in itertools.count():
        spool = Spool(str(tmp_path / str(step)), NAME, ManualClock())
        spool.append([event(number) for number in range(30)])

        def work(spool: Spool = spool) -> None:
            spool.append([event(number) for number in range(30, 45)])

        if not killed_at(step, monkeypatch, work):
            break
        deaths += 1
        dropped = spool.facts()["dropped"]
        left = everything(spool)
        assert left == list(range(dropped, left[-1] + 1))
        assert left[-1] in {29, 44}
    assert deaths > 8


@pytest.mark.slow
def test_a_kill_while_what_came_late_is_taken_in_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    deaths = 0
    for step in itertools.count():
        spool = Spool(str(tmp_path / str(step)), NAME, ManualClock())
        spool.append([event(0)])

        def work(spool: Spool = spool) -> None:
            assert Late(f"{spool._path}.late", ManualClock()).add(line_of(event(1), START_MS))
            spool.append([event(2)])

        if not killed_at(step, monkeypatch, work):
            break
        deaths += 1
        was_kept = (tmp_path / str(step) / f"{NAME}.late").exists() and not spool._late.is_empty()
        left = everything(spool)
        # Whoever dies between the two files leaves it in both: the daemon stores it once.
        assert left in ([0], [0, 1], [0, 1, 1], [0, 1, 2])
        assert not was_kept or 1 in left
    assert deaths > 5


@contextmanager
def small_files(size: int) -> Iterator[None]:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_a_full_disk_takes_nothing_and_spoils_nothing(spool: Spool, file: Path):
    spool.append([event(0)])
    before = file.read_bytes()
    with small_files(len(before) + 10), pytest.raises(Unavailable, match="cannot be used"):
        spool.append([event(1)])
    assert file.read_bytes() == before
    spool.append([event(2)])
    assert everything(spool) == [0, 2]


def test_on_a_full_disk_what_was_sent_is_still_taken_off(spool: Spool):
    spool.append([event(0)])
    batch = spool.head()
    with small_files(0), pytest.raises(Unavailable):
        spool.take_off(batch, 0)
    assert spool.is_empty()
    spool.append([event(1)])
    assert everything(spool) == [1]


def test_a_place_that_cannot_be_used_says_so(tmp_path: Path, clock: ManualClock):
    (tmp_path / "file").write_text("")
    spool = Spool(str(tmp_path / "file" / "spool"), NAME, clock)
    with pytest.raises(Unavailable, match="the spool cannot be used: Not a directory"):
        spool.append([event(0)])
    assert spool.is_empty()
    assert spool.at_rest() == facts(0)
    with pytest.raises(Unavailable, match="the spool cannot be used: Not a directory"):
        spool.facts()


@pytest.mark.parametrize("end", ["jsonl", "lock", "late"])
def test_what_is_no_file_holds_nothing(spool: Spool, file: Path, end: str):
    file.with_suffix(f".{end}").mkdir(parents=True)
    assert spool.is_empty()
    if end == "late":
        spool.append([event(0)])
        assert everything(spool) == [0]
    else:
        with pytest.raises(Unavailable, match="the spool cannot be used: Is a directory"):
            spool.append([event(0)])


@contextmanager
def held(*paths: Path) -> Iterator[None]:
    """Somebody else has these locks and keeps them."""
    with ExitStack() as stack:
        for path in paths:
            fcntl.flock(stack.enter_context(path.open("a")), fcntl.LOCK_EX)
        yield


def test_a_host_does_not_wait_for_a_turn_and_loses_neither_its_event_nor_its_place(spool: Spool, file: Path):
    spool.append([event(0)])
    with held(file.with_suffix(".lock")):
        begun = time.process_time()
        spool.append([event(1)])
        spool.append([event(2), event(3)], 1)
        assert time.process_time() - begun < 1
    assert (spool.is_empty(), file.read_bytes()) == (False, line_of(event(0), START_MS))
    spool.append([event(4)])
    assert spool.facts() == facts(6)
    assert everything(spool) == [0, 1, 2, 3, 4]
    assert spool.facts() == facts(0, dropped=1)
    assert spool.is_empty()


def test_the_waits_of_a_host_are_short_in_all(spool: Spool, file: Path, monkeypatch: pytest.MonkeyPatch):
    rests: list[float] = []
    for part in (module, late):
        monkeypatch.setattr(part, "sleep_ms", rests.append)
    spool.append([event(0)], 1)
    with held(file.with_suffix(".lock"), file.with_suffix(".late")), pytest.raises(Busy, match="kept the spool too"):
        spool.append([event(1)], 1)
    assert 0 < sum(rests) <= 20


def test_what_came_late_waits_too(spool: Spool, file: Path):
    spool.append([])
    with held(file.with_suffix(".lock")):
        spool.append([event(0)])
    assert file.stat().st_size == 0
    assert not spool.is_empty()
    assert everything(spool) == [0]
    with held(file.with_suffix(".lock")):
        spool.append([event(1)])
    assert spool.facts() == facts(1)


def test_where_what_came_late_cannot_be_taken_in_the_rest_is_delivered_first(spool: Spool, file: Path):
    spool.append([event(0)])
    with held(file.with_suffix(".lock")):
        spool.append([event(1)])
    with small_files(file.stat().st_size):
        batch = spool.head()
        assert numbers(batch.events) == [0]
        with pytest.raises(Unavailable, match="cannot be used"):
            spool.append([event(2)])
    with small_files(0):
        with pytest.raises(Unavailable):
            spool.take_off(batch, 0)
        with pytest.raises(Unavailable, match="cannot be used"):
            spool.head()
    assert everything(spool) == [1]


def test_one_delivers_at_a_time_and_leaves_only_when_nothing_waits(spool: Spool):
    claim = spool.claim()
    assert claim is not None
    assert spool.claim() is None
    spool.append([event(0)])
    assert not spool.leave(claim)
    assert everything(spool) == [0]
    assert spool.leave(claim)
    after = spool.claim()
    assert after is not None
    after.close()


@pytest.mark.slow
def test_several_processes_at_once_lose_nothing(spool: Spool):
    children = []
    for writer in range(4):
        child = os.fork()
        if child == 0:
            try:
                for number in range(100):
                    spool.append([event(writer * 1000 + number)])
            finally:
                os._exit(0)
        children.append(child)
    found = []
    while any(os.path.exists(f"/proc/{child}") for child in children):
        batch = spool.head(7)
        found += numbers(batch.events)
        spool.take_off(batch, batch.spoiled)
        children = [child for child in children if os.waitpid(child, os.WNOHANG)[0] == 0]
    found += everything(spool)
    for writer in range(4):
        assert [number for number in found if number // 1000 == writer] == [writer * 1000 + n for n in range(100)]
    assert spool.facts() == facts(0)
