"""The lines of a file of records, one after another, however large the file: number, place, bytes.

A record ends at U+000A and nowhere else; other line separators are text. A byte order mark and CRLF are what editors
leave and are taken off; blank lines say nothing. A file in another encoding or packed is refused by name, since every
line of it would be refused without saying why.
"""

from collections.abc import Iterator
from typing import NamedTuple

from convmem.errors import Invalid
from convmem.files import File
from convmem.limits import LINE_BYTES_MAX, MIB

BLOCK_BYTES = 1 * MIB
BYTE_ORDER_MARK = "\ufeff".encode()
# How files begin that hold no UTF-8, and what to tell who sends one.
NOT_THIS: tuple[tuple[bytes, str], ...] = (
    (b"\xff\xfe", "the file is UTF-16: save it as UTF-8"),
    (b"\xfe\xff", "the file is UTF-16: save it as UTF-8"),
    (b"\x1f\x8b", "the file is packed by gzip: unpack it first"),
    (b"PK\x03\x04", "the file is a zip archive: unpack it first"),
    (b"\x28\xb5\x2f\xfd", "the file is packed by zstd: unpack it first"),
)


class Line(NamedTuple):
    """A line that says something: its number from 1, the byte it begins at, and its bytes without the line end."""

    number: int
    offset: int
    data: bytes


def lines(file: File) -> Iterator[Line]:
    """Yield the lines of a file from its beginning. Invalid with `line` for one that is too long."""
    block = file.read(0, BLOCK_BYTES)
    for beginning, sentence in NOT_THIS:
        if block.startswith(beginning):
            raise Invalid(f"line 1: {sentence}", line=1)
    skipped = len(BYTE_ORDER_MARK) if block.startswith(BYTE_ORDER_MARK) else 0
    number, offset, rest = 1, skipped, block[skipped:]
    end = len(block)
    while block:
        *whole, rest = rest.split(b"\n")
        for data in whole:
            if (line := _line(number, offset, data)) is not None:
                yield line
            number, offset = number + 1, offset + len(data) + 1
        if len(rest) > LINE_BYTES_MAX:
            raise too_long(number)
        block = file.read(end, BLOCK_BYTES)
        end += len(block)
        rest += block
    if (line := _line(number, offset, rest)) is not None:
        yield line


def _line(number: int, offset: int, data: bytes) -> Line | None:
    if len(data) > LINE_BYTES_MAX:
        raise too_long(number)
    data = data.removesuffix(b"\r")
    return Line(number, offset, data) if data.strip(b" \t") else None


def too_long(number: int) -> Invalid:
    """The refusal of a line over its bound."""
    return Invalid(f"line {number}: it is longer than {LINE_BYTES_MAX} bytes", line=number)
