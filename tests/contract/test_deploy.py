"""What runs the daemon for people: units, the agent of launchd, the image, its neighbours, and the runbook."""

import os
import plistlib
import re
import shutil
import subprocess
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from convmem.errors import EXIT_STATUS
from convmem.limits import HAND_OVER_MS_MAX, STOP_MS_MAX
from tests.support.commands import PROGRAM
from tests.support.daemons import daemon
from tests.support.pages import blocks, table
from tests.support.source import REPOSITORY

DEPLOY, CONTRIB = REPOSITORY / "deploy", REPOSITORY / "contrib"
UNITS = sorted((CONTRIB / "systemd").glob("*.service"))
EXPOSURE_MAX = 3.0
TOOLS = Path(sys.executable).parent


def tool(name: str) -> str:
    """A program that came with the tests, or that the machine has."""
    found = shutil.which(name, path=f"{TOOLS}{os.pathsep}{os.environ['PATH']}")
    if found is None:
        pytest.skip(f"there is no {name}")
    return found


def settings(unit: Path) -> dict[str, list[str]]:
    """The settings of a unit by name, in their order."""
    found: dict[str, list[str]] = defaultdict(list)
    for line in unit.read_text(encoding="utf-8").splitlines():
        name, sign, value = line.partition("=")
        if sign and not line.startswith("#"):
            found[name].append(value)
    return found


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_waits_for_readiness_restarts_and_gives_up(unit: Path):
    found = settings(unit)
    assert (found["Type"], found["NotifyAccess"], found["Restart"]) == (["notify"], ["main"], ["on-failure"])
    assert int(found["WatchdogSec"][0]) > 0
    assert int(found["TimeoutStopSec"][0]) * 1000 > STOP_MS_MAX
    assert {"StartLimitIntervalSec", "StartLimitBurst", "RestartSec"} <= set(found)
    # All that refuses a start is left for a person; what failed while it ran, or may be over soon, is tried again.
    left = {int(status) for status in found["RestartPreventExitStatus"][0].split()}
    assert left == {2, *EXIT_STATUS.values()} - {1, 10, 13}
    tries, within_s = int(found["StartLimitBurst"][0]), int(found["StartLimitIntervalSec"][0])
    # A store that goes on being held must reach the limit, however long each try takes.
    assert tries * (int(found["RestartSec"][0]) + HAND_OVER_MS_MAX / 1000) < within_s
    assert found["ExecStart"][0].endswith("/convmem serve")


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
@pytest.mark.slow
def test_systemd_takes_a_unit_and_rates_its_exposure_low(unit: Path, tmp_path: Path):
    analyze = tool("systemd-analyze")
    environment = {"PATH": os.environ["PATH"], "XDG_RUNTIME_DIR": str(tmp_path), "HOME": str(tmp_path)}
    rated = subprocess.run(
        [analyze, "security", "--offline=true", "--no-pager", str(unit)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.search(r"exposure level for \S+: ([0-9.]+)", rated.stdout)
    if found is None:
        pytest.skip(f"this systemd-analyze rates no file: {rated.stderr.strip()}")
    assert float(found[1]) <= EXPOSURE_MAX
    program = tmp_path / "convmem"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    copy = tmp_path / unit.name
    text = re.sub("^ExecStart=\\S+", f"ExecStart={program}", unit.read_text(encoding="utf-8"), flags=re.MULTILINE)
    copy.write_text(text.replace("User=convmem", "User=root"), encoding="utf-8")
    verified = subprocess.run(
        [analyze, "verify", "--man=no", str(copy)], env=environment, capture_output=True, text=True, check=False
    )
    assert [line for line in verified.stderr.splitlines() if unit.name in line] == []


def test_a_users_unit_asks_for_nothing_that_a_users_manager_cannot_do():
    """Seen to fail: without a user namespace none of it is to be had, and with one these are in each other's way."""
    found = settings(CONTRIB / "systemd" / "convmem.service")
    assert found["PrivateUsers"] == ["true"]
    assert not {"ProtectKernelLogs", "ProcSubset", "ProtectProc", "ProtectHostname", "User"} & set(found)


def test_the_agent_of_launchd_starts_it_again_only_if_it_fails():
    agent = plistlib.loads((CONTRIB / "launchd" / "convmem.plist").read_bytes())
    assert agent["ProgramArguments"][1:] == ["serve"]
    assert (agent["RunAtLoad"], agent["KeepAlive"]) == (True, {"SuccessfulExit": False})
    assert agent["ExitTimeOut"] * 1000 > STOP_MS_MAX
    assert agent["Umask"] == 0o077
    # launchd expands nothing.
    assert not any("~" in word or "$" in word for word in agent["ProgramArguments"])


@pytest.mark.slow
def test_linters_have_nothing_to_say_of_the_image_and_its_script():
    for command in ([tool("hadolint"), "Dockerfile"], [tool("shellcheck"), "deploy/entrypoint.sh"]):
        done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (0, ""), done.stdout


def test_what_the_image_copies_is_there_and_not_ignored():
    ignored = (REPOSITORY / ".dockerignore").read_text(encoding="utf-8").split()
    for line in re.findall(r"^COPY (?!--from)(.*)$", (REPOSITORY / "Dockerfile").read_text(encoding="utf-8"), re.M):
        *sources, _ = [word for word in line.split() if not word.startswith("--")]
        for source in sources:
            assert (REPOSITORY / source).exists(), source
            assert source.split("/")[0].removeprefix("./") not in ignored


COMMANDS: list[tuple[dict[str, str], list[str], list[str]]] = [
    ({}, [], ["serve", "--bind", "0.0.0.0:8484"]),
    ({}, ["serve"], ["serve"]),
    ({"BACKUP_TO": "/a place"}, ["serve"], ["serve", "--backup-to", "/a place", "--backup-every", "6h"]),
    (
        {"BACKUP_TO": "/b", "BACKUP_EVERY": "1d"},
        ["serve", "--profile", "all"],
        ["serve", "--profile", "all", "--backup-to", "/b", "--backup-every", "1d"],
    ),
    ({"BACKUP_EVERY": "1d"}, ["serve"], ["serve"]),
    ({"BACKUP_TO": ""}, ["serve"], ["serve"]),
    ({"BACKUP_TO": "/b"}, ["stdio"], ["stdio"]),
    ({}, ["search", "two words", ""], ["search", "two words", ""]),
]


@pytest.mark.slow
@pytest.mark.parametrize(("environment", "arguments", "expected"), COMMANDS)
def test_the_entrypoint_hands_everything_on(
    tmp_path: Path, environment: dict[str, str], arguments: list[str], expected: list[str]
):
    program = tmp_path / "convmem"
    program.write_text('#!/bin/sh\nprintf "%s\\n" $$ "$@"\n')
    program.chmod(0o755)
    started = subprocess.Popen(
        ["/bin/sh", str(DEPLOY / "entrypoint.sh"), *arguments],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", **environment},
        stdout=subprocess.PIPE,
        text=True,
    )
    said, _ = started.communicate(timeout=20)
    number, *words = said.removesuffix("\n").split("\n")
    assert words == expected
    # It is in the place of the shell, so signals reach it.
    assert int(number) == started.pid


def test_compose_gives_the_daemon_no_more_than_it_needs():
    found = YAML(typ="safe").load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
    service = found["services"]["convmem"]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in service["security_opt"]
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    assert {volume.split(":")[0] for volume in service["volumes"]} <= set(found["volumes"])
    assert (DEPLOY / service["build"]["context"] / "Dockerfile").is_file()
    proxy = found["services"]["caddy"]
    assert proxy["profiles"] == ["tls"]
    assert (DEPLOY / proxy["volumes"][0].split(":")[0]).is_file()
    assert not any("TOKEN" in name for name in (*service["environment"], *proxy["environment"]))


def test_fly_runs_one_machine_that_does_not_sleep():
    found = tomllib.loads((DEPLOY / "fly.toml").read_text(encoding="utf-8"))
    service = found["http_service"]
    assert (service["internal_port"], service["force_https"]) == (8484, True)
    assert (service["auto_stop_machines"], service["min_machines_running"]) == ("off", 1)
    assert service["checks"][0]["path"] == "/healthz"
    assert found["mounts"]["destination"] == "/data"
    assert (DEPLOY / found["build"]["dockerfile"]).is_file()


@pytest.mark.slow
@pytest.mark.parametrize("certificate", ["", "tls internal"])
def test_caddy_takes_the_caddyfile(certificate: str, tmp_path: Path):
    done = subprocess.run(
        [tool("caddy"), "validate", "--adapter", "caddyfile", "--config", str(DEPLOY / "Caddyfile")],
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "CONVMEM_TLS": certificate},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


RUNBOOK = (DEPLOY / "runbook.md").read_text(encoding="utf-8")


def test_the_runbook_knows_every_exit_status():
    (rows,) = (table(part) for part in RUNBOOK.split("\n## ") if part.startswith("It does not start"))
    assert {int(row[0]) for row in rows} == {2, *EXIT_STATUS.values()} - {1}


@pytest.mark.slow
def test_the_runbook_is_followed_from_its_first_command_to_its_last(tmp_path: Path):
    """Each block in a shell, in the home of somebody who has a store and a device."""
    program = tmp_path / "bin" / "convmem"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\n{PROGRAM}\n", encoding="utf-8")
    program.chmod(0o755)
    old, new = tmp_path / "old", tmp_path / "new"
    for home in (old, new):
        home.mkdir()
    store = ".local/share/convmem"

    def follow(heading: str, home: Path, number: int | None = None) -> str:
        (part,) = (part for part in RUNBOOK.split("\n## ") if part.startswith(f"{heading}\n"))
        wanted = blocks(part, "sh")
        said = ""
        for block in wanted if number is None else [wanted[number]]:
            done = subprocess.run(
                ["/bin/sh", "-eu", "-c", block],
                env={"PATH": f"{program.parent}:/usr/bin:/bin", "HOME": str(home)},
                cwd=home,
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
            assert done.returncode == 0, (block, done.stdout, done.stderr)
            said += done.stdout
        return said

    with daemon(old / store, environment={}) as running:
        running.client().write("to be moved")
        follow("Move to another machine", old, 0)
        shutil.move(old / "copy", new / "copy")
        running.stop()
    follow("Move to another machine", new, 1)
    with daemon(new / store) as running:
        assert [message["content"] for message in running.client("all").history()] == ["to be moved"]
        running.stop()
    subprocess.run([str(program), "token", "create", "laptop"], env={"HOME": str(new)}, check=True, capture_output=True)
    assert "laptop-2" in follow("Rotate a token", new)
    follow("Upgrade", new)
    follow("Restore", new)
    with daemon(new / store, environment={}) as running:
        running.stop()
