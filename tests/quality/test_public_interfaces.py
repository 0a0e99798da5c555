"""Nothing reads the memory of Python's objects; native code meets Python in one package."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import archimedes

SOURCE = Path(archimedes.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
#: The package through which native code calls Python, and where objects become pointers.
PACKAGE, POINTERS = "backends/llvm/python_api/", "backends/llvm/python_api/c_api.py"
#: Memory at a number, caches of classes.
NOWHERE = {"from_address", "PyType_Modified"}
#: What calls CPython, and what makes objects of pointers.
IN_PACKAGE = {"pythonapi", "py_object", "PyDLL", "_ARRAY_API"}
#: Modules without any of these need not be looked at.
WORDS = re.compile(rf"\b({'|'.join(NOWHERE | IN_PACKAGE)}|get_referents|map\(id)\b|\bid\(")
#: Methods of dicts whose first argument is a key.
KEYED = {"get", "pop", "setdefault"}


def problems(tree: ast.AST, path: str) -> list[str]:
    """Return what a module does that it must not, by line."""
    names = {
        node: node.attr if isinstance(node, ast.Attribute) else node.id
        for node in ast.walk(tree)
        if isinstance(node, (ast.Attribute, ast.Name))
    }
    imported = {
        node: alias.name
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    }
    refused = NOWHERE if path.startswith(PACKAGE) else NOWHERE | IN_PACKAGE
    found = {node: name for node, name in (names | imported).items() if name in refused}
    found |= dict.fromkeys(class_dicts_of(tree), "the dict of a class")
    if path != POINTERS and ("ctypes" in imported.values() or path.startswith("backends/llvm/")):
        keys = {id(node) for node in keys_of(tree)}
        found |= {
            node: name for node, name in names.items() if name == "id" and id(node) not in keys
        }
    return [f"{path}:{node.lineno}: {name}" for node, name in found.items()]


def class_dicts_of(tree: ast.AST) -> list[ast.Call]:
    """Return the calls that get at the dict behind the view that a class shows."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    calls = [c for c in calls if getattr(c.func, "attr", "") == "get_referents"]
    return [c for c in calls if any(getattr(a, "attr", "") == "__dict__" for a in c.args)]


def keys_of(tree: ast.AST) -> list[ast.AST]:
    """Return the ``id`` of every ``id(x)`` that is a key of a dict."""
    keys: list[ast.AST] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript):
            keys.append(node.slice)
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.In, ast.NotIn)):
            keys.append(node.left)
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") in KEYED:
            keys += node.args[:1]
    return [key.func for key in keys if isinstance(key, ast.Call)]


def test_public_interfaces_only():
    found = []
    for path in FILES:
        text = path.read_text(encoding="utf-8")
        if WORDS.search(text):
            found += problems(ast.parse(text), path.relative_to(SOURCE).as_posix())
    assert found == []


BAD = {
    "memory at an address": "import ctypes\nctypes.c_int64.from_address(8).value = 1",
    "the dict of a class": "import gc\ngc.get_referents(cls.__dict__)",
    "the C API": "import ctypes\nctypes.pythonapi.PyMem_RawMalloc(8)",
    "the C API by name": "from ctypes import pythonapi",
    "an object of a pointer": "import ctypes\nctypes.cast(p, ctypes.py_object)",
    "the address of an object": "import ctypes\nread(id(array))",
    "the addresses of objects": "import ctypes\nread(*map(id, arrays))",
    "an address in native text": "import ctypes\nf'inttoptr (i64 {id(array)} to ptr)'",
    "NumPy's table of functions": "import numpy as np\nnp._core._multiarray_umath._ARRAY_API",
}
GOOD = {
    "a key": "import ctypes\nknown[id(x)] = x\nknown.pop(id(x), None)\nid(x) in known",
    "no native code": "key = (id(x), id(y))",
    "the address of numbers": "import ctypes\nread(array.ctypes.data)",
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_refused(name):
    assert problems(ast.parse(BAD[name]), "function/example.py")


@pytest.mark.parametrize("name", GOOD)
def test_what_is_not(name):
    assert problems(ast.parse(GOOD[name]), "function/example.py") == []
