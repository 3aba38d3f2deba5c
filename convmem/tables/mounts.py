"""Which tables there are: what was found in the roots, mounted under its name until a reload finds something else.

The idea: a mount is a value that a call holds as long as it needs it, and that can be retired. Whoever changes a schema
retires the mount inside the transaction of the change; a command that still bears it is refused then, and its tool
comes again with the mount of the new schema. So no row is ever checked against a schema that is no longer true.

A root belongs to one process (a kernel lock on its `.lock`), else two daemons would answer for the same rows. A root or
a table that cannot be used is listed with the reason and stops nothing else.

What was mounted must still stand where it stood whenever it is asked for (standing.py): else it is one that cannot be
used until it does again, or a reload.

Rejected: to look for tables on every call (a hundred stats a call), and to watch the disk (a half-written schema would
be read while its owner still types).
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from convmem import files, folders
from convmem.domain import Access
from convmem.errors import Busy, Stopping, StoreFailed, TableNotFound, TableRequired
from convmem.limits import BUSY_RETRY_MS, OPENING_WAIT_MS_MAX, TABLES_SHOWN_MAX
from convmem.tables import foreign_aliases, kept, scanning, unusable
from convmem.tables.names import folded
from convmem.tables.places import LOCK_FILE, Places, Root, Scope
from convmem.tables.scanning import Found, Mount
from convmem.tables.unusable import Broken


class Reloaded(NamedTuple):
    """What a reload has come to: names, sorted; those that are broken with the reason."""

    mounted: list[str]
    added: list[str]
    removed: list[str]
    broken: list[Broken]

    def facts(self) -> dict[str, Any]:
        """The same for programs."""
        lists: dict[str, list[Any]] = {
            "mounted": self.mounted,
            "added": self.added,
            "removed": self.removed,
            "broken": [broken.facts() for broken in self.broken],
        }
        is_cut = any(len(names) > TABLES_SHOWN_MAX for names in lists.values())
        shown = {name: names[:TABLES_SHOWN_MAX] for name, names in lists.items()}
        return {**shown, **({"truncated": True} if is_cut else {})}


@dataclass
class Mounts:
    """The tables of one daemon. Used on the event loop's thread."""

    places: Places
    roots: list[Root] = field(default_factory=list)
    # Held while schemas change or the roots are looked through.
    changing: asyncio.Lock = field(default_factory=asyncio.Lock)
    # Held while snapshots are taken: two of one moment would want the same name.
    copying: asyncio.Lock = field(default_factory=asyncio.Lock)
    _locks: list[files.HeldLock] = field(default_factory=list)
    _closed_roots: list[Broken] = field(default_factory=list)
    _by_name: Mapping[str, Mount] = field(default_factory=dict)
    _broken: list[Broken] = field(default_factory=list)
    _opening: asyncio.Lock = field(default_factory=asyncio.Lock)
    _is_open: asyncio.Event = field(default_factory=asyncio.Event)

    async def open(self, access: Access) -> None:
        """Lock the roots and mount what is there, once; whoever comes meanwhile waits. The store takes commands."""
        async with self._opening:
            if not self._is_open.is_set():
                await asyncio.to_thread(self._lock_roots)
                # A store that ends meanwhile has no use for tables.
                with suppress(Stopping, StoreFailed):
                    await self.reload(access)
                    self._is_open.set()

    def _lock_roots(self) -> None:
        wanted: list[tuple[Scope, Any]] = [("user", self.places.user)]
        if self.places.project is not None:
            wanted.insert(0, ("project", self.places.project))
        seen = set()
        self._closed_roots.clear()
        for scope, path in wanted:
            root = Root(scope, folders.real(path))
            if root.path in seen:
                continue
            seen.add(root.path)
            try:
                folders.make(root.path)
                held = files.lock(root.path / LOCK_FILE)
            except OSError as error:
                self._closed_roots.append(Broken(None, scope, f"the directory cannot be used: {error.strerror}"))
                continue
            if held is None:
                self._closed_roots.append(Broken(None, scope, "another process holds this directory of tables"))
                continue
            self._locks.append(held)
            self.roots.append(root)

    def close(self) -> None:
        """Let go of the roots."""
        for held in self._locks:
            held.close()
        self._locks.clear()

    async def reload(self, access: Access) -> Reloaded:
        """Look through the roots and mount what is there now, all at once."""
        async with self.changing:
            found = await scanning.scan(access, self.places, self.roots)
            for root in self.roots:
                await foreign_aliases.take_over(access, root, list(found.mounts.values()))
            before = self._by_name
            reloaded = self._taken(found)
            for name in reloaded.removed:
                await access.release_file(before[name].file.path)
            return reloaded

    def _taken(self, found: Found) -> Reloaded:
        before, after = set(self._by_name), set(found.mounts)
        for mount in self._by_name.values():
            mount.is_retired = True
        self._by_name = found.mounts
        self._broken = [*self._closed_roots, *found.broken]
        return Reloaded(sorted(after), sorted(after - before), sorted(before - after), self._broken)

    async def refresh(self, access: Access, table: str) -> None:
        """Mount what bears this name now, in the place of what did; by whoever holds `changing`."""
        default = next((mount for mount in self._by_name.values() if mount.is_default), None)
        if default is not None and default.table == table:
            found = await scanning.scan(access, self.places, self.roots)
            self._taken(found)
            return
        mount, broken = await scanning.one(access, self.places, self.roots, table)
        if table in self._by_name:
            self._by_name[table].is_retired = True
        others = {name: other for name, other in self._by_name.items() if name != table}
        self._by_name = others if mount is None else {**others, table: mount}
        self._broken = [*(one for one in self._broken if one.table != table), *broken]

    async def ready(self) -> None:
        """Return once the tables are mounted, and nobody changes a schema; Busy if that takes long."""
        try:
            async with asyncio.timeout(OPENING_WAIT_MS_MAX / 1000):
                await self._is_open.wait()
        except TimeoutError:
            raise Busy("the tables are being mounted", retry_after_ms=BUSY_RETRY_MS) from None

    async def mounted(self, table: str | None) -> Mount:
        """The mount of a table, of the default one for None. TableRequired, TableNotFound, Busy."""
        await self.ready()
        mount = self.table(table)
        if mount.is_retired:
            async with self.changing:
                mount = self.table(table)
        return mount

    def table(self, table: str | None) -> Mount:
        """The same, as it is known now."""
        if table is None:
            if self.places.single is None:
                raise TableRequired("say which table is meant", field="table")
            default = next((mount for mount in self._by_name.values() if mount.is_default), None)
            if default is None:
                raise self.not_found(None)
            return self._standing(default)
        if table not in self._by_name:
            raise self.not_found(table)
        return self._standing(self._by_name[table])

    def _standing(self, mount: Mount) -> Mount:
        if (broken := mount.fallen()) is not None:
            raise _unusable(mount.table, broken.reason)
        return mount

    def _all_broken(self) -> list[Broken]:
        """What could not be mounted, and what no longer stands where it was mounted."""
        fallen = [broken for mount in self.mounts() if (broken := mount.fallen()) is not None]
        return [*(self._broken or self._closed_roots), *fallen]

    def taken_by(self, table: str) -> Mount | None:
        """The mount whose name cannot be told from this one where case does not count."""
        return next((mount for name, mount in self._by_name.items() if folded(name) == folded(table)), None)

    def root(self, scope: Scope) -> Root | None:
        """The root of a scope, None if there is none that can be used."""
        return next((root for root in self.roots if root.scope == scope), None)

    def names(self) -> list[str]:
        """The names of all tables, sorted."""
        return sorted(self._by_name)

    def mounts(self) -> list[Mount]:
        """All tables, by name, as they were mounted."""
        return [self._by_name[name] for name in self.names()]

    def facts(self) -> dict[str, Any]:
        """What health says of tables."""
        broken = self._all_broken()
        shown = [one.facts() for one in broken[:TABLES_SHOWN_MAX]]
        is_cut = {"truncated": True} if len(broken) > TABLES_SHOWN_MAX else {}
        mounted = sum(mount.fallen() is None for mount in self._by_name.values())
        return {"mounted": mounted, "broken": shown, **is_cut}

    def kept_files(self) -> list[tuple[str, Path]] | None:
        """The files of the user's tables, broken ones too: each by its path below the root, and where it is."""
        root = self.root("user")
        if root is None:
            return None
        here = {mount.table for mount in self._by_name.values() if mount.root == root and not mount.is_default}
        # One that cannot be used may have lost its file: what a backup has of it must stay there.
        lost = {
            one.table for one in self._broken if one.table is not None and one.scope == "user" and not one.is_default
        }
        return kept.files(root, self.places.single, here | lost)

    def reasons(self) -> list[str]:
        """Why tables are not simply well: roots and tables that cannot be used, a few of them by name."""
        return unusable.reasons(self._all_broken())

    def not_found(self, table: str | None) -> TableNotFound:
        """What whoever asks for a table is told if there is none that can be used."""
        shown = (table or "")[:64]
        for broken in self._broken:
            if broken.table == table and table is not None:
                return _unusable(shown, broken.reason)
        if table is None:
            reason = next((broken.reason for broken in self._broken if broken.is_default), "it is not there")
            return TableNotFound(f"the table cannot be used: {reason}", table="", reason=reason)
        return TableNotFound("there is no table of this name", table=shown)


def _unusable(table: str, reason: str) -> TableNotFound:
    return TableNotFound(f"the table {table} cannot be used: {reason}", table=table, reason=reason)


async def mounts_of(access: Access) -> Mounts:
    """The tables of the daemon that a tool runs in, once they are mounted. Busy if that takes long."""
    mounts: Mounts = await access.tables()
    await mounts.ready()
    return mounts
