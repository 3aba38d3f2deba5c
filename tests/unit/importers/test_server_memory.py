"""server_memory: whatever a graph's file went through, entities are messages and relations links, or text."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from convmem.importers.model import Link, Message, Notes
from convmem.importers.server_memory import SERVER_MEMORY
from convmem.importers.sources import found
from convmem.limits import RELATION_TYPE_BYTES_MAX, RELATIONS_MAX

ANN = {"type": "entity", "name": "Ann", "entityType": "person", "observations": ["likes tea", "lives in 京都"]}
TEA = {"type": "entity", "name": "Tea", "entityType": "drink", "observations": []}
LIKES = {"type": "relation", "from": "Ann", "to": "Tea", "relationType": "likes"}
ANN_TEXT = "Ann (person)\n- likes tea\n- lives in 京都"


def lines(*values: Any) -> bytes:
    return "\n".join(json.dumps(value, ensure_ascii=False) for value in values).encode()


def read(path: Path, *contents: bytes, notes: Notes | None = None) -> list[Message]:
    """The records of files with these contents."""
    for count, content in enumerate(contents):
        (path / f"{count}.json").write_bytes(content)
    sources = list(found([path]))
    assert all(SERVER_MEMORY.fits(source.sample, source) for source in sources)
    records = []
    for entry in SERVER_MEMORY.entries(sources, Notes() if notes is None else notes):
        for record in entry.read():
            assert isinstance(record, Message)
            records.append(record)
    return records


def told(records: list[Message]) -> dict[str, str]:
    assert len({record.id for record in records}) == len(records)
    return {record.id: record.content for record in records}


def test_an_entity_is_a_message_and_a_relation_a_link_to_what_stands_before_it(tmp_path: Path):
    notes = Notes()
    assert read(tmp_path, lines(ANN, TEA, LIKES), notes=notes) == [
        Message(conversation="memory", id="Tea", role="system", content="Tea (drink)", kind="semantic"),
        Message(
            conversation="memory",
            id="Ann",
            role="system",
            content=ANN_TEXT,
            kind="semantic",
            links=(Link("likes", "memory", "Tea"),),
        ),
    ]
    assert not notes.skipped


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbf" + lines(ANN, TEA, LIKES),
        lines(ANN, TEA, LIKES).replace(b"\n", b"\r\n") + b"\r\n\r\n",
        b"\xff\xfe" + lines(ANN, TEA, LIKES).decode().encode("utf-16-le"),
        lines({"entities": [ANN, TEA], "relations": [LIKES]}),
        json.dumps({"entities": [ANN, TEA], "relations": [LIKES]}, indent=2).encode(),
        lines({"version": 1, "relations": [LIKES], "entities": [ANN, TEA]}),
        lines([ANN, TEA, LIKES]),
        json.dumps(ANN, indent=2).encode() + json.dumps(TEA, indent=2).encode() + lines(LIKES),
    ],
)
def test_every_spelling_of_the_file_says_the_same(tmp_path: Path, content: bytes):
    notes = Notes()
    records = read(tmp_path, content, notes=notes)
    assert told(records) == {"Tea": "Tea (drink)", "Ann": ANN_TEXT}
    assert records[1].links == (Link("likes", "memory", "Tea"),)
    assert not notes.skipped


@pytest.mark.parametrize(
    ("entity", "relation"),
    [
        (
            {"type": "entity", "entityName": "Ann", "entity_type": "person", "observations": []},
            {"type": "relation", "from_id": "Ann", "to_id": "Tea", "relation_type": "likes"},
        ),
        (
            {"type": "entity", "id": "Ann", "entityType": "person"},
            {"from": "Ann", "to": "Tea", "relationType": "likes"},
        ),
        (
            {"type": "person", "id": 7, "name": "Ann", "observations": []},
            {"type": "relation", "source": 7, "target": "Tea", "relation_type": "likes"},
        ),
    ],
)
def test_other_names_for_the_same_things_are_known(tmp_path: Path, entity: Any, relation: Any):
    for number, content in enumerate(
        (lines(TEA, entity, relation), lines({"entities": [entity, TEA], "relations": [relation]}))
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        records = read(folder, content)
        assert told(records) == {"Tea": "Tea (drink)", "Ann": "Ann (person)"}
        assert records[1].links == (Link("likes", "memory", "Tea"),)


def test_the_type_of_an_entity_in_a_list_is_its_kind(tmp_path: Path):
    wrapped = {"entities": [{"name": "test", "type": "person"}]}
    assert told(read(tmp_path, lines(wrapped))) == {"test": "test (person)"}


def test_an_entity_that_stands_twice_has_the_observations_of_both_in_order(tmp_path: Path):
    again = {**ANN, "observations": ["lives in 京都", "has a cat"]}
    expected = f"{ANN_TEXT}\n- has a cat"
    assert told(read(tmp_path, lines(ANN, again, ANN))) == {"Ann": expected}
    assert told(read(tmp_path, lines(ANN), lines(again))) == {"Ann": expected}


def test_the_first_kind_that_is_said_of_an_entity_counts(tmp_path: Path):
    every = ({**TEA, "entityType": None}, TEA, {**TEA, "entityType": "leaf"})
    assert told(read(tmp_path, lines(*every))) == {"Tea": "Tea (drink)"}


def test_objects_fused_on_a_line_a_stray_brace_and_a_cut_tail_take_only_themselves(tmp_path: Path):
    content = lines(ANN) + lines(TEA) + b"\n}\n" + lines(LIKES) + b"}\n" + lines(ANN)[:40]
    notes = Notes()
    records = read(tmp_path, content, notes=notes)
    assert told(records) == {"Tea": "Tea (drink)", "Ann": ANN_TEXT}
    assert len(records[1].links) == 1
    assert [skip.where.rsplit(", ", 1)[1] for skip in notes.skipped] == ["line 2", "line 3", "line 4"]


def test_a_wrapped_graph_that_is_cut_off_keeps_what_is_whole(tmp_path: Path):
    content = lines({"entities": [ANN, TEA, {"name": "Lost", "entityType": "x", "observations": []}]})
    notes = Notes()
    assert told(read(tmp_path, content[:-30], notes=notes)) == {"Tea": "Tea (drink)", "Ann": ANN_TEXT}
    assert notes.skipped


def test_a_relation_with_nobody_on_one_side_stands_in_the_text_of_the_other(tmp_path: Path):
    to_nobody = {"type": "relation", "from": "Tea", "to": "Nobody", "relationType": "grown_by"}
    from_nobody = {"type": "relation", "from": "Nobody", "to": "Tea", "relationType": "drinks"}
    neither = {"type": "relation", "from": "Nobody", "to": "Noone", "relationType": "knows"}
    notes = Notes()
    [record] = read(tmp_path, lines(to_nobody, from_nobody, neither, TEA), notes=notes)
    assert record.content == "Tea (drink)\ngrown_by: Nobody\ndrinks by: Nobody"
    assert not record.links
    assert [(skip.where.rsplit(", ", 1)[1], skip.why.split(":")[0]) for skip in notes.skipped] == [
        ("line 3", "there is neither an entity Nobody nor Noone"),
    ]
    assert notes.passed_over == {"relation to what is not there, kept as text": 2}


def test_what_more_relations_there_are_than_links_can_be_stands_in_the_text(tmp_path: Path):
    many = [{"type": "entity", "name": f"e{number}", "entityType": "x"} for number in range(RELATIONS_MAX + 2)]
    relations = [{**LIKES, "to": entity["name"]} for entity in many]
    *_, record = read(tmp_path, lines({**TEA, "name": "Ann"}, *many, *relations, relations[0]))
    assert [link.id for link in record.links] == [entity["name"] for entity in many[:RELATIONS_MAX]]
    assert record.content == f"Ann (drink)\nlikes: e{RELATIONS_MAX}\nlikes: e{RELATIONS_MAX + 1}"


def test_the_type_of_a_link_is_cut_between_code_points(tmp_path: Path):
    *_, record = read(
        tmp_path, lines(ANN, TEA, {**LIKES, "relationType": "好" * 40}, {**LIKES, "relationType": "好" * 41})
    )
    assert [link.type for link in record.links] == ["好" * (RELATION_TYPE_BYTES_MAX // 3)]


def test_in_a_circle_the_files_order_stands_and_what_comes_later_is_also_said(tmp_path: Path):
    back = {"type": "relation", "from": "Tea", "to": "Ann", "relationType": "pleases"}
    itself = {"type": "relation", "from": "Tea", "to": "Tea", "relationType": "is"}
    records = read(tmp_path, lines(ANN, TEA, LIKES, back, itself))
    assert told(records) == {"Ann": f"{ANN_TEXT}\nlikes: Tea", "Tea": "Tea (drink)\nis: Tea"}
    assert [[link.id for link in record.links] for record in records] == [["Tea"], ["Ann", "Tea"]]


def test_what_is_odd_is_noted_and_the_rest_is_kept(tmp_path: Path):
    odd = [
        {"type": "entity", "name": " ", "observations": ["of nobody"]},
        {"type": "entity", "name": "Odd", "entityType": 7, "observations": ["one", 2, None, " ", {"x": 1}]},
        {"type": "entity", "name": "Plain", "observations": "a text"},
        {"type": "relation", "from": "Odd"},
        {"type": "relation", "from": "Odd", "to": "Plain"},
        {"something": "else"},
        {"entities": ["no object"]},
        [1],
        "text",
    ]
    notes = Notes()
    records = read(tmp_path, lines(*odd, TEA), notes=notes)
    assert told(records) == {"Plain": "Plain\n- a text", "Odd": "Odd (7)\n- one", "Tea": "Tea (drink)"}
    assert records[1].links == (Link("related_to", "memory", "Plain"),)
    places = [skip.where.rsplit(", line ", 1)[1] for skip in notes.skipped]
    assert places == ["1", "2", "2", "4", "6", "7, entities 1", "8", "9"]


def test_a_graph_with_nothing_in_it_is_passed_over(tmp_path: Path):
    notes = Notes()
    assert not read(tmp_path, lines({"entities": [], "relations": []}), notes=notes)
    assert notes.passed_over == {"empty conversation": 1}


@pytest.mark.parametrize(
    "content",
    [
        lines({"type": "user", "uuid": "x", "name": "y"}),
        lines({"type": "entity"}),
        lines({"exported_at": "x", "version": "2", "entities": [], "relations": [], "memories": []}),
        lines({"name": "a package", "version": "1.0.0"}),
        lines({"entities": {"a": 1}, "relations": []}),
        b"",
        b"text",
    ],
)
def test_other_files_are_not_taken_for_it(tmp_path: Path, content: bytes):
    (tmp_path / "a.json").write_bytes(content)
    [source] = found([tmp_path])
    assert not SERVER_MEMORY.fits(source.sample, source)


@given(st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150)
def test_damage_never_raises_and_takes_no_whole_line_along(tmp_path: Path, data: st.DataObject):
    values = [{"type": "entity", "name": f"e{number}", "entityType": "x", "observations": ["o"]} for number in range(6)]
    every = data.draw(st.permutations([lines(value) for value in values]))
    hit = data.draw(st.integers(0, len(every) - 1))
    line, place = every[hit], data.draw(st.integers(0, len(every[hit]) - 1))
    damaged = data.draw(
        st.sampled_from([line[:place], line * 2, line[:place] + line[place:].swapcase(), line[:place] + b"\0" * 9])
    )
    path = tmp_path / "memory.json"
    path.write_bytes(b"\n".join([*every[:hit], damaged, *every[hit + 1 :]]))
    records = [record for entry in SERVER_MEMORY.entries(list(found([path])), Notes()) for record in entry.read()]
    kept = {record.id for record in records if isinstance(record, Message)}
    assert kept >= {f"e{number}" for number in range(6)} - {json.loads(line)["name"]}


@given(st.binary(max_size=200) | st.text(alphabet='{}[]":,entiyamprlo \n', max_size=200).map(str.encode))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150)
def test_no_bytes_at_all_raise(tmp_path: Path, content: bytes):
    path = tmp_path / "memory.json"
    path.write_bytes(lines(ANN) + b"\n" + content)
    for entry in SERVER_MEMORY.entries(list(found([path])), Notes()):
        list(entry.read())
