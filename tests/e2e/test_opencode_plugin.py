"""The OpenCode plugin in a real node process, beside a real daemon, and beside what is none."""

import hashlib
import json
import os
import pwd
import re
import socket
import stat
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support import node
from tests.support.answering import Asked, Reply, answering, stored
from tests.support.daemons import Daemon, daemon
from tests.support.opencode import (
    Host,
    host,
    message,
    part,
    percentile,
    prompt,
    session_created,
    session_error,
    spooled,
    tool,
    tool_failed,
)

pytestmark = pytest.mark.slow

# What waits longer than a month is dropped, so the past is a near one.
AT = int(time.time() * 1000) - 3_600_000
SECRET = "sk-proj-" + "FAKE0000000000000000000000"
THAI, JAPANESE = "ช่วยแก้ตะกร้าสินค้าให้หน่อย", "カートの合計が合わないので直してください"
BASH = {"title": "Shows what changed", "output": " M cart.py\n", "metadata": {"exit": 0}}
WAIT_S = 20


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return node.plugin(tmp_path_factory.mktemp("plugin") / "built")


def url_of(running: Daemon) -> str:
    return running.url.removesuffix("/mcp")


def nobody() -> str:
    """An address at which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"http://127.0.0.1:{server.getsockname()[1]}"


def until(is_so: Callable[[], object]) -> None:
    """Look until it is so."""
    end = time.monotonic() + WAIT_S
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)


def a_day_of_work(running: Host, session: str = "ses_1") -> None:
    """Two prompts, a tool call, a failed one, and a failure of the session."""
    running.say(*prompt("msg_1", session, AT, THAI))
    running.call("tool.execute.after", tool(session, "call_1", "bash", {"command": "git status --short"}), BASH)
    running.say(tool_failed(session, "call_2", "read", "File not found: /src/shop/none"))
    running.say(*prompt("msg_2", session, AT + 60_000, JAPANESE, "and look at cart.py"))
    running.say(session_error(session, "APIError", "invalid x-api-key"))


A_DAY = [
    ("user", "prompt", THAI),
    ("assistant", "tool_call", 'bash {"command":"git status --short"}\nShows what changed\n M cart.py\n'),
    ("system", "error", 'read {"filePath":"/src/shop/none"}\nFile not found: /src/shop/none'),
    ("user", "prompt", f"{JAPANESE}\nand look at cart.py"),
    ("system", "error", "APIError: invalid x-api-key"),
]


def kept(running: Daemon, session: str = "ses_1") -> list[tuple[str, str, str]]:
    """What the daemon holds of a session: role, kind and text."""
    history = running.client("messages").history(session)
    return [(each["role"], each["capture"]["kind"], each["content"]) for each in history]


def test_prompts_tool_calls_and_errors_are_stored_with_their_times(tmp_path, plugin):
    with daemon(tmp_path / "data") as running, host(plugin, tmp_path / "state", url_of(running)) as opencode:
        a_day_of_work(opencode)
        opencode.settle()
        assert kept(running) == A_DAY
        first, call, failed, second, error = running.client("messages").history("ses_1")
        assert [first["timestamp"], second["timestamp"]] == [AT, AT + 60_000]
        assert first["metadata"]["project"] == "shop"
        assert first["capture"] == {"kind": "prompt", "event_id": "msg_1", "directory": "/src/shop"}
        assert call["capture"] == {
            "kind": "tool_call",
            "event_id": "call_1",
            "tool": "bash",
            "status": "completed",
            "directory": "/src/shop",
        }
        assert [failed["capture"]["tool"], failed["capture"]["status"]] == ["read", "error"]
        assert error["capture"]["status"] == "APIError"
        assert first["origin"]["client"] == "opencode"
        assert spooled(tmp_path / "state") == []


def test_what_is_told_twice_is_stored_once(tmp_path, plugin):
    with daemon(tmp_path / "data") as running:
        for _ in range(2):
            with host(plugin, tmp_path / "state", url_of(running)) as opencode:
                for _ in range(2):
                    opencode.say(*prompt("msg_1", "ses_1", AT, THAI))
                    opencode.call("tool.execute.after", tool("ses_1", "call_1", "bash", {}), BASH)
                opencode.settle()
        assert [kind for _, kind, _ in kept(running)] == ["prompt", "tool_call"]


def test_a_prompt_is_whole_whatever_order_its_parts_come_in(tmp_path, plugin):
    with answering(stored) as server, host(plugin, tmp_path, server.url) as opencode:
        opencode.say(part("msg_1", "ses_1", "first", 1), part("msg_1", "ses_1", "second", 2))
        opencode.say(message("msg_1", "ses_1", AT), part("msg_1", "ses_1", "FIRST", 1))
        until(server.events)
        assert [event["content"] for event in server.events()] == ["FIRST\nsecond"]


def test_what_no_person_wrote_is_no_prompt(tmp_path, plugin):
    with answering(stored) as server, host(plugin, tmp_path, server.url) as opencode:
        opencode.say(*prompt("msg_1", "ses_1", AT, "mine"), message("msg_2", "ses_1", AT))
        opencode.say(part("msg_2", "ses_1", "added by OpenCode", synthetic=True))
        opencode.say(session_created("ses_2", parent="ses_1"), *prompt("msg_3", "ses_2", AT, "for another agent"))
        opencode.say(message("msg_4", "ses_1", AT, "assistant", "msg_1"), part("msg_4", "ses_1", "an answer"))
        opencode.say(*prompt("msg_5", "ses_1", AT, " \n "), session_error("ses_1", "MessageAbortedError", "stopped"))
        opencode.call("tool.execute.after", tool("ses_1", "call_1", "convmem_recall", {"topic": "shop"}), BASH)
        opencode.settle()
        assert [event["content"] for event in server.events()] == ["mine"]


def test_a_tool_of_another_server_answers_in_blocks(tmp_path, plugin):
    with answering(stored) as server, host(plugin, tmp_path, server.url) as opencode:
        blocks = {"content": [{"type": "text", "text": "two issues"}, {"type": "image", "data": "AAAA"}]}
        opencode.call("tool.execute.after", tool("ses_1", "call_1", "tracker_list", {"open": True}), blocks)
        opencode.call("tool.execute.after", tool("ses_1", "call_2", "bash", {}), {**BASH, "metadata": {"exit": 2}})
        opencode.settle()
        assert server.events()[0]["content"] == 'tracker_list {"open":true}\ntwo issues'
        assert server.events()[1]["status"] == "exit 2"


def test_no_secret_leaves_the_process_and_no_more_text_than_is_kept(tmp_path, plugin):
    long = "語" * 5_000
    with answering(stored) as server, host(plugin, tmp_path / "up", server.url) as opencode:
        opencode.say(*prompt("msg_1", "ses_1", AT, f"use {SECRET} please"), *prompt("msg_2", "ses_1", AT, long))
        opencode.call("tool.execute.after", tool("ses_1", SECRET, "bash", {"command": f"echo {SECRET}"}), BASH)
        opencode.call("tool.execute.after", tool("ses_1", "call_2", f"run {SECRET}", {}), {"title": "", "output": long})
        opencode.say(session_error("ses_1", "APIError", f"bad key {SECRET}"))
        opencode.settle()
        sent = server.events()
    assert len(sent) == 5
    assert SECRET not in json.dumps(sent)
    assert [len(event["content"]) for event in sent if long[:50] in event["content"]] == [4_000, 500]
    assert "[REDACTED:" in sent[0]["content"]
    # Ids stay unlike each other; other names say nothing that a secret could be guessed against.
    assert re.fullmatch(r"\[REDACTED:\w+\]-[0-9a-f]{16}", sent[2]["event_id"])
    assert re.fullmatch(r"run \[REDACTED:\w+\]", sent[3]["tool"])
    assert sent[0]["content"].endswith(" please")
    with host(plugin, tmp_path / "away", nobody()) as opencode:
        opencode.say(*prompt("msg_1", "ses_1", AT, f"use {SECRET} please"))
        opencode.settle()
    files = [path.read_bytes() for path in (tmp_path / "away").rglob("*") if path.is_file()]
    assert any(b"please" in each for each in files)
    assert not any(SECRET.encode() in each for each in files)


def test_while_the_daemon_is_away_events_wait_on_disk_and_come_once_each_in_order(tmp_path, plugin):
    state = tmp_path / "state"
    running = Daemon(tmp_path / "data").start()
    address = url_of(running)
    running.kill()
    with host(plugin, state, address) as opencode:
        a_day_of_work(opencode)
        opencode.settle()
    (spool,) = (state / "convmem" / "spool").glob("*.jsonl")
    assert stat.S_IMODE(spool.stat().st_mode) == 0o600
    assert stat.S_IMODE(spool.parent.stat().st_mode) == 0o700
    assert [event["content"] for event in spooled(state)] == [content for *_, content in A_DAY]
    with daemon(tmp_path / "data", "--bind", address.removeprefix("http://")) as running:
        with host(plugin, state, address) as opencode:
            opencode.say(*prompt("msg_9", "ses_1", AT + 90_000, "later"))
            opencode.settle()
        assert kept(running) == [*A_DAY, ("user", "prompt", "later")]
        times = [each["timestamp"] for each in running.client("messages").history("ses_1") if each["role"] == "user"]
        assert times == [AT, AT + 60_000, AT + 90_000]
        assert spooled(state) == []


def test_a_host_that_runs_on_finds_the_daemon_again_by_itself(tmp_path, plugin):
    is_up: list[bool] = []
    with (
        answering(lambda asked: stored(asked) if is_up else Reply(503, b"{}")) as server,
        host(plugin, tmp_path, server.url) as opencode,
    ):
        opencode.say(*prompt("msg_1", "ses_1", AT, "one"))
        opencode.settle()
        opencode.say(*prompt("msg_2", "ses_1", AT, "two"))
        opencode.settle()
        assert [event["event_id"] for event in spooled(tmp_path)] == ["msg_1", "msg_2"]
        is_up.append(True)
        until(lambda: not spooled(tmp_path))
        assert [event["event_id"] for event in server.asked[-1].body["events"]] == ["msg_1", "msg_2"]
        assert server.asked[-1].body["spool"] == {"depth": 0, "oldest_at": None, "dropped": 0, "dropped_since": None}


def test_a_host_that_ends_at_once_loses_nothing(tmp_path, plugin):
    with host(plugin, tmp_path, nobody()) as opencode:
        a_day_of_work(opencode)
        opencode.say(message("msg_3", "ses_1", AT), part("msg_3", "ses_1", "last words"))
        opencode.end()
    contents = [event["content"] for event in spooled(tmp_path)]
    assert contents == [*(content for *_, content in A_DAY), "last words"]


NO_DAEMONS = {
    "refuses": Reply(500, b'{"error": {"code": "STORE_FAILED"}}'),
    "asks for a token": Reply(401, b'{"error": {"code": "FORBIDDEN"}}'),
    "finds it too large": Reply(413, b"{}"),
    "serves a page": Reply(200, b"<html>Log in to the hotel's network</html>"),
    "serves other JSON": Reply(200, b'[{"stored": true}]'),
    "calls it a bad request": Reply(400, b"<html>Bad Request</html>"),
    "misunderstands": Reply(400, b'{"error": {"code": "VALIDATION_ERROR", "field": "spool.depth"}}'),
    "sends elsewhere": Reply(307, b"", {"Location": "/elsewhere"}),
    "stops half way": Reply(200, b'{"stored": 5, "repl', {}, 400),
    "says too much": Reply(200, b'{"stored": 5}' + b" " * 2_000_000),
}


@pytest.mark.parametrize("what", NO_DAEMONS)
def test_whatever_answers_the_hooks_go_on_and_the_events_are_kept(tmp_path, plugin, what):
    with answering(lambda _: NO_DAEMONS[what]) as server, host(plugin, tmp_path, server.url) as opencode:
        a_day_of_work(opencode)
        opencode.settle()
        assert opencode.call("experimental.session.compacting", {"sessionID": "ses_1"}, {"context": []}) == {
            "context": []
        }
        assert [event["content"] for event in spooled(tmp_path)] == [content for *_, content in A_DAY]
        captured = [asked for asked in server.asked if asked.path == "/capture"]
        assert 1 <= len(captured) <= 2, "it was asked again without a pause"
        assert "/elsewhere" not in {asked.path for asked in server.asked}


def test_where_nothing_can_be_written_events_wait_in_memory(tmp_path, plugin):
    blocked = tmp_path / "no folder"
    blocked.write_text("a file")
    is_up: list[bool] = []
    with (
        answering(lambda asked: stored(asked) if is_up else Reply(500)) as server,
        host(plugin, blocked, server.url) as opencode,
    ):
        a_day_of_work(opencode)
        opencode.settle()
        is_up.append(True)
        until(lambda: [e["content"] for e in server.asked[-1].body["events"]] == [content for *_, content in A_DAY])


def test_where_the_spool_is_no_file_the_daemon_is_told_all_the_same(tmp_path, plugin):
    with answering(stored) as server:
        with host(plugin, tmp_path, nobody()) as opencode:
            opencode.say(*prompt("msg_0", "ses_1", AT, "zero"))
            opencode.settle()
        # Every daemon has a spool of its own, so the name of another one is made by hand.
        (spool,) = (tmp_path / "convmem" / "spool").glob("*.jsonl")
        name = hashlib.sha256(server.url.encode()).hexdigest()[:16]
        spool.with_name(f"{name}-opencode.jsonl").mkdir()
        with host(plugin, tmp_path, server.url) as opencode:
            a_day_of_work(opencode)
            opencode.settle()
        assert [event["content"] for event in server.events()] == [content for *_, content in A_DAY]


def test_where_no_directory_can_be_made_the_host_goes_on(tmp_path, plugin):
    is_up: list[bool] = []
    with (
        answering(lambda asked: stored(asked) if is_up else Reply(500)) as server,
        host(plugin, Path("/proc/convmem"), server.url) as opencode,
    ):
        a_day_of_work(opencode)
        opencode.settle()
        is_up.append(True)
        until(lambda: [e["content"] for e in server.asked[-1].body["events"]] == [content for *_, content in A_DAY])


def test_what_was_dropped_is_told_though_nothing_waits(tmp_path, plugin):
    with answering(lambda _: Reply(400, b'{"error": {"code": "VALIDATION_ERROR"}}')) as server:
        address = server.url
        with host(plugin, tmp_path, address) as opencode:
            opencode.say(*prompt("msg_1", "ses_1", AT, "poison"))
            opencode.settle()
            opencode.end()
        server.reply = stored
        server.asked.clear()
        with host(plugin, tmp_path, address) as opencode:
            opencode.settle()
            opencode.settle()
        told = [(asked.body["events"], asked.body["spool"]["dropped"]) for asked in server.asked]
        assert told == [([], 1)]


def test_an_event_that_the_daemon_never_takes_is_dropped_alone_and_counted(tmp_path, plugin):
    is_up: list[bool] = []

    def reply(asked: Asked) -> Reply:
        if not is_up:
            return Reply(503)
        if any(event["content"] == "poison" for event in asked.body["events"]):
            return Reply(400, b'{"error": {"code": "VALIDATION_ERROR", "message": "no", "retryable": false}}')
        return stored(asked)

    with answering(reply) as server:
        with host(plugin, tmp_path, server.url) as opencode:
            for number, words in enumerate(["one", "poison", "two"]):
                opencode.say(*prompt(f"msg_{number}", "ses_1", AT, words))
            opencode.settle()
        is_up.append(True)
        server.asked.clear()
        with host(plugin, tmp_path, server.url) as opencode:
            opencode.settle()
            opencode.say(*prompt("msg_9", "ses_1", AT, "three"))
            opencode.settle()
        taken = [asked for asked in server.asked if reply(asked).status == 200]
        assert [event["content"] for asked in taken for event in asked.body["events"]] == ["one", "two", "three"]
        assert taken[-1].body["spool"]["dropped"] == 1
        assert taken[-1].body["spool"]["dropped_since"] is not None
        assert spooled(tmp_path) == []


def test_the_profile_is_given_when_a_session_is_compacted_and_never_else(tmp_path, plugin):
    def reply(asked: Asked) -> Reply:
        if asked.path == "/capture":
            return stored(asked)
        result = {"content": [{"type": "text", "text": "語" * 3_500}], "structuredContent": {"preferences": [1]}}
        return Reply(200, json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}).encode())

    with answering(reply) as server, host(plugin, tmp_path, server.url, CONVMEM_TOKEN="t-1") as opencode:
        a_day_of_work(opencode)
        opencode.settle()
        assert {asked.path for asked in server.asked} == {"/capture"}
        compacted = opencode.call("experimental.session.compacting", {"sessionID": "ses_1"}, {"context": ["before"]})
        assert compacted == {"context": ["before", "語" * 3_000]}
        asked = server.asked[-1]
        assert asked.path == "/mcp/memory"
        assert asked.body["params"] == {"name": "get_profile", "arguments": {"project": "shop"}}
        assert {asked.headers["authorization"] for asked in server.asked} == {"Bearer t-1"}


def test_a_session_that_is_compacted_gets_what_the_daemon_knows(tmp_path, plugin):
    with daemon(tmp_path / "data") as running, host(plugin, tmp_path / "state", url_of(running)) as opencode:
        nothing = opencode.call("experimental.session.compacting", {"sessionID": "ses_1"}, {"context": []})
        assert nothing == {"context": []}
        stated = {"category": "coding_pref", "key": "indentation", "value": "two spaces, never tabs"}
        answer = running.client("memory").request("tools/call", {"name": "remember", "arguments": stated})
        assert not answer["result"].get("isError")
        known = opencode.call("experimental.session.compacting", {"sessionID": "ses_1"}, {"context": []})
        (text,) = known["context"]
        assert "two spaces, never tabs" in text
        assert len(text) <= 3_000


def test_two_copies_of_the_plugin_in_one_process_capture_once(tmp_path, plugin):
    twice = plugin.with_name("twice.js")
    twice.write_text(
        'import { ConvmemPlugin } from "./convmem.js"\n'
        "export const A = (input) => ConvmemPlugin(input)\nexport const B = (input) => ConvmemPlugin(input)\n"
    )
    with answering(stored) as server, host(twice, tmp_path, server.url) as opencode:
        a_day_of_work(opencode)
        opencode.settle()
        assert [event["content"] for event in server.events()] == [content for *_, content in A_DAY]


ODD: list[tuple[str, Any, Any]] = [
    *(("event", given, None) for given in (None, 1, {}, {"event": None}, {"event": {"type": "message.updated"}})),
    ("event", {"event": {"type": "message.part.updated", "properties": {"part": {"type": "text", "text": 7}}}}, None),
    ("event", {"event": {"type": "session.error", "properties": {"error": []}}}, None),
    *(("tool.execute.after", given, given) for given in (None, [], {}, {"tool": 1}, {"callID": "c", "sessionID": "s"})),
    ("experimental.session.compacting", None, None),
    ("experimental.session.compacting", {}, {"context": 1}),
]


def test_no_shape_of_what_the_host_says_makes_a_hook_throw(tmp_path, plugin):
    with answering(stored) as server, host(plugin, tmp_path, server.url) as opencode:
        for hook, given, output in ODD:
            opencode.call(hook, given, output)
        opencode.say(*prompt("msg_1", "ses_1", AT, "still here \ud800"))
        opencode.settle()
        assert [event["content"] for event in server.events()][-1] == "still here �"


def test_a_daemon_that_does_not_answer_holds_up_nobody_and_loses_nothing(tmp_path, plugin):
    release = threading.Event()

    def reply(asked: Asked) -> Reply:
        release.wait(WAIT_S)
        return stored(asked)

    with answering(reply) as server, host(plugin, tmp_path, server.url) as opencode:
        a_day_of_work(opencode)
        assert max(opencode.took_ms) < 1_000
        begun = time.monotonic()
        opencode.settle()
        assert time.monotonic() - begun < 5
        assert [event["content"] for event in spooled(tmp_path)] == [content for *_, content in A_DAY]
        release.set()


def test_a_thousand_events_at_once_come_once_each_and_in_order(tmp_path, plugin):
    def reply(asked: Asked) -> Reply:
        time.sleep(0.2)
        return stored(asked)

    names = [f"call_{number}" for number in range(1_000)]
    with answering(reply) as server, host(plugin, tmp_path, server.url) as opencode:
        for name in names:
            opencode.call("tool.execute.after", tool("ses_1", name, "bash", {"command": name}), BASH)
        until(lambda: len(server.events()) == len(names))
        assert [event["event_id"] for event in server.events()] == names
        assert max(len(asked.body["events"]) for asked in server.asked) <= 256
        assert spooled(tmp_path) == []


def test_the_example_is_one_that_opencode_understands(tmp_path):
    example = json.loads((node.PLUGIN / "opencode.example.json").read_text(encoding="utf-8"))
    wrong = {**example, "mcp": {"convmem": {**example["mcp"]["convmem"], "type": "http"}}}
    for name, settings in {"right": example, "wrong": wrong, "unknown": {**example, "plugins": []}}.items():
        source = tmp_path / f"{name}.ts"
        typed = f"export const example: Config = {json.dumps(settings)}\n"
        source.write_text(f'import type {{ Config }} from "@opencode-ai/sdk/v2"\n{typed}', encoding="utf-8")
        if name == "right":
            node.compiled([source], tmp_path / name)
        else:
            with pytest.raises(AssertionError, match="error TS"):
                node.compiled([source], tmp_path / name)


@pytest.mark.parametrize("given", [{}, {"HOME": ""}, {"HOME": "here", "XDG_STATE_HOME": "there"}])
def test_without_the_variables_events_wait_in_the_home_that_the_system_knows(plugin, given):
    ask = f"import({json.dumps(plugin.with_name('settings.js').as_uri())}).then((it) => console.log("
    done = subprocess.run(
        [node.node(), "--input-type=module", "-e", f"{ask}it.settingsOf({json.dumps(given)}).spool))"],
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
    )
    home = Path(pwd.getpwuid(os.getuid()).pw_dir)
    assert Path(done.stdout).parent == home / ".local/state/convmem/spool"


def test_without_an_address_the_plugin_has_no_hooks(tmp_path, plugin):
    with host(plugin, tmp_path, "not a url") as opencode:
        a_day_of_work(opencode)
        assert opencode.took_ms == []
    assert not list(tmp_path.iterdir())


def test_a_hook_costs_its_host_next_to_nothing(tmp_path, plugin, capsys: pytest.CaptureFixture[str]):
    with host(plugin, tmp_path, nobody()) as opencode:
        long = {"title": "", "output": "line of output\n" * 4_000}
        for number in range(300):
            opencode.say(*prompt(f"msg_{number}", "ses_1", AT, THAI * 20))
            opencode.call("tool.execute.after", tool("ses_1", f"call_{number}", "bash", {"command": "ls"}), long)
        opencode.settle()
        took = opencode.took_ms
    assert len(spooled(tmp_path)) == 600
    with capsys.disabled():
        print(f"\nhook ms: p50 {percentile(took, 50):.3f} p99 {percentile(took, 99):.3f} max {max(took):.3f}")
    assert percentile(took, 50) < 5
