"""Kill a process while a crowd writes tables and the log: what was answered is there, and no command is by half."""

import random
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path

import apsw
import pytest

from tests.support.notebook import notes
from tests.support.source import REPOSITORY
from tests.support.table_load import FILES, open_store, word_of
from tests.support.toy_table import torn, words

pytestmark = pytest.mark.slow
KILLS, DELAY_MS_MAX = 12, 400


@dataclass
class Known:
    """What the killed processes said before they died, by file and key."""

    put: set[tuple[str, str]] = field(default_factory=set)
    taking: set[tuple[str, str]] = field(default_factory=set)
    taken: set[tuple[str, str]] = field(default_factory=set)
    noted: set[str] = field(default_factory=set)

    def add(self, line: str) -> None:
        what, *rest = line.split()
        if what == "noted":
            self.noted.add(rest[0])
        else:
            {"put": self.put, "taking": self.taking, "taken": self.taken}[what].add((rest[0], rest[1]))


def run_and_kill(directory: Path, run: int, delay_ms: int, known: Known) -> int:
    """Let a process write until `delay_ms` after its first answer; return how many answers it gave."""
    command = [sys.executable, "-m", "tests.support.table_load", str(directory), str(run)]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        assert first, "it ended by itself"
        killer = threading.Timer(delay_ms / 1_000, process.kill)
        killer.start()
        # A line is written at once or not at all (PIPE_BUF), so even the last one is whole.
        lines = [first, *process.stdout]
        killer.join()
    assert process.returncode == -9
    for line in lines:
        known.add(line)
    return len(lines)


def complaints(directory: Path, known: Known) -> list[str]:
    found: list[str] = []
    for file in sorted({file for file, _ in known.put}):
        there = words(directory / file)
        found += [f"{file}: {what}" for what in torn(directory / file)]
        found += [f"{file}: {key} reads otherwise" for key, word in there.items() if word != word_of(key)]
        acknowledged = {key for name, key in known.put - known.taking if name == file}
        found += [f"{file}: {key} is lost" for key in acknowledged - set(there)]
        found += [f"{file}: {key} is back" for key in {key for name, key in known.taken if name == file} & set(there)]
    return found


def noted_in_the_log(directory: Path) -> set[str]:
    store = open_store(directory)
    store.close()
    (index,) = directory.glob("index-*.db")
    connection = apsw.Connection(str(index))
    try:
        return {note for _, note in notes(connection)}
    finally:
        connection.close()


def test_kill_9_under_load_loses_nothing_acknowledged_in_any_table(tmp_path: Path) -> None:
    dice, known = random.Random(2_025), Known()
    answers: list[int] = []
    in_the_midst = 0
    for run in range(KILLS):
        answers.append(run_and_kill(tmp_path, run, dice.randrange(DELAY_MS_MAX), known))
        in_the_midst += any(wal.stat().st_size for wal in tmp_path.glob("[0-9].db-wal"))
        assert complaints(tmp_path, known) == []
        assert known.noted <= noted_in_the_log(tmp_path)
    assert {file for file, _ in known.put} == {f"{number}.db" for number in range(FILES)}
    assert known.taken
    assert known.noted
    assert sum(answers) > 50 * KILLS, "too little load to say anything"
    assert in_the_midst > KILLS // 2, "the kills came when all was at rest"
