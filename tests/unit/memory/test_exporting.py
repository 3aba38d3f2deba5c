"""memory/exporting: one JSON document with all of it, written in pieces."""

import json
from typing import Any

import pytest

from convmem.limits import EXPORT_PIECE_BYTES
from convmem.memory.exporting import document
from tests.support.memory_tools import ask, refused
from tests.support.remembered import LESSON, Remembered

NAMES_REFUSED = (
    *("../x.json", "..", ".", "a/../b.json", "/etc/x.json", "C:\\x.json", "a\\b.json", "%2e%2e.json", "a\0b.json"),
    *("con.json", "CON.json", "nul.x.json", "Com1.json", "lpt9.tar.json", "x.", "x .json", "-rf.json", ".x.json"),
    *("x.json/", "x.JSON.", "x", "", "a..json", "x.json\n", "é.json", "n" * 124 + ".json", "ｘ.json"),
)


def filled(remembered: Remembered) -> None:
    remembered.remember(project="shop")
    remembered.remember(value="tabs")
    remembered.remember(value="two spaces")
    remembered.save_lesson()
    remembered.write_section("identity", "Works on clocks.\n\u2028\0")
    remembered.capture("a prompt", at=1_600_000_000_000)
    remembered.capture("an error", kind="error", tool="bash")
    remembered.write_message("an ordinary message")


async def exported(remembered: Remembered, **arguments: Any) -> dict[str, Any]:
    reply = await ask(remembered, "export_memory", **arguments)
    found: dict[str, Any] = json.loads(remembered.exports[reply.facts["filename"]])
    return found


async def test_the_document_holds_what_is_remembered_whole(remembered: Remembered):
    filled(remembered)
    found = await exported(remembered)
    assert list(found) == ["format", "version", "exported_at", "preferences", "lessons", "profile"]
    assert (found["format"], found["version"], found["exported_at"]) == ("convmem-memory", 1, remembered.now_ms())
    assert [(one["value"], one.get("previous_value"), one.get("project")) for one in found["preferences"]] == [
        ("two spaces", "tabs", None),
        ("four spaces", None, "shop"),
    ]
    (lesson,) = found["lessons"]
    assert {name: lesson[name] for name in LESSON} == LESSON
    assert [(one["section"], one["content"]) for one in found["profile"]] == [
        ("identity", "Works on clocks.\n\u2028\0")
    ]
    assert not {"number", "sequence"} & {*lesson, *found["preferences"][0], *found["profile"][0]}


@pytest.mark.parametrize("name", ["include_interactions", "includeInteractions"])
async def test_interactions_come_along_if_asked_for(remembered: Remembered, name: str):
    filled(remembered)
    found = await exported(remembered, **{name: True})
    assert [(one["kind"], one["content"]) for one in found["interactions"]] == [
        ("error", "an error"),
        ("prompt", "a prompt"),
    ]
    assert "interactions" not in await exported(remembered, **{name: False})


async def test_the_answer_says_name_size_hash_and_counts(remembered: Remembered):
    filled(remembered)
    reply = await ask(remembered, "export_memory", filename="mine.json")
    facts = reply.facts
    assert facts["filename"] == "mine.json"
    assert facts["size_bytes"] == len(remembered.exports["mine.json"])
    assert facts["counts"] == {"preferences": 2, "lessons": 1, "profile": 1}
    assert len(facts["preview"]) <= 500
    assert reply.text == (
        f"Exported to mine.json ({facts['size_bytes']:,} bytes, SHA-256 {facts['sha256']}):"
        " preferences 2, lessons 1, profile 1."
    )


async def test_a_name_that_is_taken_is_refused_and_the_file_stays(remembered: Remembered):
    await ask(remembered, "export_memory", filename="mine.json")
    before = remembered.exports["mine.json"]
    remembered.remember()
    assert (await refused(remembered, "export_memory", filename="mine.json"))["code"] == "CONFLICT"
    assert remembered.exports == {"mine.json": before}


@pytest.mark.parametrize("name", NAMES_REFUSED, ids=ascii)
async def test_a_name_that_is_more_than_a_name_is_refused(remembered: Remembered, name: str):
    error = await refused(remembered, "export_memory", filename=name)
    assert (error["code"], error["field"]) == ("VALIDATION_ERROR", "filename")
    assert remembered.exports == {}


@pytest.mark.parametrize("name", ["a.json", "A-1_b.c.json", "0.json", "_x.json", "console.json", "n" * 123 + ".json"])
async def test_a_plain_name_is_taken(remembered: Remembered, name: str):
    await ask(remembered, "export_memory", filename=name)
    assert list(remembered.exports) == [name]


def test_a_long_history_is_written_in_pieces(remembered: Remembered):
    for number in range(200):
        remembered.capture(f"{number} " + "😀" * 3_900, session_id=f"s{number}")
    counts: dict[str, int] = {}
    pieces = list(document(remembered.connection, 0, counts, with_interactions=True))
    assert len(pieces) > 4
    assert all(EXPORT_PIECE_BYTES <= len(piece) < EXPORT_PIECE_BYTES + 64 * 1024 for piece in pieces[:-1])
    assert len(json.loads(b"".join(pieces))["interactions"]) == counts["interactions"] == 200
