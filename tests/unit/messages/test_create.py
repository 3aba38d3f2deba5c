"""The tables: their own by name, strict, and of one version of Unicode."""

import unicodedata

from convmem.messages.create import CREATE
from tests.support.folded import empty_index


def test_every_table_and_index_bears_the_domain_s_name():
    names = empty_index().execute("SELECT name FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%'").fetchall()
    assert names
    assert all(name.startswith("messages_") for (name,) in names)


def test_every_table_refuses_values_of_another_type():
    strict = empty_index().execute("SELECT name, strict FROM pragma_table_list WHERE name LIKE 'messages_%'").fetchall()
    assert strict
    assert all(is_strict for _, is_strict in strict)


def test_an_index_of_another_unicode_has_another_shape():
    assert f"Unicode {unicodedata.unidata_version}" in CREATE


def test_content_stands_behind_all_that_is_short():
    columns = [row[1] for row in empty_index().execute("PRAGMA table_info(messages_message)")]
    assert columns[-2:] == ["content", "folded_content"]
