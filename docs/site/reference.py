"""The reference: a table for each package, and a page for each public name, which autodoc fills."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from typing import Any

from docs.site.public_names import PACKAGES, Name, names_of, present, public_names

__all__ = ["first_sentence", "reference_pages"]

#: Bases whose methods the reader knows from elsewhere.
KNOWN_BASES = "Exception, dict, float, int, list, str, tuple"


def reference_pages() -> Iterator[tuple[str, str]]:
    """Yield the pages of the reference: path without ending, and text."""
    packages = present()
    yield "reference/index", _index(packages)
    for package in packages:
        names = names_of(package)
        yield f"reference/{package}", _package(package, names)
        for name in names:
            if name.same_as is None and name.kind != "module":
                yield _path(name.full), _page(name)


def first_sentence(docstring: str) -> str:
    """Return the first sentence of a docstring, on one line.

    >>> first_sentence("Return x, e.g. 1.5 of it.\\nMore.")
    'Return x, e.g. 1.5 of it.'
    """
    paragraph = " ".join(docstring.split("\n\n")[0].split())
    sentence = re.match(r".*?[.:](?=\s[A-Z`]|$)", paragraph)
    return (sentence[0] if sentence else paragraph).rstrip(":")


def _path(full: str) -> str:
    package, _, name = full.rpartition(".")
    # Some file systems ignore capitals: State and state must be two files.
    capital = "-class" if name[:1].isupper() else ""
    return f"reference/{package}/{name}{capital}"


def _title(text: str) -> str:
    return f"{text}\n{'=' * len(text)}\n\n"


def _index(packages: list[str]) -> str:
    rows = "".join(f"   * - :doc:`{p} <{p}>`\n     - {PACKAGES[p]}\n" for p in packages)
    contents = "".join(f"   {p.removeprefix('archimedes.')} <{p}>\n" for p in packages)
    return (
        _title("Reference")
        + "Every public name, with its parameters, what it returns and an example that the tests "
        "run. ``import archimedes as arc`` is assumed throughout: ``arc.jac`` is "
        "``archimedes.jac``. Units are SI and angles are in radians unless a page says otherwise. "
        "Index of all names: :ref:`genindex`.\n\n"
        f".. list-table::\n   :widths: 35 65\n\n{rows}\n"
        f".. toctree::\n   :hidden:\n\n{contents}"
    )


def _package(package: str, names: list[Name]) -> str:
    rows = "".join(_row(name) for name in names)
    aliases = "".join(_alias(name) for name in names if name.same_as)
    return (
        _title(package)
        + f".. py:module:: {package}\n\n{PACKAGES[package]}.\n\n"
        + f".. list-table::\n   :widths: 35 65\n\n{rows}\n{aliases}"
    )


def _row(name: Name) -> str:
    if name.kind == "module":
        is_page = name.full in PACKAGES
        link = f":doc:`{name.name} </reference/{name.full}>`" if is_page else f"``{name.name}``"
    else:
        link = f":doc:`{name.name} </{_path(name.same_as or name.full)}>`"
    return f"   * - {link}\n     - {PACKAGES.get(name.full) or first_sentence(name.text)}\n"


def _alias(name: Name) -> str:
    """Return an entry in the index for a name whose page belongs to another package."""
    directive = "attribute" if name.kind == "data" else name.kind
    return f".. py:{directive}:: {name.name}\n   :no-typesetting:\n\n"


def _page(name: Name) -> str:
    notes = ""
    if makers := _makers(name):
        links = ", ".join(f":doc:`{m.name} </{_path(m.full)}>`" for m in makers)
        notes = f"Returned by {links}.\n\n"
    also = [n.full for p in present() for n in names_of(p) if n.same_as == name.full]
    if also:
        notes += f"Also ``{'``, ``'.join(also)}``.\n\n"
    return (
        ":orphan:\n\n.. rst-class:: public-name\n\n"
        + _title(name.full.removeprefix("archimedes."))
        + f"``{_import(name)}``\n\n.. py:currentmodule:: {name.package}\n\n"
        + _directive(name)
        + f"\n{notes}Back to :doc:`{name.package} </reference/{name.package}>`.\n"
    )


def _import(name: Name) -> str:
    """Return the line that brings a name."""
    if name.package == "archimedes":
        return f"import archimedes as arc; arc.{name.name}"
    return f"from {name.package} import {name.name}"


def _directive(name: Name) -> str:
    if name.kind == "function":
        return f".. autofunction:: {name.name}\n"
    if name.kind in ("class", "exception"):
        options = f"   :members:\n   :inherited-members: {KNOWN_BASES}\n"
        if elsewhere := _borrowed_classes(name.value):
            options += f"   :exclude-members: {', '.join(elsewhere)}\n"
        return f".. auto{name.kind}:: {name.name}\n{options}"
    body = name.text
    if name.package != "archimedes.typing":  # what an alias stands for is NumPy's affair
        is_table = isinstance(name.value, dict)
        shown = ", ".join(map(repr, name.value)) if is_table else _shorten(repr(name.value))
        body += f"\n\n{'Keys' if is_table else 'Value'}: ``{shown}``"
    return f".. py:data:: {name.name}\n\n" + "".join(f"   {line}\n" for line in body.splitlines())


def _borrowed_classes(cls: type) -> list[str]:
    """Return the names of classes inside a class that are shown on the page of another one."""
    members = {name: getattr(cls, name) for name in dir(cls) if not name.startswith("_")}
    inner = {name: m for name, m in members.items() if isinstance(m, type)}
    return [name for name, m in inner.items() if m.__qualname__ != f"{cls.__qualname__}.{name}"]


def _shorten(text: str) -> str:
    text = re.sub(r"<([\w.]+) object at 0x\w+>", r"\1", " ".join(text.split()))
    return text if len(text) < 60 else text[:56] + "..."


def _makers(name: Name) -> list[Name]:
    """Return the public functions that return a class, by their annotations."""
    if name.kind != "class":
        return []
    pattern = re.compile(rf"(?<![\w.]){re.escape(name.name)}(?!\w)")
    functions = [n for n in public_names() if n.kind == "function" and n.same_as is None]
    makers = [n for n in functions if pattern.search(_return_type(n.value)) and _same(n, name)]
    return makers[:8]


def _return_type(function: Any) -> str:
    try:
        return str(inspect.signature(function).return_annotation)
    except (TypeError, ValueError):
        return ""


def _same(function: Name, cls: Name) -> bool:
    """Return whether the class's name means this class in the module of a function."""
    module = sys.modules.get(getattr(function.value, "__module__", ""))
    return getattr(module, cls.name, cls.value) is cls.value
