"""What an import costs: python -m tests.bench.importing DIR MEGABYTES

DIR keeps a file shaped as ChatGPT's export between two runs: conversations of 4 to 60 messages of a sentence to a page,
a third of them not in ASCII. In one run, each in a process of its own: msgspec alone on the whole file (the parser that
is under it), the reading (entries and records, nothing written), and `convmem import` beside a daemon. Each with MB/s,
messages/s where there are any, and the most memory that it held.

Goals: reading at 20 MB/s or more, 300 MB of memory at most, 10,000 messages/s into the store.
"""

import json
import os
import random
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from convmem.importers.chatgpt import CHATGPT
from convmem.importers.model import Notes
from convmem.importers.sources import found
from tests.bench.load import table
from tests.support.commands import command
from tests.support.daemons import daemon

SEED = 8
WORDS = (
    "a sentence that somebody wrote ",
    "データベースを毎晩移してください。",
    'and "quotes" {with} braces ',
    "ข้อความ ",
)


def made(path: Path, megabytes: int) -> Path:
    """The file, if it is not there yet."""
    if path.exists():
        return path
    dice, number = random.Random(SEED), 0
    with path.open("w", encoding="utf-8") as file:
        file.write("[")
        while file.tell() < megabytes * 1_000_000:
            file.write(("," if number else "") + json.dumps(conversation(dice, number)))
            number += 1
        file.write("]")
    return path


def conversation(dice: random.Random, number: int) -> Any:
    mapping: dict[str, Any] = {}
    count = dice.randint(4, 60)
    for place in range(count):
        content = {"content_type": "text", "parts": ["".join(dice.choices(WORDS, k=dice.randint(1, 60)))]}
        message = {
            "id": f"{number}-{place}",
            "author": {"role": "assistant" if place % 2 else "user", "name": None, "metadata": {}},
            "create_time": 1.6e9 + number * 100 + place,
            "content": content,
            "status": "finished_successfully",
            "metadata": {"model_slug": "m", "timestamp_": "absolute"},
            "recipient": "all",
        }
        parent = f"n{place - 1}" if place else None
        mapping[f"n{place}"] = {"id": f"n{place}", "message": message, "parent": parent, "children": [f"n{place + 1}"]}
    facts = {"title": f"conversation {number}", "create_time": 1.6e9 + number * 100, "update_time": 1.6e9}
    return {**facts, "mapping": mapping, "conversation_id": f"c{number}", "current_node": f"n{count - 1}"}


def measured(what: str, path: Path) -> None:
    """One step, in this process: its seconds, its messages and its memory on stdout."""
    count = 0
    began = time.perf_counter()
    if what == "msgspec":
        import msgspec

        msgspec.json.decode(path.read_bytes())
    else:
        for entry in list(CHATGPT.entries(list(found([path])), Notes())):
            count += sum(1 for _ in entry.read())
    seconds = time.perf_counter() - began
    print(json.dumps([seconds, count, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024]))


def main(directory: Path, megabytes: int) -> None:
    """Measure all of it and print the table."""
    directory.mkdir(parents=True, exist_ok=True)
    path = made(directory / f"chatgpt-{megabytes}.json", megabytes)
    size_mb, rows = path.stat().st_size / 1e6, []
    messages = 0
    for what in ("msgspec", "reading"):
        done = subprocess.run(
            [sys.executable, "-m", "tests.bench.importing", what, str(path)], capture_output=True, text=True, check=True
        )
        seconds, messages, memory_mb = json.loads(done.stdout)
        rows.append([what, f"{size_mb / seconds:,.0f}", f"{messages / seconds:,.0f}", f"{memory_mb:,}"])
    with daemon(directory / "data", "--bind", "127.0.0.1:0") as running:
        began = time.perf_counter()
        arguments = ["import", str(path), "--json", "--data-dir", str(directory / "data")]
        process = subprocess.Popen(command(*arguments), cwd="/", env={}, stdout=subprocess.PIPE)
        assert process.stdout is not None
        facts = json.loads(process.stdout.read())
        _, _, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - began
        count = facts["stored"] + facts["same"]
        rows.append(["import", f"{size_mb / seconds:,.0f}", f"{count / seconds:,.0f}", f"{usage.ru_maxrss // 1024:,}"])
        assert running.process is not None
        status = Path(f"/proc/{running.process.pid}/status").read_text().split("VmHWM:")[1].split()[0]
    title = f"{size_mb:,.0f} MB, {messages:,} messages, {facts['stored']:,} stored; daemon {int(status) // 1024} MB"
    table(title, ("step", "MB/s", "messages/s", "MB held"), rows)


if __name__ == "__main__":
    if sys.argv[1] in ("msgspec", "reading"):
        measured(sys.argv[1], Path(sys.argv[2]))
    else:
        main(Path(sys.argv[1]), int(sys.argv[2]))
