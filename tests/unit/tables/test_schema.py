"""What a schema.yaml and the arguments of a tool may say, and that it is written back whole."""

from pathlib import Path
from typing import Any

import jsonschema
import pytest

from convmem.errors import ContentTooLarge, Invalid, SchemaError
from convmem.limits import FIELDS_MAX, SCHEMA_BYTES_MAX
from convmem.tables.data import checked
from convmem.tables.model import FIELD_TYPES, SYNCS, Dump, Field, TableSchema
from convmem.tables.schema import changed, declared, json_schema, parse, render, updated, warnings
from tests.support.source import REPOSITORY

SCHEMAS = sorted((REPOSITORY / "contrib" / "schemas").glob("*.schema.yaml"))
WHOLE = b"""
table: notes
title: 12:30:45
description: |
  What is worth keeping.
  Two lines of it.
owner: {team: [a, 1.10, 7]}
fields:
  - name: no
    type: string
    required: true
    description: yes
  - {name: 1.10, type: number, unit: ms}
  - name: true
    type: boolean
dump:
  dir: out
  body_field: off
  sync: bidirectional
  since: 2026-05-31
history: full
"""
# The rest of a file that begins with `table: t`, and where it is refused.
REFUSED = {
    "no fields": ("title: x\n", (1, 1)),
    "fields that are null": ("fields:\ntitle: x\n", (2, 1)),
    "fields that are no list": ("fields: {a: string}\n", (2, 9)),
    "two lists of fields": ("fields: []\nfields: []\n", (3, 1)),
    "a field that is a word": ("fields:\n  - a\n", (3, 5)),
    "a field without a name": ("fields:\n  - type: string\n", (3, 5)),
    "a field whose name is null": ("fields:\n  - name: ~\n    type: string\n", (3, 11)),
    "a field whose name is a list": ("fields:\n  - name: [a]\n    type: string\n", (3, 11)),
    "a field whose name is empty": ("fields:\n  - name: ''\n    type: string\n", (3, 11)),
    "a field with a line break": ('fields:\n  - name: "a\\nb"\n    type: string\n', (3, 11)),
    "a field without a type": ("fields:\n  - name: a\n", (3, 5)),
    "a type in capitals": ("fields:\n  - name: a\n    type: String\n", (4, 11)),
    "a type of another world": ("fields:\n  - {name: a, type: int}\n", (3, 21)),
    "a field twice": ("fields:\n  - {name: a, type: string}\n  - {type: number, name: a}\n", (4, 26)),
    "a flag in quotes": ('fields:\n  - {name: a, type: string, required: "false"}\n', (3, 39)),
    "a flag of YAML 1.1": ("fields:\n  - {name: a, type: string, required: yes}\n", (3, 39)),
    "a flag that is a number": ("fields:\n  - {name: a, type: string, required: 1}\n", (3, 39)),
    "a title that is a list": ("title: [x]\nfields: []\n", (2, 8)),
    "a history of its own": ("fields: []\nhistory: some\n", (3, 10)),
    "a history that is a list": ("fields: []\nhistory: [off]\n", (3, 10)),
    "a dump that is a word": ("fields: []\ndump: yes\n", (3, 7)),
    "a way to sync that there is not": ("fields: []\ndump: {sync: read-only}\n", (3, 14)),
}


def schema_of(*fields: Field, **said: Any) -> TableSchema:
    return TableSchema(table="t", fields=fields, **said)


def fields_of(*names: str) -> list[dict[str, Any]]:
    return [{"name": name, "type": "string"} for name in names]


def test_bare_words_in_names_and_titles_stay_text():
    assert parse(WHOLE) == TableSchema(
        table="notes",
        title="12:30:45",
        description="What is worth keeping.\nTwo lines of it.\n",
        fields=(
            Field(name="no", type="string", required=True, description="yes"),
            Field(name="1.10", type="number", unknown={"unit": "ms"}),
            Field(name="true", type="boolean"),
        ),
        dump=Dump(dir="out", body_field="off", sync="bidirectional", unknown={"since": "2026-05-31"}),
        unknown={"owner": {"team": ["a", "1.10", 7]}},
    )


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_meant_is_refused_with_line_and_column(name: str):
    rest, where = REFUSED[name]
    with pytest.raises(SchemaError) as caught:
        parse(b"table: t\n" + rest.encode())
    assert (caught.value.details["line"], caught.value.details["column"]) == where, caught.value.message


@pytest.mark.parametrize("table", ["", "../x", "con", "_x", "[a]", "a b", "null"])
def test_a_table_needs_a_name_that_can_be_one(table: str):
    with pytest.raises(SchemaError) as caught:
        parse(f"fields: []\ntable: {table}\n".encode())
    assert caught.value.details["line"] == 2


@pytest.mark.parametrize("text", ["", "- a\n", "just words\n", "7\n"])
def test_a_file_that_is_no_mapping_is_no_schema(text: str):
    with pytest.raises(SchemaError, match="mapping"):
        parse(text.encode())


@pytest.mark.parametrize("word", ["off", "Off", "OFF", "no", "No", "false", "False", "'off'", '"no"'])
def test_history_is_off_however_yaml_has_it(word: str):
    assert parse(f"table: t\nfields: []\nhistory: {word}\n".encode()).history == "off"


def test_history_is_full_unless_it_is_off():
    for rest in ("", "history: full\n", "history:\n", "history: ~\n"):
        assert parse(b"table: t\nfields: []\n" + rest.encode()).history == "full"


def test_null_is_the_same_as_absent_where_a_key_may_be_absent():
    text = (
        "table: t\ntitle: ~\ndescription:\ndump: null\nfields:\n- {name: a, type: string, required: , description: }\n"
    )
    assert parse(text.encode()) == schema_of(Field(name="a", type="string"))


def test_names_that_only_look_alike_are_two_fields():
    text = "table: t\nfields:\n- {name: é, type: string}\n- {name: e\u0301, type: string}\n- {name: É, type: string}\n"
    assert len(parse(text.encode()).fields) == 3


def test_so_many_fields_and_no_more():
    given = {"table": "t", "fields": fields_of(*map(str, range(FIELDS_MAX)))}
    assert parse(render(declared(given))) == declared(given)
    given["fields"] += fields_of("more")
    with pytest.raises(Invalid, match=str(FIELDS_MAX)):
        declared(given)


def test_unknown_keys_are_kept_and_warned_about():
    schema = parse(WHOLE)
    assert parse(render(schema)) == schema
    assert [sentence.split()[0] for sentence in warnings(schema)] == ["owner", "fields.1.unit", "dump.since"]
    assert warnings(schema_of()) == []


def test_rendering_is_stable_and_says_no_more_than_it_must():
    schema = schema_of(Field(name="a", type="string", required=True), Field(name="no", type="object"))
    written = (
        b'table: t\nfields:\n  - name: a\n    type: string\n    required: true\n  - name: "no"\n    type: object\n'
    )
    assert render(schema) == render(parse(render(schema))) == written
    assert b'history: "off"\n' in render(schema_of(history="off"))


def test_a_declared_schema_is_the_one_of_the_file_it_becomes():
    given = {
        "table": "t",
        "title": "no",
        "fields": [{"name": "null", "type": "array", "required": True, "description": "a\nb"}, *fields_of("~")],
        "history": "off",
        "dump": {"title_field": "null"},
    }
    assert parse(render(declared(given))) == declared(given)
    assert declared(given).fields[0] == Field(name="null", type="array", required=True, description="a\nb")


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"fields": []}, ""),
        ({"table": "t"}, ""),
        ({"table": "../t", "fields": []}, "table"),
        ({"table": 7, "fields": []}, "table"),
        ({"table": "t", "fields": "a"}, "fields"),
        ({"table": "t", "fields": [{"name": "a"}]}, "fields.0"),
        ({"table": "t", "fields": [{"name": "a", "type": "text"}]}, "fields.0.type"),
        ({"table": "t", "fields": [{"name": 7, "type": "string"}]}, "fields.0.name"),
        ({"table": "t", "fields": [{"name": "a", "type": "string", "required": "false"}]}, "fields.0.required"),
        ({"table": "t", "fields": [{"name": "a", "type": "string", "unique": True}]}, "fields.0.unique"),
        ({"table": "t", "fields": fields_of("a", "a")}, "fields.1.name"),
        ({"table": "t", "fields": [], "titel": "x"}, "titel"),
        ({"table": "t", "fields": [], "dump": {"path": "x"}}, "dump.path"),
        ({"table": "t", "fields": [], "history": 0}, "history"),
        ({"table": "t", "fields": [], "title": "a\0"}, "title"),
    ],
)
def test_an_argument_that_cannot_be_meant_is_refused_by_its_name(given: dict[str, Any], field: str):
    with pytest.raises(Invalid) as caught:
        declared(given)
    assert caught.value.details == {"field": field}


def test_a_schema_whose_file_would_be_too_large_is_refused():
    # Each of these takes three bytes in the file, so the text alone would have room.
    given = {"table": "t", "fields": [], "title": "\x01" * (SCHEMA_BYTES_MAX // 2)}
    with pytest.raises(ContentTooLarge) as caught:
        declared(given)
    assert caught.value.details["bytes"] > caught.value.details["bytes_max"] == SCHEMA_BYTES_MAX


def test_an_update_keeps_dump_and_history_and_what_it_does_not_know():
    old = parse(WHOLE.replace(b"history: full", b"history: off"))
    new = updated(old, {"table": "notes", "fields": fields_of("1.10", "new")})
    assert (new.dump, new.history, new.unknown) == (old.dump, "off", old.unknown)
    assert new.title is None
    assert new.fields == (Field(name="1.10", type="string", unknown={"unit": "ms"}), Field(name="new", type="string"))
    new = updated(old, {"table": "notes", "fields": [], "history": "full", "dump": {"dir": "y"}})
    assert (new.history, new.dump) == ("full", Dump(dir="y", unknown={"since": "2026-05-31"}))


def test_what_changed_between_two_schemas_is_told_by_name():
    old = schema_of(Field(name="a", type="string"), Field(name="b", type="number"), Field(name="c", type="array"))
    new = schema_of(
        Field(name="c", type="object", required=True), Field(name="a", type="string"), Field(name="d", type="string")
    )
    assert changed(old, new) == {"fields_added": ["d"], "fields_removed": ["b"], "fields_type_changed": ["c"]}
    assert not any(changed(old, old).values())


def test_the_json_schema_is_one_and_agrees_with_the_check():
    schema = schema_of(
        *(Field(name=f"a {kind}", type=kind, required=kind == "string", description=kind) for kind in FIELD_TYPES)
    )
    made = json_schema(schema)
    jsonschema.Draft7Validator.check_schema(made)
    validator = jsonschema.Draft7Validator(made)
    values: list[Any] = ["x", 1, 1.5, True, [], {}, "1", 0]
    for kind in FIELD_TYPES:
        for value in values:
            data = {"a string": "x", f"a {kind}": value}
            if validator.is_valid(data):
                assert checked(schema, data) == data
            else:
                with pytest.raises(Invalid):
                    checked(schema, data)
    assert not validator.is_valid({"a number": 1})
    assert validator.is_valid({"a string": "", "other": None})


@pytest.mark.parametrize("sync", SYNCS)
def test_both_words_for_sync_are_read(sync: str):
    assert parse(f"table: t\nfields: []\ndump: {{sync: {sync}}}\n".encode()).dump == Dump(sync=sync)  # type: ignore[arg-type]


@pytest.mark.parametrize("path", SCHEMAS, ids=lambda path: path.name)
def test_the_schemas_to_begin_with_are_sound_and_named_as_their_tables(path: Path):
    schema = parse(path.read_bytes())
    assert path.name == f"{schema.table}.schema.yaml"
    assert (bool(schema.title), bool(schema.description), warnings(schema)) == (True, True, [])
    assert parse(render(schema)) == schema
    assert f"`{path.name}`" in (path.parent / "README.md").read_text(encoding="utf-8")


def test_relations_are_the_fields_that_others_count_on():
    relations = parse((REPOSITORY / "contrib" / "schemas" / "relations.schema.yaml").read_bytes())
    needed = [(field.name, field.type) for field in relations.fields if field.required]
    assert needed == [("from", "string"), ("to", "string"), ("type", "string"), ("ts", "number")]
    assert [field.name for field in relations.fields[4:]] == ["strength", "metadata", "source_entry_id"]
    assert len(SCHEMAS) == 6
