"""``compile``: a NumPy function becomes a graph, once for each kind of arguments."""

from __future__ import annotations

import functools
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, overload

import numpy as np

from archimedes import tree
from archimedes.backends.registry import check_backend
from archimedes.errors import ShapeDtypeError, TraceError
from archimedes.function.execution.outputs import result_arrays
from archimedes.function.execution.shortcut_holder import ShortcutHolder
from archimedes.function.execution.tiers import NUMERICS, SINGLE, CallForm, Tiers
from archimedes.function.former_options import former_options
from archimedes.function.identity.hidden_state import check_memo, no_hidden_state
from archimedes.function.identity.hosts import collecting, note_hosts
from archimedes.function.identity.reads import PARTS, Walk, is_atom
from archimedes.function.identity.states import Identity, State
from archimedes.function.recording import (
    LeafSpec,
    Recording,
    describe_leaves,
    leaf_ids,
    out_array,
    record,
)
from archimedes.function.signatures import Signature
from archimedes.graph import Call, Graph, Statistics, inline, statistics
from archimedes.graph.dtypes import STATIC
from archimedes.graph.program import origins
from archimedes.symbolic import current_trace, is_tracing
from archimedes.symbolic.core.traced_content import holds_traced
from archimedes.symbolic.recorded.recorded_array import RecordedArray
from archimedes.tree.content import content_key

if TYPE_CHECKING:
    from archimedes.function.checking import Check
    from archimedes.function.reporting import Report

__all__ = ["Compiled", "compile"]

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R", covariant=True)
S = TypeVar("S")

#: Recordings that a function keeps; the one used longest ago is forgotten.
RECORDINGS = 64
#: Recordings that ``explain`` tells about besides the last.
LOGGED = 200
#: A recorded function called from another is copied into it up to this many operations.
INLINE_LIMIT = 1000


class _UnderWay(threading.local):
    """The recordings under way in this thread, to notice a function that calls itself."""

    def __init__(self) -> None:
        self.marks: set[Any] = set()


_under_way = _UnderWay()


class Compiled(ShortcutHolder, Generic[P, R]):
    """A function that is recorded once for each structure, shape and dtype of its arguments.

    Made by :func:`compile` and by the derivative functions. Call it like the original; called
    with traced values it becomes part of the enclosing recording.
    """

    def __init__(
        self,
        function: Callable[P, R],
        *,
        static_argnums: int | Sequence[int] | None = None,
        static_argnames: str | Sequence[str] | None = None,
        return_names: Sequence[str] | None = None,
        name: str | None = None,
        backend: str | None = None,
        numerics: str = "strict",
        freeze: bool = False,
        watch: Sequence[Any] | None = None,
    ) -> None:
        if not callable(function):
            raise TypeError(
                f"compile needs a function, got {type(function).__name__}: write "
                "arc.compile(f), not arc.compile(f(x))"
            )
        super().__init__()
        functools.update_wrapper(self, function, updated=())
        self.function = function
        self.name = str(name or getattr(function, "__name__", type(function).__name__))
        self.__name__ = self.name
        self.return_names = tuple(return_names) if return_names is not None else None
        self.signature = Signature(function, static_argnums, static_argnames)
        self.__signature__ = self.signature.parameters
        self.backend = check_backend("compile", backend)
        if numerics not in NUMERICS:
            raise ValueError(f"compile: numerics={numerics!r} is not one of {NUMERICS}")
        self.numerics = numerics
        #: What counts as part of the function: ``watch``, or the function itself.
        self.identity = Identity((function,) if watch is None else watch, bool(freeze))
        #: Whether it may change what it reads, though not keep traced values there.
        self.lenient = bool(freeze)
        self.frozen = Frozen(self) if freeze else None
        self._cache: OrderedDict[Any, tuple[Recording, Tiers]] = OrderedDict()
        self._lock = threading.Lock()
        self._log: list[str] = []
        #: Called from another recording, it is copied into it up to this many operations.
        self.inline_limit = INLINE_LIMIT

    def on_backend(self, caller: str, backend: str) -> Compiled:
        """Return this function for another backend, or itself; ``caller`` is named in errors."""
        if check_backend(caller, backend) == self.backend:
            return self
        made = Compiled(
            self.function,
            return_names=self.return_names,
            name=self.name,
            backend=backend,
            numerics=self.numerics,
            freeze=self.identity.frozen,
            watch=self.identity.roots,
        )
        made.signature, made.__signature__ = self.signature, self.__signature__
        made.lenient, made.inline_limit = self.lenient, self.inline_limit
        return made

    @property
    def arg_names(self) -> tuple[str, ...]:
        """Names of the function's arguments."""
        return tuple(self.signature.parameters.parameters)

    def __repr__(self) -> str:
        return f"<compiled {self.name}{self.signature.parameters}, {len(self._cache)} recorded>"

    @overload
    def __get__(self, instance: None, owner: Any = None) -> Compiled[P, R]: ...
    @overload
    def __get__(
        self: Compiled[Concatenate[S, Q], R], instance: S, owner: Any = None
    ) -> CompiledMethod[Q, R]: ...
    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else CompiledMethod(self, instance)

    def __reduce__(self) -> str:
        # As Python does with functions: named when pickled, shared when copied.
        return getattr(self, "__qualname__", self.name)

    # ---- calling ---------------------------------------------------------------------------

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...
    @overload
    def __call__(self, *args: Any, out: Any, **kwargs: Any) -> R: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Evaluate; the first call with a new kind of arguments records the function.

        ``out=`` takes what an earlier call returned and has the results written into its arrays
        (unless the function has a parameter of that name).
        """
        if kwargs:
            if "out" in kwargs and "out" not in self.signature.names:
                return self._into(kwargs.pop("out"), args, kwargs)
        else:
            # Generated paths check their arguments: try them before anything is looked at.
            for fast in self._shortcuts:
                result = fast(*args)
                if result is not NotImplemented:
                    return result
        leaves, recording, tiers = self._lookup(args, kwargs)
        if tiers is not None and not _has_traced(leaves):
            tiers = tiers.where(leaves, recording.names)
            result = tiers(leaves)
            if tiers.often and not kwargs and self._takes_shortcuts:
                self._offer(tiers, SINGLE, args)
            return result
        return apply_recording(recording, leaves, self.inline_limit)

    def _into(self, out: Any, args: Any, kwargs: Any) -> Any:
        """Evaluate into the arrays of ``out``."""
        if not kwargs:
            for fast in self._into_shortcuts:
                if fast(*args, out) is not NotImplemented:
                    return out
        leaves, recording, tiers = self._lookup(args, kwargs)
        if tiers is None or _has_traced(leaves):
            raise TraceError(
                f"{self.name}: out= takes numbers; inside a recorded function there is nothing "
                "to save, leave it out"
            )
        tiers = tiers.where(leaves, recording.names)
        tiers.into(leaves, result_arrays(self.name, recording, out, tiers.result_kind))
        if tiers.often and not kwargs and self._takes_shortcuts:
            self._offer(tiers, CallForm(into=True), args)
        return out

    @property
    def _takes_shortcuts(self) -> bool:
        """Whether arguments reach the function as they are given."""
        return self.signature.plain and not self.signature.static

    def _lookup(self, args: Any, kwargs: Any) -> tuple[list[Any], Recording, Tiers | None]:
        return self._specialisation(self.signature.bind(args, kwargs))

    def recording_of(self, values: dict[str, Any]) -> Recording:
        """Return the recording used for arguments as the signature binds them."""
        return self._specialisation(values)[1]

    def _specialisation(self, values: dict[str, Any]) -> tuple[list[Any], Recording, Tiers | None]:
        static = self.signature.fixed(values)
        dynamic = {k: v for k, v in values.items() if k not in static} if static else values
        leaves, treedef = tree.flatten(tuple(dynamic.values()))
        specs = describe_leaves(leaves, treedef, list(dynamic))
        fixed = tuple(content_key(values[k]) for k in values if k in static) if static else ()
        state = self.identity.current(_statics(values, static, specs, treedef))
        # A recording made inside a trace may hold its values: those are not kept.
        key = (treedef, specs, tuple(values), fixed, state.key)
        # Nor is one that was made to know its lines, which costs more.
        found = self._cache.get(key) if origins.find is None else None
        if found is None:
            # No lock is held while recording: two threads may do the same work once, but
            # functions that call each other can never wait for each other.
            with collecting() as hosts:
                recording = self._record_once(key, values, dynamic, state)
            if recording.captured or origins.find is not None:
                return leaves, recording, None
            if self.identity.learn(hosts):
                state = self.identity.current(state.statics)
                key = (*key[:-1], state.key)
            found = self._keep(key, recording, list(dynamic), state)
        elif len(self._cache) > RECORDINGS // 2:
            with self._lock:
                if key in self._cache:
                    self._cache.move_to_end(key)
        note_hosts(self.identity.hosts)
        return leaves, *found

    def _record_once(self, key: Any, values: Any, dynamic: Any, state: State) -> Recording:
        """Record, unless this thread is recording the same already: that would never end."""
        mark = (id(self), key)
        if mark in _under_way.marks:
            raise TraceError(
                f"{self.name}() calls itself with arguments of the same kind while it is being "
                "recorded, which would never end: recursion needs a static argument that counts "
                "down (static_argnames), or use arc.while_loop or arc.fori_loop"
            )
        _under_way.marks.add(mark)
        try:
            with no_hidden_state(self.name, *self._watched(state)) as added:
                recording = self._record(values, dynamic, key[0], key[1])
            if added and not self.lenient and (is_tracing() or self.identity.frozen):
                recording = self._record_again(recording, added, values, dynamic, key, state)
            return recording
        finally:
            _under_way.marks.discard(mark)

    def _record_again(
        self, first: Recording, added: Any, values: Any, dynamic: Any, key: Any, state: State
    ) -> Recording:
        """Record with the memo in place: where nobody looks again, it must make no difference."""
        again = functools.partial(self.identity.reads, state.statics)
        with no_hidden_state(self.name, again().places, again) as more:
            second = self._record(values, dynamic, key[0], key[1])
        check_memo(self.name, added, not more and second.graph.digest() == first.graph.digest())
        return second

    def _watched(self, state: State) -> tuple[Any, Callable[[], Walk], bool]:
        """Return the places that recording must not change, and how to walk there again."""
        again = functools.partial(self.identity.reads, state.statics)
        if not self.identity.frozen:
            # Iterators and generators may have moved since they were found.
            positions = [place.fresh() for place in state.positions]
            return [*state.places, *positions], again, self.lenient
        try:
            seen = again()
        except TraceError:  # too much to look at, which is why it is frozen
            return [], again, self.lenient
        return [*seen.places, *seen.positions], again, self.lenient

    def _keep(
        self, key: Any, recording: Recording, names: list[str], state: State
    ) -> tuple[Recording, Tiers]:
        with self._lock:
            if key not in self._cache:
                why = _reason(self.name, key, list(self._cache), names, state.reason)
                self._log = [*self._log[-LOGGED:], why]
                tiers = Tiers(recording, self.backend, self.numerics, state)
                self._cache[key] = (recording, tiers)
                while len(self._cache) > RECORDINGS:
                    self._withdraw(self._cache.popitem(last=False)[1][1])
            return self._cache[key]

    def _record(
        self, values: dict[str, Any], dynamic: dict[str, Any], treedef: Any, specs: Any
    ) -> Recording:
        def build(symbols: list[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
            return self.signature.rebind(values, dict(zip(dynamic, treedef.unflatten(symbols))))

        names = [p for name, sub in zip(dynamic, treedef.children) for p in sub.paths(name)]
        recording = record(self.function, specs, build, names)
        if self.return_names is not None:
            self._check_names(recording)
        return recording

    def _check_names(self, recording: Recording) -> None:
        count = len(recording.out_tree.children) if recording.out_tree.children else 1
        names = self.return_names or ()
        if count != len(names):
            raise ShapeDtypeError(
                f"{self.name}() returns {count} values but return_names lists {len(names)}: "
                f"{list(names)}"
            )

    # ---- looking inside --------------------------------------------------------------------

    def recording(self, *args: Any, **kwargs: Any) -> Recording:
        """Return the recording used for these arguments, making it if needed."""
        return self._lookup(args, kwargs)[1]

    def graph(self, *args: Any, **kwargs: Any) -> Graph:
        """Return the graph used for these arguments; printing it shows the program."""
        return self.recording(*args, **kwargs).graph

    def statistics(self, *args: Any, **kwargs: Any) -> Statistics:
        """Return figures about the graph used for these arguments."""
        return statistics(self.graph(*args, **kwargs))

    def source(self, kind: str, *args: Any, **kwargs: Any) -> str:
        """Return the code for these arguments as text; ``kind`` is "llvm" or "asm" by default.

        Backends have kinds of their own.
        """
        kernel = self._tiers(args, kwargs).kernel()
        if kind not in kernel.sources:
            known = ", ".join(map(repr, kernel.sources)) or "none: this backend shows no code"
            raise ValueError(f"source: kind={kind!r} is not one of {known}")
        return kernel.source(kind)

    def report(self, *args: Any, **kwargs: Any) -> Report:
        """Compile for these arguments, time it, and return the figures."""
        from archimedes.function.reporting import measure

        return measure(self.name, self._tiers(args, kwargs), self._lookup(args, kwargs)[0])

    def _tiers(self, args: Any, kwargs: Any) -> Tiers:
        leaves, recording, tiers = self._lookup(args, kwargs)
        if tiers is None:
            raise TraceError(f"{self.name} uses values of the function that is being recorded")
        return tiers.where(leaves, recording.names)

    def check(self, *args: Any, **kwargs: Any) -> Check:
        """Run the function as plain Python on these numbers, with the checks it makes of values.

        A recording cannot make them. Returns what came up: errors, warnings (divisions by zero),
        and where the recorded result differs; it is true if nothing did.

        >>> f = compile(lambda m: 1.0 / m)
        >>> print(f.check(0.0))  # doctest: +ELLIPSIS
        <lambda>: 1 found
        error: ZeroDivisionError: ...
        """
        from archimedes.function.checking import check

        return check(self.name, self.function, self, args, kwargs)

    def explain(self) -> str:
        """Say what was recorded and why, one line per recording."""
        if not self._log:
            return f"{self.name}: nothing recorded yet"
        return "\n".join(f"{k + 1}. {line}" for k, line in enumerate(self._log))

    def clear_cache(self) -> None:
        """Forget all recordings and give back their memory."""
        with self._lock:
            self._cache.clear()
            self.identity.forget()
            self._withdraw()
            self._log.clear()


class CompiledMethod(functools.partial, Generic[P, R]):
    """A compiled function bound to its first argument: what ``model.method`` gives."""

    if TYPE_CHECKING:

        @overload
        def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R: ...
        @overload
        def __call__(self, /, *args: Any, out: Any, **kwargs: Any) -> R: ...
        def __call__(self, /, *args: Any, **kwargs: Any) -> Any: ...

    @property
    def _compiled(self) -> Any:
        return self.func

    def graph(self, *args: Any, **kwargs: Any) -> Graph:
        """Return the graph used for these arguments."""
        return self._compiled.graph(*self.args, *args, **kwargs)

    def statistics(self, *args: Any, **kwargs: Any) -> Statistics:
        """Return figures about the graph used for these arguments."""
        return self._compiled.statistics(*self.args, *args, **kwargs)

    def report(self, *args: Any, **kwargs: Any) -> Report:
        """Compile for these arguments, time it, and return the figures."""
        return self._compiled.report(*self.args, *args, **kwargs)

    def check(self, *args: Any, **kwargs: Any) -> Check:
        """Run the method as plain Python on these numbers, with its checks of values."""
        return self._compiled.check(*self.args, *args, **kwargs)

    def explain(self) -> str:
        """Say what was recorded and why, for all instances."""
        return self._compiled.explain()


def _parts(compiled: Compiled) -> tuple[Any, ...]:
    """Return what counts of a recorded function that another one uses."""
    if compiled.identity.frozen:
        return (compiled.frozen,)
    return (*compiled.identity.roots, compiled.numerics)


class Frozen:
    """Stands for a frozen function among what others read: it is the same while it exists."""

    __slots__ = ("_compiled",)

    def __init__(self, compiled: Compiled) -> None:
        self._compiled = compiled

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Frozen) and self._compiled is other._compiled

    def __hash__(self) -> int:
        return id(self._compiled)


PARTS[Compiled] = _parts
PARTS[Frozen] = lambda frozen: ()


def _statics(values: dict[str, Any], static: set[str], specs: Any, treedef: Any) -> tuple[Any, ...]:
    """Return the static arguments that can change: arguments, leaves, fields of structs."""
    found = [values[name] for name in values if name in static] if static else []
    found += [spec.value for spec in specs if spec.code == STATIC]
    if treedef.num_leaves or treedef.children:
        found += _fields(treedef)
    for value in found:
        if type(value) in PARTS:  # made anew for each call, or known by its parts
            found = [p for v in found for p in (PARTS[type(v)](v) if type(v) in PARTS else (v,))]
            break
    return tuple(value for value in found if not is_atom(value))


@functools.lru_cache(maxsize=1024)
def _fields(treedef: Any) -> list[Any]:
    own = [] if is_atom(treedef.aux) else [treedef.aux]
    return [*own, *(value for child in treedef.children for value in _fields(child))]


def _has_traced(leaves: list[Any]) -> bool:
    if not is_tracing():
        return False
    return any(type(x) is RecordedArray or holds_traced(x) for x in leaves)


def apply_recording(recording: Recording, leaves: Sequence[Any], limit: int = INLINE_LIMIT) -> Any:
    """Use a recording inside the current trace: copied up to ``limit`` nodes, else as a Call."""
    graph = recording.graph
    inputs: list[int] = []
    for leaf, spec in zip(leaves, recording.leaves):
        if spec.traced:
            inputs.extend(leaf_ids(leaf, spec))
    inputs.extend(recording.captured)
    into = current_trace().graph
    if len(graph) <= limit:
        outs = inline(into, graph, inputs)
    else:
        outs = into.region(Call(np.array(inputs), graph)).tolist()
    return recording.rebuild(lambda out: out_array(outs, out))


def _reason(name: str, key: Any, earlier: list[Any], names: list[str], read: str) -> str:
    """Say in one line why a call was recorded: what differs from the nearest earlier one.

    ``read`` is what differs among what the function reads.
    """
    treedef, specs, _, fixed, state = key
    text = f"{name}({', '.join(_describe(treedef, specs, names))})"
    if not earlier:
        return f"{text}: first call"
    same_tree = [k for k in earlier if k[0] is treedef or k[0] == treedef]
    if not same_tree:
        return f"{text}: arguments of another structure"
    nearest = min(reversed(same_tree), key=lambda k: sum(a != b for a, b in zip(specs, k[1])))
    for mine, old, path in zip(specs, nearest[1], treedef.paths()):
        if mine != old:
            position, _, rest = path[1:].partition("]")
            return f"{text}: {names[int(position)]}{rest} was {old}, now {mine}"
    if read and any(k[3] == fixed and k[4] != state for k in same_tree):
        return f"{text}: {read} has changed"
    return f"{text}: another value of a static argument"


def _describe(treedef: Any, specs: Sequence[LeafSpec], names: list[str]) -> list[str]:
    paths = [p for name, sub in zip(names, treedef.children) for p in sub.paths(name)]
    return [f"{path}: {spec}" for path, spec in zip(paths, specs)]


@overload
def compile(
    func: Callable[P, S],
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    return_names: Sequence[str] | None = None,
    name: str | None = None,
    backend: str | None = None,
    numerics: str = "strict",
    freeze: bool = False,
    **former: Any,
) -> Compiled[P, S]: ...
@overload
def compile(
    func: None = None,
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    return_names: Sequence[str] | None = None,
    name: str | None = None,
    backend: str | None = None,
    numerics: str = "strict",
    freeze: bool = False,
    **former: Any,
) -> Callable[[Callable[P, S]], Compiled[P, S]]: ...
def compile(
    func: Callable[..., Any] | None = None,
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    return_names: Sequence[str] | None = None,
    name: str | None = None,
    backend: str | None = None,
    numerics: str = "strict",
    freeze: bool = False,
    **former: Any,
) -> Any:
    """Turn a NumPy function into a recorded one; also usable as a decorator.

    Arguments and results may be any trees of structs, containers, arrays and numbers. The
    function is recorded at the first call with a new structure, shape or dtype, or a new value
    of a static argument (compared by content). Python bools, strings and functions are static
    by themselves. What the function reads (globals, closures, attributes, captured arrays) is
    part of it: when that has changed it is recorded anew. With ``freeze`` it is taken as it is at
    the first recording instead, and nothing is looked at again. ``backend`` is
    "auto" (interpret a little, then compile to native code), "llvm" or "interpreter"; all give
    the same bits.

    ``numerics`` is "strict" (operations rounded one by one, as NumPy does) or "fast": products
    and sums fuse, and a divisor used more than once is inverted once. Results then differ from
    NumPy's by rounding, and still not between backends, lanes and threads. Derivatives and
    ``vmap`` of the function use its mode; inside another function, that one's mode holds.

    >>> import numpy as np
    >>> f = compile(lambda x: np.sum(x**2))
    >>> float(f(np.array([3.0, 4.0])))
    25.0
    """
    former_options("compile", former)
    options: dict[str, Any] = {
        "static_argnums": static_argnums,
        "static_argnames": static_argnames,
        "return_names": return_names,
        "name": name,
        "backend": backend,
        "numerics": numerics,
        "freeze": freeze,
    }
    if func is None:
        return functools.partial(compile, **options)
    return Compiled(func, **options)
