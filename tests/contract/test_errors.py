"""Errors are contract: every code is documented, every documented code exists, with its exit status and details."""

import re
from collections.abc import Iterator

import pytest

from convmem import errors
from convmem.errors import EXIT_STATUS, CallerError, ConvmemError, OperatorError, RetryError
from tests.support.source import PACKAGE

PAGE = (PACKAGE / "docs" / "errors.md").read_text(encoding="utf-8")
FAMILIES = {
    CallerError: "## The caller can act",
    RetryError: "## Time can act",
    OperatorError: "## An operator must act",
}


def kinds(family: type[ConvmemError]) -> Iterator[type[ConvmemError]]:
    """Every error of a family that can be raised: those with a code."""
    for kind in family.__subclasses__():
        if "code" in vars(kind):
            yield kind
        yield from kinds(kind)


def rows(family: type[ConvmemError]) -> dict[str, list[str]]:
    """The table under a family's heading: code, and the cells behind it."""
    section = PAGE.split(FAMILIES[family])[1].split("\n## ")[0]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if "|" in line]
    return {row[0].strip("`"): row[1:] for row in cells[2:]}


@pytest.mark.parametrize("family", FAMILIES)
def test_the_page_and_the_code_know_the_same_errors(family: type[ConvmemError]):
    assert set(rows(family)) == {kind.code for kind in kinds(family)}


@pytest.mark.parametrize("family", FAMILIES)
def test_the_page_names_the_details_that_the_code_promises(family: type[ConvmemError]):
    column = 2 if family is OperatorError else 1
    for kind in kinds(family):
        promised = re.search(r"details: ([a-z_, ]+?)( when | while |\.|$)", kind.__doc__ or "")
        expected = {name.strip() for name in promised[1].split(",")} if promised else set()
        assert set(re.findall(r"`(\w+)`", rows(family)[kind.code][column])) == expected, kind.code


def test_every_family_is_raised_by_its_members_only():
    assert set(ConvmemError.__subclasses__()) == set(FAMILIES)
    for family in (ConvmemError, *FAMILIES):
        assert "code" not in vars(family)


def test_codes_are_unique_and_look_alike():
    codes = [kind.code for family in FAMILIES for kind in kinds(family)]
    assert len(set(codes)) == len(codes)
    assert all(re.fullmatch("[A-Z_]{4,40}", code) for code in codes)


def test_every_operator_error_has_an_exit_status_and_the_page_names_it():
    assert set(EXIT_STATUS) == set(kinds(OperatorError))
    assert {code: int(cells[0]) for code, cells in rows(OperatorError).items()} == {
        kind.code: status for kind, status in EXIT_STATUS.items()
    }


def test_a_retry_error_always_says_when():
    for kind in kinds(RetryError):
        assert kind("later", retry_after_ms=7).details["retry_after_ms"] == 7
        with pytest.raises(TypeError):
            kind("later")  # type: ignore[call-arg]


def test_every_error_is_defined_in_one_place():
    for family in FAMILIES:
        for kind in kinds(family):
            assert kind.__module__ == errors.__name__
