"""Pure text: one folding for everything that searches, the way back from it, and cuts that split no code point.

Folding is NFKC, full case folding (Unicode 5.18, str.casefold), NFKC again: é and e+´, full-width and half-width,
upper and lower case become one. It changes lengths (İ becomes two code points, e+´ one, ﬁ two), so a place found in
folded text is no place in the original. `Folded` knows the way back: a text falls into segments whose folded forms,
put side by side, are the folded text; a segment ends where the next code point neither combines with nor composes
onto what stands before it (Unicode Annex 15, "stable code points").

Rejected: folding code point by code point (compositions are lost), an offset table a text (a million entries to mark
forty code points), and lower() (ß and ς find nothing).
"""

import unicodedata
from bisect import bisect_right
from functools import cache
from itertools import pairwise
from operator import itemgetter

# Which letters there are and how they fold; it comes with Python, so it may change under a store.
UNICODE_VERSION = unicodedata.unidata_version
SEGMENT_BLOCK = 512
# Canonical compositions stand in these planes only; Hangul composes by arithmetic.
_COMPOSING = range(0xC0, 0x1F000)
_HANGUL_VOWELS, _HANGUL_TAILS = range(0x1161, 0x1176), range(0x11A8, 0x11C3)
# Thai and Lao "am" are the two decomposing letters that stand in nearly every sentence of their script. Taken apart
# first, the text passes the normaliser's quick check: 26 µs become 3 µs for a message of 300 code points.
_AM = (("\u0e33", "\u0e4d\u0e32"), ("\u0eb3", "\u0ecd\u0eb2"))


def fold(text: str) -> str:
    """Return `text` as the search compares it; folding twice changes nothing."""
    if text.isascii():
        return text.lower()
    for letter, parts in _AM:
        text = text.replace(letter, parts)
    text = unicodedata.normalize("NFKC", text).casefold()
    return unicodedata.normalize("NFKC", text)


def cut_to_bytes(text: str, bytes_max: int) -> str:
    """Return the longest start of `text` that takes at most `bytes_max` bytes of UTF-8."""
    return text[:bytes_max].encode()[:bytes_max].decode("utf-8", "ignore")


def is_code_point_start(byte: int) -> bool:
    """True if this byte of UTF-8 begins a code point (RFC 3629: all others are 10xxxxxx)."""
    return byte & 0xC0 != 0x80


class Folded:
    """A text and its folded form, with the way back."""

    def __init__(self, original: str) -> None:
        self.original = original
        self.text = fold(original)
        self._is_ascii = original.isascii()
        self._blocks: list[tuple[int, int]] = []
        self._segments: dict[int, list[tuple[int, int]]] = {}

    def original_range(self, start: int, end: int) -> tuple[int, int]:
        """Return the code points of the original that became [start, end) of the folded text, start < end.

        A range that begins or ends inside what one segment became covers that whole segment.
        """
        assert 0 <= start < end <= len(self.text)
        if self._is_ascii:
            return start, end
        first, _ = self._segment(start)
        _, last = self._segment(end - 1)
        return first, last

    def _segment(self, offset: int) -> tuple[int, int]:
        """The original's segment (start, end) that became the folded code point at `offset`."""
        if not self._blocks:
            self._blocks = _blocks(self.original)
        block = _last_at(self._blocks, offset)
        if block not in self._segments:
            self._segments[block] = _segments(self.original, *self._blocks[block], self._blocks[block + 1][1])
        segments = self._segments[block]
        segment = _last_at(segments, offset)
        return segments[segment][1], segments[segment + 1][1]


def _last_at(places: list[tuple[int, int]], folded_offset: int) -> int:
    """Which of `places`, (folded start, original start) rising, holds the folded offset."""
    return bisect_right(places, folded_offset, key=itemgetter(0)) - 1


def _blocks(text: str) -> list[tuple[int, int]]:
    """Whole segments in blocks of about SEGMENT_BLOCK code points: (folded start, original start) of each, and the end
    of both.
    """
    blocks, folded_at, start = [], 0, 0
    while start < len(text):
        blocks.append((folded_at, start))
        end = min(start + SEGMENT_BLOCK, len(text))
        while end < len(text) and not _begins_segment(text[end]):
            end += 1
        folded_at += len(fold(text[start:end]))
        start = end
    return [*blocks, (folded_at, start)]


def _segments(text: str, folded_at: int, start: int, end: int) -> list[tuple[int, int]]:
    """The segments of text[start:end], whose folded form begins at `folded_at`: as _blocks says it."""
    starts = [start, *(at for at in range(start + 1, end) if _begins_segment(text[at])), end]
    segments = [(folded_at, start)]
    for first, last in pairwise(starts):
        folded_at += len(fold(text[first:last]))
        segments.append((folded_at, last))
    return segments


def _begins_segment(code_point: str) -> bool:
    """True if folding never joins this code point to one before it."""
    if code_point < "\u0300":
        return True
    decomposed = unicodedata.normalize("NFKD", code_point)[0]
    return _stands_alone(decomposed) and _stands_alone(fold(code_point)[0])


def _stands_alone(code_point: str) -> bool:
    return unicodedata.combining(code_point) == 0 and code_point not in _composing()


@cache
def _composing() -> frozenset[str]:
    """Code points that can be the second half of a composition."""
    pairs = (unicodedata.decomposition(chr(value)).split() for value in _COMPOSING)
    found = {chr(int(pair[1], 16)) for pair in pairs if len(pair) == 2 and not pair[0].startswith("<")}
    return frozenset(found).union(map(chr, _HANGUL_VOWELS), map(chr, _HANGUL_TAILS))
