"""cli/row_files: the steps alone, against answers that a store could give."""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from convmem.cli import row_files
from convmem.errors import Conflict, ConvmemError, Invalid, NotFound

ID = "00000000-0000-4000-8000-00000000000"
Answer = Callable[[Mapping[str, Any]], Mapping[str, Any]]


def walked(directory: Path, form: str = "json", *, overwrite: bool = False, **answers: Answer) -> dict[str, Any]:
    """What comes of the steps; a ConvmemError that an answer raises is thrown in."""
    steps = row_files.written("notes", directory, form, None, overwrite=overwrite)
    question = next(steps)
    try:
        while True:
            tool, arguments = question
            try:
                facts = answers[tool](arguments)
            except ConvmemError as refused:
                question = steps.throw(refused)
            else:
                question = steps.send(facts)
    except StopIteration as ended:
        found: dict[str, Any] = ended.value
        return found


def info(_: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"table": "notes"}


def page(*rows: Mapping[str, Any]) -> Answer:
    return lambda _: {"rows": rows, "next_cursor": None}


def row(number: int, **more: Any) -> dict[str, Any]:
    return {"id": f"{ID}{number}", "data": {"title": f"title {number}"}} | more


def test_page_after_page_becomes_files(tmp_path: Path):
    def listed(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        number = int(arguments.get("cursor", 0))
        return {"rows": [row(number)], "next_cursor": str(number + 1) if number < 3 else None}

    facts = walked(tmp_path / "new" / "out", "md", info=info, list=listed)
    assert (facts["written"], facts["left_out_count"]) == (4, 0)
    texts = sorted(path.read_text() for path in (tmp_path / "new" / "out").iterdir())
    assert texts == [f"# title {number}\n\n\n" for number in range(4)]


def test_a_row_that_goes_meanwhile_is_counted_and_no_fault(tmp_path: Path):
    def gone(_: Mapping[str, Any]) -> Mapping[str, Any]:
        raise NotFound("there is no row of this id", field="id")

    large = row(1, omitted=[{"field": "body", "bytes": 9}])
    facts = walked(tmp_path / "out", info=info, list=page(large, row(2)), get=gone)
    assert (facts["written"], facts["gone"], facts["left_out_count"]) == (1, 1, 0)


def test_a_row_that_changes_between_its_parts_is_asked_for_anew(tmp_path: Path):
    hashes = iter(["a", "b", "b", "b"])

    def get(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        found = next(hashes)
        if "fields" in arguments:
            return {"id": f"{ID}1", "data": {"body": f"of {found}"}, "sha256": found}
        left = [{"field": "body", "bytes": 9}]
        return {"id": f"{ID}1", "data": {"title": found}, "omitted": left, "sha256": found}

    facts = walked(tmp_path / "out", info=info, list=page(row(1, omitted=[{}])), get=get)
    assert facts["written"] == 1
    assert json.loads((tmp_path / "out" / f"{ID}1.json").read_text())["data"] == {"title": "b", "body": "of b"}


def test_a_row_that_never_stands_still_is_left_out(tmp_path: Path):
    count = iter(range(100))

    def get(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        left = {} if "fields" in arguments else {"omitted": [{"field": "body", "bytes": 9}]}
        return {"id": f"{ID}1", "data": {"body": "x"}, "sha256": str(next(count)), **left}

    facts = walked(tmp_path / "out", info=info, list=page(row(1, omitted=[{}]), row(2)), get=get)
    assert (facts["written"], facts["left_out_count"]) == (1, 1)
    assert facts["left_out"] == [{"id": f"{ID}1", "reason": "it is changed again and again"}]


@pytest.mark.parametrize("row_id", ["../../etc/passwd", "a/b", "", ".", "CON", f"{ID}1\n", f"{ID}1/../x", "x" * 36])
def test_an_id_that_names_no_file_is_left_out_and_nothing_is_made_for_it(tmp_path: Path, row_id: str):
    facts = walked(tmp_path / "out", info=info, list=page({"id": row_id, "data": {}}, row(1)))
    assert (facts["written"], facts["left_out"]) == (1, [{"id": row_id, "reason": "its id names no file"}])
    assert [path.name for path in tmp_path.rglob("*")] == ["out", f"{ID}1.json"]


def test_a_damaged_row_is_left_out_with_what_is_wrong(tmp_path: Path):
    facts = walked(tmp_path / "out", info=info, list=page(row(1, damaged="no JSON object")))
    assert facts["left_out"] == [{"id": f"{ID}1", "reason": "no JSON object"}]


def test_of_many_that_are_left_out_some_are_named_and_all_counted(tmp_path: Path):
    rows = [{"id": str(number), "data": {}} for number in range(300)]
    facts = walked(tmp_path / "out", info=info, list=page(*rows))
    assert (facts["left_out_count"], len(facts["left_out"])) == (300, row_files.LEFT_OUT_SHOWN_MAX)


def test_any_other_refusal_ends_it(tmp_path: Path):
    def refused(_: Mapping[str, Any]) -> Mapping[str, Any]:
        raise Conflict("the schema changed")

    with pytest.raises(Conflict):
        walked(tmp_path / "out", info=info, list=refused)
    assert not (tmp_path / "out").exists()


def test_a_field_that_cannot_be_asked_for_leaves_out_its_row_alone(tmp_path: Path):
    """Fields that the schema does not know are kept, but no question may name them."""

    def get(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        if "fields" in arguments:
            raise Invalid("there is no field of this name", field="fields.0")
        return {"id": f"{ID}1", "data": {}, "omitted": [{"field": "extra", "bytes": 9}], "sha256": "a"}

    facts = walked(tmp_path / "out", info=info, list=page(row(1, omitted=[{}]), row(2)), get=get)
    assert facts["written"] == 1
    (left,) = facts["left_out"]
    assert left == {"id": f"{ID}1", "reason": "its field extra cannot be had: there is no field of this name"}


@pytest.mark.parametrize("overwrite", [True, False])
def test_what_has_come_there_meanwhile_is_replaced_only_if_that_is_asked_for(tmp_path: Path, overwrite: bool):
    out = tmp_path / "out"

    def listed(_: Mapping[str, Any]) -> Mapping[str, Any]:
        out.mkdir()
        (out / f"{ID}1.json").write_text("theirs")
        return {"rows": [row(1), row(2)], "next_cursor": None}

    facts = walked(out, overwrite=overwrite, info=info, list=listed)
    assert facts["written"] == (2 if overwrite else 1)
    assert ((out / f"{ID}1.json").read_text() == "theirs") is not overwrite


@pytest.mark.parametrize("overwrite", [True, False])
def test_nothing_but_a_file_is_written_into(tmp_path: Path, overwrite: bool):
    out, outside = tmp_path / "out", tmp_path / "outside"
    out.mkdir()
    outside.write_text("mine")
    (out / f"{ID}1.json").symlink_to(outside)
    (out / f"{ID}2.json").mkdir()
    (out / f"{ID}3.json").symlink_to(tmp_path / "nothing")
    os.mkfifo(out / f"{ID}4.json")
    facts = walked(out, overwrite=overwrite, info=info, list=page(*(row(number) for number in range(6))))
    assert (facts["written"], facts["left_out_count"]) == (2, 4)
    assert outside.read_text() == "mine"
    assert not (tmp_path / "nothing").exists()


def test_of_what_breaks_off_only_whole_files_are_left(tmp_path: Path):
    def listed(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        if "cursor" in arguments:
            raise Conflict("the schema changed")
        return {"rows": [row(1), row(2)], "next_cursor": "more"}

    with pytest.raises(Conflict):
        walked(tmp_path / "out", info=info, list=listed)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [f"{ID}1.json", f"{ID}2.json"]


def test_a_place_that_takes_no_directory_is_an_error_of_the_disk(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="Not a directory"):
        walked(tmp_path / "file" / "out", info=info, list=page(row(1)))
