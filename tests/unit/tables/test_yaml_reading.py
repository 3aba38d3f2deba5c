"""YAML is read by the rules of 1.2 and ours, and each refusal says where."""

import time

import pytest

from convmem.errors import SchemaError
from convmem.limits import JSON_LEVELS_MAX, SCHEMA_BYTES_MAX, SCHEMA_NODES_MAX
from convmem.tables.yaml_reading import plain_value, read

# A file, and where it is refused: line and column from 1.
REFUSED = {
    "a key twice": ("a: 1\nb: 2\na: 3\n", (3, 1)),
    "a key twice in one line": ("x: {a: 1, a: 2}", (1, 11)),
    "the same key in other quotes": ("a: 1\n'a': 2\n", (2, 1)),
    "an anchor": ("a: &x [1]\n", (1, 4)),
    "an anchor on a key": ("&x a: 1\n", (1, 1)),
    "an alias": ("a: *x\n", (1, 4)),
    "a billion laughs": ("a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]\n", (1, 4)),
    "a merge key": ("a:\n  <<: *x\n", (2, 7)),
    "a tag that builds": ("a: !!python/object:os.system {}\n", (1, 4)),
    "a tag of YAML": ("a: 1\nb: !!str 2\n", (2, 4)),
    "the tag without a name": ("a: ! x\n", (1, 4)),
    "a declared tag": ("%TAG !e! tag:example.org,2000:\n---\na: 1\n", (2, 1)),
    "another version": ("%YAML 1.1\n---\na: no\n", (2, 1)),
    "a version to come": ("%YAML 2.0\n---\na: no\n", (1, 1)),
    "two documents": ("a: 1\n---\nb: 2\n", (2, 1)),
    "a tab before a key": ("a:\n\tb: 1\n", (2, 1)),
    "a tab before a value": ("a:\t1\n", (1, 3)),
    "a list as a key": ("? [a]\n: b\n", (1, 3)),
    "a bracket that stays open": ("a: [1,\n  2\n", (3, 1)),
    "a colon too many": ("a: b: c\n", (1, 5)),
    "quotes that stay open": ('a: "x\n', (2, 1)),
    "a letter that begins nothing": ("a: @x\n", (1, 4)),
    "NUL as it is": ("a: 1\nb: x\0y\n", (2, 5)),
    "NUL in quotes": ('a: "x\\0y"\n', (1, 4)),
    "a control character": ("a: x\x1by\n", (1, 5)),
    "a line break that is none": ("a: x\x85y\n", (1, 5)),
    "half a pair": ('a: "\\ud83d"\n', (1, 4)),
    "an escape beyond Unicode": ('a: x\nb: "\\U00110000"\n', (2, 5)),
    "an escape beyond everything": ('b: "ok \\UFFFFFFFF"\n', (1, 8)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_breaks_a_rule_is_refused_with_line_and_column(name: str):
    text, where = REFUSED[name]
    with pytest.raises(SchemaError) as caught:
        read(text.encode())
    assert (caught.value.details["line"], caught.value.details["column"]) == where, caught.value.message


@pytest.mark.parametrize("data", [b"a: 1\nb: x\xffy\n", b"a: 1\nb: x\xed\xa0\x80", b"a: 1\nb: x\xc3"])
def test_what_is_no_utf8_is_refused_where_it_begins(data: bytes):
    with pytest.raises(SchemaError) as caught:
        read(data)
    assert caught.value.details == {"line": 2, "column": 5}


def test_columns_are_code_points_and_every_line_break_counts_once():
    for text in ("é🟡: 1\r\nb: !x 2\r\n", "é🟡: 1\rb: !x 2\r", "\ufeffé🟡: 1\nb: !x 2\n"):
        with pytest.raises(SchemaError) as caught:
            read(text.encode())
        assert caught.value.details == {"line": 2, "column": 4}
    for text in ("é🟡: !x 1", "\ufeffé🟡: !x 1", "\ufeffé🟡: \x01"):
        with pytest.raises(SchemaError) as caught:
            read(text.encode())
        assert caught.value.details == {"line": 1, "column": 5}
    for line_break in ("\n", "\r", "\r\n"):
        with pytest.raises(SchemaError) as caught:
            read(f"é: 1{line_break}b: x\x01".encode())
        assert caught.value.details == {"line": 2, "column": 5}


def test_an_alias_is_called_one_whether_or_not_its_anchor_is_there():
    with pytest.raises(SchemaError, match="alias"):
        read(b"a: *x\n")


def test_a_plain_scalar_is_a_value_and_also_what_was_written():
    words = ["no", "y", "off", "On", "1.10", "12:30:45", "0x1F", "012", "1e3", ".nan", "-.inf", "1_000", "2026-05-31"]
    node = read("\n".join(f"- {word}" for word in words).encode())
    assert node.plain() == words
    node = read(b"[7, -7, 1.5, true, FALSE, ~, null, '7', \"true\"]")
    assert node.plain() == [7, -7, 1.5, True, False, None, None, "7", "true"]
    assert isinstance(node.value, tuple)
    assert [inner.text for inner in node.value] == ["7", "-7", "1.5", "true", "FALSE", "~", "null", "7", "true"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("9223372036854775808", "9223372036854775808"),
        ("9" * 5000, "9" * 5000),
        ("1e400", "1e400"),
        ("1e+16", 1e16),
        ("-0", "-0"),
        ("0.1", 0.1),
        ("", None),
    ],
)
def test_a_number_is_one_only_if_it_would_be_written_back_the_same(text: str, value: object):
    assert plain_value(text) == value
    assert type(plain_value(text)) is type(value)


def test_blocks_and_folded_texts_are_texts():
    assert read(b"a: |\n  x\n  \ty\nb: >-\n  x\n  y\n").plain() == {"a": "x\n\ty\n", "b": "x y"}


def test_nothing_is_null_and_stands_at_the_beginning():
    for data in (b"", b"# only a comment\n", b"---\n", b"\xef\xbb\xbf"):
        node = read(data)
        assert (node.value, node.at) == (None, (node.at and node.at.line, 1))


def test_a_file_may_be_so_large_and_no_larger():
    start, end = b'a: "', b'"\n'
    whole = start + b"x" * (SCHEMA_BYTES_MAX - len(start) - len(end)) + end
    assert read(whole).plain() == {"a": "x" * (SCHEMA_BYTES_MAX - len(start) - len(end))}
    with pytest.raises(SchemaError):
        read(whole + b"\n")


def test_a_value_may_be_as_deep_as_json_and_no_deeper():
    deepest = "[" * JSON_LEVELS_MAX + "]" * JSON_LEVELS_MAX
    read(deepest.encode())
    with pytest.raises(SchemaError) as caught:
        read(f"[{deepest}]".encode())
    assert caught.value.details == {"line": 1, "column": JSON_LEVELS_MAX + 1}


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "- a\n" * (SCHEMA_BYTES_MAX // 4),
        "[" * SCHEMA_BYTES_MAX,
        "{" * SCHEMA_BYTES_MAX,
        "- " * (SCHEMA_BYTES_MAX // 2),
        "? " * (SCHEMA_BYTES_MAX // 2),
        "a: [" + "x," * (SCHEMA_BYTES_MAX // 2 - 4),
        "? " + "k" * 500_000 + "\n: [" + "x," * 20_000 + "&a",
        "\n" * SCHEMA_BYTES_MAX + "x",
        "a: " + "x y " * (SCHEMA_BYTES_MAX // 4) + ": *",
        '"' + "\\U0010FFFF" * 100_000 + "\\U00110000",
    ],
    ids=["list", "brackets", "braces", "dashes", "marks", "flow", "long key", "lines", "words", "escapes"],
)
def test_a_hostile_file_is_refused_before_it_costs_much(text: str):
    started = time.process_time()
    with pytest.raises(SchemaError):
        read(text.encode())
    assert time.process_time() - started < 20


def test_too_many_values_are_refused():
    with pytest.raises(SchemaError, match="values"):
        read(b"[" + b"x," * SCHEMA_NODES_MAX + b"]")
