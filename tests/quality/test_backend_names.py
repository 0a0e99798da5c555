"""Backends have no name outside ``backends``: functions and solvers ask the registry."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from archimedes.backends import registry

SOURCE = Path(registry.__file__).parents[1]
FOLDERS = ("function", "simulate", "optimize", "random", "special")
FILES = [p for folder in FOLDERS for p in sorted((SOURCE / folder).rglob("*.py"))]
#: Modules of ``backends`` that belong to none of them.
COMMON = {
    "array_kinds",
    "cache_trust",
    "code_cache",
    "cpus",
    "interrupts",
    "protocol",
    "registry",
    "work",
}
NAMES = {"llvm", "interpreter", "llvmlite", "cuda", "nvrtc", "cupy"}


def words(text: str) -> set[str]:
    return set(re.findall(r"[a-z]+", text.lower()))


def named(tree: ast.AST) -> list[str]:
    """Return the backends that code names: in imports, identifiers and strings, not in docs."""
    documented = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    found = []
    for node in ast.walk(tree):
        texts = [getattr(node, field, None) for field in ("id", "attr", "name", "arg", "module")]
        if isinstance(node, ast.Constant) and id(node) not in documented:
            texts.append(node.value)
        if isinstance(node, ast.alias):
            texts.append(node.asname)
        said = [t for t in texts if isinstance(t, str) and words(t) & NAMES]
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
            "archimedes.backends"
        ):
            parts = node.module.split(".")[2:3] or [alias.name for alias in node.names]
            said += [p for p in parts if p not in COMMON]
        found += [f"line {getattr(node, 'lineno', 0)}: {text}" for text in said]
    return found


def test_no_backend_is_named():
    assert len(FILES) > 100
    found = {str(p): named(ast.parse(p.read_text(encoding="utf-8"))) for p in FILES}
    assert {path: names for path, names in found.items() if names} == {}


def test_the_test_sees_names():
    assert len(named(ast.parse("from archimedes.backends.llvm import x"))) == 2
    assert named(ast.parse("from archimedes.backends import interpreter")) != []
    assert named(ast.parse("if backend == 'llvm': pass")) == ["line 1: llvm"]
    assert named(ast.parse("def f():\n    '''By LLVM.'''\n    return cuda_kernel")) != []
    assert named(ast.parse("def f():\n    '''By LLVM.'''\n    return kernel")) == []
    assert named(ast.parse("from archimedes.backends.registry import names")) == []


def test_all_backends_of_the_package_are_looked_for():
    of_tests_and_pages = {"toy", "far", "counting"}
    assert set(registry.names()) - {"auto"} - of_tests_and_pages <= NAMES
