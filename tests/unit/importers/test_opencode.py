"""opencode: both stores, and one that is half of each, make the same records."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from convmem.importers import opencode_parts
from convmem.importers.model import Entry, Message, Notes, Record
from convmem.importers.opencode import OPENCODE
from convmem.importers.sources import found

BEGAN = 1_760_000_000_000
SCHEMA = """
CREATE TABLE session (id TEXT PRIMARY KEY, project_id TEXT, parent_id TEXT, directory TEXT, title TEXT, time_created);
CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, data);
CREATE INDEX message_of ON message (session_id);
CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, time_created INTEGER, data);
CREATE INDEX part_of ON part (message_id);
"""
# Parts as (message, id, data); the message that was said first has the greater id.
PARTS: list[tuple[str, str, dict[str, Any]]] = [
    ("msg_z", "prt_1", {"type": "text", "text": "How many files?"}),
    ("msg_a", "prt_2", {"type": "step-start"}),
    ("msg_a", "prt_3", {"type": "reasoning", "text": "I should look."}),
    (
        "msg_a",
        "prt_4",
        {
            "type": "tool",
            "callID": "call_1",
            "tool": "bash",
            "state": {
                "status": "completed",
                "input": {"command": "ls"},
                "output": "a.txt",
                "time": {"start": BEGAN + 11, "end": BEGAN + 12},
            },
        },
    ),
    ("msg_a", "prt_5", {"type": "text", "text": "One."}),
    ("msg_a", "prt_6", {"type": "step-finish", "cost": 1}),
]
SESSION = {"title": "Files", "directory": "/srv/things", "time": {"created": BEGAN}}
MESSAGES = {
    "msg_z": {"role": "user", "time": {"created": BEGAN + 1}},
    "msg_a": {"role": "assistant", "time": {"created": BEGAN + 10}},
}


def tables(path: Path, parts: list[tuple[str, str, dict[str, Any]]], session: str = "ses_1") -> Path:
    connection = apsw.Connection(str(path))
    connection.execute(SCHEMA)
    row = (session, "p", None, SESSION["directory"], SESSION["title"], BEGAN)
    connection.execute("INSERT INTO session VALUES (?, ?, ?, ?, ?, ?)", row)
    for name, data in MESSAGES.items():
        message: Any = (name, session, data["time"]["created"], json.dumps(data))
        connection.execute("INSERT INTO message VALUES (?, ?, ?, ?)", message)
    for message, name, data in parts:
        connection.execute(
            "INSERT INTO part VALUES (?, ?, ?, ?, ?)", (name, message, session, BEGAN + 50, json.dumps(data))
        )
    connection.close()
    return path


def write(path: Path, data: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data), encoding="utf-8")


def files(root: Path, parts: list[tuple[str, str, dict[str, Any]]], session: str = "ses_1") -> Path:
    storage = root / "storage"
    write(storage / "session" / "p" / f"{session}.json", {"id": session, **SESSION})
    for name, data in MESSAGES.items():
        write(storage / "message" / session / f"{name}.json", {"id": name, **data})
    for message, name, data in parts:
        write(storage / "part" / message / f"{name}.json", {"id": name, "messageID": message, **data})
    return storage


def read(*paths: Path, notes: Notes | None = None) -> list[Record]:
    return [record for entry in entries(*paths, notes=notes) for record in entry.read()]


def entries(*paths: Path, notes: Notes | None = None) -> Iterator[Entry]:
    sources = [source for source in found(paths) if OPENCODE.fits(source.sample, source)]
    return OPENCODE.entries(sources, Notes() if notes is None else notes)


def told(records: list[Record]) -> list[tuple[str, str, str, tuple[str, ...]]]:
    return [(r.id, r.role, r.content, r.tags) for r in records if isinstance(r, Message)]


def said(tmp_path: Path, part: dict[str, Any], role: str = "assistant", notes: Notes | None = None) -> Any:
    """The records of one message with one part."""
    root = tmp_path / "one"
    storage = root / "storage"
    write(storage / "session" / "p" / "ses_1.json", {"id": "ses_1", **SESSION})
    write(storage / "message" / "ses_1" / "msg_1.json", {"role": role, "time": {"created": BEGAN}})
    write(storage / "part" / "msg_1" / "prt_1.json", part)
    return read(root, notes=notes)


EXPECTED = [
    ("msg_z", "user", "How many files?", ()),
    ("msg_a", "assistant", "I should look.", ("thinking",)),
    ("msg_a/1", "assistant", 'bash\n{"command":"ls"}', ("tool_call",)),
    ("msg_a/2", "system", "a.txt", ("tool_result",)),
    ("msg_a/3", "assistant", "One.", ()),
]


def test_the_database_is_read_in_the_order_of_time_though_the_ids_say_another(tmp_path: Path):
    notes = Notes()
    records = read(tables(tmp_path / "opencode.db", PARTS), notes=notes)
    assert told(records) == EXPECTED
    first, _, call, result, _ = records
    assert isinstance(first, Message)
    assert (first.conversation, first.title, first.project, first.at) == ("ses_1", "Files", "things", BEGAN + 1)
    assert isinstance(call, Message)
    assert isinstance(result, Message)
    assert (call.at, result.at) == (BEGAN + 11, BEGAN + 12)
    assert call.tool_call_id == result.tool_call_id == "call_1"
    assert notes.passed_over == {"step-start": 1, "step-finish": 1}
    assert not notes.skipped


def test_the_files_say_the_same_as_the_database(tmp_path: Path):
    assert read(files(tmp_path, PARTS)) == read(tables(tmp_path / "opencode.db", PARTS))


def test_the_older_layout_of_the_files_says_the_same(tmp_path: Path):
    old = tmp_path / "project" / "things" / "storage" / "session"
    write(old / "info" / "ses_1.json", {"id": "ses_1", **SESSION})
    for name, data in MESSAGES.items():
        write(old / "message" / "ses_1" / f"{name}.json", data)
    for message, name, part in PARTS:
        write(old / "part" / "ses_1" / message / f"{name}.json", part)
    assert told(read(tmp_path / "project")) == EXPECTED


def test_a_message_of_the_first_versions_has_its_parts_inside(tmp_path: Path):
    old = tmp_path / "storage" / "session"
    write(old / "info" / "ses_1.json", {"id": "ses_1", **SESSION})
    message = {
        "role": "user",
        "parts": [{"type": "text", "text": "Early."}],
        "metadata": {"time": {"created": BEGAN + 1}},
    }
    write(old / "message" / "ses_1" / "msg_1.json", message)
    [record] = read(tmp_path)
    assert isinstance(record, Message)
    assert (record.content, record.at) == ("Early.", BEGAN + 1)


def test_an_entry_says_when_the_session_began_and_what_it_is_called(tmp_path: Path):
    [entry] = entries(tables(tmp_path / "opencode.db", PARTS))
    assert (entry.at, entry.title) == (BEGAN, "Files")
    [entry] = entries(files(tmp_path, PARTS))
    assert (entry.at, entry.title) == (BEGAN, "Files")


def test_what_waits_in_the_wal_is_seen_and_the_source_stays_as_it_was(tmp_path: Path):
    path = tables(tmp_path / "opencode.db", PARTS[:1])
    writer = apsw.Connection(str(path))
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute("PRAGMA wal_autocheckpoint = 0")
    for message, name, part in PARTS[1:]:
        row = (name, message, "ses_1", BEGAN + 50, json.dumps(part))
        writer.execute("INSERT INTO part VALUES (?, ?, ?, ?, ?)", row)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert set(before) >= {"opencode.db", "opencode.db-wal"}
    assert told(read(tmp_path)) == EXPECTED
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    writer.close()


def test_ids_are_those_of_the_path_whatever_the_json_says(tmp_path: Path):
    storage = files(tmp_path, PARTS)
    write(storage / "session" / "p" / "ses_1.json", {"id": "ses_old", "projectID": "old", **SESSION})
    write(storage / "message" / "ses_1" / "msg_z.json", {"id": "msg_old", "sessionID": "old", **MESSAGES["msg_z"]})
    records = read(storage)
    assert told(records) == EXPECTED
    assert {record.conversation for record in records if isinstance(record, Message)} == {"ses_1"}


def test_where_nothing_goes_by_the_name_of_the_path_the_id_in_the_json_is_asked(tmp_path: Path):
    storage = tmp_path / "storage"
    write(storage / "session" / "p" / "ses_new.json", {"id": "ses_old", **SESSION})
    write(storage / "message" / "ses_old" / "001.json", {"id": "msg_old", **MESSAGES["msg_z"]})
    write(storage / "part" / "msg_old" / "001.json", {"type": "text", "text": "Hello"})
    notes = Notes()
    [record] = read(tmp_path, notes=notes)
    assert isinstance(record, Message)
    assert (record.conversation, record.id, record.content) == ("ses_new", "001", "Hello")
    assert not notes.passed_over


@pytest.mark.parametrize("fuller", ["database", "files"])
def test_a_session_in_both_stores_counts_once_and_nothing_of_it_is_lost(tmp_path: Path, fuller: str):
    database = tables(tmp_path / "opencode.db", PARTS)
    storage = files(tmp_path, PARTS)
    late = {"role": "user", "time": {"created": BEGAN + 20}}
    if fuller == "database":
        with apsw.Connection(str(database)) as connection:
            connection.execute("UPDATE session SET title = 'Newer'")
            connection.execute("INSERT INTO message VALUES ('msg_c', 'ses_1', ?, ?)", (BEGAN + 20, json.dumps(late)))
            row = ("prt_9", "msg_c", "ses_1", BEGAN + 20, '{"type": "text", "text": "And more?"}')
            connection.execute("INSERT INTO part VALUES (?, ?, ?, ?, ?)", row)
        connection.close()
    else:
        write(storage / "session" / "p" / "ses_1.json", {**SESSION, "title": "Newer"})
        write(storage / "message" / "ses_1" / "msg_c.json", late)
        write(storage / "part" / "msg_c" / "prt_9.json", {"type": "text", "text": "And more?"})
    [entry] = entries(database, storage)
    assert entry.title == "Newer"
    assert told(list(entry.read())) == [*EXPECTED, ("msg_c", "user", "And more?", ())]


def test_a_part_that_one_store_lost_is_taken_from_the_other(tmp_path: Path):
    database = tables(tmp_path / "opencode.db", PARTS[:3])
    storage = files(tmp_path, PARTS)
    (storage / "part" / "msg_a" / "prt_3.json").write_bytes(b"")
    assert told(read(database, storage)) == EXPECTED


def test_an_empty_or_damaged_part_takes_only_itself(tmp_path: Path):
    storage = files(tmp_path, PARTS)
    (storage / "part" / "msg_a" / "prt_3.json").write_bytes(b"")
    (storage / "part" / "msg_a" / "prt_4.json").write_bytes(b'{"type": "tool", "callI')
    notes = Notes()
    assert told(read(storage, notes=notes)) == [
        ("msg_z", "user", "How many files?", ()),
        ("msg_a", "assistant", "One.", ()),
    ]
    assert [(skip.where.rsplit("/", 1)[1], skip.why.split(",")[0]) for skip in notes.skipped] == [
        ("prt_3.json", "it is empty"),
        ("prt_4.json", "it is damaged"),
    ]


def test_a_row_with_broken_json_is_noted_and_its_words_stay(tmp_path: Path):
    database = tables(tmp_path / "opencode.db", PARTS)
    with apsw.Connection(str(database)) as connection:
        connection.execute("UPDATE message SET data = '{\"role\": \"ass' WHERE id = 'msg_a'")
        connection.execute("UPDATE part SET data = '[1]' WHERE id = 'prt_3'")
        connection.execute("UPDATE part SET data = 7 WHERE id = 'prt_1'")
    connection.close()
    notes = Notes()
    assert told(read(database, notes=notes)) == [
        ("msg_a", "assistant", 'bash\n{"command":"ls"}', ("tool_call",)),
        ("msg_a/1", "system", "a.txt", ("tool_result",)),
        ("msg_a/2", "assistant", "One.", ()),
    ]
    assert [skip.where.rsplit(", ", 1)[1] for skip in notes.skipped] == ["message msg_a", "part prt_1", "part prt_3"]


def test_messages_without_a_session_and_sessions_without_a_message(tmp_path: Path):
    storage = files(tmp_path, PARTS)
    (storage / "session" / "p" / "ses_1.json").unlink()
    write(storage / "session" / "p" / "ses_2.json", {"id": "ses_2", **SESSION})
    notes = Notes()
    [entry] = entries(storage, notes=notes)
    assert (entry.at, entry.title) == (BEGAN + 1, None)
    assert told(list(entry.read())) == EXPECTED
    database = tables(tmp_path / "opencode.db", PARTS)
    with apsw.Connection(str(database)) as connection:
        connection.execute("DELETE FROM session")
        connection.execute("INSERT INTO session (id, title) VALUES ('ses_2', 'Nothing')")
    connection.close()
    [entry] = entries(database, notes=notes)
    assert (entry.at, told(list(entry.read()))) == (BEGAN + 1, EXPECTED)
    assert notes.passed_over["empty conversation"] == 2


def test_a_session_whose_messages_have_no_words_is_passed_over(tmp_path: Path):
    notes = Notes()
    assert not said(tmp_path, {"type": "text", "text": " \n"}, notes=notes)
    assert notes.passed_over == {"empty conversation": 1}
    assert not notes.skipped


def test_parts_of_messages_that_were_taken_back_are_counted(tmp_path: Path):
    storage = files(tmp_path, PARTS)
    write(storage / "part" / "msg_gone" / "prt_1.json", {"type": "text", "text": "I take this back."})
    notes = Notes()
    assert told(read(storage, notes=notes)) == EXPECTED
    assert notes.passed_over["part without a message"] == 1


def test_columns_that_are_missing_are_missed_by_nobody(tmp_path: Path):
    connection = apsw.Connection(str(tmp_path / "opencode.db"))
    connection.execute("CREATE TABLE session (id); CREATE TABLE message (id, session_id, data)")
    connection.execute("CREATE TABLE part (id, message_id, data)")
    connection.execute("INSERT INTO session VALUES ('ses_1')")
    connection.execute("""INSERT INTO message VALUES ('msg_1', 'ses_1', '{"role": "user"}')""")
    connection.execute("""INSERT INTO part VALUES ('prt_1', 'msg_1', '{"type": "text", "text": "Hello"}')""")
    connection.close()
    [entry] = entries(tmp_path)
    assert entry.at is None
    assert told(list(entry.read())) == [("msg_1", "user", "Hello", ())]


def test_messages_that_only_a_newer_version_keeps_are_noted(tmp_path: Path):
    database = tables(tmp_path / "opencode.db", PARTS)
    with apsw.Connection(str(database)) as connection:
        connection.execute("CREATE TABLE session_message (id, session_id, type, data)")
        connection.execute(
            "INSERT INTO session_message VALUES ('m', 'ses_1', 'user', '{}'), ('n', 'ses_2', 'user', '{}')"
        )
        connection.execute("INSERT INTO session (id) VALUES ('ses_2')")
    connection.close()
    notes = Notes()
    assert told(read(database, notes=notes)) == EXPECTED
    assert [skip.where.rsplit(" ", 1)[1] for skip in notes.skipped] == ["ses_2"]


def test_a_child_session_is_one_of_a_subagent_and_nobody_typed_its_prompt(tmp_path: Path):
    storage = files(tmp_path, PARTS)
    write(storage / "session" / "p" / "ses_1.json", {"parentID": "ses_0", **SESSION})
    assert told(read(storage)) == [
        (name, "system" if role == "user" else role, content, (*tags, "subagent"))
        for name, role, content, tags in EXPECTED
    ]


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ({"type": "text", "text": "Context.", "synthetic": True}, ("system", "Context.", ("hidden",))),
        ({"type": "text", "text": "Notice.", "ignored": True}, ("system", "Notice.", ("hidden",))),
        ({"type": "text", "text": "Words.", "synthetic": False}, ("user", "Words.", ())),
        (
            {"type": "file", "mime": "image/png", "filename": "a b.png", "url": "data:x"},
            ("user", "[image: a b.png]", ()),
        ),
        ({"type": "file", "mime": "text/plain", "url": "file:///x/n%20o.md"}, ("user", "[file: n o.md]", ())),
        ({"type": "file", "mime": "text/plain", "url": "data:;base64,QQ=="}, ("user", "[file: text/plain]", ())),
        ({"type": "file", "url": 7, "source": {"path": "C:\\x\\y.py"}}, ("user", "[file: y.py]", ())),
        ({"type": "agent", "name": "plan"}, ("user", "[agent: plan]", ())),
        (
            {"type": "subtask", "agent": "explore", "description": "Look\naround", "prompt": "…"},
            ("user", "[subtask: explore, Look around]", ()),
        ),
        ({"type": "reasoning", "text": "Hm."}, ("assistant", "Hm.", ("thinking",))),
        ({"type": "hologram", "x": [1]}, ("system", '{"type":"hologram","x":[1]}', ("unknown",))),
        ({"type": 7}, ("system", '{"type":7}', ("unknown",))),
    ],
)
def test_every_kind_of_part_has_its_record(tmp_path: Path, part: dict[str, Any], expected: tuple[str, str, Any]):
    notes = Notes()
    assert told(said(tmp_path, part, "user", notes)) == [("msg_1", *expected)]
    assert bool(notes.unknown) == ("unknown" in expected[2])


@pytest.mark.parametrize("kind", sorted(opencode_parts.WITHOUT_WORDS))
def test_kinds_without_words_are_counted(tmp_path: Path, kind: str):
    notes = Notes()
    assert not said(tmp_path, {"type": kind, "text": "no words"}, notes=notes)
    assert notes.passed_over[kind] == 1


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ({"status": "pending", "input": {}, "raw": '{"comm'}, [('bash\n{"comm', "tool_call")]),
        ({"status": "running", "input": {"a": 1}}, [('bash\n{"a":1}', "tool_call")]),
        ({"status": "completed", "input": {}, "output": ""}, [("bash", "tool_call")]),
        (
            {"status": "completed", "output": {"n": 1}, "attachments": [{"mime": "image/png", "filename": "s.png"}, 3]},
            [("bash", "tool_call"), ('{"n":1}\n[image: s.png]', "tool_result")],
        ),
        (
            {"status": "error", "input": "as it was", "error": "no such file"},
            [("bash\nas it was", "tool_call"), ("error: no such file", "tool_result")],
        ),
        ({"status": "error"}, [("bash", "tool_call"), ("error: it says nothing of itself", "tool_result")]),
        ("odd", [("bash", "tool_call")]),
    ],
)
def test_a_tool_is_a_call_and_once_there_is_one_a_result(tmp_path: Path, state: Any, expected: list[tuple[str, str]]):
    records = said(tmp_path, {"type": "tool", "tool": "bash", "callID": "c", "state": state})
    assert [(record.content, record.tags[0]) for record in records] == expected
    assert {record.tool_call_id for record in records} == {"c"}


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ({"name": "APIError", "data": {"message": "overloaded"}}, "error: overloaded"),
        ({"name": "MessageAbortedError", "data": {}}, "error: MessageAbortedError"),
        ({"message": "old kind"}, "error: old kind"),
        ("a text", "error: a text"),
        ({"code": 5}, 'error: {"code":5}'),
    ],
)
def test_what_ended_a_message_stands_behind_it(tmp_path: Path, error: Any, expected: str):
    storage = files(tmp_path, PARTS)
    ended = {**MESSAGES["msg_a"], "error": error, "time": {"created": BEGAN + 10, "completed": BEGAN + 30}}
    write(storage / "message" / "ses_1" / "msg_a.json", ended)
    records = read(storage)
    assert told(records) == [*EXPECTED, ("msg_a/4", "system", expected, ("tool_result",))]
    last = records[-1]
    assert isinstance(last, Message)
    assert last.at == BEGAN + 30


def test_a_run_of_text_is_one_record_and_hidden_text_ends_it(tmp_path: Path):
    parts: list[tuple[str, str, dict[str, Any]]] = [
        ("msg_z", "prt_1", {"type": "text", "text": "See"}),
        ("msg_z", "prt_2", {"type": "file", "filename": "a.md"}),
        ("msg_z", "prt_3", {"type": "text", "text": "what it read", "synthetic": True}),
        ("msg_z", "prt_4", {"type": "text", "text": "more of it", "synthetic": True}),
        ("msg_z", "prt_5", {"type": "text", "text": "and say."}),
    ]
    assert told(read(files(tmp_path, parts))) == [
        ("msg_z", "user", "See\n\n[file: a.md]", ()),
        ("msg_z/1", "system", "what it read\n\nmore of it", ("hidden",)),
        ("msg_z/2", "user", "and say.", ()),
    ]


def test_parts_are_in_the_order_of_time_where_a_store_says_it(tmp_path: Path):
    database = tables(tmp_path / "opencode.db", PARTS)
    with apsw.Connection(str(database)) as connection:
        connection.execute("UPDATE part SET time_created = time_created - 1 WHERE id = 'prt_5'")
    connection.close()
    records = told(read(database))
    assert [content for _, _, content, _ in records] == [EXPECTED[0][2], "One.", *(one[2] for one in EXPECTED[1:4])]


def test_messages_of_another_session_are_never_taken_for_those_of_an_empty_one(tmp_path: Path):
    storage = files(tmp_path, PARTS)
    write(storage / "session" / "p" / "ses_0.json", {"id": "ses_1", **SESSION})
    records = read(storage)
    assert told(records) == EXPECTED
    assert {record.conversation for record in records if isinstance(record, Message)} == {"ses_1"}


def test_a_file_of_zeros_is_as_empty_as_one_of_nothing(tmp_path: Path):
    storage = files(tmp_path, PARTS)
    (storage / "part" / "msg_a" / "prt_3.json").write_bytes(bytes(4096))
    write(storage / "part" / "msg_a" / "prt_4.json", {"type": "text", "text": "after it"})
    with (storage / "part" / "msg_a" / "prt_4.json").open("ab") as file:
        file.write(bytes(4096))
    notes = Notes()
    assert [one[2] for one in told(read(storage, notes=notes))] == ["How many files?", "after it\n\nOne."]
    assert [skip.why.split(",")[0] for skip in notes.skipped] == ["it is empty"]


def test_what_else_stands_in_a_storage_belongs_to_it_and_is_passed_over(tmp_path: Path):
    storage = files(tmp_path, PARTS)
    write(storage / "project" / "p.json", {"worktree": "/x"})
    (storage / "migration").write_text("2")
    write(storage / "other.json", {"id": "x", "title": "y"})
    write(storage / "part" / "x" / "y.json", {"kind": "of another program"})
    notes = Notes()
    assert told(read(storage, notes=notes)) == EXPECTED
    assert notes.passed_over == {"step-start": 1, "step-finish": 1, "project": 1, "migration": 1}


def test_other_databases_are_not_taken_for_it(tmp_path: Path):
    connection = apsw.Connection(str(tmp_path / "other.db"))
    connection.execute("CREATE TABLE session (id); CREATE TABLE message (id, text); CREATE TABLE part (id)")
    connection.close()
    [source] = found([tmp_path])
    assert not OPENCODE.fits(source.sample, source)


def test_windows_paths_and_odd_directories():
    assert opencode_parts.project_of("C:\\work\\things") == "things"
    assert opencode_parts.project_of("/") is None
    assert opencode_parts.project_of(7) is None


ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
KEYS = st.sampled_from(
    ["type", "text", "state", "time", "error", "role", "parts", "url", "source", "synthetic", "attachments", "callID"]
)
KINDS = st.sampled_from(["text", "tool", "file", "reasoning", "agent", "subtask", "patch"])


@given(part=st.dictionaries(KEYS, ODD | KINDS), info=st.dictionaries(KEYS, ODD))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150)
def test_odd_types_never_raise_and_never_take_another_message_along(
    tmp_path: Path, part: dict[str, Any], info: dict[str, Any]
):
    storage = files(tmp_path, PARTS)
    write(storage / "message" / "ses_1" / "msg_odd.json", {**info, "time": {"created": BEGAN + 99}})
    write(storage / "part" / "msg_odd" / "prt_odd.json", part)
    records = told(list(_all(storage)))
    assert [record for record in records if not record[0].startswith("msg_odd")] == EXPECTED
    assert len({record[0] for record in records}) == len(records)


def _all(*paths: Path) -> Iterator[Record]:
    for entry in OPENCODE.entries(list(found(paths)), Notes()):
        yield from entry.read()


@given(st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
def test_a_damaged_file_never_raises_and_loses_no_undamaged_session(tmp_path: Path, data: st.DataObject):
    storage = files(tmp_path, PARTS)
    files(tmp_path, [], session="ses_2")
    write(storage / "message" / "ses_2" / "msg_2.json", MESSAGES["msg_z"])
    write(storage / "part" / "msg_2" / "prt_1.json", PARTS[0][2])
    hit = data.draw(st.sampled_from(sorted(path for path in storage.rglob("*.json") if "_2" not in str(path))))
    before = hit.read_bytes()
    hit.write_bytes(_damaged(data, before))
    try:
        kept = [r for r in _all(storage) if isinstance(r, Message) and r.id == "msg_2"]
    finally:
        hit.write_bytes(before)
    assert [record.content for record in kept] == ["How many files?"]


@given(st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=100)
def test_a_damaged_database_never_raises(tmp_path: Path, data: st.DataObject):
    path = tmp_path / "opencode.db"
    if not path.exists():
        tables(path, PARTS)
    damaged = tmp_path / "damaged.db"
    damaged.write_bytes(_damaged(data, path.read_bytes()))
    for _ in _all(damaged):
        pass


def _damaged(data: st.DataObject, content: bytes) -> bytes:
    """Cut, flipped, doubled, or with zeros inside."""
    place = data.draw(st.integers(0, len(content) - 1))
    end = min(len(content), place + data.draw(st.integers(1, 600)))
    kind = data.draw(st.sampled_from(["cut", "flip", "double", "zeros"]))
    if kind == "cut":
        return content[:place]
    middle = {
        "flip": bytes(byte ^ 0x55 for byte in content[place:end]),
        "double": content[place:end] * 2,
        "zeros": bytes(end - place),
    }[kind]
    return content[:place] + middle + content[end:]
