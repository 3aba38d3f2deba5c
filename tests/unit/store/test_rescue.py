"""store/rescue: what the frames of a damaged log and its index say together."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from convmem import checking
from convmem.clock import SystemClock
from convmem.daemon import domains
from convmem.files import RealFiles
from convmem.inputs import Input, checked
from convmem.messages.inputs import DeleteMessage, UpdateMessage, WriteMessage
from convmem.store import log, salvage, sqlite
from convmem.store.rescue import Salvaged
from convmem.store.shelf import index_name
from convmem.store.store import Ticket
from tests.support.wrecks import DAMAGES, LATER, ORIGIN, SCRIPT, Step, Wreck, content_of, expected, places

pytestmark = pytest.mark.slow


def silent(done: float, total: float, sentence: str) -> None:
    pass


def saved(wreck: Wreck, target: Path) -> Salvaged:
    files = RealFiles(target)
    files.prepare()
    found = salvage.salvage(RealFiles(wreck.directory), files, domains(), SystemClock(), silent)
    assert checking.walk(files, domains(), SystemClock(), silent) == {"violations": [], "leftovers": []}
    return found


def lose(wreck: Wreck, *numbers: int) -> None:
    """Damage frames by their number, from 0 on; -1 is the last."""
    frames, data = wreck.frames(), wreck.log.read_bytes()
    for number in numbers:
        data = DAMAGES["a flipped bit"](data, frames[number].offset, frames[number].header.frame_size)
    wreck.log.write_bytes(data)


def operated(wreck: Wreck, *statements: str) -> None:
    """Change an index behind the back of its store."""
    (path,) = wreck.directory.glob("index-*.db")
    connection = apsw.Connection(str(path))
    for statement in statements:
        connection.execute(statement)
    connection.close()


@pytest.fixture
def wreck(tmp_path: Path) -> Wreck:
    made = Wreck(tmp_path / "from")
    made.play(SCRIPT)
    return made


OTHER_TEXT = "UPDATE messages_message SET content = upper(content) WHERE sequence = 1"


@pytest.mark.parametrize("lost", [(), (-1,), (4, 7)])
def test_a_text_that_only_the_index_says_otherwise_is_that_of_the_log(wreck: Wreck, tmp_path: Path, lost: tuple[int]):
    operated(wreck, OTHER_TEXT)
    lose(wreck, *lost)
    found = saved(wreck, tmp_path / "to")
    assert Wreck(tmp_path / "to").messages() == expected(wreck.ids, [])[0]
    assert (found.disagreements, found.missing, found.used_index, found.is_whole) == ([1], [], True, False)


def test_every_frame_alone_and_every_two_may_be_lost_where_the_index_has_seen_them(tmp_path: Path):
    whole = Wreck(tmp_path / "whole")
    whole.play(SCRIPT)
    count = len(SCRIPT)
    for first in range(count):
        for second in range(first, count, 4):
            wreck = whole.copy(tmp_path / f"from-{first}-{second}")
            lose(wreck, *{first, second})
            target = tmp_path / f"to-{first}-{second}"
            found = saved(wreck, target)
            assert Wreck(target).messages() == expected(whole.ids, [])[0]
            assert (found.is_whole, found.disagreements, found.left_out) == (True, [], [])


def test_a_row_that_is_gone_from_the_index_is_in_the_log(wreck: Wreck, tmp_path: Path):
    operated(
        wreck,
        "DELETE FROM messages_message WHERE sequence = 4",
        "UPDATE messages_group SET count = count - 1",
    )
    found = saved(wreck, tmp_path / "to")
    assert Wreck(tmp_path / "to").messages() == expected(wreck.ids, [])[0]
    assert (found.used_index, found.disagreements) == (True, [4])


def test_what_a_readable_frame_deleted_stays_deleted_whatever_the_index_says(tmp_path: Path):
    """The index is that of a moment before, but says that it is of now."""
    wreck = Wreck(tmp_path / "from")
    steps = (Step("write", 0), Step("write", 1), Step("write", 2))
    wreck.play(steps)
    before = (wreck.directory / index_name(1)).read_bytes()
    wreck.play([Step("delete", 1)])
    connection = sqlite.connect_to_read(wreck.directory / index_name(1))
    row: Any = connection.execute("SELECT * FROM store_state").fetchone()
    connection.close()
    (wreck.directory / index_name(1)).write_bytes(before)
    connection = apsw.Connection(str(wreck.directory / index_name(1)))
    connection.execute(f"REPLACE INTO store_state VALUES ({', '.join('?' * len(row))})", row)
    connection.close()
    for number, lost in enumerate(((), (1,), (2,))):
        damaged = wreck.copy(tmp_path / f"damaged-{number}")
        lose(damaged, *lost)
        found = saved(damaged, tmp_path / f"to-{number}")
        assert set(Wreck(tmp_path / f"to-{number}").messages()) == {wreck.ids[0], wreck.ids[2]}
        assert (found.used_index, found.disagreements, found.is_whole) == (True, [2], False)


def committed(wreck: Wreck, kind: type[Input], **arguments: Any) -> str:
    store = wreck.open()
    (answer,) = store.commit([Ticket(checked(kind, arguments), ORIGIN)])
    store.close()
    assert isinstance(answer, dict), answer
    return str(answer["message_id"])


def written(wreck: Wreck, **metadata: Any) -> str:
    return committed(wreck, WriteMessage, session_id="s", role="user", content="first", metadata=metadata)


def row_of(directory: Path, message_id: str) -> Any:
    connection = sqlite.connect_to_read(directory / index_name(2))
    found = connection.execute(
        "SELECT content, tags, revision, links FROM messages_message WHERE message_id = ?", (message_id,)
    ).fetchone()
    connection.close()
    return found


def test_a_change_that_was_lost_counts_although_a_later_one_can_be_read(tmp_path: Path):
    wreck = Wreck(tmp_path / "from")
    message_id = written(wreck)
    committed(wreck, UpdateMessage, message_id=message_id, content="second")
    committed(wreck, UpdateMessage, message_id=message_id, metadata={"tags": ["later"]})
    lose(wreck, 1)
    found = saved(wreck, tmp_path / "to")
    assert row_of(tmp_path / "to", message_id)[:3] == ("second", "later", 3)
    assert (found.is_whole, found.disagreements) == (True, [])


def test_relations_to_what_the_log_lost_or_lost_the_deletion_of_are_no_disagreement(tmp_path: Path):
    wreck = Wreck(tmp_path / "from")
    targets = [written(wreck), written(wreck)]
    relations = [{"type": "answers", "message_id": target} for target in targets]
    source = written(wreck, relations=relations)
    committed(wreck, DeleteMessage, message_id=targets[1])
    written(wreck)
    for number, lost in enumerate(((0,), (3,), (0, 3), (1,), ())):
        damaged = wreck.copy(tmp_path / f"from-{number}")
        lose(damaged, *lost)
        found = saved(damaged, tmp_path / f"to-{number}")
        assert row_of(tmp_path / f"to-{number}", source)[3] == 1
        assert (found.is_whole, found.disagreements) == (True, [])


def foreign(tmp_path: Path, wreck: Wreck, steps: tuple[Step, ...]) -> Wreck:
    """The wreck with the index of another store, which was written at other times."""
    other = Wreck(tmp_path / "other")
    other.clock.pass_ms(5_000)
    other.play(steps)
    shutil.copy(other.directory / index_name(1), wreck.directory / index_name(1))
    return wreck


STRANGE = (*(Step("write", number, "strange") for number in range(20)),)


@pytest.mark.parametrize("count", [1, 4, 13, 20])
@pytest.mark.parametrize("lost", [(), (-1,), (0,), (3,)])
def test_the_index_of_another_log_is_not_used(wreck: Wreck, tmp_path: Path, count: int, lost: tuple[int, ...]):
    foreign(tmp_path, wreck, STRANGE[:count])
    lose(wreck, *lost)
    found = saved(wreck, tmp_path / "to")
    gone = [range(len(SCRIPT))[number] + 1 for number in lost]
    assert (found.used_index, found.disagreements) == (False, [])
    assert Wreck(tmp_path / "to").messages() == expected(wreck.ids, gone)[0]


def test_an_index_is_of_its_log_although_all_of_that_has_moved(wreck: Wreck, tmp_path: Path):
    data, frame = wreck.log.read_bytes(), wreck.frames()[3]
    wreck.log.write_bytes(data[: frame.offset] + b"strange bytes" + data[frame.end.offset :])
    found = saved(wreck, tmp_path / "to")
    assert (found.used_index, found.is_whole) == (True, True)
    assert Wreck(tmp_path / "to").messages() == expected(wreck.ids, [])[0]


TAILS: dict[str, Callable[[bytes], bytes]] = {
    "zeros": lambda last: bytes(300),
    "garbage": lambda last: b"\xffcvm" + b"strange" * 40,
    "half a frame": lambda last: last[: len(last) // 2],
    "a few bytes": lambda last: b"\xff",
}


@pytest.mark.parametrize("tail", TAILS)
def test_a_torn_end_that_the_index_never_saw_is_no_loss(wreck: Wreck, tmp_path: Path, tail: str):
    frame, data = wreck.frames()[-1], wreck.log.read_bytes()
    torn = TAILS[tail](data[frame.offset :])
    wreck.log.write_bytes(data + torn)
    found = saved(wreck, tmp_path / "to")
    assert (found.is_whole, found.gaps, found.missing) == (True, [], [])
    assert found.torn is not None
    assert (found.torn.offset, found.torn.size) == (len(data), len(torn))
    alone = saved(wreck.drop_index(), tmp_path / "alone")
    assert (alone.is_whole, alone.torn) == (False, None), "without the index nobody knows"


def test_an_end_that_holds_a_whole_frame_is_not_torn(wreck: Wreck, tmp_path: Path):
    frame, data = wreck.frames()[-1], wreck.log.read_bytes()
    wreck.log.write_bytes(data + bytes(50) + data[frame.offset :])
    found = saved(wreck, tmp_path / "to")
    assert (found.is_whole, found.torn) == (False, None)


def test_what_came_behind_the_index_goes_onto_what_both_said(tmp_path: Path):
    """The index knows a lost message that later frames speak of, and says something else of another."""
    wreck = Wreck(tmp_path / "from")
    wreck.play(SCRIPT[:5])
    older = (wreck.directory / index_name(1)).read_bytes()
    wreck.play((*SCRIPT[5:], *LATER))
    (wreck.directory / index_name(1)).write_bytes(older)
    operated(wreck, OTHER_TEXT)
    script = (*SCRIPT, *LATER)
    lost = [sequence for frame, of in places(wreck) for sequence in of if script[sequence - 1] == Step("write", 1)]
    lose(wreck, lost[0] - 1)
    found = saved(wreck, tmp_path / "to")
    assert Wreck(tmp_path / "to").messages() == expected(wreck.ids, [], script)[0]
    assert content_of(Step("update", 1, "again")) in Wreck(tmp_path / "to").messages().values()
    assert (found.disagreements, found.left_out, found.missing) == ([1], [], [])


def test_a_text_that_is_no_utf_8_makes_an_index_useless_and_nothing_worse(wreck: Wreck, tmp_path: Path):
    operated(
        wreck, "UPDATE messages_message SET content = CAST(x'ff' || substr(content, 2) AS TEXT) WHERE sequence = 1"
    )
    found = saved(wreck, tmp_path / "to")
    assert (found.used_index, found.is_whole) == (False, True)
    assert Wreck(tmp_path / "to").messages() == expected(wreck.ids, [])[0]


def test_nothing_of_the_work_stays_beside_the_fresh_store(wreck: Wreck, tmp_path: Path):
    operated(wreck, OTHER_TEXT)
    lose(wreck, 2)
    saved(wreck, tmp_path / "to")
    assert RealFiles(tmp_path / "to").names() == [log.NAME, index_name(2)]
