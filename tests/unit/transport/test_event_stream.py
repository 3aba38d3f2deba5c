"""event_stream: the same events come out however the stream is cut into pieces and whichever line ends it uses."""

import asyncio
import itertools
import re
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convmem.transport import event_stream

BOM = b"\xef\xbb\xbf"


async def parts(pieces: list[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


async def read(*pieces: bytes) -> list[bytes]:
    return [data async for data in event_stream.data(parts(list(pieces)))]


STREAMS: dict[bytes, list[bytes]] = {
    b"": [],
    b"data: a\n\n": [b"a"],
    b"data:a\n\n": [b"a"],
    b"data:  a \n\n": [b" a "],
    b"event: message\r\ndata: a\r\n\r\ndata: b\r\n\r\n": [b"a", b"b"],
    b"data: a\r\rdata: b\r\r": [b"a", b"b"],
    b"data: a\r\n\rdata: b\n\r\n": [b"a", b"b"],
    b"data: a\ndata: b\n\n": [b"a\nb"],
    b"data\n\n": [b""],
    b"data:\ndata:\n\n": [b"\n"],
    b"\n\n\n": [],
    b": ping\n\n:\n\ndata: a\n: ping\n\n": [b"a"],
    b"id: 7\nretry: 5\nevent: x\n\n": [],
    b"id: 7\ndata: a\nretry: 5\n\n": [b"a"],
    b"datum: a\n\nDATA: a\n\n data: a\n\n": [],
    b"data: a\n\ndata: half": [b"a"],
    b"data: a\n\ndata: half\n": [b"a"],
    BOM + b"data: a\n\n": [b"a"],
    BOM + b"\rdata: a\r\r": [b"a"],
    BOM + BOM + b"data: a\n\ndata: b\n\n": [b"b"],
    b"data: a\n\n" + BOM + b"data: b\n\n": [b"a"],
    "data: a\u2028b\u0085c\x0b\x0c\n\n".encode(): ["a\u2028b\u0085c\x0b\x0c".encode()],
}


@pytest.mark.parametrize("text", STREAMS, ids=ascii)
async def test_a_stream_is_read_as_the_standard_says(text: bytes):
    assert await read(text) == STREAMS[text]
    assert await read(*(bytes([byte]) for byte in text)) == STREAMS[text]


async def test_an_event_comes_as_soon_as_it_is_whole():
    asked: list[bytes] = []

    async def pieces() -> AsyncIterator[bytes]:
        for piece in (b"data: a\n", b"\n", b"data: b\n\n"):
            asked.append(piece)
            yield piece

    events = event_stream.data(pieces())
    assert await anext(events) == b"a"
    assert asked == [b"data: a\n", b"\n"]
    await events.aclose()


TEXTS = st.lists(
    st.one_of(
        st.sampled_from([b"data: a", b"data:", b"data", b": comment", b"event: message", b"id: 1", b"data: b: c", b""]),
        st.sampled_from([b"\n", b"\r", b"\r\n", b"\n\n", b"\r\r", b"\r\n\r\n"]),
        st.binary(max_size=4),
    ),
    max_size=20,
).map(b"".join)


def plainly(text: bytes) -> list[bytes]:
    """The events of a stream that is there as a whole."""
    found, data = [], list[bytes]()
    *lines, _ = re.split(rb"\r\n|\r|\n", text.removeprefix(BOM))
    for line in lines:
        if not line and data:
            found.append(b"\n".join(data))
            data = []
        elif line.partition(b":")[0] == b"data":
            data.append(line[5:].removeprefix(b" "))
    return found


@given(TEXTS, st.lists(st.integers(0, 100), max_size=12), st.booleans())
def test_any_pieces_and_any_line_ends_come_to_the_same(text: bytes, cuts: list[int], has_mark: bool):
    text = BOM + text if has_mark else text
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    pieces = [text[start:end] for start, end in itertools.pairwise(places)]
    assert asyncio.run(read(*pieces)) == plainly(text)


async def test_a_large_event_is_looked_at_once(monkeypatch: pytest.MonkeyPatch):
    looked_at: list[int] = []
    pattern = event_stream.LINE_END

    class Counting:
        """The pattern for line ends, and how many bytes it was let loose on."""

        def search(self, text: bytes) -> object:
            looked_at.append(len(text))
            return pattern.search(text)

        def split(self, text: bytes) -> list[bytes]:
            looked_at.append(len(text))
            return pattern.split(text)

    monkeypatch.setattr(event_stream, "LINE_END", Counting())
    text = b"data: " + b"x" * 5_000_000 + b"\n\n"
    pieces = [text[start : start + 65_536] for start in range(0, len(text), 65_536)]
    assert await read(*pieces) == [b"x" * 5_000_000]
    assert sum(looked_at) < 3 * len(text)
