"""convmem search: messages that hold a text or words of it, best first."""

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Any

import typer

from convmem.cli.asking import ask_explained, asker
from convmem.cli.printing import print_json
from convmem.cli.results import print_results
from convmem.cli.start import URL, AsJSON, DataDir, TokenFile
from convmem.errors import SettingInvalid

TOOL = "search_messages"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MS = timedelta(milliseconds=1)
DAY_MS, SECOND_MS = 86_400_000, 1_000
# Digits that are a year or a date: as milliseconds they were all in one night of 1970, and nobody means those.
LOOKS_LIKE_A_DATE = re.compile("(19|20)[0-9]{2}([0-9]{2}){0,2}")


def _filter(flag: str, metavar: str, sentence: str) -> Any:
    return typer.Option(flag, metavar=metavar, help=sentence)


def search(
    context: typer.Context,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="plain text; there is no query language")],
    match: Annotated[str | None, _filter("--match", "HOW", "auto, exact or any (of its words)")] = None,
    session: Annotated[str | None, _filter("--session", "ID", "only in this session")] = None,
    project: Annotated[str | None, _filter("--project", "NAME", "only of this project")] = None,
    role: Annotated[str | None, _filter("--role", "ROLE", "only user, assistant or system")] = None,
    kind: Annotated[str | None, _filter("--kind", "KIND", "only of this memory_kind, for example semantic")] = None,
    tier: Annotated[str | None, _filter("--tier", "TIER", "only of this memory_tier: short, mid or long")] = None,
    tag: Annotated[str | None, _filter("--tag", "TAG", "only with this tag")] = None,
    min_importance: Annotated[
        int | None, _filter("--min-importance", "N", "only of this importance or more (0..100)")
    ] = None,
    since: Annotated[
        str | None, _filter("--since", "TIME", "from then on: 2026-01-31, 2026-01-31T08:00 (UTC), or ms since 1970")
    ] = None,
    until: Annotated[str | None, _filter("--until", "TIME", "up to the end of that day or second, or that ms")] = None,
    limit: Annotated[int, _filter("--limit", "N", "at most so many (1..100)")] = 10,
    context_before: Annotated[int, _filter("--context-before", "N", "with so many messages before each (0..10)")] = 0,
    context_after: Annotated[int, _filter("--context-after", "N", "with so many messages behind each (0..10)")] = 0,
    explain: Annotated[
        bool, typer.Option("--explain", help="say how each was found, and what the search took")
    ] = False,
    as_json: AsJSON = False,
    url: URL = None,
    token_file: TokenFile = None,
    data_dir: DataDir = None,
) -> None:
    """Search all conversations."""
    texts = {"match": match, "session_id": session, "project": project, "role": role, "kind": kind, "tier": tier}
    given = {"query": query, **texts, "tag": tag, "min_importance": min_importance, "limit": limit}
    given |= {"since": _ms("--since", since, to_its_end=False), "until": _ms("--until", until, to_its_end=True)}
    given |= {"context_before": context_before or None, "context_after": context_after or None}
    arguments = {name: value for name, value in given.items() if value is not None}
    _refuse_what_is_not_utf_8(arguments)
    facts: Mapping[str, Any]
    stages = None
    if explain:
        facts, stages = ask_explained(context, TOOL, arguments, data_dir=data_dir, url=url, token_file=token_file)
    else:
        facts = asker(context, data_dir=data_dir, url=url, token_file=token_file)(TOOL, arguments)
    if not as_json:
        print_results(facts, stages)
    elif stages is None:
        print_json(facts)
    else:
        print_json({**facts, "stages": [{"stage": stage, "ms": round(ms, 3)} for stage, ms in stages]})


def _refuse_what_is_not_utf_8(arguments: Mapping[str, Any]) -> None:
    """Text of the command line that could not be decoded would be refused by whoever parses the request."""
    for name, value in arguments.items():
        if isinstance(value, str) and any("\udc80" <= character <= "\udcff" for character in value):
            shown = "QUERY" if name == "query" else "--" + name.removesuffix("_id")
            raise SettingInvalid(f"{shown} is not UTF-8; the terminal may be set to another encoding", setting=shown)


def _ms(option: str, text: str | None, *, to_its_end: bool) -> int | None:
    """A date, a time or a number of ms, as ms since 1970; with `to_its_end` the last of that day or second.

    A time without a zone is UTC, as results show it.
    """
    if text is None:
        return None
    if re.fullmatch("[0-9]{1,18}", text) and not LOOKS_LIKE_A_DATE.fullmatch(text):
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
        is_day = _is_day(text)
    except ValueError:
        example = "2026-01-31, 2026-01-31T08:00, 2026-01-31T08:00+02:00 or a number of ms since 1970"
        raise SettingInvalid(f"{option} must be like {example}", setting=option) from None
    at_ms = ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - EPOCH) // MS
    if to_its_end and not re.search("[.,]", text):
        at_ms += (DAY_MS if is_day else SECOND_MS) - 1
    return at_ms


def _is_day(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True
