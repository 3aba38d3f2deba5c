"""The repository's own text, read for the tests of its shape: modules, their trees, and whom they import."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
PACKAGE = REPOSITORY / "convmem"
TESTS = REPOSITORY / "tests"
MADE_BY_TOOLS = {".git", ".venv", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", "dist", "build"}


def modules(folder: Path = PACKAGE) -> list[Path]:
    """Every Python file under `folder`, sorted."""
    return sorted(folder.rglob("*.py"))


def texts() -> Iterator[Path]:
    """Every file of the repository that a person wrote, tests included."""
    for path in sorted(REPOSITORY.rglob("*")):
        parts = path.relative_to(REPOSITORY).parts
        if MADE_BY_TOOLS.isdisjoint(parts) and "__pycache__" not in parts and path.is_file():
            yield path


def named(path: Path) -> str:
    """A path as the tests show it: store/writer.py."""
    root = PACKAGE if path.is_relative_to(PACKAGE) else REPOSITORY
    return path.relative_to(root).as_posix()


def part(path: Path) -> str:
    """The part of the package a module belongs to: `store` for store/writer.py, `errors` for errors.py."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@cache
def tree(path: Path) -> ast.Module:
    """The syntax tree of a module."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def imports(path: Path) -> set[str]:
    """Every dotted name that a module imports, at its top or inside a function.

    `from convmem.store import frame` counts as convmem.store.frame: a name in a package may be a module.
    """
    found = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


def own_imports(path: Path) -> set[tuple[str, ...]]:
    """What a module imports of convmem, as parts: {("errors", "Invalid"), ("store", "frame", "encode")}."""
    return {tuple(name.split(".")[1:]) for name in imports(path) if name.startswith("convmem.")}


def dotted(node: ast.expr) -> str:
    """`os.path.join` for the expression that says so; an empty string for any other."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        before = dotted(node.value)
        return f"{before}.{node.attr}" if before else ""
    return ""


def calls(path: Path) -> Iterator[tuple[str, int]]:
    """Every call by name, with its line: ("os.open", 12)."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Call):
            yield dotted(node.func), node.lineno
