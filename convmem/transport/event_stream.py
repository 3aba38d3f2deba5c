"""Server-sent events as a client reads them: the data of each event, as soon as the event is whole.

Source: HTML, section 9.2.6 "Interpreting an event stream". Of the fields only `data` means something here: ids and
retry times are for a client that resumes a stream, and this server's calls are never resumed.
"""

import re
from collections.abc import AsyncGenerator, AsyncIterator

LINE_END = re.compile(rb"\r\n|\n|\r")
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


async def data(pieces: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """The data of each event; an event that the stream breaks off in the middle of is dropped, as the source says."""
    found: list[bytes] = []
    async for line in _lines(pieces):
        name, _, value = line.partition(b":")
        if not line and found:
            yield b"\n".join(found)
            found = []
        elif name == b"data":
            found.append(value.removeprefix(b" "))


async def _lines(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Whole lines without their ends. A CR at the end of a piece waits: an LF may follow."""
    parts: list[bytes] = []
    is_first = True
    async for piece in pieces:
        parts.append(piece)
        # A line may be megabytes in many pieces: they are joined once it ends.
        if not LINE_END.search(piece) and not parts[0].endswith(b"\r"):
            continue
        pending = b"".join(parts)
        if is_first:
            pending, is_first = pending.removeprefix(BYTE_ORDER_MARK), False
        waits = pending.endswith(b"\r")
        *whole, rest = LINE_END.split(pending[:-1] if waits else pending)
        parts = [rest + b"\r" if waits else rest]
        for line in whole:
            yield line
    if parts and parts[-1].endswith(b"\r"):
        yield b"".join(parts)[:-1]
