"""From the settings to what the domain of tables is given: where its tables are, and how much is kept beside them."""

from typing import TYPE_CHECKING

from convmem.config import Settings

if TYPE_CHECKING:
    from convmem.tables.mounts import Mounts


def load(settings: Settings) -> "Mounts":
    """The tables that these settings mean. Imported here: a daemon listens before it needs any."""
    from convmem.tables.history import Keeping
    from convmem.tables.mounts import Mounts
    from convmem.tables.places import Places, Single

    told = settings.tables
    single = None
    if told.schema is not None and told.database is not None:
        single = Single(told.schema, told.database)
    return Mounts(
        Places(
            user=told.user_dir,
            project=told.project_dir,
            single=single,
            working_directory=told.working_directory,
            keeping=Keeping(told.history_keep_recent, told.history_chunk_min),
            backups_kept=told.backup_retention,
            snapshots_kept=told.snapshot_retention,
            redacts=settings.redact == "all",
            upload=told.upload,
        )
    )
