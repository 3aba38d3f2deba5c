"""Whether search finds the message that answers a question: python -m tests.bench.search_quality DIRECTORY

The directory holds what others have published to measure this by; it is no part of the product:

    locomo-dev.json     conversations of two people over months, with questions whose evidence is known turn by turn. A
                        turn is a message, with the speaker as a prefix, at its session's date. recall@10 is the mean
                        share of a question's evidence among the first ten; hit@k is how often any of it is
    xquad.zh.json, jsquad.valid.json, iapp.test.jsonl
                        paragraphs in Chinese, Japanese and Thai with questions: a sentence is a message, found by the
                        question if it holds the answer. Measured without neighbours, which here are the same paragraph

Beside it, on the same messages: grep (the most words of the query as substrings, then the newest), and FTS5 with
`porter unicode61` and with `trigram`, asked for any of the query's words or trigrams, best first by bm25().

Goals: recall@10 0.78 over all five categories of questions; without adversarial ones hit@10 0.82, hit@1 0.41, mean
reciprocal rank 0.54; hit@10 Chinese 0.93, Japanese 0.89, Thai 0.85.
"""

import asyncio
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import apsw

from convmem.domain import Origin, Place
from convmem.messages import DOMAIN, scoring
from convmem.messages.events import MessageWritten
from convmem.text import fold
from tests.bench.load import table
from tests.support.indexed import Indexed

TOP = 10
ADVERSARIAL = 5
QUERY_CODE_POINTS_MAX = 256
THAI_SENTENCE_CODE_POINTS = 90
SENTENCE = re.compile(r"[^。！？!?\n]*[。！？!?\n]+|[^。！？!?\n]+")
NO_NEIGHBOURS = (0.0,) * len(scoring.BESIDE_WEIGHTS)

Search = Callable[[str], list[int]]


class Said(NamedTuple):
    """One message of a corpus."""

    session_id: str
    at_ms: int
    content: str


class Question(NamedTuple):
    """What is asked, and the messages that hold the answer, by their place in the corpus."""

    text: str
    evidence: frozenset[int]
    category: int


class Corpus(NamedTuple):
    """What is searched, and by what."""

    said: list[Said]
    questions: list[Question]


def conversations(path: Path) -> Iterator[Corpus]:
    """The conversations of locomo-dev.json, each a corpus. Questions without evidence are left out."""
    for sample in json.loads(path.read_text(encoding="utf-8")):
        turns: dict[str, int] = {}
        said = []
        for name, session in sample["conversation"].items():
            if not isinstance(session, list):
                continue
            date = sample["conversation"][f"{name}_date_time"]
            at = datetime.strptime(date, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
            for turn in session:
                turns[turn["dia_id"]] = len(said)
                content = f"{turn['speaker']}: {turn['text']}"
                said.append(Said(f"{sample['sample_id']} {name}", int(at.timestamp()) * 1000, content))
        questions = [
            Question(asked["question"], frozenset(evidence), asked["category"])
            for asked in sample["qa"]
            if (evidence := {turns[turn] for turn in _turns(asked.get("evidence", [])) if turn in turns})
        ]
        yield Corpus(said, questions)


def _turns(evidence: Sequence[str]) -> Iterator[str]:
    """The turns that a question's evidence names: also several in one text, D:11:26 and D30:05."""
    for text in evidence:
        for session, turn in re.findall(r"D:?(\d+):(\d+)", text):
            yield f"D{int(session)}:{int(turn)}"


def merged(corpora: Sequence[Corpus]) -> Corpus:
    """All of them as one."""
    said: list[Said] = []
    questions = []
    for corpus in corpora:
        first = len(said)
        said += corpus.said
        questions += [
            question._replace(evidence=frozenset(first + at for at in question.evidence))
            for question in corpus.questions
        ]
    return Corpus(said, questions)


def paragraphs(path: Path) -> Iterator[tuple[str, list[tuple[str, list[tuple[int, str]]]]]]:
    """The paragraphs of a set of questions, each with its questions and their answers (start, text)."""
    if path.suffix == ".jsonl":
        asked: dict[str, list[tuple[str, list[tuple[int, str]]]]] = {}
        for line in path.read_text(encoding="utf-8").split("\n"):
            if line:
                record = json.loads(line)
                answers = record["answers"]
                spans = list(zip(answers["answer_start"], answers["text"], strict=True))
                asked.setdefault(record["context"], []).append((record["question"], spans))
        yield from asked.items()
        return
    for article in json.loads(path.read_text(encoding="utf-8"))["data"]:
        for paragraph in article["paragraphs"]:
            yield (
                paragraph["context"],
                [
                    (asked["question"], [(answer["answer_start"], answer["text"]) for answer in asked["answers"]])
                    for asked in paragraph["qas"]
                ],
            )


def answered(path: Path, sentences: Callable[[str], Iterator[tuple[int, int]]]) -> Corpus:
    """The corpus of a set of questions; a paragraph is a session, a sentence a message."""
    said: list[Said] = []
    questions = []
    for number, (context, asked) in enumerate(paragraphs(path)):
        spans = [(start, end) for start, end in sentences(context) if context[start:end].strip()]
        first = len(said)
        said += [Said(f"paragraph {number}", number * 60_000, context[start:end].strip()) for start, end in spans]
        for text, answers in asked:
            held = frozenset(
                first + at
                for at, (start, end) in enumerate(spans)
                for answer_start, answer in answers
                if start < answer_start + len(answer) and answer_start < end
            )
            if held:
                questions.append(Question(text, held, 0))
    return Corpus(said, questions)


def by_marks(text: str) -> Iterator[tuple[int, int]]:
    """Sentences of Chinese and Japanese."""
    return (found.span() for found in SENTENCE.finditer(text))


def by_spaces(text: str) -> Iterator[tuple[int, int]]:
    """Parts of a Thai text: it has no marks, and its spaces stand between parts of sentences."""
    start = 0
    while start < len(text):
        space = re.compile(r"\s").search(text, start + THAI_SENTENCE_CODE_POINTS)
        end = space.end() if space else len(text)
        yield start, end
        start = end


def indexed(corpus: Corpus) -> Indexed:
    """A store of a corpus; the sequence of a message is its place and one."""
    store = Indexed()
    apply = DOMAIN.appliers[MessageWritten]
    with store.connection:
        for number, (session_id, at_ms, content) in enumerate(corpus.said, start=1):
            message_id = store.identifiers.next(number)
            written = MessageWritten(message_id=message_id, session_id=session_id, role="user", content=content)
            apply(store.connection, written, Place(number, at_ms, Origin("laptop", "http")))
    store.feed()
    return store


def ours(store: Indexed) -> Search:
    """The search of the product."""

    async def search(query: str) -> list[int]:
        facts = await store.call("search_messages", query=query[:QUERY_CODE_POINTS_MAX], limit=TOP)
        return [int(result["sequence"]) - 1 for result in facts["results"]]

    return lambda query: asyncio.run(search(query))


def grep(corpus: Corpus) -> Search:
    """The most words of the query as substrings, then the newest."""
    folded = [fold(said.content) for said in corpus.said]

    def search(query: str) -> list[int]:
        words = set(fold(query).split())
        counts = [(sum(word in text for word in words), at) for at, text in enumerate(folded)]
        return [at for count, at in sorted(counts, reverse=True)[:TOP] if count]

    return search


def fts5(corpus: Corpus, tokenizer: str, cut: Callable[[str], list[str]]) -> Search:
    """FTS5 as it comes: any part of the query, best first."""
    connection = apsw.Connection(":memory:")
    connection.execute(f"CREATE VIRTUAL TABLE t USING fts5(content, tokenize='{tokenizer}')")
    connection.executemany(
        "INSERT INTO t (rowid, content) VALUES (?, ?)", ((at, said.content) for at, said in enumerate(corpus.said))
    )

    def search(query: str) -> list[int]:
        parts = [f'"{part}"' for part in cut(query.replace('"', " "))]
        if not parts:
            return []
        rows = connection.execute(
            "SELECT rowid FROM t WHERE t MATCH ? ORDER BY rank LIMIT ?", (" OR ".join(parts), TOP)
        )
        return [at for (at,) in rows]

    return search


def trigrams(query: str) -> list[str]:
    """Every three code points."""
    return list(dict.fromkeys(query[at : at + 3] for at in range(len(query) - 2)))


class Quality(NamedTuple):
    """Means over questions."""

    recall: float
    hit: float
    hit_first: float
    reciprocal_rank: float
    questions: int

    @classmethod
    def of(cls, questions: Sequence[Question], answers: Sequence[Sequence[int]]) -> "Quality":
        """What the answers, places best first, are worth."""
        recall = hit = first = reciprocal = 0.0
        for question, places in zip(questions, answers, strict=True):
            ranks = [rank for rank, at in enumerate(places, start=1) if at in question.evidence]
            recall += len(ranks) / len(question.evidence)
            hit += bool(ranks)
            first += ranks[:1] == [1]
            reciprocal += 1 / ranks[0] if ranks else 0
        count = len(questions)
        return cls(recall / count, hit / count, first / count, reciprocal / count, count)

    def cells(self) -> list[str]:
        """For a table."""
        return [*(f"{value:.3f}" for value in self[:4]), str(self.questions)]


COLUMNS = ("", f"recall@{TOP}", f"hit@{TOP}", "hit@1", "MRR", "questions")


def searches(corpus: Corpus) -> dict[str, Search]:
    """The product and what it is measured beside."""
    return {
        "convmem": ours(indexed(corpus)),
        "grep": grep(corpus),
        "FTS5 porter": fts5(corpus, "porter unicode61", lambda query: re.findall(r"\w+", query)),
        "FTS5 trigram": fts5(corpus, "trigram", trigrams),
    }


def answers(search: Search, questions: Sequence[Question]) -> list[list[int]]:
    """What a search finds for each question."""
    return [search(question.text) for question in questions]


def measure_conversations(directory: Path) -> None:
    """Questions about conversations: each asked where it belongs, and all in one store."""
    corpora = list(conversations(directory / "locomo-dev.json"))
    for title, stores in (("a store for each", corpora), ("all in one store", [merged(corpora)])):
        questions = [question for corpus in stores for question in corpus.questions]
        found: dict[str, list[list[int]]] = {}
        for corpus in stores:
            for name, search in searches(corpus).items():
                found.setdefault(name, []).extend(answers(search, corpus.questions))
        rows, others = [], []
        for name, places in found.items():
            rows.append([name, *Quality.of(questions, places).cells()])
            both = [pair for pair in zip(questions, places, strict=True) if pair[0].category != ADVERSARIAL]
            others.append([f"{name}, not adversarial", *Quality.of(*zip(*both, strict=True)).cells()])
        table(f"conversations, {title}", COLUMNS, rows + others)


def measure_paragraphs(directory: Path) -> None:
    """Questions in scripts without spaces."""
    neighbours = scoring.BESIDE_WEIGHTS
    for name, sentences in (
        ("xquad.zh.json", by_marks),
        ("jsquad.valid.json", by_marks),
        ("iapp.test.jsonl", by_spaces),
    ):
        corpus = answered(directory / name, sentences)
        rows = []
        for searched, search in searches(corpus).items():
            scoring.BESIDE_WEIGHTS = NO_NEIGHBOURS
            rows.append([searched, *Quality.of(corpus.questions, answers(search, corpus.questions)).cells()])
            scoring.BESIDE_WEIGHTS = neighbours
        table(f"{name}, {len(corpus.said)} messages", COLUMNS, rows)


if __name__ == "__main__":
    measure_conversations(Path(sys.argv[1]))
    measure_paragraphs(Path(sys.argv[1]))
