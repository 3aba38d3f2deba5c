"""store/check.py: what the walk over all invariants notices. A surgeon damages the store on purpose."""

import pytest

from convmem.store import check
from convmem.store.log import NAME
from tests.support.notebook import Add, Strike
from tests.support.stores import Opened, open_store


def filled() -> Opened:
    opened = open_store()
    for number in range(20):
        opened.commit(Add((f"note {number}",)))
    opened.commit(Strike(3))
    return opened


def test_a_sound_store_has_no_violations() -> None:
    assert filled().check() == []
    assert open_store().check() == []


@pytest.mark.parametrize(
    "surgery",
    [
        "UPDATE notes_note SET note = 'other' WHERE sequence = 7",
        "DELETE FROM notes_note WHERE sequence = 20",
        "INSERT INTO notes_note VALUES ('Z', 99, 1, 'd', 'n')",
        "INSERT INTO notes_note SELECT * FROM notes_note WHERE sequence = 5",
        "UPDATE store_state SET last_id = 'A'",
        "UPDATE store_state SET end_offset = end_offset - 1",
        "UPDATE store_state SET end_offset = end_offset + 1",
        "UPDATE store_state SET next_sequence = next_sequence + 1",
        "UPDATE store_state SET shape = 'x'",
        "CREATE TABLE notes_more (a)",
    ],
)
def test_an_index_that_is_not_the_fold_of_its_log_is_noticed(surgery: str) -> None:
    opened = filled()
    opened.connection.execute(surgery)
    assert opened.check() != []


@pytest.mark.parametrize("where", range(0, 2_600, 97))
def test_a_flipped_byte_anywhere_in_the_log_is_noticed(where: int) -> None:
    opened = filled()
    file = opened.disk.files[NAME]
    assert where < len(file.written)
    file.written = file.written[:where] + bytes([file.written[where] ^ 1]) + file.written[where + 1 :]
    assert opened.check() != []


def test_the_sentences_name_no_text_of_a_record() -> None:
    opened = filled()
    opened.connection.execute("UPDATE notes_note SET note = 'a secret' WHERE sequence = 7")
    (sentence,) = opened.check()
    assert "secret" not in sentence
    assert "notes_note" in sentence


def test_the_scrub_tells_how_far_it_is_and_stops_at_damage() -> None:
    opened = filled()
    file = opened.disk.files[NAME]
    walk = list(check.scrub(file, generation=1, end=file.size()))
    assert [damage for _, damage in walk] == [None] * 21
    assert walk[-1][0].offset == file.size()
    hurt = walk[9][0].offset
    file.written = file.written[: hurt + 50] + b"\0\0" + file.written[hurt + 52 :]
    *good, (position, damage) = check.scrub(file, generation=1, end=file.size())
    assert len(good) == 10
    assert position.offset == hurt
    assert damage is not None


def test_the_scrub_notices_a_frame_of_another_place_or_generation() -> None:
    opened = filled()
    file = opened.disk.files[NAME]
    assert next(check.scrub(file, generation=2, end=file.size()))[1] is not None
    first = next(check.scrub(file, generation=1, end=file.size()))[0].offset
    file.written = file.written[:first] + file.written
    assert list(check.scrub(file, generation=1, end=file.size()))[-1][1] is not None
