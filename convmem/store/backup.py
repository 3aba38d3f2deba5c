"""A backup: a directory with a copy of the log, and a manifest that says what a restore must come to.

    manifest.json           names every part with its size and hash, and the hash of the live state
    log-<generation>        the log's bytes up to an end that was committed; grows as the log does
    <name>-<hash>.<suffix>  any other part, under a name that follows its content
    proven.json             when a restore was last proven; backup.lock, staging-*: see below

The manifest is the backup. It is replaced by one rename, after all that it names is on the disk, and only then is
removed what the one before named. A log of the same generation only ever grows, so its copy is added to behind the
bytes that the manifest speaks for; the log of another generation is copied beside. A cut at any step leaves the old
backup or the new one.

Never copied over a good backup: a log that is damaged here, or one of another history. What a manifest speaks for must
be the beginning of the log, byte for byte; sequences and generations do not go back.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from hashlib import sha256
from typing import NamedTuple

import apsw
import msgspec

from convmem import __version__
from convmem.clock import Clock
from convmem.domain import Domain
from convmem.errors import BackupRefused, Busy, ConvmemError, DiskFault, LogCorrupt
from convmem.files import Files
from convmem.limits import BUSY_RETRY_MS
from convmem.store import check, log
from convmem.store.codec import Codec
from convmem.store.compaction import Tell, live
from convmem.store.copying import Copy, Source, TablePart, refuse_if_stopped
from convmem.store.frame import HEADER_SIZE, Fault, decode_header
from convmem.store.manifest import MANIFEST, PROVEN, Manifest, Part, iso, put, read, sealed
from convmem.store.sqlite import read_state, shape

TOKENS = "tokens.json"
LOCK = "backup.lock"
# A compaction may swap generations between the look at the log and that at its index; it does not do so often.
LOOKS_MAX = 10
RECORDS_BETWEEN_LOOKS = 1_000
OURS = re.compile(r"log-[1-9][0-9]{0,18}|[a-z]+-[0-9a-f]{16}\.[a-z]+|staging-.*|\.probe-[0-9]+")
# What any directory may hold and be empty all the same: a file system keeps lost+found.
NEUTRAL = {LOCK, PROVEN, "lost+found"}


@contextmanager
def looked_at(
    files: Files,
    connect: Callable[[int], apsw.Connection],
    domains: Sequence[Domain],
    tables: Sequence[TablePart] | None = (),
) -> Iterator[Source]:
    """A store as it is at one moment, also while it is written to. Busy if it never stands still for a look.

    The index follows the log: what it shows was synced there, and stays. `connect` opens that of a generation to read
    (apsw.CantOpenError if it is gone).
    """
    for _ in range(LOOKS_MAX):
        with closing(files.open_to_read(log.NAME)) as file:
            header = decode_header(file.read(0, HEADER_SIZE))
            generation = 1 if isinstance(header, Fault) else header.generation
            try:
                index = connect(generation)
            except apsw.CantOpenError:
                if isinstance(header, Fault):
                    raise LogCorrupt(
                        f"{log.NAME}, byte 0: {header.value}", file=log.NAME, offset=0, sequence=1
                    ) from None
                continue
            with closing(index):
                index.execute("BEGIN")
                state = read_state(index, shape(domains))
                if state is not None and state.generation == generation:
                    yield Source(files, file, generation, state.end, state.store_id, index, domains, tables)
                    return
    raise Busy("the store is going over to another generation", retry_after_ms=BUSY_RETRY_MS)


def state_hash(
    connection: apsw.Connection, domains: Sequence[Domain], is_stopped: Callable[[], bool]
) -> tuple[str, int]:
    """The hash of every live record, and how many there are: equal states have equal hashes, whatever their history."""
    codec, encoder, digest, count = Codec(domains), msgspec.msgpack.Encoder(), sha256(), 0
    for count, kept in enumerate(live(connection, domains), 1):
        record = (kept.sequence, kept.at_ms, kept.origin, codec.encode_event(kept.event))
        digest.update(encoder.encode(record))
        if count % RECORDS_BETWEEN_LOOKS == 0:
            refuse_if_stopped(is_stopped)
    return digest.hexdigest(), count


def _log(copy: Copy) -> Part:
    """The log up to its end: the new bytes behind those that are there, or all of it."""
    source, name, size = copy.source, f"log-{copy.source.generation}", copy.source.end.offset
    known = copy.known.part(log.NAME) if copy.known is not None else None
    if known is not None and known.file == name:
        digest = copy.hashed(source.log, known.bytes)
        if known.bytes > size or digest.hexdigest() != known.sha256:
            raise BackupRefused(
                "the backup there is not the beginning of this log: choose another directory", part=name
            )
        if copy.target.exists(name):
            with closing(copy.target.open(name)) as file:
                if file.size() >= known.bytes and copy.hashed(file, known.bytes).hexdigest() == known.sha256:
                    if file.size() > known.bytes:
                        file.truncate(known.bytes)
                    copy.add(source.log, file, known.bytes, size, digest)
                    return Part(name=log.NAME, file=name, bytes=size, sha256=digest.hexdigest())
    return Part(name=log.NAME, file=name, bytes=size, sha256=copy.replace(source.log, name, size))


def _small(name: str) -> Callable[[Copy], Part | None]:
    """A small file that is replaced as a whole when it changes."""

    def run(copy: Copy) -> Part | None:
        if not copy.source.files.exists(name):
            return None
        with closing(copy.source.files.open_to_read(name)) as file:
            return copy.small(name, file)

    return run


class Kind(NamedTuple):
    """One kind of part: the file's name in a data directory, and how it is copied (None: there is none)."""

    name: str
    copy: Callable[[Copy], Part | None]
    is_secret: bool = False


# The log comes first: a restore gives files their names from last to first, and with its log a store is there.
KINDS = (Kind(log.NAME, _log), Kind(TOKENS, _small(TOKENS), is_secret=True))


def refuse_foreign(target: Files) -> Manifest | None:
    """The manifest in a directory for a backup; None if there is none yet. BackupRefused if it is used otherwise."""
    known = read(target, MANIFEST, Manifest)
    if known is None:
        foreign = [name for name in target.names() if name not in NEUTRAL and not OURS.fullmatch(name)]
        if foreign:
            raise BackupRefused("the directory holds other things and no backup", part=foreign[0])
    return known


def back_up(
    source: Source,
    target: Files,
    clock: Clock,
    *,
    with_tokens: bool = False,
    tell: Tell = lambda done, total, sentence: None,
    is_stopped: Callable[[], bool] = lambda: False,
    kept_back: Callable[[str], None] = lambda sentence: None,
) -> tuple[Manifest, int]:
    """Bring the backup in `target` to what `source` is; the manifest, and how many bytes were copied.

    A table's file that cannot be read stays as the backup has it; `kept_back` is told which and why.

    BackupRefused, LogCorrupt, DiskFault, Stopping: the backup is as it was.
    """
    with refused_by_disk("nothing that was there is lost"):
        known = refuse_foreign(target)
        copy = Copy(source, target, known, tell, is_stopped)
        try:
            manifest, data = sealed(_copy(copy, clock, kept_back, with_tokens=with_tokens))
            put(target, MANIFEST, data)
        except (OSError, ConvmemError):
            _give_up(copy)
            raise
        # From here on nobody knows which of the two manifests a power cut leaves; what both name is there.
        target.sync_directory()
        # What cannot be removed now is removed by the next backup.
        with suppress(OSError):
            _sweep(target, manifest)
    return manifest, copy.copied_bytes


def _copy(copy: Copy, clock: Clock, kept_back: Callable[[str], None], *, with_tokens: bool) -> Manifest:
    source, known, sequence = copy.source, copy.known, copy.source.end.next_sequence - 1
    if known is not None and known.sequence and known.store_id != source.store_id:
        raise BackupRefused("the backup there is of another store: choose another directory", part=MANIFEST)
    if known is not None and (known.sequence > sequence or known.generation > source.generation):
        raise BackupRefused("the backup there is newer than this store: choose another directory", part=MANIFEST)
    for at, damage in check.scrub(source.log, generation=source.generation, end=source.end.offset):
        refuse_if_stopped(copy.is_stopped)
        if damage is not None:
            sentence = f"{log.NAME}, byte {at.offset}: {damage}; the backup is as it was"
            raise LogCorrupt(sentence, file=log.NAME, offset=at.offset, sequence=at.next_sequence)
    copy.tell(0, source.end.offset, "hashing what is live")
    state, _ = state_hash(source.connection, source.domains, copy.is_stopped)
    found = [kind.copy(copy) for kind in KINDS if with_tokens or not kind.is_secret]
    found += copy.tables(kept_back)
    copy.target.sync_directory()
    return Manifest(
        created_at=iso(clock.now_ms()),
        convmem=__version__,
        store_id=source.store_id,
        generation=source.generation,
        sequence=sequence,
        log_bytes=source.end.offset,
        state_hash=state,
        parts=tuple(part for part in found if part is not None),
    )


def _give_up(copy: Copy) -> None:
    """Free the space of what is not in the manifest, as far as the disk lets us; the next backup needs none of it."""
    with suppress(OSError):
        _sweep(copy.target, copy.known)
        part = copy.known.part(log.NAME) if copy.known is not None else None
        if part is not None and copy.target.size(part.file) > part.bytes:
            with closing(copy.target.open(part.file)) as file:
                file.truncate(part.bytes)


def _sweep(target: Files, manifest: Manifest | None) -> None:
    """Remove what this manifest does not name."""
    named = {part.file for part in manifest.parts} if manifest is not None else set()
    for name in target.names():
        if name not in named and OURS.fullmatch(name):
            target.remove(name)


@contextmanager
def refused_by_disk(state: str) -> Iterator[None]:
    """Turn what the disk refuses inside into DiskFault; `state` says what is there now."""
    try:
        yield
    except (OSError, apsw.FullError, apsw.IOError, apsw.CantOpenError) as error:
        reason = getattr(error, "strerror", None) or error
        path = getattr(error, "filename", None) or ""
        raise DiskFault(f"the disk refused it ({reason}); {state}", path=str(path)) from error
