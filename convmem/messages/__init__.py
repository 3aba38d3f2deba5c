"""What was said: the conversation log as one domain."""

from convmem.domain import Domain, Searchable
from convmem.messages import check, decide, kept, lines, projection, queries, search_check, search_tables, tools
from convmem.messages.create import CREATE
from convmem.messages.events import MessageKept, MessageWritten

SEARCH = Searchable(
    create=search_tables.CREATE,
    version=search_tables.VERSION,
    watermark=search_tables.read_watermark,
    feed=search_tables.feed,
    is_sound=search_check.is_sound,
    lag=search_tables.lag,
    check=search_check.check,
)

DOMAIN = Domain(
    name="messages",
    create=CREATE,
    deciders=decide.DECIDERS,
    appliers=projection.APPLIERS,
    made_ids={MessageWritten: lambda event: event.message_id},
    made_numbers={MessageWritten: lambda event: event.number or 0, MessageKept: lambda event: event.number or 0},
    live=kept.live,
    records=lambda connection: queries.totals(connection).live,
    record_types=(lines.MESSAGES,),
    waste=kept.waste,
    check=check.check,
    search=SEARCH,
    tools=tools.TOOLS,
)
