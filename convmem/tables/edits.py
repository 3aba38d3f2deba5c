"""Texts of rows edited as an editor does: lines shown with numbers, one passage replaced, lines inserted.

The idea: a line ends behind "\\n" and nowhere else, and the last one may lack it. So the empty text has no line, "a"
and "a\\n" have one; a carriage return or a separator of other alphabets is a character like any other. What is not
edited stays byte by byte. Where a break has to be added it is the one that the text already uses.

`insert` says which line the new text becomes: 0 and 1 stand before the first, total + 1 behind the last.

Rejected: str.splitlines (it cuts at eight other characters), and counting how often a passage stands there by regular
expressions (a passage is plain text). Passages that overlap each other are as ambiguous as others: "aa" stands twice in
"aaa".
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from convmem.errors import AmbiguousMatch, ContentTooLarge, Invalid, OutOfRange, TextNotFound, WrongType
from convmem.limits import EDIT_CANDIDATES_MAX, EDIT_TEXT_BYTES_MAX

NUMBER_WIDTH = 6
# In a range the last line may be this, for the end of the text.
END = -1

Range = tuple[int, int]


class View(NamedTuple):
    """Lines with their numbers. `next_line` is where to go on if not all that were asked for fitted.

    `cut_line_bytes` is the size of the one line shown if it alone did not fit: `content` then holds only its start.
    """

    content: str
    total_lines: int
    next_line: int | None = None
    cut_line_bytes: int | None = None


class Replaced(NamedTuple):
    """The text afterwards, and how many passages were replaced."""

    text: str
    matches: int


class Inserted(NamedTuple):
    """The text afterwards, the number that the first inserted line has in it, and how many were inserted."""

    text: str
    line: int
    inserted_lines: int


def text_of(data: Mapping[str, Any], field: str) -> str:
    """The text in a field of a row; WrongType if there is none."""
    value = data.get(field)
    if not isinstance(value, str):
        raise WrongType("this field holds no text", field=field)
    return value


def count_lines(text: str) -> int:
    """How many lines a text has."""
    return text.count("\n") + (not text.endswith("\n") and text != "")


def view(text: str, view_range: Range | None = None, *, bytes_max: int = EDIT_TEXT_BYTES_MAX) -> View:
    """The lines of a range (all without one), each behind its number and a tab, in about `bytes_max` bytes of UTF-8.

    Whole lines only, but for one that alone is larger than that. OutOfRange if the range begins outside the text; one
    that ends behind it ends with it.
    """
    total = count_lines(text)
    first, last = _checked(view_range, total)
    shown: list[str] = []
    left = bytes_max
    start = _line_start(text, first)
    for number in range(first, last + 1):
        end = _line_end(text, start)
        line = text[start:end]
        numbered = f"{number:>{NUMBER_WIDTH}}\t{line}"
        size = len(numbered.encode())
        if size > left and shown:
            return View("".join(shown), total, number)
        if size > left:
            cut = numbered.encode()[:bytes_max].decode("utf-8", "ignore")
            return View(cut, total, number + 1 if number < last else None, len(line.encode()))
        shown.append(numbered)
        left -= size
        start = end
    return View("".join(shown), total)


def replace(text: str, old: str, new: str, view_range: Range | None = None, *, replace_all: bool = False) -> Replaced:
    """`new` in the place of the one passage `old` that lies wholly in the lines of the range, or of every such.

    TextNotFound if there is none, AmbiguousMatch if there are several and not all are meant, OutOfRange, Invalid if
    there is nothing to look for, ContentTooLarge before anything is put together.
    """
    if not old:
        raise Invalid("old_str must not be empty", field="old_str")
    total = count_lines(text)
    first, last = _checked(view_range, total)
    start = _line_start(text, first)
    end = len(text) if last >= total else _line_start(text, last + 1)
    at = text.find(old, start, end)
    if at < 0:
        raise TextNotFound("old_str does not stand there", total_lines=total)
    is_ambiguous = text.find(old, at + 1, end) >= 0
    matches = text.count(old, start, end) if is_ambiguous else 1
    if is_ambiguous and not replace_all:
        raise AmbiguousMatch(
            "old_str stands there more than once",
            kind="AMBIGUOUS",
            matches=max(2, matches),
            candidates=_candidates(text, old, start, end),
        )
    _refuse_too_large(len(text.encode()) + matches * (len(new.encode()) - len(old.encode())))
    return Replaced(text[:start] + text[start:end].replace(old, new) + text[end:], matches)


def insert(text: str, line: int, content: str) -> Inserted:
    """Put lines before line `line`; OutOfRange if it is more than one behind the last.

    An empty content is an empty line. The text ends with a break afterwards if it did, or if the content that now ends
    it does.
    """
    total = count_lines(text)
    if not 0 <= line <= total + 1:
        raise OutOfRange(f"line must be 0 to {total + 1}", total_lines=total)
    first = max(1, line)
    _refuse_too_large(len(text.encode()) + len(content.encode()) + 2)
    start = _line_start(text, first)
    before, behind = text[:start], text[start:]
    line_break = "\r\n" if text[: _line_end(text, 0)].endswith("\r\n") else "\n"
    if before and not before.endswith("\n"):
        before += line_break
    is_last = not behind
    ends_open = is_last and not text.endswith("\n")
    if not content or (not content.endswith("\n") and not ends_open):
        content += line_break
    return Inserted(before + content + behind, first, count_lines(content))


def _checked(view_range: Range | None, total: int) -> Range:
    """A range that lies in the text; of an empty text only the one that would be its first line."""
    if view_range is None:
        return 1, total
    first, last = view_range
    if last == END:
        last = max(first, total)
    if not 1 <= first <= max(1, total) or last < first:
        raise OutOfRange("view_range must begin in the text and not end before it begins", total_lines=total)
    return first, min(last, total)


def _line_start(text: str, number: int) -> int:
    """Where a line begins; the end of the text for the one behind its last."""
    at = 0
    for _ in range(number - 1):
        found = text.find("\n", at)
        if found < 0:
            return len(text)
        at = found + 1
    return at


def _line_end(text: str, start: int) -> int:
    """Where the line that begins at `start` ends, its break included."""
    found = text.find("\n", start)
    return len(text) if found < 0 else found + 1


def _candidates(text: str, old: str, start: int, end: int) -> list[int]:
    """The lines of the whole text in which a passage begins, the first few."""
    lines: list[int] = []
    number, counted, at = 1, 0, text.find(old, start, end)
    while at >= 0 and len(lines) < EDIT_CANDIDATES_MAX:
        number += text.count("\n", counted, at)
        counted = at
        lines.append(number)
        at = text.find(old, _line_end(text, at), end)
    return lines


def _refuse_too_large(size: int) -> None:
    if size > EDIT_TEXT_BYTES_MAX:
        raise ContentTooLarge(
            f"the text would have {size} bytes, {EDIT_TEXT_BYTES_MAX} at most",
            bytes=size,
            bytes_max=EDIT_TEXT_BYTES_MAX,
        )
