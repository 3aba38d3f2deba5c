"""English words without their endings, one form for `plan`, `plans`, `planned`; and which of them say nothing.

Snowball's English stemmer, the C library; its form in Python takes half of the time of writing the tables of search.
Words of other languages in the same letters go through it too: what is asked is cut as what is stored.
Rejected: a stemmer for each language (nobody says which one a message is in) and lemmas (a model and megabytes).
"""

import threading
from functools import cache
from typing import Any

import Stemmer  # type: ignore[import-not-found]

# Which endings there are changes with the library.
STEMMER_VERSION = str(Stemmer.version())

# What is longer or shorter is no English word with an ending.
STEMMED_LETTERS = range(3, 33)
_LOCK = threading.Lock()
# What nearly every English text holds, or what only makes a sentence a question; as it is left without apostrophes.
_STOP_WORDS = (
    "a about after again all also am an and any are as at be been before being but by can could did do does "
    "doing done each for from get got had has have having he her here hers him his how i if in into is it its "
    "itself just let me my myself no nor not of on or our ours ourselves out over own please same shall she "
    "should so some such than that the their theirs them themselves then there these they this those through "
    "to too under until up us very was we were what when where which while who whom whose why will with would "
    "you your yours yourself dont doesnt didnt isnt arent wasnt werent cant couldnt wont wouldnt shouldnt "
    "hasnt havent hadnt im ive youre youve youll hes shes theyre theyve weve"
)


def stem(word: str) -> str:
    """A folded word without its English ending; as it is, if it does not consist of plain Latin letters."""
    if len(word) not in STEMMED_LETTERS or not (word.isascii() and word.isalpha()):
        return word
    with _LOCK:  # A stemmer keeps the word in itself while it works.
        return str(_stemmer().stemWord(word))


def root(stemmed: str) -> str:
    """What every word begins with that has become this: an ending may have changed the last letter (happy, happi), or
    the last two of three (dying, die).
    """
    return stemmed[:1] if len(stemmed) == len("die") and stemmed.endswith("ie") else stemmed[:-1] or stemmed


@cache
def _stemmer() -> Any:
    # Without a cache of its own: words are remembered where they are cut out of texts.
    return Stemmer.Stemmer("english", 0)


@cache
def stop_words() -> frozenset[str]:
    """The words that say nothing, without their endings."""
    return frozenset(map(stem, _STOP_WORDS.split()))
