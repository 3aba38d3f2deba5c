"""What the transports see of the daemon: one engine, its operators' verbs, and the files of records.

The one place that knows which verbs there are; each is a few lines that turn the arguments of a request into a call.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from typing import Any

from convmem import checking, exchange, maintenance, profiles, records
from convmem.access import StoreAccess
from convmem.distilling import Distilling
from convmem.domain import Origin
from convmem.engine import Engine
from convmem.errors import Invalid
from convmem.limits import RETENTION_DAYS_DEFAULT
from convmem.reach import Reach
from convmem.transport.gate import Progress, Run, Status, Verb, for_anybody


class Gateway:
    """The Gate of a real daemon (transport/gate.py)."""

    def __init__(
        self,
        engine: Engine,
        retention_days: int = RETENTION_DAYS_DEFAULT,
        hand_over: Callable[[], object] | None = None,
    ) -> None:
        """`hand_over` has this process let go of the store soon; None if it keeps it until it ends."""
        self._engine = engine
        self.distilling = Distilling(engine, retention_days)
        own = {} if hand_over is None else {"hand-over": Verb(for_anybody(agreed_to(hand_over)), names_paths=True)}
        self.verbs: Mapping[str, Verb] = {
            **own,
            "check": Verb(for_anybody(self._check)),
            "compact": Verb(for_anybody(self._compact)),
            "backup": Verb(for_anybody(engine.backups.back_up), names_paths=True),
            "backup-verify": Verb(for_anybody(engine.backups.verify), names_paths=True),
            "distill": Verb(self.distilling.distill),
            "profile": Verb(self._profile),
            "records": Verb(self._records),
            "tables": Verb(self._tables),
            "purge-history": Verb(self._purge_history),
        }

    def access(self, origin: Origin, progress: Progress | None, reach: Reach = "admin") -> StoreAccess:
        """What this caller may do, for one call."""
        return self._engine.access(origin, progress, reach)

    async def capture(self, arguments: Mapping[str, Any], origin: Origin) -> Mapping[str, Any]:
        """Store what a hook saw, and remember what it says of its spool."""
        await self._engine.ready()
        # Imported here: by now the engine has loaded its domains, and with them pydantic.
        from convmem.messages import capture

        body = capture.given(arguments)
        if body.spool is not None:
            self._engine.spools.note(origin, **body.spool.model_dump())
        return await capture.capture(self._engine.access(origin), body)

    def status(self) -> Status:
        """How the daemon is."""
        return self._engine.status()

    def export(self) -> AsyncGenerator[bytes, None]:
        """The store as JSON Lines, as it is at one moment."""
        return exchange.export(self._engine)

    async def take(self, body: AsyncIterator[bytes], arguments: Mapping[str, str]) -> Mapping[str, Any]:
        """Bring in the records that the body of a request holds."""
        return await exchange.upload(self._engine, body, arguments)

    async def _profile(self, arguments: Mapping[str, Any], progress: Progress, origin: Origin) -> Mapping[str, Any]:
        return await profiles.operate(self._engine.access(origin), arguments)

    async def _records(self, arguments: Mapping[str, Any], progress: Progress, origin: Origin) -> Mapping[str, Any]:
        return await records.taken(self._engine.access(origin), records.given(arguments))

    async def _tables(self, arguments: Mapping[str, Any], progress: Progress, origin: Origin) -> Mapping[str, Any]:
        # Imported here: by now the engine has loaded its domains.
        from convmem import table_operations

        refuse_arguments(arguments)
        return await table_operations.listed(self._engine.access(origin))

    async def _purge_history(
        self, arguments: Mapping[str, Any], progress: Progress, origin: Origin
    ) -> Mapping[str, Any]:
        from convmem import table_operations

        return await table_operations.purged(self._engine.access(origin), arguments, progress)

    async def _compact(self, arguments: Mapping[str, Any], progress: Progress) -> Mapping[str, Any]:
        refuse_arguments(arguments)
        return await maintenance.compact(self._engine, progress)

    async def _check(self, arguments: Mapping[str, Any], progress: Progress) -> Mapping[str, Any]:
        refuse_arguments(arguments)
        return await checking.check(self._engine, progress)


def agreed_to(hand_over: Callable[[], object]) -> Run:
    """The verb by which a daemon that starts asks for the store."""

    async def run(arguments: Mapping[str, Any], progress: Progress) -> Mapping[str, Any]:
        refuse_arguments(arguments)
        hand_over()
        return {"handed_over": True}

    return run


def refuse_arguments(arguments: Mapping[str, Any], *known: str) -> None:
    """Invalid with `field` for an argument that has no meaning: ignored, it would be a guard that is not there."""
    for name in arguments.keys() - set(known):
        raise Invalid(f"{name[:64]} is not an argument here", field=name[:64])
