"""convmem search: messages that hold a text or words of it, best first."""

from typing import Annotated, Any

import typer

from convmem.cli.asking import asker
from convmem.cli.printing import print_json, print_table, when
from convmem.cli.start import URL, AsJSON, DataDir, TokenFile
from convmem.errors import SettingInvalid

COLUMNS = ("time", "role", "session", "message", "text")


def search(
    context: typer.Context,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="plain text; there is no query language")],
    session: Annotated[str | None, typer.Option("--session", metavar="ID", help="only in this session")] = None,
    project: Annotated[str | None, typer.Option("--project", metavar="NAME", help="only of this project")] = None,
    role: Annotated[str | None, typer.Option("--role", help="only user, assistant or system")] = None,
    match: Annotated[str | None, typer.Option("--match", help="auto, exact or any (of its words)")] = None,
    tag: Annotated[str | None, typer.Option("--tag", help="only with this tag")] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", help="at most so many (1..100)")] = 10,
    as_json: AsJSON = False,
    url: URL = None,
    token_file: TokenFile = None,
    data_dir: DataDir = None,
) -> None:
    """Search all conversations."""
    if any("\udc80" <= character <= "\udcff" for character in query):
        raise SettingInvalid("QUERY is not UTF-8; the terminal may be set to another encoding", setting="QUERY")
    ask = asker(context, data_dir=data_dir, url=url, token_file=token_file)
    filters = {"session_id": session, "project": project, "role": role, "match": match, "tag": tag}
    given: dict[str, Any] = {name: value for name, value in filters.items() if value is not None}
    facts = ask("search_messages", {"query": query, "limit": limit, **given})
    if as_json:
        print_json(facts)
        return
    if not facts["results"]:
        typer.echo("nothing found", err=True)
        return
    print_table(
        COLUMNS,
        (
            (when(found["timestamp"]), found["role"], found["session_id"], found["message_id"], found["snippet"])
            for found in facts["results"]
        ),
    )
