"""What a user keeps in tables of his own shape, as one domain: each table's file is the truth of its rows."""

from convmem.domain import Domain
from convmem.tables import decide, resources, tools

DOMAIN = Domain(
    name="tables",
    create="",
    deciders={},
    appliers={},
    table_deciders=decide.TABLE_DECIDERS,
    tools=tools.TOOLS,
    resources=resources.RESOURCES,
    resource_tables=resources.tables,
)
