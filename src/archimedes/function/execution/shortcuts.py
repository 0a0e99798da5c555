"""Call paths written for one specialisation: no tree is built, nothing is walked.

``shortcut(...)`` generates the source of a function ``fast(*args)`` that checks the types of the
argument structs and hands their leaves to the native entry, which checks those and builds the
result. It returns ``NotImplemented`` for arguments of any other form. For

    xdot = f(t, x, u)

it reads about like this::

    def fast(a0=NotImplemented, a1=NotImplemented, a2=NotImplemented, *more):
        if more or not state.check(): return NotImplemented
        if type(a1) is not State or type(a2) is not Input: return NotImplemented
        return native(a0, a1.pos, a1.v, a2.force)

``state`` is what the function read when it was recorded (``identity/states.py``). A function of
leaves that reads nothing is the native entry itself.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any

from archimedes.tree.specialise import field_names
from archimedes.tree.structs import is_struct
from archimedes.tree.treedef import LEAF, TreeDef

if TYPE_CHECKING:
    from archimedes.function.identity.states import State

__all__ = ["SIMPLE", "is_plain_struct", "shortcut"]

#: Static values that are compared by type and value in generated code.
SIMPLE = (str, bool, int, type(None))


class _Writer:
    """Collects lines of source and the objects they name."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names: dict[str, Any] = {}
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
    native: Any, treedef: TreeDef, out_tree: TreeDef | None = None, state: State | None = None
) -> Callable[..., Any] | None:
    """Return ``fast(*args)`` for a tuple of arguments, or None if a tree is not made of structs.

    With ``out_tree`` it is ``fast(*args, out)``: the leaves of ``out`` take the results. Where
    what ``state`` describes has changed, it returns NotImplemented.
    """
    w = _Writer()
    watched = state is not None and bool(state.places)
    w.names["native"] = native
    trees = treedef.children if out_tree is None else (*treedef.children, out_tree)
    if not watched and all(node is LEAF for node in trees):
        return native
    arguments = [f"a{k}" for k in range(len(trees))]
    if state is not None and watched:
        state.watch()
        w.names["state"] = state
        w.unless("more or not state.check()")
    else:
        w.unless("more")
    leaves: list[str] = []
    if not all(_take(w, node, name, leaves) for node, name in zip(trees, arguments)):
        return None
    # One that is left out is NotImplemented, which no check lets pass.
    parameters = "".join(f"{name}=NotImplemented, " for name in arguments)
    head = f"def fast({parameters}*more):"
    source = "\n".join([head, *w.lines, f"    return native({', '.join(leaves)})"])
    exec(compile(source, "<call path>", "exec"), w.names)
    return w.names.pop("fast")  # a function among its own globals would be a cycle


def is_plain_struct(node: TreeDef) -> bool:
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
    elif is_plain_struct(node):
        data, static = field_names(node.kind.cls)
        w.unless(f"type({name}) is not {w.fresh('C', node.kind.cls)}")
        for field, value in zip(static, node.aux or ()):
            if type(value) not in SIMPLE:
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
