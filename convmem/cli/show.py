"""convmem show: one message whole, or one conversation from its beginning."""

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from convmem.cli.asking import Ask, asker
from convmem.cli.printing import print_json, print_text, when
from convmem.cli.start import URL, AsJSON, DataDir, TokenFile
from convmem.errors import Invalid, NotFound

MESSAGE_ID_LENGTH = 26


def show(
    context: typer.Context,
    wanted: Annotated[str, typer.Argument(metavar="ID", help="of a message, or of a session")],
    as_json: AsJSON = False,
    url: URL = None,
    token_file: TokenFile = None,
    data_dir: DataDir = None,
) -> None:
    """Show a message with all of its content, or all messages of a session."""
    ask = asker(context, data_dir=data_dir, url=url, token_file=token_file)
    count = 0
    for count, message in enumerate(_found(ask, wanted), start=1):
        if as_json:
            print_json(message)
            continue
        if count > 1:
            print_text("")
        print_text(f"{when(message['timestamp'])}  {message['role']}  {message['session_id']}  {message['message_id']}")
        print_text(message["content"])
    if count == 0:
        raise NotFound(f"there is no message and no session {wanted!r}", field="id")


def _found(ask: Ask, wanted: str) -> Iterator[dict[str, Any]]:
    """The message of this id; else the messages of this session in their order. Each with its whole content."""
    message = _message(ask, wanted) if len(wanted) == MESSAGE_ID_LENGTH else None
    if message is not None:
        yield _whole(ask, message)
        return
    cursor: dict[str, str] = {}
    while True:
        page = ask("read_messages", {"view": "history", "session_id": wanted, **cursor})
        for message in page["messages"]:
            yield _whole(ask, message)
        if not page.get("next_cursor"):
            return
        cursor = {"cursor": page["next_cursor"]}


def _message(ask: Ask, wanted: str) -> dict[str, Any] | None:
    arguments = {"view": "context", "message_id": wanted, "before": 0, "after": 0, "relation_depth": 0}
    try:
        message: dict[str, Any] = ask("read_messages", arguments)["target"]
    except (NotFound, Invalid):
        return None
    return message


def _whole(ask: Ask, message: dict[str, Any]) -> dict[str, Any]:
    """Put the content in place of its preview: read on slice by slice, all of the same revision."""
    if "content" in message:
        return message
    content, offset, is_at_end = "", 0, False
    while not is_at_end:
        part = ask(
            "read_messages",
            {
                "view": "content",
                "message_id": message["message_id"],
                "offset": offset,
                "limit": 65536,
                "expected_revision": message["revision"],
            },
        )
        content, offset, is_at_end = content + part["content"], part["next_offset"], part["eof"]
    kept = {name: value for name, value in message.items() if name not in {"content_preview", "total_bytes"}}
    return {**kept, "content": content}
