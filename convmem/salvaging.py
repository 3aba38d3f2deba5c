"""Salvage as a verb: two directories, what was saved, and whether the fresh store is sound.

It works on files alone, beside a daemon or without one: the damaged store is not locked, since nothing in it is
changed.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from convmem import checking, files, holding
from convmem.clock import SystemClock
from convmem.config import Settings
from convmem.daemon import domains
from convmem.errors import SettingInvalid, StoreLocked
from convmem.limits import SALVAGE_LISTED_MAX
from convmem.store import log
from convmem.store.rescue import Salvaged
from convmem.store.salvage import salvage as save
from convmem.store.shelf import FileShelf, index_name

# What a salvage that was cut off leaves behind: it may be begun again there.
LEFT = re.compile(r"store\.lock|staging-(?:[0-9]+\.log|(?:scratch|copy|settled|index)\.db.*)|\.probe-[0-9]+")
Tell = Callable[[float, float, str], None]


def salvage(settings: Settings, to: Path, tell: Tell) -> Mapping[str, Any]:
    """Save what can be read of the store into a directory that is empty or not there: `facts` of what was found.

    Raises SettingInvalid for another directory, LogTooNew, and DataDirectoryUnusable where a disk refuses.
    """
    source, target = files.RealFiles(settings.data_dir), files.RealFiles(to)
    with holding.usable(settings.data_dir):
        _need_readable(source)
    with holding.usable(to):
        _refuse_other_places(source, target)
        target.prepare()
        lock = files.lock(target.path(holding.LOCK))
        if lock is None:
            raise StoreLocked(f"{to} is held by another process", holder="")
        try:
            found = save(source, target, domains(), SystemClock(), tell)
            violations = checking.walk(target, domains(), SystemClock(), tell)["violations"]
        finally:
            lock.close()
    return facts(found, violations)


def _refuse_other_places(source: files.RealFiles, target: files.RealFiles) -> None:
    """The fresh store needs a directory of its own, outside the damaged one."""
    here, there = source.root.resolve(), target.root.resolve()
    if there == here or here in there.parents:
        raise SettingInvalid(
            f"{target.root} is in the store that is to be salvaged: nothing there is changed", setting="--to"
        )
    if target.exists("") and not all(LEFT.fullmatch(name) for name in target.names()):
        raise SettingInvalid(f"{target.root} is not empty", setting="--to")


def _need_readable(source: files.RealFiles) -> None:
    """Raise OSError if a file of the damaged store may not be read: before anything is made for the fresh one."""
    wanted = [log.NAME]
    for generation in FileShelf(source).generations():
        wanted += [index_name(generation), f"{index_name(generation)}-wal"]
    for name in source.names():
        if name in wanted:
            source.open_to_read(name).close()


def facts(found: Salvaged, violations: list[str]) -> Mapping[str, Any]:
    """What was found, for programs; of long lists the beginning and how many there are."""
    gaps = [(gap, False) for gap in found.gaps] + [(gap, True) for gap in found.in_index]
    lists: dict[str, list[dict[str, Any]]] = {
        "gaps": [{**gap._asdict(), "in_index": in_index} for gap, in_index in sorted(gaps)],
        "missing": [
            {"first": str(first), "last": None if last is None else str(last)} for first, last in found.missing
        ],
        "left_out": [{"sequence": str(sequence), "reason": reason} for sequence, reason in found.left_out],
        "disagreements": [{"sequence": str(sequence)} for sequence in found.disagreements],
    }
    return {
        "is_whole": found.is_whole,
        "records": found.records,
        "sequence": str(found.sequence),
        "generation": None if found.generation is None else str(found.generation),
        "has_log": found.has_log,
        "used_index": found.used_index,
        "frames": found.frames,
        "torn": None if found.torn is None else found.torn._asdict(),
        "bytes_skipped": sum(gap.size for gap in found.gaps),
        **{f"{name}_count": len(rows) for name, rows in lists.items()},
        **{name: rows[:SALVAGE_LISTED_MAX] for name, rows in lists.items()},
        "violations": violations,
    }
