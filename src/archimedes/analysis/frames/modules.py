"""Modules of the checked sources: their functions and classes, found without importing anything.

A name is looked up in the module, in what it imports from files beside it, and in this package's
own sources, whose public names stand in the stubs.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from archimedes.analysis.frames.names import are_compatible, words
from archimedes.analysis.frames.scopes import Evidence, Scope
from archimedes.records import record

__all__ = ["Class", "Function", "Module", "Project", "Routine", "parameters_of"]

PACKAGE = Path(__file__).resolve().parents[2]
_EQUAL = re.compile(r"#\s*frames:\s*(\w+)\s*(?:=|is)\s*(\w+)")

_BACKWARDS = re.compile(r"#\s*frames:\s*[A-Za-z]+_([A-Z])([A-Z]) takes \1 to \2")

#: Packages of others have no frames to tell of, and are large.
INSTALLED = ("site-packages", "dist-packages")
#: Files that are read for what one check imports.
MOST_MODULES = 500

Routine = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

#: Decorators after which a function is called as it is written.
TRANSPARENT = words(
    "compile jit njit staticmethod classmethod property cached_property lru_cache cache "
    "wraps override abstractmethod overload final dataclass struct record contextmanager"
)


@record
class Function:
    """A function, method or lambda, and where its names are looked up."""

    node: Routine
    module: Module
    scope: Scope
    cls: Class | None = None
    parent: Any = None

    @property
    def name(self) -> str:
        """The name, "lambda" without one."""
        return getattr(self.node, "name", "lambda")

    @property
    def bound(self) -> bool:
        """Whether the first parameter is the object or class itself."""
        return self.cls is not None and "staticmethod" not in self.decorators

    @property
    def decorators(self) -> set[str]:
        """The last names of its decorators."""
        return {decorator_name(d) for d in getattr(self.node, "decorator_list", [])}

    @property
    def callable(self) -> bool:
        """Whether calls have the parameters that are written here."""
        return self.decorators <= TRANSPARENT


@record
class Class:
    """A class with its fields, methods and the classes it inherits from."""

    node: ast.ClassDef
    module: Module
    scope: Scope
    methods: dict[str, Function]
    inner: dict[str, Class]
    attributes: dict[str, Any]

    def bases(self) -> Iterator[Class]:
        """Yield the class and those it inherits from, as far as their source is known."""
        seen: set[int] = set()
        waiting = [self]
        while waiting and len(seen) < 50:
            cls = waiting.pop(0)
            if id(cls) in seen:
                continue
            seen.add(id(cls))
            yield cls
            found = [cls.module.find(b) for b in cls.node.bases]
            waiting += [b for b in found if isinstance(b, Class)]

    def method(self, name: str) -> Function | None:
        """Return a method, also an inherited one."""
        return next((c.methods[name] for c in self.bases() if name in c.methods), None)

    def nested(self, name: str) -> Class | None:
        """Return a class inside, also of a class it inherits from."""
        return next((c.inner[name] for c in self.bases() if name in c.inner), None)

    def fields(self) -> list[tuple[str, ast.expr, Class]]:
        """Return names, annotations and classes of the fields, inherited ones first."""
        found = {}
        for cls in reversed(list(self.bases())):
            for s in cls.node.body:
                if not isinstance(s, ast.AnnAssign) or not isinstance(s.target, ast.Name):
                    continue
                if "ClassVar" not in ast.unparse(s.annotation):
                    found[s.target.id] = (s.target.id, s.annotation, cls)
        return list(found.values())

    def type_of(self, name: str) -> Class | None:
        """Return the class that a field is annotated with, if its source is known."""
        for field, annotation, cls in self.fields():
            if field == name:
                return cls.module.annotated(annotation, cls)
        return None


class Module:
    """One file or text: its tree, and what its names stand for.

    ``given`` is whether it is checked, rather than read for its signatures.
    """

    def __init__(self, project: Project, path: Path | None, tree: ast.Module, text: str) -> None:
        self.project, self.path, self.tree = project, path, tree
        self.given = False
        self.folders = set(path.resolve().parents) if path is not None else set()
        self.backwards = _BACKWARDS.search(text) is not None
        pairs = [m.groups() for m in _EQUAL.finditer(text)]
        self.same: Callable[[str, str], bool] = same_by(pairs) if pairs else are_compatible
        apart = [s for s in tree.body if isinstance(s, (ast.FunctionDef, ast.ClassDef))]
        own = [s for s in tree.body if not isinstance(s, (ast.FunctionDef, ast.ClassDef))]
        self.apart = set(map(id, apart))
        self.evidence = Evidence(ast.Module(own, []))
        self.names: dict[str, Any] = {}
        self.found: dict[str, Any] = {}
        self.by_name: dict[str, str] = {}
        self.scopes: dict[int, Scope] = {}
        self.spatial = self.attitudes = PACKAGE in self.folders
        if not self.spatial:
            parts = {id(s): Evidence(s) for s in apart}
            everything = [self.evidence, *parts.values()]
            self.spatial = any(e.spatial for e in everything)
            self.attitudes = any(e.archimedes for e in everything)
            self.scopes = {key: self.make_scope(e) for key, e in parts.items()}
        self.scope = self.make_scope(self.evidence)
        for statement in tree.body:
            self.take(statement)

    def make_scope(self, evidence: Evidence) -> Scope:
        """Return what names mean in a part of the module."""
        flags = self.attitudes, self.backwards
        return Scope(evidence, self.evidence, self.spatial, self.same, *flags)

    def scope_of(self, statement: ast.AST) -> Scope | None:
        """Return the scope of a function or class at the top of the module."""
        if id(statement) not in self.scopes and id(statement) in self.apart:
            self.scopes[id(statement)] = self.make_scope(Evidence(statement))
        return self.scopes.get(id(statement))

    def take(self, statement: ast.stmt) -> None:
        """Note what a statement of the module defines."""
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            self.names[statement.name] = statement
        elif isinstance(statement, (ast.Import, ast.ImportFrom)):
            self.take_import(statement)
        elif isinstance(statement, (ast.If, ast.Try)):
            for inner in statement.body:
                self.take(inner)

    def take_import(self, statement: ast.Import | ast.ImportFrom, inside: bool = False) -> None:
        """Note what an import statement brings; one ``inside`` a function replaces nothing."""
        for alias in statement.names:
            if isinstance(statement, ast.Import):
                dotted = alias.name if alias.asname else alias.name.split(".")[0]
                name = alias.asname or dotted
                entry: tuple[str, int, str | None] = (dotted, 0, None)
            else:
                name = alias.asname or alias.name
                entry = (statement.module or "", statement.level, alias.name)
            if not inside or name not in self.names:
                self.names[name] = entry
                self.found.pop(name, None)

    def make_class(self, node: ast.ClassDef, scope: Scope) -> Class:
        """Return a class with its methods."""
        cls = Class(node, self, scope, {}, {}, {})
        for s in node.body:
            if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef)):
                cls.methods[s.name] = Function(s, self, scope, cls)
            elif isinstance(s, ast.ClassDef):
                cls.inner[s.name] = self.make_class(s, scope)
        return cls

    def lookup(self, name: str, depth: int = 0) -> Function | Class | Module | None:
        """Return the function, class or module that a name stands for, None if unknown."""
        if name in self.found:
            return self.found[name]
        entry = self.names.get(name)
        if isinstance(entry, ast.ClassDef):
            entry = self.make_class(entry, self.scope_of(entry) or self.scope)
        elif isinstance(entry, (ast.FunctionDef, ast.AsyncFunctionDef)):
            entry = Function(entry, self, self.scope_of(entry) or self.scope)
        if isinstance(entry, tuple) and depth < 10:
            module, level, part = entry
            found: Any = self.project.load(module, level, self)
            if part is not None and isinstance(found, Module):
                inside = found.lookup(part, depth + 1)
                if inside is None and found.is_package:
                    inside = self.project.load(f"{module}.{part}" if module else part, level, self)
                found = inside
            entry = found
        if isinstance(entry, tuple):
            entry = None
        self.found[name] = entry
        return entry

    def class_like(self, name: str) -> Class | None:
        """Return the class that a variable is called after: ``nav_state`` is a NavState."""
        if not self.by_name:
            self.by_name = {n.lower(): n for n in self.names if n[:1].isupper()} or {"": ""}
        known = self.by_name.get(name.replace("_", "").lower())
        found = self.lookup(known) if known and len(name) > 2 else None
        return found if isinstance(found, Class) else None

    @property
    def library(self) -> bool:
        """Whether it is one of this package's own and not what is being checked."""
        return not self.given and PACKAGE in self.folders

    @property
    def is_package(self) -> bool:
        """Whether it is the ``__init__`` of a package."""
        return self.path is not None and self.path.stem == "__init__"

    def find(self, node: ast.expr, cls: Class | None = None) -> Any:
        """Return what a dotted name in the source stands for."""
        if isinstance(node, ast.Subscript):  # Generic[T]
            return self.find(node.value, cls)
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            try:
                return self.find(ast.parse(node.value, mode="eval").body, cls)
            except (SyntaxError, ValueError, RecursionError):
                return None
        if isinstance(node, ast.Name):
            inner = cls.nested(node.id) if cls is not None else None
            return inner or self.lookup(node.id)
        if isinstance(node, ast.Attribute):
            base = self.find(node.value, cls)
            if isinstance(base, Module):
                found = base.lookup(node.attr)
                if found is None and base.is_package and PACKAGE in base.folders:
                    return self.project.load(f"{base.dotted}.{node.attr}", 0, self)
                return found
            if isinstance(base, Class):
                return base.nested(node.attr) or base.method(node.attr)
        return None

    @property
    def dotted(self) -> str:
        """The name by which a module of this package is imported."""
        assert self.path is not None
        parts = self.path.resolve().relative_to(PACKAGE.parent).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    def annotated(self, annotation: ast.expr | None, cls: Class | None = None) -> Class | None:
        """Return the class of an annotation, if its source is known."""
        found = self.find(annotation, cls) if annotation is not None else None
        return found if isinstance(found, Class) else None


class Project:
    """The modules of one check: those that are given and those that they import."""

    def __init__(self) -> None:
        self.modules: dict[Path, Module | None] = {}
        self.roots: list[Path] = []
        self.loaded: dict[Any, Module | None] = {}
        self.count = 0

    def add(self, path: Path | None, tree: ast.Module, text: str) -> Module:
        """Make a module of a tree, and remember it by its path."""
        module = Module(self, path, tree, text)
        if path is not None:
            self.modules[path.resolve()] = module
        return module

    def load(self, dotted: str, level: int, importer: Module) -> Module | None:
        """Return an imported module, None where its source is neither beside it nor ours."""
        ours = dotted.split(".")[0] == "archimedes" and not level
        if ours and self is not OURS and not any(PACKAGE in p.parents for p in self.modules):
            return OURS.load(dotted, level, importer)
        folder = importer.path.parent if importer.path is not None else None
        key = (dotted, level, folder)
        if key not in self.loaded:
            self.loaded[key] = self.search(dotted, level, importer)
        return self.loaded[key]

    def search(self, dotted: str, level: int, importer: Module) -> Module | None:
        """Read the first file that a module can be."""
        for path in self.candidates(dotted, level, importer):
            path = path.resolve()
            if path not in self.modules and self.count < MOST_MODULES and path.is_file():
                self.count += 1
                try:
                    text = path.read_text(encoding="utf-8")
                    self.add(path, ast.parse(text), text)
                except (OSError, UnicodeDecodeError, SyntaxError, ValueError, RecursionError):
                    self.modules[path] = None  # reported where that file itself is checked
            if self.modules.get(path) is not None:
                return self.modules[path]
        return None

    def candidates(self, dotted: str, level: int, importer: Module) -> Iterator[Path]:
        """Yield the files that a module could be."""
        parts = dotted.split(".") if dotted else []
        roots: list[Path] = []
        if level:
            if importer.path is not None:
                above = importer.path.resolve().parents
                roots = [above[level - 1]] if level <= len(above) else []
        elif parts and parts[0] == "archimedes":
            roots = [PACKAGE.parent]
        elif importer.path is not None:
            folder = importer.path.resolve().parent
            roots = [folder, *self.roots]
            roots = [r for r in roots if r.name not in INSTALLED]
            while (folder / "__init__.py").is_file() and folder.parent != folder:
                folder = folder.parent
                roots += [] if folder.name in INSTALLED else [folder]
        for root in roots:
            base = root.joinpath(*parts)
            yield from (base / "__init__.pyi", base / "__init__.py")
            if parts:
                yield base.with_suffix(".py")


#: This package's own sources, read once for all checks of a session.
OURS = Project()


def same_by(pairs: list[tuple[str, ...]]) -> Callable[[str, str], bool]:
    """Return the comparison of frames in a file that declares some of them equal."""
    name: dict[str, str] = {}
    for a, b in pairs:
        name[name.get(b, b)] = name.get(a, a)

    def same(a: str, b: str) -> bool:
        return are_compatible(a, b) or are_compatible(name.get(a, a), name.get(b, b))

    return same


def decorator_name(node: ast.expr) -> str:
    """Return the last name of a decorator, called or not."""
    node = node.func if isinstance(node, ast.Call) else node
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def parameters_of(function: Function) -> tuple[list[ast.arg], list[ast.arg], bool]:
    """Return positional and keyword-only parameters, and whether there is ``*args``."""
    a = function.node.args
    return [*a.posonlyargs, *a.args], a.kwonlyargs, a.vararg is not None
