"""Which modules import which, read from source: at module level, inside functions, by name.

An import under ``TYPE_CHECKING`` never happens and is not counted. A name imported from a package
counts as an import of the module it is defined in. In a file that calls ``import_module``, every
string that names a module, or begins the name of one, counts as an import of it.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

__all__ = ["ImportGraph", "cycles"]


class ImportGraph:
    """The modules of a package (its folder) and, for each, those it imports."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.files = {self._name(p): p for p in sorted(root.rglob("*.py"))}
        self.offered: dict[str, dict[str, str]] = {}

    def _name(self, path: Path) -> str:
        parts = path.relative_to(self.root.parent).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @cached_property
    def edges(self) -> dict[str, set[str]]:
        """Each module with the modules that it imports, itself left out."""
        return {name: self._imported(name) - {name} for name in self.files}

    def _imported(self, name: str) -> set[str]:
        found: set[str] = set()
        statements = _running(_parsed(self.files[name]))
        stub = self.files[name].with_suffix(".pyi")
        if stub.exists():  # the names that the package imports when they are first used
            statements += _parsed(stub).body
        for node in statements:
            if isinstance(node, ast.Import):
                found.update(a.name for a in node.names if a.name in self.files)
            elif isinstance(node, ast.ImportFrom):
                base = self._base(name, node)
                found.update(self._home(base, a.name) for a in node.names if base in self.files)
        return found | self._named(statements)

    def _base(self, name: str, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        package = name.split(".")
        drop = node.level - (self.files[name].name == "__init__.py")
        return ".".join([*package[: len(package) - drop], *filter(None, [node.module])])

    def _home(self, package: str, name: str) -> str:
        """Return the module that defines a name imported from a package or module."""
        if f"{package}.{name}" in self.files:
            return f"{package}.{name}"
        if self.files[package].name != "__init__.py":
            return package
        if package not in self.offered:
            self.offered[package] = self._names_of(package)
        return self.offered[package].get(name, package)

    def _names_of(self, package: str) -> dict[str, str]:
        """Return the names that a package has from modules, with these modules."""
        stub = self.files[package].with_suffix(".pyi")
        file = stub if stub.exists() else self.files[package]
        found = {}
        for node in ast.walk(_parsed(file)):
            if isinstance(node, ast.ImportFrom) and node.module in self.files:
                for alias in node.names:
                    found[alias.asname or alias.name] = self._home(node.module, alias.name)
        return found

    def _named(self, statements: list[ast.AST]) -> set[str]:
        """Return the modules named in strings, of a file that imports by name."""
        calls = [n for n in statements if isinstance(n, ast.Call)]
        if not any(_called(c) in ("import_module", "__import__") for c in calls):
            return set()
        strings = {n.value for n in statements if isinstance(n, ast.Constant)}
        found = {s for s in strings if s in self.files}
        for joined in (n for n in statements if isinstance(n, ast.JoinedStr)):
            start = joined.values[0]
            if isinstance(start, ast.Constant) and str(start.value).startswith(self.root.name):
                found.update(n for n in self.files if n.startswith(str(start.value)))
        return found


def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _called(call: ast.Call) -> str:
    return getattr(call.func, "attr", getattr(call.func, "id", "")).lstrip("_")


def _running(tree: ast.AST) -> list[ast.AST]:
    """Return all nodes but those that only type checkers look at."""
    found: list[ast.AST] = []
    waiting = [tree]
    while waiting:
        for child in ast.iter_child_nodes(waiting.pop()):
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
                continue
            found.append(child)
            waiting.append(child)
    return found


def cycles(edges: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the groups of modules that import each other (Tarjan 1972, without recursion)."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    open_modules: list[str] = []
    groups = []
    for start in edges:
        if start in order:
            continue
        work = [(start, iter(sorted(edges[start])))]
        order[start] = low[start] = len(order)
        open_modules.append(start)
        while work:
            module, rest = work[-1]
            for target in rest:
                if target not in order:
                    order[target] = low[target] = len(order)
                    open_modules.append(target)
                    work.append((target, iter(sorted(edges[target]))))
                    break
                if target in open_modules:
                    low[module] = min(low[module], order[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[module])
                if low[module] == order[module]:
                    at = open_modules.index(module)
                    group, open_modules = open_modules[at:], open_modules[:at]
                    if len(group) > 1:
                        groups.append(sorted(group))
    return groups
