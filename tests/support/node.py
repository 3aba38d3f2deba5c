"""Node and TypeScript for the plugin's tests: fetched once into a cache outside the repository, checked and compiled.

The types are the published ones of OpenCode, so a plugin that its host would not understand does not compile.
"""

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest

from tests.support.source import REPOSITORY

PLUGIN = REPOSITORY / "contrib" / "opencode"
FETCH_S, COMPILE_S = 300, 120
CONFIGURATION = "tsconfig.json"
# Nothing that a package brings along is run; without a registry it is soon known.
FETCHING = ("install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--fetch-retries=1")


def node() -> str:
    """The path of node; skips the test where there is none, or one without what the plugin needs."""
    found = shutil.which("node")
    if found is None:
        pytest.skip("node is not installed")
    version = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout
    if int(version.removeprefix("v").split(".")[0]) < 20:
        pytest.skip(f"node is too old: {version.strip()}")
    return found


@cache
def _toolchain() -> tuple[Path | None, str]:
    """The folder that holds node_modules as the plugin's package.json asks for it, or why there is none."""
    npm = shutil.which("npm")
    if npm is None:
        return None, "npm is not installed"
    asked = (PLUGIN / "package.json").read_bytes()
    kept = os.environ.get("XDG_CACHE_HOME") or tempfile.gettempdir()
    folder = Path(kept) / f"convmem-node-{os.getuid()}-{hashlib.sha256(asked).hexdigest()[:16]}"
    if folder.is_dir():
        return folder, ""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept, prefix="convmem-node-") as made:
        (Path(made) / "package.json").write_bytes(asked)
        try:
            ran = subprocess.run([npm, *FETCHING], cwd=made, capture_output=True, text=True, timeout=FETCH_S)
        except subprocess.TimeoutExpired:
            return None, "npm takes too long to fetch the types"
        if ran.returncode:
            return None, f"npm cannot fetch the types: {ran.stderr.strip()[:200]}"
        try:
            Path(made).rename(folder)
        except OSError:
            # Another run was quicker; what it fetched is as good.
            return (folder, "") if folder.is_dir() else (None, "the cache cannot be written")
        # The context manager removes what it made, so it gets an empty folder back.
        Path(made).mkdir()
    return folder, ""


def toolchain() -> Path:
    """The folder whose node_modules hold TypeScript and the published types; skips where they cannot be fetched."""
    folder, reason = _toolchain()
    if folder is None:
        pytest.skip(reason)
    return folder


def compiled(sources: list[Path], into: Path) -> Path:
    """Type-check strictly and compile TypeScript files into a folder; AssertionError with what the compiler says.

    Returns the folder of the JavaScript.
    """
    node()
    modules = toolchain() / "node_modules"
    into.mkdir(parents=True)
    for path in sources:
        shutil.copy(path, into)
    options = json.loads((PLUGIN / CONFIGURATION).read_text(encoding="utf-8"))
    options["compilerOptions"] |= {"noEmit": False, "outDir": "js"}
    (into / CONFIGURATION).write_text(json.dumps(options), encoding="utf-8")
    (into / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    (into / "node_modules").symlink_to(modules)
    command = [str(modules / ".bin" / "tsc"), "-p", CONFIGURATION]
    ran = subprocess.run(command, cwd=into, capture_output=True, text=True, timeout=COMPILE_S)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return into / "js"


def plugin(into: Path) -> Path:
    """The compiled entry of the OpenCode plugin, in a folder that is made."""
    return compiled(sorted(PLUGIN.glob("*.ts")), into) / "convmem.js"
