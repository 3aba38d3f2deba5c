"""What another program's file says becomes a message once, follows that file, and stays away once it is deleted."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convmem.errors import Invalid
from convmem.messages import queries
from convmem.messages.imports import OUTCOMES
from convmem.messages.inputs import UpdateMessage
from convmem.messages.model import Message
from tests.support.folded import tables
from tests.support.remembered import BOTH, Remembered, exported, folded_from, taken, violations


def read(store: Remembered, answer: dict[str, Any]) -> Message:
    message = queries.read_message(store.connection, answer["message_id"])
    assert message is not None
    return message


def test_a_message_has_the_time_the_words_and_the_ids_of_its_file():
    store = Remembered()
    answer = store.import_message(
        role="assistant", tags=["branch"], kind="episode", project="p", tool_call_id="t", summary="title", account="me"
    )
    assert answer["outcome"] == "stored"
    message = read(store, answer)
    assert (message.timestamp, message.updated_at, message.revision) == (1_000, 1_000, 1)
    assert (message.session_id, message.role, message.content) == ("chatgpt:c", "assistant", "said elsewhere")
    facts = message.facts()
    assert facts["metadata"]["tags"] == ["branch"]
    assert (
        facts["imported"].items()
        >= {
            "format": "chatgpt",
            "conversation": "c",
            "message": "m",
            "account": "me",
        }.items()
    )
    assert len(facts["imported"]["source"]) == 32
    store.prove()


def test_without_a_time_it_is_the_entry_s():
    store = Remembered()
    assert read(store, store.import_message(at=None)).timestamp == store.clock.now_ms()


def test_the_same_file_again_writes_nothing_also_where_the_message_was_changed_here():
    store = Remembered()
    first = store.import_message()
    log = len(store.log)
    assert store.import_message() == {"outcome": "same", "message_id": first["message_id"]}
    assert len(store.log) == log
    store._commit(UpdateMessage, {"message_id": first["message_id"], "content": "corrected here"})
    assert store.import_message()["outcome"] == "same"
    assert read(store, first).content == "corrected here"


def test_a_file_that_says_otherwise_changes_what_differs():
    store = Remembered()
    first = store.import_message(tags=["branch"])
    again = store.import_message(content="said better", tags=[])
    assert again == {"outcome": "updated", "message_id": first["message_id"]}
    message = read(store, first)
    assert (message.content, message.metadata.tags, message.revision, message.timestamp) == (
        "said better",
        (),
        2,
        1_000,
    )
    assert store.import_message(content="said better", tags=[])["outcome"] == "same"
    store.prove()


@pytest.mark.parametrize("more", [{"format": "other"}, {"account": "you"}, {"conversation": "d"}, {"message_id": "n"}])
def test_another_source_is_another_message(more: dict[str, Any]):
    store = Remembered()
    store.import_message()
    assert store.import_message(**more)["outcome"] == "stored"


def test_what_was_deleted_stays_deleted_also_behind_a_compaction_and_comes_back_when_it_is_told_to():
    store = Remembered()
    first = store.import_message()
    store.delete_message(first["message_id"])
    assert store.import_message() == {"outcome": "stays_deleted"}
    compacted = folded_from(list(BOTH.live(store.connection)))
    assert tables(compacted)["messages_forgotten"] == tables(store.connection)["messages_forgotten"] != []
    store.connection = compacted
    assert store.import_message(content="another")["outcome"] == "stays_deleted"
    back = store.import_message(resurrect=True)
    assert back["outcome"] == "stored"
    assert store.import_message()["outcome"] == "same"
    store.delete_message(back["message_id"])
    assert store.import_message()["outcome"] == "stays_deleted"
    assert violations(store.connection) == []


def test_links_lead_to_messages_that_are_there_and_the_others_are_counted():
    store = Remembered()
    target = store.import_message("target")
    links = [{"type": "continues", "conversation": "c", "id": name} for name in ("target", "nowhere")]
    answer = store.import_message("m", links=links)
    assert answer["links_missing"] == 1
    (relation,) = read(store, answer).metadata.relations
    assert (relation.type, relation.message_id) == ("continues", target["message_id"])


def test_what_a_hook_captured_elsewhere_is_an_interaction_here():
    store = Remembered()
    captured = {"kind": "error", "tool": "bash", "status": "failed"}
    message = read(store, store.import_message(captured=captured, role="user"))
    assert (message.role, message.number, message.metadata.memory_tier) == ("system", 1, "short")
    assert message.capture is not None
    assert (message.capture.kind, message.capture.tool) == ("error", "bash")
    store.prove()


def test_an_export_keeps_where_messages_are_from_and_the_file_is_known_in_the_other_store():
    store = Remembered()
    store.import_message(account="me")
    store.import_message("captured", captured={"kind": "prompt"})
    data = exported(store.connection)
    _, records = taken(data)
    other = Remembered()
    other.connection = folded_from(records)
    assert exported(other.connection) == data
    assert other.import_message(account="me")["outcome"] == "same"


def test_two_records_of_a_file_that_say_one_source_are_two_messages():
    store = Remembered()
    store.import_message()
    line = exported(store.connection).split(b"\n")[1]
    twin = line.replace(store.live()[0].event.message_id.encode(), b"7ZZZZZZZZZZZZZZZZZZZZZZZZZ")  # type: ignore[attr-defined]
    data = exported(store.connection).replace(b'"records":1', b'"records":2')
    _, records = taken(data + twin + b"\n")
    other = Remembered()
    other.connection = folded_from(records)
    assert queries.totals(other.connection).live == 2
    assert other.import_message()["outcome"] == "same"


@pytest.mark.parametrize(
    "wrong",
    [
        {"role": "tool"},
        {"at": -1},
        {"format": ""},
        {"conversation": "a\0b"},
        {"message_id": "x" * 513},
        {"links": [{"type": "t"}]},
        {"captured": {"kind": "other"}},
    ],
)
def test_what_no_file_can_mean_is_refused(wrong: dict[str, Any]):
    with pytest.raises(Invalid):
        Remembered().import_message(**wrong)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["import", "import", "delete", "edit", "resurrect", "compact"]),
        st.integers(0, 2),
        st.integers(0, 2),
    ),
    max_size=14,
)


@given(STEPS)
@settings(max_examples=150, deadline=None)
def test_any_history_of_imports_and_deletions_follows_the_rule(steps: list[Any]):
    store = Remembered()
    said: dict[str, int | None] = {}
    ids: dict[str, str] = {}
    for step, number, version in steps:
        name = f"m{number}"
        if step in ("import", "resurrect"):
            known, gone = said.get(name), name in said and said[name] is None
            answer = store.import_message(name, f"version {version}", resurrect=step == "resurrect")
            expected = "stays_deleted" if gone and step == "import" else "stored" if known is None else "same"
            if known is not None and known != version:
                expected = "updated"
            assert answer["outcome"] == expected
            assert expected in OUTCOMES
            if expected != "stays_deleted":
                said[name], ids[name] = version, answer["message_id"]
        elif step == "delete" and said.get(name) is not None:
            store.delete_message(ids[name])
            said[name] = None
        elif step == "edit" and said.get(name) is not None:
            store._commit(UpdateMessage, {"message_id": ids[name], "content": "edited here"})
        elif step == "compact":
            store.connection = folded_from(list(BOTH.live(store.connection)))
    assert violations(store.connection) == []
    assert queries.totals(store.connection).live == sum(version is not None for version in said.values())
