"""Editing a text is editing the list of its lines."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convmem.errors import AmbiguousMatch, OutOfRange, TextNotFound
from convmem.tables import edits
from tests.support.texts import pieces

pytestmark = pytest.mark.slow

breaks = st.sampled_from(["\n", "\n", "\n\n", "\r\n", "\r", "\u2028", "\u0085"])
texts = st.lists(st.sampled_from(["a", "b", "ab", ""]) | breaks | pieces, max_size=12).map("".join)
numbers = st.integers(-1, 14)
ranges = st.none() | st.tuples(numbers, numbers)


def model(text: str) -> list[str]:
    """The lines of a text, each with its break."""
    lines = [line + "\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def bare(lines: list[str]) -> list[str]:
    return [line.removesuffix("\n").removesuffix("\r") for line in lines]


def chosen(text: str, view_range: edits.Range | None) -> tuple[int, int] | None:
    """Which lines of the model a range means, as a slice; None if it must be refused."""
    total = len(model(text))
    if view_range is None:
        return 0, total
    first, last = view_range
    last = max(first, total) if last == edits.END else last
    if not 1 <= first <= max(1, total) or last < first:
        return None
    return first - 1, min(last, total)


@given(texts, ranges, st.integers(1, 60))
@settings(derandomize=True, max_examples=400)
def test_views_one_after_another_show_every_line_once(text: str, view_range: edits.Range | None, bytes_max: int):
    part = chosen(text, view_range)
    if part is None:
        with pytest.raises(OutOfRange):
            edits.view(text, view_range)
        return
    first, last = part
    numbered = [f"{number + 1:>6}\t{line}" for number, line in enumerate(model(text))][first:last]
    assert edits.view(text, view_range).content == "".join(numbered)
    shown: list[str] = []
    following = view_range
    for _ in range(len(numbered) + 1):
        seen = edits.view(text, following, bytes_max=bytes_max)
        assert len(seen.content.encode()) <= bytes_max
        shown.append(seen.content)
        if seen.cut_line_bytes is not None:
            assert "".join(numbered).encode().find(seen.content.encode()) >= 0
        if seen.next_line is None:
            break
        assert seen.next_line <= last
        following = (seen.next_line, last)
    else:
        pytest.fail("the views do not end")
    cut = any(len(line.encode()) > bytes_max for line in numbered)
    assert cut or "".join(shown) == "".join(numbered)


@given(texts, texts, texts, ranges, st.booleans())
@settings(derandomize=True, max_examples=800)
def test_replacing_is_replacing_in_the_joined_lines_of_the_range(
    text: str, old: str, new: str, view_range: edits.Range | None, replace_all: bool
):
    part = chosen(text, view_range)
    old = old or "a"
    if part is None:
        with pytest.raises(OutOfRange):
            edits.replace(text, old, new, view_range, replace_all=replace_all)
        return
    lines = model(text)
    before, meant, behind = ("".join(lines[slice(*ends)]) for ends in ((0, part[0]), part, (part[1], None)))
    places = [at for at in range(len(meant)) if meant.startswith(old, at)]
    if not places:
        with pytest.raises(TextNotFound):
            edits.replace(text, old, new, view_range, replace_all=replace_all)
    elif len(places) > 1 and not replace_all:
        with pytest.raises(AmbiguousMatch) as refused:
            edits.replace(text, old, new, view_range)
        numbers = [(before + meant[:at]).count("\n") + 1 for at in places]
        assert refused.value.details["candidates"] == sorted(set(numbers))[:20]
    else:
        replaced = edits.replace(text, old, new, view_range, replace_all=replace_all)
        assert replaced.text == before + meant.replace(old, new) + behind
        assert replaced.matches == meant.count(old)


@given(texts, numbers, texts)
@settings(derandomize=True, max_examples=800)
def test_inserting_is_inserting_into_the_list(text: str, line: int, content: str):
    lines = model(text)
    if not 0 <= line <= len(lines) + 1:
        with pytest.raises(OutOfRange):
            edits.insert(text, line, content)
        return
    inserted = edits.insert(text, line, content)
    at = max(1, line) - 1
    new = model(content) or ["\n"]
    assert (inserted.line, inserted.inserted_lines) == (at + 1, len(new))
    after = model(inserted.text)
    assert bare(after) == [*bare(lines[:at]), *bare(new), *bare(lines[at:])]
    assert after[at + len(new) :] == lines[at:]
    assert edits.count_lines(inserted.text) == len(lines) + len(new)
