"""What is written means the same to every reader of YAML, and is read back as it was."""

import pytest
from ruamel.yaml import YAML

from convmem.tables.yaml_reading import read
from convmem.tables.yaml_writing import write

# Words that some reader of YAML takes for something else than a text.
MISTAKEN = [
    *("", "~", "null", "NULL", "true", "False", "yes", "No", "on", "OFF", "y", "N", "1", "-1", "1.10", "0x1F", "0o7"),
    *("1_000", "12:30:45", ".nan", "-.inf", "1e3", "2026-05-31", "<<", "=", "-", "?", ":", "*x", "&x", "!x", "@x", "`"),
    *("%x", "#x", "a #x", "a: b", "[", "]", "{", "}", ",", "'", '"', "\\", " x", "x ", "\t", "---", "...", "|", ">"),
]


@pytest.mark.parametrize("text", MISTAKEN)
def test_a_text_that_looks_like_something_else_is_quoted(text: str):
    written = write({text: text, "list": [text]}).decode()
    assert written.count('"') >= 6
    assert read(written.encode()).plain() == {text: text, "list": [text]}


@pytest.mark.parametrize("version", ["1.1", "1.2"])
def test_old_and_new_readers_see_the_same(version: str):
    value = {"texts": [text for text in MISTAKEN if text != "="], "numbers": [1, -7, 1.5], "flags": [True, False, None]}
    reader = YAML(typ="safe", pure=True)
    reader.version = version
    assert reader.load(write(value)) == value


def test_a_word_stands_as_it_is():
    assert write({"table": "reading-list", "title": "What to read (soon)"}) == (
        b"table: reading-list\ntitle: What to read (soon)\n"
    )


def test_lines_stand_as_a_block_where_they_can():
    assert write({"a": "x\n  y\nz"}) == b"a: |-\n  x\n    y\n  z\n"
    for text in ("\nx", " x\ny", "x\n\n", "x \ny", "x\ty\n", "x\r\ny", "x\u2028y\nz", "x\x85\ny", "\ufeffx\ny", "\n"):
        assert read(write({"a": text})).plain() == {"a": text}, repr(text)


def test_what_cannot_be_seen_is_escaped():
    text = "a\x01\x1b\x7f\x85\xa0\u2028\ufeff\ufffe\uffffz"
    written = write([text])
    assert not set("\x01\x1b\x7f\x85\u2028\ufeff\ufffe\uffff") & set(written.decode())
    assert read(written).plain() == [text]


def test_what_holds_nothing_is_written_as_such():
    assert read(write({"a": {}, "b": [], "c": [[], {}]})).plain() == {"a": {}, "b": [], "c": [[], {}]}


def test_a_long_text_is_not_folded():
    text = "word " * 1000 + "end: x"
    assert write({"a": text}).count(b"\n") == 1
    assert read(write({"k" * 2000: text})).plain() == {"k" * 2000: text}
