"""A row's file says what the row says, and stands inside or not at all."""

from pathlib import Path

import pytest

from convmem.tables import dump
from convmem.tables.dump import DumpRefused
from convmem.tables.model import Dump

ROW = "0b9a54f2-6f0c-4d8e-9d0a-3f1f6f0c4d8e"
PLAIN = Dump()


@pytest.fixture
def places(tmp_path: Path) -> dict[str, Path]:
    """A scope root and a working directory, beside something that is in neither."""
    for name in ("scope/notes", "cwd", "outside"):
        (tmp_path / name).mkdir(parents=True)
    return {"scope_root": tmp_path / "scope", "working_directory": tmp_path / "cwd"}


def test_a_file_is_a_heading_an_empty_line_and_the_body():
    assert dump.text(PLAIN, {"title": "Hello", "body": "one\ntwo", "other": 1}) == "# Hello\n\none\ntwo\n"


def test_the_file_ends_with_one_line_break_whatever_the_body_ends_with():
    assert dump.text(PLAIN, {"title": "T", "body": "B\n\n"}) == dump.text(PLAIN, {"title": "T", "body": "B"})
    assert dump.text(PLAIN, {"title": "T", "body": "a\r\n"}) == "# T\n\na\r\n"


def test_a_title_is_one_line():
    assert dump.text(PLAIN, {"title": "a\n# b\r\nc\u2028d\0e "}) == "# a # b c d e\n\n\n"


def test_fields_of_other_kinds_stand_as_json_and_absent_ones_are_empty():
    assert dump.text(PLAIN, {"title": 42, "body": {"a": [True]}}) == '# 42\n\n{"a":[true]}\n'
    assert dump.text(PLAIN, {"body": None}) == "# \n\n\n"


def test_the_fields_are_those_that_the_schema_names():
    chosen = Dump(title_field="name.of", body_field="desc")
    assert dump.text(chosen, {"name.of": "N", "desc": "D", "title": "T", "body": "B"}) == "# N\n\nD\n"


def test_files_stand_in_the_scope_unless_the_other_program_s_directory_is_there(places: dict[str, Path]):
    assert dump.directory(PLAIN, table="notes", **places) == places["scope_root"] / "notes" / "dump"
    theirs = places["working_directory"] / ".mini-app" / "notes"
    theirs.mkdir(parents=True)
    assert dump.directory(PLAIN, table="notes", **places) == theirs


@pytest.mark.parametrize("chosen", ["out", "a/b/../c", ".", "./x", "../scope/notes", "../cwd/y"])
def test_a_directory_inside_is_taken(places: dict[str, Path], chosen: str):
    found = dump.directory(Dump(dir=chosen), table="notes", **places)
    assert found == (places["working_directory"] / chosen).resolve()
    assert dump.target(Dump(dir=chosen), ROW, table="notes", **places) == found / f"{ROW}.md"


def test_an_absolute_directory_inside_is_taken(places: dict[str, Path]):
    inside = places["scope_root"] / "files"
    assert dump.directory(Dump(dir=str(inside)), table="notes", **places) == inside


@pytest.mark.parametrize(
    "chosen", ["..", "../outside", "../../etc", "/etc", "/", "a/../../outside", "../cwd-too", "", "a\0b"]
)
def test_a_directory_outside_is_refused(places: dict[str, Path], chosen: str):
    with pytest.raises(DumpRefused):
        dump.directory(Dump(dir=chosen), table="notes", **places)


def test_a_link_that_leads_outside_is_outside(places: dict[str, Path], tmp_path: Path):
    work = places["working_directory"]
    (work / "link").symlink_to(tmp_path / "outside")
    (work / "inside").symlink_to(places["scope_root"])
    (places["scope_root"] / "notes" / "dump").symlink_to(tmp_path / "outside")
    for refused in (Dump(dir="link"), Dump(dir="link/deeper"), PLAIN):
        with pytest.raises(DumpRefused):
            dump.directory(refused, table="notes", **places)
    assert dump.directory(Dump(dir="inside/x"), table="notes", **places) == places["scope_root"] / "x"


def test_roots_that_are_links_themselves_are_followed(places: dict[str, Path], tmp_path: Path):
    (tmp_path / "alias").symlink_to(places["scope_root"])
    linked = {**places, "scope_root": tmp_path / "alias"}
    assert dump.directory(PLAIN, table="notes", **linked) == places["scope_root"] / "notes" / "dump"


def test_a_daemon_that_works_in_the_root_does_not_have_the_machine_inside(places: dict[str, Path]):
    whole = {**places, "working_directory": Path("/")}
    for chosen in ("etc", "/etc", "."):
        with pytest.raises(DumpRefused):
            dump.directory(Dump(dir=chosen), table="notes", **whole)


@pytest.mark.parametrize("row_id", ["", "..", "../x", "a/b", f"{ROW}/..", f"{ROW}\n", f"{ROW}\0", "CON", ROW[:-1]])
def test_a_file_is_named_by_a_whole_id_only(places: dict[str, Path], row_id: str):
    with pytest.raises(DumpRefused):
        dump.target(PLAIN, row_id, table="notes", **places)


def test_a_link_in_the_place_of_the_file_is_not_followed(places: dict[str, Path], tmp_path: Path):
    (places["working_directory"] / f"{ROW}.md").symlink_to(tmp_path / "outside" / "x")
    with pytest.raises(DumpRefused):
        dump.target(Dump(dir="."), ROW, table="notes", **places)


def test_nothing_is_made_by_asking_where(places: dict[str, Path], tmp_path: Path):
    before = sorted(tmp_path.rglob("*"))
    dump.target(Dump(dir="a/b"), ROW, table="notes", **places)
    assert sorted(tmp_path.rglob("*")) == before


def test_only_what_is_not_done_is_warned_of():
    assert dump.warnings(PLAIN) == dump.warnings(Dump(sync="write-only")) == []
    (warning,) = dump.warnings(Dump(sync="bidirectional"))
    assert "never read back" in warning
