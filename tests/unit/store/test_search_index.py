"""Tables of search are opened only if they can be trusted; everything else is made anew, and says why."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import apsw
import pytest

from convmem.domain import Domain, Searchable
from convmem.store import search_index
from convmem.store.search_index import SearchIndex
from convmem.store.sqlite import connect
from tests.support.notebook import NOTEBOOK


def feed(search: apsw.Connection, index: apsw.Connection, pause: Callable[[], None]) -> int:
    """One note a transaction."""
    (known,) = search.execute("SELECT count(*) FROM toy_known").fetchone() or (0,)
    (there,) = index.execute("SELECT count(*) FROM note").fetchone() or (0,)
    if known == there:
        return 0
    pause()
    with search:
        search.execute("INSERT INTO toy_known VALUES (?)", (known + 1,))
    return 1


def watermark(search: apsw.Connection) -> int:
    (known,) = search.execute("SELECT count(*) FROM toy_known").fetchone() or (0,)
    return int(known)


def lag(index: apsw.Connection, watermark: int) -> int:
    (there,) = index.execute("SELECT count(*) FROM note").fetchone() or (0,)
    return int(there) - watermark


TOY = Searchable(
    create="CREATE TABLE toy_known (number INTEGER)",
    version="1",
    watermark=watermark,
    feed=feed,
    is_sound=lambda search, index: watermark(search) != 7,
    lag=lag,
    check=lambda search, index: ["the toys differ"] if watermark(search) == 3 else [],
)
DOMAINS = [replace(NOTEBOOK, search=TOY)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "search-1.db"


def noted(count: int, store_id: str = "ours") -> apsw.Connection:
    """An index that holds so many notes, and has come as far."""
    index = connect(":memory:")
    index.execute("CREATE TABLE note (number INTEGER)")
    index.execute("CREATE TABLE store_state (next_sequence INTEGER, store_id TEXT)")
    index.execute("INSERT INTO store_state VALUES (?, ?)", (count + 1, store_id))
    index.executemany("INSERT INTO note VALUES (?)", [(number,) for number in range(count)])
    return index


def made(path: Path, notes: int = 2) -> None:
    """Tables that know so many notes, left in order."""
    with closing(search_index.make(path, DOMAINS, 1, noted(0))) as search:
        while search.feed(noted(notes), lambda: None):
            pass


def reopened(
    path: Path, domains: list[Domain] = DOMAINS, generation: int = 1, sequence: int = 2, store_id: str = "ours"
) -> str:
    opened = search_index.reopen(path, domains, generation, noted(sequence, store_id))
    if isinstance(opened, str):
        return opened
    opened.close()
    return "kept"


def spoil(path: Path, sql: str) -> None:
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute(sql)


def test_what_was_left_in_order_is_kept_and_goes_on_where_it_was(path: Path):
    made(path)
    opened = search_index.reopen(path, DOMAINS, 1, noted(2))
    assert isinstance(opened, SearchIndex)
    assert opened.lag(noted(5)) == 3
    assert opened.feed(noted(5), lambda: None) == 1
    assert opened.lag(noted(5)) == 2
    opened.close()


def test_what_another_version_or_generation_has_made_is_not_trusted(path: Path):
    made(path)
    assert reopened(path, [replace(NOTEBOOK, search=replace(TOY, version="2"))]) == "of another version"
    assert reopened(path, [replace(NOTEBOOK, search=replace(TOY, create=TOY.create + " "))]) == "of another version"
    assert reopened(path, generation=2) == "of another version"
    assert reopened(path) == "kept"


def test_what_is_ahead_of_the_index_is_not_trusted(path: Path):
    made(path)
    assert reopened(path, sequence=1) == "ahead of the index"
    assert reopened(path, sequence=2) == "kept"


def test_what_is_of_another_store_is_not_trusted(path: Path):
    made(path)
    assert reopened(path, store_id="theirs") == "of another store"
    assert reopened(path) == "kept"


def test_what_a_quick_look_finds_to_be_wrong_is_not_trusted(path: Path):
    made(path, 7)
    assert reopened(path, sequence=7) == "not of this index"


@pytest.mark.parametrize("content", [b"no database at all" * 100, b"SQLite format 3\0" + bytes(4_080)])
def test_what_is_no_database_is_not_trusted(path: Path, content: bytes):
    path.write_bytes(content)
    assert reopened(path) == "damaged"


def test_what_was_never_finished_is_not_trusted(path: Path):
    path.write_bytes(b"")
    assert reopened(path) == "not finished"
    spoil(path, "CREATE TABLE toy_known (number INTEGER)")
    assert reopened(path) == "damaged"
    spoil(path, search_index.STATE)
    assert reopened(path) == "of another version"


def test_after_the_machine_went_down_it_is_looked_at_before_it_is_trusted(path: Path, monkeypatch: pytest.MonkeyPatch):
    made(path)
    # What lies in pages that nobody reads at an opening.
    spoil(path, "CREATE TABLE toy_text (text BLOB); INSERT INTO toy_text VALUES (randomblob(50000))")
    with path.open("r+b") as file:
        file.seek(path.stat().st_size - 4_096)
        file.write(b"\xff" * 64)
    spoil(path, "UPDATE search_state SET clean = 0")
    assert reopened(path) == "kept", "within one boot nothing of it can have been lost"
    spoil(path, "UPDATE search_state SET clean = 1")
    monkeypatch.setattr(search_index, "boot_id", lambda: "another boot")
    assert reopened(path) == "kept", "it was left in order"
    spoil(path, "UPDATE search_state SET clean = 0, boot = 'an earlier boot'")
    assert reopened(path) == "damaged"


def test_what_is_in_use_says_so_until_it_is_closed(path: Path):
    made(path)
    opened = search_index.reopen(path, DOMAINS, 1, noted(2))
    assert isinstance(opened, SearchIndex)
    with closing(apsw.Connection(str(path))) as other:
        assert other.execute("SELECT clean FROM search_state").fetchall() == [(0,)]
        opened.close()
        assert other.execute("SELECT clean FROM search_state").fetchall() == [(1,)]


def test_differences_are_what_the_domains_say_and_what_cannot_be_trusted(path: Path):
    made(path, 2)
    with closing(connect(path)) as search:
        assert search_index.differences(search, noted(2), DOMAINS, 1) == []
        assert search_index.differences(search, noted(1), DOMAINS, 1) == [
            f"the tables of search are ahead of the index{search_index.HEALED}"
        ]
        assert search_index.differences(search, noted(2), DOMAINS, 2) == [], "another version is made anew"
        search.execute("INSERT INTO toy_known VALUES (3)")
        assert search_index.differences(search, noted(3), DOMAINS, 1) == [f"the toys differ{search_index.HEALED}"]
    with closing(connect(":memory:")) as search:
        assert search_index.differences(search, noted(2), DOMAINS, 1) == [], "it is just being made"


def test_a_pause_that_raises_leaves_whole_transactions(path: Path):
    def stop() -> None:
        raise KeyboardInterrupt

    with closing(search_index.make(path, DOMAINS, 1, noted(0))) as search:
        search.feed(noted(1), lambda: None)
        with pytest.raises(KeyboardInterrupt):
            search.feed(noted(2), stop)
        assert search.lag(noted(2)) == 1
