"""Where a table stands: what was mounted and nothing else, with no link in between."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from convmem.tables import standing


def _directory_by_link(file: Path) -> None:
    os.rename(file.parent, file.parent.with_name("away"))
    file.parent.symlink_to("away")


def _directory_by_directory(file: Path) -> None:
    _directory_by_link(file)
    file.parent.unlink()
    file.parent.mkdir()
    os.rename(file.parent.with_name("away") / file.name, file)


def _file_by_link(file: Path) -> None:
    os.rename(file, file.with_name("away"))
    file.symlink_to("away")


def _file_by_file(file: Path) -> None:
    file.with_name("new").write_bytes(file.read_bytes())
    os.replace(file.with_name("new"), file)


CASES: dict[str, tuple[Callable[[Path], object], str]] = {
    "directory gone": (lambda file: os.rename(file.parent, file.parent.with_name("x")), "its directory is gone"),
    "directory by link": (_directory_by_link, "its directory was replaced by a link"),
    "directory by another": (_directory_by_directory, "its directory was replaced;"),
    "file gone": (os.unlink, "its file is gone"),
    "file by link": (_file_by_link, "its file was replaced by a link"),
    "file by another": (_file_by_file, "its file was replaced;"),
}


@pytest.mark.parametrize("case", CASES)
def test_what_was_replaced_is_told(tmp_path: Path, case: str):
    file = tmp_path / "notes" / "notes.db"
    file.parent.mkdir()
    file.write_bytes(b"rows")
    before = standing.of(file)
    file.write_bytes(b"other rows")
    assert before.fault(file) is None
    change, reason = CASES[case]
    change(file)
    assert (before.fault(file) or "").startswith(reason)


def test_a_file_that_is_yet_to_be_made_may_come(tmp_path: Path):
    before = standing.of(tmp_path / "notes.db")
    assert before.fault(tmp_path / "notes.db") is None
    (tmp_path / "notes.db").write_bytes(b"")
    assert before.fault(tmp_path / "notes.db") is None
