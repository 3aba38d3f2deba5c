"""From a directory to a store: find the index that fits the log, let recovery decide, fold again what does not fit.

Order matters. The index is looked at first, because it is the witness of what may have been acknowledged; it is
thrown away only after recovery has accepted the log. Afterwards the store may still be behind its log: folding it is
the caller's next step, because it can take a while and must be able to say how far it is.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import apsw

from convmem.clock import Clock
from convmem.domain import Domain
from convmem.files import Files, boot_id
from convmem.store import recovery
from convmem.store.generation import sweep
from convmem.store.recovery import Report
from convmem.store.shelf import Shelf
from convmem.store.sqlite import DAMAGE, Index, State, read_state, shape
from convmem.store.store import Store


def open_store(files: Files, shelf: Shelf, domains: Sequence[Domain], clock: Clock) -> tuple[Store, Report]:
    """Open what is in the directory. Raises LogCorrupt or LogTooNew, and has changed nothing then.

    Returns the store, which may be behind its log, and what recovery did.
    """
    generation = recovery.generation_of(files)
    if generation is None:
        # A newer index than the log's own is of a generation that never took over.
        generation = min(shelf.generations(), default=1)
    state, index_found = _look(shelf, generation, shape(domains))
    if state is not None and not recovery.is_of_this_log(files, state.witness):
        state, index_found = None, "of another log, made anew"
    witness = state.witness if state is not None else None
    from_start = state is not None and state.damage_offset is not None
    log, report = recovery.recover(files, witness, from_start=from_start)
    sweep(files)
    for other in {*shelf.generations(), *shelf.searches()}:
        if state is None or other != log.generation:
            shelf.remove(other)
    fresh = None if log.generation in shelf.generations() else log.generation
    index = Index(shelf.open(log.generation), domains, fresh_generation=fresh)
    # On a full disk the mark must wait for the first write that fits; what is there can still be read.
    with suppress(apsw.FullError, apsw.IOError):
        index.mark(is_clean=False, damage_offset=None)
    if state is not None and fresh is not None:
        index_found = "of another generation, made anew"
    return Store(log, index, domains, clock), replace(report, index=index_found)


def _look(shelf: Shelf, generation: int, expected_shape: str) -> tuple[State | None, str]:
    """Return the state of an index that can be trusted, or None; and in words what was found."""
    if generation not in shelf.generations():
        return None, "missing, made anew"
    try:
        connection = shelf.open(generation)
    except (apsw.Error, *DAMAGE):
        return None, "damaged, made anew"
    try:
        state = read_state(connection, expected_shape)
        if state is None:
            return None, "of another version, made anew"
        # SIGKILL does not harm a WAL database; what the operating system had not written when it died might have.
        may_be_harmed = not state.is_clean and (state.boot != boot_id() or not state.boot)
        if may_be_harmed and connection.execute("PRAGMA quick_check(1)").fetchall() != [("ok",)]:
            return None, "damaged, made anew"
        return state, "kept"
    except (apsw.Error, *DAMAGE):
        return None, "damaged, made anew"
    finally:
        connection.close()
