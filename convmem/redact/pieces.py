"""Pieces of regular expressions that every shape of a secret is put together from.

All are written in what Python and JavaScript read alike, because the plugin's copy is made from them: no `\\b`, `\\s`
or `\\w`, which also stop at the wrong place next to scripts without spaces; letters of both cases only in `(?i:…)`; no
escape that is not needed. Every loop is bounded, or eats what its next round cannot begin with, so time grows with the
text alone.

Rejected: `re.VERBOSE` (JavaScript has none), and a class of one character per script (compiling it costs 0.3 ms each).
"""

# A placeholder, also one that a cut has left without its end.
PLACED = r"\[REDACTED:[a-z_]{0,32}[\]…]"
# The end of the text; `$` would also stand before a last newline.
STOP = r"(?![\s\S])"
NOT_IN_WORD = "(?<![A-Za-z0-9])"
WORD, HEX, BASE64, ID = "A-Za-z0-9", "0-9a-f", "A-Za-z0-9+/=", "A-Za-z0-9_-"
NEWLINE = r"(?:\r?\n|\r)"
# The end of a line, also as JSON writes it in a string.
LINE_END = r"(?:\r?\n|\r|(?:\\{1,4}r)?\\{1,4}n)"
# A newline, as it is or as JSON and the shell write it, and the indentation of the next line.
BREAK = rf"(?:\\?{NEWLINE}|(?:\\{{1,2}}r)?\\{{1,2}}n)[ \t]{{0,16}}"

# Space in a line, as wide as any script or editor makes it. A look ahead keeps what follows out of one big class.
GAP = r"(?:[ \t\u00a0]|[\u2000-\u200b\u202f]|(?=\u3000)\u3000){0,16}"
EQUALS = "(?:=|(?=＝)＝)"
COLON = "(?::|(?=：)：)"
EITHER = "(?:[:=]|(?=：)：|(?=＝)＝)"
# What a value without quotes is made of, and what stands inside of one but does not end it.
SIGN = r"A-Za-z0-9!#$%*+/=?@^_~\u00c0-\u00ff-"
MARK = r".,;:()\[\]{}&|"
ONE = rf"(?:[{SIGN}]|(?![;&,][A-Za-z_])[{MARK}](?=[{MARK}]{{0,3}}[{SIGN}]))"


def rest(of: str, least: int = 6) -> str:
    """The rest of a key behind a line break: no word of prose, no date, and no name with a value."""
    return (
        rf"{BREAK}(?![0-9]{{4}}-[0-9]{{2}})(?=[{of}]{{0,63}}[0-9]|[A-Z]{{12}}|[A-Za-z]{{16}}|[{of}]{{20}})"
        rf"[{of}]{{{least},}}={{0,2}}(?![={of}]|[ \t]{{0,8}}[=:(/]|\.[A-Za-z])"
    )


def open_ended(of: str, least: int) -> str:
    """A key of `least` characters or more, and its rest if a line break split it."""
    return rf"(?:[{of}]{{{least},}}(?:{rest(of)})?|[{of}]{{0,{least - 1}}}{rest(of, least)})"


def exact(of: str, length: int, least: int) -> str:
    """A key of `length` characters that line breaks may split anywhere, or `least` of them on one line.

    Where the characters are capitals and digits, a split key holds a digit: capitals alone are a list of words.
    """
    has_digit = "" if "a-z" in of else rf"(?=[\r\n\\ \tnr{of}]{{0,{length}}}[0-9])"
    split = rf"{has_digit}(?:(?:{BREAK})?[{of}]){{{length}}}[{of}]*"
    return rf"(?:[{of}]{{{length},}}|{split}|[{of}]{{{least},}})"
