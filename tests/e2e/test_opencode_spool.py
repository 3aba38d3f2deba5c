"""The spool of the OpenCode plugin: real node processes on one real file, damaged on purpose and killed on purpose."""

import json
import os
import signal
import stat
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.support import node
from tests.support.source import TESTS

pytestmark = pytest.mark.slow

MONTH_MS = 30 * 24 * 3_600_000
MIB = 1024 * 1024


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return node.plugin(tmp_path_factory.mktemp("plugin") / "built").with_name("spool.js")


class Process:
    """A process that has the spool open."""

    def __init__(self, module: Path, file: Path) -> None:
        self.running = subprocess.Popen(
            [node.node(), str(TESTS / "support" / "opencode_spool.mjs"), str(module), str(file)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def __call__(self, verb: str, *given: Any) -> Any:
        """Do it; EOFError if the process is gone."""
        assert self.running.stdin is not None
        assert self.running.stdout is not None
        try:
            self.running.stdin.write(json.dumps([verb, *given]) + "\n")
            self.running.stdin.flush()
        except BrokenPipeError:
            raise EOFError from None
        line = self.running.stdout.readline()
        if not line:
            raise EOFError
        return json.loads(line)

    def close(self) -> None:
        self.running.kill()
        self.running.wait(20)
        for stream in (self.running.stdin, self.running.stdout):
            assert stream is not None
            try:
                stream.close()
            except BrokenPipeError:
                continue


Opened = Callable[[], Process]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "spool" / "here-opencode.jsonl"


@pytest.fixture
def opened(module: Path, file: Path) -> Iterator[Opened]:
    """Opens the spool in a new process; all are gone afterwards."""
    with ExitStack() as stack:

        def another() -> Process:
            process = Process(module, file)
            stack.callback(process.close)
            return process

        yield another


def now_ms() -> int:
    return int(time.time() * 1000)


def event(name: str, age_ms: int = 0, size: int = 0) -> dict[str, Any]:
    return {"event_id": name, "kind": "prompt", "session_id": "s", "content": "x" * size, "at": now_ms() - age_ms}


def names(head: Any) -> list[str]:
    return [json.loads(line)["event_id"] for line in head["events"]]


def test_what_came_first_goes_first_and_another_process_goes_on_where_one_ended(opened, file):
    one = opened()
    one("append", [event("a", 5_000), event("b", 4_000)])
    opened()("appendNow", [event("c", 3_000)])
    head = one("head")
    assert names(head) == ["a", "b", "c"]
    one("take", head, head["ends"][0], 0)
    head = opened()("head")
    assert names(head) == ["b", "c"]
    assert head["waiting"] == {"depth": 0, "oldest_at": None, "dropped": 0, "dropped_since": None}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    one("take", head, head["end"], 0)
    assert one("isEmpty")
    assert file.stat().st_size == 0


def test_a_head_is_one_request_and_says_what_will_still_wait(opened):
    one = opened()
    sent = [event(f"{number}") for number in range(300)]
    one("append", sent)
    head = one("head")
    assert names(head) == [each["event_id"] for each in sent[:256]]
    assert [head["waiting"]["depth"], head["waiting"]["oldest_at"]] == [44, sent[256]["at"]]
    one("take", head, head["end"], 0)
    one("append", [event(f"large {number}", size=MIB // 2) for number in range(3)])
    assert names(one("head")) == [each["event_id"] for each in sent[256:]] + ["large 0"]


def test_only_the_first_takes_a_head_off(opened):
    one, other = opened(), opened()
    one("append", [event("a")])
    seen, also_seen = one("head"), other("head")
    other("take", also_seen, also_seen["end"], 1)
    # The same bytes at the same place are another event by now.
    other("append", [event("b")])
    one("take", seen, seen["end"], 1)
    head = one("head")
    assert names(head) == ["b"]
    assert head["waiting"]["dropped"] == 1


@pytest.mark.parametrize("torn", [b'{"event_id": "half', b"\x00" * 500, b"[1]", b'{"at": 5}', b'"text"'])
def test_a_line_that_was_never_finished_spoils_no_other_and_is_counted(opened, file, torn):
    one = opened()
    one("append", [event("a")])
    with file.open("ab") as end:
        end.write(torn)
    one("append", [event("b")])
    head = one("head")
    assert names(head) == ["a", "b"]
    assert head["lost"] == 1
    one("take", head, head["end"], head["lost"])
    assert one("atRest")["dropped"] == 1
    assert one("isEmpty")


def test_what_waited_for_a_month_is_dropped_and_the_count_is_forgotten_after_another(opened, file):
    one = opened()
    one("append", [event("first"), event("second")])
    lines = [json.loads(line) for line in file.read_bytes().splitlines()]
    for line, waited_ms in zip(lines, (MONTH_MS + 60_000, MONTH_MS - 60_000), strict=True):
        line["spooled_at"] -= waited_ms
    unmarked = [event("old", MONTH_MS + 60_000), event("young", MONTH_MS - 60_000)]
    file.write_text("".join(json.dumps(line) + "\n" for line in [*lines, *unmarked]))
    head = one("drain")
    assert names(head) == ["second", "young"], "where a line does not say since when it waits, its event's time counts"
    told = one("atRest")
    assert told["dropped"] == 2
    assert abs(now_ms() - told["dropped_since"]) < 60_000
    state = file.with_suffix(".state")
    aged = json.loads(state.read_bytes()) | {"dropped_since": now_ms() - MONTH_MS - 1}
    state.write_text(json.dumps(aged))
    assert one("atRest")["dropped"] == 0


def test_an_event_of_long_ago_may_wait_as_long_as_any_other_and_is_sent_as_it_was(opened, file):
    one = opened()
    old = event("old", 10 * MONTH_MS) | {"content": 'ก "\\ \n,"spooled_at":5}'}
    one("append", [old])
    assert json.loads(file.read_bytes())["spooled_at"] >= now_ms() - 60_000
    head = one("head")
    assert [json.loads(line) for line in head["events"]] == [old]
    assert head["lost"] == 0


def test_a_process_that_ends_counts_what_it_has_dropped(opened, file):
    one = opened()
    one("appendNow", [], 2)
    assert one("atRest")["dropped"] == 2
    one("appendNow", [event("a")], 1)
    head = one("head")
    assert (names(head), head["waiting"]["dropped"]) == (["a"], 3)


def test_a_place_that_cannot_be_made_is_given_up_at_once(module, tmp_path):
    # The system says that the parent is missing, though it is there.
    process = Process(module, Path("/proc/convmem/spool/here-opencode.jsonl"))
    try:
        with pytest.raises(EOFError):
            process("append", [event("a")])
        assert process.running.wait(20) != 0
    finally:
        process.close()


def test_the_spool_is_bounded_and_the_oldest_go_first(opened, file):
    one = opened()
    for number in range(40):
        one("append", [event(f"{number}-{part}", size=MIB // 4) for part in range(4)])
        assert file.stat().st_size < 21 * MIB
    found = []
    while not one("isEmpty"):
        found += names(one("drain"))
    everything = [f"{number}-{part}" for number in range(40) for part in range(4)]
    assert 60 <= len(found) <= 64
    assert found == everything[-len(found) :]
    assert one("atRest")["dropped"] == len(everything) - len(found)


@pytest.mark.parametrize("damage", ["gone", "emptied", "half", "nonsense", "beyond"])
def test_a_damaged_state_means_that_all_is_sent_again(opened, file, damage):
    one = opened()
    one("append", [event("a"), event("b")])
    head = one("head")
    one("take", head, head["ends"][0], 0)
    state = file.with_suffix(".state")
    whole = state.read_bytes()
    broken = {"emptied": b"", "half": whole[: len(whole) // 2], "nonsense": b"[]", "beyond": b'{"offset": 99999}'}
    state.unlink() if damage == "gone" else state.write_bytes(broken[damage])
    assert names(one("head")) == ["a", "b"]
    one("append", [event("c")])
    assert names(one("head")) == ["a", "b", "c"]


def test_a_file_that_was_taken_away_begins_anew(opened, file):
    one = opened()
    one("append", [event(f"{number}") for number in range(50)])
    head = one("head")
    one("take", head, head["ends"][40], 0)
    file.unlink()
    assert one("isEmpty")
    one("append", [event("a")])
    one("append", [event(f"b{number}") for number in range(60)])
    assert names(one("head"))[:2] == ["a", "b0"]


def test_a_turn_that_a_dead_process_left_behind_is_taken_away(opened, file):
    one = opened()
    one("append", [event("a")])
    turn = file.with_suffix(".turn")
    turn.touch()
    os.utime(turn, (time.time() - 60, time.time() - 60))
    one("append", [event("b")])
    assert names(one("head")) == ["a", "b"]
    assert not turn.exists()
    assert {path.suffix for path in file.parent.iterdir()} <= {".jsonl", ".state"}


def test_many_processes_at_once_lose_nothing_and_keep_each_one_s_order(opened):
    writers, drainers = [opened() for _ in range(3)], [opened() for _ in range(2)]
    count, done, found = 120, threading.Event(), []

    def write(number: int) -> None:
        for each in range(count):
            writers[number]("append", [event(f"{number} {each}")])

    def drain(process: Process) -> None:
        while not done.is_set() or not process("isEmpty"):
            found.extend(names(process("drain")))

    # A spool is only looked into once something is in it.
    writers[0]("append", [event("first")])
    writing = [threading.Thread(target=write, args=(number,)) for number in range(len(writers))]
    draining = [threading.Thread(target=drain, args=(process,)) for process in drainers]
    for thread in [*writing, *draining]:
        thread.start()
    for thread in writing:
        thread.join(60)
    done.set()
    for thread in draining:
        thread.join(60)
    firsts = list(dict.fromkeys(found))
    for number in range(len(writers)):
        own = [name for name in firsts if name.startswith(f"{number} ")]
        assert sorted(own, key=lambda name: int(name.split()[1])) == [f"{number} {each}" for each in range(count)]
    assert drainers[0]("isEmpty")
    assert drainers[0]("atRest")["dropped"] == 0


def test_what_was_written_survives_the_death_of_whoever_wrote_or_took(opened):
    sure: list[str] = []
    taken: list[str] = []
    for round_number in range(3):
        writer, taker = opened(), opened()
        ending = threading.Timer(0.02 + 0.017 * round_number, writer.running.send_signal, [signal.SIGKILL])
        try:
            for each in range(100_000):
                writer("append", [event(f"{round_number} {each}", size=200)])
                sure.append(f"{round_number} {each}")
                if each == 0:
                    ending.start()
                if each % 20 == 19:
                    taken += names(taker("drain"))
        except EOFError:
            ending.join()
        taker.close()
    last = opened()
    while not last("isEmpty"):
        taken += names(last("drain"))
    assert len(sure) > 12
    assert set(sure) <= set(taken)
    assert len(set(taken) - set(sure)) <= 3, "at most what was written when the answer was lost"
