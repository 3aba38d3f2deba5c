"""What lies in contrib is true: tools and arguments that it names exist, commands parse, files are what they say."""

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import typer.main

from convmem.catalog import PROFILES, Catalog
from convmem.cli import app
from convmem.daemon import domains
from convmem.memory.model import CATEGORIES, SOURCES
from tests.support.pages import section, table
from tests.support.source import REPOSITORY

CONTRIB = REPOSITORY / "contrib"
PROTOCOL = (CONTRIB / "memory-protocol.md").read_text(encoding="utf-8")
PIECE = (CONTRIB / "AGENTS.memory.example.md").read_text(encoding="utf-8")
PLUGIN = sorted((CONTRIB / "opencode").glob("*.ts"))
SETTINGS = json.loads((CONTRIB / "claude-code" / "settings.example.json").read_text(encoding="utf-8"))
CATALOG = Catalog(domains())
TOOLS = PROFILES["memory"]
SECTIONS = {"identity", "goals", "style", "notes", "usage_stats", "topics"}
KEYS_THAT_ARE_EXAMPLES = {"test_framework", "framework_we_discussed_on_monday"}
MODULE_LINES_MAX, README_LINES_MAX, PIECE_LINES_MAX = 300, 5, 15
COMMANDS = [
    (event, entry["command"])
    for event, matchers in SETTINGS["hooks"].items()
    for matcher in matchers
    for entry in matcher["hooks"]
]


def arguments(tool: str) -> set[str]:
    return set(CATALOG.schemas[tool]["properties"])


def choices() -> set[str]:
    """Every value that one of these tools lists."""
    schemas = [inner for tool in TOOLS for inner in CATALOG.schemas[tool]["properties"].values()]
    return {value for schema in schemas for value in schema.get("enum", ())}


def named(text: str) -> set[str]:
    """The words of a page that stand between backticks and look like a name of ours."""
    return {word for word in re.findall(r"`([^`]+)`", text) if re.fullmatch(r"[a-z]+(?:_[a-z]+)*", word)}


@pytest.mark.parametrize("page", [PROTOCOL, PIECE], ids=["protocol", "piece"])
def test_every_name_that_a_page_tells_an_agent_exists(page):
    known = {*TOOLS, *choices(), *SECTIONS, *KEYS_THAT_ARE_EXAMPLES, "convmem"}
    known |= set().union(*map(arguments, TOOLS))
    assert {"get_profile", "recall", "save_lesson", "remember", "forget"} <= named(page)
    assert named(page) <= known


def test_the_protocol_names_every_tool_of_memory_and_no_argument_that_it_lacks():
    calls = re.findall(r"`([a-z_]+)`(?: once)?(?: with [^(|;,]*)? \(((?:`[a-z_]+`(?:, )?)+)\)", PROTOCOL)
    assert len(calls) >= 8
    for tool, given in calls:
        if tool in TOOLS:
            assert named(given) <= arguments(tool), tool
    assert set(TOOLS) <= named(PROTOCOL)


def test_what_a_lesson_and_a_preference_need_is_said():
    rows = {row[1]: row[0] for row in table(section(PROTOCOL, "When to call what"))}
    for tool in ("remember", "save_lesson", "forget"):
        required = set(CATALOG.schemas[tool]["required"])
        assert any(f"`{tool}` (" in call and required <= named(call) for call in rows), tool


def test_the_choices_that_the_protocol_lists_are_those_of_the_tools():
    (listed,) = re.findall(r"`category` is one of ((?:`[a-z_]+`(?:, )?)+)", PROTOCOL)
    assert re.findall("`([a-z_]+)`", listed) == list(CATEGORIES)
    assert set(re.findall("`source` `([a-z_]+)`", PROTOCOL + PIECE)) <= set(SOURCES)
    assert set(re.findall("`kind` `([a-z_]+)`", PROTOCOL)) <= choices()


@pytest.mark.parametrize("page", [PROTOCOL, PIECE], ids=["protocol", "piece"])
def test_both_pages_hold_the_rules(page):
    words = " ".join(page.lower().split())
    for rule in ("not on every message", "never guess", "never store", "instruction", "go on without"):
        assert rule in words, rule
    assert re.search("after (a yes|you have said)", words), "forget only after confirming"


def test_the_piece_is_short_enough_to_be_in_every_context():
    assert PIECE.count("\n") <= PIECE_LINES_MAX


def test_the_limits_that_the_protocol_asks_for_are_allowed():
    asked = [int(number) for number in re.findall(r"`limit`(?: of)? (\d+)", PROTOCOL)]
    assert asked
    assert max(asked) <= CATALOG.schemas["get_recent_interactions"]["properties"]["limit"]["maximum"]


def test_verbs_that_the_pages_name_exist():
    verbs = set(typer.main.get_command(app).commands)  # type: ignore[attr-defined]
    for path in sorted(CONTRIB.rglob("*.md")):
        for code in re.findall(r"`convmem ([a-z]+)", path.read_text(encoding="utf-8")):
            assert code in verbs, f"{path.name}: convmem {code}"


def test_the_readme_says_what_lies_where():
    lines = (CONTRIB / "README.md").read_text(encoding="utf-8").splitlines()
    said = {line.split("`")[1].rstrip("/") for line in lines if line.startswith("- `")}
    assert said == {path.name for path in CONTRIB.iterdir()} - {"README.md"}


@pytest.mark.parametrize("folder", ["opencode", "claude-code"])
def test_a_readme_is_a_few_steps_and_names_files_that_exist(folder):
    text = (CONTRIB / folder / "README.md").read_text(encoding="utf-8")
    steps = [line for line in text.splitlines() if re.match(r"\d\. ", line)]
    assert 1 <= len(steps) <= README_LINES_MAX
    assert text.count("\n") == len(steps) + 2
    for name in re.findall(r"`(?:\.\./)?((?:contrib/)?[A-Za-z.-]+\.(?:md|json))`", text):
        assert any((place / name).is_file() for place in (CONTRIB, CONTRIB / folder, REPOSITORY)), name


@pytest.mark.parametrize("path", PLUGIN, ids=lambda path: path.name)
def test_a_module_of_the_plugin_says_what_it_is_for_and_can_be_read_at_once(path: Path):
    text = path.read_text(encoding="utf-8")
    assert text.startswith(("/**\n * ", "// "))
    assert text.count("\n") <= MODULE_LINES_MAX
    assert max(map(len, text.splitlines())) <= 120 or path.name == "redaction.ts"


def test_the_plugin_needs_nothing_but_what_its_host_has():
    package = json.loads((CONTRIB / "opencode" / "package.json").read_text(encoding="utf-8"))
    assert "dependencies" not in package
    assert set(package["devDependencies"]) == {"typescript", "@opencode-ai/plugin", "@types/node"}
    assert all(asked.startswith(">=") for asked in package["devDependencies"].values())
    for path in PLUGIN:
        for statement in re.findall(r"^import .*$", path.read_text(encoding="utf-8"), re.MULTILINE):
            where = statement.split('"')[1]
            is_own = where.startswith("./") and (path.parent / where).is_file()
            assert is_own or where.startswith("node:") or statement.startswith("import type "), statement


def test_the_entry_of_the_plugin_exports_the_plugin_alone():
    """OpenCode calls every export of it as a plugin."""
    entry = (CONTRIB / "opencode" / "convmem.ts").read_text(encoding="utf-8")
    assert re.findall(r"^export .*$", entry, re.MULTILINE) == [
        "export const ConvmemPlugin: Plugin = async ({ directory, worktree }) => {"
    ]


def test_the_example_for_opencode_names_what_the_readme_copies():
    example = json.loads((CONTRIB / "opencode" / "opencode.example.json").read_text(encoding="utf-8"))
    assert example["$schema"] == "https://opencode.ai/config.json"
    assert example["plugin"] == ["./convmem/convmem.ts"]
    assert [Path(path).name for path in example["instructions"]] == ["AGENTS.memory.example.md"]
    assert example["mcp"]["convmem"]["url"] == "http://127.0.0.1:8484/mcp"
    assert example["mcp"]["convmem"]["headers"] == {"Authorization": "Bearer {env:CONVMEM_TOKEN}"}


def test_the_hooks_of_claude_code_are_the_ones_that_are_needed():
    events = {event for event, _ in COMMANDS}
    assert {"UserPromptSubmit", "PostToolUse", "SessionStart", "PreCompact", "SessionEnd"} <= events
    assert "PostToolUseFailure" in events
    for matchers in SETTINGS["hooks"].values():
        for matcher in matchers:
            assert set(matcher) <= {"matcher", "hooks"}
            for entry in matcher["hooks"]:
                assert set(entry) == {"type", "command", "timeout"}
                assert entry["type"] == "command"
                assert 0 < entry["timeout"] <= 10


def test_what_convmem_answered_is_not_captured_again():
    for event in ("PostToolUse", "PostToolUseFailure"):
        (matcher,) = SETTINGS["hooks"][event]
        assert not re.search(matcher["matcher"], "mcp__convmem__recall")
        for tool in ("Bash", "Edit", "mcp__tracker__list"):
            assert re.search(matcher["matcher"], tool)


@pytest.mark.parametrize(("event", "command"), COMMANDS, ids=[event for event, _ in COMMANDS])
def test_a_command_is_posix_shell(event: str, command: str, tmp_path: Path):
    assert subprocess.run(["sh", "-n", "-c", command], capture_output=True).returncode == 0
    assert shlex.split(command)
    if shellcheck := shutil.which("shellcheck"):
        script = tmp_path / f"{event}.sh"
        script.write_text(f"#!/bin/sh\n{command}\n", encoding="utf-8")
        ran = subprocess.run([shellcheck, str(script)], capture_output=True, text=True)
        assert ran.returncode == 0, ran.stdout
