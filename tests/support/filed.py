"""Files of records in memory, and the messages domain between two of them: exported, read in, exported again."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

import apsw
import msgspec

from convmem.domain import Kept, Place
from convmem.messages import DOMAIN
from convmem.messages.inputs import WriteMessage
from convmem.transfer.export import export
from convmem.transfer.intake import Intake, Plan, Policy
from convmem.transfer.scan import Scan, scan
from tests.support.faulty_files import FaultyFile, FaultyFiles
from tests.support.folded import DECODER, empty_index
from tests.support.manual_clock import START_MS

DOMAINS = [DOMAIN]
MANIFEST = b'{"type":"manifest","format":"convmem-jsonl","version":1}'
ULIDS = tuple(f"01BX5ZZKBK000000000000000{letter}" for letter in "ABCDEFGHJK")


def file(data: bytes) -> FaultyFile:
    """A file that holds these bytes."""
    return FaultyFile(FaultyFiles(), saved=data, written=data)


def message(number: int = 0, **more: Any) -> dict[str, Any]:
    """A record of a message, every field as an export writes it."""
    plain = {
        "type": "message",
        "message_id": ULIDS[number],
        "session_id": "s",
        "timestamp": START_MS + number,
        "updated_at": START_MS + number,
        "revision": 1,
        "role": "user",
        "content": f"message {number}",
        "metadata": {
            "tags": [],
            "memory_tier": "mid",
            "memory_kind": "conversation",
            "importance": 0,
            "relations": [],
            "source_message_ids": [],
        },
        "origin": {"device": "laptop", "transport": "http", "client": "tester/1"},
    }
    metadata = plain["metadata"] | more.pop("metadata", {})  # type: ignore[operator]
    return plain | {"metadata": metadata} | more


def write(content: str) -> WriteMessage:
    """The command that writes a message of the store's own."""
    return WriteMessage(session_id="own", role="user", content=content)


def written(records: Iterable[Any], manifest: bytes = MANIFEST) -> bytes:
    """Records as the bytes of a file; bytes stand there as they are."""
    lines = [record if isinstance(record, bytes) else msgspec.json.encode(record) for record in records]
    return b"\n".join([manifest, *lines]) + b"\n"


def exported(connection: apsw.Connection, at_ms: int = START_MS) -> bytes:
    """The whole export of an index."""
    return b"".join(export(connection, DOMAINS, at_ms))


def records_of(data: bytes) -> list[dict[str, Any]]:
    """The records of a file, without its manifest."""
    return [json.loads(line) for line in data.split(b"\n")[1:] if line]


def scanned(data: bytes) -> Scan:
    """Read a file for the first time."""
    return scan(file(data), DOMAINS, apsw.Connection(":memory:"), lambda done, total: None)


def taken(
    data: bytes,
    connection: apsw.Connection | None = None,
    policy: Policy = "reject",
    through: int = 0,
    last_number: int = 0,
) -> tuple[Plan, list[Kept]]:
    """What an import would do with a store, and every record of its next generation."""
    connection = connection or empty_index()
    intake = Intake(scanned(data), DOMAINS, policy, lambda done, total: None)
    return intake.meet(connection), list(intake.records(connection, through, last_number))


def folded_from(records: Sequence[Kept]) -> apsw.Connection:
    """A fresh index of a state, events read back from their bytes."""
    connection = empty_index()
    for kept in records:
        event = DECODER.decode(msgspec.msgpack.encode(kept.event))
        DOMAIN.appliers[type(event)](connection, event, Place(kept.sequence, kept.at_ms, kept.origin))
    return connection
