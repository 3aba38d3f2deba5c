"""The tables: their own by name, strict, and of one version of Unicode."""

import unicodedata

from convmem.memory.create import CREATE
from tests.support.folded import empty_index
from tests.support.remembered import BOTH


def test_every_table_and_index_bears_the_domain_s_name():
    names = empty_index(BOTH).execute(
        "SELECT name FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%' AND name NOT LIKE 'messages_%'"
    )
    assert [name.startswith("memory_") for (name,) in names] == [True] * CREATE.count("CREATE ")


def test_every_table_refuses_values_of_another_type():
    strict = (
        empty_index(BOTH).execute("SELECT name, strict FROM pragma_table_list WHERE name LIKE 'memory_%'").fetchall()
    )
    assert len(strict) == 5
    assert all(is_strict for _, is_strict in strict)


def test_an_index_of_another_unicode_has_another_shape():
    assert CREATE.count(f"Unicode {unicodedata.unidata_version}") == CREATE.count("folded TEXT")
