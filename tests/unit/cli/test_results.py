"""cli/results: what matches is marked where it stands, whatever is escaped, folded or cut; nothing shown can act."""

import io
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convmem.cli.journal import visible
from convmem.cli.results import marked, print_results
from convmem.limits import SNIPPET_CODE_POINTS_MAX
from convmem.messages.matching import Question, excerpt

STYLES = re.compile(r"\x1b\[[0-9;]*m")
MARKED = re.compile(r"\x1b\[1;33m(.*?)\x1b\[0m")
FAMILY = "👩\u200d👩\u200d👧"


def result(content: str, query: str, **more: Any) -> dict[str, Any]:
    """A result as the tool answers it."""
    cut = excerpt(content, Question(query), None)
    return {
        "message_id": "01ARZ3NDEKTSV4RRFFQ69G5FAV",
        "session_id": "garden",
        "timestamp": 0,
        "role": "user",
        "snippet": cut.text,
        "snippet_start": cut.start,
        "match_ranges": [list(found) for found in cut.ranges],
        "score": 1.0,
        "scores": {"content": 1.0, "summary": 0.0, "tags": 0.0, "context": 0.0},
        "matched_fields": ["content"],
        "exact": True,
    } | more


def answer(*results: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"results": list(results), "path": "index", "complete": True} | more


def marks_of(found: dict[str, Any]) -> list[str]:
    shown, marks = marked(found)
    return [shown[start:end] for start, end in marks]


@pytest.mark.parametrize(
    ("content", "query", "shown"),
    [
        ("a tomato and a Tomato", "tomato", ["tomato", "Tomato"]),
        ("İstanbul, i̇stanbul", "i̇stanbul", ["İstanbul", "i̇stanbul"]),
        ("\x1b[2JİİİSTANBUL\u202e!", "stanbul", ["STANBUL"]),
        ("the of\ufb01ce", "office", ["of\ufb01ce"]),
        ("o\ufb00", "f", ["\ufb00"]),
        (f"{FAMILY} at home", FAMILY, [FAMILY]),
        (f"{FAMILY} at home", "👩", ["👩", "👩"]),
        ("one\n\ttwo\r\nthree", "two\r\nthree", ["two\\r\\nthree"]),
        ("\x07\x07bell\x07", "bell\x07", ["bell\\x07"]),
        ("from \u202eright\u202c to left", "\u202eright", ["\\u202eright"]),
        ("nul\x00 is a character", "\x00 is", ["\\x00 is"]),
        ("味噌と味噌", "味噌", ["味噌", "味噌"]),
    ],
)
def test_what_matches_is_marked_through_escapes_and_folding(content: str, query: str, shown: list[str]):
    found = result(content, query)
    assert marked(found)[0] == visible(content)
    assert marks_of(found) == shown


def test_a_match_far_behind_is_marked_in_the_part_that_is_shown():
    found = result("\x1b" * 5_000 + "needle" + "\n" * 5_000, "needle")
    assert found["snippet_start"] > 4_000
    assert marks_of(found) == ["needle"]


def test_a_match_longer_than_the_snippet_is_marked_to_its_end():
    found = result("x" * 100 + "\n" * 900, "\n" * 900)
    assert found["match_ranges"] == [[100, 1000]]
    shown, ((start, end),) = marked(found)
    assert (shown[start:end], end) == ("\\n" * (SNIPPET_CODE_POINTS_MAX - start), len(shown))


def test_ranges_that_begin_before_behind_or_inside_each_other_mark_what_is_shown_once():
    found = result("abcdef", "abcdef", snippet="cde", snippet_start=2)
    for ranges, shown in [
        ([[0, 3]], ["c"]),
        ([[0, 2], [5, 6]], []),
        ([[2, 4], [3, 5]], ["cd", "e"]),
        ([[2, 5], [3, 4]], ["cde"]),
        ([], []),
    ]:
        found["match_ranges"] = ranges
        assert (marked(found)[0], marks_of(found)) == ("cde", shown), ranges


@given(st.text("ab\n\x1bİé\u200d\u202e👩e\u0301", max_size=40), st.text("ab\n\x1bi̇é👩", min_size=1, max_size=3))
def test_each_mark_is_what_its_range_holds(content: str, query: str):
    found = result(content, query)
    assert marked(found)[0] == visible(content)
    assert marks_of(found) == [visible(content[start:end]) for start, end in found["match_ranges"]]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Print on a terminal of some columns; what it was sent."""

    def printed(facts: dict[str, Any], stages: Any = None, columns: int = 80) -> str:
        class Terminal(io.StringIO):
            def isatty(self) -> bool:
                return True

        for name, value in {"TERM": "xterm-256color", "COLUMNS": str(columns)}.items():
            monkeypatch.setenv(name, value)
        for name in ("NO_COLOR", "FORCE_COLOR", "COLORTERM"):
            monkeypatch.delenv(name, raising=False)
        screen = Terminal()
        monkeypatch.setattr("sys.stdout", screen)
        print_results(facts, stages)
        return screen.getvalue()

    return printed


def test_a_terminal_shows_a_head_and_the_snippet_with_its_marks(terminal: Callable[..., str]):
    sent = terminal(answer(result("The tomato\n[bold]is red[/bold] :apple:", "tomato"), result("tomatoes", "tomato")))
    assert MARKED.findall(sent) == ["tomato", "tomato"]
    assert STYLES.sub("", sent).split("\n") == [
        "1.00 exact  1970-01-01 00:00:00Z  user  garden  01ARZ3NDEKTSV4RRFFQ69G5FAV",
        "  The tomato\\n[bold]is red[/bold] :apple:",
        "",
        "1.00 exact  1970-01-01 00:00:00Z  user  garden  01ARZ3NDEKTSV4RRFFQ69G5FAV",
        "  tomatoes",
        "",
    ]


def test_nothing_that_is_shown_drives_a_terminal(terminal: Callable[..., str]):
    found = result("\x1b[2J\x07\u202etomato\r", "tomato", session_id="\x1b]0;title\x07", matched_fields=["\x1b[2J"])
    sent = STYLES.sub("", terminal(answer(found, path="\x1b[2J"), []))
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", sent)


@pytest.mark.parametrize("columns", [1, 20, 33, 80])
@pytest.mark.parametrize("text", [f"{FAMILY} at home, ", "味噌と豆腐", "a\u0301b\ufe0f", "\x1b[2J "])
def test_nothing_of_a_snippet_is_lost_at_the_edge_of_a_terminal(terminal: Callable[..., str], columns: int, text: str):
    found = result(text * 40, text[0])
    sent = STYLES.sub("", terminal(answer(found), columns=columns))
    assert visible(found["snippet"]).replace(" ", "") in re.sub(r"\s", "", sent)


def test_what_matches_elsewhere_is_said_since_nothing_is_marked(terminal: Callable[..., str]):
    found = result("nothing here", "plants", matched_fields=["tags", "context"])
    assert "matched  in tags, context" in terminal(answer(found))
    assert "matched" not in terminal(answer(result("plants", "plants")))


NEIGHBOUR = {"message_id": "01B", "session_id": "garden", "timestamp": 0, "role": "assistant"}


def test_neighbours_stand_around_their_result(terminal: Callable[..., str]):
    before, after = NEIGHBOUR | {"content": "be\nfore"}, NEIGHBOUR | {"content_preview": "after", "total_bytes": 9_999}
    facts = answer(result("tomato", "tomato", before=[before], after=[after]))
    assert STYLES.sub("", terminal(facts)).split("\n")[1:-1] == [
        "  1970-01-01 00:00:00Z  assistant  garden  01B  be\\nfore",
        "  tomato",
        "  1970-01-01 00:00:00Z  assistant  garden  01B  after",
    ]


def test_in_a_pipe_what_belongs_to_a_result_begins_with_a_tab(capsys: pytest.CaptureFixture[str]):
    before, after = NEIGHBOUR | {"content": "be\nfore"}, NEIGHBOUR | {"content_preview": "after", "total_bytes": 9_999}
    print_results(answer(result("to\tmato", "mato", before=[before], after=[after])), [("find", 1.0)])
    assert capsys.readouterr().out.splitlines() == [
        "\tbefore\t1970-01-01 00:00:00Z\tassistant\tgarden\t01B\tbe\\nfore",
        "1970-01-01 00:00:00Z\tuser\tgarden\t01ARZ3NDEKTSV4RRFFQ69G5FAV\tto\\tmato",
        "\tafter\t1970-01-01 00:00:00Z\tassistant\tgarden\t01B\tafter",
        "\tscore\t1.00 = content 1.00 + summary 0.00 + tags 0.00 + context 0.00",
        "\tmatched\texact, in content",
        "\tpath\tindex",
        "\tstage\texact, by the tables: 1.0 ms",
        "\tstage\ttogether: 1.0 ms",
    ]


@pytest.mark.parametrize(
    ("more", "sentences"),
    [
        ({}, []),
        ({"complete": False}, ["not all messages were looked at"]),
        (
            {"complete": False, "index_lag": 70_000},
            ["not all messages were looked at; the tables of search are 70000 changes behind"],
        ),
        ({"truncated": True}, ["the reply is full: there is more, ask for less at once"]),
    ],
)
def test_what_was_left_out_is_said_on_stderr(
    capsys: pytest.CaptureFixture[str], more: dict[str, Any], sentences: list[str]
):
    print_results(answer(result("tomato", "tomato"), **more), None)
    assert capsys.readouterr().err.splitlines() == sentences
    print_results(answer(**more), None)
    assert capsys.readouterr().err.splitlines() == ["nothing found", *sentences]
