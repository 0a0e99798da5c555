"""The source reads as it should: docstrings, public names, no places on anyone's machine."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "archimedes"
FILES = sorted(SOURCE.rglob("*.py"))


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_every_module_says_what_it_is(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree), f"{path.name} has no docstring"
    assert not path.name.startswith("_") or path.name in ("__init__.py", "__main__.py")


MODULES = [module_name(p) for p in FILES if p.name != "__main__.py"]


@pytest.mark.parametrize("name", MODULES)
def test_every_public_name_exists_and_is_documented(name):
    module = importlib.import_module(name)
    for public in getattr(module, "__all__", []):
        assert hasattr(module, public), f"{name}.__all__ lists {public}, which does not exist"
        value = getattr(module, public)
        # Neither an alias nor a class of another library.
        own = getattr(value, "__name__", "") == public and "archimedes" in value.__module__
        if own and (inspect.isclass(value) or inspect.isfunction(value)):
            assert inspect.getdoc(value), f"{name}.{public} has no docstring"


@pytest.mark.parametrize("path", [p for p in FILES if p.name == "__init__.py"], ids=module_name)
def test_no_module_shares_its_name_with_a_public_function(path):
    """``package.name`` would be one or the other, depending on what was imported first."""
    package = importlib.import_module(module_name(path))
    beside = {p.stem for p in path.parent.glob("*.py")}
    shared = beside & set(getattr(package, "__all__", []))
    assert all(inspect.ismodule(getattr(package, name)) for name in shared)


def test_no_dead_ends():
    words = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
    found = [p.name for p in FILES if words.search(p.read_text(encoding="utf-8"))]
    assert found == []


# Written in parts, so that this file does not find itself.
MACHINE_PATHS = re.compile(
    "|".join(["/" + "work/", "/" + "tmp/", "/" + "home/", "/" + "root/", r"\bC:\\\\" + "Users"])
)
TEXT = {".py", ".md", ".toml", ".yml", ".yaml", ".sh", ".txt", ".rst", ".c", ".h", ".cu", ""}


def project_files():
    for folder in ("src", "tests", "docs", "benchmarks", "examples", ".ci"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and path.suffix in TEXT and "__pycache__" not in path.parts:
                yield path
    yield from (p for p in ROOT.glob("*") if p.is_file() and p.suffix in (".md", ".toml"))


def test_no_file_names_a_place_on_a_machine():
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in project_files()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if MACHINE_PATHS.search(line)
    ]
    assert found == []
