"""What a search says of itself: how each result came to its score, which ways were gone, and what each step took.

Every line is a label and a sentence. What is shown adds up: scores are rounded to hundredths, and the largest part
takes what rounding leaves.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

# What a query of the search does, by its function's name; one that is not here is shown by that.
STAGES: Mapping[str, str] = {
    "_position": "where the tables stand",
    "find": "exact, by the tables",
    "tail": "what the tables do not know yet",
    "slice_of_all": "row by row",
    "_ranked_by_tables": "by relevance, by the tables",
    "_ranked_by_rows": "by relevance, row by row",
    "_answer": "the answer",
}
Line = tuple[str, str]


def score_of(found: Mapping[str, Any]) -> str:
    """The score of a result as people read it."""
    return _shown(round(found["score"] * 100))


def way_of(found: Mapping[str, Any]) -> str:
    """How a result was found, in one word."""
    return "exact" if found["exact"] else "ranked"


def of_result(found: Mapping[str, Any]) -> Iterator[Line]:
    """How a result came to its score."""
    parts = {name: round(score * 100) for name, score in found["scores"].items()}
    parts[max(parts, key=parts.__getitem__)] += round(found["score"] * 100) - sum(parts.values())
    yield "score", f"{score_of(found)} = " + " + ".join(f"{name} {_shown(part)}" for name, part in parts.items())
    yield "matched", f"{way_of(found)}, in {', '.join(found['matched_fields'])}"
    if found.get("matched_neighbours"):
        yield "neighbours", " ".join(found["matched_neighbours"])


def of_search(facts: Mapping[str, Any], stages: Sequence[tuple[str, float]]) -> Iterator[Line]:
    """Which ways were gone, and what each stage took; the visits of one name are one stage."""
    yield "path", facts["path"]
    for name in dict.fromkeys(stage for stage, _ in stages):
        visits = [ms for stage, ms in stages if stage == name]
        count = f" in {len(visits)} visits" if len(visits) > 1 else ""
        yield "stage", f"{STAGES.get(name, name)}: {sum(visits):.1f} ms{count}"
    if stages:
        yield "stage", f"together: {sum(ms for _, ms in stages):.1f} ms"


def _shown(hundredths: int) -> str:
    return f"{hundredths / 100:.2f}"
