"""memory/history: prompts of users by what they say, each by the part that matches."""

import pytest

from tests.support.memory_tools import HOSTILE, ask, is_fenced, result_bytes
from tests.support.remembered import Remembered


async def test_only_prompts_that_hooks_captured_are_found(remembered: Remembered):
    remembered.capture("how do I rebase a branch", project="shop")
    remembered.capture("git rebase --continue", kind="tool_call", tool="bash")
    remembered.capture("rebase failed", kind="error")
    remembered.write_message("rebase is a verb")
    reply = await ask(remembered, "search_history", query="rebase")
    (found,) = reply.facts["history"]
    assert reply.facts["complete"] is True
    assert found == {
        "message_id": found["message_id"],
        "number": 1,
        "kind": "prompt",
        "session_id": "hook",
        "timestamp": found["timestamp"],
        "role": "user",
        "project": "shop",
        "snippet": "how do I rebase a branch",
        "snippet_start": 0,
        "total_bytes": 24,
        "origin": {"device": "local", "transport": "test"},
    }
    assert reply.text.split("\n")[1:] == ["[history]", reply.text.split("\n")[2]]
    assert reply.text.endswith(" [prompt] (local; project shop) how do I rebase a branch")


async def test_nothing_found_is_said_plainly(remembered: Remembered):
    remembered.capture("how do I rebase a branch")
    reply = await ask(remembered, "search_history", query="kubernetes")
    assert (reply.facts["history"], reply.text) == ([], "Nothing was found in the history of prompts.")


async def test_the_best_comes_first_then_the_newest(remembered: Remembered):
    remembered.capture("rename a branch and rebase it onto main")
    for number in range(3):
        remembered.capture("rebase", event_id=f"same {number}", session_id=f"s{number}")
    reply = await ask(remembered, "search_history", query="rebase onto main")
    assert [found["number"] for found in reply.facts["history"]] == [1, 4, 3, 2]
    assert "more" not in reply.facts
    some = await ask(remembered, "search_history", query="rebase", limit=2)
    assert [found["number"] for found in some.facts["history"]] == [4, 3]
    assert (some.facts["more"], some.facts["at_least"]) == ({"history": 1}, ["history"])
    assert some.text.endswith("\n… and at least 1 more")


async def test_a_project_is_a_filter(remembered: Remembered):
    for project in ("shop", "clock", None):
        remembered.capture(f"rebase for {project}", **({"project": project} if project else {}))
    reply = await ask(remembered, "search_history", query="rebase", project="clock")
    assert [found["project"] for found in reply.facts["history"]] == ["clock"]


async def test_a_snippet_stands_around_the_match_and_says_where_it_is_cut(remembered: Remembered):
    remembered.capture(f"{'before ' * 200}the needle is here{' behind' * 200}")
    reply = await ask(remembered, "search_history", query="needle")
    (found,) = reply.facts["history"]
    assert len(found["snippet"]) == 200
    assert "needle" in found["snippet"][:40]
    assert found["snippet_start"] > 1_300
    shown = reply.text.split("\n")[2].partition(") ")[2]
    assert shown.startswith("…")
    assert shown.endswith("…")
    assert "needle" in shown


async def test_a_match_near_the_end_shows_what_stands_before_it(remembered: Remembered):
    remembered.capture(f"{'before ' * 100}needle")
    (found,) = (await ask(remembered, "search_history", query="needle")).facts["history"]
    assert found["snippet"].endswith("needle")
    assert len(found["snippet"]) == 200


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text[:12]))
async def test_a_prompt_of_any_kind_stays_inside_its_quotation(remembered: Remembered, text: str):
    for number in range(12):
        remembered.capture(f"needle {text}", event_id=f"event {number}", session_id=f"session {number}")
    reply = await ask(remembered, "search_history", query="needle")
    assert len(reply.facts["history"]) == 10
    assert is_fenced(reply.text)
    assert result_bytes(reply) < 64 * 1024


async def test_a_query_of_500_wide_characters_is_searched_for(remembered: Remembered):
    remembered.capture("漢字" * 250)
    reply = await ask(remembered, "search_history", query="漢字" * 250)
    assert [found["number"] for found in reply.facts["history"]] == [1]
