"""The text of the gram table: what any substring can be looked up by, however it is written and wherever it begins.

A gram is three code points of folded text; runs of joined scripts (scripts.py) stand for themselves in the word table
as pairs of letters, so here each run is two marks. Two more marks at the end let every letter begin a gram, so that
one or two code points can be looked up as the beginning of grams. Between two fields stands a separator.

Folding joins and reorders: `e` is part of the text e+´ but of no folded form of it. So where folding a text differs
from folding it letter by letter, the letter-by-letter form is there too (`loose`): every substring of a text is, folded
that way, a substring of the text folded that way. What the grams let through is looked at on the row itself; they may
let through too much, never too little.
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise

from convmem.messages.scripts import JOINED_RUN
from convmem.text import fold

MARKS, SEPARATOR = "\x03\x03", "\x1e"
# SQLite ends a text at U+0000 and reads these as U+FFFD.
_READABLE = str.maketrans(dict.fromkeys("\x00\ufffe\uffff", "\ufffd"))
GRAM_CODE_POINTS = 3


class _Letters(dict[int, str]):
    """How each letter folds alone; filled as letters come."""

    def __missing__(self, code_point: int) -> str:
        folded = self[code_point] = fold(chr(code_point))
        return folded


_LETTERS = _Letters()


def loose(text: str) -> str:
    """A text folded letter by letter: nothing is joined or reordered."""
    return text.lower() if text.isascii() else text.translate(_LETTERS)


def forms(text: str, folded: str) -> Iterator[str]:
    """The folded forms of a text that are looked up: one, or two where they differ."""
    yield folded
    if not text.isascii() and (other := loose(text)) != folded:
        yield other


def marked(folded: str) -> str:
    """A folded text as the gram table has it, without what stands at its end."""
    return (folded if folded.isascii() else JOINED_RUN.sub(MARKS, folded)).translate(_READABLE)


def gram_text(folded: Iterable[str]) -> str:
    """The text of the gram table for the folded forms of all fields of a message."""
    return SEPARATOR.join(map(marked, folded)) + MARKS


def grams(folded: str) -> list[str]:
    """The distinct grams of a part of a folded text; empty if it is too short to have one."""
    text = marked(folded)
    return list(dict.fromkeys(text[at : at + GRAM_CODE_POINTS] for at in range(len(text) - GRAM_CODE_POINTS + 1)))


def pairs(folded: str) -> Iterator[str]:
    """The pairs of letters in runs of joined scripts, and the last letter of each run, as the word table has them."""
    if folded.isascii():
        return
    for run in JOINED_RUN.finditer(folded):
        letters = run.group()
        for left, right in pairwise(letters):
            yield left + right
        yield letters[-1]


def first_letters(folded: str) -> list[str]:
    """The distinct first letters of runs of joined scripts, as the word table has them beside the pairs."""
    return [] if folded.isascii() else list(dict.fromkeys(run[0] for run in JOINED_RUN.findall(folded)))


def held_tokens(part: str) -> list[str]:
    """The distinct tokens of the word table that every folded text has which holds this part: pairs of letters, and the
    first and the last letter of runs, but for a run that may go on before or behind the part.
    """
    if part.isascii():
        return []
    found: list[str] = []
    for run in JOINED_RUN.finditer(part):
        letters = run.group()
        found += letters[:1] if run.start() > 0 else ""
        found += map("".join, pairwise(letters))
        found += letters[-1:] if run.end() < len(part) else ""
    return list(dict.fromkeys(found))
