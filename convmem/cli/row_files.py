"""The rows of a table as files: what is asked for, and what becomes of the answers.

The idea: this asks no store. It is a generator that yields questions (a tool and its arguments) and is sent the facts,
or has the refusal thrown in; so the same steps run against a daemon and against the store in this process, opened once.

A file holds a whole row or is not there. What a reply has left out of a large row is asked for field by field; the hash
of the row, which comes with each answer, tells whether it was changed meanwhile. What has no file is named at the end.

Rejected: looking through the directory for leftovers with each file, and seeing to its name by itself (thirty thousand
rows took minutes).
"""

import json
import re
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import Any

from convmem import folders
from convmem.errors import CallerError, NotFound
from convmem.row_text import markdown

ROWS_A_PAGE, TRIES = 1_000, 3
LEFT_OUT_SHOWN_MAX = 100
FORMS = ("md", "json")
UUID = re.compile("[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")

Facts = Mapping[str, Any]
Question = tuple[str, Facts]
Steps = Generator[Question, Facts, Any]


class NotEmpty(Exception):
    """There is something in the directory, or something else in its place."""


class LeftOut(Exception):
    """A row has no file; the message says why."""


def target(directory: Path, *, overwrite: bool) -> Path:
    """The directory to write into, if it is missing or empty, or whatever is in it may be replaced. NotEmpty."""
    if folders.is_anything(directory) and not directory.is_dir():
        raise NotEmpty(f"{directory} is no directory")
    if not overwrite and folders.is_anything(directory) and folders.names(directory):
        raise NotEmpty(f"{directory} is not empty; --overwrite replaces files of the same names")
    return directory


def written(table: str, directory: Path, form: str, filter_: str | None, *, overwrite: bool = False) -> Steps:
    """Write each row into a file; {table, directory, written, gone, left_out: [{id, reason}], left_out_count}.

    OSError if there is no writing into the directory. Nothing is made before the first page has come.
    """
    schema = yield "info", {"table": table}
    arguments: dict[str, Any] = {"table": table, "limit": ROWS_A_PAGE}
    if filter_ is not None:
        arguments["filter"] = filter_
    count = gone = left_out_count = 0
    left_out: list[dict[str, str]] = []
    page = yield "list", arguments
    folders.make(directory)
    with folders.filling(directory) as put:
        while True:
            for row in page["rows"]:
                try:
                    whole = yield from _whole(table, row)
                    text = _json(whole) if form == "json" else _markdown(whole, schema.get("dump") or {})
                    _put(put, directory, f"{row['id']}.{form}", text.encode(), overwrite=overwrite)
                    count += 1
                except NotFound:
                    gone += 1
                except (LeftOut, OSError) as reason:
                    left_out_count += 1
                    if len(left_out) < LEFT_OUT_SHOWN_MAX:
                        left_out.append({"id": row["id"], "reason": str(reason)})
            if page["next_cursor"] is None:
                break
            page = yield "list", arguments | {"cursor": page["next_cursor"]}
    return {
        "table": table,
        "directory": str(directory),
        "written": count,
        "gone": gone,
        "left_out": left_out,
        "left_out_count": left_out_count,
    }


def _put(put: Callable[[str, bytes], None], directory: Path, name: str, data: bytes, *, overwrite: bool) -> None:
    """Write a file, in the place of another only if that is wanted. LeftOut, OSError."""
    there = directory / name
    if folders.is_anything(there) and not (overwrite and folders.is_file(there)):
        raise LeftOut(f"{name} is there already" if folders.is_file(there) else f"{name} is there and is no file")
    put(name, data)


def _whole(table: str, row: Facts) -> Generator[Question, Facts, Facts]:
    """A row with all of its fields. NotFound if it is gone by now, LeftOut if there is no getting at all of it."""
    if not UUID.fullmatch(row["id"]):
        raise LeftOut("its id names no file")
    if "damaged" in row:
        raise LeftOut(row["damaged"])
    if "omitted" not in row:
        return row
    for _ in range(TRIES):
        first = yield from _asked("the row", {"table": table, "id": row["id"]})
        data = dict(first["data"])
        for left in first.get("omitted", ()):
            name = left["field"]
            fields = {"mode": "list", "fields": [name]}
            part = yield from _asked(f"its field {name}", {"table": table, "id": row["id"], "fields": fields})
            if "omitted" in part:
                raise LeftOut(f"its field {name} is larger than an answer: {left['bytes']:,} bytes")
            if part["sha256"] != first["sha256"]:
                break
            data |= part["data"]
        else:
            facts = {name: value for name, value in first.items() if name not in ("omitted", "sha256")}
            return {**facts, "data": data}
    raise LeftOut("it is changed again and again")


def _asked(what: str, arguments: Facts) -> Generator[Question, Facts, Facts]:
    """What `get` answers. NotFound if the row is gone, LeftOut for any other refusal of this one row."""
    try:
        return (yield "get", arguments)
    except NotFound:
        raise
    except CallerError as refused:
        raise LeftOut(f"{what} cannot be had: {refused.message}") from None


def _markdown(row: Facts, dump: Facts) -> str:
    return markdown(row["data"], title_field=dump.get("title_field"), body_field=dump.get("body_field"))


def _json(row: Facts) -> str:
    return json.dumps(row, ensure_ascii=False, indent=2) + "\n"
