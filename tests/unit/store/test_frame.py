"""store/frame.py: the bytes of one frame."""

from itertools import product
from zlib import crc32

import pytest

from convmem.store.frame import (
    BATCH,
    HEADER,
    HEADER_SIZE,
    MAGIC,
    PAYLOAD_BYTES_MAX,
    STATE,
    Fault,
    Header,
    decode_header,
    encode,
    may_follow,
    payload_is_whole,
)

PAYLOAD = b"payload of a frame"
WHOLE = encode(generation=3, sequence=9, entry_count=4, payload=PAYLOAD)


def resealed(data: bytes) -> bytes:
    """A header changed on purpose, with its checksum made right again."""
    return data[:36] + crc32(data[:36]).to_bytes(4, "little")


def test_a_header_comes_back_as_it_was_written() -> None:
    header = decode_header(WHOLE[:HEADER_SIZE])
    assert isinstance(header, Header)
    assert (header.generation, header.sequence, header.entry_count) == (3, 9, 4)
    assert header.next_sequence == 13
    assert header.frame_size == len(WHOLE)
    assert payload_is_whole(header, WHOLE[HEADER_SIZE:])


def test_the_layout_is_the_documented_one() -> None:
    assert WHOLE[:4] == MAGIC == bytes.fromhex("ff63766d")
    assert WHOLE[4:8] == bytes([1, 1, 0, 0])
    assert int.from_bytes(WHOLE[8:16], "little") == 3
    assert int.from_bytes(WHOLE[16:24], "little") == 9
    assert int.from_bytes(WHOLE[24:28], "little") == 4
    assert int.from_bytes(WHOLE[28:32], "little") == len(PAYLOAD)
    assert HEADER_SIZE == 40


@pytest.mark.parametrize("bit", range(HEADER_SIZE * 8))
def test_every_flipped_bit_of_a_header_is_noticed(bit: int) -> None:
    data = bytearray(WHOLE[:HEADER_SIZE])
    data[bit // 8] ^= 1 << bit % 8
    assert decode_header(bytes(data)) is Fault.BAD_HEADER


@pytest.mark.parametrize("bit", range(len(PAYLOAD) * 8))
def test_every_flipped_bit_of_a_payload_is_noticed(bit: int) -> None:
    header = decode_header(WHOLE[:HEADER_SIZE])
    assert isinstance(header, Header)
    data = bytearray(PAYLOAD)
    data[bit // 8] ^= 1 << bit % 8
    assert not payload_is_whole(header, bytes(data))


@pytest.mark.parametrize("size", range(HEADER_SIZE))
def test_every_cut_of_a_header_is_short(size: int) -> None:
    assert decode_header(WHOLE[:size]) is Fault.SHORT_HEADER


def test_zeros_are_a_bad_header() -> None:
    assert decode_header(bytes(HEADER_SIZE)) is Fault.BAD_HEADER


@pytest.mark.parametrize(("field", "value"), [(4, 2), (5, 3), (5, 0)])
def test_a_whole_frame_of_another_version_or_kind_is_too_new(field: int, value: int) -> None:
    data = bytearray(WHOLE[:HEADER_SIZE])
    data[field] = value
    assert decode_header(resealed(bytes(data))) is Fault.TOO_NEW


@pytest.mark.parametrize(
    "values",
    [
        (0, 1, 1, 5),
        (1, 0, 1, 5),
        (1, 1, 0, 5),
        (1, 1, 1, PAYLOAD_BYTES_MAX + 1),
    ],
)
def test_a_header_whose_numbers_cannot_be_is_bad_although_its_checksum_is_right(values: tuple[int, ...]) -> None:
    generation, sequence, entry_count, size = values
    data = HEADER.pack(MAGIC, 1, 1, 0, generation, sequence, entry_count, size, 0, 0)
    assert decode_header(resealed(data)) is Fault.BAD_HEADER


@pytest.mark.parametrize("broken", [{"generation": 0}, {"sequence": 0}, {"entry_count": 0}])
def test_encoding_keeps_the_rules_that_decoding_checks(broken: dict[str, int]) -> None:
    fields = {"generation": 1, "sequence": 1, "entry_count": 1} | broken
    with pytest.raises(AssertionError):
        encode(payload=b"", **fields)


def state(sequence: int, entry_count: int, number: int = 2) -> Header:
    data = encode(kind=STATE, generation=number, sequence=sequence, entry_count=entry_count, payload=b"")
    header = decode_header(data[:HEADER_SIZE])
    assert isinstance(header, Header)
    return header


def batch(sequence: int, entry_count: int = 1, number: int = 2) -> Header:
    return Header(BATCH, number, sequence, entry_count, 0, 0)


def test_a_frame_of_live_records_must_be_followed_by_more_of_the_state() -> None:
    header = state(7, 3)
    assert (header.kind, header.is_inside_state, header.is_end_of_state) == (STATE, True, False)
    assert header.next_sequence == 7, "of later records no more is known than that they are not before it"


def test_the_end_of_a_state_says_where_batches_go_on() -> None:
    header = state(40, 0)
    assert (header.is_inside_state, header.is_end_of_state, header.next_sequence) == (False, True, 41)


def test_a_batch_is_no_state() -> None:
    assert not batch(1).is_inside_state
    assert not batch(1).is_end_of_state


def test_a_state_may_speak_for_nothing_but_no_record_has_the_sequence_0() -> None:
    assert state(0, 0).next_sequence == 1
    data = HEADER.pack(MAGIC, 1, STATE, 0, 2, 0, 1, 0, 0, 0)
    assert decode_header(resealed(data)) is Fault.BAD_HEADER
    with pytest.raises(AssertionError):
        state(0, 1)


NOTHING, INSIDE, END, BATCHES = None, state(10, 2), state(20, 0), batch(21, 3)
# What stands before, what comes, and whether it may.
FOLLOWING: dict[tuple[Header | None, Header], bool] = {
    (NOTHING, batch(1)): True,
    (NOTHING, batch(2)): False,
    (NOTHING, state(5, 1)): True,
    (NOTHING, state(5, 0)): True,
    (INSIDE, batch(10)): False,
    (INSIDE, state(9, 1)): False,
    (INSIDE, state(10, 1)): True,
    (INSIDE, state(30, 1)): True,
    (INSIDE, state(9, 0)): False,
    (INSIDE, state(30, 0)): True,
    (END, batch(20)): False,
    (END, batch(21)): True,
    (END, batch(22)): False,
    (END, state(21, 1)): False,
    (END, state(21, 0)): False,
    (BATCHES, batch(23)): False,
    (BATCHES, batch(24)): True,
    (BATCHES, batch(25)): False,
    (BATCHES, state(24, 1)): False,
    (BATCHES, state(24, 0)): False,
}


@pytest.mark.parametrize(("before", "header"), FOLLOWING)
def test_a_frame_may_follow_another_in_its_place_alone(before: Header | None, header: Header) -> None:
    assert may_follow(header, before) == FOLLOWING[before, header]
    if before is not None:
        assert not may_follow(Header(header.kind, 3, header.sequence, header.entry_count, 0, 0), before)


def test_every_kind_of_frame_is_tried_behind_every_kind() -> None:
    def kind(header: Header | None) -> str:
        return "nothing" if header is None else "end" if header.is_end_of_state else str(header.kind)

    tried = {(kind(before), kind(header)) for before, header in FOLLOWING}
    assert tried == set(product(("nothing", "1", "2", "end"), ("1", "2", "end")))
