"""Secrets in texts: what puts a visible placeholder where one stands, and leaves the rest.

`redact("DB_PASSWORD=hunter2 psql")` is `DB_PASSWORD=[REDACTED:credential] psql`. Recall goes before precision: behind
`=` every value is taken, so `token = get_token()` loses the name of a function too, and a line of letters and digits
below a key is taken for the rest of it. What only refers to a value (`${DB_PASSWORD}`, `os.environ["X"]`) stays, and
prose does ("the token: see docs", "password: required"), with it a secret that is one plain lower-case word behind a
colon.

A pattern is compiled when the first text with a cue of it comes: most prompts of a hook that has just started need one
or none, so even `re` is imported only then.

Rejected: a library (importing one costs a hook 0.1 s), entropy (every hash, id and picture is a find), one large
alternation (every text would pay for every shape), and stopping after one round (a placeholder may lay bare the start
of what stood behind it, and a text must come out the same however often it is sent through).
"""

from __future__ import annotations

from convmem.redact.patterns import PATTERNS

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re

MARK = "[REDACTED:"
ROUNDS_MAX = 8
NAME_DIGEST_HEX = 16
HEX_DIGITS = frozenset("0123456789abcdef")

_compiled: dict[str, re.Pattern[str]] = {}


def redact(text: str) -> str:
    """Return `text` with `[REDACTED:kind]` in the place of every secret; what is redacted already stays as it is."""
    for _ in range(ROUNDS_MAX):
        after = _once(text)
        if after == text:
            break
        text = after
    return text


def redact_name(text: str) -> str:
    """Redact an identifier so that two names stay two.

    One that held a secret ends in `-` and NAME_DIGEST_HEX hexadecimal digits of its SHA-256, so the result may be
    longer than the name was; a name that has been through here stays as it is.
    """
    known, _, digest = text.rpartition("-")
    if MARK in known and len(digest) == NAME_DIGEST_HEX and HEX_DIGITS.issuperset(digest) and redact(known) == known:
        return text
    redacted = redact(text)
    if redacted == text:
        return text
    import hashlib

    return f"{redacted}-{hashlib.sha256(text.encode(errors='surrogatepass')).hexdigest()[:NAME_DIGEST_HEX]}"


def _once(text: str) -> str:
    lower = text.lower()
    for pattern in PATTERNS:
        if any(cue in lower for cue in pattern.cues):
            shape = _shape(pattern.source)
            kept = r"\g<1>" if shape.groups else ""
            text = shape.sub(f"{kept}{MARK}{pattern.kind}]", text)
    return text


def _shape(source: str) -> re.Pattern[str]:
    if source not in _compiled:
        import re

        _compiled[source] = re.compile(source, re.ASCII)
    return _compiled[source]
