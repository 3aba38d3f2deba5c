"""JSON objects out of a file that is too large to parse, and out of one that is damaged.

    [ {…}, {…}, … ]      the elements of the outermost array, or of one under a name in the outermost object
    {…}                  the one object
    {…} {…}⏎ {…}         objects on lines, one or several on each

The idea: an object is found by its braces, strings passed over, and only then parsed: the memory holds one at a time.
Where one cannot be parsed, or does not end, the search goes on behind its first brace: what comes next and is of the
wanted shape is an object again. So damage takes what it hits and nothing else, even where a lost quotation mark turns
texts and braces round for all that follows.

Rejected: a streaming parser (it knows no way on behind damage, and is slower than both steps together).
"""

import re
from collections.abc import Callable, Iterator
from typing import IO, Any, NamedTuple

import msgspec

from convmem.importers.model import Notes
from convmem.limits import IMPORT_ELEMENT_BYTES_MAX

PIECE_BYTES = 1 << 20
# A string with its quotation marks, or a brace or bracket outside of one. A string that does not end is no match.
TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]"]', re.DOTALL)
LONE_SURROGATE = re.compile(
    rb"(?<!\\)((?:\\\\)*)(?:\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    rb"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2})"
)
_DECODER = msgspec.json.Decoder()
# Names under which exporters put the array that matters.
WRAPPERS = re.compile(rb'\s*\{\s*"(?:conversations|items|data|results)"\s*:\s*\[')


class Found(NamedTuple):
    """An object, and where it stands: the offset of its first byte, and how many there are."""

    offset: int
    size: int
    value: Any


def decoded(data: bytes) -> Any:
    """The value of one JSON text. ValueError. Half a character of UTF-16, as cut texts have it, becomes U+FFFD."""
    try:
        return _DECODER.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        mended = LONE_SURROGATE.sub(rb"\1\\ufffd", data.decode(errors="replace").encode())
    try:
        return _DECODER.decode(mended)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(str(error)) from None


def objects(file: IO[bytes], where: str, is_wanted: Callable[[Any], bool], notes: Notes) -> Iterator[Found]:
    """Every object of a file that is of the wanted shape, in the order of the file. What is damaged goes to `notes`."""
    reader = _Reader(file)
    at = reader.skip_wrapper()
    damaged_from: int | None = None
    while (start := reader.find_brace(at)) is not None:
        end = reader.end_of_object(start)
        value = None
        if end is not None:
            try:
                value = decoded(reader.bytes(start, end))
            except ValueError:
                end = None
        if end is None:
            damaged_from = start if damaged_from is None else damaged_from
        elif damaged_from is None or is_wanted(value):
            if damaged_from is not None:
                notes.skip(f"{where}, byte {damaged_from}", f"damaged; read on at byte {start}")
                damaged_from = None
            yield Found(start, end - start, value)
            at = end
            reader.forget(at)
            continue
        at = start + 1
    if damaged_from is not None:
        notes.skip(f"{where}, byte {damaged_from}", "damaged, or cut off, up to the end")


def read(file: IO[bytes], found: tuple[int, int]) -> Any:
    """The object at an offset, of a size. ValueError."""
    offset, size = found
    file.seek(offset)
    return decoded(file.read(size))


def lines(file: IO[bytes], where: str, notes: Notes) -> Iterator[tuple[int, dict[str, Any]]]:
    """Every object of a file of lines, with the number of its line. Lines that hold none go to `notes`; blank ones and
    those of zeros alone, as a power cut leaves them, are passed over.
    """
    for number, line in enumerate(_lines(file), start=1):
        text = line.strip(b"\0 \t\r\n")
        if not text:
            if b"\0" in line:
                notes.pass_over("zeros")
            continue
        yield from ((number, value) for value in _objects_of(text, f"{where}, line {number}", notes))


def _lines(file: IO[bytes]) -> Iterator[bytes]:
    while line := file.readline(IMPORT_ELEMENT_BYTES_MAX):
        yield line


def _objects_of(text: bytes, where: str, notes: Notes) -> Iterator[dict[str, Any]]:
    """The objects of one line: one, or several side by side, or what is whole behind a torn one."""
    try:
        value = decoded(text)
    except ValueError:
        pass
    else:
        if isinstance(value, dict):
            yield value
        else:
            notes.skip(where, "it is no object")
        return
    at, is_damaged = 0, False
    while (start := text.find(b"{", at)) >= 0:
        end = _end(text, start)
        value = None
        if end is not None:
            try:
                value = decoded(text[start:end])
            except ValueError:
                end = None
        if end is None:
            is_damaged, at = True, start + 1
        else:
            # Behind damage only a record of lines is one; what stood inside the torn one is not.
            if not is_damaged or "type" in value or "role" in value or "timestamp" in value:
                yield value
            at = end
    if is_damaged or text[at:].strip(b"\0 \t\r\n,") or at == 0:
        notes.skip(where, "damaged" if at else "it is no JSON")


def _end(text: bytes, start: int) -> int | None:
    """The end of the object that begins at a place; None if it does not end."""
    depth = 0
    for token in TOKEN.finditer(text, start):
        sign = token[0]
        if sign in (b"{", b"["):
            depth += 1
        elif sign in (b"}", b"]"):
            depth -= 1
            if not depth:
                return token.end()
        elif sign == b'"':
            return None
    return None


class _Reader:
    """A file of which a window is in the memory: from the object that is being looked at as far as it was read."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._window = bytearray()
        self._base = 0
        self._is_at_end = False

    def bytes(self, start: int, end: int) -> bytes:
        """A part of the window."""
        return bytes(memoryview(self._window)[start - self._base : end - self._base])

    def forget(self, offset: int) -> None:
        """Let go of what stands before an offset, once it is worth it."""
        if offset - self._base >= PIECE_BYTES:
            del self._window[: offset - self._base]
            self._base = offset

    def skip_wrapper(self) -> int:
        """Where the objects begin: behind the name of the array, if there is one."""
        self._more()
        found = WRAPPERS.match(self._window)
        return found.end() if found else 0

    def find_brace(self, at: int) -> int | None:
        """The offset of the next opening brace; None if there is none."""
        while True:
            found = self._window.find(b"{", at - self._base)
            if found >= 0:
                return self._base + found
            at = self._base + len(self._window)
            self.forget(at)
            if not self._more():
                return None

    def end_of_object(self, start: int) -> int | None:
        """Where the object that begins at an offset ends; None if it does not, or is larger than one may be."""
        depth, at = 0, start
        while at - start <= IMPORT_ELEMENT_BYTES_MAX:
            cut = None
            for token in TOKEN.finditer(self._window, at - self._base):
                sign = self._window[token.start()]
                if sign == 0x22:
                    if token.end() - token.start() == 1:
                        cut = token.start()  # The rest of this string is not in the window yet.
                        break
                elif sign in b"{[":
                    depth += 1
                else:
                    depth -= 1
                    if not depth:
                        end = self._base + token.end()
                        return end if end - start <= IMPORT_ELEMENT_BYTES_MAX else None
            at = self._base + (len(self._window) if cut is None else cut)
            if not self._more():
                return None
        return None

    def _more(self) -> bool:
        """Read another piece; False at the end of the file."""
        piece = b"" if self._is_at_end else self._file.read(max(PIECE_BYTES, len(self._window) // 4))
        self._is_at_end = not piece
        self._window += piece
        return bool(piece)
