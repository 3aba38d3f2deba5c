"""From files to batches: in the order of time, in the bounds of a store, and with an outcome for everything."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from convmem import importing
from convmem.errors import Invalid
from convmem.import_report import Report
from convmem.importers.model import Entry, Format, Lesson, Link, Message, Preference, Record, Section
from convmem.importing import Options
from convmem.limits import CONTENT_BYTES_MAX, PROJECT_BYTES_MAX, RELATIONS_MAX, SESSION_ID_BYTES_MAX, TAGS_MAX

Sent = list[dict[str, Any]]


def said(message_id: str = "m", content: str = "said", **more: Any) -> Message:
    return Message(**{"conversation": "c", "id": message_id, "role": "user", "content": content, **more})


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int | None, str | None, list[Record]]]:
    """A format whose entries are what a test puts into this list: time, title, records."""
    entries: list[tuple[int | None, str | None, list[Record]]] = []

    def made(sources: Any, notes: Any) -> Iterator[Entry]:
        for number, (at, title, records) in enumerate(entries):
            yield Entry(f"entry {number}", at, lambda records=records: iter(records), title)  # type: ignore[misc]

    fits = lambda sample, source: bool(sample.values) and "toy" in sample.values[0]  # noqa: E731
    monkeypatch.setattr(importing, "FORMATS", (Format("toy", fits, made),))
    return entries


def run(tmp_path: Path, options: Options | None = None, outcome: str = "stored") -> tuple[list[Sent], Report]:
    """The batches that a file of the toy format makes, each answered with this outcome."""
    path = tmp_path / "toy.json"
    path.write_text(json.dumps({"toy": 1}))
    report, sent = Report(), list[Sent]()
    batches = importing.batches([path], options or Options(), report, lambda done, total, sentence: None)
    answer: list[Mapping[str, Any]] | None = None
    for _ in range(10_000):
        try:
            batch = batches.send(answer) if sent or answer is not None else next(batches)
        except StopIteration:
            break
        answer = [{"outcome": outcome} for _ in sent[-1]] if sent else None
        sent.append(batch)
    return [batch for batch in sent if batch], report


def records(tmp_path: Path, options: Options | None = None) -> Sent:
    batches, _ = run(tmp_path, options)
    return [record for batch in batches for record in batch]


def test_conversations_come_by_their_time_and_messages_in_their_order(tmp_path: Path, toy: Any):
    toy += [
        (30, None, [said("late")]),
        (10, None, [said("1", at=99), said("2", at=5)]),
        (None, None, [said("nobody knows")]),
        (20, None, [said("mid")]),
    ]
    assert [record["id"] for record in records(tmp_path)] == ["nobody knows", "1", "2", "mid", "late"]


def test_a_message_without_a_time_has_that_before_it(tmp_path: Path, toy: Any):
    toy += [(10, None, [said("a"), said("b", at=50), said("c")]), (None, None, [said("d", conversation="e")])]
    assert [record.get("at") for record in records(tmp_path)] == [None, 10, 50, 50]


def test_the_title_stands_with_the_first_message(tmp_path: Path, toy: Any):
    toy += [(1, "Title", [said("a"), said("b")])]
    assert [record.get("summary") for record in records(tmp_path)] == ["Title", None]


def test_what_is_longer_than_a_message_comes_in_parts_that_point_at_each_other(tmp_path: Path, toy: Any):
    text = "".join(f"line {number} é\n" for number in range(200_000))
    toy += [(1, None, [said("long", text, links=(Link("t", "c", "before"),), tool_call_id="t")])]
    parts = records(tmp_path)
    assert "".join(part["content"] for part in parts) == text
    assert all(len(part["content"].encode()) <= CONTENT_BYTES_MAX for part in parts)
    assert all(part["content"].endswith("\n") for part in parts)
    assert [part["id"] for part in parts] == ["long", "long~2", "long~3"][: len(parts)]
    assert [part["links"][0] for part in parts[:2]] == [
        {"type": "t", "conversation": "c", "id": "before"},
        {"type": "continues", "conversation": "c", "id": "long"},
    ]
    whole = "x" * (CONTENT_BYTES_MAX + 5)
    toy[:] = [(1, None, [said("one line", whole)])]
    assert "".join(part["content"] for part in records(tmp_path)) == whole


def test_names_are_brought_into_the_store_s_bounds_and_stay_unlike(tmp_path: Path, toy: Any):
    long = "n" * 2_000
    toy += [
        (
            1,
            None,
            [
                said(long + "1", conversation=long, project="p\0" * 900, tags=tuple(map(str, range(60)))),
                said(long + "2", conversation=long, links=tuple(Link("t", "c", str(n)) for n in range(50))),
                said("nul\0", "half \ud83d", tool_call_id="t" * 999, account="a" * 999),
            ],
        )
    ]
    first, second, third = records(tmp_path)
    assert first["id"] != second["id"]
    assert len(first["session_id"].encode()) <= SESSION_ID_BYTES_MAX
    assert first["session_id"] == second["session_id"] != third["session_id"]
    assert len(first["project"].encode()) <= PROJECT_BYTES_MAX
    assert "\0" not in first["project"] + third["id"]
    assert len(first["tags"]) <= TAGS_MAX
    assert len(second["links"]) == RELATIONS_MAX
    assert third["content"] == "half ?"


def test_options_leave_out_and_rename(tmp_path: Path, toy: Any):
    toy += [(1, None, [said("old", at=5), said("thought", at=50, tags=("thinking",)), said("new", at=50, project="x")])]
    options = Options(project="mine", account="me", since_ms=10, keeps_thinking=False)
    _, report = run(tmp_path, options)
    (record,) = records(tmp_path, options)
    assert (record["id"], record["project"], record["account"]) == ("new", "mine", "me")
    facts = report.facts(with_conversations=True)
    assert (facts["read"], facts["left_out"], facts["stored"]) == (3, 2, 1)
    assert facts["conversation_list"][0]["left_out"] == 2


def test_secrets_are_taken_out_unless_they_are_to_stay(tmp_path: Path, toy: Any):
    secret = "AKIA" + "IOSFODNN7EXAMPLE"
    toy += [(1, f"title {secret}", [said("m", f"key {secret}")])]
    assert secret not in repr(records(tmp_path))
    assert secret in records(tmp_path, Options(keeps_secrets=True))[0]["content"]


def test_records_of_memory_are_named_as_the_store_names_them(tmp_path: Path, toy: Any):
    toy += [
        (
            1,
            None,
            [
                Preference(category="moods", key="k", value="v", source="guess", confidence=0.5, at=7),
                Lesson(situation="s", mistake="m", correction="c"),
                Section(section="About Me!", content="x"),
                Section(section="topics", content="made by another program"),
            ],
        )
    ]
    preference, lesson, section = records(tmp_path, Options(project="p"))
    assert preference == {
        "type": "preference",
        "category": "other",
        "key": "k",
        "value": "v",
        "confidence": 0.5,
        "at": 7,
        "project": "p",
    }
    assert lesson["project"] == "p"
    assert section["section"] == "about_me_"
    _, report = run(tmp_path)
    assert report.facts(with_conversations=False)["left_out"] == 1


def test_batches_are_bounded_and_every_record_has_an_outcome(tmp_path: Path, toy: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(importing, "IMPORT_BATCH_RECORDS", 3)
    toy += [(1, None, [said(str(number)) for number in range(8)]), (2, None, [said("x", conversation="d")])]
    batches, report = run(tmp_path, outcome="same")
    assert [len(batch) for batch in batches] == [3, 3, 3]
    assert [one.outcomes["same"] for one in report.conversations] == [8, 1]
    monkeypatch.setattr(importing, "IMPORT_BATCH_BYTES", 5_000)
    toy[:] = [(1, None, [said(str(number), "x" * 2_000) for number in range(4)])]
    batches, _ = run(tmp_path)
    assert [len(batch) for batch in batches] == [1, 1, 1, 1]


def test_what_is_of_no_known_format_is_refused_by_name_and_beside_others_counted(tmp_path: Path, toy: Any):
    (tmp_path / "other.txt").write_text("hello")
    report = Report()

    def tell(done: float, total: float, sentence: str) -> None:
        pass

    for path, options in ((tmp_path / "other.txt", Options()), (tmp_path, Options(format="none"))):
        with pytest.raises(Invalid) as refused:
            next(importing.batches([path], options, report, tell))
        assert refused.value.details["field"] == "format"
    (tmp_path / "toy.json").write_text('{"toy": 1}')
    next(importing.batches([tmp_path], Options(), report, tell))
    assert report.notes.passed_over == {"file of no known format": 1}
    next(importing.batches([tmp_path / "nothing"], Options(), report, tell))
    assert report.is_partial


def test_a_record_that_is_refused_is_named(tmp_path: Path, toy: Any):
    report = Report()
    entry = Entry("file: title", None, lambda: iter(()))
    conversation = report.begin("toy", entry)
    refused = {"outcome": "refused", "code": "VALIDATION_ERROR", "message": "value is too long"}
    report.note(conversation, {"type": "preference", "key": "k"}, refused)
    report.note(conversation, {"type": "message", "id": "m"}, {"outcome": "stored", "links_missing": 2})
    facts = report.facts(with_conversations=False)
    assert (facts["refused"], facts["stored"], facts["links_missing"], facts["skipped"]) == (1, 1, 2, 1)
    assert facts["skipped_list"] == [{"where": "file: title: k", "why": "VALIDATION_ERROR: value is too long"}]
    assert report.is_partial
