"""The public conformance suite of the protocol against a real daemon, in both eras.

    python -m tests.conformance.run DIRECTORY [arguments for the suite]

DIRECTORY is where the suite was installed (README.md says how). Starts a daemon of its own on a free port of this
machine, with a temporary data directory and without a token, since the suite sends none. Exits with 0 if nothing
failed but what expected-failures.yml names, and if everything that it names still fails.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.daemons import daemon

BASELINE = Path(__file__).parent / "expected-failures.yml"
NODE = Path("node_modules", ".bin", "node")
SUITE = Path("node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js")

EXPECTING = ("--expected-failures", str(BASELINE))
# The sets that a revision of the protocol requires, and what must pass although the suite does not score it there.
RUNS: dict[str, tuple[str, ...]] = {
    "all of 2025-11-25": ("--requirements", "2025-11-25", *EXPECTING),
    "all of 2026-07-28": ("--requirements", "2026-07-28", *EXPECTING),
    "sessions of 2025-11-25": ("--scenario", "server-session-lifecycle", "--spec-version", "2025-11-25"),
    # Without a session id it only warns there, and a warning is no failure when a scenario is run by name.
    "streams of 2025-11-25": ("--scenario", "server-sse-multiple-streams", "--spec-version", "2025-11-25"),
    "headers of 2026-07-28": ("--scenario", "http-header-validation", "--spec-version", "2026-07-28"),
}


def main(directory: Path, more: list[str]) -> int:
    """Run everything; 0 if all went as expected, else 1."""
    for needed in (NODE, SUITE):
        if not (directory / needed).exists():
            print(f"{directory / needed} is not there: see {BASELINE.parent / 'README.md'}", file=sys.stderr)
            return 1
    statuses = {}
    with tempfile.TemporaryDirectory() as data_dir, daemon(Path(data_dir), "--profile", "all") as running:
        suite = [str(directory / NODE), str(directory / SUITE), "server", "--url", running.url]
        for name, arguments in RUNS.items():
            print(f"\n##### {name} #####", flush=True)
            statuses[name] = subprocess.run([*suite, *arguments, *more]).returncode
        status, journal = running.stop()
        statuses["the daemon"] = status or int("Traceback" in journal)
    print()
    for name, status in statuses.items():
        print(f"{name}: {'FAILED' if status else 'as expected'}")
    return int(any(statuses.values()))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1]).resolve(), sys.argv[2:]))
