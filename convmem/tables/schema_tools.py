"""The tools for tables as such: looking for them, making them, changing and removing them, several things at once.

One change of schemas runs at a time (`changing`); rows go on meanwhile.
"""

from convmem.domain import Access, Answer
from convmem.tables import batching, schema_changes, snapshots
from convmem.tables.inputs import Reload
from convmem.tables.mounts import mounts_of
from convmem.tables.offering import writes
from convmem.tables.schema_inputs import DataSnapshot, SchemaBatch, SchemaCreate, SchemaDelete, SchemaUpdate


async def reload(access: Access, ask: Reload) -> Answer:
    """Mount what is there now."""
    mounts = await mounts_of(access)
    return Answer((await mounts.reload(access)).facts())


async def schema_create(access: Access, ask: SchemaCreate) -> Answer:
    """Make a table."""
    mounts = await mounts_of(access)
    async with mounts.changing:
        return Answer(await schema_changes.created(access, mounts, ask))


async def schema_update(access: Access, ask: SchemaUpdate) -> Answer:
    """Change a schema."""
    mounts = await mounts_of(access)
    async with mounts.changing:
        return Answer(await schema_changes.updated(access, mounts, ask))


async def schema_delete(access: Access, ask: SchemaDelete) -> Answer:
    """Take a table away."""
    mounts = await mounts_of(access)
    async with mounts.changing:
        return Answer(await schema_changes.deleted(access, mounts, ask))


async def schema_batch(access: Access, ask: SchemaBatch) -> Answer:
    """Do several things to one table."""
    mounts = await mounts_of(access)
    return Answer(await batching.done(access, mounts, ask))


async def data_snapshot(access: Access, ask: DataSnapshot) -> Answer:
    """Copy tables."""
    mounts = await mounts_of(access)
    return Answer(await snapshots.taken(access, mounts, ask))


TOOLS = (
    writes(
        "reload",
        "Reload tables",
        "Look for new, changed and removed tables; tells which are broken and why.",
        Reload,
        reload,
        scope="admin",
        destructive=False,
    ),
    writes(
        "schema_create",
        "Create a table",
        "Make a table of the user's or the project's.",
        SchemaCreate,
        schema_create,
        scope="admin",
        destructive=False,
    ),
    writes(
        "schema_update",
        "Update a schema",
        "Declare a table's fields anew; rows stay as they are. A backup is made first.",
        SchemaUpdate,
        schema_update,
        scope="admin",
    ),
    writes(
        "schema_delete",
        "Delete a table",
        "Take a table away; a backup is made and the rows' file stays.",
        SchemaDelete,
        schema_delete,
        scope="admin",
    ),
    writes(
        "schema_batch",
        "Batch",
        "Do up to 1,000 operations on one table, all or none.",
        SchemaBatch,
        schema_batch,
        scope="admin",
    ),
    writes(
        "data_snapshot",
        "Take snapshots",
        "Copy tables while they are in use; keeps the newest, can upload them.",
        DataSnapshot,
        data_snapshot,
        destructive=False,
    ),
)
