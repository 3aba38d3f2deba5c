"""What was said: the conversation log as one domain."""

from convmem.domain import Domain
from convmem.messages import check, decide, projection, tools
from convmem.messages.create import CREATE
from convmem.messages.events import MessageWritten

DOMAIN = Domain(
    name="messages",
    create=CREATE,
    deciders=decide.DECIDERS,
    appliers=projection.APPLIERS,
    made_ids={MessageWritten: lambda event: event.message_id},
    check=check.check,
    tools=tools.TOOLS,
)
