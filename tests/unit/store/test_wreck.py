"""store/wreck: whole frames are found wherever they stand, and everything else is a gap with a place and a reason."""

import errno
from collections.abc import Iterator

import pytest

from convmem.errors import LogTooNew
from convmem.files import Counters
from convmem.limits import MIB
from convmem.store import frame
from convmem.store.log import Frame
from convmem.store.wreck import BLOCK_BYTES, Forgiving, Gap, Wreck


class Bytes:
    """A file in memory, with blocks that cannot be read."""

    def __init__(self, data: bytes, bad_blocks: frozenset[int] = frozenset(), error: int = errno.EIO) -> None:
        self.data, self.bad_blocks, self.error = data, bad_blocks, error
        self.counters = Counters()

    def size(self) -> int:
        return len(self.data)

    def read(self, offset: int, size: int) -> bytes:
        blocks = range(offset // BLOCK_BYTES, -(-min(offset + size, len(self.data)) // BLOCK_BYTES))
        if self.bad_blocks & set(blocks):
            raise OSError(self.error, "made to fail")
        return self.data[offset : offset + size]


def batch(sequence: int, count: int = 1, payload: bytes = b"payload", generation: int = 1) -> bytes:
    return frame.encode(generation=generation, sequence=sequence, entry_count=count, payload=payload)


def state(sequence: int, count: int = 1, generation: int = 2) -> bytes:
    return frame.encode(kind=frame.STATE, generation=generation, sequence=sequence, entry_count=count, payload=b"kept")


def shown(data: bytes, generation: int = 1, start: int = 0, least: int = 1) -> list[tuple[str, int]]:
    """What lies in a log: sequences of frames, sizes of gaps."""
    return [
        ("frame", piece.header.sequence) if isinstance(piece, Frame) else ("gap", piece.size)
        for piece in pieces(data, generation, start, least)
    ]


def pieces(data: bytes, generation: int = 1, start: int = 0, least: int = 1) -> Iterator[Frame | Gap]:
    found = Wreck(Bytes(data)).pieces(generation, start, len(data), least)  # type: ignore[arg-type]
    position = start
    for piece in found:
        assert piece.offset == position, "pieces follow one another without a hole"
        position = piece.end.offset if isinstance(piece, Frame) else piece.offset + piece.size
        yield piece
    assert position == len(data)


def test_a_whole_log_is_its_frames():
    assert shown(batch(1) + batch(2, 3) + batch(5)) == [("frame", 1), ("frame", 2), ("frame", 5)]
    assert shown(b"") == []


@pytest.mark.parametrize("junk", [b"x", b"\x00" * 50, frame.MAGIC, frame.MAGIC * 30, batch(2)[:-1], b"\xff"])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_junk_anywhere_is_one_gap(junk: bytes, place: int):
    frames = [batch(1), batch(2)]
    frames.insert(place, junk)
    expected = [("frame", 1), ("frame", 2)]
    expected.insert(place, ("gap", len(junk)))
    assert shown(b"".join(frames)) == expected


def test_a_gap_says_what_stands_where_it_begins():
    damaged = bytearray(batch(1) + batch(2))
    damaged[45] ^= 1
    gap, _ = pieces(bytes(damaged))
    assert gap == Gap(0, len(batch(1)), "the payload is damaged")
    gap, _ = pieces(b"\x00" * 99 + batch(1))
    assert gap == Gap(0, 99, "the header is damaged")
    (gap,) = pieces(batch(1)[:-1])
    assert gap == Gap(0, len(batch(1)) - 1, "the file ends inside a payload")


@pytest.mark.parametrize("shift", range(-5, 6))
def test_a_frame_is_found_across_the_edge_of_what_is_read_at_once(shift: int):
    assert shown(b"\x00" * (MIB + shift) + batch(1)) == [("gap", MIB + shift), ("frame", 1)]


def test_a_frame_of_another_generation_is_no_frame():
    assert shown(batch(1) + batch(2, generation=7) + batch(2)) == [("frame", 1), ("gap", len(batch(2))), ("frame", 2)]


def test_a_frame_that_was_there_before_is_no_frame():
    assert shown(batch(1, 5) + batch(3) + batch(6)) == [("frame", 1), ("gap", len(batch(3))), ("frame", 6)]
    assert shown(batch(1) + batch(4), least=3) == [("gap", len(batch(1))), ("frame", 4)]


def test_a_state_opens_a_log_and_stands_nowhere_else():
    whole = state(3) + state(3) + state(8) + state(9, 0) + batch(10, generation=2)
    assert [sequence for _, sequence in shown(whole, 2)] == [3, 3, 8, 9, 10]
    late = batch(1, generation=2) + state(3)
    assert shown(late, 2) == [("frame", 1), ("gap", len(state(3)))]
    assert shown(whole, 2, start=len(state(3)), least=4)[0] == ("gap", len(state(3) + state(8) + state(9, 0)))


def test_a_state_that_has_lost_its_end_is_followed_by_batches():
    assert shown(state(3) + b"junk" + batch(10, generation=2), 2) == [("frame", 3), ("gap", 4), ("frame", 10)]


def test_the_generation_of_a_log_is_that_of_most_of_it():
    def generation(data: bytes) -> int | None:
        return Wreck(Bytes(data)).generation()  # type: ignore[arg-type]

    assert generation(b"") is None
    assert generation(b"junk" * 100) is None
    assert generation(batch(1, generation=3)) == 3
    assert generation(batch(1, generation=4) + b"junk" + batch(1, generation=3) + batch(2, generation=3)) == 3


@pytest.mark.parametrize("before", [b"", b"junk", batch(1)])
def test_a_frame_of_a_newer_format_is_refused_wherever_it_stands(before: bytes, monkeypatch: pytest.MonkeyPatch):
    with monkeypatch.context() as patched:
        patched.setattr(frame, "VERSION", 2)
        newer = batch(2)
    wreck = Wreck(Bytes(before + newer + batch(3)))  # type: ignore[arg-type]
    with pytest.raises(LogTooNew) as refused:
        wreck.generation()
    assert refused.value.details["offset"] == len(before)


def test_a_place_that_cannot_be_read_comes_as_zeros_and_the_rest_as_it_is():
    data = bytes(range(1, 256)) * 100
    file = Forgiving(Bytes(data, frozenset({2})))  # type: ignore[arg-type]
    read = file.read(100, len(data) - 100)
    start, end = 2 * BLOCK_BYTES - 100, 3 * BLOCK_BYTES - 100
    assert read[:start] == data[100 : 100 + start]
    assert read[start:end] == bytes(BLOCK_BYTES)
    assert read[end:] == data[100 + end :]


def test_another_refusal_of_the_disk_is_not_forgiven():
    file = Forgiving(Bytes(bytes(9_000), frozenset({1}), errno.EACCES))  # type: ignore[arg-type]
    with pytest.raises(OSError, match="made to fail"):
        file.read(0, 9_000)


def test_a_header_is_had_if_it_is_whole_whatever_its_payload_is_like():
    data = frame.encode(generation=1, sequence=1, entry_count=1, payload=b"payload")
    wreck = Wreck(Bytes(b"strange" + data[:-1] + b"?"))  # type: ignore[arg-type]
    headers = [wreck.header(offset) for offset in (0, 7, 20, len(data) + 6, len(data) + 7, 999)]
    assert [header is not None for header in headers] == [False, True, False, False, False, False]


def test_a_whole_frame_is_found_anywhere_behind_an_offset():
    data = frame.encode(generation=3, sequence=9, entry_count=1, payload=b"payload")
    wreck = Wreck(Bytes(b"strange" + data + data[:-1]))  # type: ignore[arg-type]
    assert [wreck.has_frame(offset) for offset in (0, 7, 8, len(data) + 7)] == [True, True, False, False]
