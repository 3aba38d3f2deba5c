"""What the host hands over on stdin: read to its end but never waited for without end, and taken apart.

One JSON value, an array of them, JSON Lines, or {"events": [...]} as the daemon takes them; a byte order mark before it
is passed over. All of it is read even if it is too much, since a host that writes into
a pipe nobody reads may fall over that.

JSON is read strictly, with one exception: hosts cut texts where it suits them, and half of a pair of surrogates that
this leaves behind becomes U+FFFD instead of the end of the whole event.
"""

from __future__ import annotations

import os
import select
from collections.abc import Iterator

from convmem import strict_json
from convmem.limits import HOOK_INPUT_BYTES_MAX, HOOK_INPUT_SILENCE_MS_MAX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

STDIN = 0
PIECE_BYTES = 256 * 1024
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# What a body of /capture has; its `spool` is nothing of ours.
EVENTS, OF_BODY = "events", {"events", "spool"}
REPLACEMENT = rb"\ufffd"
# One escape at a time, so that what follows an escaped backslash is no escape; whole pairs before halves.
ESCAPE = rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)"


class Malformed(ValueError):
    """This is no JSON; the sentence says why."""


def read() -> bytes | None:
    """All of stdin; empty if nobody writes there, None if it is more than anybody may hand over."""
    data = bytearray()
    is_too_large = False
    try:
        if os.isatty(STDIN):
            return b""
        while select.select([STDIN], [], [], HOOK_INPUT_SILENCE_MS_MAX / 1000)[0]:
            piece = os.read(STDIN, PIECE_BYTES)
            if not piece:
                break
            is_too_large = is_too_large or len(data) + len(piece) > HOOK_INPUT_BYTES_MAX
            if not is_too_large:
                data += piece
    except OSError:
        pass  # What came until then is what there is.
    return None if is_too_large else bytes(data)


def values(data: bytes) -> Iterator[Any]:
    """Each value that stands there; in the place of one that cannot be read, the Malformed that says why."""
    data = data.removeprefix(BYTE_ORDER_MARK)
    if not data.strip():
        return
    try:
        whole = _parsed(data)
    except Malformed as fault:
        yield from _of_lines(data, fault)
        return
    yield from _inside(whole)


def _inside(whole: Any) -> list[Any]:
    if isinstance(whole, dict) and whole.keys() <= OF_BODY and isinstance(whole.get(EVENTS), list):
        whole = whole[EVENTS]
    return whole if isinstance(whole, list) else [whole]


def _of_lines(data: bytes, fault: Malformed) -> Iterator[Any]:
    """The values of the lines; where not one of them is any, it was one value, and it is broken."""
    found: list[Any] = []
    for line in data.split(b"\n"):
        if line.strip():
            try:
                found.append(_parsed(line))
            except Malformed as reason:
                found.append(reason)
    if all(isinstance(value, Malformed) for value in found):
        found = [fault]
    yield from found


def _parsed(data: bytes) -> Any:
    try:
        return strict_json.parse(data)
    except strict_json.MalformedJSON as fault:
        # Imported here, since few hosts ever need it.
        import re

        mended = re.sub(ESCAPE, lambda found: REPLACEMENT if found[1] else found[0], data)
        reason = str(fault)
    try:
        if mended != data:
            return strict_json.parse(mended)
    except strict_json.MalformedJSON as fault:
        reason = str(fault)
    raise Malformed(reason)
