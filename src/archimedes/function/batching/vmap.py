"""``vmap``: run a function over many instances at once.

As part of a recording, few instances are unrolled, or become a Map region. Many become loops over
blocks, however many there are: a body of scalar operations is that of an elementwise loop; one with
regions, or with arrays of its own, is that of a scan that carries nothing.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes import tree
from archimedes.backends.array_kinds import HOST
from archimedes.backends.registry import check_backend, runs_in_place
from archimedes.checks import check_callable
from archimedes.function.batching import batch_axes
from archimedes.function.compiled import Compiled
from archimedes.function.execution.shortcuts import CompiledCallable, P, R
from archimedes.function.execution.tiers import CallForm, out_error, result_arrays
from archimedes.function.leaf_specs import LeafSpec
from archimedes.function.recording import OutLeaf, Recording, leaf_elements, leaf_ids, read_array
from archimedes.function.region_bodies import must_record, trace_static_results
from archimedes.graph.blocks.building import loops
from archimedes.graph.blocks.references import as_block, references
from archimedes.graph.derivatives.bodies import permute_body
from archimedes.graph.passes import inline
from archimedes.graph.regions import Affine, Map, Scan
from archimedes.graph.regions.block_regions import Read
from archimedes.symbolic import current_trace, wrap
from archimedes.symbolic.core.loop_nests import ALWAYS_FACTOR, loop_threshold
from archimedes.system.cpus import check_threads
from archimedes.tree.treedef import TreeDef

if TYPE_CHECKING:
    from archimedes.function.inspection import Check

__all__ = ["vmap"]


class Batched(CompiledCallable[P, R]):
    """The result of :func:`vmap`."""

    def __init__(
        self,
        function: Callable[..., Any],
        in_axes: Any,
        out_axes: Any,
        name: str | None,
        threads: int | None,
        backend: str | None = None,
    ) -> None:
        super().__init__()
        check_callable(function, "vmap: func", remedy="write arc.vmap(f)(x)")
        self.compiled = function if isinstance(function, Compiled) else Compiled(function)
        #: What runs it, if not what runs the function.
        self.backend = None if backend is None else check_backend("vmap", backend)
        functools.update_wrapper(self, self.compiled.function, updated=())
        self.name = name or f"vmap_{self.compiled.name}"
        self.__name__ = self.name
        batch_axes.check_axes(in_axes, "in_axes")
        batch_axes.check_axes(out_axes, "out_axes")
        self.in_axes, self.out_axes = in_axes, out_axes
        self.threads = check_threads("vmap", threads)
        self.__signature__ = inspect.signature(self.compiled.function)

    def __repr__(self) -> str:
        return f"<{self.name}: {self.compiled!r} over axes {self.in_axes}>"

    def _call_slowly(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Evaluate all instances; keyword arguments are shared by all of them.

        ``out=`` takes what an earlier call returned and has the results written into its arrays
        (unless the function has a parameter of that name).
        """
        out = None
        if "out" in kwargs and "out" not in self.__signature__.parameters:
            out = kwargs.pop("out")
        axes, leaves, treedef, count = self._instances(args)
        sample = treedef.unflatten(
            [
                leaf if axis is None else batch_axes.instance(leaf)
                for leaf, axis in zip(leaves, axes)
            ]
        )
        in_place = runs_in_place(self.backend or self.compiled.backend, leaves)
        _, recording, tiers = self.compiled.lookup(sample, kwargs, in_place)
        every, batched = self._line_up(sample, kwargs, leaves, axes)
        if tiers is None or must_record(args, kwargs):
            if out is not None:
                raise out_error(self.name)
            recording = trace_static_results(recording)
            result = recorded_map(recording, every, batched, count)
            return batch_axes.place_results(recording, result, self.out_axes, count, batched, HOST)
        tiers = tiers.on(self.backend).where(every, recording.names)
        kind = tiers.calls.result_kind
        if out is not None and self.out_axes != 0:
            raise ValueError(f"{self.name}: out= needs out_axes=0, it is {self.out_axes!r}")
        arrays = None if out is None else result_arrays(self.name, recording, out, kind, count)
        values = tiers.batch(every, batched, count, self.threads, arrays)
        if tiers.often and not kwargs and self._takes_shortcuts(axes, batched):
            form = CallForm(tuple(batched), self.threads, out is not None)
            self._offer(tiers, form, args)
        if out is not None:
            return out
        result = tiers.finish(values)
        return batch_axes.place_results(recording, result, self.out_axes, count, batched, kind)

    def _instances(self, args: tuple[Any, ...]) -> tuple[list[int | None], list[Any], TreeDef, int]:
        """Return batch axes and leaves, with that axis first, the tree, and how many there are."""
        axes = batch_axes.leaf_axes(self.in_axes, args, self.compiled.name)
        leaves, treedef = tree.flatten(args)
        count = batch_axes.count_instances(leaves, axes, treedef)
        return axes, list(map(batch_axes.to_front, leaves, axes)), treedef, count

    def check(self, *args: Any, **kwargs: Any) -> Check:
        """Run each instance as plain Python, with the checks the function makes of values.

        Returns what came up, with the number of the instance; see ``Compiled.check``.
        """
        from archimedes.function.inspection import Check, check

        axes, leaves, treedef, count = self._instances(args)
        findings: list[Any] = []
        for k in range(count):
            row = treedef.unflatten([x if a is None else x[k] for x, a in zip(leaves, axes)])
            one = check(self.name, self.compiled.function, self.compiled, row, kwargs, k)
            findings.extend(one.findings)
        return Check(self.name, tuple(findings))

    def _takes_shortcuts(self, axes: list[int | None], batched: list[bool]) -> bool:
        """Return whether arguments reach the function, and results the caller, as they are."""
        signature = self.compiled.signature
        plain = signature.plain and not signature.static and self.out_axes == 0
        return plain and not any(axes) and len(batched) == len(axes)

    def _line_up(
        self, sample: Any, kwargs: dict[str, Any], fronted: list[Any], axes: list[int | None]
    ) -> tuple[list[Any], list[bool]]:
        """Put leaves in the recording's order: arguments as bound, defaults and keywords shared."""
        signature = self.compiled.signature

        marks = [_Mark(k) for k in range(len(fronted))]
        values = signature.bind(tree.structure(sample).unflatten(marks), kwargs)
        fixed = signature.fixed(values)
        every, batched = [], []
        for mark in tree.leaves(tuple(v for k, v in values.items() if k not in fixed)):
            mine = isinstance(mark, _Mark)
            every.append(fronted[mark.position] if mine else mark)
            batched.append(mine and axes[mark.position] is not None)
        return every, batched

    def __content__(self) -> tuple[Any, ...]:
        return (self.compiled, self.in_axes, self.out_axes)


class _Mark:
    """Stands for an argument leaf while its place among all leaves is looked up."""

    def __init__(self, position: int) -> None:
        self.position = position


def vmap(
    func: Callable[P, R],
    in_axes: Any = 0,
    out_axes: Any = 0,
    name: str | None = None,
    *,
    threads: int | None = None,
    backend: str | None = None,
) -> Batched[P, R]:
    """Return a function that maps a function over an axis of its arguments.

    On numbers it runs as one native kernel over SIMD lanes and threads. Results do not depend on
    their number. Maps may be nested. Arrays of a device run there, and so do the results.

    Parameters
    ----------
    func : callable
        Function of one instance. Keyword arguments are shared by all instances.
    in_axes : int, None or tuple, optional
        Axis of the instances, for all arguments, or a tuple with one entry for each argument: an
        axis, None (shared by all instances), or a tree of those. 0 by default.
    out_axes : int or tree, optional
        Axis of the instances in the result. 0 by default.
    name : str, optional
        Name in messages and listings.
    threads : int, optional
        Number of threads. By default all CPUs for large batches.
    backend : str, optional
        What runs the map, as in :func:`compile`. By default the backend of `func`.

    Returns
    -------
    callable
        Function of the batched arguments.

    Examples
    --------
    >>> import numpy as np
    >>> vmap(np.dot, in_axes=(0, None))(np.eye(2), np.array([3.0, 4.0]))
    array([3., 4.])
    """
    return Batched(func, in_axes, out_axes, name, threads, backend)


# ---- maps over instances as part of a recording --------------------------------------------------


def map_of_blocks(
    recording: Recording, leaves: Sequence[Any], batched: Sequence[bool], count: int
) -> Any:
    """Record a map over so many instances that it is a loop over blocks; None if they are fewer.

    A body with arrays of its own is never unrolled: not even for one instance.
    """
    inputs = sum(spec.size for spec, many in zip(recording.leaves, batched) if spec.traced and many)
    outputs = sum(out.spec.size for out in recording.outs if out.spec.traced)
    few = count * max(inputs, outputs) < loop_threshold() * ALWAYS_FACTOR
    has_arrays = recording.blocks is not recording.graph
    if not inputs or not count or (few and not has_arrays):
        return None
    if not has_arrays and not recording.graph.regions:
        return _as_loop(recording, leaves, batched, count)
    return _as_scan(recording, leaves, batched, count)


def _stack(leaf: Any, spec: LeafSpec, count: int) -> int:
    """Return the block of all instances of a leaf."""
    whole = LeafSpec(spec.code, (count, *spec.shape))
    return as_block(current_trace().graph, leaf_elements(leaf, whole), spec.code)


def _as_loop(
    recording: Recording, leaves: Sequence[Any], batched: Sequence[bool], count: int
) -> Any:
    g = current_trace().graph
    ids: list[int] = []
    reads: list[Read] = []
    for leaf, spec, many in zip(leaves, recording.leaves, batched):
        if not spec.traced or not spec.size:
            continue
        if many:
            ids += [_stack(leaf, spec, count)] * spec.size
            reads += [Affine(k, (spec.size,)) for k in range(spec.size)]
        else:
            ids += [g.node_of(i) for i in leaf_elements(leaf, spec).ravel().tolist()]
            reads += [None] * spec.size
    ids += recording.captured
    reads += [None] * len(recording.captured)
    results = [references(g, i) for i in loops(g, ids, reads, recording.graph, (count,))]

    def take(out: OutLeaf) -> Any:
        columns = results[out.start : out.stop]
        table = np.stack(columns, axis=1) if columns else np.zeros((count, 0), dtype=np.int64)
        return wrap(table.reshape(count, *out.spec.shape), out.spec.code)

    return recording.rebuild(take)


def _as_scan(
    recording: Recording, leaves: Sequence[Any], batched: Sequence[bool], count: int
) -> Any:
    g = current_trace().graph
    forms = zip(recording.leaves, batched, recording.forms())
    blocks = [
        spec.traced and spec.size > 0 and (bool(spec.shape) if many else form.block)
        for spec, many, form in forms
    ]
    out_blocks = [
        out.spec.traced and out.spec.size > 0 and bool(out.spec.shape) for out in recording.outs
    ]
    body = recording.in_forms(blocks, out_blocks)
    rows: list[int] = []
    shared: list[int] = []
    order: list[int] = []
    later: list[int] = []
    at = 0
    for leaf, spec, many, block in zip(leaves, recording.leaves, batched, blocks):
        if not spec.traced or not spec.size:
            continue
        if many:
            rows.append(_stack(leaf, spec, count))
            order.append(at)
            at += 1
            continue
        elements = leaf_elements(leaf, spec)
        mine = [as_block(g, elements, spec.code)] if block else elements.ravel().tolist()
        shared += [g.node_of(i) for i in mine]
        later += range(at, at + len(mine))
        at += len(mine)
    last = range(at, at + len(recording.captured))
    body = permute_body(body, [*order, *later, *last], range(len(body.outputs)))
    inputs = np.array([*rows, *shared, *recording.captured], dtype=np.int64)
    ids = iter(g.region(Scan(inputs, body, count, 0, len(rows), stacked=True)).tolist())
    return recording.rebuild(
        lambda out: read_array(
            ids, (count, *out.spec.shape), out.spec.code, block=out.spec.size > 0
        )
    )


#: Maps of at most this many operations in all are unrolled.
UNROLL_LIMIT = 256


def recorded_map(recording: Recording, leaves: list[Any], batched: list[bool], count: int) -> Any:
    """Record a map over instances in the current trace."""
    trace = current_trace()
    result = map_of_blocks(recording, leaves, batched, count)
    if result is not None:
        return result
    rows, shared = [], []
    order: list[int] = []
    later: list[int] = []
    offsets = recording.offsets()
    for leaf, spec, many, start in zip(leaves, recording.leaves, batched, offsets):
        if not spec.traced:
            continue
        positions = range(start, start + spec.size)
        if many:
            ids = leaf_ids(leaf, LeafSpec(spec.code, (count, *spec.shape)))
            rows.append(np.array(ids, dtype=np.int64).reshape(count, spec.size))
            order.extend(positions)
        else:
            shared.extend(leaf_ids(leaf, spec))
            later.extend(positions)
    own = len(order) + len(later)
    block = np.concatenate(rows, axis=1)
    shared += recording.captured
    captured = range(own, own + len(recording.captured))
    body, inputs = recording.graph, [*order, *later, *captured]
    if inputs != sorted(inputs):
        body = permute_body(body, inputs, range(len(body.outputs)))
    if count * len(body) <= UNROLL_LIMIT:
        outs = [inline(trace.graph, body, [*row, *shared]) for row in block.tolist()]
        table = np.array(outs, dtype=np.int64).reshape(count, len(body.outputs))
    else:
        region = Map(np.array([*block.reshape(-1), *shared]), body, count, block.shape[1])
        table = trace.graph.region(region).reshape(count, len(body.outputs))

    def take(out: OutLeaf) -> Any:
        return wrap(table[:, out.start : out.stop].reshape(count, *out.spec.shape), out.spec.code)

    return recording.rebuild(take)
