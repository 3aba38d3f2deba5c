"""Laws of redaction, for any secret in any text: the secret is gone, the rest is there, and once is enough."""

import re
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convmem.redact import redact, redact_name
from tests.support.texts import NASTY, texts
from tests.support.vectors import innocent, secrets

pytestmark = pytest.mark.slow

WORD, HEX = string.ascii_letters + string.digits, "0123456789abcdef"
ID, CAPITALS = WORD + "-_", string.ascii_uppercase + string.digits
# What a key begins with, what it is made of, and how long that is.
SHAPES = (
    *(("sk-", WORD, 48), ("sk-proj-", ID, 60), ("sk-ant-api03-", ID, 90), ("sk-or-v1-", HEX, 64), ("gsk_", WORD, 52)),
    *(
        ("ghp_", WORD, 36),
        ("ghs_", WORD, 36),
        ("github_pat_", WORD + "_", 82),
        ("glpat-", ID, 20),
        ("AKIA", CAPITALS, 16),
    ),
    *(("xoxb-", WORD + "-", 50), ("xapp-1-", WORD + "-", 60), ("AIza", ID, 35), ("ya29.", ID, 60), ("GOCSPX-", ID, 28)),
    *(("sk_live_", WORD, 24), ("rk_live_", WORD, 24), ("whsec_", WORD, 32), ("npm_", WORD, 36), ("hf_", WORD, 34)),
    *(("pypi-AgEIcHlwaS5vcmc", ID, 60), ("SK", HEX, 32), ("dop_v1_", HEX, 64), ("dckr_pat_", ID, 27), ("hvs.", ID, 90)),
    *(("1234567890:AA", ID, 33), ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJmYWtlIn0.", ID, 43), ("shpat_", HEX, 32)),
)
OF_KNOWN_LENGTH = [shape for shape in SHAPES if shape[0] in {"ghp_", "ghs_", "npm_", "AIza", "glpat-", "AKIA"}]
NAMES = (
    "password",
    "DB_PASSWORD",
    "api_key",
    "x-api-key",
    "clientSecret",
    "access_token",
    "密码",
    "パスワード",
    "รหัสผ่าน",
)
# Texts around a secret: no digits and no signs that could belong to it, and nothing that is one itself.
AROUND = (
    "これは",
    "鍵",
    "です。",
    "คีย์",
    "นะครับ",
    "设备",
    "，",
    "（",
    "）",
    "、",
    "\U0001f511",
    "é",
    "ß",
    "see docs",
    "and so on",
)
MARKS = (
    " ",
    "  ",
    "\n",
    "\t",
    "\r\n",
    "\u2028",
    "\u3000",
    "\0",
    "\ufeff",
    "。",
    "「",
    "」",
    "か",
    "ำ",
    "中",
    "\U0001f600",
    '"',
    "'",
    "(",
)
surroundings = st.lists(st.sampled_from((*AROUND, *MARKS)), max_size=8).map("".join)
edges = st.sampled_from(MARKS)
# A quote right behind a value may belong to it.
ends = st.sampled_from([mark for mark in MARKS if mark not in "\"'("])
# Without what is no value: a variable, and one mark or letter again and again.
signs = st.text(WORD + "!#$%*+/?@^_~-", min_size=1, max_size=40).filter(
    lambda value: not re.fullmatch(r"\$[A-Za-z0-9_]+|%\w+%?|[xX]+|\*+", value)
)
inside_quotes = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\"'\\\r\n`"), min_size=1, max_size=40
)
CASES = [*(case.text for case in secrets()), *innocent()]
PIECES = tuple(dict.fromkeys(piece for case in CASES for piece in re.findall(r"[\w.-]+|\W", case)))
broken = st.lists(st.sampled_from((*PIECES, *CASES, *NASTY)), max_size=12).map("".join)


@st.composite
def keys(draw: st.DrawFn, shapes: tuple[tuple[str, str, int], ...] | list[tuple[str, str, int]] = SHAPES) -> str:
    """A key as a vendor makes them; each holds a digit and a letter."""
    prefix, alphabet, length = draw(st.sampled_from(shapes))
    return (
        prefix + draw(st.text(alphabet, min_size=length - 2, max_size=length - 2)) + ("A7" if "A" in alphabet else "a7")
    )


def without_placeholders(text: str) -> list[str]:
    return re.split(r"\[REDACTED:[a-z_]+\]", text)


@given(surroundings, edges, keys(), edges, surroundings)
@settings(derandomize=True, max_examples=1_500)
def test_a_key_is_gone_from_any_text_and_the_text_is_there(before: str, first: str, key: str, last: str, after: str):
    redacted = redact(before + first + key + last + after)
    assert without_placeholders(redacted) == [before + first, last + after]


@given(surroundings, keys(OF_KNOWN_LENGTH), st.data(), surroundings)
@settings(derandomize=True, max_examples=500)
def test_a_key_of_known_length_is_gone_wherever_a_line_break_splits_it(
    before: str, key: str, data: st.DataObject, after: str
):
    start = next(len(prefix) for prefix, _, _ in OF_KNOWN_LENGTH if key.startswith(prefix))
    at = data.draw(st.integers(start, len(key) - 1))
    text = f"{before} {key[:at]}\n{key[at:]} {after}"
    assert without_placeholders(redact(text)) == [f"{before} ", f" {after}"]


@given(
    surroundings, edges, st.sampled_from(NAMES), st.sampled_from(["=", " = ", "＝", ":="]), signs, ends, surroundings
)
@settings(derandomize=True, max_examples=1_000)
def test_a_value_behind_an_equals_sign_is_gone(
    before: str, first: str, name: str, between: str, value: str, last: str, after: str
):
    redacted = redact(f"{before}{first}{name}{between}{value}{last}{after}")
    assert redacted == f"{before}{first}{name}{between}[REDACTED:credential]{last}{after}"


@given(surroundings, st.sampled_from(NAMES), st.integers(0, 3), inside_quotes, surroundings)
@settings(derandomize=True, max_examples=1_000)
def test_a_value_in_json_of_any_depth_is_gone(before: str, name: str, depth: int, value: str, after: str):
    quote = "\\" * (2**depth - 1) + '"'
    kept = f"{quote}, {quote}n{quote}: 1}} {after}"
    redacted = redact(f"{before} {{{quote}{name}{quote}: {quote}{value}{kept}")
    if depth == 0 or "&" not in value:
        assert redacted == f"{before} {{{quote}{name}{quote}: {quote}[REDACTED:credential]{kept}"


@given(surroundings, st.text(WORD + "!$*+._~-", min_size=1, max_size=30), surroundings)
@settings(derandomize=True, max_examples=300)
def test_a_password_in_a_url_is_gone_and_the_host_is_there(before: str, password: str, after: str):
    redacted = redact(f"{before}postgres://ann:{password}@db.example.com/shop {after}")
    assert redacted == f"{before}postgres://ann:[REDACTED:url_password]@db.example.com/shop {after}"


@given(broken | texts)
@settings(derandomize=True, max_examples=3_000)
def test_once_is_enough(text: str):
    assert redact(redact(text)) == redact(text)
    assert redact_name(redact_name(text)) == redact_name(text)


@given(broken | texts)
@settings(derandomize=True, max_examples=1_000)
def test_redaction_only_takes_away(text: str):
    at = 0
    for kept in without_placeholders(redact(text)):
        at = text.index(kept, at) + len(kept)
