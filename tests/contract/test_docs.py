"""What the pages say is what there is: verbs, settings, tools, statuses, links and set-up commands, both ways."""

import ast
import json
import os
import re

import pytest
import typer.main

from convmem import __version__, config
from convmem.addresses import parse
from convmem.catalog import Catalog
from convmem.cli import app, run
from convmem.config import SETTINGS
from convmem.connecting.clients import CLIENTS, Server
from convmem.connecting.documents import snippet
from convmem.daemon import domains
from convmem.errors import EXIT_STATUS
from convmem.transport import exchanges
from convmem.transport.requests import STATUS
from tests.support import written_pages
from tests.support.pages import DOCS, README, blocks, every_page, page, section, table
from tests.support.source import PACKAGE, REPOSITORY, modules, tree

VERBS = set(typer.main.get_command(app).commands)  # type: ignore[attr-defined]
CATALOG = Catalog(domains())


def set_up_commands() -> list[str]:
    return [block.strip() for block in blocks(page("README.md"), "sh") if "-m venv" in block]


def test_the_readme_has_two_set_up_commands_one_to_run_and_one_to_test():
    to_run, to_test = set_up_commands()
    install = "python3 -m venv .venv && .venv/bin/pip install --quiet "
    assert to_run == f"{install}. && .venv/bin/convmem serve"
    assert to_test == f"{install}'.[test]' && .venv/bin/python -m pytest"


def test_ci_runs_the_readmes_second_command():
    lines = (REPOSITORY / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert lines[-1] == set_up_commands()[1]


def test_the_readme_keeps_its_order():
    headings = re.findall("^## (.*)$", page("README.md"), re.MULTILINE)
    assert headings == [
        "Start",
        "Connect",
        "What it promises",
        "What it does not do",
        "What it offers",
        "Reading the source",
    ]


@pytest.mark.parametrize("path", every_page(), ids=lambda path: path.name)
def test_links_lead_to_files(path):
    for target in re.findall(r"\]\(([^)#]+)\)", path.read_text(encoding="utf-8")):
        assert "://" not in target, "the pages stand on their own"
        assert (path.parent / target).is_file(), target


def test_the_readme_names_every_verb_and_no_other():
    rows = table(section(page("README.md"), "What it offers"))
    assert {row[0].strip("`").removeprefix("convmem ") for row in rows if "convmem " in row[0]} == VERBS


def test_every_verb_says_what_it_does():
    for name, verb in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        assert verb.help, name
        assert f"convmem {name}" in page("running.md"), name


def test_the_readme_names_every_tool_and_no_other():
    rows = table(section(page("README.md"), "What it offers"))
    named = [name for row in rows if "convmem " not in row[0] for name in re.findall("`([a-z_]+)`", row[0])]
    assert len(named) == len(set(named))
    assert set(named) == set(CATALOG.tools)


def test_the_page_of_tools_is_what_clients_are_shown():
    holds("tools.md", written_pages.tools_page(CATALOG))


def test_the_page_of_limits_is_the_code_s():
    holds("limits.md", written_pages.limits_page())


def test_the_page_of_troubles_is_what_the_doctor_finds():
    holds("troubleshooting.md", written_pages.troubleshooting_page())


def holds(name: str, written: str) -> None:
    """A page that is written from the code still says what it would say; CONVMEM_UPDATE=1 writes it."""
    kept = DOCS / name
    if os.environ.get("CONVMEM_UPDATE"):
        kept.write_text(written, encoding="utf-8")
    assert kept.read_text(encoding="utf-8") == written


def test_the_table_of_settings_is_the_code_s():
    rows = {row[0].strip("`"): row[1:] for row in table(section(page("running.md"), "Settings"))}
    rows |= {row[0].strip("`"): ["", *row[1:]] for row in table(section(page("keeping-rows.md"), "Settings"))}
    assert list(rows) == [setting.variable for setting in SETTINGS]
    for setting in SETTINGS:
        flag, default, _ = (cell.strip("`") for cell in rows[setting.variable])
        assert flag == (setting.flag or "")
        if setting.name not in ("data_dir", "user_dir", "project_dir"):
            assert default == (setting.default or "")


def test_the_address_in_the_pages_is_the_default():
    default = next(setting.default for setting in SETTINGS if setting.name == "bind")
    assert default is not None
    for path in every_page():
        for address in re.findall(r"127\.0\.0\.1:\d+", path.read_text(encoding="utf-8")):
            assert parse(address) == parse(default)


def test_the_profiles_that_can_be_chosen_are_those_of_the_catalog():
    assert set(config.PROFILES) == set(CATALOG.profiles)
    for profile in config.PROFILES:
        assert f"`{profile}`" in page("running.md")


def test_the_exit_statuses_are_those_of_the_code():
    (span,) = re.findall(r"^\| (\d+)–(\d+) ", page("running.md"), re.MULTILINE)
    assert (int(span[0]), int(span[1])) == (
        min(status for status in EXIT_STATUS.values() if status > 2),
        max(EXIT_STATUS.values()),
    )


def test_every_error_of_the_bridge_is_explained():
    explained = {row[0].strip("`") for row in table(section(page("stdio.md"), "What a restart looks like"))}
    said = {
        node.args[1].value
        for path in modules(PACKAGE / "transport")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "failure"
        if isinstance(node.args[1], ast.Constant)
    }
    assert said == explained
    assert str(exchanges.SERVER_ERROR) in page("stdio.md")


def test_every_http_status_that_refuses_is_explained():
    explained = {int(row[0]) for row in table(section(page("errors.md"), "HTTP"))}
    refused = {
        node.args[0].value
        for path in modules(PACKAGE / "transport")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Refusal"
        if isinstance(node.args[0], ast.Constant)
    }
    refused |= set(STATUS.values())
    assert refused == explained


def test_the_entries_on_the_page_are_what_connect_prints(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["/usr/local/bin/convmem"])
    printed = {}
    for name in CLIENTS:
        assert run(["connect", name, "--print"], {}, tmp_path) == 0
        printed[name] = capsys.readouterr().out
    text = section(page("connecting.md"), "What the entry says")
    shown = re.findall(r"^([^\n]+)\n\n```(?:json|toml)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert len(shown) == len(CLIENTS)
    for name, client in CLIENTS.items():
        assert [block for before, block in shown if re.match(rf"{client.title}[:. ]", before)] == [printed[name]]
    (entry,) = blocks(page("README.md"), "json")
    assert json.loads(entry) == json.loads(printed["claude-code"])


def test_the_commands_that_connect_can_be_run(tmp_path):
    for line in blocks(page("connecting.md"), "sh")[0].splitlines():
        program, *words = line.split()
        assert program == "convmem"
        assert run(words, {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}, tmp_path) == 0


def test_the_page_of_clients_says_how_each_finds_its_token():
    rows = {row[0].strip("`"): row[1:] for row in table(section(page("connecting.md"), "Tokens"))}
    assert set(rows) == set(CLIENTS)
    for name, client in CLIENTS.items():
        servers = [Server("https://h/mcp", needs_token=True), Server(None, ("convmem", "stdio"), needs_token=True)]
        for cell, server in zip(rows[name], servers, strict=True):
            text = snippet(client.form, client.paths[0], client.entry(server, client.paths[0]))
            if client.sees_environment:
                assert cell.strip("`") in " ".join(text.split()).replace("[ ", "[").replace(" ]", "]")


def test_the_map_of_the_source_names_modules_that_exist():
    names = [row[0].strip("`") for row in table(section(page("README.md"), "Reading the source"))]
    assert len(names) >= 8
    for name in names:
        assert (PACKAGE / name).is_file(), name


def test_the_latest_change_is_this_version():
    assert re.findall(r"^## (\S+)$", page("changes.md"), re.MULTILINE)[0] == __version__


def test_the_dockerfile_starts_what_the_command_line_has():
    text = (REPOSITORY / "Dockerfile").read_text(encoding="utf-8")
    start = re.search(r"^CMD (\[.*\])$", text, re.MULTILINE)
    assert start
    verb, *options = ast.literal_eval(start[1])
    assert verb in VERBS
    assert options == ["--bind", "0.0.0.0:8484"]
    assert re.search(r"^USER 10001", text, re.MULTILINE)
    assert "VOLUME /data" in text
    assert "/healthz" in text


def test_python_in_the_pages_can_be_read():
    for path in every_page():
        for block in blocks(path.read_text(encoding="utf-8"), "python"):
            ast.parse(block)


def test_the_pages_are_for_one_reader_at_a_time():
    """No page grows beyond what a person reads in one go; the pages of tools and limits are looked things up in."""
    for path in every_page():
        if path.name not in ("tools.md", "limits.md"):
            assert path.read_text(encoding="utf-8").count("\n") <= 200, path.name


def test_there_is_one_readme():
    assert README.is_file()
    assert not [path for path in DOCS.iterdir() if path.suffix != ".md"]
