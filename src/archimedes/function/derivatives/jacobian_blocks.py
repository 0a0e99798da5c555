"""Derivative matrices, and how they are cut into blocks in the shape of trees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from archimedes.errors import ShapeDtypeError, explained
from archimedes.function.derivatives.recorded_point import Point
from archimedes.function.recording import OutLeaf
from archimedes.graph.blocks.building import loops
from archimedes.graph.blocks.references import any_reference, block_of, references
from archimedes.graph.derivatives.jacobian_graphs import Entries, jacobian_graph, reverse_graph
from archimedes.graph.dtypes import B8, DTYPES, F64, is_float, item_type
from archimedes.graph.ops import CODES
from archimedes.graph.passes import inline, with_outputs
from archimedes.graph.program import Graph
from archimedes.graph.regions import Affine, Gather
from archimedes.graph.regions.base import has_blocks
from archimedes.graph.regions.nest import Read
from archimedes.symbolic import SymbolicArray, current_trace, wrap
from archimedes.symbolic.core.conversion import cast, cast_ids

__all__ = [
    "blocks_of",
    "dense_jacobian",
    "differentiated",
    "entry_ids",
    "filled",
    "float_outs",
    "gradient",
    "gradient_of",
    "leaf_values",
    "out_shape",
    "result_dtype",
    "rows_of",
    "scalar_out",
    "typed",
]


def float_outs(point: Point, what: str) -> list[OutLeaf]:
    """Return the leaves of the result, or say which of them has no derivative."""
    outs = []
    for out, path in zip(point.recording.outs, point.recording.out_tree.paths("result")):
        code, value = out.spec.code, out.spec.value
        numbers = out.spec.traced or isinstance(value, (int, float, np.ndarray, np.generic))
        if not numbers:
            raise ShapeDtypeError(
                f"{what}: {path} is a {type(value).__name__}, which has no derivative"
            )
        if out.spec.traced and not is_float(code):
            raise ShapeDtypeError(
                f"{what}: {path} is {DTYPES[code]}, which has no derivative: return floats, for "
                "example x.astype(float)"
            )
        outs.append(out)
    return outs


def result_dtype(point: Point, outs: Sequence[OutLeaf] = ()) -> int:
    """Return the dtype that holds all chosen arguments and the given results."""
    codes = {point.recording.leaves[k].code for k in point.wanted}
    codes |= {out.spec.code for out in outs if out.spec.traced}
    return F64 if F64 in codes else codes.pop()


def typed(ids: np.ndarray, code: int) -> Any:
    """Wrap ids of floats as an array of one dtype; a sweep mixes those of arguments and results."""
    g = current_trace().graph
    block = block_of(g, ids) if any_reference(ids) else None
    if block is not None:
        return wrap(cast_ids(g, ids, item_type(g.dtype[block]), code), code)
    flat = [cast(g, i, code) for i in ids.ravel().tolist()]
    return wrap(np.array(flat, dtype=np.int64).reshape(ids.shape), code)


def blocks_of(point: Point, rows: np.ndarray, shape: tuple[int, ...], code: int = -1) -> Any:
    """Cut the rows of one result leaf of the given shape into a tree of blocks.

    Each has the dtype of its argument leaf, widened to ``code`` where given.
    """
    blocks = {}
    for position, k in enumerate(point.wanted):
        start, leaf_shape = point.block(position)
        leaf = point.recording.leaves[k]
        ids = rows[:, start : start + leaf.size].reshape((*shape, *leaf_shape))
        blocks[k] = typed(ids, F64 if F64 in (code, leaf.code) else leaf.code)
    return filled(point, blocks)


def filled(point: Point, blocks: dict[int, Any]) -> Any:
    """Put blocks in the place of the wanted leaves of the chosen arguments."""
    filled = []
    ready = iter([blocks[k] for k in point.wanted])
    for leaf in point.leaves:
        differentiated = isinstance(leaf, SymbolicArray) and is_float(leaf.code)
        filled.append(next(ready) if differentiated else leaf)
    return point.where.unflatten(filled)


def dense_jacobian(point: Point, *, gradient: bool = False) -> np.ndarray:
    """Return ids, in the current trace, of the Jacobian in the chosen leaves.

    ``gradient``: of the gradient, so that it is the Hessian.
    """
    source, wrt, inputs = differentiated(point)
    wide = has_blocks(source)
    if gradient:
        source = gradient_of(source, wrt)
    entries = jacobian_graph(source, wrt, symmetric=gradient and wide)
    g, shape = current_trace().graph, entries.shape
    if entries.places is not None and len(entries.rows) < shape[0] * shape[1]:
        return _with_zeros(g, entries, inline(g, entries.graph, inputs)[0])
    dense = np.full(shape, g.const(0.0, F64), dtype=np.int64)
    dense[entries.rows, entries.columns] = entry_ids(g, entries, inputs)
    return dense


def entry_ids(g: Graph, entries: Entries, inputs: Sequence[int]) -> np.ndarray:
    """Append a program of entries to a graph, and return their ids."""
    outs = inline(g, entries.graph, inputs)
    if entries.places is None:
        return np.array(outs, dtype=np.int64)
    return references(g, outs[0])[entries.places]


def _with_zeros(g: Graph, entries: Entries, block: int) -> np.ndarray:
    """Return the ids of a dense matrix, some of whose entries are elements of a block."""
    shape, kind = entries.shape, item_type(g.dtype[block])
    places, there = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=bool)
    places[entries.rows, entries.columns] = [] if entries.places is None else entries.places
    there[entries.rows, entries.columns] = True
    body = Graph()
    value, known = body.input(kind), body.input(B8)
    body.outputs = [body.emit(CODES["select"], known, value, body.const(0.0, kind))]
    reads: list[Read] = [Gather(places.ravel()), Affine(0, (1,))]
    made = loops(g, [block, g.block(there.ravel())], reads, body, (places.size,))
    return references(g, made[0]).reshape(shape)


def differentiated(point: Point) -> tuple[Graph, Sequence[int], Sequence[int]]:
    """Return the program to differentiate, in which inputs, and what these are in the trace."""
    recording = point.recording
    if has_blocks(recording.blocks):
        return recording.blocks, point.block_wrt, recording.inputs(point.all_leaves)
    return recording.graph, point.wrt, point.inputs


def out_shape(out: OutLeaf) -> tuple[int, ...]:
    """Return the shape of a result leaf, traced or constant."""
    return out.spec.shape if out.spec.traced else np.shape(out.spec.value)


def rows_of(point: Point, dense: np.ndarray, out: OutLeaf) -> np.ndarray:
    """Rows of one result leaf; zeros where it does not depend on the arguments at all."""
    if out.spec.traced:
        return dense[out.start : out.stop]
    zero = current_trace().graph.const(0.0, result_dtype(point))
    return np.full((int(np.size(out.spec.value)), dense.shape[1]), zero, dtype=np.int64)


def scalar_out(point: Point, what: str) -> OutLeaf:
    """Return the only leaf of the result, or say that it is not one scalar."""
    outs = float_outs(point, what)
    shapes = [out_shape(out) for out in outs]
    if shapes != [()]:
        raise ShapeDtypeError(
            explained(
                "gradient",
                f"{what} needs a function with one scalar result, this one returns {len(outs)} of "
                f"shape {shapes}: reduce it, for example with np.sum, or use arc.jac",
            )
        )
    return outs[0]


def gradient(point: Point) -> Any:
    """Return the gradient of the single scalar output, in the shape of the chosen argument.

    A wide leaf is differentiated as the block it is.
    """
    recording, g = point.recording, current_trace().graph
    inputs = recording.inputs(point.all_leaves)
    return leaf_values(point, inline(g, gradient_of(recording.blocks, point.block_wrt), inputs))


def leaf_values(point: Point, ids: Sequence[int]) -> Any:
    """Return the chosen argument with these values, as ``blocks`` gives them, for its numbers."""
    recording, g = point.recording, current_trace().graph
    forms = recording.forms()
    blocks, at = {}, 0
    for k in point.wanted:
        spec, count = recording.leaves[k], forms[k].width
        mine = ids[at : at + count]
        own = references(g, mine[0]) if forms[k].block else np.array(mine, dtype=np.int64)
        if forms[k].block:
            own = cast_ids(g, own, item_type(g.dtype[mine[0]]), spec.code)
            blocks[k] = wrap(own.reshape(spec.shape), spec.code)
        else:
            blocks[k] = typed(own.reshape(spec.shape), spec.code)
        at += count
    return filled(point, blocks)


def gradient_of(graph: Graph, wrt: Sequence[int]) -> Graph:
    """Return the graph inputs -> gradient in the inputs ``wrt`` of a graph's single output."""
    if not graph.outputs:
        zeros = Graph()
        for dtype in graph.input_dtypes:
            zeros.input(dtype)
        dtypes = graph.input_dtypes
        zeros.outputs = [zeros.const(0.0, dtypes[p]) for p in wrt]
        return zeros
    both = reverse_graph(graph, wrt)
    inner = Graph()
    inputs = [inner.input(dtype) for dtype in graph.input_dtypes]
    outs = inline(inner, both, [*inputs, inner.const(1.0, graph.output_dtypes[0])])
    return with_outputs(inner, outs[1:])
