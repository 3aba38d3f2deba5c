"""hooks/capture: events go to the daemon or into the spool, each to one of them, and nothing is said unasked."""

import fcntl
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from convmem import clock, data_dir
from convmem.hooks import capture, detaching, incoming, options, target
from convmem.hooks.claim import Claim
from convmem.hooks.spool import Spool
from tests.support.hook_server import HookServer, hook_server, refusal, saying
from tests.support.source import REPOSITORY

Run = Callable[..., str]
NOW_MS = clock.SystemClock().now_ms()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[HookServer]:
    (tmp_path / "data").mkdir()
    with hook_server(tmp_path / "data" / "convmem.sock") as running:
        yield running


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[Claim]:
    """The claims that a process was begun with; none is, since threads run in this one."""
    claims: list[Claim] = []

    def begin(claim: Claim | None, work: Callable[[], object]) -> None:
        if claim is None:
            # It has nothing to share with others: what it would do can be done here.
            work()
        else:
            claims.append(claim)
            claim.close()

    monkeypatch.setattr(detaching, "begin", begin)
    # A busy machine must not make a daemon that answers look like one that does not.
    monkeypatch.setattr(capture, "HOOK_ANSWER_MS_MAX", 10_000)
    return claims


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], begun: list[Claim]) -> Run:
    """Run the verb; what it said on stderr, without its name. What it printed must be nothing unless asked."""

    def run_it(stdin: Any, *arguments: str, printed: str = "", verbose: bool = True, **environment: str) -> str:
        data = stdin if isinstance(stdin, bytes) else json.dumps(stdin).encode()
        (tmp_path / "stdin").write_bytes(data)
        with (tmp_path / "stdin").open("rb") as file:
            monkeypatch.setattr(incoming, "STDIN", file.fileno())
            variables = {"XDG_STATE_HOME": str(tmp_path / "state"), "CONVMEM_DATA_DIR": str(tmp_path / "data")}
            given = (*arguments, "--verbose") if verbose else arguments
            capture.run(given, variables | environment, str(tmp_path))
        out, err = capsys.readouterr()
        assert out == printed
        assert err == "" or (err.startswith("convmem capture: ") and err.count("\n") == 1)
        said: str = err.removeprefix("convmem capture: ").removesuffix("\n")
        return said

    return run_it


def event(number: int = 0, **fields: Any) -> dict[str, Any]:
    return {"event_id": f"e{number}", "session_id": "s", "kind": "prompt", "content": f"hello {number}", **fields}


def waiting(tmp_path: Path) -> list[dict[str, Any]]:
    files = list((tmp_path / "state").glob("convmem/spool/*.jsonl"))
    assert len(files) <= 1
    found = [json.loads(line) for file in files for line in file.read_bytes().splitlines()]
    assert all(isinstance(line.pop("spooled_at"), int) for line in found)
    return found


def test_a_daemon_that_answers_gets_the_event_and_nothing_waits(
    run: Run, server: HookServer, begun: list[Claim], tmp_path: Path
):
    assert run(event(at=NOW_MS)) == "1 sent"
    assert list(server.events.values()) == [event(at=NOW_MS)]
    assert server.bodies[0]["spool"] == {"depth": 0, "oldest_at": None, "dropped": 0, "dropped_since": None}
    assert (waiting(tmp_path), begun) == ([], [])
    assert not (tmp_path / "state").exists()


def test_nothing_is_said_unasked(run: Run, server: HookServer):
    assert run(event(), verbose=False) == ""
    assert run(b"nonsense", verbose=False) == ""
    assert run(event(), "--bogus", verbose=False) == ""
    assert run(event(), verbose=False, CONVMEM_URL="nonsense") == ""
    assert server.contents() == ["hello 0"]


def test_without_a_daemon_events_wait_in_order_for_a_process_of_their_own(run: Run, begun: list[Claim], tmp_path: Path):
    assert run(event(0, at=NOW_MS)) == f"1 waiting (nobody listens at {tmp_path}/data/convmem.sock)"
    assert run([event(1, at=NOW_MS + 1), event(2, at=NOW_MS + 2)]) == "2 waiting"
    assert waiting(tmp_path) == [event(0, at=NOW_MS), event(1, at=NOW_MS + 1), event(2, at=NOW_MS + 2)]
    assert len(begun) == 2


def test_while_anything_waits_new_events_go_behind_it(run: Run, server: HookServer, begun: list[Claim], tmp_path: Path):
    server.answer = refusal(503)
    assert run(event(0)).startswith("1 waiting")
    server.answer = server.taken
    assert run(event(1)) == "1 waiting"
    assert server.events == {}
    assert run(b"", "--drain") == "2 sent"
    assert server.contents() == ["hello 0", "hello 1"]
    assert run(event(2)) == "1 sent"


@pytest.mark.parametrize("status", [401, 403, 404, 413, 415, 421, 500, 503, 507])
def test_whatever_the_daemon_says_but_that_the_event_is_bad_it_is_kept(
    run: Run, server: HookServer, tmp_path: Path, status: int
):
    server.answer = refusal(status)
    assert run(event()) == f"1 waiting ({tmp_path}/data/convmem.sock answered {status})"
    assert len(waiting(tmp_path)) == 1


@pytest.mark.parametrize("answer", [b"", b"garbage", b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{"])
def test_what_is_no_answer_keeps_it_too(run: Run, server: HookServer, tmp_path: Path, answer: bytes):
    server.answer = saying(answer)
    assert run(event()).startswith("1 waiting (")
    assert len(waiting(tmp_path)) == 1


def test_a_slow_daemon_is_not_waited_for(run: Run, server: HookServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(capture, "HOOK_ANSWER_MS_MAX", 20)
    server.wait_s = 20
    assert run(event()) == f"1 waiting (no answer from {tmp_path}/data/convmem.sock: it took too long)"
    assert len(waiting(tmp_path)) == 1


def test_an_event_that_the_daemon_refuses_is_dropped_and_counted(run: Run, server: HookServer, tmp_path: Path):
    assert run(event(content="bad")) == f"1 dropped ({tmp_path}/data/convmem.sock answered 400)"
    assert run([event(1), event(2, content="bad")]) == "1 sent, 1 dropped (the daemon refused it)"
    assert waiting(tmp_path) == []
    assert run(event(3)) == "1 sent"
    assert server.bodies[-1]["spool"]["dropped"] == 2


def test_several_that_the_daemon_refuses_together_wait_to_be_sent_one_by_one(
    run: Run, server: HookServer, tmp_path: Path
):
    events = [event(number, content="bad") for number in range(2)]
    assert run(events).startswith("2 waiting")
    assert run(b"", "--drain") == "2 dropped (the daemon knows of 2 dropped)"


def test_what_is_no_event_is_dropped_and_counted_and_keeps_no_other_out(run: Run, server: HookServer, tmp_path: Path):
    lines = b"\n".join([json.dumps(event()).encode(), b"{nonsense", b'{"kind":"chat"}', json.dumps(event(1)).encode()])
    assert run(lines).startswith("2 sent, 2 dropped (")
    assert run(b"\xff").startswith("1 dropped (")
    assert json.loads((next((tmp_path / "state").rglob("*.state"))).read_text())["dropped"] == 3


def test_what_says_nothing_is_neither_sent_nor_counted(run: Run, server: HookServer, tmp_path: Path):
    for stdin in (b"", b"\n", [], event(content=" \n"), [event(content="")]):
        assert run(stdin) == "nothing to capture"
    assert server.bodies == []
    assert not (tmp_path / "state").exists()


def test_more_than_anybody_may_hand_over_is_dropped(run: Run, server: HookServer):
    assert run(b" " * 7_000_000) == "1 dropped (what came is too large)"
    assert run(event()) == "1 sent"


def test_an_event_without_an_id_keeps_the_one_it_gets(run: Run, server: HookServer, tmp_path: Path):
    server.answer = refusal(503)
    run(event(event_id=None))
    (first,) = waiting(tmp_path)
    server.answer = server.taken
    run(b"", "--drain")
    assert [event_id for _, event_id in server.events] == [first["event_id"]]
    run([event(1, event_id=None), event(2, event_id=None)])
    assert len({event_id for _, event_id in server.events}) == 3


def test_no_secret_is_sent_or_written(run: Run, server: HookServer, tmp_path: Path):
    said = event(content="export DB_PASSWORD=hunter2", directory="/x/password=hunter2", session_id="password=hunter2")
    run(said)
    server.answer = refusal(503)
    run({**said, "event_id": "password=hunter2"})
    sent = json.dumps(server.bodies) + "".join(path.read_text() for path in (tmp_path / "state").rglob("*.*"))
    assert sent.count("[REDACTED:") >= 7
    assert "hunter2" not in sent


def test_the_body_of_a_request_is_another_way_to_say_it(run: Run, server: HookServer):
    assert run({"events": [event(0), event(1)], "spool": {"depth": 0}}) == "2 sent"
    assert run(b"\xef\xbb\xbf" + json.dumps(event(2)).encode()) == "1 sent"
    assert server.contents() == ["hello 0", "hello 1", "hello 2"]


def test_what_claude_code_gives_its_hooks_is_understood(run: Run, server: HookServer):
    said = {"session_id": "s", "cwd": "/", "hook_event_name": "UserPromptSubmit", "prompt": "hello"}
    assert run(said, "--from", "claude-code") == "1 sent"
    assert run({**said, "hook_event_name": "Stop"}, "--from", "claude-code") == "nothing to capture"
    assert run(event(), "--from", "claude-code").startswith("1 dropped (this is not what Claude Code gives")
    assert server.contents() == ["hello"]


def test_a_daemon_elsewhere_is_left_to_a_process_of_its_own(run: Run, begun: list[Claim], tmp_path: Path):
    for url in ("https://127.0.0.1:1", "http://convmem.example:8484"):
        assert run(event(), CONVMEM_URL=url, XDG_STATE_HOME=str(tmp_path / url[:5])) == "1 waiting"
    assert len(begun) == 2


def test_a_daemon_at_a_url_gets_the_token(run: Run, tmp_path: Path):
    (tmp_path / "token").write_text("secret\n")
    with hook_server() as elsewhere:
        assert run(event(0), "--url", elsewhere.url, "--token-file", "token") == "1 sent"
        assert run(event(1), CONVMEM_URL=elsewhere.url + "/mcp", CONVMEM_TOKEN="other") == "1 sent"
        assert [b"Bearer secret" in elsewhere.heads[0], b"Bearer other" in elsewhere.heads[1]] == [True, True]


def test_the_name_of_a_spool_is_a_known_hash():
    # The published test vectors of FNV-1a.
    assert capture._digest(b"") == "6c62272e07bb014262b821756295c58d"
    assert capture._digest(b"a") == "d228cb696f1a8caf78912b704e4a8964"
    assert capture._digest(b"foobar") == "343e1662793c64bf6f0d3597ba446f18"


def test_each_daemon_has_a_spool_of_its_own(tmp_path: Path):
    variables = {"XDG_STATE_HOME": str(tmp_path)}
    names = set()
    for url in ("http://a", "http://a/mcp", "http://b", "https://a"):
        found = capture.spool_of(target.Target(target.address_of(url), "", {}, ""), variables, capture.SystemClock())
        assert found is not None
        names.add(found._path)
    assert len(names) == 3
    assert {os.path.dirname(name) for name in names} == {str(tmp_path / "convmem" / "spool")}


@pytest.mark.parametrize(
    ("variables", "place"),
    [
        ({"XDG_STATE_HOME": "/state", "HOME": "/h"}, "/state/convmem/spool"),
        ({"HOME": "/h"}, "/h/.local/state/convmem/spool"),
        ({"XDG_STATE_HOME": "relative", "HOME": "/h"}, "/h/.local/state/convmem/spool"),
        ({"XDG_STATE_HOME": "", "HOME": "h"}, "/known/.local/state/convmem/spool"),
        ({}, "/known/.local/state/convmem/spool"),
    ],
)
def test_the_spool_is_where_programs_keep_their_state(
    variables: dict[str, str], place: str | None, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(data_dir, "known_home", lambda: "/known")
    found = capture.spool_of(target.Target(None, "/data", {}, ""), variables, capture.SystemClock())
    assert (None if found is None else found._directory) == place


def test_without_a_place_for_state_events_are_sent_or_dropped(
    run: Run, server: HookServer, begun: list[Claim], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(data_dir, "known_home", lambda: "")
    assert run(event(0), XDG_STATE_HOME="") == "1 sent"
    server.answer = refusal(503)
    assert run(event(1), XDG_STATE_HOME="").startswith("1 dropped (")
    assert run(b"nonsense", XDG_STATE_HOME="").startswith("1 dropped (")
    assert run(b"", XDG_STATE_HOME="") == "nothing to capture"
    assert run(b"", "--drain", XDG_STATE_HOME="") == "nothing was delivered (there is no place to keep state)"
    assert run(b"", "--status", XDG_STATE_HOME="") == ""
    assert begun == []


UNUSABLE: dict[str, Callable[[Path, Path], object]] = {
    "no directory": lambda state, spool: state.write_text(""),
    "events in a directory": lambda state, spool: spool.with_suffix(".jsonl").mkdir(parents=True),
    "turns in a directory": lambda state, spool: spool.with_suffix(".lock").mkdir(parents=True),
    "a link": lambda state, spool: (spool.parent.mkdir(parents=True), spool.with_suffix(".jsonl").symlink_to(__file__)),
}


@pytest.mark.parametrize("how", UNUSABLE)
def test_a_spool_that_cannot_be_used_loses_nothing_while_the_daemon_answers(
    run: Run, server: HookServer, begun: list[Claim], tmp_path: Path, how: str
):
    state = tmp_path / "state"
    UNUSABLE[how](state, state / "convmem" / "spool" / capture._digest(bytes(tmp_path / "data" / "convmem.sock")))
    assert run(event(0)).startswith("1 sent")
    assert run([event(1), event(2)]).startswith("2 sent")
    assert server.contents() == ["hello 0", "hello 1", "hello 2"]
    server.answer = refusal(503)
    assert run(event(3)).startswith("1 dropped (")
    assert run(b"", "--drain").startswith("nothing was delivered (the spool cannot be used: ")
    assert begun == []


def test_a_slow_daemon_is_asked_by_a_process_of_its_own_where_nothing_can_wait(
    run: Run, server: HookServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "state").write_text("")
    monkeypatch.setattr(capture, "HOOK_ANSWER_MS_MAX", 20)
    server.wait_s = 0.2
    assert run(event(0)) == f"1 handed on (no answer from {tmp_path}/data/convmem.sock: it took too long)"
    assert server.contents() == ["hello 0"]
    events = [event(number) for number in range(1, 600)]
    server.wait_s = 0
    assert run(events) == "599 handed on (the spool cannot be used: Not a directory)"
    assert server.contents() == [f"hello {number}" for number in range(600)]


def test_a_daemon_elsewhere_is_asked_by_a_process_of_its_own_where_nothing_can_wait(
    run: Run, server: HookServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "state").write_text("")
    monkeypatch.setattr(target, "_is_loopback", lambda host: False)
    with hook_server() as elsewhere:
        assert run(event(), "--url", elsewhere.url) == "1 handed on (the spool cannot be used: Not a directory)"
        assert elsewhere.contents() == ["hello 0"]


def test_where_nobody_listens_and_nothing_can_wait_events_are_dropped(run: Run, tmp_path: Path):
    (tmp_path / "state").write_text("")
    assert run(event()) == f"1 dropped (nobody listens at {tmp_path}/data/convmem.sock)"


def test_a_spool_that_others_keep_costs_no_event_and_hardly_any_time(
    run: Run, server: HookServer, begun: list[Claim], tmp_path: Path
):
    server.answer = refusal(503)
    run(event(0))
    (lock,) = (tmp_path / "state").rglob("*.lock")
    with lock.open() as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        begun_at = time.process_time()
        assert run(event(1)) == "1 waiting"
        assert run([event(2), {"kind": "chat"}]).startswith("1 waiting, 1 dropped (")
        assert time.process_time() - begun_at < 1
    server.answer = server.taken
    assert run(b"", "--drain") == "3 sent, 1 dropped (the daemon knows of 1 dropped)"
    assert server.contents() == ["hello 0", "hello 1", "hello 2"]


def test_where_even_the_place_beside_it_is_kept_by_others_nothing_goes_past_what_waits(
    run: Run, server: HookServer, tmp_path: Path
):
    server.answer = refusal(503)
    run(event(0))
    server.answer = server.taken
    (lock,) = (tmp_path / "state").rglob("*.lock")
    with lock.open() as other, lock.with_suffix(".late").open("a") as beside:
        for file in (other, beside):
            fcntl.flock(file, fcntl.LOCK_EX)
        assert run(event(1)) == "1 dropped (others kept the spool too long)"
    assert server.events == {}


def test_an_event_of_long_ago_that_has_to_wait_is_delivered_all_the_same(run: Run, server: HookServer, tmp_path: Path):
    old = NOW_MS - 400 * 24 * 3600 * 1000
    assert run(event(0, at=old)) == "1 sent"
    server.answer = refusal(503)
    assert run(event(1, at=old)).startswith("1 waiting")
    server.answer = server.taken
    assert run(b"", "--drain") == "1 sent"
    assert list(server.events.values()) == [event(0, at=old), event(1, at=old)]
    assert server.bodies[-1]["spool"]["dropped"] == 0


def test_arguments_that_cannot_be_meant_send_nothing(run: Run, server: HookServer):
    assert run(event(), "--bogus") == "nothing to capture (--bogus is not an option)"
    assert run(event(), CONVMEM_URL="nonsense") == "nothing to capture (the URL is not one like http://host:8484)"
    assert server.bodies == []


def test_the_status_is_one_line_of_json(run: Run, tmp_path: Path):
    empty = '{"depth":0,"oldest_at":null,"dropped":0,"dropped_since":null}\n'
    assert run(b"", "--status", printed=empty) == ""
    run([event(0, at=NOW_MS), event(1, at=NOW_MS + 1)])
    assert run(b"", "--status", printed=empty.replace("0", "2", 1).replace("null", str(NOW_MS), 1)) == ""


def test_draining_says_how_many_and_what_is_left(run: Run, server: HookServer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(capture, "DELIVERY_PATIENCE_IN_FRONT_MS", 0)
    server.answer = refusal(503)
    run([event(0), event(1)])
    assert run(b"", "--drain").startswith("2 waiting (")
    server.answer = server.taken
    assert run(b"", "--drain") == "2 sent"
    assert run(b"", "--drain") == "nothing waits"


def test_what_was_dropped_is_told_though_nothing_waits(run: Run, server: HookServer):
    assert run(b"nonsense").startswith("1 dropped (")
    assert run(b"", "--drain") == "nothing waits (the daemon knows of 1 dropped)"
    assert [(body["events"], body["spool"]["dropped"]) for body in server.bodies] == [([], 1)]
    server.answer = refusal(503)
    assert run(b"", "--drain").endswith("answered 503)")
    server.answer = server.taken
    assert run(event()) == "1 sent"
    assert server.bodies[-1]["spool"]["dropped"] == 1


def test_what_another_process_delivers_meanwhile_is_said(
    run: Run, server: HookServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    server.answer = refusal(503)
    run(event())
    server.answer = server.taken

    def others(spool: Spool, wait_ms: int) -> None:
        spool.take_off(spool.head(), 0)

    monkeypatch.setattr(Spool, "ask_for_claim", others)
    assert run(b"", "--drain") == "nothing waits (another process delivered what waited)"


def test_draining_is_left_to_another_process_that_is_at_it(
    run: Run, server: HookServer, begun: list[Claim], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(capture, "DELIVERY_PATIENCE_IN_FRONT_MS", 3)
    server.answer = refusal(503)
    run(event())
    spool = capture.spool_of(
        target.target_of(options.parse([]), {"CONVMEM_DATA_DIR": str(tmp_path / "data")}, "/"),
        {"XDG_STATE_HOME": str(tmp_path / "state")},
        clock.SystemClock(),
    )
    assert spool is not None
    claim = spool.claim()
    assert claim is not None
    assert run(event(1)) == "1 waiting"
    assert run(b"", "--drain") == "2 waiting (another process is trying to deliver)"
    assert claim.is_over()
    assert len(begun) == 1
    claim.close()


@pytest.mark.slow
def test_nothing_is_imported_that_takes_long():
    program = (
        "import sys; before = set(sys.modules); import convmem.__main__; from convmem.hooks import "
        "capture, claude_code, detaching, drain, posting;"
        "print(*sorted({name.split('.')[0] for name in set(sys.modules) - before}))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    heavy = {"typer", "pydantic", "asyncio", "pathlib", "msgspec", "dataclasses", "http", "ssl", "urllib", "email"}
    heavy |= {"argparse", "logging", "platformdirs", "threading", "subprocess", "inspect", "apsw", "datetime"}
    loaded = set(done.stdout.split())
    # These alone would take half of the time that there is beyond the start of the interpreter.
    heavy |= {"typing", "re", "enum", "json", "socket", "signal"}
    assert {"convmem", "jiter", "_socket"} <= loaded
    assert not heavy & loaded
