"""store/frame.py: the bytes of one frame."""

from zlib import crc32

import pytest

from convmem.store.frame import (
    HEADER,
    HEADER_SIZE,
    MAGIC,
    PAYLOAD_BYTES_MAX,
    Fault,
    Header,
    decode_header,
    encode,
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


@pytest.mark.parametrize(("field", "value"), [(4, 2), (5, 2), (5, 0)])
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
