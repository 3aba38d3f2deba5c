"""A restore, and the proof that one would succeed.

    prove     every part has the hash that the manifest says, every frame is whole and in its place, a fresh fold of the
              log's copy keeps all invariants, and its live state has the hash that was taken from the store in use
    restore   the same with the copy that will be used; only then the files get their names, the log last

Rejected: trusting the hashes of the files alone. They say that the copy is what was written, not that a store comes out
of it.
"""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, suppress
from hashlib import sha256
from typing import NamedTuple

import apsw
import msgspec

from convmem.clock import Clock
from convmem.domain import Domain
from convmem.errors import BackupRefused, ConvmemError
from convmem.files import File, Files
from convmem.store import check, log
from convmem.store.backup import KINDS, refused_by_disk, state_hash
from convmem.store.compaction import Tell
from convmem.store.copying import BLOCK_BYTES, refuse_if_stopped
from convmem.store.generation import STAGING, sweep
from convmem.store.log import Log, Position
from convmem.store.manifest import MANIFEST, Manifest, Part, read
from convmem.store.sqlite import Index
from convmem.store.store import Store

NAMES = {kind.name for kind in KINDS}
# Files of the user's tables: a schema, rows, and what a scope has in common.
# Of the user's tables: aliases, and the two files of a table; `_single` is the one of single-table mode.
TABLE_PART = re.compile(r"tables/(?:_global\.db|([A-Za-z0-9][A-Za-z0-9_-]{0,63}|_single)/(?:schema\.yaml|\1\.db))")
PutTable = Callable[[str, Iterator[bytes]], None]


class Watch(NamedTuple):
    """Who hears how far the work is, and who says that it should end."""

    tell: Tell = lambda done, total, sentence: None
    is_stopped: Callable[[], bool] = lambda: False


class Proven(NamedTuple):
    """What was proven: a manifest, and how many records live in the state that it comes to."""

    manifest: Manifest
    live: int


NOBODY = Watch()


def prove(
    source: Files, scratch: apsw.Connection, domains: Sequence[Domain], clock: Clock, watch: Watch = NOBODY
) -> Proven:
    """Prove that a restore of this backup would come to the state it was made of. `scratch` is an empty database.

    BackupRefused names what differs. DiskFault, Stopping: nothing was found out. Nothing is changed.
    """
    with refused_by_disk("nothing was changed"):
        manifest = read_manifest(source)
        for part in manifest.parts:
            with closing(_open(source, part)) as file:
                _read(part, file, None, watch)
        part = manifest.parts[0]
        with closing(_open(source, part)) as file:
            return Proven(manifest, _replay(manifest, file, scratch, domains, clock, watch))


def restore(
    source: Files,
    target: Files,
    scratch: apsw.Connection,
    domains: Sequence[Domain],
    clock: Clock,
    *,
    beside: Collection[str],
    put_table: PutTable | None = None,
    watch: Watch = NOBODY,
) -> Proven:
    """Make a store of this backup in a data directory that holds nothing but `beside`; proven before it has its name.

    `put_table(name, pieces)` puts a file of the user's tables in its place, whole and on the disk.

    BackupRefused, DiskFault, Stopping: there is no store, and the same call may be made again.
    """
    with refused_by_disk("there is no store yet"):
        manifest = read_manifest(source)
        _refuse_used(target, manifest, beside)
        sweep(target)
        try:
            for part in _of_store(manifest):
                with closing(_open(source, part)) as file, closing(target.stage(STAGING + part.name)) as copy:
                    _read(part, file, copy, watch)
            for part in _of_tables(manifest):
                with closing(_open(source, part)) as file:
                    _read(part, file, None, watch)
            with closing(target.open_to_read(STAGING + log.NAME)) as file:
                proven = Proven(manifest, _replay(manifest, file, scratch, domains, clock, watch))
        except (OSError, apsw.Error, ConvmemError):
            with suppress(OSError):
                sweep(target)
            raise
        for part in _of_tables(manifest):
            assert put_table is not None, "a backup with tables, and nowhere to put them"
            with closing(_open(source, part)) as file:
                put_table(part.name, _pieces(part, file))
        # With its log a store is there: all else comes first.
        for part in reversed(_of_store(manifest)):
            target.rename(STAGING + part.name, part.name)
            target.sync_directory()
    return proven


def _of_store(manifest: Manifest) -> list[Part]:
    return [part for part in manifest.parts if part.name in NAMES]


def _of_tables(manifest: Manifest) -> list[Part]:
    return [part for part in manifest.parts if part.name not in NAMES]


def _pieces(part: Part, file: File) -> Iterator[bytes]:
    for offset in range(0, part.bytes, BLOCK_BYTES):
        yield file.read(offset, min(BLOCK_BYTES, part.bytes - offset))


def read_manifest(source: Files) -> Manifest:
    """The manifest of a backup. BackupRefused if there is none, or one that cannot be meant."""
    manifest = read(source, MANIFEST, Manifest)
    if manifest is None:
        raise BackupRefused("there is no backup in this directory", part=MANIFEST)
    names = [part.name for part in manifest.parts]
    is_plain = all("/" not in part.file and part.bytes >= 0 for part in manifest.parts)
    is_known = all(name in NAMES or TABLE_PART.fullmatch(name) for name in names)
    if names[:1] != [log.NAME] or len(set(map(str.lower, names))) < len(names) or not is_known or not is_plain:
        raise BackupRefused("the manifest names parts that no backup of this convmem has", part=MANIFEST)
    return manifest


def _refuse_used(target: Files, manifest: Manifest, beside: Collection[str]) -> None:
    """BackupRefused if the directory is in use; what an unfinished restore has left there is no use."""
    for name in target.names():
        part = manifest.part(name) if name != log.NAME else None
        if name in beside or name.startswith(STAGING) or (part is not None and _is(target, part)):
            continue
        raise BackupRefused(f"the data directory holds {name}: restore into an empty one", part=name)


def _is(target: Files, part: Part) -> bool:
    with closing(target.open_to_read(part.name)) as file:
        return file.size() == part.bytes and sha256(file.read(0, part.bytes)).hexdigest() == part.sha256


def _open(source: Files, part: Part) -> File:
    if not source.exists(part.file):
        raise BackupRefused(f"{part.file} is missing", part=part.file)
    return source.open_to_read(part.file)


def _read(part: Part, file: File, copy: File | None, watch: Watch) -> None:
    """Read a part, into `copy` if there is one. BackupRefused if it is not what was written."""
    digest = sha256()
    if file.size() < part.bytes:
        raise BackupRefused(f"{part.file} is shorter than it was", part=part.file)
    for offset in range(0, part.bytes, BLOCK_BYTES):
        refuse_if_stopped(watch.is_stopped)
        block = file.read(offset, min(BLOCK_BYTES, part.bytes - offset))
        digest.update(block)
        if copy is not None:
            copy.write(offset, block)
        watch.tell(offset + len(block), part.bytes, f"reading {part.file}")
    if copy is not None:
        copy.sync()
    if digest.hexdigest() != part.sha256:
        raise BackupRefused(f"{part.file} is not what was written", part=part.file)


def _replay(
    manifest: Manifest, file: File, scratch: apsw.Connection, domains: Sequence[Domain], clock: Clock, watch: Watch
) -> int:
    """Fold the log's copy and compare; how many records live."""
    part, end = manifest.parts[0], Position(0, 1)
    for end, damage in check.scrub(file, generation=manifest.generation, end=part.bytes):
        refuse_if_stopped(watch.is_stopped)
        if damage is not None:
            raise BackupRefused(f"{part.file}, byte {end.offset}: {damage}", part=part.file)
    if end.next_sequence - 1 != manifest.sequence:
        raise BackupRefused(f"{part.file} ends with another entry than the manifest says", part=part.file)
    index = Index(scratch, domains, fresh_generation=manifest.generation)
    store = Store(Log(file, generation=manifest.generation, end=end), index, domains, clock)
    try:
        store.fold_at_once(lambda done, total: watch.tell(done, total, "replaying the log"), watch.is_stopped)
    except msgspec.MsgspecError:
        raise BackupRefused(f"{part.file} was written by a newer convmem: use that one", part=part.file) from None
    violations = [sentence for domain in domains for sentence in domain.check(scratch)]
    if violations:
        raise BackupRefused(f"the state that {part.file} comes to breaks its rules: {violations[0]}", part=part.file)
    state, live = state_hash(scratch, domains, watch.is_stopped)
    if state != manifest.state_hash:
        raise BackupRefused(f"{part.file} comes to another state than the store had", part=part.file)
    return live
