"""Distill from end to end: captured by hooks, distilled by the operator, read by an agent, pruned from every file."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from convmem.clock import SystemClock
from tests.support.captured import event, send
from tests.support.commands import ran
from tests.support.daemons import Daemon, daemon

pytestmark = pytest.mark.slow
DAY_MS = 24 * 3600 * 1000
SECRET = "the zebra that was told long ago"


def ask(running: Daemon, body: Any, **headers: str) -> list[dict[str, Any]]:
    answer = httpx.post(
        running.url.removesuffix("/mcp") + "/admin/distill", json=body, headers=headers, trust_env=False
    )
    if answer.status_code != 200:
        return [{"status": answer.status_code, **answer.json()}]
    return [json.loads(line) for line in answer.text.splitlines()]


def test_what_hooks_captured_becomes_the_profile_and_what_is_old_leaves_no_byte(tmp_path: Path):
    data_dir, now = tmp_path / "data", SystemClock().now_ms()
    with daemon(data_dir) as running:
        prompts = ["ค้นหาภาษาไทยช้า", "ค้นหาไม่เจอ", "搜索太慢", "搜索不到", "検索が遅い", "検索して", "the search is slow"]
        send(running.url, [event(number, text, at=now - number) for number, text in enumerate(prompts)])
        send(
            running.url, [event(100 + number, f"{SECRET} {number}", at=now - 40 * DAY_MS) for number in range(300 // 3)]
        )
        dry = ask(running, {"dry_run": True})[-1]["result"]
        facts = ask(running, {})[-1]["result"]
        assert {**dry, "dry_run": False, "duration_ms": 0} == {**facts, "duration_ms": 0}
        assert facts["pruned"] == {"prompt": 100, "tool_call": 0, "error": 0}
        (topics,) = [section["content"] for section in facts["sections"] if section["section"] == "topics"]
        assert {"ค้นหา: 2", "搜索: 2", "検索: 2", "search: 1"} <= set(topics.splitlines())
        client = running.client("memory")
        profile = client.request("tools/call", {"name": "get_profile", "arguments": {}})["result"]
        assert "検索: 2" in profile["content"][0]["text"]
        found = client.request("tools/call", {"name": "search_history", "arguments": {"query": "zebra"}})["result"]
        assert "long ago" not in found["content"][0]["text"]
        assert running.client("messages").call("rebuild_index")["rebuilt"] is True
        again = ask(running, {})[-1]["result"]
        assert [section["outcome"] for section in again["sections"]] == ["unchanged", "unchanged"]
        assert running.stop()[0] == 0
    for path in data_dir.rglob("*"):
        assert path.is_dir() or SECRET.encode() not in path.read_bytes(), path.name


def test_a_distilled_profile_survives_a_crash_and_the_next_run_writes_nothing(tmp_path: Path):
    with daemon(tmp_path) as running:
        send(running.url, [event(number, f"the parser of module {number}") for number in range(50)])
        first = ask(running, {})[-1]["result"]
        running.kill()
        running.start()
        again = ask(running, {})[-1]["result"]
        assert [section["outcome"] for section in again["sections"]] == ["unchanged", "unchanged"]
        assert [section["content"] for section in again["sections"]] == [it["content"] for it in first["sections"]]
        assert running.stop()[0] == 0
    checked = ran("check", "--data-dir", str(tmp_path))
    assert (checked.returncode, checked.stdout) == (0, "OK\n")


def test_distill_needs_the_scope_of_an_operator_and_known_arguments(tmp_path: Path):
    with daemon(tmp_path, environment={"CONVMEM_HTTP_TOKEN": "s3cret"}) as running:
        (refused,) = ask(running, {})
        assert refused["status"] == 401
        known = {"authorization": "Bearer s3cret"}
        for body, field in (
            ({"days": 3}, "days"),
            ({"retention_days": 0}, "retention_days"),
            ({"dry_run": 1}, "dry_run"),
        ):
            refusal = ask(running, body, **known)[-1]["error"]
            assert (refusal["code"], refusal["field"]) == ("VALIDATION_ERROR", field)
        assert "result" in ask(running, {}, **known)[-1]


def test_a_daemon_that_is_told_to_distill_daily_says_so_and_runs(tmp_path: Path):
    with daemon(tmp_path, "--distill", "daily", "--retention-days", "7") as running:
        assert ask(running, {"dry_run": True})[-1]["result"]["retention_days"] == 7
        health = running.client("messages").call("get_system_health")
        assert health["reasons"] == []
        status, journal = running.stop()
        assert status == 0, journal
    refused = ran("serve", "--data-dir", str(tmp_path), "--distill", "hourly")
    assert refused.returncode == 2
    assert "CONVMEM_DISTILL (flag --distill): 'hourly' is none of off, daily" in refused.stderr
