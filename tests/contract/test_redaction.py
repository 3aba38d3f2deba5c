"""What is a secret and what is not: cases that the daemon and the plugin share, and the plugin's copy of the table.

The plugin's file is made from ours: CONVMEM_UPDATE=1 rewrites it, a stale one fails.
"""

import json
import os
import random
import re
import subprocess
from pathlib import Path

import pytest
from detect_secrets.core.scan import scan_line
from detect_secrets.settings import default_settings

from convmem.redact import MARK, NAME_DIGEST_HEX, ROUNDS_MAX, redact, redact_name
from convmem.redact.patterns import PATTERNS
from tests.support.node import PLUGIN, compiled, node
from tests.support.texts import NASTY
from tests.support.vectors import Secret, innocent, secrets

UPDATE = os.environ.get("CONVMEM_UPDATE") == "1"
COPY = PLUGIN / "redaction.ts"
SECRETS, INNOCENT = secrets(), innocent()
TEXTS_ALIKE, SEED = 3_000, 20261201

CLASS = re.compile(r"\[(?:\\.|[^\]\\])*\]")
ESCAPE = re.compile(r"\\(?:x[0-9a-f]{2}|u[0-9a-f]{4}|.)")
IN_CLASS = re.compile(rf"({ESCAPE.pattern})|([A-Za-z])(?:-([A-Za-z]))?|.", re.DOTALL)

PLUGIN_CODE = """\
// Which parts of a text are secrets, and what stands in their place. Made from the daemon's own table
// (CONVMEM_UPDATE=1 pytest tests/contract/test_redaction.py rewrites it): change that one, not this.

import { createHash } from "node:crypto"

type Pattern = Readonly<{ kind: string; cues: readonly string[]; keeps: boolean; source: string }>

const MARK = "%(mark)s"
const ROUNDS_MAX = %(rounds)d
const NAME_DIGEST_HEX = %(digits)d

// One of `cues` is in every text, put in lower case, that holds such a secret. What the first group of `source` holds
// stays, if it `keeps` anything; the rest of the match becomes the placeholder.
const PATTERNS: readonly Pattern[] = [
%(patterns)s
]

const shapes = new Map<string, RegExp>()

function shapeOf(pattern: Pattern): RegExp {
  const known = shapes.get(pattern.source)
  if (known) return known
  const shape = new RegExp(pattern.source, "gu")
  shapes.set(pattern.source, shape)
  return shape
}

function once(text: string): string {
  const lower = text.toLowerCase()
  for (const pattern of PATTERNS) {
    if (!pattern.cues.some((cue) => lower.includes(cue))) continue
    const placed = `${MARK}${pattern.kind}]`
    text = text.replace(shapeOf(pattern), (_, kept: unknown) => (pattern.keeps ? `${kept ?? ""}${placed}` : placed))
  }
  return text
}

/** The text, with `[REDACTED:kind]` in the place of every secret; what is redacted already stays as it is. */
export function redact(text: string): string {
  for (let round = 0; round < ROUNDS_MAX; round++) {
    const after = once(text)
    if (after === text) break
    text = after
  }
  return text
}

/** An identifier without its secrets. One that held any ends in a digest of it, so that two names stay two. */
export function redactName(text: string): string {
  const known = text.match(new RegExp(`^([^]*)-[0-9a-f]{${NAME_DIGEST_HEX}}$`, "u"))?.[1]
  if (known?.includes(MARK) && redact(known) === known) return text
  const redacted = redact(text)
  if (redacted === text) return text
  return `${redacted}-${createHash("sha256").update(text).digest("hex").slice(0, NAME_DIGEST_HEX)}`
}
"""
DRIVER = """\
import { readFileSync } from "node:fs"
import { redact, redactName } from "./redaction.js"
const texts = JSON.parse(readFileSync(0, "utf8"))
process.stdout.write(JSON.stringify(texts.map((text) => [redact(text), redactName(text)])))
"""


def javascript(source: str) -> str:
    """A regular expression of ours for JavaScript: letters of both cases are spelled out, needless escapes go."""
    pieces, folding, at = [], [False], 0
    while at < len(source):
        if escape := ESCAPE.match(source, at):
            pieces.append(escape[0][1:] if escape[0][1] in "\"'`" else escape[0])
            at = escape.end()
        elif found := CLASS.match(source, at):
            pieces.append(in_both_cases(found[0]) if folding[-1] else in_one_case(found[0]))
            at = found.end()
        elif source.startswith("(?i:", at):
            folding.append(True)
            pieces.append("(?:")
            at += 4
        else:
            one = source[at]
            if one == "(":
                folding.append(folding[-1])
            elif one == ")":
                folding.pop()
            is_letter = folding[-1] and one.isascii() and one.isalpha()
            pieces.append(f"[{one.lower()}{one.upper()}]" if is_letter else one)
            at += 1
    assert folding == [False]
    return "".join(pieces)


def in_one_case(found: str) -> str:
    """A class of characters without needless escapes."""
    return re.sub(r"\\([\"'`])", r"\1", found)


def in_both_cases(found: str) -> str:
    """A class of characters with the other case of each of its letters."""

    def both(one: re.Match[str]) -> str:
        last = f"-{one[3]}" if one[3] else ""
        return one[0] if not one[2] else f"{one[2]}{last}{one[2].swapcase()}{last.swapcase()}"

    return in_one_case(IN_CLASS.sub(both, found))


def plugin_copy() -> str:
    """The plugin's file as our table says it."""
    patterns = []
    for pattern in PATTERNS:
        keeps = re.compile(pattern.source).groups > 0
        facts = {"kind": pattern.kind, "cues": pattern.cues, "keeps": keeps, "source": javascript(pattern.source)}
        patterns.append(
            "  { "
            + ", ".join(f"{name}: {json.dumps(fact, ensure_ascii=False)}" for name, fact in facts.items())
            + " },"
        )
    facts = {"mark": MARK, "rounds": ROUNDS_MAX, "digits": NAME_DIGEST_HEX, "patterns": "\n".join(patterns)}
    return PLUGIN_CODE % facts


@pytest.fixture(scope="module")
def in_plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The plugin's copy, compiled, behind a script that redacts the texts it is handed."""
    folder = compiled([COPY], tmp_path_factory.mktemp("redaction") / "made")
    (folder / "driver.mjs").write_text(DRIVER, encoding="utf-8")
    return folder / "driver.mjs"


def by_plugin(driver: Path, texts: list[str]) -> list[tuple[str, str]]:
    """Each text as the plugin redacts it, as a text and as a name."""
    ran = subprocess.run([node(), str(driver)], input=json.dumps(texts).encode(), capture_output=True, timeout=300)
    assert ran.returncode == 0, ran.stderr.decode()
    return [(text, name) for text, name in json.loads(ran.stdout)]


@pytest.fixture(scope="module")
def cases_by_plugin(in_plugin: Path) -> dict[str, str]:
    """Every case as the plugin redacts it."""
    texts = [*(case.text for case in SECRETS), *INNOCENT]
    return dict(zip(texts, (text for text, _ in by_plugin(in_plugin, texts)), strict=True))


def some_texts() -> list[str]:
    """Texts of pieces of all cases and of what breaks careless code, cut anywhere; the same every time."""
    source = random.Random(SEED)
    cases = [*(case.text for case in SECRETS), *INNOCENT, *(pattern.kind for pattern in PATTERNS)]
    pieces = [*(piece for case in cases for piece in re.findall(r"[\w.-]+|\W", case)), *NASTY, *cases]
    return ["".join(source.choices(pieces, k=source.randint(1, 12))) for _ in range(TEXTS_ALIKE)]


def named(case: Secret | str) -> str:
    return case.name if isinstance(case, Secret) else ascii(case)[:60]


def test_there_are_enough_cases_and_each_is_its_own():
    assert len({case.name for case in SECRETS}) == len(SECRETS) >= 120
    assert len(set(INNOCENT)) == len(INNOCENT) >= 120
    for case in SECRETS:
        assert case.must_not_hold, case.name
        assert all(part in case.text for part in (*case.must_not_hold, *case.must_hold)), case.name


@pytest.mark.parametrize("case", SECRETS, ids=named)
def test_a_secret_is_gone_and_the_rest_stays(case: Secret):
    assert_redacted(case, redact(case.text))
    assert redact(case.redacted) == case.redacted


@pytest.mark.parametrize("text", INNOCENT, ids=named)
def test_an_innocent_text_stays(text: str):
    assert redact(text) == text


def assert_redacted(case: Secret, after: str) -> None:
    assert not [part for part in case.must_not_hold if part in after]
    assert not [part for part in case.must_hold if part not in after]
    assert after == case.redacted


def found_by_another(text: str) -> set[str]:
    """What detect-secrets finds line by line; without its entropy, which takes words and paths for secrets too."""
    with default_settings():
        found = [secret for line in text.splitlines() for secret in scan_line(line)]
    return {secret.secret_value for secret in found if secret.secret_value and "Entropy" not in secret.type}


@pytest.mark.parametrize("case", SECRETS, ids=named)
def test_what_another_scanner_finds_is_gone(case: Secret):
    after = redact(case.text)
    assert not [value for value in found_by_another(case.text) if value in after]


def test_the_other_scanner_finds_much_of_it():
    assert sum(bool(found_by_another(case.text)) for case in SECRETS) >= 50


def test_the_plugin_has_the_table_of_the_daemon():
    text = plugin_copy()
    if UPDATE:
        COPY.write_text(text, encoding="utf-8")
    assert COPY.is_file(), "the plugin has no copy: CONVMEM_UPDATE=1 writes it"
    assert text == COPY.read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("case", SECRETS, ids=named)
def test_the_plugin_takes_the_secret_out_too(case: Secret, cases_by_plugin: dict[str, str]):
    assert_redacted(case, cases_by_plugin[case.text])


@pytest.mark.slow
@pytest.mark.parametrize("text", INNOCENT, ids=named)
def test_the_plugin_leaves_an_innocent_text_too(text: str, cases_by_plugin: dict[str, str]):
    assert cases_by_plugin[text] == text


@pytest.mark.slow
def test_the_plugin_and_the_daemon_redact_any_text_alike(in_plugin: Path):
    texts = some_texts()
    expected = [(redact(text), redact_name(text)) for text in texts]
    assert sum(text != after for text, (after, _) in zip(texts, expected, strict=True)) > TEXTS_ALIKE // 10
    for text, ours, theirs in zip(texts, expected, by_plugin(in_plugin, texts), strict=True):
        assert theirs == ours, ascii(text)


@pytest.mark.slow
@pytest.mark.parametrize("unit", ['password="', "-----BEGIN PRIVATE KEY-----", "eyJ", '\\"', "token: a\n"], ids=ascii)
def test_the_plugin_gets_through_a_long_text(unit: str, in_plugin: Path):
    text = unit * (200_000 // len(unit))
    assert by_plugin(in_plugin, [text]) == [(redact(text), redact_name(text))]
