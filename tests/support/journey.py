"""What one client does with the daemon in a day, told once: every tool, every view, through whatever door it came.

Knows no client library: a door is a function that calls a tool. So the same journey is made by the official client of
today in both eras, by an old one, and by a program that only posts JSON. It leaves nothing behind but two messages of
its own project, and looks only at that project, so many journeys may share a daemon. Needs the standard library alone.
"""

import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, Protocol

FIRST, CHANGED = "Die Katze heißt Miso — 猫の名前は味噌 🐈\u2028\x00 end", "The cat is called Miso 🐈\x01 and is three"
SECOND = "How old is she?"
TOOLS = ("write_message", "update_message", "read_messages", "search_messages", "delete_message", "rebuild_index")

Report = Callable[[float, "float | None", "str | None"], Awaitable[None]]


class Answer(NamedTuple):
    """A tool's result: the structured facts, the text beside them, and whether it is a refusal."""

    facts: Mapping[str, Any]
    text: str
    refused: bool


class Door(Protocol):
    """Calls one tool; `report` is told of progress."""

    async def __call__(self, tool: str, arguments: Mapping[str, Any], report: Report | None = None) -> Answer: ...


class Journey:
    """One journey under a name of its own."""

    def __init__(self, door: Door, name: str) -> None:
        self.door = door
        self.name = name

    async def ask(self, tool: str, **arguments: Any) -> Mapping[str, Any]:
        """The facts of a call that must succeed; its text is the same object."""
        answer = await self.door(tool, arguments)
        assert not answer.refused, answer.text
        assert json.loads(answer.text) == answer.facts
        return answer.facts

    async def refused(self, tool: str, **arguments: Any) -> Mapping[str, Any]:
        """The error of a call that must be refused; its text begins with the code."""
        answer = await self.door(tool, arguments)
        assert answer.refused, answer.text
        error: Mapping[str, Any] = answer.facts["error"]
        assert answer.text == f"{error['code']}: {error['message']}"
        return error

    async def make(self) -> None:
        """The whole journey."""
        live_before = (await self.ask("get_system_health"))["live"]
        first, second = await self.write()
        await self.update(first)
        await self.read_in_five_views(first, second)
        await self.search(first)
        third = await self.delete()
        await self.rebuild()
        health = await self.ask("get_system_health")
        assert (health["status"], health["live"]) == ("ok", live_before + 2), health["reasons"]
        kept = await self.ask("read_messages", view="history", session_id=self.name)
        assert [message["message_id"] for message in kept["messages"]] == [first, second]
        assert third not in (first, second)

    async def write(self) -> tuple[str, str]:
        """Two messages, the second relating to the first; the same key makes the same message."""
        about = {"tags": ["pet", "100%_a,b"], "project": self.name}
        once = {"session_id": self.name, "role": "user", "content": FIRST, "metadata": about}
        receipt = await self.ask("write_message", **once, idempotency_key=f"{self.name}-1")
        assert receipt["sha256"] == hashlib.sha256(FIRST.encode()).hexdigest()
        assert receipt["revision"] == 1
        again = await self.ask("write_message", **once, idempotency_key=f"{self.name}-1")
        assert again == {**receipt, "replayed": True}
        related = {"project": self.name, "relations": [{"type": "asks about", "message_id": receipt["message_id"]}]}
        # Some clients send an object as the JSON text of it.
        second = await self.ask(
            "write_message",
            session_id=self.name,
            role="assistant",
            content=SECOND,
            metadata=json.dumps(related),
        )
        assert int(second["sequence"]) > int(receipt["sequence"])
        return receipt["message_id"], second["message_id"]

    async def update(self, message_id: str) -> None:
        """A change under a guard, the same change again, and one whose guard is outdated."""
        change = {"message_id": message_id, "content": CHANGED, "metadata": {"tags": None, "summary": "the cat"}}
        changed = await self.ask("update_message", **change, expected_revision=1)
        assert (changed["revision"], set(changed["changed"])) == (2, {"content", "metadata.tags", "metadata.summary"})
        unchanged = await self.ask("update_message", **change)
        assert (unchanged["revision"], unchanged["changed"]) == (2, [])
        error = await self.refused("update_message", **change, expected_revision=1)
        assert (error["code"], error["current_revision"]) == ("CONFLICT", 2)

    async def read_in_five_views(self, first: str, second: str) -> None:
        history = await self.ask("read_messages", view="history", session_id=self.name, order="desc", limit=1)
        assert [message["message_id"] for message in history["messages"]] == [second]
        rest = await self.ask(
            "read_messages",
            view="history",
            session_id=self.name,
            order="desc",
            limit=1,
            cursor=history["next_cursor"],
        )
        assert [message["content"] for message in rest["messages"]] == [CHANGED]
        assert rest["messages"][0]["metadata"]["summary"] == "the cat"
        text, piece = "", {"eof": False, "next_offset": 0}
        while not piece["eof"]:
            assert piece["next_offset"] == len(text.encode())
            piece = await self.ask(
                "read_messages", view="content", message_id=first, offset=piece["next_offset"], limit=10
            )
            assert piece["content"]
            text += piece["content"]
        assert text == CHANGED
        context = await self.ask("read_messages", view="context", message_id=second.lower())
        assert context["target"]["content"] == SECOND
        assert [message["message_id"] for message in context["before"]] == [first]
        assert [link["message_id"] for link in context["relations"]["outgoing"]] == [first]
        (session,) = (await self.ask("read_messages", view="sessions", project=self.name))["sessions"]
        assert (session["session_id"], session["count"], session["summary"]) == (self.name, 2, "the cat")
        lines = (await self.ask("read_messages", view="export", project=self.name))["lines"]
        assert [json.loads(line)["content"] for line in lines] == [CHANGED, SECOND]
        assert not any(separator in line for line in lines for separator in "\n\r\u2028\u2029")

    async def search(self, first: str) -> None:
        """Upper case, and a character that the text holds after U+0001; the old text finds nothing."""
        found = await self.ask("search_messages", query="MISO 🐈", project=self.name, context_after=1)
        (hit,) = [result for result in found["results"] if result["exact"]]
        assert hit["message_id"] == first
        assert [CHANGED[start:end] for start, end in hit["match_ranges"]] == ["Miso 🐈"]
        assert [message["content"] for message in hit["after"]] == [SECOND]
        assert (await self.ask("search_messages", query="猫", project=self.name))["results"] == []

    async def delete(self) -> str:
        """One more message, and it is gone; a guard and a second time are refused."""
        gone = await self.ask("write_message", session_id=self.name, role="system", content="forget this")
        message_id: str = gone["message_id"]
        assert (await self.refused("delete_message", message_id=message_id, session_id="other"))["code"] == (
            "SESSION_MISMATCH"
        )
        assert (await self.ask("delete_message", message_id=message_id, session_id=self.name))["deleted"] is True
        assert (await self.refused("delete_message", message_id=message_id))["code"] == "NOT_FOUND"
        assert (await self.refused("read_messages", view="content", message_id=message_id))["code"] == "NOT_FOUND"
        found = await self.ask("search_messages", query="forget this", session_id=self.name)
        assert found["results"] == []
        return message_id

    async def rebuild(self) -> None:
        """Progress rises up to the whole, and comes before the answer."""
        reports: list[tuple[float, float | None]] = []

        async def report(done: float, total: float | None, sentence: str | None) -> None:
            assert sentence
            reports.append((done, total))

        answer = await self.door("rebuild_index", {}, report)
        assert not answer.refused, answer.text
        assert isinstance(answer.facts["rebuilt"], bool)
        if answer.facts["rebuilt"]:
            assert reports
            assert reports == sorted(reports)
            assert reports[-1][0] == reports[-1][1]
