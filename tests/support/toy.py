"""A toy domain with every kind of tool, and a gate to it: the transports are tested without a store.

Notes live in a list. `toy_write` keeps one, `toy_read` shows them, `toy_steps` reports progress, `toy_flood` more of it
than a connection takes, `toy_wait` waits until the test lets it go, `toy_refuse` refuses as it is told, `toy_break` is
a fault of ours. The verbs do the same for operators; `/export` gives the notes as lines, `/import` takes lines in.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from typing import Any, Literal

from pydantic import Field

from convmem import catalog
from convmem.domain import Answer, Domain, Origin, Tool
from convmem.errors import Busy, Conflict, ConvmemError, StoreFailed
from convmem.inputs import Input, Whole
from convmem.reach import Reach
from convmem.transport.gate import CallAccess, Progress, Status, Verb, for_anybody


class Write(Input):
    """Keep a note."""

    text: str = Field(description="What to keep.")
    kind: Literal["plain", "urgent"] = Field(default="plain", description="How urgent it is.")
    limit: Whole = Field(default=1, ge=1, le=10, description="How often.")


class Nothing(Input):
    """No arguments."""


class Wait(Input):
    """Wait for the test."""

    name: str = Field(default="", description="The name under which to wait.")


class Refuse(Input):
    """Refuse in a given way."""

    how: Literal["conflict", "busy", "failed"] = Field(description="Which error to answer with.")


class Toy:
    """An Access and a Gate at once; what the tools did is in `notes` and `origins`."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.origins: list[Origin] = []
        self.status_now: Status = "ok"
        self.released = asyncio.Event()
        self.waiting = asyncio.Event()
        self.ended: list[str] = []
        self.asked: list[Any] = []
        self.refusal: ConvmemError | None = None
        self.export_ends_with: BaseException | None = None
        self.given = 0
        self.progress: Progress | None = None
        self.verbs: Mapping[str, Verb] = {
            "echo": Verb(for_anybody(self.echo)),
            "steps": Verb(for_anybody(self.count)),
            "flood": Verb(for_anybody(self.flood)),
            "wait": Verb(for_anybody(self.wait)),
            "refuse": Verb(for_anybody(self.refuse)),
            "refuse-late": Verb(for_anybody(self.refuse_late)),
            "break": Verb(for_anybody(self.break_down)),
            "path": Verb(for_anybody(self.echo), names_paths=True),
        }

    async def capture(self, arguments: Mapping[str, Any], origin: Origin) -> Mapping[str, Any]:
        """Note what came; refuses as it is told."""
        if self.refusal is not None:
            raise self.refusal
        self.asked.append(arguments)
        self.origins.append(origin)
        return {"stored": len(arguments.get("events", [])), "replayed": 0, "dropped": []}

    @property
    def redacts_everything(self) -> bool:
        return False

    def now_ms(self) -> int:
        return 0

    async def save_export(self, filename: str | None, pieces: Any) -> Mapping[str, Any]:
        raise AssertionError("a toy writes no files")

    async def echo(self, arguments: Mapping[str, Any], progress: Progress) -> Mapping[str, Any]:
        self.asked.append(arguments)
        self.progress = progress
        return {"echo": arguments}

    async def count(self, arguments: Mapping[str, Any], progress: Progress) -> Mapping[str, Any]:
        for done in range(1000):
            await progress(done, 1000, "counting")
        return {"counted": 1000}

    async def flood(self, arguments: Mapping[str, Any], progress: Progress) -> Mapping[str, Any]:
        """Tell more than a connection takes, as slowly as every line of it would be sent."""
        for done in range(arguments["lines"]):
            await progress(done, 0, "x" * arguments["bytes"])
            await asyncio.sleep(0)
        self.ended.append("flood")
        return {"flooded": True}

    async def wait(self, arguments: Mapping[str, Any], progress: Progress) -> Mapping[str, Any]:
        await progress(1, 2, "waiting")
        self.waiting.set()
        await self.released.wait()
        await progress(2, 2, "waited")
        self.ended.append("wait")
        return {"waited": True}

    async def refuse(self, arguments: Mapping[str, Any], progress: Progress) -> Mapping[str, Any]:
        assert self.refusal is not None
        raise self.refusal

    async def refuse_late(self, arguments: Mapping[str, Any], progress: Progress) -> Mapping[str, Any]:
        await progress(1, 2, "going well")
        assert self.refusal is not None
        raise self.refusal

    async def break_down(self, arguments: Mapping[str, Any], progress: Progress) -> Mapping[str, Any]:
        await progress(1, 2, "going well")
        raise AssertionError("a secret of the inside")

    async def export(self) -> AsyncGenerator[bytes]:
        """The notes as lines; behind them `export_ends_with` is raised, if it is set."""
        if self.refusal is not None:
            raise self.refusal
        try:
            for note in self.notes:
                self.given += 1
                yield note.encode() + b"\n"
            if self.export_ends_with is not None:
                raise self.export_ends_with
        finally:
            self.ended.append("export")

    async def take(self, body: AsyncIterator[bytes], arguments: Mapping[str, str]) -> Mapping[str, Any]:
        """Keep the lines once all have come; refused before the first is read, or at one that says "bad"."""
        self.asked.append(arguments)
        if self.refusal is not None:
            raise self.refusal
        pieces: list[bytes] = []
        async for piece in body:
            self.waiting.set()
            pieces.append(piece)
            if b"bad" in piece:
                raise Conflict("a line is bad", line=b"".join(pieces).split(b"bad")[0].count(b"\n") + 1)
        taken = b"".join(pieces).decode().split("\n")[:-1]
        self.notes += taken
        return {"taken": len(taken)}

    def access(self, origin: Origin, progress: Progress | None, reach: Reach = "admin") -> CallAccess:
        self.origins.append(origin)
        return ToyAccess(self, origin, progress, reach)

    def status(self) -> Status:
        return self.status_now


class ToyAccess:
    def __init__(self, toy: Toy, origin: Origin, progress: Progress | None, reach: Reach = "admin") -> None:
        self.toy = toy
        self.reach = reach
        self.origin = origin
        self.report = progress
        self.visits: list[tuple[str, float]] = []

    async def write(self, command: Any) -> Any:
        await asyncio.sleep(0)
        self.toy.notes.append(command.text)
        return len(self.toy.notes)

    async def read(self, query: Callable[..., Any], *arguments: Any) -> Any:
        return query(None, *arguments)

    async def rebuild(self) -> Mapping[str, Any]:
        return {}

    async def progress(self, done: float, total: float, sentence: str) -> None:
        if self.report:
            await self.report(done, total, sentence)

    def health(self) -> Mapping[str, Any]:
        return {}


async def write(access: Any, ask: Write) -> Answer:
    return Answer({"note_id": str(await access.write(ask)), "text": ask.text})


async def read(access: Any, ask: Nothing) -> Answer:
    access.visits.append(("look", 1.25))
    return Answer({"notes": list(access.toy.notes)}, f"{len(access.toy.notes)} notes")


async def steps(access: Any, ask: Nothing) -> Answer:
    for done in (0, 1, 1, 2):
        await access.progress(done, 2, f"step {done}")
    return Answer({"steps": 2})


async def flood(access: Any, ask: Nothing) -> Answer:
    for done in range(3000):
        await access.progress(done, 3000, "x" * 4000)
    access.toy.ended.append("flood")
    return Answer({"flooded": True})


async def wait(access: Any, ask: Wait) -> Answer:
    access.toy.waiting.set()
    try:
        await access.toy.released.wait()
    finally:
        access.toy.ended.append(ask.name)
    access.toy.notes.append(ask.name)
    return Answer({"waited": ask.name})


async def refuse(access: Any, ask: Refuse) -> Answer:
    raise {
        "conflict": Conflict("somebody was faster", current_revision=7),
        "busy": Busy("too much to do", retry_after_ms=100),
        "failed": StoreFailed("the disk is gone"),
    }[ask.how]


async def broken(access: Any, ask: Nothing) -> Answer:
    raise AssertionError("a secret of the inside")


def tool(name: str, input_class: type[Input], handle: Any, *, reads_only: bool) -> Tool:
    return Tool(
        name=name,
        title=name.replace("_", " "),
        description=f"Toy: {input_class.__doc__}",
        input=input_class,
        handle=handle,
        scope="read" if reads_only else "write",
        reads_only=reads_only,
        idempotent=reads_only,
    )


TOOLS = (
    tool("toy_write", Write, write, reads_only=False),
    tool("toy_read", Nothing, read, reads_only=True),
    tool("toy_steps", Nothing, steps, reads_only=True),
    tool("toy_flood", Nothing, flood, reads_only=True),
    tool("toy_wait", Wait, wait, reads_only=True),
    tool("toy_wait_write", Wait, wait, reads_only=False),
    tool("toy_refuse", Refuse, refuse, reads_only=True),
    tool("toy_break", Nothing, broken, reads_only=True),
)
DOMAIN = Domain(name="toy", create="", deciders={}, appliers={}, tools=TOOLS)
PROFILES = {"core": ("toy_write", "toy_read"), "messages": tuple(tool.name for tool in TOOLS)}


def toy_catalog() -> catalog.Catalog:
    """A catalog of the toy's tools, with profiles of its own."""
    return catalog.Catalog([DOMAIN], PROFILES)
