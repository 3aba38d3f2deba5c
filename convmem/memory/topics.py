"""What prompts are about: the words that stand in most of them, each counted once a prompt.

A word is counted folded and without its English ending, and shown as it is written most often. Words that stand
together whenever one of them is said are one topic: `unit test`, and above all what the dictionary cuts too small
(数据|库, ฐาน|ข้อมูล, 缓|存). So prompts are gone through twice, in the same order: `learn` finds who stands together,
`count` counts words and such compounds. A word between spaces counts inside a compound as well, unless it hardly ever
stands anywhere else; a piece of a word does not.

Memory is bounded: past a number of different words the rarer half of what was seen is forgotten, so a word may be
counted too low if it comes late and seldom, never too high. Rejected: lemmas and embeddings (a model), weighing by how
rare a word is elsewhere (there is no elsewhere), and single pairs in one pass (a compound of three comes out as two).
"""

import re
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import Stemmer  # type: ignore[import-not-found]

from convmem.limits import KEYWORD_CODE_POINTS_MAX, KEYWORD_WORDS_MAX, KEYWORDS_COUNTED_MAX
from convmem.memory.stop_words import stop_words
from convmem.memory.words import Word, cut, readable
from convmem.text import fold

# A compound stands in so many prompts at least, in that share of those that hold its rarer word, and of its commoner.
PROMPTS_MIN, OF_RARER, OF_COMMONER = 3, 0.8, 0.02
# A single letter is no word in these scripts either: it needs less to belong to what stands beside it; one that was
# seen once, only to another one that was seen nowhere else.
PROMPTS_MIN_OF_LETTERS, OF_RARER_OF_LETTERS = 2, 0.5
# A word that stands by itself less often, of all prompts that hold it, is shown in its compounds alone.
ALONE = 0.25

_APOSTROPHES = str.maketrans("", "", "'\u2019")
_POSSESSIVE = re.compile(r"['\u2019]s$")
_LETTER_OF_A_WORD = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003fffd\u0e01-\u0e2e]")
_HIRAGANA_ONLY = re.compile("[\u3041-\u309f]{1,2}")
# A verb or an adjective: one ideograph and its Japanese ending, or anything and the Chinese one of what is done.
_CONJUGATED = re.compile("[\u4e00-\u9fff][\u3041-\u309f]{1,2}|.+\u4e86")
# A piece of a Thai syllable: one consonant, maybe with a silent one; what ends with a vowel that needs a consonant
# behind it; what begins with a mark.
_HALF_SYLLABLE = re.compile(
    "[\u0e01-\u0e2e]?(?:[\u0e01-\u0e2e]\u0e4c)?[\u0e48-\u0e4b]*|.*[\u0e40-\u0e44\u0e47]|[\u0e30-\u0e3a\u0e45-\u0e4e].*"
)
_UNITS = "ms|s|sec|min|m|h|hr|hrs|d|kb|mb|gb|tb|k|px|em|rem|pt|x|st|nd|rd|th|am|pm"
_MEASURE = re.compile(rf"[0-9]+(?:\.[0-9]+)*(?:{_UNITS})")
_VERSION = re.compile(r"v?[0-9]+(?:[.\-][0-9]+)*(?:[.\-]?(?:a|b|rc|alpha|beta|dev|post|final)[0-9]*)?")
_TIME = re.compile(r"[0-9][0-9.:\-]*(?:t[0-9.:\-]+)?z?")
_HEX = re.compile("(?:0x)?(?=[a-f]*[0-9])[0-9a-f]{6,}|0x[0-9a-f]+")
_JOINERS = re.compile(r"[._\-\u2010]")
# Longer words with so many digits were made by a machine.
MADE_CODE_POINTS, MADE_DIGITS = 16, 4
# Stands in keys of compounds, before each word.
_WITHIN = "\x1f"
_LOCK = threading.Lock()


class Topic(NamedTuple):
    """A word or compound as it is shown, and how many prompts hold it."""

    text: str
    prompts: int


def is_topic(word: str) -> bool:
    """True if a reader would take this word for what something is about: no number, date, version, hash or id, nothing
    that only makes a sentence or a request, no single letter, no piece of a word.
    """
    folded = fold(word)
    return len(word) > 1 and folded[0].isalnum() and _says_something(folded) and not _is_piece(folded)


def _is_piece(folded: str) -> bool:
    return any(pattern.fullmatch(folded) for pattern in (_HIRAGANA_ONLY, _CONJUGATED, _HALF_SYLLABLE))


def _says_something(folded: str) -> bool:
    if (
        len(folded) > KEYWORD_CODE_POINTS_MAX
        or _key(folded) in _stems()
        or folded.translate(_APOSTROPHES) in stop_words()
    ):
        return False
    return not _is_number(folded)


def _is_number(folded: str) -> bool:
    together = _JOINERS.sub("", folded)
    if not any(letter.isalpha() and not letter.isnumeric() for letter in together):
        return True
    if not together.isascii():
        return False
    digits = sum(letter.isdigit() for letter in together)
    is_made = len(together) >= MADE_CODE_POINTS and digits >= MADE_DIGITS
    return is_made or any(
        pattern.fullmatch(form) for pattern in (_MEASURE, _VERSION, _TIME, _HEX) for form in (folded, together)
    )


class _Known(NamedTuple):
    """What is known of a word as written: what it is counted as, whether it is a topic, or may be part of one."""

    key: str
    is_topic: bool
    is_part: bool


_NOTHING = _Known("", is_topic=False, is_part=False)


def _known(text: str) -> _Known:
    return _NOTHING if len(text) > KEYWORD_CODE_POINTS_MAX else _looked_up(text)


@lru_cache(maxsize=1 << 15)
def _looked_up(text: str) -> _Known:
    folded = fold(text)
    is_word = len(text) > 1 or _LETTER_OF_A_WORD.match(text) is not None
    return _Known(_key(folded), is_topic(text), is_word and _says_something(folded))


def _key(folded: str) -> str:
    """A folded word without its English ending, if it can have one."""
    word = _POSSESSIVE.sub("", folded)
    if not (word.isascii() and word.isalpha()):
        return word
    with _LOCK:  # A stemmer keeps the word in itself while it works.
        return str(_stemmer().stemWord(word))


class Tally:
    """How many prompts hold each text; of at most `texts_max` texts, the more frequent ones."""

    def __init__(self, texts_max: int) -> None:
        self.counts: Counter[str] = Counter()
        self._texts_max = texts_max

    def add(self, texts: Iterable[str]) -> None:
        """One prompt holds these texts, each once."""
        self.counts.update(texts)
        while len(self.counts) > self._texts_max:
            ranked = sorted(self.counts.values())
            rare = ranked[(len(ranked) - 1) // 2]
            self.counts = Counter({text: count for text, count in self.counts.items() if count > rare})


class Topics:
    """The topics of prompts: `learn` each prompt, then `count` each prompt, then ask for the best."""

    def __init__(self, texts_max: int = KEYWORDS_COUNTED_MAX) -> None:
        self._words, self._pairs = Tally(texts_max), Tally(texts_max)
        self._written, self._alone = Tally(texts_max), Tally(texts_max)
        self._compounds: frozenset[str] | None = None

    def learn(self, prompt: str) -> None:
        """See which words of a prompt stand together."""
        text = readable(prompt)
        keys: set[str] = set()
        pairs: set[str] = set()
        before: Word | None = None
        for word in cut(text):
            known = _known(word.text)
            if not known.is_part:
                before = None
                continue
            keys.add(known.key)
            if before is not None and word.follows(before, text):
                pairs.add(_pair(_known(before.text).key, known.key))
            before = word
        self._words.add(keys)
        self._pairs.add(pairs)

    def count(self, prompt: str) -> None:
        """Count the words and compounds of a prompt."""
        written: dict[str, str] = {}
        alone: set[str] = set()
        text = readable(prompt)
        for chain in self._chains(text):
            if len(chain) == 1:
                alone.add(_known(chain[0].text).key)
            for key, form in _counted(chain, text):
                written.setdefault(key, form)
        self._written.add(f"{key}\0{form}" for key, form in written.items())
        self._alone.add(alone)

    def best(self, topics_max: int) -> list[Topic]:
        """The topics that most prompts hold; of two with the same number the one whose text comes first."""
        forms: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
        for both, count in self._written.counts.items():
            key, _, form = both.partition("\0")
            forms[key].append((-count, form))
        topics = [
            Topic(min(known)[1], prompts)
            for key, known in forms.items()
            if self._is_shown(key, prompts := -sum(count for count, _ in known))
        ]
        return sorted(topics, key=lambda topic: (-topic.prompts, topic.text))[:topics_max]

    def _is_shown(self, key: str, prompts: int) -> bool:
        return _is_compound(key) or self._alone.counts[key] >= ALONE * prompts

    def _chains(self, text: str) -> Iterator[list[Word]]:
        """The words that may be (part of) topics, those of a compound together."""
        chain: list[Word] = []
        for word in cut(text):
            known = _known(word.text)
            if not known.is_part:
                continue
            if chain and not self._belongs(word, chain, text):
                yield chain
                chain = []
            chain.append(word)
        if chain:
            yield chain

    def _belongs(self, word: Word, chain: list[Word], text: str) -> bool:
        if len(chain) == KEYWORD_WORDS_MAX or not word.follows(chain[-1], text):
            return False
        return _pair(_known(chain[-1].text).key, _known(word.text).key) in self._learned()

    def _learned(self) -> frozenset[str]:
        """The pairs that are compounds, found once all prompts have been learned."""
        if self._compounds is None:
            self._compounds = frozenset(pair for pair, count in self._pairs.counts.items() if self._is_one(pair, count))
            self._words, self._pairs = Tally(0), Tally(0)
        return self._compounds

    def _is_one(self, pair: str, count: int) -> bool:
        keys = pair.split("\0")
        rarer, commoner = sorted(self._words.counts[key] for key in keys)
        letters = sum(len(key) == 1 for key in keys)
        if letters:
            is_seen = count >= PROMPTS_MIN_OF_LETTERS or (letters == len(keys) and count == commoner)
            return is_seen and count >= OF_RARER_OF_LETTERS * rarer
        return count >= PROMPTS_MIN and count >= OF_RARER * rarer and count >= OF_COMMONER * commoner


def _counted(chain: list[Word], text: str) -> Iterator[tuple[str, str]]:
    """What a word or a compound is counted as, and how it is written; of a compound also its words, unless they may be
    pieces of one: nothing parts them, neither a space nor their scripts.
    """
    if len(chain) > 1:
        written = text[chain[0].start : chain[-1].end]
        if is_topic(written):
            keys = (_known(word.text).key for word in chain)
            yield _WITHIN + _WITHIN.join(keys), written
        if any(_is_glued(before, word) for before, word in pairwise(chain)):
            return
    for word in chain:
        if _known(word.text).is_topic:
            yield _known(word.text).key, _POSSESSIVE.sub("", word.text)


def _is_glued(before: Word, word: Word) -> bool:
    return word.start == before.end and not (word.text.isascii() or before.text.isascii())


def _is_compound(key: str) -> bool:
    return key.startswith(_WITHIN)


def _pair(left: str, right: str) -> str:
    return f"{left}\0{right}"


@lru_cache(maxsize=1)
def _stems() -> frozenset[str]:
    """The stop words without their English endings."""
    return frozenset(map(_key, stop_words()))


@lru_cache(maxsize=1)
def _stemmer() -> Any:
    # Without a cache of its own: what is known of words is kept here.
    return Stemmer.Stemmer("english", 0)
