"""What messages leave behind in the index, to be known by when they are gone.

Receipts of idempotency keys, fingerprints of what hooks captured, sources of what was imported.
"""

from collections.abc import Callable, Mapping
from typing import Any

import apsw

from convmem.domain import Event, Place
from convmem.messages.events import FingerprintKept, Receipt, ReceiptKept, SourceForgotten
from convmem.messages.fingerprints import Mark


def receipt_kept(connection: apsw.Connection, event: ReceiptKept, place: Place) -> None:
    """Show what an idempotency key left behind."""
    where = (event.device, event.message_id, event.session_id, event.timestamp, place.sequence)
    receipt(connection, event.receipt, *where, event.sha256)


def fingerprint_kept(connection: apsw.Connection, event: FingerprintKept, place: Place) -> None:
    """Show what an event of a hook left behind. By its time no session is forgotten: a file may say any time."""
    fingerprint(connection, Mark(event.session, event.event, event.text), event.timestamp, place)


def source_forgotten(connection: apsw.Connection, event: SourceForgotten, place: Place) -> None:
    """Show that a source stays away."""
    forget(connection, event.source, place)


def receipt(
    connection: apsw.Connection,
    left: Receipt,
    device: str,
    message_id: str,
    session_id: str,
    timestamp: int,
    sequence: int,
    sha256: bytes,
) -> None:
    """Remember what an idempotency key was answered with."""
    connection.execute(
        "INSERT INTO messages_receipt VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (device, left.key, left.arguments, message_id, session_id, timestamp, sequence, sha256),
    )


def fingerprint(connection: apsw.Connection, left: Mark, timestamp: int, place: Place) -> None:
    """Remember an event of a hook. Of two messages of a file that say they are one event the first is believed."""
    row = (*left, timestamp, place.at_ms, place.sequence)
    connection.execute("INSERT INTO messages_fingerprint VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING", row)
    if connection.changes():
        connection.execute(
            "INSERT INTO messages_captured_session VALUES (?1, ?2)"
            " ON CONFLICT (session) DO UPDATE SET last_at = max(last_at, ?2)",
            (left.session, place.at_ms),
        )


def forget(connection: apsw.Connection, source: bytes, place: Place) -> None:
    """Remember the source of an imported message that is gone."""
    row = (source, place.at_ms, place.sequence)
    connection.execute("INSERT INTO messages_forgotten VALUES (?, ?, ?) ON CONFLICT DO NOTHING", row)


APPLIERS: Mapping[type[Event], Callable[[apsw.Connection, Any, Place], None]] = {
    ReceiptKept: receipt_kept,
    FingerprintKept: fingerprint_kept,
    SourceForgotten: source_forgotten,
}
