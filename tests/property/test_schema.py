"""Laws of schemas: what is written is read back, whatever it holds, and whatever comes in is read or refused."""

import string
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from convmem.errors import SchemaError
from convmem.tables.model import FIELD_TYPES, SYNCS, Dump, Field, TableSchema
from convmem.tables.names import field_name_fault, table_name_fault
from convmem.tables.schema import changed, declared, parse, render
from convmem.tables.yaml_reading import read
from convmem.tables.yaml_writing import write

pytestmark = pytest.mark.slow

# Words, marks and letters that YAML gives a meaning to, and that SQL and JSON do.
PIECES = st.sampled_from(
    [
        *("no", "y", "off", "null", "~", "true", "1.10", "12:30", "0x1F", ".nan", "1e3", "<<", "select", "$", "."),
        *(": ", " #", "- ", "? ", "&a", "*a", "!!x", "|", ">", "%", "@", "`", "'", '"', "\\", "[", "]", "{", "}", ","),
        *(" ", "\n", "\r", "\t", "\x01", "\x7f", "\x85", "\xa0", "\u2028", "\ufeff", "\ufffe", "é", "e\u0301", "🟡"),
        *("---", "...", "日本", "\u202e", "\U0010ffff"),
    ]
)
TEXTS = st.one_of(
    st.lists(PIECES, max_size=6).map("".join),
    st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=20),
)
TABLES = st.text(string.ascii_letters + string.digits + "_-", min_size=1, max_size=64).filter(
    lambda name: table_name_fault(name) is None
)
NAMES = TEXTS.filter(lambda name: field_name_fault(name) is None)
NUMBERS = st.one_of(st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False, allow_infinity=False))
SCALARS = st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3))
OURS = {*TableSchema.__struct_fields__, *Field.__struct_fields__, *Dump.__struct_fields__}
UNKNOWN = st.dictionaries(TEXTS.filter(lambda key: key not in OURS), VALUES, max_size=2)
FIELDS = st.builds(
    Field,
    name=NAMES,
    type=st.sampled_from(FIELD_TYPES),
    required=st.booleans(),
    description=st.none() | TEXTS,
    unknown=UNKNOWN,
)
DUMPS = st.builds(
    Dump,
    dir=st.none() | TEXTS,
    title_field=st.none() | TEXTS,
    body_field=st.none() | TEXTS,
    sync=st.none() | st.sampled_from(SYNCS),
    unknown=UNKNOWN,
)
SCHEMAS = st.builds(
    TableSchema,
    table=TABLES,
    fields=st.lists(FIELDS, max_size=4, unique_by=lambda field: field.name).map(tuple),
    title=st.none() | TEXTS,
    description=st.none() | TEXTS,
    dump=st.none() | DUMPS,
    history=st.sampled_from(["full", "off"]),
    unknown=UNKNOWN,
)


def read_or_refused(data: bytes) -> tuple[Any, dict[str, int] | None]:
    """The value of a file, and where it was refused if it was."""
    try:
        return read(data).plain(), None
    except SchemaError as error:
        return None, error.details


@given(SCHEMAS)
@settings(derandomize=True, max_examples=400, deadline=None)
def test_a_schema_is_read_back_from_its_file_and_written_the_same(schema: TableSchema):
    written = render(schema)
    assert parse(written) == schema
    assert render(parse(written)) == written
    assert not any(changed(schema, parse(written)).values())


@given(VALUES)
@settings(derandomize=True, max_examples=400, deadline=None)
def test_any_value_is_read_back_with_its_types(value: Any):
    again = read(write(value)).plain()
    assert repr(again) == repr(value)


@given(st.lists(NAMES, max_size=6, unique=True))
@settings(derandomize=True, max_examples=200, deadline=None)
def test_fields_of_any_names_can_be_declared(names: list[str]):
    schema = declared({"table": "t", "fields": [{"name": name, "type": "string"} for name in names]})
    assert [field.name for field in parse(render(schema)).fields] == names


@given(st.lists(PIECES, max_size=30).map("".join) | st.text(max_size=60))
@settings(derandomize=True, max_examples=600, deadline=None)
@example("a: !<")
@example("%")
def test_any_text_is_read_or_refused_with_a_place_inside_it(text: str):
    value, refusal = read_or_refused(text.encode("utf-8", "surrogatepass"))
    if refusal is None:
        assert read(write(value)).plain() == value
    else:
        assert 1 <= refusal["line"] <= len(text.splitlines()) + 2
        assert 1 <= refusal["column"] <= len(text) + 2


@given(st.binary(max_size=60))
@settings(derandomize=True, max_examples=300, deadline=None)
def test_any_bytes_are_a_schema_or_refused(data: bytes):
    with pytest.raises(SchemaError):
        parse(data)
