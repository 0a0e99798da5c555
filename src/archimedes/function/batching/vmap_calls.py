"""``vmap``: run a function over many instances at once."""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes import tree
from archimedes.backends.cpus import check_threads
from archimedes.errors import TraceError
from archimedes.function.compiled import SHORTCUTS, Compiled
from archimedes.function.control_flow.region_bodies import any_traced, static_out_graph
from archimedes.function.execution import Executor
from archimedes.function.identity.reads import PARTS
from archimedes.function.outputs import result_arrays
from archimedes.function.recording import LeafSpec, OutLeaf, Recording, leaf_ids
from archimedes.function.shortcuts import shortcut
from archimedes.graph.passes import inline
from archimedes.graph.program import Graph
from archimedes.graph.regions import Map
from archimedes.symbolic import SymbolicArray, current_trace, wrap
from archimedes.symbolic.core.subclasses import refuse_subclass
from archimedes.symbolic.core.traced_content import traced_or_same
from archimedes.tree.treedef import TreeDef

if TYPE_CHECKING:
    from archimedes.function.checking import Check

__all__ = ["vmap"]

#: Inside a recording, maps of at most this many operations in all are written out.
UNROLL_LIMIT = 256


class Batched:
    """The result of :func:`vmap`."""

    def __init__(
        self,
        function: Callable[..., Any],
        in_axes: Any,
        out_axes: Any,
        name: str | None,
        threads: int | None,
    ) -> None:
        if not callable(function):
            raise TypeError(
                f"vmap needs a function, got {type(function).__name__}: write arc.vmap(f)(x)"
            )
        self.compiled = function if isinstance(function, Compiled) else Compiled(function)
        functools.update_wrapper(self, self.compiled.function, updated=())
        self.name = name or f"vmap_{self.compiled.name}"
        self.__name__ = self.name
        check_axes(in_axes, "in_axes")
        check_axes(out_axes, "out_axes")
        self.in_axes = in_axes
        self.out_axes = out_axes
        self.threads = check_threads("vmap", threads)
        self._shortcuts: tuple[Callable[..., Any], ...] = ()
        self._into_shortcuts: tuple[Callable[..., Any], ...] = ()
        #: The forms of calls that have a call path, for each executor that is still in use.
        self._remembered: weakref.WeakKeyDictionary[Executor, set[Any]] = (
            weakref.WeakKeyDictionary()
        )
        self.__signature__ = inspect.signature(self.compiled.function)

    def __repr__(self) -> str:
        return f"<{self.name}: {self.compiled!r} over axes {self.in_axes}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Evaluate all instances; keyword arguments are shared by all of them.

        ``out=`` takes what an earlier call returned and has the results written into its arrays
        (unless the function has a parameter of that name).
        """
        out = None
        if "out" in kwargs and "out" not in self.__signature__.parameters:
            out = kwargs.pop("out")
        if not kwargs:
            # Generated paths check their arguments: try them before anything is looked at.
            for fast in self._shortcuts if out is None else self._into_shortcuts:
                result = fast(*args) if out is None else fast(*args, out)
                if result is not NotImplemented:
                    return result if out is None else out
        axes = self._axes(args)
        leaves, treedef = tree.flatten(args)
        count = self._count(leaves, axes, treedef)
        fronted = [leaf if axis is None else _front(leaf, axis) for leaf, axis in zip(leaves, axes)]
        sample = treedef.unflatten(
            [leaf if axis is None else _instance(leaf) for leaf, axis in zip(fronted, axes)]
        )
        _, recording, executor = self.compiled._lookup(sample, kwargs)
        every, batched = self._line_up(sample, kwargs, fronted, axes)
        if executor is not None and not any_traced(args, kwargs):
            if out is not None:
                arrays = self._arrays(recording, out, count)
                executor.batch(every, batched, count, self.threads, arrays)
            else:
                result = executor.finish(executor.batch(every, batched, count, self.threads))
            if executor.warm and executor.busy() and not kwargs:
                self._remember(treedef, executor, axes, batched, out is not None)
            if out is not None:
                return out
        else:
            if out is not None:
                raise TraceError(
                    f"{self.name}: out= takes numbers; inside a recorded function there is "
                    "nothing to save, leave it away"
                )
            recording = static_out_graph(recording)
            result = _mapped(recording, every, batched, count)
        return self._place(recording, result, count, batched)

    def check(self, *args: Any, **kwargs: Any) -> Check:
        """Run each instance as plain Python, with the checks the function makes of values.

        Returns what came up, with the number of the instance; see ``Compiled.check``.
        """
        from archimedes.function.checking import Check, check

        axes = self._axes(args)
        leaves, treedef = tree.flatten(args)
        count = self._count(leaves, axes, treedef)
        fronted = [leaf if axis is None else _front(leaf, axis) for leaf, axis in zip(leaves, axes)]
        findings: list[Any] = []
        for k in range(count):
            row = treedef.unflatten([x if a is None else x[k] for x, a in zip(fronted, axes)])
            one = check(self.name, self.compiled.function, self.compiled, row, kwargs, k)
            findings.extend(one.findings)
        return Check(self.name, tuple(findings))

    def _arrays(self, recording: Recording, out: Any, count: int) -> list[np.ndarray]:
        if self.out_axes != 0:
            raise ValueError(f"{self.name}: out= needs out_axes=0, it is {self.out_axes!r}")
        return result_arrays(self.name, recording, out, count)

    def _remember(
        self,
        treedef: Any,
        executor: Executor,
        axes: list[int | None],
        batched: list[bool],
        into: bool,
    ) -> None:
        """Let the next calls of this form go straight to the native entry."""
        signature = self.compiled.signature
        limit = executor.one_thread(self.threads)
        form = (tuple(batched), limit, into)
        plain = signature.plain and not signature.static and self.out_axes == 0
        if not plain or not limit or any(axes) or len(batched) != len(axes):
            return
        known = self._remembered.setdefault(executor, set())
        if form in known:
            return
        known.add(form)
        entry = executor.entry(*form)
        if entry is None or not executor.finished:
            return
        fast = shortcut(entry, treedef, executor.recording.out_tree if into else None)
        if fast is not None and into:
            self._into_shortcuts = (fast, *self._into_shortcuts[: SHORTCUTS - 1])
        elif fast is not None:
            self._shortcuts = (fast, *self._shortcuts[: SHORTCUTS - 1])

    def _line_up(
        self, sample: Any, kwargs: dict[str, Any], fronted: list[Any], axes: list[int | None]
    ) -> tuple[list[Any], list[bool]]:
        """Put leaves in the recording's order: arguments as bound, defaults and keywords shared."""
        signature = self.compiled.signature

        def bound(arguments: Any) -> list[Any]:
            values = signature.bind(arguments, kwargs)
            fixed = signature.fixed(values)
            return tree.leaves(tuple(v for k, v in values.items() if k not in fixed))

        marks = [_Mark(k) for k in range(len(fronted))]
        every, batched = [], []
        for mark in bound(tree.structure(sample).unflatten(marks)):
            mine = isinstance(mark, _Mark)
            every.append(fronted[mark.position] if mine else mark)
            batched.append(mine and axes[mark.position] is not None)
        return every, batched

    def _axes(self, args: tuple[Any, ...]) -> list[int | None]:
        """Return the batch axis of every leaf, None where it is shared."""
        given = self.in_axes
        if given is None or isinstance(given, int):
            given = (given,) * len(args)
        if len(given) != len(args):
            raise ValueError(
                f"vmap: in_axes has {len(given)} entries, but {self.compiled.name}() was given "
                f"{len(args)} arguments"
            )
        axes: list[int | None] = []
        for arg, axis in zip(args, given):
            if axis is None or isinstance(axis, (int, np.integer)):
                count = len(tree.leaves(arg))
                axes.extend([None if axis is None else int(axis)] * count)
            else:
                axes.extend(_spread_axes(axis, arg))
        return axes

    def _count(self, leaves: list[Any], axes: list[int | None], treedef: Any) -> int:
        sizes: dict[int, int] = {}
        for k, (leaf, axis) in enumerate(zip(leaves, axes)):
            refuse_subclass(leaf, functools.partial(_argument, treedef, k))
            if axis is None:
                continue
            shape = np.shape(leaf)
            if not -len(shape) <= axis < len(shape):
                raise ValueError(
                    f"vmap: argument {treedef.paths()[k]} has shape {shape}, which has no axis "
                    f"{axis} to map over; set its entry of in_axes to None to share it"
                )
            sizes[k] = shape[axis]
        if not sizes:
            raise ValueError("vmap: no argument has an axis to map over (in_axes is None)")
        if len(set(sizes.values())) > 1:
            paths = treedef.paths()
            named = {paths[k]: size for k, size in sizes.items()}
            raise ValueError(f"vmap: the mapped axes have different lengths: {named}")
        return next(iter(sizes.values()))

    def _place(self, recording: Recording, result: Any, count: int, batched: list[bool]) -> Any:
        """Move the batch axis of each result leaf to where ``out_axes`` wants it."""
        axes = self.out_axes
        if axes == 0 and all(out.spec.code >= 0 for out in recording.outs):
            return result
        leaves, treedef = tree.flatten(result)
        if axes is None or isinstance(axes, int):
            per_leaf = [axes] * len(leaves)
        else:
            per_leaf = _spread_axes(axes, result)
        varies = _varies(recording, batched) if None in per_leaf else []
        placed = []
        for leaf, axis, out, path in zip(leaves, per_leaf, recording.outs, treedef.paths("result")):
            if axis is None:
                if any(varies[out.start : out.stop]):
                    raise ValueError(
                        f"vmap: out_axes is None for {path}, which differs between instances: "
                        "give it an axis"
                    )
                placed.append(_shared(leaf, count, path) if out.spec.code >= 0 else leaf)
                continue
            if out.spec.code < 0:
                leaf = np.broadcast_to(leaf, (count, *np.shape(leaf))).copy()
            if not -np.ndim(leaf) <= axis < np.ndim(leaf):
                raise ValueError(
                    f"vmap: out_axes={axis} is out of range for {path}, which with the batch has "
                    f"{np.ndim(leaf)} axes"
                )
            placed.append(np.moveaxis(leaf, 0, axis) if axis else leaf)
        return treedef.unflatten(placed)


PARTS[Batched] = lambda batched: (batched.compiled, batched.in_axes, batched.out_axes)


def _varies(recording: Recording, batched: list[bool]) -> list[bool]:
    """Tell for each output of the graph whether a batched input reaches it."""
    g = recording.graph
    reached = [False] * len(g.op)
    for spec, start, many in zip(recording.leaves, recording.offsets(), batched):
        if many and spec.code >= 0:
            for i in g.inputs[start : start + spec.size]:
                reached[i] = True
    for i in g.live():
        reached[i] = reached[i] or any(reached[j] for j in g.operands(i))
    return [reached[i] for i in g.outputs]


def _shared(leaf: Any, count: int, path: str) -> Any:
    """Return the value that all instances share."""
    if not count:
        raise ValueError(f"vmap: out_axes is None for {path}, but an empty batch has no value")
    return leaf[0]


def _argument(treedef: TreeDef, k: int) -> str:
    return f"vmap: argument {treedef.paths()[k]}"


class _Mark:
    """Stands for an argument leaf while its place among all leaves is looked up."""

    def __init__(self, position: int) -> None:
        self.position = position


def _front(leaf: Any, axis: int) -> Any:
    leaf = traced_or_same(leaf)
    array: Any = leaf if isinstance(leaf, SymbolicArray) else np.asarray(leaf)
    return np.moveaxis(array, axis, 0) if axis else array


def _instance(leaf: Any) -> Any:
    """Something with the shape and dtype of one instance (also of an empty batch)."""
    if isinstance(leaf, SymbolicArray):
        if leaf.shape[0]:
            return leaf[0]
        return wrap(np.zeros(leaf.shape[1:], dtype=np.int64), leaf.code, leaf.owner)
    return np.zeros(leaf.shape[1:], dtype=leaf.dtype)[()]


def check_axes(axes: Any, name: str) -> None:
    """Raise unless axes are ints and Nones, or a tree of those."""
    for axis in tree.leaves(axes):
        if not isinstance(axis, (int, np.integer)) or isinstance(axis, bool):
            raise TypeError(
                f"vmap: {name}={axes!r} holds {axis!r}, which is not an axis: give an int, None "
                "(for what all instances share), or a tuple or tree of those"
            )


def _spread_axes(axes: Any, value: Any) -> list[int | None]:
    """Match a tree of axes, which may be a prefix of the value's tree, to its leaves."""
    if axes is None or isinstance(axes, (int, np.integer)):
        return [None if axes is None else int(axes)] * len(tree.leaves(value))
    parts, shape = tree.flatten(value, is_leaf=lambda x: x is not value)
    entries, given = tree.flatten(axes, is_leaf=lambda x: x is not axes)
    difference = shape.difference(given, "", parts, entries)
    if difference is not None:
        raise ValueError(
            f"vmap: axes {axes!r} do not match the {type(value).__name__} they are for: "
            f"{difference}"
        )
    return [axis for a, v in zip(entries, parts) for axis in _spread_axes(a, v)]


def _mapped(recording: Recording, leaves: list[Any], batched: list[bool], count: int) -> Any:
    """Record a map over instances in the current trace."""
    trace = current_trace()
    rows, shared = [], []
    order: list[int] = []
    later: list[int] = []
    offsets = recording.offsets()
    for leaf, spec, many, start in zip(leaves, recording.leaves, batched, offsets):
        if spec.code < 0:
            continue
        place = range(start, start + spec.size)
        if many:
            ids = leaf_ids(leaf, LeafSpec(spec.code, (count, *spec.shape)))
            rows.append(np.array(ids, dtype=np.int64).reshape(count, spec.size))
            order.extend(place)
        else:
            shared.extend(leaf_ids(leaf, spec))
            later.extend(place)
    own = len(order) + len(later)
    block = np.concatenate(rows, axis=1)
    shared += recording.captured
    places = [*order, *later, *range(own, own + len(recording.captured))]
    body = _permuted(recording, places)
    if count * len(body) <= UNROLL_LIMIT:
        outs = [inline(trace.graph, body, [*row, *shared]) for row in block.tolist()]
        table = np.array(outs, dtype=np.int64).reshape(count, len(body.outputs))
    else:
        region = Map(np.array([*block.reshape(-1), *shared]), body, count, block.shape[1])
        table = trace.graph.region(region).reshape(count, len(body.outputs))

    def take(out: OutLeaf) -> Any:
        return wrap(table[:, out.start : out.stop].reshape(count, *out.spec.shape), out.spec.code)

    return recording.rebuild(take)


def _permuted(recording: Recording, places: list[int]) -> Graph:
    """Return the graph with inputs in another order: new input k is old input places[k]."""
    if places == sorted(places):
        return recording.graph
    g = Graph()
    dtypes = recording.graph.input_dtypes
    old = {place: g.input(dtypes[place]) for place in places}
    g.outputs = inline(g, recording.graph, [old[k] for k in range(len(dtypes))])
    return g


def vmap(
    func: Callable[..., Any],
    in_axes: Any = 0,
    out_axes: Any = 0,
    name: str | None = None,
    *,
    threads: int | None = None,
) -> Batched:
    """Return a function that maps ``func`` over an axis of its arguments.

    ``in_axes`` is one axis for all arguments, or a tuple with an axis, None (shared by all
    instances) or a tree of those per argument; ``out_axes`` likewise for the result. Calls may
    be nested. Keyword arguments are shared. On numbers it runs as one native kernel over SIMD
    lanes and ``threads`` threads (default: all cores for large batches); results do not depend
    on their number.

    >>> import numpy as np
    >>> vmap(np.dot, in_axes=(0, None))(np.eye(2), np.array([3.0, 4.0]))
    array([3., 4.])
    """
    return Batched(func, in_axes, out_axes, name, threads)
