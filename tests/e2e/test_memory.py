"""The nine tools of memory through the official client, in both eras; and a store that keeps them through anything."""

import itertools
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.support.daemons import Daemon, complaints, daemon
from tests.support.memory_tools import HOSTILE, is_fenced, left_out

pytestmark = pytest.mark.slow
# What the client opens with, and the version that both sides then speak.
MODES = {"auto": "2026-07-28", "legacy": "2025-11-25"}
NINE = (
    *("remember", "recall", "get_profile", "save_lesson", "search_history", "forget", "memory_stats"),
    *("get_recent_interactions", "export_memory"),
)
CORE = (
    *("remember", "recall", "get_profile", "save_lesson", "forget"),
    *("write_message", "read_messages", "search_messages"),
)
NAMES = itertools.count(1)
SECRET = "sk-proj-FAKE0000000000000000000000"


class Told:
    """The tools of one client."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def ask(self, tool: str, **arguments: Any) -> tuple[dict[str, Any], str]:
        """Facts and text of an answer that is no refusal."""
        facts, text, is_error = await self.try_to(tool, **arguments)
        assert not is_error, text
        return facts, text

    async def refused(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The error of a refusal."""
        facts, text, is_error = await self.try_to(tool, **arguments)
        assert is_error, text
        error: dict[str, Any] = facts["error"]
        assert text == f"{error['code']}: {error['message']}"
        return error

    async def try_to(self, tool: str, **arguments: Any) -> tuple[dict[str, Any], str, bool]:
        result = await self._client.call_tool(tool, arguments)
        (block,) = result.content
        return result.structured_content, block.text, bool(result.is_error)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with daemon(tmp_path_factory.mktemp("memory"), "--profile", "memory") as started:
        yield started
        status, journal = started.stop()
        assert status == 0
        assert "Traceback" not in journal
        assert complaints(started.data_dir) == []


def capture(running: Daemon, *events: dict[str, Any]) -> dict[str, Any]:
    """Leave events as a hook does."""
    answer = httpx.post(running.url.removesuffix("/mcp") + "/capture", json={"events": list(events)})
    assert answer.status_code == 200, answer.text
    stored: dict[str, Any] = answer.json()
    return stored


def event(number: int, kind: str, content: str, **more: Any) -> dict[str, Any]:
    return {"event_id": f"event {number}", "kind": kind, "session_id": f"hook {number}", "content": content, **more}


@pytest.mark.parametrize("mode", MODES)
async def test_the_official_client_is_shown_nine_tools_and_eight_in_core(running: Daemon, mode: str):
    async with Client(running.url, mode=mode) as client:
        assert client.protocol_version == MODES[mode]
        assert [tool.name for tool in (await client.list_tools()).tools] == list(NINE)
    async with Client(f"{running.url}/core", mode=mode) as client:
        shown = (await client.list_tools()).tools
        assert [tool.name for tool in shown] == list(CORE)


@pytest.mark.parametrize("mode", MODES)
async def test_a_preference_is_remembered_recalled_changed_and_forgotten(running: Daemon, mode: str):
    async with Client(running.url, mode=mode) as client:
        told, name = Told(client), f"journey{next(NAMES)}"
        preference = {"category": "coding_pref", "key": f"{name} indent", "value": "สี่ช่อง four spaces"}
        facts, text = await told.ask("remember", **preference)
        number = facts["number"]
        assert text == f"Saved as #{number} (confidence 0.5)."
        assert facts["sequence"].isdecimal()
        assert len(facts["sha256"]) == 64
        facts, text = await told.ask("remember", **preference)
        assert (facts["number"], facts["confidence"]) == (number, 0.6)
        facts, text = await told.ask("remember", **preference | {"value": "tabs"}, source="inferred")
        assert (facts["confidence"], facts["previous_value"], facts["source"]) == (0.5, preference["value"], "inferred")
        facts, text = await told.ask("remember", **preference, project=name)
        assert facts["number"] != number
        facts, text = await told.ask("recall", topic=f"{name}", project=name)
        assert [found.get("project") for found in facts["preferences"]] == [name, None]
        assert is_fenced(text)
        assert f"> [{number}] " in text
        client_name = facts["preferences"][1]["origin"]["client"]
        assert client_name
        assert facts["preferences"][1]["origin"] == {"device": "local", "transport": "http", "client": client_name}
        for query in ("สี่ช่อง", "สี่", f"{name} indent", "ndent"):
            facts, _ = await told.ask("recall", topic=query, limit=50)
            assert name in [found.get("project") for found in facts["preferences"]], query
        facts, text = await told.ask("forget", target_id=number)
        assert [removed["type"] for removed in facts["removed"]] == ["preference"]
        facts, text = await told.ask("forget", target_id=str(number))
        assert facts == {"removed": []}
        facts, _ = await told.ask("recall", topic=name)
        assert [found["project"] for found in facts["preferences"] if name in found["key"]] == [name]


@pytest.mark.parametrize("mode", MODES)
async def test_a_lesson_is_saved_once_and_found(running: Daemon, mode: str):
    async with Client(running.url, mode=mode) as client:
        told, name = Told(client), f"journey{next(NAMES)}"
        lesson = {"situation": f"{name} を公開する前", "mistake": "テストを飛ばした", "correction": "先にテストを流す"}
        first, text = await told.ask("save_lesson", **lesson)
        assert text == f"Lesson #{first['number']} is saved."
        again, _ = await told.ask("save_lesson", **lesson)
        assert again == {**first, "replayed": True}
        for topic in ("テスト", "公開", "飛", f"{name} の公開について"):
            facts, text = await told.ask("recall", topic=topic)
            assert first["number"] in [found["number"] for found in facts["lessons"]], topic
        error = await told.refused("forget", target_id=first["id"], type="preference")
        assert (error["code"], error["field"]) == ("VALIDATION_ERROR", "type")
        facts, _ = await told.ask("forget", target_id=first["id"].lower(), type="lesson")
        assert facts["removed"][0]["id"] == first["id"]


@pytest.mark.parametrize("mode", MODES)
async def test_what_hooks_captured_is_searched_listed_and_forgotten(running: Daemon, mode: str):
    async with Client(running.url, mode=mode) as client:
        told, number = Told(client), 10 * next(NAMES)
        capture(
            running,
            event(number, "prompt", f"นกยูง {number} how do I rebase", project=f"p{number}"),
            event(number + 1, "tool_call", f"git rebase {number}", tool="bash", status="ok", directory="/src"),
            event(number + 2, "error", f"rebase failed {number}"),
        )
        facts, text = await told.ask("get_recent_interactions", limit=3)
        assert [found["kind"] for found in facts["interactions"]] == ["error", "tool_call", "prompt"]
        assert is_fenced(text)
        error, called, prompt = facts["interactions"]
        assert f"> [{called['number']}] " in text
        facts, _ = await told.ask("get_recent_interactions", kind="error", limit=1)
        assert facts["interactions"] == [error]
        facts, text = await told.ask("search_history", query="นกยูง", project=f"p{number}")
        assert [found["number"] for found in facts["history"]] == [prompt["number"]]
        assert is_fenced(text)
        facts, _ = await told.ask("search_history", query=f"git rebase {number}", limit=50)
        assert called["number"] not in [found["number"] for found in facts["history"]]
        facts, _ = await told.ask("forget", target_id=prompt["number"], type="interaction")
        assert facts["removed"][0]["id"] == prompt["message_id"]
        facts, _ = await told.ask("search_history", query="นกยูง", project=f"p{number}")
        assert facts["history"] == []
        facts, _ = await told.ask("memory_stats")
        assert facts["captured"]["tool_call"] >= 1


@pytest.mark.parametrize("mode", MODES)
async def test_memory_is_exported_to_a_file_of_its_own(running: Daemon, mode: str):
    async with Client(running.url, mode=mode) as client:
        told, name = Told(client), f"export-{next(NAMES)}.json"
        await told.ask("remember", category="other", key=name, value="exported")
        facts, text = await told.ask("export_memory", filename=name, includeInteractions=True)
        path = running.data_dir / "exports" / name
        assert path.stat().st_mode & 0o777 == 0o600
        document = json.loads(path.read_bytes())
        assert name in [found["key"] for found in document["preferences"]]
        assert "interactions" in document
        assert facts["size_bytes"] == path.stat().st_size
        assert len(facts["preview"]) <= 500
        assert str(running.data_dir) not in text + repr(facts)
        assert (await told.refused("export_memory", filename=name))["code"] == "CONFLICT"
        before = sorted(os.listdir(running.data_dir.parent)), sorted(os.listdir(running.data_dir))
        for bad in ("../x.json", "/tmp/x.json", "con.json", ".x.json", "a\0.json", "x"):
            assert (await told.refused("export_memory", filename=bad))["field"] == "filename"
        assert (sorted(os.listdir(running.data_dir.parent)), sorted(os.listdir(running.data_dir))) == before
        facts, _ = await told.ask("export_memory")
        assert facts["filename"].startswith("memory-")


async def test_what_is_in_the_way_of_an_export_is_told_without_a_path_of_the_machine(tmp_path: Path):
    with daemon(tmp_path, "--profile", "memory") as hindered:
        (hindered.data_dir / "exports").write_text("in the way")
        async with Client(hindered.url) as client:
            told = Told(client)
            error = await told.refused("export_memory")
            assert error["code"] == "IO_ERROR"
            assert error["message"] == "exports/ of the data directory is no directory; nothing was written"
            assert (await told.ask("memory_stats"))[0]["preferences"] == 0


@pytest.mark.parametrize("mode", MODES)
async def test_a_project_is_copied_from_the_page_and_what_is_left_out_is_named(running: Daemon, mode: str):
    async with Client(running.url, mode=mode) as client:
        told, word = Told(client), {"auto": "plover", "legacy": "heron"}[mode]
        for number in range(12):
            await told.ask("remember", category="other", key=f"{word} {number}", value="v", project="บ้านสวน यूट्यूब (v2)")
        facts, text = await told.ask("recall", topic=word, limit=2)
        assert is_fenced(text)
        label, _ = json.JSONDecoder().raw_decode(text.partition("; project ")[2])
        assert label == "บ้านสวน यूट्यूब (v2)"
        assert (await told.ask("recall", topic=word, project=label))[0]["preferences"]
        assert len(facts["preferences"]) + facts["more"]["preferences"] == 12
        assert text.endswith(" more")
        assert left_out(text) == sum(facts["more"].values())
        facts, text = await told.ask("forget", target_id=facts["preferences"][0]["number"])
        assert is_fenced(text)
        assert facts["removed"][0]["origin"]["device"] == "local"


@pytest.mark.parametrize("mode", MODES)
async def test_wrong_arguments_are_refused_by_field_and_numbers_may_be_written_as_text(running: Daemon, mode: str):
    wrong: tuple[tuple[str, dict[str, Any], str], ...] = (
        ("remember", {"category": "mood", "key": "k", "value": "v"}, "category"),
        ("remember", {"category": "other", "key": "", "value": "v"}, "key"),
        ("remember", {"category": "other", "key": "k", "value": "v" * 2_001}, "value"),
        ("remember", {"category": "other", "key": "k\0", "value": "v"}, "key"),
        ("remember", {"category": "other", "key": "k"}, "value"),
        ("save_lesson", {"situation": "s", "mistake": "m", "correction": "c" * 1_001}, "correction"),
        ("recall", {"topic": ""}, "topic"),
        ("recall", {"topic": "t" * 501}, "topic"),
        ("recall", {"topic": "t", "limit": 51}, "limit"),
        ("recall", {"topic": "t", "limit": True}, "limit"),
        ("recall", {"topic": "t", "colour": "red"}, "colour"),
        ("search_history", {"query": "q", "limit": 0}, "limit"),
        ("forget", {"target_id": "all"}, "target_id"),
        ("forget", {"target_id": 1.5}, "target_id"),
        ("forget", {"target_id": 1, "type": "message"}, "type"),
        ("get_recent_interactions", {"limit": 101}, "limit"),
        ("get_recent_interactions", {"kind": "thought"}, "kind"),
        ("memory_stats", {"all": True}, "all"),
        ("export_memory", {"include_interactions": "perhaps"}, "include_interactions"),
    )
    async with Client(running.url, mode=mode) as client:
        told = Told(client)
        for tool, arguments, field in wrong:
            error = await told.refused(tool, **arguments)
            assert (error["code"], error["field"]) == ("VALIDATION_ERROR", field), (tool, arguments)
        await told.ask("recall", topic="t", limit="8", project=None)
        await told.ask("get_recent_interactions", limit=5.0)
        await told.ask("forget", target_id=999_999_999.0)


async def test_an_ordinary_message_is_for_delete_message(running: Daemon):
    async with Client(f"{running.url}/core") as core, Client(running.url) as client:
        written, _ = await Told(core).ask("write_message", session_id="s", role="user", content="an ordinary message")
        error = await Told(client).refused("forget", target_id=written["message_id"])
        assert error["code"] == "NOT_FOUND"
        assert "delete_message" in error["message"]
        facts, text = await Told(client).ask("recall", topic="ordinary message")
        assert written["message_id"] in text
        assert facts["history"][0]["message_id"] == written["message_id"]


async def test_what_was_learned_outlives_kill_and_the_loss_of_the_index(tmp_path: Path):
    with daemon(tmp_path, "--profile", "memory") as mortal:
        async with Client(mortal.url) as client:
            told = Told(client)
            saved, _ = await told.ask("remember", category="language", key="answers", value=f"ภาษาไทย {SECRET}")
            lesson, _ = await told.ask("save_lesson", situation="s", mistake="m", correction="c")
            capture(mortal, event(1, "prompt", f"my key is {SECRET}, remember it"))
            mortal.kill()
            for path in (*mortal.data_dir.glob("index-*"), *mortal.data_dir.glob("search-*")):
                path.unlink()
            mortal.start()
            facts, _ = await told.ask("get_profile")
            assert [found["number"] for found in facts["preferences"]] == [saved["number"]]
            assert [found["number"] for found in facts["lessons"]] == [lesson["number"]]
            facts, _ = await told.ask("remember", category="other", key="next", value="v")
            assert facts["number"] == 4
            await told.ask("export_memory", include_interactions=True)
        mortal.stop()
        for path in mortal.data_dir.rglob("*"):
            if path.is_file():
                assert SECRET.encode() not in path.read_bytes(), path
        assert complaints(mortal.data_dir) == []


def test_no_default_reply_is_larger_than_64_kib_on_the_wire_whatever_is_stored(tmp_path: Path):
    with daemon(tmp_path, "--profile", "memory") as full, httpx.Client(timeout=60) as http:
        widest = [text for text in HOSTILE if len(text) > 400]
        client = full.client("memory")
        for number in range(48):
            text = widest[number % len(widest)]
            preference = {
                "category": "other",
                "key": f"{number} {text}".replace("\0", "x")[:200],
                "value": text[:2_000],
            }
            client.request("tools/call", {"name": "remember", "arguments": preference})
            lesson = {"situation": f"{number} {text}"[:1_000], "mistake": text[:1_000], "correction": text[:1_000]}
            client.request("tools/call", {"name": "save_lesson", "arguments": lesson})
            section = {"action": "set", "section": f"section_{number % 32}", "content": (text * 9)[:4_000]}
            http.post(full.url.removesuffix("/mcp") + "/admin/profile", json=section).raise_for_status()
            capture(full, event(number, "prompt", f"needle {text}", project="\x01" * 256, directory="\x01" * 1_024))
        arguments = {"recall": {"topic": "needle"}, "search_history": {"query": "needle"}}
        for tool in set(NINE) - {"remember", "save_lesson", "forget"}:
            call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
            params = {"name": tool, "arguments": arguments.get(tool, {})}
            answer = http.post(full.url, json={**call, "params": params}, headers={"accept": "application/json"})
            assert len(answer.content) <= 64 * 1024, tool
            result = answer.json()["result"]
            assert not result.get("isError"), result
            if tool not in {"memory_stats", "export_memory"}:
                assert is_fenced(result["content"][0]["text"]), tool
        assert json.loads((full.data_dir / "exports" / os.listdir(full.data_dir / "exports")[0]).read_bytes())


async def test_the_local_socket_and_stdio_see_the_same_memory(running: Daemon):
    transport = httpx2.AsyncHTTPTransport(uds=str(running.data_dir / "convmem.sock"))
    async with httpx2.AsyncClient(transport=transport) as http:
        url = "http://any.name.at.all/mcp/memory"
        async with Client(streamable_http_client(url, http_client=http)) as client:
            facts, _ = await Told(client).ask("remember", category="other", key="over the socket", value="heard")
    async with Client(running.url) as client:
        found, _ = await Told(client).ask("recall", topic="over the socket")
        assert [one["number"] for one in found["preferences"]] == [facts["number"]]
        assert found["preferences"][0]["origin"]["transport"] == "socket"
