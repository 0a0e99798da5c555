"""The call path: one object per recording, which runs each call on the highest tier it has reached.

A *kind of call* (:class:`CallForm`) is a single one or a batch with instances in certain leaves,
into new arrays or into the caller's. It runs on one of four tiers, which give the same bits:

=========== ========================================= ==========================================
tier        what runs                                 when a kind of call moves up to it
=========== ========================================= ==========================================
interpreted the graph, node by node, by the reference at once, where ``backend="auto"``
kernel      code of the backend, on arrays            after ``WARM_UP`` operations of the
                                                      recording; at once where a backend was named
                                                      (with ``drafts``: unoptimized, until it was
                                                      called ``FIRST_CALLS`` times)
entry       the kernel, behind a builtin that takes   after ``FIRST_CALLS`` calls of the kernel,
            the leaves themselves                     where the backend makes entries
shortcut    generated Python: structs to the entry    with the entry, where arguments and results
                                                      are leaves, tuples and structs
=========== ========================================= ==========================================

Shortcuts are tried first, by the function itself (``shortcuts.py``). Nothing moves down; what
a tier does not take (an entry returns NotImplemented) goes to the one below it in that call.

In "fast" numerics the recording's graph is first rewritten (``graph/fast.py``); what runs is the
result, in every backend the same.
"""

from __future__ import annotations

import itertools
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any, NamedTuple

from archimedes import tree
from archimedes.backends import protocol, registry
from archimedes.backends.array_kinds import HOST, Arrays
from archimedes.backends.protocol import Kernel, Program
from archimedes.backends.registry import AUTO
from archimedes.errors import ShapeDtypeError, TraceError
from archimedes.function.leaf_specs import LeafSpec
from archimedes.function.recording import Recording
from archimedes.graph import Graph, Nest
from archimedes.graph.dtypes import DTYPE_NAMES, DTYPES, I64, STATIC
from archimedes.tree.nodes import field_names
from archimedes.tree.structs import is_struct
from archimedes.tree.treedef import LEAF, TreeDef

if TYPE_CHECKING:
    from archimedes.function.dependencies.states import State

#: Operations that are interpreted before a recording is compiled: that takes tens of milliseconds.
WARM_UP = 20_000
#: Calls of a kernel on arrays, before an entry of its own is made.
FIRST_CALLS = 3
NUMERICS = ("strict", "fast")


class CallForm(NamedTuple):
    """A kind of call of a recording.

    ``batched`` marks the leaves with an axis of instances (None: a single call), which are to run
    in ``threads``; ``into``: results go to arrays of the caller.
    """

    batched: tuple[bool, ...] | None = None
    threads: int | None = None
    into: bool = False


SINGLE = CallForm()
_numbers = itertools.count()


class Tiers:
    """Runs one recording: on single arguments, or on a batch along leading axes.

    ``graph`` is what runs of it. Arguments are leaves that match the recording. Results are arrays
    of the kind the arguments are: NumPy's, or with ``stays`` those of a device.
    """

    def __init__(
        self,
        recording: Recording,
        backend: str,
        graph: Graph,
        state: State | None = None,
        stays: bool = False,
        label: str = "",
        drafts: bool = False,
    ) -> None:
        self.recording, self.name, self.graph = recording, backend, graph
        self.backend = registry.get_backend(backend)
        #: A number that no other recording ever has.
        self.number = next(_numbers)
        #: What the function read when it was recorded; shortcuts check that it still holds.
        self.state = state
        self.program = Program(
            graph,
            tuple(protocol.ArrayType(s.code, s.shape) for s in recording.leaves if s.traced),
            tuple(
                protocol.ArrayType(o.spec.code, o.spec.shape)
                for o in recording.outs
                if o.spec.traced
            ),
            label,
        )
        #: How kernels are called; a device's arrays stay there, NumPy's are moved.
        arrays = self.backend.arrays
        self.calls = KernelCalls(recording.leaves, self.program, arrays, stays or arrays is HOST)
        self._operations = protocol.estimate_work(graph)
        self._work = self._calls = 0
        self._drafts = drafts
        self._lock = threading.Lock()
        self._kernel: Kernel | None = None
        self._entries: dict[CallForm, Callable[..., Any] | None] = {}
        #: Whether entries return the result itself, not a tuple of its traced leaves.
        self.finished = False
        #: Runs until the kernel is worth compiling.
        self._reference = (
            registry.reference_backend().build(self.program) if backend == AUTO else None
        )
        self._others: dict[tuple[str, bool], Tiers] = {}

    # ---- where ---------------------------------------------------------------------------

    def where(self, leaves: Sequence[Any], names: Sequence[str]) -> Tiers:
        """Return what runs a call with these leaves (and their names): it runs where they lie."""
        home = registry.device_backend(leaves, names)
        if home is None:
            return self
        if self.name not in (AUTO, home.name):
            raise ShapeDtypeError(
                f"the function was made with backend={self.name!r}, but is called with "
                f"{home.arrays.kind} arrays, which backend {home.name!r} takes: "
                f"{home.arrays.remedy or 'move them'}, or leave backend= out"
            )
        return self._other(home.name, stays=True)

    def on(self, name: str | None) -> Tiers:
        """Return what runs the same recording on another backend (None: on its own)."""
        return self if name is None or name == self.name else self._other(name, stays=False)

    def _other(self, name: str, stays: bool) -> Tiers:
        with self._lock:
            if (name, stays) not in self._others:
                self._others[name, stays] = Tiers(
                    self.recording, name, self.graph, self.state, stays, self.program.name
                )
            return self._others[name, stays]

    # ---- moving up -----------------------------------------------------------------------

    def _kernel_for(self, instances: int) -> Kernel:
        """Count work about to be done and return what should do it."""
        if self._reference is not None:
            self._work += instances * self._operations
            if self._work <= WARM_UP:
                return self._reference
        self._calls += 1
        kernel = self.kernel()
        if self._drafts and (instances > 1 or self.often):
            self.complete()
        return kernel

    def compile_at_once(self) -> None:
        """Compile at the next call, and make entries: more calls than that are to come."""
        self._reference = None
        self._calls = max(self._calls, FIRST_CALLS)

    def complete(self) -> None:
        """Have the kernel optimized, which may have been made without."""
        self._drafts = False
        self.kernel().optimize()

    def kernel(self) -> Kernel:
        """Return the compiled kernel, making it if needed."""
        if self._kernel is None:
            with self._lock:
                if self._kernel is None:
                    backend = self.backend
                    make = backend.build_unoptimized if self._drafts else backend.build
                    self._kernel = make(self.program)
        return self._kernel

    @property
    def often(self) -> bool:
        """Whether the kernel was called often enough to make entries for it."""
        return self._calls > FIRST_CALLS

    def entry(self, form: CallForm = SINGLE) -> Callable[..., Any] | None:
        """Return the builtin that takes leaves and returns the result (see ``finished``).

        With ``into`` it takes arrays for the results too, and returns None. None where the
        backend makes no entry for this kind of call.
        """
        if form not in self._entries:
            kernel = self.kernel()
            if self._drafts:
                self.complete()
            with self._lock:
                # Made once: another thread may be running the one that is there.
                if form not in self._entries:
                    self._entries[form] = kernel.direct_entry(self._request(form))
        return self._entries[form]

    def _request(self, form: CallForm) -> protocol.EntryRequest:
        result = result_form(self.recording)
        self.finished = result is not None
        leaves = self.recording.leaves
        marks = form.batched or (False,) * len(leaves)
        return protocol.EntryRequest(
            tuple(
                protocol.Argument(s.code, s.shape, s.weak, s.value, m)
                for s, m in zip(leaves, marks)
            ),
            self.program.outputs,
            result or protocol.Tuple(tuple(map(protocol.Leaf, range(len(self.program.outputs))))),
            form.batched is not None,
            form.threads,
            form.into,
        )

    # ---- single calls --------------------------------------------------------------------

    def __call__(self, leaves: Sequence[Any]) -> Any:
        """Evaluate one instance and rebuild the result tree."""
        kernel = self._kernel_for(1)
        entry = self.entry() if self.often else None
        if entry is not None:
            values = entry(*map(canonical, leaves, self.recording.leaves))
            if values is not NotImplemented:
                return self.from_entry(values)
        return self.finish(self.calls.call(kernel, leaves))

    def values(self, leaves: Sequence[Any]) -> tuple[Any, ...]:
        """Evaluate one instance, once, and return the traced leaves of the result.

        Loops over blocks are operations on whole arrays to the reference: nothing is compiled.
        """
        if all(isinstance(region, Nest) for region in self.graph.regions.values()):
            return self.calls.call(registry.reference_backend().build(self.program), leaves)
        return self.calls.call(self._kernel_for(1), leaves)

    def into(self, leaves: Sequence[Any], out: Sequence[Any]) -> None:
        """Evaluate into the arrays of the traced result leaves."""
        kernel = self._kernel_for(1)
        entry = self.entry(CallForm(into=True)) if self.often else None
        if entry is None or entry(*map(canonical, leaves, self.recording.leaves), *out) is not None:
            # Interpreted, or an array that overlaps another: compute apart, then copy.
            self.calls.copy(self.calls.call(kernel, leaves), out)

    def from_entry(self, values: Any) -> Any:
        """Return the result of what an entry returned."""
        return values if self.finished else self.finish(values)

    def finish(self, values: tuple[Any, ...]) -> Any:
        """Build the result tree from the traced leaves in order."""
        r = self.recording
        if len(values) == len(r.outs):
            return r.out_tree.unflatten(values)
        ready = iter(values)
        return r.rebuild(lambda out: next(ready))

    # ---- batches -------------------------------------------------------------------------

    def batch(
        self,
        leaves: Sequence[Any],
        batched: Sequence[bool],
        count: int,
        threads: int | None = None,
        out: Sequence[Any] | None = None,
    ) -> tuple[Any, ...]:
        """Evaluate ``count`` instances; batched leaves have a leading axis of that length.

        Returns the traced result leaves with a leading axis, in ``out`` where given. ``threads``
        defaults to what the backend finds best.
        """
        kernel = self._kernel_for(count)
        return self.calls.batch(kernel, leaves, batched, count, threads, out)


def in_mode(graph: Graph, numerics: str) -> Graph:
    """Return what runs for a recorded graph: itself, or what "fast" numerics make of it."""
    if numerics == "strict":
        return graph
    from archimedes.graph.fast import fast

    return fast(graph)


# ---- kernels called on leaves --------------------------------------------------------------------


class KernelCalls:
    """How kernels of one program are called with leaves described by ``specs``.

    ``stays``: the leaves are arrays of the backend's kind, and so are the results; otherwise all
    are NumPy's and are moved.
    """

    __slots__ = ("arrays", "kinds", "specs", "stays")

    def __init__(
        self, specs: Sequence[LeafSpec], program: Program, arrays: Arrays, stays: bool
    ) -> None:
        self.specs, self.kinds, self.arrays, self.stays = specs, program.outputs, arrays, stays

    @property
    def result_kind(self) -> Arrays:
        """The arrays that results are returned in."""
        return self.arrays if self.stays else HOST

    def call(self, kernel: Kernel, leaves: Sequence[Any]) -> tuple[Any, ...]:
        """Return the traced result leaves of one instance."""
        arrays, specs = self.arrays, self.specs
        inputs = [
            arrays.take(x, s.code, s.shape) for x, s in zip(leaves, specs) if s.code != STATIC
        ]
        outs = [arrays.empty(*kind) for kind in self.kinds]
        kernel.call(inputs, outs)
        if self.stays:
            return tuple([arrays.result(out) for out in outs])
        return tuple([HOST.result(arrays.to_host(out)) for out in outs])

    def copy(self, values: Sequence[Any], outs: Sequence[Any]) -> tuple[Any, ...]:
        """Copy results into the caller's arrays."""
        for value, out in zip(values, outs):
            self.result_kind.copy_into(value, out)
        return tuple(outs)

    def batch(
        self,
        kernel: Kernel,
        leaves: Sequence[Any],
        batched: Sequence[bool],
        count: int,
        threads: int | None,
        out: Sequence[Any] | None,
    ) -> tuple[Any, ...]:
        """Return the traced result leaves of ``count`` instances, in ``out`` where given."""
        arrays = self.arrays
        if not self.stays:
            results = self._batch_from_host(kernel, leaves, batched, count, threads)
        else:
            inputs, flags = self._batch_inputs(arrays, leaves, batched, count)
            into = out is not None and not any(
                arrays.may_overlap(a, b) for a in out for b in inputs
            )
            results = list(out) if into and out is not None else self._empty(arrays, count)
            kernel.call_batch(inputs, flags, results, count, threads)
            if into:
                return tuple(results)
        return tuple(results) if out is None else self.copy(results, out)

    def _empty(self, arrays: Arrays, count: int) -> list[Any]:
        return [arrays.empty(code, (count, *shape)) for code, shape in self.kinds]

    def _batch_inputs(
        self, arrays: Arrays, leaves: Sequence[Any], batched: Sequence[bool], count: int
    ) -> tuple[list[Any], list[bool]]:
        """Return the traced leaves as arrays of a kind, and which of them are batched."""
        inputs, flags = [], []
        for leaf, spec, many in zip(leaves, self.specs, batched):
            if spec.traced:
                shape = (count, *spec.shape) if many else spec.shape
                inputs.append(arrays.take(leaf, spec.code, shape))
                flags.append(many)
        return inputs, flags

    def _batch_from_host(
        self,
        kernel: Kernel,
        leaves: Sequence[Any],
        batched: Sequence[bool],
        count: int,
        threads: int | None,
    ) -> list[Any]:
        """Evaluate NumPy's arrays on a device: the backend moves them, or they are moved whole."""
        inputs, flags = self._batch_inputs(HOST, leaves, batched, count)
        results = self._empty(HOST, count)
        if kernel.call_batch_from_host(inputs, flags, results, count, threads):
            return results
        inputs, _ = self._batch_inputs(self.arrays, leaves, batched, count)
        results = self._empty(self.arrays, count)
        kernel.call_batch(inputs, flags, results, count, threads)
        return [self.arrays.to_host(result) for result in results]


def canonical(leaf: Any, spec: LeafSpec) -> Any:
    """Return a leaf in the one form that entries take."""
    if spec.code == STATIC:
        return spec.value
    if spec.shape:
        return HOST.take(leaf, spec.code, spec.shape)
    if spec.weak:
        return int(leaf) if spec.code == I64 else float(leaf)
    return HOST.take(leaf, spec.code, ())[()]


def out_error(name: str) -> TraceError:
    """Return the error of a call with ``out=`` that is part of a recording."""
    return TraceError(
        f"{name}: out= takes numbers; inside a recorded function there is nothing to save, leave "
        "it out"
    )


def result_arrays(
    name: str, recording: Recording, out: Any, arrays: Arrays = HOST, count: int | None = None
) -> list[Any]:
    """Return the arrays of ``out`` that take the traced results of a recording, in order.

    ``out`` must have the structure of the result and an array of the right shape and dtype in
    each leaf, of the kind ``arrays``; ``count`` is the length of the leading axis of a batch.
    Results that do not depend on the arguments are written at once.
    """
    leaves, treedef = tree.flatten(out)
    difference = recording.out_tree.difference(treedef, "out")
    if difference is not None:
        raise ValueError(
            f"{name}: out does not have the structure of the result: {difference}; pass what an "
            "earlier call returned"
        )
    targets = []
    for leaf, result, path in zip(leaves, recording.outs, treedef.paths("out")):
        if not result.spec.traced:
            if arrays.owns(leaf):
                arrays.copy_into(result.spec.value, leaf)
            continue
        shape = result.spec.shape if count is None else (count, *result.spec.shape)
        _check(f"{name}: {path}", leaf, arrays, shape, result.spec.code)
        targets.append(leaf)
    for k, (array, path) in enumerate(zip(targets, treedef.paths("out"))):
        if any(arrays.may_overlap(array, other) for other in targets[:k]):
            raise ValueError(f"{name}: {path} shares memory with another array of out")
    return targets


def _check(where: str, leaf: Any, arrays: Arrays, shape: tuple[int, ...], code: int) -> None:
    kind = "" if arrays is HOST else f"{arrays.kind} "
    wanted = f"a C-contiguous, writable {DTYPE_NAMES[code]} {kind}array of shape {shape}"
    if not arrays.owns(leaf):
        hint = "; a 0-d array np.empty(()) takes a scalar result" if shape == () else ""
        raise TypeError(f"{where} is a {type(leaf).__name__}, it must be {wanted}{hint}")
    its_shape, dtype = arrays.describe(leaf)
    if its_shape != shape or dtype != DTYPES[code]:
        raise ValueError(f"{where} has shape {its_shape} and dtype {dtype}, not {wanted}")
    if not arrays.is_plain(leaf):
        raise ValueError(f"{where} is not {wanted}: it is a view with gaps, or read-only")


#: Static values that are compared by type and value in generated code.
SIMPLE = (str, bool, int, type(None))


def is_plain_struct(node: TreeDef) -> bool:
    """Return whether a node is a struct whose fields lie in its instance dict."""
    cls = node.kind.cls
    if not is_struct(cls) or cls.__dictoffset__ == 0:
        return False
    data, static = field_names(cls)
    members = [getattr(cls, name, None) for name in (*data, *static)]
    return len(data) == len(node.children) and not any(
        isinstance(m, (MemberDescriptorType, property)) for m in members
    )


def result_form(recording: Recording) -> protocol.Form | None:
    """Return the form of a result, or None where it has parts that the entry cannot build."""
    if any(not out.spec.traced for out in recording.outs):
        return None
    return _form(recording.out_tree, iter(range(len(recording.outs))))


def _form(node: TreeDef, numbers: Iterator[int]) -> protocol.Form | None:
    if node is LEAF:
        return protocol.Leaf(next(numbers))
    cls = node.kind.cls
    if cls is type(None):
        return protocol.Known(None)
    parts = tuple(part for child in node.children if (part := _form(child, numbers)) is not None)
    if len(parts) < len(node.children):
        return None
    if cls is tuple:
        return protocol.Tuple(parts)
    if not is_plain_struct(node) or any(type(v) not in SIMPLE for v in node.aux or ()):
        return None
    data, static = field_names(cls)
    fields = tuple(sys.intern(name) for name in (*data, *static))
    return protocol.Struct(cls, fields, (*parts, *(protocol.Known(v) for v in node.aux or ())))


def array_functions(
    functions: Mapping[str, tuple[str, Callable[..., None]]], sources: Path
) -> Mapping[str, Callable[..., int]] | None:
    """Return the functions by name, or None where they cannot be had.

    See ``Backend.array_functions`` for what describes them and how they are called.
    """
    return registry.default_backend().array_functions(functions, sources)
