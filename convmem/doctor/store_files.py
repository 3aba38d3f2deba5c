"""The log and its index as a start would judge them, without opening either for more than reading; and the clock.

Beside a daemon neither is walked: what stands at the end may just be written, and the daemon's own scrub reads all of
it.
"""

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from shlex import quote

from convmem.doctor.findings import Finding
from convmem.doctor.here import Here
from convmem.doctor.local_findings import found
from convmem.files import RealFiles
from convmem.limits import DOCTOR_CLOCK_MS_MAX
from convmem.store import beside, log, recovery
from convmem.store.frame import HEADER_SIZE, Fault, decode_header
from convmem.store.recovery import Decision
from convmem.store.shelf import FileShelf, index_name
from convmem.store.sqlite import State

ID_LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # Crockford's base 32, as in a ULID
TIME_LETTERS = 10


def index(here: Here) -> Iterator[Finding]:
    """Whether the index of this log can be used by this version."""
    directory = RealFiles(here.data_dir)
    if here.is_held:
        names = ", ".join(map(index_name, FileShelf(directory).generations())) or "in the making"
        yield found("index-in-use", names)
        return
    generations = FileShelf(directory).generations()
    generation = recovery.generation_of(directory) or min(generations, default=1)
    name, start = index_name(generation), f"convmem serve --data-dir {quote(str(here.data_dir))}"
    if generation not in generations:
        if directory.size(log.NAME) == 0:
            yield found("index-none", "none")
        else:
            yield found("index-missing", f"{name} is not there", start)
        return
    # Imported here: reading what an index must look like takes longer than all else.
    from convmem.daemon import domains

    here.state = beside.state_of(directory.path(name), domains())
    if here.state is None:
        yield found("index-unfit", f"{name} is damaged or of another version", start)
    elif not recovery.is_of_this_log(directory, here.state.witness):
        here.state = None
        yield found("index-unfit", f"{name} is of another log", start)
    else:
        behind = max(0, directory.size(log.NAME) - here.state.end.offset)
        yield found("index-ok", f"{name}" + (f", {behind:,} bytes of the log behind" if behind else ""))


def log_file(here: Here) -> Iterator[Finding]:
    """What a start would do about the log. The index was looked at before: it is the witness."""
    directory = RealFiles(here.data_dir)
    witness = here.state.witness if here.state is not None else None
    if not directory.exists(log.NAME):
        if here.is_held or (witness is not None and witness.has_seen(0)):
            change = f"convmem restore BACKUP --data-dir DIRECTORY  # or, to start anew, rm {_indexes(here)}"
            yield found("log-missing", f"{log.NAME} is not there", change)
        else:
            yield found("log-none", f"{log.NAME} is not there yet")
        return
    with closing(directory.open_to_read(log.NAME)) as file:
        size = file.size()
        first = decode_header(file.read(0, HEADER_SIZE))
        if here.is_held and not (size and isinstance(first, Fault)):
            generation = "" if isinstance(first, Fault) else f", generation {first.generation}"
            yield found("log-in-use", f"{size:,} bytes{generation}")
            return
        from_start = here.state is not None and here.state.damage_offset is not None
        judged = recovery.judge(file, witness, from_start=from_start)
    shown = quote(str(here.data_dir))
    entries = f"{judged.size:,} bytes, generation {judged.generation}, entries to {judged.end.next_sequence - 1}"
    match judged.decision:
        case Decision.KEEP:
            yield found("log-ok", entries)
        case Decision.CUT:
            cut = f"from byte {judged.end.offset:,} to {judged.size:,}: {judged.fault.value}"
            yield found("log-torn", cut, f"convmem serve --data-dir {shown}")
        case Decision.TOO_NEW:
            yield found("log-too-new", judged.error().message, "install the convmem that wrote it, or a newer one")
        case Decision.REFUSE:
            yield found("log-damaged", judged.error().message, f"convmem salvage --to DIRECTORY --data-dir {shown}")


def _indexes(here: Here) -> str:
    return f"{quote(str(here.data_dir))}/index-*"


def clock(here: Here) -> Iterator[Finding]:
    """Whether the newest record is of the past: by the time of the log's file, and by the last id that was made."""
    directory = RealFiles(here.data_dir)
    newest_ms = 0
    if directory.exists(log.NAME):
        newest_ms = directory.path(log.NAME).stat().st_mtime_ns // 1_000_000
    if here.state is not None:
        newest_ms = max(newest_ms, _made_at_ms(here.state))
    now_ms = here.clock.now_ms()
    if newest_ms - now_ms > DOCTOR_CLOCK_MS_MAX:
        seen = f"now is {_shown(now_ms)}, and the newest record is of {_shown(newest_ms)}"
        yield found("clock-behind", seen, "timedatectl set-ntp true")
    else:
        yield found("clock-in-order", f"now is {_shown(now_ms)}")


def _made_at_ms(state: State) -> int:
    """The time in the last id that the store made; 0 if it has made none."""
    value = 0
    for letter in state.made.last_id[:TIME_LETTERS]:
        value = value * len(ID_LETTERS) + max(0, ID_LETTERS.find(letter))
    return value


def _shown(at_ms: int) -> str:
    try:
        return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%d %H:%M:%SZ}"
    except (ValueError, OverflowError, OSError):
        return f"{at_ms} ms"
