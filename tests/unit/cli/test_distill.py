"""cli/distill: what was written and what went, from whoever holds the store or from this process."""

import json
from pathlib import Path
from typing import Any

import pytest

from convmem.cli import run
from convmem.cli.distill import COUNTED, OUTCOMES
from convmem.clock import SystemClock
from convmem.limits import RETENTION_DAYS_MAX
from convmem.memory.distill import NAMED
from tests.support.captured import event, fill, send
from tests.support.commands import daemon

pytestmark = pytest.mark.slow
DAY_MS = 24 * 3600 * 1000


def events() -> list[dict[str, Any]]:
    old = SystemClock().now_ms() - 31 * DAY_MS
    return [
        event(1, "look at the parser", project="shop"),
        event(2, "แก้ระบบค้นหา parser", project="shop"),
        event(3, "ran it", kind="tool_call", tool="Bash"),
        event(4, "an old zebra", at=old),
        event(5, "old call", kind="tool_call", tool="Rm", at=old),
    ]


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """A store that nobody holds."""
    fill(tmp_path / "data", events())
    return tmp_path / "data"


def shown(capsys: pytest.CaptureFixture[str]) -> list[str]:
    streams = capsys.readouterr()
    assert streams.err == ""
    return streams.out.splitlines()


def test_kinds_and_outcomes_have_words():
    assert COUNTED == NAMED
    assert set(OUTCOMES) == {"written", "unchanged", "deleted", "absent"}


def test_a_store_that_nobody_holds_is_distilled_here(data_dir: Path, capsys: pytest.CaptureFixture[str]):
    assert run(["distill", "--data-dir", str(data_dir)], {}, Path("/")) == 0
    lines = shown(capsys)
    assert lines[0] == "counted: 2 prompts, 1 tool call, 0 errors"
    assert "usage_stats: written" in lines
    assert "  Tools: Bash 1" in lines
    assert "topics: written" in lines
    assert "  parser: 2" in lines
    assert "  ค้นหา: 1" in lines
    assert lines[-1] == "pruned: 1 prompt, 1 tool call, 0 errors older than 30 days"
    assert "zebra" not in "\n".join(lines)
    assert run(["distill", "--data-dir", str(data_dir)], {}, Path("/")) == 0
    lines = shown(capsys)
    assert {"usage_stats: unchanged", "topics: unchanged"} <= set(lines)
    assert lines[-1] == "pruned: 0 prompts, 0 tool calls, 0 errors older than 30 days"


def test_a_dry_run_only_says_so(data_dir: Path, capsys: pytest.CaptureFixture[str]):
    log = (data_dir / "convmem.log").read_bytes()
    assert run(["distill", "--dry-run", "--data-dir", str(data_dir)], {}, Path("/")) == 0
    lines = shown(capsys)
    assert {"usage_stats: would be written", "topics: would be written", "  parser: 2"} <= set(lines)
    assert lines[-1] == "would be pruned: 1 prompt, 1 tool call, 0 errors older than 30 days"
    assert (data_dir / "convmem.log").read_bytes() == log


def test_where_nothing_was_captured_it_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    fill(tmp_path, [event(1, "look at the parser")])
    run(["distill", "--data-dir", str(tmp_path)], {}, Path("/"))
    run(["distill", "--json", "--data-dir", str(tmp_path)], {}, Path("/"))
    facts = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert [section["outcome"] for section in facts["sections"]] == ["unchanged", "unchanged"]
    assert facts["counted"] == {"prompt": 1, "tool_call": 0, "error": 0}


def test_whoever_holds_the_store_distills_it_by_its_own_retention(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    environment = {"CONVMEM_DATA_DIR": str(tmp_path / "data")}
    with daemon(environment={**environment, "CONVMEM_RETENTION_DAYS": "40"}) as held:
        send(held.url, events())
        assert run(["distill", "--dry-run"], environment, Path("/")) == 0
        assert shown(capsys)[-1] == "would be pruned: 0 prompts, 0 tool calls, 0 errors older than 40 days"
        assert run(["distill", "--retention-days", "1", "--json", "--url", held.url], {}, Path("/")) == 0
        facts = json.loads(shown(capsys)[0])
        assert (facts["retention_days"], facts["pruned"]) == (1, {"prompt": 1, "tool_call": 1, "error": 0})


def test_a_store_of_its_own_goes_by_the_settings(data_dir: Path, capsys: pytest.CaptureFixture[str]):
    asked = ["distill", "--dry-run", "--data-dir", str(data_dir)]
    assert run(asked, {"RETENTION_DAYS": "32"}, Path("/")) == 0
    assert shown(capsys)[-1].endswith("0 prompts, 0 tool calls, 0 errors older than 32 days")
    assert run(asked, {"RETENTION_DAYS": "32", "CONVMEM_RETENTION_DAYS": "1"}, Path("/")) == 0
    assert shown(capsys)[-1].endswith("1 prompt, 1 tool call, 0 errors older than 1 day")


@pytest.mark.parametrize("days", ["0", "-1", "1.5", "forever", str(RETENTION_DAYS_MAX + 1)])
def test_days_that_cannot_be_meant_are_refused(data_dir: Path, days: str, capsys: pytest.CaptureFixture[str]):
    assert run(["distill", f"--retention-days={days}", "--data-dir", str(data_dir)], {}, Path("/")) == 2
    assert "CONVMEM_RETENTION_DAYS (flag --retention-days)" in capsys.readouterr().err


def test_where_there_is_no_store_none_is_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert run(["distill", "--data-dir", str(tmp_path)], {}, Path("/")) == 1
    assert "there is no store in" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("environment", "days"),
    [({}, 30), ({"CONVMEM_RETENTION_DAYS": "365"}, 365), ({"RETENTION_DAYS": "60"}, 60)],
)
def test_what_is_set_here_and_now_counts_also_where_a_daemon_holds_the_store(
    data_dir: Path, environment: dict[str, str], days: int, capsys: pytest.CaptureFixture[str]
):
    with daemon("--data-dir", str(data_dir)) as running:
        for where in (["--data-dir", str(data_dir)], ["--url", running.url.removesuffix("/mcp")]):
            assert run(["distill", "--dry-run", "--json", *where], environment, Path("/")) == 0
            facts = json.loads(capsys.readouterr().out)
            assert (facts["retention_days"], facts["pruned"]["prompt"]) == (days, int(days == 30))
        (data_dir / "convmem.env").write_text("CONVMEM_RETENTION_DAYS=90\n", encoding="utf-8")
        assert run(["distill", "--dry-run", "--json", "--data-dir", str(data_dir)], {}, Path("/")) == 0
        assert json.loads(capsys.readouterr().out)["retention_days"] == 90
