"""Call paths written for one specialisation: no tree is built, nothing is walked.

A :class:`Shortcut` generates the source of a function that checks the types of the argument structs
and hands their leaves to the native entry, which checks those and builds the result. For

    xdot = f(t, x, u)

that reads a global ``mass`` it reads about like this::

    def fast(a0=missing, a1=missing, a2=missing, *more, **named):
        if more or named: return call_slowly(...)
        try:
            if not (v0['mass'] is v1): return call_slowly(...)
        except Exception: return call_slowly(...)
        if not (type(a1) is State): return call_slowly(...)
        if not (type(a2) is Input): return call_slowly(...)
        result = native(a0, a1.pos, a1.v, a2.force)
        return call_slowly(...) if result is NotImplemented else result

What the function read when it was recorded (``identity/states.py``) is checked in the same code.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any

from archimedes.function.identity.checks import CheckWriter, define
from archimedes.tree.specialise import field_names
from archimedes.tree.structs import is_struct
from archimedes.tree.treedef import LEAF, TreeDef

if TYPE_CHECKING:
    from archimedes.function.identity.states import State

__all__ = ["SIMPLE", "Shortcut", "call_through", "is_plain_struct"]

#: Static values that are compared by type and value in generated code.
SIMPLE = (str, bool, int, type(None))


class _Missing:
    """Stands for an argument that is left out; no check lets it pass."""


MISSING = _Missing()


def call_through(owner: weakref.ref[Any]) -> Callable[..., Any]:
    """Return a function that calls the owner's ``_call_slowly(args, kwargs)``."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return _call_slowly(owner, args, kwargs)

    return call


def _call_slowly(owner: weakref.ref[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    function = owner()
    if function is None:
        raise ReferenceError(
            "a compiled function is called by its __call__ after the function itself was "
            "deleted: keep the function, f = arc.compile(...), and pass f"
        )
    return function._call_slowly(tuple(a for a in args if a is not MISSING), kwargs)


class Shortcut:
    """The generated call path from a tuple of arguments to a native entry.

    With ``out_tree`` it is one of ``(*args, out)``: the leaves of ``out`` take the results.
    ``Shortcut.make`` returns None if a tree is not made of leaves, tuples and structs.
    """

    def __init__(self, native: Any, state: State | None) -> None:
        self.native = native
        self.names: dict[str, Any] = {"native": native, "missing": MISSING}
        self.state = state
        self.test: CheckWriter | None = None
        #: Statements that take arguments apart, and conditions that hold for this kind of call.
        self.steps: list[tuple[str, str]] = []
        self.arguments: list[str] = []
        self.leaves: list[str] = []
        self.count = 0

    @classmethod
    def make(
        cls,
        native: Any,
        treedef: TreeDef,
        out_tree: TreeDef | None = None,
        state: State | None = None,
    ) -> Shortcut | None:
        """Return the path for arguments of a structure, or None."""
        self = cls(native, state)
        trees = treedef.children if out_tree is None else (*treedef.children, out_tree)
        self.arguments = [f"a{k}" for k in range(len(trees))]
        if state is not None and state.places:
            self.test = state.test or state.watch()
            self.names.update(self.test.objects)
        if not all(_take(self, node, name) for node, name in zip(trees, self.arguments)):
            return None
        return self

    @property
    def is_current(self) -> bool:
        """Whether the code checks what the function reads now."""
        return self.state is None or self.test is self.state.test

    def fresh(self, stem: str, value: Any = None) -> str:
        """Return a new name, of an object if there is one."""
        self.count += 1
        name = f"{stem}{self.count}"
        if value is not None:
            self.names[name] = value
        return name

    def require(self, condition: str) -> None:
        """Leave the path unless a condition holds."""
        self.steps.append(("if not", condition))

    def assign(self, name: str, expression: str) -> None:
        """Give a name to a part of an argument."""
        self.steps.append((name, expression))

    def function(self) -> Callable[..., Any]:
        """Return ``fast(*args)``, which returns NotImplemented for arguments of another form."""
        if not self.steps and self.test is None and self.leaves == self.arguments:
            return self.native
        return self._define("NotImplemented")

    def front(self, owner: weakref.ref[Any]) -> Callable[..., Any]:
        """Return ``fast(*args, **kwargs)``, which hands all other calls to its owner."""
        self.names["call_slowly"], self.names["owner"] = _call_slowly, owner
        every = "".join(f"{name}, " for name in self.arguments)
        return self._define(f"call_slowly(owner, ({every}*more), named)")

    def _define(self, otherwise: str) -> Callable[..., Any]:
        leave = f"return {otherwise}"
        parameters = "".join(f"{name}=missing, " for name in self.arguments)
        source = [f"def fast({parameters}*more, **named):", f"    if more or named: {leave}"]
        if self.test is not None:
            source += [f"    try:\n        if not ({self.test.expression}): {leave}"]
            source += [f"    except Exception: {leave}"]
        for name, text in self.steps:
            is_check = name == "if not"
            source.append(f"    if not ({text}): {leave}" if is_check else f"    {name} = {text}")
        source += [f"    result = native({', '.join(self.leaves)})"]
        source += [f"    return {otherwise} if result is NotImplemented else result"]
        return define("\n".join(source), "fast", dict(self.names))


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


def _take(w: Shortcut, node: TreeDef, name: str) -> bool:
    """Write the checks of one argument and list the expressions of its leaves."""
    if node is LEAF:
        w.leaves.append(name)
        return True
    if node.kind.cls is type(None):
        w.require(f"{name} is None")
        return True
    if node.kind.cls is tuple:
        w.require(f"type({name}) is tuple and len({name}) == {len(node.children)}")
        parts = [f"{name}[{k}]" for k in range(len(node.children))]
    elif is_plain_struct(node):
        data, static = field_names(node.kind.cls)
        w.require(f"type({name}) is {w.fresh('C', node.kind.cls)}")
        for field, value in zip(static, node.aux or ()):
            if type(value) not in SIMPLE:
                return False
            held = w.fresh("s")
            w.assign(held, f"{name}.{field}")
            w.require(f"type({held}) is {w.fresh('T', type(value))} and {held} == {value!r}")
        parts = [f"{name}.{field}" for field in data]
    else:
        return False
    for child, part in zip(node.children, parts):
        if child is not LEAF:
            inner = w.fresh("b")
            w.assign(inner, part)
            part = inner
        if not _take(w, child, part):
            return False
    return True
