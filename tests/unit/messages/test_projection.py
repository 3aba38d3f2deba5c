"""The index is what the log says, row by row, whatever the order of changes."""

from typing import Any

import apsw
import pytest

from convmem.domain import Origin, Place
from convmem.limits import TIME_MS_MAX
from convmem.messages import DOMAIN, left_behind, projection
from convmem.messages.events import (
    FingerprintKept,
    MessageDeleted,
    MessageKept,
    MessageUpdated,
    MessageWritten,
    ReceiptKept,
    SourceForgotten,
)
from convmem.messages.inputs import CaptureEvent
from tests.support.folded import DECODER, Folded

GROUPS = "SELECT session_id, project, memory_kind, count, first_at, last_at FROM messages_group ORDER BY 1, 2, 3"


def rows(folded: Folded, query: str) -> list[Any]:
    return folded.connection.execute(query).fetchall()


async def test_groups_count_live_messages_and_keep_their_times(folded: Folded):
    ids = []
    for _ in range(3):
        ids.append(await folded.say("x", project="p"))
        folded.clock.pass_ms(10)
    start = folded.clock.at_ms - 30
    assert rows(folded, GROUPS) == [("s", "p", "conversation", 3, start, start + 20)]
    await folded.call("delete_message", message_id=ids[2])
    assert rows(folded, GROUPS) == [("s", "p", "conversation", 2, start, start + 10)]
    await folded.call("update_message", message_id=ids[0], metadata={"memory_kind": "semantic", "project": None})
    assert rows(folded, GROUPS) == [
        ("s", None, "semantic", 1, start, start),
        ("s", "p", "conversation", 1, start + 10, start + 10),
    ]
    for message_id in ids[:2]:
        await folded.call("delete_message", message_id=message_id)
    assert rows(folded, GROUPS) == []


async def test_an_empty_project_is_not_the_absent_one(folded: Folded):
    await folded.say("x", project="")
    await folded.say("y")
    assert [row[1] for row in rows(folded, GROUPS)] == [None, ""]


async def test_a_deleted_message_leaves_nothing_but_what_others_say_of_it(folded: Folded):
    target = await folded.say("target", tags=["t"], summary="secret")
    links = {"relations": [{"type": "after", "message_id": target}], "source_message_ids": [target]}
    await folded.say("pointing", **links)
    await folded.call("delete_message", message_id=target)
    assert rows(folded, "SELECT * FROM messages_tag") == []
    assert rows(folded, "SELECT sequence, target_id FROM messages_relation") == [(2, target)]
    assert rows(folded, "SELECT sequence, target_id FROM messages_source") == [(2, target)]
    assert rows(folded, "SELECT * FROM messages_total") == [("deleted", 1)]
    assert len(rows(folded, "SELECT * FROM messages_message")) == 1


async def test_lists_are_replaced_not_merged(folded: Folded):
    first, second = await folded.say("1"), await folded.say("2")
    message_id = await folded.say("x", tags=["a", "b"], source_message_ids=[first, second])
    await folded.call(
        "update_message", message_id=message_id, metadata={"tags": ["b", "c"], "source_message_ids": [second]}
    )
    assert rows(folded, "SELECT tag FROM messages_tag ORDER BY tag") == [("b",), ("c",)]
    assert rows(folded, "SELECT target_id FROM messages_source") == [(second,)]
    assert rows(folded, "SELECT links FROM messages_message WHERE sequence = 3") == [(1,)]


@pytest.mark.parametrize(
    ("content", "folded_content"),
    [("ASCII Text", None), ("日本語", None), ("日本Ａ", "日本a"), ("É", "é"), ("x\0É", "x\0é"), ("", None)],
)
async def test_folded_text_is_kept_only_where_sqlite_would_fold_otherwise(
    folded: Folded, content: str, folded_content: str | None
):
    await folded.say(content)
    kept = rows(folded, "SELECT folded_content, coalesce(folded_content, lower(content)) FROM messages_message")
    assert kept == [(folded_content, projection.fold(content))]


async def test_labels_follow_summary_and_tags_alone(folded: Folded):
    message_id = await folded.say("x", summary="Ａ")
    labels = "SELECT folded_labels FROM messages_message"
    assert rows(folded, labels) == [("a",)]
    await folded.call("update_message", message_id=message_id, metadata={"tags": ["B", "C"]})
    assert rows(folded, labels) == [("a\0b\0c",)]
    await folded.call("update_message", message_id=message_id, metadata={"summary": None})
    assert rows(folded, labels) == [("b\0c",)]
    await folded.call("update_message", message_id=message_id, metadata={"tags": None})
    assert rows(folded, labels) == [(None,)]


async def test_the_content_has_its_size_in_bytes(folded: Folded):
    message_id = await folded.say("日\0")
    assert rows(folded, "SELECT content_bytes FROM messages_message") == [(4,)]
    await folded.call("update_message", message_id=message_id, content="é")
    assert rows(folded, "SELECT content_bytes FROM messages_message") == [(2,)]


FINGERPRINTS = "SELECT event, text, timestamp, received_at, sequence FROM messages_fingerprint ORDER BY sequence"
SESSIONS = "SELECT session, last_at FROM messages_captured_session ORDER BY session"


def known(folded: Folded, sequence: int, at_ms: int, session: bytes, event: bytes, text: bytes = b"t") -> None:
    kept = FingerprintKept(session=session, event=event, text=text, timestamp=at_ms)
    left_behind.fingerprint_kept(folded.connection, kept, Place(sequence, at_ms, Origin("local", "")))


def test_of_two_fingerprints_of_one_event_the_first_is_left_as_it_is():
    folded = Folded()
    known(folded, 1, 50, b"s", b"e")
    known(folded, 2, 90, b"s", b"e", b"other")
    assert rows(folded, FINGERPRINTS) == [(b"e", b"t", 50, 50, 1)]
    assert rows(folded, SESSIONS) == [(b"s", 50)], "the rows are those that a compacted log would fold to"
    known(folded, 3, 90, b"s", b"f")
    assert rows(folded, SESSIONS) == [(b"s", 90)]
    assert DOMAIN.check(folded.connection) == []


def test_no_time_that_a_file_may_say_makes_other_sessions_forgotten():
    folded = Folded()
    folded.commit(CaptureEvent(event_id="1", kind="prompt", session_id="own", content="seen"))
    for sequence, at_ms in ((2, 0), (3, TIME_MS_MAX), (4, 1)):
        known(folded, sequence, at_ms, b"s%d" % sequence, b"e%d" % sequence)
    assert len(rows(folded, FINGERPRINTS)) == len(rows(folded, SESSIONS)) == 4
    folded.sequence = 4
    folded.commit(CaptureEvent(event_id="2", kind="prompt", session_id="own", content="seen next"))
    assert [row[-1] for row in rows(folded, FINGERPRINTS)] == [1, 3, 5], "its own clock tells the store what is over"
    assert DOMAIN.check(folded.connection) == []


def test_an_update_of_what_is_not_there_is_a_fault_of_ours():
    folded = Folded()
    place = Place(1, 1, Origin("local", "test"))
    for event in (MessageUpdated(message_id="x", revision=2), MessageDeleted(message_id="x")):
        with pytest.raises(AssertionError):
            projection.APPLIERS[type(event)](folded.connection, event, place)


def test_every_event_has_its_applier():
    assert set(projection.APPLIERS) == {
        MessageWritten,
        MessageUpdated,
        MessageDeleted,
        MessageKept,
        ReceiptKept,
        FingerprintKept,
        SourceForgotten,
    }
    assert DECODER is not None


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT timestamp FROM messages_message WHERE session_id = ?1 AND memory_kind = ?2 AND project IS ?3"
        " ORDER BY timestamp LIMIT 1",
        "UPDATE messages_group SET count = count WHERE session_id = ?1 AND memory_kind = ?2 AND project IS ?3",
        "DELETE FROM messages_receipt WHERE timestamp < ?1",
        "DELETE FROM messages_relation WHERE sequence = ?1",
    ],
)
def test_no_change_walks_a_whole_table(statement: str):
    connection: apsw.Connection = Folded().connection
    bindings = ("s", "k", None)[: statement.count("?")]
    plan = connection.execute(f"EXPLAIN QUERY PLAN {statement}", bindings).fetchall()
    assert not [row for row in plan if "SCAN" in str(row[3]) or "TEMP" in str(row[3])]
