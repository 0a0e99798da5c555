"""The reference: a page for each public name, a table for each package."""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from archimedes import tree
from docs.site.docstring_text import as_text, first_sentence
from docs.site.parameters import described
from docs.site.public_names import PACKAGES, Name, names_of, present, public_names

__all__ = ["reference_pages"]


def reference_pages() -> Iterator[tuple[str, str]]:
    """Yield the pages of the reference: path without ending, and text."""
    packages = present()
    yield "reference/index", _index(packages)
    for package in packages:
        names = names_of(package)
        yield f"reference/{package}", _package(package, names)
        for name in names:
            if name.same_as is None and name.kind != "module":
                yield _place(name.full), _page(name)


def _place(full: str) -> str:
    package, _, name = full.rpartition(".")
    # File systems that know no capitals: State and state are two pages.
    capital = "-class" if name[:1].isupper() else ""
    return f"reference/{package}/{name}{capital}"


def _title(text: str, mark: str = "=") -> str:
    return f"{text}\n{mark * len(text)}\n\n"


def _index(packages: list[str]) -> str:
    rows = "".join(f"   * - :doc:`{p} <{p}>`\n     - {as_text(PACKAGES[p])}\n" for p in packages)
    tree = "".join(f"   {p.removeprefix('archimedes.')} <{p}>\n" for p in packages)
    return (
        _title("Reference")
        + "Every public name, with its signature, what it takes and returns (shapes and units), "
        "and an example that the tests run. ``import archimedes as arc`` is assumed throughout: "
        "``arc.jac`` is ``archimedes.jac``. Units are SI and angles radians where nothing else is "
        "said. Index of all names: :ref:`genindex`.\n\n"
        f".. list-table::\n   :widths: 35 65\n\n{rows}\n"
        f".. toctree::\n   :hidden:\n\n{tree}"
    )


def _package(package: str, names: list[Name]) -> str:
    rows = "".join(_row(n) for n in names)
    aliases = "".join(_alias(n) for n in names if n.same_as)
    return (
        _title(package)
        + f".. py:module:: {package}\n\n"
        + as_text(PACKAGES[package])
        + ".\n\n"
        + f".. list-table::\n   :widths: 35 65\n\n{rows}\n{aliases}"
    )


def _row(name: Name) -> str:
    if name.kind == "module":
        link = (
            f":doc:`{name.name} </reference/{name.full}>`"
            if name.full in PACKAGES
            else f"``{name.name}``"
        )
    else:
        link = f":doc:`{name.name} </{_place(name.same_as or name.full)}>`"
    text = PACKAGES.get(name.full) or first_sentence(name.text)
    return f"   * - {link}\n     - {as_text(text)}\n"


def _alias(name: Name) -> str:
    """An entry in the index for a name whose page is at another package."""
    directive = "attribute" if name.kind == "data" else name.kind
    return f".. py:{directive}:: {name.name}\n   :no-typesetting:\n\n"


def _page(name: Name) -> str:
    writer = {"class": _class, "exception": _class, "function": _function, "data": _data}[name.kind]
    also = [n.full for p in present() for n in names_of(p) if n.same_as == name.full]
    note = f"Also ``{'``, ``'.join(also)}``.\n\n" if also else ""
    if makers := _makers(name):
        links = ", ".join(f":doc:`{m.name} </{_place(m.full)}>`" for m in makers)
        note = f"Returned by {links}.\n\n" + note
    return (
        ":orphan:\n\n.. rst-class:: public-name\n\n"
        + _title(name.full.removeprefix("archimedes."))
        + f"``{_import(name)}``\n\n"
        + f".. py:currentmodule:: {name.package}\n\n"
        + writer(name)
        + "\n"
        + note
        + f"Back to :doc:`{name.package} </reference/{name.package}>`.\n"
    )


def _import(name: Name) -> str:
    """Return the line that brings a name."""
    if name.package == "archimedes":
        return f"import archimedes as arc; arc.{name.name}"
    return f"from {name.package} import {name.name}"


def _makers(name: Name) -> list[Name]:
    """Return the public functions that return a class, by their annotations."""
    if name.kind != "class":
        return []
    pattern = re.compile(rf"(?<![\w.]){re.escape(name.name)}(?!\w)")
    functions = [n for n in public_names() if n.kind == "function" and n.same_as is None]
    found = [n for n in functions if pattern.search(_returned(n.value)) and _near(n, name)]
    return found[:8]


def _returned(value: Any) -> str:
    try:
        return _type_text(inspect.signature(value).return_annotation)
    except (TypeError, ValueError):
        return ""


def _near(function: Name, cls: Name) -> bool:
    """Return whether the name in a function's module is that of the class, and no other."""
    module = sys.modules.get(getattr(function.value, "__module__", ""))
    seen = getattr(module, cls.name, cls.value)
    return seen is cls.value


def _indented(text: str, by: int = 3) -> str:
    return "".join((" " * by + line if line.strip() else "") + "\n" for line in text.splitlines())


def _function(name: Name) -> str:
    return _entry(name, "function", name.name, name.value, name.text)


def _data(name: Name) -> str:
    value = name.value
    if name.package == "archimedes.typing":  # what an alias stands for is NumPy's affair
        return f".. py:data:: {name.name}\n\n{_indented(as_text(name.text))}"
    shown = ", ".join(map(repr, value)) if isinstance(value, dict) else _plain(repr(value))
    what = "Keys" if isinstance(value, dict) else "Value"
    body = as_text(name.text) + f"\n\n{what}: ``{shown}``\n"
    return f".. py:data:: {name.name}\n\n{_indented(body)}"


def _class(name: Name) -> str:
    cls = name.value
    members = "".join(_members(name))
    body = as_text(name.text) + "\n\n" + _fields(cls)
    return (
        f".. py:{name.kind}:: {name.name}{_signature(cls)}\n\n"
        + _indented(body)
        + "\n"
        + (_title("Methods and attributes", "-") + members if members else "")
    )


def _entry(name: Name, directive: str, title: str, value: Any, text: str, flags: str = "") -> str:
    body = as_text(text) + "\n\n" + _parameters(value, text, name)
    return f".. py:{directive}:: {title}{_signature(value)}\n{flags}\n{_indented(body)}\n"


def _members(owner: Name) -> Iterator[str]:
    cls, full = owner.value, owner.name
    fields = {f.name for f in dataclasses.fields(cls)} if dataclasses.is_dataclass(cls) else set()
    fields |= set(getattr(cls, "_fields", ()))
    for name in dir(cls):
        if name.startswith("_") or name in fields or getattr(cls, name, None) is tree.replace:
            continue
        raw = inspect.getattr_static(cls, name)
        home = next((c for c in cls.__mro__ if name in vars(c)), cls)
        if not home.__module__.startswith("archimedes") or isinstance(raw, ModuleType):
            continue
        value = getattr(cls, name, raw)
        text = inspect.getdoc(value) or ""
        flags = "   :no-index-entry:\n"
        if isinstance(raw, (classmethod, staticmethod)):
            kind = "classmethod" if isinstance(raw, classmethod) else "staticmethod"
            yield _entry(owner, "method", f"{full}.{name}", value, text, f"   :{kind}:\n{flags}")
        elif inspect.isroutine(value):
            yield _entry(owner, "method", f"{full}.{name}", value, text, flags)
        elif inspect.isclass(value):
            if value.__name__ == name:
                body = as_text(text) + "\n\n" + _fields(value)
                head = f".. py:class:: {full}.{name}{_signature(value)}"
                yield f"{head}\n{flags}\n{_indented(body)}\n"
        elif isinstance(raw, property) or hasattr(raw, "__get__"):
            yield f".. py:property:: {full}.{name}\n{flags}\n{_indented(as_text(text))}\n"


def _signature(value: Any) -> str:
    """Return names and defaults; types are in the table below."""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return "(...)" if callable(value) else ""
    kept = [
        p.replace(annotation=inspect.Parameter.empty, default=_default(p))
        for p in signature.parameters.values()
        if p.name not in ("self", "cls")
    ]
    return str(signature.replace(parameters=kept, return_annotation=inspect.Signature.empty))


class _Shown:
    """A default value that is written as given."""

    def __init__(self, text: str):
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _default(parameter: inspect.Parameter) -> Any:
    value = parameter.default
    if value is inspect.Parameter.empty:
        return value
    return _Shown(_plain(repr(value)))


def _plain(text: str) -> str:
    """Shorten what a machine or a class says of itself."""
    if text == "<factory>":
        return "..."
    text = re.sub(r"<(?:class|function|enum) '?([\w.<>]+?)'?(?: at 0x\w+)?>", r"\1", text)
    text = re.sub(r"<([\w.]+) object at 0x\w+>", r"\1", " ".join(text.split()))
    return text if len(text) < 60 else text[:56] + "..."


def _type_text(annotation: Any) -> str:
    if annotation is inspect.Parameter.empty:
        return ""
    text = (
        annotation
        if isinstance(annotation, str)
        else getattr(annotation, "__name__", str(annotation))
    )
    return text.replace("np.ndarray", "array").replace("typing.", "")


def _parameters(value: Any, text: str, name: Name) -> str:
    """Return a table of parameters: types, and what docstrings need not repeat."""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    rows = []
    for p in signature.parameters.values():
        kind = "" if p.annotation in ("Any", Any) else _type_text(p.annotation)
        words = described(name.package, name.name, p.name, text)
        if kind or words:
            rows.append((p.name, kind, Words(words)))
    returned = _type_text(signature.return_annotation)
    headers = ("parameter", "type", Words(""))
    used = [k for k in range(3) if any(row[k] for row in rows)]
    table = _table([headers[k] for k in used], [[row[k] for k in used] for row in rows])
    return table + (f"Returns ``{returned}``.\n\n" if returned not in ("", "Any", "None") else "")


class Words(str):
    """Text of a table that is prose, not code."""


def _fields(cls: type) -> str:
    """Return a table of the fields of a struct, dataclass or named tuple: type, unit, default."""
    if hasattr(cls, "_field_defaults"):
        hints = cls.__annotations__
        return _field_table(
            [(f, _known_type(hints.get(f, "")), "", "", "") for f in getattr(cls, "_fields", ())]
        )
    if not dataclasses.is_dataclass(cls):
        return ""
    rows = []
    for f in dataclasses.fields(cls):
        if f.name.startswith("_"):
            continue
        unit = f.metadata.get("units") or ""
        if f.default is not dataclasses.MISSING:
            default = _plain(repr(f.default))
        else:
            default = "" if f.default_factory is dataclasses.MISSING else _made(f.default_factory)
        static = "static" if f.metadata.get("static") else ""
        rows.append((f.name, _known_type(f.type), unit, default, static))
    copies = getattr(cls, "replace", None) is tree.replace
    more = "A copy with other values: :doc:`x.replace(...) </reference/archimedes.tree/replace>`."
    return _field_table(rows) + (f"{more}\n\n" if copies and rows else "")


def _field_table(rows: list[tuple[str, ...]]) -> str:
    """Return the table, without columns that say nothing."""
    headers = ("field", "type", "unit", "default", "")
    used = [k for k, _ in enumerate(headers) if k == 0 or any(row[k] for row in rows)]
    return _table([headers[k] for k in used], [[row[k] for k in used] for row in rows])


def _known_type(annotation: Any) -> str:
    """Return a type; nothing for Any, which says nothing."""
    text = _type_text(getattr(annotation, "__forward_arg__", annotation))
    return "" if text == "Any" else text


def _made(factory: Any) -> str:
    try:
        return _plain(repr(factory()))
    except Exception:
        return "..."


def _table(headers: Any, rows: Any) -> str:
    if not rows:
        return ""
    lines = [".. list-table::", "   :header-rows: 1", "   :class: parameters", ""]
    for row in (headers, *rows):
        for k, cell in enumerate(row):
            prose = row is headers or isinstance(cell, Words) or not cell
            shown = as_text(cell) if prose else f"``{cell}``"
            lines.append(f"   {'* -' if k == 0 else '  -'} {shown}".rstrip())
    return "\n".join(lines) + "\n\n"
