"""The names of copies: read from their end, sorted by time, and purged one table at a time."""

import pytest

from convmem.tables.copies import Copy, free_at, name, parsed, surplus


@pytest.mark.parametrize(
    ("file_name", "found"),
    [
        ("notes.1796111025973.db", Copy("notes", 1796111025973, "db")),
        ("notes-2.1796111025.yaml", Copy("notes-2", 1796111025000, "yaml")),
        ("_global.1796111025973.db", Copy("_global", 1796111025973, "db")),
        ("1796.1796111025973.db", Copy("1796", 1796111025973, "db")),
        ("notes.db", None),
        ("notes.12.db", None),
        ("notes.1796111025973.db-wal", None),
        ("no.tes.1796111025973.db", None),
        (".1796111025973.db", None),
        ("notes.1796111025973.txt", None),
    ],
)
def test_a_name_says_of_what_and_when(file_name: str, found: Copy | None):
    assert parsed(file_name) == found


def test_what_is_written_is_read():
    assert parsed(name("a-b_1", 1796111025973, "yaml")) == Copy("a-b_1", 1796111025973, "yaml")


def test_the_oldest_go_both_files_of_a_moment_together_and_no_other_tables():
    mine = [name("a", at_ms, suffix) for at_ms in (1796111025001, 1796111025003) for suffix in ("db", "yaml")]
    names = [*mine, "a.1796111025.db", "b.1796111025000.db", "a-b.1796111025000.db", "other", "a.x.db"]
    assert surplus(names, "a", 3) == []
    assert surplus(names, "a", 2) == ["a.1796111025.db"]
    assert surplus(names, "a", 1) == ["a.1796111025.db", mine[0], mine[1]]


def test_no_two_copies_bear_one_moment():
    assert (
        free_at(["a.1796111025973.db", "a.1796111025974.yaml", "b.1796111025975.db"], "a", 1796111025973)
        == 1796111025975
    )
