"""The seven tools of messages, as values: names and descriptions are what a model reads.

A handler only carries: commands go to the writer, questions to a reader, and what comes back is the answer. Health is
the one that must answer whatever happens: while the index is being made anew it says what needs no index.
"""

from collections.abc import Callable, Mapping
from typing import Any

import apsw

from convmem.domain import Access, Answer, Tool
from convmem.errors import OperatorError, RetryError
from convmem.messages import queries, search, sessions, transfer, views
from convmem.messages.cleaning import cleaned_message
from convmem.messages.inputs import (
    DeleteMessage,
    GetSystemHealth,
    ReadMessages,
    RebuildIndex,
    SearchMessages,
    UpdateMessage,
    WriteMessage,
)

VIEWS: Mapping[str, Callable[[apsw.Connection, ReadMessages], dict[str, Any]]] = {
    "history": views.history,
    "content": views.content,
    "context": views.context,
    "sessions": sessions.sessions,
    "export": transfer.export,
}


async def write_message(access: Access, ask: WriteMessage) -> Answer:
    """Leave the message with the writer."""
    return Answer(await access.write(cleaned_message(ask) if access.redacts_everything else ask))


async def update_message(access: Access, ask: UpdateMessage) -> Answer:
    """Leave the change with the writer."""
    return Answer(await access.write(cleaned_message(ask) if access.redacts_everything else ask))


async def delete_message(access: Access, ask: DeleteMessage) -> Answer:
    """Leave the deletion with the writer."""
    return Answer(await access.write(ask))


async def read_messages(access: Access, ask: ReadMessages) -> Answer:
    """Run the view on a reader."""
    return Answer(await access.read(VIEWS[ask.view], ask))


async def search_messages(access: Access, ask: SearchMessages) -> Answer:
    """Search on readers, step by step."""
    return Answer(await search.search(access, ask))


async def rebuild_index(access: Access, ask: RebuildIndex) -> Answer:
    """Let the store do it."""
    return Answer(await access.rebuild())


async def get_system_health(access: Access, ask: GetSystemHealth) -> Answer:
    """The daemon's facts, and the index's own counts unless it cannot be read now."""
    facts = dict(access.health())
    try:
        totals = await access.read(queries.totals)
    except (RetryError, OperatorError):
        return Answer(facts)
    return Answer(facts | totals._asdict())


TOOLS = (
    Tool(
        name="write_message",
        title="Write a message",
        description="Store one message of a conversation, durably and exactly as sent. Sizes are bytes of UTF-8.",
        input=WriteMessage,
        handle=write_message,
        scope="write",
        reads_only=False,
    ),
    Tool(
        name="update_message",
        title="Update a message",
        description="Change a stored message's content, metadata or both; session, role and timestamp never change. "
        "Returns the new revision and what changed; nothing is written if nothing changes.",
        input=UpdateMessage,
        handle=update_message,
        scope="write",
        reads_only=False,
        destructive=True,
        idempotent=True,
    ),
    Tool(
        name="read_messages",
        title="Read messages",
        description="Read stored conversations. Replies are bounded: go on with next_cursor; a text too long shows as "
        "content_preview, read it with view content.",
        input=ReadMessages,
        handle=read_messages,
        scope="read",
        reads_only=True,
        idempotent=True,
    ),
    Tool(
        name="search_messages",
        title="Search messages",
        description="Find messages in all sessions by content, summary or tags: any substring in any script; case, "
        "width and composition do not matter (NFKC and case folding). Exact hits first, then relevance; importance, "
        "then recency break ties.",
        input=SearchMessages,
        handle=search_messages,
        scope="read",
        reads_only=True,
        idempotent=True,
    ),
    Tool(
        name="delete_message",
        title="Delete a message",
        description="Delete one message for ever: it is gone from every read and search at once.",
        input=DeleteMessage,
        handle=delete_message,
        scope="write",
        reads_only=False,
        destructive=True,
        idempotent=True,
    ),
    Tool(
        name="rebuild_index",
        title="Rebuild the index",
        description="Compact: take what was deleted or superseded out of the files for ever, drop relations to deleted "
        "messages, make the index anew. Reads and writes go on; reports progress. Nothing to do: rebuilt false.",
        input=RebuildIndex,
        handle=rebuild_index,
        scope="admin",
        reads_only=False,
        idempotent=True,
    ),
    Tool(
        name="get_system_health",
        title="System health",
        description="Status of the memory daemon and its reasons: counts, sizes, last recovery, I/O counters, version.",
        input=GetSystemHealth,
        handle=get_system_health,
        scope="read",
        reads_only=True,
        idempotent=True,
    ),
)
