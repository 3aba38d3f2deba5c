"""What hooks saw: checked, cleaned, stored once."""

from typing import Any

import pytest

from convmem.errors import Busy, ConvmemError, Invalid
from convmem.limits import (
    CAPTURE_AHEAD_MS_MAX,
    CAPTURE_EVENTS_MAX,
    CAPTURE_KNOWN_MS,
    CAPTURE_TWIN_MS_MAX,
    CONTENT_BYTES_MAX,
)
from convmem.messages import capture, kept, queries
from convmem.messages.events import FingerprintKept
from convmem.messages.model import CAPTURE_KINDS, CAPTURE_ROLES, Message
from tests.support.filed import folded_from
from tests.support.folded import Folded, tables

DAY_MS = 24 * 3600 * 1000


def event(number: int = 1, **more: Any) -> dict[str, Any]:
    plain = {"event_id": f"e{number}", "kind": "prompt", "session_id": "s", "content": f"prompt number {number}"}
    return {name: value for name, value in {**plain, **more}.items() if value is not ...}


async def sent(folded: Folded, *events: Any) -> dict[str, Any]:
    return await capture.capture(folded, capture.given({"events": list(events)}))


def stored(folded: Folded) -> list[Message]:
    return list(queries.captured(folded.connection, kind=None, limit=1_000))[::-1]


def test_every_kind_has_a_role():
    assert set(CAPTURE_ROLES) == set(CAPTURE_KINDS)


async def test_an_event_is_a_message_of_its_role_in_the_short_tier_with_a_number_and_its_own_time():
    folded = Folded()
    facts = {"tool": "Bash", "status": "failed", "directory": "/srv/shop"}
    now = folded.clock.now_ms()
    answer = await sent(
        folded,
        event(1, at=now - 5 * DAY_MS, project="shop"),
        event(2, kind="tool_call", **facts),
        event(3, kind="error", content="it broke"),
    )
    assert answer == {"stored": 3, "replayed": 0, "dropped": []}
    prompt, call, error = stored(folded)
    assert (prompt.role, call.role, error.role) == ("user", "assistant", "system")
    assert [message.number for message in (prompt, call, error)] == [1, 2, 3]
    assert {message.metadata.memory_tier for message in (prompt, call, error)} == {"short"}
    assert (prompt.timestamp, prompt.updated_at, prompt.metadata.project) == (
        now - 5 * DAY_MS,
        now - 5 * DAY_MS,
        "shop",
    )
    assert prompt.sequence < call.sequence < error.sequence
    assert call.capture is not None
    assert call.capture.facts() == {"kind": "tool_call", "event_id": "e2", **facts}
    assert call.facts()["capture"] == call.capture.facts()
    assert "capture" not in (await folded.call("read_messages", view="history", session_id="other"))
    folded.prove()


async def test_a_clock_ahead_is_believed_a_little_and_none_is_the_daemons_own():
    folded = Folded()
    now = folded.clock.now_ms()
    await sent(folded, event(1, at=now + CAPTURE_AHEAD_MS_MAX), event(2, at=now + 10 * DAY_MS), event(3))
    assert [message.timestamp - now for message in stored(folded)] == [CAPTURE_AHEAD_MS_MAX, CAPTURE_AHEAD_MS_MAX, 0]


async def test_an_event_is_stored_once_however_often_it_comes():
    folded = Folded()
    await sent(folded, event(1), event(2))
    again = await sent(folded, event(2, content="said otherwise"), event(1), event(1, session_id="t"), event(2))
    assert again == {"stored": 1, "replayed": 3, "dropped": []}
    assert [message.content for message in stored(folded)] == [f"prompt number {number}" for number in (1, 2, 1)]
    folded.prove()


async def test_an_event_stays_known_when_its_message_is_deleted_and_the_log_is_compacted():
    folded = Folded()
    await sent(folded, event(1))
    (message,) = stored(folded)
    await folded.call("delete_message", message_id=message.message_id)
    records = list(kept.live(folded.connection))
    assert [type(record.event) for record in records] == [FingerprintKept]
    again = folded_from(records)
    assert tables(again)["messages_fingerprint"] == tables(folded.connection)["messages_fingerprint"]
    assert await sent(folded, event(1)) == {"stored": 0, "replayed": 1, "dropped": []}


async def test_an_event_is_forgotten_long_after_the_last_one_of_its_session():
    folded = Folded()
    await sent(folded, event(1), event(1, session_id="t"))
    folded.clock.pass_ms(CAPTURE_KNOWN_MS)
    assert (await sent(folded, event(1)))["replayed"] == 1, "a last event keeps nothing alive that writes nothing"
    await sent(folded, event(2, session_id="t"))
    folded.clock.pass_ms(1)
    await sent(folded, event(1, session_id="u"))
    assert await sent(folded, event(1), event(1, session_id="t")) == {"stored": 1, "replayed": 1, "dropped": []}
    folded.prove()


@pytest.mark.parametrize(
    ("apart_ms", "is_one"), [(0, True), (CAPTURE_TWIN_MS_MAX, True), (CAPTURE_TWIN_MS_MAX + 1, False)]
)
async def test_two_hooks_that_see_the_same_at_the_same_time_see_one_event(apart_ms: int, is_one: bool):
    folded = Folded()
    at = folded.clock.now_ms() - DAY_MS
    await sent(folded, event(1, at=at))
    twin = event(2, content="prompt number 1", at=at + apart_ms)
    assert (await sent(folded, twin))["replayed"] == is_one
    assert len(stored(folded)) == 2 - is_one
    folded.prove()


async def test_twins_do_not_chain():
    folded, apart_ms = Folded(), CAPTURE_TWIN_MS_MAX - 100
    at = folded.clock.now_ms() - DAY_MS
    again = [event(number, content="continue", at=at + number * apart_ms) for number in range(10)]
    assert (await sent(folded, *again))["stored"] == 5, "every second one is a twin of the one before"
    assert await sent(folded, *again) == {"stored": 0, "replayed": 10, "dropped": []}
    folded.prove()


async def test_a_twin_stays_known_when_the_one_that_was_stored_is_deleted():
    folded = Folded()
    await sent(folded, event(1))
    twin = event(2, content="prompt number 1")
    await sent(folded, twin)
    (message,) = stored(folded)
    await folded.call("delete_message", message_id=message.message_id)
    folded.clock.pass_ms(DAY_MS)
    assert (await sent(folded, twin))["replayed"] == 1
    folded.prove()


async def test_no_twin_is_of_another_kind_or_session():
    folded = Folded()
    same = {"content": "the same"}
    await sent(folded, event(1, **same), event(2, kind="error", **same), event(3, session_id="t", **same))
    assert len(stored(folded)) == 3


async def test_secrets_are_taken_out_and_then_the_text_is_cut():
    folded = Folded()
    key = "sk-proj-" + "FAKE0000" * 5
    await sent(
        folded,
        event(1, content=f"use {key} " + "あ" * 5_000),
        event(2, kind="tool_call", content="x" * 3_980 + key, tool=f"fetch {key}", directory=f"/srv/{key}"),
        event(3, kind="error", content="🟡" * 501, session_id=f"s {key}"),
    )
    prompt, call, error = stored(folded)
    assert (len(prompt.content), len(call.content), len(error.content)) == (4_000, 500, 500)
    assert prompt.content.startswith("use [REDACTED:")
    assert prompt.content.endswith("あ…")
    everything = repr(tables(folded.connection))
    assert "FAKE0000" not in everything
    assert error.session_id.startswith("s [REDACTED:")


async def test_what_is_no_event_at_all_is_named_and_keeps_no_other_one_out():
    folded = Folded()
    answer = await sent(folded, event(1), 5, None, ["prompt"], event(2))
    assert (answer["stored"], [one["index"] for one in answer["dropped"]]) == (2, [1, 2, 3])
    with pytest.raises(Invalid) as refused:
        await sent(folded, "prompt")
    assert refused.value.details["field"] == "events.0"


async def test_a_client_may_tell_of_its_spool_alone():
    body = capture.given({"events": [], "spool": {"depth": 0, "dropped": 3}})
    assert await capture.capture(Folded(), body) == {"stored": 0, "replayed": 0, "dropped": []}


async def test_a_blank_event_is_not_stored_and_is_said():
    folded = Folded()
    answer = await sent(folded, event(1, content=" \n\t\u3000"), event(2))
    assert answer["stored"] == 1
    assert [(one["index"], one["event_id"], one["code"]) for one in answer["dropped"]] == [(0, "e1", "BLANK")]
    assert (await sent(folded, event(1, content="")))["dropped"][0]["code"] == "BLANK"


# What is wrong with an event, and the field that is named.
WRONG: list[tuple[dict[str, Any], str | None]] = [
    ({"kind": "thought"}, "kind"),
    ({"event_id": ...}, "event_id"),
    ({"event_id": ""}, "event_id"),
    ({"event_id": "e" * 257}, "event_id"),
    ({"event_id": "e\0"}, "event_id"),
    ({"session_id": 7}, "session_id"),
    ({"content": None}, "content"),
    ({"content": "x" * (CONTENT_BYTES_MAX + 1)}, "content"),
    ({"at": -1}, "at"),
    ({"at": "yesterday"}, "at"),
    ({"tool": "t" * 257}, "tool"),
    ({"status": "s" * 65}, "status"),
    ({"directory": "d\0"}, "directory"),
    ({"capture": {"kind": "prompt"}}, "capture"),
    ({"memory_tier": "long"}, "memory_tier"),
]


@pytest.mark.parametrize(("wrong", "field"), WRONG)
async def test_a_wrong_event_is_named_and_keeps_no_other_one_out(wrong: dict[str, Any], field: str):
    folded = Folded()
    answer = await sent(folded, event(1), event(2, **wrong), event(3))
    assert (answer["stored"], [(one["index"], one["field"]) for one in answer["dropped"]]) == (2, [(1, field)])


@pytest.mark.parametrize(("wrong", "field"), WRONG)
async def test_a_request_of_wrong_events_only_is_refused(wrong: dict[str, Any], field: str):
    folded = Folded()
    with pytest.raises(Invalid) as refused:
        await sent(folded, event(1, **wrong))
    assert (refused.value.code, refused.value.details["field"]) == ("VALIDATION_ERROR", f"events.0.{field}")
    assert stored(folded) == []


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "events"),
        ({"events": []}, "events"),
        ({"events": [event(number) for number in range(CAPTURE_EVENTS_MAX + 1)]}, "events"),
        ({"events": [event()], "more": 1}, "more"),
        ({"events": [event()], "spool": {"depth": -1}}, "spool.depth"),
        ({"events": [event()], "spool": {"depth": 1, "dropped": True}}, "spool.dropped"),
    ],
)
def test_a_body_that_is_none_is_refused(body: dict[str, Any], field: str):
    with pytest.raises(Invalid) as refused:
        capture.given(body)
    assert refused.value.details["field"] == field


async def test_what_is_not_known_to_be_stored_is_not_said_to_be():
    class Full(Folded):
        async def write(self, command: Any) -> Any:
            if command.event_id == "e2":
                raise Busy("the mailbox is full", retry_after_ms=100)
            return await super().write(command)

    folded = Full()
    with pytest.raises(ConvmemError) as refused:
        await sent(folded, event(1), event(2), event(3))
    assert refused.value.code == "BUSY"
    assert [message.content[-1] for message in stored(folded)] == ["1", "3"], "each is a command of its own"
    assert (await sent(Folded(), event(1)))["stored"] == 1


async def test_much_text_is_cleaned_all_the_same():
    folded = Folded()
    key = "ghp_" + "FAKE" * 9
    await sent(folded, *(event(number, content=f"{number} {key} " + "x" * 20_000) for number in range(3)))
    assert [message.content[:4] for message in stored(folded)] == ["0 [R", "1 [R", "2 [R"]
