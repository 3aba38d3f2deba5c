"""What fits into a reply.

A cut value never stands under its own name: a message that does not fit shows `content_preview` and `total_bytes`
instead of `content`, and what else had to go stands in `omitted` by name and size. So nobody writes a shortened text
back.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from convmem.limits import PREVIEW_BYTES, PREVIEW_FROM_BYTES, REPLY_ENVELOPE_BYTES
from convmem.messages.model import Message
from convmem.reply_bytes import reply_bytes
from convmem.text import cut_to_bytes


class Budget:
    """How many bytes of a reply are left."""

    def __init__(self, bytes_max: int) -> None:
        self.left = bytes_max - REPLY_ENVELOPE_BYTES

    def take(self, facts: Any) -> bool:
        """True, and taken off, if these facts still fit (with the comma behind them)."""
        cost = reply_bytes(facts) + 2
        if cost > self.left:
            return False
        self.left -= cost
        return True

    def fit(self, message: Message, *, is_first: bool) -> dict[str, Any] | None:
        """The fullest form of a message that fits; None if none does. The first record of a page always fits."""
        facts: dict[str, Any] = {}
        for facts in forms(message, is_first=is_first):
            if self.take(facts):
                return facts
        if is_first:
            self.left = 0
            return facts
        return None


def forms(message: Message, *, is_first: bool) -> Iterator[dict[str, Any]]:
    """A message whole, then with its content as a preview, then (the first of a page) without its largest metadata."""
    facts = message.facts()
    yield facts
    if message.content_bytes > (PREVIEW_BYTES if is_first else PREVIEW_FROM_BYTES):
        facts = with_preview(facts, cut_to_bytes(message.content, PREVIEW_BYTES), message.content_bytes)
        yield facts
    if is_first:
        yield from without_metadata(facts)


def with_preview(facts: dict[str, Any], preview: str, total_bytes: int) -> dict[str, Any]:
    """The facts of a message with a preview in the place of its content."""
    shown: dict[str, Any] = {}
    for name, value in facts.items():
        shown |= {"content_preview": preview, "total_bytes": total_bytes} if name == "content" else {name: value}
    return shown


def brief(message: Message, code_points_max: int) -> dict[str, Any]:
    """The content of a message that stands beside another: whole if it is short, else a preview."""
    if len(message.content) <= code_points_max:
        return {"content": message.content}
    return {"content_preview": message.content[:code_points_max], "total_bytes": message.content_bytes}


def without_metadata(facts: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The facts of a message with ever less metadata, the largest first; `omitted` names what went."""
    metadata = facts["metadata"]
    sizes = {name: len(msgspec.json.encode(value)) for name, value in metadata.items()}
    gone: list[str] = []
    for name in sorted(sizes, key=lambda name: -sizes[name]):
        gone.append(name)
        kept = {other: value for other, value in metadata.items() if other not in gone}
        omitted = [{"field": f"metadata.{other}", "bytes": sizes[other]} for other in gone]
        yield {**facts, "metadata": kept, "omitted": omitted}
