"""The table of patterns: true names and cues, nothing that takes long, and nothing that is done twice."""

import re
import subprocess
import sys
from collections.abc import Iterator
from re import _constants, _parser
from typing import Any

import pytest

from convmem.redact import MARK, NAME_DIGEST_HEX, redact, redact_name
from convmem.redact.patterns import PATTERNS, Pattern
from tests.support.vectors import secrets

SECRETS = secrets()
UNBOUNDED = _constants.MAXREPEAT
LOOPS = {_constants.MAX_REPEAT, _constants.MIN_REPEAT}
ONE_CHARACTER = {_constants.IN, _constants.LITERAL, _constants.NOT_LITERAL, _constants.ANY}
# Classes but the one of everything; and outside of them, what JavaScript reads otherwise than Python, or not at all.
CLASS = re.compile(r"\[(?!\\s\\S\])(?:\\.|[^\]\\])*\]")
NOT_IN_JAVASCRIPT = re.compile(r"\\[bBwWdDAZ]|[*+?}]\+|\(\?[P>(#]|\(\?[a-hj-z]|[$^.]")


def named(pattern: Pattern) -> str:
    return f"{pattern.kind} {pattern.cues[0]}"


def loops(tree: Any) -> Iterator[tuple[int, Any]]:
    """Every loop of a regular expression, however deep: how often at most, and what it repeats."""
    for operation, argument in tree:
        if operation in LOOPS:
            yield argument[1], argument[2]
        for inner in parts(operation, argument):
            yield from loops(inner)


def parts(operation: Any, argument: Any) -> list[Any]:
    """The expressions inside of one operation."""
    if operation in LOOPS:
        return [argument[2]]
    if operation is _constants.SUBPATTERN:
        return [argument[3]]
    if operation is _constants.BRANCH:
        return list(argument[1])
    if operation in {_constants.ASSERT, _constants.ASSERT_NOT}:
        return [argument[1]]
    assert operation in ONE_CHARACTER | {_constants.GROUPREF}, operation
    return []


def test_the_check_of_loops_sees_one_inside_another():
    found = list(loops(_parser.parse("(?:a|(?=b(?:c[de]*)*))f{3}", re.ASCII)))
    assert sorted(most for most, _ in found) == [3, UNBOUNDED, UNBOUNDED]
    assert any(len(body) > 1 for most, body in found if most == UNBOUNDED)


@pytest.mark.parametrize("pattern", PATTERNS, ids=named)
def test_an_unbounded_loop_repeats_one_character_and_stands_in_no_other(pattern: Pattern):
    for most, body in loops(_parser.parse(pattern.source, re.ASCII)):
        if most == UNBOUNDED:
            assert [operation for operation, _ in body] in [[one] for one in ONE_CHARACTER], pattern.source


@pytest.mark.parametrize("pattern", PATTERNS, ids=named)
def test_a_pattern_is_one_that_javascript_reads_alike(pattern: Pattern):
    assert not [found for found in CLASS.findall(pattern.source) if re.search(r"\\[swdSWDbB]", found)]
    outside = re.sub(r"\\[^A-Za-z0-9]", "", CLASS.sub("", pattern.source))
    assert not NOT_IN_JAVASCRIPT.search(outside)
    assert re.compile(pattern.source, re.ASCII).groups <= 4


@pytest.mark.parametrize("pattern", PATTERNS, ids=named)
def test_a_pattern_has_a_name_and_finds_something_of_the_cases(pattern: Pattern):
    assert re.fullmatch("[a-z_]{1,32}", pattern.kind)
    assert pattern.cues
    assert all(cue == cue.lower() for cue in pattern.cues)
    shape = re.compile(pattern.source, re.ASCII)
    assert any(shape.search(case.text) for case in SECRETS)


@pytest.mark.parametrize("pattern", PATTERNS, ids=named)
def test_wherever_a_pattern_finds_something_one_of_its_cues_stands(pattern: Pattern):
    shape = re.compile(pattern.source, re.ASCII)
    for case in SECRETS:
        for text in (case.text, case.text.upper(), case.text.swapcase()):
            if shape.search(text):
                assert any(cue in text.lower() for cue in pattern.cues), text


@pytest.mark.parametrize("pattern", PATTERNS, ids=named)
def test_a_placeholder_is_taken_for_no_secret(pattern: Pattern):
    placeholder = f"{MARK}{pattern.kind}]"
    for before, after in (
        ("", ""),
        ("password=", ""),
        ("token: ", "."),
        ('"secret": "', '",'),
        ("//u:", "@h"),
        ("é", "é"),
    ):
        assert redact(before + placeholder + after) == before + placeholder + after


@pytest.mark.parametrize("text", ["password=[REDACTED:jwt]x y", "token=[REDACTED:jwt].x y", "pwd=x[REDACTED:jwt] y"])
def test_what_stands_against_a_placeholder_is_taken_with_it(text: str):
    assert redact(text) == text.split("=")[0] + "=[REDACTED:credential] y"


def test_a_placeholder_that_was_cut_stays_as_it_is():
    assert redact("password=[REDACTED:cred…") == "password=[REDACTED:cred…"


@pytest.mark.parametrize("text", ["", "\0", "\ud800", "a\u2028b\rc", "\U0010ffff", "plain words"])
def test_odd_texts_come_back(text: str):
    assert redact(text) == text
    assert redact_name(text) == text


def test_names_that_held_secrets_stay_different_and_are_redacted_once():
    names = [f"toolu_password={secret}" for secret in ("hunter2", "hunter3", "\ud800")]
    redacted = [redact_name(name) for name in names]
    assert len(set(redacted)) == len(names)
    for name in redacted:
        assert re.fullmatch(rf"toolu_password=\[REDACTED:credential\]-[0-9a-f]{{{NAME_DIGEST_HEX}}}", name)
        assert redact_name(name) == name


def test_a_name_that_only_looks_redacted_is_looked_at():
    digest = "0123456789abcdef"
    assert redact_name(f"a-{digest}") == f"a-{digest}"
    assert "hunter2" not in redact_name(f"password=hunter2 [REDACTED:jwt]-{digest}")


def test_redacting_needs_nothing_until_a_text_has_a_cue():
    program = "import convmem.redact; convmem.redact.redact('hello world')"
    code = f"import sys; known = set(sys.modules); {program}; print(*set(sys.modules) - known)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {name.split(".")[0] for name in ran.stdout.split()} <= {"convmem", "__future__"}
