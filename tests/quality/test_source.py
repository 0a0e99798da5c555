"""The source reads as it should: docstrings, public names, no places on anyone's machine."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "archimedes"
FILES = sorted(SOURCE.rglob("*.py"))


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(p): p for p in FILES if p.name != "__main__.py"}


def test_every_module_says_what_it_is():
    scripts = [p for p in FILES if p.name == "__main__.py"]
    said = {p: ast.get_docstring(ast.parse(p.read_text(encoding="utf-8"))) for p in scripts}
    said |= {path: importlib.import_module(name).__doc__ for name, path in MODULES.items()}
    assert [str(path) for path, text in said.items() if not text] == []


def test_modules_have_no_private_names():
    named = [p for p in FILES if p.name.startswith("_")]
    assert {p.name for p in named} == {"__init__.py", "__main__.py"}


def test_every_public_name_exists_and_is_documented():
    found = [problem for name in MODULES for problem in problems_of_names(name)]
    assert found == []


def problems_of_names(name):
    """Yield what is wrong with the public names of a module."""
    module = importlib.import_module(name)
    for public in getattr(module, "__all__", []):
        if not hasattr(module, public):
            yield f"{name}.__all__ lists {public}, which does not exist"
            continue
        value = getattr(module, public)
        # Neither an alias nor a class of another library.
        own = getattr(value, "__name__", "") == public and "archimedes" in value.__module__
        needs_one = inspect.isclass(value) or inspect.isfunction(value)
        if own and needs_one and not inspect.getdoc(value):
            yield f"{name}.{public} has no docstring"


def test_no_module_hides_a_name_that_is_imported_on_first_use():
    """``package.name`` would be one or the other, depending on what was imported first."""
    found = []
    packages = [
        p for p in FILES if p.name == "__init__.py" and "lazy_names" in p.read_text("utf-8")
    ]
    for path in packages:
        package = importlib.import_module(module_name(path))
        shared = {p.stem for p in path.parent.glob("*.py")} & set(getattr(package, "__all__", []))
        found += [f"{path}: {n}" for n in shared if not inspect.ismodule(getattr(package, n))]
    assert found == []


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


def test_no_module_gives_a_constant_two_values():
    """The second value would hold in functions written for the first."""
    found = []
    for path in FILES:
        names = [
            target.id
            for node in ast.parse(path.read_text(encoding="utf-8")).body
            if isinstance(node, ast.Assign)
            for target in ast.walk(ast.Tuple(node.targets))
            if isinstance(target, ast.Name) and isinstance(target.ctx, ast.Store)
        ]
        found += [f"{path}: {name}" for name in set(names) if names.count(name) > 1 and name != "_"]
    assert found == []
