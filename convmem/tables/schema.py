"""What a schema.yaml says, and how it is written: from a file or from a tool's arguments to a TableSchema and back.

Files are shared with other programs, so a key that we do not know is kept (`unknown`) and warned about; arguments are
ours, so there it is refused. A key whose value is null is the same as no key.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from convmem.errors import ContentTooLarge
from convmem.limits import FIELDS_MAX, SCHEMA_BYTES_MAX
from convmem.tables.model import FIELD_TYPES, SYNCS, Dump, Field, FieldType, History, Sync, TableSchema
from convmem.tables.names import field_name_fault, table_name_fault
from convmem.tables.nodes import Node, child_path, from_arguments, refusal
from convmem.tables.yaml_reading import read
from convmem.tables.yaml_writing import write

TABLE_KEYS = ("table", "title", "description", "fields", "dump", "history")
FIELD_KEYS = ("name", "type", "required", "description")
DUMP_KEYS = ("dir", "title_field", "body_field", "sync")
# YAML 1.1 reads a bare off or no as false, and people write all of them.
HISTORIES: Mapping[str, History] = {"full": "full", "off": "off", "no": "off", "false": "off"}
DRAFT_07 = "http://json-schema.org/draft-07/schema#"


def parse(text: bytes) -> TableSchema:
    """The schema of a file; SchemaError with `line` and `column` for the first thing that is wrong with it."""
    return _table(read(text))


def declared(given: Mapping[str, Any]) -> TableSchema:
    """The schema that a caller declares with the keys of a schema.yaml.

    Invalid with `field` for the first thing that is wrong, an unknown key too; ContentTooLarge if its file would be.
    """
    schema = _table(from_arguments(given))
    _refuse_unknown(schema)
    return _fitting(schema)


def updated(old: TableSchema, given: Mapping[str, Any]) -> TableSchema:
    """The schema of a table whose schema was `old`, as a caller declares it anew (see declared).

    What was said of dump and history stays unless it is given; so do unknown keys, those of a field with the field.
    """
    new = declared(given)
    fields = [
        msgspec.structs.replace(field, unknown=before.unknown) if (before := old.field(field.name)) else field
        for field in new.fields
    ]
    dump = old.dump if given.get("dump") is None else new.dump
    if dump is not None and old.dump is not None:
        dump = msgspec.structs.replace(dump, unknown=old.dump.unknown)
    history = old.history if given.get("history") is None else new.history
    whole = msgspec.structs.replace(new, fields=tuple(fields), dump=dump, history=history, unknown=old.unknown)
    return _fitting(whole)


def warnings(schema: TableSchema) -> list[str]:
    """What a file says in vain, one sentence each."""
    return [f"{path} is not a key we know; it is kept" for path in _unknown_paths(schema)]


def render(schema: TableSchema) -> bytes:
    """A schema.yaml that parses back to the same schema, unknown keys included; the same bytes every time.

    Comments and the layout of a file that a person wrote are not kept.
    """
    facts = schema.facts()
    for field in facts["fields"]:
        if not field["required"]:
            del field["required"]
    if schema.history == "full":
        del facts["history"]
    return write(facts)


def changed(old: TableSchema, new: TableSchema) -> dict[str, list[str]]:
    """{fields_added, fields_removed, fields_type_changed}: names, in the order of the schema that has them."""
    before, after = ({field.name: field.type for field in schema.fields} for schema in (old, new))
    return {
        "fields_added": [name for name in after if name not in before],
        "fields_removed": [name for name in before if name not in after],
        "fields_type_changed": [name for name in after if name in before and before[name] != after[name]],
    }


def json_schema(schema: TableSchema) -> dict[str, Any]:
    """JSON Schema (draft-07) of a row's `data`: what it accepts is a row, but for sizes and depth."""
    about = {"title": schema.title or schema.table, "description": schema.description}
    properties = {
        field.name: {"type": field.type} | ({"description": field.description} if field.description else {})
        for field in schema.fields
    }
    return {
        "$schema": DRAFT_07,
        **{name: text for name, text in about.items() if text},
        "type": "object",
        "properties": properties,
        "required": [field.name for field in schema.fields if field.required],
        "additionalProperties": True,
    }


def _table(node: Node) -> TableSchema:
    entries = _entries(node)
    return TableSchema(
        table=_needed(node, entries, "table", lambda inner: _named(inner, table_name_fault)),
        title=_optional(entries, "title", _text),
        description=_optional(entries, "description", _text),
        fields=_needed(node, entries, "fields", _fields),
        dump=_optional(entries, "dump", _dump),
        history=_optional(entries, "history", _history) or "full",
        unknown=_unknown(entries, TABLE_KEYS),
    )


def _fields(node: Node) -> tuple[Field, ...]:
    if not isinstance(node.value, tuple):
        raise node.refused("must be a list")
    if len(node.value) > FIELDS_MAX:
        raise node.refused(f"must have at most {FIELDS_MAX} entries")
    fields: dict[str, Field] = {}
    for inner in node.value:
        field = _field(inner)
        if field.name in fields:
            raise _entries(inner)["name"].refused("names a field that is there already")
        fields[field.name] = field
    return tuple(fields.values())


def _field(node: Node) -> Field:
    entries = _entries(node)
    return Field(
        name=_needed(node, entries, "name", lambda inner: _named(inner, field_name_fault)),
        type=_needed(node, entries, "type", _field_type),
        required=_optional(entries, "required", _flag) or False,
        description=_optional(entries, "description", _text),
        unknown=_unknown(entries, FIELD_KEYS),
    )


def _dump(node: Node) -> Dump:
    entries = _entries(node)
    return Dump(
        dir=_optional(entries, "dir", _text),
        title_field=_optional(entries, "title_field", _text),
        body_field=_optional(entries, "body_field", _text),
        sync=_optional(entries, "sync", _sync),
        unknown=_unknown(entries, DUMP_KEYS),
    )


def _entries(node: Node) -> Mapping[str, Node]:
    if not isinstance(node.value, Mapping):
        raise node.refused("must be a mapping of keys to values")
    return node.value


def _needed(node: Node, entries: Mapping[str, Node], key: str, take: Callable[[Node], Any]) -> Any:
    if key not in entries or entries[key].value is None:
        raise entries.get(key, node).refused(f"needs a value for {key}" if key not in entries else "must have a value")
    return take(entries[key])


def _optional(entries: Mapping[str, Node], key: str, take: Callable[[Node], Any]) -> Any:
    return None if key not in entries or entries[key].value is None else take(entries[key])


def _unknown(entries: Mapping[str, Node], known: tuple[str, ...]) -> dict[str, Any]:
    return {key: node.plain() for key, node in entries.items() if key not in known}


def _text(node: Node) -> str:
    if node.text is None:
        raise node.refused("must be a text")
    return node.text


def _named(node: Node, fault_of: Callable[[str], str | None]) -> str:
    name = _text(node)
    if fault := fault_of(name):
        raise node.refused(fault)
    return name


def _flag(node: Node) -> bool:
    if not isinstance(node.value, bool):
        raise node.refused("must be true or false, without quotes")
    return node.value


def _field_type(node: Node) -> FieldType:
    for known in FIELD_TYPES:
        if node.text == known:
            return known
    raise node.refused(f"must be one of {', '.join(FIELD_TYPES)}")


def _sync(node: Node) -> Sync:
    for known in SYNCS:
        if node.text == known:
            return known
    raise node.refused(f"must be one of {', '.join(SYNCS)}")


def _history(node: Node) -> History:
    word = (node.text if node.text is not None else str(node.value)).lower()
    if isinstance(node.value, Mapping | tuple) or word not in HISTORIES:
        raise node.refused("must be full or off")
    return HISTORIES[word]


def _refuse_unknown(schema: TableSchema) -> None:
    """Raise for the first key of arguments that is none of ours."""
    for path in _unknown_paths(schema):
        raise refusal(path, None, "is not an argument here")


def _unknown_paths(schema: TableSchema) -> Iterator[str]:
    """The paths of all keys that are none of ours, from the outside inwards."""
    yield from (child_path("", name) for name in schema.unknown)
    for place, field in enumerate(schema.fields):
        yield from (child_path(f"fields.{place}", name) for name in field.unknown)
    if schema.dump:
        yield from (child_path("dump", name) for name in schema.dump.unknown)


def _fitting(schema: TableSchema) -> TableSchema:
    """The schema, once it is known that its file can be read again."""
    text = render(schema)
    if len(text) > SCHEMA_BYTES_MAX:
        raise ContentTooLarge(
            f"the schema would take {len(text)} bytes; {SCHEMA_BYTES_MAX} is the most",
            bytes=len(text),
            bytes_max=SCHEMA_BYTES_MAX,
        )
    parse(text)
    return schema
