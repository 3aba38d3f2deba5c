"""th_memory: a database and an export of either version say the same, and nothing of them counts twice."""

import json
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from convmem.importers import th_memory
from convmem.importers.model import Captured, Lesson, Link, Message, Notes, Preference, Record, Section
from convmem.importers.sources import found
from convmem.importers.th_memory import TH_MEMORY
from convmem.limits import RELATIONS_MAX

AT, AT_MS = "2025-10-09T08:53:20.000Z", 1_760_000_000_000
Rows = dict[str, list[dict[str, Any]]]
FIRST: Rows = {
    "preferences": [
        {
            "id": 1,
            "category": "language",
            "key": "reply_in",
            "value": "Thai",
            "confidence": 0.7,
            "source": "explicit",
            "updated_at": AT,
        }
    ],
    "lessons": [{"id": 1, "situation": "a test", "mistake": "slept", "correction": "wait for it", "created_at": AT}],
    "profile": [{"section": "identity", "content": "A gardener.", "updated_at": AT}],
    "interactions": [
        {"id": 1, "ts": AT, "session_id": "s1", "kind": "prompt", "content": "hello", "meta": None},
        {
            "id": 2,
            "ts": AT,
            "session_id": "s1",
            "kind": "tool_call",
            "content": "tool=bash",
            "meta": '{"callID": "c1", "tool": "bash", "status": "success", "directory": "/srv/things"}',
        },
        {"id": 3, "ts": AT, "session_id": None, "kind": "error", "content": "boom", "meta": '{"status": 5}'},
    ],
}
MEMORY = {
    "id": 1,
    "type": "FACT",
    "content": "Basil is planted.",
    "status": "active",
    "importance": 0.5,
    "project_id": None,
    "created_at": AT,
    "supersedes_id": None,
}
LINK = {"source_memory_id": 1, "relation": "supports", "target_memory_id": 2}


def database(path: Path, rows: Rows) -> Path:
    connection = apsw.Connection(str(path))
    for table, values in {**{table: [] for table in FIRST}, **rows}.items():
        columns = list((values or FIRST[table])[0])
        connection.execute(f'CREATE TABLE "{table}" ({", ".join(columns)})')
        marks = ", ".join("?" * len(columns))
        connection.executemany(f'INSERT INTO "{table}" VALUES ({marks})', [tuple(row.values()) for row in values])
    connection.close()
    return path


def export(path: Path, rows: Rows, *, named: bool) -> Path:
    """As the program writes it: camel case in what version 2 added, and parsed metadata there."""
    camel = {
        "memory_links": "memoryLinks",
        "source_memory_id": "sourceId",
        "target_memory_id": "targetId",
        "project_id": "projectId",
    }
    body: dict[str, Any] = {"exported_at": AT, "version": "2.2.8"}
    if named:
        body["format"] = "th-memory-mcp/v2"
    for table in ("memories", "memory_links", *FIRST):
        values = rows.get(table, [])
        if table in ("memories", "memory_links"):
            values = [{camel.get(name, name): value for name, value in row.items()} for row in values]
        body[camel.get(table, table)] = values
    interactions = body["interactions"]
    body["interactions"] = {"included": True, "count": len(interactions), "rows": interactions}
    path.write_text(json.dumps(body, indent=2), encoding="utf-8")
    return path


def read(*paths: Path, notes: Notes | None = None) -> list[Record]:
    sources = list(found(paths))
    assert all(TH_MEMORY.fits(source.sample, source) for source in sources)
    entries = list(TH_MEMORY.entries(sources, Notes() if notes is None else notes))
    return [record for entry in entries for record in entry.read()]


def memories(path: Path, *rows: dict[str, Any], notes: Notes | None = None, **others: Any) -> list[Message]:
    """The memories of a database, of which the rows differ from MEMORY in what is said."""
    every = [{**MEMORY, "id": number, **row} for number, row in enumerate(rows, start=1)]
    records = read(database(path / "memory.db", {"memories": every, **others}), notes=notes)
    return [record for record in records if isinstance(record, Message)]


EXPECTED: list[Record] = [
    Preference(category="language", key="reply_in", value="Thai", confidence=0.7, source="explicit", at=AT_MS),
    Lesson(situation="a test", mistake="slept", correction="wait for it", at=AT_MS),
    Section(section="identity", content="A gardener.", at=AT_MS),
    Message(
        conversation="s1",
        id=f"interaction/1@{AT_MS}",
        role="user",
        content="hello",
        at=AT_MS,
        captured=Captured("prompt"),
    ),
    Message(
        conversation="s1",
        id=f"interaction/2@{AT_MS}",
        role="assistant",
        content="tool=bash",
        at=AT_MS,
        project="things",
        tool_call_id="c1",
        captured=Captured("tool_call", "bash", "success", "/srv/things"),
    ),
    Message(
        conversation="th-memory-mcp",
        id=f"interaction/3@{AT_MS}",
        role="system",
        content="boom",
        at=AT_MS,
        captured=Captured("error"),
    ),
]


def by_what_they_are(records: list[Record]) -> list[str]:
    return sorted(map(repr, records))


def test_the_first_version_is_read_out_of_its_database_and_its_export(tmp_path: Path):
    notes = Notes()
    assert by_what_they_are(read(database(tmp_path / "memory.db", FIRST), notes=notes)) == by_what_they_are(EXPECTED)
    records = read(export(tmp_path / "export.json", FIRST, named=False), notes=notes)
    assert by_what_they_are(records) == by_what_they_are(EXPECTED)
    assert not notes.skipped


def test_the_second_version_says_memories_and_links_beside(tmp_path: Path):
    basil = {**MEMORY, "project_id": "/srv/garden"}
    rows = {**FIRST, "memories": [basil, {**MEMORY, "id": 2, "content": "Sun."}], "memory_links": [LINK]}
    first = Message(
        conversation="memories",
        id=f"2@{AT_MS}",
        role="system",
        content="Sun.",
        at=AT_MS,
        kind="semantic",
        importance=50,
    )
    second = Message(
        conversation="memories",
        id=f"1@{AT_MS}",
        role="system",
        content="Basil is planted.",
        at=AT_MS,
        kind="semantic",
        importance=50,
        project="garden",
        links=(Link("supports", "memories", f"2@{AT_MS}"),),
    )
    expected = by_what_they_are([*EXPECTED, first, second])
    for path in (database(tmp_path / "a.db", rows), export(tmp_path / "a.json", rows, named=True)):
        records = read(path)
        assert by_what_they_are(records) == expected
        assert records.index(first) < records.index(second)


def test_an_entry_says_when_it_began(tmp_path: Path):
    later = {**FIRST["interactions"][0], "id": 9, "ts": "2025-10-09T09:00:00Z", "session_id": "s2"}
    rows = {**FIRST, "interactions": [*FIRST["interactions"], later]}
    for path in (database(tmp_path / "a.db", rows), export(tmp_path / "a.json", rows, named=True)):
        entries = TH_MEMORY.entries(list(found([path])), Notes())
        began = {entry.where.removeprefix(f"{path}, "): entry.at for entry in entries}
        assert began == {
            "the user": AT_MS,
            "session s1": AT_MS,
            "session s2": AT_MS + 400_000,
            "session th-memory-mcp": AT_MS,
        }


def test_what_waits_in_the_wal_is_seen_and_the_source_stays_as_it_was(tmp_path: Path):
    path = database(tmp_path / "memory.db", {})
    writer = apsw.Connection(str(path))
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute("INSERT INTO profile VALUES ('identity', 'Late.', NULL)")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert read(path) == [Section(section="identity", content="Late.")]
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    writer.close()


@pytest.mark.parametrize(("kind", "expected"), sorted(th_memory.KINDS.items()))
def test_every_type_of_memory_has_its_kind(tmp_path: Path, kind: str, expected: str):
    [record] = memories(tmp_path, {"type": kind})
    assert (record.kind, record.role, record.tags) == (expected, "system", ())


def test_a_type_that_is_not_known_is_kept_as_it_stands(tmp_path: Path):
    notes = Notes()
    [record] = memories(tmp_path, {"type": "HUNCH"}, notes=notes)
    assert (record.kind, record.tags, json.loads(record.content)["content"]) == (
        "semantic",
        ("unknown",),
        "Basil is planted.",
    )
    assert notes.unknown == {"memory HUNCH": 1}


@pytest.mark.parametrize(
    ("given", "expected"),
    [(None, 0), (0.5, 50), (1, 100), (1.0, 100), (0, 0), (70, 70), (1.5, 2), (1e6, 100), (-3, 0), ("0.5", 0)],
)
def test_importance_is_out_of_a_hundred(tmp_path: Path, given: Any, expected: int):
    assert [record.importance for record in memories(tmp_path, {"importance": given})] == [expected]


def test_what_was_taken_back_stays_away_and_is_counted_with_its_links(tmp_path: Path):
    rows = [
        {"status": "deleted"},
        {"status": "superseded"},
        {"status": "archived", "supersedes_id": 2},
        {"status": "new"},
    ]
    links = [
        {**LINK, "source_memory_id": 4, "target_memory_id": 3},
        {**LINK, "source_memory_id": 4, "target_memory_id": 1},
    ]
    notes = Notes()
    records = memories(tmp_path, *rows, memory_links=links, notes=notes)
    assert {record.id: [link.id for link in record.links] for record in records} == {
        f"3@{AT_MS}": [],
        f"4@{AT_MS}": [f"3@{AT_MS}"],
    }
    assert notes.passed_over == {
        "deleted memory": 1,
        "superseded memory": 1,
        "link of a memory that is not kept": 2,
    }


def test_a_memory_links_to_what_it_took_the_place_of(tmp_path: Path):
    links = [{"source_memory_id": 2, "relation": "supersedes", "target_memory_id": 1}]
    first, second = memories(tmp_path, {}, {"supersedes_id": 1}, memory_links=links)
    assert not first.links
    assert second.links == (Link("supersedes", "memories", f"1@{AT_MS}"),)


def test_more_links_than_a_message_can_have_are_noted(tmp_path: Path):
    links = [{**LINK, "target_memory_id": number + 2} for number in range(RELATIONS_MAX + 1)]
    notes = Notes()
    records = memories(tmp_path, *[{}] * (RELATIONS_MAX + 3), memory_links=[*links, links[0]], notes=notes)
    [linked] = [record for record in records if record.links]
    assert [link.id for link in linked.links] == [f"{number + 2}@{AT_MS}" for number in range(RELATIONS_MAX)]
    assert notes.skipped_count == 1


def test_a_preference_or_lesson_that_was_copied_to_the_memories_counts_once(tmp_path: Path):
    rows = [
        {"type": "PREFERENCE", "content": "[language] reply_in = Thai"},
        {"type": "LESSON", "content": "Situation: a test | Mistake: slept | Correction:  wait for it"},
        {"type": "PREFERENCE", "content": "[language] reply_in = English"},
        {"type": "FACT", "content": "[language] reply_in = Thai"},
    ]
    notes = Notes()
    tables = {table: FIRST[table] for table in ("preferences", "lessons")}
    assert [record.id for record in memories(tmp_path, *rows, notes=notes, **tables)] == [f"3@{AT_MS}", f"4@{AT_MS}"]
    assert notes.passed_over == {"memory that has a table of its own": 2}


def test_ids_that_count_up_on_two_devices_stay_two(tmp_path: Path):
    for name in ("laptop", "desktop"):
        (tmp_path / name).mkdir()
    [one] = memories(tmp_path / "laptop", {})
    [other] = memories(tmp_path / "desktop", {"created_at": "2025-01-01T00:00:00Z"})
    assert one.id != other.id


def test_entities_and_relations_are_counted(tmp_path: Path):
    rows = {"entities": [{"id": 1, "name": "basil"}], "relations": [{"id": 1, "relation": "co_occurs"}]}
    notes = Notes()
    assert not read(database(tmp_path / "a.db", rows), notes=notes)
    assert notes.passed_over == {"entities": 1, "relations": 1}


def test_a_database_that_only_captures_has_interactions_alone(tmp_path: Path):
    connection = apsw.Connection(str(tmp_path / "memory.db"))
    connection.execute("CREATE TABLE interactions (ts, kind, content)")
    connection.execute("INSERT INTO interactions VALUES (?, 'prompt', 'one'), (?, 'prompt', 'two')", (AT, AT))
    connection.close()
    first, second = read(tmp_path)
    assert isinstance(first, Message)
    assert isinstance(second, Message)
    assert [first.content, second.content] == ["one", "two"]
    assert first.id != second.id
    assert first.conversation == second.conversation == "th-memory-mcp"
    assert read(tmp_path) == [first, second]


@pytest.mark.parametrize(
    ("table", "row"),
    [
        ("preferences", {"category": "language", "key": None, "value": "x"}),
        ("lessons", {"situation": "x", "mistake": " ", "correction": "y"}),
        ("profile", {"section": "x", "content": 7}),
        ("interactions", {"ts": AT, "kind": "prompt", "content": None}),
        ("memories", {"type": "FACT", "content": ""}),
    ],
)
def test_a_row_without_its_text_is_noted_and_takes_no_other_along(tmp_path: Path, table: str, row: dict[str, Any]):
    rows: Rows = {**FIRST, "memories": [MEMORY]}
    odd = {name: row.get(name) for name in rows[table][0]}
    notes = Notes()
    before = len(read(export(tmp_path / "a.json", rows, named=True)))
    path = export(tmp_path / "a.json", {**rows, table: [odd, *rows[table], {"no": "object"}]}, named=True)
    path.write_text(
        path.read_text().replace('{\n      "no": "object"\n    }', "7").replace('"no": "object"', '"no": 7')
    )
    assert len(read(path, notes=notes)) == before
    assert notes.skipped_count == 2


def test_a_kind_of_interaction_that_is_not_known_is_kept_as_it_stands(tmp_path: Path):
    rows: Rows = {"interactions": [{"id": 1, "ts": AT, "kind": "whisper", "content": "psst"}]}
    notes = Notes()
    [record] = read(export(tmp_path / "a.json", rows, named=True), notes=notes)
    assert isinstance(record, Message)
    assert (record.role, record.tags, record.captured) == ("system", ("unknown",), None)
    assert json.loads(record.content)["content"] == "psst"
    assert notes.unknown == {"interaction whisper": 1}


def test_an_export_that_is_cut_off_keeps_the_rows_that_are_whole(tmp_path: Path):
    path = export(tmp_path / "a.json", {**FIRST, "memories": [MEMORY]}, named=True)
    path.write_bytes(path.read_bytes()[:-200])
    notes = Notes()
    records = read(path, notes=notes)
    assert {type(record).__name__ for record in records} == {"Message", "Preference", "Lesson", "Section"}
    assert f"interaction/2@{AT_MS}" in {record.id for record in records if isinstance(record, Message)}
    assert notes.skipped


def test_a_torn_row_in_an_export_takes_only_itself(tmp_path: Path):
    path = export(tmp_path / "a.json", {**FIRST, "memories": [MEMORY]}, named=True)
    path.write_bytes(path.read_bytes().replace(b'"value": "Thai"', b'"value": Thai'))
    notes = Notes()
    records = by_what_they_are(read(path, notes=notes))
    assert set(records) > set(by_what_they_are(EXPECTED[1:]))
    assert len(records) == len(EXPECTED)
    assert notes.skipped


def test_memories_without_ids_are_known_again(tmp_path: Path):
    rows = [{name: value for name, value in MEMORY.items() if name != "id"}]
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"format": "th-memory-mcp/v2", "memories": rows}))
    [record] = read(path)
    assert isinstance(record, Message)
    assert len(record.id.partition("@")[0]) == 16
    assert read(path) == [record]


@pytest.mark.parametrize(
    "content",
    [
        {"format": "convmem-memory", "exported_at": 1, "version": 1, "preferences": []},
        {"version": "1.0", "preferences": {}},
        {"memories": [], "export_metadata": {}},
        [],
    ],
)
def test_other_files_are_not_taken_for_it(tmp_path: Path, content: Any):
    (tmp_path / "a.json").write_text(json.dumps(content))
    connection = apsw.Connection(str(tmp_path / "b.db"))
    connection.execute("CREATE TABLE memories (id, content_hash, content, type)")
    connection.close()
    assert not any(TH_MEMORY.fits(source.sample, source) for source in found([tmp_path]))


ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150)
def test_odd_types_never_raise_and_take_no_other_row_along(tmp_path: Path, data: st.DataObject):
    rows: Rows = {**FIRST, "memories": [MEMORY], "memory_links": [LINK]}
    table = data.draw(st.sampled_from(sorted(rows)))
    odd = {name: data.draw(ODD) for name in rows[table][0]}
    rows[table] = [{**odd, "id": 77}, *rows[table]]
    records = read(export(tmp_path / "a.json", rows, named=True))
    kept = [repr(record) for record in records]
    assert all(repr(record) in kept for record in EXPECTED)


@given(st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=100)
def test_damage_never_raises(tmp_path: Path, data: st.DataObject):
    rows: Rows = {**FIRST, "memories": [MEMORY], "memory_links": [LINK]}
    whole = tmp_path / "whole.db"
    if not whole.exists():
        database(whole, rows)
        export(tmp_path / "whole.json", rows, named=True)
    content = (tmp_path / data.draw(st.sampled_from(["whole.db", "whole.json"]))).read_bytes()
    place = data.draw(st.integers(0, len(content) - 1))
    piece = content[place : place + data.draw(st.integers(1, 300))]
    middle = data.draw(st.sampled_from([b"", piece * 2, bytes(len(piece)), piece[::-1]]))
    damaged = tmp_path / "damaged"
    damaged.write_bytes(content[:place] + middle + content[place + len(piece) :])
    for entry in TH_MEMORY.entries(list(found([damaged])), Notes()):
        list(entry.read())
