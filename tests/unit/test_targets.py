"""targets.py: which store a command belongs to."""

from dataclasses import dataclass
from pathlib import Path

from convmem.targets import TableFile, target_of
from tests.support.notebook import Add
from tests.support.toy_table import Put, shelf


@dataclass
class Aimed:
    """A command of the log with an argument that happens to have the name."""

    target: str


def test_a_command_says_its_table_file_and_any_other_belongs_to_the_log():
    assert target_of(Put(shelf(Path("a.db")), "key")) == shelf(Path("a.db"))
    assert target_of(Add(("a note",))) is None
    assert target_of(Aimed("a.db")) is None


def test_two_targets_of_one_path_are_one_store():
    assert shelf(Path("a.db")) == TableFile(Path("a.db"), lambda connection: None)
    assert len({shelf(Path("a.db")), TableFile(Path("a.db"), lambda connection: None), shelf(Path("b.db"))}) == 2
