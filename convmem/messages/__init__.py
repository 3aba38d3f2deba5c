"""What was said: the conversation log as one domain."""

from convmem.domain import Domain
from convmem.messages import check, decide, kept, lines, projection, queries, tools
from convmem.messages.create import CREATE
from convmem.messages.events import MessageWritten

DOMAIN = Domain(
    name="messages",
    create=CREATE,
    deciders=decide.DECIDERS,
    appliers=projection.APPLIERS,
    made_ids={MessageWritten: lambda event: event.message_id},
    live=kept.live,
    records=lambda connection: queries.totals(connection).live,
    record_types=(lines.MESSAGES,),
    waste=kept.waste,
    check=check.check,
    tools=tools.TOOLS,
)
