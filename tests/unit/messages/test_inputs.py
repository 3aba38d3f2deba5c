"""What may be asked: names, shapes and combinations of arguments, and what each refusal names."""

from typing import Any

import pytest

from convmem.inputs import checked
from convmem.messages.inputs import (
    EVERY_VIEW,
    VIEWS,
    DeleteMessage,
    GetSystemHealth,
    MetadataGiven,
    ReadMessages,
    RebuildIndex,
    SearchMessages,
    UpdateMessage,
    WriteMessage,
)
from convmem.messages.model import METADATA_FIELDS, Metadata, Relation
from tests.support.folded import refused

ID = "01HF7YAT000000000000000007"
SAID: dict[str, Any] = {"session_id": "s", "role": "user", "content": "x"}


@pytest.mark.parametrize(
    ("arguments", "refusal"),
    [
        ({}, "VALIDATION_ERROR session_id"),
        (SAID | {"role": "tool"}, "VALIDATION_ERROR role"),
        (SAID | {"content": None}, "VALIDATION_ERROR content"),
        (SAID | {"content": 7}, "VALIDATION_ERROR content"),
        (SAID | {"content": "x" * (2**20 + 1)}, "CONTENT_TOO_LARGE content"),
        (SAID | {"contents": "x"}, "VALIDATION_ERROR contents"),
        (SAID | {"session_id": "a\0"}, "VALIDATION_ERROR session_id"),
        (SAID | {"metadata": []}, "VALIDATION_ERROR metadata"),
        (SAID | {"metadata": "{"}, "VALIDATION_ERROR metadata"),
        (SAID | {"metadata": '{"tags": [], "tags": []}'}, "VALIDATION_ERROR metadata"),
        (SAID | {"metadata": '{"importance": NaN}'}, "VALIDATION_ERROR metadata"),
        (SAID | {"metadata": {"origin": {}}}, "VALIDATION_ERROR metadata.origin"),
        (SAID | {"metadata": {"capture": {}}}, "VALIDATION_ERROR metadata.capture"),
        (SAID | {"metadata": {"tags": ["a", "b\0"]}}, "VALIDATION_ERROR metadata.tags.1"),
        (SAID | {"metadata": {"tags": "a"}}, "VALIDATION_ERROR metadata.tags"),
        (SAID | {"metadata": {"importance": 101}}, "VALIDATION_ERROR metadata.importance"),
        (SAID | {"metadata": {"importance": True}}, "VALIDATION_ERROR metadata.importance"),
        (SAID | {"metadata": {"memory_tier": "huge"}}, "VALIDATION_ERROR metadata.memory_tier"),
        (SAID | {"metadata": {"relations": [{"type": "x"}]}}, "VALIDATION_ERROR metadata.relations.0.message_id"),
        (
            SAID | {"metadata": {"relations": [{"type": "x", "message_id": ID, "why": 1}]}},
            "VALIDATION_ERROR metadata.relations.0.why",
        ),
        (
            SAID | {"metadata": {"relations": [{"type": "x", "message_id": ID}] * 33}},
            "VALIDATION_ERROR metadata.relations",
        ),
        (SAID | {"metadata": {"source_message_ids": [ID] * 65}}, "VALIDATION_ERROR metadata.source_message_ids"),
        (SAID | {"metadata": {"source_message_ids": [ID, "no"]}}, "VALIDATION_ERROR metadata.source_message_ids.1"),
        (SAID | {"idempotency_key": ""}, "VALIDATION_ERROR idempotency_key"),
        (SAID | {"idempotency_key": "k" * 129}, "VALIDATION_ERROR idempotency_key"),
    ],
)
def test_a_write_that_cannot_be_meant_is_refused_by_field(arguments: dict[str, Any], refusal: str):
    assert refused(WriteMessage, **arguments) == refusal


def test_content_of_the_full_size_is_taken():
    assert WriteMessage(**SAID | {"content": "\x01" * 2**20}).size_bytes > 2**20


def test_metadata_may_come_as_a_json_string_and_means_the_same():
    given = {"tags": ["a"], "importance": "7", "relations": [{"type": "after", "message_id": ID.lower()}]}
    text = '{"tags":["a"],"importance":7.0,"relations":[{"type":"after","message_id":"' + ID + '"}]}'
    left = checked(WriteMessage, SAID | {"metadata": given}).metadata_filled()
    right = checked(WriteMessage, SAID | {"metadata": text}).metadata_filled()
    assert left == right == Metadata(tags=("a",), importance=7, relations=(Relation(type="after", message_id=ID),))


def test_metadata_left_out_null_or_empty_is_the_default():
    for given in ({}, {"metadata": None}, {"metadata": {}}, {"metadata": "null"}, {"metadata": {"tags": None}}):
        assert checked(WriteMessage, SAID | given).metadata_filled() == Metadata()


def test_every_field_of_metadata_can_be_given():
    assert tuple(MetadataGiven.model_fields) == METADATA_FIELDS


def fingerprints(**arguments: Any) -> tuple[bytes, bytes]:
    return checked(WriteMessage, SAID | {"idempotency_key": "k"} | arguments).fingerprints()


def test_equal_arguments_have_equal_fingerprints_however_they_are_said():
    plain = fingerprints()
    assert [len(part) for part in plain] == [16, 16]
    assert fingerprints(metadata={}) == plain
    assert fingerprints(metadata='{"memory_tier": "mid", "importance": "0", "tags": []}') == plain
    assert fingerprints(metadata={"tags": ["a", "a"]}) == fingerprints(metadata={"tags": ["a"]})


def test_fingerprints_are_the_same_in_every_version():
    key, arguments = fingerprints(
        content="a\0é",
        metadata={"tags": ["b", "a"], "project": "p", "relations": [{"type": "after", "message_id": ID}]},
    )
    assert key.hex() == "8254c329a92850f6d539dd376f4816ee"
    assert arguments.hex() == "a3c79c0e942b40186f9e2d3145e0c5c3"


@pytest.mark.parametrize(
    "other",
    [
        {"content": "y"},
        {"role": "system"},
        {"session_id": "t"},
        {"metadata": {"summary": ""}},
        {"metadata": {"tags": ["x"]}},
    ],
)
def test_other_arguments_have_other_fingerprints(other: dict[str, Any]):
    key, arguments = fingerprints()
    assert fingerprints(**other)[0] == key
    assert fingerprints(**other)[1] != arguments


def test_another_key_leaves_the_arguments_alone():
    key, arguments = fingerprints()
    assert fingerprints(idempotency_key="l")[0] != key
    assert fingerprints(idempotency_key="l")[1] == arguments


def test_a_patch_knows_given_null_and_absent():
    ask = checked(UpdateMessage, {"message_id": ID, "metadata": {"tags": None, "summary": "s", "memory_tier": None}})
    assert ask.metadata is not None
    assert ask.metadata.values() == {"tags": (), "summary": "s", "memory_tier": "mid"}


@pytest.mark.parametrize(
    ("arguments", "refusal"),
    [
        ({"content": "x"}, "VALIDATION_ERROR message_id"),
        ({"message_id": ID, "metadata": {"tag": ["x"]}}, "VALIDATION_ERROR metadata.tag"),
        ({"message_id": ID, "metadata": {"tags": [""]}}, "VALIDATION_ERROR metadata.tags.0"),
        ({"message_id": ID, "expected_revison": 1}, "VALIDATION_ERROR expected_revison"),
        ({"message_id": ID, "expected_revision": 0}, "VALIDATION_ERROR expected_revision"),
        ({"message_id": ID, "role": "user"}, "VALIDATION_ERROR role"),
        ({"message_id": ID, "content": "x" * (2**20 + 1)}, "CONTENT_TOO_LARGE content"),
    ],
)
def test_an_update_that_cannot_be_meant_is_refused_by_field(arguments: dict[str, Any], refusal: str):
    assert refused(UpdateMessage, **arguments) == refusal


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({}, "view"),
        ({"view": "all"}, "view"),
        ({"view": "history"}, "session_id"),
        ({"view": "content"}, "message_id"),
        ({"view": "context"}, "message_id"),
        ({"view": "history", "session_id": "s", "limit": 501}, "limit"),
        ({"view": "history", "session_id": "s", "limit": 0}, "limit"),
        ({"view": "history", "session_id": "s", "order": "up"}, "order"),
        ({"view": "history", "session_id": "s", "message_id": ID}, "message_id"),
        ({"view": "content", "message_id": ID, "limit": 65537}, "limit"),
        ({"view": "content", "message_id": ID, "offset": -1}, "offset"),
        ({"view": "content", "message_id": ID, "cursor": "x"}, "cursor"),
        ({"view": "context", "message_id": ID, "limit": 5}, "limit"),
        ({"view": "context", "message_id": ID, "before": 51}, "before"),
        ({"view": "context", "message_id": ID, "relation_depth": 3}, "relation_depth"),
        ({"view": "context", "message_id": ID, "expected_revision": 1}, "expected_revision"),
        ({"view": "sessions", "session_id": "s"}, "session_id"),
        ({"view": "sessions", "order": "desc"}, "order"),
        ({"view": "export", "limit": 501}, "limit"),
        ({"view": "export", "max_bytes": 8 * 2**20 + 1}, "max_bytes"),
    ],
)
def test_a_read_that_cannot_be_meant_is_refused_by_field(arguments: dict[str, Any], field: str):
    assert refused(ReadMessages, **arguments) == f"VALIDATION_ERROR {field}"


def test_arguments_of_another_view_may_stand_there_with_their_default():
    ask = checked(ReadMessages, {"view": "sessions", "order": "asc", "offset": 0, "before": 3, "session_id": None})
    assert (ask.entries_max, ask.reply_bytes_max) == (50, 64 * 1024)


def test_the_table_of_views_is_total_and_names_arguments_that_exist():
    assert set(VIEWS) == set(ReadMessages.model_fields["view"].annotation.__args__)  # type: ignore[union-attr]
    used = EVERY_VIEW.union(*(view.takes | {view.needs} for view in VIEWS.values())) - {None}
    assert used == set(ReadMessages.model_fields)


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({}, "query"),
        ({"query": ""}, "query"),
        ({"query": "a " * 513}, "query"),
        ({"query": "a", "limit": 101}, "limit"),
        ({"query": "a", "context_before": 11}, "context_before"),
        ({"query": "a", "match": "fuzzy"}, "match"),
        ({"query": "a", "since": -1}, "since"),
        ({"query": "a", "tags": ["x"]}, "tags"),
        ({"query": "a", "kind": "note"}, "kind"),
    ],
)
def test_a_search_that_cannot_be_meant_is_refused_by_field(arguments: dict[str, Any], field: str):
    assert refused(SearchMessages, **arguments) == f"VALIDATION_ERROR {field}"


@pytest.mark.parametrize("kind", [RebuildIndex, GetSystemHealth])
def test_a_tool_without_arguments_takes_none(kind: Any):
    assert refused(kind, force=True) == "VALIDATION_ERROR force"


def test_a_deletion_names_its_message():
    assert refused(DeleteMessage, session_id="s") == "VALIDATION_ERROR message_id"
    assert checked(DeleteMessage, {"message_id": ID.lower()}).message_id == ID


def test_a_command_says_about_how_large_it_is():
    small, large = WriteMessage(**SAID), WriteMessage(**SAID | {"content": "日" * 1000})
    assert large.size_bytes - small.size_bytes == 2999
    patch = UpdateMessage(message_id=ID, content="日" * 1000)
    assert patch.size_bytes > 3000
