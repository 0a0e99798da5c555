"""Generated call paths for one specialisation: no tree is built, nothing is walked.

A :class:`Shortcut` generates the source of a function that checks the types of the argument structs
and hands their leaves to the native entry, which checks those and builds the result. For

    xdot = f(t, x, u)

that reads a global ``mass`` it reads about like this::

    def fast(a0=missing, a1=missing, a2=missing, *more, **named):
        try:
            if more or named: return call_slowly(...)
            try:
                if not (v0['mass'] is v1): return call_slowly(...)
            except Exception: return call_slowly(...)
            if not (type(a1) is State): return call_slowly(...)
            if not (type(a2) is Input): return call_slowly(...)
            result = native(a0, a1.pos, a1.v, a2.force)
            return call_slowly(...) if result is NotImplemented else result
        except BaseException as error:
            hide_frames(error)
            raise

It is a boundary (``tracebacks.py``). The guard in it checks that what the function read when it was
recorded is as it was (``dependencies/states.py``).
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, ParamSpec, TypeVar, overload

from archimedes import tree
from archimedes.function.dependencies.tracked_reads import Guard
from archimedes.function.execution.tiers import SIMPLE, CallForm, Tiers, is_plain_struct
from archimedes.tracebacks import GENERATED, boundary, hide_frames
from archimedes.tree.nodes import define, field_names
from archimedes.tree.treedef import LEAF, TreeDef

if TYPE_CHECKING:
    from archimedes.function.dependencies.states import State


P = ParamSpec("P")
R = TypeVar("R", covariant=True)


class _Missing:
    """Stands for an argument that is left out; no check lets it pass."""


MISSING = _Missing()


def call_through(owner: weakref.ref[Any]) -> Callable[..., Any]:
    """Return a function that evaluates a call of its owner without a path of its own."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return _call_slowly(owner, args, kwargs)

    return boundary(call)


def _call_slowly(owner: weakref.ref[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Evaluate a call that the newest path does not take."""
    function = owner()
    if function is None:
        raise ReferenceError(
            "a compiled function is called by its __call__ after the function itself was "
            "deleted: keep the function, f = arc.compile(...), and pass f"
        )
    # Generated paths check their arguments: try them before anything is looked at.
    if "out" in kwargs:
        for fast in function._into_shortcuts if len(kwargs) == 1 else ():
            if fast(*args, kwargs["out"]) is not NotImplemented:
                return kwargs["out"]
    if args and args[-1] is MISSING:  # those that are left out are the last ones
        args = tuple(a for a in args if a is not MISSING)
    if not kwargs:
        for fast in function._shortcuts[1:]:  # the first is what was called
            result = fast(*args)
            if result is not NotImplemented:
                return result
    return function._call_slowly(args, kwargs)


class Shortcut:
    """The generated call path from arguments of some structures to a native entry.

    ``is_complete`` is false if a tree is not made of leaves, tuples and structs. The last of the
    arguments may be ``out``, whose leaves take the results.
    """

    def __init__(self, native: Any, trees: Sequence[TreeDef], state: State | None) -> None:
        self.native, self.state = native, state
        self.names: dict[str, Any] = {"native": native, "missing": MISSING}
        self.names["hide_frames"] = hide_frames
        self.guard: Guard | None = None
        if state is not None and state.reads:
            self.guard = state.guard or state.make_guard()
            self.names.update(self.guard.objects)
        #: Statements that take arguments apart, and conditions that hold for this kind of call.
        self.steps: list[tuple[str, str]] = []
        self.arguments = [f"a{k}" for k in range(len(trees))]
        self.leaves: list[str] = []
        self.count = 0
        self.is_complete = all(map(self._take, trees, self.arguments))

    @property
    def is_current(self) -> bool:
        """Whether the code checks what the function reads now."""
        return self.state is None or self.guard is self.state.guard

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
        if not self.steps and self.guard is None and self.leaves == self.arguments:
            return self.native
        return self._define("NotImplemented")

    def front(self, owner: weakref.ref[Any]) -> Callable[..., Any]:
        """Return ``fast(*args, **kwargs)``, which hands all other calls to its owner."""
        self.names["call_slowly"], self.names["owner"] = _call_slowly, owner
        every = "".join(f"{name}, " for name in self.arguments)
        return self._define(f"call_slowly(owner, ({every}) + more, named)")

    def _define(self, otherwise: str) -> Callable[..., Any]:
        leave = f"return {otherwise}"
        parameters = "".join(f"{name}=missing, " for name in self.arguments)
        body = [f"if more or named: {leave}"]
        if self.guard is not None:
            body += ["try:", f"    if not ({self.guard.expression}): {leave}"]
            body += [f"except Exception: {leave}"]
        for name, text in self.steps:
            is_check = name == "if not"
            body.append(f"if not ({text}): {leave}" if is_check else f"{name} = {text}")
        body += [f"result = native({', '.join(self.leaves)})"]
        body += [f"return {otherwise} if result is NotImplemented else result"]
        source = [f"def fast({parameters}*more, **named):", "    try:"]
        source += [f"        {line}" for line in body]
        source += ["    except BaseException as error: hide_frames(error); raise"]
        return define("\n".join(source), "fast", dict(self.names), GENERATED.strip("<>"))

    def _take(self, node: TreeDef, name: str) -> bool:
        """Write the checks of one argument and list the expressions of its leaves."""
        if node is LEAF:
            self.leaves.append(name)
            return True
        if node.kind.cls is type(None):
            self.require(f"{name} is None")
            return True
        if node.kind.cls is tuple:
            self.require(f"type({name}) is tuple and len({name}) == {len(node.children)}")
            parts = [f"{name}[{k}]" for k in range(len(node.children))]
        elif is_plain_struct(node):
            data, static = field_names(node.kind.cls)
            self.require(f"type({name}) is {self.fresh('C', node.kind.cls)}")
            for field, value in zip(static, node.aux or ()):
                if type(value) not in SIMPLE:
                    return False
                held, kind = self.fresh("s"), self.fresh("T", type(value))
                self.assign(held, f"{name}.{field}")
                self.require(f"type({held}) is {kind} and {held} == {value!r}")
            parts = [f"{name}.{field}" for field in data]
        else:
            return False
        for child, part in zip(node.children, parts):
            if child is not LEAF:
                inner = self.fresh("b")
                self.assign(inner, part)
                part = inner
            if not self._take(child, part):
                return False
        return True


#: How many kinds of calls of a function keep a generated path, and how many it remembers.
SHORTCUTS, REMEMBERED = 4, 256


def _shortcut(tiers: Tiers, form: CallForm, treedef: TreeDef) -> Shortcut | None:
    """Return the path from a tuple of arguments to the entry of a recording, or None."""
    if any(spec.array or spec.order for spec in tiers.recording.leaves):
        return None  # entries take scalars and arrays in C order: other recordings
    entry = tiers.entry(form)
    if entry is None or not tiers.finished:
        return None
    out_trees = (tiers.recording.out_tree,) if form.into else ()
    path = Shortcut(entry, (*treedef.children, *out_trees), tiers.state)
    return path if path.is_complete else None


class _Offer(NamedTuple):
    """The path of a kind of calls that was looked at, if it has one."""

    path: Shortcut | None
    function: weakref.ref[Any] | None


class CompiledCallable(Generic[P, R]):
    """A function with generated call paths of its recent kinds of calls, newest first.

    Such a path checks its arguments and returns NotImplemented for others, so that a call may try
    all of them before anything is looked at. ``_into_shortcuts`` are those with ``out=``.

    The newest one is what Python calls: ``__call__`` is a slot that holds it, which saves a
    function and its arguments between the caller and the path. It refers to its owner weakly: a
    strong reference would be a cycle, and native code would be kept until the next collection.
    """

    __slots__ = ("__call__", "_into_shortcuts", "_offered", "_shortcuts")

    if TYPE_CHECKING:

        @overload
        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...
        @overload
        def __call__(self, *args: Any, out: Any, **kwargs: Any) -> R: ...
        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            """Call it like the original function."""

    def __init__(self) -> None:
        self._shortcuts: tuple[Callable[..., Any], ...] = ()
        self._into_shortcuts: tuple[Callable[..., Any], ...] = ()
        #: Kinds of calls that were looked at, by the number of their recording.
        self._offered: dict[tuple[int, CallForm], _Offer] = {}
        self._withdraw_all()

    def _call_slowly(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Evaluate a call that no path takes."""
        raise NotImplementedError

    def _offer(self, tiers: Tiers, form: CallForm, args: tuple[Any, ...]) -> None:
        """Let the next calls of this kind take a generated path, if one can be made."""
        key = (tiers.number, form)
        offer = self._offered.get(key)
        if offer is not None:
            if offer.path is None or offer.path.is_current:
                return
            self._remove([self._offered.pop(key)])
        if len(self._offered) >= REMEMBERED:  # recordings come and go
            self._offered.clear()
        path = _shortcut(tiers, form, tree.structure(args))
        if path is None:
            self._offered[key] = _Offer(None, None)
            return
        fast = path.function()
        self._offered[key] = _Offer(path, weakref.ref(fast))
        if form.into:
            self._into_shortcuts = (fast, *self._into_shortcuts[: SHORTCUTS - 1])
        else:
            self._shortcuts = (fast, *self._shortcuts[: SHORTCUTS - 1])
            self._call_first(path.front(weakref.ref(self)))

    def _withdraw(self, tiers: Tiers) -> None:
        """Let go of the paths of a recording, which hold its code."""
        keys = [key for key in self._offered if key[0] == tiers.number]
        self._remove([self._offered.pop(key) for key in keys])

    def _remove(self, offers: list[_Offer]) -> None:
        gone = [offer.function() for offer in offers if offer.function is not None]
        self._into_shortcuts = tuple(f for f in self._into_shortcuts if f not in gone)
        rest = tuple(f for f in self._shortcuts if f not in gone)
        if rest[:1] == self._shortcuts[:1]:
            self._shortcuts = rest
        else:  # the one that is called first: the others are offered again when they are called
            self._withdraw_all()

    def _withdraw_all(self) -> None:
        """Let go of all paths."""
        self._shortcuts = self._into_shortcuts = ()
        self._offered.clear()
        self._call_first(call_through(weakref.ref(self)))

    def _call_first(self, path: Callable[..., Any]) -> None:
        # By the slot itself: a subclass may have a method __call__ of its own.
        CompiledCallable.__dict__["__call__"].__set__(self, path)
