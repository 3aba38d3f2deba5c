"""What hooks saw, sent to a daemon or into a data directory that nobody holds."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx

from convmem import stopping
from convmem.config import load
from convmem.daemon import alone
from convmem.domain import Origin
from convmem.messages import capture

ORIGIN = Origin("laptop", "http", "hook/1")


def event(number: int, content: str, **more: Any) -> dict[str, Any]:
    """One event; `number` makes it another one."""
    return {"event_id": f"e{number}", "kind": "prompt", "session_id": "s", "content": content} | more


def send(url: str, events: Sequence[dict[str, Any]], token: str | None = None) -> dict[str, Any]:
    """Post events to the daemon at HOST:PORT of this URL; its answer, which must be 200."""
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    place = url.removesuffix("/mcp") + "/capture"
    answer = httpx.post(place, json={"events": list(events)}, headers=headers, trust_env=False)
    assert answer.status_code == 200, answer.text
    facts: dict[str, Any] = answer.json()
    return facts


def fill(data_dir: Path, events: Sequence[dict[str, Any]]) -> None:
    """Put events into the store of a directory, which is made if it is not there."""

    async def run() -> None:
        async with alone(load({"data_dir": str(data_dir)}, {}, None)) as engine:
            await engine.ready()
            await capture.capture(engine.access(ORIGIN), capture.given({"events": list(events)}))

    stopping.run(run())
