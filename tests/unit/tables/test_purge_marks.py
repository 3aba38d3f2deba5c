"""That something was purged stands in the file until it is written anew, whoever else purges meanwhile."""

from pathlib import Path

import apsw
import pytest

from convmem.tables import create, purge_marks


@pytest.fixture
def file(tmp_path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(tmp_path / "t.db"))
    create.prepare(connection)
    return connection


def test_a_mark_stands_until_what_was_purged_is_out_of_the_file(file: apsw.Connection):
    assert not purge_marks.is_unfinished(file)
    purge_marks.mark(file)
    purge_marks.mark(file)
    finish = purge_marks.begun(file)
    assert purge_marks.is_unfinished(file)
    finish()
    assert not purge_marks.is_unfinished(file)
    purge_marks.mark(file)
    assert purge_marks.is_unfinished(file)


def test_a_purge_that_comes_while_the_file_is_written_anew_stays_marked(file: apsw.Connection):
    purge_marks.mark(file)
    finish = purge_marks.begun(file)
    purge_marks.mark(file)
    finish()
    assert purge_marks.is_unfinished(file)


def test_who_comes_late_takes_nothing_back(file: apsw.Connection):
    purge_marks.mark(file)
    early = purge_marks.begun(file)
    purge_marks.mark(file)
    purge_marks.begun(file)()
    early()
    assert not purge_marks.is_unfinished(file)


def test_a_file_that_knows_no_marks_has_none(file: apsw.Connection):
    file.execute("DROP TABLE _purges")
    assert not purge_marks.is_unfinished(file)
    purge_marks.begun(apsw_prepared(file))()


def apsw_prepared(file: apsw.Connection) -> apsw.Connection:
    create.prepare(file)
    return file
