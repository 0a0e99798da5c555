"""No module imports, in whatever way, what imports it."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tests.quality.import_graph import ImportGraph, cycles

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "archimedes"
#: Packages that may know how functions are recorded and run; all others are plain NumPy.
MACHINERY = (
    "analysis backends cli embedded function graph interchange simulate symbolic system tree viz"
)


def test_no_cycles():
    """Imports inside functions and by name included."""
    groups = cycles(ImportGraph(SOURCE).edges)
    assert groups == [], "\n".join(f"{len(g)} modules: {', '.join(g)}" for g in groups)


def test_every_package_has_its_place_in_the_contracts():
    """A new package of physics is not forgotten."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers, *others = project["tool"]["importlinter"]["contracts"]
    packages = {f"archimedes.{p.parent.name}" for p in SOURCE.glob("*/__init__.py")}
    placed = {name.strip() for layer in layers["layers"] for name in layer.split("|")}
    assert packages <= placed
    (physics,) = [c for c in others if c["name"].startswith("Physics is plain NumPy")]
    assert {*physics["source_modules"]} == packages - {f"archimedes.{m}" for m in MACHINERY.split()}
    assert physics["forbidden_modules"] == [f"archimedes.{m}" for m in PRIVATE]


PRIVATE = ("graph", "symbolic", "backends")
FORMS = {
    "at the top": "from toy.b import x",
    "relative": "from .b import x",
    "of a package": "from toy import b",
    "of a name that the package has from it": "from toy import y",
    "of a name in a stub": "from toy.lazy import z",
    "inside a function": "def f():\n    from toy.b import x",
    "inside a class": "class A:\n    import toy.b",
    "by name": "from importlib import import_module\nx = import_module('toy.b')",
    "by a renamed function": (
        "from importlib import import_module as _import_module\nx = _import_module('toy.b')"
    ),
    "by a table of names": (
        "import importlib\nHOME = {'x': 'toy.b'}\ndef f(k):\n    importlib.import_module(HOME[k])"
    ),
    "by a name put together": (
        "import importlib\ndef f(k):\n    return importlib.import_module(f'toy.{k}')"
    ),
}
HARMLESS = {
    "none": "",
    "for type checkers": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import toy.b",
    "a string in a file that imports nothing by name": "x = 'toy.b'",
    "something else": "import os.path\nfrom math import sin",
}


def graph_with(folder: Path, a: str) -> ImportGraph:
    """A package of two modules, the second of which imports the first."""
    (folder / "toy" / "lazy").mkdir(parents=True)
    files = {
        "__init__.py": "from toy.b import x as y",
        "a.py": a,
        "b.py": "def f():\n    from toy.a import g",
        "lazy/__init__.py": "",
        "lazy/__init__.pyi": "from toy.b import z as z",
    }
    for name, text in files.items():
        (folder / "toy" / name).write_text(text, encoding="utf-8")
    return ImportGraph(folder / "toy")


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_import_counts(tmp_path, form):
    groups = cycles(graph_with(tmp_path, FORMS[form]).edges)
    assert any({"toy.a", "toy.b"} <= {*group} for group in groups)


@pytest.mark.parametrize("form", HARMLESS)
def test_nothing_else_counts(tmp_path, form):
    assert cycles(graph_with(tmp_path, HARMLESS[form]).edges) == []


def test_groups_are_found_whole():
    edges = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": {"d"}, "f": {"a"}}
    assert sorted(cycles(edges)) == [["a", "b", "c"], ["d", "e"]]
