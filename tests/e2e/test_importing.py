"""Histories of other programs, from their files into a store: offline, beside a daemon and on another machine."""

import gzip
import hashlib
import json
import random
import subprocess
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from convmem import tokens
from convmem.clock import SystemClock
from convmem.importers.formats import FORMATS
from tests.support.commands import command, ran
from tests.support.daemons import Daemon, complaints, daemon
from tests.support.imported import lines, written

pytestmark = pytest.mark.slow
AT = 1_700_000_000
SECRET = "AKIA" + "IOSFODNN7EXAMPLE"


def chatgpt(path: Path, *titles: str, last: str = "answer", changed: int = 0) -> Path:
    """An export of ChatGPT: a conversation for each title, of a question and an answer."""
    conversations = []
    for number, title in enumerate(titles):
        mapping = {
            "q": {"parent": None, "children": ["a"], "message": said("user", f"question {title}", f"{title}-q")},
            "a": {"parent": "q", "children": [], "message": said("assistant", f"{last} {title}", f"{title}-a")},
        }
        facts = {"title": title, "conversation_id": title, "create_time": AT - number, "update_time": AT + changed}
        conversations.append({**facts, "mapping": mapping, "current_node": "a"})
    return written(path, conversations)


def said(role: str, text: str, name: str) -> dict[str, Any]:
    content = {"content_type": "text", "parts": [text]}
    return {"id": name, "author": {"role": role}, "create_time": AT, "content": content}


def claude_ai(path: Path) -> Path:
    message = {
        "uuid": "m",
        "sender": "human",
        "content": [{"type": "text", "text": "hello"}],
        "created_at": "2025-01-01",
    }
    return written(path, [{"uuid": "c", "name": "n", "created_at": "2025-01-01", "chat_messages": [message]}])


def claude_code(path: Path) -> Path:
    line = {"uuid": "1", "type": "user", "sessionId": "s", "timestamp": "2025-01-01T00:00:00Z", "cwd": "/srv/things"}
    return lines(path, {**line, "message": {"role": "user", "content": "hello"}})


def codex(path: Path) -> Path:
    meta = {"type": "session_meta", "timestamp": "2025-10-01T08:00:00Z", "payload": {"id": "s", "cwd": "/srv/things"}}
    block = {"type": "input_text", "text": "hello"}
    payload = {"type": "message", "role": "user", "content": [block]}
    return lines(path, meta, {"type": "response_item", "timestamp": "2025-10-01T08:00:01Z", "payload": payload})


def opencode(path: Path) -> Path:
    file = apsw.Connection(str(path))
    file.execute("CREATE TABLE session (id, project_id, parent_id, directory, title, time_created, time_updated)")
    file.execute("CREATE TABLE message (id, session_id, time_created, time_updated, data)")
    file.execute("CREATE TABLE part (id, message_id, session_id, time_created, time_updated, data)")
    file.execute("INSERT INTO session VALUES ('ses_1', 'p', NULL, '/srv/things', 't', 1700000000000, 1700000000000)")
    file.execute("INSERT INTO message VALUES ('msg_1', 'ses_1', 1700000000000, 1700000000000, '{\"role\": \"user\"}')")
    part = json.dumps({"type": "text", "text": "hello"})
    file.execute("INSERT INTO part VALUES ('prt_1', 'msg_1', 'ses_1', 1700000000000, 1700000000000, ?)", (part,))
    file.close()
    return path


def mcp_memory(path: Path) -> Path:
    return lines(path, {"type": "entity", "name": "Tea", "entityType": "drink", "observations": ["hello"]})


def th_memory(path: Path) -> Path:
    preference = {"id": 1, "category": "language", "key": "k", "value": "hello", "updated_at": "2025-01-01T00:00:00Z"}
    interaction = {"id": 1, "ts": "2025-01-01T00:00:00Z", "kind": "prompt", "content": "hello"}
    facts = {"exported_at": "2025-01-01T00:00:00Z", "version": 1, "preferences": [preference], "lessons": []}
    return written(
        path, {**facts, "profile": [], "interactions": {"included": True, "count": 1, "rows": [interaction]}}
    )


FILES: dict[str, Callable[[Path], Path]] = {
    "chatgpt": lambda path: chatgpt(path, "one"),
    "claude-ai": claude_ai,
    "claude-code": claude_code,
    "codex-cli": codex,
    "opencode": opencode,
    "mcp-memory": mcp_memory,
    "th-memory-mcp": th_memory,
}


def imported(data_dir: Path, *arguments: str, status: int = 0) -> dict[str, Any]:
    done = ran("import", *arguments, "--json", "--data-dir", str(data_dir))
    assert done.returncode == status, done.stdout + done.stderr
    facts: dict[str, Any] = json.loads(done.stdout)
    return facts


def exported(data_dir: Path) -> str:
    done = ran("export", "-", "--data-dir", str(data_dir))
    assert done.returncode == 0, done.stderr
    return done.stdout.partition("\n")[2]


def test_every_format_has_a_file_here():
    assert set(FILES) == {format_.name for format_ in FORMATS}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("is_held", [False, True])
def test_each_format_comes_in_once_by_its_shape_and_its_file_is_not_touched(tmp_path: Path, name: str, is_held: bool):
    path, data_dir = FILES[name](tmp_path / "whatever.bin"), tmp_path / "data"
    before = hashlib.sha256(path.read_bytes()).digest()
    held = daemon(data_dir) if is_held else None
    running: Daemon | None = held.__enter__() if held else None
    first = imported(data_dir, str(path))
    assert first["formats"] == {name: first["conversations"]}
    assert first["stored"] == first["read"] >= 1
    whole = exported(data_dir)
    assert "hello" in whole or "question one" in whole
    again = imported(data_dir, str(path))
    assert (again["stored"], again["updated"], again["same"]) == (0, 0, first["stored"])
    assert exported(data_dir) == whole
    assert hashlib.sha256(path.read_bytes()).digest() == before
    assert {one.name for one in tmp_path.iterdir()} == {"whatever.bin", "data"}, "nothing is left beside the file"
    if held is not None:
        assert running is not None
        running.stop()
        held.__exit__(None, None, None)
    assert complaints(data_dir) == []


def test_a_newer_export_adds_what_is_new_and_changes_what_changed(tmp_path: Path):
    data_dir = tmp_path / "data"
    old = chatgpt(tmp_path / "old.json", "one", "two")
    new = chatgpt(tmp_path / "new.json", "one", "two", "three", last="better answer", changed=9)
    assert imported(data_dir, str(old))["stored"] == 4
    found = imported(data_dir, str(new))
    assert (found["stored"], found["updated"], found["same"]) == (2, 2, 2)
    assert exported(data_dir).count("better answer") == 3


def test_archives_and_directories_are_what_is_in_them(tmp_path: Path):
    inside = chatgpt(tmp_path / "x.json", "one")
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        archive.write(inside, "conversations-000.json")
        archive.write(chatgpt(tmp_path / "y.json", "two"), "conversations-001.json")
        archive.writestr("user.json", '{"email": "x"}')
    (tmp_path / "packed.gz").write_bytes(gzip.compress(inside.read_bytes().decode().encode("utf-16")))
    facts = imported(tmp_path / "a", str(tmp_path / "export.zip"))
    assert (facts["conversations"], facts["stored"]) == (2, 4)
    assert facts["passed_over"] == {}
    assert imported(tmp_path / "a", str(tmp_path / "packed.gz"))["same"] == 2
    directory = tmp_path / "many"
    directory.mkdir()
    for name in ("claude-code", "claude-ai", "mcp-memory"):
        FILES[name](directory / name)
    (directory / "notes.txt").write_text("no history")
    facts = imported(tmp_path / "b", str(directory))
    assert facts["formats"] == {"claude-ai": 1, "claude-code": 1, "mcp-memory": 1}
    assert facts["passed_over"] == {"file of no known format": 1}


def test_what_was_skipped_is_in_the_report_and_in_the_status(tmp_path: Path):
    path = chatgpt(tmp_path / "x.json", "one", "two")
    path.write_text(json.dumps([*json.loads(path.read_text()), {"title": "Lost", "conversation_id": "l"}]))
    report = tmp_path / "report.json"
    facts = imported(tmp_path / "data", str(path), "--report", str(report), status=3)
    assert facts["stored"] == 4
    assert facts["skipped_list"][0]["where"].endswith(": Lost")
    told = json.loads(report.read_text())
    assert [one["title"] for one in told["conversation_list"]] == ["two", "one"], "by their time"
    assert all((one["read"], one["stored"]) == (2, 2) for one in told["conversation_list"])
    shown = ran("import", str(path), "--data-dir", str(tmp_path / "data"))
    assert shown.returncode == 3
    assert "Lost" in shown.stdout


def test_a_dry_run_writes_nothing(tmp_path: Path):
    path = chatgpt(tmp_path / "x.json", "one")
    with daemon(tmp_path / "data"):
        facts = imported(tmp_path / "data", str(path), "--dry-run")
        assert (facts["stored"], facts["dry_run"]) == (2, True)
        assert exported(tmp_path / "data") == ""


def test_what_was_deleted_stays_deleted_until_it_is_called_back(tmp_path: Path):
    path = chatgpt(tmp_path / "x.json", "one")
    with daemon(tmp_path / "data") as running:
        imported(tmp_path / "data", str(path))
        client = running.client("all")
        for message in client.history("chatgpt:one"):
            client.call("delete_message", message_id=message["message_id"])
        client.call("rebuild_index")
        assert imported(tmp_path / "data", str(path))["stays_deleted"] == 2
        assert imported(tmp_path / "data", str(path), "--resurrect")["stored"] == 2


def test_a_conversation_is_found_read_and_named_as_it_was(tmp_path: Path):
    with daemon(tmp_path / "data") as running:
        imported(tmp_path / "data", str(chatgpt(tmp_path / "x.json", "Teapots")))
        client = running.client("all")
        (session,) = client.call("read_messages", view="sessions")["sessions"]
        assert (session["session_id"], session["summary"]) == ("chatgpt:Teapots", "Teapots")
        (hit,) = client.call("search_messages", query="question teapots", match="exact", tag="chatgpt")["results"]
        first, second = client.history("chatgpt:Teapots")
        assert hit["message_id"] == first["message_id"]
        assert (first["timestamp"], first["imported"]["message"]) == (AT * 1000, "Teapots-q")
        assert (second["role"], second["content"]) == ("assistant", "answer Teapots")


def test_another_machine_takes_it_in_by_url_if_the_token_reaches_far_enough(tmp_path: Path):
    path = chatgpt(tmp_path / "x.json", "one")
    with daemon(tmp_path / "data") as running:
        made = {
            scope: tokens.create(running.data_dir, scope, scope, None, SystemClock()).secret
            for scope in ("write", "admin")
        }
        for scope, status in (("write", 1), ("admin", 0)):
            environment = {"CONVMEM_TOKEN": made[scope]}
            done = ran("import", str(path), "--url", running.url, environment=environment)
            assert done.returncode == status, done.stderr
        assert (
            "FORBIDDEN"
            in ran("import", str(path), "--url", running.url, environment={"CONVMEM_TOKEN": made["write"]}).stderr
        )
        client = running.client("all", authorization=f"Bearer {made['admin']}")
        (message, _) = client.history("chatgpt:one")
        assert message["origin"]["device"] == "admin"


def test_secrets_of_other_programs_do_not_come_in(tmp_path: Path):
    path = chatgpt(tmp_path / "x.json", f"key {SECRET}")
    imported(tmp_path / "data", str(path))
    assert all(SECRET.encode() not in one.read_bytes() for one in (tmp_path / "data").rglob("*") if one.is_file())
    imported(tmp_path / "other", str(path), "--keep-secrets")
    assert SECRET in exported(tmp_path / "other")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("x.json", "--format", "none"), "--format is one of"),
        (("x.json", "--since", "soon"), "is no time"),
        (("x.json", "--policy", "overwrite"), "--policy is for files"),
        (("other.txt",), "holds nothing of a known format"),
        (("own.jsonl", "--project", "p"), "is taken in as it is"),
        (("own.jsonl", "x.json"), "one after the other"),
    ],
)
def test_what_cannot_be_meant_is_wrong_usage(tmp_path: Path, arguments: tuple[str, ...], said: str):
    chatgpt(tmp_path / "x.json", "one")
    (tmp_path / "other.txt").write_text("no history")
    (tmp_path / "own.jsonl").write_text('{"type":"manifest","format":"convmem-jsonl","version":1}\n')
    done = ran("import", *arguments, "--data-dir", str(tmp_path / "data"), directory=tmp_path)
    assert done.returncode == 2, done.stdout + done.stderr
    assert said in " ".join(done.stderr.replace("│", " ").split())


def test_an_import_goes_on_through_restarts_and_loses_and_doubles_nothing(tmp_path: Path):
    dice = random.Random(20261201)
    titles = [f"t{number:04}" for number in range(1_500)]
    path, data_dir = chatgpt(tmp_path / "x.json", *titles), tmp_path / "data"
    with daemon(data_dir) as running:
        process = subprocess.Popen(
            command("import", str(path), "--json", "--data-dir", str(data_dir)),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd="/",
            env={},
        )
        while not running.client("all").call("read_messages", view="sessions")["sessions"]:
            assert process.poll() is None
        for _ in range(3):
            deadline = time.monotonic() + dice.uniform(0.1, 0.4)
            while time.monotonic() < deadline and process.poll() is None:
                running.client("all").call("get_system_health")
            running.kill()
            running.start()
        process.communicate(timeout=60)
        # Whether it came through, or broke off with its connection: told again, all is there once.
        facts = imported(data_dir, str(path))
        assert facts["stored"] + facts["same"] == 3_000
        assert imported(data_dir, str(path))["same"] == 3_000
    assert exported(data_dir).count('"role":"user"') == 1_500
    assert complaints(data_dir) == []
