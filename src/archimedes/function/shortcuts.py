"""Call paths written for one specialisation: no tree is built, nothing is walked.

``shortcut(...)`` generates the source of a function ``fast(args)`` that checks the types of the
argument structs, hands their leaves to the native entry (which checks those), and builds the
result structs. It returns ``NotImplemented`` for arguments of any other form. For

    xdot = f(t, x, u)

it reads about like this::

    def fast(args):
        if len(args) != 3: return NotImplemented
        a0, a1, a2 = args
        if type(a1) is not State or type(a2) is not Input: return NotImplemented
        values = native(a0, a1.pos, a1.v, a2.force)
        if values is NotImplemented: return NotImplemented
        r0 = new(State); d = r0.__dict__; d['pos'], d['v'] = values
        return r0
"""

from __future__ import annotations

from collections.abc import Callable
from types import MemberDescriptorType
from typing import Any

from archimedes.function.recording import Recording
from archimedes.tree.specialise import field_names
from archimedes.tree.structs import is_struct
from archimedes.tree.treedef import LEAF, TreeDef

__all__ = ["shortcut"]

#: Static values that are compared by type and value in generated code.
_SIMPLE = (str, bool, int, type(None))


class _Writer:
    """Collects lines of source and the objects they name."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names: dict[str, Any] = {"new": object.__new__}
        self.count = 0

    def fresh(self, stem: str, value: Any = None) -> str:
        self.count += 1
        name = f"{stem}{self.count}"
        if value is not None:
            self.names[name] = value
        return name

    def unless(self, test: str) -> None:
        self.lines.append(f"    if {test}: return NotImplemented")


def shortcut(
    native: Any, treedef: TreeDef, recording: Recording, into: bool = False
) -> Callable[..., Any] | None:
    """Return ``fast(args)`` for a tuple of arguments, or None if a tree is not made of structs.

    With ``into`` it is ``fast(args, out)``: the leaves of ``out`` take the results.
    """
    if any(out.spec.code < 0 for out in recording.outs):
        return None
    w = _Writer()
    w.names["native"] = native
    count = len(treedef.children)
    w.unless(f"len(args) != {count}")
    arguments = [f"a{k}" for k in range(count)]
    if arguments:
        w.lines.append(f"    {', '.join(arguments)}, = args")
    leaves: list[str] = []
    if not all(_take(w, child, name, leaves) for child, name in zip(treedef.children, arguments)):
        return None
    if into:
        if not _take(w, recording.out_tree, "out", leaves):
            return None
        w.unless(f"native({', '.join(leaves)}) is NotImplemented")
        return _made(w, "def fast(args, out):", "out")
    w.lines.append(f"    values = native({', '.join(leaves)})")
    w.unless("values is NotImplemented")
    values = [f"v{k}" for k in range(len(recording.outs))]
    if values:
        w.lines.append(f"    {', '.join(values)}, = values")
    result = _make(w, recording.out_tree, iter(values))
    if result is None:
        return None
    return _made(w, "def fast(args):", result)


def _made(w: _Writer, head: str, result: str) -> Callable[..., Any]:
    source = "\n".join([head, *w.lines, f"    return {result}"])
    exec(compile(source, "<call path>", "exec"), w.names)
    return w.names.pop("fast")  # a function among its own globals would be a cycle


def _plain_struct(node: TreeDef) -> bool:
    """Tell whether a node is a struct whose fields lie in its instance dict."""
    cls = node.kind.cls
    if not is_struct(cls) or cls.__dictoffset__ == 0:
        return False
    data, static = field_names(cls)
    members = [getattr(cls, name, None) for name in (*data, *static)]
    return len(data) == len(node.children) and not any(
        isinstance(m, (MemberDescriptorType, property)) for m in members
    )


def _take(w: _Writer, node: TreeDef, name: str, leaves: list[str]) -> bool:
    """Write the checks of one argument and list the expressions of its leaves."""
    if node is LEAF:
        leaves.append(name)
        return True
    if node.kind.cls is type(None):
        w.unless(f"{name} is not None")
        return True
    if node.kind.cls is tuple:
        w.unless(f"type({name}) is not tuple or len({name}) != {len(node.children)}")
        parts = [f"{name}[{k}]" for k in range(len(node.children))]
    elif _plain_struct(node):
        data, static = field_names(node.kind.cls)
        w.unless(f"type({name}) is not {w.fresh('C', node.kind.cls)}")
        for field, value in zip(static, node.aux or ()):
            if type(value) not in _SIMPLE:
                return False
            held = w.fresh("s")
            w.lines.append(f"    {held} = {name}.{field}")
            w.unless(f"type({held}) is not {w.fresh('T', type(value))} or {held} != {value!r}")
        parts = [f"{name}.{field}" for field in data]
    else:
        return False
    for child, part in zip(node.children, parts):
        if child is not LEAF:
            inner = w.fresh("b")
            w.lines.append(f"    {inner} = {part}")
            part = inner
        if not _take(w, child, part, leaves):
            return False
    return True


def _make(w: _Writer, node: TreeDef, values: Any) -> str | None:
    """Write the construction of a result and return its name; None where it is not simple."""
    if node is LEAF:
        return next(values)
    if node.kind.cls is type(None):
        return "None"
    if node.kind.cls is tuple:
        parts = [_make(w, child, values) for child in node.children]
        return None if None in parts else f"({''.join(f'{p}, ' for p in parts)})"
    if not _plain_struct(node):
        return None
    data, static = field_names(node.kind.cls)
    parts = [_make(w, child, values) for child in node.children]
    if None in parts or any(type(v) not in _SIMPLE for v in node.aux or ()):
        return None
    made = w.fresh("r")
    w.lines.append(f"    {made} = new({w.fresh('C', node.kind.cls)})")
    w.lines.append(f"    d = {made}.__dict__")
    fields = [*zip(data, parts), *zip(static, map(repr, node.aux or ()))]
    w.lines.extend(f"    d[{field!r}] = {part}" for field, part in fields)
    return made
