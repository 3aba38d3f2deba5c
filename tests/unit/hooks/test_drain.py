"""hooks/drain: patient, in order, and never stuck on what the daemon will not take."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from convmem.hooks.claim import Claim
from convmem.hooks.drain import Delivered, drain
from convmem.hooks.late import Late
from convmem.hooks.lines import line_of
from convmem.hooks.posting import Outcome
from convmem.hooks.spool import Spool
from convmem.limits import DELIVERY_PAUSE_MS_MAX, DELIVERY_PAUSE_MS_MIN
from tests.support.manual_clock import START_MS, ManualClock

PATIENCE_MS = 120_000
TAKEN = Outcome(200)


def event(number: int) -> bytes:
    return json.dumps({"event_id": f"e{number}", "at": START_MS}).encode()


class Daemon:
    """Answers as a script says, and as `last` behind its end; remembers what came and when."""

    def __init__(self, clock: ManualClock, *script: Outcome, last: Outcome = TAKEN) -> None:
        self.clock = clock
        self.script = list(script)
        self.last = last
        self.bad: set[int] = set()
        self.came: list[list[int]] = []
        self.taken: list[int] = []
        self.told: list[int] = []
        self.spools: list[Mapping[str, Any]] = []
        self.at_ms: list[int] = []

    def send(self, events: Sequence[bytes], spool: Mapping[str, Any]) -> Outcome:
        if not events:
            self.told.append(spool["dropped"])
            return self.last
        numbers = [int(json.loads(text)["event_id"][1:]) for text in events]
        self.came.append(numbers)
        self.spools.append(spool)
        self.at_ms.append(self.clock.at_ms)
        if self.script:
            return self.script.pop(0)
        if self.last.status == 200 and self.bad.issuperset(numbers):
            return Outcome(400, reason="bad")
        if self.last.status == 200:
            self.taken += [number for number in numbers if number not in self.bad]
        return self.last


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def spool(tmp_path: Path, clock: ManualClock) -> Spool:
    return Spool(str(tmp_path / "convmem" / "spool"), "name", clock)


def drained(spool: Spool, daemon: Daemon, *events: bytes) -> Delivered:
    if events:
        spool.append(events)
    claim = spool.claim()
    assert claim is not None
    found = drain(spool, claim, daemon.send, daemon.clock, PATIENCE_MS, lambda ms: daemon.clock.pass_ms(int(ms) or 1))
    after = spool.claim()
    assert after is not None, "the claim was not given back"
    after.close()
    return found


def test_all_that_waits_goes_out_in_order_and_in_bounded_requests(spool: Spool, clock: ManualClock):
    daemon = Daemon(clock)
    assert drained(spool, daemon, *map(event, range(600))) == Delivered(600, 0, "")
    assert [len(numbers) for numbers in daemon.came] == [256, 256, 88]
    assert daemon.taken == list(range(600))
    assert [said["depth"] for said in daemon.spools] == [344, 88, 0]
    assert spool.is_empty()


def test_nothing_to_deliver_is_nothing_to_send(spool: Spool, clock: ManualClock):
    daemon = Daemon(clock)
    assert drained(spool, daemon) == Delivered(0, 0, "")
    assert daemon.came == []


def test_what_comes_during_the_last_request_is_delivered_too(spool: Spool, clock: ManualClock):
    daemon = Daemon(clock)
    send = daemon.send

    def send_and_append(events: Sequence[bytes], said: Mapping[str, Any]) -> Outcome:
        if len(daemon.came) < 3:
            spool.append([event(100 + len(daemon.came))])
        return send(events, said)

    daemon.send = send_and_append  # type: ignore[method-assign]
    assert drained(spool, daemon, event(0)).sent == 4
    assert daemon.taken == [0, 100, 101, 102]


@pytest.mark.parametrize("status", [0, 401, 403, 404, 413, 415, 421, 500, 503, 507])
def test_on_anything_but_a_refusal_of_the_event_it_is_kept(spool: Spool, clock: ManualClock, status: int):
    daemon = Daemon(clock, last=Outcome(status, reason="no"))
    assert drained(spool, daemon, event(0)) == Delivered(0, 0, "no")
    assert spool.facts()["depth"] == 1
    assert clock.at_ms - START_MS <= PATIENCE_MS
    pauses = [later - earlier for earlier, later in zip(daemon.at_ms, daemon.at_ms[1:], strict=False)]
    assert pauses[0] == DELIVERY_PAUSE_MS_MIN
    assert pauses == sorted(pauses)
    assert pauses[-1] == DELIVERY_PAUSE_MS_MAX
    assert drained(spool, Daemon(clock)) == Delivered(1, 0, "")


def test_a_success_makes_it_patient_again(spool: Spool, clock: ManualClock):
    failures = [Outcome(503)] * 11
    daemon = Daemon(clock, *failures, TAKEN, *failures)
    assert drained(spool, daemon, *map(event, range(300))).reason == ""
    assert clock.at_ms - START_MS > PATIENCE_MS
    assert daemon.at_ms[13] - daemon.at_ms[12] == DELIVERY_PAUSE_MS_MIN


def test_a_daemon_that_asks_to_be_left_alone_is(spool: Spool, clock: ManualClock):
    daemon = Daemon(clock, Outcome(503, retry_after_ms=30_000))
    assert drained(spool, daemon, event(0)).sent == 1
    assert daemon.at_ms[1] - daemon.at_ms[0] == 30_000


def test_one_that_the_daemon_refuses_is_found_dropped_and_counted(spool: Spool, clock: ManualClock):
    daemon = Daemon(clock, Outcome(400))
    daemon.bad = {2}
    assert drained(spool, daemon, *map(event, range(5))) == Delivered(4, 1, "", 1)
    assert daemon.came == [[0, 1, 2, 3, 4], [0], [1], [2], [3], [4]]
    assert daemon.taken == [0, 1, 3, 4]
    assert spool.facts()["dropped"] == 1


def test_behind_a_batch_that_was_sent_one_by_one_batches_are_whole_again(spool: Spool, clock: ManualClock):
    daemon = Daemon(clock, Outcome(413))
    drained(spool, daemon, *map(event, range(300)))
    assert [len(numbers) for numbers in daemon.came] == [256, *[1] * 256, 44]
    assert daemon.taken == list(range(300))


def test_what_an_answer_says_was_dropped_is_counted(spool: Spool, clock: ManualClock):
    daemon = Daemon(clock, Outcome(200, refused=2))
    assert drained(spool, daemon, *map(event, range(5))) == Delivered(3, 2, "", 2)
    assert spool.facts()["dropped"] == 2
    assert daemon.told == [2]


def test_what_was_dropped_is_told_though_nothing_waits(spool: Spool, clock: ManualClock):
    spool.append([], 3)
    daemon = Daemon(clock)
    assert drained(spool, daemon) == Delivered(0, 0, "", 3)
    assert (daemon.came, daemon.told) == ([], [3])
    assert drained(spool, daemon, event(0)) == Delivered(1, 0, "", 3)
    assert daemon.told == [3], "the event's own request has said it"
    assert drained(spool, daemon) == Delivered(0, 0, "", 3)
    assert daemon.told == [3, 3], "the daemon may have been started anew"


def test_whoever_cannot_be_told_is_not_pressed(spool: Spool, clock: ManualClock):
    spool.append([], 3)
    daemon = Daemon(clock, last=Outcome(503, reason="busy"))
    assert drained(spool, daemon) == Delivered(0, 0, "busy", 0)
    assert daemon.told == [3]
    assert clock.at_ms == START_MS


def test_spoiled_lines_are_passed_over_without_asking_anybody(spool: Spool, clock: ManualClock, tmp_path: Path):
    spool.append([event(0)])
    with (tmp_path / "convmem" / "spool" / "name.jsonl").open("ab") as file:
        file.write(b"nonsense\n" + event(1) + b"\n" + b"\0" * 10 + b"\n")
    daemon = Daemon(clock)
    assert drained(spool, daemon) == Delivered(2, 2, "", 2)
    assert daemon.spools[0]["dropped"] == 2
    with (tmp_path / "convmem" / "spool" / "name.jsonl").open("ab") as file:
        file.write(b"nothing else")
    assert drained(spool, daemon) == Delivered(0, 1, "", 3)
    assert (len(daemon.came), daemon.told) == (1, [3])
    assert spool.is_empty()


def test_what_comes_late_at_the_very_end_is_delivered_too(
    spool: Spool, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
):
    daemon = Daemon(clock)
    leave = spool.leave

    def leave_and_be_late(claim: Claim) -> bool:
        assert Late(f"{spool._path}.late", clock).add(line_of(event(1), START_MS))
        monkeypatch.undo()
        return leave(claim)

    monkeypatch.setattr(spool, "leave", leave_and_be_late)
    assert drained(spool, daemon, event(0)) == Delivered(2, 0, "")
    assert daemon.taken == [0, 1]


def test_whoever_waits_for_the_right_to_deliver_gets_it(spool: Spool, clock: ManualClock, tmp_path: Path):
    daemon = Daemon(clock, last=Outcome(0, reason="away"))
    spool.append([event(0)])
    claim = spool.claim()
    assert claim is not None
    rests = 0

    def rest(duration_ms: float) -> None:
        nonlocal rests
        rests += 1
        if rests == 5:
            (tmp_path / "convmem" / "spool" / "name.drain").write_text("?")
        assert rests < 7
        clock.pass_ms(int(duration_ms))

    assert drain(spool, claim, daemon.send, clock, PATIENCE_MS, rest) == Delivered(0, 0, "away")
