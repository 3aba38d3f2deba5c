"""Queries of every kind, made of what a store holds: what people look for is mostly there."""

import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from convmem.store import sqlite
from convmem.text import fold
from tests.bench import corpus

QUERIES, SAMPLE = 200, 3_000
STOP_WORDS = ["what", "did", "we", "say", "about", "the", "and", "how", "was", "it", "when", "you", "that", "for"]
LATIN_WORD = re.compile("[a-z]{4,}")
OTHER_LETTER = re.compile("[\u0e00-\u0e7f\u3040-\u30ff\u4e00-\u9fff]")
# What nearly everybody says, and yet no stop words.
COMMON_WORDS = """one like more know think need use time make want now only other see way work first new good well even
every data file code test error change two system problem name right still run agent memory search message session
index server client cache token user value list table number key line text write read find update delete"""


class Query(NamedTuple):
    """What is asked, and the message that should be found; None if any will do."""

    text: str
    message_id: str | None = None


class Stored(NamedTuple):
    """A message of the sample."""

    message_id: str
    content: str


def queries(data_dir: Path) -> dict[str, list[Query]]:
    """QUERIES of every kind, the same every time for the same store."""
    source = random.Random(corpus.SEED)
    sample = _sample(data_dir, source)
    english = [one for one in sample if len(_latin_words(one.content)) >= 15]
    other = [one for one in sample if len(OTHER_LETTER.findall(one.content)) > max(20, len(one.content) // 2)]
    common = _common(sample)
    makers: dict[str, Callable[[], Query]] = {
        "substring 5-12": lambda: _substring(source, sample, source.randint(5, 12)),
        "common substring": lambda: Query(source.choice(common)),
        "one code point": lambda: _substring(source, sample, 1),
        "two code points": lambda: _substring(source, sample, 2),
        "English question": lambda: _english_question(source, english),
        "CJK or Thai question": lambda: _clause(source, other),
        "common words": lambda: Query(" ".join(source.sample(COMMON_WORDS.split(), 10))),
        "absent word": lambda: Query("".join(source.choices("qxzjv", k=9))),
    }
    return {kind: [make() for _ in range(QUERIES)] for kind, make in makers.items()}


def _sample(data_dir: Path, source: random.Random) -> list[Stored]:
    (index,) = data_dir.glob("index-*.db")
    with closing(sqlite.connect_to_read(index)) as connection:
        first, last = next(connection.execute("SELECT min(sequence), max(sequence) FROM messages_message"))
        chosen = source.sample(range(first, last + 1), min(SAMPLE, last + 1 - first))
        row = "SELECT message_id, content FROM messages_message WHERE sequence = ?"
        return [Stored(*found) for at in chosen for found in connection.execute(row, (at,))]


def _latin_words(text: str) -> list[str]:
    return sorted(set(LATIN_WORD.findall(text.lower())) - set(STOP_WORDS))


def _substring(source: random.Random, sample: Sequence[Stored], length: int) -> Query:
    while True:
        text = source.choice(sample).content
        at = source.randrange(len(text))
        part = text[at : at + length]
        if len(part) == length and part.strip() == part:
            return Query(part)


def _english_question(source: random.Random, sample: Sequence[Stored]) -> Query:
    """Some words of a message and some stop words, in any order."""
    message_id, text = source.choice(sample)
    words = source.sample(_latin_words(text), source.randint(8, 12)) + source.sample(STOP_WORDS, 5)
    source.shuffle(words)
    return Query(" ".join(words), message_id)


def _clause(source: random.Random, sample: Sequence[Stored]) -> Query:
    """A part of a text in which two letters are others, so that it stands nowhere."""
    message_id, text = source.choice(sample)
    length = source.randint(12, 20)
    at = source.randrange(max(1, len(text) - length))
    letters = list(text[at : at + length])
    for place in source.sample(range(2, len(letters)), 2):
        letters[place] = source.choice(source.choice(sample).content)
    return Query("".join(letters), message_id)


def _common(sample: Sequence[Stored]) -> list[str]:
    """What stands in about a tenth of all texts."""
    held: Counter[str] = Counter()
    for _, text in sample:
        folded = fold(text)
        held.update({folded[at : at + length] for length in range(5, 13) for at in range(len(folded) - length + 1)})
    return sorted(part for part, count in held.items() if 0.07 < count / len(sample) < 0.14)
