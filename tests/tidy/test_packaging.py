"""What the package says of itself is true: each dependency is used, each use is declared, and each has a reason."""

import ast
import re
import sys
import tomllib
from typing import Any

from tests.support.source import REPOSITORY, imports, modules

# Distributions whose module has another name, and those that uvicorn finds by itself.
MODULE_OF = {"PyStemmer": "Stemmer", "backports.zstd": "backports", "python-ulid": "ulid", "ruamel.yaml": "ruamel"}
FOUND_BY_UVICORN = {"httptools", "uvloop"}
# Modules of distributions that come with another one, at the version it was built with, or with a newer Python.
COMES_WITH = {"compression": "backports", "mcp_types": "mcp", "pydantic_core": "pydantic"}


def project() -> dict[str, Any]:
    return tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def distribution(requirement: str) -> str:
    found = re.match(r"[A-Za-z0-9_.-]+", requirement)
    assert found, requirement
    return found.group()


def test_every_import_is_declared_and_every_declared_library_is_imported():
    needed = [*project()["dependencies"], *project()["optional-dependencies"]["s3"]]
    declared = {MODULE_OF.get(name, name) for name in map(distribution, needed)}
    used = {name.split(".")[0] for path in modules() for name in imports(path)}
    foreign = used - set(sys.stdlib_module_names) - {"convmem"}
    assert {COMES_WITH.get(name, name) for name in foreign} | FOUND_BY_UVICORN == declared


def test_every_dependency_has_a_lower_bound_and_a_reason():
    everything = [*project()["dependencies"], *project()["optional-dependencies"]["test"]]
    assert all(">=" in requirement for requirement in everything)
    text = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")
    for requirement in [*project()["dependencies"], *project()["optional-dependencies"]["s3"]]:
        line = next(line for line in text.splitlines() if f'"{requirement}"' in line)
        assert "#" in line, f"{requirement} does not say why it is here"


def test_the_command_is_the_module():
    assert project()["scripts"] == {"convmem": "convmem.__main__:main"}
    main = ast.parse((REPOSITORY / "convmem" / "__main__.py").read_text(encoding="utf-8"))
    assert "main" in {node.name for node in main.body if isinstance(node, ast.FunctionDef)}
