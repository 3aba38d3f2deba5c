"""Faults put into store/ on purpose; each must be noticed by some test: python -m tests.crash.mutants

Run by hand before a release. Each mutant is one change to a copy of the tree, and the tests of the store run against
it; a mutant that survives is a promise that no test holds.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
TESTS = ("tests/unit/store", "tests/crash", "tests/property/test_store_machine.py", "tests/unit/test_engine.py")


# Ten times what they take without a fault.
TESTS_S = 150


class Mutant(NamedTuple):
    """What is broken, where, and how."""

    what: str
    file: str
    old: str
    new: str


MUTANTS = (
    Mutant(
        "COMMIT before the log is synced",
        "store.py",
        "        self._write(before, payload, len(entries))\n        self._show(before)\n",
        "        self._show(before)\n        self._write(before, payload, len(entries))\n",
    ),
    Mutant("no sync of the log", "log.py", "        self._file.sync()\n        if not", "        if not"),
    Mutant(
        "a refusal is not rolled back",
        "store.py",
        '            connection.execute("ROLLBACK TO command")\n',
        "",
    ),
    Mutant("a torn tail is not cut", "recovery.py", "            file.truncate(end.offset)\n            file.sync()\n", ""),
    Mutant("a cut tail is not synced", "recovery.py", "            file.truncate(end.offset)\n            file.sync()\n", "            file.truncate(end.offset)\n"),
    Mutant("the cut bytes are not kept", "recovery.py", "        side.write(at - offset, file.read(at, min(MIB, size - at)))\n", "        pass\n"),
    Mutant(
        "damage that the index had applied is cut",
        "recovery.py",
        "    witnessed = known is not None and end.next_sequence <= known.applied\n",
        "    witnessed = False\n",
    ),
    Mutant(
        "damage before a whole frame is cut",
        "recovery.py",
        "    later = fault is not Fault.NONE and reader.has_frame_after(end.offset)\n",
        "    later = False\n",
    ),
    Mutant("every fault refuses", "recovery.py", "witnessed=False): Decision.CUT", "witnessed=False): Decision.REFUSE"),
    Mutant("a payload's checksum is not looked at", "frame.py", " and crc32(payload) == header.payload_crc", ""),
    Mutant("a header's checksum is not looked at", "frame.py", " or crc32(data[:-4]) != header_crc", ""),
    Mutant(
        "a full disk leaves its bytes behind",
        "store.py",
        "            self._log.cut_back(before)\n            self._index.rollback()\n            raise self._full(error) from error\n        self._log.sync()",
        "            self._index.rollback()\n            raise self._full(error) from error\n        self._log.sync()",
    ),
    Mutant(
        "a failed COMMIT leaves its frame in the log",
        "store.py",
        "            self._log.cut_back(before)\n            self._log.sync()\n",
        "",
    ),
    Mutant(
        "a failed COMMIT takes its frame back, but not durably",
        "store.py",
        "            self._log.cut_back(before)\n            self._log.sync()\n",
        "            self._log.cut_back(before)\n",
    ),
    Mutant("a failed sync is tried again", "store.py", "            self._failed, self._last_error = error,", "            self._last_error ="),
    Mutant("a log without a name is durable", "log.py", "if not self._file.is_linked():", "if False:"),
    Mutant("the last id is forgotten", "store.py", "Identifiers(clock, index.state.last_id or None)", "Identifiers(clock, None)"),
    Mutant(
        "replay forgets the last id",
        "store.py",
        "                last_id = max(last_id, self._apply(events, place))\n",
        "                self._apply(events, place)\n",
    ),
    Mutant("the sequence starts anew after a start", "recovery.py", "        end = found.end\n", "        end = Position(found.end.offset, 1)\n"),
    Mutant("an index of another shape is kept", "sqlite.py", "found is None or found[0] != expected_shape", "found is None"),
    Mutant("a damaged index is kept after a crash of the machine", "opening.py", "if may_be_harmed and", "if False and"),
    Mutant("marked damage is not looked at", "opening.py", "state is not None and state.damage_offset is not None", "False"),
    Mutant("waiting commands are dropped at a stop", "writer.py", "        self._is_stopping = True\n        self._wake.set()\n", "        self._is_stopping = True\n        self._mailbox.clear()\n        self._wake.set()\n"),
    Mutant("a batch has no bound", "writer.py", "and len(batch) < BATCH_COMMANDS_MAX", ""),
    Mutant("a mailbox has no bound", "writer.py", "len(self._mailbox) >= MAILBOX_COMMANDS_MAX or", ""),
    Mutant("a reader sees two states", "readers.py", 'connection.execute("BEGIN")', "pass"),
)  # fmt: skip


def is_killed(mutant: Mutant) -> bool:
    """True if some test fails on a copy of the tree with this change."""
    with tempfile.TemporaryDirectory() as scratch:
        tree = Path(scratch) / "tree"
        shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".*", "__pycache__"))
        path = tree / "convmem" / "store" / mutant.file
        text = path.read_text()
        assert text.count(mutant.old) >= 1, f"{mutant.what}: the code has changed, the mutant has not"
        path.write_text(text.replace(mutant.old, mutant.new))
        try:
            done = subprocess.run(
                [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *TESTS],
                cwd=tree,
                capture_output=True,
                text=True,
                timeout=TESTS_S,
            )
        except subprocess.TimeoutExpired:
            print(f"killed    {mutant.what}  (a test waits for ever)", flush=True)
            return True
        assert done.returncode in (0, 1, 2), done.stdout + done.stderr
        killer = next((line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))), "")
        print(f"{'killed' if done.returncode else 'SURVIVED'}  {mutant.what}  {killer[:110]}", flush=True)
        return done.returncode != 0


def main() -> int:
    chosen = [mutant for mutant in MUTANTS if not sys.argv[1:] or any(word in mutant.what for word in sys.argv[1:])]
    survivors = [mutant.what for mutant in chosen if not is_killed(mutant)]
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} killed")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
