"""What can be found of a data directory on this machine and whoever holds it, in the order of the checks."""

from convmem.doctor.findings import Finding, Kind, failure, ok, warning

KINDS: dict[str, Kind] = {
    "runtime-ok": ok("Python and SQLite are what they must be"),
    "runtime-no-fts5": failure("this SQLite has no full-text search"),
    "settings-ok": ok("all settings can be meant"),
    "settings-unknown": warning("a variable looks like a setting and is none: perhaps a guard that is not there"),
    "settings-invalid": failure(
        "a setting cannot be meant, or a token file cannot be read, is blank or begins with a byte order mark",
        ends=True,
        status=2,
    ),
    "directory-ok": ok("the data directory is there, for its owner alone, and can be used"),
    "directory-missing": warning("there is no data directory yet", ends=True),
    "directory-unusable": failure("this user cannot use the data directory", ends=True, status=15),
    "directory-open": warning("others of this machine may look into the data directory"),
    "directory-files": failure(
        "files in the data directory cannot be used by this user: often they were made as root", status=15
    ),
    "disk-ok": ok("there is space for the next compaction"),
    "disk-read-only": failure("the file system is mounted read-only", ends=True, status=15),
    "disk-network": warning("a network file system: locks and SQLite's shared memory are not to be relied on there"),
    "disk-passing": warning(
        "a file system that is gone after a restart: of memory, or the layer of a container without a volume"
    ),
    "disk-full": failure("the disk is full: writes are refused until there is space"),
    "disk-low": warning("there is no space for a compaction, which writes a second copy first"),
    "lock-free": ok("nobody holds the store"),
    "lock-left": ok("a killed process has left its name in the lock file; that blocks nobody"),
    "lock-held": ok("a convmem holds the store"),
    "lock-foreign": failure("a process that is no convmem holds the lock", status=10),
    "socket-ok": ok("whoever holds the store answers on its local socket"),
    "socket-none": ok("there is no local socket"),
    "socket-left": warning("a socket without a process behind it; the next start removes it"),
    "socket-missing": warning("the store is held, and its local socket is gone: verbs of this machine cannot reach it"),
    "socket-closed": warning("the store is held by another user, whose socket is not for this one"),
    "socket-silent": failure("whoever holds the store does not answer", status=10),
    "health-well": ok("the daemon says that it is well"),
    "health-unwell": warning("the daemon says what is wrong with it"),
    "health-over": failure("the daemon is stopping or has failed"),
    "log-none": ok("nothing was written yet"),
    "log-ok": ok("the log ends with a whole frame"),
    "log-in-use": ok("the log begins with a whole header; whoever holds it reads along in the background"),
    "log-torn": warning("an end that was never acknowledged, left by a crash; the next start sets it aside"),
    "log-damaged": failure(
        "the log is damaged where something acknowledged may have been, so a start is refused", status=11
    ),
    "log-missing": failure("the log is gone and its index is there, so a start is refused", status=11),
    "log-too-new": failure("a newer convmem has written here", status=12),
    "index-none": ok("there is no index, and nothing to make one of"),
    "index-ok": ok("the index is of this version and this log"),
    "index-in-use": ok("whoever holds the store uses it"),
    "index-missing": warning(
        "the next start makes the index anew from the log, which takes a while if the log is long"
    ),
    "index-unfit": warning("the index is damaged, of another version or of another log; the next start makes it anew"),
    "clock-in-order": ok("the clock is not behind the newest record"),
    "clock-behind": warning("the clock is behind the newest record: what is written now would seem older"),
    "tables-none": ok("there is no directory of tables yet"),
    "tables-ok": ok("the directories of tables can be used"),
    "tables-unusable": failure("a directory of tables cannot be used by this user"),
    "tables-held": warning("another process holds a directory of tables, so a daemon here would not show them"),
    "tables-broken": warning("a table cannot be shown"),
    "tokens-none": ok("there are no tokens of devices"),
    "tokens-ok": ok("the tokens of devices can be read"),
    "tokens-open": warning("others of this machine may read the file of tokens"),
    "tokens-revoked": warning("every token was revoked, so nobody comes in over TCP"),
    "tokens-damaged": failure("the file of tokens cannot be read, so nobody comes in over TCP"),
    "bind-ok": ok("only this machine reaches the address, or a token is asked for"),
    "bind-unsafe": failure("others reach the address, and no token keeps them out, so a start is refused", status=14),
    "port-free": ok("nobody listens at the address"),
    "port-any": ok("the daemon takes any free port"),
    "port-ours": ok("the daemon of this data directory listens at the address"),
    "port-elsewhere": warning("the daemon listens at another address than the settings say"),
    "port-other-store": failure("the daemon of another data directory listens at the address"),
    "port-taken": failure("another program listens at the address"),
    "port-unavailable": failure("this machine does not have the address"),
    "port-privileged": failure("only root may listen at so low a port"),
    "spool-unusable": warning("what hooks capture has nowhere to wait while no daemon answers"),
    "spool-empty": ok("no captured event waits"),
    "spool-waiting": warning("captured events wait for a daemon"),
    "look-refused": failure("a file may not be read by this user, or went away during the look", status=15),
    "spool-dropped": warning("captured events were dropped: there was no room, or they were too old"),
}


def found(name: str, seen: str, change: str = "") -> Finding:
    """A finding of the table above."""
    return Finding(name, KINDS[name], seen, change)
