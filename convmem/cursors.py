"""Cursors: where a page ended, for the caller to hand back.

A cursor is opaque: a place, and a check that binds it to the question it belongs to. It names a place in an order, not
a row, so writes and deletions between two pages neither repeat nor hide a record.

Rejected: an offset (shifts under every insert), and pages kept by the daemon (a read would write).
"""

import base64
import hashlib
from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from convmem.errors import InvalidCursor
from convmem.limits import INT64_MAX, INT64_MIN

Position = TypeVar("Position")

CHECK_BYTES = 6


def cursor(question: Sequence[Any], position: Any) -> str:
    """A cursor behind `position`, good for `question` only."""
    where = msgspec.msgpack.encode(position)
    return base64.urlsafe_b64encode(_check(question, where) + where).decode().rstrip("=")


def position(given: str, question: Sequence[Any], kind: type[Position]) -> Position:
    """Where a cursor of this question points. InvalidCursor for anything that `cursor` did not make for it."""
    try:
        decoded = base64.urlsafe_b64decode(given + "=" * (-len(given) % 4))
        found = msgspec.msgpack.decode(decoded[CHECK_BYTES:], type=kind)
    except (ValueError, msgspec.MsgspecError):
        raise _not_ours() from None
    if cursor(question, found) != given or not _fits(found):
        raise _not_ours()
    return found


def _fits(found: Any) -> bool:
    """True if SQLite can be asked for this: the check of a cursor is no secret, and msgpack has larger integers."""
    if isinstance(found, int):
        return INT64_MIN <= found <= INT64_MAX
    return not isinstance(found, list | tuple) or all(map(_fits, found))


def _check(question: Sequence[Any], where: bytes) -> bytes:
    return hashlib.sha256(msgspec.msgpack.encode([list(question), where])).digest()[:CHECK_BYTES]


def _not_ours() -> InvalidCursor:
    return InvalidCursor("this cursor does not belong to this question; start without one", field="cursor")
