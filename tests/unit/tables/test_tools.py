"""The tools for rows over a real engine: what is promised of each, and every refusal by its real cause."""

import asyncio
import json
from pathlib import Path
from typing import Any

import apsw
import pytest

from convmem.clock import SystemClock
from convmem.domain import Origin
from convmem.limits import REPLY_BYTES_DEFAULT, ROW_DATA_BYTES_MAX
from convmem.reply_bytes import reply_bytes
from tests.support.tabled import NOTES, Refused, Tables, put_table, tables


class Shifted(SystemClock):
    """The machine's clock, set forward by the test."""

    shift_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.shift_ms


OTHER = Origin("desktop", "http", "other/2")


async def refused(t: Tables, tool: str, **arguments: Any) -> dict[str, Any]:
    """The facts of a refusal."""
    with pytest.raises(Refused) as caught:
        await t.call(tool, **arguments)
    return dict(caught.value.facts)


def raw(tmp_path: Path, table: str = "notes") -> apsw.Connection:
    """The file of a table as another program opens it."""
    return apsw.Connection(str(tmp_path / "data" / "tables" / table / f"{table}.db"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The root of the user's tables, with one table in it."""
    put_table(tmp_path / "data" / "tables")
    return tmp_path / "data" / "tables"


async def test_a_row_comes_back_as_it_went_in(root: Path, tmp_path: Path):
    data = {
        "title": "a\0b \u202e \U0001f600",
        "stars": 2**53 + 1,
        "done": True,
        "tags": [1, "1", None],
        "more": {"x": -0.0},
    }
    async with tables(tmp_path) as t:
        made = await t.call("create", table="notes", data=data)
        found = await t.call("get", table="notes", id=made["id"])
    assert found["data"] == data
    assert json.dumps(found["data"]["stars"]) == "9007199254740993"
    assert (found["created_at"], found["sha256"]) == (made["created_at"], made["sha256"])
    assert made["version"] == 1


@pytest.mark.parametrize("number", [2**63 - 1, -(2**63), 0, 2**53 + 1, 1.5])
async def test_a_number_is_found_by_itself_and_by_no_other(root: Path, tmp_path: Path, number: float):
    async with tables(tmp_path) as t:
        await t.add(title="a", stars=number)
        await t.add(title="b", stars=1)
        equal = {"type": "eq", "field": "stars", "value": number}
        assert [row["data"]["title"] for row in (await t.call("list", table="notes", filter=equal))["rows"]] == ["a"]


@pytest.mark.parametrize(
    ("data", "field"),
    [
        ({}, "data.title"),
        ({"title": None}, "data.title"),
        ({"title": 1}, "data.title"),
        ({"title": "a", "done": 1}, "data.done"),
        ({"title": "a", "stars": True}, "data.stars"),
        ({"title": "a", "stars": "1"}, "data.stars"),
        ({"title": "a", "tags": {}}, "data.tags"),
        ({"title": "a", "extra": []}, "data.extra"),
    ],
)
async def test_data_that_the_schema_does_not_admit_names_its_field(
    root: Path, tmp_path: Path, data: dict[str, Any], field: str
):
    async with tables(tmp_path) as t:
        found = await refused(t, "create", table="notes", data=data)
        assert (found["code"], found["field"]) == ("VALIDATION_ERROR", field)
        assert (await t.call("info", table="notes"))["rows"] == 0


async def test_an_object_may_come_as_a_text_and_a_number_too(root: Path, tmp_path: Path):
    async with tables(tmp_path) as t:
        made = await t.call("create", table="notes", data='{"title": "a", "stars": 3}')
        page = await t.call("list", table="notes", limit="1", filter='{"type":"eq","field":"stars","value":3}')
        assert page["rows"][0]["id"] == made["id"]
        twice = await refused(t, "create", table="notes", data='{"title": "a", "title": "b"}')
        assert (twice["code"], twice["field"]) == ("VALIDATION_ERROR", "data")


async def test_a_row_is_found_by_the_beginning_of_its_id(root: Path, tmp_path: Path):
    async with tables(tmp_path) as t:
        for number in range(25):
            raw(tmp_path).execute(
                "INSERT INTO rows VALUES (?, ?, 1, 1)",
                (f"aaaa{number:04d}-0000-4000-8000-000000000000", json.dumps({"title": str(number)})),
            )
        assert (await t.call("get", table="notes", id="aaaa0007"))["data"] == {"title": "7"}
        assert (await t.call("get", table="notes", id="AAAA0007-0000-4000-8000-000000000000"))["data"] == {"title": "7"}
        several = await refused(t, "get", table="notes", id="aaaa")
        assert (several["code"], several["matches"], len(several["candidates"])) == ("AMBIGUOUS_ID", 25, 20)
        assert (await refused(t, "get", table="notes", id="bbbb"))["code"] == "NOT_FOUND"
        for odd in ("%", "aaaa_", "aaaa%", "'", "", "zz"):
            assert (await refused(t, "get", table="notes", id=odd))["code"] == "VALIDATION_ERROR", odd


async def test_without_a_table_or_with_an_unknown_one_nothing_is_done(root: Path, tmp_path: Path):
    async with tables(tmp_path) as t:
        assert (await refused(t, "list"))["code"] == "TABLE_REQUIRED"
        for name in ("Notes", "nothing", "../notes", "notes\0"):
            assert (await refused(t, "list", table=name))["code"] == "TABLE_NOT_FOUND", name


async def test_the_same_key_adds_a_row_once(root: Path, tmp_path: Path):
    put_table(root, "others")
    async with tables(tmp_path) as t:
        ask: dict[str, Any] = {"table": "notes", "data": {"title": "a"}, "idempotency_key": "k"}
        first = await t.call("create", **ask)
        again = await t.call("create", **ask)
        assert {**first, "replayed": True} == again
        other_spelling = await t.call("create", **{**ask, "data": {"title": "a", "body": None}})
        assert other_spelling["id"] == first["id"]
        conflict = await refused(t, "create", **{**ask, "data": {"title": "b"}})
        assert conflict["code"] == "CONFLICT"
        assert (await t.call("create", OTHER, **ask))["id"] != first["id"]
        elsewhere = await refused(t, "create", **{**ask, "table": "others"})
        assert (elsewhere["code"], elsewhere["field"]) == ("CONFLICT", "idempotency_key")
        await t.call("delete", table="notes", id=first["id"])
        assert (await t.call("create", **ask))["id"] == first["id"]
    async with tables(tmp_path) as t:
        after_restart = await t.call("create", **ask)
        assert (after_restart["id"], after_restart["replayed"]) == (first["id"], True)


async def test_a_key_is_forgotten_after_a_month_and_not_before_a_week(root: Path, tmp_path: Path):
    clock = Shifted()
    ask: dict[str, Any] = {"table": "notes", "data": {"title": "a"}, "idempotency_key": "k"}
    async with tables(tmp_path, clock) as t:
        first = await t.call("create", **ask)
        clock.shift_ms = 8 * 24 * 3_600_000
        assert (await t.call("create", **ask))["replayed"]
        clock.shift_ms = 40 * 24 * 3_600_000
        await t.call("create", table="notes", data={"title": "b"}, idempotency_key="another")
        assert (await t.call("create", **ask))["id"] != first["id"]


async def test_merge_lays_a_patch_over_and_replace_does_not(root: Path, tmp_path: Path):
    async with tables(tmp_path) as t:
        row = await t.add(title="a", body="b", extra={"x": 1, "y": 2}, unknown="kept")
        merged = await t.call("update", table="notes", id=row["id"], data={"body": None, "extra": {"z": 3}, "stars": 1})
        assert merged["data"] == {"title": "a", "stars": 1, "extra": {"z": 3}, "unknown": "kept"}
        replaced = await t.call("update", table="notes", id=row["id"], data={"title": "c"}, mode="replace")
        assert replaced["data"] == {"title": "c"}
        assert (await refused(t, "update", table="notes", id=row["id"], data={"title": None}))["field"] == "data.title"
        assert replaced["version"] == 3


@pytest.mark.parametrize("tool", ["update", "delete", "content_replace", "content_insert"])
async def test_a_guard_keeps_a_row_that_was_changed_meanwhile(root: Path, tmp_path: Path, tool: str):
    more: dict[str, dict[str, Any]] = {
        "update": {"data": {"stars": 1}},
        "delete": {},
        "content_replace": {"field": "body", "old_str": "b", "new_str": "c"},
        "content_insert": {"field": "body", "line": 0, "content": "c"},
    }
    async with tables(tmp_path) as t:
        row = await t.add(title="a", body="b")
        newer = await t.call("update", table="notes", id=row["id"], data={"stars": 9})
        ask = {"table": "notes", "id": row["id"], **more[tool]}
        conflict = await refused(t, tool, **ask, expected_sha256=row["sha256"])
        assert (conflict["code"], conflict["current_sha256"]) == ("CONFLICT", newer["sha256"])
        assert (await t.call("get", table="notes", id=row["id"]))["sha256"] == newer["sha256"]
        await t.call(tool, **ask, expected_sha256=newer["sha256"])


async def test_two_callers_who_merge_different_fields_lose_nothing(root: Path, tmp_path: Path):
    async with tables(tmp_path) as t:
        row = await t.add(title="a", one=0, two=0)

        async def count(field: str) -> None:
            for number in range(1, 101):
                await t.call("update", table="notes", id=row["id"], data={field: number})

        await asyncio.gather(count("one"), count("two"))
        found = await t.call("get", table="notes", id=row["id"])
        assert (found["data"]["one"], found["data"]["two"]) == (100, 100)
        versions: list[int] = []
        cursor = None
        while True:
            page = await t.call("row_history", table="notes", id=row["id"], limit=50, cursor=cursor)
            versions += [version["version"] for version in page["versions"]]
            cursor = page["next_cursor"]
            if cursor is None:
                break
        assert versions == list(range(201, 0, -1))


async def test_a_list_has_an_order_pages_a_total_and_a_selection(root: Path, tmp_path: Path):
    async with tables(tmp_path) as t:
        for number in range(7):
            await t.add(title=f"t{number}", stars=number % 3)
        order = [{"field": "stars", "direction": "desc"}, {"field": "title"}]
        ask: dict[str, Any] = {"table": "notes", "order_by": order, "limit": 3, "with_total": True}
        titles: list[str] = []
        cursor = None
        while True:
            page = await t.call("list", **ask, cursor=cursor, fields={"mode": "list", "fields": ["title"]})
            assert page["total"] == 7
            assert all(set(row["data"]) == {"title"} for row in page["rows"])
            titles += [row["data"]["title"] for row in page["rows"]]
            cursor = page["next_cursor"]
            if cursor is None:
                break
        assert titles == ["t2", "t5", "t1", "t4", "t0", "t3", "t6"]
        assert (await refused(t, "list", table="notes", fields={"mode": "list", "fields": ["x"]}))[
            "field"
        ] == "fields.fields.0"
        wrong = await refused(t, "list", table="notes", cursor="nonsense")
        assert wrong["code"] == "INVALID_CURSOR"


async def test_pages_go_on_where_they_were_whatever_is_added_or_taken_away(root: Path, tmp_path: Path):
    async with tables(tmp_path) as t:
        rows = [(await t.add(title=f"{number:02d}"))["id"] for number in range(30)]
        seen: list[str] = []
        cursor = None
        while True:
            page = await t.call("list", table="notes", order_by=[{"field": "title"}], limit=4, cursor=cursor)
            seen += [row["id"] for row in page["rows"]]
            await t.add(title="00 new")
            await t.call("delete", table="notes", id=page["rows"][0]["id"])
            cursor = page["next_cursor"]
            if cursor is None:
                break
        assert seen == rows


async def test_a_page_holds_a_row_however_large_and_names_what_it_leaves_out(root: Path, tmp_path: Path):
    async with tables(tmp_path) as t:
        large = await t.add(title="x" * 900_000, body="short")
        await t.add(title="small")
        assert large["omitted"] == [{"field": "title", "bytes": 900_002}]
        page = await t.call("list", table="notes", order_by=[{"field": "title", "direction": "desc"}])
        reply = reply_bytes(page)
        assert reply <= REPLY_BYTES_DEFAULT
        first = next(row for row in page["rows"] if row["id"] == large["id"])
        assert "title" not in first["data"]
        assert first["omitted"] == [{"field": "title", "bytes": 900_002}]
        whole = await t.call(
            "list", table="notes", limit=2, filter={"type": "like", "field": "title", "pattern": "xx%"}
        )
        assert len(whole["rows"][0]["data"]["title"]) == 900_000
        got = await t.call("get", table="notes", id=large["id"])
        assert reply_bytes(got) <= REPLY_BYTES_DEFAULT
        assert got["data"]["body"] == "short"


async def test_no_list_is_larger_than_a_reply_may_be(root: Path, tmp_path: Path):
    async with tables(tmp_path) as t:
        ops = [{"op": "create", "data": {"title": '"' * 900}} for _ in range(120)]
        await t.call("schema_batch", table="notes", ops=ops)
        seen = 0
        cursor = None
        while True:
            page = await t.call("list", table="notes", cursor=cursor)
            assert reply_bytes(page) <= REPLY_BYTES_DEFAULT
            seen += len(page["rows"])
            cursor = page["next_cursor"]
            if cursor is None:
                break
        assert seen == 120


async def test_a_row_beyond_its_bounds_is_refused(root: Path, tmp_path: Path):
    async with tables(tmp_path) as t:
        large = await refused(t, "create", table="notes", data={"title": "x" * ROW_DATA_BYTES_MAX})
        assert (large["code"], large["bytes_max"]) == ("CONTENT_TOO_LARGE", ROW_DATA_BYTES_MAX)
        many = await refused(t, "create", table="notes", data={"title": "a", **{f"f{n}": n for n in range(256)}})
        assert many["code"] == "VALIDATION_ERROR"


async def test_a_text_is_edited_by_its_lines(root: Path, tmp_path: Path):
    async with tables(tmp_path) as t:
        row = await t.add(title="a", body="one\ntwo\ntwo\n", stars=1)
        at = {"table": "notes", "id": row["id"], "field": "body"}
        assert await t.call("content_view", **at, view_range=[2, -1]) == {
            "content": "     2\ttwo\n     3\ttwo\n",
            "total_lines": 3,
        }
        twice = await refused(t, "content_replace", **at, old_str="two", new_str="2")
        assert (twice["code"], twice["kind"], twice["candidates"]) == ("AMBIGUOUS_MATCH", "AMBIGUOUS", [2, 3])
        assert (await t.call("content_replace", **at, old_str="two", new_str="2", view_range=[3, 3]))["matches"] == 1
        assert (await t.call("content_replace", **at, old_str="o", new_str="0", replace_all=True))["matches"] == 2
        assert (await refused(t, "content_replace", **at, old_str="x", new_str=""))["code"] == "STRING_NOT_FOUND"
        assert (await t.call("content_insert", **at, line=4, content="end"))["line"] == 4
        assert (await t.call("content_insert", **at, line=0, content="top"))["inserted_lines"] == 1
        far = await refused(t, "content_insert", **at, line=99, content="x")
        assert (far["code"], far["total_lines"]) == ("OUT_OF_RANGE", 5)
        assert (await t.call("get", table="notes", id=row["id"]))["data"]["body"] == "top\n0ne\ntw0\n2\nend\n"
        for field in ("stars", "tags", "nothing"):
            assert (await refused(t, "content_view", **{**at, "field": field}))["code"] == "TYPE_ERROR"


async def test_now_undoes_a_deletion_and_a_version_any_change(root: Path, tmp_path: Path):
    clock = Shifted()
    async with tables(tmp_path, clock) as t:
        row = await t.add(title="a", stars=1)
        clock.shift_ms += 5_000
        await t.call("update", table="notes", id=row["id"], data={"stars": 2})
        clock.shift_ms += 5_000
        await t.call("delete", table="notes", id=row["id"])
        clock.shift_ms += 5_000
        assert (await refused(t, "get", table="notes", id=row["id"]))["code"] == "NOT_FOUND"
        now = clock.now_ms() // 1000
        back = await t.call("row_restore", table="notes", id=row["id"][:12], at_unix_secs=now)
        assert back["data"] == {"title": "a", "stars": 2}
        assert back["created_at"] == row["created_at"]
        assert (back["restored_from"]["op"], back["restored_from"]["version"], back["version"]) == ("delete", 3, 4)
        first = await t.call("row_restore", table="notes", id=row["id"], version=1)
        assert first["data"] == {"title": "a", "stars": 1}
        assert (await refused(t, "row_restore", table="notes", id=row["id"], version=99))["code"] == "NOT_FOUND"
        early = await refused(t, "row_restore", table="notes", id=row["id"], at_unix_secs=0)
        assert early["code"] == "NOT_FOUND"
        for wrong in ({}, {"version": 1, "at_unix_secs": 1}):
            assert (await refused(t, "row_restore", table="notes", id=row["id"], **wrong))["code"] == "VALIDATION_ERROR"
        versions = (await t.call("row_history", table="notes", id=row["id"]))["versions"]
        assert [version["op"] for version in versions] == ["update", "update", "delete", "update", "create"]
        assert versions[-1]["origin"] == {"device": "laptop", "transport": "http", "client": "tester/1"}


async def test_a_version_that_todays_schema_does_not_admit_stays_in_the_past(root: Path, tmp_path: Path):
    async with tables(tmp_path) as t:
        row = await t.add(title="a")
        fields = [{"name": "title", "type": "string"}, {"name": "need", "type": "string", "required": True}]
        await t.call("schema_update", table="notes", fields=fields)
        assert (await refused(t, "row_restore", table="notes", id=row["id"], version=1))["field"] == "data.need"


async def test_without_history_nothing_is_kept_and_nothing_restored(tmp_path: Path):
    put_table(tmp_path / "data" / "tables", schema=NOTES + "history: off\n")
    async with tables(tmp_path) as t:
        row = await t.add(title="a")
        assert "version" not in row
        await t.call("update", table="notes", id=row["id"], data={"stars": 2})
        assert raw(tmp_path).execute("SELECT count(*) FROM _row_history").fetchall() == [(0,)]
        for ask in ({"tool": "row_restore", "version": 1}, {"tool": "row_history"}):
            tool = str(ask.pop("tool"))
            assert (await refused(t, tool, table="notes", id=row["id"], **ask))["code"] == "NOT_FOUND"


async def test_a_row_that_another_program_spoiled_hides_no_other(root: Path, tmp_path: Path):
    async with tables(tmp_path) as t:
        good = await t.add(title="good")
        for number, text in enumerate(("no json", "[1]", '{"a":1,"a":2}', "", "null")):
            raw(tmp_path).execute("INSERT INTO rows VALUES (?, ?, 1, 1)", (f"bad-{number}", text))
        page = await t.call("list", table="notes")
        assert {row["id"] for row in page["rows"]} == {good["id"], *(f"bad-{number}" for number in range(5))}
        assert all("damaged" in row for row in page["rows"] if row["id"] != good["id"])
        assert (await t.call("list", table="notes", filter={"type": "exists", "field": "title"}))["rows"][0][
            "id"
        ] == good["id"]


async def test_a_file_that_another_program_locks_is_busy_alone(root: Path, tmp_path: Path):
    put_table(root, "others")
    async with tables(tmp_path) as t:
        await t.add(title="a")
        lock = raw(tmp_path)
        lock.execute("BEGIN IMMEDIATE")
        busy, fine = await asyncio.gather(
            refused(t, "create", table="notes", data={"title": "b"}), t.add("others", title="c")
        )
        assert (busy["code"], busy["retryable"]) == ("BUSY", True)
        assert fine["version"] == 1
        lock.execute("ROLLBACK")
        await t.add(title="b")
        assert (await t.call("info", table="notes"))["rows"] == 2


async def test_a_file_that_was_taken_away_is_told_and_others_go_on(root: Path, tmp_path: Path):
    put_table(root, "others")
    async with tables(tmp_path) as t:
        await t.add(title="a")
        for path in (root / "notes").glob("notes.db*"):
            path.unlink()
        (root / "notes" / "notes.db").write_bytes(b"no database at all, but of some length" * 100)
        for tool, more in (("list", {}), ("create", {"data": {"title": "b"}})):
            told = await refused(t, tool, table="notes", **more)
            assert (told["code"], "its file was replaced" in told["reason"]) == ("TABLE_NOT_FOUND", True)
        await t.add("others", title="c")


async def test_a_row_becomes_a_file_beside_and_no_trouble_with_that_loses_it(root: Path, tmp_path: Path):
    outside = tmp_path / "outside"
    outside.mkdir()
    put_table(root, schema=NOTES + "dump: {}\n")
    put_table(root, "away", NOTES + f"dump:\n  dir: {outside}/deep/../../..\n")
    async with tables(tmp_path / "elsewhere", places=None, user=root) as t:
        row = await t.add(title="Hello\nworld", body="text\n\n")
        file = root / "notes" / "dump" / f"{row['id']}.md"
        assert file.read_text() == "# Hello world\n\ntext\n"
        await t.call("update", table="notes", id=row["id"], data={"title": "Bye"})
        assert file.read_text().startswith("# Bye\n")
        await t.call("delete", table="notes", id=row["id"])
        assert file.exists()
        away = await t.add("away", title="a")
        assert "was not written" in away["warning"]
        assert (await t.call("get", table="away", id=away["id"]))["data"] == {"title": "a"}
        file.unlink()
        file.symlink_to(outside / "stolen")
        back = await t.call("row_restore", table="notes", id=row["id"], version=1)
        assert "link" in back["warning"]
    assert not list(outside.iterdir())


@pytest.mark.parametrize(
    "name",
    [
        "select",
        "a.b",
        "it's",
        '"quoted"',
        "$.x",
        "名前",
        "ชื่อ",
        "a b",
        "-",
        "%_",
        "1",
        "x'); DROP TABLE rows;--",
        "\u2028",
    ],
)
async def test_a_field_may_have_any_name_everywhere(tmp_path: Path, name: str):
    async with tables(tmp_path) as t:
        fields = [{"name": name, "type": "string"}, {"name": "n", "type": "number"}]
        await t.call("schema_create", table="odd", fields=fields)
        row = await t.call("create", table="odd", data={name: "one\ntwo", "n": 2})
        await t.call("create", table="odd", data={name: "zzz", "n": 3})
        like = {"type": "like", "field": name, "pattern": "one%"}
        page = await t.call(
            "list", table="odd", filter=like, order_by=[{"field": name}], fields={"mode": "list", "fields": [name]}
        )
        assert [found["data"] for found in page["rows"]] == [{name: "one\ntwo"}]
        await t.call("content_replace", table="odd", id=row["id"], field=name, old_str="two", new_str="2")
        sources = {"kind": "single", "value": "odd"}
        groups = {"kind": "group_by", "by_field": name, "inner": {"kind": "max", "field": name}}
        found = await t.call("query_aggregate", sources=sources, aggregator=groups)
        assert [group["key"] for group in found["value"]] == ["one\n2", "zzz"]


async def test_a_question_that_takes_too_long_is_ended_and_the_next_is_answered(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async with tables(tmp_path) as t:
        await t.call(
            "schema_batch", table="notes", ops=[{"op": "create", "data": {"title": str(n)}} for n in range(900)]
        )
        with monkeypatch.context() as patch:
            patch.setattr("convmem.table_reading.QUERY_MS_MAX", -1)
            patch.setattr("convmem.table_reading.STEPS_BETWEEN_LOOKS", 100)
            limit = await refused(t, "list", table="notes", order_by=[{"field": "body"}])
            assert (limit["code"], limit["ms_max"]) == ("QUERY_LIMIT", -1)
        assert len((await t.call("list", table="notes", limit=1000))["rows"]) == 900
