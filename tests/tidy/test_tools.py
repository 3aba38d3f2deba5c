"""The tools that read every line: formatter, linter and type checker, run as tests so that one command runs all."""

import subprocess
import sys

import pytest

from tests.support.source import REPOSITORY

TOOLS = {
    "format": ("ruff", "format", "--check", "."),
    "lint": ("ruff", "check", "."),
    "types": ("mypy",),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TOOLS)
def test_the_code_passes_its_tools(name: str):
    ran = subprocess.run([sys.executable, "-m", *TOOLS[name]], cwd=REPOSITORY, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
