"""One door each for disk, time, chance, SQLite and the MCP SDK; and what no module may do at all."""

import ast
from collections import Counter
from pathlib import Path

import pytest

from tests.support.source import calls, dotted, imports, modules, named, part, texts, tree

MODULES = modules()

# A call, and the one module that may make it. A name that starts with a dot is a method, whatever it is called on.
DOORS_BY_CALL = {
    "files.py": {
        *("open", "os.open", "os.fdopen", "os.fsync", "os.fdatasync", "os.write", "os.pwrite", "os.truncate"),
        *("os.ftruncate", "os.rename", "os.replace", "os.unlink", "os.remove", "os.mkdir", "os.makedirs", "io.open"),
        *("shutil.copyfile", "shutil.copyfileobj", "shutil.rmtree", "shutil.move"),
        *(".read_text", ".read_bytes", ".write_text", ".write_bytes", ".unlink", ".mkdir", ".touch"),
    },
    "clock.py": {
        *("os.urandom", "datetime.now", "datetime.utcnow", "datetime.today", "datetime.datetime.now"),
        *("datetime.datetime.utcnow", "date.today", "datetime.date.today"),
    },
    "store/sqlite.py": {"apsw.Connection"},
    "strict_json.py": {"jiter.from_json"},
    "cli/call.py": {"json.loads", "json.load"},
}
# A second door to the same: for a process that has no time for the first, for files that are opened otherwise or are
# somebody else's, and for SQLite without a file.
SIDE_DOORS = {
    **dict.fromkeys(
        ("file_descriptors.py", "folders.py", "connecting/config_files.py", "importers/sources.py"), "files.py"
    ),
    **dict.fromkeys(
        ("store/table_sqlite.py", "store/beside.py", "tables/bounded_functions.py", "importers/databases.py"),
        "store/sqlite.py",
    ),
}
# Calls that are not what the door is for, and why.
NOT_THE_DISK = {
    ("transport/lines.py", "os.write"): "stdout is the client, not the disk",
    ("__main__.py", "os.open"): "/dev/null in the place of a stream that is not there",
    ("__main__.py", "os.fdopen"): "likewise",
}
# A module of others, and the modules of ours that may import it.
DOORS_BY_IMPORT = {
    "time": {"clock.py"},
    "random": {"clock.py"},
    "secrets": {"clock.py"},
    "uuid": {"clock.py"},
    "ulid": {"clock.py", "messages/model.py"},
    "sqlite3": set(),
    "mcp": {"transport/protocol.py"},
    "mcp_types": {"transport/protocol.py"},
    "platformdirs": {"config.py", "data_dir.py"},
    "jiter": {"strict_json.py"},
}
ASYNCIO_IN_THE_STORE = {"store/writer.py", "store/readers.py"}
# Where everything may be caught: to poison the store, and to answer those who wait. Both raise again.
BROAD_EXCEPTS = {"store/store.py": 1, "store/writer.py": 1}

# Spelled in two halves, so that this page is not itself a find.
WORDS_OF_THE_WORKSHOP = tuple(
    first + second
    for first, second in (
        ("/wo", "rk/"),
        ("/opt/", "venv"),
        ("/ho", "me/"),
        ("../sha", "red"),
        ("contra", "cts/"),
        ("mod", "els.md"),
        ("ca", "ses.md"),
        ("mcp-s", "dk.md"),
        ("sear", "ch.md"),
        ("form", "ats.md"),
        ("stora", "ge.md"),
        ("transp", "ort.md"),
        ("messa", "ges.md"),
        ("memo", "ry.md"),
        ("tabl", "es.md"),
        ("the br", "ief"),
        ("TO", "DO"),
        ("FIX", "ME"),
        ("XX", "X:"),
        ("pypi", ".org"),
        ("registry.np", "mjs"),
    )
)


@pytest.mark.parametrize("path", MODULES, ids=named)
def test_disk_time_chance_and_sqlite_have_one_door_each(path: Path):
    for name, line in calls(path):
        on_what, _, method = name.rpartition(".")
        for door, behind in DOORS_BY_CALL.items():
            is_behind = name in behind or (on_what and f".{method}" in behind and on_what != "files")
            is_allowed = SIDE_DOORS.get(named(path), named(path)) == door or (named(path), name) in NOT_THE_DISK
            assert is_allowed or not is_behind, f"{named(path)}:{line}: {name} belongs in {door}"


@pytest.mark.parametrize("path", MODULES, ids=named)
def test_a_library_with_a_door_is_imported_only_there(path: Path):
    for name in imports(path):
        doors = DOORS_BY_IMPORT.get(name.split(".")[0])
        assert doors is None or {named(path), part(path)} & doors, f"{named(path)} may not import {name}"


def test_in_the_store_only_the_writer_and_the_readers_know_asyncio():
    store = [path for path in MODULES if part(path) == "store"]
    assert {named(path) for path in store if {"asyncio", "anyio"} & {name.split(".")[0] for name in imports(path)}} <= (
        ASYNCIO_IN_THE_STORE
    )


def catches_everything(handler: ast.ExceptHandler) -> bool:
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(kind is None or dotted(kind) in {"Exception", "BaseException"} for kind in caught)


def test_everything_is_caught_in_two_places_only():
    found: Counter[str] = Counter()
    for path in MODULES:
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ExceptHandler) and catches_everything(node):
                found[named(path)] += 1
    assert dict(found) == BROAD_EXCEPTS


@pytest.mark.parametrize("path", MODULES, ids=named)
def test_nothing_is_suppressed_wholesale(path: Path):
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Call) and dotted(node.func).endswith("suppress"):
            assert not {dotted(kind) for kind in node.args} & {"Exception", "BaseException"}, f"{named(path)}"


@pytest.mark.parametrize("path", MODULES, ids=named)
def test_every_task_has_a_parent(path: Path):
    for name, line in calls(path):
        assert name not in {"asyncio.create_task", "asyncio.ensure_future"}, f"{named(path)}:{line}: use a TaskGroup"


@pytest.mark.parametrize("path", MODULES, ids=named)
def test_the_environment_is_handed_in_by_the_entry_point(path: Path):
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Attribute) and dotted(node) in {"os.environ", "os.environb"}:
            assert named(path) == "__main__.py", f"{named(path)}:{node.lineno} reads the environment"
    assert "os.getenv" not in {name for name, _ in calls(path)}


def test_the_text_speaks_of_the_product_alone():
    for path in texts():
        text = path.read_bytes().decode(errors="replace")
        for word in WORDS_OF_THE_WORKSHOP:
            assert word not in text, f"{path}: {word!r}"
