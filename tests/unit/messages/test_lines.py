"""A live message to its line and back."""

import msgspec
import pytest

from convmem.domain import Kept, Origin, Record
from convmem.errors import Conflict
from convmem.limits import REVISION_MAX
from convmem.messages import lines
from convmem.messages.events import MessageKept
from convmem.messages.line_checks import check, check_quickly
from convmem.messages.model import Capture, Relation
from tests.support.filed import ULIDS, message

FULL = Kept(
    7,
    1_000,
    Origin("laptop", "http", "agent/1"),
    MessageKept(
        message_id=ULIDS[0],
        session_id="s",
        role="assistant",
        content="日本\u2028🟡\0\x7f",
        revision=3,
        updated_at=2_000,
        changed_sequence=9,
        tool_call_id="t",
        tags=("a", "b"),
        memory_tier="long",
        memory_kind="summary",
        importance=4,
        summary="sum",
        relations=(Relation(type="r", message_id=ULIDS[1]),),
        source_message_ids=(ULIDS[2],),
        project="p",
    ),
)
BARE = Kept(7, 1_000, Origin("laptop", ""), MessageKept(message_id=ULIDS[0], session_id="s", role="user", content=""))

CAPTURED = Kept(
    7,
    1_000,
    Origin("laptop", ""),
    MessageKept(
        message_id=ULIDS[0],
        session_id="s",
        role="user",
        content="seen",
        capture=Capture(kind="prompt", event_id="e"),
        number=4,
    ),
)


@pytest.mark.parametrize("kept", [FULL, BARE])
def test_a_line_read_back_is_the_same_record_but_for_where_it_stood(kept: Kept):
    line = lines.encode(kept)
    event = msgspec.structs.replace(kept.event, changed_sequence=None)
    assert lines.decode(line) == Record(kept.at_ms, kept.origin, event)
    named = check_quickly(line)
    assert named is not None
    assert named.identity == lines.identify(kept)


def test_a_line_of_others_is_read_by_the_same_rules_as_an_argument():
    other = message(0, message_id=ULIDS[0].lower(), metadata={"tags": ["a", "b", "a"]})
    other["metadata"]["relations"] = [{"type": "r", "message_id": ULIDS[1].lower()}]
    other["metadata"]["source_message_ids"] = [ULIDS[2].lower()]
    event = lines.decode(msgspec.json.encode(other)).event
    assert isinstance(event, MessageKept)
    assert (event.message_id, event.tags) == (ULIDS[0], ("a", "b"))
    assert (event.relations[0].message_id, event.source_message_ids) == (ULIDS[1], (ULIDS[2],))


def test_null_is_absent_wherever_a_field_may_be_absent():
    nulls = dict.fromkeys(("tool_call_id", "summary", "project"))
    origin = {"device": "laptop", "transport": "http"}
    theirs = message(0, metadata=nulls, origin=origin | {"client": None}, capture=None)
    check(theirs)
    assert lines.decode(msgspec.json.encode(theirs)) == lines.decode(msgspec.json.encode(message(0, origin=origin)))


@pytest.mark.parametrize("kept", [FULL, BARE, CAPTURED])
def test_a_message_is_the_same_if_a_file_of_the_store_would_hold_this_line(kept: Kept):
    record = lines.decode(lines.encode(kept))
    assert lines.is_same(kept, record)
    assert not lines.is_same(kept, record._replace(at_ms=kept.at_ms + 1))
    assert not lines.is_same(kept, record._replace(origin=Origin("other", "http")))
    for field, value in (("content", "other"), ("revision", 7), ("updated_at", 9_000), ("tags", ("c",))):
        assert not lines.is_same(kept, record._replace(event=msgspec.structs.replace(record.event, **{field: value})))


def test_the_record_that_replaces_another_keeps_its_place_alone():
    theirs = lines.decode(msgspec.json.encode(message(0, content="theirs")))
    replaced = lines.replacing(FULL, theirs, 20)
    assert (replaced.sequence, replaced.at_ms, replaced.origin) == (7, theirs.at_ms, theirs.origin)
    assert replaced.event == msgspec.structs.replace(theirs.event, revision=4, changed_sequence=20)
    last = FULL._replace(event=msgspec.structs.replace(FULL.event, revision=REVISION_MAX))
    with pytest.raises(Conflict):
        lines.replacing(last, theirs, 20)
