"""The client for hooks against a real daemon: whatever dies meanwhile, each event is stored once, with its own time."""

import fcntl
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.daemons import Daemon, daemon
from tests.support.deliverers import deliverers, kill_deliverers, nobody_left
from tests.support.hook_server import hook_server, refusal, saying
from tests.support.hosts import at_once, drained, event, expected, hook, hooks, status, stored, variables

pytestmark = pytest.mark.slow
WAIT_S = 20
NOW_MS = time.time_ns() // 1_000_000
HOSTS, EVENTS_EACH = 4, 60
MISBEHAVIOURS = {
    "slow": refusal(500),
    **{str(status): refusal(status) for status in (401, 403, 413, 421, 500)},
    "busy": refusal(503, "Retry-After: 30"),
    "garbage": saying(b"garbage\r\n\r\n"),
    "half an answer": saying(b"HTTP/1.1 200 OK\r\nContent-Length: 38\r\n\r\n{"),
    "no answer": saying(b""),
}
EMPTY = {"depth": 0, "oldest_at": None, "dropped": 0, "dropped_since": None}


@pytest.fixture
def state(tmp_path: Path) -> Iterator[Path]:
    with nobody_left(tmp_path / "state"):
        yield tmp_path / "state"


@pytest.fixture
def environment(tmp_path: Path, state: Path) -> dict[str, str]:
    return variables(state, tmp_path / "data")


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Daemon]:
    with daemon(tmp_path / "data") as found:
        yield found


def until_empty(environment: dict[str, str]) -> None:
    """Wait for the process that delivers, without asking it to."""
    end = time.monotonic() + WAIT_S
    while status(environment)["depth"] > 0:
        assert time.monotonic() < end, "nobody delivers"
        time.sleep(0.05)


def test_what_happens_while_no_daemon_runs_is_stored_when_one_does(
    tmp_path: Path, state: Path, environment: dict[str, str]
):
    events = [event("s", number, NOW_MS - 1_000_000 + number) for number in range(5)]
    hooks(environment, events)
    assert status(environment) == {**EMPTY, "depth": 5, "oldest_at": NOW_MS - 1_000_000}
    assert len(deliverers(state)) == 1
    with daemon(tmp_path / "data") as running:
        until_empty(environment)
        assert stored(running.client("messages"), "s") == expected(events)


def test_two_hosts_that_saw_the_same_event_are_one(running: Daemon, environment: dict[str, str]):
    one = event("s", 1, NOW_MS)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: hook(environment, one), range(4)))
    assert drained(environment) == EMPTY
    assert stored(running.client("messages"), "s") == expected([one])


def test_hosts_at_once_and_a_daemon_that_is_killed_again_and_again(
    running: Daemon, state: Path, environment: dict[str, str]
):
    sessions = {
        f"host-{host}": [event(f"host-{host}", number, NOW_MS - 10_000 + number) for number in range(EVENTS_EACH)]
        for host in range(HOSTS)
    }
    have_ended = threading.Event()

    def disturb() -> int:
        times = 0
        while not have_ended.wait(0.3):
            running.kill()
            have_ended.wait(0.2)
            running.start()
            times += 1
        return times

    with ThreadPoolExecutor(1) as pool:
        disturbed = pool.submit(disturb)
        try:
            at_once(environment, sessions)
        finally:
            have_ended.set()
        assert disturbed.result() >= 1
    assert drained(environment) == EMPTY
    client = running.client("messages")
    for session_id, events in sessions.items():
        assert stored(client, session_id) == expected(events)


def test_processes_that_are_killed_while_they_deliver_lose_nothing_and_send_nothing_twice(
    tmp_path: Path, state: Path, environment: dict[str, str]
):
    events = [event("s", number, NOW_MS - 10_000 + number) for number in range(3_000)]
    for start in range(0, len(events), 500):
        hook(environment, events[start : start + 500])
    kills = kill_deliverers(state)
    with daemon(tmp_path / "data") as running:
        for number in range(4):
            hook(environment, event("other", number, NOW_MS))
            time.sleep(0.05)
            kills += kill_deliverers(state)
        assert kills >= 2
        assert drained(environment) == EMPTY
        assert stored(running.client("messages"), "s") == expected(events)
        assert stored(running.client("messages"), "other") == expected(event("other", n, NOW_MS) for n in range(4))


def test_a_full_disk_is_nobodys_trouble(tmp_path: Path, state: Path, environment: dict[str, str]):
    full = ("sh", "-c", 'ulimit -f 1; exec "$@"', "sh")
    events = [event("s", number, NOW_MS + number, content=f"{number} " + "x" * 300) for number in range(10)]
    for one in events:
        hook(environment, one, prefix=full)
    depth = status(environment)["depth"]
    assert 0 < depth < 10
    later = event("s", 10, NOW_MS + 10)
    hook(environment, later)
    with daemon(tmp_path / "data") as running:
        assert drained(environment) == EMPTY
        assert stored(running.client("messages"), "s") == expected([*events[:depth], later])


@pytest.mark.parametrize("name", MISBEHAVIOURS)
def test_a_daemon_that_misbehaves_holds_up_no_host_and_loses_no_event(
    tmp_path: Path, state: Path, environment: dict[str, str], name: str
):
    (tmp_path / "data").mkdir()
    events = [event("s", number, NOW_MS + number) for number in range(3)]
    with hook_server(tmp_path / "data" / "convmem.sock") as server:
        if name == "slow":
            server.wait_s = 5
        else:
            server.answer = MISBEHAVIOURS[name]
        # Far from the goal of a hook, near enough to tell it from waiting: the machine may be busy.
        assert max(hooks(environment, events)) < 2_500
        assert status(environment)["depth"] == 3
        server.wait_s, server.answer = 0, server.taken
        kill_deliverers(state)
        assert drained(environment) == EMPTY
        assert list(server.events.values()) == events


def test_whoever_keeps_the_spool_holds_up_no_host_and_costs_no_event(
    tmp_path: Path, state: Path, environment: dict[str, str]
):
    events = [event("s", number, NOW_MS + number) for number in range(4)]
    hook(environment, events[0])
    kill_deliverers(state)
    (lock,) = state.rglob("*.lock")
    with lock.open() as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        # A second is what waiting for a turn once took; starting takes its time on a busy machine.
        assert min(hooks(environment, events[1:])) < 1_000
        kill_deliverers(state)
    assert status(environment)["depth"] == 4
    with daemon(tmp_path / "data") as running:
        assert drained(environment) == EMPTY
        assert stored(running.client("messages"), "s") == expected(events)


def test_an_event_of_long_ago_is_stored_whether_it_had_to_wait_or_not(tmp_path: Path, environment: dict[str, str]):
    events = [event("s", number, NOW_MS - 40 * 24 * 3_600_000 + number) for number in range(2)]
    hook(environment, events[0])
    with daemon(tmp_path / "data") as running:
        assert drained(environment) == EMPTY
        hook(environment, events[1])
        assert drained(environment) == EMPTY
        assert stored(running.client("messages"), "s") == expected(events)


def test_a_token_that_is_mended_lets_everything_in(tmp_path: Path, state: Path):
    (tmp_path / "token").write_text("wrong\n")
    with daemon(tmp_path / "data", environment={"CONVMEM_HTTP_TOKEN": "right"}) as running:
        environment = variables(state, tmp_path, CONVMEM_URL=running.url)
        events = [event("s", number, NOW_MS + number) for number in range(3)]
        for one in events:
            hook(environment, one, "--token-file", str(tmp_path / "token"))
        assert status(environment)["depth"] == 3
        (tmp_path / "token").write_text("right\n")
        until_empty(environment)
        client = running.client("messages", authorization="Bearer right")
        assert stored(client, "s") == expected(events)
        assert client.history("s")[0]["origin"]["device"] == "env"


@pytest.mark.parametrize("size", [65_535, 65_536, 65_537, 1024 * 1024])
def test_a_large_prompt_is_kept_in_part_and_holds_nothing_up(running: Daemon, environment: dict[str, str], size: int):
    content = "\u0001" + "กx" * size
    hook(environment, event("s", 1, NOW_MS, content=content[:size]))
    assert drained(environment) == EMPTY
    assert stored(running.client("messages"), "s") == [(content[:3_999] + "…", NOW_MS)]


def test_no_secret_reaches_a_disk(tmp_path: Path, state: Path, environment: dict[str, str]):
    secrets = {"password": "Tr0ub4dor&3", "key": "sk-proj-FAKE0000000000000000000000", "user": "hunter2hunter2"}
    said = f"DB_PASSWORD={secrets['password']} {secrets['key']} postgres://u:{secrets['user']}@h/db and prose"
    call = {
        "session_id": "s",
        "cwd": f"/x/{secrets['key']}",
        "hook_event_name": "PostToolUse",
        "tool_name": "Bash",
        "tool_use_id": f"id-{secrets['key']}",
        "tool_input": {"command": said, "password": secrets["password"]},
        "tool_response": {"stdout": said},
    }
    hook(environment, event("s", 1, NOW_MS, content=said))
    hook(environment, call, "--from", "claude-code")
    with daemon(tmp_path / "data") as running:
        found = [path.read_bytes() for path in state.rglob("*") if path.is_file()]
        assert b"".join(found).count(b"[REDACTED:") >= 5
        assert drained(environment) == EMPTY
        assert ["prose" in text for text, _ in stored(running.client("messages"), "s")] == [True, True]
    found += [path.read_bytes() for path in (tmp_path / "data").rglob("*") if path.is_file()]
    for secret in secrets.values():
        assert not [data for data in found if secret.encode() in data]


def test_what_was_dropped_is_told_to_the_daemon(running: Daemon, environment: dict[str, str]):
    hook(environment, b"this is no event")
    assert drained(environment)["dropped"] == 1
    (spool,) = running.client("messages").call("get_system_health")["spools"]
    assert spool["dropped"] == 1
    assert "1 event dropped since" in spool["sentence"]
