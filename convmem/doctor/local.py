"""A data directory on this machine as a table of checks, made in order until one makes the next senseless."""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from shlex import quote

from convmem import config
from convmem.clock import Clock
from convmem.doctor import belongings, directory, holders, store_files
from convmem.doctor.findings import Finding
from convmem.doctor.here import Here
from convmem.doctor.local_findings import found
from convmem.errors import DataDirectoryUnusable, SettingInvalid

Check = Callable[[Here], Iterator[Finding]]
# Of the index before the log: it is the witness of what may have been acknowledged.
CHECKS: Mapping[str, Check] = {
    "runtime": belongings.runtime,
    "settings": belongings.settings,
    "bind": holders.bind,
    "directory": directory.directory,
    "disk": directory.disk,
    "lock": holders.lock,
    "socket": holders.local_socket,
    "daemon": holders.daemon,
    "port": holders.port,
    "index": store_files.index,
    "log": store_files.log_file,
    "clock": store_files.clock,
    "tables": belongings.tables,
    "tokens": belongings.tokens,
    "spool": belongings.spool,
}


def read(
    data_dir: str | None, environment: Mapping[str, str], working_directory: Path | None
) -> config.Settings | Finding:
    """The settings, or what keeps them from being meant."""
    try:
        return config.load({"data_dir": data_dir}, environment, working_directory)
    except SettingInvalid as error:
        return found("settings-invalid", error.message, f"correct {error.details['setting']}")
    except DataDirectoryUnusable as error:
        return found("directory-unusable", error.message, "export CONVMEM_DATA_DIR=DIRECTORY")


def examine(
    settings: config.Settings | Finding,
    environment: Mapping[str, str],
    clock: Clock,
    unknown: tuple[str, ...] = (),
) -> Iterator[Finding]:
    """Yield what is found, as it is found."""
    if isinstance(settings, Finding):
        yield settings
        return
    yield from examined(Here(settings, environment, clock, unknown))


def examined(here: Here) -> Iterator[Finding]:
    """The same of settings that can be meant."""
    for check in CHECKS.values():
        for finding in _made(check, here):
            yield finding
            if finding.kind.ends:
                return


def _made(check: Check, here: Here) -> Iterator[Finding]:
    """What one check finds, or what kept it from looking: a file of another user, or one that has just gone."""
    try:
        yield from check(here)
    except OSError as error:
        seen = f"{error.filename or here.data_dir}: {error.strerror}"
        yield found("look-refused", seen, f"chown -R {os.geteuid()} {quote(str(here.data_dir))}")
