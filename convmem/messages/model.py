"""The nouns of messages: a message, what is said about it, and how one message points at another.

A Message is valid because it exists: inputs have checked it on the way in, the log holds nothing else. `facts` is the
one place that says how a message looks to a program.
"""

from collections.abc import Mapping
from typing import Any, Literal, get_args

import msgspec

from convmem.domain import Origin

Role = Literal["user", "assistant", "system"]
Tier = Literal["short", "mid", "long"]
Kind = Literal["conversation", "episode", "semantic", "procedure", "preference", "summary"]
KINDS: tuple[Kind, ...] = get_args(Kind)
CaptureKind = Literal["prompt", "tool_call", "error"]
CAPTURE_KINDS: tuple[CaptureKind, ...] = get_args(CaptureKind)
# Who is said to have said what a hook saw.
CAPTURE_ROLES: Mapping[CaptureKind, Role] = {"prompt": "user", "tool_call": "assistant", "error": "system"}

# No tag holds it, so tags can be kept as one text.
TAG_SEPARATOR = "\0"
# Crockford's digits and Python's, for the same numbers.
_DIGITS = bytes.maketrans(b"0123456789ABCDEFGHJKMNPQRSTVWXYZ", b"0123456789abcdefghijklmnopqrstuv")


def packed(message_id: str) -> bytes:
    """The 16 bytes that a message id stands for; in the order of the ids."""
    return int(message_id.encode().translate(_DIGITS), 32).to_bytes(16, "big")


def unpacked(data: bytes) -> str:
    """The message id of 16 bytes."""
    # Imported here: few need it, and the package takes a while.
    from ulid import ULID

    return str(ULID.from_bytes(data))


def split_tags(joined: str) -> tuple[str, ...]:
    """The tags of a message, from the one text they are kept as."""
    return tuple(joined.split(TAG_SEPARATOR)) if joined else ()


class Relation(msgspec.Struct, frozen=True, kw_only=True):
    """This message points at another, and says how."""

    type: str
    message_id: str


class Metadata(msgspec.Struct, frozen=True, kw_only=True):
    """What a caller says about a message. Its names are the arguments of write_message and the keys of answers."""

    tool_call_id: str | None = None
    tags: tuple[str, ...] = ()
    memory_tier: Tier = "mid"
    memory_kind: Kind = "conversation"
    importance: int = 0
    summary: str | None = None
    relations: tuple[Relation, ...] = ()
    source_message_ids: tuple[str, ...] = ()
    project: str | None = None

    def facts(self) -> dict[str, Any]:
        """The same for programs: what is absent is left out, lists and labels always stand there."""
        facts = {name: value for name, value in msgspec.structs.asdict(self).items() if value is not None}
        return facts | {
            "tags": list(self.tags),
            "relations": [{"type": relation.type, "message_id": relation.message_id} for relation in self.relations],
            "source_message_ids": list(self.source_message_ids),
        }


METADATA_FIELDS = Metadata.__struct_fields__
METADATA_DEFAULTS = Metadata()


class Capture(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is known of a message that a hook captured. No tool sets it; it never changes."""

    kind: CaptureKind
    event_id: str
    tool: str | None = None
    status: str | None = None
    directory: str | None = None

    def facts(self) -> dict[str, Any]:
        """The same for programs: what is absent is left out."""
        return {name: value for name, value in msgspec.structs.asdict(self).items() if value is not None}


class Imported(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where a message that came out of another program's file is from: ids as that program gave them.

    `source` is the hash of all of them in hex, `digest` that of what the file said when it was last taken in; both are
    FINGERPRINT_BYTES. No tool sets any of it.
    """

    format: str
    conversation: str
    message: str
    source: str
    digest: str
    account: str | None = None

    def facts(self) -> dict[str, Any]:
        """The same for programs: what is absent is left out."""
        return {name: value for name, value in msgspec.structs.asdict(self).items() if value is not None}


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """One thing said in a conversation.

    Times are ms since the Unix epoch, UTC. `sequence` is that of the entry that created it, `changed_sequence` that of
    the entry that made it what it is. A message that a hook captured has a number.
    """

    message_id: str
    session_id: str
    timestamp: int
    updated_at: int
    revision: int
    sequence: int
    changed_sequence: int
    role: Role
    content: str
    content_bytes: int
    metadata: Metadata
    origin: Origin
    capture: Capture | None = None
    number: int | None = None
    imported: Imported | None = None

    def facts(self) -> dict[str, Any]:
        """The whole message for programs."""
        facts = {
            "message_id": self.message_id,
            "session_id": self.session_id,
            "timestamp": self.timestamp,
            "updated_at": self.updated_at,
            "revision": self.revision,
            "sequence": str(self.sequence),
            "role": self.role,
            "content": self.content,
            "metadata": self.metadata.facts(),
            "origin": origin_facts(self.origin),
        }
        if self.imported is not None:
            facts["imported"] = self.imported.facts()
        return facts if self.capture is None else {**facts, "number": self.number, "capture": self.capture.facts()}


def origin_facts(origin: Origin) -> dict[str, Any]:
    """Where a message came from, for programs: the client only if it was named."""
    facts = {"device": origin.device, "transport": origin.transport}
    return facts if origin.client is None else {**facts, "client": origin.client}
