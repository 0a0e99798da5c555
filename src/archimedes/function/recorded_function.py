"""A function and its recordings: one for each kind of arguments and each state of what it reads."""

from __future__ import annotations

import functools
import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from contextlib import nullcontext, suppress
from typing import Any, NamedTuple, Self

import numpy as np

from archimedes import tree
from archimedes.backends import registry
from archimedes.backends.protocol import estimate_work
from archimedes.checks import check_callable, check_choice, check_whole, is_traced
from archimedes.errors import ShapeDtypeError, TraceError
from archimedes.function.dependencies import side_effects, states
from archimedes.function.dependencies.tracked_reads import ArrayRead, TrackedRead
from archimedes.function.dependencies.walk import Walk
from archimedes.function.execution.shortcuts import CompiledCallable, P, R
from archimedes.function.execution.tiers import NUMERICS, Tiers, in_mode
from archimedes.function.leaf_specs import LeafSpec, argument_paths, describe_leaves
from archimedes.function.recording import Recording, record
from archimedes.function.signatures import Signature
from archimedes.graph import DTYPES, Nest
from archimedes.graph.program import origins
from archimedes.symbolic import is_tracing
from archimedes.symbolic.core.loop_nests import loop_rules, loops_from
from archimedes.symbolic.core.trace import attempt
from archimedes.symbolic.recorded.nondeterminism import refuse_outside_sources
from archimedes.symbolic.recorded.numpy_patching import use_native
from archimedes.tree.content import content_key
from archimedes.tree.treedef import TreeDef

#: Recordings that a function keeps; the one used longest ago is forgotten.
RECORDINGS = 64
#: Recordings that ``explain`` tells about besides the last.
LOGGED = 200
#: How many operations more it may take to read arrays where they lie: a share, and a few.
_MORE, _FEW = 1.02, 16
#: Programs of more operations are long: comparing what they read takes no time beside them.
_LONG = 200_000_000


use_native(lambda base, needed: registry.default_backend().thread_dispatch(base, needed))


#: The recordings under way in each thread: ``marks``, to notice a function that calls itself.
_under_way = threading.local()


def _agree(plain: Tiers, live: Tiers, leaves: Sequence[Any]) -> bool:
    """Return whether two recordings give the same bits, for these leaves or others like them.

    Leaves that are known are moved a little as well: at zero many functions agree.
    """
    specs = plain.recording.leaves
    if is_traced(*leaves):
        trials = [[_sample(spec) for spec in specs]]
    else:
        trials = [list(leaves), [_near(leaf, spec) for leaf, spec in zip(leaves, specs)]]
    return all(
        np.array_equal(a, b, equal_nan=True)
        for trial in trials
        for a, b in zip(plain.values(trial), live.values(trial))
    )


def _near(leaf: Any, spec: LeafSpec) -> Any:
    """Return the numbers of a real leaf, each moved by about a hundredth; others as they are."""
    if not spec.traced or DTYPES[spec.code].kind != "f":
        return leaf
    moved = np.asarray(leaf) + 0.01 * _sample(spec) * (1.0 + np.abs(leaf))
    return moved.astype(DTYPES[spec.code])


def _sample(spec: LeafSpec) -> Any:
    """Return arbitrary numbers of a leaf's shape and dtype; a static leaf keeps its value."""
    if not spec.traced:
        return spec.value
    parts = np.modf(0.618034 * np.arange(1.0, spec.size + 1.0))[0]
    return (0.1 + parts).reshape(spec.shape).astype(DTYPES[spec.code])


class _Call(NamedTuple):
    """The arguments of a call: all by name, those that are not fixed, and these as leaves."""

    values: dict[str, Any]
    dynamic: dict[str, Any]
    leaves: list[Any]
    treedef: TreeDef
    specs: tuple[LeafSpec, ...]


class RecordedFunction(CompiledCallable[P, R]):
    """A function as :class:`Compiled` keeps it: how it is called, what it is, its recordings."""

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
        loops_from: int | None = None,
        watch: Sequence[Any] | states.Dependencies | None = None,
    ) -> None:
        super().__init__()
        remedy = "write arc.compile(f), not arc.compile(f(x))"
        check_callable(function, "compile: func", remedy=remedy)
        check_choice(numerics, "compile: numerics", NUMERICS)
        if loops_from is not None:
            check_whole(loops_from, "compile: loops_from", 1)
        self.function, self.loops_from, self.numerics = function, loops_from, numerics
        self.signature = Signature(function, static_argnums, static_argnames)
        self.name = str(name or getattr(function, "__name__", type(function).__name__))
        self.return_names = tuple(return_names) if return_names is not None else None
        self.backend = registry.check_backend("compile", backend)
        functools.update_wrapper(self, function, updated=())
        self.__name__ = self.name
        self.__signature__ = self.signature.parameters
        #: What counts as part of the function: ``watch``, or the function itself. Functions that
        #: watch the same share it, so that it is looked through once.
        if watch is None:
            self.dependencies = states.Dependencies((function,), freeze, reads_in_place=True)
        elif isinstance(watch, states.Dependencies):
            self.dependencies = watch
        else:
            self.dependencies = states.Dependencies(watch, freeze)
        #: What makes the recording for bound arguments, if the function need not be called.
        self.recorded_by: Callable[[dict[str, Any]], Recording] | None = None
        #: Whether it may change what it reads, though not keep traced values there.
        self.lenient = freeze
        #: Whether kernels are unoptimized at first: for those whose first calls are short.
        self.drafts = False
        self._cache: OrderedDict[Any, tuple[Recording, Tiers]] = OrderedDict()
        self._lock = threading.Lock()
        self._log: list[str] = []

    def lookup(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], in_place: bool = False
    ) -> tuple[list[Any], Recording, Tiers | None]:
        """Return the leaves of the arguments, the recording for them (made if needed), its tiers.

        Tiers are None for a recording that holds values of an enclosing one. ``in_place``: it may
        read large arrays where they lie. Only what is run at once may, or what knows which they
        are: others keep recordings under the content of all that is read.
        """
        in_place = in_place and not is_tracing()
        return self._find_recording(self.signature.bind(args, kwargs), in_place)

    def recording_of(self, values: dict[str, Any]) -> Recording:
        """Return the recording used for arguments as the signature binds them."""
        return self._find_recording(values, states.is_reading_in_place(self.dependencies))[1]

    def _find_recording(
        self, values: dict[str, Any], in_place: bool
    ) -> tuple[list[Any], Recording, Tiers | None]:
        static = self.signature.fixed(values)
        dynamic = {k: v for k, v in values.items() if k not in static} if static else values
        leaves, treedef = tree.flatten(tuple(dynamic.values()))
        specs = describe_leaves(leaves, treedef, list(dynamic))
        fixed = tuple(content_key(values[k]) for k in values if k in static) if static else ()
        statics = states.changing_statics(values, static, specs, treedef)
        in_place = (
            in_place and self.recorded_by is None and registry.runs_in_place(self.backend, leaves)
        )
        current = self.dependencies.current_in_place if in_place else self.dependencies.current
        state = current(statics)
        # A recording made inside a trace may hold values of that trace; it is not kept.
        key = (treedef, specs, tuple(values), fixed, state.key, loop_rules())
        # Neither is one that notes the user's line of each operation, which costs more.
        entry = self._cache.get(key) if origins.find is None else None
        if entry is None:
            # No lock is held while recording: two threads may do the same work once, but
            # functions that call each other can never wait for each other.
            call = _Call(values, dynamic, leaves, treedef, specs)
            plain: Any = None
            with states.collect_callbacks() as callbacks:
                if state.live:
                    plain = self._find_recording(values, False)
                    recording = self._record_in_place(key, call, state, plain[1])
                    if recording is None:
                        return plain
                else:
                    recording = self._record_once(key, call, state)
            if recording.captured or origins.find is not None:
                return leaves, recording, None
            if self.dependencies.learn_callbacks(callbacks):
                state = self.dependencies.current(state.statics)
                key = (*key[:4], state.key, key[5])
            entry = self._keep(key, recording, list(dynamic), state)
            if state.live and plain[2] is not None and not _agree(plain[2], entry[1], leaves):
                self._reject_in_place(key)
                return plain
        elif len(self._cache) > RECORDINGS // 2:
            with self._lock:
                if key in self._cache:
                    self._cache.move_to_end(key)
        states.note_callbacks(self.dependencies.callbacks)
        return leaves, *entry

    def _record_once(self, key: Hashable, call: _Call, state: states.State) -> Recording:
        """Record, unless this thread is recording the same already: that would never end."""
        marks, mark = vars(_under_way).setdefault("marks", set()), (id(self), key)
        if mark in marks:
            raise TraceError(
                f"{self.name}() calls itself with arguments of the same kind while it is being "
                "recorded, which would never end: recursion needs a static argument that counts "
                "down (static_argnames), or use arc.while_loop or arc.fori_loop"
            )
        marks.add(mark)
        try:
            record = functools.partial(self._record, call)
            reads, walk_again = self._reads_to_watch(state)
            walk = state.walk
            watch = refuse_outside_sources if walk.reads_clock or walk.draws else nullcontext
            effects = side_effects.refuse_side_effects(
                self.name, reads, walk_again, self.lenient, record
            )
            with effects as added, watch():
                recording = record()
            if walk.draws:
                side_effects.refuse_kept_generators(reads, walk_again())
            if added and not self.lenient and (is_tracing() or self.dependencies.frozen):
                # With the memo in place: where nobody looks again, it must make no difference.
                reads = walk_again().reads
                with side_effects.refuse_side_effects(self.name, reads, walk_again) as more:
                    again = record()
                same = not more and again.graph.digest() == recording.graph.digest()
                side_effects.check_memo(self.name, added, same)
                return again
            return recording
        finally:
            marks.discard(mark)

    def _record_in_place(
        self, key: Hashable, call: _Call, state: states.State, plain: Recording
    ) -> Recording | None:
        """Record with large arrays where they lie; None where their values are needed.

        They are where nothing can be recorded without them, or where it takes more operations than
        the ``plain`` recording: what is computed of such arrays alone is computed once if they are
        constants. Long programs and those that call back need not save the time to compare.
        """
        if self.dependencies.current_in_place(state.statics) is not state:
            return None  # the plain recording has shown more about the function: the next call
        recording = None
        with suppress(Exception), attempt(), states.reading_in_place(self.dependencies, state):
            # What goes wrong does so for want of values: with them it has been recorded.
            recording = self._record_once(key, call, state)
        if recording is not None and self.dependencies.reads_in_place:
            work = estimate_work(recording.blocks)
            limit = min(_LONG, _MORE * estimate_work(plain.blocks) + _FEW)
            is_alike = recording.outs == plain.outs and not self.dependencies.callbacks
            if is_alike and work <= limit:
                return recording
        self.dependencies.reads_in_place = False
        return None

    def _reject_in_place(self, key: Hashable) -> None:
        """Take back a recording that does not compute what the function does.

        The function tells a traced array from a plain one: ``type(A) is np.ndarray``.
        """
        self.dependencies.reads_in_place = False
        with self._lock:
            rejected = self._cache.pop(key, None)
            if rejected is not None:
                self._log.pop()
                self._withdraw(rejected[1])

    def _reads_to_watch(self, state: states.State) -> tuple[list[TrackedRead], Callable[[], Walk]]:
        """Return what recording must not change, and what walks there again."""
        walk_again = functools.partial(self.dependencies.walk_all, state.statics)
        reads: list[TrackedRead]
        if not self.dependencies.frozen:
            # Iterators and generators may have moved since they were found.
            moving = [read.renew() for read in state.walk.moving]
            arrays = [ArrayRead("", array, array.tobytes()) for array in state.live]
            reads = [*state.reads, *moving, *arrays]
        else:
            try:
                walk = walk_again()
            except TraceError:  # too much to look at, which is why it is frozen
                return [], walk_again
            state.walk.reads_clock, state.walk.draws = walk.reads_clock, walk.draws
            reads = [*walk.reads, *walk.moving]
        return [*reads, *(side_effects.shared_generators() if state.walk.draws else ())], walk_again

    def _keep(
        self, key: Hashable, recording: Recording, names: list[str], state: states.State
    ) -> tuple[Recording, Tiers]:
        with self._lock:
            if key not in self._cache:
                earlier, live = list(self._cache), bool(state.live)
                why = _reason_to_record(self.name, key, earlier, names, state.reason, live)
                self._log = [*self._log[-LOGGED:], why]
                graph = in_mode(recording.blocks, self.numerics)
                tiers = Tiers(
                    recording, self.backend, graph, state, label=self.name, drafts=self.drafts
                )
                self._cache[key] = (recording, tiers)
                while len(self._cache) > RECORDINGS:
                    self._withdraw(self._cache.popitem(last=False)[1][1])
            return self._cache[key]

    def _record(self, call: _Call) -> Recording:
        if self.recorded_by is not None:
            return self.recorded_by(call.values)

        def build(symbols: list[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
            new = dict(zip(call.dynamic, call.treedef.unflatten(symbols)))
            return self.signature.rebind(call.values, new)

        names = argument_paths(call.treedef, call.dynamic)
        with nullcontext() if self.loops_from is None else loops_from(self.loops_from):
            function = states.function_to_record(self.dependencies, self.function)
            recording = record(function, call.specs, build, names)
        count = len(recording.out_tree.children) or 1
        if self.return_names is not None and count != len(self.return_names):
            raise ShapeDtypeError(
                f"{self.name}() returns {count} values but return_names lists "
                f"{len(self.return_names)}: {list(self.return_names)}"
            )
        return recording

    def compile_at_once(self) -> Self:
        """Have it compiled at the first call, not interpreted before; returns the function.

        For what is known to be called often. Recordings that were made before are compiled at
        their next call.
        """
        self.backend = registry.resolve_backend(self.backend)
        for _, tiers in list(self._cache.values()):
            tiers.compile_at_once()
        return self

    def explain(self) -> str:
        """Say what was recorded and why, one line per recording."""
        if not self._log:
            return f"{self.name}: nothing recorded yet"
        lines = [f"{k + 1}. {line}" for k, line in enumerate(self._log)]
        with self._lock:
            recordings = [recording for recording, _ in self._cache.values()]
        lines += [f"   {text}" for text in map(_describe_loops, recordings[-1:]) if text]
        return "\n".join(lines)

    def clear_cache(self) -> None:
        """Forget all recordings and give back their memory."""
        with self._lock:
            self._cache.clear()
            self.dependencies.forget()
            self._withdraw_all()
            self._log.clear()


def _reason_to_record(
    name: str, key: Any, earlier: list[Any], names: list[str], read: str, in_place: bool
) -> str:
    """Say in one line why a call was recorded: what differs from the nearest earlier one.

    ``read`` is what differs among what the function reads; ``in_place``: it reads arrays where
    they lie, and was recorded with their values before.
    """
    treedef, specs, _, fixed, state, rules = key
    paths = argument_paths(treedef, names)
    text = f"{name}({', '.join(f'{path}: {spec}' for path, spec in zip(paths, specs))})"
    if not earlier:
        return f"{text}: first call"
    same_tree = [k for k in earlier if k[0] is treedef or k[0] == treedef]
    if not same_tree:
        return f"{text}: arguments of another structure"
    nearest = min(reversed(same_tree), key=lambda k: sum(a != b for a, b in zip(specs, k[1])))
    for mine, old, path in zip(specs, nearest[1], paths):
        if mine != old:
            return f"{text}: {path} was {old}, now {mine}"
    if all(k[5] != rules for k in same_tree):
        return f"{text}: loops are made by other rules: {rules}, not {nearest[5]}"
    if read and any(k[3] == fixed and k[4] != state for k in same_tree):
        return f"{text}: {read} has changed"
    if in_place:
        return f"{text}: large captured arrays are read where they lie"
    return f"{text}: another value of a static argument"


def _describe_loops(recording: Recording) -> str:
    """Say which loops over arrays the last recording has; nothing where it has none."""
    g = recording.blocks
    nests = [region for region in g.regions.values() if isinstance(region, Nest)]
    if not nests:
        return ""
    most = max(nests, key=lambda region: math.prod(region.shape))
    return (
        f"last recording: {len(nests)} loops over arrays, the largest {most.summary()}; arrays of "
        "fewer elements than compile's loops_from (64) are recorded element by element"
    )
