"""Snapshots: copies of tables while they are in use, kept in number, and put on another host if that is asked for.

Each table is copied by itself: one that cannot be copied is named and stops no other. What is too much is purged only
after the new copy is there. A copy that could not be sent stays here and is named.
"""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from convmem import folders
from convmem.domain import Access
from convmem.errors import CallerError, ConvmemError, Forbidden, SnapshotFault, Stopping, UploadFailed
from convmem.tables import backing_up, copies, upload
from convmem.tables.disk import refused_by_disk
from convmem.tables.mounts import Mounts
from convmem.tables.places import Root
from convmem.tables.schema_inputs import DataSnapshot
from convmem.tables.upload import Bucket


@dataclass(frozen=True)
class Wanted:
    """A file to copy: what its copies are called, and the root beside which they are kept."""

    name: str
    path: Path
    root: Root


@dataclass
class Taken:
    """What was done so far, for programs."""

    snapshotted: list[dict[str, Any]] = field(default_factory=list)
    purged: list[str] = field(default_factory=list)
    failed: list[dict[str, Any]] = field(default_factory=list)
    uploaded: list[str] = field(default_factory=list)
    upload_errors: list[dict[str, Any]] = field(default_factory=list)
    paths: list[Path] = field(default_factory=list)

    def facts(self, *, is_dry: bool) -> dict[str, Any]:
        """The same, without what only some answers have."""
        facts: dict[str, Any] = {
            "snapshotted": self.snapshotted,
            "purged": self.purged,
            "uploaded": self.uploaded,
            "upload_errors": self.upload_errors,
        }
        return facts | ({"failed": self.failed} if self.failed else {}) | ({"dry_run": True} if is_dry else {})


async def taken(access: Access, mounts: Mounts, ask: DataSnapshot) -> dict[str, Any]:
    """{snapshotted, purged, uploaded, upload_errors, failed?, dry_run?}. SnapshotFault if the one table that was asked
    for cannot be copied, UploadNotConfigured before anything is.
    """
    if ask.upload and access.reach != "admin":
        raise Forbidden("this token may take snapshots, but not send them away", needed="admin")
    into = upload.bucket(mounts.places.upload) if ask.upload else None
    done = Taken()
    async with mounts.copying:
        for one in await asyncio.to_thread(_wanted, mounts, ask):
            await _tried(access, mounts, one, done, ask)
    if into is not None and not ask.dry_run:
        for path in done.paths:
            await _sent(into, path, done)
    return done.facts(is_dry=ask.dry_run)


async def _tried(access: Access, mounts: Mounts, one: Wanted, done: Taken, ask: DataSnapshot) -> None:
    try:
        await _snapshot(access, mounts, one, done, is_dry=ask.dry_run)
    except Stopping:
        raise
    except ConvmemError as error:
        if ask.table is not None:
            raise _fault(one, error) from error
        done.failed.append({"table": one.name, "code": error.code, "message": error.message})


def _wanted(mounts: Mounts, ask: DataSnapshot) -> list[Wanted]:
    """The files that are asked for. Waits for the disk. TableNotFound."""
    if ask.table is not None:
        mount = mounts.table(ask.table)
        if ask.scope not in (None, mount.scope):
            raise mounts.not_found(ask.table)
        return [Wanted(mount.table, mount.file.path, mount.root)]
    found = [
        Wanted(mount.table, mount.file.path, mount.root)
        for mount in mounts.mounts()
        if ask.scope in (None, mount.scope)
    ]
    common = [
        Wanted(copies.GLOBAL, root.aliases, root)
        for root in mounts.roots
        if ask.scope in (None, root.scope) and folders.is_file(root.aliases)
    ]
    return found + common


async def _snapshot(access: Access, mounts: Mounts, one: Wanted, done: Taken, *, is_dry: bool) -> None:
    directory, keep = one.root.snapshots, mounts.places.snapshots_kept
    with refused_by_disk(directory.name):
        names, at_ms = await asyncio.to_thread(_begin, directory, one.name, access.now_ms(), is_dry)
    name = copies.name(one.name, at_ms, "db")
    size = folders.size(one.path) if is_dry else await access.copy_file(one.path, directory / name)
    done.snapshotted.append({"table": one.name, "scope": one.root.scope, "file": name, "bytes": size})
    surplus = copies.surplus([*names, name], one.name, keep)
    if not is_dry:
        done.paths.append(directory / name)
        with refused_by_disk(directory.name):
            await asyncio.to_thread(_purge, directory, surplus)
    done.purged += surplus


def _begin(directory: Path, name: str, now_ms: int, is_dry: bool) -> tuple[list[str], int]:
    """The names that are there, and a moment whose name is free."""
    backing_up.refuse_links(directory)
    if not is_dry:
        folders.make(directory)
    names = folders.names(directory)
    return names, copies.free_at(names, name, now_ms)


def _purge(directory: Path, names: list[str]) -> None:
    for name in names:
        folders.remove(directory / name)


async def _sent(into: Bucket, path: Path, done: Taken) -> None:
    try:
        await upload.put(into, path, path.name)
    except UploadFailed as error:
        done.upload_errors.append({"file": path.name, "code": error.code, "message": error.message})
    else:
        done.uploaded.append(path.name)


def _fault(one: Wanted, error: ConvmemError) -> ConvmemError:
    """What is told of one table: what time can mend stays as it is."""
    return SnapshotFault(error.message, table=one.name) if isinstance(error, CallerError) else error
