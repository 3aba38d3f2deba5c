"""How fast secrets are taken out of texts, and what the first text of a process waits: python -m tests.bench.redaction

Goals: 1 MiB of the worst text for any pattern within a second, a prompt within a millisecond, patterns for one prompt
compiled within ten.
"""

import re
import time
from collections.abc import Callable
from pathlib import Path

from convmem.limits import MIB
from convmem.redact import redact
from convmem.redact.patterns import PATTERNS
from tests.bench.load import table

REPOSITORY = Path(__file__).parents[2]
ROUNDS, OFTEN, SHORT = 3, 200, (100, 500, 4_000)
PROMPT = "Why does the login fail? The token is read from the environment: DB_PASSWORD=hunter2 psql -h db.example.com. "
# Repeated, each is what some pattern begins to read and then leaves, or what it has most to do with.
WORST = (
    *("a", "password", "password=", 'password="', "password: ", "password: str=", "-----BEGIN ", "sk-", "eyJ", "://"),
    *("-----BEGIN PRIVATE KEY-----", '"', "\\", '\\"', '{"password": ["', "<password>x</", "--token ", "eyJaaaaaa\n"),
    *("token:\n", "token:                ", "[REDACTED:", "password=[REDACTED:x]", "=", ".", "%3D", "token%25", "「"),
    *("AKIA\n", "ghp_a\n", "SG.aaaaaaaaaaaaaaaaaaaa", "パスワード", "日本語", "PASSWORD '", "-u a:", "0123456789:"),
)


def seconds(run: Callable[[], object]) -> float:
    """The shortest of some runs, in CPU time: others share the machine."""
    taken = []
    for _ in range(ROUNDS):
        begun = time.process_time()
        run()
        taken.append(time.process_time() - begun)
    return min(taken)


def seconds_often(text: str) -> float:
    """Seconds to redact a text that is too short to be timed once."""

    def run() -> None:
        for _ in range(OFTEN):
            redact(text)

    return seconds(run) / OFTEN


def compiling(text: str) -> float:
    """Seconds to compile what a text needs."""
    lower = text.lower()
    needed = [pattern.source for pattern in PATTERNS if any(cue in lower for cue in pattern.cues)]

    def run() -> None:
        re.purge()
        for source in needed:
            re.compile(source, re.ASCII)

    return seconds(run)


def repeated(text: str) -> str:
    return (text * (MIB // len(text) + 1))[:MIB]


def texts() -> dict[str, str]:
    """What people and tools really send, 1 MiB each."""
    code = "".join(path.read_text(encoding="utf-8") for path in sorted((REPOSITORY / "convmem/store").glob("*.py")))
    docs = "".join(path.read_text(encoding="utf-8") for path in sorted((REPOSITORY / "convmem/docs").glob("*.md")))
    thai = "ฉันต้องการให้ระบบจำสิ่งที่เราคุยกันเมื่อวานนี้ "
    return {"code": repeated(code), "docs": repeated(docs), "Thai": repeated(thai), "prompts": repeated(PROMPT)}


def main() -> None:
    """Print all tables."""
    everything = "".join(cue for pattern in PATTERNS for cue in pattern.cues)
    rows = [
        (name, f"{compiling(text) * 1e3:.1f}") for name, text in (("a prompt", PROMPT), ("every secret", everything))
    ]
    table("Patterns compiled", ["for", "ms"], rows)
    rows = [(str(length), f"{seconds_often(repeated(PROMPT)[:length]) * 1e6:.0f}") for length in SHORT]
    table("Short texts", ["characters", "µs"], rows)
    rows = [(name, f"{MIB / 1e6 / seconds(lambda text=text: redact(text)):.1f}") for name, text in texts().items()]
    table("Texts of 1 MiB", ["of", "MB/s"], rows)
    worst = sorted(((seconds(lambda unit=unit: redact(repeated(unit))), unit) for unit in WORST), reverse=True)
    table("Texts of 1 MiB, made to be slow", ["of", "s"], [(ascii(unit), f"{taken:.2f}") for taken, unit in worst])


if __name__ == "__main__":
    main()
