"""Messages as lines of JSONL: how a live message is written into a file, and how a stranger's line is read.

A line is JSON in which every control character and every line separator of other formats is escaped, so it is one
record for any reader, however that one splits lines. It holds what the message is (origin, revision and times with
it), not where it stands: no sequence.

A line is read twice: it is checked (line_checks.py), and decoded here once the whole file has passed.
"""

import apsw
import msgspec
from msgspec import UNSET, UnsetType

from convmem.domain import Kept, Record, RecordType
from convmem.errors import Conflict
from convmem.limits import REVISION_MAX
from convmem.messages import kept, line_checks
from convmem.messages.events import MessageKept
from convmem.messages.line_checks import IDENTITY, TAG, identity
from convmem.messages.model import Capture, Imported, Kind, Relation, Role, Tier, unpacked
from convmem.record_lines import OriginLine, escaped, origin_line


class _Metadata(msgspec.Struct):
    """In the order of a message's facts; what is absent is left out, lists and labels always stand there.

    A stranger's line may say null for what is absent.
    """

    tool_call_id: str | UnsetType | None = UNSET
    tags: tuple[str, ...] = ()
    memory_tier: Tier = "mid"
    memory_kind: Kind = "conversation"
    importance: int = 0
    summary: str | UnsetType | None = UNSET
    relations: tuple[Relation, ...] = ()
    source_message_ids: tuple[str, ...] = ()
    project: str | UnsetType | None = UNSET


class _Line(msgspec.Struct, tag=TAG):
    message_id: str
    session_id: str
    timestamp: int
    updated_at: int
    revision: int
    role: Role
    content: str
    metadata: _Metadata
    origin: OriginLine
    capture: Capture | UnsetType | None = UNSET
    imported: Imported | UnsetType | None = UNSET


_DECODER = msgspec.json.Decoder(_Line)
_ENCODER = msgspec.json.Encoder()


def encode(record: Kept) -> bytes:
    """A live message as a line, without its line break."""
    event = record.event
    assert isinstance(event, MessageKept)
    line = _Line(
        event.message_id,
        event.session_id,
        record.at_ms,
        record.at_ms if event.updated_at is None else event.updated_at,
        event.revision,
        event.role,
        event.content,
        _Metadata(
            UNSET if event.tool_call_id is None else event.tool_call_id,
            event.tags,
            event.memory_tier,
            event.memory_kind,
            event.importance,
            UNSET if event.summary is None else event.summary,
            event.relations,
            event.source_message_ids,
            UNSET if event.project is None else event.project,
        ),
        origin_line(record.origin),
        UNSET if event.capture is None else event.capture,
        UNSET if event.imported is None else event.imported,
    )
    return escaped(_ENCODER.encode(line))


def decode(line: bytes) -> Record:
    """Read a line that was checked."""
    read = _DECODER.decode(line)
    metadata = read.metadata
    event = MessageKept(
        message_id=read.message_id.upper(),
        session_id=read.session_id,
        role=read.role,
        content=read.content,
        revision=read.revision,
        updated_at=None if read.updated_at == read.timestamp else read.updated_at,
        tool_call_id=None if metadata.tool_call_id is UNSET else metadata.tool_call_id,
        tags=tuple(dict.fromkeys(metadata.tags)) if metadata.tags else (),
        memory_tier=metadata.memory_tier,
        memory_kind=metadata.memory_kind,
        importance=metadata.importance,
        summary=None if metadata.summary is UNSET else metadata.summary,
        relations=tuple(Relation(type=one.type, message_id=one.message_id.upper()) for one in metadata.relations)
        if metadata.relations
        else (),
        source_message_ids=tuple(target.upper() for target in metadata.source_message_ids)
        if metadata.source_message_ids
        else (),
        project=None if metadata.project is UNSET else metadata.project,
        capture=None if read.capture is UNSET else read.capture,
        imported=None if read.imported is UNSET else read.imported,
    )
    return Record(read.timestamp, read.origin.origin, event)


def identify(record: Kept) -> bytes:
    """The identity of a live message."""
    assert isinstance(record.event, MessageKept)
    return identity(record.event.message_id)


def stored(connection: apsw.Connection, name: bytes) -> Kept | None:
    """The live message of this identity, if it is one of a message."""
    if not name.startswith(IDENTITY):
        return None
    return kept.stored(connection, unpacked(name.removeprefix(IDENTITY)))


def is_same(before: Kept, record: Record) -> bool:
    """True if a file of the store would hold the same line."""
    plain = msgspec.structs.replace(before.event, changed_sequence=None, number=None)
    return record == Record(before.at_ms, before.origin, plain)


def replacing(before: Kept, record: Record, sequence: int) -> Kept:
    """The message of the file in the place of the stored one: a revision above both, last changed at `sequence`."""
    assert isinstance(before.event, MessageKept)
    assert isinstance(record.event, MessageKept)
    revision = max(record.event.revision, before.event.revision + 1)
    if revision > REVISION_MAX:
        raise Conflict("the message has been changed as often as it can be", current_revision=before.event.revision)
    number = None if record.event.capture is None else before.event.number
    event = msgspec.structs.replace(record.event, revision=revision, changed_sequence=sequence, number=number)
    return Kept(before.sequence, record.at_ms, record.origin, event)


def numbered(event: MessageKept, number: int) -> MessageKept:
    """A captured message with this number, unless it has one. Others are as they are."""
    if event.capture is None or event.number is not None:
        return event
    return msgspec.structs.replace(event, number=number)


MESSAGES = RecordType(
    tag=TAG,
    event=MessageKept,
    encode=encode,
    check=line_checks.check,
    check_quickly=line_checks.check_quickly,
    decode=decode,
    identify=identify,
    stored=stored,
    is_same=is_same,
    replacing=replacing,
    numbered=numbered,
    leaves=kept.left,
)
