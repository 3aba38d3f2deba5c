"""The shape of the code, checked like any other behaviour: who may import whom, what a module and a function may be."""

import ast
from pathlib import Path

import pytest

from tests.support.source import (
    MADE_BY_TOOLS,
    PACKAGE,
    REPOSITORY,
    TESTS,
    modules,
    named,
    own_imports,
    part,
    texts,
    tree,
)

MODULE_LINES_MAX = 300
FUNCTION_LINES_MAX = 60

# Who may import whom: a part, and the parts of convmem it may name. Read downwards: nothing looks up.
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "limits": set(),
    "clock": set(),
    "text": set(),
    "redact": set(),
    "files": set(),
    "stopping": {"errors"},
    "reach": set(),
    "strict_json": {"limits"},
    "inputs": {"errors", "limits", "strict_json"},
    "domain": {"errors", "limits", "inputs", "reach"},
    "store": {"errors", "limits", "domain", "clock", "files"},
    "record_lines": {"limits", "inputs", "domain"},
    "cursors": {"errors", "limits"},
    "tokens": {"errors", "limits", "clock", "files", "reach"},
    "reply_bytes": set(),
    "row_text": set(),
    "fingerprints": set(),
    "messages": {
        *("errors", "limits", "text", "redact", "strict_json", "inputs", "domain", "record_lines", "cursors"),
        *("reply_bytes", "fingerprints"),
    },
    "quoting": set(),
    "profile_text": {"quoting"},
    "memory": {
        *("errors", "limits", "text", "redact", "inputs", "domain", "record_lines", "messages"),
        *("quoting", "profile_text"),
    },
    "tables": {
        *("errors", "limits", "text", "files", "strict_json", "inputs", "domain", "cursors", "reply_bytes"),
        *("fingerprints", "row_text", "redact", "reach"),
    },
    "importers": {"limits", "strict_json", "text"},
    "transfer": {"errors", "limits", "domain", "files", "strict_json", "store"},
    "catalog": {"errors", "limits", "domain", "inputs", "strict_json", "reach"},
    "transport": {"errors", "limits", "clock", "domain", "catalog", "strict_json", "cursors", "reach", "tokens"},
    "addresses": set(),
    "data_dir": {"limits"},
    "config": {"errors", "limits", "files", "addresses", "data_dir"},
    "connecting": {"limits", "files", "addresses"},
    "holding": {"errors", "limits", "files", "config", "strict_json"},
    "engine": {"errors", "limits", "clock", "files", "domain", "store", "transfer", "holding", "reach"},
    "daemon": {
        *("errors", "limits", "clock", "text", "files", "strict_json", "domain", "store", "messages", "catalog"),
        *("memory", "tables", "inputs", "reach", "tokens", "importers", "redact"),
        *("transfer", "transport", "config", "addresses", "holding", "engine", "stopping", "hooks"),
    },
    "doctor": {
        *("errors", "limits", "clock", "files", "strict_json", "store", "addresses", "config", "holding", "tokens"),
        *("hooks", "daemon"),
    },
    "cli": {
        *("daemon", "doctor", "hooks", "profile_text", "row_text", "config", "errors", "files", "stopping", "store"),
        *("clock", "holding", "reach", "tokens", "connecting", "importers"),
    },
    "hooks": {"limits", "clock", "files", "strict_json", "redact", "data_dir"},
    "__main__": {"cli", "hooks"},
}
# A part that stands in several files.
SAME_PART = {
    **dict.fromkeys(
        (
            "access",
            "apart",
            "backup_arguments",
            "backup_tables",
            "backups",
            "checking",
            "exchange",
            "exports",
            "health",
        ),
        "engine",
    ),
    **dict.fromkeys(("indexer", "maintenance", "phases", "reading", "scrub", "spools", "table_reading"), "engine"),
    **dict.fromkeys(
        (
            "bridging",
            "distilling",
            "gateway",
            "handing_over",
            "import_report",
            "importing",
            "liveness",
            "notifying",
            "offline",
            "profiles",
            "records",
            "restoring",
            "salvaging",
            "table_operations",
            "table_places",
            "table_restore",
        ),
        "daemon",
    ),
    **dict.fromkeys(("setting_values", "table_settings"), "config"),
    **dict.fromkeys(("targets", "resources"), "domain"),
    "file_descriptors": "files",
    "folders": "files",
}
# Of the store the command line knows what works on files alone, beside or without a daemon.
CLI_MAY_IMPORT_OF_STORE = {"check", "salvage", "recovery"}
# Of messages memory knows what they are and what has happened to them, and how they are found.
MEMORY_MAY_IMPORT_OF_MESSAGES = {"model", "events", "queries", "search"}

# The files that every domain has, and which of the others each may name.
EVERY_DOMAIN: dict[str, set[str]] = {
    "model": set(),
    "inputs": {"model"},
    "events": {"model"},
    "queries": {"model"},
    "decide": {"model", "inputs", "events", "queries"},
    "projection": {"model", "events"},
    "tools": {"model", "inputs", "queries", "search"},
}
# Which of them a domain lacks. The file of a table is its truth: there are no events, and nothing to project.
LACKS: dict[str, set[str]] = {
    "tables": {"events", "projection"},
}
# What a domain has beside them, and what its files may name of that.
DOMAINS: dict[str, dict[str, set[str]]] = {
    "messages": {
        "check": set(),
        "create": set(),
        "fields": {"model"},
        "inputs": {"fields", "fingerprints"},
        "queries": {"fingerprints"},
        "decide": {"fingerprints", "imports"},
        "projection": {"fingerprints", "left_behind"},
        "kept": {"model", "events", "queries", "fingerprints"},
        "imports": {"model", "events", "queries", "fields"},
        "left_behind": {"events", "fingerprints"},
        "line_checks": {"model", "fields"},
        "lines": {"model", "events", "kept", "line_checks"},
        "replies": {"model"},
        "fingerprints": set(),
        "cleaning": {"model", "inputs"},
        "capture": {"fields", "inputs", "cleaning"},
        "sessions": {"inputs", "queries", "replies"},
        "transfer": {"events", "inputs", "kept", "lines", "replies"},
        "views": {"model", "inputs", "queries", "replies"},
        "scripts": set(),
        "grams": {"scripts"},
        "stems": set(),
        "terms": {"scripts", "grams", "stems"},
        "filters": {"inputs"},
        "matching": {"terms"},
        "search_tables": {"model", "filters", "grams", "stems", "terms"},
        "search_check": {"grams", "search_tables"},
        "exact": {"model", "inputs", "filters", "grams", "matching", "scripts", "search_tables"},
        "scan": {"model", "inputs", "filters", "matching", "stems", "terms", "exact"},
        "scoring": {"terms"},
        "ranked": {"model", "inputs", "filters", "scoring", "terms", "search_tables"},
        "search": {
            *("scoring", "stems"),
            *("model", "inputs", "queries", "replies", "matching", "terms", "exact", "scan", "ranked"),
            "search_tables",
        },
        "tools": {"cleaning", "sessions", "transfer", "views"},
    },
    "memory": {
        "cleaning": set(),
        "facts": {"model"},
        "fitting": set(),
        "ranking": {"queries"},
        "history": {"inputs", "cleaning", "fitting"},
        "recall": {"inputs", "queries", "cleaning", "facts", "fitting", "history", "ranking"},
        "profile": {"inputs", "queries", "cleaning", "facts", "fitting"},
        "interactions": {"inputs", "fitting"},
        "statistics": {"inputs", "queries"},
        "exporting": {"inputs", "queries", "facts", "interactions"},
        "tools": {"cleaning", "exporting", "history", "interactions", "profile", "recall", "statistics"},
        "distill": {"model", "prune", "topics"},
        "imports": {"model", "events", "queries", "fields"},
        "decide": {"imports"},
        "prune": set(),
        "stop_words": set(),
        "topics": {"stop_words", "words"},
        "words": {"stop_words"},
        "check": {"model", "queries"},
        "create": set(),
        "fields": set(),
        "inputs": {"fields"},
        "kept": {"model", "events", "queries"},
        "line_checks": {"model", "fields"},
        "lines": {"model", "events", "queries", "kept", "line_checks"},
    },
    "tables": {
        "names": set(),
        "nodes": set(),
        "yaml_reading": {"nodes"},
        "yaml_writing": set(),
        "schema": {"model", "names", "nodes", "yaml_reading", "yaml_writing"},
        "data": {"model"},
        "likeness": set(),
        "filters": {"model", "likeness"},
        "conditions": {"filters", "likeness"},
        "ordering": {"model", "filters", "conditions"},
        "selection": {"model", "filters"},
        "pages": {"filters", "conditions", "ordering"},
        "sources": {"filters", "names"},
        "methods": {"model"},
        "aggregate": {"model", "filters", "conditions", "likeness", "methods", "ordering"},
        "edits": set(),
        "chunks": set(),
        "history": {"chunks"},
        "expressions": set(),
        "params": set(),
        "templates": {"expressions"},
        "dump": {"model"},
        "places": {"history"},
        "create": {"history", "purge_marks"},
        "standing": set(),
        "unusable": {"names", "places"},
        "scanning": {"model", "create", "history", "names", "places", "schema", "standing", "unusable"},
        "kept": {"places", "scanning"},
        "mounts": {"kept", "names", "places", "scanning", "foreign_aliases", "unusable"},
        "fields": set(),
        "inputs": {"fields"},
        "offering": set(),
        "disk": set(),
        "copies": {"places"},
        "upload": set(),
        "commands": {"scanning"},
        "changes": {"model", "chunks", "cleaning", "data", "history", "queries", "scanning"},
        "matches": {"model", "filters"},
        "bounded_functions": {"likeness"},
        "statements": {"model", "data", "queries", "bounded_functions"},
        "used_keys": set(),
        "batch_ops": {"fields"},
        "batch": {
            *("data", "queries", "changes", "conditions", "history", "places", "scanning", "schema"),
            *("matches", "statements", "batch_ops", "cleaning"),
        },
        "making": {"disk", "mounts", "places"},
        "batching": {
            "making",
            "names",
            "scanning",
            "mounts",
            "disk",
            "backing_up",
            "batch",
            "batch_ops",
            "schema_changes",
            "schema_inputs",
        },
        "backing_up": {"copies", "disk", "places", "scanning"},
        "schema_inputs": {"fields"},
        "schema_changes": {
            *("model", "queries", "data", "names", "places", "schema", "scanning", "mounts", "disk", "commands"),
            *("backing_up", "making", "schema_inputs", "unusable"),
        },
        "snapshots": {"copies", "disk", "places", "mounts", "backing_up", "schema_inputs", "upload"},
        "schema_tools": {"inputs", "mounts", "offering", "batching", "schema_changes", "schema_inputs", "snapshots"},
        "aliases": {
            *("model", "names", "places", "aggregate", "filters", "ordering", "params", "selection", "sources"),
            "templates",
        },
        "alias_tables": {"aliases", "used_keys"},
        "foreign_aliases": {"aliases", "alias_tables", "places", "scanning"},
        "union_pages": {
            *("model", "queries", "aggregate", "conditions", "filters", "ordering", "pages", "replies", "selection"),
        },
        "alias_inputs": {"fields", "schema_inputs"},
        "alias_tools": {
            *("aggregate", "filters", "ordering", "pages", "places", "scanning", "selection", "sources", "views"),
            *("aliases", "alias_tables", "alias_inputs", "mounts", "offering", "union_pages"),
        },
        "cleaning": set(),
        "purge_marks": set(),
        "purge_rules": {"chunks"},
        "purge_reach": {"chunks", "history"},
        "purging": {"queries", "chunks", "purge_marks", "purge_reach", "purge_rules"},
        "decide": {
            *("cleaning", "purging", "purge_rules", "used_keys"),
            *("alias_tables", "batch", "changes", "chunks", "commands", "data", "edits", "history", "scanning"),
        },
        "replies": {"model", "data"},
        "views": {
            *("model", "inputs", "queries", "data", "edits", "filters", "history", "ordering", "pages", "replies"),
            *("scanning", "selection"),
        },
        "dumping": {"model", "dump", "places", "scanning"},
        "resources": {"model", "schema", "mounts"},
        "tools": {
            *("changes", "commands", "dumping", "mounts", "offering", "replies", "scanning", "views"),
            *("alias_tables", "alias_tools", "schema_tools", "used_keys"),
        },
    },
}

# Modules that no test file mirrors, and why.
WITHOUT_A_TEST_FILE = {
    "backup_arguments.py": "tests/unit/test_backups.py",
    "backup_tables.py": "tests/e2e/test_replaced_tables.py",
    "liveness.py": "a daemon that is looked at: tests/e2e/test_services.py",
    "connecting/misfits.py": "tests/unit/connecting/test_jsonc.py",
    "fingerprints.py": "tests/unit/messages/test_fingerprints.py",
    "apart.py": "tests/unit/test_engine.py",
    **dict.fromkeys(
        ("doctor/answers.py", "doctor/endpoint.py", "doctor/remote.py", "doctor/remote_findings.py", "doctor/visit.py"),
        "each finding by its cause: tests/e2e/test_doctor_remote.py",
    ),
    **dict.fromkeys(
        (
            "doctor/belongings.py",
            "doctor/directory.py",
            "doctor/holders.py",
            "doctor/local.py",
            "doctor/local_findings.py",
            "doctor/store_files.py",
        ),
        "each finding by its cause: tests/e2e/test_doctor_local.py",
    ),
    **dict.fromkeys(
        ("importers/opencode_parts.py", "importers/opencode_stores.py"),
        "tests/unit/importers/test_opencode.py",
    ),
    "importers/th_memory_bodies.py": "tests/unit/importers/test_th_memory.py",
    "importers/chatgpt_messages.py": "tests/unit/importers/test_chatgpt.py",
    "importers/codex_lines.py": "tests/unit/importers/test_codex.py",
    "importers/claude_code_lines.py": "tests/unit/importers/test_claude_code.py",
    "cli/importing.py": "tests/e2e/test_importing.py",
    "importers/databases.py": "tests/unit/importers/test_sources.py",
    "importers/formats.py": "each from its file to the store: tests/e2e/test_importing.py",
    "importers/model.py": "words, and notes that every test of a format reads",
    "import_report.py": "tests/unit/test_importing.py",
    "messages/left_behind.py": "tests/unit/messages/test_projection.py",
    "phases.py": "words: tests/unit/test_engine.py",
    "row_text.py": "tests/unit/tables/test_dump.py",
    "reply_bytes.py": "every test that bounds a reply: tests/unit/messages/test_sessions.py",
    "table_places.py": "from settings to places: tests/e2e/test_tables.py",
    "table_restore.py": "tests/e2e/test_table_backup.py",
    "store/copying.py": "tests/unit/store/test_backup.py",
    "tables/alias_inputs.py": "tests/unit/tables/test_alias_tools.py",
    "tables/alias_tables.py": "tests/unit/tables/test_alias_tools.py",
    "tables/aliases.py": "tests/unit/tables/test_alias_tools.py",
    "tables/backing_up.py": "tests/unit/tables/test_schema_changes.py",
    "tables/batching.py": "tests/unit/tables/test_batch.py",
    "tables/changes.py": "tests/unit/tables/test_tools.py",
    "tables/commands.py": "tests/unit/tables/test_tools.py",
    "tables/decide.py": "tests/unit/tables/test_tools.py",
    "table_reading.py": "tests/unit/tables/test_tools.py",
    "tables/create.py": "what mounting makes of a file: tests/unit/tables/test_scanning.py",
    "tables/disk.py": "tests/unit/tables/test_schema_changes.py",
    "tables/dumping.py": "tests/unit/tables/test_tools.py",
    "tables/fields.py": "tests/unit/tables/test_tools.py",
    "tables/inputs.py": "tests/unit/tables/test_tools.py",
    "tables/kept.py": "tests/e2e/test_replaced_tables.py",
    "tables/making.py": "tests/unit/tables/test_schema_changes.py",
    "tables/matches.py": "tests/unit/tables/test_batch.py",
    "tables/offering.py": "what tools say alike: tests/contract/test_tools.py",
    "tables/places.py": "paths: tests/unit/tables/test_scanning.py",
    "tables/purge_reach.py": "tests/unit/tables/test_purging.py",
    "tables/queries.py": "tests/unit/tables/test_tools.py",
    "tables/replies.py": "tests/unit/tables/test_tools.py",
    "tables/schema_inputs.py": "tests/unit/tables/test_schema_changes.py",
    "tables/schema_tools.py": "tests/unit/tables/test_schema_changes.py",
    "tables/unusable.py": "tests/unit/tables/test_mounts.py and test_scanning.py",
    "tables/union_pages.py": "tests/unit/tables/test_alias_tools.py",
    "tables/views.py": "tests/unit/tables/test_tools.py",
    "access.py": "the engine's other half: tests/unit/test_engine.py",
    "daemon.py": "real processes: tests/e2e/test_faults.py, test_restart.py and tests/unit/cli/test_serve.py",
    "gateway.py": "what the transports see of a real daemon: tests/e2e and the verbs of tests/unit/cli",
    "health.py": "what the engine says of itself: tests/unit/test_engine.py",
    "offline.py": "tests/unit/cli/test_export.py and test_import_.py",
    "restoring.py": "tests/unit/cli/test_backup.py and test_restore.py",
    "domain.py": "what a domain is: every domain's tests hold it",
    "holding.py": "the system's own locks and sockets: tests/e2e/test_faults.py",
    "errors.py": "codes are contract: tests/contract/test_errors.py",
    "__main__.py": "one call; tests/e2e starts it as a process",
}

TOP_LEVEL = {"pyproject.toml", "README.md", "Dockerfile", "convmem", "contrib", "deploy", "tests"}
NAMES_THAT_SAY_NOTHING = {"utils", "util", "helpers", "helper", "manager", "managers", "misc", "common", "core", "base"}

MODULES = modules()
EVERY_MODULE = [*MODULES, *modules(TESTS)]


def whole_part(name: str) -> str:
    return SAME_PART.get(name, name)


@pytest.mark.parametrize("path", MODULES, ids=named)
def test_a_module_imports_only_what_stands_below_it(path: Path):
    if path == PACKAGE / "__init__.py":
        assert not own_imports(path)
        return
    own = whole_part(part(path))
    for name in own_imports(path):
        if whole_part(name[0]) in {own, "__version__"}:
            continue
        assert whole_part(name[0]) in MAY_IMPORT[own], f"{named(path)} may not name convmem.{'.'.join(name)}"
        if (own, name[0]) == ("cli", "store"):
            assert name[1] in CLI_MAY_IMPORT_OF_STORE, f"{named(path)} may not name convmem.{'.'.join(name)}"
        if (own, name[0]) == ("memory", "messages"):
            assert name[1] in MEMORY_MAY_IMPORT_OF_MESSAGES, f"{named(path)} may not name convmem.{'.'.join(name)}"


def test_the_import_table_names_the_parts_that_exist_and_no_other():
    parts = {whole_part(part(path)) for path in MODULES} - {"__init__"}
    assert set(MAY_IMPORT) == parts
    for own, others in MAY_IMPORT.items():
        assert others < parts, own


def test_the_import_table_has_no_circle():
    done: set[str] = set()
    while ready := {own for own, others in MAY_IMPORT.items() if own not in done and others <= done}:
        done |= ready
    assert done == set(MAY_IMPORT)


@pytest.mark.parametrize("domain", DOMAINS)
def test_inside_a_domain_a_file_names_only_files_below_it(domain: str):
    for path in modules(PACKAGE / domain):
        if path.name != "__init__.py":
            below = EVERY_DOMAIN.get(path.stem, set()) | DOMAINS[domain].get(path.stem, set())
            siblings = {own[1] for own in own_imports(path) if own[0] == domain}
            assert siblings <= below, named(path)


@pytest.mark.parametrize("domain", DOMAINS)
def test_domains_look_alike(domain: str):
    there = {path.stem for path in modules(PACKAGE / domain)} - {"__init__"}
    assert there == (set(EVERY_DOMAIN) - LACKS.get(domain, set())) | set(DOMAINS[domain])


@pytest.mark.parametrize("path", EVERY_MODULE, ids=named)
def test_a_module_says_first_what_it_is_for(path: Path):
    assert ast.get_docstring(tree(path)), f"{named(path)} has no docstring"


@pytest.mark.parametrize("path", MODULES, ids=named)
def test_a_module_stays_small_enough_to_be_read_at_once(path: Path):
    lines = path.read_text(encoding="utf-8").count("\n")
    assert lines <= MODULE_LINES_MAX, f"{named(path)}: {lines} lines"


@pytest.mark.parametrize("path", EVERY_MODULE, ids=named)
def test_a_function_fits_on_a_screen(path: Path):
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            lines = node.end_lineno - node.lineno + 1
            assert lines <= FUNCTION_LINES_MAX, f"{named(path)}: {node.name} has {lines} lines"


@pytest.mark.parametrize("path", EVERY_MODULE, ids=named)
def test_a_name_says_what_is_inside(path: Path):
    assert NAMES_THAT_SAY_NOTHING.isdisjoint({path.stem.removeprefix("test_"), path.parent.name})


def test_the_unit_tests_mirror_the_package():
    tested = {
        (path.parent / path.name.removeprefix("test_")).relative_to(TESTS / "unit").as_posix()
        for path in (TESTS / "unit").rglob("test_*.py")
    }
    there = {named(path) for path in MODULES if path.name != "__init__.py"}
    without = there - tested
    assert without <= set(WITHOUT_A_TEST_FILE), f"without a test file: {sorted(without - set(WITHOUT_A_TEST_FILE))}"
    assert set(WITHOUT_A_TEST_FILE) <= without, "these have one by now"
    assert tested <= there, f"test files without a module: {sorted(tested - there)}"


def test_tests_are_no_package():
    assert not list(TESTS.rglob("__init__.py"))


def test_the_top_level_stays_as_it_is():
    there = {path.name for path in REPOSITORY.iterdir()} - MADE_BY_TOOLS
    assert {name for name in there if not name.startswith(".")} <= TOP_LEVEL
    assert {name for name in there if name.startswith(".")} <= {".ci", ".gitignore", ".dockerignore"}


def test_every_page_of_the_docs_is_named_somewhere():
    pages = {path for path in (PACKAGE / "docs").iterdir() if path.is_file()}
    others = {path: path.read_text(encoding="utf-8") for path in texts() if path.suffix in {".md", ".py"}}
    for page in pages:
        assert any(page.name in text for path, text in others.items() if path != page), f"nothing names {page.name}"
