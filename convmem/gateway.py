"""What the transports see of the daemon: one engine, its operators' verbs, and the files of records.

The one place that knows which verbs there are; each is a few lines that turn the arguments of a request into a call.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Any

from convmem import checking, exchange, maintenance
from convmem.access import StoreAccess
from convmem.domain import Origin
from convmem.engine import Engine
from convmem.errors import Invalid
from convmem.transport.gate import Progress, Status, Verb


class Gateway:
    """The Gate of a real daemon (transport/gate.py)."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.verbs: Mapping[str, Verb] = {
            "check": Verb(self._check),
            "compact": Verb(self._compact),
            "backup": Verb(engine.backups.back_up, names_paths=True),
            "backup-verify": Verb(engine.backups.verify, names_paths=True),
        }

    def access(self, origin: Origin, progress: Progress | None) -> StoreAccess:
        """What this caller may do, for one call."""
        return self._engine.access(origin, progress)

    def status(self) -> Status:
        """How the daemon is."""
        return self._engine.status()

    def export(self) -> AsyncGenerator[bytes, None]:
        """The store as JSON Lines, as it is at one moment."""
        return exchange.export(self._engine)

    async def take(self, body: AsyncIterator[bytes], arguments: Mapping[str, str]) -> Mapping[str, Any]:
        """Bring in the records that the body of a request holds."""
        return await exchange.upload(self._engine, body, arguments)

    async def _compact(self, arguments: Mapping[str, Any], progress: Progress) -> Mapping[str, Any]:
        refuse_arguments(arguments)
        return await maintenance.compact(self._engine, progress)

    async def _check(self, arguments: Mapping[str, Any], progress: Progress) -> Mapping[str, Any]:
        refuse_arguments(arguments)
        return await checking.check(self._engine, progress)


def refuse_arguments(arguments: Mapping[str, Any], *known: str) -> None:
    """Invalid with `field` for an argument that has no meaning: ignored, it would be a guard that is not there."""
    for name in arguments.keys() - set(known):
        raise Invalid(f"{name[:64]} is not an argument here", field=name[:64])
