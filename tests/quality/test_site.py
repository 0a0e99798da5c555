"""The site: every public name is in it, its links lead somewhere, it needs nothing from outside."""

from __future__ import annotations

import ast
import importlib
import json
import pkgutil
import posixpath
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from docs.site.demo_pictures import FOLDER, demo_cards
from docs.site.notebooks import notebook
from docs.site.page_blocks import ROOT, blocks_of
from docs.site.public_names import (
    PACKAGES,
    names_of,
    present,
    public_names,
    undescribed_parameters,
)
from docs.site.reference import reference_pages

import archimedes as arc
from archimedes.demos import DEMOS
from tests.optional_packages import import_or_skip

STUBS = sorted((ROOT / "src" / "archimedes").rglob("__init__.pyi"))


def all_names() -> set[str]:
    """What packages for users list in ``__all__``."""
    packages = {p: importlib.import_module(p) for p in present()}
    return {f"{p}.{name}" for p, module in packages.items() for name in module.__all__}


def test_packages_for_users_are_in_the_reference():
    """Whatever can be reached from ``arc`` through ``__all__`` is."""
    waiting, reached = [arc], set()
    while waiting:
        module = waiting.pop()
        reached.add(module.__name__)
        values = [getattr(module, name) for name in module.__all__]
        waiting += [v for v in values if isinstance(v, ModuleType) and hasattr(v, "__all__")]
    assert reached <= set(PACKAGES)
    # Sub-packages of physics with names of their own are for users too.
    below = {f"archimedes.vehicles.{m.name}" for m in pkgutil.iter_modules(arc.vehicles.__path__)}
    assert {"archimedes.vehicles.parts", "archimedes.vehicles.sensors"} <= below & set(PACKAGES)


@pytest.mark.long
def test_every_public_name_has_a_page():
    pages = dict(reference_pages())
    places = {place.removesuffix("-class") for place in pages}
    for name in public_names():
        own = "reference/" + "/".join((name.same_as or name.full).rsplit(".", 1))
        assert own in places or name.kind == "module", name.full
        assert f"`{name.name} <" in pages[f"reference/{name.package}"] or name.kind == "module"
    assert {n.full for n in public_names()} == all_names()


@pytest.mark.parametrize("stub", STUBS, ids=lambda p: p.parent.name)
def test_names_of_stubs_are_in_the_reference(stub):
    package = ".".join(stub.parent.relative_to(ROOT / "src").parts)
    body = ast.parse(stub.read_text("utf-8")).body
    listed = {a.name for s in body if isinstance(s, ast.ImportFrom) for a in s.names}
    assert listed == {n.name for n in names_of(package)}


def test_public_names_say_what_they_are():
    without = [n.full for n in public_names() if n.kind != "module" and len(n.text) < 15]
    assert without == []


@pytest.mark.parametrize("package", present())
def test_docstrings_describe_every_parameter(package):
    names = [n for n in names_of(package) if n.same_as is None]
    ours = [n for n in names if getattr(n.value, "__module__", "").startswith("archimedes")]
    assert [p for n in ours for p in undescribed_parameters(n)] == []


def test_every_demonstration_is_in_the_gallery():
    shown = demo_cards()
    for name in DEMOS:
        assert f"archimedes demo {name}" in shown and f"demos/{name}.jpg" in shown
        assert (FOLDER / f"{name}.jpg").stat().st_size < 150_000


def test_notebooks_have_the_blocks_of_their_pages():
    for page in sorted((ROOT / "docs" / "tutorials").glob("*.md")):
        text = page.read_text("utf-8")
        blocks = list(blocks_of(text))
        cells = json.loads(notebook(text, [{"text": ""}] * len(blocks)))["cells"]
        code = [c["source"] for c in cells if c["cell_type"] == "code"]
        assert code == [b.code.rstrip() for b in blocks]


@pytest.mark.long
def test_it_builds_and_is_whole():
    """Build it; a link that leads nowhere is a warning of Sphinx, and warnings are errors."""
    import_or_skip("sphinx")
    import_or_skip("furo")
    from docs.build import SITE
    from sphinx.util.inventory import InventoryFile

    # A process of its own: warnings of Python that Sphinx's extensions raise are theirs.
    build = [sys.executable, "-m", "docs.build", "--jobs", "1"]
    run = subprocess.run(build, cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    with (SITE / "objects.inv").open("rb") as file:
        inventory = InventoryFile.load(file, "", posixpath.join)
    indexed = {
        name for kind, names in inventory.items() if kind.startswith("py:") for name in names
    }
    assert all_names() - indexed == set()
    assert list(fetched(SITE)) == []


def fetched(site: Path) -> Iterator[str]:
    """Yield what pages would fetch from elsewhere: scripts, styles, pictures, fonts."""
    tag = re.compile(r"<(?!a\b)\w+\b[^>]*\b(?:href|src)=\"(https?:)?//[^\"]+")
    for path in sorted([*site.rglob("*.html"), *site.rglob("*.css")]):
        pattern = tag if path.suffix == ".html" else re.compile(r"url\(\s*[\"']?https?:[^)\"']+")
        yield from (
            f"{path.relative_to(site)}: {m[0]}" for m in pattern.finditer(path.read_text("utf-8"))
        )
