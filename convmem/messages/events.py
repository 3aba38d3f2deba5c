"""What has happened to messages; and, for the state that a compacted log opens with, what is.

The fields carry only what the entry itself does not: sequence, time and origin stand in the entry, so a message's
`timestamp` is its entry's time, unless it says another one (what a hook saw some time ago), and its `sequence` its
entry's number. An update holds only what changed: a field left
out was not touched, null was taken away. Fields are only ever added, each with a default that means what entries
written before it meant.
"""

import msgspec
from msgspec import UNSET, UnsetType

from convmem.domain import Event
from convmem.messages.model import Capture, Imported, Kind, Relation, Role, Tier


class Receipt(msgspec.Struct, frozen=True, array_like=True):
    """What an idempotency key leaves behind: the first 16 bytes of SHA-256 of the key and of the arguments."""

    key: bytes
    arguments: bytes


class MessageWritten(Event, frozen=True, kw_only=True, omit_defaults=True, tag="message_written"):
    """Something was said."""

    message_id: str
    session_id: str
    role: Role
    content: str
    tool_call_id: str | None = None
    tags: tuple[str, ...] = ()
    memory_tier: Tier = "mid"
    memory_kind: Kind = "conversation"
    importance: int = 0
    summary: str | None = None
    relations: tuple[Relation, ...] = ()
    source_message_ids: tuple[str, ...] = ()
    project: str | None = None
    receipt: Receipt | None = None
    timestamp: int | None = None
    capture: Capture | None = None
    number: int | None = None
    imported: Imported | None = None


class MessageUpdated(Event, frozen=True, kw_only=True, omit_defaults=True, tag="message_updated"):
    """A message reads differently from `revision` on."""

    message_id: str
    revision: int
    content: str | UnsetType = UNSET
    tool_call_id: str | UnsetType | None = UNSET
    tags: tuple[str, ...] | UnsetType = UNSET
    memory_tier: Tier | UnsetType = UNSET
    memory_kind: Kind | UnsetType = UNSET
    importance: int | UnsetType = UNSET
    summary: str | UnsetType | None = UNSET
    relations: tuple[Relation, ...] | UnsetType = UNSET
    source_message_ids: tuple[str, ...] | UnsetType = UNSET
    project: str | UnsetType | None = UNSET
    imported: Imported | UnsetType = UNSET


class MessageDeleted(Event, frozen=True, kw_only=True, omit_defaults=True, tag="message_deleted"):
    """A message is gone."""

    message_id: str


class MessageKept(Event, frozen=True, kw_only=True, omit_defaults=True, tag="message_kept"):
    """A live message, whole, as it stood when its log was compacted, or as a file brought it.

    Its entry says its sequence, timestamp and origin. `updated_at` and `changed_sequence` are left out where they are
    the entry's own.
    """

    message_id: str
    session_id: str
    role: Role
    content: str
    revision: int = 1
    updated_at: int | None = None
    changed_sequence: int | None = None
    tool_call_id: str | None = None
    tags: tuple[str, ...] = ()
    memory_tier: Tier = "mid"
    memory_kind: Kind = "conversation"
    importance: int = 0
    summary: str | None = None
    relations: tuple[Relation, ...] = ()
    source_message_ids: tuple[str, ...] = ()
    project: str | None = None
    capture: Capture | None = None
    number: int | None = None
    imported: Imported | None = None


class ReceiptKept(Event, frozen=True, kw_only=True, omit_defaults=True, tag="receipt_kept"):
    """What an idempotency key was answered with; it outlives its message. The entry's sequence is the receipt's."""

    device: str
    receipt: Receipt
    message_id: str
    session_id: str
    timestamp: int
    sha256: bytes


class FingerprintKept(Event, frozen=True, kw_only=True, omit_defaults=True, tag="fingerprint_kept"):
    """What a hook's event left behind (fingerprints.py), so that it is stored once; it outlives its message.

    The entry says when it came in; `timestamp` is the event's own time. `text` is empty where another hook had seen the
    same: that one is stored, this one is only known.
    """

    session: bytes
    event: bytes
    text: bytes
    timestamp: int


class SourceForgotten(Event, frozen=True, kw_only=True, omit_defaults=True, tag="source_forgotten"):
    """A message that was imported is gone, and its source is known for ever: imported again it stays away."""

    source: bytes
