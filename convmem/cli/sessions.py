"""convmem sessions: the conversations, newest first."""

from typing import Annotated, Any

import typer

from convmem.cli.asking import asker
from convmem.cli.printing import print_json, print_table, when
from convmem.cli.start import URL, AsJSON, DataDir, TokenFile

COLUMNS = ("last", "messages", "session", "summary")


def sessions(
    context: typer.Context,
    project: Annotated[str | None, typer.Option("--project", metavar="NAME", help="only of this project")] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", help="at most so many (1..500)")] = 50,
    as_json: AsJSON = False,
    url: URL = None,
    token_file: TokenFile = None,
    data_dir: DataDir = None,
) -> None:
    """List the conversations."""
    ask = asker(context, data_dir=data_dir, url=url, token_file=token_file)
    arguments: dict[str, Any] = {"view": "sessions", "limit": limit}
    if project is not None:
        arguments["project"] = project
    facts = ask("read_messages", arguments)
    if as_json:
        print_json(facts)
        return
    print_table(
        COLUMNS,
        (
            (when(found["last_at"]), str(found["count"]), found["session_id"], _summary(found))
            for found in facts["sessions"]
        ),
    )


def _summary(found: dict[str, Any]) -> str:
    """What the session is about, marked where it is cut; empty where nothing says."""
    return found.get("summary") or (found["summary_preview"] + "…" if "summary_preview" in found else "")
