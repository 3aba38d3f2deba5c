"""Resources by URI: one spelling each, those of tables once for each table, in pages."""

from typing import Any

import pytest

from convmem.limits import RESOURCES_A_PAGE
from convmem.resources import Resource, UnknownResource, entries, found, page, templates


async def nothing(access: Any, table: str | None) -> str:
    return ""


def resource(uri: str, *, is_of_tables: bool) -> Resource:
    return Resource(
        uri=uri,
        name=uri.replace("://", "-"),
        title="T",
        description="D",
        mime_type="text/plain",
        read=nothing,
        is_of_tables=is_of_tables,
    )


SCHEMA, PAGE = resource("schema://yaml", is_of_tables=True), resource("docs://errors", is_of_tables=False)
ALL = (SCHEMA, PAGE)


def test_each_table_has_its_entry_and_a_page_has_one():
    listed = list(entries(ALL, ["a", "b c"]))
    assert [entry.uri for entry in listed] == ["schema://yaml?table=a", "schema://yaml?table=b%20c", "docs://errors"]
    assert listed[0].facts() == {
        "uri": "schema://yaml?table=a",
        "name": "schema-yaml-a",
        "title": "T: a",
        "description": "D",
        "mimeType": "text/plain",
    }
    assert [template["uriTemplate"] for template in templates(ALL)] == ["schema://yaml{?table}"]


@pytest.mark.parametrize(
    ("uri", "meant"),
    [
        ("schema://yaml", (SCHEMA, None)),
        ("schema://yaml?table=a", (SCHEMA, "a")),
        ("schema://yaml?table=%E3%81%82", (SCHEMA, "あ")),
        ("docs://errors", (PAGE, None)),
    ],
)
def test_a_uri_means_one_thing(uri: str, meant: tuple[Resource, str | None]):
    assert found(ALL, uri) == meant


@pytest.mark.parametrize(
    "uri",
    [
        *(
            "",
            "docs://",
            "docs://error",
            "docs://errors?table=a",
            "docs://errors#x",
            "DOCS://errors",
            "docs://../errors",
        ),
        *("schema://yaml?", "schema://yaml?x=1", "schema://yaml?table=a&x=1", "schema://yaml?table=a&table=b"),
        *("schema://yaml?table=あ", "schema://yaml/x", "schema://yaml?table=" + "a" * 5_000),
    ],
)
def test_everything_else_is_unknown(uri: str):
    with pytest.raises(UnknownResource):
        found(ALL, uri)


def test_a_list_comes_in_pages():
    listed = list(entries((SCHEMA,), [str(number) for number in range(RESOURCES_A_PAGE + 1)]))
    first, following = page(listed, 0)
    assert (len(first), following) == (RESOURCES_A_PAGE, RESOURCES_A_PAGE)
    assert page(listed, RESOURCES_A_PAGE) == (listed[-1:], None)
