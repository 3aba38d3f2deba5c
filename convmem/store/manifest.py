"""What a backup says of itself: two small documents in which no byte can change unnoticed.

    manifest.json   what was copied, and the hash of the state that a restore must come to
    proven.json     when a restore of a manifest was last proven

Each is one line of JSON with one spelling: fields in the order below, no blanks, a line end. `sha256` is the hash of
the same line with an empty `sha256`. A reader writes the document again and compares, so a flipped byte is noticed
wherever it falls, in a value, a name or a brace. Rejected: a file of checksums beside, because two files cannot be
replaced in one step.
"""

from datetime import UTC, datetime
from hashlib import sha256
from typing import Literal, NoReturn, TypeVar

import msgspec

from convmem.errors import BackupRefused
from convmem.files import Files
from convmem.limits import MANIFEST_BYTES_MAX

MANIFEST, PROVEN = "manifest.json", "proven.json"
VERSION: Literal[1] = 1


class Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One file of a backup: its name in a data directory, that of its copy, and the first `bytes` of the copy."""

    name: str
    file: str
    bytes: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a backup holds. The log's copy may be longer than its part says: a later backup was cut while it grew."""

    format: Literal["convmem-backup"] = "convmem-backup"
    version: Literal[1] = VERSION
    created_at: str
    convmem: str
    store_id: str
    generation: int
    sequence: int
    log_bytes: int
    state_hash: str
    parts: tuple[Part, ...]
    sha256: str = ""

    def part(self, name: str) -> Part | None:
        """The copy of a file of the data directory; None if it has none."""
        return next((part for part in self.parts if part.name == name), None)


class Proof(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A restore was proven: the manifest with this hash was replayed and came to its state."""

    format: Literal["convmem-backup-proof"] = "convmem-backup-proof"
    version: Literal[1] = VERSION
    proven_at_ms: int
    manifest: str
    sha256: str = ""


class Head(msgspec.Struct, frozen=True):
    """As much of a document as every version of it has."""

    format: str
    version: int


Document = TypeVar("Document", Manifest, Proof)


def sealed(document: Document) -> tuple[Document, bytes]:
    """The document with its own hash, and its bytes."""
    blank = msgspec.structs.replace(document, sha256="")
    document = msgspec.structs.replace(blank, sha256=sha256(msgspec.json.encode(blank)).hexdigest())
    return document, msgspec.json.encode(document) + b"\n"


def read(files: Files, name: str, kind: type[Document]) -> Document | None:
    """Read a document; None if it is not there. BackupRefused if it is not as it was written, or of a newer version."""
    if not files.exists(name):
        return None
    file = files.open_to_read(name)
    try:
        data = file.read(0, MANIFEST_BYTES_MAX + 1)
    finally:
        file.close()
    try:
        document = msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        _refuse(name, data)
    if len(data) > MANIFEST_BYTES_MAX or sealed(document)[1] != data:
        _refuse(name, data)
    return document


def _refuse(name: str, data: bytes) -> NoReturn:
    try:
        head = msgspec.json.decode(data, type=Head)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        head = Head("", 0)
    if head.format.startswith("convmem-backup") and head.version > VERSION:
        raise BackupRefused(f"{name} may have been written by a newer convmem: use that one", part=name)
    raise BackupRefused(f"{name} is not what was written", part=name)


def put(files: Files, name: str, data: bytes) -> None:
    """Put a document in the place of the one before, whole or not at all; durable after sync_directory(). OSError."""
    staging = f"staging-{name}"
    file = files.stage(staging)
    try:
        file.write(0, data)
        file.sync()
    finally:
        file.close()
    files.rename(staging, name)


def iso(at_ms: int) -> str:
    """A time as a manifest has it: 2026-01-31T08:00:00.000Z."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"
