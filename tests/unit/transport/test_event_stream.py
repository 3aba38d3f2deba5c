"""transport/event_stream: events whatever the pieces, and in time that grows with their size alone."""

import asyncio
import itertools
from collections.abc import AsyncIterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convmem.transport import event_stream

STREAMS: dict[bytes, list[bytes]] = {
    b"": [],
    b"data: a\n\n": [b"a"],
    b"data:a\r\n\r\n": [b"a"],
    b"data: a\r\r": [b"a"],
    b"\xef\xbb\xbfdata: a\n\ndata: b\n\n": [b"a", b"b"],
    b": comment\nevent: message\nid: 7\nretry: 5\ndata: a\n\n": [b"a"],
    b"data: a\ndata:  b\n\n": [b"a\n b"],
    b"data\n\n": [b""],
    b"\n\n\ndata: a\n\n\n": [b"a"],
    b"data: a\n\ndata: unfinished": [b"a"],
    b"data: a\n\ndata: unfinished\n": [b"a"],
    b"database: no\n\n": [],
    b"data: a: b\n\n": [b"a: b"],
}


async def read(*pieces: bytes) -> list[bytes]:
    async def come() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    return [data async for data in event_stream.data(come())]


@pytest.mark.parametrize("stream", STREAMS, ids=ascii)
async def test_an_event_is_what_stands_before_an_empty_line(stream: bytes):
    assert await read(stream) == STREAMS[stream]


@settings(max_examples=300)
@given(
    texts=st.lists(st.binary(max_size=20).map(lambda raw: raw.replace(b"\n", b"n").replace(b"\r", b"r")), max_size=6),
    ends=st.lists(st.sampled_from([b"\n", b"\r\n", b"\r"]), min_size=1),
    cuts=st.lists(st.integers(0, 400)),
)
def test_the_pieces_make_no_difference(texts: list[bytes], ends: list[bytes], cuts: list[int]):
    whole = b"".join(b"data: %b%b%b" % (text, ends[n % len(ends)], ends[n % len(ends)]) for n, text in enumerate(texts))
    places = [0, *sorted(cut % (len(whole) + 1) for cut in cuts), len(whole)]
    pieces = [whole[start:end] for start, end in itertools.pairwise(places)]
    assert asyncio.run(read(*pieces)) == texts


async def test_a_large_event_in_small_pieces_is_not_joined_again_and_again():
    data = b"x" * 5_000_000
    whole = b"data: " + data + b"\n\n"
    pieces = [whole[start : start + 1_000] for start in range(0, len(whole), 1_000)]
    assert await read(*pieces) == [data]
