"""Faults put into store/ on purpose; each must be noticed by some test: python -m tests.crash.mutants [WORD …]

With words only the mutants are run whose name holds one of them. Run by hand before a release. Each mutant is one change to a copy of the tree, and the tests of the store run against
it; a mutant that survives is a promise that no test holds.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
TESTS = (
    *("tests/unit/store", "tests/crash", "tests/property/test_store_machine.py", "tests/unit/test_engine.py"),
    *("tests/unit/test_maintenance.py", "tests/unit/test_scrub.py", "--ignore=tests/crash/test_kill_compaction.py"),
)
TESTS_OF_SEARCH = (
    *("tests/unit/messages", "tests/unit/test_indexer.py", "tests/unit/test_reading.py", "tests/unit/store"),
    *("tests/unit/test_engine.py", "tests/property/test_exact_search.py"),
)
# Several times what they take without a fault.
TESTS_S = 400


class Mutant(NamedTuple):
    """What is broken, in which file of the store (or above it), and how."""

    what: str
    file: str
    old: str
    new: str

    @property
    def tests(self) -> tuple[str, ...]:
        """Which tests must notice it."""
        return TESTS_OF_SEARCH if self.what.startswith("search:") else TESTS


MUTANTS = (
    Mutant(
        "COMMIT before the log is synced",
        "store.py",
        "        self._write(before, frame, len(entries))\n        self._show(before)\n",
        "        self._show(before)\n        self._write(before, frame, len(entries))\n",
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
        "    witnessed = is_inside_state or (known is not None and known.has_seen(end.offset))\n",
        "    witnessed = is_inside_state\n",
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
    Mutant("the last id is forgotten", "store.py", "Identifiers(clock, index.state.made.last_id or None)", "Identifiers(clock, None)"),
    Mutant(
        "replay forgets the last id",
        "store.py",
        "                made = made.raised(self._apply(events, place))\n",
        "                self._apply(events, place)\n",
    ),
    Mutant("the sequence starts anew after a start", "recovery.py", "        end, before = found.end, found.header\n", "        end, before = Position(found.end.offset, 1), found.header\n"),
    Mutant("an index of another shape is kept", "sqlite.py", "found is None or found[0] != expected_shape", "found is None"),
    Mutant("a damaged index is kept after a crash of the machine", "opening.py", "if may_be_harmed and", "if False and"),
    Mutant("marked damage is not looked at", "opening.py", "state is not None and state.damage_offset is not None", "False"),
    Mutant("waiting commands are dropped at a stop", "writer.py", "        self._is_stopping = True\n        self._wake.set()\n", "        self._is_stopping = True\n        self._mailbox.clear()\n        self._wake.set()\n"),
    Mutant("a batch has no bound", "writer.py", "and len(batch) < BATCH_COMMANDS_MAX", ""),
    Mutant("a mailbox has no bound", "writer.py", "len(self._mailbox) >= MAILBOX_COMMANDS_MAX or", ""),
    Mutant("a reader sees two states", "readers.py", 'connection.execute("BEGIN")', "pass"),
    Mutant("compaction: a generation takes its name before it is synced", "generation.py", "            self.log.sync()\n", ""),
    Mutant("compaction: the directory is not synced", "generation.py", "        self._files.sync_directory()\n", "        pass\n"),
    Mutant("compaction: a directory that cannot be synced is passed over", "compaction.py", '            raise StoreFailed("the directory could not be synced while a new generation took over") from error\n', "            pass\n"),
    Mutant("compaction: the state has no end", "compaction.py", "        self._draft.end_state(last, made, state.store_id)\n", ""),
    Mutant("compaction: the state speaks for its last record only", "compaction.py", "        last, made, maker = through, ", "        last, made, maker = 0, "),
    Mutant("compaction: the last id is forgotten", "compaction.py", "end_state(last, made, ", 'end_state(last, made._replace(last_id=""), '),
    Mutant("compaction: the last number is forgotten", "compaction.py", "end_state(last, made, ", "end_state(last, made._replace(last_number=0), "),
    Mutant("a number is given twice", "store.py", "made.last_number + 1)", "1)"),
    Mutant("compaction: the last id is not read back", "store.py", "made, store_id = made.raised(through.made), through.store_id", "store_id = through.store_id"),
    Mutant(
        "compaction: the last id of a state without records is not read back",
        "store.py",
        "        self._identifiers = Identifiers(self._clock, self._index.state.made.last_id or None)\n        return folded\n",
        "        if folded:\n            self._identifiers = Identifiers(self._clock, self._index.state.made.last_id or None)\n        return folded\n",
    ),
    Mutant("compaction: records of a state are numbered anew", "codec.py", "Place(sequence, at_ms, origins[index]), [event])", "Place(frame.header.sequence, at_ms, origins[index]), [event])"),
    Mutant("compaction: batches written meanwhile are not copied", "compaction.py", "            self._copy(store.log.end)\n", ""),
    Mutant("compaction: the old index is removed before the new log has its name", "compaction.py", "            self._draft.name()\n", "            self._parts.shelf.remove(store.log.generation)\n            self._draft.name()\n"),
    Mutant("compaction: the old log is removed before the new one takes its name", "generation.py", "        self._files.rename(self._name, log.NAME)\n", "        self._files.remove(log.NAME)\n        self._files.rename(self._name, log.NAME)\n"),
    Mutant("compaction: the old index stays", "compaction.py", "                    self._parts.shelf.remove(generation)\n", "                    pass\n"),
    Mutant("compaction: cut tails stay", "compaction.py", "            remove_cut_tails(self._parts.files)\n", ""),
    Mutant("compaction: staging files are not swept", "opening.py", "    sweep(files)\n", ""),
    Mutant("compaction: what failed is left lying", "compaction.py", "            if not is_done:\n                self.discard()\n", "            pass\n"),
    Mutant("compaction: a discarded index is left lying", "generation.py", "            self._shelf.remove(self.log.generation)\n", "            pass\n"),
    Mutant("compaction: a full disk is a broken one", "compaction.py", "            if isinstance(error, apsw.FullError) or getattr(error, \"errno\", None) in NO_SPACE:\n", "            if False:\n"),
    Mutant("compaction: a stop is not asked about while records are written", "compaction.py", "            self._refuse_if_stopped()\n", ""),
    Mutant("compaction: dangling references are kept", "../messages/kept.py", "if queries.is_live(connection, relation.message_id)", ""),
    Mutant("identity: an index of another log is believed", "recovery.py", "isinstance(found, Fault) or found.checksum == witness.tail_checksum", "True"),
    Mutant("identity: a backup of another store is replaced", "backup.py", "known.store_id != source.store_id", "False"),
    Mutant("identity: a compaction makes another store", "compaction.py", "made, state.store_id)", 'made, "")'),
    Mutant("identity: broken tables are believed", "sqlite.py", "fetchone() != (_schema(connection),)", "fetchone() is None"),
    Mutant("compaction: receipts are forgotten", "../messages/kept.py", "    receipts = _receipts(connection)\n", "    receipts = iter(())\n"),
    Mutant("compaction: revisions begin anew", "../messages/kept.py", "            revision=revision,\n", ""),
    Mutant("compaction: two may be made at a time", "../maintenance.py", "    if engine.renewal.locked():\n", "    if False:\n"),
    Mutant("compaction: readers stay with the old generation", "../engine.py", "        self.reading.renew(generation, has_search=generation in self._shelf.searches())\n", "        pass\n"),
    Mutant("compaction: readers keep old connections", "readers.py", "        self._connect = connect\n        self._close_stale()\n", "        self._connect = connect\n"),
    Mutant("compaction: a reader keeps an index that was opened too late", "readers.py", "            if known is self._connect:\n", "            if known is connect:\n"),
    Mutant("compaction: a state may be torn", "recovery.py", "            return end, found, is_state or (before is not None and before.is_inside_state)\n", "            return end, found, False\n"),
    Mutant("compaction: the first frame of a state may be torn", "recovery.py", "is_state or (before is not None", "(before is not None"),
    Mutant("compaction: a state need not end", "log.py", "found is Fault.NONE and before is not None and before.is_inside_state", "False"),
    Mutant("compaction: a batch may follow an unfinished state", "frame.py", "        return header.kind == STATE and header.sequence >= before.sequence\n", "        return header.sequence >= before.sequence\n"),
    Mutant("compaction: the scrub does not begin anew", "../scrub.py", "        self._again.set()\n", ""),
    Mutant("search: what the tables do not know yet is left out", "../messages/search.py", "    way.take(seen.exact)\n    way.seen, way.is_complete = seen, seen.is_done\n    if lag:", "    way.seen, way.is_complete = seen, seen.is_done\n    if lag:"),
    Mutant("search: the watermark runs ahead", "../messages/search_tables.py", "            (through, *counted),\n", "            (through + 1, *counted),\n"),
    Mutant("search: stale rows of the tables are believed", "../messages/exact.py", "CASE WHEN m.changed_sequence <= :watermark AND ", "CASE WHEN "),
    Mutant("search: what is changed keeps its old words", "../messages/search_tables.py", "is_new=sequence > watermark", "is_new=True"),
    Mutant("search: what is deleted stays in the tables", "../messages/search_tables.py", "gone_sequence > ?1 AND gone_sequence <= ?2", "0"),
    Mutant("search: what changed at once is cut in two", "../messages/search_tables.py", " AND changed_sequence <= ?2 UNION ALL", " AND changed_sequence < ?2 UNION ALL"),
    Mutant("search: letters that folding joins cannot be found alone", "../messages/grams.py", "        yield other\n", "        pass\n"),
    Mutant("search: the last letters begin no gram", "../messages/grams.py", "map(marked, folded)) + MARKS", "map(marked, folded))"),
    Mutant("search: filters are not verified", "../messages/exact.py", " AND {selected.conditions}", ""),
    Mutant("search: tables of another version are trusted", "search_index.py", "        return OTHER_VERSION\n", "        pass\n"),
    Mutant("search: tables ahead of the index are trusted", "search_index.py", '        return "ahead of the index"\n', "        pass\n"),
    Mutant("search: tables are trusted after the machine went down", "search_index.py", "    may_be_harmed = ", "    may_be_harmed = False and "),
    Mutant("search: damaged tables are not made anew", "../indexer.py", "        self._doubted = (generation, why)\n        self._wake()\n", "        pass\n"),
    Mutant("search: an offer for the old generation beats the new one", "../reading.py", "            if self._sight.generation == generation:\n", "            if True:\n"),
    Mutant("search: a compaction makes no tables", "../maintenance.py", "    build = engine.indexer.build if records is None else None\n", "    build = None\n"),
    Mutant("search: the writer does not go first", "../indexer.py", " and writer.has_work:\n", " and False:\n"),
    Mutant("search: tables of a removed index stay", "shelf.py", "        self.remove_search(generation)\n        for suffix", "        for suffix"),
    Mutant("search: neighbours do not count", "../messages/scoring.py", "NEIGHBOUR_WEIGHTS = (0.5, 0.3)", "NEIGHBOUR_WEIGHTS = (0.0, 0.0)"),
    Mutant("search: gone messages are answered", "../messages/search.py", "        if message is None or not (scores", "        if not (scores"),
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
                [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *mutant.tests],
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
