"""What belongs to a store without being of it: the program, tables, tokens of devices, and what hooks have captured."""

import os
import platform
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote

import apsw

from convmem import tokens as device_tokens
from convmem.doctor.findings import Finding
from convmem.doctor.here import Here, lock_holder
from convmem.doctor.local_findings import found
from convmem.hooks.capture import spool_of
from convmem.hooks.options import parse
from convmem.hooks.spool import Unavailable
from convmem.hooks.target import Misplaced, target_of

FOR_OTHERS = 0o077
TABLES_LOCK = ".lock"
FTS5 = "ENABLE_FTS5"


def runtime(here: Here) -> Iterator[Finding]:
    """The Python and the SQLite that run this."""
    seen = f"Python {platform.python_version()}, SQLite {apsw.sqlite_lib_version()}"
    if FTS5 in apsw.compile_options:
        yield found("runtime-ok", f"{seen} with FTS5")
    else:
        yield found("runtime-no-fts5", seen, "pip install --force-reinstall --only-binary :all: apsw")


def settings(here: Here) -> Iterator[Finding]:
    """Settings were read already; what only looks like one is named."""
    named = sorted(f"{name} ({source})" for name, source in here.settings.sources.items() if source != "default")
    if here.unknown:
        yield found("settings-unknown", ", ".join(here.unknown), f"unset {' '.join(here.unknown)}")
    else:
        yield found("settings-ok", ", ".join(named) or "all by default")


def tables(here: Here) -> Iterator[Finding]:
    """Whether the directories of tables can be used; what is in them, whoever holds the store tells."""
    told = here.settings.tables
    roots = {os.path.realpath(root): None for root in (told.project_dir, told.user_dir) if root is not None}
    there = [Path(root) for root in roots if os.path.lexists(root)]
    faults = list(_table_faults(here, there))
    yield from faults
    broken = here.health.get("tables", {}).get("broken", [])
    for one in broken:
        name, reason = one.get("table") or "a directory", str(one.get("reason", ""))[:256]
        yield found("tables-broken", f"{name}: {reason}", "convmem tables list")
    if not faults and not broken:
        if there:
            yield found("tables-ok", ", ".join(map(str, there)))
        else:
            yield found("tables-none", ", ".join(roots))


def _table_faults(here: Here, roots: list[Path]) -> Iterator[Finding]:
    uid = os.geteuid()
    for root in roots:
        shown = quote(str(root))
        if not root.is_dir() or not os.access(root, os.R_OK | os.W_OK | os.X_OK):
            yield found("tables-unusable", f"{root}, by uid {uid}", f"chown -R {uid} {shown}")
            continue
        pid = lock_holder(root / TABLES_LOCK)
        if pid is not None and pid not in (here.pid, here.holder.pid):
            yield found("tables-held", f"{root}, by pid {pid}", "export CONVMEM_USER_DIR=DIRECTORY")


def tokens(here: Here) -> Iterator[Finding]:
    """Whether the file of device tokens can be read, by us and by nobody else."""
    path = here.data_dir / device_tokens.FILE
    shown = quote(str(path))
    if not os.path.lexists(path):
        yield found("tokens-none", "none")
        return
    try:
        known = device_tokens.read(here.data_dir)
        mode = path.stat().st_mode
    except (OSError, ValueError) as error:
        change = f"mv {shown} {shown}.damaged && convmem token create NAME"
        yield found("tokens-damaged", f"{path}: {getattr(error, 'strerror', None) or error}", change)
        return
    if mode & FOR_OTHERS:
        yield found("tokens-open", f"{path}, mode {mode & 0o7777:04o}", f"chmod 600 {shown}")
    if not known:
        yield found("tokens-revoked", f"{path} holds none", f"rm {shown}")
    elif not mode & FOR_OTHERS:
        yield found("tokens-ok", f"{len(known)} of devices: {', '.join(one.name for one in known[:10])}")


def spool(here: Here) -> Iterator[Finding]:
    """What hooks of this user have captured for this store and could not deliver."""
    try:
        target = target_of(parse([f"--data-dir={here.data_dir}"]), here.environment, "/")
        waiting = spool_of(target, here.environment, here.clock)
        facts = None if waiting is None else waiting.glance()
    except (Misplaced, Unavailable) as fault:
        yield found("spool-unusable", str(fault), "export XDG_STATE_HOME=DIRECTORY")
        return
    if facts is None:
        yield found("spool-unusable", "there is no home directory", "export XDG_STATE_HOME=DIRECTORY")
        return
    if facts["dropped"]:
        seen = f"{facts['dropped']} dropped{_since(facts['dropped_since'])}"
        yield found("spool-dropped", seen, "convmem serve  # events wait a month at most, and in 16 MiB")
    if facts["depth"]:
        change = f"convmem capture --drain --data-dir {quote(str(here.data_dir))}"
        yield found("spool-waiting", f"{facts['depth']} waiting{_since(facts['oldest_at'])}", change)
    elif not facts["dropped"]:
        yield found("spool-empty", "none waits")


def _since(at_ms: int | None) -> str:
    try:
        return "" if at_ms is None else f" since {datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%d %H:%M}Z"
    except (ValueError, OverflowError, OSError):
        return ""
